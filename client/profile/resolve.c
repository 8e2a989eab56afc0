/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Resolves addresses to frames: finds the mapping that had the address at the sample's time, and
 * the function in it. A return address may be the first byte of the next function, so callers are
 * looked up one byte lower; reports print the address itself. Kernel stacks are the same for all
 * processes: they are looked up in the mappings of pid 0. With debugging information, an address
 * becomes a frame for each function that was inlined there and one more; the last one keeps the
 * recording's name.
 *
 * Stacks repeat, and so do addresses in stacks. So results are cached, with the times between which
 * no Mmap record changes them: those of stacks in `met` and `chains`, of their common ends in
 * `rests`, of addresses in `cache`.
 */
#include "profile.h"

#include "cleanup.h"
#include "frame_cache.h"
#include "grow.h"
#include "huge_pages.h"
#include "quota.h"
#include "tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define UNKNOWN  "[unknown]"
#define KERNEL   "[kernel]"
#define LEFT_OUT "[left out]" /* what stands for a stack for which there is no room */

#define MADE_PARTS 2 /* a process may make this part of what others leave */

/* A longer chain is none of a program's: its further addresses become a frame each. */
#define CHAIN_COUNT_MAX ((size_t)4096)

/* So many samples ahead it is fetched what they will need. */
#define AHEAD ((size_t)24)

/* An address's frame is fetched so many addresses before it is wanted. */
#define FETCHED_AHEAD ((size_t)8)

/* So many processes are looked up once for all samples in a row that have them. */
#define KNOWN_PROCESSES ((size_t)64)

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

/* Whose an address is. Padded by hand, since its bytes are a key. */
struct owner_key {
    uint64_t pid;
    uint32_t segment;
    uint8_t is_caller;
    uint8_t is_kernel;
    uint16_t zero;
};

/* What a chain depends on, besides the time. */
struct chain_key {
    uint64_t pid;
    uint32_t user_stack;
    uint32_t kernel_stack;
    uint32_t segment;
    uint32_t is_lost; /* the user stack is empty because the task was gone */
    uint32_t rest_stack;
    uint32_t in_kernel;
};

/* The chain of the first key that a stack has. Most stacks have no other: then no key is looked up
 * by its hash. */
struct met_stack {
    struct chain_key key;
    struct known_chain known; /* no time is in it: there is none yet */
};

/* What is true of a process, from a time until another: at first none. */
struct known_process {
    uint64_t pid;
    uint64_t from_ns;
    uint64_t until_ns;
    uint32_t segment;
    uint32_t name;
    uint32_t owner;
};

struct resolver {
    struct profile *profile;
    struct known_process processes[KNOWN_PROCESSES]; /* by pid, as far as there is room */
    struct met_stack *met;                           /* owned; by item of the profile's `stacks` */
    uint32_t hashes[AHEAD];     /* of the chain keys of the samples that come next; a ring; or 0 */
    struct intern chain_keys;   /* all further keys */
    struct known_chain *chains; /* owned; by item of chain_keys */
    size_t chain_capacity;
    struct intern owners;     /* struct owner_key */
    struct frame_cache cache; /* owners' addresses: a frame, or an item of `runs` */
    struct frame_cache rests; /* owners' stacks, by their number: items of `runs` */
    struct intern runs;       /* arrays of frames */
    uint32_t *building;       /* owned; frames of the chain at hand */
    size_t building_capacity;
    uint32_t *run; /* owned; frames of the address at hand */
    size_t run_capacity;
    struct quota made; /* bytes, by process */
    uint32_t left_out; /* the chain that is LEFT_OUT */
};

static void resolver_done(struct resolver *resolver)
{
    free(resolver->met);
    intern_done(&resolver->chain_keys);
    free(resolver->chains);
    intern_done(&resolver->owners);
    frame_cache_done(&resolver->cache);
    frame_cache_done(&resolver->rests);
    intern_done(&resolver->runs);
    free(resolver->building);
    free(resolver->run);
}

/* What is made of the recording, with the resolver's own tables: processes that share a stack have
 * each its own of it there. */
static uint64_t made_bytes(const struct resolver *resolver)
{
    return profile_made_bytes(resolver->profile) + intern_size_bytes(&resolver->chain_keys) +
           intern_size_bytes(&resolver->owners) + intern_size_bytes(&resolver->runs) +
           frame_cache_size_bytes(&resolver->cache) + frame_cache_size_bytes(&resolver->rests);
}

