/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records the whole machine for a second into a file, with libprofctl:
 *     cc record_second.c $(pkg-config --cflags --libs profctl) -o record_second
 *     ./record_second second.fxt && profctl report second.fxt
 */
#include <profctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define READS_A_SECOND 10

static int complain(const struct profctl_fault *fault)
{
    (void)fprintf(stderr, "record_second: %s\n", fault->text);
    return EXIT_FAILURE;
}

static void wait_a_bit(void)
{
    const struct timespec interval = {.tv_nsec = 1000000000 / READS_A_SECOND};
    (void)nanosleep(&interval, NULL);
}

/* Writes what is ready. Returns 1 when that was the last of it, 0 when more may come, or -1. */
static int copy_ready(struct profctl *conn, FILE *file)
{
    static char bytes[PROFCTL_READ_BYTES_MAX];
    size_t size_bytes = 0;
    bool end = false;
    do {
        int r = profctl_read(conn, bytes, sizeof bytes, &size_bytes, &end);
        if (r < 0) {
            (void)fprintf(stderr, "record_second: cannot read: error %d\n", -r);
            return -1;
        }
        if (fwrite(bytes, 1, size_bytes, file) != size_bytes) {
            perror("record_second: cannot write");
            return -1;
        }
    } while (size_bytes > 0 && !end);
    return end ? 1 : 0;
}

/* Creates the session, starts it, reads for a second, stops it, and reads the rest. */
static int record_second(struct profctl *conn, FILE *file)
{
    struct profctl_fault fault = {0};
    int copied = 0;
    if (profctl_create(conn, "{\"frequency_hz\": 999}", false, &fault) < 0 ||
        profctl_start(conn, &fault) < 0) {
        return complain(&fault);
    }
    for (int i = 0; i < READS_A_SECOND && copied == 0; i++) {
        wait_a_bit();
        copied = copy_ready(conn, file);
    }
    if (copied == 0 && profctl_stop(conn, &fault) < 0) {
        return complain(&fault);
    }
    while (copied == 0) {
        copied = copy_ready(conn, file);
        if (copied == 0) {
            wait_a_bit();
        }
    }
    return copied < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct profctl *conn = NULL;
    struct profctl_fault fault = {0};
    if (argc != 2) {
        (void)fprintf(stderr, "usage: record_second FILE\n");
        return 2;
    }
    FILE *file = fopen(argv[1], "wb");
    if (file == NULL) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    int status =
        profctl_connect(NULL, &conn, &fault) < 0 ? complain(&fault) : record_second(conn, file);
    conn = profctl_disconnect(conn); /* the session ends with it */
    if (fclose(file) != 0) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    return status;
}
