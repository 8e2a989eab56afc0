/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Paths of recordings, as they stand on a command line. "-" is standard input. */

/* What a recording is called in a view: the last part of its path. Borrowed. */
const char *input_title(const char *path);
