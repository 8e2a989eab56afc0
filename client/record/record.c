/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records a session, of a command or of the machine. The order: the file is opened first, so that a
 * mistake there costs no samples; the command is forked before the session, since it is its target,
 * and executed when sampling has begun; data is fetched meanwhile, and the rest after Stop. If
 * anything fails after the first byte, the bytes stay in a file whose name is printed.
 */
#include "record.h"

#include "attach.h"
#include "cleanup.h"
#include "clock.h"
#include "connection.h"
#include "naming.h"
#include "options.h"
#include "output.h"
#include "packets.h"
#include "record_child.h"
#include "record_config.h"
#include "record_opening.h"
#include "record_progress.h"
#include "record_signals.h"
#include "record_summary.h"
#include "recording.h"
#include "session_config.h"
#include "target_watch.h"
#include "text_out.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define CHUNKS_AT_ONCE      16 /* between two looks at the signals */
#define WATCHED_PIDS_MAX    1024
#define FETCH_INTERVAL_MS   200
#define DRAIN_INTERVAL_MS   5
#define COMMAND_ASK_NS      (1 * NS_PER_S) /* after the start, its runtimes have begun */
#define ASK_INTERVAL_NS     (5 * NS_PER_S)
#define LATE_S              5
#define STATUS_NOT_FOUND    127
#define STATUS_NOT_RUNNABLE 126

struct recording {
    const struct record_request *request;
    FILE *messages; /* borrowed: stdout, or stderr where stdout is the recording's or command's */
    int signals_fd; /* borrowed */
    struct record_child child;
    struct output *output;
    struct fault output_fault;
    struct naming *naming;   /* owned; NULL: no runtime is asked for names */
    uint64_t ask_ns;         /* when they are asked next */
    struct packets *packets; /* owned; NULL: none are made */
    uint64_t flushed_ns;     /* when packets were made last */
    struct profctl *conn;
    struct record_scan scan;
    struct thread_sums threads;
    struct target_watch watch;
    int32_t target_pids[WATCHED_PIDS_MAX]; /* of the config; the command is not one of them */
    uint8_t *chunk;                        /* PROFCTL_READ_BYTES_MAX */
    char *last_words;
    uint64_t started_ns;
    uint64_t stopped_ns;
    bool is_limited;     /* the session has limit_s() as its max_duration_s */
    bool targets_ended;  /* that ended the recording */
    bool has_ended;      /* nothing is left to be fetched */
    bool is_saved;       /* all of it is in its file */
    bool is_closed;      /* the session */
    char stopped_by[16]; /* as Stop replied */
    struct record_progress progress;
};

static void recording_done(struct recording *recording)
{
    record_child_done(&recording->child);
    record_progress_done(&recording->progress);
    recording->naming = naming_free(recording->naming);
    recording->packets = packets_free(recording->packets);
    recording->output = output_free(recording->output);
    recording->conn = profctl_disconnect(recording->conn);
    record_scan_done(&recording->scan);
    thread_sums_done(&recording->threads);
    target_watch_done(&recording->watch);
    free(recording->chunk);
    record_signals_restore();
    free(recording->last_words);
}

static void show_progress(struct recording *recording)
{
    char size[32];
    char count[TEXT_COUNT_BYTES];
    char text[128];
    (void)snprintf(text, sizeof text, "%.1f s: %s fetched (%s); the rest comes at the end",
                   (double)(clock_ns(CLOCK_MONOTONIC) - recording->started_ns) / (double)NS_PER_S,
                   text_samples(recording->scan.sample_count, count),
                   text_size(output_size_bytes(recording->output), size));
    record_progress_show(&recording->progress, text);
}

/* What a second signal writes, which can make no text any more. */
static int prepare_last_words(struct recording *recording)
{
    size_t text_bytes = 0;
    FILE *file = open_memstream(&recording->last_words, &text_bytes);
    if (file == NULL) {
        return -ENOMEM;
    }
    (void)fputs("\nprofctl: ended at once; what was recorded so far is in ", file);
    text_print(file, output_temporary_name(recording->output));
    (void)fputc('\n', file);
    int r = ferror(file) != 0 ? -ENOMEM : 0;
    return fclose(file) != 0 ? -ENOMEM : r;
}

/* A packets_out_fn. */
static int write_bytes(const void *bytes, size_t size_bytes, void *userdata)
{
    struct recording *recording = userdata;
    return output_write(recording->output, bytes, size_bytes, &recording->output_fault);
}