static bool holds_at(const struct mapping_validity *validity, uint64_t time_ns)
{
    return validity->from_ns <= time_ns && time_ns < validity->until_ns;
}

/* Appends a frame to the run at hand. */
static int append_frame(struct resolver *resolver, const struct profile_frame *frame, size_t *count)
{
    int r = grow(resolver->run, resolver->run_capacity, *count + 1);
    if (r == 0) {
        r = intern_add(&resolver->profile->frames, frame, sizeof *frame, &resolver->run[*count]);
    }
    *count += r == 0;
    return r;
}

static int append_named(struct resolver *resolver, const char *name, bool is_kernel, size_t *count)
{
    struct profile_frame frame = {
        .module = INTERN_NONE,
        .is_kernel = is_kernel,
        .file = INTERN_NONE,
    };
    int r = intern_add(&resolver->profile->texts, name, strlen(name), &frame.name);
    return r < 0 ? r : append_frame(resolver, &frame, count);
}

/*
 * What stands for a function that nothing names: the module's name where an address in it says
 * nothing, else that and where the function begins or, if that is not known, the address. `back`
 * is how much lower than the stack's `vaddr` is.
 */
static int name_unnamed(struct profile *profile, uint32_t module, uint64_t vaddr, uint64_t back,
                        bool is_nameless, uint32_t *ret_name)
{
    if (profile->modules[module].is_anonymous || is_nameless) {
        *ret_name = profile->modules[module].basename;
        return 0;
    }
    cleanup_(freep) char *name = NULL;
    const struct unnamed_function *function = unnamed_find(&profile->unnamed, module, vaddr);
    uint64_t address = function == NULL ? vaddr + back : function->start;
    if (function == NULL && unnamed_add(&profile->unnamed, module, vaddr) < 0) {
        return -ENOMEM;
    }
    const char *basename = profile_text(profile, profile->modules[module].basename);
    if (asprintf(&name, "%s+0x%" PRIx64, basename, address) < 0) {
        name = NULL;
        return -ENOMEM;
    }
    return intern_add(&profile->texts, name, strlen(name), ret_name);
}

/* The daemon lays a module of this name beneath everything that a process maps. */
static bool is_unknown(const struct profile *profile, uint32_t module)
{
    return module == INTERN_NONE || profile->modules[module].is_unknown;
}

/* Appends `function`, and before it what debugging information says was inlined there. */
static int append_inlined(struct resolver *resolver, const struct profile_frame *function,
                          uint64_t vaddr, size_t *count)
{
    struct profile *profile = resolver->profile;
    struct profile_frame frame = *function;
    size_t known_count = 0;
    const struct inline_frame *known =
        inlines_find(&profile->inlines, function->module, vaddr, &known_count);
    int r = known_count > 0 ? 0 : append_frame(resolver, function, count);
    for (size_t i = 0; i < known_count && r == 0; i++) {
        frame.is_inlined = i + 1 < known_count;
        frame.name = frame.is_inlined != 0 ? known[i].name : function->name;
        frame.file = known[i].file;
        frame.line = known[i].line;
        r = append_frame(resolver, &frame, count);
    }
    return r;
}

/* The name that debugging information has for the function itself, or INTERN_NONE. */
static uint32_t find_other_name(const struct profile *profile, uint32_t module, uint64_t vaddr)
{
    size_t count = 0;
    const struct inline_frame *known = inlines_find(&profile->inlines, module, vaddr, &count);
    return count > 0 ? known[count - 1].name : INTERN_NONE;
}

/* Appends the frames of an address to the run at hand. `validity` is narrowed to the times for
 * which they are the same. */
static int append_address(struct resolver *resolver, const struct place *place,
                          struct mapping_validity *validity, size_t *count)
{
    struct profile *profile = resolver->profile;
    uint64_t back = place->is_caller && place->address > 0 ? 1 : 0;
    uint64_t address = place->address - back;
    const struct mapping *mapping = mappings_find(&profile->tables->mappings, place->segment,
                                                  place->pid, address, place->time_ns, validity);
    if (mapping == NULL || is_unknown(profile, mapping->module)) {
        return append_named(resolver, UNKNOWN, place->is_kernel, count);
    }
    uint64_t vaddr = address - mapping->start + mapping->vaddr;
    const struct symbol_entry *symbol =
        symbols_find(&profile->tables->symbols, mapping->symbols, vaddr);
    struct profile_frame frame = {
        .name = symbol != NULL ? symbol->name : find_other_name(profile, mapping->module, vaddr),
        .module = mapping->module,
        .is_kernel = place->is_kernel,
        .file = INTERN_NONE,
    };
    /* The daemon, or its worker, could not read the kernel's names. */
    bool is_nameless =
        place->is_kernel && !symbols_know(&profile->tables->symbols, mapping->symbols);
    int r = 0;
    if (profile->inlines.is_wanted) {
        r = inlines_add(&profile->inlines, mapping->module, vaddr);
    }
    if (r == 0 && frame.name == INTERN_NONE) {
        r = name_unnamed(profile, mapping->module, vaddr, back, is_nameless, &frame.name);
    }
    return r < 0 ? r : append_inlined(resolver, &frame, vaddr, count);
}

