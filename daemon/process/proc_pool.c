/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the threads that read /proc do; thread_pool.c runs them. A request becomes its own answer: a
 * failed one until it is read. It is in exactly one place, under the pool's lock: a queue, a
 * thread's slot, or the list of answers. Reading happens without the lock. When a slot is given up
 * its failed answer is handed out, and what the thread reads later is dropped.
 *
 * Of equally urgent requests the next one is of the account that has had least of the threads'
 * time. An account that had nothing to ask for saves no time up: it begins where the request stood
 * that was begun last.
 *
 * Two things outlive a session and belong to the whole program: the processes that hung
 * (hung_processes.h), and the places of threads at work. One place is for readings that cannot
 * hang, and a few more are for processes of root.
 */
#include "proc_pool.h"

#include "account.h"
#include "cleanup.h"
#include "clock.h"
#include "hung_processes.h"
#include "proc_cgroups.h"
#include "process_owner.h"
#include "quota.h"
#include "spent_memory.h"
#include "thread_pool.h"
#include "threads.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

#define TURNS             64 /* accounts whose time is remembered */
#define SHARE_PARTS       2
#define KEPT_PLACES       1 /* for what does not hang, */
#define ROOT_PLACES       4 /* and with these for root's processes */
#define IDLE_MAX          2 /* threads */
#define FREE_WAIT_NS      (100 * NS_PER_MS)
#define ACCOUNT_NOT_KNOWN UINT32_MAX

_Static_assert(PROC_POOL_THREADS_MAX == THREAD_POOL_SLOTS, "each slot may have a thread");

/* What a thread has. */
struct slot {
    struct proc_pool *reader;
    struct proc_read *scan;      /* owned; NULL: it could not be made yet */
    struct place *place;         /* while busy */
    struct proc_reading *answer; /* while busy; NULL once the slot is given up */
    struct proc_request request;
    struct proc_reading *reading; /* what the thread has read; NULL: no memory */
    uint64_t start_time_ns;       /* of its process; 0: not known yet; while busy */
    uint32_t account;             /* as the next one, while busy */
    uint64_t begun_ns;
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

struct proc_pool {
    struct thread_pool pool;
    bool cgroups;
    struct command_right commands;
    struct queue queues[PROC_URGENCIES];
    struct queue done;
    size_t done_bytes;
    struct spent_memory spent; /* requests, of the thread that asks */
    /* The threads' time that accounts have had; any other account has had `used_least_ns`. */
    struct {
        uint32_t account;
        uint64_t used_ns;
    } turns[TURNS];
    uint64_t used_least_ns; /* where the request stood that was begun last */
    struct proc_pool_counts counts;
    struct slot slots[PROC_POOL_THREADS_MAX];
};

static void lock(struct proc_pool *reader)
{
    (void)pthread_mutex_lock(&reader->pool.lock);
}

static void unlock(struct proc_pool *reader)
{
    (void)pthread_mutex_unlock(&reader->pool.lock);
}

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

static uint64_t used_by(const struct proc_pool *reader, uint32_t account)
{
    uint64_t used_ns = reader->used_least_ns;
    for (size_t i = 0; i < TURNS; i++) {
        if (reader->turns[i].account == account && reader->turns[i].used_ns > used_ns) {
            used_ns = reader->turns[i].used_ns;
        }
    }
    return used_ns;
}

/* Charges an account, in place of the one that has had least when there is no other place. */
static void charge(struct proc_pool *reader, uint32_t account, uint64_t time_ns)
{
    const uint64_t used_ns = used_by(reader, account) + time_ns;
    size_t place = 0;
    for (size_t i = 0; i < TURNS; i++) {
        if (reader->turns[i].account == account) {
            place = i;
            break;
        }
        place = reader->turns[i].used_ns < reader->turns[place].used_ns ? i : place;
    }
    reader->turns[place].account = account;
    reader->turns[place].used_ns = used_ns;
}

/* Takes the first request of the account that has had least, or NULL. */
static struct proc_reading *take_fairly(struct proc_pool *reader, struct queue *queue)
{
    struct proc_reading **least = NULL;
    uint64_t least_ns = UINT64_MAX;
    for (struct proc_reading **at = &queue->first; *at != NULL; at = &(*at)->next) {
        const uint64_t used_ns = used_by(reader, (*at)->scan.account);
        if (least == NULL || used_ns < least_ns) {
            least = at;
            least_ns = used_ns;
        }
    }
    struct proc_reading *request = least == NULL ? NULL : *least;
    if (request != NULL) {
        *least = request->next;
        queue->end = *least == NULL ? least : queue->end;
    }
    return request;
}

/* The most urgent request, or NULL. */
static struct proc_reading *take_request(struct proc_pool *reader)
{
    struct proc_reading *request = NULL;
    for (size_t i = 0; i < PROC_URGENCIES && request == NULL; i++) {
        request = take_fairly(reader, &reader->queues[i]);
    }
    return request;
}

/* The number of slow places but `own`, of any account or of one. Called under the memory's lock. */
static size_t count_slow(const struct place *own, bool any, uint32_t account)
{
    size_t count = 0;
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        const struct place *place = &memory.places[i];
        count += place != own && place->slow && (any || place->account == account);
    }
    return count;
}

