/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds out where stacks lie. Kernel stacks are the same for all processes: they are looked up in
 * the mappings of pid 0. A task without a user stack has a spot that is a marker.
 *
 * Stacks repeat. So where they lie is kept with the times between which no Mmap record changes it:
 * that of the first key of a stack in `met`, of all further keys in `further`, and of common ends
 * in `rests`.
 */
#include "located_stacks.h"

#include "cleanup.h"
#include "grow.h"
#include "huge_pages.h"
#include "tables.h"

#include <string.h>

/* So many samples ahead it is fetched what they will need. */
#define AHEAD ((size_t)32)

/* So many addresses are asked for before the first of them is answered. */
#define ASKED_AT_ONCE ((size_t)16)

/* Times for which something holds are numbers of `spans`. */
#define SPAN_NONE UINT32_C(0) /* no time is in it */

struct known_stack {
    uint32_t stack;
    uint32_t span;
};

/* Whose stacks. Padded by hand, since its bytes are a key. */
struct process_key {
    uint64_t pid;
    uint32_t segment;
    uint32_t zero;
};

/* What says where a stack lies, besides the time. */
struct stack_key {
    uint32_t process; /* its number, and what a stack without the user's half means */
    uint32_t user_stack;
    uint32_t rest_stack;
    uint32_t kernel_stack;
};
#define KEY_IN_KERNEL     UINT32_C(1)
#define KEY_IS_LOST       UINT32_C(2) /* the user stack is empty because the task was gone */
#define KEY_PROCESS_SHIFT 2 /* of an intern table, which has fewer items of a key's size */

/* A stack with which others go on. */
struct rest_key {
    uint32_t process;
    uint32_t stack;
};

/* Where the first key of a stack lies. Most stacks have no other: then no key is looked up by its
 * hash. */
struct met_stack {
    struct stack_key key;
    struct known_stack known; /* SPAN_NONE: there is none yet */
};

/* What is true of a task, from a time until another: at first none. */
struct known_task {
    uint64_t from_ns;
    uint64_t until_ns;
    struct mapping_process *mappings; /* of its process; NULL: it has none */
    uint32_t process;                 /* its number */
    uint32_t task;                    /* of the profile, with its names and owner */
};

/* A sample that comes soon. */
struct coming {
    struct stack_key key;
    struct mapping_process *mappings; /* of its process */
    uint32_t hash; /* of the key, where another one has its stack's place; or 0 */
};

/* What is known of keys. All zero is empty. */
struct known_keys {
    struct intern keys;
    struct known_stack *known; /* owned; by item of `keys` */
    size_t capacity;
};

struct locator {
    struct profile *profile;
    struct located_stacks *located;
    struct quota *made;
    size_t sample_count; /* that are located */
    struct intern process_keys;
    struct known_task *tasks;       /* owned; by task of samples that are not located */
    struct coming coming[AHEAD];    /* a ring */
    struct mapping_process *kernel; /* the mappings of the kernel, */
    uint32_t kernel_segment;        /* in this segment; INTERN_NONE: of none yet */
    struct met_stack *met;          /* owned; by item of the profile's `stacks` */
    size_t met_count;
    struct known_keys further;      /* struct stack_key */
    struct known_keys rests;        /* struct rest_key */
    struct intern span_keys;        /* struct mapping_validity */
    struct mapping_validity *spans; /* owned; by item of span_keys */
    size_t span_capacity;
};

struct located_stacks *located_stacks_free(struct located_stacks *located)
{
    if (located != NULL) {
        spots_done(&located->spots);
        free(located->words);
        free(located->stacks);
        free(located->chains);
        free(located);
    }
    return NULL;
}

struct located_stacks *located_stacks_new(void)
{
    struct located_stacks *located = calloc(1, sizeof *located);
    if (located == NULL) {
        return NULL;
    }
    if (spots_init(&located->spots) < 0 || grow(located->stacks, located->capacity, 1) < 0) {
        return located_stacks_free(located);
    }
    located->stacks[located->count++] = (struct located_stack){.rest = LOCATED_NONE};
    return located;
}

uint64_t located_stacks_size_bytes(const struct located_stacks *located)
{
    return spots_size_bytes(&located->spots) +
           (uint64_t)located->word_count * sizeof *located->words +
           (uint64_t)located->count * (sizeof *located->stacks + sizeof *located->chains);
}

