/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The strings that each segment defines first. The writer writes them; the reader recognises
 * arguments and events by their text, whatever their index in a file is.
 */
#include "fxt_format.h"

const char *fxt_known_string_text(enum fxt_known_string string)
{
    switch (string) {
    case FXT_STRING_PROCESS:
        return "process";
    case FXT_STRING_SINCE:
        return "boot_ts_ns";
    case FXT_STRING_META:
        return "kernel:meta";
    case FXT_STRING_DROP_STATS:
        return "drop_stats";
    case FXT_STRING_NUM_RECORDS:
        return "num_records";
    case FXT_STRING_NUM_BYTES:
        return "num_bytes";
    case FXT_STRING_SESSION:
        return "cpu-profilerd.session";
    case FXT_STRING_SYMBOLS:
        return "cpu-profilerd.symbols";
    case FXT_STRING_BOOKS:
        return "cpu-profilerd.books";
    case FXT_STRING_PROCESSES:
        return "cpu-profilerd.processes";
    case FXT_STRING_FIRST_FREE:
        break;
    }
    return "";
}
