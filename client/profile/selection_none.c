/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Explains a selection without a sample. Samples are counted by what the first option would have
 * chosen them by: the thread, the name, or else the process. The sentence is written into a memory
 * stream and cut to the fault's room.
 */
#include "selection_none.h"

#include "cleanup.h"
#include "grow.h"
#include "suggest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LISTED_MAX ((size_t)4)

/* What samples are counted by. Padded by hand, since its bytes are a key. */
struct item_key {
    uint64_t number; /* of a process or thread; 0: the name alone */
    uint32_t name;
    uint32_t unused;
};

struct counting {
    const struct selection *selection;
    const struct profile *profile;
    struct intern items; /* struct item_key */
    uint64_t *counts;    /* owned; by item */
    size_t capacity;
};

static void counting_done(struct counting *counting)
{
    intern_done(&counting->items);
    free(counting->counts);
}

static bool lists_threads(const struct selection *selection)
{
    return selection->tid_count > 0 && selection->pid_count == 0;
}

static bool lists_names(const struct selection *selection)
{
    return selection->comm_count > 0 && selection->pid_count == 0 && selection->tid_count == 0;
}

static struct item_key key_of(const struct counting *counting, const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(counting->profile, sample->task);
    if (lists_names(counting->selection)) {
        return (struct item_key){.name = task->process_name};
    }
    if (lists_threads(counting->selection)) {
        return (struct item_key){.number = task->tid, .name = task->thread_name};
    }
    return (struct item_key){.number = task->pid, .name = task->process_name};
}

static int count_samples(struct counting *counting)
{
    for (size_t i = 0; i < counting->profile->sample_count; i++) {
        const struct item_key key = key_of(counting, &counting->profile->samples[i]);
        size_t known_count = counting->items.item_count;
        uint32_t item = 0;
        if (intern_add(&counting->items, &key, sizeof key, &item) < 0 ||
            grow(counting->counts, counting->capacity, (size_t)item + 1) < 0) {
            return -ENOMEM;
        }
        counting->counts[item] = item == known_count ? 1 : counting->counts[item] + 1;
    }
    return 0;
}

static const struct item_key *get_key(const struct counting *counting, size_t item)
{
    size_t size_bytes = 0;
    return intern_bytes(&counting->items, (uint32_t)item, &size_bytes);
}

static const char *name_of(const struct counting *counting, const struct item_key *key)
{
    return key->name == INTERN_NONE ? "[unknown]" : profile_text(counting->profile, key->name);
}

/* "python3 (7), bash (12)", or the names alone. */
static void write_most(FILE *file, struct counting *counting)
{
    for (size_t listed = 0; listed < LISTED_MAX; listed++) {
        size_t most = 0;
        for (size_t i = 1; i < counting->items.item_count; i++) {
            most = counting->counts[i] > counting->counts[most] ? i : most;
        }
        if (counting->counts[most] == 0) {
            return;
        }
        const struct item_key *key = get_key(counting, most);
        (void)fprintf(file, "%s%s", listed == 0 ? "" : ", ", name_of(counting, key));
        if (key->number != 0) {
            (void)fprintf(file, " (%" PRIu64 ")", key->number);
        }
        counting->counts[most] = 0;
    }
}

/* The name that the first glob may have been meant for, or NULL. */
static const char *suggest_name(const struct counting *counting)
{
    size_t count = counting->items.item_count;
    cleanup_(freep) const char **names = calloc(count + 1, sizeof *names);
    if (names == NULL || !lists_names(counting->selection)) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = name_of(counting, get_key(counting, i));
    }
    return suggest_word(counting->selection->comms[0], names, count);
}

/* "-p 99999 or --comm 'x'": the first of each kind. */
static void write_asked(FILE *file, const struct selection *selection)
{
    const char *separator = "";
    if (selection->pid_count > 0) {
        (void)fprintf(file, "%s-p %" PRIu64, separator, selection->pids[0]);
        separator = " or ";
    }
    if (selection->tid_count > 0) {
        (void)fprintf(file, "%s-t %" PRIu64, separator, selection->tids[0]);
        separator = " or ";
    }
    if (selection->uid_count > 0) {
        (void)fprintf(file, "%s-u %" PRIu32, separator, selection->uids[0]);
        separator = " or ";
    }
    const struct {
        const char *option;
        const char *text;
    } texts[] = {
        {"--comm", selection->comm_count > 0 ? selection->comms[0] : NULL},
        {"-U", selection->unit_count > 0 ? selection->units[0] : NULL},
        {"-G", selection->cgroup_count > 0 ? selection->cgroups[0] : NULL},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].text != NULL) {
            (void)fprintf(file, "%s%s '%s'", separator, texts[i].option, texts[i].text);
            separator = " or ";
        }
    }
    if (selection->module_count > 0) {
        (void)fprintf(file, "%s--module '%s'", separator[0] == '\0' ? "" : " and ",
                      selection->modules[0]);
    }
}

/* What there is. */
static void write_instead(FILE *file, struct counting *counting)
{
    const struct selection *selection = counting->selection;
    const char *suggestion = suggest_name(counting);
    if (selection->pid_count + selection->tid_count + selection->comm_count == 0) {
        (void)fprintf(file, "; profctl report --by %s%s%s lists what there is",
                      selection->unit_count + selection->cgroup_count > 0 ? "unit"
                      : selection->uid_count > 0                          ? "user"
                                                                          : "module",
                      selection->event == NULL ? "" : " --event ",
                      selection->event == NULL ? "" : selection->event);
        return;
    }
    if (suggestion != NULL) {
        (void)fprintf(file, "; did you mean '%s'? Most are of ", suggestion);
    } else {
        (void)fputs("; most are of ", file);
    }
    write_most(file, counting);
}

static void write_times(FILE *file, const struct profile *profile, uint64_t first_ns,
                        uint64_t last_ns)
{
    uint64_t origin_ns = profile->first_ns - profile->unselected_ns;
    (void)fprintf(file,
                  "no sample is between these times; those that would be selected are from "
                  "%.3f s to %.3f s",
                  (double)(first_ns - origin_ns) / 1e9, (double)(last_ns - origin_ns) / 1e9);
}

int selection_explain_none(const struct selection *selection, const struct profile *profile,
                           uint64_t first_ns, uint64_t last_ns, struct fault *reterr)
{
    cleanup_(counting_done) struct counting counting = {.selection = selection, .profile = profile};
    char text[sizeof reterr->text] = "";
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    if (file == NULL || count_samples(&counting) < 0) {
        if (file != NULL) {
            (void)fclose(file);
        }
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    if (first_ns <= last_ns) {
        write_times(file, profile, first_ns, last_ns);
    } else {
        (void)fputs("no sample is of ", file);
        write_asked(file, selection);
        write_instead(file, &counting);
    }
    (void)fclose(file);
    return fault_set(reterr, ESRCH, "%s", text);
}
