/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_region.h"
#include "elf_file.h"

/*
 * Finds where the indirect jumps of a region lead, as far as tables of the file tell, and adds that
 * to the region. Returns 0 or -ENOMEM.
 */
int code_tables_read(struct code_region *region, const struct elf_file *file);
