/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Removes a file that is not whole when a signal ends the process; one file at a time. */

/* From now on, when SIGINT, SIGTERM or SIGHUP ends the process; signals that are ignored stay so.
 * Nothing happens where the path is too long. */
void unfinished_remove_on_signals(const char *path);
/* The file is whole, or gone. */
void unfinished_end(void);
