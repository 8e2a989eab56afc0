/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples stand in a ring in the order of their coming, each with its value and the numbers of its
 * stack, which has its event, and of its process. Texts, functions, stacks and processes are
 * interned; rows are summed anew for each look, since a window has some thousand different stacks.
 * Interned items do not know whether a sample still has them. So the tables are made anew, of what
 * the ring has, once they are twice as large as after the last time: that keeps them within a
 * multiple of the window. Pure.
 */
#include "top_model.h"

#include "cleanup.h"
#include "compare.h"
#include "extremes.h"
#include "grow.h"
#include "intern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TABLES_LEAST_BYTES (UINT64_C(4) << 20) /* smaller tables are never made anew */
#define STACK_MAX          ((size_t)4096)      /* longer stacks lose their outer end */

/* The first word of a stack: its flags, and the event above them. */
enum stack_flags {
    STACK_TRUNCATED = 1,
    STACK_NONE = 2,
};
#define STACK_EVENT_SHIFT 2U

/* Keys: their bytes are compared. Texts are of `texts`. */
struct model_function {
    uint32_t name;
    uint32_t module;
};

struct model_process {
    uint64_t pid;
    uint32_t name;
    uint32_t unit;
};

struct model_sample {
    uint64_t time_ns;
    uint64_t value;
    uint32_t stack;
    uint32_t process;
};

struct tables {
    struct intern texts;
    struct intern functions; /* struct model_function */
    struct intern processes; /* struct model_process */
    struct intern stacks;    /* arrays of uint32_t: flags and event, then functions, leaf first */
};

struct top_model {
    struct tables tables;
    struct model_sample *ring; /* owned */
    size_t ring_capacity;
    size_t first; /* of the ring, the oldest sample */
    size_t count;
    uint64_t value_total; /* of the ring */
    uint64_t window_ns;
    uint64_t begin_ns; /* of the window; older samples do not count */
    uint64_t end_ns;
    uint64_t renew_bytes; /* of the tables, from which on they are made anew */
    uint32_t generation;
};

static void tables_done(struct tables *tables)
{
    intern_done(&tables->texts);
    intern_done(&tables->functions);
    intern_done(&tables->processes);
    intern_done(&tables->stacks);
}

static uint64_t tables_bytes(const struct tables *tables)
{
    return intern_size_bytes(&tables->texts) + intern_size_bytes(&tables->functions) +
           intern_size_bytes(&tables->processes) + intern_size_bytes(&tables->stacks);
}

struct top_model *top_model_new(uint64_t window_ns)
{
    struct top_model *model = calloc(1, sizeof *model);
    if (model != NULL) {
        model->window_ns = window_ns;
        model->renew_bytes = TABLES_LEAST_BYTES;
    }
    return model;
}

struct top_model *top_model_free(struct top_model *model)
{
    if (model != NULL) {
        tables_done(&model->tables);
        free(model->ring);
        free(model);
    }
    return NULL;
}

uint32_t top_model_generation(const struct top_model *model)
{
    return model->generation;
}

uint64_t top_model_size_bytes(const struct top_model *model)
{
    return tables_bytes(&model->tables) + model->ring_capacity * sizeof *model->ring;
}

static int add_function(struct tables *tables, const char *name, const char *module, uint32_t *ret)
{
    struct model_function function = {0};
    int r = intern_add(&tables->texts, name, strlen(name), &function.name);
    if (r == 0) {
        r = intern_add(&tables->texts, module, strlen(module), &function.module);
    }
    return r < 0 ? r : intern_add(&tables->functions, &function, sizeof function, ret);
}

static int add_process(struct tables *tables, uint64_t pid, const char *name, const char *unit,
                       uint32_t *ret)
{
    struct model_process process = {.pid = pid};
    int r = intern_add(&tables->texts, name, strlen(name), &process.name);
    if (r == 0) {
        r = intern_add(&tables->texts, unit, strlen(unit), &process.unit);
    }
    return r < 0 ? r : intern_add(&tables->processes, &process, sizeof process, ret);
}

int top_model_function(struct top_model *model, const char *name, const char *module, uint32_t *ret)
{
    return add_function(&model->tables, name, module, ret);
}

int top_model_process(struct top_model *model, uint64_t pid, const char *name, const char *unit,
                      uint32_t *ret)
{
    return add_process(&model->tables, pid, name, unit, ret);
}

