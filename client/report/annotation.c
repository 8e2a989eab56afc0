/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the function first, then counts where in it samples were. Lines are counted once for each
 * different chain of frames, since frames have them; addresses once for each sample that has the
 * function. Instructions take the place of lines where there is no source to be shown. Each address
 * is counted for the function that holds it there and then, and is shown with that one's code only.
 */
#include "annotation.h"

#include "annotation_source.h"
#include "cleanup.h"
#include "compare.h"
#include "definitions.h"
#include "functions.h"
#include "grow.h"
#include "places.h"

#include <string.h>

/* A function that matches. */
struct candidate {
    uint32_t name;
    uint32_t module; /* of the profile, which tells builds apart; or INTERN_NONE */
};

struct counts {
    uint64_t self;
    uint64_t total;
    uint64_t last; /* the chain or sample that was counted last, + 1 */
};

/* Padded by hand, since its bytes are a key. */
struct row_key {
    uint64_t address;
    uint32_t file;
    uint32_t line;
    uint32_t part;
    uint32_t zero;
};

/* Likewise. */
struct part_key {
    uint64_t start;
    uint64_t end;
    uint32_t name;
    uint32_t zero;
};

struct builder {
    const struct profile *profile;
    struct annotation *annotation;
    struct intern candidates; /* struct candidate */
    struct counts *counts;    /* owned; by candidate */
    uint32_t *of_frame;       /* owned; by frame of the profile: a candidate or INTERN_NONE */
    uint64_t *chain_counts;   /* owned; by chain: its samples */
    uint32_t chosen;          /* the candidate */
    struct intern keys;       /* struct row_key; an item's number is its row's */
    uint64_t *row_last;       /* owned; by row: the chain or sample that it has counted, + 1 */
    size_t row_last_capacity;
    struct intern part_keys; /* struct part_key; an item's number is its part's */
    uint64_t *part_last;     /* owned; by part: the sample that it has counted, + 1 */
    size_t part_last_capacity;
};

static void builder_done(struct builder *builder)
{
    intern_done(&builder->candidates);
    free(builder->counts);
    free(builder->of_frame);
    free(builder->chain_counts);
    intern_done(&builder->keys);
    free(builder->row_last);
    intern_done(&builder->part_keys);
    free(builder->part_last);
}

void annotation_done(struct annotation *annotation)
{
    for (size_t i = 0; i < annotation->file_count; i++) {
        for (size_t j = 0; j < annotation->files[i].text_count; j++) {
            free(annotation->files[i].texts[j].text);
        }
        free(annotation->files[i].texts);
    }
    free(annotation->files);
    free(annotation->rows);
    free(annotation->parts);
    lines_code_done(&annotation->code);
    *annotation = (struct annotation){0};
}

static int mark_frame(struct builder *builder, uint32_t item)
{
    const struct profile_frame *frame = profile_frame(builder->profile, item);
    const struct candidate candidate = {.name = frame->name, .module = frame->module};
    return intern_add(&builder->candidates, &candidate, sizeof candidate, &builder->of_frame[item]);
}

/* Finds the frames of the functions that are meant. */
static int mark_frames(struct builder *builder, const char *function)
{
    const struct profile *profile = builder->profile;
    size_t count = profile->frames.item_count;
    cleanup_(freep) bool *sampled = functions_sampled_frames(profile);
    builder->of_frame = calloc(count + 1, sizeof *builder->of_frame);
    builder->chain_counts = calloc(profile->chains.item_count + 1, sizeof *builder->chain_counts);
    int r =
        builder->of_frame == NULL || builder->chain_counts == NULL || sampled == NULL ? -ENOMEM : 0;
    for (unsigned reading = 0;
         reading < FUNCTION_READINGS && r == 0 && builder->candidates.item_count == 0; reading++) {
        for (size_t i = 0; i < count && r == 0; i++) {
            const char *name = profile_text(profile, profile_frame(profile, (uint32_t)i)->name);
            builder->of_frame[i] = INTERN_NONE;
            r = sampled[i] && functions_are_meant(reading, function, name)
                    ? mark_frame(builder, (uint32_t)i)
                    : 0;
        }
    }
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        builder->chain_counts[profile->samples[i].chain] += profile_value(profile, i);
    }
    return r;
}

