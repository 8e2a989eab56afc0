/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples are counted by the chain of their frames and by what the first frame names: the process
 * by its name alone or with its pid, or the thread. Different chains can show the same, as two
 * files' functions of one name. They come together when the stacks are sorted, and become one line.
 * So no text is kept that is not in the profile, however long the lines.
 *
 * Roots and frames are sorted first, so texts are compared once for each of them, and not for each
 * stack. A stack is then the numbers of their ranks, from the root on, and stacks are sorted by one
 * number after the other.
 */
#include "writers.h"

#include "byte_out.h"
#include "chain_keys.h"
#include "cleanup.h"
#include "compare.h"
#include "export_books.h"
#include "grow.h"
#include "text_forms.h"
#include "text_out.h"

#include <inttypes.h>
#include <string.h>

/* What a frame shows of itself. */
struct shown_frame {
    uint32_t name;
    uint32_t is_kernel;
    uint32_t is_inlined;
    uint32_t file;
    uint32_t line;
};

/* What a stack begins with. */
struct root_key {
    uint64_t pid; /* 0 where the root does not have it, as the next */
    uint64_t tid;
    uint32_t name;
    uint32_t is_truncated;
};

/* Padded by hand, since its bytes are a key. */
struct folded_key {
    struct root_key root;
    uint32_t chain;
    uint32_t zero;
};

/* Stands behind a stack's ranks: it is less than all of them. */
#define STACK_END UINT32_C(0)

/* Samples with one key. */
struct folded_count {
    uint64_t value; /* of its samples */
    uint32_t root;  /* of the roots */
    uint32_t chain;
};

struct folding {
    const struct profile *profile;
    struct byte_out out;
    struct text_forms names;
    struct text_forms files;
    enum export_root root;
    struct intern shown;         /* struct shown_frame */
    uint32_t *ranked;            /* owned; items of `shown`, by rank */
    uint32_t *rank_of;           /* owned; by frame of the profile */
    struct chain_keys stacks;    /* struct folded_key */
    struct folded_count *counts; /* owned; by item of `stacks` */
    size_t count_capacity;
    struct intern roots;    /* struct root_key */
    uint32_t *ranked_roots; /* owned; items of `roots`, by rank */
    uint32_t *ranks;        /* owned; of each stack: 1 + that of its root and of its frames */
    size_t rank_capacity;
    size_t rank_count;
    size_t *starts; /* owned; by item of `stacks`: where its ranks are */
};

static void folding_done(struct folding *folding)
{
    intern_done(&folding->shown);
    chain_keys_done(&folding->stacks);
    text_forms_done(&folding->names);
    text_forms_done(&folding->files);
    free(folding->ranked);
    free(folding->rank_of);
    free(folding->counts);
    intern_done(&folding->roots);
    free(folding->ranked_roots);
    free(folding->ranks);
    free(folding->starts);
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
    return r != 0 ? r : compare_u64(left->line, right->line);
}

static int compare_shown(const void *left, const void *right, void *userdata)
{
    return compare_frames(userdata, *(const uint32_t *)left, *(const uint32_t *)right);
}

/* Finds what frames show, by frame of the profile, for now in `rank_of`. */
static int find_shown_frames(struct folding *folding)
{
    const struct profile *profile = folding->profile;
    int r = 0;
    folding->rank_of = calloc(profile->frames.item_count + 1, sizeof *folding->rank_of);
    if (folding->rank_of == NULL) {
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
        r = intern_add(&folding->shown, &shown, sizeof shown, &folding->rank_of[i]);
    }
    return r;
}

