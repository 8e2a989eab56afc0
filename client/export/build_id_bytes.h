/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The bytes of a build-id that is written in hexadecimal digits. Returns how many there are; 0, and
 * nothing of use is written, where there are more than `bytes_max`. */
size_t build_id_bytes(const char *digits, uint8_t *ret, size_t bytes_max);