static const struct model_function *function_at(const struct tables *tables, uint32_t function)
{
    size_t size_bytes = 0;
    return intern_bytes(&tables->functions, function, &size_bytes);
}

static const struct model_process *process_at(const struct tables *tables, uint32_t process)
{
    size_t size_bytes = 0;
    return intern_bytes(&tables->processes, process, &size_bytes);
}

/* The functions of a stack, leaf first, and its first word. */
static const uint32_t *stack_at(const struct tables *tables, uint32_t stack, size_t *ret_count,
                                uint32_t *ret_head)
{
    size_t size_bytes = 0;
    const uint32_t *words = intern_bytes(&tables->stacks, stack, &size_bytes);
    *ret_head = words[0];
    *ret_count = size_bytes / sizeof *words - 1;
    return words + 1;
}

static struct model_sample *sample_at(const struct top_model *model, size_t number)
{
    size_t at = model->first + number;
    return &model->ring[at < model->ring_capacity ? at : at - model->ring_capacity];
}

static void forget_first(struct top_model *model)
{
    model->value_total -= sample_at(model, 0)->value;
    model->first = model->first + 1 < model->ring_capacity ? model->first + 1 : 0;
    model->count--;
}

/* Makes room for one more sample, by forgetting the oldest when there are too many. */
static int make_room(struct top_model *model)
{
    if (model->count < model->ring_capacity) {
        return 0;
    }
    if (model->ring_capacity >= TOP_MODEL_SAMPLES_MAX) {
        forget_first(model);
        return 0;
    }
    size_t capacity = model->ring_capacity == 0 ? 4096 : 2 * model->ring_capacity;
    struct model_sample *ring = calloc(capacity, sizeof *ring);
    if (ring == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < model->count; i++) {
        ring[i] = *sample_at(model, i);
    }
    free(model->ring);
    model->ring = ring;
    model->ring_capacity = capacity;
    model->first = 0;
    return 0;
}

int top_model_add(struct top_model *model, const struct top_sample *sample)
{
    uint32_t words[1 + STACK_MAX];
    size_t count = sample->function_count < STACK_MAX ? sample->function_count : STACK_MAX;
    struct model_sample added = {.time_ns = sample->time_ns, .process = sample->process};
    words[0] = (sample->is_truncated || count < sample->function_count ? STACK_TRUNCATED : 0U) |
               (sample->is_stackless ? STACK_NONE : 0U) | sample->event << STACK_EVENT_SHIFT;
    memcpy(words + 1, sample->functions, count * sizeof *words);
    int r = intern_add(&model->tables.stacks, words, (1 + count) * sizeof *words, &added.stack);
    if (r == 0) {
        r = make_room(model);
    }
    if (r == 0) {
        added.value = min_u64(sample->value, TOP_MODEL_VALUE_MAX - model->value_total);
        model->value_total += added.value;
        model->count++;
        *sample_at(model, model->count - 1) = added;
    }
    return r;
}

/* Copies a stack with the texts of its functions. */
static int copy_stack(const struct tables *from, struct tables *into, uint32_t stack, uint32_t *ret)
{
    uint32_t words[1 + STACK_MAX];
    size_t count = 0;
    const uint32_t *functions = stack_at(from, stack, &count, &words[0]);
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct model_function *function = function_at(from, functions[i]);
        r = add_function(into, intern_text(&from->texts, function->name),
                         intern_text(&from->texts, function->module), &words[1 + i]);
    }
    return r < 0 ? r : intern_add(&into->stacks, words, (1 + count) * sizeof *words, ret);
}

/* Fills new tables with what the samples have, and `stacks` and `processes` with the new numbers,
 * each + 1, of the old ones. */
static int copy_tables(const struct top_model *model, struct tables *into, uint32_t *stacks,
                       uint32_t *processes)
{
    const struct tables *from = &model->tables;
    int r = 0;
    for (size_t i = 0; i < model->count && r == 0; i++) {
        const struct model_sample *sample = sample_at(model, i);
        uint32_t number = 0;
        if (stacks[sample->stack] == 0) {
            r = copy_stack(from, into, sample->stack, &number);
            stacks[sample->stack] = number + 1;
        }
        if (r == 0 && processes[sample->process] == 0) {
            const struct model_process *process = process_at(from, sample->process);
            r = add_process(into, process->pid, intern_text(&from->texts, process->name),
                            intern_text(&from->texts, process->unit), &number);
            processes[sample->process] = number + 1;
        }
    }
    return r;
}

