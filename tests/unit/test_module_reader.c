/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which of two workers reads what, and when, by a clock that the test sets. The workers are
 * stand-ins: a load's descriptor is its number here, and says what becomes of its reader.
 */
#include "module_reader.h"

#include "fake_elf_worker.h"
#include "limit_clock.h"
#include "module_ticket.h"
#include "unit_test.h"

#include <errno.h>
#include <poll.h>

#define LOADS 64
#define MS    NS_PER_MS

enum answer {
    ANSWER_NONE,
    ANSWER_TABLE,
    ANSWER_BROKEN,
    ANSWER_STALE,
    ANSWER_DEATH,
};

static struct {
    struct module_reader *reader;
    struct module_load loads[LOADS];
    enum answer answers[LOADS];
    uint64_t memory_bytes[LOADS]; /* of the worker that was asked last; 0: none was */
    int load_count;
} world;

static const struct elf_worker_config configs[MODULE_WORKERS] = {{.memory_bytes = 1000},
                                                                 {.memory_bytes = 100}};

static void on_sent(struct elf_worker *worker, int fd)
{
    world.memory_bytes[fd] = worker->memory_bytes;
}

int elf_worker_receive(struct elf_worker *worker, struct elf_worker_table *ret)
{
    static const int results[] = {
        [ANSWER_NONE] = -EAGAIN,  [ANSWER_TABLE] = 0,      [ANSWER_BROKEN] = -EBADMSG,
        [ANSWER_STALE] = -ESTALE, [ANSWER_DEATH] = -EPIPE,
    };
    enum answer answer = world.answers[worker->reads];
    if (answer != ANSWER_NONE && worker->both) {
        worker->both = false;
        world.answers[worker->reads] = ANSWER_NONE;
        memset(ret, 0, sizeof *ret);
    } else if (answer != ANSWER_NONE) {
        worker->reads = 0;
        memset(ret, 0, sizeof *ret);
    }
    return results[answer];
}

void opener_discard(struct opener *opener, int fd, uid_t uid)
{
    (void)opener, (void)fd;
    fail_msg("nothing is sent for uid %u", (unsigned)uid);
}

bool opener_is_discarding(struct opener *opener, uid_t uid)
{
    (void)opener, (void)uid;
    return false;
}

static int set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    memset(&workers, 0, sizeof workers);
    return module_reader_new(configs, NULL, &world.reader);
}

static int tear_down(void **state)
{
    (void)state;
    module_reader_stop(world.reader);
    for (struct module_load *load; (load = module_reader_drain(world.reader)) != NULL;) {
        module_load_free_claims(load);
    }
    module_reader_free(world.reader);
    return workers.alive_max <= MODULE_WORKERS && workers.alive_count == 0 ? 0 : -1;
}

#define READER_TEST(name) TEST_WITH(name, set_up, tear_down)

/* A load of that user, whose number is returned. */
static int add_as(enum module_urgency urgency, uid_t uid, uint64_t now_ns)
{
    int number = ++world.load_count;
    struct module_load *load = &world.loads[number];
    *load = (struct module_load){
        .request.urgency = urgency,
        .uid = uid,
        .file = {.fd = number, .identity.inode = (uint64_t)number, .is_local = true, .author = uid},
        .debug_fd = -1,
        .arrived_ns = now_ns,
    };
    assert_int_equal(module_reader_claim(world.reader, load, uid), 0);
    assert_int_equal(module_reader_add(world.reader, load), 0);
    return number;
}

/* A file that a sample waits for. */
static int add(uid_t uid, uint64_t now_ns)
{
    return add_as(MODULE_WANTED, uid, now_ns);
}

/* The same file, asked for again. */
static int add_again(int of, uid_t uid, uint64_t now_ns)
{
    int number = ++world.load_count;
    world.loads[number] = world.loads[of];
    world.loads[number].file.fd = number;
    world.loads[number].arrived_ns = now_ns;
    world.loads[number].is_for_first = false;
    world.loads[number].claims = NULL;
    assert_int_equal(module_reader_claim(world.reader, &world.loads[number], uid), 0);
    assert_int_equal(module_reader_add(world.reader, &world.loads[number]), 0);
    return number;
}

