/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each record goes into the store, and into a live profile of its segment, which resolves samples
 * for the model. A live profile never forgets texts. When it has made too much it is made anew, of
 * the segment's definitions, which the store has; samples whose stack had not come are lost to the
 * window then, though not to the recording.
 */
#include "top_intake.h"

#include "cleanup.h"
#include "clock.h"
#include "grow.h"
#include "live_profile.h"
#include "output.h"
#include "packets.h"
#include "recording.h"
#include "top_store.h"
#include "unnamed.h"
#include "wait_leaf.h"

#include <string.h>

#define MADE_BYTES                                                                                 \
    (UINT64_C(48) << 20) /* that a live profile may make, besides twice its texts                  \
                          */

/* So many processes are looked up once for many samples. */
#define KNOWN_PROCESSES ((size_t)64)

/* What a sample's process is called, by the numbers of the live profile. */
struct known_process {
    uint64_t pid;
    uint32_t name;
    uint32_t owner;
    uint32_t number; /* the model's, + 1 */
};

struct top_intake {
    struct top_model *model; /* owned */
    struct top_events events;
    struct top_store *store;   /* owned */
    struct fxt_reader *reader; /* owned */
    struct live_profile *live; /* owned; of the last segment; NULL: none has begun */
    uint32_t *functions;       /* owned; by frame of the profile: the model's number + 1 */
    size_t function_capacity;
    size_t function_count;
    struct known_process processes[KNOWN_PROCESSES]; /* by pid, as far as there is room */
    uint32_t generation; /* of the model, that `functions` and `processes` are of */
    uint32_t *stack;     /* owned; of the sample at hand */
    size_t stack_capacity;
    uint64_t sample_count;   /* of the clock, that have come */
    uint64_t made_bytes_max; /* of the live profile, before it is made anew */
    bool is_frozen;
    int64_t clock_period_ns; /* of the model's samples; 0: not known */
};

struct top_intake *top_intake_new(uint64_t window_ns)
{
    struct top_intake *intake = calloc(1, sizeof *intake);
    if (intake == NULL) {
        return NULL;
    }
    intake->model = top_model_new(window_ns);
    intake->store = top_store_new(TOP_KEPT_BYTES, TOP_KEPT_S * NS_PER_S);
    intake->reader = fxt_reader_new();
    return top_events_init(&intake->events) < 0 || intake->model == NULL || intake->store == NULL ||
                   intake->reader == NULL
               ? top_intake_free(intake)
               : intake;
}

struct top_intake *top_intake_free(struct top_intake *intake)
{
    if (intake != NULL) {
        intake->model = top_model_free(intake->model);
        top_events_done(&intake->events);
        intake->store = top_store_free(intake->store);
        intake->reader = fxt_reader_free(intake->reader);
        intake->live = live_profile_free(intake->live);
        free(intake->functions);
        free(intake->stack);
        free(intake);
    }
    return NULL;
}

const struct top_model *top_intake_model(const struct top_intake *intake)
{
    return intake->model;
}

const struct top_events *top_intake_events(const struct top_intake *intake)
{
    return &intake->events;
}

uint64_t top_intake_sample_count(const struct top_intake *intake)
{
    return intake->sample_count;
}

uint64_t top_intake_made_bytes(const struct top_intake *intake)
{
    return intake->live == NULL ? 0 : profile_made_bytes(live_profile_get(intake->live));
}

/* The name of all functions of a module that have none; `*ret` is returned: free(). NULL when there
 * is no memory. */
static const char *make_unnamed(const char *basename, char **ret)
{
    if (asprintf(ret, "%s" TOP_UNNAMED, basename) < 0) {
        *ret = NULL;
    }
    return *ret;
}

/* The model's number of a frame's function. */
static int find_function(struct top_intake *intake, uint32_t frame, uint32_t *ret)
{
    const struct profile *profile = live_profile_get(intake->live);
    const struct profile_frame *known = profile_frame(profile, frame);
    const struct profile_module *module =
        known->module == INTERN_NONE ? NULL : &profile->modules[known->module];
    const char *name = profile_text(profile, known->name);
    size_t count = intake->function_count;
    if (frame < count && intake->functions[frame] > 0) {
        *ret = intake->functions[frame] - 1;
        return 0;
    }
    if (grow(intake->functions, intake->function_capacity, (size_t)frame + 1) < 0) {
        return -ENOMEM;
    }
    for (; count <= frame; count++) {
        intake->functions[count] = 0;
    }
    intake->function_count = count;
    cleanup_(freep) char *unnamed = NULL;
    if (module != NULL && unnamed_is_name(name, profile_text(profile, module->basename))) {
        name = make_unnamed(profile_text(profile, module->basename), &unnamed);
    }
    int r =
        name == NULL
            ? -ENOMEM
            : top_model_function(intake->model, name,
                                 module == NULL ? "" : profile_text(profile, module->name), ret);
    intake->functions[frame] = r == 0 ? *ret + 1 : 0;
    return r;
}

