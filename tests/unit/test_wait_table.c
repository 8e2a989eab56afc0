/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads and their waits against stories of what CPUs did. A wait has the length that the story
 * says, or is counted as uncertain where records are missing; the counts of waits add up; and the
 * threads' books close in each story.
 */
#include "tracked_threads.h"
#include "unit_test.h"
#include "wait_table.h"

#define START   1000
#define CPUS    2
#define LONG_NS UINT64_C(1000000000) /* divided by a period of sampling */

#define SAMPLER_PID 77

static struct wait_owner owner_of_pid(int32_t pid, uint64_t time_ns, void *userdata)
{
    (void)time_ns;
    (void)userdata;
    return (struct wait_owner){pid >= 100000 ? 1 : 2, pid == SAMPLER_PID};
}

static void describe(struct thread_line *line, uint64_t time_ns, void *userdata)
{
    (void)time_ns;
    (void)userdata;
    line->wanted = 1;
}

static bool is_forgotten;

/* Of pid 600, until it is forgotten: a thread that began at 1500 and ended at 1700, and from 3000
 * on another of the same number; of others nothing is known. */
static struct wait_life life_of_pid(int32_t pid, int32_t tid, uint64_t time_ns, void *userdata)
{
    (void)tid;
    (void)userdata;
    if (pid != 600 || is_forgotten) {
        return (struct wait_life){0, UINT64_MAX};
    }
    return time_ns < 3000 ? (struct wait_life){1500, 1700} : (struct wait_life){3000, UINT64_MAX};
}

static struct wait_table *make(uint64_t min_wait_ns)
{
    struct wait_table *table = wait_table_new(&(struct wait_table_config){
        .cpu_count = CPUS,
        .min_wait_ns = min_wait_ns,
        .owner = owner_of_pid,
        .life = life_of_pid,
        .describe = describe,
    });
    assert_non_null(table);
    wait_table_start(table, START);
    return table;
}

static int set_up(void **state)
{
    *state = make(0);
    return 0;
}

static int tear_down(void **state)
{
    *state = wait_table_free(*state);
    return 0;
}

#define STORY(name) TEST_WITH(name, set_up, tear_down)

static void lose(struct wait_table *table, size_t cpu)
{
    wait_table_blind(table, cpu, true);
    wait_table_blind(table, cpu, false);
}

static const struct wait_origin origin = {.wanted = 1, .stack = 9};

static void go_out(struct wait_table *table, size_t cpu, int32_t pid, int32_t tid, uint64_t time_ns,
                   enum wait_kind kind, uint64_t ticket, uint32_t period)
{
    wait_table_out(table, cpu,
                   &(const struct wait_switch){
                       .pid = pid,
                       .tid = tid,
                       .time_ns = time_ns,
                       .kind = kind,
                       .ticket = ticket,
                       .period = period,
                       .long_ns = period == 1 ? 0 : LONG_NS / period,
                   });
}

/* A switch away whose sample is resolved at once. */
static void leave(struct wait_table *table, size_t cpu, int32_t tid, uint64_t time_ns,
                  enum wait_kind kind)
{
    uint64_t ticket = wait_table_begin(table, 1);
    assert_int_not_equal(ticket, 0);
    assert_true(wait_table_resolve(table, ticket, &origin));
    go_out(table, cpu, tid, tid, time_ns, kind, ticket, 1);
}

/* The next wait of a CPU is this one. */
static void expect_wait(struct wait_table *table, size_t cpu, int32_t tid, enum wait_kind kind,
                        uint64_t from_ns, uint64_t to_ns, bool has_origin)
{
    const struct wait *wait = wait_table_next(table, cpu);
    assert_non_null(wait);
    assert_int_equal(wait->tid, tid);
    assert_int_equal(wait->kind, kind);
    assert_int_equal(wait->from_ns, from_ns);
    assert_int_equal(wait->to_ns, to_ns);
    assert_int_equal(wait->has_origin, has_origin);
    assert_int_equal(wait_table_release(table, wait), has_origin ? 9 : 0);
}

/* Nothing but stacks of waits that are not handed out. */
static size_t expect_no_wait(struct wait_table *table, size_t cpu)
{
    const struct wait *wait;
    size_t count = 0;
    while ((wait = wait_table_next(table, cpu)) != NULL) {
        assert_int_equal(wait->from_ns, wait->to_ns);
        assert_int_equal(wait_table_release(table, wait), 9);
        count++;
    }
    return count;
}

static struct thread_line line_of(struct wait_table *table, int32_t tid)
{
    struct thread_line line;
    uint32_t place = 0;
    while (wait_table_line(table, &place, &line)) {
        if (line.tid == tid) {
            return line;
        }
    }
    fail_msg("thread %d has no line", tid);
    return line;
}

static void expect_line(struct wait_table *table, int32_t tid, uint64_t wall_ns,
                        uint64_t running_ns, uint64_t waiting_ns, uint64_t blocked_ns)
{
    struct thread_line line = line_of(table, tid);
    assert_int_equal(line.wall_ns, wall_ns);
    assert_int_equal(line.running_ns, running_ns);
    assert_int_equal(line.waiting_ns, waiting_ns);
    assert_int_equal(line.blocked_ns, blocked_ns);
}

