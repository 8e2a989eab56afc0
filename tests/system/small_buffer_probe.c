/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A reader whose buffer is too small, against the real daemon: every read is first tried with 8
 * bytes, must be refused with the size that it takes, and must then give just that. The recording
 * goes to standard output; whether anything is missing in it is for the caller to see.
 */
#include "profctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SMALL_BYTES 8
#define RUN_S       2
#define PAUSE_US    50000

static char buffer[PROFCTL_READ_BYTES_MAX];

static void check(int r, const char *what, const struct profctl_fault *fault)
{
    if (r < 0) {
        (void)fprintf(stderr, "%s: %d: %s\n", what, r, fault->text);
        exit(1);
    }
}

/* Returns how many bytes came. */
static size_t read_some(struct profctl *conn, bool *ret_end)
{
    struct profctl_fault none = {.text = ""};
    size_t wanted_bytes = 0;
    size_t size_bytes = 0;
    int r = profctl_read(conn, buffer, SMALL_BYTES, &wanted_bytes, ret_end);
    if (r == 0) {
        return wanted_bytes; /* there was nothing */
    }
    if (r != -EINVAL || wanted_bytes <= SMALL_BYTES) {
        (void)fprintf(stderr, "8 bytes of room give %d and want %zu\n", r, wanted_bytes);
        exit(1);
    }
    check(profctl_read(conn, buffer, wanted_bytes, &size_bytes, ret_end), "read", &none);
    if (size_bytes != wanted_bytes || fwrite(buffer, 1, size_bytes, stdout) != size_bytes) {
        (void)fprintf(stderr, "%zu bytes were announced, %zu came\n", wanted_bytes, size_bytes);
        exit(1);
    }
    return size_bytes;
}

int main(void)
{
    struct profctl_fault fault = {.text = ""};
    struct profctl *conn = NULL;
    size_t refused_count = 0;
    bool end = false;
    check(profctl_connect(NULL, &conn, &fault), "connect", &fault);
    check(profctl_create(conn, "{\"frequency_hz\":4000}", false, &fault), "create", &fault);
    check(profctl_start(conn, &fault), "start", &fault);
    (void)sleep(RUN_S);
    check(profctl_stop(conn, &fault), "stop", &fault);
    while (!end) {
        bool some = read_some(conn, &end) > 0;
        refused_count += some;
        if (!some) {
            (void)usleep(PAUSE_US);
        }
    }
    (void)profctl_disconnect(conn);
    (void)fprintf(stderr, "%zu reads were refused for want of room and given after it\n",
                  refused_count);
    return refused_count > 0 ? 0 : 1;
}
