# SPDX-License-Identifier: Apache-2.0
# Needs neither a daemon nor perf events, so it does not run alone.
add_test(NAME system.profctl_usage COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/system/profctl_usage.sh)
set_tests_properties(system.profctl_usage PROPERTIES LABELS system TIMEOUT 120
    ENVIRONMENT "BUILD_DIR=${CMAKE_BINARY_DIR}")

add_executable(perf_source_probe system/perf_source_probe.c)
target_link_libraries(perf_source_probe PRIVATE house perf)
add_executable(perf_stacks_probe system/perf_stacks_probe.c)
target_link_libraries(perf_stacks_probe PRIVATE house perf symbolize)
system_test(perf_source_counts)
system_test(known_split)
system_test(processes)
system_test(forged_library)
system_test(worker_killed)
system_test(sanitized)
system_test(valgrind)
system_test(restart)
system_test(sampler_api)
system_test(start_stop_read)
system_test(installed)
system_test(record_output)
system_test(deep_stacks)
system_test(no_stack_bytes)
