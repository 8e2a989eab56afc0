# SPDX-License-Identifier: Apache-2.0
unit_test(perf_plan perf)
unit_test(perf_record perf)
unit_test(perf_ring perf)
