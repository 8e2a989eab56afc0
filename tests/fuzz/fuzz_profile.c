/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes: they are refused, or become a profile, and one of each event that they name, in which
 * every sample is counted exactly once, by what it stands for, in every report and every tree.
 * Every format takes it.
 */
#include "export.h"
#include "fuzz_target.h"
#include "report.h"
#include "thread_table.h"
#include "tree_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 3 /* that are looked at */

static void check_report(const struct profile *profile, enum report_by by, FILE *nowhere)
{
    struct report report;
    uint64_t self = 0;
    struct summary summary;
    const struct page page = {.file = nowhere, .columns = PAGE_COLUMNS_DEFAULT};
    if (report_build(profile, by, REPORT_SORT_SELF, &report) < 0) {
        abort();
    }
    for (size_t i = 0; i < report.row_count; i++) {
        self += report.rows[i].self;
        if (report.rows[i].self > report.rows[i].total ||
            report.rows[i].total > profile_total(profile)) {
            abort();
        }
    }
    if (self != profile_total(profile)) {
        abort();
    }
    if (summary_take(profile, &summary) < 0 || report_take_series(profile, 5, 20, &report) < 0) {
        abort();
    }
    report_print_table(&page, profile, &summary, &report, 0);
    summary_print_foot(&page, profile, &summary, true);
    summary_print_foot(&page, profile, &summary, false);
    report_print_json(nowhere, profile, &summary, &report, 0);
    report_done(&report);
}

static void print_all_formats(FILE *nowhere, const struct profile *profile)
{
    for (const struct export_format *format = export_formats; format->name != NULL; format++) {
        (void)format->print(nowhere, profile,
                            &(struct export_options){.has_lost_frame = !format->has_no_frame});
    }
}

struct tree_sum {
    uint64_t all;     /* samples of the view */
    uint64_t counted; /* that end at a node, or are cut */
};

static void on_node(const struct tree_node *node, void *userdata)
{
    struct tree_sum *sum = userdata;
    sum->all = node->number == 0 ? node->total : sum->all;
    sum->counted += node->ending + node->cut_samples;
}

static void check_tree(const struct profile *profile, enum tree_view view, FILE *nowhere)
{
    struct summary summary;
    const struct page page = {.file = nowhere, .columns = PAGE_COLUMNS_DEFAULT};
    const struct tree_request request = {.view = view, .function = "*", .min_percent = 10};
    struct tree_sum sum = {0};
    if (summary_take(profile, &summary) < 0) {
        abort();
    }
    int r = tree_walk(profile, &request, on_node, &sum);
    if (r < 0 || sum.counted != sum.all || sum.all != (r == 0 ? profile_total(profile) : 0)) {
        abort();
    }
    (void)tree_print_text(&page, profile, &summary, &request);
    (void)tree_print_json(nowhere, profile, &summary, &request);
}

static void check_threads(const struct profile *profile, FILE *nowhere)
{
    struct summary summary;
    const struct page page = {.file = nowhere, .columns = PAGE_COLUMNS_DEFAULT};
    if (summary_take(profile, &summary) < 0 ||
        thread_table_print_text(&page, profile, &summary, 0) < 0 ||
        thread_table_print_json(nowhere, profile, &summary, 0) < 0) {
        abort();
    }
}

static void check_profile(const struct profile *profile, FILE *nowhere)
{
    check_threads(profile, nowhere);
    for (enum report_by by = REPORT_BY_FUNCTION; by <= REPORT_BY_LINE; by++) {
        check_report(profile, by, nowhere);
    }
    check_tree(profile, TREE_FROM_ROOT, nowhere);
    check_tree(profile, TREE_FROM_LEAVES, nowhere);
    check_tree(profile, TREE_CALLERS, nowhere);
    check_tree(profile, TREE_CALLEES, nowhere);
    print_all_formats(nowhere, profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct profile *clock = NULL;
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere != NULL && profile_load_memory(bytes, size, NULL, &clock, NULL) == 0) {
        check_profile(clock, nowhere);
        for (size_t i = 1; i < clock->event_count && i <= EVENTS_MAX; i++) {
            struct profile *event = NULL;
            if (profile_load_memory(bytes, size, clock->event_names[i], &event, NULL) < 0 &&
                strcmp(clock->event_names[i], PROFILE_EVENT_CLOCK) != 0) {
                abort();
            }
            if (event != NULL) {
                check_profile(event, nowhere);
            }
            (void)profile_free(event);
        }
    }
    (void)profile_free(clock);
    if (nowhere != NULL) {
        (void)fclose(nowhere);
    }
    return 0;
}