/* The model's number of a sample's process. */
static int find_process(struct top_intake *intake, const struct profile_sample *sample,
                        uint32_t *ret)
{
    const struct profile *profile = live_profile_get(intake->live);
    const struct profile_task *task = profile_task(profile, sample->task);
    struct known_process *known = &intake->processes[task->pid % KNOWN_PROCESSES];
    int r = 0;
    if (known->number == 0 || known->pid != task->pid || known->name != task->process_name ||
        known->owner != task->owner) {
        uint32_t unit = profile_label(profile, sample, PROFILE_LABEL_UNIT);
        r = top_model_process(intake->model, task->pid, profile_text(profile, task->process_name),
                              profile_text(profile, unit), ret);
        *known = (struct known_process){task->pid, task->process_name, task->owner,
                                        r == 0 ? *ret + 1 : 0};
    }
    *ret = known->number - 1;
    return r;
}

/* The live profile or the model has other numbers from now on. */
static void forget_numbers(struct top_intake *intake)
{
    intake->function_count = 0;
    memset(intake->processes, 0, sizeof intake->processes);
}

/* Whether a wait has no stack: the live profile, which has all events, shows it as a sample that
 * was in the kernel. */
static bool is_unseen_wait(const struct profile *profile, const struct profile_event *event,
                           const struct profile_sample *sample)
{
    return event->is_wait && sample->user_stack == 0 && sample->rest_stack == 0 &&
           sample->kernel_stack == 0 && !profile_is_kernel_thread(profile, sample);
}

/* Adds the functions of a sample without the `first` of its frames. */
static int add_functions(struct top_intake *intake, const uint32_t *frames, size_t first,
                         size_t count)
{
    int r = grow(intake->stack, intake->stack_capacity, count);
    for (size_t i = first; i < count && r == 0; i++) {
        r = find_function(intake, frames[i], &intake->stack[i - first]);
    }
    return r;
}

static int add_sample(struct top_intake *intake, const struct profile_sample *sample,
                      const struct told_event *told)
{
    const struct profile *profile = live_profile_get(intake->live);
    enum profile_rooted rooted = profile_rooted(sample);
    size_t count = 0;
    const uint32_t *frames = profile_chain(profile, sample->chain, &count);
    struct top_sample added = {
        .time_ns = sample->time_ns,
        .is_truncated = rooted == PROFILE_STACK_TRUNCATED,
        .is_stackless = rooted == PROFILE_STACK_NONE,
    };
    if (!top_events_value(&intake->events, told, &added.event, &added.value)) {
        return 0;
    }
    const struct profile_event *event = &intake->events.all[added.event];
    const size_t first =
        event->is_of_switches ? wait_leaf_frames(profile, event, frames, count) : 0;
    added.function_count = count - first;
    int r = add_functions(intake, frames, first, count);
    if (r == 0 && is_unseen_wait(profile, event, sample)) {
        r = top_model_function(intake->model, PROFILE_NO_STACK, "", &intake->stack[0]);
        added.function_count = 1;
    }
    if (r == 0) {
        r = find_process(intake, sample, &added.process);
    }
    added.functions = intake->stack;
    return r < 0 ? r : top_model_add(intake->model, &added);
}

/* A new live profile, of which nothing is known but that it begins. */
static int begin_live(struct top_intake *intake)
{
    intake->live = live_profile_free(intake->live);
    intake->live = live_profile_new(PROFILE_NAMES_READABLE, true);
    forget_numbers(intake);
    intake->made_bytes_max = MADE_BYTES;
    return intake->live == NULL ? -ENOMEM : 0;
}

struct replay {
    struct fxt_reader *reader;
    struct live_profile *live;
};

/* A top_store_bytes_fn. */
static int replay_record(const void *bytes, size_t size_bytes, void *userdata)
{
    struct replay *replay = userdata;
    struct fxt_record record;
    int r = fxt_reader_next(replay->reader, bytes, size_bytes, &record);
    return r <= 0 ? -ENOMEM : live_profile_add(replay->live, &record);
}

/* Makes the live profile anew, of the definitions of its segment. */
static int renew_live(struct top_intake *intake)
{
    int r = begin_live(intake);
    if (r < 0) {
        return r;
    }
    struct replay replay = {.reader = fxt_reader_new(), .live = intake->live};
    r = replay.reader == NULL ? -ENOMEM
                              : top_store_walk_definitions(intake->store, replay_record, &replay);
    replay.reader = fxt_reader_free(replay.reader);
    intake->made_bytes_max = MADE_BYTES + 2 * top_intake_made_bytes(intake);
    return r;
}

/* Begins another window where samples have another rate: those of two make no one sum. */
static void keep_one_rate(struct top_intake *intake)
{
    int64_t period_ns = intake->events.clock_period_ns;
    if (intake->clock_period_ns != 0 && intake->clock_period_ns != period_ns) {
        top_model_clear(intake->model);
    }
    intake->clock_period_ns = period_ns;
}

