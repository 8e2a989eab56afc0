/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads a session's data into a file, and loses none of it when the program is interrupted. The
 * daemon repeats each piece until it is acknowledged, which the next Read does. Before that the
 * piece is on the disk, and the file's name has the piece's sequence number. So the same command
 * continues after any interruption: it acknowledges the pieces that its file has, and gets the
 * others again.
 *
 * From a running session, it reads until nothing is ready after the first sample. If the disk is
 * slower than the session, it reads at most what the daemon can have held at the beginning. From a
 * session that has stopped, it reads all.
 */
#include "read.h"

#include "attach.h"
#include "books_print.h"
#include "cleanup.h"
#include "json_out.h"
#include "options.h"
#include "output.h"
#include "packets.h"
#include "page.h"
#include "recording.h"
#include "text_out.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DRAIN_INTERVAL_MS 5
#define DRAIN_TRIES_MAX   2000 /* 10 s without a byte: the end does not come */
#define NAMES_TRIES_MAX   500  /* 2.5 s in all: samples wait for their names, but not for longer */

struct reading {
    const struct read_request *request;
    struct profctl *conn;
    struct session_status session; /* as it was when the reading began */
    struct output *output;
    struct fault output_fault;
    struct packets *packets; /* owned; NULL: none are made */
    struct record_scan scan;
    char *chunk;            /* PROFCTL_READ_BYTES_MAX */
    uint64_t fetched_bytes; /* by this run */
    uint64_t resumed_bytes; /* of the file, that an earlier run had written */
    uint64_t earlier_count; /* of the samples: those of the recording that is added to */
    uint64_t earlier_event_count;
    uint64_t earlier_books; /* how often it has the session's books */
    uint64_t thread_count;  /* lines of threads that this run has got */
    bool holds_recording;   /* the file, before this run */
    bool is_first;          /* the session was not read before */
    bool has_ended;
};

static void reading_done(struct reading *reading)
{
    reading->packets = packets_free(reading->packets);
    reading->output = output_free(reading->output);
    reading->conn = profctl_disconnect(reading->conn);
    session_status_done(&reading->session);
    record_scan_done(&reading->scan);
    free(reading->chunk);
}

/* A data_line_fn. */
static int count_thread(const struct cJSON *line, void *userdata)
{
    struct reading *reading = userdata;
    reading->thread_count += line != NULL;
    return 0;
}

/* Counts from the beginning. Returns an exit status. */
static int begin_scan(struct reading *reading)
{
    record_scan_done(&reading->scan);
    if (record_scan_init(&reading->scan) < 0) {
        return complain("read: there is not enough memory");
    }
    record_scan_tell_apart(&reading->scan, connection_notes(reading->conn)->session);
    reading->scan.on_thread = count_thread;
    reading->scan.thread_userdata = reading;
    reading->thread_count = 0;
    return EXIT_DONE;
}

/* Begins the file with the recording that it holds, and counts that. */
static int copy_recording(struct reading *reading)
{
    const char *path = reading->request->output_path;
    struct input_summary summary;
    struct fault fault = {0};
    if (input_read(path, record_scan_record, &reading->scan, &summary, &fault) < 0 ||
        output_copy(reading->output, &fault) < 0) {
        return complain("%s; nothing has been read", fault.text);
    }
    if (summary.truncated || summary.damaged) {
        return complain(
            "%s is cut off or damaged, so nothing can be added to it; name another file", path);
    }
    reading->earlier_count = reading->scan.sample_count;
    reading->earlier_event_count = reading->scan.event_sample_count;
    reading->earlier_books = reading->scan.books_count;
    reading->thread_count = 0;
    return EXIT_DONE;
}

/*
 * Counts the recording that an interrupted run has begun its file with. If another has come in its
 * place since, the file that is made has nothing of it and must not replace it. Where none is there
 * any more, all samples are new to FILE.
 */
static int count_copied(struct reading *reading)
{
    const char *path = reading->request->output_path;
    struct input_summary summary;
    struct fault fault = {0};
    if (!output_has_copy(reading->output)) {
        return complain("%s has changed since a read --append to it was interrupted; move it away, "
                        "and the same command goes on with %s",
                        path, output_temporary_name(reading->output));
    }
    if (!reading->holds_recording) {
        return EXIT_DONE;
    }
    if (input_read(path, record_scan_record, &reading->scan, &summary, &fault) < 0) {
        return complain("%s; nothing has been read", fault.text);
    }
    reading->earlier_count = reading->scan.sample_count;
    reading->earlier_event_count = reading->scan.event_sample_count;
    return begin_scan(reading);
}