/* Sorts what frames show. What shows the same has one rank. */
static int rank_frames(struct folding *folding)
{
    size_t count = folding->shown.item_count;
    folding->ranked = calloc(count + 1, sizeof *folding->ranked);
    cleanup_(freep) uint32_t *rank_of_shown = calloc(count + 1, sizeof *rank_of_shown);
    if (folding->ranked == NULL || rank_of_shown == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        folding->ranked[i] = (uint32_t)i;
    }
    qsort_r(folding->ranked, count, sizeof *folding->ranked, compare_shown, folding);
    for (size_t i = 0, rank = 0; i < count; i++) {
        if (compare_frames(folding, folding->ranked[i], folding->ranked[rank]) != 0) {
            rank = i;
        }
        rank_of_shown[folding->ranked[i]] = (uint32_t)rank;
    }
    for (size_t i = 0; i < folding->profile->frames.item_count; i++) {
        folding->rank_of[i] = rank_of_shown[folding->rank_of[i]];
    }
    return 0;
}

static struct folded_key make_key(const struct folding *folding,
                                  const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(folding->profile, sample->task);
    struct folded_key key = {
        .root = {.name = task->process_name,
                 .is_truncated = profile_rooted(sample) == PROFILE_STACK_TRUNCATED},
        .chain = sample->chain,
    };
    /* What stands for tasks whose number is not known has none. */
    if (folding->root == EXPORT_ROOT_COMMAND || task->pid == PROFILE_PID_OUTSIDE ||
        task->pid == PROFILE_PID_EXITED) {
        return key;
    }
    key.root.pid = task->pid;
    if (folding->root == EXPORT_ROOT_THREAD) {
        uint32_t name = task->thread_name;
        /* A leader may be told as the process only. */
        key.root.name = name == INTERN_NONE ? task->process_name : name;
        key.root.tid = task->tid;
    }
    return key;
}

