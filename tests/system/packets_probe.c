/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Passes a recording through what `profctl record` makes packets for Perfetto with:
 *
 *     packets_probe FILE RECORDS >FILE
 *
 * Packets are made whenever so many records have come, and at the end.
 */
#include "packets.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)64 << 20)

static int write_bytes(const void *bytes, size_t size_bytes, void *userdata)
{
    return fwrite(bytes, 1, size_bytes, userdata) == size_bytes ? 0 : -1;
}

static size_t record_bytes(const uint8_t *bytes)
{
    uint64_t header = 0;
    memcpy(&header, bytes, sizeof header);
    return (size_t)(header >> 4 & 0xfff) * sizeof header;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    struct packets *packets = packets_new(write_bytes, stdout);
    uint8_t *bytes = malloc(BYTES_MAX);
    if (file == NULL || packets == NULL || bytes == NULL) {
        (void)fprintf(stderr, "usage: packets_probe FILE RECORDS\n");
        return EXIT_FAILURE;
    }
    size_t size_bytes = fread(bytes, 1, BYTES_MAX, file);
    size_t batch = strtoul(argv[2], NULL, 10);
    size_t passed = 0;
    int r = 0;
    packets_begin_session(packets);
    for (size_t at = 0, count = 1; at < size_bytes && r == 0; count++) {
        at += record_bytes(bytes + at);
        if (count % batch == 0 || at >= size_bytes) {
            r = packets_pass(packets, bytes + passed, at - passed);
            r = r == 0 ? packets_flush(packets, at >= size_bytes) : r;
            passed = at;
        }
    }
    bool is_cut = packets_are_cut(packets);
    (void)packets_free(packets);
    (void)fclose(file);
    free(bytes);
    return r == 0 && !is_cut && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
