/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The child that parses debugging information, as profctl sees it: a process without rights
 * (lines_reader.c), which a file may crash, hang or take over. Each of these loses what was asked,
 * and the child; no more.
 */

#include "disassembly.h"
#include "function_ranges.h"
#include "lines_wire.h"

#include <stdbool.h>
#include <stddef.h>

/* What a child ended of, as the end of a sentence: "was ended by signal 7 (Bus error)". */
#define LINES_ENDING_BYTES ((size_t)160)

struct lines_worker;

/* Starts a child. Returned: lines_worker_free(), which ends it. Returns 0, or -errno. */
int lines_worker_start(struct lines_worker **ret);
struct lines_worker *lines_worker_free(struct lines_worker *worker);
void lines_worker_freep(struct lines_worker **worker);

/*
 * Has the child open a file (borrowed): LINES_OPEN, or LINES_OPEN_ALTERNATE for what the open one
 * needs. Returns 0 with a sound `*ret`; -EPIPE: the child is gone; -ETIME: it is, since it did not
 * answer in time. Then lines_worker_ending() says how, and only lines_worker_free() is valid.
 */
int lines_worker_open(struct lines_worker *worker, enum lines_request request, int fd,
                      struct lines_about *ret);

/*
 * Has the child look up addresses (borrowed, sorted, different) in the open file. Takes the bytes
 * of the answer off `*left_bytes`. Returns 0 with an answer whose size is right, its body returned:
 * free(); -EBADMSG: the file cannot be read; -ENOMEM: this process has no room for the answer, and
 * the child is ended; -EPIPE or -ETIME as above.
 */
int lines_worker_read(struct lines_worker *worker, const uint64_t *vaddrs, size_t count,
                      uint64_t *left_bytes, struct lines_answer_header *ret_header,
                      void **ret_body);

/*
 * Has the child find the functions that hold addresses (borrowed) of the open file. `ret` has as
 * many ranges as there are addresses: each holds its address, or is empty. Returns as
 * lines_worker_read(), but never -ENOMEM.
 */
int lines_worker_functions(struct lines_worker *worker, const uint64_t *vaddrs, size_t count,
                           struct function_range *ret);

/*
 * Has the child disassemble what the open file has between two addresses, at most
 * LINES_CODE_BYTES_MAX. Returns 0 with the lines (returned: free()), by rising addresses in that
 * range, their texts ended; else as lines_worker_read().
 */
int lines_worker_code(struct lines_worker *worker, uint64_t start, uint64_t end,
                      struct disassembly_line **ret, size_t *ret_count);

/* How the child ended, after -EPIPE or -ETIME. Borrowed, until it is freed. */
const char *lines_worker_ending(const struct lines_worker *worker);

/* After -EPIPE: true if no child can do its work on this machine. */
bool lines_worker_is_useless(const struct lines_worker *worker);
