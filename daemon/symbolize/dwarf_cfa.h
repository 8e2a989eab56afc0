/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "dwarf_cursor.h"

/* What a CIE says for all of its functions. */
struct dwarf_cie {
    uint64_t code_align;
    int64_t data_align;
    uint64_t data_address; /* see dwarf_read_pointer() */
    uint8_t pointer_encoding;
    bool has_augmentation_size;
    bool is_signal_frame;
    bool keeps_fp;           /* functions with a frame do, in Go's manner (cfi_table.h) */
    bool is_supported;       /* false: nothing can be said of its functions but where they are */
    struct cfi_rule initial; /* set by dwarf_cfa_begin() */
};

/* Runs a CIE's own instructions; -EBADMSG where they cannot be followed. */
int dwarf_cfa_begin(struct dwarf_cie *cie, struct dwarf_cursor program);

/*
 * Runs a function's instructions and adds its rows, which together cover [start, end), and notes
 * whether it may go on in another frame. From an
 * instruction on that cannot be followed they are CFI_UNSUPPORTED. Returns what cfi_builder_add()
 * does.
 */
int dwarf_cfa_run(const struct dwarf_cie *cie, struct dwarf_cursor program, uint64_t start,
                  uint64_t end, struct cfi_builder *builder);