STORY(has_waits_from_one_switch_to_the_next_on_any_cpu)
{
    struct wait_table *table = *state;
    leave(table, 0, 5, 1100, WAIT_BLOCKED); /* it ran since the start */
    wait_table_in(table, 1, 5, 5, 1400);
    leave(table, 1, 5, 1450, WAIT_PREEMPTED);
    wait_table_in(table, 0, 5, 5, 1470);
    expect_wait(table, 1, 5, WAIT_BLOCKED, 1100, 1400, true);
    expect_wait(table, 0, 5, WAIT_PREEMPTED, 1450, 1470, true);
    wait_table_stop(table, 2000, UINT64_MAX);
    assert_null(wait_table_next(table, 0));
    expect_line(table, 5, 1000, 100 + 50 + 530, 20, 300);
    assert_int_equal(line_of(table, 5).voluntary, 1);
    assert_int_equal(line_of(table, 5).involuntary, 1);
    struct wait_counts counts = wait_table_counts(table, 1, WAIT_BLOCKED);
    assert_int_equal(counts.counted_ns, 300);
    assert_int_equal(counts.bare_count, 0);
}

STORY(ends_what_is_open_at_the_stop)
{
    struct wait_table *table = *state;
    leave(table, 1, 5, 1100, WAIT_BLOCKED);
    wait_table_stop(table, 1900, UINT64_MAX);
    expect_wait(table, 1, 5, WAIT_BLOCKED, 1100, 1900, true); /* that it left */
    expect_line(table, 5, 900, 100, 0, 800);
    /* A next run begins anew. */
    wait_table_start(table, 5000);
    wait_table_in(table, 0, 5, 5, 5010);
    expect_wait(table, 0, 5, WAIT_BLOCKED, 5000, 5010, false);
    wait_table_stop(table, 5100, UINT64_MAX);
    expect_line(table, 5, 1000, 190, 0, 810);
}

STORY(takes_a_first_switch_to_a_thread_for_the_end_of_a_wait_since_the_start)
{
    struct wait_table *table = *state;
    wait_table_in(table, 0, 5, 5, 1700);
    expect_wait(table, 0, 5, WAIT_BLOCKED, START, 1700, false);
    assert_int_equal(wait_table_counts(table, 0, WAIT_BLOCKED).bare_count, 1);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 5, 1000, 300, 0, 700);
}

STORY(knows_nothing_of_the_time_before_its_start)
{
    struct wait_table *table = *state;
    leave(table, 0, 5, START - 50, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, START - 20);
    wait_table_in(table, 1, 6, 6, START - 20);
    wait_table_fork(table, 7, 7, START - 10);
    wait_table_in(table, 1, 7, 7, START + 10);
    assert_int_equal(expect_no_wait(table, 0), 1);
    assert_int_equal(expect_no_wait(table, 1), 0);
    struct wait_counts counts = wait_table_counts(table, 0, WAIT_BLOCKED);
    assert_int_equal(counts.short_count + counts.counted_ns, 0);
    wait_table_stop(table, START + 100, UINT64_MAX);
    expect_line(table, 5, 100, 100, 0, 0);
    expect_line(table, 7, 100, 90, 10, 0);
}

STORY(has_a_new_thread_wait_for_its_cpu_without_a_sample)
{
    struct wait_table *table = *state;
    wait_table_fork(table, 5, 6, 1200);
    wait_table_in(table, 0, 5, 6, 1230);
    assert_null(wait_table_next(table, 0));
    wait_table_exit(table, 0, 5, 6, 1300);
    /* On its way out. */
    go_out(table, 0, 5, 6, 1310, WAIT_BLOCKED, 0, 1);
    wait_table_stop(table, 2000, UINT64_MAX);
    assert_null(wait_table_next(table, 0));
    struct thread_line line = line_of(table, 6);
    assert_int_equal(line.boot_ts_ns, 1200);
    expect_line(table, 6, 100, 70, 30, 0);
}

STORY(tells_threads_with_one_tid_apart)
{
    struct wait_table *table = *state;
    uint32_t place = 0;
    struct thread_line line;
    wait_table_fork(table, 5, 6, 1200);
    wait_table_in(table, 0, 5, 6, 1200);
    wait_table_exit(table, 0, 5, 6, 1300);
    wait_table_fork(table, 7, 6, 1500);
    wait_table_in(table, 0, 7, 6, 1510);
    wait_table_stop(table, 1600, UINT64_MAX);
    assert_true(wait_table_line(table, &place, &line));
    assert_int_equal(line.pid, 5);
    assert_int_equal(line.wall_ns, 100);
    assert_true(wait_table_line(table, &place, &line));
    assert_int_equal(line.pid, 7);
    assert_int_equal(line.wall_ns, 100);
    assert_false(wait_table_line(table, &place, &line));
}

STORY(follows_a_thread_that_becomes_the_leader_by_an_exec)
{
    struct wait_table *table = *state;
    wait_table_exit(table, 0, 5, 5, 1100);
    wait_table_exec(table, 1, 5, 1200);
    leave(table, 1, 5, 1300, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, 1400);
    expect_wait(table, 0, 5, WAIT_BLOCKED, 1300, 1400, true);
    /* Of one that is its leader already nothing changes. */
    wait_table_exec(table, 0, 5, 1500);
    wait_table_stop(table, 2000, UINT64_MAX);
    struct thread_line line;
    uint32_t place = 0;
    assert_true(wait_table_line(table, &place, &line));
    assert_true(wait_table_line(table, &place, &line));
    assert_int_equal(line.wall_ns, 800);
    assert_int_equal(line.running_ns, 700);
    assert_int_equal(line.blocked_ns, 100);
}

