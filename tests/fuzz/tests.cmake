# SPDX-License-Identifier: Apache-2.0
fuzz_target(session_config session_config)
fuzz_target(varlink common)
