/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "dwarf_cursor.h"

/* The forms of DWARF expressions that call-frame information of real programs consists of. */

/* Sets how `rule` finds the CFA: CFI_UNSUPPORTED where the form is another. */
void dwarf_expression_cfa(struct dwarf_cursor expression, struct cfi_rule *rule);

/* Where the expression says that a register is saved: CFI_AT_SP or CFI_AT_BP, else CFI_LOST. */
enum cfi_saved dwarf_expression_place(struct dwarf_cursor expression, int64_t *ret_offset);