/* Finds out what an address is, for the time of `place` and as long as it holds. */
static int fill_entry(struct resolver *resolver, const struct place *place,
                      struct frame_cache_entry *entry)
{
    struct mapping_validity validity = {0, UINT64_MAX};
    size_t count = 0;
    int r = append_address(resolver, place, &validity, &count);
    if (r < 0) {
        return r;
    }
    entry->is_run = count > 1;
    entry->answer = resolver->run[0];
    if (entry->is_run) {
        r = intern_add(&resolver->runs, resolver->run, count * sizeof *resolver->run,
                       &entry->answer);
    }
    if (r == 0) {
        entry->validity = validity;
    }
    return r;
}

/* Appends a frame to the chain at hand. */
static int add_to_chain(struct resolver *resolver, uint32_t frame, size_t *count)
{
    int r = grow(resolver->building, resolver->building_capacity, *count + 1);
    if (r == 0) {
        resolver->building[(*count)++] = frame;
    }
    return r;
}

/* Appends the frames of a run, or its last one alone, to the chain at hand. */
static int append_run(struct resolver *resolver, uint32_t run, bool only_last, size_t *count)
{
    size_t run_bytes = 0;
    const uint32_t *frames = intern_bytes(&resolver->runs, run, &run_bytes);
    size_t run_count = run_bytes / sizeof *frames;
    size_t from = only_last ? run_count - 1 : 0;
    int r = grow(resolver->building, resolver->building_capacity, *count + run_count);
    if (r == 0) {
        memcpy(resolver->building + *count, frames + from, (run_count - from) * sizeof *frames);
        *count += run_count - from;
    }
    return r;
}

static void narrow(struct mapping_validity *validity, const struct mapping_validity *by)
{
    validity->from_ns = by->from_ns > validity->from_ns ? by->from_ns : validity->from_ns;
    validity->until_ns = by->until_ns < validity->until_ns ? by->until_ns : validity->until_ns;
}

/* Appends the frames of an owner's address to the chain at hand. */
static int append_place(struct resolver *resolver, uint32_t owner, const struct place *place,
                        struct mapping_validity *validity, size_t *count)
{
    struct frame_cache_entry *entry = NULL;
    int r = frame_cache_find(&resolver->cache, owner, place->address, &entry);
    if (r == 0 && !holds_at(&entry->validity, place->time_ns)) {
        r = fill_entry(resolver, place, entry);
    }
    if (r < 0) {
        return r;
    }
    narrow(validity, &entry->validity);
    return entry->is_run ? append_run(resolver, entry->answer, *count > CHAIN_COUNT_MAX, count)
                         : add_to_chain(resolver, entry->answer, count);
}

/* The number of whom the addresses of a stack belong to: its first, or (`is_caller`) the others. */
static int find_owner(struct resolver *resolver, const struct place *place, uint32_t *ret_owner)
{
    const struct owner_key key = {
        .pid = place->pid,
        .segment = place->segment,
        .is_caller = place->is_caller,
        .is_kernel = place->is_kernel,
    };
    return intern_add(&resolver->owners, &key, sizeof key, ret_owner);
}

/* Appends a stack's frames to the chain at hand. `place` says whose it is, and whether the first of
 * its addresses is a caller's as all others are. */