/* Counts what an earlier run has written, and has it acknowledged. */
static int go_on(struct reading *reading, uint64_t sequence)
{
    struct input_summary summary;
    struct fault fault = {0};
    const char *name = output_temporary_name(reading->output);
    if (input_read(name, record_scan_record, &reading->scan, &summary, &fault) < 0) {
        return complain("%s; move that file away, and read the rest again", fault.text);
    }
    if (summary.damaged) {
        return complain("%s is damaged; move that file away, and read the rest again", name);
    }
    reading->resumed_bytes = output_size_bytes(reading->output);
    connection_acknowledge(reading->conn, sequence);
    return EXIT_DONE;
}

static bool holds_something(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
}

/*
 * Makes sure that no recording is lost. A file that holds one is replaced or added to on request
 * only, and a read that was interrupted is finished as it was begun: its pieces are in that file
 * alone.
 */
static int check_file(struct reading *reading, const char *plain_tag, const char *append_tag)
{
    const struct read_request *request = reading->request;
    const char *path = request->output_path;
    reading->holds_recording = input_is_recording(path);
    if (reading->holds_recording && !request->appends && !request->replaces) {
        return complain("%s holds a recording already; --append adds to it, --force replaces it "
                        "and keeps it as %s.old",
                        path, path);
    }
    if (request->appends && !reading->holds_recording && holds_something(path)) {
        return complain("%s is no recording, so nothing can be added to it; name another file, or "
                        "--force replaces it and keeps it as %s.old",
                        path, path);
    }
    /* Without a recording, --append begins the file as a read without it does. */
    bool is_left = request->appends ? reading->holds_recording && output_is_left(path, plain_tag)
                                    : output_is_left(path, append_tag);
    if (is_left) {
        return complain("%s: an interrupted read with%s --append is unfinished; finish it first, "
                        "with: profctl read %s -o FILE",
                        path, request->appends ? "out" : "",
                        request->appends ? "--force" : "--append");
    }
    return EXIT_DONE;
}

/* Opens the file, or the one that an interrupted read has left beside it. */
static int open_file(struct reading *reading)
{
    const char *path = reading->request->output_path;
    const char *tag = connection_notes(reading->conn)->session;
    char append_tag[sizeof connection_notes(reading->conn)->session + 8];
    struct fault fault = {0};
    uint64_t sequence = 0;
    (void)snprintf(append_tag, sizeof append_tag, "%s-append", tag);
    int status = check_file(reading, tag, append_tag);
    if (status != EXIT_DONE) {
        return status;
    }
    bool is_added =
        reading->request->appends && (reading->holds_recording || output_is_left(path, append_tag));
    if (output_resume(path, is_added ? append_tag : tag, &reading->output, &sequence, &fault) < 0) {
        return complain("%s", fault.text);
    }
    if (!is_added) {
        output_leave_old(reading->output);
    }
    if (sequence > 0 && is_added && (status = count_copied(reading)) != EXIT_DONE) {
        return status;
    }
    if (sequence > 0) {
        return go_on(reading, sequence);
    }
    if (is_added && (status = copy_recording(reading)) != EXIT_DONE) {
        return status;
    }
    /* Packets are about as many bytes as what they are made of, and seldom twice as many. */
    uint64_t parts = reading->packets == NULL ? 1 : 3;
    if (output_reserve(reading->output, parts * reading->session.buffer_used_bytes, &fault) < 0) {
        return complain("%s; nothing has been read, and nothing is lost: free some room, or name "
                        "another file with -o",
                        fault.text);
    }
    return EXIT_DONE;
}

/* A packets_out_fn. */
static int write_bytes(const void *bytes, size_t size_bytes, void *userdata)
{
    struct reading *reading = userdata;
    return output_write(reading->output, bytes, size_bytes, &reading->output_fault);
}

static int prepare(struct reading *reading)
{
    struct profctl_fault fault = {0};
    int status = attach_session(reading->request->attach.socket_path, &reading->conn);
    if (status != EXIT_DONE) {
        return status;
    }
    if (session_status_ask(reading->conn, &reading->session, &fault) < 0) {
        return complain("session: %s", fault.text);
    }
    reading->chunk = malloc(PROFCTL_READ_BYTES_MAX);
    if (!reading->request->is_native) {
        reading->packets = packets_new(write_bytes, reading);
    }
    if (reading->chunk == NULL || (reading->packets == NULL && !reading->request->is_native)) {
        return complain("read: there is not enough memory");
    }
    status = begin_scan(reading);
    return status == EXIT_DONE ? open_file(reading) : status;
}

