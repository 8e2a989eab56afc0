/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The books of a thread close by whatever they are made of: of the scheduler's sums between two
 * readings and the records before and behind them, or of records alone.
 */
#include "thread_line.h"
#include "unit_test.h"

static void assert_line(const struct thread_line *line, uint64_t wall_ns, uint64_t running_ns,
                        uint64_t waiting_ns, uint64_t blocked_ns, int64_t unexplained_ns)
{
    assert_int_equal(line->wall_ns, wall_ns);
    assert_int_equal(line->running_ns, running_ns);
    assert_int_equal(line->waiting_ns, waiting_ns);
    assert_int_equal(line->blocked_ns, blocked_ns);
    assert_int_equal(thread_line_unexplained(line), unexplained_ns);
}

/* 1,000 ns in which 300 it ran, 600 it was blocked and 100 preempted. */
static const struct thread_run by_records = {
    .from_ns = 1000,
    .to_ns = 2000,
    .is_seen = true,
    .sums = {.running_ns = 300, .blocked_ns = 600, .preempted_ns = 100},
};

TEST(is_of_records_alone_without_two_readings)
{
    struct thread_line line = {0};
    struct thread_run run = by_records;
    (void)state;
    run.has_first = true;
    run.first.run_ns = 77;
    thread_line_add(&line, &run);
    assert_line(&line, 1000, 300, 100, 600, 0);
    assert_false(line.by_schedstat);
    assert_int_equal(line.boot_ts_ns, 1000);
}

/* Between the readings it ran 200 ns by its own account, where records say 210, and was ready for
 * 150, of which it was preempted for 90. */
static struct thread_run with_readings(void)
{
    struct thread_run run = by_records;
    run.has_first = run.has_last = true;
    run.first = (struct thread_reading){.at_ns = 1100, .run_ns = 5000, .delay_ns = 700};
    run.last = (struct thread_reading){.at_ns = 1900, .run_ns = 5200, .delay_ns = 850};
    run.first_sums = (struct thread_sums){.running_ns = 50, .blocked_ns = 40, .preempted_ns = 10};
    run.last_sums = (struct thread_sums){.running_ns = 260, .blocked_ns = 540, .preempted_ns = 100};
    return run;
}

TEST(takes_the_scheduler_s_sums_and_at_both_ends_records)
{
    struct thread_line line = {0};
    struct thread_run run = with_readings();
    (void)state;
    thread_line_add(&line, &run);
    /* 50 + 200 + 40; 100 and the 60 for which it was ready after it was woken; what is left of 600;
     * the 10 by which the two differ. */
    assert_line(&line, 1000, 290, 160, 540, 10);
    assert_true(line.by_schedstat);
}

/* Records of 100 ns between the readings are missing: by the scheduler it ran for 90 of these, so
 * it was ready for 10, and for 50 while it was off. */
TEST(takes_what_only_the_scheduler_knows_from_what_no_record_tells)
{
    struct thread_line line = {0};
    struct thread_run run = with_readings();
    (void)state;
    run.sums.running_ns -= 100;
    run.last_sums.running_ns -= 100;
    thread_line_add(&line, &run);
    assert_line(&line, 1000, 290, 160, 550, 0);
}

TEST(never_was_ready_for_longer_than_it_was_off)
{
    struct thread_line line = {0};
    struct thread_run run = with_readings();
    (void)state;
    run.last.delay_ns = 99999;
    thread_line_add(&line, &run);
    assert_line(&line, 1000, 290, 700, 0, 10);
    /* And less than it was preempted is nothing. */
    line = (struct thread_line){0};
    run.last.delay_ns = run.first.delay_ns;
    thread_line_add(&line, &run);
    assert_line(&line, 1000, 290, 100, 600, 10);
}

TEST(knows_a_thread_without_a_record_by_what_it_ran)
{
    struct thread_line line = {0};
    struct thread_run run = with_readings();
    (void)state;
    run.is_seen = false;
    run.sums = run.first_sums = run.last_sums = (struct thread_sums){0};
    run.last.run_ns = run.first.run_ns + 790;
    thread_line_add(&line, &run);
    assert_line(&line, 1000, 100 + 790 + 100, 0, 0, 10);
    line = (struct thread_line){0};
    run.last.run_ns = run.first.run_ns;
    thread_line_add(&line, &run);
    assert_line(&line, 1000, 0, 0, 1000, 0);
    /* It had a CPU again and again, and records should have said so. */
    line = (struct thread_line){0};
    run.last.run_ns += 5;
    run.last.run_count = 3;
    thread_line_add(&line, &run);
    assert_line(&line, 1000, 5, 0, 0, 995);
    line = (struct thread_line){0};
    run.has_last = false;
    thread_line_add(&line, &run);
    assert_line(&line, 1000, 0, 0, 0, 1000);
}

/* Blocked at the first reading; what it was then until the next switch was lost and is in no sum:
 * it may have been ready, as the scheduler says. */
TEST(keeps_the_ready_time_where_a_state_was_dropped)
{
    struct thread_line line = {0};
    struct thread_run run = with_readings();
    (void)state;
    run.first_sums = (struct thread_sums){.blocked_ns = 90};
    run.sums = run.last_sums = (struct thread_sums){.running_ns = 20};
    run.last.run_ns = 5000 + 20;
    thread_line_add(&line, &run);
    assert_line(&line, 1000, 20, 150, 0, 830);
}

TEST(adds_runs_up)
{
    struct thread_line line = {0};
    struct thread_run run = with_readings();
    (void)state;
    thread_line_add(&line, &run);
    run = by_records;
    run.from_ns = 5000;
    run.to_ns = 6000;
    thread_line_add(&line, &run);
    assert_line(&line, 2000, 590, 260, 1140, 10);
    assert_false(line.by_schedstat);
    assert_int_equal(line.boot_ts_ns, 1000);
}

TEST(prints_one_line_of_json)
{
    struct thread_line line = {.pid = 7, .tid = 8, .name = "a\"\nb", .voluntary = 3};
    char text[THREAD_LINE_BYTES];
    (void)state;
    thread_line_add(&line, &by_records);
    line.running_ns += 5;
    size_t bytes = thread_line_print(&line, text);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(
        text,
        "{\"pid\":7,\"tid\":8,\"name\":\"a\\\"\\u000ab\",\"boot_ts_ns\":1000,\"wall_ns\":1000,"
        "\"running_ns\":305,\"waiting_ns\":100,\"blocked_ns\":600,\"unexplained_ns\":-5,"
        "\"voluntary\":3,\"involuntary\":0,\"source\":\"switches\"}\n");
    /* The longest. */
    memset(&line, 0xff, sizeof line);
    memset(line.name, '\x01', sizeof line.name);
    line.has_runs = line.by_schedstat = true;
    assert_true(thread_line_print(&line, text) < THREAD_LINE_BYTES);
}