static int append_stack(struct resolver *resolver, uint32_t stack_item, struct place place,
                        size_t *count, struct mapping_validity *validity)
{
    size_t stack_bytes = 0;
    const uint64_t *stack = intern_bytes(&resolver->profile->stacks, stack_item, &stack_bytes);
    size_t stack_count = stack_bytes / sizeof *stack;
    struct place caller = place;
    uint32_t owner = 0;
    uint32_t owner_of_callers = 0;
    int r = stack_count == 0 ? 0 : find_owner(resolver, &place, &owner);
    caller.is_caller = true;
    if (r == 0 && stack_count > 1) {
        r = find_owner(resolver, &caller, &owner_of_callers);
    }
    for (size_t i = 1; i < FETCHED_AHEAD && i < stack_count; i++) {
        frame_cache_fetch(&resolver->cache, owner_of_callers, stack[i]);
    }
    for (size_t i = 0; i < stack_count && r == 0; i++) {
        if (stack_count - i > FETCHED_AHEAD) {
            frame_cache_fetch(&resolver->cache, owner_of_callers, stack[i + FETCHED_AHEAD]);
        }
        place.address = stack[i];
        place.is_caller = place.is_caller || i > 0;
        r = append_place(resolver, i == 0 ? owner : owner_of_callers, &place, validity, count);
    }
    return r;
}

/* Appends what a stack goes on with, which many do: its frames are found once. */
static int append_rest(struct resolver *resolver, uint32_t stack_item, const struct place *place,
                       size_t *count, struct mapping_validity *validity)
{
    struct frame_cache_entry *entry = NULL;
    uint32_t owner = 0;
    int r = find_owner(resolver, place, &owner);
    if (r < 0) {
        return r;
    }
    r = frame_cache_find(&resolver->rests, owner, stack_item, &entry);
    if (r < 0) {
        return r;
    }
    if (!holds_at(&entry->validity, place->time_ns)) {
        struct mapping_validity found = {0, UINT64_MAX};
        size_t first = *count;
        r = append_stack(resolver, stack_item, *place, count, &found);
        if (r == 0) {
            r = intern_add(&resolver->runs, resolver->building + first,
                           (*count - first) * sizeof *resolver->building, &entry->answer);
        }
        if (r == 0) {
            entry->validity = found;
        }
    } else {
        r = append_run(resolver, entry->answer, false, count);
    }
    narrow(validity, &entry->validity);
    return r;
}

/* Leaves one of several frames in a row of a kernel without names. */
static void fold_unnamed(struct resolver *resolver, size_t *count)
{
    const struct profile *profile = resolver->profile;
    size_t kept_count = 0;
    for (size_t i = 0; i < *count; i++) {
        const struct profile_frame *frame = profile_frame(profile, resolver->building[i]);
        bool is_repeated =
            kept_count > 0 && resolver->building[i] == resolver->building[kept_count - 1] &&
            frame->module != INTERN_NONE && frame->name == profile->modules[frame->module].basename;
        if (!is_repeated) {
            resolver->building[kept_count++] = resolver->building[i];
        }
    }
    *count = kept_count;
}

/* Appends the frames of a sample's kernel and user stacks to the chain at hand. */
static int append_stacks(struct resolver *resolver, const struct profile_sample *sample,
                         size_t *count, struct mapping_validity *validity)
{
    struct place place = {
        .segment = sample->segment,
        .pid = PROFILE_PID_OUTSIDE,
        .time_ns = sample->time_ns,
        .is_kernel = true,
    };
    int r = append_stack(resolver, sample->kernel_stack, place, count, validity);
    fold_unnamed(resolver, count);
    place.pid = sample->pid;
    place.is_kernel = false;
    if (r == 0) {
        r = append_stack(resolver, sample->user_stack, place, count, validity);
    }
    place.is_caller = true;
    if (r == 0 && sample->rest_stack != 0) {
        r = append_rest(resolver, sample->rest_stack, &place, count, validity);
    }
    return r;
}

/*
 * A task without a user stack is a kernel thread if it never had anything mapped. Then a marker
 * stands for a stack that is all empty; with any other task it stands for the user's half of it. A
 * task that was in the kernel may have none, as between the two programs of an exec: the kernel's
 * frames are its whole stack then, or a marker says where it was.
 */
static int append_marker(struct resolver *resolver, const struct chain_key *key, size_t *count)
{
    struct profile *profile = resolver->profile;
    bool is_kernel_thread =
        key->is_lost == 0 && key->pid != PROFILE_PID_OUTSIDE && key->pid != PROFILE_PID_EXITED &&
        !mappings_have_process(&profile->tables->mappings, key->segment, key->pid);
    bool in_kernel = is_kernel_thread || key->in_kernel != 0;
    if (in_kernel && *count > 0) {
        return 0;
    }
    const char *name = is_kernel_thread ? "[kernel thread]" : in_kernel ? KERNEL : UNKNOWN;
    size_t run_count = 0;
    int r = append_named(resolver, name, false, &run_count);
    return r < 0 ? r : add_to_chain(resolver, resolver->run[0], count);
}

