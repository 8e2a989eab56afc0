# SPDX-License-Identifier: Apache-2.0
# Needs neither a daemon nor perf events, so it does not run alone.
add_test(NAME system.profctl_usage COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/system/profctl_usage.sh)
set_tests_properties(system.profctl_usage PROPERTIES LABELS system TIMEOUT 120
    ENVIRONMENT "BUILD_DIR=${CMAKE_BINARY_DIR}")
