/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of formats. A new format is a file of its own here and a line of the table.
 */
#include "export.h"

#include "writers.h"

#include <string.h>

const struct export_format export_formats[] = {
    {"folded", "a line a stack, as flame graph programs read them", folded_print, false, false,
     false, true},
    {"speedscope", "JSON for speedscope, a profile a process", speedscope_print, false, false,
     false, false},
    {"firefox", "JSON for the Firefox Profiler, a track a thread", firefox_print, false, false,
     false, false},
    {"perfetto", "packets for Perfetto, samples with their stacks", perfetto_print, true, false,
     true, false},
    {"chrome", "trace events for Perfetto and chrome://tracing", chrome_print, false, false, false,
     false},
    {"callgrind", "for KCachegrind and callgrind_annotate", callgrind_print, false, false, false,
     false},
    {"perf-script", "the text of perf script, an event a sample", perf_script_print, false, false,
     false, false},
    {"perf-data", "a perf.data file for perf report and hotspot", perf_data_print, true, false,
     true, false},
    {"otlp", "a request of OpenTelemetry, as a collector takes it", otlp_print, true, false, false,
     false},
    {"pprof", "profile.proto for go tool pprof, compressed", pprof_print, true, true, false, false},
    {0},
};

const struct export_format *export_format_find(const char *name)
{
    for (const struct export_format *format = export_formats; format->name != NULL; format++) {
        if (strcmp(format->name, name) == 0) {
            return format;
        }
    }
    return NULL;
}