/* The kernel gives it the leader's tid, and makes no record for its own. */
STORY(ends_the_thread_that_executes_in_the_leaders_place)
{
    struct wait_table *table = *state;
    wait_table_fork(table, 5, 6, 1050);
    wait_table_in(table, 1, 5, 6, 1100);
    wait_table_exit(table, 0, 5, 5, 1150);
    wait_table_exec(table, 1, 5, 1200);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 6, 150, 100, 50, 0);
}

/* It sleeps with the leader's tid before the record of the exec. */
STORY(ends_the_thread_that_leaves_its_cpu_in_the_leaders_place)
{
    struct wait_table *table = *state;
    struct thread_line line;
    uint32_t place = 0;
    wait_table_in(table, 0, 5, 5, 1000);
    wait_table_fork(table, 5, 6, 1050);
    wait_table_in(table, 1, 5, 6, 1100);
    wait_table_exit(table, 0, 5, 5, 1150);
    go_out(table, 0, 5, 5, 1160, WAIT_PREEMPTED, 0, 1); /* on its way out */
    leave(table, 1, 5, 1200, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, 1300);
    wait_table_exec(table, 0, 5, 1400);
    expect_wait(table, 0, 5, WAIT_BLOCKED, 1200, 1300, true);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 6, 150, 100, 50, 0);
    assert_true(wait_table_line(table, &place, &line)); /* the leader that has exited */
    assert_int_equal(line.wall_ns, 150);
    while (wait_table_line(table, &place, &line) && line.tid != 5) {
    }
    assert_int_equal(line.boot_ts_ns, 1200);
    assert_int_equal(line.wall_ns, 800);
    assert_int_equal(line.running_ns, 700);
    assert_int_equal(line.blocked_ns, 100);
}

/* The tid of the thread that has taken its own. */
STORY(does_not_take_a_dead_leader_for_the_thread_whose_tid_it_has)
{
    struct wait_table *table = *state;
    wait_table_in(table, 0, 5, 5, 1000);
    wait_table_fork(table, 5, 6, 1050);
    wait_table_in(table, 1, 5, 6, 1100);
    wait_table_exit(table, 0, 5, 5, 1150);
    go_out(table, 0, 5, 6, 1160, WAIT_BLOCKED, 0, 1);
    leave(table, 1, 5, 1200, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, 1300);
    wait_table_exec(table, 0, 5, 1400);
    expect_wait(table, 0, 5, WAIT_BLOCKED, 1200, 1300, true);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 6, 150, 100, 50, 0);
}

/* It was seen on another one last, and the leader lives; or may have left that one unseen. */
STORY(takes_a_thread_for_the_one_that_leaves_a_cpu)
{
    struct wait_table *table = *state;
    wait_table_in(table, 0, 5, 5, 1000);
    wait_table_fork(table, 5, 6, 1050);
    wait_table_in(table, 1, 5, 6, 1100);
    go_out(table, 0, 5, 6, 1160, WAIT_BLOCKED, 0, 1);
    wait_table_in(table, 1, 5, 6, 1180);
    wait_table_in(table, 0, 7, 7, 1200);
    wait_table_fork(table, 7, 8, 1250);
    wait_table_in(table, 1, 7, 8, 1300);
    wait_table_exit(table, 0, 7, 7, 1350);
    lose(table, 1);
    go_out(table, 0, 7, 8, 1360, WAIT_BLOCKED, 0, 1);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 6, 950, 0, 50, 20);
    expect_line(table, 8, 750, 0, 50, 640);
}

/* It is not known which thread left the other CPU, but the exec ends all. */
STORY(ends_a_thread_that_executes_whatever_it_did_before)
{
    struct wait_table *table = *state;
    wait_table_fork(table, 5, 6, 1050);
    wait_table_in(table, 1, 5, 6, 1100);
    wait_table_exit(table, 0, 5, 5, 1150);
    go_out(table, 0, 5, 6, 1160, WAIT_BLOCKED, 0, 1);
    wait_table_exec(table, 1, 5, 1200);
    wait_table_stop(table, 2000, UINT64_MAX);
    assert_int_equal(line_of(table, 6).wall_ns, 150);
}

/* Where records of the CPU are missing, another may have left it. */
STORY(does_not_end_a_thread_that_may_have_left_before)
{
    struct wait_table *table = *state;
    wait_table_in(table, 0, 5, 5, 1000);
    wait_table_fork(table, 5, 6, 1050);
    wait_table_in(table, 1, 5, 6, 1100);
    wait_table_exit(table, 0, 5, 5, 1150);
    lose(table, 1);
    go_out(table, 1, 5, 5, 1200, WAIT_PREEMPTED, 0, 1);
    wait_table_in(table, 0, 5, 6, 1300);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 6, 950, 700, 50, 0);
}

/* Another thread that was switched to on its CPU shows that the switch from it is missing. */
STORY(knows_not_how_long_a_thread_ran_that_left_unseen)
{
    struct wait_table *table = *state;
    wait_table_fork(table, 5, 5, 1000);
    wait_table_in(table, 0, 5, 5, 1000);
    wait_table_in(table, 0, 6, 6, 1500);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 5, 1000, 0, 0, 0);
}

