/* SPDX-License-Identifier: Apache-2.0 */

/* The window of profctl top: what counts, in which order, and what is forgotten. */
#include "top_model.h"
#include "unit_test.h"

#define SECOND UINT64_C(1000000000)

/* What a sample is beside its stack. */
struct made {
    uint64_t pid;
    const char *process; /* NULL: by the pid */
    uint64_t value;      /* 0: 1 */
    uint32_t event;
    bool is_truncated;
};

static void add_made(struct top_model *model, uint64_t time_ns, const char *names, struct made made)
{
    uint64_t pid = made.pid;
    char copy[256];
    char *rest = NULL;
    uint32_t functions[16];
    struct top_sample sample = {
        .time_ns = time_ns,
        .functions = functions,
        .value = made.value == 0 ? 1 : made.value,
        .event = made.event,
        .is_truncated = made.is_truncated,
    };
    char process[32];
    char unit[32];
    (void)snprintf(copy, sizeof copy, "%s", names);
    if (made.process == NULL) {
        (void)snprintf(process, sizeof process, "process%d", (int)pid);
        made.process = process;
    }
    (void)snprintf(unit, sizeof unit, "%s.service", pid % 2 == 0 ? "even" : "odd");
    for (char *name = strtok_r(copy, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest)) {
        assert_int_equal(
            top_model_function(model, name, "/lib/a.so", &functions[sample.function_count++]), 0);
    }
    assert_int_equal(top_model_process(model, pid, made.process, unit, &sample.process), 0);
    assert_int_equal(top_model_add(model, &sample), 0);
}

static void add_as(struct top_model *model, uint64_t time_ns, const char *names, uint64_t pid,
                   bool is_truncated)
{
    add_made(model, time_ns, names, (struct made){.pid = pid, .is_truncated = is_truncated});
}

/* A stack, leaf first. */
static void add(struct top_model *model, uint64_t time_ns, const char *names)
{
    add_as(model, time_ns, names, 2, false);
}

/* "name self/total" of each row. */
static const char *rows_of(const struct top_model *model, struct top_query query)
{
    static char text[1024];
    struct top_rows rows = {0};
    size_t used = 0;
    text[0] = '\0';
    query.filter = query.filter == NULL ? "" : query.filter;
    assert_int_equal(top_model_rows(model, &query, &rows), 0);
    for (size_t i = 0; i < rows.count; i++) {
        const struct top_row *row = &rows.rows[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %d/%d", i == 0 ? "" : ", ",
                                 row->name, (int)row->self, (int)row->total);
    }
    top_rows_done(&rows);
    return text;
}

static const char *callers_in(const struct top_model *model, uint32_t event, const char *name)
{
    static char text[1024];
    struct top_rows rows = {0};
    size_t used = 0;
    text[0] = '\0';
    assert_int_equal(top_model_callers(model, event, name, "/lib/a.so", &rows), 0);
    for (size_t i = 0; i < rows.count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %d", i == 0 ? "" : ", ",
                                 rows.rows[i].name, (int)rows.rows[i].total);
    }
    top_rows_done(&rows);
    return text;
}

static const char *callers_of(const struct top_model *model, const char *name)
{
    return callers_in(model, 0, name);
}

TEST_MADE(struct top_model *model, counts_a_function_once_in_a_stack, top_model_new(10 * SECOND),
          top_model_free)
{
    add(model, SECOND, "leaf loop loop main");
    add(model, SECOND, "leaf main");
    add(model, SECOND, "loop main");
    assert_int_equal(top_model_advance(model, 2 * SECOND), 0);
    assert_string_equal(rows_of(model, (struct top_query){.sort = TOP_BY_SELF}),
                        "leaf 2/2, loop 1/2, main 0/3");
    assert_string_equal(rows_of(model, (struct top_query){.sort = TOP_BY_TOTAL}),
                        "main 0/3, leaf 2/2, loop 1/2");
}

TEST_MADE(struct top_model *model, forgets_what_has_left_the_window, top_model_new(10 * SECOND),
          top_model_free)
{
    struct top_sums sums;
    add(model, 5 * SECOND, "old");
    add(model, 12 * SECOND, "new");
    add(model, 6 * SECOND, "late"); /* samples of several CPUs do not come in order */
    assert_int_equal(top_model_advance(model, 15 * SECOND), 0);
    assert_string_equal(rows_of(model, (struct top_query){0}), "late 1/1, new 1/1, old 1/1");
    assert_int_equal(top_model_advance(model, 17 * SECOND), 0);
    assert_string_equal(rows_of(model, (struct top_query){0}), "new 1/1");
    top_model_sum(model, 0, &sums);
    assert_int_equal(sums.sample_count, 1);
    assert_int_equal(sums.span_ns, 5 * SECOND);
    assert_int_equal(top_model_advance(model, 30 * SECOND), 0);
    assert_string_equal(rows_of(model, (struct top_query){0}), "");
    top_model_sum(model, 0, &sums);
    assert_int_equal(sums.sample_count, 0);
    assert_int_equal(sums.span_ns, 0);
}

