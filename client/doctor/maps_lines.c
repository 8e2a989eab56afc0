/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads mappings in pieces. A line that a piece ends in goes on with the next piece, so that no
 * text of a line is missed. A line that is longer than a piece is given in parts: the longest that
 * the kernel writes is 16 KiB, of a path in which every character is escaped.
 */
#include "maps_lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)32 << 10)

struct piece {
    char text[PIECE_BYTES + 1]; /* with room for a NUL */
    size_t bytes;
};

/* Gives the lines of the piece, which keeps what does not end in a newline unless it is full. */
static void give_lines(struct piece *piece, maps_lines_fn *take, void *userdata)
{
    const char *last = memrchr(piece->text, '\n', piece->bytes);
    size_t given_bytes = last == NULL ? 0 : (size_t)(last - piece->text) + 1;
    if (last == NULL && piece->bytes == PIECE_BYTES) {
        given_bytes = PIECE_BYTES;
    }
    if (given_bytes > 0) {
        char next = piece->text[given_bytes];
        piece->text[given_bytes] = '\0';
        take(piece->text, userdata);
        piece->text[given_bytes] = next;
        piece->bytes -= given_bytes;
        memmove(piece->text, piece->text + given_bytes, piece->bytes);
    }
}

int maps_lines_read(int fd, maps_lines_fn *take, void *userdata, bool *ret_is_cut)
{
    struct piece piece = {.bytes = 0};
    size_t left_bytes = MAPS_BYTES_MAX;
    for (;;) {
        ssize_t got = read(fd, piece.text + piece.bytes, PIECE_BYTES - piece.bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -errno;
        }
        if (got == 0 || (size_t)got > left_bytes) {
            *ret_is_cut = got > 0;
            return 0;
        }
        left_bytes -= (size_t)got;
        piece.bytes += (size_t)got;
        give_lines(&piece, take, userdata);
    }
}