/* Tells what becomes of the file that is not whole. */
static int fail_half_way(struct reading *reading, const char *text)
{
    if (strcmp(reading->request->output_path, "-") == 0 ||
        reading->fetched_bytes + reading->resumed_bytes == 0) {
        return complain("%s; what was not written can be read again", text);
    }
    return complain(
        "%s; what was read so far is kept in %s, and while the session is there the same "
        "command goes on with it",
        text, output_temporary_name(reading->output));
}

/* Writes a piece, and the packets of its samples. */
static int write_piece(struct reading *reading, size_t size_bytes)
{
    if (reading->packets == NULL) {
        return write_bytes(reading->chunk, size_bytes, reading);
    }
    if (connection_notes(reading->conn)->sequence == 1) {
        packets_begin_session(reading->packets);
    }
    int r = packets_pass(reading->packets, reading->chunk, size_bytes);
    return r < 0 ? r : packets_flush(reading->packets, false);
}

/* Puts a piece into the file, for good. */
static int store(struct reading *reading, size_t size_bytes)
{
    uint64_t sequence = connection_notes(reading->conn)->sequence;
    reading->is_first = reading->is_first || sequence == 1;
    record_scan_add(&reading->scan, reading->chunk, size_bytes);
    if (write_piece(reading, size_bytes) < 0 ||
        output_mark(reading->output, sequence, &reading->output_fault) < 0) {
        return fail_half_way(reading, reading->output_fault.text);
    }
    reading->fetched_bytes += size_bytes;
    return EXIT_DONE;
}

/* Acknowledges the last piece without taking the next, which stays the daemon's. */
static int acknowledge(struct reading *reading)
{
    size_t size_bytes = 0;
    bool end = false;
    int r = profctl_read(reading->conn, NULL, 0, &size_bytes, &end);
    return r < 0 && r != -EINVAL
               ? fail_half_way(reading, connection_notes(reading->conn)->fault.text)
               : EXIT_DONE;
}

/* For how many empty Reads the session is waited for. One that runs has given all, if anything. */
static unsigned tries_max(const struct reading *reading)
{
    if (strcmp(reading->session.state, "stopped") == 0) {
        return DRAIN_TRIES_MAX;
    }
    bool is_awaited = strcmp(reading->session.state, "running") == 0 &&
                      reading->scan.sample_count == reading->earlier_count;
    return is_awaited ? NAMES_TRIES_MAX : 0;
}

static int fetch(struct reading *reading)
{
    bool is_stopped = strcmp(reading->session.state, "stopped") == 0;
    unsigned empty_count = 0;
    for (;;) {
        size_t size_bytes = 0;
        bool end = false;
        if (profctl_read(reading->conn, reading->chunk, PROFCTL_READ_BYTES_MAX, &size_bytes, &end) <
            0) {
            return fail_half_way(reading, connection_notes(reading->conn)->fault.text);
        }
        reading->has_ended = end;
        if (size_bytes > 0) {
            /* A session that runs may never be without waits, and never have a tick. */
            empty_count = is_stopped ? 0 : empty_count;
            int status = store(reading, size_bytes);
            if (status != EXIT_DONE) {
                return status;
            }
        }
        if (end || (!is_stopped && reading->fetched_bytes >= reading->session.buffer_bytes)) {
            return size_bytes == 0 ? EXIT_DONE : acknowledge(reading);
        }
        if (size_bytes == 0) {
            if (empty_count++ >= tries_max(reading)) {
                return EXIT_DONE;
            }
            (void)poll(NULL, 0, DRAIN_INTERVAL_MS);
        }
    }
}

/* How many samples the session kept that are not in this file, known once it has ended. */
static uint64_t missing_count(const struct reading *reading)
{
    uint64_t kept = books_print_kept(reading->scan.books_json);
    uint64_t here = reading->scan.sample_count - record_scan_other_count(&reading->scan);
    return reading->has_ended && kept > here ? kept - here : 0;
}

