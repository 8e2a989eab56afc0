/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lines_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lines_build_id {
    uint8_t bytes[LINES_BUILD_ID_BYTES_MAX];
    size_t size_bytes;
};

/* Reads one in lower-case hex, as the profile has it; false where there is none, or one too long to
 * be looked for. */
bool lines_build_id_read(const char *text, struct lines_build_id *ret);