/* Makes the tables anew, without what no sample has. */
static int renew_tables(struct top_model *model)
{
    struct tables renewed = {0};
    cleanup_(freep) uint32_t *stacks = calloc(model->tables.stacks.item_count + 1, sizeof *stacks);
    cleanup_(freep) uint32_t *processes =
        calloc(model->tables.processes.item_count + 1, sizeof *processes);
    int r = stacks == NULL || processes == NULL ? -ENOMEM : 0;
    if (r == 0) {
        r = copy_tables(model, &renewed, stacks, processes);
    }
    if (r < 0) {
        tables_done(&renewed);
        return r;
    }
    for (size_t i = 0; i < model->count; i++) {
        struct model_sample *sample = sample_at(model, i);
        sample->stack = stacks[sample->stack] - 1;
        sample->process = processes[sample->process] - 1;
    }
    tables_done(&model->tables);
    model->tables = renewed;
    model->generation++;
    uint64_t doubled = 2 * tables_bytes(&model->tables);
    model->renew_bytes = doubled > TABLES_LEAST_BYTES ? doubled : TABLES_LEAST_BYTES;
    return 0;
}

int top_model_advance(struct top_model *model, uint64_t now_ns)
{
    model->end_ns = now_ns;
    model->begin_ns = now_ns > model->window_ns ? now_ns - model->window_ns : 0;
    while (model->count > 0 && sample_at(model, 0)->time_ns < model->begin_ns) {
        forget_first(model);
    }
    return tables_bytes(&model->tables) > model->renew_bytes ? renew_tables(model) : 0;
}

void top_model_clear(struct top_model *model)
{
    while (model->count > 0) {
        forget_first(model);
    }
}

/* The next sample of the window at or behind `*number`, of any event; NULL: there is none. */
static const struct model_sample *next_sample(const struct top_model *model, size_t *number)
{
    while (*number < model->count) {
        const struct model_sample *sample = sample_at(model, (*number)++);
        if (sample->time_ns >= model->begin_ns) {
            return sample;
        }
    }
    return NULL;
}

/* The same of one event, with the first word of its stack. */
static const struct model_sample *next_of_event(const struct top_model *model, uint32_t event,
                                                size_t *number, uint32_t *ret_head)
{
    const struct model_sample *sample = NULL;
    size_t count = 0;
    while ((sample = next_sample(model, number)) != NULL) {
        (void)stack_at(&model->tables, sample->stack, &count, ret_head);
        if (*ret_head >> STACK_EVENT_SHIFT == event) {
            break;
        }
    }
    return sample;
}

void top_model_sum(const struct top_model *model, uint32_t event, struct top_sums *ret)
{
    const struct model_sample *sample = NULL;
    uint64_t oldest_ns = model->end_ns;
    uint32_t head = 0;
    size_t number = 0;
    *ret = (struct top_sums){0};
    while ((sample = next_of_event(model, event, &number, &head)) != NULL) {
        ret->value += sample->value;
        ret->sample_count++;
        ret->truncated_count += (head & STACK_TRUNCATED) != 0;
        ret->stackless_count += (head & STACK_NONE) != 0;
        oldest_ns = sample->time_ns < oldest_ns ? sample->time_ns : oldest_ns;
    }
    ret->span_ns = model->end_ns - oldest_ns;
}

/* What the samples of the window that each stack has stand for. Returned: free(). NULL when there
 * is no memory. */
static uint64_t *sum_stacks(const struct top_model *model)
{
    const struct model_sample *sample = NULL;
    size_t number = 0;
    uint64_t *values = calloc(model->tables.stacks.item_count + 1, sizeof *values);
    while (values != NULL && (sample = next_sample(model, &number)) != NULL) {
        values[sample->stack] += sample->value;
    }
    return values;
}

/* The next stack of the event at or behind `*stack` that has a value; it then is at `*stack` - 1.
 * NULL: there is none. */
static const uint32_t *next_stack(const struct tables *tables, const uint64_t *values,
                                  uint32_t event, size_t *stack, size_t *ret_count,
                                  uint32_t *ret_head)
{
    while (*stack < tables->stacks.item_count) {
        size_t at = (*stack)++;
        const uint32_t *functions = stack_at(tables, (uint32_t)at, ret_count, ret_head);
        if (values[at] > 0 && *ret_head >> STACK_EVENT_SHIFT == event) {
            return functions;
        }
    }
    return NULL;
}

