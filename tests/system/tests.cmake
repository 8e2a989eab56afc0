# SPDX-License-Identifier: Apache-2.0

add_executable(perf_source_probe system/perf_source_probe.c)
target_link_libraries(perf_source_probe PRIVATE house perf)
system_test(perf_source_counts)
system_test(known_split)
system_test(processes)
system_test(forged_library)
system_test(worker_killed)
system_test(sanitized)
system_test(valgrind)