/* While a CPU's records are missing, a thread without a CPU may have that one. */
STORY(hands_no_wait_out_that_lies_in_a_time_without_records)
{
    struct wait_table *table = *state;
    wait_table_blind(table, 1, true);
    leave(table, 0, 5, 1100, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, 1400);
    assert_int_equal(expect_no_wait(table, 0), 1);
    assert_int_equal(wait_table_counts(table, 0, WAIT_BLOCKED).uncertain_ns, 300);
    leave(table, 0, 5, 1500, WAIT_BLOCKED);
    wait_table_blind(table, 1, false);
    wait_table_in(table, 0, 5, 5, 1600);
    assert_int_equal(expect_no_wait(table, 0), 1);
    leave(table, 0, 5, 1700, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, 1800);
    expect_wait(table, 0, 5, WAIT_BLOCKED, 1700, 1800, true);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 5, 1000, 100 + 100 + 200, 0, 100);
}

STORY(passes_over_a_reading_that_comes_too_late)
{
    struct wait_table *table = *state;
    struct thread_reading reading = {.pid = 5, .tid = 5, .at_ns = 1010, .run_count = 4};
    wait_table_in(table, 0, 5, 5, 1100);
    leave(table, 0, 5, 1300, WAIT_BLOCKED);
    wait_table_read(table, &reading, false);
    reading.at_ns = 1990;
    reading.run_ns = 500;
    wait_table_read(table, &reading, true);
    wait_table_stop(table, 2000, UINT64_MAX);
    assert_false(line_of(table, 5).by_schedstat);
    expect_line(table, 5, 1000, 200, 0, 800);
}

/* Its memory is taken apart after the record of its exit, which came before the run. */
STORY(does_not_let_the_dead_wait)
{
    struct wait_table *table = *state;
    struct thread_reading reading = {.pid = 6, .tid = 6, .at_ns = 1900, .run_count = 4};
    leave(table, 0, 5, 1100, WAIT_BLOCKED);
    leave(table, 0, 6, 1100, WAIT_BLOCKED);
    wait_table_read(table, &reading, true);
    leave(table, 1, 7, 1850, WAIT_BLOCKED); /* later than /proc was read */
    wait_table_stop(table, 2000, 1800);
    expect_line(table, 5, 100, 100, 0, 0);
    expect_line(table, 6, 1000, 100, 0, 900);
    expect_line(table, 7, 1000, 850, 0, 150);
}

STORY(hands_no_wait_out_in_which_records_were_lost)
{
    struct wait_table *table = *state;
    leave(table, 0, 5, 1100, WAIT_BLOCKED);
    lose(table, 1);
    wait_table_in(table, 0, 5, 5, 1400);
    assert_int_equal(expect_no_wait(table, 0), 1);
    struct wait_counts counts = wait_table_counts(table, 0, WAIT_BLOCKED);
    assert_int_equal(counts.uncertain_count, 1);
    assert_int_equal(counts.uncertain_ns, 300);
    assert_int_equal(counts.counted_ns, 300);
    /* It is on CPU 0, so what CPU 1 loses is not its own. */
    lose(table, 1);
    leave(table, 0, 5, 1500, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, 1600);
    expect_wait(table, 0, 5, WAIT_BLOCKED, 1500, 1600, true);
    /* What CPU 0 loses is. */
    lose(table, 0);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 5, 1000, 100 + 100, 0, 100);
}

STORY(believes_what_the_scheduler_says_of_a_thread_that_never_ran)
{
    struct wait_table *table = *state;
    struct thread_reading reading = {
        .pid = 5, .tid = 5, .at_ns = 1010, .run_ns = 70, .delay_ns = 3, .run_count = 4};
    wait_table_read(table, &reading, false);
    lose(table, 1);
    reading.at_ns = 1990;
    wait_table_read(table, &reading, true);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_wait(table, 0, 5, WAIT_BLOCKED, START, 2000, false);
    expect_line(table, 5, 1000, 0, 0, 1000);
    assert_true(line_of(table, 5).by_schedstat);
}

STORY(knows_a_thread_that_had_a_cpu_all_the_time)
{
    struct wait_table *table = *state;
    struct thread_reading reading = {.pid = 5, .tid = 5, .at_ns = 1010, .run_ns = 70};
    wait_table_read(table, &reading, false);
    reading.at_ns = 1990;
    reading.run_ns += 980;
    wait_table_read(table, &reading, true);
    wait_table_stop(table, 2000, UINT64_MAX);
    assert_null(wait_table_next(table, 0));
    expect_line(table, 5, 1000, 1000, 0, 0);
}

STORY(corrects_what_it_assumed_when_the_first_record_shows_that_a_thread_ran)
{
    struct wait_table *table = *state;
    struct thread_reading reading = {.pid = 5, .tid = 5, .at_ns = 1100, .run_ns = 5000};
    wait_table_read(table, &reading, false);
    leave(table, 0, 5, 1500, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, 1700);
    reading.at_ns = 1900;
    reading.run_ns += 400 + 200;
    reading.delay_ns = 50; /* after it was woken */
    reading.run_count = 1;
    wait_table_read(table, &reading, true);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_wait(table, 0, 5, WAIT_BLOCKED, 1500, 1700, true);
    expect_line(table, 5, 1000, 800, 50, 150);
}

STORY(needs_a_last_reading_of_a_thread_that_began_in_the_run)
{
    struct wait_table *table = *state;
    struct thread_reading reading = {.pid = 5, .tid = 5, .at_ns = 1150, .run_ns = 40};
    wait_table_fork(table, 5, 5, 1100);
    wait_table_in(table, 0, 5, 5, 1110);
    wait_table_read(table, &reading, false);
    wait_table_exit(table, 0, 5, 5, 1200);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 5, 100, 90, 10, 0);
    assert_false(line_of(table, 5).by_schedstat);
}