static int prepare(struct recording *recording)
{
    const struct record_request *request = recording->request;
    struct fault fault = {0};
    if (output_open(request->output_path, &recording->output, &fault) < 0) {
        return complain("%s", fault.text);
    }
    output_leave_old(recording->output);
    /* A command may write to the same terminal. */
    if (request->command == NULL) {
        record_progress_open(&recording->progress);
    }
    recording->chunk = malloc(PROFCTL_READ_BYTES_MAX);
    if (!request->is_native) {
        recording->packets = packets_new(write_bytes, recording);
    }
    if (recording->chunk == NULL || record_scan_init(&recording->scan) < 0 ||
        (recording->packets == NULL && !request->is_native) || prepare_last_words(recording) < 0) {
        return complain("record: there is not enough memory");
    }
    recording->scan.on_thread = thread_sums_take;
    recording->scan.thread_userdata = &recording->threads;
    if (recording->packets != NULL) {
        packets_begin_session(recording->packets);
    }
    int r = record_signals_take(recording->last_words, &recording->signals_fd);
    if (r < 0) {
        return complain("record: cannot take signals: %s", strerror(-r));
    }
    r = request->command == NULL
            ? 0
            : record_child_fork(&recording->child, request->command, request->names_code);
    return r < 0 ? complain("%s cannot be started: %s", request->command[0], strerror(-r))
                 : EXIT_DONE;
}

static int watch_targets(struct recording *recording, const char *config)
{
    size_t pid_count = record_config_pids(config, recording->target_pids, WATCHED_PIDS_MAX);
    int r = record_scan_watch(&recording->scan, recording->target_pids, pid_count);
    return r < 0 ? r : target_watch_begin(&recording->watch, config);
}

/* Asks the runtimes that the session will record for names; those of the command come later. */
static int begin_naming(struct recording *recording, const char *config)
{
    struct session_config parsed;
    struct fault fault = {0};
    if (session_config_parse(config, strlen(config), false, &parsed, &fault) < 0 ||
        naming_new(&parsed.targets, recording->child.pid, NULL, &recording->naming) < 0) {
        return complain("record: there is not enough memory");
    }
    if (recording->child.pid > 0 && naming_links_are_followed()) {
        (void)complain("names: Node.js and .NET are not told to name their code: "
                       "fs.protected_symlinks is 0, so another user's link in /tmp could have them "
                       "write elsewhere; sysctl -w fs.protected_symlinks=1 prevents that");
    }
    naming_ask(recording->naming);
    recording->ask_ns =
        clock_ns(CLOCK_MONOTONIC) + (recording->child.pid > 0 ? COMMAND_ASK_NS : ASK_INTERVAL_NS);
    return EXIT_DONE;
}

static void go_on_naming(struct recording *recording)
{
    if (recording->naming != NULL && clock_ns(CLOCK_MONOTONIC) >= recording->ask_ns) {
        record_progress_clear(&recording->progress);
        naming_ask_again(recording->naming);
        recording->ask_ns = clock_ns(CLOCK_MONOTONIC) + ASK_INTERVAL_NS;
    }
}

/* When the daemon ends the session that a client has not ended by then, since it gets no CPU. Not
 * sooner, since the time is what the buffers have room for. Nothing ends it while runtimes are
 * asked for names. */
static uint64_t limit_s(const struct record_request *request)
{
    uint64_t duration_s = (request->duration_ns + NS_PER_S - 1) / NS_PER_S;
    uint64_t late_s = LATE_S + (request->names_code ? NAMING_MS / 1000 : 0);
    return duration_s == 0 ? 0 : duration_s + late_s;
}

/* Makes the session and starts it, and the command with it. */
static int begin(struct recording *recording)
{
    cleanup_(freep) char *config = NULL;
    struct profctl_fault fault = {0};
    int status = record_config_load(recording->request, recording->child.pid, &config);
    if (status != EXIT_DONE) {
        return status;
    }
    if (recording->request->command == NULL && watch_targets(recording, config) < 0) {
        return complain("record: there is not enough memory");
    }
    status = recording->request->names_code ? begin_naming(recording, config) : EXIT_DONE;
    if (status != EXIT_DONE) {
        return status;
    }
    status = attach_connect(recording->request->socket_path, &recording->conn);
    if (status != EXIT_DONE) {
        return status;
    }
    status = record_session_create(recording->conn, recording->request, config, false,
                                   limit_s(recording->request), &recording->is_limited);
    if (status != EXIT_DONE) {
        return status;
    }
    attach_print_remarks(recording->conn);
    if (!recording->request->is_json) {
        record_opening_show(recording->request, config, &recording->watch);
    }
    if (profctl_start(recording->conn, &fault) < 0) {
        return complain("session: %s", fault.text);
    }
    recording->started_ns = clock_ns(CLOCK_MONOTONIC);
    if (recording->request->command != NULL) {
        int r = record_child_release(&recording->child);
        if (r < 0) {
            (void)complain("%s cannot be run: %s; nothing is recorded",
                           recording->request->command[0], strerror(-r));
            return r == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUNNABLE;
        }
    }
    return EXIT_DONE;
}

