/* SPDX-License-Identifier: Apache-2.0 */

/* The books as a person sees them, of daemons old and new and of files that anybody wrote. */
#include "books_print.h"
#include "unit_test.h"

/* Returned: free(). */
static char *print(const char *books_json)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    unsetenv("COLUMNS");
    books_print_print(file, books_json);
    assert_int_equal(fclose(file), 0);
    return text;
}

#define NO_BOOKS                                                                                   \
    "books: not in this recording; the account of ticks comes with the last part of a session\n"

static void assert_printed(const char *books_json, const char *expected)
{
    char *text = print(books_json);
    assert_string_equal(text, expected);
    free(text);
}

/* Whether a text is in what is printed. */
static bool prints(const char *books_json, const char *part)
{
    char *text = print(books_json);
    bool is_there = strstr(text, part) != NULL;
    free(text);
    return is_there;
}

TEST(prints_a_line_a_cpu_and_a_total)
{
    assert_printed("{\"cpus\":[{\"cpu\":0,\"expected\":1000,\"received\":900,\"missed\":10,"
                   "\"idle\":90,\"unexplained\":-10}],\"total\":{\"expected\":1000,"
                   "\"received\":900,\"missed\":10,\"idle\":90,\"unexplained\":-10},"
                   "\"idle_source\":\"switches\",\"truncated_stacks\":34,\"stitched_stacks\":2}",
                   "  cpu  expected  received  missed  idle  unexplained\n"
                   "    0      1000       900      10    90          -10\n"
                   "total      1000       900      10    90          -10\n"
                   "idle time source: context switches\n"
                   "34 stacks incomplete\n"
                   "2 of them repaired from earlier samples of their threads\n");
    assert_true(prints("{\"truncated_stacks\":1,\"stitched_stacks\":1}",
                       "1 stack incomplete\n"
                       "1 of them repaired from earlier samples of its thread\n"));
}

TEST(books_of_older_daemons_lack_columns)
{
    assert_printed("{\"cpus\":[{\"cpu\":0,\"expected\":10,\"received\":10,\"throttled\":null,"
                   "\"missed\":null,\"idle\":null}],\"total\":{\"expected\":10},"
                   "\"idle_source\":null}",
                   "  cpu  expected  received\n"
                   "    0        10        10\n"
                   "total        10         -\n");
    assert_printed("[]", NO_BOOKS);
    assert_printed(NULL, NO_BOOKS);
}

