/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A recording as a stream: bytes in, records out, and what can be told of them as they go by.
 * Nothing here keeps more than the record at hand.
 */

#include "fault.h"
#include "fxt_reader.h"
#include "unread_modules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Bytes in, in pieces cut anywhere; records out. Holds no more than the record that is not whole
 * yet and the piece.
 */

/* Called for each record, which lives until it returns. A negative result ends the reading. */
typedef int (*feed_record_fn)(const struct fxt_record *record, void *userdata);

struct feed {
    uint8_t *window; /* owned; begins with the first byte that is not yet read as a record */
    size_t window_bytes;
    struct fxt_reader *reader; /* owned */
    uint64_t size_bytes;       /* of the records read */
    uint64_t record_count;
};

/* Returns 0, or -ENOMEM. Either way feed_done() releases it. */
int feed_init(struct feed *feed);
void feed_done(struct feed *feed);

/* Where the next bytes go: `*ret_bytes` > 0 of room, borrowed until feed_filled(). */
uint8_t *feed_space(struct feed *feed, size_t *ret_bytes);

/*
 * Reads the records that are whole now that `bytes` more have been put there. Returns 0; what
 * `on_record` returned; -EBADMSG: not FXT, or damaged; -ENOMEM. For the last two `reterr` says it
 * in words that go on a sentence that began with the input's name.
 */
int feed_filled(struct feed *feed, size_t bytes, feed_record_fn on_record, void *userdata,
                struct fault *reterr);

/* Whether bytes of a record that is not whole are left. */
bool feed_has_rest(const struct feed *feed);

/*
 * The records of a recording, one after the other, from a file, a gzip file (told by its first
 * bytes, not its name) or standard input. Never holds more than a piece of it.
 */

struct input_summary {
    uint64_t size_bytes; /* of the records read, uncompressed */
    uint64_t record_count;
    bool truncated; /* the input ends within a record; what stood before it was read */
    bool damaged;   /* what follows these bytes is no record; what stood before it was read */
};

/*
 * Reads the file at `path`, "-" for standard input, to its end or to the first damage behind a
 * record. Returns 0; what `on_record` returned; -EBADMSG: not a recording; another -errno. `reterr`
 * says it in a sentence that begins with the input's name.
 */
int input_read(const char *path, feed_record_fn on_record, void *userdata,
               struct input_summary *ret, struct fault *reterr);

/* The same for bytes in memory (borrowed, any alignment, not compressed). */
int input_read_memory(const uint8_t *bytes, size_t size_bytes, feed_record_fn on_record,
                      void *userdata, struct input_summary *ret, struct fault *reterr);

/*
 * Writes the first `size_bytes` of a file, uncompressed, as input_read() has counted them: also of
 * one that is damaged behind them. Errors of `to` (borrowed) are the caller's to find. Returns 0,
 * or -errno with a sentence in `reterr` that begins with the path.
 */
int input_copy(const char *path, uint64_t size_bytes, FILE *to, struct fault *reterr);

/* Whether a file begins as a recording does; what is no regular file does not. */
bool input_is_recording(const char *path);

/* The Data blobs of a recording. */
#define DATA_NAME_SESSION   "cpu-profilerd.session"
#define DATA_NAME_SYMBOLS   "cpu-profilerd.symbols"
#define DATA_NAME_BOOKS     "cpu-profilerd.books"
#define DATA_NAME_PROCESSES "cpu-profilerd.processes"
#define DATA_NAME_THREADS   "cpu-profilerd.threads"

bool data_is_named(const struct fxt_data *data, const char *name);

/*
 * Puts the last line of a blob into `*kept` (owned by the caller; free()), in place of what is
 * there, if the line is a JSON object. Returns 0, or -ENOMEM.
 */
int data_take_object(const struct fxt_data *data, char **kept);

struct cJSON;

/* Called for each line, which lives until it returns; NULL for one that is not JSON, or nested. A
 * negative result ends the walk. */
typedef int (*data_line_fn)(const struct cJSON *line, void *userdata);

/* Goes through the lines of a blob. Returns 0, what `on_line` returned, or -ENOMEM. */
int data_each_line(const struct fxt_data *data, data_line_fn on_line, void *userdata);

/* Reads a number of 64 bits: JSON's own numbers are exact to 2^53, so larger ones are texts. False:
 * it is none. */
bool data_read_u64(const struct cJSON *value, uint64_t *ret);

/*
 * Looks at a recording as it goes by: how many samples it has, and its books.
 */

struct record_scan {
    struct feed feed;
    uint64_t sample_count;       /* of the clock */
    uint64_t event_sample_count; /* of other events */
    const int32_t *pids;         /* borrowed; whose samples are looked for */
    bool *is_pid_seen;           /* owned; of each of them */
    size_t pid_count;
    const char *session; /* borrowed; whose samples and books are told apart; NULL: of none */
    bool is_other;       /* the segment is that of another session */
    uint64_t segment_at; /* the samples before it, of the clock and of other events */
    uint64_t segment_event_at;
    uint64_t other_count; /* of samples, in segments of other sessions that are over */
    uint64_t other_event_count;
    uint64_t books_count; /* how often books came */
    char *books_json;     /* owned; the last of them, or NULL */
    struct unread_modules unread;
    data_line_fn on_thread; /* gets the lines of threads; NULL: they are passed over */
    void *thread_userdata;
    struct fault fault; /* why it looks no longer; code 0: it does */
};

/* Returns 0, or -ENOMEM. Either way record_scan_done() releases it. */
int record_scan_init(struct record_scan *scan);
void record_scan_done(struct record_scan *scan);

/* Looks out for samples of these processes (borrowed until record_scan_done()) from now on. Returns
 * 0, or -ENOMEM. */
int record_scan_watch(struct record_scan *scan, const int32_t *pids, size_t count);

/*
 * From now on has only the books and threads of this session (its id, borrowed until
 * record_scan_done()), and the two below tell how many samples of the clock, and of other events,
 * have come of others: a file may have recordings of several.
 */
void record_scan_tell_apart(struct record_scan *scan, const char *session);
uint64_t record_scan_other_count(const struct record_scan *scan);
uint64_t record_scan_other_event_count(const struct record_scan *scan);

/* A feed_record_fn, for records that come another way; `userdata` is the scan. */
int record_scan_record(const struct fxt_record *record, void *userdata);

/* Bytes (borrowed) that cannot be understood end the looking, not the recording. */
void record_scan_add(struct record_scan *scan, const void *bytes, size_t size_bytes);