STORY(hands_a_wait_out_when_its_origin_comes_later)
{
    struct wait_table *table = *state;
    uint64_t ticket = wait_table_begin(table, 1);
    go_out(table, 0, 5, 5, 1100, WAIT_BLOCKED, ticket, 1);
    wait_table_in(table, 1, 5, 5, 1400);
    assert_null(wait_table_next(table, 1));
    assert_int_equal(wait_table_counts(table, 1, WAIT_BLOCKED).held_ns, 300);
    assert_true(wait_table_resolve(table, ticket, &origin));
    assert_false(wait_table_resolve(table, ticket, &origin));
    assert_int_equal(wait_table_counts(table, 1, WAIT_BLOCKED).held_ns, 0);
    expect_wait(table, 1, 5, WAIT_BLOCKED, 1100, 1400, true);
    assert_false(wait_table_resolve(table, ticket, &origin));
}

STORY(gives_stacks_back_of_waits_that_do_not_come_about)
{
    struct wait_table *table = *state;
    uint64_t ticket = wait_table_begin(table, 1);
    wait_table_cancel(table, ticket);
    assert_false(wait_table_resolve(table, ticket, &origin));
    ticket = wait_table_begin(table, 1);
    assert_true(wait_table_resolve(table, ticket, &origin));
    wait_table_cancel(table, ticket);
    /* Switched away from twice: one of the two records was lost. */
    leave(table, 0, 5, 1100, WAIT_BLOCKED);
    leave(table, 0, 5, 1200, WAIT_BLOCKED);
    wait_table_exit(table, 0, 5, 5, 1300);
    assert_int_equal(expect_no_wait(table, 0), 3);
}

TEST(sums_short_waits_alone)
{
    struct wait_table *table = make(100);
    (void)state;
    leave(table, 0, 5, 1100, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, 1199);
    leave(table, 0, 5, 1300, WAIT_BLOCKED);
    wait_table_in(table, 0, 5, 5, 1400);
    const struct wait *wait = wait_table_next(table, 0);
    assert_int_equal(wait->to_ns, wait->from_ns);
    assert_int_equal(wait_table_release(table, wait), 9);
    expect_wait(table, 0, 5, WAIT_BLOCKED, 1300, 1400, true);
    struct wait_counts counts = wait_table_counts(table, 0, WAIT_BLOCKED);
    assert_int_equal(counts.short_count, 1);
    assert_int_equal(counts.short_ns, 99);
    assert_int_equal(counts.counted_ns, 199);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, 5, 1000, 100 + 101 + 600, 0, 199);
    (void)wait_table_free(table);
}

/* One switch in four is sampled: a wait of it stands for four, and the others for none. Their sum
 * is that of all within a few of the standard errors that are stated. */
STORY(lets_some_waits_stand_for_others)
{
    struct wait_table *table = *state;
    uint64_t seed = 3;
    uint64_t time_ns = START;
    double sum_ns = 0;
    size_t count = 0;
    for (size_t i = 0; i < 20000; i++) {
        uint64_t ticket = draw_below(&seed, 4) == 0 ? wait_table_begin(table, 4) : 0;
        (void)wait_table_resolve(table, ticket, &origin);
        time_ns += 100;
        go_out(table, 0, 5, 5, time_ns, WAIT_BLOCKED, ticket, 4);
        time_ns += 1 + draw_below(&seed, 10000);
        wait_table_in(table, 0, 5, 5, time_ns);
        const struct wait *wait;
        while ((wait = wait_table_next(table, 0)) != NULL) {
            sum_ns += (double)wait_weight_ns(wait);
            count++;
            assert_int_equal(wait_table_release(table, wait), 9);
        }
    }
    struct wait_counts counts = wait_table_counts(table, 0, WAIT_BLOCKED);
    assert_int_equal(count + counts.thinned_count, 20000);
    assert_int_equal(counts.bare_count, 0);
    double off_ns = sum_ns - (double)counts.counted_ns;
    double part = counts.variance / sum_ns / sum_ns;
    assert_true(part > 0.01 * 0.01 && part < 0.02 * 0.02);
    assert_true(off_ns * off_ns < 4 * 4 * counts.variance);
    /* The thread's own books are exact. */
    wait_table_stop(table, time_ns, UINT64_MAX);
    expect_line(table, 5, time_ns - START, 20000 * 100, 0, counts.counted_ns);
}

/* Each wait that a sample begins is 300 ns longer for it than those that it stands for: by lengths
 * alone the sum would be 7 % too high. What is left is what is owed at the end, some waits' worth.
 * So many switches each thread makes, and then comes the next one. */
static void expect_not_misled(struct wait_table *table, size_t thread_switches)
{
    uint64_t seed = 3;
    uint64_t time_ns = START;
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < 20000; i++) {
        const bool is_sampled = i % 5 == 4;
        uint64_t ticket = is_sampled ? wait_table_begin(table, 5) : 0;
        (void)wait_table_resolve(table, ticket, &origin);
        time_ns += 100;
        const int32_t tid = 5 + (int32_t)(i / thread_switches);
        go_out(table, 0, 5, tid, time_ns, WAIT_BLOCKED, ticket, 5);
        time_ns += 4000 + draw_below(&seed, 40) + (is_sampled ? 300 : 0);
        wait_table_in(table, 0, 5, tid, time_ns);
        const struct wait *wait;
        while ((wait = wait_table_next(table, 0)) != NULL) {
            sum_ns += wait_weight_ns(wait);
            assert_int_equal(wait_table_release(table, wait), 9);
        }
    }
    const uint64_t counted_ns = wait_table_counts(table, 0, WAIT_BLOCKED).counted_ns;
    assert_in_range(sum_ns, counted_ns - counted_ns / 100, counted_ns + counted_ns / 100);
}

