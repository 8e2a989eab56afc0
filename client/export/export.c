/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of formats. A new format is a file of its own here and a line of the table.
 */
#include "export.h"

#include "writers.h"

#include <string.h>

const struct export_format export_formats[] = {
    {"folded", "a line a stack, as flame graph programs read them", .print = folded_print,
     .has_roots = true},
    {"speedscope", "JSON for speedscope, a profile a process", .print = speedscope_print},
    {"firefox", "JSON for the Firefox Profiler, a track a thread", .print = firefox_print},
    {"perfetto", "packets for Perfetto, samples with their stacks", .print = perfetto_print,
     .is_binary = true, .has_no_frame = true},
    {"chrome", "trace events for Perfetto and chrome://tracing", .print = chrome_print},
    {"callgrind", "for KCachegrind and callgrind_annotate", .print = callgrind_print},
    {"perf-script", "the text of perf script, an event a sample", .print = perf_script_print},
    {"perf-data", "a perf.data file for perf report and hotspot", .print = perf_data_print,
     .is_binary = true, .has_no_frame = true},
    {"fuchsia", "FXT for ffx profiler symbolize, of Fuchsia", .print = fuchsia_print,
     .is_binary = true, .has_no_frame = true, .has_no_value = true},
    {"markup", "symbolizer markup, as llvm-symbolizer filters it", .print = markup_print,
     .has_no_frame = true, .has_no_value = true},
    {"ndjson", "JSON lines for ClickHouse and DuckDB, a row a sample", .print = ndjson_print,
     .has_no_frame = true},
    {"otlp", "a request of OpenTelemetry, as a collector takes it", .print = otlp_print,
     .is_binary = true},
    {"pprof", "profile.proto for go tool pprof, compressed", .print = pprof_print,
     .is_binary = true, .is_gzip = true},
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
