/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs the threads that read /proc. A request becomes its own answer: a failed one until it is
 * read. It is in exactly one place, under the lock: a queue, a thread's slot, or the list of
 * answers. Reading happens without the lock. When a slot is given up its failed answer is handed
 * out, and what the thread reads later is dropped. So a thread may outlive proc_pool_free(), and
 * the last holder frees the object.
 *
 * Two things outlive a session and belong to the whole program: the processes that hung
 * (hung_processes.h), and the places of threads at work. A thread that takes a request starts
 * another one if no thread is idle and a slot is free. One place is for readings that cannot hang,
 * and a few more are for processes of root.
 *
 * A thread hangs by the time for which it was seen asleep, sampled now and then. A thread that
 * waits for a CPU does not hang, and time in which the whole daemon was stopped does not count. A
 * thread that has been at work for the limit, asleep or not, is slow.
 *
 * The pool stops waiting for a slow thread and serves the next request on another, as it does for a
 * lost one. The slow thread is not given up yet.
 *
 * The caller may have a higher priority than the threads. So the lock's holder inherits that
 * priority, and does little under the lock.
 */
#include "proc_pool.h"

#include "account.h"
#include "cleanup.h"
#include "clock.h"
#include "hung_processes.h"
#include "limit_clock.h"
#include "threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#define SLOW_PART         20 /* of the time after which a reading is given up: a thread is slow */
#define LOOK_PART         8  /* this much of it counts between two looks, at the most */
#define KEPT_PLACES       1  /* for what does not hang, */
#define ROOT_PLACES       4  /* and with these for root's processes */
#define IDLE_MAX          2  /* threads */
#define FREE_WAIT_NS      (100 * NS_PER_MS)
#define ACCOUNT_NOT_KNOWN UINT32_MAX

struct slot {
    struct proc_pool *reader;
    bool is_running;             /* it has a thread */
    struct place *place;         /* while busy */
    struct proc_reading *answer; /* while busy; NULL once the slot is given up */
    uint64_t begin_ns;           /* as the next ones, while busy */
    uint64_t look_ns;            /* of the last look */
    uint64_t asleep_ns;
    uint64_t start_time_ns; /* of its process; 0: not known yet */
    bool slow;              /* and so is its place */
    int stat_fd;            /* of the thread itself; -1: it counts as asleep */
};

struct queue {
    struct proc_reading *first;
    struct proc_reading **end;
    size_t unanswered_count; /* with those that are at work or done */
};

/* One lock may be held when this one's is taken, a reader's. */
static struct {
    pthread_mutex_t lock;
    struct place {
        bool taken;
        bool slow;
        uint32_t account; /* of the process; the next ones as well */
        int32_t pid;
        uint64_t start_time_ns;
    } places[PROC_POOL_THREADS_MAX];
} memory;
static pthread_once_t memory_once = PTHREAD_ONCE_INIT;
static int memory_error;

struct proc_pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t holder_count; /* threads, and the owner */
    bool ending;
    bool cgroups;
    uint64_t hang_ns;
    struct queue queues[PROC_URGENCIES];
    struct queue done;
    size_t done_bytes;
    struct proc_pool_counts counts;
    struct slot slots[PROC_POOL_THREADS_MAX];
};

static void append(struct queue *queue, struct proc_reading *reading)
{
    reading->next = NULL;
    if (queue->first == NULL) {
        queue->end = &queue->first;
    }
    *queue->end = reading;
    queue->end = &reading->next;
}

/* The first, or NULL. */
static struct proc_reading *take(struct queue *queue)
{
    struct proc_reading *reading = queue->first;
    if (reading != NULL) {
        queue->first = reading->next;
    }
    return reading;
}

static void free_all(struct queue *queue)
{
    while (queue->first != NULL) {
        free(take(queue));
    }
}

/* The most urgent request, or NULL. */
static struct proc_reading *take_request(struct proc_pool *reader)
{
    struct proc_reading *request = NULL;
    for (size_t i = 0; i < PROC_URGENCIES && request == NULL; i++) {
        request = take(&reader->queues[i]);
    }
    return request;
}

/* The number of slow places, of any account or of one. Called under the memory's lock. */
static size_t count_slow(bool any, uint32_t account)
{
    size_t count = 0;
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        count += memory.places[i].slow && (any || memory.places[i].account == account);
    }
    return count;
}

/* True when no thread is left to read. */
static bool is_everything_slow(void)
{
    (void)pthread_mutex_lock(&memory.lock);
    bool slow = count_slow(true, 0) == PROC_POOL_THREADS_MAX;
    (void)pthread_mutex_unlock(&memory.lock);
    return slow;
}

