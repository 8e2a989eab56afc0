/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ring of switch records has another reader (switch_feed.c). It is read here by a view of its
 * own, and its room is given back when both have read it. One record is always read ahead, and kept
 * until its time. A loss is told at once, since what was lost lies between the record before and
 * the next one; a full ring counts as a loss too, for the LOST record comes with the next record
 * only.
 *
 * What was recorded while the records were being switched off or on is not all that there was, so
 * nothing of such a time is handed out, samples included.
 */
#include "switch_rings.h"

#include "extremes.h"
#include "perf_plan.h"

#define PUBLISH_BYTES ((size_t)65536)
#define ROOM_BYTES    128 /* of a ring, that a record and a LOST record need */

void switch_rings_init(struct switch_rings *rings, const struct switch_rings_config *config)
{
    *rings = (struct switch_rings){
        .config = *config,
        .view = *config->records,
        .mark_ns = UINT64_MAX,
    };
}

/* Switching off and on is over, or was of events that are gone. */
static void forget_off(struct switch_rings *rings)
{
    rings->off_from_ns = rings->off_to_ns = 0;
    rings->mark_ns = UINT64_MAX;
    rings->is_off = false;
}

void switch_rings_renew(struct switch_rings *rings)
{
    rings->view = *rings->config.records;
    rings->has_record = rings->has_sample = false;
    rings->is_lossy = true;
    rings->is_full = false;
    forget_off(rings); /* new events are on */
}

void switch_rings_start(struct switch_rings *rings)
{
    rings->is_lossy = rings->is_full = false;
}

void switch_rings_stop(struct switch_rings *rings, uint64_t time_ns)
{
    (void)switch_rings_hold(rings, rings->off_from_ns, max_u64(rings->off_from_ns, time_ns));
    forget_off(rings);
}

void switch_rings_refresh(struct switch_rings *rings)
{
    struct perf_ring *view = &rings->view;
    view->head = rings->config.records->head;
    perf_ring_refresh(rings->config.samples);
    rings->is_full =
        view->data_bytes > 0 && view->head - view->tail > view->data_bytes - ROOM_BYTES;
}

void switch_rings_publish(struct switch_rings *rings)
{
    rings->has_sample = false;
    rings->unpublished_bytes = 0;
    (void)perf_ring_publish(rings->config.samples);
}

bool switch_rings_hold(struct switch_rings *rings, uint64_t from_ns, uint64_t to_ns)
{
    const bool is_new = from_ns > rings->off_from_ns;
    if (is_new) {
        rings->off_from_ns = from_ns;
        rings->off_to_ns = UINT64_MAX;
        rings->mark_ns = from_ns;
    }
    if (from_ns > 0 && to_ns < rings->off_to_ns) {
        rings->off_to_ns = to_ns;
        rings->mark_ns = rings->is_off ? to_ns : rings->mark_ns;
        rings->held_back_ns += to_ns - from_ns;
    }
    return is_new;
}

void switch_rings_pass_mark(struct switch_rings *rings)
{
    rings->is_off = !rings->is_off;
    rings->mark_ns = rings->is_off ? rings->off_to_ns : UINT64_MAX;
}

/* Records of such a time are not all that there was. */
static bool was_off(const struct switch_rings *rings, uint64_t time_ns)
{
    return time_ns >= rings->off_from_ns && time_ns < rings->off_to_ns;
}

static bool tells_of_thread(const struct perf_record *record)
{
    return record->kind == PERF_KIND_SWITCH || record->kind == PERF_KIND_FORK ||
           record->kind == PERF_KIND_EXIT || (record->kind == PERF_KIND_COMM && record->comm.exec);
}

/* Reads the next record, if there is one. Returns whether some before it are missing. */
static bool read_record(struct switch_rings *rings)
{
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    bool are_missing = false;
    while (!rings->has_record) {
        int r = perf_ring_peek(&rings->view, &bytes, &size_bytes);
        if (r == 0) {
            are_missing = are_missing || rings->is_full;
            rings->is_full = false;
            break;
        }
        bool is_whole = r > 0 && perf_record_parse(rings->config.record_layout, bytes, size_bytes,
                                                   &rings->record) == 0;
        if (!is_whole || rings->record.kind == PERF_KIND_LOST) {
            are_missing = true;
        } else {
            rings->has_record =
                tells_of_thread(&rings->record) && !was_off(rings, rings->record.time_ns);
        }
        if (r > 0) {
            perf_ring_advance(&rings->view, size_bytes);
        }
    }
    rings->is_lossy = rings->is_lossy || are_missing;
    return are_missing;
}

/* Shows the next sample, if there is one. */
static void peek_sample(struct switch_rings *rings)
{
    struct perf_ring *ring = rings->config.samples;
    struct perf_record *sample = &rings->sample;
    const uint8_t *bytes = NULL;
    while (!rings->has_sample) {
        int r = perf_ring_peek(ring, &bytes, &rings->sample_bytes);
        if (r == 0) {
            return;
        }
        if (r < 0 || perf_record_parse(rings->config.sample_layout, bytes, rings->sample_bytes,
                                       sample) < 0) {
            rings->bad_samples++;
        } else if (sample->kind == PERF_KIND_LOST) {
            rings->lost_samples += sample->lost.count;
        } else {
            rings->has_sample =
                sample->kind == PERF_KIND_SAMPLE && !was_off(rings, sample->time_ns);
        }
        if (r > 0 && !rings->has_sample) {
            perf_ring_advance(ring, rings->sample_bytes);
        }
    }
}

bool switch_rings_read_ahead(struct switch_rings *rings)
{
    const bool are_missing = read_record(rings);
    peek_sample(rings);
    return are_missing;
}

bool switch_rings_sample_woke(const struct switch_rings *rings)
{
    const struct perf_ring *ring = rings->config.samples;
    return perf_ring_woke(ring, rings->sample_bytes, ring->data_bytes / PERF_PLAN_WAKEUP_PARTS);
}

void switch_rings_drop_sample(struct switch_rings *rings)
{
    struct perf_ring *ring = rings->config.samples;
    perf_ring_advance(ring, rings->sample_bytes);
    rings->has_sample = false;
    rings->unpublished_bytes += rings->sample_bytes;
    if (rings->unpublished_bytes >= PUBLISH_BYTES) {
        (void)perf_ring_publish(ring);
        rings->unpublished_bytes = 0;
    }
}
