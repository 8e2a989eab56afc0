/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which of two workers reads what, and when, by a clock that the test sets. The workers are
 * stand-ins: a load's descriptor is its number here, and says what becomes of whoever reads it.
 */
#include "module_reader.h"

#include "limit_clock.h"
#include "module_ticket.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define LOADS 64
#define MS    NS_PER_MS

struct elf_worker {
    int fd;
    int reads; /* the number of a load; 0: none */
    uint64_t memory_bytes;
};

enum answer {
    ANSWER_NONE,
    ANSWER_TABLE,
    ANSWER_BROKEN,
    ANSWER_DEATH,
};

static struct {
    struct module_reader *reader;
    struct module_load loads[LOADS];
    enum answer answers[LOADS];
    uint64_t memory_bytes[LOADS]; /* of the worker that was asked last; 0: none was */
    int load_count;
    size_t alive_count, started_count, alive_max;
} world;

static const struct elf_worker_config configs[MODULE_WORKERS] = {{.memory_bytes = 1000},
                                                                 {.memory_bytes = 100}};

int elf_worker_start(const struct elf_worker_config *config, struct elf_worker **ret)
{
    struct elf_worker *worker = calloc(1, sizeof *worker);
    assert_non_null(worker);
    worker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    worker->memory_bytes = config->memory_bytes;
    world.started_count++;
    world.alive_count++;
    world.alive_max = world.alive_count > world.alive_max ? world.alive_count : world.alive_max;
    *ret = worker;
    return 0;
}

bool elf_worker_end(struct elf_worker *worker)
{
    if (worker->fd >= 0) {
        (void)close(worker->fd);
        worker->fd = -1;
        world.alive_count--;
    }
    return true;
}

int elf_worker_take_socket(struct elf_worker *worker)
{
    (void)worker;
    return -1;
}

struct elf_worker *elf_worker_free(struct elf_worker *worker)
{
    if (worker != NULL) {
        (void)elf_worker_end(worker);
        free(worker);
    }
    return NULL;
}

enum elf_worker_trouble elf_worker_trouble(const struct elf_worker *worker)
{
    (void)worker;
    return ELF_WORKER_NO_TROUBLE;
}

int elf_worker_fd(const struct elf_worker *worker)
{
    return worker->fd;
}

pid_t elf_worker_pid(const struct elf_worker *worker)
{
    return worker->fd;
}

int elf_worker_send(struct elf_worker *worker, enum elf_worker_request request, int fd,
                    int debug_fd, size_t max_bytes)
{
    (void)request;
    (void)debug_fd;
    (void)max_bytes;
    assert_int_equal(worker->reads, 0);
    worker->reads = fd;
    world.memory_bytes[fd] = worker->memory_bytes;
    return 0;
}

int elf_worker_send_map(struct elf_worker *worker, enum elf_worker_request request, int fd,
                        uint32_t known_bytes, size_t max_bytes)
{
    (void)known_bytes;
    return elf_worker_send(worker, request, fd, -1, max_bytes);
}

int elf_worker_receive(struct elf_worker *worker, struct elf_worker_table *ret)
{
    enum answer answer = world.answers[worker->reads];
    if (answer == ANSWER_NONE) {
        return -EAGAIN;
    }
    worker->reads = 0;
    memset(ret, 0, sizeof *ret);
    return answer == ANSWER_TABLE ? 0 : answer == ANSWER_BROKEN ? -EBADMSG : -EPIPE;
}

void opener_discard(struct opener *opener, int fd, uid_t uid)
{
    (void)opener;
    (void)fd;
    fail_msg("nothing is sent for uid %u", (unsigned)uid);
}

bool opener_is_discarding(struct opener *opener, uid_t uid)
{
    (void)opener;
    (void)uid;
    return false;
}

static int set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
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
    return world.alive_max <= MODULE_WORKERS && world.alive_count == 0 ? 0 : -1;
}

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

