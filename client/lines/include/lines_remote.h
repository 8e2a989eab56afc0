/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Debug files from debuginfod servers, by way of elfutils' own client, which keeps what it fetched
 * in ~/.cache/debuginfod_client. Nothing is asked unless DEBUGINFOD_URLS names servers. After the
 * first fault, no server is asked any more in the life of a `struct lines_remote`. A fault: the
 * servers cannot be reached, or send nothing for DEBUGINFOD_TIMEOUT seconds (10 if that is not
 * set). A file that no server has or that is too large is none, nor is a lack of memory.
 */

#include <stddef.h>
#include <stdint.h>

struct lines_remote;

/* Returned: lines_remote_free(). NULL where DEBUGINFOD_URLS is not set, the client library is not
 * installed, or memory is short. */
struct lines_remote *lines_remote_new(void);
struct lines_remote *lines_remote_free(struct lines_remote *remote);
void lines_remote_freep(struct lines_remote **remote);

/*
 * Fetches the debug file of a build-id, with a progress line where standard error is a terminal.
 * The descriptor (returned: close()) and the path of the cached file (returned: free()) are the
 * caller's. Returns 0, or -ENOENT: no server has it, or there was a fault, now or before.
 */
int lines_remote_find(struct lines_remote *remote, const uint8_t *build_id, size_t build_id_bytes,
                      int *ret_fd, char **ret_path);

/* What went wrong with the servers ("Connection refused"), or NULL. `remote` may be NULL. */
const char *lines_remote_fault(const struct lines_remote *remote);
