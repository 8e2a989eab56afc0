# SPDX-License-Identifier: Apache-2.0
fuzz_target(fxt_reader fxt)
fuzz_target(profile client_parts profile)