/* Lets the workers go on: the number of the load that came out (0: none), and why. Negative: of its
 * call frames; it stays. */
static int go_on(uint64_t now_ns, enum module_failure *ret_failure)
{
    struct module_reading reading;
    if (!module_reader_next(world.reader, now_ns, false, &reading)) {
        return 0;
    }
    if (reading.goes_on) {
        assert_true(module_load_go_on(reading.load));
        *ret_failure = reading.failure;
        return -reading.load->file.fd;
    }
    module_load_free_claims(reading.load);
    *ret_failure = reading.failure;
    return reading.load->file.fd;
}

static void expect_nothing(uint64_t now_ns)
{
    enum module_failure failure = MODULE_FAILURE_NONE;
    assert_int_equal(go_on(now_ns, &failure), 0);
}

static void expect_out(uint64_t now_ns, int number, enum module_failure expected)
{
    enum module_failure failure = MODULE_FAILURE_NONE;
    assert_int_equal(go_on(now_ns, &failure), number);
    assert_int_equal(failure, expected);
}

/* Its worker has a table, and it comes out. */
static void expect_read(uint64_t now_ns, int number)
{
    world.answers[number] = ANSWER_TABLE;
    expect_out(now_ns, number, MODULE_FAILURE_NONE);
}

/* The same with the call frames of two tables. */
static void expect_frames(uint64_t now_ns, int number)
{
    world.answers[number] = ANSWER_TABLE;
    expect_out(now_ns, -number, MODULE_FAILURE_NONE);
}

/* A file of uid 1, which the first worker begins with at 0. */
static int begin_slow(void)
{
    int slow = add(1, 0);
    expect_nothing(0);
    return slow;
}

/* A file of so many bytes whose call frames a sample waits for, and whose symbols are wanted. */
static int add_both(uid_t uid, uint64_t now_ns, uint64_t size_bytes)
{
    int number = ++world.load_count;
    struct module_load *load = &world.loads[number];
    *load = (struct module_load){
        .request.table = MODULE_CFI,
        .then_symbols = true,
        .uid = uid,
        .file = {.fd = number, .is_local = true, .author = uid},
        .debug_fd = -1,
        .arrived_ns = now_ns,
    };
    load->file.identity =
        (struct file_identity){.inode = (uint64_t)number, .size_bytes = size_bytes};
    assert_int_equal(module_reader_claim(world.reader, load, uid), 0);
    assert_int_equal(module_reader_add(world.reader, load), 0);
    return number;
}

/* By which worker a load was begun last. */
static void expect_with(int number, enum module_worker_name name)
{
    assert_int_equal(world.memory_bytes[number], configs[name].memory_bytes);
}

static void expect_put_back(uint64_t count)
{
    assert_int_equal(module_reader_counts(world.reader).put_back_count, count);
}

static void expect_restarts(uint64_t count)
{
    assert_int_equal(module_reader_counts(world.reader).restart_count, count);
}

static void expect_not_begun(int number)
{
    assert_int_equal(world.memory_bytes[number], 0);
}

READER_TEST(a_second_worker_passes_a_slow_file_of_another_account)
{
    int slow = begin_slow();
    int quick = add(2, 1 * MS);
    expect_nothing(299 * MS);
    expect_not_begun(quick);
    assert_int_equal(workers.started_count, 1);
    expect_nothing(300 * MS);
    expect_with(slow, MODULE_FIRST);
    expect_with(quick, MODULE_SECOND);
    expect_read(301 * MS, quick);
    expect_nothing(9999 * MS);
    expect_out(10000 * MS, slow, MODULE_FAILURE_WORKER);
    expect_restarts(0);
    expect_nothing(10000 * MS);
    expect_restarts(1);
}

/* The user of a large library has other programs: their samples wait for the second worker, which
 * is theirs when no other account wants it, and for 300 ms when one does. */