static int count_sample(struct folding *folding, const struct profile_sample *sample)
{
    const struct folded_key key = make_key(folding, sample);
    uint32_t item = 0;
    size_t known_count = folding->stacks.count;
    if (chain_keys_add(&folding->stacks, folding->profile, sample, &key, sizeof key, &item) < 0 ||
        grow(folding->counts, folding->count_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    struct folded_count *count = &folding->counts[item];
    int r = 0;
    if (item == known_count) {
        *count = (struct folded_count){.chain = sample->chain};
        r = intern_add(&folding->roots, &key.root, sizeof key.root, &count->root);
    }
    count->value += profile_value_of(folding->profile, sample);
    return r;
}

static const struct root_key *root_key(const struct folding *folding, uint32_t item)
{
    size_t size_bytes = 0;
    return intern_bytes(&folding->roots, item, &size_bytes);
}

static int compare_roots(const void *left, const void *right, void *userdata)
{
    const struct folding *folding = userdata;
    const struct root_key *a = root_key(folding, *(const uint32_t *)left);
    const struct root_key *b = root_key(folding, *(const uint32_t *)right);
    int r =
        strcmp(profile_text(folding->profile, a->name), profile_text(folding->profile, b->name));
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    r = r == 0 ? compare_u64(a->tid, b->tid) : r;
    return r == 0 ? (int)a->is_truncated - (int)b->is_truncated : r;
}

static int add_rank(struct folding *folding, uint32_t rank)
{
    int r = grow(folding->ranks, folding->rank_capacity, folding->rank_count + 1);
    if (r == 0) {
        folding->ranks[folding->rank_count++] = rank;
    }
    return r;
}

/* Adds what is compared of a stack. Its root has no rank yet: it stands there by its number. */
static int add_ranks(struct folding *folding, uint32_t item)
{
    size_t count = 0;
    const struct folded_count *stack = &folding->counts[item];
    const uint32_t *frames = profile_chain(folding->profile, stack->chain, &count);
    folding->starts[item] = folding->rank_count;
    int r = add_rank(folding, stack->root);
    for (; count > 0 && r == 0; count--) {
        r = add_rank(folding, 1 + folding->rank_of[frames[count - 1]]);
    }
    return r == 0 ? add_rank(folding, STACK_END) : r;
}

/* Lists the ranks of all stacks. */
static int rank_stacks(struct folding *folding)
{
    size_t count = folding->stacks.count;
    int r = 0;
    folding->starts = calloc(count + 1, sizeof *folding->starts);
    for (size_t i = 0; folding->starts != NULL && i < count && r == 0; i++) {
        r = add_ranks(folding, (uint32_t)i);
    }
    size_t root_count = folding->roots.item_count;
    folding->ranked_roots = calloc(root_count + 1, sizeof *folding->ranked_roots);
    cleanup_(freep) uint32_t *rank_of_root = calloc(root_count + 1, sizeof *rank_of_root);
    if (r < 0 || folding->starts == NULL || folding->ranked_roots == NULL || rank_of_root == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < root_count; i++) {
        folding->ranked_roots[i] = (uint32_t)i;
    }
    qsort_r(folding->ranked_roots, root_count, sizeof *folding->ranked_roots, compare_roots,
            folding);
    for (size_t i = 0; i < root_count; i++) {
        rank_of_root[folding->ranked_roots[i]] = (uint32_t)i;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t *root = &folding->ranks[folding->starts[i]];
        *root = 1 + rank_of_root[*root];
    }
    return 0;
}

static const uint32_t *stack_ranks(const struct folding *folding, uint32_t item)
{
    return &folding->ranks[folding->starts[item]];
}

/* A stack on its way to its place: it is sorted by the rank that all of them are at. */
struct sorted_stack {
    uint32_t rank;
    uint32_t item;
};

static int compare_sorted(const void *left, const void *right)
{
    return compare_u64(((const struct sorted_stack *)left)->rank,
                       ((const struct sorted_stack *)right)->rank);
}

/* Sorts stacks whose first `depth` ranks are the same. One level for each frame, of which a stack
 * has a bounded number. */
static void sort_stacks(const struct folding *folding, struct sorted_stack *stacks, size_t count,
                        size_t depth)
{
    bool is_sorted = true;
    for (size_t i = 0; i < count; i++) {
        stacks[i].rank = stack_ranks(folding, stacks[i].item)[depth];
        is_sorted = is_sorted && (i == 0 || stacks[i - 1].rank <= stacks[i].rank);
    }
    if (!is_sorted) {
        qsort(stacks, count, sizeof *stacks, compare_sorted);
    }
    for (size_t first = 0, end = 0; first < count; first = end) {
        uint32_t rank = stacks[first].rank;
        while (end < count && stacks[end].rank == rank) {
            end++;
        }
        if (end - first > 1 && rank != STACK_END) {
            sort_stacks(folding, stacks + first, end - first, depth + 1);
        }
    }
}

static bool is_same_stack(const struct folding *folding, uint32_t a, uint32_t b)
{
    const uint32_t *left = stack_ranks(folding, a);
    const uint32_t *right = stack_ranks(folding, b);
    while (*left == *right && *left != STACK_END) {
        left++;
        right++;
    }
    return *left == *right;
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

/* As stackcollapse-perf.pl shows files: without their folders. */
static void print_file(FILE *file, const char *path)
{
    const char *slash = strrchr(path, '/');
    print_name(file, slash == NULL ? path : slash + 1);
}

/* Text forms. */
static void print_name_form(FILE *file, const struct profile *profile, uint32_t text)
{
    print_name(file, profile_text(profile, text));
}

static void print_file_form(FILE *file, const struct profile *profile, uint32_t text)
{
    print_file(file, profile_text(profile, text));
}

static int put_text(struct folding *folding, struct text_forms *forms, uint32_t text)
{
    const struct text_form *form = text_forms_get(forms, text);
    if (form == NULL) {
        return -ENOMEM;
    }
    byte_out_put(&folding->out, form->text, form->text_bytes);
    return 0;
}

/* As stackcollapse-perf.pl shows lines: behind a colon. */
static int put_line(struct folding *folding, const struct shown_frame *frame)
{
    if (frame->file == INTERN_NONE || frame->line == 0) {
        return 0;
    }
    byte_out_text(&folding->out, ":");
    int r = put_text(folding, &folding->files, frame->file);
    byte_out_text(&folding->out, ":");
    byte_out_decimal(&folding->out, frame->line);
    return r;
}

/* As stackcollapse-perf.pl has numbers behind names. A line that begins with '#' is a comment to
 * readers: such a name begins with a colon. */
static int put_root(struct folding *folding, const struct root_key *key)
{
    struct byte_out *out = &folding->out;
    const char *name = profile_text(folding->profile, key->name);
    size_t spaces = strspn(name, " ");
    int r = 0;
    if (name[spaces] == '#') {
        byte_out_flush(out);
        (void)fprintf(out->file, "%*s:", (int)spaces, "");
        print_name(out->file, name + spaces + 1);
    } else {
        r = put_text(folding, &folding->names, key->name);
    }
    if (key->pid != 0) {
        byte_out_text(out, "-");
        byte_out_decimal(out, key->pid);
    }
    if (key->tid != 0) {
        byte_out_text(out, "/");
        byte_out_decimal(out, key->tid);
    }
    return r;
}

static int put_stack(struct folding *folding, uint32_t item, uint64_t samples)
{
    struct byte_out *out = &folding->out;
    const uint32_t *ranks = stack_ranks(folding, item);
    const struct root_key *key = root_key(folding, folding->ranked_roots[*ranks - 1]);
    int r = put_root(folding, key);
    byte_out_text(out, key->is_truncated != 0 ? ";[truncated]" : "");
    while (*++ranks != STACK_END && r == 0) {
        const struct shown_frame *frame = shown_frame(folding, folding->ranked[*ranks - 1]);
        byte_out_text(out, ";");
        r = put_text(folding, &folding->names, frame->name);
        r = r == 0 ? put_line(folding, frame) : r;
        byte_out_text(out, frame->is_kernel != 0 ? "_[k]" : frame->is_inlined != 0 ? "_[i]" : "");
    }
    byte_out_text(out, " ");
    byte_out_decimal(out, samples);
    byte_out_text(out, "\n");
    return r;
}

/* Puts the stacks in that order, those that show the same as one. */
static int put_stacks(struct folding *folding, const struct sorted_stack *stacks, size_t count)
{
    int r = 0;
    for (size_t i = 0, next = 0; i < count && r == 0; i = next) {
        uint64_t samples = 0;
        for (; next < count && is_same_stack(folding, stacks[i].item, stacks[next].item); next++) {
            samples += folding->counts[stacks[next].item].value;
        }
        r = put_stack(folding, stacks[i].item, samples);
    }
    byte_out_flush(&folding->out);
    return r;
}

static void print_lost(FILE *file, const struct profile *profile)
{
    uint64_t lost = export_books_lost(profile);
    if (lost > 0) {
        (void)fprintf(file, "[lost] %" PRIu64 "\n", lost);
    }
}

/* Finds what frames show, and how many samples each stack has. */
static int fold_stacks(struct folding *folding)
{
    const struct profile *profile = folding->profile;
    int r = find_shown_frames(folding);
    r = r == 0 ? rank_frames(folding) : r;
    r = r == 0 ? text_forms_init(&folding->names, profile, print_name_form) : r;
    r = r == 0 ? text_forms_init(&folding->files, profile, print_file_form) : r;
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        chain_keys_fetch_ahead(&folding->stacks, profile, i);
        r = count_sample(folding, &profile->samples[i]);
    }
    return r == 0 ? rank_stacks(folding) : r;
}

int folded_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(folding_done) struct folding folding = {
        .profile = profile, .out = {.file = file}, .root = options->root};
    int r = fold_stacks(&folding);
    if (r < 0) {
        return r;
    }
    size_t count = folding.stacks.count;
    cleanup_(freep) struct sorted_stack *stacks = calloc(count + 1, sizeof *stacks);
    if (stacks == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        stacks[i].item = (uint32_t)i;
    }
    sort_stacks(&folding, stacks, count, 0);
    r = put_stacks(&folding, stacks, count);
    if (r == 0 && options->has_lost_frame) {
        print_lost(file, profile);
    }
    return r;
}
