/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The process table against a model that is slow and plain: no ranges, but one list of spans for
 * each page of each process. Both are told the same 100,000 random things, one in ten of them late,
 * and are asked about random pages and times after each.
 */
#include "process_table.h"
#include "unit_test.h"

#define PAGE            ((uint64_t)0x1000)
#define PAGE_COUNT      ((uint64_t)48)
#define PID_COUNT       6U
#define LIVES_KEPT      ((size_t)64)
#define SPANS_KEPT      64
#define WINDOW_NS       30
#define OPERATION_COUNT 100000
#define FILE_COUNT      5

struct span {
    uint64_t from_ns;
    uint64_t to_ns;
    unsigned file;
    uint64_t offset;
    uint64_t bias; /* of a scanned one: address less offset */
    bool scanned;
};

/* The newest SPANS_KEPT spans of one page, the oldest overwritten. */
struct page {
    struct span spans[SPANS_KEPT];
    size_t count;
};

struct life {
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t exec_ns;
    uint64_t known_ns;
    uint64_t last_exit_ns;
    bool forked;
    bool scanned;
    bool starts; /* since its exec it has mapped nothing */
    struct page pages[PAGE_COUNT];
};

struct model {
    uint64_t random;
    uint64_t now_ns;
    uint64_t horizon_ns;
    struct process_table *table;
    struct life *lives[PID_COUNT][LIVES_KEPT]; /* in the order in which they came */
    size_t life_counts[PID_COUNT];
};

static const char *const paths[FILE_COUNT] = {"/a", "/b", "[vdso]", "/c", "[anon]"};

static struct life *last_life(struct model *model, unsigned pid)
{
    size_t count = model->life_counts[pid];
    return count == 0 ? NULL : model->lives[pid][(count - 1) % LIVES_KEPT];
}

static struct life *life_at(struct model *model, unsigned pid, uint64_t time_ns)
{
    size_t count = model->life_counts[pid];
    for (size_t i = 1; i <= LIVES_KEPT && i <= count; i++) {
        struct life *life = model->lives[pid][(count - i) % LIVES_KEPT];
        if (life->from_ns <= time_ns && time_ns < life->to_ns) {
            return life;
        }
    }
    return NULL;
}

/* The one that lived then, else the last one before that is not forgotten. */
static struct life *life_until(struct model *model, unsigned pid, uint64_t time_ns)
{
    struct life *life = life_at(model, pid, time_ns);
    size_t count = model->life_counts[pid];
    for (size_t i = 1; life == NULL && i <= LIVES_KEPT && i <= count; i++) {
        struct life *older = model->lives[pid][(count - i) % LIVES_KEPT];
        if (older->from_ns <= time_ns && older->to_ns > model->horizon_ns) {
            life = older;
        }
    }
    return life;
}

static struct life *new_life(struct model *model, unsigned pid, uint64_t from_ns, uint64_t known_ns)
{
    struct life **slot = &model->lives[pid][model->life_counts[pid] % LIVES_KEPT];
    free(*slot);
    *slot = calloc(1, sizeof **slot);
    assert_non_null(*slot);
    **slot = (struct life){.from_ns = from_ns, .to_ns = TIME_OPEN_NS, .known_ns = known_ns};
    model->life_counts[pid]++;
    return *slot;
}

/* Prune may have taken the last life; then the pid is as if never seen. */
static void forget_lives(struct model *model)
{
    for (unsigned pid = 0; pid < PID_COUNT; pid++) {
        const struct life *last = last_life(model, pid);
        if (last != NULL && last->to_ns <= model->horizon_ns) {
            model->life_counts[pid] = 0;
        }
    }
}

static struct life *life_of_record(struct model *model, unsigned pid, uint64_t time_ns)
{
    struct life *life = life_at(model, pid, time_ns);
    const struct life *last = last_life(model, pid);
    if (life == NULL && (last == NULL || last->from_ns <= time_ns)) {
        life = new_life(model, pid, last == NULL ? 0 : last->to_ns, time_ns);
    }
    return life;
}

static struct span *open_span(struct page *page)
{
    struct span *last = page->count == 0 ? NULL : &page->spans[(page->count - 1) % SPANS_KEPT];
    return last != NULL && last->to_ns == TIME_OPEN_NS ? last : NULL;
}

static const struct span *span_at(const struct page *page, uint64_t time_ns)
{
    for (size_t i = 1; i <= SPANS_KEPT && i <= page->count; i++) {
        const struct span *span = &page->spans[(page->count - i) % SPANS_KEPT];
        if (span->from_ns <= time_ns && time_ns < span->to_ns) {
            return span;
        }
    }
    return NULL;
}

