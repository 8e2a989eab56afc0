/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is gathered is kept in the order of its stacks, read from the root on, so that stacks that
 * end alike stand side by side. Neighbours that are equal, in quality too, are a run. A group is a
 * range of runs; what it shares is what its neighbours share where they share least.
 *
 * Which ranges are best is found from left to right: the shortest way to write the first n runs is
 * that for the first m and a group of those between, for the best m. A range ends where nothing is
 * shared, where its records would be too long for one publication, or after RANGE_RUNS_MAX runs.
 */
#include "trace_groups.h"

#include "cleanup.h"

#include <string.h>

#define SAMPLES_MAX    512
#define WORDS_MAX      ((size_t)16384) /* of stacks; the longest record of the kernel has 8,191 */
#define RANGE_RUNS_MAX 24

/* Words of a record: header, field bits, time, pid, tid, and what else it has. */
#define RECORD_WORDS(entry_count) ((entry_count) == 0 ? (size_t)7 : 8 + (entry_count))
#define PARTIAL_WORDS             ((size_t)6)
#define COMPLETION_WORDS(count)   ((size_t)4 + (count))

struct run {
    uint32_t first; /* of `order`; it goes on to the next run's */
    uint32_t count;
    uint32_t own_words;    /* of all its members, beside their user stacks */
    uint32_t entry_count;  /* of its stack */
    uint32_t shared_count; /* with the run before it */
    uint64_t quality;
    /* The shortest way to write what is before this run. */
    uint32_t best_words;
    uint32_t best_from; /* the first run of the last group in it */
    bool ends_group;
};

struct trace_groups {
    struct sample samples[SAMPLES_MAX];
    const struct sample *order[SAMPLES_MAX]; /* by stack */
    size_t sample_count;
    uint64_t words[WORDS_MAX];
    size_t used_words;
    uint64_t first_ns; /* of the samples */
    uint64_t last_ns;
    struct run runs[SAMPLES_MAX + 1];
    size_t run_count;
    size_t next_run;
};

struct trace_groups *trace_groups_new(void)
{
    return calloc(1, sizeof(struct trace_groups));
}

struct trace_groups *trace_groups_free(struct trace_groups *groups)
{
    free(groups);
    return NULL;
}

static uint64_t quality_of(const struct sample *sample)
{
    return (uint64_t)sample->quality | (uint64_t)sample->cfi_frame_count << 16 |
           (uint64_t)sample->fp_frame_count << 32;
}

/* How many of the outermost entries are equal; `known` of them are known to be. */
static size_t count_shared(const struct sample *a, const struct sample *b, size_t known)
{
    size_t limit = a->user_count < b->user_count ? a->user_count : b->user_count;
    size_t count = known;
    while (count < limit &&
           a->user_stack[a->user_count - 1 - count] == b->user_stack[b->user_count - 1 - count]) {
        count++;
    }
    return count;
}

/* By stack from the root on, then by quality; `shared` is count_shared(). */
static int compare(const struct sample *a, const struct sample *b, size_t shared)
{
    if (shared == a->user_count || shared == b->user_count) {
        if (a->user_count != b->user_count) {
            return a->user_count < b->user_count ? -1 : 1;
        }
        uint64_t quality = quality_of(a);
        return (quality > quality_of(b)) - (quality < quality_of(b));
    }
    return a->user_stack[a->user_count - 1 - shared] < b->user_stack[b->user_count - 1 - shared]
               ? -1
               : 1;
}

static bool is_equal(const struct sample *a, const struct sample *b)
{
    return a->user_count == b->user_count && compare(a, b, count_shared(a, b, 0)) == 0;
}

/* The place behind all that are not greater. What both neighbours of the place share with the
 * sample, all between them do. */
static size_t find_place(const struct trace_groups *groups, const struct sample *sample)
{
    size_t low = 0;
    size_t high = groups->sample_count;
    size_t low_shared = 0;
    size_t high_shared = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sample *other = groups->order[middle];
        size_t shared =
            count_shared(sample, other, low_shared < high_shared ? low_shared : high_shared);
        if (compare(sample, other, shared) < 0) {
            high = middle;
            high_shared = shared;
        } else {
            low = middle + 1;
            low_shared = shared;
        }
    }
    return low;
}

static const uint64_t *copy(struct trace_groups *groups, const uint64_t *words, size_t count)
{
    uint64_t *to = groups->words + groups->used_words;
    if (count > 0) {
        memcpy(to, words, count * sizeof *words);
    }
    groups->used_words += count;
    return to;
}

static bool is_near(struct trace_groups *groups, uint64_t time_ns)
{
    uint64_t first_ns = time_ns;
    uint64_t last_ns = time_ns;
    if (groups->sample_count > 0) {
        first_ns = time_ns < groups->first_ns ? time_ns : groups->first_ns;
        last_ns = time_ns > groups->last_ns ? time_ns : groups->last_ns;
    }
    if (last_ns - first_ns > TRACE_GROUPS_SPAN_NS) {
        return false;
    }
    groups->first_ns = first_ns;
    groups->last_ns = last_ns;
    return true;
}

