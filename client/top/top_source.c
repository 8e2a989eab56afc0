/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All that the two threads share is in `shared`, under its lock; the connection and what else a
 * round needs is the thread's alone. What is read waits in a queue of bounded size: when it is
 * full, as while the terminal is stopped, the thread reads no more, and the daemon keeps, drops and
 * counts what follows.
 */
#include "top_source.h"

#include "cleanup.h"
#include "clock.h"
#include "connection.h"
#include "doctor.h"
#include "grow.h"
#include "record.h"
#include "session_status.h"
#include "threads.h"
#include "top_terminal.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#define QUEUE_BYTES_MAX ((size_t)32 << 20)
#define READS_MAX       64 /* in a round */
#define RETRY_NS        NS_PER_S
#define ENDING_NS       NS_PER_S
#define DESCRIBE_NS     (30 * NS_PER_S)

struct shared {
    struct top_news news; /* what was not taken yet */
    size_t piece_capacity;
    size_t queued_bytes;
    uint64_t call_ns;   /* since when the thread waits for the daemon; 0: it does not */
    uint64_t wanted_hz; /* of another session; 0: none is wanted */
    bool is_paused;
    bool is_ending;
    bool is_idle;   /* paused, and without a session */
    bool has_ended; /* the thread touches nothing any more */
};

/* What was said of a failure, and when. */
struct described {
    struct profctl_fault fault; /* code 0: of none yet */
    char sentence[DOCTOR_SENTENCE_BYTES];
    uint64_t at_ns;
};

struct top_source {
    struct record_request request; /* a copy, whose members are borrowed */
    char *base_config;             /* owned: a thread that hangs may outlive the caller's */
    uint64_t interval_ns;
    int event_fd;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct shared shared;
    /* The thread's own: */
    struct profctl *conn;
    uint64_t frequency_hz;
    uint64_t former_hz;
    bool has_session;
    struct described described;
    uint8_t *buffer; /* owned; PROFCTL_READ_BYTES_MAX */
};

void top_news_done(struct top_news *news)
{
    for (size_t i = 0; i < news->piece_count; i++) {
        free(news->pieces[i].bytes);
    }
    free(news->pieces);
    top_books_done(&news->books);
    *news = (struct top_news){0};
}

static void wake_reader(const struct top_source *source)
{
    const uint64_t one = 1;
    (void)!write(source->event_fd, &one, sizeof one);
}

static void set_state(struct top_source *source, enum top_state state, const char *text)
{
    (void)pthread_mutex_lock(&source->lock);
    source->shared.news.state = state;
    (void)snprintf(source->shared.news.text, sizeof source->shared.news.text, "%s", text);
    (void)pthread_mutex_unlock(&source->lock);
    wake_reader(source);
}

static void add_note(struct top_source *source, const char *text)
{
    (void)pthread_mutex_lock(&source->lock);
    (void)snprintf(source->shared.news.note, sizeof source->shared.news.note, "%s", text);
    (void)pthread_mutex_unlock(&source->lock);
}

/* Around calls that wait for the daemon. */
static void note_call(struct top_source *source, bool is_waiting)
{
    (void)pthread_mutex_lock(&source->lock);
    source->shared.call_ns = is_waiting ? clock_ns(CLOCK_MONOTONIC) : 0;
    (void)pthread_mutex_unlock(&source->lock);
}

static void end_session(struct top_source *source)
{
    if (source->has_session) {
        (void)profctl_close(source->conn, NULL);
    }
    source->has_session = false;
    source->conn = profctl_disconnect(source->conn);
}

/* What the doctor says of a failure. It may start other programs, such as systemctl, and wait for
 * them. So a failure that stays is described anew after DESCRIBE_NS only, and meanwhile the daemon
 * owes no answer. The holder of another session is asked of the daemon alone, each time. */
static const char *describe(struct top_source *source, const struct profctl_fault *fault)
{
    struct described *described = &source->described;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    bool is_held = fault->code == EEXIST;
    bool is_same = described->fault.code == fault->code &&
                   strcmp(described->fault.text, fault->text) == 0 &&
                   now_ns - described->at_ns < DESCRIBE_NS;
    if (is_held) {
        (void)doctor_describe_create(source->conn, fault, described->sentence);
        described->fault.code = 0;
    } else if (!is_same) {
        note_call(source, false);
        (void)doctor_describe_create(source->conn, fault, described->sentence);
        note_call(source, true);
        described->fault = *fault;
        described->at_ns = clock_ns(CLOCK_MONOTONIC);
    }
    return described->sentence;
}