static void push_span(struct page *page, struct span span)
{
    struct span *open = open_span(page);
    if (open != NULL) {
        open->to_ns = span.from_ns;
    }
    span.to_ns = TIME_OPEN_NS;
    page->spans[page->count % SPANS_KEPT] = span;
    page->count++;
}

struct range {
    uint64_t first;
    uint64_t count;
    unsigned file;
    uint64_t offset;
};

static struct range draw_range(struct model *model)
{
    uint64_t first = draw_below(&model->random, PAGE_COUNT);
    uint64_t count = 1 + draw_below(&model->random, draw_below(&model->random, 4) == 0
                                                        ? PAGE_COUNT - first
                                                        : (PAGE_COUNT - first + 4) / 5);
    /* Few offsets, so that scans often see again what they saw. */
    return (struct range){first, count, (unsigned)draw_below(&model->random, FILE_COUNT),
                          (first + draw_below(&model->random, 2)) * PAGE};
}

static struct mapping_description describe(const struct range *range)
{
    bool anonymous = strcmp(paths[range->file], "[anon]") == 0;
    bool has_inode = paths[range->file][0] == '/';
    return (struct mapping_description){
        .start = range->first * PAGE,
        .end = (range->first + range->count) * PAGE,
        .file_offset = range->offset,
        .path = anonymous ? "" : paths[range->file],
        .inode = has_inode ? range->file + 1 : 0,
    };
}

static struct span span_of(const struct range *range, uint64_t page, uint64_t from_ns)
{
    return (struct span){.from_ns = from_ns,
                         .file = range->file,
                         .offset = range->offset + (page - range->first) * PAGE,
                         .bias = range->first * PAGE - range->offset};
}

static void tell_mmap(struct model *model, unsigned pid, uint64_t time_ns)
{
    struct range range = draw_range(model);
    struct mapping_description description = describe(&range);
    process_table_mmap(model->table, (int32_t)pid + 1, &description, time_ns);

    struct life *last = last_life(model, pid);
    if (last != NULL && last->starts && last->to_ns <= time_ns) {
        last->to_ns = TIME_OPEN_NS; /* it did not exit, but has other rights */
    }
    struct life *life = life_of_record(model, pid, time_ns);
    if (life != NULL) {
        life->starts = false;
    }
    for (uint64_t i = range.first; life != NULL && i < range.first + range.count; i++) {
        const struct span *open = open_span(&life->pages[i]);
        if (time_ns >= life->exec_ns && (open == NULL || open->from_ns <= time_ns)) {
            push_span(&life->pages[i], span_of(&range, i, time_ns));
        }
    }
}

/* Execs are not told late here: what a scan saw after one is a story of its own. */
static void tell_exec(struct model *model, unsigned pid)
{
    model->now_ns++;
    process_table_comm(model->table, (int32_t)pid + 1, (int32_t)pid + 1, "x", true, model->now_ns);
    struct life *life = life_of_record(model, pid, model->now_ns);
    if (life == NULL) {
        return;
    }
    for (uint64_t i = 0; i < PAGE_COUNT; i++) {
        struct span *open = open_span(&life->pages[i]);
        if (open != NULL && open->from_ns < model->now_ns) {
            open->to_ns = model->now_ns;
        }
    }
    life->exec_ns = model->now_ns;
    life->scanned = true;
    life->starts = true;
}

static void tell_exit(struct model *model, unsigned pid, uint64_t time_ns)
{
    process_table_exit(model->table, (int32_t)pid + 1, (int32_t)pid + 1, time_ns);
    struct life *life = life_of_record(model, pid, time_ns);
    if (life == NULL) {
        return;
    }
    life->last_exit_ns = time_ns > life->last_exit_ns ? time_ns : life->last_exit_ns;
    if (life->to_ns > life->last_exit_ns) {
        life->to_ns = life->last_exit_ns;
    }
}

static void tell_fork(struct model *model, unsigned pid, unsigned parent_pid, uint64_t time_ns)
{
    if (pid == parent_pid) {
        return;
    }
    process_table_fork(model->table, (int32_t)pid + 1, (int32_t)parent_pid + 1, (int32_t)pid + 1,
                       (int32_t)parent_pid + 1, time_ns);
    struct life *parent = life_of_record(model, parent_pid, time_ns);
    struct life *last = last_life(model, pid);
    bool same =
        last != NULL && !last->forked && last->known_ns >= time_ns && last->from_ns <= time_ns;
    if (last != NULL && !same && last->from_ns >= time_ns) {
        return;
    }
    if (same) {
        last->from_ns = time_ns;
    } else {
        if (last != NULL && last->to_ns > time_ns) {
            last->to_ns = time_ns;
        }
        last = new_life(model, pid, time_ns, time_ns);
    }
    last->forked = true;
    if (parent == NULL || last->exec_ns != 0 || last->scanned) {
        return;
    }
    last->scanned = parent->scanned;
    for (uint64_t i = 0; i < PAGE_COUNT; i++) {
        const struct span *span = span_at(&parent->pages[i], time_ns);
        if (span != NULL && open_span(&last->pages[i]) == NULL) {
            struct span copy = *span;
            copy.from_ns = time_ns;
            push_span(&last->pages[i], copy);
        }
    }
}

