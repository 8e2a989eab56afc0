# SPDX-License-Identifier: Apache-2.0
unit_test(perf_plan perf)
unit_test(perf_record perf)
unit_test(perf_ring perf)
unit_test(books recording)
unit_test(sideband recording)
unit_test(trace_buffer recording)
unit_test(utf8 common)
unit_test(trace recording)