static int sum_functions(const struct top_model *model, uint32_t event, struct top_row *rows)
{
    const struct tables *tables = &model->tables;
    const uint32_t *functions = NULL;
    size_t stack = 0;
    size_t count = 0;
    uint32_t head = 0;
    cleanup_(freep) uint64_t *values = sum_stacks(model);
    cleanup_(freep) size_t *counted = calloc(tables->functions.item_count + 1, sizeof *counted);
    if (values == NULL || counted == NULL) {
        return -ENOMEM;
    }
    while ((functions = next_stack(tables, values, event, &stack, &count, &head)) != NULL) {
        uint64_t value = values[stack - 1];
        rows[functions[0]].self += value;
        for (size_t i = 0; i < count; i++) {
            if (counted[functions[i]] != stack) { /* a function that calls itself counts once */
                counted[functions[i]] = stack;
                rows[functions[i]].total += value;
            }
        }
    }
    for (size_t i = 0; i < tables->functions.item_count; i++) {
        const struct model_function *function = function_at(tables, (uint32_t)i);
        rows[i].name = intern_text(&tables->texts, function->name);
        rows[i].module = intern_text(&tables->texts, function->module);
    }
    return 0;
}

/* The first number that each process has: it has others by other names, and in other units.
 * Returned: free(). NULL when there is no memory. */
static uint32_t *find_first_numbers(const struct tables *tables, bool by_unit)
{
    size_t count = tables->processes.item_count;
    struct intern keys = {0};
    cleanup_(freep) uint32_t *firsts = calloc(count + 1, sizeof *firsts);
    cleanup_(freep) uint32_t *of_keys = calloc(count + 1, sizeof *of_keys);
    int r = firsts == NULL || of_keys == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct model_process *process = process_at(tables, (uint32_t)i);
        const uint64_t key[2] = {process->pid, by_unit ? process->unit : 0};
        size_t known_count = keys.item_count;
        uint32_t item = 0;
        r = intern_add(&keys, key, sizeof key, &item);
        if (r == 0) {
            of_keys[item] = item == known_count ? (uint32_t)i : of_keys[item];
            firsts[i] = of_keys[item];
        }
    }
    intern_done(&keys);
    return r < 0 ? NULL : take_ptr(firsts);
}

/* By process, with the name that it had last, or by unit: then rows are numbered as texts are. */
static int sum_processes(const struct top_model *model, uint32_t event, bool by_unit,
                         struct top_row *rows)
{
    const struct tables *tables = &model->tables;
    const struct model_sample *sample = NULL;
    size_t number = 0;
    uint32_t head = 0;
    cleanup_(freep) uint32_t *firsts = find_first_numbers(tables, by_unit);
    cleanup_(freep) uint64_t *named_ns = calloc(tables->processes.item_count + 1, sizeof *named_ns);
    cleanup_(freep) bool *counted = calloc(tables->processes.item_count + 1, sizeof *counted);
    if (firsts == NULL || named_ns == NULL || counted == NULL) {
        return -ENOMEM;
    }
    while ((sample = next_of_event(model, event, &number, &head)) != NULL) {
        const struct model_process *process = process_at(tables, sample->process);
        uint32_t first = firsts[sample->process];
        struct top_row *row = &rows[by_unit ? process->unit : first];
        if (sample->time_ns >= named_ns[first]) {
            row->name = intern_text(&tables->texts, by_unit ? process->unit : process->name);
            named_ns[first] = sample->time_ns;
        }
        row->pid = by_unit ? 0 : process->pid;
        row->process_count += !counted[first];
        row->self += sample->value;
        row->total += sample->value;
        counted[first] = true;
    }
    return 0;
}

static bool matches(const struct top_row *row, const struct top_query *query)
{
    char pid[24];
    if (query->filter[0] == '\0') {
        return true;
    }
    (void)snprintf(pid, sizeof pid, "%" PRId64, (int64_t)row->pid);
    return strcasestr(row->name, query->filter) != NULL ||
           (row->module != NULL && strcasestr(row->module, query->filter) != NULL) ||
           (query->view == TOP_PROCESSES && strcmp(pid, query->filter) == 0);
}

