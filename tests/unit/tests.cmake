# SPDX-License-Identifier: Apache-2.0
unit_test(fxt_golden fxt)
unit_test(fxt_roundtrip fxt)
unit_test(fxt_reader fxt)
unit_test(fxt_writer fxt)
