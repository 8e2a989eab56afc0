/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"

/* Where functions end whose symbols have no size, as far as call frames tell. */

/* All zero: none. */
struct sizeless_ends {
    struct sizeless *all;
    size_t count;
    size_t capacity;
};
void sizeless_ends_done(struct sizeless_ends *ends);

/* A symbol without a size. Returns 0 or -ENOMEM. */
int sizeless_ends_want(struct sizeless_ends *ends, uint64_t start);

/*
 * Adds a barrier to the builder for each symbol of which .eh_frame tells an end: that of the entry
 * that holds it, or before that the start of the next entry. Reads .eh_frame only if there is such
 * a symbol. Returns 0, -ENOMEM, or what symbol_builder_barrier() does.
 */
int sizeless_ends_add(struct sizeless_ends *ends, const struct elf_file *file,
                      struct symbol_builder *builder);