static int build_chain(struct resolver *resolver, const struct profile_sample *sample,
                       const struct chain_key *key, struct known_chain *ret)
{
    struct profile *profile = resolver->profile;
    size_t count = 0;
    size_t user_bytes = 0;
    *ret = (struct known_chain){.validity = {0, UINT64_MAX}};
    (void)intern_bytes(&profile->stacks, sample->user_stack, &user_bytes);
    int r = append_stacks(resolver, sample, &count, &ret->validity);
    if (r == 0 && user_bytes == 0) {
        r = append_marker(resolver, key, &count);
    }
    if (r == 0) {
        r = intern_add(&profile->chains, resolver->building, count * sizeof *resolver->building,
                       &ret->chain);
    }
    return r;
}

/* What a sample has whose process has no room for another chain. */
static uint32_t keep_chain(const struct resolver *resolver, const struct profile_sample *sample)
{
    struct profile *profile = resolver->profile;
    uint32_t chain = profile->is_resolved ? sample->chain : resolver->left_out;
    profile->plain_count += chain != resolver->left_out;
    return chain;
}

/* Builds a chain, if there is room for it. */
static int make_chain(struct resolver *resolver, const struct profile_sample *sample,
                      const struct chain_key *key, struct known_chain *known, uint32_t *ret_chain)
{
    uint32_t process = (uint32_t)sample->pid;
    uint64_t before_bytes = made_bytes(resolver);
    if (!quota_take(&resolver->made, process, 1)) {
        *ret_chain = keep_chain(resolver, sample);
        return 0;
    }
    int r = build_chain(resolver, sample, key, known);
    quota_charge(&resolver->made, process, made_bytes(resolver) - before_bytes);
    *ret_chain = known->chain;
    return r;
}

static struct chain_key chain_key(const struct profile_sample *sample)
{
    return (struct chain_key){
        .pid = sample->pid,
        .user_stack = sample->user_stack,
        .rest_stack = sample->rest_stack,
        .kernel_stack = sample->kernel_stack,
        .segment = sample->segment,
        .is_lost = sample->closed != 0,
        .in_kernel = sample->in_kernel,
    };
}

/* Where a stack that is met for the first time has its chain. */
static struct met_stack *met_stack(const struct resolver *resolver,
                                   const struct profile_sample *sample)
{
    uint32_t stack = sample->user_stack != 0   ? sample->user_stack
                     : sample->rest_stack != 0 ? sample->rest_stack
                                               : sample->kernel_stack;
    return &resolver->met[stack];
}

static bool is_key(const struct chain_key *key, const struct chain_key *other)
{
    return memcmp(key, other, sizeof *key) == 0;
}

/*
 * Fetches into the CPU's cache what resolve_chain() will look at for samples that come soon, a
 * place further for those that come sooner. Returns the hash of the sample `at`, which is its own
 * only where another one has its stack's place in `met`.
 */
static uint32_t look_ahead(struct resolver *resolver, size_t at)
{
    const struct profile *profile = resolver->profile;
    const struct profile_sample *samples = &profile->samples[at];
    size_t left = profile->sample_count - at;
    if (left > AHEAD) {
        __builtin_prefetch(met_stack(resolver, &samples[AHEAD]));
    }
    if (left > AHEAD / 2) {
        const struct chain_key key = chain_key(&samples[AHEAD / 2]);
        const struct met_stack *met = met_stack(resolver, &samples[AHEAD / 2]);
        uint32_t *hash = &resolver->hashes[(at + AHEAD / 2) % AHEAD];
        *hash = 0;
        if (met->known.validity.until_ns > 0 && !is_key(&met->key, &key)) {
            *hash = intern_hash(&key, sizeof key);
            intern_fetch_slot(&resolver->chain_keys, *hash);
        }
    }
    if (left > AHEAD / 4 && resolver->hashes[(at + AHEAD / 4) % AHEAD] != 0) {
        intern_fetch_item(&resolver->chain_keys, resolver->hashes[(at + AHEAD / 4) % AHEAD]);
    }
    return resolver->hashes[at % AHEAD];
}