static int compare_rows(const void *left, const void *right, void *userdata)
{
    const struct top_row *a = left;
    const struct top_row *b = right;
    const enum top_sort *sort = userdata;
    int by_self = compare_u64(b->self, a->self);
    int by_total = compare_u64(b->total, a->total);
    int r = *sort == TOP_BY_SELF ? by_self : by_total;
    r = r == 0 ? (*sort == TOP_BY_SELF ? by_total : by_self) : r;
    r = r == 0 ? strcmp(a->name, b->name) : r;
    r = r == 0 && a->module != NULL && b->module != NULL ? strcmp(a->module, b->module) : r;
    return r == 0 ? compare_u64(a->pid, b->pid) : r;
}

/* Leaves the rows that have samples and match, in their order. */
static void arrange(struct top_rows *rows, size_t count, const struct top_query *query)
{
    enum top_sort sort = query->sort;
    rows->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows->rows[i].total > 0 && matches(&rows->rows[i], query)) {
            rows->rows[rows->count++] = rows->rows[i];
        }
    }
    qsort_r(rows->rows, rows->count, sizeof *rows->rows, compare_rows, &sort);
}

void top_rows_done(struct top_rows *rows)
{
    free(rows->rows);
    *rows = (struct top_rows){0};
}

int top_model_rows(const struct top_model *model, const struct top_query *query,
                   struct top_rows *ret)
{
    const struct tables *tables = &model->tables;
    const size_t counts[TOP_VIEWS] = {
        [TOP_FUNCTIONS] = tables->functions.item_count,
        [TOP_PROCESSES] = tables->processes.item_count,
        [TOP_UNITS] = tables->texts.item_count,
    };
    *ret = (struct top_rows){.rows = calloc(counts[query->view] + 1, sizeof *ret->rows)};
    if (ret->rows == NULL) {
        return -ENOMEM;
    }
    int r = query->view == TOP_FUNCTIONS
                ? sum_functions(model, query->event, ret->rows)
                : sum_processes(model, query->event, query->view == TOP_UNITS, ret->rows);
    if (r == 0) {
        arrange(ret, counts[query->view], query);
    }
    return r;
}

/* The number of a function's row; INTERN_NONE: the model does not have it. */
static uint32_t find_function(const struct tables *tables, const char *name, const char *module)
{
    const struct model_function function = {
        .name = intern_find(&tables->texts, name, strlen(name)),
        .module = intern_find(&tables->texts, module, strlen(module)),
    };
    return intern_find(&tables->functions, &function, sizeof function);
}

int top_model_callers(const struct top_model *model, uint32_t event, const char *name,
                      const char *module, struct top_rows *ret)
{
    const struct tables *tables = &model->tables;
    size_t function_count = tables->functions.item_count;
    const size_t root = function_count; /* rows behind those of functions */
    const size_t truncated = function_count + 1;
    const uint32_t *functions = NULL;
    size_t stack = 0;
    size_t count = 0;
    uint32_t head = 0;
    uint32_t wanted = find_function(tables, name, module);
    cleanup_(freep) uint64_t *values = sum_stacks(model);
    *ret = (struct top_rows){.rows = calloc(function_count + 2, sizeof *ret->rows)};
    if (ret->rows == NULL || values == NULL) {
        return -ENOMEM;
    }
    while ((functions = next_stack(tables, values, event, &stack, &count, &head)) != NULL) {
        size_t at = 0;
        while (at < count && functions[at] != wanted) {
            at++;
        }
        size_t outermost = (head & STACK_TRUNCATED) != 0 ? truncated : root;
        if (at < count) {
            ret->rows[at + 1 < count ? functions[at + 1] : outermost].total += values[stack - 1];
        }
    }
    for (size_t i = 0; i < function_count; i++) {
        const struct model_function *function = function_at(tables, (uint32_t)i);
        ret->rows[i].name = intern_text(&tables->texts, function->name);
        ret->rows[i].module = intern_text(&tables->texts, function->module);
    }
    ret->rows[root].name = "[root]";
    ret->rows[truncated].name = "[truncated]";
    ret->rows[root].module = ret->rows[truncated].module = "";
    arrange(ret, function_count + 2,
            &(struct top_query){.view = TOP_FUNCTIONS, .sort = TOP_BY_TOTAL, .filter = ""});
    return 0;
}