READER_TEST(an_account_passes_its_own_slow_file)
{
    int slow = add(1, 0);
    int quick = add(1, 0);
    expect_nothing(0);
    expect_nothing(299 * MS);
    expect_not_begun(quick);
    expect_nothing(300 * MS);
    expect_with(quick, MODULE_SECOND);
    expect_read(301 * MS, quick);
    int slow_too = add(1, 301 * MS);
    expect_nothing(301 * MS);
    expect_with(slow_too, MODULE_SECOND);
    int next = add(1, 400 * MS);
    int others = add(2, 400 * MS);
    expect_nothing(600 * MS);
    expect_not_begun(next);
    expect_not_begun(others);
    expect_nothing(601 * MS);
    expect_put_back(1);
    expect_with(others, MODULE_SECOND);
    expect_not_begun(next);
    expect_read(602 * MS, others);
    expect_nothing(602 * MS);
    expect_with(next, MODULE_SECOND);
    expect_read(700 * MS, slow);
    expect_nothing(700 * MS);
    expect_with(slow_too, MODULE_FIRST);
}

READER_TEST(a_file_that_was_written_meanwhile_may_be_asked_for_again)
{
    int slow = begin_slow();
    int quick = add(2, 1 * MS);
    expect_nothing(300 * MS);
    expect_with(quick, MODULE_SECOND);
    world.answers[quick] = ANSWER_STALE;
    expect_out(301 * MS, quick, MODULE_FAILURE_LIMIT);
    world.answers[slow] = ANSWER_STALE;
    expect_out(302 * MS, slow, MODULE_FAILURE_LIMIT);
    expect_put_back(0);
    expect_restarts(0);
}

/* The session that wanted them has ended: a worker reads none of them. */
READER_TEST(what_is_wanted_no_more_is_not_read)
{
    struct module_request request = {.urgency = MODULE_WANTED};
    struct module_ticket *held = module_ticket_new(&request);
    struct module_ticket *left = module_ticket_new(&request);
    int slow = begin_slow();
    int first = add(2, 1 * MS);
    int second = add(2, 2 * MS);
    world.loads[first].tickets = left;
    world.loads[second].tickets = held;
    left->next = NULL;
    module_ticket_release(left); /* the requester's hold */
    expect_out(300 * MS, first, MODULE_FAILURE_LIMIT);
    expect_not_begun(first);
    expect_nothing(300 * MS);
    expect_with(second, MODULE_SECOND);
    expect_with(slow, MODULE_FIRST);
    world.loads[first].tickets = NULL;
    world.loads[second].tickets = NULL;
    module_ticket_release(left);
    module_ticket_release(held);
    module_ticket_release(held);
}

/* Two accounts with slow files cost a third one 300 ms, and so does each further one. */
READER_TEST(a_slow_file_at_the_second_is_put_back_for_others)
{
    int slow = begin_slow();
    int slow_too = add(2, 0);
    expect_nothing(300 * MS);
    expect_with(slow_too, MODULE_SECOND);
    /* Alone it may take its time. */
    expect_nothing(2000 * MS);
    expect_put_back(0);
    int slow_as_well = add(3, 2000 * MS);
    expect_nothing(2000 * MS);
    expect_put_back(1);
    expect_with(slow_as_well, MODULE_SECOND);
    int quick = add(4, 2000 * MS);
    expect_nothing(2299 * MS);
    expect_not_begun(quick);
    expect_nothing(2300 * MS);
    expect_with(quick, MODULE_SECOND);
    expect_put_back(2);
    expect_restarts(0);
    expect_read(2301 * MS, quick);
    /* Those that were put back are the first worker's, however long the second is idle. */
    world.memory_bytes[slow_too] = world.memory_bytes[slow_as_well] = 0;
    expect_nothing(9000 * MS);
    expect_not_begun(slow_too);
    expect_not_begun(slow_as_well);
    expect_read(9000 * MS, slow);
    expect_nothing(9000 * MS);
    /* Uid 3 has used 300 ms, uid 2 has used 1.7 s. */
    expect_with(slow_as_well, MODULE_FIRST);
    expect_read(9100 * MS, slow_as_well);
    expect_nothing(9100 * MS);
    expect_with(slow_too, MODULE_FIRST);
}

