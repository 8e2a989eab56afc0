/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "elf_file.h"

/* A larger .debug_frame, as it is once decompressed, is left out. */
#define DEBUG_FRAME_BYTES_MAX ((size_t)128 << 20)

/*
 * Adds the rows of a file's .debug_frame, or .zdebug_frame. To be called after those of .eh_frame
 * are in the builder, which keeps what came first: .debug_frame is for what .eh_frame does not
 * have, as the code of Go. A section that is broken or too large costs itself only.
 *
 * Returns 0, -ENOMEM, or what cfi_builder_add() does.
 */
int debug_frame_add(const struct elf_file *file, struct cfi_builder *builder);