/* Lets the workers go on: the number of the load that came out (0: none), and why. */
static int go_on(uint64_t now_ns, enum module_failure *ret_failure)
{
    struct module_reading reading;
    if (!module_reader_next(world.reader, now_ns, false, &reading)) {
        return 0;
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

/* By which worker a load was begun last. */
static void expect_with(int number, enum module_worker_name name)
{
    assert_int_equal(world.memory_bytes[number], configs[name].memory_bytes);
}

static void expect_not_begun(int number)
{
    assert_int_equal(world.memory_bytes[number], 0);
}

static void a_second_worker_passes_a_slow_file_of_another_account(void **state)
{
    (void)state;
    int slow = add(1, 0);
    expect_nothing(0);
    int quick = add(2, 1 * MS);
    expect_nothing(299 * MS);
    expect_not_begun(quick);
    assert_int_equal(world.started_count, 1);
    expect_nothing(300 * MS);
    expect_with(slow, MODULE_FIRST);
    expect_with(quick, MODULE_SECOND);
    world.answers[quick] = ANSWER_TABLE;
    expect_out(301 * MS, quick, MODULE_FAILURE_NONE);
    expect_nothing(9999 * MS);
    expect_out(10000 * MS, slow, MODULE_FAILURE_WORKER);
    assert_int_equal(module_reader_counts(world.reader).restart_count, 0);
    expect_nothing(10000 * MS);
    assert_int_equal(module_reader_counts(world.reader).restart_count, 1);
}

/* The user of a large library has other programs: their samples wait for the second worker, which
 * is theirs when no other account wants it, and for 300 ms when one does. */
static void an_account_passes_its_own_slow_file(void **state)
{
    (void)state;
    int slow = add(1, 0);
    int quick = add(1, 0);
    expect_nothing(0);
    expect_nothing(299 * MS);
    expect_not_begun(quick);
    expect_nothing(300 * MS);
    expect_with(quick, MODULE_SECOND);
    world.answers[quick] = ANSWER_TABLE;
    expect_out(301 * MS, quick, MODULE_FAILURE_NONE);
    int slow_too = add(1, 301 * MS);
    expect_nothing(301 * MS);
    expect_with(slow_too, MODULE_SECOND);
    int next = add(1, 400 * MS);
    int others = add(2, 400 * MS);
    expect_nothing(600 * MS);
    expect_not_begun(next);
    expect_not_begun(others);
    expect_nothing(601 * MS);
    assert_int_equal(module_reader_counts(world.reader).put_back_count, 1);
    expect_with(others, MODULE_SECOND);
    expect_not_begun(next);
    world.answers[others] = ANSWER_TABLE;
    expect_out(602 * MS, others, MODULE_FAILURE_NONE);
    expect_nothing(602 * MS);
    expect_with(next, MODULE_SECOND);
    world.answers[slow] = ANSWER_TABLE;
    expect_out(700 * MS, slow, MODULE_FAILURE_NONE);
    expect_nothing(700 * MS);
    expect_with(slow_too, MODULE_FIRST);
}

/* The session has ended that wanted them: a worker reads nothing for nobody. */
static void what_is_wanted_no_more_is_not_read(void **state)
{
    (void)state;
    struct module_request request = {.urgency = MODULE_WANTED};
    struct module_ticket *held = module_ticket_new(&request);
    struct module_ticket *left = module_ticket_new(&request);
    int slow = add(1, 0);
    expect_nothing(0);
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
static void a_slow_file_at_the_second_is_put_back_for_others(void **state)
{
    (void)state;
    int slow = add(1, 0);
    expect_nothing(0);
    int slow_too = add(2, 0);
    expect_nothing(300 * MS);
    expect_with(slow_too, MODULE_SECOND);
    /* Alone it may take its time. */
    expect_nothing(2000 * MS);
    assert_int_equal(module_reader_counts(world.reader).put_back_count, 0);
    int slow_as_well = add(3, 2000 * MS);
    expect_nothing(2000 * MS);
    assert_int_equal(module_reader_counts(world.reader).put_back_count, 1);
    expect_with(slow_as_well, MODULE_SECOND);
    int quick = add(4, 2000 * MS);
    expect_nothing(2299 * MS);
    expect_not_begun(quick);
    expect_nothing(2300 * MS);
    expect_with(quick, MODULE_SECOND);
    assert_int_equal(module_reader_counts(world.reader).put_back_count, 2);
    assert_int_equal(module_reader_counts(world.reader).restart_count, 0);
    world.answers[quick] = ANSWER_TABLE;
    expect_out(2301 * MS, quick, MODULE_FAILURE_NONE);
    /* Those that were put back are the first worker's, however long the second is idle. */
    world.memory_bytes[slow_too] = world.memory_bytes[slow_as_well] = 0;
    expect_nothing(9000 * MS);
    expect_not_begun(slow_too);
    expect_not_begun(slow_as_well);
    world.answers[slow] = ANSWER_TABLE;
    expect_out(9000 * MS, slow, MODULE_FAILURE_NONE);
    expect_nothing(9000 * MS);
    /* Uid 3 has used 300 ms, uid 2 has used 1.7 s. */
    expect_with(slow_as_well, MODULE_FIRST);
    world.answers[slow_as_well] = ANSWER_TABLE;
    expect_out(9100 * MS, slow_as_well, MODULE_FAILURE_NONE);
    expect_nothing(9100 * MS);
    expect_with(slow_too, MODULE_FIRST);
}

static void a_file_that_is_likely_to_be_needed_puts_nothing_back(void **state)
{
    (void)state;
    (void)add(1, 0);
    expect_nothing(0);
    int wanted = add(2, 0);
    expect_nothing(300 * MS);
    expect_with(wanted, MODULE_SECOND);
    int ahead = add_as(MODULE_PREFETCH, 3, 300 * MS);
    expect_nothing(5000 * MS);
    assert_int_equal(module_reader_counts(world.reader).put_back_count, 0);
    module_reader_want(world.reader, &world.loads[ahead]);
    expect_nothing(5000 * MS);
    assert_int_equal(module_reader_counts(world.reader).put_back_count, 1);
}

/* It has less memory, so what it cannot read may be readable. */
static void what_the_second_cannot_read_is_the_firsts(void **state)
{
    (void)state;
    int slow = add(1, 0);
    expect_nothing(0);
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

static void a_file_that_kills_the_second_is_not_tried_again(void **state)
{
    (void)state;
    int slow = add(1, 0);
    expect_nothing(0);
    int deadly = add(2, 0);
    int quick = add(3, 1);
    expect_nothing(300 * MS);
    expect_with(deadly, MODULE_SECOND);
    world.answers[deadly] = ANSWER_DEATH;
    expect_out(310 * MS, deadly, MODULE_FAILURE_WORKER);
    expect_nothing(310 * MS);
    expect_with(quick, MODULE_SECOND);
    assert_int_equal(module_reader_counts(world.reader).restart_count, 1);
    expect_with(slow, MODULE_FIRST);
}

static void the_second_ends_when_it_has_nothing_to_do(void **state)
{
    (void)state;
    int slow = add(1, 0);
    expect_nothing(0);
    int quick = add(2, 0);
    expect_nothing(300 * MS);
    world.answers[slow] = world.answers[quick] = ANSWER_TABLE;
    expect_out(400 * MS, slow, MODULE_FAILURE_NONE);
    expect_out(400 * MS, quick, MODULE_FAILURE_NONE);
    expect_nothing(10399 * MS);
    assert_int_equal(world.alive_count, 2);
    expect_nothing(10400 * MS);
    assert_int_equal(world.alive_count, 1);
    assert_int_equal(module_reader_worker_pid(world.reader, MODULE_SECOND), 0);
    assert_int_not_equal(module_reader_worker_pid(world.reader, MODULE_FIRST), 0);
}

/* A file that was slow is read by the first alone, and after those of its account that are new. */
static void remembers_what_was_slow(void **state)
{
    (void)state;
    int slow = add(1, 0);
    expect_nothing(0);
    world.answers[slow] = ANSWER_TABLE;
    expect_out(4000 * MS, slow, MODULE_FAILURE_NONE);
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

/* The user of a slow file has asked for others' libraries before. */
static void a_claim_of_another_account_frees_a_file(void **state)
{
    (void)state;
    (void)add(1, 0);
    expect_nothing(0);
    int library = add_as(MODULE_PREFETCH, 1, 0);
    expect_nothing(1000 * MS);
    expect_not_begun(library);
    assert_int_equal(module_reader_claim(world.reader, &world.loads[library], 2), 0);
    expect_nothing(1000 * MS);
    expect_with(library, MODULE_SECOND);
}

/* By its descriptor, which is not readable for what is over. */
static void wakes_its_caller_for_the_second(void **state)
{
    (void)state;
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
static void wakes_its_caller_in_time(void **state)
{
    (void)state;
    struct module_workers workers = {0};
    struct module_worker *first = &workers.workers[MODULE_FIRST];
    struct module_worker *second = &workers.workers[MODULE_SECOND];
    struct elf_worker worker = {.fd = -1};
    struct module_load load = {.uid = 1};
    first->current = &worker;
    assert_int_equal(module_workers_next_look_ns(&workers, 1), UINT64_MAX);
    first->load = &load;
    first->since_ns = 5000 * MS;
    assert_int_equal(module_workers_next_look_ns(&workers, 5000 * MS), 5300 * MS);
    assert_int_equal(module_workers_next_look_ns(&workers, 5300 * MS), 15000 * MS);
    second->current = &worker;
    second->since_ns = 5310 * MS;
    assert_int_equal(module_workers_next_look_ns(&workers, 5310 * MS), 15000 * MS);
    second->load = &load;
    assert_int_equal(module_workers_next_look_ns(&workers, 5310 * MS), 5610 * MS);
    first->load = second->load = NULL;
    assert_int_equal(module_workers_next_look_ns(&workers, 5310 * MS), 15310 * MS);
    second->current = NULL;
    second->restart_ns = 6000 * MS;
    assert_int_equal(module_workers_next_look_ns(&workers, 5310 * MS), 6000 * MS);
}

#define READER_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        READER_TEST(a_second_worker_passes_a_slow_file_of_another_account),
        READER_TEST(an_account_passes_its_own_slow_file),
        READER_TEST(what_is_wanted_no_more_is_not_read),
        READER_TEST(a_slow_file_at_the_second_is_put_back_for_others),
        READER_TEST(a_file_that_is_likely_to_be_needed_puts_nothing_back),
        READER_TEST(what_the_second_cannot_read_is_the_firsts),
        READER_TEST(a_file_that_kills_the_second_is_not_tried_again),
        READER_TEST(the_second_ends_when_it_has_nothing_to_do),
        READER_TEST(remembers_what_was_slow),
        READER_TEST(a_claim_of_another_account_frees_a_file),
        READER_TEST(wakes_its_caller_for_the_second),
        READER_TEST(wakes_its_caller_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