/* The chain of a key that is not the first of its stack. */
static int find_chain(struct resolver *resolver, const struct chain_key *key, uint32_t hash,
                      struct known_chain **ret)
{
    uint32_t item = 0;
    size_t known_count = resolver->chain_keys.item_count;
    hash = hash == 0 ? intern_hash(key, sizeof *key) : hash;
    if (intern_add_hashed(&resolver->chain_keys, hash, key, sizeof *key, &item) < 0 ||
        grow(resolver->chains, resolver->chain_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    *ret = &resolver->chains[item];
    if (item == known_count) {
        **ret = (struct known_chain){0};
    }
    return 0;
}

static int resolve_chain(struct resolver *resolver, const struct profile_sample *sample,
                         uint32_t hash, uint32_t *ret_chain)
{
    const struct chain_key key = chain_key(sample);
    struct met_stack *met = met_stack(resolver, sample);
    struct known_chain *known = &met->known;
    if (known->validity.until_ns == 0) {
        met->key = key;
    } else if (!is_key(&met->key, &key)) {
        int r = find_chain(resolver, &key, hash, &known);
        if (r < 0) {
            return r;
        }
    }
    if (!holds_at(&known->validity, sample->time_ns)) {
        return make_chain(resolver, sample, &key, known, ret_chain);
    }
    *ret_chain = known->chain;
    return 0;
}

static int name_nameless(struct profile *profile, uint64_t pid, uint32_t *ret_text)
{
    const char *name = pid == PROFILE_PID_OUTSIDE  ? "[outside]"
                       : pid == PROFILE_PID_EXITED ? "[exited]"
                                                   : UNKNOWN;
    return intern_add(&profile->texts, name, strlen(name), ret_text);
}

/* Finds what is true of a sample's process, and for which times. */
static int find_process(struct profile *profile, const struct profile_sample *sample,
                        struct known_process *ret)
{
    struct names_span of_name;
    struct names_span of_owner;
    *ret = (struct known_process){.pid = sample->pid, .segment = sample->segment};
    ret->owner = owners_find(&profile->tables->owners, sample->segment, sample->pid,
                             sample->time_ns, &of_owner);
    ret->name = names_find_span(&profile->tables->names, sample->segment, sample->pid,
                                NAMES_PROCESS, sample->time_ns, &of_name);
    int r = ret->name == INTERN_NONE ? name_nameless(profile, sample->pid, &ret->name) : 0;
    if (r == 0) {
        ret->from_ns = of_name.from_ns > of_owner.from_ns ? of_name.from_ns : of_owner.from_ns;
        ret->until_ns = of_name.until_ns < of_owner.until_ns ? of_name.until_ns : of_owner.until_ns;
    }
    return r;
}

/* What is true of a sample's process, which is looked up once for many samples. */
static int resolve_process(struct resolver *resolver, struct profile_sample *sample)
{
    struct known_process *known = &resolver->processes[sample->pid % KNOWN_PROCESSES];
    bool is_known = known->pid == sample->pid && known->segment == sample->segment &&
                    known->from_ns <= sample->time_ns && sample->time_ns < known->until_ns;
    int r = is_known ? 0 : find_process(resolver->profile, sample, known);
    sample->owner = known->owner;
    sample->process_name = known->name;
    return r;
}

/* What loading has made is nobody's share. What an earlier call has made, and debugging
 * information, which has a bound of its own, do not count: else there would be no room for what is
 * made again. */
static int begin(struct resolver *resolver)
{
    const struct profile *profile = resolver->profile;
    size_t count = 0;
    resolver->made.max = profile_made_bytes_max(profile);
    resolver->made.parts = MADE_PARTS;
    resolver->made.taken = profile->loaded_bytes;
    resolver->met = calloc(profile->stacks.item_count + 1, sizeof *resolver->met);
    if (resolver->met == NULL) {
        return -ENOMEM;
    }
    /* Of the stacks of a whole session, a batch of samples has few. */
    if (profile->sample_count >= profile->stacks.item_count) {
        huge_pages_want(resolver->met, profile->stacks.item_count * sizeof *resolver->met);
    }
    int r = append_named(resolver, LEFT_OUT, false, &count);
    return r < 0 ? r
                 : intern_add(&resolver->profile->chains, resolver->run, sizeof *resolver->run,
                              &resolver->left_out);
}

int profile_resolve(struct profile *profile)
{
    cleanup_(resolver_done) struct resolver resolver = {.profile = profile};
    profile->left_out_count = 0;
    profile->plain_count = 0;
    int r = begin(&resolver);
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = resolve_process(&resolver, &profile->samples[i]);
        if (r == 0) {
            r = resolve_chain(&resolver, &profile->samples[i], look_ahead(&resolver, i),
                              &profile->samples[i].chain);
            profile->left_out_count += profile->samples[i].chain == resolver.left_out;
        }
    }
    profile->is_resolved = true;
    return r;
}