STORY(is_not_misled_by_what_a_sample_does_to_its_wait)
{
    expect_not_misled(*state, 20000);
}

STORY(nor_where_no_thread_has_samples_enough_to_tell)
{
    expect_not_misled(*state, 50);
}

/* Hands out what samples of one switch in five stand for: `length_of(i)` is how long the wait of
 * switch `i` takes. Their sum has to be that of all waits but for `off_ns`. */
static void expect_whole_sum(struct wait_table *table, uint64_t (*length_of)(size_t i),
                             uint64_t off_ns)
{
    uint64_t time_ns = START;
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < 20000; i++) {
        uint64_t ticket = i % 5 == 4 ? wait_table_begin(table, 5) : 0;
        (void)wait_table_resolve(table, ticket, &origin);
        time_ns += 100;
        go_out(table, 0, 5, 5, time_ns, WAIT_BLOCKED, ticket, 5);
        time_ns += length_of(i);
        wait_table_in(table, 0, 5, 5, time_ns);
        const struct wait *wait;
        while ((wait = wait_table_next(table, 0)) != NULL) {
            sum_ns += wait_weight_ns(wait);
            assert_int_equal(wait_table_release(table, wait), 9);
        }
    }
    const uint64_t counted_ns = wait_table_counts(table, 0, WAIT_BLOCKED).counted_ns;
    assert_in_range(sum_ns, counted_ns - off_ns, counted_ns + off_ns);
}

/* What a sample wakes makes the next wait ten times as long, and that one never has a sample: by
 * the samples alone the sum would be 60 % too low. */
static uint64_t long_behind_sample(size_t i)
{
    return i % 5 == 0 ? 40000 : 4000;
}

STORY(makes_up_for_waits_that_never_have_a_sample)
{
    expect_whole_sum(*state, long_behind_sample, 1000000);
}

/* The same, and one sample in 50 is of such a wait, which cannot stand for all of them. At the end
 * its class is owed at most what 8 samples may make up for, three times 68 us each, and what 50
 * samples left out, 850 us. */
static uint64_t long_and_hardly_sampled(size_t i)
{
    return i % 5 == 0 || i % 250 == 4 ? 17000 : 4000;
}

STORY(makes_up_for_waits_that_hardly_have_a_sample)
{
    expect_whole_sum(*state, long_and_hardly_sampled, 8 * 3 * 68000 + 850000);
}

/* While records are missing, two threads of 600 begin, one of which is seen late, and end; of one
 * of 700 nothing but a switch is known. */
STORY(takes_beginnings_and_ends_from_others_where_records_are_missing)
{
    struct wait_table *table = *state;
    lose(table, 0);
    wait_table_in(table, 0, 600, 601, 1600);
    wait_table_in(table, 1, 700, 701, 1650);
    wait_table_stop(table, 2000, 1990);
    expect_line(table, 601, 200, 0, 0, 0);
    assert_int_equal(line_of(table, 601).boot_ts_ns, 1500);
    expect_line(table, 701, 650, 0, 0, 0);
    assert_int_equal(line_of(table, 701).boot_ts_ns, START);
}

/* What ended more than a second before the stop is no longer known by then. */
STORY(remembers_ends_that_others_tell_of)
{
    struct wait_table *table = *state;
    lose(table, 0);
    wait_table_in(table, 0, 600, 601, 1600);
    lose(table, 0);
    wait_table_settle(table, 1650);
    uint32_t place = 0;
    struct thread_line line;
    assert_false(wait_table_line(table, &place, &line));
    wait_table_settle(table, 1800);
    is_forgotten = true;
    wait_table_stop(table, 5000, 4990);
    is_forgotten = false;
    expect_line(table, 601, 200, 0, 0, 0);
}

/* The record of its beginning was lost. */
STORY(knows_a_new_thread_by_the_number_of_a_dead_one)
{
    struct wait_table *table = *state;
    wait_table_fork(table, 600, 600, 1500);
    wait_table_in(table, 0, 600, 600, 1600);
    wait_table_exit(table, 0, 600, 600, 1700);
    leave(table, 0, 600, 1710, WAIT_BLOCKED); /* on its way out */
    assert_int_equal(expect_no_wait(table, 0), 1);
    lose(table, 0);
    wait_table_in(table, 0, 600, 600, 3200);
    leave(table, 0, 600, 3300, WAIT_BLOCKED);
    wait_table_in(table, 0, 600, 600, 3450);
    expect_wait(table, 0, 600, WAIT_BLOCKED, 3300, 3450, true);
    wait_table_stop(table, 4000, UINT64_MAX);
    struct thread_line lines[2];
    uint32_t place = 0;
    assert_true(wait_table_line(table, &place, &lines[0]));
    assert_true(wait_table_line(table, &place, &lines[1]));
    assert_int_equal(lines[0].wall_ns, 200);
    assert_int_equal(lines[1].wall_ns, 1000);
    assert_int_equal(lines[1].boot_ts_ns, 3000);
}

