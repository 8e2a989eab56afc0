/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups of samples, by rules that are checked the long way: each sample is in one group, what a
 * group shares its stacks do share, it is no longer than what goes into a lane at once, and no
 * other division into neighbours would be shorter.
 */
#include "trace_groups.h"
#include "unit_test.h"

#define SAMPLES_MAX 512
#define DEPTH_MAX   40
#define ROUNDS      400

static uint64_t seed;

struct made {
    struct sample sample;
    uint64_t user_stack[DEPTH_MAX];
    uint64_t kernel_stack[4];
    bool seen;
};

static struct made made[SAMPLES_MAX];

/* Stacks of a few functions, so that many end alike. */
static void make_sample(struct made *ret, size_t number, uint64_t depth, uint64_t functions)
{
    size_t count = draw_below(&seed, depth + 1);
    *ret = (struct made){.sample = {.time_ns = 1000 + number,
                                    .weight = 1 + draw_below(&seed, 2),
                                    .event = (uint32_t)draw_below(&seed, 2),
                                    .cpu = 3,
                                    .pid = 1,
                                    .tid = (int32_t)draw_below(&seed, 3),
                                    .quality = count == 0 ? STACK_NONE : STACK_COMPLETE,
                                    .cfi_frame_count = (uint16_t)draw_below(&seed, 2),
                                    .user_count = count,
                                    .kernel_mode = draw_below(&seed, 4) == 0}};
    ret->sample.kernel_count = ret->sample.kernel_mode ? draw_below(&seed, 5) : 0;
    for (size_t i = 0; i < count; i++) {
        ret->user_stack[i] = 1 + draw_below(&seed, functions);
    }
    ret->sample.user_stack = ret->user_stack;
    ret->sample.kernel_stack = ret->kernel_stack;
}

static uint64_t entry_from_root(const struct sample *sample, size_t index)
{
    return sample->user_stack[sample->user_count - 1 - index];
}

static size_t words_of(const struct trace_group *group)
{
    size_t words = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct sample *sample = group->members[i];
        size_t own = sample->user_count - group->shared_count;
        /* Header, fields, time, pid, tid; then the id, or cpu and quality. */
        words += 5 + (own > 0 ? 1 + own : 0) + (sample->kernel_mode ? 1 + sample->kernel_count : 0);
        words += sample->weight != 1;
        words += sample->event != 0;
        words += group->count == 1 || group->quality_differs ? 2 : 1;
    }
    /* Header, fields, id, the stack's count, quality. */
    words += group->count == 1 ? 0 : 4 + group->shared_count + !group->quality_differs;
    return words;
}

static void check_group(const struct trace_group *group)
{
    const struct sample *first = group->members[0];
    bool differs = false;
    assert_true(group->count > 0);
    assert_true(group->count == 1 ? group->shared_count == 0 : group->shared_count > 0);
    assert_true(group->count == 1 || words_of(group) <= TRACE_GROUPS_WORDS_MAX);
    for (size_t i = 0; i < group->count; i++) {
        const struct sample *sample = group->members[i];
        struct made *original = &made[sample->time_ns - 1000];
        assert_false(original->seen);
        original->seen = true;
        assert_int_equal(sample->tid, original->sample.tid);
        assert_int_equal(sample->weight, original->sample.weight);
        assert_int_equal(sample->event, original->sample.event);
        assert_int_equal(sample->user_count, original->sample.user_count);
        assert_int_equal(sample->kernel_mode, original->sample.kernel_mode);
        assert_int_equal(sample->kernel_count, original->sample.kernel_count);
        assert_memory_equal(sample->user_stack, original->user_stack, 8 * sample->user_count);
        assert_memory_equal(sample->kernel_stack, original->kernel_stack, 8 * sample->kernel_count);
        assert_true(sample->user_count >= group->shared_count);
        for (size_t at = 0; at < group->shared_count; at++) {
            assert_int_equal(entry_from_root(sample, at), entry_from_root(first, at));
        }
        differs = differs || sample->cfi_frame_count != first->cfi_frame_count;
    }
    assert_true(group->count == 1 || differs == group->quality_differs);
}

