/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An address becomes a frame by way of the mapping that held it at the sample's time and the
 * function that holds it there. A return address may be the first byte of the next function, so
 * callers are looked up one byte lower; what is printed is the address itself. Kernel stacks are
 * everybody's: they are looked up in the mappings of pid 0.
 *
 * Stacks repeat, so the answer for each is kept, with the times between which no Mmap record
 * changes it.
 */
#include "resolve.h"

#include "cleanup.h"
#include "grow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define UNKNOWN "[unknown]"

struct known_chain {
    uint32_t chain;
    struct mapping_validity validity;
};

/* An address of a stack, and when. */
struct place {
    uint32_t segment;
    uint64_t pid; /* of the mappings: a kernel stack's are pid 0's */
    uint64_t address;
    uint64_t time_ns;
    bool is_caller;
    bool is_kernel;
};

/* What a chain depends on, besides the time. */
struct chain_key {
    uint64_t pid;
    uint32_t user_stack;
    uint32_t kernel_stack;
    uint32_t segment;
    uint32_t is_lost; /* the user stack is empty because the task was gone */
};

struct resolver {
    struct profile *profile;
    struct intern chain_keys;
    struct known_chain *chains; /* owned; by item of chain_keys */
    size_t chain_capacity;
    uint32_t *building; /* owned; frames of the chain at hand */
    size_t building_capacity;
};

static void resolver_done(struct resolver *resolver)
{
    intern_done(&resolver->chain_keys);
    free(resolver->chains);
    free(resolver->building);
}

static bool holds_at(const struct mapping_validity *validity, uint64_t time_ns)
{
    return validity->from_ns <= time_ns && time_ns < validity->until_ns;
}

static int add_frame(struct profile *profile, const char *name, uint32_t module, bool is_kernel,
                     uint32_t *ret_frame)
{
    struct profile_frame frame = {.module = module, .is_kernel = is_kernel};
    int r = intern_add(&profile->texts, name, strlen(name), &frame.name);
    return r < 0 ? r : intern_add(&profile->frames, &frame, sizeof frame, ret_frame);
}

/* A frame that no function names. */
static int add_unnamed_frame(struct profile *profile, uint32_t module, uint64_t address,
                             bool is_kernel, uint32_t *ret_frame)
{
    const char *basename = profile_text(profile, profile->modules[module].basename);
    if (profile->modules[module].is_anonymous) {
        cleanup_(freep) char *marker = strdup(basename);
        return marker == NULL ? -ENOMEM : add_frame(profile, marker, module, is_kernel, ret_frame);
    }
    cleanup_(freep) char *name = NULL;
    if (asprintf(&name, "%s+0x%" PRIx64, basename, address) < 0) {
        name = NULL;
        return -ENOMEM;
    }
    return add_frame(profile, name, module, is_kernel, ret_frame);
}

/* The daemon lays a module of this name beneath everything that a process maps. */
static bool is_unknown(const struct profile *profile, uint32_t module)
{
    return module == INTERN_NONE || profile->modules[module].is_unknown;
}

/* The frame of an address. `validity` is narrowed to the times for which it is the same. */
static int find_frame(struct profile *profile, const struct place *place,
                      struct mapping_validity *validity, uint32_t *ret_frame)
{
    uint64_t back = place->is_caller && place->address > 0 ? 1 : 0;
    uint64_t address = place->address - back;
    const struct mapping *mapping = mappings_find(&profile->mappings, place->segment, place->pid,
                                                  address, place->time_ns, validity);
    if (mapping == NULL || is_unknown(profile, mapping->module)) {
        return add_frame(profile, UNKNOWN, INTERN_NONE, place->is_kernel, ret_frame);
    }
    uint64_t vaddr = address - mapping->start + mapping->vaddr;
    const struct symbol_entry *symbol = symbols_find(&profile->symbols, mapping->symbols, vaddr);
    if (symbol == NULL) {
        return add_unnamed_frame(profile, mapping->module, vaddr + back, place->is_kernel,
                                 ret_frame);
    }
    struct profile_frame frame = {
        .name = symbol->name,
        .module = mapping->module,
        .is_kernel = place->is_kernel,
    };
    return intern_add(&profile->frames, &frame, sizeof frame, ret_frame);
}