/* Where there is no summary, this says that the command still runs. */
static void complain_still_runs(struct recording *recording)
{
    char text[RECORD_CHILD_TEXT_BYTES];
    if (recording->request->command != NULL && !record_child_has_ended(&recording->child)) {
        (void)complain("%s: %s", recording->request->command[0],
                       record_child_describe(&recording->child, text));
    }
}

/* Says where the bytes are that have been recorded. */
static int fail_half_way(struct recording *recording, const char *text)
{
    record_progress_clear(&recording->progress);
    const char *kept =
        recording->scan.feed.record_count == 0 ? NULL : output_keep(recording->output);
    if (kept == NULL) {
        (void)complain("%s", text);
    } else {
        (void)complain("%s; what was recorded so far is kept in %s", text, kept);
    }
    complain_still_runs(recording);
    return EXIT_FAILED;
}

/* Makes packets of what has been fetched, once a second. */
static int flush_packets(struct recording *recording)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (recording->packets == NULL || now_ns - recording->flushed_ns < NS_PER_S) {
        return EXIT_DONE;
    }
    recording->flushed_ns = now_ns;
    return packets_flush(recording->packets, false) < 0
               ? fail_half_way(recording, recording->output_fault.text)
               : EXIT_DONE;
}

/* Moves what is ready into the file. `*ret_count` is how many pieces that were. */
static int fetch(struct recording *recording, size_t *ret_count)
{
    size_t count = 0;
    for (; count < CHUNKS_AT_ONCE && !recording->has_ended; count++) {
        size_t size_bytes = 0;
        bool end = false;
        if (profctl_read(recording->conn, recording->chunk, PROFCTL_READ_BYTES_MAX, &size_bytes,
                         &end) < 0) {
            return fail_half_way(recording, connection_notes(recording->conn)->fault.text);
        }
        record_scan_add(&recording->scan, recording->chunk, size_bytes);
        int r = recording->packets == NULL
                    ? write_bytes(recording->chunk, size_bytes, recording)
                    : packets_pass(recording->packets, recording->chunk, size_bytes);
        if (r < 0) {
            return fail_half_way(recording, recording->output_fault.text);
        }
        recording->has_ended = end;
        if (size_bytes == 0) {
            break;
        }
    }
    *ret_count = count;
    return EXIT_DONE;
}

/* Waits for a signal, at most so long. Returns whether the recording is to end. */
static bool wait_for_end(struct recording *recording, uint64_t wait_ms)
{
    struct pollfd signals = {.fd = recording->signals_fd, .events = POLLIN};
    (void)poll(&signals, 1, (int)wait_ms);
    recording->targets_ended = target_watch_has_ended(&recording->watch);
    return record_signals_read() || record_child_has_ended(&recording->child) ||
           recording->targets_ended;
}

/* Fetches until the time is over, a signal or the end of the targets ends the recording, or the
 * session ends. */
static int record_samples(struct recording *recording)
{
    uint64_t end_ns = recording->request->duration_ns == 0
                          ? UINT64_MAX
                          : recording->started_ns + recording->request->duration_ns;
    bool is_over = false;
    size_t count = 0;
    while (!is_over && !recording->has_ended) {
        uint64_t at_ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t left_ms = at_ns >= end_ns ? 0 : (end_ns - at_ns + 999999) / 1000000;
        uint64_t wait_ms = count == CHUNKS_AT_ONCE ? 0 : FETCH_INTERVAL_MS;
        is_over = wait_for_end(recording, left_ms < wait_ms ? left_ms : wait_ms) ||
                  clock_ns(CLOCK_MONOTONIC) >= end_ns;
        if (!is_over) {
            int status = fetch(recording, &count);
            status = status == EXIT_DONE ? flush_packets(recording) : status;
            if (status != EXIT_DONE) {
                return status;
            }
            go_on_naming(recording);
            show_progress(recording);
        }
    }
    return EXIT_DONE;
}