/* Why there is no session. After a change of the rate that was refused the former one holds. */
static int fail_begin(struct top_source *source, const struct profctl_fault *fault)
{
    const char *sentence = describe(source, fault);
    enum top_state state = fault->code == EEXIST ? TOP_BUSY : TOP_FAILED;
    if (fault->code == EINVAL && source->former_hz > 0) {
        source->frequency_hz = source->former_hz;
        source->former_hz = 0;
        add_note(source, sentence);
        source->conn = profctl_disconnect(source->conn);
        return -EAGAIN;
    }
    set_state(source, state, sentence);
    if (state == TOP_FAILED) {
        source->conn = profctl_disconnect(source->conn); /* with a session that did not start */
    }
    return -fault->code;
}

static void take_remarks(struct top_source *source, bool lacks_kernel)
{
    const struct connection_notes *notes = connection_notes(source->conn);
    if (lacks_kernel) {
        add_note(source, RECORD_LACKS_KERNEL);
    } else if (notes->remark_count > 0) {
        add_note(source, notes->remarks[0]);
    }
}

/* Where another session is, no Create is tried: the daemon would prepare it for nothing. */
static bool is_held(struct top_source *source)
{
    cleanup_(session_status_done) struct session_status status = {0};
    struct profctl_fault fault = {0};
    return session_status_ask(source->conn, &status, &fault) == 0 && status.id != NULL;
}

/* Returns 0, or -errno after set_state(). */
static int begin_session(struct top_source *source)
{
    struct profctl_fault fault = {0};
    cleanup_(freep) char *config = NULL;
    bool lacks_kernel = false;
    if (source->conn == NULL &&
        profctl_connect(source->request.socket_path, &source->conn, &fault) < 0) {
        char text[TOP_TEXT_BYTES];
        (void)snprintf(text, sizeof text, "daemon: %s", fault.text);
        set_state(source, TOP_FAILED, text);
        return -fault.code;
    }
    if (is_held(source)) {
        fault.code = EEXIST;
        return fail_begin(source, &fault);
    }
    if (source->frequency_hz > 0 &&
        record_config_rate(source->base_config, source->frequency_hz, &config) < 0) {
        set_state(source, TOP_FAILED, "there is not enough memory");
        return -ENOMEM;
    }
    if (record_session_try(source->conn, config == NULL ? source->base_config : config, false,
                           &lacks_kernel, &fault) < 0 ||
        profctl_start(source->conn, &fault) < 0) {
        record_name_option(&source->request, &fault);
        return fail_begin(source, &fault);
    }
    source->has_session = true;
    source->former_hz = 0;
    take_remarks(source, lacks_kernel);
    (void)pthread_mutex_lock(&source->lock);
    source->shared.news.frequency_hz = source->frequency_hz;
    (void)pthread_mutex_unlock(&source->lock);
    set_state(source, TOP_RUNNING, "");
    return 0;
}

/* Puts a copy of what was read into the queue. */
static int queue_piece(struct top_source *source, size_t size_bytes)
{
    void *copy = malloc(size_bytes);
    if (copy == NULL) {
        return -ENOMEM;
    }
    memcpy(copy, source->buffer, size_bytes);
    (void)pthread_mutex_lock(&source->lock);
    struct top_news *news = &source->shared.news;
    int r = grow(news->pieces, source->shared.piece_capacity, news->piece_count + 1);
    if (r == 0) {
        news->pieces[news->piece_count++] = (struct top_piece){copy, size_bytes};
        source->shared.queued_bytes += size_bytes;
    }
    (void)pthread_mutex_unlock(&source->lock);
    if (r < 0) {
        free(copy);
    }
    return r;
}

static bool is_queue_full(struct top_source *source)
{
    (void)pthread_mutex_lock(&source->lock);
    bool is_full = source->shared.queued_bytes >= QUEUE_BYTES_MAX;
    (void)pthread_mutex_unlock(&source->lock);
    return is_full;
}

