/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fault.h"

#include <stddef.h>

/*
 * Reads a small text file, "-" for standard input. Returned: free(); NUL-terminated. Returns 0, or
 * -errno with a sentence in `reterr`; -EFBIG when it has more than `maximum_bytes`.
 */
int text_file_read(const char *path, size_t maximum_bytes, char **ret, size_t *ret_bytes,
                   struct fault *reterr);
