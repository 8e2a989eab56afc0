# SPDX-License-Identifier: Apache-2.0
check_test(daemon_configs)
check_test(docs)
check_test(format)
check_test(headers)
check_test(layers)
check_test(machine_settings)
check_test(man_pages)
check_test(package)
check_test(rooms)
check_test(rotation)
check_test(session_configs)
check_test(sizes)
check_test(symbols)
check_test(sysctl)
check_test(tidy)
check_test(units)
check_test(workloads)
set_tests_properties(check.sysctl PROPERTIES SKIP_RETURN_CODE 77)
# The longest check begins with the first tests, and has what the others leave of the CPUs. Only what another test depends
# on begins before the rest: so one of those that run at the end does. It is done before the tests that need a CPU, or the
# worker's time, begin.
set_tests_properties(check.tidy PROPERTIES COST 2000 TIMEOUT 1800)
set_tests_properties(check.workloads PROPERTIES RUN_SERIAL TRUE DEPENDS check.tidy)