/* The session is over, or its daemon. */
static void lose_session(struct top_source *source, const char *text)
{
    set_state(source, TOP_FAILED, text); /* which may be the connection's */
    source->has_session = false;
    source->conn = profctl_disconnect(source->conn);
}

/* Reads what is ready. Returns 0, or -errno after lose_session(). */
static int fetch(struct top_source *source)
{
    size_t size_bytes = 1;
    bool end = false;
    for (int i = 0; i < READS_MAX && size_bytes > 0 && !is_queue_full(source); i++) {
        int r =
            profctl_read(source->conn, source->buffer, PROFCTL_READ_BYTES_MAX, &size_bytes, &end);
        if (r == 0 && size_bytes > 0) {
            r = queue_piece(source, size_bytes);
        }
        if (r < 0) {
            lose_session(source, r == -ENOMEM ? "there is not enough memory"
                                              : connection_notes(source->conn)->fault.text);
            return r;
        }
        if (end) {
            end_session(source);
            set_state(source, TOP_FAILED, "the session was ended; another one begins");
            return -EBADFD;
        }
    }
    return 0;
}

static void ask_books(struct top_source *source)
{
    cleanup_(session_status_done) struct session_status status = {0};
    struct profctl_fault fault = {0};
    struct top_books books = {0};
    if (session_status_ask(source->conn, &status, &fault) < 0 || status.id == NULL ||
        strcmp(status.id, connection_notes(source->conn)->session) != 0 || status.books == NULL ||
        top_books_read(status.books, status.id, clock_ns(CLOCK_BOOTTIME), &books) < 0) {
        return;
    }
    (void)pthread_mutex_lock(&source->lock);
    top_books_done(&source->shared.news.books);
    source->shared.news.books = books;
    source->shared.news.has_books = true;
    (void)pthread_mutex_unlock(&source->lock);
}

/* What the other thread wants, as it is now. */
static struct shared look(struct top_source *source)
{
    (void)pthread_mutex_lock(&source->lock);
    struct shared seen = source->shared;
    source->shared.wanted_hz = 0;
    (void)pthread_mutex_unlock(&source->lock);
    return seen;
}

/* Waits until the other thread wants something, or until then. */
static void wait_until(struct top_source *source, uint64_t until_ns)
{
    const struct timespec until = clock_timespec(until_ns);
    int r = 0;
    (void)pthread_mutex_lock(&source->lock);
    while (r == 0 && !source->shared.is_ending && source->shared.wanted_hz == 0 &&
           source->shared.is_paused == source->shared.is_idle) {
        r = pthread_cond_timedwait(&source->changed, &source->lock, &until);
    }
    (void)pthread_mutex_unlock(&source->lock);
}

static void set_idle(struct top_source *source, bool is_idle)
{
    (void)pthread_mutex_lock(&source->lock);
    source->shared.is_idle = is_idle;
    (void)pthread_cond_broadcast(&source->changed);
    (void)pthread_mutex_unlock(&source->lock);
}

/* One round. Returns how long to wait for the next. */
static uint64_t work(struct top_source *source, const struct shared *seen)
{
    uint64_t wait_ns = source->interval_ns;
    if (seen->wanted_hz > 0) {
        source->former_hz = source->has_session ? source->frequency_hz : 0;
        source->frequency_hz = seen->wanted_hz;
    }
    if (seen->is_paused || seen->wanted_hz > 0) {
        end_session(source);
    }
    set_idle(source, seen->is_paused);
    if (seen->is_paused) {
        return wait_ns;
    }
    if (!source->has_session) {
        int r = begin_session(source);
        return r == 0 ? wait_ns : r == -EAGAIN ? 0 : RETRY_NS;
    }
    if (fetch(source) < 0) {
        return 0; /* the next one may begin at once */
    }
    ask_books(source);
    wake_reader(source);
    return wait_ns;
}

static void *run(void *userdata)
{
    struct top_source *source = userdata;
    sigset_t faults;
    (void)sigemptyset(&faults);
    top_terminal_add_faults(&faults);
    (void)pthread_sigmask(SIG_UNBLOCK, &faults, NULL); /* what restores the terminal must run */
    for (struct shared seen = look(source); !seen.is_ending; seen = look(source)) {
        uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
        note_call(source, true);
        uint64_t wait_ns = work(source, &seen);
        note_call(source, false);
        wait_until(source, began_ns + wait_ns);
    }
    end_session(source);
    (void)pthread_mutex_lock(&source->lock);
    source->shared.has_ended = true;
    (void)pthread_cond_broadcast(&source->changed);
    (void)pthread_mutex_unlock(&source->lock);
    return NULL;
}