/* A recording without a sample, or the time of a thread, takes no other's place. */
static bool is_empty(const struct recording *recording)
{
    const struct record_scan *scan = &recording->scan;
    return scan->sample_count + scan->event_sample_count + recording->threads.count == 0 &&
           scan->fault.code == 0;
}

/*
 * Stops the session and fetches all that is left. One that has ended already is asked to stop as
 * well, since the reply says what ended it.
 */
static int finish(struct recording *recording)
{
    struct profctl_fault fault = {0};
    if (profctl_stop(recording->conn, &fault) < 0 && !recording->has_ended) {
        return fail_half_way(recording, fault.text);
    }
    recording->stopped_ns = clock_ns(CLOCK_MONOTONIC);
    (void)snprintf(recording->stopped_by, sizeof recording->stopped_by, "%s",
                   connection_notes(recording->conn)->stopped_by);
    while (!recording->has_ended) {
        size_t count = 0;
        int status = fetch(recording, &count);
        if (status != EXIT_DONE) {
            return status;
        }
        if (count == 0 && !recording->has_ended) {
            (void)poll(NULL, 0, DRAIN_INTERVAL_MS);
        }
    }
    if (recording->packets != NULL && packets_flush(recording->packets, true) < 0) {
        return fail_half_way(recording, recording->output_fault.text);
    }
    if (!is_empty(recording) && output_finish(recording->output, &recording->output_fault) < 0) {
        return fail_half_way(recording, recording->output_fault.text);
    }
    recording->is_saved = !is_empty(recording);
    recording->is_closed = profctl_close(recording->conn, &fault) == 0;
    record_progress_clear(&recording->progress);
    if (!recording->is_closed) {
        (void)complain("session: %s; the recording is whole", fault.text);
    }
    return EXIT_DONE;
}

/* Prints the summary of what was recorded. Returns the exit status. */
static int conclude(struct recording *recording)
{
    const struct record_request *request = recording->request;
    bool has_ended = record_child_has_ended(&recording->child);
    thread_sums_order(&recording->threads);
    const struct record_outcome outcome = {
        .request = request,
        .scan = &recording->scan,
        .threads = &recording->threads,
        .child = &recording->child,
        .ended_targets = recording->targets_ended ? &recording->watch : NULL,
        .stopped_by = recording->stopped_by,
        .is_limited = recording->is_limited,
        .output = recording->output,
        .size_bytes = output_size_bytes(recording->output),
        .sampled_ns = recording->stopped_ns - recording->started_ns,
        .is_empty = is_empty(recording),
    };
    if (request->is_json) {
        record_summary_print_json(recording->messages, &outcome);
    } else {
        record_summary_print(recording->messages, &outcome);
    }
    int status =
        has_ended && !request->ignores_status ? record_child_status(&recording->child) : EXIT_DONE;
    if (outcome.is_empty) {
        (void)fflush(recording->messages);
        record_summary_complain_empty(&outcome);
    }
    if (recording->packets != NULL && packets_are_cut(recording->packets)) {
        (void)complain("record: there was not enough memory for all packets for Perfetto; the "
                       "recording is whole");
    }
    if (status == EXIT_DONE && (recording->scan.fault.code != 0 || !recording->is_closed ||
                                record_outcome_is_cut(&outcome))) {
        status = EXIT_FAILED;
    }
    return status == EXIT_DONE && outcome.is_empty ? EXIT_NO_SAMPLE : status;
}

int record_run(const struct record_request *request, bool *ret_is_saved)
{
    bool is_shared = request->command != NULL || strcmp(request->output_path, "-") == 0;
    cleanup_(recording_done) struct recording recording = {
        .request = request,
        .messages = is_shared ? stderr : stdout,
        .child = {.go_fd = -1, .end_fd = -1},
        .progress = {.fd = -1},
    };
    int status = prepare(&recording);
    if (status == EXIT_DONE) {
        status = begin(&recording);
    }
    if (status == EXIT_DONE) {
        status = record_samples(&recording);
    }
    if (status == EXIT_DONE) {
        status = finish(&recording);
    }
    *ret_is_saved = recording.is_saved;
    if (status == EXIT_DONE) {
        status = conclude(&recording);
    }
    return status;
}
