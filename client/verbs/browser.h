/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shows a file in the browser of this session. */

/*
 * Starts $BROWSER, or else xdg-open where there is a graphical session, with the file's whole path
 * and without a shell, and does not wait for it. Where there is none it says what to open.
 * Complains if that fails, and returns an exit status.
 */
int browser_show(const char *path);