static void release(struct top_source *source)
{
    source->event_fd = close_fd(source->event_fd);
    top_news_done(&source->shared.news);
    free(source->buffer);
    free(source->base_config);
    free(source);
}

static int prepare(struct top_source *source)
{
    source->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    source->buffer = malloc(PROFCTL_READ_BYTES_MAX);
    if (source->event_fd < 0) {
        return -errno;
    }
    if (source->buffer == NULL || source->base_config == NULL) {
        return -ENOMEM;
    }
    threads_init_lock(&source->lock);
    int r = threads_init_condition(&source->changed);
    return r < 0 ? r : threads_start(run, source);
}

int top_source_new(const struct record_request *request, const char *config, uint64_t interval_ns,
                   struct top_source **ret)
{
    struct top_source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        return -ENOMEM;
    }
    *source = (struct top_source){
        .request = *request,
        .base_config = strdup(config),
        .interval_ns = interval_ns,
        .event_fd = -1,
    };
    int r = prepare(source);
    if (r < 0) {
        release(source);
        return r;
    }
    *ret = source;
    return 0;
}

/* Waits, with the lock held, until `*is_so`, a second at most. */
static bool wait_for(struct top_source *source, const bool *is_so)
{
    const struct timespec until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + ENDING_NS);
    int r = 0;
    while (r == 0 && !*is_so) {
        r = pthread_cond_timedwait(&source->changed, &source->lock, &until);
    }
    return *is_so;
}

struct top_source *top_source_free(struct top_source *source)
{
    if (source == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&source->lock);
    source->shared.is_ending = true;
    (void)pthread_cond_broadcast(&source->changed);
    bool has_ended = wait_for(source, &source->shared.has_ended);
    (void)pthread_mutex_unlock(&source->lock);
    if (has_ended) {
        release(source);
    }
    return NULL;
}

int top_source_fd(const struct top_source *source)
{
    return source->event_fd;
}

enum top_state top_source_state(struct top_source *source, char *ret_text)
{
    (void)pthread_mutex_lock(&source->lock);
    enum top_state state = source->shared.news.state;
    (void)snprintf(ret_text, TOP_TEXT_BYTES, "%s", source->shared.news.text);
    (void)pthread_mutex_unlock(&source->lock);
    return state;
}

void top_source_take(struct top_source *source, struct top_news *ret)
{
    uint64_t count = 0;
    (void)!read(source->event_fd, &count, sizeof count);
    (void)pthread_mutex_lock(&source->lock);
    struct top_news *news = &source->shared.news;
    *ret = *news;
    ret->silent_ns =
        source->shared.call_ns == 0 ? 0 : clock_ns(CLOCK_MONOTONIC) - source->shared.call_ns;
    news->note[0] = '\0';
    news->pieces = NULL;
    news->piece_count = 0;
    news->books = (struct top_books){0};
    news->has_books = false;
    source->shared.piece_capacity = 0;
    source->shared.queued_bytes = 0;
    (void)pthread_mutex_unlock(&source->lock);
}

void top_source_set_rate(struct top_source *source, uint64_t frequency_hz)
{
    (void)pthread_mutex_lock(&source->lock);
    source->shared.wanted_hz = frequency_hz;
    (void)pthread_cond_broadcast(&source->changed);
    (void)pthread_mutex_unlock(&source->lock);
}

void top_source_pause(struct top_source *source)
{
    (void)pthread_mutex_lock(&source->lock);
    source->shared.is_paused = true;
    (void)pthread_cond_broadcast(&source->changed);
    (void)wait_for(source, &source->shared.is_idle);
    (void)pthread_mutex_unlock(&source->lock);
}

void top_source_resume(struct top_source *source)
{
    (void)pthread_mutex_lock(&source->lock);
    source->shared.is_paused = false;
    (void)pthread_cond_broadcast(&source->changed);
    (void)pthread_mutex_unlock(&source->lock);
}