/* Each term but those that are no loss, from just above 1 % of a CPU's own ticks. */
TEST(warns_of_what_is_more_than_a_percent)
{
    static const struct {
        const char *member;
        int count;
        const char *warning; /* NULL: none */
    } cases[] = {
        {"lost", 10, NULL},
        {"lost", 11, "warning: cpu 3: 1.1 % of the ticks are lost: the daemon did not empty"},
        {"throttled", 500, "warning: cpu 3: 50.0 % of the ticks are throttled: the kernel held"},
        {"missed", 20, "warning: cpu 3: 2.0 % of the ticks are missed: the timer's"},
        {"unexplained", 12, "warning: cpu 3: 1.2 % of the ticks are unexplained: nothing"},
        {"unexplained", -12, "warning: cpu 3: -1.2 % of the ticks are unexplained: the other"},
        {"dropped", 900, "warning: cpu 3: 90.0 % of the ticks are dropped: the trace"},
        {"idle", 900, NULL},
        {"filtered", 900, NULL},
        {"offline_ns", 900, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char books[256];
        (void)snprintf(books, sizeof books,
                       "{\"cpus\":[{\"cpu\":3,\"expected\":1000,\"%s\":%d}],\"total\":"
                       "{\"expected\":1000000}}",
                       cases[i].member, cases[i].count);
        char *text = print(books);
        const char *warning = strstr(text, "warning:");
        if (cases[i].warning == NULL) {
            assert_null(warning);
        } else {
            assert_non_null(warning);
            assert_memory_equal(warning, cases[i].warning, strlen(cases[i].warning));
            assert_ptr_equal(strchr(warning, '\n'), text + strlen(text) - 1);
        }
        free(text);
    }
}

TEST(does_not_warn_of_the_fractions_at_the_ends_of_a_short_run)
{
    assert_false(prints("{\"cpus\":[{\"cpu\":0,\"expected\":3,\"unexplained\":2},"
                        "{\"cpu\":1,\"expected\":3,\"unexplained\":-2}],\"total\":{}}",
                        "warning:"));
    assert_true(prints("{\"cpus\":[{\"cpu\":0,\"expected\":30,\"unexplained\":3}],\"total\":{}}",
                       "warning: cpu 0: 10.0 % of the ticks are unexplained"));
}

TEST(tells_what_the_hypervisor_took)
{
    assert_true(prints("{\"period_ns\":10000000,\"cpus\":[{\"cpu\":1,\"expected\":100,"
                       "\"missed\":5,\"steal_ns\":120000000}],\"total\":{}}",
                       "are missed: the hypervisor ran something else for 120 ms; "));
    assert_true(prints("{\"period_ns\":10000000,\"cpus\":[{\"cpu\":1,\"expected\":100,"
                       "\"missed\":5,\"steal_ns\":20000000}],\"total\":{}}",
                       "interrupts were off; what ran then is not in the profile "
                       "(the hypervisor took 20 ms of it)\n"));
}

/* Stolen time is named where it can be the cause of so many ticks, and of their sign. */
TEST(blames_the_hypervisor_for_no_more_than_it_took)
{
    static const struct {
        int unexplained;
        int steal_ms;
        const char *period;
        const char *expected;
    } cases[] = {
        {12, 90, "10000000",
         "the hypervisor ran something else for 90 ms, and is the likely cause"},
        {12, 60, "10000000",
         "the hypervisor ran something else for 60 ms, and is the likely cause"},
        {12, 50, "10000000", "nothing that is measured says where they went; "},
        {12, 90, "null", "nothing that is measured says where they went; "},
        {-12, 90, "10000000", "the other terms together are more than the measured time "},
        {-12, 1, "10000000", "the other terms together are more than the measured time "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char books[256];
        (void)snprintf(books, sizeof books,
                       "{\"period_ns\":%s,\"cpus\":[{\"cpu\":0,\"expected\":100,"
                       "\"unexplained\":%d,\"steal_ns\":%d000000}],\"total\":{}}",
                       cases[i].period, cases[i].unexplained, cases[i].steal_ms);
        char *text = print(books);
        assert_contains(text, " % of the ticks are unexplained: ");
        assert_contains(text, cases[i].expected);
        assert_int_equal(strstr(text, "hypervisor") != NULL,
                         strstr(cases[i].expected, "hypervisor") != NULL);
        free(text);
    }
    assert_true(prints("{\"period_ns\":null,\"cpus\":[{\"cpu\":1,\"expected\":100,"
                       "\"missed\":5,\"steal_ns\":120000000}],\"total\":{}}",
                       "interrupts were off, or the hypervisor ran something else; what ran then "
                       "is not in the profile (the hypervisor took 120 ms of it)\n"));
}

/* 100,000 Hz for a second, of which every second tick found the sample before it at work. */
TEST(tells_that_samples_cost_more_than_the_rate_leaves)
{
    char *text = print("{\"period_ns\":10009,\"cpus\":[{\"cpu\":0,\"expected\":99910,"
                       "\"received\":49910,\"missed\":50000,\"crowded\":49000,\"idle\":0,"
                       "\"steal_ns\":10000000}],\"total\":{}}");
    assert_contains(text, "warning: cpu 0: 50.0 % of the ticks are missed: a sample takes "
                          "longer than the 10.0 us from a tick to the next: they came 20.0 "
                          "us apart; lower the rate to 49910 Hz\n");
    assert_null(strstr(text, "hypervisor"));
    free(text);
}

TEST(warns_of_the_total_where_there_are_no_cpus)
{
    assert_true(prints("{\"cpus\":[],\"total\":{\"expected\":100,\"dropped\":5}}",
                       "warning: all CPUs: 5.0 % of the ticks are dropped"));
}

TEST(many_cpus_do_not_fill_the_screen)
{
    char books[4096];
    size_t used = (size_t)snprintf(books, sizeof books, "{\"cpus\":[");
    for (int i = 0; i < 20; i++) {
        used += (size_t)snprintf(books + used, sizeof books - used,
                                 "%s{\"cpu\":%d,\"expected\":100,\"lost\":9,\"missed\":9}",
                                 i == 0 ? "" : ",", i);
    }
    (void)snprintf(books + used, sizeof books - used, "],\"total\":{}}");
    char *text = print(books);
    size_t count = 0;
    for (const char *at = strstr(text, "warning:"); at != NULL; at = strstr(at + 1, "warning:")) {
        count++;
    }
    assert_int_equal(count, 9);
    assert_contains(text, "warning: and 32 more of the same\n");
    free(text);
}

TEST(leaves_columns_of_zeros_out_of_a_page_that_is_too_narrow)
{
    EXPECT_PRINTED(
        "0 on each CPU: lost, dropped\n"
        "  cpu  expected  received  idle  kept\n"
        "    0       100        90    10    90\n"
        "total       100        90    10    90\n",
        books_print_table(&(struct page){.file = file, .columns = 40},
                          "{\"cpus\":[{\"cpu\":0,\"expected\":100,\"received\":90,\"lost\":0,"
                          "\"idle\":10,\"kept\":90,\"dropped\":0}],\"total\":{\"expected\":100,"
                          "\"received\":90,\"lost\":0,\"idle\":10,\"kept\":90,\"dropped\":0}}"));
}

TEST(prints_no_table_when_all_columns_are_left_out)
{
    EXPECT_PRINTED("0 on each CPU:\nexpected, kept\n",
                   books_print_table(&(struct page){.file = file, .columns = 15},
                                     "{\"cpus\":[{\"cpu\":0,\"expected\":0,\"kept\":0}],"
                                     "\"total\":{\"expected\":0,\"kept\":0}}"));
}

#define WIDE_BOOKS                                                                                 \
    "{\"cpus\":[{\"cpu\":0,\"expected\":1000,\"received\":900,\"lost\":1,\"throttled\":1,"         \
    "\"missed\":98,\"idle\":0,\"kept\":900}],\"total\":{\"expected\":1000,\"received\":900,"       \
    "\"lost\":1,\"throttled\":1,\"missed\":98,\"idle\":0,\"kept\":900}}"

TEST(becomes_paragraphs_where_no_table_fits)
{
    EXPECT_PRINTED(
        "- cpu 0: 1000 expected, 900 received, 1\n"
        "  lost, 1 throttled, 98 missed, 900 kept\n"
        "- total: 1000 expected, 900 received, 1\n"
        "  lost, 1 throttled, 98 missed, 900 kept\n"
        "warning: cpu 0: 9.8 % of the ticks are\n"
        "missed: the timer's interrupt came too\n"
        "late for them: interrupts were off, or a\n"
        "hypervisor that does not tell ran\n"
        "something else; what ran then is not in\n"
        "the profile\n",
        books_print_table(&(struct page){.file = file, .columns = 60, .prose_columns = 40},
                          WIDE_BOOKS));
}

TEST(says_in_one_line_where_the_ticks_went)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    const struct page page = {.file = file, .columns = PAGE_UNLIMITED};
    books_print_brief(&page, "{\"total\":{\"expected\":100,\"received\":90,\"lost\":0,"
                             "\"idle\":10,\"kept\":80,\"filtered\":10}}");
    books_print_brief(&page, "{\"period_ns\":1000000,\"cpus\":[{\"cpu\":0,\"expected\":100,"
                             "\"lost\":9}],\"total\":{\"expected\":100,\"lost\":9}}");
    books_print_brief(&page, "{\"total\":{\"expected\":100,\"kept\":103,\"unexplained\":-3}}");
    books_print_brief(&page, "[]");
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text,
                        "books: of 100 ticks 80 kept, 10 filtered; 10 idle (--books: of each CPU)\n"
                        "books: of 100 ticks 9 lost (--books: of each CPU)\n"
                        "warning: cpu 0: 9.0 % of the ticks are lost: the daemon did not empty "
                        "the ring in time; lower the rate or stack_copy_bytes\n"
                        "books: of 100 ticks 103 kept; -3 unexplained (more samples came than the "
                        "measured time has periods) (--books: of each CPU)\n"
                        "warning: all CPUs: -3.0 % of the ticks are unexplained: the other terms "
                        "together are more than the measured time of the CPU has periods; THE "
                        "BOOKS in profctl(1) says how that may be\n" NO_BOOKS);
    free(text);
}