/* Resolves the samples that have come, and adds them to the model. */
static int resolve(struct top_intake *intake, bool has_ended)
{
    const struct profile *profile = live_profile_get(intake->live);
    int r = live_profile_resolve(intake->live, has_ended);
    if (r == 0) {
        r = top_events_read(&intake->events, profile->session_json);
    }
    if (r == 0 && !intake->is_frozen) {
        keep_one_rate(intake);
    }
    if (intake->generation != top_model_generation(intake->model)) {
        intake->generation = top_model_generation(intake->model);
        forget_numbers(intake);
    }
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        const struct told_event *told = &live_profile_told(intake->live)[i];
        intake->sample_count += told->number == TOP_CLOCK;
        r = intake->is_frozen ? 0 : add_sample(intake, &profile->samples[i], told);
    }
    if (r == 0) {
        r = live_profile_forget(intake->live);
    }
    if (r == 0 && top_intake_made_bytes(intake) > intake->made_bytes_max) {
        return renew_live(intake);
    }
    if (r == 0 && live_profile_is_large(intake->live)) {
        forget_numbers(intake);
        r = live_profile_renumber(intake->live);
    }
    return r;
}

static int take_record(struct top_intake *intake, const struct fxt_record *record)
{
    int r = 0;
    if (record->kind == FXT_RECORD_MAGIC) {
        r = intake->live == NULL ? 0 : resolve(intake, true);
        if (r == 0) {
            r = begin_live(intake);
        }
    }
    return r < 0 ? r : live_profile_add(intake->live, record);
}

int top_intake_add(struct top_intake *intake, const void *bytes, size_t size_bytes)
{
    const uint8_t *start = bytes;
    int r = 0;
    for (size_t at = 0; at < size_bytes && r == 0;) {
        struct fxt_record record;
        int read = fxt_reader_next(intake->reader, start + at, size_bytes - at, &record);
        if (read <= 0) {
            return read == -ENOMEM ? -ENOMEM : -EBADMSG;
        }
        r = take_record(intake, &record);
        if (r == 0) {
            r = top_store_add(intake->store, start + at, record.size_bytes);
        }
        at += record.size_bytes;
    }
    return r < 0 ? r : top_store_end_piece(intake->store, clock_ns(CLOCK_BOOTTIME));
}

int top_intake_settle(struct top_intake *intake, uint64_t now_ns, bool is_frozen)
{
    intake->is_frozen = is_frozen;
    int r = intake->live == NULL ? 0 : resolve(intake, false);
    return r < 0 || is_frozen ? r : top_model_advance(intake->model, now_ns);
}

void top_intake_kept(const struct top_intake *intake, uint64_t now_ns, struct top_kept *ret)
{
    uint64_t since_ns = top_store_since_ns(intake->store);
    *ret = (struct top_kept){
        .span_ns = since_ns == 0 || since_ns > now_ns ? 0 : now_ns - since_ns,
        .size_bytes = top_store_size_bytes(intake->store),
    };
}

struct saving {
    struct output *output;
    struct packets *packets;
    struct record_scan scan;
    struct fault *reterr;
};

/* A packets_out_fn. */
static int write_bytes(const void *bytes, size_t size_bytes, void *userdata)
{
    struct saving *saving = userdata;
    return output_write(saving->output, bytes, size_bytes, saving->reterr);
}

/* A top_store_bytes_fn. */
static int save_records(const void *bytes, size_t size_bytes, void *userdata)
{
    struct saving *saving = userdata;
    record_scan_add(&saving->scan, bytes, size_bytes);
    return packets_pass(saving->packets, bytes, size_bytes);
}

static int save_all(const struct top_intake *intake, struct saving *saving)
{
    saving->packets = packets_new(write_bytes, saving);
    if (saving->packets == NULL || record_scan_init(&saving->scan) < 0) {
        return fault_set(saving->reterr, ENOMEM, "there is not enough memory");
    }
    int r = top_store_walk(intake->store, save_records, saving);
    if (r == 0) {
        r = packets_flush(saving->packets, true);
    }
    if (r == 0 && saving->scan.sample_count + saving->scan.event_sample_count == 0) {
        return fault_set(saving->reterr, ENODATA, "there is no sample yet");
    }
    return r < 0 ? r : output_finish(saving->output, saving->reterr);
}

int top_intake_save(const struct top_intake *intake, const char *path, struct top_saved *ret,
                    struct fault *reterr)
{
    struct saving saving = {.reterr = reterr};
    int r = output_open(path, &saving.output, reterr);
    if (r == 0) {
        output_leave_old(saving.output);
        r = save_all(intake, &saving);
        *ret = (struct top_saved){saving.scan.sample_count, saving.scan.event_sample_count};
    }
    saving.packets = packets_free(saving.packets);
    record_scan_done(&saving.scan);
    saving.output = output_free(saving.output);
    return r;
}
