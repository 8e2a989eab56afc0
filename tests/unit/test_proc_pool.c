/* SPDX-License-Identifier: Apache-2.0 */

/* Which processes hang, what is done meanwhile, and what is refused. No reading here is of /proc.
 */
#include "fake_proc_read.h"
#include "proc_pool.h"
#include "process_owner.h"
#include "unit_test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define WAIT_MS        10000
#define SHORT_MS       200
#define SHORT_NS       (SHORT_MS * UINT64_C(1000000))
#define HANGS_FROM     1000 /* pids of processes that hang; each has its uid in the hundreds */
#define IDENTITY_HANGS 9999
#define SPINS_PID      901
#define SLEEPS_PID     902 /* its reading sleeps until its thread is slow, before anything can hang */
#define BIG_PID        900 /* whose reading takes much memory */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool let_go;
static atomic_bool spun;
static size_t hanging_count;
static bool closed; /* no thread reads before it is opened */
static uint64_t
    start_time_ns; /* of all processes of a test: those of the last one are remembered */

static uint32_t uid_of(int32_t pid)
{
    return (uint32_t)pid / 100;
}

/* In place of the pool's own look at /proc. */
uint32_t process_owner(int32_t pid)
{
    return uid_of(pid);
}

static int read_fake(const struct proc_request *request, proc_read_guard_fn guard, void *userdata,
                     struct proc_reading *reading)
{
    const int32_t pid = request->pid;
    const bool hangs =
        pid >= HANGS_FROM && (request->part != PROC_PART_IDENTITY || pid == IDENTITY_HANGS);
    (void)pthread_mutex_lock(&lock);
    while (closed) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    (void)pthread_mutex_unlock(&lock);
    if (pid == SLEEPS_PID) {
        (void)poll(NULL, 0, SHORT_MS);
    }
    const bool asks = request->part != PROC_PART_IDENTITY && request->part != PROC_PART_TIMES;
    if (asks && !guard(pid, start_time_ns, uid_of(pid), userdata)) {
        reading->scan.mappings_missing = reading->has_failed = true;
        return 0;
    }
    while (pid == SPINS_PID && !atomic_load(&spun)) {
    }
    (void)pthread_mutex_lock(&lock);
    hanging_count += hangs;
    (void)pthread_cond_broadcast(&changed);
    while (hangs && !let_go) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    hanging_count -= hangs;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
    reading->bytes = pid == BIG_PID ? PROC_POOL_BYTES_MAX : reading->bytes;
    return 0;
}

/* Of the test. */
static struct proc_pool *reader;

/* A reading is given up after `hang_ns`: soon, or as the daemon does where nothing may be. */
static int set_up_with(uint64_t hang_ns)
{
    let_go = closed = false;
    atomic_store(&spun, false);
    start_time_ns++;
    fake_proc_read_set(read_fake);
    return proc_pool_new(false, hang_ns, &reader);
}

static int set_up_short(void **state)
{
    (void)state;
    return set_up_with(SHORT_NS);
}

static int set_up_shipping(void **state)
{
    (void)state;
    return set_up_with(PROC_POOL_HANG_NS);
}

