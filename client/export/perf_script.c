/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints what `perf script -F comm,pid,tid,cpu,time,period,event,ip,sym,dso --ns` prints of clock
 * samples: a line of the event, a line a frame, an empty line. Readers part these lines at spaces
 * and brackets, so what they would take for the end of a name is escaped. The period of an event is
 * the recording's, in nanoseconds; 1 where it is not known.
 */
#include "writers.h"

#include "cleanup.h"
#include "escaped.h"
#include "export_books.h"
#include "places.h"
#include "sample_order.h"

#include <inttypes.h>
#include <string.h>

#define EVENT       "cpu-clock"
#define KERNEL      "[kernel]"
#define PERF_KERNEL "[kernel.kallsyms]"
#define NO_MODULE   "[unknown]"
#define HEADER_EDGE "# ========\n" /* Firefox's Profiler knows the text by it */
#define COMM_WIDTH  16
#define NS_PER_S    UINT64_C(1000000000)

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* A name ends at white space that is followed by a number, so such a space is escaped. A line that
 * begins with '#' is a comment. */
static void print_comm(FILE *file, const char *comm)
{
    size_t left = strlen(comm);
    size_t width = 0;
    for (size_t length = 0, at = 0; at < left; at += length, width++) {
        char next = comm[at + 1];
        if (comm[at] == ' ' && (at == 0 || next == '\0' || next == '[' || is_digit(next))) {
            (void)fputs("\\x20", file);
            length = 1;
        } else if (comm[at] == '#' && at == 0) {
            (void)fputs("\\x23", file);
            length = 1;
        } else {
            length = escaped_print_character(file, comm + at, left - at);
        }
    }
    if (left == 0) {
        (void)fputs("[unknown]", file);
        width = strlen("[unknown]");
    }
    for (; width < COMM_WIDTH; width++) {
        (void)fputc(' ', file);
    }
}

/* The module's name stands behind the last " (" of the line. */
static void print_module(FILE *file, const char *name)
{
    for (const char *space = NULL; (space = strstr(name, " (")) != NULL; name = space + 1) {
        escaped_print_bytes(file, name, (size_t)(space - name));
        (void)fputs("\\x20", file);
    }
    escaped_print_bytes(file, name, strlen(name));
}

/* The number of a task that has none, as one that has exited, is 0. */
static uint64_t task_number(uint64_t number)
{
    return number > INT32_MAX ? 0 : number;
}

static void print_event(FILE *file, const struct profile *profile,
                        const struct profile_sample *sample, uint64_t period)
{
    uint32_t thread = profile_thread_name(profile, sample);
    print_comm(file, profile_text(profile, thread == INTERN_NONE ? sample->process_name : thread));
    (void)fprintf(file,
                  " %" PRIu64 "/%" PRIu64 " [%03" PRIu32 "] %" PRIu64 ".%09" PRIu64 ": %" PRIu64
                  " " EVENT ":\n",
                  task_number(sample->pid), task_number(sample->tid), sample->cpu,
                  sample->time_ns / NS_PER_S, sample->time_ns % NS_PER_S, period);
}

static void print_frame(FILE *file, const struct profile *profile, uint32_t number,
                        uint64_t address)
{
    const struct profile_frame *frame = profile_frame(profile, number);
    const char *module = frame->module == INTERN_NONE
                             ? NO_MODULE
                             : profile_text(profile, profile->modules[frame->module].name);
    (void)fprintf(file, "\t%16" PRIx64 " ", address);
    escaped_print(file, profile_text(profile, frame->name));
    (void)fputs(" (", file);
    if (frame->is_inlined != 0) {
        (void)fputs("inlined", file);
    } else {
        print_module(file, strcmp(module, KERNEL) == 0 ? PERF_KERNEL : module);
    }
    (void)fputs(")\n", file);
}

static void print_sample(FILE *file, const struct profile *profile,
                         const struct profile_sample *sample, uint64_t period)
{
    struct place_walk walk;
    struct stack_place place;
    print_event(file, profile, sample, period);
    place_walk_begin(&walk, profile, sample);
    while (place_walk_next(&walk, &place)) {
        for (size_t i = 0; i < place.frame_count; i++) {
            print_frame(file, profile, place.frames[i], place.address);
        }
    }
    if (profile_rooted(sample) == PROFILE_STACK_TRUNCATED) {
        (void)fprintf(file, "\t%16x [truncated] (" NO_MODULE ")\n", 0);
    }
    (void)fputc('\n', file);
}

static void print_comment(const char *line, void *userdata)
{
    (void)fprintf(userdata, "# %s\n", line);
}

static void print_lost(FILE *file, const struct profile *profile, uint64_t period)
{
    uint64_t lost = export_books_lost(profile);
    if (lost > 0) {
        (void)fprintf(file,
                      "%-*s 0/0 [000] %" PRIu64 ".%09" PRIu64 ": %" PRIu64 " " EVENT
                      ":\n\t%16x [lost] (" NO_MODULE ")\n\n",
                      COMM_WIDTH, "[lost]", profile->last_ns / NS_PER_S,
                      profile->last_ns % NS_PER_S, lost * period, 0);
    }
}

int perf_script_print(FILE *file, const struct profile *profile,
                      const struct export_options *options)
{
    uint64_t period_ns = profile_period_ns(profile);
    uint64_t period = period_ns == 0 ? 1 : period_ns;
    cleanup_(freep) uint32_t *order = sample_order(profile, SAMPLE_ORDER_TIME);
    if (order == NULL) {
        return -ENOMEM;
    }
    (void)fputs(HEADER_EDGE, file);
    export_books_lines(profile, print_comment, file);
    (void)fputs(HEADER_EDGE "#\n", file);
    for (size_t i = 0; i < profile->sample_count; i++) {
        print_sample(file, profile, &profile->samples[order[i]], period);
    }
    if (options->has_lost_frame) {
        print_lost(file, profile, period);
    }
    return 0;
}
