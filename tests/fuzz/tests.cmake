# SPDX-License-Identifier: Apache-2.0
fuzz_target(proc_scan processes)