bool trace_groups_add(struct trace_groups *groups, const struct sample *sample)
{
    if (groups->sample_count == SAMPLES_MAX ||
        WORDS_MAX - groups->used_words < sample->user_count + sample->kernel_count ||
        !is_near(groups, sample->time_ns)) {
        return false;
    }
    struct sample *added = &groups->samples[groups->sample_count];
    size_t place = find_place(groups, sample);
    const struct sample *equal = place > 0 ? groups->order[place - 1] : NULL;
    *added = *sample;
    if (equal != NULL && is_equal(equal, sample)) {
        added->user_stack = equal->user_stack;
    } else {
        added->user_stack = copy(groups, sample->user_stack, sample->user_count);
    }
    added->kernel_stack = copy(groups, sample->kernel_stack, sample->kernel_count);
    for (size_t i = groups->sample_count; i > place; i--) {
        groups->order[i] = groups->order[i - 1];
    }
    groups->order[place] = added;
    groups->sample_count++;
    return true;
}

/* What the run takes by itself. */
static size_t run_words(const struct run *run)
{
    size_t words = run->own_words;
    if (run->count == 1) {
        return words + RECORD_WORDS(run->entry_count);
    }
    return words + run->count * PARTIAL_WORDS + COMPLETION_WORDS(run->entry_count) + 1;
}

static void find_runs(struct trace_groups *groups)
{
    struct run *run = NULL;
    groups->run_count = 0;
    for (size_t i = 0; i < groups->sample_count; i++) {
        const struct sample *sample = groups->order[i];
        const struct sample *before = i > 0 ? groups->order[i - 1] : NULL;
        if (run != NULL && sample->user_count > 0 && is_equal(before, sample) &&
            run_words(run) + PARTIAL_WORDS + sample_own_words(sample) <= TRACE_GROUPS_WORDS_MAX) {
            run->count++;
            run->own_words += (uint32_t)sample_own_words(sample);
            continue;
        }
        run = &groups->runs[groups->run_count++];
        *run = (struct run){
            .first = (uint32_t)i,
            .count = 1,
            .own_words = (uint32_t)sample_own_words(sample),
            .entry_count = (uint32_t)sample->user_count,
            .shared_count = before == NULL ? 0 : (uint32_t)count_shared(before, sample, 0),
            .quality = quality_of(sample),
        };
    }
    groups->runs[groups->run_count] = (struct run){.first = (uint32_t)groups->sample_count};
}

/* A range of runs that grows. */
struct range {
    size_t count;
    size_t entries;     /* of all stacks */
    size_t whole_count; /* members whose whole stack is shared */
    size_t shared_count;
    size_t own_words;
    bool quality_differs;
};

static struct range begin_range(const struct run *run)
{
    return (struct range){
        .count = run->count,
        .entries = (size_t)run->count * run->entry_count,
        .whole_count = run->count,
        .shared_count = run->entry_count,
        .own_words = run->own_words,
    };
}

static void extend_range(struct range *range, const struct run *first, const struct run *run)
{
    if (run->shared_count < range->shared_count) {
        range->shared_count = run->shared_count;
        range->whole_count = 0; /* none is as short: it would stand before the others */
    }
    range->whole_count += run->entry_count == range->shared_count ? run->count : 0;
    range->count += run->count;
    range->entries += (size_t)run->count * run->entry_count;
    range->own_words += run->own_words;
    range->quality_differs = range->quality_differs || run->quality != first->quality;
}

static size_t range_words(const struct range *range)
{
    size_t inner = range->entries - range->count * range->shared_count;
    return range->own_words + range->count * PARTIAL_WORDS + (range->count - range->whole_count) +
           inner + COMPLETION_WORDS(range->shared_count) +
           (range->quality_differs ? range->count : 1);
}

static void offer(struct run *after, uint32_t from, size_t words)
{
    if (words < after->best_words) {
        after->best_words = (uint32_t)words;
        after->best_from = from;
    }
}

/* The shortest ways to end a group behind each run that can be in one with `from`. */
static void try_groups(struct trace_groups *groups, size_t from)
{
    struct run *first = &groups->runs[from];
    struct range range = begin_range(first);
    size_t limit =
        from + RANGE_RUNS_MAX < groups->run_count ? from + RANGE_RUNS_MAX : groups->run_count;
    offer(first + 1, (uint32_t)from, first->best_words + run_words(first));
    for (size_t i = from + 1; i < limit; i++) {
        extend_range(&range, first, &groups->runs[i]);
        size_t words = range_words(&range);
        if (range.shared_count == 0 || words > TRACE_GROUPS_WORDS_MAX) {
            return;
        }
        offer(&groups->runs[i + 1], (uint32_t)from, first->best_words + words);
    }
}

void trace_groups_form(struct trace_groups *groups)
{
    find_runs(groups);
    for (size_t i = 1; i <= groups->run_count; i++) {
        groups->runs[i].best_words = UINT32_MAX;
    }
    for (size_t i = 0; i < groups->run_count; i++) {
        try_groups(groups, i);
    }
    for (size_t i = groups->run_count; i > 0; i = groups->runs[i].best_from) {
        groups->runs[i].ends_group = true;
    }
    groups->next_run = 0;
}

bool trace_groups_next(struct trace_groups *groups, struct trace_group *ret)
{
    if (groups->next_run == groups->run_count) {
        return false;
    }
    const struct run *first = &groups->runs[groups->next_run];
    struct range range = begin_range(first);
    const struct run *run = first + 1;
    for (; !run->ends_group; run++) {
        extend_range(&range, first, run);
    }
    groups->next_run = (size_t)(run - groups->runs);
    *ret = (struct trace_group){
        .members = &groups->order[first->first],
        .count = range.count,
        .shared_count = range.count == 1 ? 0 : range.shared_count,
        .quality_differs = range.quality_differs,
    };
    return true;
}

void trace_groups_clear(struct trace_groups *groups)
{
    groups->sample_count = 0;
    groups->used_words = 0;
    groups->run_count = 0;
    groups->next_run = 0;
}
