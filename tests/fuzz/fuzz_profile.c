/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes: they are refused, or become a profile in which every sample is counted exactly once in
 * every report. Every format takes it.
 */
#include "export.h"
#include "fuzz_target.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

static void check_report(const struct profile *profile, enum report_by by, FILE *nowhere)
{
    struct report report;
    uint64_t self = 0;
    if (report_build(profile, by, &report) < 0) {
        abort();
    }
    for (size_t i = 0; i < report.row_count; i++) {
        self += report.rows[i].self;
        if (report.rows[i].self > report.rows[i].total ||
            report.rows[i].total > profile->sample_count) {
            abort();
        }
    }
    if (self != profile->sample_count) {
        abort();
    }
    report_print_table(nowhere, profile, &report, 0);
    report_print_json(nowhere, profile, &report, 0);
    report_done(&report);
}

static void print_all_formats(FILE *nowhere, const struct profile *profile)
{
    for (const struct export_format *format = export_formats; format->name != NULL; format++) {
        (void)format->print(nowhere, profile,
                            &(struct export_options){.has_lost_frame = !format->has_no_frame});
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct profile *profile = NULL;
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere != NULL && profile_load_memory(bytes, size, &profile, NULL) == 0) {
        check_report(profile, REPORT_BY_FUNCTION, nowhere);
        check_report(profile, REPORT_BY_MODULE, nowhere);
        check_report(profile, REPORT_BY_PROCESS, nowhere);
        check_report(profile, REPORT_BY_THREAD, nowhere);
        print_all_formats(nowhere, profile);
    }
    (void)profile_free(profile);
    if (nowhere != NULL) {
        (void)fclose(nowhere);
    }
    return 0;
}
