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

/* Threads that ran for 1 ms of 2, `count` of them, each with the next tid and the pid of it. */
static void take_threads(struct thread_sums *sums, int64_t count, int64_t (*pid_of)(int64_t tid))
{
    cJSON *line = cJSON_Parse("{\"pid\":0,\"tid\":0,\"name\":\"\",\"wall_ns\":2000000,"
                              "\"running_ns\":1000000,\"blocked_ns\":1000000}");
    assert_non_null(line);
    cJSON *pid = cJSON_GetObjectItemCaseSensitive(line, "pid");
    cJSON *tid = cJSON_GetObjectItemCaseSensitive(line, "tid");
    for (int64_t i = 1; i <= count; i++) {
        cJSON_SetNumberValue(pid, (double)pid_of(i));
        cJSON_SetNumberValue(tid, (double)i);
        assert_int_equal(thread_sums_take(line, sums), 0);
    }
    cJSON_Delete(line);
}

static int64_t one_of_three(int64_t tid)
{
    return 1 + tid % 3;
}

#define PROCESS_COUNT (3 * (int64_t)THREAD_SUMS_MAX)

/* Each has two threads; the highest pids come first. */
static int64_t one_of_many(int64_t tid)
{
    return PROCESS_COUNT - tid % PROCESS_COUNT;
}

TEST(sums_up_threads_under_the_name_of_their_leader)
{
    cleanup_(thread_sums_done) struct thread_sums sums = {0};
    static const int ids[][2] = {{7, 9}, {5, 6}, {7, 7}, {7, 8}};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        take(&sums,
             "{\"pid\":%d,\"tid\":%d,\"name\":\"t%d\",\"wall_ns\":2000000,\"running_ns\":1000000,"
             "\"blocked_ns\":1000000}",
             ids[i][0], ids[i][1], ids[i][1]);
    }
    thread_sums_order(&sums);
    assert_int_equal(sums.count, 2);
    assert_int_equal(sums.all[0].pid, 7);
    assert_string_equal(sums.all[0].name, "t7");
    assert_int_equal(sums.all[0].thread_count, 3);
    assert_int_equal(sums.all[0].times.wall_ns, 6000000);
    assert_int_equal(sums.all[0].times.running_ns, 3000000);
    assert_int_equal(sums.all[0].times.blocked_ns, 3000000);
    assert_int_equal(sums.all[1].pid, 5);
    assert_string_equal(sums.all[1].name, "t6");
    assert_int_equal(sums.all[1].thread_count, 1);
}

/* By switches alone it is not known when a thread was woken. */
TEST(says_whose_ready_time_is_in_the_blocked_one)
{
    static const struct {
        const char *sources[3];
        const char *expected;
    } cases[] = {
        {{"schedstat", "schedstat", "schedstat"}, ""},
        {{"schedstat", "switches", "schedstat"},
         "blocked_ms of the thread that had ended or could not be read again has the ready time after each waking, too\n"},
        {{"switches", "switches", "switches"},
         "blocked_ms of the 3 threads that had ended or could not be read again has the ready time after each waking, too\n"},
    };
    (void)unsetenv("COLUMNS");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(thread_sums_done) struct thread_sums sums = {0};
        char *text = NULL;
        size_t text_bytes = 0;
        for (int thread = 0; thread < 3; thread++) {
            take(&sums, "{\"pid\":%d,\"tid\":%d,\"running_ns\":1,\"source\":\"%s\"}",
                 1 + thread / 2, 1 + thread, cases[i].sources[thread]);
        }
        thread_sums_order(&sums);
        FILE *file = open_memstream(&text, &text_bytes);
        assert_non_null(file);
        thread_sums_print(file, &sums);
        assert_int_equal(fclose(file), 0);
        const char *footnote = strstr(text, "blocked_ms of");
        assert_string_equal(footnote == NULL ? "" : footnote, cases[i].expected);
        free(text);
    }
}

/* As a recording of builds has: many more threads than processes. */
TEST(sums_up_any_number_of_threads)
{
    const int64_t each_count = (4 * (int64_t)THREAD_SUMS_MAX + 2) / 3;
    cleanup_(thread_sums_done) struct thread_sums sums = {0};
    take_threads(&sums, 3 * each_count, one_of_three);
    thread_sums_order(&sums);
    assert_int_equal(sums.count, 3);
    assert_int_equal(sums.left_out_count, 0);
    for (size_t i = 0; i < sums.count; i++) {
        assert_int_equal(sums.all[i].thread_count, each_count);
        assert_int_equal(sums.all[i].times.running_ns, each_count * 1000000);
    }
    assert_true(sums.capacity <= 2 * THREAD_SUMS_MAX);
}

/* A process is there with all of its threads, or not at all. */
TEST(counts_the_threads_of_processes_that_are_too_many)
{
    cleanup_(thread_sums_done) struct thread_sums sums = {0};
    take_threads(&sums, 2 * PROCESS_COUNT, one_of_many);
    thread_sums_order(&sums);
    assert_int_equal(sums.count, THREAD_SUMS_MAX);
    assert_int_equal(sums.left_out_count, 4 * THREAD_SUMS_MAX);
    for (size_t i = 0; i < sums.count; i++) {
        assert_true(sums.all[i].pid <= (int64_t)THREAD_SUMS_MAX);
        assert_int_equal(sums.all[i].thread_count, 2);
    }
}

TEST(does_not_overflow)
{
    cleanup_(thread_sums_done) struct thread_sums sums = {0};
    for (int i = 0; i < 8; i++) {
        take(&sums, "{\"pid\":1,\"tid\":1,\"running_ns\":2305843009213693000,"
                    "\"waiting_ns\":2305843009213693000,\"blocked_ns\":-2305843009213693000}");
        take(&sums, "{\"pid\":2,\"tid\":2,\"running_ns\":1}");
    }
    thread_sums_order(&sums);
    assert_int_equal(sums.all[0].pid, 1);
    assert_true(sums.all[0].times.running_ns > 0 && sums.all[0].times.blocked_ns < 0);
}