/* True when the process of a place may hang as well; notes that process. */
static bool may_hang(struct place *place, int32_t pid, uint64_t start_time_ns, uint32_t account)
{
    const size_t kept_count = account == 0 ? KEPT_PLACES : ROOT_PLACES;
    bool hangs = hung_processes_have(pid, start_time_ns);
    (void)pthread_mutex_lock(&memory.lock);
    hangs = hangs || count_slow(false, account) >= PROC_POOL_UID_LOST_MAX ||
            count_slow(true, 0) >= PROC_POOL_THREADS_MAX - kept_count;
    place->account = account;
    place->pid = pid;
    place->start_time_ns = start_time_ns;
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        const struct place *other = &memory.places[i];
        hangs =
            hangs || (other->slow && other->pid == pid && other->start_time_ns == start_time_ns);
    }
    (void)pthread_mutex_unlock(&memory.lock);
    return hangs;
}

/* A free place; NULL: all are taken. */
static struct place *take_place(void)
{
    struct place *place = NULL;
    (void)pthread_mutex_lock(&memory.lock);
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX && place == NULL; i++) {
        place = memory.places[i].taken ? NULL : &memory.places[i];
    }
    if (place != NULL) {
        *place = (struct place){.taken = true, .account = ACCOUNT_NOT_KNOWN};
    }
    (void)pthread_mutex_unlock(&memory.lock);
    return place;
}

static void leave_place(struct place *place)
{
    (void)pthread_mutex_lock(&memory.lock);
    *place = (struct place){0};
    (void)pthread_mutex_unlock(&memory.lock);
}

static void mark_slow(struct slot *slot)
{
    (void)pthread_mutex_lock(&memory.lock);
    slot->slow = slot->place->slow = true;
    (void)pthread_mutex_unlock(&memory.lock);
}

static bool has_requests(const struct proc_pool *reader)
{
    bool any = false;
    for (size_t i = 0; i < PROC_URGENCIES; i++) {
        any = any || reader->queues[i].first != NULL;
    }
    return any;
}

/* True when a thread is at work that is not slow. */
static bool is_working(const struct proc_pool *reader)
{
    bool working = false;
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        const struct slot *slot = &reader->slots[i];
        working = working || (slot->answer != NULL && !slot->slow);
    }
    return working;
}

/* Called by a thread before each call that can hang. */
static bool may_read(int32_t pid, uint64_t start_time_ns, uint32_t uid, void *userdata)
{
    struct slot *slot = userdata;
    struct proc_pool *reader = slot->reader;
    (void)pthread_mutex_lock(&reader->lock);
    slot->start_time_ns = start_time_ns;
    (void)pthread_mutex_unlock(&reader->lock);
    return !may_hang(slot->place, pid, start_time_ns, account_of(uid));
}

/* Takes the reading (taken) of a slot's thread; NULL: there was no memory for it. */
static void finish(struct proc_pool *reader, struct slot *slot, struct proc_reading *reading)
{
    struct proc_reading *failed = take_ptr(slot->answer);
    leave_place(take_ptr(slot->place));
    if (failed == NULL) { /* it was given up */
        if (reading != NULL && reading->error == 0 && !reading->scan.mappings_missing) {
            hung_processes_remove(reading->scan.pid, slot->start_time_ns);
        }
        free(reading);
        return;
    }
    if (reading != NULL) {
        reader->counts.counters.proc_unread += reading->cut || reading->scan.mappings_missing;
        reader->done_bytes += reading->bytes;
        append(&reader->done, reading);
        free(failed);
    } else {
        reader->done_bytes += failed->bytes;
        append(&reader->done, failed);
    }
}

/* Frees the object with its last holder. Unlocks. */
static void drop_holder(struct proc_pool *reader)
{
    reader->holder_count--;
    bool last = reader->holder_count == 0;
    (void)pthread_cond_broadcast(&reader->changed);
    (void)pthread_mutex_unlock(&reader->lock);
    if (last) {
        (void)pthread_cond_destroy(&reader->changed);
        (void)pthread_mutex_destroy(&reader->lock);
        free(reader);
    }
}

/* Takes the next request, unless a thread is at work or the answers fill their room. */
static bool begin(struct proc_pool *reader, struct slot *slot)
{
    if (is_working(reader) || !has_requests(reader) || reader->done_bytes >= PROC_POOL_BYTES_MAX) {
        return false;
    }
    slot->place = take_place();
    if (slot->place == NULL) {
        return false;
    }
    slot->answer = take_request(reader);
    slot->begin_ns = slot->look_ns = limit_clock_ns();
    slot->asleep_ns = 0;
    slot->start_time_ns = 0;
    slot->slow = false;
    return true;
}

static size_t count_idle(const struct proc_pool *reader)
{
    size_t count = 0;
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        count += reader->slots[i].is_running && reader->slots[i].place == NULL;
    }
    return count;
}

static void *run_thread(void *userdata);

