/* SPDX-License-Identifier: Apache-2.0 */

/*
 * First half of loading: takes each record into its table. Pids mean something within one segment,
 * numbers of modules and of continuations within one provider's records, so they are kept together
 * with the segment, and the provider; an Mmap means the Module that last had its number. What a
 * completion says is copied to its samples at the end, so the order of partials and completion does
 * not matter.
 */
#include "profile.h"

#include "cleanup.h"
#include "grow.h"
#include "huge_pages.h"
#include "json.h"
#include "loader.h"
#include "profile_threads.h"
#include "recording.h"
#include "session_clock.h"
#include "session_times.h"
#include "tables.h"
#include "wait_leaf.h"

#include <stdio.h>
#include <string.h>

#define CONTINUATION_CPU_SHIFT 48
#define QUALITY_DEPTH          3
#define QUALITY_NO_RULE        4
#define MADE_CODE              "[jit]"
#define CLOSED_LOST            1

struct module_key {
    uint64_t pid;
    uint64_t module_id;
    uint32_t segment;
    uint32_t provider_id;
};

/* What a module's number stands for. */
struct told_module {
    uint32_t module; /* of the profile */
    uint32_t symbols;
};

void loader_done(struct loader *loader)
{
    event_choice_done(&loader->choice);
    recorded_books_done(&loader->books);
    intern_done(&loader->module_keys);
    intern_done(&loader->identities);
    intern_done(&loader->group_keys);
    free(loader->modules);
    wait_sums_done(&loader->waits);
}

static int take_name(struct loader *loader, const struct fxt_record *whole)
{
    const struct fxt_name *record = &whole->name;
    struct profile *profile = loader->profile;
    struct name name = {
        .segment = loader->segment,
        .pid = record->pid,
        .tid = record->tid == 0 ? NAMES_PROCESS : record->tid,
        .since_ns = record->since_ns,
    };
    int r = intern_add(&profile->texts, record->name.text, record->name.text_bytes, &name.item);
    return r < 0 ? r : names_add(&profile->tables->names, &name);
}

/* `build_id` as lower-case hex. */
static void print_build_id(const struct fxt_module *record, char *into)
{
    for (size_t i = 0; i < record->build_id_bytes; i++) {
        (void)sprintf(into + 2 * i, "%02x", record->build_id[i]);
    }
    into[2 * record->build_id_bytes] = '\0';
}

/* Code that a process made while it ran: the pid behind it is for telling modules apart only. */
static bool is_made(const struct fxt_module *record)
{
    return record->name_bytes > strlen(MADE_CODE " (") &&
           memcmp(record->name, MADE_CODE " (", strlen(MADE_CODE " (")) == 0;
}

/*
 * A module of the profile: told apart by build-id and name, whatever process has it. The functions
 * of a segment are its own: in another the name may have been another file's.
 */
static int add_module(struct loader *loader, const struct fxt_module *record,
                      struct told_module *ret)
{
    struct profile *profile = loader->profile;
    char build_id[2 * UINT8_MAX + 1];
    char identity[sizeof build_id + UINT8_MAX + 1];
    print_build_id(record, build_id);
    int identity_bytes = snprintf(identity, sizeof identity, "%s:%.*s", build_id,
                                  (int)record->name_bytes, record->name);
    if (symbols_module(&profile->tables->symbols, loader->segment, identity, &ret->symbols) < 0 ||
        intern_add(&loader->identities, identity, (size_t)identity_bytes, &ret->module) < 0) {
        return -ENOMEM;
    }
    if (ret->module < profile->module_count) {
        return 0;
    }
    struct profile_module module = {.debug_file = INTERN_NONE};
    const char *slash = memrchr(record->name, '/', record->name_bytes);
    const char *basename = slash == NULL ? record->name : slash + 1;
    size_t basename_bytes = is_made(record)
                                ? strlen(MADE_CODE)
                                : (size_t)(record->name + record->name_bytes - basename);
    if (intern_add(&profile->texts, record->name, record->name_bytes, &module.name) < 0 ||
        intern_add(&profile->texts, basename, basename_bytes, &module.basename) < 0 ||
        intern_add(&profile->texts, build_id, strlen(build_id), &module.build_id) < 0 ||
        grow(profile->modules, profile->module_capacity, profile->module_count + 1) < 0) {
        return -ENOMEM;
    }
    const char *name = profile_text(profile, module.name);
    module.is_anonymous = strcmp(name, "[anon]") == 0 || is_made(record);
    module.is_unknown = strcmp(name, "[unknown]") == 0;
    profile->modules[profile->module_count++] = module;
    return 0;
}

