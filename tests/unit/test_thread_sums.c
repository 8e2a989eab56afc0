/* SPDX-License-Identifier: Apache-2.0 */

/* The time of threads, summed up for each process, in whatever order their lines come. */
#include "cleanup.h"
#include "thread_sums.h"
#include "unit_test.h"

__attribute__((format(printf, 2, 3))) static void take(struct thread_sums *sums, const char *format,
                                                       ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cJSON *parsed = cJSON_Parse(line);
    assert_non_null(parsed);
    assert_int_equal(thread_sums_take(parsed, sums), 0);
    cJSON_Delete(parsed);
}

/* A thread that ran for 1 ms of 2. */
static void take_thread(struct thread_sums *sums, int64_t pid, int64_t tid)
{
    take(sums,
         "{\"pid\":%lld,\"tid\":%lld,\"name\":\"t%lld\",\"wall_ns\":2000000,\"running_ns\":1000000,"
         "\"blocked_ns\":1000000}",
         (long long)pid, (long long)tid, (long long)tid);
}

TEST(sums_up_threads_under_the_name_of_their_leader)
{
    cleanup_(thread_sums_done) struct thread_sums sums = {0};
    take_thread(&sums, 7, 9);
    take_thread(&sums, 5, 6);
    take_thread(&sums, 7, 7);
    take_thread(&sums, 7, 8);
    thread_sums_order(&sums);
    assert_int_equal(sums.count, 2);
    assert_int_equal(sums.all[0].pid, 7);
    assert_string_equal(sums.all[0].name, "t7");
    assert_int_equal(sums.all[0].thread_count, 3);
    assert_int_equal(sums.all[0].wall_ns, 6000000);
    assert_int_equal(sums.all[0].running_ns, 3000000);
    assert_int_equal(sums.all[0].blocked_ns, 3000000);
    assert_int_equal(sums.all[1].pid, 5);
    assert_string_equal(sums.all[1].name, "t6");
    assert_int_equal(sums.all[1].thread_count, 1);
}