/* True when no thread is left to read. */
static bool is_everything_slow(void)
{
    (void)pthread_mutex_lock(&memory.lock);
    bool slow = count_slow(NULL, true, 0) == PROC_POOL_THREADS_MAX;
    (void)pthread_mutex_unlock(&memory.lock);
    return slow;
}

/* True when the process of a place may hang as others do; notes that process. The place's own
 * thread may be slow already: it goes on, since no further thread is lost by that. */
static bool may_hang(struct place *place, int32_t pid, uint64_t start_time_ns, uint32_t account)
{
    const size_t kept_count = account == 0 ? KEPT_PLACES : ROOT_PLACES;
    bool hangs = hung_processes_have(pid, start_time_ns);
    (void)pthread_mutex_lock(&memory.lock);
    hangs = hangs || count_slow(place, false, account) >= PROC_POOL_UID_LOST_MAX ||
            count_slow(place, true, 0) >= PROC_POOL_THREADS_MAX - kept_count;
    place->account = account;
    place->pid = pid;
    place->start_time_ns = start_time_ns;
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        const struct place *other = &memory.places[i];
        hangs = hangs || (other != place && other->slow && other->pid == pid &&
                          other->start_time_ns == start_time_ns);
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

static void slow(void *owner, size_t number)
{
    const struct slot *slot = &((struct proc_pool *)owner)->slots[number];
    (void)pthread_mutex_lock(&memory.lock);
    slot->place->slow = true;
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
static bool is_working(struct proc_pool *reader)
{
    return thread_pool_working_count(&reader->pool) > 0;
}

/* Called by a thread before each call that can hang. */
static bool may_read(int32_t pid, uint64_t start_time_ns, uint32_t account, void *userdata)
{
    struct slot *slot = userdata;
    struct proc_pool *reader = slot->reader;
    lock(reader);
    slot->start_time_ns = start_time_ns;
    unlock(reader);
    return !may_hang(slot->place, pid, start_time_ns, account);
}

/* Takes what was read; NULL: there was no memory for it. */
static void finish(void *owner, size_t number, bool was_given_up)
{
    struct proc_pool *reader = owner;
    struct slot *slot = &reader->slots[number];
    struct proc_reading *reading = take_ptr(slot->reading);
    struct proc_reading *failed = take_ptr(slot->answer);
    charge(reader, slot->account, clock_ns(CLOCK_MONOTONIC) - slot->begun_ns);
    leave_place(take_ptr(slot->place));
    if (was_given_up) {
        if (reading != NULL && reading->error == 0 && !reading->scan.mappings_missing) {
            hung_processes_remove(reading->scan.pid, slot->start_time_ns);
        }
        free(reading);
        return;
    }
    if (reading != NULL) {
        reader->counts.counters.proc_unread +=
            reading->part != PROC_PART_CGROUPS && (reading->cut || reading->has_failed);
        spent_memory_add(&reader->spent, failed);
    } else {
        reading = failed;
    }
    reader->done_bytes += reading->bytes;
    append(&reader->done, reading);
}

/* Takes the next request, unless a thread is at work or the answers fill their room. */
static bool begin(void *owner, size_t number)
{
    struct proc_pool *reader = owner;
    struct slot *slot = &reader->slots[number];
    if (reader->pool.is_ending || is_working(reader) || !has_requests(reader) ||
        reader->done_bytes >= PROC_POOL_BYTES_MAX) {
        return false;
    }
    slot->place = take_place();
    if (slot->place == NULL) {
        return false;
    }
    slot->answer = take_request(reader);
    slot->request = (struct proc_request){
        .part = slot->answer->part,
        .urgency = slot->answer->urgency,
        .pid = slot->answer->scan.pid,
        .cgroups = reader->cgroups,
        .commands = reader->commands,
    };
    slot->start_time_ns = 0;
    slot->account = slot->answer->scan.account;
    slot->begun_ns = clock_ns(CLOCK_MONOTONIC);
    reader->used_least_ns = used_by(reader, slot->account);
    return true;
}

static void work(void *owner, size_t number)
{
    struct slot *slot = &((struct proc_pool *)owner)->slots[number];
    if (slot->request.part == PROC_PART_CGROUPS) {
        slot->reading = proc_cgroups_read(slot->request.urgency);
        return;
    }
    if (slot->scan == NULL) { /* there were no descriptors, or there was no memory */
        slot->scan = proc_read_new();
    }
    slot->reading =
        slot->scan == NULL ? NULL : proc_read_read(slot->scan, &slot->request, may_read, slot);
}

static void enter(void *owner, size_t number)
{
    struct proc_pool *reader = owner;
    struct slot *slot = &reader->slots[number];
    (void)pthread_setname_np(pthread_self(), "proc-reader");
    slot->reader = reader;
    slot->scan = proc_read_new();
}

static void leave(void *owner, size_t number)
{
    struct slot *slot = &((struct proc_pool *)owner)->slots[number];
    slot->scan = proc_read_free(slot->scan);
}

/* A thread may come here after the session has ended, whose end had given memory back. What it has
 * freed since would stay. */
static void free_pool(void *owner)
{
    struct proc_pool *reader = owner;
    spent_memory_free(&reader->spent);
    free(reader);
    (void)malloc_trim(0);
}

static void init_memory(void)
{
    threads_init_lock(&memory.lock);
}

int proc_pool_new(bool cgroups, uint64_t hang_ns, struct proc_pool **ret)
{
    static const struct thread_pool_calls calls = {.enter = enter,
                                                   .leave = leave,
                                                   .begin = begin,
                                                   .work = work,
                                                   .slow = slow,
                                                   .finish = finish,
                                                   .free = free_pool};
    struct proc_pool *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return -ENOMEM;
    }
    (void)pthread_once(&memory_once, init_memory);
    thread_pool_init(&reader->pool, &calls, reader, hang_ns, IDLE_MAX, true);
    reader->cgroups = cgroups;
    lock(reader);
    int r = thread_pool_keep_one_idle(&reader->pool);
    unlock(reader);
    if (r < 0) {
        (void)proc_pool_free(reader);
        return r;
    }
    *ret = reader;
    return 0;
}

void proc_pool_read_commands(struct proc_pool *reader, const struct command_right *right)
{
    lock(reader);
    reader->commands = *right;
    unlock(reader);
}

/* Whether a reading is of one process, which its pid names. */
static bool is_of_process(enum proc_part part)
{
    return part != PROC_PART_PIDS && part != PROC_PART_CGROUPS && part != PROC_PART_TIMES;
}

/* Frees all requests and answers, those of lost threads too. */
static void drop_requests(struct proc_pool *reader)
{
    thread_pool_look(&reader->pool);
    for (size_t i = 0; i < PROC_POOL_THREADS_MAX; i++) {
        struct proc_reading *request = take_ptr(reader->slots[i].answer);
        if (request != NULL && reader->pool.slots[i].is_slow && is_of_process(request->part)) {
            hung_processes_add(request->scan.pid, reader->slots[i].start_time_ns);
        }
        if (request != NULL) {
            thread_pool_give_up(&reader->pool, i);
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
    lock(reader);
    thread_pool_end(&reader->pool, FREE_WAIT_NS);
    drop_requests(reader);
    thread_pool_release(&reader->pool);
    return NULL;
}

/* Whether there is room for a request: 0, 1 when it is there already, or -EAGAIN. */
static int find_room(const struct queue *queue, enum proc_part part, int32_t pid, uint32_t account)
{
    size_t own_count = 0;
    for (const struct proc_reading *other = queue->first; other != NULL; other = other->next) {
        if (other->scan.pid == pid && other->part == part) {
            return 1;
        }
        own_count += other->scan.account == account;
    }
    return quota_rule_allows(PROC_POOL_REQUESTS_MAX, SHARE_PARTS, queue->unanswered_count,
                             own_count, 1)
               ? 0
               : -EAGAIN;
}

/* Whether a right can cover the command line of a process that is charged to an account. */
static bool may_be_covered(const struct command_right *right, uint32_t account)
{
    return right->is_given && account != PROCESS_OWNER_UNKNOWN &&
           (right->uid == 0 || account == account_of(right->uid));
}

int proc_pool_ask(struct proc_pool *reader, enum proc_urgency urgency, enum proc_part part,
                  int32_t pid)
{
    struct queue *queue = &reader->queues[urgency];
    /* Of times the pid only says where they begin. */
    const uint32_t account = pid == 0 || part == PROC_PART_TIMES ? 0 : process_owner(pid);
    spent_memory_free(&reader->spent);
    if (part == PROC_PART_COMMAND && !may_be_covered(&reader->commands, account)) {
        return -EAGAIN;
    }
    lock(reader);
    int r = find_room(queue, part, pid, account);
    struct proc_reading *request = r == 0 ? proc_reading_failed(part, pid, (int)urgency) : NULL;
    if (request != NULL) {
        request->scan.account = account;
        queue->unanswered_count++;
        append(queue, request);
        /* A thread at work takes it next. */
        if (!is_working(reader)) {
            thread_pool_tell(&reader->pool);
        }
    }
    unlock(reader);
    return r == 0 && request == NULL ? -EAGAIN : r;
}

/* The answer of a thread that hangs, or NULL. */
static struct proc_reading *give_up(struct proc_pool *reader)
{
    size_t number = 0;
    thread_pool_look(&reader->pool);
    while (number < PROC_POOL_THREADS_MAX && !thread_pool_is_hung(&reader->pool, number)) {
        number++;
    }
    if (number == PROC_POOL_THREADS_MAX) {
        return NULL;
    }
    thread_pool_give_up(&reader->pool, number);
    struct proc_reading *reading = take_ptr(reader->slots[number].answer);
    if (is_of_process(reading->part)) {
        hung_processes_add(reading->scan.pid, reader->slots[number].start_time_ns);
    }
    if (is_of_process(reading->part) && reader->counts.hung_pid == 0) {
        reader->counts.hung_pid = reading->scan.pid;
    }
    reading->error = -ETIMEDOUT;
    reading->scan.end_ns = clock_ns(CLOCK_BOOTTIME);
    reader->counts.counters.proc_unread++;
    return reading;
}

/* An answer for a request that no thread is left to read, or NULL. */
static struct proc_reading *refuse(struct proc_pool *reader)
{
    if (is_working(reader) || !has_requests(reader)) {
        return NULL;
    }
    if (!is_everything_slow()) {
        /* A thread has become slow, or a lost one has returned. */
        thread_pool_tell(&reader->pool);
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
    lock(reader);
    struct proc_reading *reading = take(&reader->done);
    if (reading != NULL) {
        bool was_full = reader->done_bytes >= PROC_POOL_BYTES_MAX;
        reader->done_bytes -= reading->bytes;
        if (was_full && reader->done_bytes < PROC_POOL_BYTES_MAX) {
            thread_pool_tell(&reader->pool);
        }
    }
    reading = reading == NULL ? give_up(reader) : reading;
    reading = reading == NULL ? refuse(reader) : reading;
    if (reading != NULL) {
        reader->queues[reading->urgency].unanswered_count--;
    }
    unlock(reader);
    return reading;
}

struct proc_pool_counts proc_pool_counts(struct proc_pool *reader)
{
    lock(reader);
    struct proc_pool_counts counts = reader->counts;
    unlock(reader);
    return counts;
}
