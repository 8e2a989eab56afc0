/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loads a segment piece by piece. Tables are sealed anew when something was added, and samples are
 * resolved a batch at a time. Samples whose completion has not come are put aside while the others
 * are handed out. A completion is the end of its group, so groups are forgotten with their samples.
 */
#include "live_profile.h"

#include "cleanup.h"
#include "grow.h"
#include "huge_pages.h"
#include "loader.h"
#include "located_stacks.h"
#include "tables.h"

#include <string.h>

#define LARGE_BYTES (UINT64_C(32) << 20)

struct held_sample {
    struct profile_sample sample;
    struct told_event told;
};

struct live_profile {
    struct profile *profile; /* owned */
    struct loader loader;
    struct held_sample *held; /* owned; samples that wait for their completion */
    size_t held_capacity;
    size_t held_count;
    size_t sealed_names; /* how many entries tables had when they were sealed last */
    size_t sealed_mappings;
    size_t sealed_symbols;
    size_t sealed_owners;
};

struct live_profile *live_profile_new(enum profile_names names, bool has_events)
{
    struct live_profile *live = calloc(1, sizeof *live);
    if (live == NULL) {
        return NULL;
    }
    live->profile = loader_new_profile(names);
    live->loader.profile = live->profile;
    live->loader.choice.ignores_weights = true;
    live->loader.choice.takes_all = has_events;
    live->sealed_owners = SIZE_MAX; /* the owner of whom nothing is known has labels too */
    return live->profile == NULL ? live_profile_free(live) : live;
}

struct live_profile *live_profile_free(struct live_profile *live)
{
    if (live != NULL) {
        loader_done(&live->loader);
        live->profile = profile_free(live->profile);
        free(live->held);
        free(live);
    }
    return NULL;
}

int live_profile_add(struct live_profile *live, const struct fxt_record *record)
{
    return loader_record(record, &live->loader);
}

const struct profile *live_profile_get(const struct live_profile *live)
{
    return live->profile;
}

const struct told_event *live_profile_told(const struct live_profile *live)
{
    return live->loader.choice.told;
}

static int hold(struct live_profile *live, size_t number)
{
    const struct event_choice *choice = &live->loader.choice;
    int r = grow(live->held, live->held_capacity, live->held_count + 1);
    if (r == 0) {
        live->held[live->held_count++] = (struct held_sample){
            .sample = live->profile->samples[number],
            .told = choice->takes_all ? choice->told[number] : (struct told_event){0},
        };
    }
    return r;
}

/* Moves a sample forward, to a place that is free. */
static void move_forward(struct live_profile *live, size_t number, size_t place)
{
    struct event_choice *choice = &live->loader.choice;
    live->profile->samples[place] = live->profile->samples[number];
    if (choice->takes_all) {
        choice->told[place] = choice->told[number];
    }
}

/* Takes samples out of the profile whose completion has not come. */
static int hold_open_ones(struct live_profile *live)
{
    struct profile *profile = live->profile;
    size_t ready_count = 0;
    int r = 0;
    live->held_count = 0;
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        if (sample->group != INTERN_NONE && !profile->groups[sample->group].is_completed) {
            r = hold(live, i);
        } else {
            move_forward(live, i, ready_count++);
        }
    }
    profile->sample_count = ready_count;
    return r;
}

static int complete_samples(struct profile *profile)
{
    int r = 0;
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        if (profile->samples[i].group != INTERN_NONE) {
            r = loader_complete(profile, &profile->samples[i]);
        }
    }
    return r;
}

static int seal(struct live_profile *live)
{
    struct profile_tables *tables = live->profile->tables;
    int r = 0;
    if (tables->names.count != live->sealed_names) {
        names_seal(&tables->names);
        live->sealed_names = tables->names.count;
    }
    if (tables->symbols.count != live->sealed_symbols) {
        symbols_seal(&tables->symbols);
        live->sealed_symbols = tables->symbols.count;
    }
    if (tables->mappings.mapping_count != live->sealed_mappings) {
        r = mappings_seal(&tables->mappings);
        live->sealed_mappings = tables->mappings.mapping_count;
    }
    if (r == 0 && tables->owners.of_processes.count != live->sealed_owners) {
        r = owners_seal(&tables->owners, &live->profile->texts);
        live->sealed_owners = tables->owners.of_processes.count;
    }
    return r;
}