static void apply_scanned(struct life *life, const struct range *range, uint64_t now_ns)
{
    uint64_t base_ns = life->from_ns > life->exec_ns ? life->from_ns : life->exec_ns;
    for (uint64_t i = range->first; i < range->first + range->count; i++) {
        const struct span *open = open_span(&life->pages[i]);
        struct span span = span_of(range, i, open == NULL && !life->scanned ? base_ns : now_ns);
        span.scanned = true;
        bool same = open != NULL && open->file == span.file &&
                    (paths[span.file][0] != '/' || open->bias == span.bias);
        if (open == NULL || (open->scanned && !same && open->from_ns <= now_ns)) {
            push_span(&life->pages[i], span);
        }
    }
}

static void tell_scan(struct model *model, unsigned pid)
{
    struct range ranges[4];
    struct mapping_description descriptions[4];
    for (size_t i = 0; i < 4; i++) {
        ranges[i] = draw_range(model);
        descriptions[i] = describe(&ranges[i]);
    }
    struct process_scan scan = {.pid = (int32_t)pid + 1,
                                .mappings = descriptions,
                                .mapping_count = 4,
                                .begin_ns = model->now_ns,
                                .end_ns = model->now_ns};
    process_table_scan(model->table, &scan);

    struct life *life = last_life(model, pid);
    if (life == NULL) {
        life = new_life(model, pid, 0, model->now_ns);
    }
    if (life->to_ns != TIME_OPEN_NS) {
        return;
    }
    for (size_t i = 0; i < 4; i++) {
        apply_scanned(life, &ranges[i], model->now_ns);
    }
    life->scanned = true;
}

static void prune(struct model *model)
{
    if (model->now_ns > WINDOW_NS) {
        model->horizon_ns = model->now_ns - WINDOW_NS;
        process_table_prune(model->table, model->horizon_ns);
        forget_lives(model);
    }
}

static void step(struct model *model)
{
    /* A late time is told as late, and asked for as any other. */
    uint64_t late_ns = draw_below(&model->random, 10) == 0 ? draw_below(&model->random, 6) : 0;
    uint64_t time_ns = model->now_ns > late_ns ? model->now_ns - late_ns : model->now_ns;
    unsigned pid = (unsigned)draw_below(&model->random, PID_COUNT);
    switch (draw_below(&model->random, 24)) {
    case 0:
        tell_exit(model, pid, time_ns);
        break;
    case 1:
    case 2:
        tell_fork(model, pid, (unsigned)draw_below(&model->random, PID_COUNT), time_ns);
        break;
    case 3:
        tell_exec(model, pid);
        break;
    case 4:
    case 5:
        tell_scan(model, pid);
        break;
    case 6:
        prune(model);
        break;
    default:
        tell_mmap(model, pid, time_ns);
    }
    model->now_ns += draw_below(&model->random, 3);
}

static void compare(struct model *model)
{
    unsigned pid = (unsigned)draw_below(&model->random, PID_COUNT);
    uint64_t page = draw_below(&model->random, PAGE_COUNT);
    uint64_t time_ns =
        model->horizon_ns + draw_below(&model->random, model->now_ns - model->horizon_ns + 2);

    struct life *life = life_until(model, pid, time_ns);
    struct process *process = process_table_find(model->table, (int32_t)pid + 1, time_ns);
    assert_int_equal(process != NULL, life != NULL);
    if (life == NULL || process == NULL) {
        return;
    }
    assert_int_equal(process->from_ns, life->from_ns);
    assert_int_equal(process->to_ns, life->to_ns);
    assert_int_equal(process->scanned, life->scanned);
    assert_int_equal(process->exec_ns, life->exec_ns);

    const struct span *span = span_at(&life->pages[page], time_ns);
    uint64_t pc = page * PAGE + draw_below(&model->random, PAGE);
    const struct mapping *mapping = process_find_mapping(process, pc, time_ns);
    assert_int_equal(mapping != NULL, span != NULL);
    if (span != NULL && mapping != NULL) {
        assert_string_equal(mapping->file->path, paths[span->file]);
        assert_int_equal(mapping->file_offset + (page * PAGE - mapping->start), span->offset);
        assert_int_equal(mapping->from_ns, span->from_ns);
        assert_int_equal(mapping->to_ns, span->to_ns);
    }
}

