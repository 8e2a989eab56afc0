# SPDX-License-Identifier: Apache-2.0
unit_test(process_table processes)
unit_test(process_threads processes)
unit_test(process_model processes)
unit_test(proc_scan processes Threads::Threads)
unit_test(filter processes)
