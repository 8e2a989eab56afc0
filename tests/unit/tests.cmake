# SPDX-License-Identifier: Apache-2.0
unit_test(json json)
unit_test(log daemon_log)
unit_test(session_config session_config json)
unit_test(varlink common)