TEST(agrees_with_a_plain_model)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct model model = {.random = seed, .now_ns = 1};
        model.table = process_table_new(NULL, NULL);
        assert_non_null(model.table);
        for (size_t i = 0; i < OPERATION_COUNT / 4; i++) {
            step(&model);
            for (size_t question = 0; question < 8; question++) {
                compare(&model);
            }
        }
        assert_int_equal(process_table_counts(model.table).counters.table_refused, 0);
        model.table = process_table_free(model.table);
        for (size_t i = 0; i < PID_COUNT * LIVES_KEPT; i++) {
            free(model.lives[i / LIVES_KEPT][i % LIVES_KEPT]);
        }
    }
}

/* Any record at any time of a window: only what holds of every answer is asked for. */
static void tell_anything(struct model *model)
{
    int32_t pid = (int32_t)draw_below(&model->random, PID_COUNT);
    int32_t tid = pid + (int32_t)draw_below(&model->random, 3) * 100;
    uint64_t time_ns = model->now_ns + draw_below(&model->random, WINDOW_NS);
    struct range range = draw_range(model);
    struct mapping_description description = describe(&range);
    const struct scanned_thread threads[] = {{.tid = pid, .comm = "s"}, {.tid = tid, .comm = "s"}};
    struct process_scan scan = {.pid = pid,
                                .start_time_ns = draw_below(&model->random, time_ns + 1),
                                .threads = threads,
                                .thread_count = 1 + draw_below(&model->random, 2),
                                .mappings = &description,
                                .mapping_count = 1,
                                .begin_ns = time_ns,
                                .end_ns = time_ns + 1};
    switch (draw_below(&model->random, 10)) {
    case 0:
        process_table_exit(model->table, pid, tid, time_ns);
        break;
    case 1:
        process_table_fork(model->table, pid, (int32_t)draw_below(&model->random, PID_COUNT), pid,
                           tid, time_ns);
        break;
    case 2:
        process_table_fork(model->table, pid, pid, tid, pid, time_ns);
        break;
    case 3:
        process_table_comm(model->table, pid, tid, "c", draw_below(&model->random, 2) == 0,
                           time_ns);
        break;
    case 4:
        process_table_scan(model->table, &scan);
        break;
    case 5:
        process_table_gone(model->table, pid, time_ns);
        break;
    case 6:
        process_table_prune(model->table, model->now_ns);
        break;
    default:
        process_table_mmap(model->table, pid, &description, time_ns);
    }
    model->now_ns += draw_below(&model->random, 3);
}

static void check_answers(struct model *model)
{
    int32_t pid = (int32_t)draw_below(&model->random, PID_COUNT);
    uint64_t time_ns = model->now_ns + draw_below(&model->random, WINDOW_NS);
    uint64_t pc = draw_below(&model->random, PAGE_COUNT * PAGE);
    struct process *process = process_table_find(model->table, pid, time_ns);
    if (process == NULL) {
        return;
    }
    assert_int_equal(process->pid, pid);
    const struct mapping *mapping = process_find_mapping(process, pc, time_ns);
    if (mapping != NULL) {
        assert_in_range(pc, mapping->start, mapping->end - 1);
        assert_in_range(time_ns, mapping->from_ns, mapping->to_ns - 1);
        assert_int_not_equal(mapping->file->reference_count, 0);
    }
    size_t live_count = 0;
    for (int32_t tid = pid; tid <= pid + 200; tid += 100) {
        const struct thread *thread = process_find_thread(process, tid, TIME_OPEN_NS - 1);
        live_count += thread != NULL && thread->to_ns == TIME_OPEN_NS ? 1 : 0;
        thread = process_find_thread(process, tid, time_ns);
        if (thread != NULL) {
            assert_int_equal(thread->tid, tid);
            assert_in_range(time_ns, thread->from_ns, TIME_OPEN_NS - 1);
        }
    }
    assert_int_equal(process->live_thread_count, live_count);
    assert_true(live_count == 0 || process->to_ns == TIME_OPEN_NS);
}

TEST(stays_whole_whatever_the_order)
{
    struct model model = {.random = 9, .now_ns = 1};
    model.table = process_table_new(NULL, NULL);
    assert_non_null(model.table);
    for (size_t i = 0; i < OPERATION_COUNT; i++) {
        tell_anything(&model);
        check_answers(&model);
    }
    for (int32_t pid = 0; pid < (int32_t)PID_COUNT; pid++) {
        process_table_gone(model.table, pid, TIME_OPEN_NS - 1);
    }
    process_table_prune(model.table, TIME_OPEN_NS);
    const struct process_table_counts counts = process_table_counts(model.table);
    assert_int_equal(counts.process_count, 0);
    assert_int_equal(counts.thread_count, 0);
    assert_int_equal(counts.mapping_count, 0);
    assert_int_equal(counts.counters.table_refused, 0);
    model.table = process_table_free(model.table);
}