/* The same of all events beside the clock. */
static uint64_t missing_event_count(const struct reading *reading)
{
    const char *books = reading->scan.books_json;
    uint64_t kept = books_print_kept_of_all(books) - books_print_kept(books);
    uint64_t here =
        reading->scan.event_sample_count - record_scan_other_event_count(&reading->scan);
    return reading->has_ended && kept > here ? kept - here : 0;
}

static void print_json(const struct reading *reading)
{
    struct json_out out = {.file = stdout};
    const char *path = reading->request->output_path;
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "session", connection_notes(reading->conn)->session);
    json_out_string(&out, "file", path);
    json_out_string(&out, "old_file", output_old_path(reading->output));
    json_out_u64(&out, "size_bytes", output_size_bytes(reading->output));
    json_out_u64(&out, "samples", reading->scan.sample_count);
    json_out_u64(&out, "samples_added", reading->scan.sample_count - reading->earlier_count);
    json_out_u64(&out, "samples_elsewhere", missing_count(reading));
    json_out_u64(&out, "event_samples", reading->scan.event_sample_count);
    json_out_u64(&out, "event_samples_added",
                 reading->scan.event_sample_count - reading->earlier_event_count);
    json_out_u64(&out, "event_samples_elsewhere", missing_event_count(reading));
    json_out_raw(&out, "end", reading->has_ended ? "true" : "false");
    json_out_raw(&out, "books", reading->scan.books_json);
    json_out_end(&out, '}');
    (void)fputc('\n', stdout);
}

/* "12 samples", "0 samples and 3 of other events". */
static void write_counts(FILE *to, uint64_t count, uint64_t event_count)
{
    char text[TEXT_COUNT_BYTES];
    (void)fputs(text_samples(count, text), to);
    if (event_count > 0) {
        (void)fprintf(to, " and %" PRIu64 " of other events", event_count);
    }
}

static void write_first_line(FILE *to, const struct reading *reading)
{
    const struct record_scan *scan = &reading->scan;
    const char *path = reading->request->output_path;
    char size[32];
    if (reading->earlier_count + reading->earlier_event_count > 0) {
        write_counts(to, scan->sample_count - reading->earlier_count,
                     scan->event_sample_count - reading->earlier_event_count);
        (void)fputs(" added: ", to);
    }
    write_counts(to, scan->sample_count, scan->event_sample_count);
    (void)fprintf(to, ", %s", text_size(output_size_bytes(reading->output), size));
    if (strcmp(path, "-") != 0) {
        (void)fputs(" in ", to);
        text_print(to, path);
    }
    if (reading->resumed_bytes > 0) {
        (void)fprintf(to, ", %s of it from a read that was interrupted",
                      text_size(reading->resumed_bytes, size));
    }
    (void)fputc('\n', to);
    output_print_old(to, reading->output);
}

/* "12 kept samples are not in this file". */
static void write_missing(FILE *to, const struct reading *reading)
{
    uint64_t count = missing_count(reading);
    uint64_t event_count = missing_event_count(reading);
    if (count > 0) {
        (void)fprintf(to, "%" PRIu64 " kept sample%s", count, count == 1 ? "" : "s");
    }
    if (event_count > 0) {
        (void)fprintf(to, "%s%" PRIu64 " %sof other events", count > 0 ? " and " : "", event_count,
                      count > 0          ? ""
                      : event_count == 1 ? "kept sample "
                                         : "kept samples ");
    }
    if (count + event_count > 0) {
        (void)fprintf(to, " %s not in this file%s\n", count + event_count == 1 ? "is" : "are",
                      reading->is_first ? "" : "; earlier reads have them");
    }
}

static void write_last_line(FILE *to, const struct reading *reading)
{
    const char *path = reading->request->output_path;
    write_missing(to, reading);
    if (reading->has_ended) {
        (void)fputs("nothing is left to be read; profctl close ends the session\n", to);
    } else if (strcmp(path, "-") == 0) {
        (void)fputs("the session goes on, and another profctl read gives what follows\n", to);
    } else {
        (void)fputs("the session goes on; profctl read --append -o ", to);
        text_print_argument(to, path);
        (void)fputs(" adds what follows\n", to);
    }
}

static void print_sentence(const struct page *page, const struct reading *reading,
                           void (*write)(FILE *to, const struct reading *reading))
{
    struct page_text text;
    if (page_text_begin(&text)) {
        write(text.file, reading);
        page_text_end(&text, page, PAGE_PLAIN);
    }
}

/* What shows the recording: the clock's samples, and the waits, which the books of its end have. A
 * file may have the times of its threads alone. */