/* Starts a thread unless one is idle or all slots have theirs. Unlocks meanwhile. Returns 0, or
 * -errno. */
static int keep_one_idle(struct proc_pool *reader)
{
    size_t i = 0;
    while (i < PROC_POOL_THREADS_MAX && reader->slots[i].is_running) {
        i++;
    }
    if (i == PROC_POOL_THREADS_MAX || count_idle(reader) > 0 || reader->ending) {
        return 0;
    }
    reader->slots[i] = (struct slot){.reader = reader, .stat_fd = -1};
    return threads_start_holder(&reader->lock, &reader->holder_count, &reader->slots[i].is_running,
                                run_thread, &reader->slots[i]);
}

/* Reads what a slot has begun. */
static void read_request(struct proc_pool *reader, struct slot *slot, struct proc_read *scan)
{
    const struct proc_request request = {
        .part = slot->answer->part,
        .urgency = slot->answer->urgency,
        .pid = slot->answer->scan.pid,
        .cgroups = reader->cgroups,
    };
    (void)keep_one_idle(reader);
    (void)pthread_mutex_unlock(&reader->lock);
    struct proc_reading *reading =
        scan == NULL ? NULL : proc_read_read(scan, &request, may_read, slot);
    (void)pthread_mutex_lock(&reader->lock);
    finish(reader, slot, reading);
}

static void *run_thread(void *userdata)
{
    struct slot *slot = userdata;
    struct proc_pool *reader = slot->reader;
    struct proc_read *scan = proc_read_new();
    (void)pthread_setname_np(pthread_self(), "proc-reader");
    (void)pthread_mutex_lock(&reader->lock);
    slot->stat_fd = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
    while (!reader->ending) {
        if (begin(reader, slot)) {
            read_request(reader, slot, scan);
        } else if (count_idle(reader) > IDLE_MAX) {
            break;
        } else {
            (void)pthread_cond_wait(&reader->changed, &reader->lock);
        }
    }
    (void)proc_read_free(scan);
    slot->stat_fd = close_fd(slot->stat_fd);
    slot->is_running = false;
    drop_holder(reader);
    return NULL;
}

static void init_memory(void)
{
    memory_error = threads_init_lock(&memory.lock);
}

static int init_locks(struct proc_pool *reader)
{
    (void)pthread_once(&memory_once, init_memory);
    int r = memory_error < 0 ? memory_error : threads_init_lock(&reader->lock);
    if (r < 0) {
        return r;
    }
    r = threads_init_condition(&reader->changed);
    if (r < 0) {
        (void)pthread_mutex_destroy(&reader->lock);
    }
    return r;
}

int proc_pool_new(bool cgroups, uint64_t hang_ns, struct proc_pool **ret)
{
    struct proc_pool *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return -ENOMEM;
    }
    int r = init_locks(reader);
    if (r < 0) {
        free(reader);
        return r;
    }
    reader->holder_count = 1;
    reader->cgroups = cgroups;
    reader->hang_ns = hang_ns;
    (void)pthread_mutex_lock(&reader->lock);
    r = keep_one_idle(reader);
    (void)pthread_mutex_unlock(&reader->lock);
    if (r < 0) {
        (void)proc_pool_free(reader);
        return r;
    }
    *ret = reader;
    return 0;
}

/* True when threads are left that are not lost, and so end soon. */
static bool has_company(const struct proc_pool *reader)
{
    size_t lost_count = 0;
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        lost_count += reader->slots[i].place != NULL && reader->slots[i].answer == NULL;
    }
    return reader->holder_count > 1 + lost_count;
}

/* True when the thread sleeps; false when it runs or waits for a CPU. */
static bool is_asleep(const struct slot *slot)
{
    char text[256];
    ssize_t size = pread(slot->stat_fd, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    const char *state = strrchr(text, ')');
    return state == NULL || state[1] == '\0' || strchr("SD", state[2]) != NULL;
}

static void look_at_all(struct proc_pool *reader)
{
    const uint64_t now_ns = limit_clock_ns();
    const uint64_t look_max_ns = reader->hang_ns / LOOK_PART;
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        struct slot *slot = &reader->slots[i];
        if (slot->answer == NULL) {
            continue;
        }
        const uint64_t since_ns = now_ns - slot->look_ns;
        slot->look_ns = now_ns;
        if (is_asleep(slot)) {
            slot->asleep_ns += since_ns < look_max_ns ? since_ns : look_max_ns;
        }
        bool slow = slot->asleep_ns >= reader->hang_ns / SLOW_PART ||
                    now_ns - slot->begin_ns >= reader->hang_ns;
        if (slow && !slot->slow) {
            mark_slow(slot);
        }
    }
}

