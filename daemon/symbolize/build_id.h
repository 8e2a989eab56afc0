/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Finds the GNU build-id among ELF notes in the byte order of this machine. `align` is that of the
 * segment or section: 8 pads to 8 bytes, anything else to 4. True with the id itself (borrowed
 * from `notes`), which is neither empty nor longer than SYMBOL_BUILD_ID_BYTES_MAX; false when no
 * such note is there whole.
 */
bool build_id_find(const uint8_t *notes, size_t bytes, uint64_t align, const uint8_t **ret_id,
                   size_t *ret_id_bytes);
