/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fetches debug files from debuginfod servers. The client library is loaded when it is first
 * needed, since it loads a whole HTTP client, which no other verb needs. The library calls back
 * about once a second; the callback gives up a silent server, since the library's own limit begins
 * with the first byte. The callback finds its data through a function of the library, which is
 * looked up there.
 */
#include "lines_remote.h"

#include "cleanup.h"
#include "clock.h"

#include <elfutils/debuginfod.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_S_DEFAULT 10
#define TIMEOUT_S_MAX     3600

struct lines_remote {
    debuginfod_client *client; /* owned */
    __typeof__(debuginfod_find_debuginfo) *find;
    __typeof__(debuginfod_end) *end;
    uint64_t timeout_ns;
    bool has_terminal;
    uint64_t moved_ns; /* when the last byte of it came */
    long received_bytes;
    bool has_drawn;
    bool is_silent; /* the timeout was over */
    char fault[128];
};

static uint64_t read_timeout_ns(void)
{
    const char *text = getenv(DEBUGINFOD_TIMEOUT_ENV_VAR);
    char *end = NULL;
    unsigned long seconds = text == NULL ? 0 : strtoul(text, &end, 10);
    bool is_number = end != NULL && end != text && *end == '\0' && seconds > 0;
    seconds = is_number ? seconds : TIMEOUT_S_DEFAULT;
    return (seconds < TIMEOUT_S_MAX ? seconds : TIMEOUT_S_MAX) * NS_PER_S;
}

static void draw_progress(struct lines_remote *remote, long done_bytes, long size_bytes)
{
    if (remote->has_terminal && size_bytes > 0) {
        (void)fprintf(stderr, "\rfetching debug file: %.1f of %.1f MiB",
                      (double)done_bytes / 0x1p20, (double)size_bytes / 0x1p20);
        remote->has_drawn = true;
    }
}

/* A function of the client library, once it is loaded; `into` is where a pointer to it is. */
static bool load_function(const char *name, void *into)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(into, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Without a size, what is told is no number of bytes. A result other than 0 ends the transfer. */
static int on_progress(debuginfod_client *client, long done, long size_bytes)
{
    __typeof__(debuginfod_get_user_data) *get_user_data = NULL;
    if (!load_function("debuginfod_get_user_data", &get_user_data)) {
        return 1;
    }
    struct lines_remote *remote = get_user_data(client);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (size_bytes > 0 && done > remote->received_bytes) {
        remote->received_bytes = done;
        remote->moved_ns = now;
        draw_progress(remote, done, size_bytes);
    }
    remote->is_silent = now - remote->moved_ns > remote->timeout_ns;
    return remote->is_silent;
}

static bool begin_client(struct lines_remote *remote)
{
    __typeof__(debuginfod_begin) *begin = NULL;
    __typeof__(debuginfod_set_user_data) *set_user_data = NULL;
    __typeof__(debuginfod_set_progressfn) *set_progressfn = NULL;
    if (dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_GLOBAL) == NULL ||
        !load_function("debuginfod_begin", &begin) ||
        !load_function("debuginfod_set_user_data", &set_user_data) ||
        !load_function("debuginfod_set_progressfn", &set_progressfn) ||
        !load_function("debuginfod_find_debuginfo", &remote->find) ||
        !load_function("debuginfod_end", &remote->end)) {
        return false;
    }
    remote->client = begin();
    if (remote->client != NULL) {
        set_user_data(remote->client, remote);
        set_progressfn(remote->client, on_progress);
    }
    return remote->client != NULL;
}

struct lines_remote *lines_remote_new(void)
{
    const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
    if (urls == NULL || urls[strspn(urls, " ")] == '\0') {
        return NULL;
    }
    cleanup_(lines_remote_freep) struct lines_remote *remote = calloc(1, sizeof *remote);
    /* A server that was silent is not tried again, unless the user says so. */
    if (remote == NULL || setenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR, "0", 0) < 0 ||
        !begin_client(remote)) {
        return NULL;
    }
    remote->timeout_ns = read_timeout_ns();
    remote->has_terminal = isatty(STDERR_FILENO) == 1;
    return take_ptr(remote);
}

struct lines_remote *lines_remote_free(struct lines_remote *remote)
{
    if (remote != NULL) {
        if (remote->client != NULL) {
            remote->end(remote->client);
        }
        free(remote);
    }
    return NULL;
}

void lines_remote_freep(struct lines_remote **remote)
{
    *remote = lines_remote_free(*remote);
}

/* What is wrong with one file says nothing of the next; what is wrong with the servers does. */
static void give_up(struct lines_remote *remote, int error)
{
    if (error == -ENOENT || error == -EFBIG || error == -ENOMEM) {
        return;
    }
    (void)snprintf(remote->fault, sizeof remote->fault, "%s",
                   remote->is_silent ? "no answer in time" : strerror(-error));
}

int lines_remote_find(struct lines_remote *remote, const uint8_t *build_id, size_t build_id_bytes,
                      int *ret_fd, char **ret_path)
{
    char *path = NULL;
    if (remote->fault[0] != '\0') {
        return -ENOENT;
    }
    remote->moved_ns = clock_ns(CLOCK_MONOTONIC);
    remote->received_bytes = 0;
    int fd = remote->find(remote->client, build_id, (int)build_id_bytes, &path);
    if (remote->has_drawn) {
        (void)fputs("\r\033[K", stderr);
        remote->has_drawn = false;
    }
    if (fd < 0) {
        give_up(remote, fd);
        return -ENOENT;
    }
    *ret_fd = fd;
    *ret_path = path;
    return 0;
}

const char *lines_remote_fault(const struct lines_remote *remote)
{
    return remote == NULL || remote->fault[0] == '\0' ? NULL : remote->fault;
}
