/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the line that a recording begins with on a terminal: without it nothing would show that
 * the program waits for something, and for what. A terminal that takes no output loses it.
 */
#include "record_opening.h"

#include "cleanup.h"
#include "page.h"
#include "record_progress.h"
#include "record_targets.h"
#include "session_config.h"
#include "text_out.h"

#include <inttypes.h>
#include <string.h>

static void print_what(FILE *to, const struct record_request *request,
                       const struct session_config *config)
{
    char targets[RECORD_TARGETS_BYTES];
    if (request->command != NULL && !request->whole_machine) {
        text_print(to, request->command[0]);
    } else if (request->targets != NULL) {
        text_print(to, record_targets_describe(request->targets, targets));
    } else {
        (void)fputs(session_targets_empty(&config->targets) ? "the whole machine"
                                                            : "what the config names",
                    to);
    }
}

static void print_end(FILE *to, const struct record_request *request,
                      const struct target_watch *watch)
{
    const char *who = request->command != NULL ? "it" : "they";
    if (request->duration_ns > 0) {
        (void)fprintf(to, ", for %.3g s%s", (double)request->duration_ns / 1e9,
                      request->command != NULL ? ", after which it may go on" : "");
    } else if (request->command != NULL || watch->count > 0) {
        (void)fprintf(to, ", until %s end%s", who, request->command != NULL ? "s" : "");
    }
    (void)fputs("; Ctrl-C ends it\n", to);
}

static void print_line(FILE *to, const struct record_request *request,
                       const struct session_config *config, const struct target_watch *watch)
{
    struct page page;
    struct page_text text;
    page_describe_summary(stderr, &page);
    page.file = to;
    if (page_text_begin(&text)) {
        (void)fputs("recording ", text.file);
        print_what(text.file, request, config);
        (void)fprintf(text.file, ", %.0f times a second on each CPU",
                      1e9 / (double)config->period_ns);
        print_end(text.file, request, watch);
        page_text_end(&text, &page, PAGE_PLAIN);
    }
}

void record_opening_show(const struct record_request *request, const char *config,
                         const struct target_watch *watch)
{
    struct session_config parsed;
    struct fault fault = {0};
    struct record_progress progress = {.fd = -1};
    cleanup_(freep) char *line = NULL;
    size_t line_bytes = 0;
    record_progress_open(&progress);
    FILE *file = progress.fd < 0 ? NULL : open_memstream(&line, &line_bytes);
    if (file != NULL) {
        if (session_config_parse(config, strlen(config), false, &parsed, &fault) == 0) {
            print_line(file, request, &parsed, watch);
        }
        if (fclose(file) == 0) {
            record_progress_say(&progress, line);
        }
    }
    record_progress_done(&progress);
}
