/* SPDX-License-Identifier: Apache-2.0 */

/* A profile, as plain texts. */
#include "loaded_recording.h"
#include "unit_test.h"

#include "profile.h"
#include "tables.h"

static const uint64_t *stack_of(const struct profile *profile, uint32_t stack, size_t *ret_count)
{
    size_t size_bytes = 0;
    const uint64_t *entries = intern_bytes(&profile->stacks, stack, &size_bytes);
    *ret_count = size_bytes / sizeof *entries;
    return entries;
}

/* Joins what a sample itself and its completion say. */
static void join_user_stack(const struct profile *profile, const struct profile_sample *sample,
                            struct loaded_sample *ret)
{
    size_t own_count = 0;
    size_t rest_count = 0;
    const uint64_t *own = stack_of(profile, sample->user_stack, &own_count);
    const uint64_t *rest = stack_of(profile, sample->rest_stack, &rest_count);
    ret->user_count = own_count + rest_count;
    ret->user_stack = calloc(ret->user_count + 1, sizeof *ret->user_stack);
    assert_non_null(ret->user_stack);
    memcpy(ret->user_stack, own, own_count * sizeof *own);
    memcpy(ret->user_stack + own_count, rest, rest_count * sizeof *rest);
}

static const char *name_of(const struct profile *profile, const struct profile_sample *sample)
{
    uint32_t text = profile_task(profile, sample->task)->thread_name;
    return text == INTERN_NONE ? "" : profile_text(profile, text);
}

void loaded_recording_init(struct loaded_recording *loaded, const uint8_t *bytes, size_t size_bytes)
{
    struct profile *profile = NULL;
    struct fault fault = {0};
    if (profile_load_memory(bytes, size_bytes, NULL, &profile, &fault) < 0) {
        fail_msg("%s", fault.text);
    }
    assert_false(profile->input.truncated);
    assert_int_equal(profile->unknown_module_count, 0);
    assert_int_equal(profile->tables->symbols.malformed_count, 0);
    *loaded = (struct loaded_recording){
        .samples = calloc(profile->sample_count + 1, sizeof *loaded->samples),
        .sample_count = profile->sample_count,
        .session_json = profile->session_json,
        .books_json = profile->books_json,
        .profile = profile,
    };
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        size_t count = 0;
        const uint32_t *chain = profile_chain(profile, sample->chain, &count);
        assert_true(count > 0);
        struct loaded_sample *loaded_sample = &loaded->samples[i];
        *loaded_sample = (struct loaded_sample){
            .time_ns = sample->time_ns,
            .pid = profile_task(profile, sample->task)->pid,
            .tid = profile_task(profile, sample->task)->tid,
            .cpu = sample->cpu,
            .quality = sample->quality,
            .closed = sample->closed,
            .thread = name_of(profile, sample),
            .process = profile_text(profile, profile_task(profile, sample->task)->process_name),
            .function = profile_text(profile, profile_frame(profile, chain[0])->name),
            .number = i,
        };
        join_user_stack(profile, sample, loaded_sample);
        loaded_sample->in_kernel = sample->in_kernel;
        loaded_sample->kernel_stack =
            stack_of(profile, sample->kernel_stack, &loaded_sample->kernel_count);
    }
}

static int compare_samples(const void *a, const void *b)
{
    const struct loaded_sample *left = a;
    const struct loaded_sample *right = b;
    return left->time_ns < right->time_ns ? -1 : left->time_ns > right->time_ns;
}

void loaded_recording_sort(struct loaded_recording *loaded)
{
    qsort(loaded->samples, loaded->sample_count, sizeof loaded->samples[0], compare_samples);
}

void loaded_recording_frames(const struct loaded_recording *loaded,
                             const struct loaded_sample *sample, char *ret, size_t capacity)
{
    const struct profile *profile = loaded->profile;
    const struct profile_sample *loaded_from = &profile->samples[sample->number];
    size_t count = 0;
    size_t used = 0;
    const uint32_t *chain = profile_chain(profile, loaded_from->chain, &count);
    ret[0] = '\0';
    for (size_t i = 0; i < count && loaded_from->user_stack != 0 && used < capacity; i++) {
        const char *name = profile_text(profile, profile_frame(profile, chain[i])->name);
        used += (size_t)snprintf(ret + used, capacity - used, "%s ", name);
    }
}

void loaded_recording_done(struct loaded_recording *loaded)
{
    for (size_t i = 0; i < loaded->sample_count; i++) {
        free(loaded->samples[i].user_stack);
    }
    free(loaded->samples);
    (void)profile_free(loaded->profile);
    *loaded = (struct loaded_recording){0};
}
