/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts of one event of a CPU. The kernel's own limit (kernel.perf_event_max_sample_rate) stops an
 * event until the next tick, and writes a record of each. The session's limit works by windows: an
 * event that has brought the samples of a window is off until the next one begins. Both times are
 * in the books, since what the event counted then is not known.
 */
#include "event_feed.h"

#include "clock.h"

/* A round comes at least so often, so an event is on and off by turns within a second. */
#define WINDOW_NS (NS_PER_S / 5)

void event_feed_start(struct event_feed *feed, uint64_t time_ns)
{
    feed->window_ns = time_ns;
    feed->window_count = 0;
    feed->throttled_since_ns = 0;
    feed->held_since_ns = 0;
}

static void end_throttling(struct event_feed *feed, uint64_t time_ns)
{
    if (feed->throttled_since_ns != 0 && time_ns > feed->throttled_since_ns) {
        feed->throttled_ns += time_ns - feed->throttled_since_ns;
    }
    feed->throttled_since_ns = 0;
}

void event_feed_take(struct event_feed *feed, const struct perf_record *record)
{
    if (record->kind == PERF_KIND_SAMPLE) {
        feed->window_count++;
        for (uint32_t i = 0; i < record->sample.followed.count; i++) {
            feed->window_count += record->sample.followed.values[i] > 0;
        }
        feed->taken_weight += record->sample.weight;
    } else if (record->kind == PERF_KIND_LOST) {
        feed->lost += record->lost.count;
    } else if (record->kind == PERF_KIND_THROTTLE) {
        feed->throttled++;
        feed->throttled_since_ns = record->time_ns;
    } else if (record->kind == PERF_KIND_UNTHROTTLE) {
        end_throttling(feed, record->time_ns);
    }
}

void event_feed_follow(struct event_feed *feed, uint64_t weight)
{
    feed->taken_weight += weight;
}

void event_feed_end(struct event_feed *feed, uint64_t time_ns)
{
    end_throttling(feed, time_ns);
    if (feed->held_since_ns != 0 && time_ns > feed->held_since_ns) {
        feed->held_back_ns += time_ns - feed->held_since_ns;
    }
    feed->held_since_ns = 0;
}

enum event_wish event_feed_judge(struct event_feed *feed, uint64_t time_ns)
{
    const uint64_t count_max = (uint64_t)feed->rate_max_hz * WINDOW_NS / NS_PER_S + 1;
    if (time_ns >= feed->window_ns + WINDOW_NS) {
        feed->window_ns = time_ns;
        feed->window_count = 0;
        if (feed->held_since_ns != 0) {
            feed->held_back_ns += time_ns - feed->held_since_ns;
            feed->held_since_ns = 0;
            return EVENT_ENABLE;
        }
    } else if (feed->rate_max_hz > 0 && feed->window_count > count_max &&
               feed->held_since_ns == 0) {
        feed->held_since_ns = time_ns;
        return EVENT_DISABLE;
    }
    return EVENT_KEEP;
}

void event_feed_line(const struct event_feed *feed, struct books_event *line)
{
    line->counted = feed->kernel.value;
    line->held_weight = feed->taken_weight;
    line->lost = feed->lost > feed->kernel.lost_count ? feed->lost : feed->kernel.lost_count;
    line->throttled = feed->throttled;
    line->throttled_ns = feed->throttled_ns;
    line->held_back_ns = feed->held_back_ns;
    line->enabled_ns = feed->kernel.time_enabled_ns;
    line->running_ns = feed->kernel.time_running_ns;
}
