/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl top`: reads the options; top/ does the rest.
 */
#include "books_print.h"
#include "cleanup.h"
#include "clock.h"
#include "duration.h"
#include "options.h"
#include "select_options.h"
#include "top.h"
#include "verbs.h"

#include <string.h>

#define WINDOW_NS_MIN   NS_PER_S
#define WINDOW_NS_MAX   (600 * NS_PER_S)
#define INTERVAL_NS_MIN (NS_PER_S / 10)
#define INTERVAL_NS_MAX (60 * NS_PER_S)
#define COUNT_MAX       UINT64_C(1000000000)

static int take_time(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    bool is_window = strcmp(option->name, "window") == 0;
    uint64_t least_ns = is_window ? WINDOW_NS_MIN : INTERVAL_NS_MIN;
    uint64_t most_ns = is_window ? WINDOW_NS_MAX : INTERVAL_NS_MAX;
    uint64_t time_ns = 0;
    if (!duration_parse(value, most_ns, &time_ns) || time_ns < least_ns) {
        return options_refuse(line, "--%s %s: give a number of seconds from %g to %g, or 500ms, 2m",
                              option->name, value, (double)least_ns / 1e9, (double)most_ns / 1e9);
    }
    *(uint64_t *)into = time_ns;
    return EXIT_DONE;
}

static int take_count(const struct command_line *line, const struct verb_option *option,
                      const char *value, void *into)
{
    uint64_t *ret_count = into;
    return !options_number(value, COUNT_MAX, ret_count) ||
                   (option->letter == 'n' && *ret_count == 0)
               ? options_refuse(line, "--%s %s: give a number", option->name, value)
               : EXIT_DONE;
}

static const char *view_name(size_t view)
{
    static const char *const names[] = {[TOP_SHOWS_FUNCTIONS] = "function",
                                        [TOP_SHOWS_PROCESSES] = "process",
                                        [TOP_SHOWS_UNITS] = "unit",
                                        NULL};
    return names[view];
}

#define TOP_AT(member) offsetof(struct top_request, member)

/* Options of record write into the request at its front. */
_Static_assert(TOP_AT(record) == 0, "a struct record_request is where its options expect it");

static const struct verb_option options[] = {
    {'F', "frequency", "HZ",
     "samples a second on each CPU, 1 to 100000 (499; above\n5 CPUs less, so that profctl itself stays small)",
     options_frequency, RECORD_AT(frequency_hz), 0},
    {0, "window", "TIME", "that is shown: 30, 2m (10 s)", take_time, TOP_AT(window_ns), 0},
    {0, "interval", "TIME", "between two looks: 2, 500ms (1 s)", take_time, TOP_AT(interval_ns), 0},
    {0, "by", "WHAT", "what is shown first: function, process, unit\n(function)", options_choice,
     TOP_AT(view), 0, view_name},
    {0, "sort", "ORDER", "by self or by total (self)", select_take_sort, TOP_AT(by_total), 0,
     select_sort_name},
    {0, "filter", "TEXT", "only rows with this in their name or module", options_text,
     TOP_AT(filter), 0},
    OPTION_WALL,
    OPTION_EVENTS_AS("events"),
    {0, "event", "EVENT",
     "whose samples are shown first, by what they stand for:\noff-cpu, page-faults (cpu-clock)",
     options_text, TOP_AT(event), 0},
    {'b', "batch", NULL, "print each look instead of showing it on a screen", options_flag,
     TOP_AT(is_batch), 0},
    {'n', "iterations", "N", "end after so many looks; with -b or --json", take_count,
     TOP_AT(count), 0},
    {0, "rows", "N", "at most so many rows of a printed look, 0 for\nall (20)", take_count,
     TOP_AT(limit), 0},
    {0, "json", NULL, "print each look as one JSON object, in a line", options_flag,
     RECORD_AT(is_json), 0},
    OPTION_KERNEL,
    OPTION_NO_KERNEL,
    OPTION_CONFIG,
    OPTION_SOCKET(RECORD_AT(socket_path)),
    TARGET_OPTIONS,
    {0},
};

static const struct command_line line = {
    .usage = "profctl top [-F HZ] [--window TIME] [OPTION...]",
    .help = "Shows where the time of the CPUs goes now: the hottest functions and what called\n"
            "them, processes, units; with --wall also what threads wait in. It has a session\n"
            "of its own, so nothing else can be recorded meanwhile.\n",
    .more_help = "On the screen q ends it, ? lists the keys, e shows the next event, and w saves\n"
                 "what was sampled last as a recording: 5 minutes of it are kept, of at most\n"
                 "64 MiB.\n\n" BOOKS_PRINT_HELP,
    .options = options,
    .instead = "; -p, -U and others name a part of the machine",
};

static void request_done(struct top_request *request)
{
    record_request_done(&request->record);
}

int verb_top(int argc, char **argv)
{
    cleanup_(request_done) struct top_request request = {
        .window_ns = TOP_WINDOW_S * NS_PER_S,
        .interval_ns = TOP_INTERVAL_S * NS_PER_S,
        .limit = 20,
        .filter = "",
    };
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    if (request.record.kernel_stacks && request.record.no_kernel_stacks) {
        return options_refuse(&line, "--kernel and --no-kernel cannot be combined");
    }
    if (request.count > 0 && !request.is_batch && !request.record.is_json) {
        return options_refuse(&line, "-n goes with -b or --json");
    }
    return top_run(&request);
}
