/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Copies of recordings, as they are, in a folder for each host. */

#include "fault.h"

#include <stdint.h>

/*
 * Copies the file to FOLDER/HOST/NAME, where it appears when it is whole. A file that is there with
 * the same length is that copy. `*ret_bytes`: what was copied. Returns 0, or -errno with a sentence
 * in `reterr`; -EEXIST: there is another file with that name.
 */
int raw_copy(const char *path, const char *folder, const char *host, uint64_t *ret_bytes,
             struct fault *reterr);
