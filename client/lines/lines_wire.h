/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What profctl and the child that parses debugging information for it say to each other. Questions
 * go through a stream socket, answers come back through a pipe, so that no descriptor ever comes
 * from the child. Both ends are one build of one program.
 *
 * The settings come first, once. Then each question has one answer:
 *   LINES_OPEN, LINES_OPEN_ALTERNATE   with one descriptor -> struct lines_about
 *   LINES_READ                         then `address_count` addresses, sorted, of 64 bits each
 *                                      -> struct lines_answer_header and what it counts
 *   LINES_FUNCTIONS                    the same -> struct lines_list_header and a struct
 *                                      function_range for each address
 *   LINES_CODE                         then two addresses -> struct lines_list_header and as many
 *                                      struct disassembly_line, for what lies between them
 */

#include <stdint.h>

#define LINES_READER_ARGUMENT "--lines-reader" /* argv[1] of the child */
#define LINES_SOCKET_FD       3
#define LINES_PIPE_FD         4

/* How the child ends that cannot give up its rights. */
#define LINES_EXIT_UNFILTERED 3
#define LINES_EXIT_UNCONFINED 4

#define LINES_BUILD_ID_BYTES_MAX 64
#define LINES_LINK_BYTES_MAX     256
#define LINES_PATH_BYTES_MAX     4096

enum lines_request {
    LINES_OPEN = 1,       /* forgets the files before */
    LINES_OPEN_ALTERNATE, /* what the file that is open shares with others (dwz) */
    LINES_READ,           /* of the file that is open, as the next */
    LINES_FUNCTIONS,
    LINES_CODE,
};

struct lines_settings {
    uint32_t uid; /* to become, where the child is root */
    uint32_t gid;
    uint64_t data_bytes_max; /* of the child's memory */
};

struct lines_question {
    uint32_t request; /* enum lines_request */
    uint32_t zero;
    uint64_t address_count;
};

/* Where there is none of them, a build-id is 0 bytes long, and a text is empty. */
struct lines_about {
    int32_t state; /* 0: has debugging information; -ENOENT: has none; -EBADMSG: cannot be read */
    uint32_t build_id_bytes;
    uint32_t alternate_id_bytes;
    uint8_t build_id[LINES_BUILD_ID_BYTES_MAX];
    uint8_t alternate_id[LINES_BUILD_ID_BYTES_MAX]; /* of what it shares with others */
    char link[LINES_LINK_BYTES_MAX];                /* a file's name, without a folder */
    char alternate[LINES_PATH_BYTES_MAX];
};

/* Behind it: chains, then frames, then the length of each text in bytes, then their bytes. */
struct lines_answer_header {
    int32_t error;        /* 0, or a negative errno value; then nothing follows */
    uint32_t chain_count; /* as many as addresses were asked for */
    uint32_t frame_count;
    uint32_t text_count;
    uint64_t text_bytes;
};

struct lines_list_header {
    int32_t error; /* 0, or a negative errno value; then nothing follows */
    uint32_t count;
};

struct lines_answer_chain {
    uint32_t first; /* of the frames */
    uint32_t count;
};

/* UINT32_MAX where a text is not known. */
struct lines_answer_frame {
    uint32_t name; /* of the texts; as the compiler wrote it */
    uint32_t file;
    uint32_t line;
};