/* Without the table, what can be acted on is left, and each term is warned of once. */
TEST(says_in_short_what_the_books_warn_of)
{
    EXPECT_PRINTED(
        "books: of 300 ticks 280 kept; 17 unexplained (profctl status: of each CPU)\n"
        "warning: cpu 2 and 1 more: 12.0 % of the ticks are unexplained: the hypervisor ran "
        "something else for 90 ms, and is the likely cause\n"
        "2 modules could not be read, so their functions have no names\n",
        books_print_short(file,
                          "{\"period_ns\":10000000,\"cpus\":["
                          "{\"cpu\":0,\"expected\":100},"
                          "{\"cpu\":1,\"expected\":100,\"unexplained\":5},"
                          "{\"cpu\":2,\"expected\":100,\"unexplained\":12,\"steal_ns\":90000000}],"
                          "\"total\":{\"expected\":300,\"kept\":280,\"unexplained\":17},"
                          "\"truncated_stacks\":9,\"modules_unread\":2,\"cold_stacks\":3}",
                          "profctl status", NULL));
    EXPECT_PRINTED(
        "books: of 9 ticks 9 kept (--books: of each CPU)\n",
        books_print_short(file, "{\"total\":{\"expected\":9,\"kept\":9}}", "--books", NULL));
    char *paths[] = {"/bin/a"};
    const struct books_unread unread = {paths, 1, true};
    EXPECT_PRINTED("books: of 9 ticks (--books: of each CPU)\n"
                   "functions of the kernel have no names; profctl doctor says how to have them\n"
                   "/bin/a could not be read, so functions there have no names\n",
                   books_print_short(file, "{\"total\":{\"expected\":9},\"modules_unread\":2}",
                                     "--books", &unread));
}