/* Appends a stack's frames to the chain at hand. */
static int append_stack(struct resolver *resolver, const struct profile_sample *sample,
                        bool is_kernel, size_t *count, struct mapping_validity *validity)
{
    struct profile *profile = resolver->profile;
    size_t stack_bytes = 0;
    const uint64_t *stack = intern_bytes(
        &profile->stacks, is_kernel ? sample->kernel_stack : sample->user_stack, &stack_bytes);
    size_t stack_count = stack_bytes / sizeof *stack;
    int r = grow(resolver->building, resolver->building_capacity, *count + stack_count);
    for (size_t i = 0; i < stack_count && r == 0; i++) {
        const struct place place = {
            .segment = sample->segment,
            .pid = is_kernel ? PROFILE_PID_OUTSIDE : sample->pid,
            .address = stack[i],
            .time_ns = sample->time_ns,
            .is_caller = i > 0,
            .is_kernel = is_kernel,
        };
        r = find_frame(profile, &place, validity, &resolver->building[*count]);
        *count += r == 0;
    }
    return r;
}

/*
 * A task without a user stack is a kernel thread if it never had anything mapped. Then a marker
 * stands for a stack that is all empty; with anybody else it stands for the user's half of it.
 */
static int append_marker(struct resolver *resolver, const struct chain_key *key, size_t *count)
{
    struct profile *profile = resolver->profile;
    bool is_kernel_thread = key->is_lost == 0 && key->pid != PROFILE_PID_OUTSIDE &&
                            key->pid != PROFILE_PID_EXITED &&
                            !mappings_have_process(&profile->mappings, key->segment, key->pid);
    if (is_kernel_thread && *count > 0) {
        return 0;
    }
    int r = grow(resolver->building, resolver->building_capacity, *count + 1);
    if (r == 0) {
        r = add_frame(profile, is_kernel_thread ? "[kernel thread]" : UNKNOWN, INTERN_NONE, false,
                      &resolver->building[*count]);
    }
    *count += r == 0;
    return r;
}

static int build_chain(struct resolver *resolver, const struct profile_sample *sample,
                       const struct chain_key *key, struct known_chain *ret)
{
    struct profile *profile = resolver->profile;
    size_t count = 0;
    size_t user_bytes = 0;
    *ret = (struct known_chain){.validity = {0, UINT64_MAX}};
    (void)intern_bytes(&profile->stacks, sample->user_stack, &user_bytes);
    int r = append_stack(resolver, sample, true, &count, &ret->validity);
    if (r == 0) {
        r = append_stack(resolver, sample, false, &count, &ret->validity);
    }
    if (r == 0 && user_bytes == 0) {
        r = append_marker(resolver, key, &count);
    }
    if (r == 0) {
        r = intern_add(&profile->chains, resolver->building, count * sizeof *resolver->building,
                       &ret->chain);
    }
    return r;
}

static int resolve_chain(struct resolver *resolver, struct profile_sample *sample)
{
    struct chain_key key = {
        .pid = sample->pid,
        .user_stack = sample->user_stack,
        .kernel_stack = sample->kernel_stack,
        .segment = sample->segment,
        .is_lost = sample->closed != 0,
    };
    uint32_t item = 0;
    size_t known_count = resolver->chain_keys.item_count;
    if (intern_add(&resolver->chain_keys, &key, sizeof key, &item) < 0 ||
        grow(resolver->chains, resolver->chain_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    struct known_chain *known = &resolver->chains[item];
    if (item == known_count || !holds_at(&known->validity, sample->time_ns)) {
        int r = build_chain(resolver, sample, &key, known);
        if (r < 0) {
            return r;
        }
    }
    sample->chain = known->chain;
    return 0;
}

static int resolve_process_name(struct profile *profile, struct profile_sample *sample)
{
    sample->process_name =
        names_find(&profile->names, sample->segment, sample->pid, NAMES_PROCESS, sample->time_ns);
    if (sample->process_name != INTERN_NONE) {
        return 0;
    }
    const char *name = sample->pid == PROFILE_PID_OUTSIDE  ? "[outside]"
                       : sample->pid == PROFILE_PID_EXITED ? "[exited]"
                                                           : UNKNOWN;
    return intern_add(&profile->texts, name, strlen(name), &sample->process_name);
}

int resolve_samples(struct profile *profile)
{
    cleanup_(resolver_done) struct resolver resolver = {.profile = profile};
    int r = 0;
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = resolve_process_name(profile, &profile->samples[i]);
        if (r == 0) {
            r = resolve_chain(&resolver, &profile->samples[i]);
        }
    }
    return r;
}