/* Other records say that it began with the exec, which is told after its first switch. */
STORY(knows_a_thread_that_executes_although_its_number_is_a_dead_one_s)
{
    struct wait_table *table = *state;
    struct thread_line line;
    uint32_t place = 0;
    wait_table_in(table, 0, 600, 600, 1000);
    wait_table_fork(table, 600, 601, 1050);
    wait_table_in(table, 1, 600, 601, 1100);
    wait_table_exit(table, 0, 600, 600, 1700);
    leave(table, 1, 600, 3200, WAIT_BLOCKED);
    wait_table_in(table, 0, 600, 600, 3300);
    wait_table_exec(table, 0, 600, 3400);
    wait_table_stop(table, 4000, UINT64_MAX);
    expect_line(table, 601, 2150, 2100, 50, 0);
    while (wait_table_line(table, &place, &line) && line.boot_ts_ns < 3000) {
    }
    assert_int_equal(line.boot_ts_ns, 3200);
    assert_int_equal(line.running_ns, 700);
    assert_int_equal(line.blocked_ns, 100);
}

/* What has gone unseen gives its place back, and does not come back with the next run. */
STORY(ends_at_the_stop_what_is_not_there)
{
    struct wait_table *table = *state;
    for (uint32_t run = 0; run < 3; run++) {
        for (uint32_t i = 0; i < TRACKED_THREADS_MAX / 4; i++) {
            wait_table_in(table, 0, 100000, (int32_t)(100000 + i + run * TRACKED_THREADS_MAX),
                          1100);
        }
        wait_table_stop(table, 2000, 1900);
        wait_table_start(table, 1000);
    }
    assert_int_equal(wait_table_thread_counts(table).refused, 0);
}

/* That of others has ended all the same: one process with many threads says nothing of them. */
STORY(keeps_waits_of_a_process_with_more_threads_than_are_read)
{
    struct wait_table *table = *state;
    wait_table_in(table, 0, 5, 5, 1100);
    leave(table, 0, 5, 1200, WAIT_BLOCKED);
    wait_table_in(table, 0, 6, 6, 1200);
    leave(table, 0, 6, 1300, WAIT_BLOCKED);
    wait_table_read(table, &(const struct thread_reading){.pid = 5, .at_ns = 1900}, true);
    wait_table_stop(table, 2000, 1800);
    const struct wait_counts counts = wait_table_counts(table, 0, WAIT_BLOCKED);
    assert_int_equal(counts.counted_ns, 100 + 800 + 200); /* assumed at first, and the first's */
    expect_line(table, 5, 1000, 100, 0, 900);
    assert_int_equal(line_of(table, 6).wall_ns, 300);
    for (const struct wait *wait; (wait = wait_table_next(table, 0)) != NULL;) {
        (void)wait_table_release(table, wait);
    }
}

STORY(counts_an_open_wait_on_the_cpu_that_was_left)
{
    struct wait_table *table = *state;
    wait_table_in(table, 0, 5, 5, 1100);
    go_out(table, 1, 5, 5, 1300, WAIT_BLOCKED, 0, 1); /* the switch to it was lost */
    wait_table_stop(table, 2000, UINT64_MAX);
    assert_int_equal(wait_table_counts(table, 0, WAIT_BLOCKED).counted_ns, 100);
    assert_int_equal(wait_table_counts(table, 1, WAIT_BLOCKED).counted_ns, 700);
}

STORY(lets_long_waits_stand_for_themselves)
{
    struct wait_table *table = *state;
    uint64_t ticket = wait_table_begin(table, 7);
    assert_true(wait_table_resolve(table, ticket, &origin));
    go_out(table, 0, 5, 5, 2000, WAIT_BLOCKED, ticket, 7);
    wait_table_in(table, 0, 5, 5, 2000 + LONG_NS);
    go_out(table, 0, 5, 5, 5 * LONG_NS, WAIT_BLOCKED, 0, 7);
    wait_table_in(table, 0, 5, 5, 6 * LONG_NS);
    go_out(table, 0, 5, 5, 7 * LONG_NS, WAIT_BLOCKED, 0, 7);
    wait_table_in(table, 0, 5, 5, 7 * LONG_NS + 50);
    const struct wait *wait = wait_table_next(table, 0);
    assert_int_equal(wait->others_ns, 0);
    assert_int_equal(wait_table_release(table, wait), 9);
    wait = wait_table_next(table, 0);
    assert_int_equal(wait->others_ns, 0);
    assert_false(wait->has_origin);
    (void)wait_table_release(table, wait);
    assert_null(wait_table_next(table, 0));
    struct wait_counts counts = wait_table_counts(table, 0, WAIT_BLOCKED);
    assert_int_equal(counts.thinned_count, 1);
    assert_int_equal(counts.thinned_ns, 50);
    assert_int_equal(counts.long_count, 1);
    assert_true(counts.variance == 50 * 50 * (7 - 1)); /* of the one that is not long */
    assert_int_equal(counts.largest_ns, 50 * (7 - 1));
}

/* The CPU on which they begin decides how many there are. */
STORY(counts_long_waits_where_they_begin)
{
    struct wait_table *table = *state;
    wait_table_in(table, 1, 5, 5, 1100);
    go_out(table, 1, 5, 5, 2000, WAIT_BLOCKED, 0, 7);
    wait_table_in(table, 0, 5, 5, 2000 + LONG_NS);
    assert_int_equal(wait_table_counts(table, 0, WAIT_BLOCKED).long_count, 0);
    assert_int_equal(wait_table_counts(table, 1, WAIT_BLOCKED).long_count, 1);
    for (const struct wait *wait; (wait = wait_table_next(table, 0)) != NULL;) {
        (void)wait_table_release(table, wait);
    }
}

