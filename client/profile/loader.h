/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How records get into a profile: of a whole file (load.c), or as they come (live_profile.c). */

#include "event_choice.h"
#include "fxt_reader.h"
#include "pending_stacks.h"
#include "profile.h"
#include "recorded_books.h"
#include "wait_sums.h"

#include <stdint.h>

struct group_key {
    uint64_t id;
    uint32_t segment;
    uint32_t provider_id;
};

struct told_module;

/* So many threads are looked up once for all samples in a row that have them. */
#define LOADER_KNOWN_TASKS ((size_t)256)

struct loader_task {
    uint64_t pid;
    uint64_t tid;
    uint32_t segment;
    uint32_t number; /* of the profile's task, + 1; 0: there is none yet */
};

struct loader {
    struct profile *profile;
    struct event_choice choice;
    struct recorded_books books;
    uint32_t segment;   /* from 1 */
    bool takes_threads; /* lines of threads, which come when a session ends */
    struct intern module_keys;
    struct told_module *modules; /* owned; by item of module_keys */
    size_t module_capacity;
    struct intern identities; /* build-id and name of each module of the profile */
    struct intern group_keys; /* item: of the profile's groups */
    struct loader_task tasks[LOADER_KNOWN_TASKS]; /* by tid, as far as there is room */
    struct pending_stacks pending;
    struct wait_sums waits; /* where it takes threads */
};

void loader_done(struct loader *loader);

/* A profile without a record. Returned: profile_free(). NULL when there is no memory. */
struct profile *loader_new_profile(enum profile_names names);

/* A feed_record_fn; `loader` is a struct loader. Returns 0, or -ENOMEM. */
int loader_record(const struct fxt_record *record, void *loader);

/* Appends to a part of a group what its completion says. Returns 0, or -ENOMEM. */
int loader_complete(struct profile *profile, struct profile_sample *sample);