/* Frees all requests and answers, those of lost threads too. */
static void drop_requests(struct proc_pool *reader)
{
    look_at_all(reader);
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        struct slot *slot = &reader->slots[i];
        struct proc_reading *request = take_ptr(slot->answer);
        if (request != NULL && slot->slow) {
            hung_processes_add(request->scan.pid, slot->start_time_ns);
        } else if (request != NULL) {
            mark_slow(slot);
        }
        free(request);
    }
    for (size_t i = 0; i < PROC_URGENCIES; i++) {
        free_all(&reader->queues[i]);
    }
    free_all(&reader->done);
}

struct proc_pool *proc_pool_free(struct proc_pool *reader)
{
    if (reader == NULL) {
        return NULL;
    }
    const struct timespec deadline = clock_timespec(limit_clock_ns() + FREE_WAIT_NS);
    int r = 0;
    (void)pthread_mutex_lock(&reader->lock);
    reader->ending = true;
    (void)pthread_cond_broadcast(&reader->changed);
    while (has_company(reader) && r == 0) {
        r = pthread_cond_timedwait(&reader->changed, &reader->lock, &deadline);
    }
    drop_requests(reader);
    drop_holder(reader);
    return NULL;
}

/* Whether there is room for a request: 0, 1 when it is there already, or -EAGAIN. */
static int find_room(const struct queue *queue, enum proc_part part, int32_t pid)
{
    int r = queue->unanswered_count < PROC_POOL_REQUESTS_MAX ? 0 : -EAGAIN;
    for (const struct proc_reading *other = queue->first; other != NULL; other = other->next) {
        r = other->scan.pid == pid && other->part == part ? 1 : r;
    }
    return r;
}

int proc_pool_ask(struct proc_pool *reader, enum proc_urgency urgency, enum proc_part part,
                  int32_t pid)
{
    struct queue *queue = &reader->queues[urgency];
    (void)pthread_mutex_lock(&reader->lock);
    int r = find_room(queue, part, pid);
    struct proc_reading *request = r == 0 ? proc_reading_failed(part, pid, (int)urgency) : NULL;
    if (request != NULL) {
        queue->unanswered_count++;
        append(queue, request);
        /* A thread at work takes it next. */
        if (!is_working(reader)) {
            (void)pthread_cond_signal(&reader->changed);
        }
    }
    (void)pthread_mutex_unlock(&reader->lock);
    return r == 0 && request == NULL ? -EAGAIN : r;
}

/* The answer of a thread that hangs, or NULL. */
static struct proc_reading *give_up(struct proc_pool *reader)
{
    look_at_all(reader);
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        struct slot *slot = &reader->slots[i];
        if (slot->answer == NULL || slot->asleep_ns < reader->hang_ns) {
            continue;
        }
        struct proc_reading *reading = take_ptr(slot->answer);
        hung_processes_add(reading->scan.pid, slot->start_time_ns);
        reading->error = -ETIMEDOUT;
        reading->scan.end_ns = clock_ns(CLOCK_BOOTTIME);
        reader->counts.counters.proc_unread++;
        if (reader->counts.hung_pid == 0) {
            reader->counts.hung_pid = reading->scan.pid;
        }
        return reading;
    }
    return NULL;
}

/* An answer for a request that no thread is left to read, or NULL. */
static struct proc_reading *refuse(struct proc_pool *reader)
{
    if (is_working(reader) || !has_requests(reader)) {
        return NULL;
    }
    if (!is_everything_slow()) {
        /* A thread has become slow, or a lost one has returned. */
        (void)pthread_cond_signal(&reader->changed);
        return NULL;
    }
    struct proc_reading *reading = take_request(reader);
    reading->error = -EBUSY;
    reading->scan.end_ns = clock_ns(CLOCK_BOOTTIME);
    reader->counts.counters.proc_unread++;
    return reading;
}

struct proc_reading *proc_pool_next(struct proc_pool *reader)
{
    (void)pthread_mutex_lock(&reader->lock);
    struct proc_reading *reading = take(&reader->done);
    if (reading != NULL) {
        bool was_full = reader->done_bytes >= PROC_POOL_BYTES_MAX;
        reader->done_bytes -= reading->bytes;
        if (was_full && reader->done_bytes < PROC_POOL_BYTES_MAX) {
            (void)pthread_cond_signal(&reader->changed);
        }
    }
    reading = reading == NULL ? give_up(reader) : reading;
    reading = reading == NULL ? refuse(reader) : reading;
    if (reading != NULL) {
        reader->queues[reading->urgency].unanswered_count--;
    }
    (void)pthread_mutex_unlock(&reader->lock);
    return reading;
}

struct proc_pool_counts proc_pool_counts(struct proc_pool *reader)
{
    (void)pthread_mutex_lock(&reader->lock);
    struct proc_pool_counts counts = reader->counts;
    (void)pthread_mutex_unlock(&reader->lock);
    return counts;
}