/* All groups together. `order`, if not NULL, gets the members in the order of the groups. */
static size_t check_groups(struct trace_groups *groups, size_t sample_count,
                           const struct sample **order)
{
    struct trace_group group;
    size_t words = 0;
    size_t count = 0;
    trace_groups_form(groups);
    while (trace_groups_next(groups, &group)) {
        check_group(&group);
        words += words_of(&group);
        for (size_t i = 0; order != NULL && i < group.count; i++) {
            order[count + i] = group.members[i];
        }
        count += group.count;
    }
    trace_groups_clear(groups);
    assert_int_equal(count, sample_count);
    return words;
}

/* The group of some neighbours; false where they share nothing. */
static bool make_group(const struct sample *const *members, size_t count, struct trace_group *ret)
{
    size_t shared = members[0]->user_count;
    bool differs = false;
    for (size_t i = 1; i < count; i++) {
        size_t limit = shared < members[i]->user_count ? shared : members[i]->user_count;
        for (shared = 0; shared < limit && entry_from_root(members[i], shared) ==
                                               entry_from_root(members[0], shared);) {
            shared++;
        }
        differs = differs || members[i]->cfi_frame_count != members[0]->cfi_frame_count;
    }
    *ret = (struct trace_group){members, count, count == 1 ? 0 : shared, differs && count > 1};
    return count == 1 || shared > 0;
}

static size_t shortest(const struct sample *const *order, size_t count)
{
    size_t best = count == 0 ? 0 : SIZE_MAX;
    for (size_t first = 1; first <= count; first++) {
        struct trace_group group;
        if (make_group(order, first, &group)) {
            size_t words = words_of(&group) + shortest(order + first, count - first);
            best = words < best ? words : best;
        }
    }
    return best;
}

#define STORY(name)                                                                                \
    TEST_MADE(struct trace_groups *groups, name, trace_groups_new(), trace_groups_free)

STORY(divides_samples_so_that_no_other_way_is_shorter)
{
    size_t grouped = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const struct sample *order[10];
        size_t count = 1 + draw_below(&seed, 10);
        seed = round;
        for (size_t i = 0; i < count; i++) {
            make_sample(&made[i], i, 12, 1 + round % 3);
            assert_true(trace_groups_add(groups, &made[i].sample));
        }
        size_t words = check_groups(groups, count, order);
        assert_int_equal(words, shortest(order, count));
        for (size_t i = 0; i < count; i++) {
            struct trace_group alone = {&order[i], 1, 0, false};
            grouped += words_of(&alone);
        }
        grouped -= words;
    }
    assert_true(grouped > ROUNDS);
}

STORY(takes_each_sample_once_however_many_there_are)
{
    for (uint64_t round = 0; round < 40; round++) {
        seed = round;
        for (size_t i = 0; i < SAMPLES_MAX; i++) {
            make_sample(&made[i], i, 1 + draw_below(&seed, DEPTH_MAX), 1 + round % 5);
            if (round % 8 == 7) { /* all the same: more than one group can hold, but kept once */
                made[i].sample.user_count = DEPTH_MAX;
                made[i].sample.cfi_frame_count = 0;
                memset(made[i].user_stack, 1, sizeof made[i].user_stack);
            }
            assert_true(trace_groups_add(groups, &made[i].sample));
        }
        (void)check_groups(groups, SAMPLES_MAX, NULL);
    }
}

STORY(refuses_what_does_not_belong_to_the_others)
{
    static uint64_t words[12000];
    struct sample sample = {.time_ns = 1000, .weight = 1};
    assert_true(trace_groups_add(groups, &sample));
    sample.time_ns = 1000 + TRACE_GROUPS_SPAN_NS;
    assert_true(trace_groups_add(groups, &sample));
    sample.time_ns++;
    assert_false(trace_groups_add(groups, &sample));
    sample.time_ns = 999;
    assert_false(trace_groups_add(groups, &sample));
    trace_groups_clear(groups);
    assert_true(trace_groups_add(groups, &sample));
    sample.kernel_stack = words;
    sample.kernel_count = 12000;
    assert_true(trace_groups_add(groups, &sample));
    assert_false(trace_groups_add(groups, &sample));
    trace_groups_clear(groups);
    assert_true(trace_groups_add(groups, &sample));
}

STORY(forms_nothing_of_nothing)
{
    struct trace_group group;
    trace_groups_form(groups);
    assert_false(trace_groups_next(groups, &group));
}
