/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks are counted by the names of their frames, not as lines: a file that repeats a long name in
 * a deep stack would else take memory out of all proportion. Each is an interned array: the
 * process's name, whether it is truncated, then the frames, outermost first.
 */
#include "folded.h"

#include "cleanup.h"
#include "grow.h"
#include "text_out.h"

#include <inttypes.h>
#include <string.h>

#define HEAD_COUNT 2 /* the name and the truncation, before the frames */

/* What a frame shows of itself. */
struct shown_frame {
    uint32_t name;
    uint32_t is_kernel;
    uint32_t is_inlined;
    uint32_t file;
    uint32_t line;
};

struct folding {
    const struct profile *profile;
    struct intern shown;  /* struct shown_frame */
    uint32_t *shown_of;   /* owned; by frame of the profile */
    struct intern stacks; /* uint32_t[]: HEAD_COUNT, then items of `shown` */
    uint64_t *counts;     /* owned; by item of `stacks` */
    size_t count_capacity;
    uint32_t *building; /* owned */
    size_t building_capacity;
};

static void folding_done(struct folding *folding)
{
    intern_done(&folding->shown);
    intern_done(&folding->stacks);
    free(folding->shown_of);
    free(folding->counts);
    free(folding->building);
}

static int find_shown_frames(struct folding *folding)
{
    const struct profile *profile = folding->profile;
    int r = 0;
    folding->shown_of = calloc(profile->frames.item_count + 1, sizeof *folding->shown_of);
    if (folding->shown_of == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->frames.item_count && r == 0; i++) {
        const struct profile_frame *frame = profile_frame(profile, (uint32_t)i);
        struct shown_frame shown = {
            .name = frame->name,
            .is_kernel = frame->is_kernel,
            .is_inlined = frame->is_inlined,
            .file = frame->file,
            .line = frame->line,
        };
        r = intern_add(&folding->shown, &shown, sizeof shown, &folding->shown_of[i]);
    }
    return r;
}

static int count_sample(struct folding *folding, const struct profile_sample *sample)
{
    size_t count = 0;
    const uint32_t *frames = profile_chain(folding->profile, sample->chain, &count);
    int r = grow(folding->building, folding->building_capacity, count + HEAD_COUNT);
    if (r < 0) {
        return r;
    }
    uint32_t *stack = folding->building;
    stack[0] = sample->process_name;
    stack[1] = profile_rooted(sample) == PROFILE_STACK_TRUNCATED;
    for (size_t i = 0; i < count; i++) {
        stack[HEAD_COUNT + i] = folding->shown_of[frames[count - 1 - i]];
    }
    uint32_t item = 0;
    size_t known_count = folding->stacks.item_count;
    if (intern_add(&folding->stacks, stack, (count + HEAD_COUNT) * sizeof *stack, &item) < 0 ||
        grow(folding->counts, folding->count_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    folding->counts[item] = item == known_count ? 1 : folding->counts[item] + 1;
    return 0;
}

static const uint32_t *stack_of(const struct folding *folding, uint32_t item, size_t *ret_count)
{
    size_t size_bytes = 0;
    const uint32_t *stack = intern_bytes(&folding->stacks, item, &size_bytes);
    *ret_count = size_bytes / sizeof *stack;
    return stack;
}

static const struct shown_frame *shown_frame(const struct folding *folding, uint32_t item)
{
    size_t size_bytes = 0;
    return intern_bytes(&folding->shown, item, &size_bytes);
}

static const char *file_text(const struct folding *folding, const struct shown_frame *frame)
{
    return frame->file == INTERN_NONE ? "" : profile_text(folding->profile, frame->file);
}

static int compare_frames(const struct folding *folding, uint32_t a, uint32_t b)
{
    const struct shown_frame *left = shown_frame(folding, a);
    const struct shown_frame *right = shown_frame(folding, b);
    int r = strcmp(profile_text(folding->profile, left->name),
                   profile_text(folding->profile, right->name));
    r = r != 0 ? r : (int)left->is_kernel - (int)right->is_kernel;
    r = r != 0 ? r : (int)left->is_inlined - (int)right->is_inlined;
    r = r != 0 ? r : strcmp(file_text(folding, left), file_text(folding, right));
    return r != 0 ? r : (left->line > right->line) - (left->line < right->line);
}

static int compare_stacks(const void *left, const void *right, void *userdata)
{
    const struct folding *folding = userdata;
    size_t a_count = 0;
    size_t b_count = 0;
    const uint32_t *a = stack_of(folding, *(const uint32_t *)left, &a_count);
    const uint32_t *b = stack_of(folding, *(const uint32_t *)right, &b_count);
    int r = strcmp(profile_text(folding->profile, a[0]), profile_text(folding->profile, b[0]));
    r = r == 0 ? (int)a[1] - (int)b[1] : r;
    for (size_t i = HEAD_COUNT; i < a_count && i < b_count && r == 0; i++) {
        r = a[i] == b[i] ? 0 : compare_frames(folding, a[i], b[i]);
    }
    return r != 0 ? r : (a_count > b_count) - (a_count < b_count);
}

/* Semicolons and newlines part frames and lines, so in names they become colons. */
static void print_name(FILE *file, const char *name)
{
    for (size_t bytes = 0; bytes = strcspn(name, ";\n\r"), name[bytes] != '\0'; name += bytes + 1) {
        text_print_bytes(file, name, bytes);
        (void)fputc(':', file);
    }
    text_print(file, name);
}

/* As stackcollapse-perf.pl shows lines: behind a colon, the file without its folders. */
static void print_line(FILE *file, const struct profile *profile, const struct shown_frame *frame)
{
    if (frame->file != INTERN_NONE && frame->line > 0) {
        const char *path = profile_text(profile, frame->file);
        const char *slash = strrchr(path, '/');
        (void)fputc(':', file);
        print_name(file, slash == NULL ? path : slash + 1);
        (void)fprintf(file, ":%" PRIu32, frame->line);
    }
}

static void print_stack(FILE *file, const struct folding *folding, uint32_t item)
{
    size_t count = 0;
    const uint32_t *stack = stack_of(folding, item, &count);
    print_name(file, profile_text(folding->profile, stack[0]));
    if (stack[1] != 0) {
        (void)fputs(";[truncated]", file);
    }
    for (size_t i = HEAD_COUNT; i < count; i++) {
        const struct shown_frame *frame = shown_frame(folding, stack[i]);
        (void)fputc(';', file);
        print_name(file, profile_text(folding->profile, frame->name));
        print_line(file, folding->profile, frame);
        (void)fputs(frame->is_kernel != 0 ? "_[k]" : frame->is_inlined != 0 ? "_[i]" : "", file);
    }
    (void)fprintf(file, " %" PRIu64 "\n", folding->counts[item]);
}

int folded_print(FILE *file, const struct profile *profile)
{
    cleanup_(folding_done) struct folding folding = {.profile = profile};
    int r = find_shown_frames(&folding);
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = count_sample(&folding, &profile->samples[i]);
        if (r == 0) {
            r = profile_check_made(profile, intern_size_bytes(&folding.shown) +
                                                intern_size_bytes(&folding.stacks));
        }
    }
    if (r < 0) {
        return r;
    }
    size_t count = folding.stacks.item_count;
    cleanup_(freep) uint32_t *order = calloc(count + 1, sizeof *order);
    if (order == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
    }
    qsort_r(order, count, sizeof *order, compare_stacks, &folding);
    for (size_t i = 0; i < count; i++) {
        print_stack(file, &folding, order[i]);
    }
    return 0;
}