const uint32_t *located_stacks_get(const struct located_stacks *located, uint32_t stack,
                                   size_t *ret_count)
{
    size_t first = located->stacks[stack].first;
    size_t end =
        (size_t)stack + 1 < located->count ? located->stacks[stack + 1].first : located->word_count;
    *ret_count = end - first;
    return located->words + first;
}

static void known_keys_done(struct known_keys *table)
{
    intern_done(&table->keys);
    free(table->known);
}

static uint64_t known_keys_size_bytes(const struct known_keys *table)
{
    return intern_size_bytes(&table->keys) +
           (uint64_t)table->keys.item_count * sizeof *table->known;
}

/* What is known of a key; SPAN_NONE at first. Borrowed, until the next call. Returns 0, or -ENOMEM.
 */
static int known_keys_find(struct known_keys *table, uint32_t hash, const void *key,
                           size_t key_bytes, struct known_stack **ret)
{
    size_t known_count = table->keys.item_count;
    uint32_t item = 0;
    if (intern_add_hashed(&table->keys, hash, key, key_bytes, &item) < 0 ||
        grow(table->known, table->capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    *ret = &table->known[item];
    if (item == known_count) {
        **ret = (struct known_stack){.span = SPAN_NONE};
    }
    return 0;
}

struct locator *locator_free(struct locator *locator)
{
    if (locator != NULL) {
        intern_done(&locator->process_keys);
        free(locator->tasks);
        huge_pages_free(locator->met, locator->met_count * sizeof *locator->met);
        known_keys_done(&locator->further);
        known_keys_done(&locator->rests);
        intern_done(&locator->span_keys);
        free(locator->spans);
        free(locator);
    }
    return NULL;
}

void locator_freep(struct locator **locator)
{
    *locator = locator_free(*locator);
}

/* What is made for the locating. */
static uint64_t made_bytes(const struct locator *locator)
{
    return located_stacks_size_bytes(locator->located) + intern_size_bytes(&locator->process_keys) +
           known_keys_size_bytes(&locator->further) + known_keys_size_bytes(&locator->rests) +
           intern_size_bytes(&locator->span_keys);
}

static bool holds_at(const struct locator *locator, uint32_t span, uint64_t time_ns)
{
    return locator->spans[span].from_ns <= time_ns && time_ns < locator->spans[span].until_ns;
}

static int find_span(struct locator *locator, const struct mapping_validity *validity,
                     uint32_t *ret_span)
{
    int r = intern_add(&locator->span_keys, validity, sizeof *validity, ret_span);
    if (r == 0) {
        r = grow(locator->spans, locator->span_capacity, (size_t)*ret_span + 1);
    }
    if (r == 0) {
        locator->spans[*ret_span] = *validity;
    }
    return r;
}

struct locator *locator_new(struct profile *profile, struct located_stacks *located,
                            struct quota *made)
{
    const struct mapping_validity never = {0, 0};
    size_t stack_count = profile->stacks.item_count;
    uint32_t span = 0;
    cleanup_(locator_freep) struct locator *locator = calloc(1, sizeof *locator);
    if (locator == NULL) {
        return NULL;
    }
    locator->profile = profile;
    locator->located = located;
    locator->made = made;
    locator->kernel_segment = INTERN_NONE;
    locator->tasks = calloc(profile->tasks.item_count + 1, sizeof *locator->tasks);
    locator->met_count = stack_count + 1;
    locator->met = huge_pages_new(locator->met_count * sizeof *locator->met);
    if (locator->tasks == NULL || locator->met == NULL || find_span(locator, &never, &span) < 0) {
        return NULL;
    }
    return take_ptr(locator);
}

static int append_word(struct located_stacks *located, uint32_t word)
{
    int r = grow(located->words, located->word_capacity, located->word_count + 1);
    if (r == 0) {
        located->words[located->word_count++] = word;
    }
    return r;
}

/* Appends the spots of a stack, whose first address is as `place` says, and all others are of
 * callers. Narrows `validity` to the times for which they are the same. */
static int append_spots(struct locator *locator, uint32_t stack_item, struct stack_address place,
                        struct mapping_validity *validity)
{
    struct located_stacks *located = locator->located;
    struct asked_spot asked[ASKED_AT_ONCE];
    size_t stack_bytes = 0;
    const uint64_t *stack = intern_bytes(&locator->profile->stacks, stack_item, &stack_bytes);
    size_t left = stack_bytes / sizeof *stack;
    int r = 0;
    while (left > 0 && r == 0) {
        size_t count = left < ASKED_AT_ONCE ? left : ASKED_AT_ONCE;
        for (size_t i = 0; i < count; i++) {
            place.address = stack[i];
            spots_ask(&located->spots, locator->profile, &place, validity, &asked[i]);
            place.is_caller = true;
        }
        for (size_t i = 0; i < count && r == 0; i++) {
            uint32_t spot = 0;
            r = spots_find(&located->spots, &asked[i], &spot);
            r = r < 0 ? r : append_word(located, spot);
        }
        stack += count;
        left -= count;
    }
    return r;
}

/* Begins a stack, whose spots are appended next. */
static int begin_stack(struct locator *locator, const struct profile_sample *sample, uint32_t rest,
                       uint32_t *ret_stack)
{
    struct located_stacks *located = locator->located;
    if (located->count >= UINT32_MAX ||
        grow(located->stacks, located->capacity, located->count + 1) < 0) {
        return -ENOMEM;
    }
    *ret_stack = (uint32_t)located->count;
    located->stacks[located->count++] = (struct located_stack){
        .first = located->word_count,
        .rest = rest,
        .pid = (uint32_t)profile_task(locator->profile, sample->task)->pid,
    };
    return 0;
}

/* Locates what a stack goes on with, which many do: that is found once. */
static int locate_rest(struct locator *locator, const struct profile_sample *sample,
                       const struct coming *coming, struct mapping_validity *validity,
                       uint32_t *ret_stack)
{
    const struct stack_address place = {
        .mappings = coming->mappings, .time_ns = sample->time_ns, .is_caller = true};
    const struct rest_key key = {.process = coming->key.process >> KEY_PROCESS_SHIFT,
                                 .stack = sample->rest_stack};
    struct mapping_validity found = {0, UINT64_MAX};
    struct known_stack *known = NULL;
    int r =
        known_keys_find(&locator->rests, intern_hash(&key, sizeof key), &key, sizeof key, &known);
    if (r == 0 && !holds_at(locator, known->span, sample->time_ns)) {
        r = begin_stack(locator, sample, LOCATED_NONE, &known->stack);
        r = r < 0 ? r : append_spots(locator, sample->rest_stack, place, &found);
        r = r < 0 ? r : find_span(locator, &found, &known->span);
    }
    if (r == 0) {
        mapping_validity_narrow(validity, &locator->spans[known->span]);
        *ret_stack = known->stack;
    }
    return r;
}

/* The kernel's mappings in a segment. */
static struct mapping_process *kernel_mappings(struct locator *locator, uint32_t segment)
{
    if (locator->kernel_segment != segment) {
        locator->kernel_segment = segment;
        locator->kernel =
            mappings_process(&locator->profile->tables->mappings, segment, PROFILE_PID_OUTSIDE);
    }
    return locator->kernel;
}

/*
 * A task without a user stack is a kernel thread if it never had anything mapped. Then a marker
 * stands for a stack that is all empty; with any other task it stands for the user's half of it. A
 * task that was in the kernel may have none, as between the two programs of an exec: the kernel's
 * frames are its whole stack then, or a marker says where it was. Of a wait that began unseen there
 * is no stack at all, and that is all that is known.
 */
static int append_marker(struct locator *locator, const struct profile_sample *sample,
                         const struct coming *coming)
{
    uint64_t pid = profile_task(locator->profile, sample->task)->pid;
    bool is_kernel_thread = sample->closed == 0 && pid != PROFILE_PID_OUTSIDE &&
                            pid != PROFILE_PID_EXITED && coming->mappings == NULL;
    bool in_kernel = is_kernel_thread || sample->in_kernel;
    if (in_kernel && sample->kernel_stack != 0) {
        return 0;
    }
    bool is_unseen = locator->profile->event.is_wait && sample->rest_stack == 0;
    return append_word(locator->located, is_kernel_thread ? SPOT_KERNEL_THREAD
                                         : is_unseen      ? SPOT_NO_STACK
                                         : in_kernel      ? SPOT_IN_KERNEL
                                                          : SPOT_UNKNOWN);
}

/* Appends the spots of a sample's own stacks, the kernel's first. */
static int append_own(struct locator *locator, const struct profile_sample *sample,
                      const struct coming *coming, struct mapping_validity *validity)
{
    struct stack_address place = {.time_ns = sample->time_ns};
    int r = 0;
    if (sample->kernel_stack != 0) {
        place.mappings =
            kernel_mappings(locator, profile_task(locator->profile, sample->task)->segment);
        place.is_kernel = true;
        r = append_spots(locator, sample->kernel_stack, place, validity);
    }
    if (r == 0 && sample->user_stack != 0) {
        place.mappings = coming->mappings;
        place.is_kernel = false;
        r = append_spots(locator, sample->user_stack, place, validity);
    }
    return r;
}

/* Locates a sample's stack, and says for which times. */
static int locate(struct locator *locator, const struct profile_sample *sample,
                  const struct coming *coming, struct known_stack *ret)
{
    struct mapping_validity validity = {0, UINT64_MAX};
    uint32_t rest = LOCATED_NONE;
    int r = 0;
    if (sample->rest_stack != 0) {
        r = locate_rest(locator, sample, coming, &validity, &rest);
    }
    r = r < 0 ? r : begin_stack(locator, sample, rest, &ret->stack);
    r = r < 0 ? r : append_own(locator, sample, coming, &validity);
    if (r == 0 && sample->user_stack == 0) {
        r = append_marker(locator, sample, coming);
    }
    return r < 0 ? r : find_span(locator, &validity, &ret->span);
}

/* Locates a sample's stack, if there is room for it. */
static int locate_within(struct locator *locator, const struct profile_sample *sample,
                         const struct coming *coming, struct known_stack *known,
                         uint32_t *ret_stack)
{
    uint32_t process = (uint32_t)profile_task(locator->profile, sample->task)->pid;
    uint64_t before_bytes = made_bytes(locator);
    *ret_stack = LOCATED_NONE;
    if (!quota_take(locator->made, process, 1)) {
        return 0;
    }
    int r = locate(locator, sample, coming, known);
    quota_charge(locator->made, process, made_bytes(locator) - before_bytes);
    *ret_stack = known->stack;
    return r;
}

/* Where it is kept what is known of the first key of a sample's stack. */
static struct met_stack *met_stack(const struct locator *locator,
                                   const struct profile_sample *sample)
{
    uint32_t stack = sample->user_stack != 0   ? sample->user_stack
                     : sample->rest_stack != 0 ? sample->rest_stack
                                               : sample->kernel_stack;
    return &locator->met[stack];
}

static bool is_key(const struct stack_key *key, const struct stack_key *other)
{
    return memcmp(key, other, sizeof *key) == 0;
}

static int find_stack(struct locator *locator, const struct profile_sample *sample,
                      const struct coming *coming, uint32_t *ret_stack)
{
    struct met_stack *met = met_stack(locator, sample);
    struct known_stack *known = &met->known;
    int r = 0;
    if (known->span == SPAN_NONE) {
        met->key = coming->key;
    } else if (!is_key(&met->key, &coming->key)) {
        uint32_t hash =
            coming->hash == 0 ? intern_hash(&coming->key, sizeof coming->key) : coming->hash;
        r = known_keys_find(&locator->further, hash, &coming->key, sizeof coming->key, &known);
    }
    if (r == 0 && !holds_at(locator, known->span, sample->time_ns)) {
        return locate_within(locator, sample, coming, known, ret_stack);
    }
    *ret_stack = known->stack;
    return r;
}

/*
 * Whether pid 0 is the idle task. To a daemon in a pid namespace of its own it is also every task
 * outside, which its books tell: it cannot know idleness by switches. The clock leaves idleness
 * out.
 */
static bool is_idle_task(const struct profile *profile, uint32_t segment, uint64_t pid)
{
    return pid == PROFILE_PID_OUTSIDE && !profile->event.is_clock &&
           segment < profile->host_count &&
           profile->session_times[profile->session_of[segment]].has_idle_task;
}

static int name_idle(struct profile *profile, struct profile_task *task)
{
    static const char name[] = "[idle]";
    task->thread_name = INTERN_NONE;
    return intern_add(&profile->texts, name, strlen(name), &task->process_name);
}

static int name_nameless(struct profile *profile, uint64_t pid, uint32_t *ret_text)
{
    const char *name = pid == PROFILE_PID_OUTSIDE  ? "[outside]"
                       : pid == PROFILE_PID_EXITED ? "[exited]"
                                                   : "[unknown]";
    return intern_add(&profile->texts, name, strlen(name), ret_text);
}

/* Finds what is true of a task at a time, and for which other times. */
static int find_task(struct locator *locator, uint32_t number, uint64_t time_ns,
                     struct known_task *ret)
{
    struct profile *profile = locator->profile;
    const struct profile_tables *tables = profile->tables;
    size_t task_bytes = 0;
    struct profile_task task =
        *(const struct profile_task *)intern_bytes(&profile->tasks, number, &task_bytes);
    const struct process_key key = {.pid = task.pid, .segment = task.segment};
    struct names_span spans[3]; /* of the process's name, the thread's, and the owner */
    *ret = (struct known_task){
        .until_ns = UINT64_MAX,
        .mappings = mappings_process(&tables->mappings, task.segment, task.pid),
    };
    task.process_name =
        names_find_span(&tables->names, task.segment, task.pid, NAMES_PROCESS, time_ns, &spans[0]);
    task.thread_name =
        names_find_span(&tables->names, task.segment, task.pid, task.tid, time_ns, &spans[1]);
    task.owner = owners_find(&tables->owners, task.segment, task.pid, time_ns, &spans[2]);
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        ret->from_ns = spans[i].from_ns > ret->from_ns ? spans[i].from_ns : ret->from_ns;
        ret->until_ns = spans[i].until_ns < ret->until_ns ? spans[i].until_ns : ret->until_ns;
    }
    int r = intern_add(&locator->process_keys, &key, sizeof key, &ret->process);
    if (r == 0 && is_idle_task(profile, task.segment, task.pid)) {
        r = name_idle(profile, &task);
    }
    if (r == 0 && task.process_name == INTERN_NONE) {
        r = name_nameless(profile, task.pid, &task.process_name);
    }
    return r < 0 ? r : intern_add(&profile->tasks, &task, sizeof task, &ret->task);
}

/* Tells a sample what is true of its task, which is looked up once for many samples. */
static int take_task(struct locator *locator, struct profile_sample *sample, struct coming *coming)
{
    struct known_task *known = &locator->tasks[sample->task];
    bool is_known = known->from_ns <= sample->time_ns && sample->time_ns < known->until_ns;
    int r = is_known ? 0 : find_task(locator, sample->task, sample->time_ns, known);
    sample->task = known->task;
    *coming = (struct coming){
        .mappings = known->mappings,
        .key =
            {
                .process = known->process << KEY_PROCESS_SHIFT |
                           (sample->closed != 0 ? KEY_IS_LOST : 0) |
                           (sample->in_kernel ? KEY_IN_KERNEL : 0),
                .user_stack = sample->user_stack,
                .rest_stack = sample->rest_stack,
                .kernel_stack = sample->kernel_stack,
            },
    };
    return r;
}

/* Fetches what find_stack() will look at, for a sample whose place in `met` is fetched. */
static void fetch_further(struct locator *locator, size_t at)
{
    struct coming *coming = &locator->coming[at % AHEAD];
    const struct met_stack *met = met_stack(locator, &locator->profile->samples[at]);
    if (met->known.span != SPAN_NONE && !is_key(&met->key, &coming->key)) {
        coming->hash = intern_hash(&coming->key, sizeof coming->key);
        intern_fetch_slot(&locator->further.keys, coming->hash);
    }
}

/* Looks at the samples that come soon, the sample AHEAD of `at` and nearer ones. What the CPU's
 * cache has to fetch for them is fetched a place further for those that come sooner. */
static int look_ahead(struct locator *locator, size_t at)
{
    const struct profile *profile = locator->profile;
    size_t left = profile->sample_count - at;
    int r = 0;
    if (left > AHEAD) {
        struct profile_sample *sample = &profile->samples[at + AHEAD];
        r = take_task(locator, sample, &locator->coming[at % AHEAD]);
        __builtin_prefetch(met_stack(locator, sample));
    }
    if (left > AHEAD / 2) {
        fetch_further(locator, at + AHEAD / 2);
    }
    const struct coming *soon = &locator->coming[(at + AHEAD / 4) % AHEAD];
    if (left > AHEAD / 4 && soon->hash != 0) {
        intern_fetch_item(&locator->further.keys, soon->hash, sizeof soon->key);
    }
    return r;
}

int locator_go(struct locator *locator, size_t end)
{
    struct profile *profile = locator->profile;
    int r = 0;
    for (size_t i = 0;
         locator->sample_count == 0 && i < AHEAD && i < profile->sample_count && r == 0; i++) {
        r = take_task(locator, &profile->samples[i], &locator->coming[i]);
    }
    for (; locator->sample_count < end && r == 0; locator->sample_count++) {
        size_t at = locator->sample_count;
        struct profile_sample *sample = &profile->samples[at];
        r = find_stack(locator, sample, &locator->coming[at % AHEAD], &sample->located);
        r = r < 0 ? r : look_ahead(locator, at);
    }
    return r;
}