TEST_MADE(struct top_model *model, filters_by_a_part_of_name_or_module_in_any_case,
          top_model_new(10 * SECOND), top_model_free)
{
    add(model, SECOND, "Alpha");
    add(model, SECOND, "beta");
    assert_int_equal(top_model_advance(model, SECOND), 0);
    assert_string_equal(rows_of(model, (struct top_query){.filter = "alp"}), "Alpha 1/1");
    assert_string_equal(rows_of(model, (struct top_query){.filter = "A.SO"}),
                        "Alpha 1/1, beta 1/1");
    assert_string_equal(rows_of(model, (struct top_query){.filter = "gamma"}), "");
}

TEST_MADE(struct top_model *model, sums_processes_and_units, top_model_new(10 * SECOND),
          top_model_free)
{
    struct top_rows rows = {0};
    add_as(model, SECOND, "a", 1, false);
    add_as(model, SECOND, "a", 3, false);
    add_as(model, SECOND, "a", 3, true);
    add_as(model, SECOND, "a", 4, false);
    assert_int_equal(top_model_advance(model, SECOND), 0);
    assert_string_equal(rows_of(model, (struct top_query){.view = TOP_PROCESSES}),
                        "process3 2/2, process1 1/1, process4 1/1");
    assert_string_equal(rows_of(model, (struct top_query){.view = TOP_PROCESSES, .filter = "4"}),
                        "process4 1/1");
    assert_string_equal(rows_of(model, (struct top_query){.view = TOP_UNITS}),
                        "odd.service 3/3, even.service 1/1");
    assert_int_equal(
        top_model_rows(model, &(struct top_query){.view = TOP_UNITS, .filter = ""}, &rows), 0);
    assert_int_equal(rows.rows[0].process_count, 2);
    top_rows_done(&rows);
}

/* As when one runs another program. Samples may come later than others that are newer. */
TEST_MADE(struct top_model *model, has_one_row_of_a_process_by_its_last_name,
          top_model_new(10 * SECOND), top_model_free)
{
    struct top_rows rows = {0};
    add_made(model, SECOND, "a", (struct made){.pid = 3, .process = "bash"});
    add_made(model, 3 * SECOND, "a", (struct made){.pid = 3, .process = "sleep"});
    add_made(model, 2 * SECOND, "a", (struct made){.pid = 3, .process = "env"});
    add_made(model, SECOND, "a", (struct made){.pid = 5, .process = "bash"});
    assert_int_equal(top_model_advance(model, 3 * SECOND), 0);
    assert_string_equal(rows_of(model, (struct top_query){.view = TOP_PROCESSES}),
                        "sleep 3/3, bash 1/1");
    assert_int_equal(
        top_model_rows(model, &(struct top_query){.view = TOP_UNITS, .filter = ""}, &rows), 0);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.rows[0].process_count, 2);
    top_rows_done(&rows);
}

TEST_MADE(struct top_model *model, names_what_called_the_innermost_call, top_model_new(10 * SECOND),
          top_model_free)
{
    struct top_sums sums;
    add(model, SECOND, "leaf f g f main");
    add(model, SECOND, "f main");
    add(model, SECOND, "f");
    add_as(model, SECOND, "x f", 2, true);
    add(model, SECOND, "other main");
    assert_int_equal(top_model_advance(model, SECOND), 0);
    assert_string_equal(callers_of(model, "f"), "[root] 1, [truncated] 1, g 1, main 1");
    assert_string_equal(callers_of(model, "nothing"), "");
    top_model_sum(model, 0, &sums);
    assert_int_equal(sums.truncated_count, 1);
}