static void print_views(const struct page *page, const struct reading *reading)
{
    const char *path = reading->request->output_path;
    int64_t counted_ns = 0;
    bool has_waits = books_print_event(reading->scan.books_json, "off-cpu", "counted", &counted_ns);
    if (reading->scan.sample_count > 0 || !has_waits || reading->thread_count == 0) {
        page_print_command(page, "profctl report", path, "shows where the time went");
    }
    if (has_waits && reading->scan.event_sample_count > 0) {
        page_print_command(page, "profctl report --event off-cpu", path,
                           "shows what threads waited for");
    } else if (reading->thread_count > 0) {
        page_print_command(page, "profctl report --threads", path,
                           "shows for how long threads were blocked");
    }
}

static void print_summary(FILE *to, const struct reading *reading)
{
    const char *path = reading->request->output_path;
    struct page page;
    page_describe_summary(to, &page);
    print_sentence(&page, reading, write_first_line);
    if (reading->has_ended && reading->request->shows_books) {
        (void)fputc('\n', to);
        books_print_print(to, reading->scan.books_json);
        (void)fputc('\n', to);
    } else if (reading->has_ended) {
        const struct unread_modules *found = &reading->scan.unread;
        const struct books_unread unread = {found->paths, found->count,
                                            unread_modules_has_kernel(found)};
        books_print_short(to, reading->scan.books_json, "--books", &unread);
    }
    print_sentence(&page, reading, write_last_line);
    if (strcmp(path, "-") != 0) {
        print_views(&page, reading);
    }
}

/* Whether the recording that is added to had no books of the session, and gets them. */
static bool adds_books(const struct reading *reading)
{
    return reading->request->appends && reading->holds_recording && reading->earlier_books == 0 &&
           reading->scan.books_count > 0;
}

/* How many samples are new to the file, of all events. */
static uint64_t added_count(const struct reading *reading)
{
    const struct record_scan *scan = &reading->scan;
    return scan->sample_count - reading->earlier_count + scan->event_sample_count -
           reading->earlier_event_count;
}

/*
 * Names come with every read, and after the session's end so do its books and the times of its
 * threads. Without a sample, and after a read that had them, they are no recording, and must not
 * take the place of one. They are something new only to a file that has the session's samples, or
 * may have, and not its books; and times of threads are where no read had the session's end.
 */
static bool is_empty(const struct reading *reading)
{
    bool has_news = added_count(reading) > 0 ||
                    (reading->thread_count > 0 && !reading->session.is_read) || reading->is_first ||
                    reading->scan.fault.code != 0 || adds_books(reading);
    return reading->resumed_bytes == 0 && (reading->fetched_bytes == 0 || !has_news);
}

static int complain_empty(const struct reading *reading)
{
    output_discard(reading->output);
    if (strcmp(reading->session.state, "created") == 0) {
        return complain("the session has not been started, so there is nothing to read");
    }
    if (reading->has_ended && !reading->request->appends) {
        return complain("nothing new to read: the session has ended; --append adds its books%s to "
                        "the file of an earlier read, profctl close closes it",
                        reading->thread_count > 0 ? " and the times of its threads" : "");
    }
    return complain("nothing new to read: the session %s",
                    reading->has_ended ? "has ended; profctl close closes it"
                                       : "is still running; try again later");
}

static int finish(struct reading *reading)
{
    if (is_empty(reading)) {
        return complain_empty(reading);
    }
    if ((reading->packets != NULL && packets_flush(reading->packets, true) < 0) ||
        output_finish(reading->output, &reading->output_fault) < 0) {
        return fail_half_way(reading, reading->output_fault.text);
    }
    if (reading->request->attach.is_json) {
        print_json(reading);
    } else {
        print_summary(strcmp(reading->request->output_path, "-") == 0 ? stderr : stdout, reading);
    }
    if (reading->packets != NULL && packets_are_cut(reading->packets)) {
        (void)complain("read: there was not enough memory for all packets for Perfetto; the "
                       "recording is whole");
    }
    if (reading->scan.fault.code != 0) {
        return complain("the recording %s; nothing more can be said about it",
                        reading->scan.fault.text);
    }
    return EXIT_DONE;
}

int read_run(const struct read_request *request)
{
    cleanup_(reading_done) struct reading reading = {.request = request};
    int status = prepare(&reading);
    if (status == EXIT_DONE) {
        status = fetch(&reading);
    }
    return status == EXIT_DONE ? finish(&reading) : status;
}