/* Takes the candidate with the most samples. */
static int choose(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    size_t count = builder->candidates.item_count;
    size_t match_count = 0;
    builder->counts = calloc(count + 1, sizeof *builder->counts);
    if (builder->counts == NULL) {
        return -ENOMEM;
    }
    for (size_t chain = 0; chain < profile->chains.item_count; chain++) {
        size_t frame_count = 0;
        const uint32_t *frames = profile_chain(profile, (uint32_t)chain, &frame_count);
        for (size_t i = 0; i < frame_count && builder->chain_counts[chain] > 0; i++) {
            uint32_t item = builder->of_frame[frames[i]];
            if (item != INTERN_NONE && builder->counts[item].last != chain + 1) {
                builder->counts[item].last = chain + 1;
                builder->counts[item].total += builder->chain_counts[chain];
                builder->counts[item].self += i == 0 ? builder->chain_counts[chain] : 0;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        const struct counts *best = &builder->counts[builder->chosen];
        const struct counts *counts = &builder->counts[i];
        match_count += counts->total > 0;
        if (counts->self > best->self ||
            (counts->self == best->self && counts->total > best->total)) {
            builder->chosen = (uint32_t)i;
        }
    }
    if (match_count == 0) {
        return ANNOTATION_NO_FUNCTION;
    }
    builder->annotation->other_count = match_count - 1;
    return 0;
}

static const struct candidate *get_candidate(const struct builder *builder, size_t number)
{
    size_t size_bytes = 0;
    return intern_bytes(&builder->candidates, (uint32_t)number, &size_bytes);
}

/* Says what was chosen. */
static void describe(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    struct annotation *annotation = builder->annotation;
    const struct candidate chosen = *get_candidate(builder, builder->chosen);
    annotation->name = chosen.name;
    annotation->self = builder->counts[builder->chosen].self;
    annotation->total = builder->counts[builder->chosen].total;
    if (chosen.module == INTERN_NONE) {
        return;
    }
    annotation->module = profile->modules[chosen.module].name;
    annotation->build_id = profile->modules[chosen.module].build_id;
    for (size_t i = 0; i < builder->candidates.item_count; i++) {
        const struct candidate *other = get_candidate(builder, i);
        annotation->other_build_count += i != builder->chosen && builder->counts[i].total > 0 &&
                                         other->name == chosen.name &&
                                         other->module != INTERN_NONE &&
                                         profile->modules[other->module].name == annotation->module;
    }
}

/* What is counted at each place that a chain or a sample is at. */
struct counted {
    uint64_t number; /* of the chain or sample, + 1: it counts once at a place */
    uint64_t value;
    bool is_self;
};

static int count_place(struct builder *builder, const struct row_key *key,
                       const struct counted *counted)
{
    struct annotation *annotation = builder->annotation;
    uint32_t item = 0;
    int r = intern_add(&builder->keys, key, sizeof *key, &item);
    if (r < 0 || grow(annotation->rows, annotation->row_capacity, (size_t)item + 1) < 0 ||
        grow(builder->row_last, builder->row_last_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    struct annotation_row *row = &annotation->rows[item];
    if (item == annotation->row_count) {
        *row = (struct annotation_row){
            .file = key->file, .line = key->line, .address = key->address, .part = key->part};
        builder->row_last[item] = 0;
        annotation->row_count++;
    }
    row->self += counted->is_self ? counted->value : 0;
    row->total += builder->row_last[item] == counted->number ? 0 : counted->value;
    builder->row_last[item] = counted->number;
    return 0;
}

/* Counts the lines of all chains that have the function. */
static int count_lines(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    int r = 0;
    for (size_t chain = 0; chain < profile->chains.item_count && r == 0; chain++) {
        size_t count = 0;
        const uint32_t *frames = profile_chain(profile, (uint32_t)chain, &count);
        for (size_t i = 0; i < count && builder->chain_counts[chain] > 0 && r == 0; i++) {
            const struct profile_frame *frame = profile_frame(profile, frames[i]);
            const struct row_key key = {.file = frame->line > 0 ? frame->file : INTERN_NONE,
                                        .line = frame->file == INTERN_NONE ? 0 : frame->line};
            const struct counted counted = {chain + 1, builder->chain_counts[chain], i == 0};
            if (builder->of_frame[frames[i]] == builder->chosen) {
                r = count_place(builder, &key, &counted);
            }
        }
    }
    return r;
}

/* The function whose code a place is in, as the recording or its file says. */
static struct part_key find_part(const struct profile *profile, const struct profile_sample *sample,
                                 const struct stack_place *place, const struct module_address *at)
{
    struct part_key key = {.name =
                               profile_frame(profile, place->frames[place->frame_count - 1])->name};
    const struct unnamed_function *unnamed =
        unnamed_find(&profile->unnamed, at->module, at->address);
    struct defined_function defined;
    if (unnamed != NULL) {
        key.start = unnamed->start;
        key.end = unnamed->end;
    } else if (defined_function_find(profile, sample, place, &defined)) {
        uint64_t instruction = place->address - (place->is_caller && place->address > 0 ? 1 : 0);
        key.start = at->address - (instruction - defined.start);
        key.end = key.start + defined.size_bytes;
    }
    return key;
}

/* Counts a sample in a part, once. */
static int count_part(struct builder *builder, const struct part_key *key,
                      const struct counted *counted, uint32_t *ret_part)
{
    struct annotation *annotation = builder->annotation;
    uint32_t item = 0;
    int r = intern_add(&builder->part_keys, key, sizeof *key, &item);
    if (r < 0 || grow(annotation->parts, annotation->part_capacity, (size_t)item + 1) < 0 ||
        grow(builder->part_last, builder->part_last_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    struct annotation_part *part = &annotation->parts[item];
    if (item == annotation->part_count) {
        *part = (struct annotation_part){.name = key->name,
                                         .range = {.start = key->start, .end = key->end}};
        builder->part_last[item] = 0;
        annotation->part_count++;
    }
    part->self += counted->is_self ? counted->value : 0;
    part->total += builder->part_last[item] != counted->number ? counted->value : 0;
    builder->part_last[item] = counted->number;
    *ret_part = item;
    return 0;
}

/* Counts the addresses at which a sample is in the function: in its code, which has that of
 * functions that were inlined into it. */
static int count_sample(struct builder *builder, size_t number)
{
    const struct profile_sample *sample = &builder->profile->samples[number];
    struct place_walk walk;
    struct stack_place place;
    struct counted counted = {number + 1, profile_value(builder->profile, number), true};
    int r = 0;
    place_walk_begin(&walk, builder->profile, sample);
    for (; r == 0 && place_walk_next(&walk, &place); counted.is_self = false) {
        struct module_address at;
        bool is_in = false;
        for (size_t i = 0; i < place.frame_count; i++) {
            is_in |= builder->of_frame[place.frames[i]] == builder->chosen;
        }
        if (!is_in || !place_find_module(builder->profile, sample, &place, &at)) {
            continue;
        }
        struct row_key key = {.address = at.address, .file = INTERN_NONE};
        const struct part_key part = find_part(builder->profile, sample, &place, &at);
        r = count_part(builder, &part, &counted, &key.part);
        r = r == 0 ? count_place(builder, &key, &counted) : r;
    }
    return r;
}

static int count_addresses(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    cleanup_(freep) bool *has_function = calloc(profile->chains.item_count + 1, sizeof(bool));
    int r = has_function == NULL ? -ENOMEM : 0;
    for (size_t chain = 0; chain < profile->chains.item_count && r == 0; chain++) {
        size_t count = 0;
        const uint32_t *frames = profile_chain(profile, (uint32_t)chain, &count);
        for (size_t i = 0; i < count; i++) {
            has_function[chain] |= builder->of_frame[frames[i]] == builder->chosen;
        }
    }
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = has_function[profile->samples[i].chain] ? count_sample(builder, i) : 0;
    }
    return r;
}

static int compare_rows(const void *left, const void *right, void *userdata)
{
    const struct profile *profile = userdata;
    const struct annotation_row *a = left;
    const struct annotation_row *b = right;
    int r = (a->file == INTERN_NONE) - (b->file == INTERN_NONE);
    if (r == 0 && a->file != b->file) {
        r = strcmp(profile_text(profile, a->file), profile_text(profile, b->file));
    }
    r = r == 0 ? compare_u64(a->line, b->line) : r;
    r = r == 0 ? compare_u64(a->part, b->part) : r;
    return r == 0 ? compare_u64(a->address, b->address) : r;
}

static void sort_rows(struct builder *builder)
{
    struct annotation *annotation = builder->annotation;
    if (annotation->row_count > 0) {
        qsort_r(annotation->rows, annotation->row_count, sizeof *annotation->rows, compare_rows,
                (void *)(uintptr_t)builder->profile);
    }
}

static uint64_t sum_self(const struct annotation *annotation)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < annotation->row_count; i++) {
        sum += annotation->rows[i].self;
    }
    return sum;
}

/* A part, and the number that its rows have of it. */
struct counted_part {
    struct annotation_part part;
    size_t number;
};

static int compare_parts(const void *left, const void *right)
{
    const struct counted_part *a = left;
    const struct counted_part *b = right;
    int r = compare_u64(b->part.self, a->part.self);
    r = r == 0 ? compare_u64(b->part.total, a->part.total) : r;
    r = r == 0 ? compare_u64(a->part.range.start, b->part.range.start) : r;
    return r == 0 ? compare_u64(a->number, b->number) : r;
}

/* Sorts the parts, and the rows by them. */
static int sort_parts(struct builder *builder)
{
    struct annotation *annotation = builder->annotation;
    size_t count = annotation->part_count;
    cleanup_(freep) struct counted_part *counted = calloc(count + 1, sizeof *counted);
    cleanup_(freep) size_t *ranks = calloc(count + 1, sizeof *ranks);
    if (counted == NULL || ranks == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        counted[i] = (struct counted_part){annotation->parts[i], i};
    }
    qsort(counted, count, sizeof *counted, compare_parts);
    for (size_t i = 0; i < count; i++) {
        annotation->parts[i] = counted[i].part;
        ranks[counted[i].number] = i;
    }
    for (size_t i = 0; i < annotation->row_count; i++) {
        annotation->rows[i].part = ranks[annotation->rows[i].part];
    }
    sort_rows(builder);
    for (size_t i = annotation->row_count; i-- > 0;) {
        struct annotation_part *part = &annotation->parts[annotation->rows[i].part];
        part->first_row = i;
        part->row_count++;
    }
    return 0;
}

/* Reads the instructions of the parts, as far as they are on this machine. */
static int read_code(struct builder *builder)
{
    struct annotation *annotation = builder->annotation;
    uint32_t module = get_candidate(builder, builder->chosen)->module;
    cleanup_(freep) struct lines_range *ranges = calloc(annotation->part_count + 1, sizeof *ranges);
    if (ranges == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < annotation->part_count; i++) {
        ranges[i] = annotation->parts[i].range;
    }
    int r = module == INTERN_NONE ? 0
                                  : lines_code_read(builder->profile, module, ranges,
                                                    annotation->part_count, &annotation->code);
    for (size_t i = 0; i < annotation->part_count; i++) {
        annotation->parts[i].range = ranges[i];
    }
    return r == -ENOMEM ? r : 0;
}

/* Lines become instructions, if there are any to be shown, or if no line is known. */
static int take_code(struct builder *builder)
{
    struct annotation *annotation = builder->annotation;
    struct annotation lines = *annotation;
    annotation->rows = NULL;
    annotation->row_capacity = 0;
    annotation->row_count = 0;
    intern_done(&builder->keys);
    int r = count_addresses(builder);
    r = r == 0 ? sort_parts(builder) : r;
    r = r == 0 ? read_code(builder) : r;
    bool is_better = annotation->code.count > 0 || annotation->missing_source == INTERN_NONE;
    free(is_better ? lines.rows : annotation->rows);
    if (is_better) {
        annotation->kind = ANNOTATION_CODE;
        annotation->self = sum_self(annotation);
    } else {
        annotation->rows = lines.rows;
        annotation->row_capacity = lines.row_capacity;
        annotation->row_count = lines.row_count;
    }
    return r;
}

int annotation_build(const struct profile *profile, const char *function, struct annotation *ret)
{
    *ret = (struct annotation){
        .module = INTERN_NONE,
        .build_id = INTERN_NONE,
        .whole = profile_total(profile),
        .missing_source = INTERN_NONE,
    };
    cleanup_(builder_done) struct builder builder = {.profile = profile, .annotation = ret};
    int r = mark_frames(&builder, function);
    r = r == 0 ? choose(&builder) : r;
    if (r != 0) {
        return r;
    }
    describe(&builder);
    r = count_lines(&builder);
    if (r < 0) {
        return r;
    }
    sort_rows(&builder);
    r = annotation_read_source(profile, ret);
    if (r < 0) {
        return r;
    }
    if (ret->file_count > 0 && ret->files[0].error == 0) {
        return 0;
    }
    if (ret->file_count > 0) {
        ret->missing_source = ret->files[0].file;
        ret->missing_error = ret->files[0].error;
    }
    return take_code(&builder);
}
