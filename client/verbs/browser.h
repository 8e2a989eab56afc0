/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shows a file in the browser of this session. */

/*
 * Starts the first command of $BROWSER that starts (commands are divided by ':', their words by
 * spaces), or else xdg-open where there is a graphical session, and does not wait for it. The
 * file's whole path is where "%s" is, else the last word; no shell reads it. Where there is none it
 * says what to open.
 * Complains if that fails, and returns an exit status.
 */
int browser_show(const char *path);
