/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Opens files by paths that a recording or a file chose. Only a regular file of a real filesystem
 * is ever opened: to open a device, a FIFO or a file of the kernel's own can do something.
 */

/*
 * Opens a file for reading. Returns the descriptor (close), or -errno: -EBADF if the path leads to
 * anything else than a regular file, which is not opened then.
 */
int regular_file_open(const char *path);
