/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Makes a page of a recording, beside it and with its name, ".html" in place of ".fxt" and ".gz",
 * and shows it in the browser. A file of that name stays as FILE.html.old. Complains, and returns
 * an exit status.
 */
int open_recording(const char *path);
