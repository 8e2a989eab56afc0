# SPDX-License-Identifier: Apache-2.0
# A fake session answers control, so that states can be held still.
foreach(name control control_session)
    unit_test(${name} control json)
    target_sources(test_${name} PRIVATE unit/control_harness.c unit/fake_session.c)
endforeach()
unit_test(control_listen control)
target_sources(test_control_listen PRIVATE unit/fake_session.c)
unit_test(json json)
unit_test(libprofctl profctl_lib control Threads::Threads)
target_sources(test_libprofctl PRIVATE unit/fake_session.c)
unit_test(log daemon_log)
unit_test(session_config session_config json)
unit_test(varlink common)
