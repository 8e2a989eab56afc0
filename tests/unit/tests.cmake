# SPDX-License-Identifier: Apache-2.0
unit_test(process_table processes)
