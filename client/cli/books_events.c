/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints what the books have of events beside the clock, a line for each: what the kernel counted,
 * what the samples stand for, and why that is less. The object may come from any user's file.
 */
#include "books_events.h"

#include "json.h"
#include "text_out.h"

#include <inttypes.h>
#include <string.h>

/* A member of the object, 0 where it has none or less. */
static uint64_t number(const cJSON *object, const char *member)
{
    int64_t value = 0;
    return json_read_integer(cJSON_GetObjectItemCaseSensitive(object, member), 0, JSON_INTEGER_MAX,
                             &value)
               ? (uint64_t)value
               : 0;
}

static const char *text(const cJSON *object, const char *member, const char *otherwise)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, member));
    return value == NULL ? otherwise : value;
}

static void print_time(FILE *file, const cJSON *total, const char *member, const char *what)
{
    uint64_t time_ns = number(total, member);
    if (time_ns > 0) {
        (void)fprintf(file, "; %s for %.3f s of a CPU", what, (double)time_ns / 1e9);
    }
}

/* It shares its counter with other events. */
static void print_shared(FILE *file, const cJSON *total)
{
    double enabled_ns = (double)number(total, "enabled_ns");
    double running_ns = (double)number(total, "running_ns");
    if (enabled_ns > 0 && running_ns < 0.999 * enabled_ns) {
        (void)fprintf(file, "; counted in %.1f %% of the time, since others had its counter",
                      100 * running_ns / enabled_ns);
    }
}

static bool is_time(const cJSON *event)
{
    return strcmp(text(event, "unit", "events"), "ns") == 0;
}

/* What was counted: "30000 faults", or a time. */
static void print_amount(FILE *file, const cJSON *event, uint64_t amount)
{
    char words[32];
    if (is_time(event)) {
        (void)fputs(text_amount(amount, "ns", words, sizeof words), file);
        return;
    }
    (void)fprintf(file, "%" PRIu64 " ", amount);
    text_print(file, text(event, "unit", "events"));
}

/* What samples stand for: the unit was said before, but for that of a time. */
static void print_sampled(FILE *file, const cJSON *event, uint64_t amount)
{
    if (is_time(event)) {
        print_amount(file, event, amount);
    } else {
        (void)fprintf(file, "%" PRIu64, amount);
    }
}

/* The name, and that all numbers behind it but those that are kept are of all tasks, where others
 * than those of the recording are among them. */
static void print_name(FILE *file, const cJSON *event, const cJSON *total)
{
    text_print(file, text(event, "event", "[unknown]"));
    if (cJSON_HasObjectItem(event, "leader")) {
        (void)fputs(", with ", file);
        text_print(file, text(event, "leader", "[unknown]"));
    }
    (void)fputs(number(total, "filtered") > 0 ? ", of all tasks: " : ": ", file);
}

static double seconds(const cJSON *total, const char *member)
{
    return (double)number(total, member) / 1e9;
}

/* Waits, whose samples weigh as many ns as they were long. */
static void print_waits(FILE *file, const cJSON *event, const cJSON *total)
{
    print_name(file, event, total);
    (void)fprintf(file, "%" PRIu64 " waits, of which %" PRIu64 " kept; %.3f s of %.3f s",
                  number(total, "received"), number(total, "kept"), seconds(total, "sampled"),
                  seconds(total, "counted"));
    if (number(total, "not_sampled") > 0) {
        (void)fprintf(file, ", by an estimate from some (off by up to %.3f s, 95 %%)",
                      seconds(total, "error_95_ns"));
    }
    if (number(total, "lost") > 0) {
        (void)fprintf(file, "; %" PRIu64 " not certain (%.3f s)", number(total, "lost"),
                      seconds(total, "lost_ns"));
    }
    if (number(total, "short") > 0) {
        (void)fprintf(file, "; %" PRIu64 " short (%.3f s)", number(total, "short"),
                      seconds(total, "short_ns"));
    }
    if (number(total, "lost_samples") > 0) {
        (void)fprintf(file, "; stacks of %" PRIu64 " switches lost", number(total, "lost_samples"));
    }
    if (number(total, "dropped") > 0) {
        (void)fprintf(file, "; %" PRIu64 " dropped", number(total, "dropped"));
    }
    print_time(file, total, "held_back_ns", "switches came too fast to be recorded");
    (void)fputc('\n', file);
}

static void print_event(FILE *file, const cJSON *event)
{
    char count[TEXT_COUNT_BYTES];
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(event, "total");
    if (cJSON_HasObjectItem(total, "short_ns")) {
        print_waits(file, event, total);
        return;
    }
    print_name(file, event, total);
    if (cJSON_HasObjectItem(total, "counted")) {
        print_amount(file, event, number(total, "counted"));
        (void)fputs(" counted; ", file);
    }
    (void)fprintf(file, "%s, of which %" PRIu64 " kept",
                  text_samples(number(total, "received"), count), number(total, "kept"));
    if (number(total, "sampled") > 0) {
        (void)fputs(", stand for ", file);
        print_sampled(file, event, number(total, "sampled"));
    }
    if (number(total, "lost") > 0) {
        (void)fprintf(file, "; %s lost", text_samples(number(total, "lost"), count));
    }
    if (number(total, "dropped") > 0) {
        (void)fprintf(file, "; %s dropped", text_samples(number(total, "dropped"), count));
    }
    print_time(file, total, "throttled_ns", "stopped by the kernel's limit");
    print_time(file, total, "held_back_ns", "held back by max_event_rate_hz");
    print_shared(file, total);
    (void)fputc('\n', file);
}

void books_events_warn(FILE *file, const cJSON *books)
{
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(books, "events"))
    {
        const cJSON *total = cJSON_GetObjectItemCaseSensitive(event, "total");
        if (!cJSON_HasObjectItem(total, "short_ns") && number(total, "held_back_ns") > 0) {
            (void)fputs("warning: ", file);
            text_print(file, text(event, "event", "[unknown]"));
            (void)fputs(" came faster than max_event_rate_hz of daemon.json allows, and what "
                        "happened while they were held back is in no count: shares of its samples "
                        "may be false; sample fewer of them, as each 100th\n",
                        file);
        }
    }
}

void books_events_write_one(FILE *file, const cJSON *books, const char *name)
{
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(books, "events"))
    {
        if (strcmp(text(event, "event", ""), name) == 0) {
            print_event(file, event);
        }
    }
}

void books_events_write(FILE *file, const cJSON *books)
{
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(books, "events"))
    {
        print_event(file, event);
    }
}