#define EVENTS_WITH_FILTERED(filtered)                                                             \
    "{\"cpus\":[],\"events\":[{\"event\":\"page-faults\",\"unit\":\"faults\",\"total\":{"          \
    "\"counted\":70,\"sampled\":60,\"received\":5,\"kept\":2,\"filtered\":" filtered               \
    "}},{\"event\":\"off-cpu\",\"unit\":\"ns\",\"total\":{\"counted\":2000000000,\"sampled\":"     \
    "1000000000,\"received\":5,\"kept\":2,\"short_ns\":0,\"filtered\":" filtered "}}]}"

TEST(says_where_amounts_are_of_all_tasks)
{
    assert_true(
        prints(EVENTS_WITH_FILTERED("3"),
               "page-faults, of all tasks: 70 faults counted; 5 samples, of which 2 kept, stand "
               "for 60\n"
               "off-cpu, of all tasks: 5 waits, of which 2 kept; 1.000 s of 2.000 s\n"));
    assert_true(prints(EVENTS_WITH_FILTERED("0"),
                       "page-faults: 70 faults counted; 5 samples, of which 2 kept, stand for 60\n"
                       "off-cpu: 5 waits, of which 2 kept; 1.000 s of 2.000 s\n"));
}

TEST(says_whose_follower_an_event_is)
{
    assert_true(prints("{\"cpus\":[],\"events\":[{\"event\":\"instructions\","
                       "\"unit\":\"instructions\",\"period\":0,\"leader\":\"cycles\",\"total\":"
                       "{\"counted\":70,\"sampled\":60,\"received\":2,\"kept\":2}}]}",
                       "instructions, with cycles: 70 instructions counted; 2 samples, of which 2 "
                       "kept, stand for 60\n"));
}

TEST(sums_a_count_of_an_event_over_its_lines)
{
    static const char books[] =
        "{\"events\":[{\"event\":\"a\",\"period\":9,\"total\":{\"kept\":3,\"lost\":0}},"
        "{\"event\":\"b\",\"period\":9,\"total\":{\"kept\":100}},{\"event\":\"c\",\"period\":9},"
        "{\"event\":\"a\",\"period\":9,\"total\":{\"kept\":4}},{\"event\":\"c\",\"period\":8}]}";
    static const struct {
        const char *event;
        const char *member;
        bool is_found;
        int64_t value;
    } cases[] = {
        {"a", "kept", true, 7},   {"a", "lost", true, 0}, {"a", "period", true, 9},
        {"c", "period", true, 0}, {"b", "lost", false},   {"x", "kept", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t value = 55;
        assert_int_equal(books_print_event(books, cases[i].event, cases[i].member, &value),
                         cases[i].is_found);
        assert_int_equal(value, cases[i].is_found ? cases[i].value : 55);
    }
}
