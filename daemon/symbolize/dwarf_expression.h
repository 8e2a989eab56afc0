/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "dwarf_cursor.h"

/* The forms of DWARF expressions that call-frame information of real programs has. */

/* Sets the CFA of `rule`; its kind becomes CFI_UNSUPPORTED for another form. */
void dwarf_expression_cfa(struct dwarf_cursor expression, struct cfi_rule *rule);

/* Where a register is saved by the expression: CFI_AT_SP, CFI_AT_BP, or CFI_LOST for another form.
 */
enum cfi_saved dwarf_expression_place(struct dwarf_cursor expression, int64_t *ret_offset);
