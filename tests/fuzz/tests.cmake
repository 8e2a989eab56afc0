# SPDX-License-Identifier: Apache-2.0
fuzz_target(perf_record perf)
fuzz_target(perf_ring perf)
fuzz_target(fxt_reader fxt)
fuzz_target(proc_scan processes)
fuzz_target(session_config session_config)
fuzz_target(varlink common)