/* Puts a copy of `text` in the place of `*kept`. */
static int keep_text(char **kept, const char *text)
{
    char *copy = text == NULL ? NULL : strdup(text);
    if (text != NULL && copy == NULL) {
        return -ENOMEM;
    }
    free(*kept);
    *kept = copy;
    return 0;
}

int live_profile_resolve(struct live_profile *live, bool has_ended)
{
    struct profile *profile = live->profile;
    int r = pending_stacks_settle(&live->loader.pending, profile);
    if (r == 0 && !has_ended) {
        r = hold_open_ones(live);
    }
    if (r == 0) {
        r = complete_samples(profile);
    }
    if (r == 0) {
        r = seal(live);
    }
    if (r == 0) {
        r = keep_text(&profile->session_json, live->loader.books.session_json);
    }
    if (r == 0) {
        r = keep_text(&profile->books_json, live->loader.books.books_json);
    }
    if (r == 0) {
        profile->is_resolved = false; /* no sample has a chain yet */
        profile->loaded_bytes = profile_made_bytes(profile);
        r = profile_resolve(profile);
        /* Samples are resolved once; those that come later may lie elsewhere. */
        profile->located = located_stacks_free(profile->located);
    }
    return r;
}

/* Leaves the groups of samples that are held, and numbers them anew. */
static int keep_open_groups(struct live_profile *live)
{
    struct profile *profile = live->profile;
    struct intern *known = &live->loader.group_keys;
    struct intern keys = {0};
    size_t count = 0;
    cleanup_(freep) struct profile_group *groups = calloc(live->held_count + 1, sizeof *groups);
    int r = groups == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < live->held_count && r == 0; i++) {
        size_t key_bytes = 0;
        uint32_t item = 0;
        uint32_t group = live->held[i].sample.group;
        const void *key = intern_bytes(known, group, &key_bytes);
        r = intern_add(&keys, key, key_bytes, &item);
        if (r == 0) {
            groups[item] = profile->groups[group];
            live->held[i].sample.group = item;
            count = keys.item_count;
        }
    }
    if (r < 0) {
        intern_done(&keys);
        return r;
    }
    intern_done(known);
    *known = keys;
    profile->group_count = count;
    if (count > 0) {
        memcpy(profile->groups, groups, count * sizeof *groups);
    }
    return 0;
}

/* Puts the samples that are held where they were, or before it, so there is room for them. */
static void put_held_back(struct live_profile *live)
{
    struct profile *profile = live->profile;
    struct event_choice *choice = &live->loader.choice;
    for (size_t i = 0; i < live->held_count; i++) {
        profile->samples[i] = live->held[i].sample;
        if (choice->takes_all) {
            choice->told[i] = live->held[i].told;
        }
    }
    profile->sample_count = live->held_count;
}

int live_profile_forget(struct live_profile *live)
{
    struct profile *profile = live->profile;
    int r = keep_open_groups(live);
    profile->sample_count = 0;
    if (r == 0) {
        put_held_back(live);
    }
    profile->drop_count = 0;
    live->held_count = 0;
    return r;
}

bool live_profile_is_large(const struct live_profile *live)
{
    const struct profile *profile = live->profile;
    return intern_size_bytes(&profile->tasks) + intern_size_bytes(&profile->stacks) +
               intern_size_bytes(&profile->chains) + intern_size_bytes(&profile->frames) >
           LARGE_BYTES;
}

/* Gives a task or stack of `from` a number in `into`. */
static int move_item(const struct intern *from, struct intern *into, uint32_t *item)
{
    size_t size_bytes = 0;
    const void *bytes = intern_bytes(from, *item, &size_bytes);
    return intern_add(into, bytes, size_bytes, item);
}

int live_profile_renumber(struct live_profile *live)
{
    struct profile *profile = live->profile;
    struct intern stacks = {0};
    struct intern tasks = {0};
    uint32_t empty = 0;
    int r = intern_add(&stacks, NULL, 0, &empty);
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        struct profile_sample *sample = &profile->samples[i];
        r = move_item(&profile->tasks, &tasks, &sample->task);
        r = r < 0 ? r : move_item(&profile->stacks, &stacks, &sample->user_stack);
        r = r < 0 ? r : move_item(&profile->stacks, &stacks, &sample->kernel_stack);
    }
    memset(live->loader.tasks, 0, sizeof live->loader.tasks);
    intern_done(&profile->tasks);
    intern_done(&profile->stacks);
    intern_done(&profile->chains);
    intern_done(&profile->frames);
    profile->tasks = tasks;
    profile->stacks = stacks;
    return r;
}