READER_TEST(a_file_that_is_likely_to_be_needed_puts_nothing_back)
{
    (void)begin_slow();
    int wanted = add(2, 0);
    expect_nothing(300 * MS);
    expect_with(wanted, MODULE_SECOND);
    int ahead = add_as(MODULE_PREFETCH, 3, 300 * MS);
    expect_nothing(5000 * MS);
    expect_put_back(0);
    module_reader_want(world.reader, &world.loads[ahead]);
    expect_nothing(5000 * MS);
    expect_put_back(1);
}

/* It has less memory, so what it cannot read may be readable. */
READER_TEST(what_the_second_cannot_read_is_the_firsts)
{
    int slow = begin_slow();
    int large = add(2, 0);
    expect_nothing(300 * MS);
    world.answers[large] = ANSWER_BROKEN;
    expect_nothing(310 * MS);
    expect_nothing(5000 * MS);
    world.answers[slow] = ANSWER_BROKEN;
    expect_out(6000 * MS, slow, MODULE_FAILURE_UNREADABLE);
    world.answers[large] = ANSWER_TABLE;
    expect_nothing(6000 * MS);
    expect_with(large, MODULE_FIRST);
    expect_out(6001 * MS, large, MODULE_FAILURE_NONE);
}

READER_TEST(a_file_that_kills_the_second_is_not_tried_again)
{
    int slow = begin_slow();
    int deadly = add(2, 0);
    int quick = add(3, 1);
    expect_nothing(300 * MS);
    expect_with(deadly, MODULE_SECOND);
    world.answers[deadly] = ANSWER_DEATH;
    expect_out(310 * MS, deadly, MODULE_FAILURE_WORKER);
    expect_nothing(310 * MS);
    expect_with(quick, MODULE_SECOND);
    expect_restarts(1);
    expect_with(slow, MODULE_FIRST);
}

READER_TEST(the_second_ends_when_it_has_nothing_to_do)
{
    int slow = begin_slow();
    int quick = add(2, 0);
    expect_nothing(300 * MS);
    world.answers[slow] = world.answers[quick] = ANSWER_TABLE;
    expect_out(400 * MS, slow, MODULE_FAILURE_NONE);
    expect_out(400 * MS, quick, MODULE_FAILURE_NONE);
    expect_nothing(10399 * MS);
    assert_int_equal(workers.alive_count, 2);
    expect_nothing(10400 * MS);
    assert_int_equal(workers.alive_count, 1);
    assert_int_equal(module_reader_worker_pid(world.reader, MODULE_SECOND), 0);
    assert_int_not_equal(module_reader_worker_pid(world.reader, MODULE_FIRST), 0);
}

/* A file that was slow is read by the first alone, and after those of its account that are new. */
READER_TEST(remembers_what_was_slow)
{
    int slow = begin_slow();
    expect_read(4000 * MS, slow);
    int again = add_again(slow, 1, 5000 * MS);
    int later = add(1, 5001 * MS);
    expect_nothing(5001 * MS);
    expect_not_begun(again);
    expect_with(later, MODULE_FIRST);
    (void)add(2, 5001 * MS);
    expect_nothing(5301 * MS);
    expect_not_begun(again);
    assert_int_equal(world.loads[again].expected_ns, 4000 * MS);
    assert_true(world.loads[again].is_for_first);
}

READER_TEST(call_frames_and_symbols_of_a_small_file_are_read_by_one_request)
{
    int both = add_both(1, 0, 1 << 20);
    expect_nothing(0);
    expect_with(both, MODULE_FIRST);
    int next = add(2, 1 * MS);
    expect_frames(5 * MS, both);
    expect_nothing(6 * MS);
    expect_not_begun(next);
    assert_int_equal(world.loads[both].request.table, MODULE_SYMBOLS);
    assert_ptr_equal(
        module_reader_find(world.reader, MODULE_SYMBOLS, &world.loads[both].file.identity),
        &world.loads[both]);
    expect_read(7 * MS, both);
    expect_nothing(7 * MS);
    expect_with(next, MODULE_FIRST);
}