static void set(bool *flag, bool value)
{
    (void)pthread_mutex_lock(&lock);
    *flag = value;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

/* What hangs ends before the next test. */
static int tear_down(void **state)
{
    (void)state;
    set(&closed, false);
    atomic_store(&spun, true);
    (void)proc_pool_free(reader);
    set(&let_go, true);
    (void)pthread_mutex_lock(&lock);
    while (hanging_count > 0) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

static void ask(int32_t pid)
{
    assert_int_equal(proc_pool_ask(reader, PROC_SAMPLED, PROC_PART_ALL, pid), 0);
}

/* For a list: what others wait for goes before it. Returns as proc_pool_ask(). */
static int list(int32_t pid)
{
    return proc_pool_ask(reader, PROC_LISTED, PROC_PART_ALL, pid);
}

static void list_many(int32_t first_pid, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        assert_int_equal(list(first_pid + i), 0);
    }
}

/* Until more of them hang than so many. */
static void wait_for_hanging(size_t count)
{
    (void)pthread_mutex_lock(&lock);
    while (hanging_count <= count) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    (void)pthread_mutex_unlock(&lock);
}

static size_t count_hanging(void)
{
    (void)pthread_mutex_lock(&lock);
    size_t count = hanging_count;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

static struct proc_reading *next_reading(void)
{
    struct proc_reading *reading = NULL;
    for (int ms = 0; (reading = proc_pool_next(reader)) == NULL; ms++) {
        assert_true(ms < WAIT_MS);
        (void)poll(NULL, 0, 1);
    }
    return reading;
}

/* Waits for an answer, which must be of that pid. Returns its error; `missing` whether it is
 * without mappings. */
static int answer(int32_t pid, bool missing)
{
    struct proc_reading *reading = next_reading();
    int error = reading->error;
    assert_int_equal(reading->scan.pid, pid);
    assert_int_equal(reading->scan.mappings_missing, missing);
    free(reading);
    return error;
}

/* Asks for an identity, which has that error. */
static void expect_identity(int32_t pid, int error)
{
    assert_int_equal(proc_pool_ask(reader, PROC_SAMPLED, PROC_PART_IDENTITY, pid), 0);
    assert_int_equal(answer(pid, false), error);
}

/* Asks for a process, whose answer is without mappings if `missing`, and has that error. */
static void expect(int32_t pid, bool missing, int error)
{
    ask(pid);
    assert_int_equal(answer(pid, missing), error);
}

TEST_WITH(gives_up_what_hangs_and_goes_on, set_up_short, tear_down)
{
    ask(HANGS_FROM);
    expect(7, false, 0);
    assert_int_equal(answer(HANGS_FROM, false), -ETIMEDOUT);
    /* It is not tried again, but for what does not hang. */
    expect(HANGS_FROM, true, 0);
    expect(HANGS_FROM + 1, false, -ETIMEDOUT);
    struct proc_pool_counts counts = proc_pool_counts(reader);
    assert_int_equal(counts.counters.proc_unread, 3);
    assert_int_equal(counts.hung_pid, HANGS_FROM);
    /* Two threads of this uid are lost: it has no more. Another one has. */
    expect(HANGS_FROM + 2, true, 0);
    expect(8, false, 0);
    /* They come back, and no request takes what they bring. */
    set(&let_go, true);
    for (int ms = 0; ms < 20; ms++) {
        (void)poll(NULL, 0, 1);
        assert_null(proc_pool_next(reader));
    }
    /* But it was whole: they may be tried again. */
    expect(HANGS_FROM, false, 0);
    expect(HANGS_FROM + 2, false, 0);
}

/* The pid of such a reading says where it begins. */
TEST_WITH(blames_no_process_for_times_that_hang, set_up_short, tear_down)
{
    assert_int_equal(proc_pool_ask(reader, PROC_LISTED, PROC_PART_TIMES, HANGS_FROM), 0);
    assert_int_equal(answer(HANGS_FROM, false), -ETIMEDOUT);
    assert_int_equal(proc_pool_counts(reader).hung_pid, 0);
    assert_int_equal(proc_pool_counts(reader).counters.proc_unread, 1);
    expect(HANGS_FROM, false, -ETIMEDOUT);
    assert_int_equal(proc_pool_counts(reader).hung_pid, HANGS_FROM);
}

TEST_WITH(reads_again_when_a_shortage_is_over, set_up_shipping, tear_down)
{
    assert_null(proc_pool_free(reader));
    fake_proc_read_be_short(true);
    assert_int_equal(proc_pool_new(false, PROC_POOL_HANG_NS, &reader), 0);
    expect(7, false, -ENOMEM);
    fake_proc_read_be_short(false);
    expect(7, false, 0);
}

/* Each of them for less than it takes to be given up, one after the other if they may. */
TEST_WITH(waits_for_none_of_those_who_are_slow, set_up_shipping, tear_down)
{
    for (int32_t i = 0; i < 4; i++) {
        ask(HANGS_FROM + i);
    }
    ask(7);
    assert_int_equal(answer(HANGS_FROM + 2, true), 0);
    assert_int_equal(answer(7, false), 0); /* which has had none of the time */
    assert_int_equal(answer(HANGS_FROM + 3, true), 0);
    assert_int_equal(proc_pool_counts(reader).hung_pid, 0);
    set(&let_go, true);
    for (int32_t i = 0; i < 2; i++) {
        struct proc_reading *reading = next_reading();
        assert_int_equal(reading->error, 0);
        assert_false(reading->scan.mappings_missing);
        free(reading);
    }
    expect(HANGS_FROM + 2, false, 0);
}

/* A slow thread does not count itself among those that its process keeps. */
TEST_WITH(reads_a_process_whose_thread_was_slow, set_up_shipping, tear_down)
{
    ask(SLEEPS_PID);
    expect(7, false, 0);
    assert_int_equal(answer(SLEEPS_PID, false), 0);
}

TEST_WITH(waits_with_one_thread_for_one_process, set_up_shipping, tear_down)
{
    assert_int_equal(list(HANGS_FROM), 0);
    wait_for_hanging(0);
    expect(HANGS_FROM, true, 0);
    set(&let_go, true);
    assert_int_equal(answer(HANGS_FROM, false), 0);
}

/* Takes so many answers. Returns which of them was the first that is urgent or of that account. */
static size_t take_answers(size_t wanted_count, uint32_t account)
{
    struct proc_reading *reading = NULL;
    size_t count = 0;
    size_t found_at = SIZE_MAX;
    for (int ms = 0; count < wanted_count && ms < WAIT_MS; ms++) {
        while ((reading = proc_pool_next(reader)) != NULL) {
            bool found = reading->urgency == PROC_SAMPLED || uid_of(reading->scan.pid) == account;
            found_at = found && found_at == SIZE_MAX ? count : found_at;
            count++;
            free(reading);
        }
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(count, wanted_count);
    return found_at;
}

/* Pids by the hundred are of one account. */
TEST_WITH(asks_once_for_the_same_and_bounds_its_queues, set_up_shipping, tear_down)
{
    size_t count = 0;
    set(&closed, true);
    for (int32_t i = 1; i <= 100; i++) {
        assert_int_equal(list(i), 0);
        count++;
        count += list(i) == 0;
    }
    /* What a thread has begun with meanwhile may be asked for again. */
    assert_in_range(count, 100, 100 + PROC_POOL_THREADS_MAX);
    for (int32_t i = 101; i < 900; i++) {
        count += list(i) == 0;
    }
    assert_in_range(count, PROC_POOL_REQUESTS_MAX * 9 / 10, PROC_POOL_REQUESTS_MAX);
    assert_int_equal(list(899), -EAGAIN);
    assert_int_equal(proc_pool_ask(reader, PROC_SAMPLED, PROC_PART_ALL, 100), 0);
    set(&closed, false);
    /* One was begun before the more urgent one was asked for, at the most. */
    assert_true(take_answers(count + 1, UINT32_MAX) <= 1);
    assert_int_equal(list(5), 0);
    assert_int_equal(answer(5, false), 0);
}

TEST_WITH(reads_next_for_the_account_that_has_had_least, set_up_shipping, tear_down)
{
    set(&closed, true);
    list_many(100, 50);
    list_many(200, 1);
    set(&closed, false);
    assert_int_equal(take_answers(51, 2), 1);

    /* An account's earlier requests give no other one a start: they are served in turn. */
    set(&closed, true);
    list_many(300, 50);
    list_many(100, 1);
    set(&closed, false);
    assert_in_range(take_answers(51, 1), 0, 25);
}

static void replace_reader(void)
{
    assert_null(proc_pool_free(reader));
    assert_int_equal(proc_pool_new(false, SHORT_NS, &reader), 0);
}

/* Begins a reading that hangs, and lets it hang in another reader's time. */
static void hang_and_replace(int32_t pid)
{
    const size_t before_count = count_hanging();
    ask(pid);
    wait_for_hanging(before_count);
    replace_reader();
}

TEST_WITH(remembers_what_hung_when_it_was_freed, set_up_short, tear_down)
{
    hang_and_replace(HANGS_FROM);
    expect(HANGS_FROM, true, 0);
    hang_and_replace(HANGS_FROM + 1);
    expect(HANGS_FROM + 2, true, 0);
}

static struct proc_reading *next_after(int ms)
{
    (void)poll(NULL, 0, ms);
    return proc_pool_next(reader);
}

TEST_WITH(gives_up_nobody_who_works_or_when_nobody_looked, set_up_short, tear_down)
{
    ask(SPINS_PID);
    for (int i = 0; i < 30; i++) {
        assert_null(next_after(10));
    }
    atomic_store(&spun, true);
    assert_int_equal(answer(SPINS_PID, false), 0);
    ask(HANGS_FROM);
    assert_null(next_after(300));
    set(&let_go, true);
    assert_int_equal(answer(HANGS_FROM, false), 0);
    assert_int_equal(proc_pool_counts(reader).hung_pid, 0);
}

TEST_WITH(reads_nothing_while_too_much_is_not_taken, set_up_short, tear_down)
{
    ask(BIG_PID);
    ask(HANGS_FROM);
    (void)poll(NULL, 0, 100);
    assert_int_equal(count_hanging(), 0);
    assert_int_equal(answer(BIG_PID, false), 0);
    assert_int_equal(answer(HANGS_FROM, false), -ETIMEDOUT);
}

/* Each of another account; all that may be lost for users who are not root. */
#define LOST_COUNT (PROC_POOL_THREADS_MAX - 4)

TEST_WITH(reads_for_others_while_many_hang_and_nothing_when_all_do, set_up_short, tear_down)
{
    for (int32_t i = 0; i < LOST_COUNT; i++) {
        expect(HANGS_FROM + 100 * i, false, -ETIMEDOUT);
        expect(500 + i, i + 1 == LOST_COUNT, 0);
    }
    /* No more may hang, but for root. */
    expect(7, false, 0);
    /* Another reader is no better off. */
    replace_reader();
    expect(HANGS_FROM, true, 0);
    expect(HANGS_FROM + 100 * LOST_COUNT, true, 0);
    expect_identity(HANGS_FROM, 0);
    /* What should not hang does. */
    for (int32_t i = LOST_COUNT; i < PROC_POOL_THREADS_MAX; i++) {
        expect_identity(IDENTITY_HANGS, -ETIMEDOUT);
    }
    expect(7, false, -EBUSY);
    set(&let_go, true);
    int error = -EBUSY;
    for (int ms = 0; error == -EBUSY && ms < WAIT_MS; ms++) {
        (void)poll(NULL, 0, 1);
        ask(7);
        error = answer(7, false);
    }
    assert_int_equal(error, 0);
}