static int take_module(struct loader *loader, const struct fxt_record *whole)
{
    const struct fxt_module *record = &whole->module;
    struct module_key key = {
        .pid = record->pid,
        .segment = loader->segment,
        .provider_id = whole->provider_id,
        .module_id = record->module_id,
    };
    uint32_t item = 0;
    if (intern_add(&loader->module_keys, &key, sizeof key, &item) < 0 ||
        grow(loader->modules, loader->module_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    return add_module(loader, record, &loader->modules[item]);
}

static int take_mmap(struct loader *loader, const struct fxt_record *whole)
{
    const struct fxt_mmap *record = &whole->mmap;
    struct profile *profile = loader->profile;
    struct module_key key = {
        .pid = record->pid,
        .segment = loader->segment,
        .provider_id = whole->provider_id,
        .module_id = record->module_id,
    };
    if (record->size_bytes == 0) {
        return 0;
    }
    uint32_t item = intern_find(&loader->module_keys, &key, sizeof key);
    profile->unknown_module_count += item == INTERN_NONE;
    struct mapping mapping = {
        .segment = loader->segment,
        .pid = record->pid,
        .time_ns = record->time_ns,
        .start = record->start,
        .vaddr = record->vaddr,
        .module = item == INTERN_NONE ? INTERN_NONE : loader->modules[item].module,
        .symbols = item == INTERN_NONE ? INTERN_NONE : loader->modules[item].symbols,
    };
    return mappings_add(&profile->tables->mappings, &mapping, record->size_bytes);
}

/* Takes the stacks of a sample's record, or of a group's. */
static int take_stacks(struct loader *loader, const struct fxt_sample *record, bool is_group,
                       size_t index)
{
    int r = pending_stacks_add(&loader->pending, loader->profile,
                               is_group ? PENDING_GROUP_USER : PENDING_SAMPLE_USER, index,
                               record->user_stack, record->user_count);
    return r < 0 ? r
                 : pending_stacks_add(&loader->pending, loader->profile,
                                      is_group ? PENDING_GROUP_KERNEL : PENDING_SAMPLE_KERNEL,
                                      index, record->kernel_stack, record->kernel_count);
}

/* The group of a continuation id, made when it is first met. */
static int find_group(struct loader *loader, uint32_t provider_id, uint64_t id, uint32_t *ret_group)
{
    struct profile *profile = loader->profile;
    struct group_key key = {.id = id, .segment = loader->segment, .provider_id = provider_id};
    int r = intern_add(&loader->group_keys, &key, sizeof key, ret_group);
    if (r < 0 || *ret_group < profile->group_count) {
        return r;
    }
    if (grow(profile->groups, profile->group_capacity, profile->group_count + 1) < 0) {
        return -ENOMEM;
    }
    profile->groups[profile->group_count++] = (struct profile_group){0};
    return 0;
}

/* Records of others have no quality field: a stack without proof is not complete. Returns whether
 * there is one. */
static bool read_quality(const struct fxt_sample *record, uint8_t *ret_quality, uint8_t *ret_closed)
{
    bool is_told = (record->fields & FXT_SAMPLE_QUALITY) != 0;
    uint8_t untold = record->user_count > 0 ? QUALITY_NO_RULE : 0;
    *ret_quality = is_told ? (uint8_t)record->quality : untold;
    *ret_closed = is_told ? (uint8_t)(record->quality >> 8) : 0;
    return is_told;
}

static int take_completion(struct loader *loader, uint32_t provider_id,
                           const struct fxt_sample *record)
{
    uint32_t index = 0;
    int r = find_group(loader, provider_id, record->continuation_completion, &index);
    if (r < 0) {
        return r;
    }
    struct profile_group *group = &loader->profile->groups[index];
    if (group->is_completed) {
        loader->profile->orphan_completion_count++;
        return 0;
    }
    group->is_completed = true;
    group->in_kernel = (record->fields & FXT_SAMPLE_KERNEL_STACK) != 0;
    (void)read_quality(record, &group->quality, &group->closed);
    return take_stacks(loader, record, true, index);
}

/* The part of a continuation that a record is, if it is one. */
static int join_group(struct loader *loader, uint32_t provider_id, const struct fxt_sample *record,
                      struct profile_sample *sample)
{
    if ((record->fields & FXT_SAMPLE_CONTINUATION) == 0) {
        return 0;
    }
    int r = find_group(loader, provider_id, record->continuation, &sample->group);
    if (r == 0) {
        loader->profile->groups[sample->group].member_count++;
    }
    if ((record->fields & FXT_SAMPLE_CPU) == 0) {
        sample->cpu = (uint32_t)(record->continuation >> CONTINUATION_CPU_SHIFT);
    }
    return r;
}

/* The task of a sample, of which only resolving knows what it is called. */
static int find_task(struct loader *loader, const struct fxt_sample *record, uint32_t *ret_task)
{
    struct loader_task *known = &loader->tasks[record->tid % LOADER_KNOWN_TASKS];
    int r = 0;
    if (known->number == 0 || known->tid != record->tid || known->pid != record->pid ||
        known->segment != loader->segment) {
        const struct profile_task task = {
            .pid = record->pid,
            .tid = record->tid,
            .segment = loader->segment,
            .process_name = INTERN_NONE,
            .thread_name = INTERN_NONE,
            .owner = INTERN_NONE,
        };
        uint32_t item = 0;
        r = intern_add(&loader->profile->tasks, &task, sizeof task, &item);
        *known = (struct loader_task){
            .pid = record->pid,
            .tid = record->tid,
            .segment = loader->segment,
            .number = r == 0 ? item + 1 : 0,
        };
    }
    *ret_task = known->number - 1;
    return r;
}

/* Notes when the first sample of a segment was taken, and the last. */
static int note_time(struct loader *loader, uint64_t time_ns)
{
    struct profile_tables *tables = loader->profile->tables;
    if (loader->segment >= tables->sampled_count &&
        grow(tables->sampled, tables->sampled_capacity, (size_t)loader->segment + 1) < 0) {
        return -ENOMEM;
    }
    while (tables->sampled_count <= loader->segment) {
        tables->sampled[tables->sampled_count++] = (struct sampled_time){.first_ns = UINT64_MAX};
    }
    struct sampled_time *sampled = &tables->sampled[loader->segment];
    sampled->first_ns = time_ns < sampled->first_ns ? time_ns : sampled->first_ns;
    sampled->last_ns = time_ns > sampled->last_ns ? time_ns : sampled->last_ns;
    return 0;
}

static int take_sample(struct loader *loader, const struct fxt_record *whole)
{
    const struct fxt_sample *record = &whole->sample;
    struct profile *profile = loader->profile;
    struct profile_sample sample = {
        .time_ns = record->boot_ts_ns,
        .cpu = (uint32_t)record->cpu,
        .group = INTERN_NONE,
        .in_kernel = (record->fields & FXT_SAMPLE_KERNEL_STACK) != 0,
    };
    if ((record->fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
        return take_completion(loader, whole->provider_id, record);
    }
    int r = join_group(loader, whole->provider_id, record, &sample);
    r = r < 0 ? r : note_time(loader, sample.time_ns);
    if (r == 0 && record->event != 0 && loader->takes_threads) {
        r = wait_sums_add(&loader->waits, loader->segment, record);
    }
    if (r < 0 || !event_choice_takes(&loader->choice, profile, record)) {
        return r;
    }
    r = find_task(loader, record, &sample.task);
    r = r < 0 ? r : event_choice_note(&loader->choice, profile, profile->sample_count, record);
    if (r < 0) {
        return r;
    }
    if (profile->sample_count >= INTERN_NONE ||
        huge_pages_grow(profile->samples, profile->sample_capacity, profile->sample_count + 1) <
            0) {
        return -ENOMEM;
    }
    sample.has_quality = read_quality(record, &sample.quality, &sample.closed);
    profile->samples[profile->sample_count++] = sample;
    return take_stacks(loader, record, false, profile->sample_count - 1);
}

static int take_drop_stats(struct loader *loader, const struct fxt_record *whole)
{
    struct profile *profile = loader->profile;
    const struct fxt_drop_stats *stats = &whole->drop_stats;
    profile->dropped_record_count += stats->record_count;
    profile->dropped_bytes += stats->size_bytes;
    if (grow(profile->drops, profile->drop_capacity, profile->drop_count + 1) < 0) {
        return -ENOMEM;
    }
    profile->drops[profile->drop_count++] = (struct profile_drop){
        .cpu = stats->cpu,
        .first_ns = stats->first_ns,
        .last_ns = stats->last_ns,
        .record_count = stats->record_count,
        .segment = loader->segment,
    };
    return 0;
}

static bool is_full(const struct profile *profile)
{
    return profile_made_bytes(profile) >= profile_made_bytes_max(profile);
}

static int take_data(struct loader *loader, const struct fxt_record *whole)
{
    struct profile *profile = loader->profile;
    const struct fxt_data *data = &whole->data;
    if (data_is_named(data, DATA_NAME_SYMBOLS)) {
        struct demangler *demangler = &profile->tables->symbols.demangler;
        int r = pending_stacks_settle(&loader->pending, profile); /* which is_full() counts */
        if (r < 0) {
            return r;
        }
        demangler->keeps_mangled = demangler->keeps_mangled || is_full(profile);
        return symbols_add_lines(&profile->tables->symbols, &profile->texts, loader->segment, data);
    }
    if (data_is_named(data, DATA_NAME_SESSION) &&
        owners_take_session(&profile->tables->owners, data) < 0) {
        return -ENOMEM;
    }
    if (data_is_named(data, DATA_NAME_PROCESSES)) {
        return owners_add_lines(&profile->tables->owners, &profile->texts, loader->segment, data);
    }
    if (loader->takes_threads && data_is_named(data, DATA_NAME_THREADS)) {
        return profile_threads_take(profile, loader->segment, data);
    }
    return recorded_books_take(&loader->books, data);
}

static int take_magic(struct loader *loader, const struct fxt_record *whole)
{
    (void)whole;
    loader->segment++;
    return recorded_books_end_segment(&loader->books);
}

/* A record of another kind adds nothing to a profile. */
int loader_record(const struct fxt_record *record, void *userdata)
{
    static int (*const takers[FXT_RECORD_OTHER + 1])(struct loader *, const struct fxt_record *) = {
        [FXT_RECORD_MAGIC] = take_magic,   [FXT_RECORD_NAME] = take_name,
        [FXT_RECORD_MODULE] = take_module, [FXT_RECORD_MMAP] = take_mmap,
        [FXT_RECORD_SAMPLE] = take_sample, [FXT_RECORD_DROP_STATS] = take_drop_stats,
        [FXT_RECORD_DATA] = take_data,
    };
    struct loader *loader = userdata;
    loader->profile->read_bytes = record->offset_bytes + record->size_bytes;
    int r = first_samples_see(&loader->profile->firsts, record);
    return r < 0 || takers[record->kind] == NULL ? r : takers[record->kind](loader, record);
}

/* The stack that begins with `own` and goes on with `rest`, up to PROFILE_MERGED_MAX entries. */
static int cut_stack(struct profile *profile, uint32_t own, uint32_t rest, uint32_t *ret_stack)
{
    uint64_t joined[PROFILE_MERGED_MAX];
    size_t own_bytes = 0;
    size_t rest_bytes = 0;
    const uint64_t *own_stack = intern_bytes(&profile->stacks, own, &own_bytes);
    const uint64_t *rest_stack = intern_bytes(&profile->stacks, rest, &rest_bytes);
    size_t own_taken = own_bytes < sizeof joined ? own_bytes : sizeof joined;
    size_t room_bytes = sizeof joined - own_taken;
    size_t rest_taken = rest_bytes < room_bytes ? rest_bytes : room_bytes;
    memcpy(joined, own_stack, own_taken);
    memcpy((uint8_t *)joined + own_taken, rest_stack, rest_taken);
    return intern_add(&profile->stacks, joined, own_taken + rest_taken, ret_stack);
}

/*
 * Lets the sample's stack go on with `rest`. Where both have entries it ends at PROFILE_MERGED_MAX
 * of them, so that many samples cannot each blow up one long rest, or without a rest when no room
 * is left; `*ret_cut` says so.
 */
static int join_stacks(struct profile *profile, struct profile_sample *sample, uint32_t rest,
                       bool *ret_cut)
{
    size_t own_bytes = 0;
    size_t rest_bytes = 0;
    (void)intern_bytes(&profile->stacks, sample->user_stack, &own_bytes);
    (void)intern_bytes(&profile->stacks, rest, &rest_bytes);
    *ret_cut = false;
    if (own_bytes == 0) {
        sample->user_stack = rest;
    } else if ((own_bytes + rest_bytes) / sizeof(uint64_t) <= PROFILE_MERGED_MAX) {
        sample->rest_stack = rest;
    } else if (rest_bytes > 0) {
        *ret_cut = true;
        return is_full(profile) ? 0
                                : cut_stack(profile, sample->user_stack, rest, &sample->user_stack);
    }
    return 0;
}

int loader_complete(struct profile *profile, struct profile_sample *sample)
{
    const struct profile_group *group = &profile->groups[sample->group];
    bool is_cut = false;
    if (!group->is_completed) {
        profile->orphan_partial_count++;
        sample->closed = CLOSED_LOST;
        return 0;
    }
    int r = join_stacks(profile, sample, group->user_stack, &is_cut);
    if (r < 0) {
        return r;
    }
    if (!sample->has_quality) {
        sample->quality = group->quality;
        sample->closed = group->closed;
    }
    if (is_cut) {
        sample->quality = QUALITY_DEPTH;
    }
    if (!sample->in_kernel) {
        sample->in_kernel = group->in_kernel;
        sample->kernel_stack = group->kernel_stack;
    }
    return 0;
}

/* Appends to each part of a group what its completion says. */
static int complete_samples(struct profile *profile)
{
    int r = 0;
    size_t sample_count = profile->group_count == 0 ? 0 : profile->sample_count;
    for (size_t i = 0; i < sample_count && r == 0; i++) {
        if (profile->samples[i].group != INTERN_NONE) {
            r = loader_complete(profile, &profile->samples[i]);
        }
    }
    for (size_t i = 0; i < profile->group_count; i++) {
        profile->orphan_completion_count += profile->groups[i].member_count == 0;
    }
    return r;
}

/* Beside what the writer knew of stacks that never came, the reader knows what is not in the file.
 */
static int tell_orphans(struct profile *profile)
{
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {
        {"orphan_partials", profile->orphan_partial_count},
        {"orphan_completions", profile->orphan_completion_count},
    };
    if (profile->orphan_partial_count == 0 && profile->orphan_completion_count == 0) {
        return 0;
    }
    cleanup_(json_freep) cJSON *books = cJSON_Parse(profile->books_json);
    if (!cJSON_IsObject(books)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const cJSON *told = cJSON_GetObjectItemCaseSensitive(books, counts[i].name);
        double count = (double)counts[i].count + (cJSON_IsNumber(told) ? told->valuedouble : 0);
        cJSON_DeleteItemFromObjectCaseSensitive(books, counts[i].name);
        if (cJSON_AddNumberToObject(books, counts[i].name, count) == NULL) {
            return -ENOMEM;
        }
    }
    char *books_json = cJSON_PrintUnformatted(books);
    if (books_json == NULL) {
        return -ENOMEM;
    }
    free(profile->books_json);
    profile->books_json = books_json;
    return 0;
}

/* Finds when the samples were taken. */
static void find_times(struct profile *profile)
{
    uint64_t first_ns = profile->sample_count == 0 ? 0 : UINT64_MAX;
    uint64_t last_ns = 0;
    uint64_t origin_ns = UINT64_MAX;
    for (size_t i = 0; i < profile->sample_count; i++) {
        uint64_t time_ns = profile->samples[i].time_ns;
        first_ns = time_ns < first_ns ? time_ns : first_ns;
        last_ns = time_ns > last_ns ? time_ns : last_ns;
    }
    for (size_t i = 0; i < profile->tables->sampled_count; i++) {
        uint64_t time_ns = profile->tables->sampled[i].first_ns;
        origin_ns = time_ns < origin_ns ? time_ns : origin_ns;
    }
    profile->first_ns = first_ns;
    profile->last_ns = last_ns;
    profile->unselected_ns = profile->sample_count == 0 ? 0 : first_ns - origin_ns;
}

/* Leaves the samples of the event that is meant, all by one clock. Returns 0, or -errno with a
 * sentence in `reterr`. */
static int choose_samples(struct loader *loader, struct fault *reterr)
{
    struct profile *profile = loader->profile;
    int r = first_samples_end(&profile->firsts);
    r = r < 0 ? r : recorded_books_close(&loader->books, &profile->books_json);
    r = r < 0 ? r : session_times_take(profile, &loader->books);
    r = r < 0 ? r : pending_stacks_settle(&loader->pending, profile);
    if (r < 0) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    return event_choice_apply(&loader->choice, profile, &loader->books, reterr);
}

static int finish(struct loader *loader)
{
    struct profile *profile = loader->profile;
    int r = session_clock_unify(profile, &loader->books);
    if (r < 0) {
        return r;
    }
    session_times_measure(profile);
    find_times(profile);
    names_seal(&profile->tables->names);
    symbols_seal(&profile->tables->symbols);
    r = owners_seal(&profile->tables->owners, &profile->texts);
    if (r == 0) {
        r = complete_samples(profile);
    }
    if (r == 0) {
        r = mappings_seal(&profile->tables->mappings);
    }
    if (r == 0) {
        r = wait_leaf_find(profile);
    }
    if (r == 0) {
        r = tell_orphans(profile);
    }
    profile_threads_settle(profile, &loader->books);
    if (r == 0) {
        r = wait_sums_settle(&loader->waits, &loader->books, profile);
    }
    profile->loaded_bytes = profile_made_bytes(profile);
    return r < 0 ? r : profile_resolve(profile);
}

struct profile *loader_new_profile(enum profile_names names)
{
    cleanup_(profile_freep) struct profile *profile = calloc(1, sizeof *profile);
    uint32_t empty = 0;
    if (profile != NULL) {
        profile->tables = calloc(1, sizeof *profile->tables);
    }
    if (profile == NULL || profile->tables == NULL ||
        profile_event_set(&profile->event, PROFILE_EVENT_CLOCK, "ns") < 0 ||
        intern_add(&profile->stacks, NULL, 0, &empty) < 0) {
        return NULL;
    }
    profile->tables->symbols.demangler.keeps_mangled = names == PROFILE_NAMES_MANGLED;
    return take_ptr(profile);
}

/* Where a recording is. */
struct source {
    const char *path; /* NULL: in memory, at `bytes` */
    const uint8_t *bytes;
    size_t size_bytes;
};

static int load(const struct source *source, enum profile_names names, const char *event,
                struct profile **ret, struct fault *reterr)
{
    const char *path = source->path;
    const char *name = path == NULL ? "recording" : path;
    bool is_clock = event == NULL || strcmp(event, PROFILE_EVENT_CLOCK) == 0;
    cleanup_(profile_freep) struct profile *profile = loader_new_profile(names);
    cleanup_(loader_done) struct loader loader = {
        .profile = profile, .choice = {.name = is_clock ? NULL : event}, .takes_threads = true};
    struct fault fault = {0};
    if (profile == NULL) {
        return fault_set(reterr, ENOMEM, "%s: there is not enough memory", name);
    }
    int r = path == NULL ? input_read_memory(source->bytes, source->size_bytes, loader_record,
                                             &loader, &profile->input, reterr)
                         : input_read(path, loader_record, &loader, &profile->input, reterr);
    if (r < 0) {
        return r;
    }
    r = choose_samples(&loader, &fault);
    if (r < 0) {
        return fault_set(reterr, fault.code, "%s: %s", name, fault.text);
    }
    r = finish(&loader);
    if (r < 0) {
        return fault_set(reterr, ENOMEM, "%s: there is not enough memory", name);
    }
    *ret = take_ptr(profile);
    return 0;
}

int profile_load(const char *path, enum profile_names names, const char *event,
                 struct profile **ret, struct fault *reterr)
{
    const struct source source = {.path = path};
    return load(&source, names, event, ret, reterr);
}

int profile_load_memory(const uint8_t *bytes, size_t size_bytes, const char *event,
                        struct profile **ret, struct fault *reterr)
{
    const struct source source = {.bytes = bytes, .size_bytes = size_bytes};
    return load(&source, PROFILE_NAMES_READABLE, event, ret, reterr);
}