STORY(lets_each_wait_of_the_sampler_stand_for_itself)
{
    struct wait_table *table = *state;
    for (uint64_t at_ns = 2000; at_ns < 5000; at_ns += 1000) {
        go_out(table, 0, SAMPLER_PID, 80, at_ns, WAIT_BLOCKED, 0, 7);
        wait_table_in(table, 0, SAMPLER_PID, 80, at_ns + 50);
        const struct wait *wait = wait_table_next(table, 0);
        assert_int_equal(wait_weight_ns(wait), 50);
        (void)wait_table_release(table, wait);
    }
    struct wait_counts counts = wait_table_counts(table, 0, WAIT_BLOCKED);
    assert_int_equal(counts.thinned_count, 0);
    assert_int_equal(counts.long_count, 0); /* of which the rate bounds how many there are */
    assert_true(counts.variance == 0);
}

STORY(leaves_places_to_other_accounts_and_reuses_those_of_the_dead)
{
    struct wait_table *table = *state;
    for (uint32_t i = 0; i < TRACKED_THREADS_MAX; i++) {
        wait_table_fork(table, 100000, (int32_t)(100000 + i), 1100);
    }
    uint64_t refused = wait_table_thread_counts(table).refused;
    assert_true(refused >= TRACKED_THREADS_MAX / 2 && refused < TRACKED_THREADS_MAX / 2 + 8);
    /* One account in 4,096 shares the part of the first (quota.h). */
    wait_table_fork(table, 5, 5, 1200);
    const uint64_t refused_then = wait_table_thread_counts(table).refused;
    const int32_t other = refused_then == refused ? 5 : 6;
    for (uint32_t i = 1; i < TRACKED_THREADS_MAX; i++) {
        wait_table_fork(table, other, (int32_t)i, 1200);
        wait_table_in(table, 0, other, (int32_t)i, 1200);
        wait_table_exit(table, 0, other, (int32_t)i, 1300);
    }
    struct wait_thread_counts counts = wait_table_thread_counts(table);
    assert_int_equal(counts.refused, refused_then);
    assert_true(counts.forgotten >= TRACKED_THREADS_MAX / 2 - 8);
    wait_table_stop(table, 2000, UINT64_MAX);
    expect_line(table, (int32_t)TRACKED_THREADS_MAX - 1, 100, 100, 0, 0);
}

/* What has ended on a CPU, added to what was handed out. */
static void take_all(struct wait_table *table, size_t cpu, uint64_t handed_out_ns[WAIT_KINDS])
{
    const struct wait *wait;
    while ((wait = wait_table_next(table, cpu)) != NULL) {
        handed_out_ns[wait->kind] += wait->to_ns - wait->from_ns;
        (void)wait_table_release(table, wait);
    }
}

/* Whatever the records, and however many are lost: nothing is counted twice, and no thread's terms
 * are more than its time. */
STORY(adds_up_in_any_order_of_records)
{
    struct wait_table *table = *state;
    uint64_t seed = 7;
    uint64_t time_ns = START;
    uint64_t handed_out_ns[WAIT_KINDS] = {0};
    uint64_t tickets[16] = {0};
    for (size_t i = 0; i < 200000; i++) {
        const size_t cpu = draw_below(&seed, CPUS);
        const int32_t tid = (int32_t)draw_below(&seed, 40);
        const int32_t pid = tid % 3 == 0 ? tid : (int32_t)draw_below(&seed, 2) + 1;
        uint64_t *ticket = &tickets[draw_below(&seed, 16)];
        time_ns += draw_below(&seed, 50);
        switch (draw_below(&seed, 9)) {
        case 0:
            wait_table_fork(table, pid, tid, time_ns);
            break;
        case 1:
            wait_table_exit(table, cpu, pid, tid, time_ns);
            break;
        case 2:
            wait_table_exec(table, cpu, pid, time_ns);
            break;
        case 3:
            if (draw_below(&seed, 20) == 0) {
                lose(table, cpu);
            }
            break;
        case 4:
            *ticket = wait_table_begin(table, 1);
            break;
        case 5:
            (void)wait_table_resolve(table, *ticket, &origin);
            break;
        case 6:
            go_out(table, cpu, pid, tid, time_ns, (enum wait_kind)draw_below(&seed, 2), *ticket,
                   1 + (uint32_t)draw_below(&seed, 2));
            break;
        default:
            wait_table_in(table, cpu, pid, tid, time_ns);
            break;
        }
        take_all(table, cpu, handed_out_ns);
    }
    wait_table_stop(table, time_ns, UINT64_MAX);
    struct wait_counts sum[WAIT_KINDS] = {0};
    for (size_t cpu = 0; cpu < CPUS; cpu++) {
        take_all(table, cpu, handed_out_ns);
        for (size_t kind = 0; kind < WAIT_KINDS; kind++) {
            struct wait_counts counts = wait_table_counts(table, cpu, (enum wait_kind)kind);
            sum[kind].counted_ns += counts.counted_ns;
            sum[kind].short_ns +=
                counts.short_ns + counts.uncertain_ns + counts.held_ns + counts.thinned_ns;
        }
    }
    for (size_t kind = 0; kind < WAIT_KINDS; kind++) {
        assert_int_equal(sum[kind].counted_ns, handed_out_ns[kind] + sum[kind].short_ns);
        assert_true(handed_out_ns[kind] > 0);
    }
    struct thread_line line;
    uint32_t place = 0;
    while (wait_table_line(table, &place, &line)) {
        assert_true(thread_line_unexplained(&line) >= 0);
        assert_true(line.running_ns + line.waiting_ns + line.blocked_ns <= line.wall_ns);
    }
}
