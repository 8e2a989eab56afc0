/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "export.h"

/*
 * folded: folded stacks, a line a different stack, sorted,
 *     COMM;outermost;...;innermost COUNT
 * With the other roots COMM is NAME-PID, or NAME-PID/TID with the thread's name.
 * Kernel frames end in "_[k]", inlined ones in "_[i]"; of a profile with lines, frames have
 * ":FILE:LINE" behind their name. A stack that does not reach its root begins with "[truncated]".
 *
 * speedscope: its JSON, one profile a process, samples in the order of time.
 *
 * callgrind: self and inclusive costs of functions and calls, as Callgrind's viewers read them.
 *
 * perf-script: the text of `perf script`, an event a sample.
 *
 * pprof: pprof's profile.proto, not compressed.
 *
 * chrome: trace events, a slice for each function that stacks have in a row.
 *
 * perf-data: a perf.data file.
 *
 * perfetto: a trace of Perfetto's packets.
 *
 * fuchsia: a recording as Fuchsia's profiler writes it.
 *
 * markup: symbolizer markup, a context for each process.
 *
 * otlp: one ExportProfilesServiceRequest of OpenTelemetry, not compressed.
 *
 * firefox: the processed profile of the Firefox Profiler.
 *
 * ndjson: a JSON object a line, rows of tables.
 */
export_print_fn folded_print, speedscope_print, callgrind_print, perf_script_print, pprof_print,
    firefox_print, perf_data_print, otlp_print, chrome_print, perfetto_print, fuchsia_print,
    markup_print, ndjson_print;
