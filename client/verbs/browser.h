/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shows a file in the browser of this session. */

#include "fault.h"

/*
 * Starts $BROWSER, or else xdg-open where there is a graphical session, with the file's whole path
 * and without a shell, and does not wait for it. Returns 0, or with a sentence in `reterr`
 *   -ENOENT  there is no browser here
 *   another -errno
 */
int browser_open(const char *path, struct fault *reterr);