/* An error is that of one table, and a worker that dies has not read the other. */
READER_TEST(call_frames_that_cannot_be_read_leave_the_symbols)
{
    int broken = add_both(1, 0, 1 << 20);
    expect_nothing(0);
    world.answers[broken] = ANSWER_BROKEN;
    expect_out(1 * MS, -broken, MODULE_FAILURE_UNREADABLE);
    expect_read(2 * MS, broken);
    int deadly = add_both(1, 2 * MS, 1 << 20);
    expect_nothing(2 * MS);
    world.answers[deadly] = ANSWER_DEATH;
    expect_out(3 * MS, deadly, MODULE_FAILURE_WORKER);
    assert_true(world.loads[deadly].then_symbols);
}

/* Both count as one file: the second worker passes them after 300 ms, and the first has 10 s. */
READER_TEST(two_tables_may_take_as_long_as_one)
{
    int both = add_both(1, 0, 1 << 20);
    expect_nothing(0);
    int quick = add(2, 0);
    expect_frames(200 * MS, both);
    expect_nothing(299 * MS);
    expect_not_begun(quick);
    expect_nothing(300 * MS);
    expect_with(quick, MODULE_SECOND);
    expect_nothing(9999 * MS);
    expect_out(10000 * MS, both, MODULE_FAILURE_WORKER);
}

/* No other file's call frames wait for the names in a large one, and what the second worker cannot
 * read is one table. */
READER_TEST(a_large_file_and_the_second_worker_have_a_request_for_each_table)
{
    int large = add_both(1, 0, 5 << 20);
    expect_nothing(0);
    expect_read(100 * MS, large);
    assert_true(world.loads[large].then_symbols);
    (void)add(1, 100 * MS);
    expect_nothing(100 * MS);
    int small = add_both(2, 100 * MS, 1 << 20);
    expect_nothing(400 * MS);
    expect_with(small, MODULE_SECOND);
    expect_read(401 * MS, small);
    assert_true(world.loads[small].then_symbols);
}

/* The user of a slow file has asked for others' libraries before. */
READER_TEST(a_claim_of_another_account_frees_a_file)
{
    (void)begin_slow();
    int library = add_as(MODULE_PREFETCH, 1, 0);
    expect_nothing(1000 * MS);
    expect_not_begun(library);
    assert_int_equal(module_reader_claim(world.reader, &world.loads[library], 2), 0);
    expect_nothing(1000 * MS);
    expect_with(library, MODULE_SECOND);
}

/* By its descriptor, which is not readable for what is over. */
READER_TEST(wakes_its_caller_for_the_second)
{
    (void)add(1, 0);
    expect_nothing(limit_clock_ns());
    int quick = add(2, 0);
    struct pollfd readable = {.fd = module_reader_fd(world.reader), .events = POLLIN};
    assert_int_equal(poll(&readable, 1, -1), 1);
    expect_nothing(limit_clock_ns());
    expect_with(quick, MODULE_SECOND);
    assert_int_equal(poll(&readable, 1, 0), 0);
}

/* When the caller must look again, though no worker says anything. */
READER_TEST(wakes_its_caller_in_time)
{
    struct module_workers both = {0};
    struct module_worker *first = &both.workers[MODULE_FIRST];
    struct module_worker *second = &both.workers[MODULE_SECOND];
    struct elf_worker worker = {.fd = -1};
    struct module_load load = {.uid = 1};
    first->current = &worker;
    assert_int_equal(module_workers_next_look_ns(&both, 1), UINT64_MAX);
    first->load = &load;
    first->since_ns = 5000 * MS;
    assert_int_equal(module_workers_next_look_ns(&both, 5000 * MS), 5300 * MS);
    assert_int_equal(module_workers_next_look_ns(&both, 5300 * MS), 15000 * MS);
    second->current = &worker;
    second->since_ns = 5310 * MS;
    assert_int_equal(module_workers_next_look_ns(&both, 5310 * MS), 15000 * MS);
    second->load = &load;
    assert_int_equal(module_workers_next_look_ns(&both, 5310 * MS), 5610 * MS);
    first->load = second->load = NULL;
    assert_int_equal(module_workers_next_look_ns(&both, 5310 * MS), 15310 * MS);
    second->current = NULL;
    second->restart_ns = 6000 * MS;
    assert_int_equal(module_workers_next_look_ns(&both, 5310 * MS), 6000 * MS);
}