TEST_MADE(struct top_model *model, keeps_events_apart, top_model_new(10 * SECOND), top_model_free)
{
    struct top_sums sums;
    add_as(model, SECOND, "work main", 1, false);
    add_as(model, SECOND, "work main", 1, false);
    add_as(model, SECOND, "wait main", 1, false); /* the clock was there too */
    add_made(model, 4 * SECOND, "wait main", (struct made){.pid = 1, .value = 700, .event = 3});
    add_made(model, 5 * SECOND, "lock wait",
             (struct made){.pid = 2, .value = 200, .event = 3, .is_truncated = true});
    add_made(model, 6 * SECOND, "wait main", (struct made){.pid = 2, .value = 50, .event = 3});
    add_made(model, 6 * SECOND, "work main", (struct made){.pid = 2, .value = 5, .event = 1});
    assert_int_equal(top_model_advance(model, 7 * SECOND), 0);
    assert_string_equal(rows_of(model, (struct top_query){0}), "work 2/2, wait 1/1, main 0/3");
    assert_string_equal(rows_of(model, (struct top_query){.event = 3}),
                        "wait 750/950, lock 200/200, main 0/750");
    assert_string_equal(rows_of(model, (struct top_query){.event = 3, .sort = TOP_BY_TOTAL}),
                        "wait 750/950, main 0/750, lock 200/200");
    assert_string_equal(rows_of(model, (struct top_query){.event = 3, .view = TOP_PROCESSES}),
                        "process1 700/700, process2 250/250");
    assert_string_equal(rows_of(model, (struct top_query){.event = 3, .view = TOP_UNITS}),
                        "odd.service 700/700, even.service 250/250");
    assert_string_equal(rows_of(model, (struct top_query){.event = 1}), "work 5/5, main 0/5");
    assert_string_equal(rows_of(model, (struct top_query){.event = 2}), "");
    assert_string_equal(callers_in(model, 3, "wait"), "main 750, [truncated] 200");
    assert_string_equal(callers_in(model, 0, "wait"), "main 1");
    assert_string_equal(callers_in(model, 1, "wait"), "");
    top_model_sum(model, 3, &sums);
    assert_int_equal(sums.value, 950);
    assert_int_equal(sums.sample_count, 3);
    assert_int_equal(sums.truncated_count, 1);
    assert_int_equal(sums.span_ns, 3 * SECOND);
    top_model_sum(model, 0, &sums);
    assert_int_equal(sums.value, 3);
    assert_int_equal(sums.truncated_count, 0);
    assert_int_equal(sums.span_ns, 6 * SECOND);
}

/* Values that a file may have, and no sum can. */
TEST_MADE(struct top_model *model, lets_no_sum_overflow, top_model_new(10 * SECOND), top_model_free)
{
    struct top_sums sums;
    const struct made huge = {.pid = 2, .value = TOP_MODEL_VALUE_MAX - 5, .event = 1};
    add_made(model, SECOND, "first", huge);
    add_made(model, 2 * SECOND, "second", huge);
    add_as(model, 2 * SECOND, "second", 2, false);
    assert_int_equal(top_model_advance(model, 3 * SECOND), 0);
    top_model_sum(model, 1, &sums);
    assert_int_equal(sums.value, TOP_MODEL_VALUE_MAX);
    assert_int_equal(sums.sample_count, 2);
    assert_int_equal(top_model_advance(model, 12 * SECOND), 0);
    top_model_sum(model, 1, &sums);
    assert_int_equal(sums.value, 5);
    add_made(model, 13 * SECOND, "third", huge); /* there is room again */
    top_model_sum(model, 1, &sums);
    assert_int_equal(sums.value, TOP_MODEL_VALUE_MAX);
}

/* An hour in which every sample has names of its own. */
TEST_MADE(struct top_model *model, stays_small_for_an_hour_of_new_names, top_model_new(10 * SECOND),
          top_model_free)
{
    uint64_t largest = 0;
    uint32_t generation = top_model_generation(model);
    for (uint64_t second = 1; second <= 3600; second++) {
        for (int i = 0; i < 10; i++) {
            char names[64];
            (void)snprintf(names, sizeof names, "leaf%d_%d caller%d main", (int)second, i,
                           (int)second);
            add_as(model, second * SECOND, names, second, false);
        }
        assert_int_equal(top_model_advance(model, second * SECOND), 0);
        uint64_t size = top_model_size_bytes(model);
        largest = size > largest ? size : largest;
    }
    assert_true(largest < UINT64_C(5) << 20);
    assert_true(top_model_generation(model) != generation);
    assert_string_equal(rows_of(model, (struct top_query){.filter = "leaf3600_3"}),
                        "leaf3600_3 1/1");
    assert_string_equal(rows_of(model, (struct top_query){.filter = "leaf3589_"}), "");
    assert_string_equal(callers_of(model, "leaf3595_0"), "caller3595 1");
}

TEST_MADE(struct top_model *model, forgets_the_oldest_of_too_many_samples,
          top_model_new(600 * SECOND), top_model_free)
{
    struct top_sums sums;
    add(model, SECOND, "first");
    for (size_t i = 0; i < TOP_MODEL_SAMPLES_MAX; i++) {
        add(model, 2 * SECOND, "more");
    }
    assert_int_equal(top_model_advance(model, 3 * SECOND), 0);
    top_model_sum(model, 0, &sums);
    assert_int_equal(sums.sample_count, TOP_MODEL_SAMPLES_MAX);
    assert_string_equal(rows_of(model, (struct top_query){.filter = "first"}), "");
}
