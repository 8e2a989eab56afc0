/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which processes are asked, and what is said of them. Those that answer are asked again; a process
 * that did not is asked once. Sentences that are
 * alike are one, with the number of processes.
 *
 * What may wait for a filesystem of another process is a child's (naming_look.h); here is only what
 * /proc itself knows.
 *
 * Bounded: 32,768 processes are looked at, NAMING_PROCESSES_MAX asked at one time, 16 sentences
 * said of others.
 */
#include "naming.h"

#include "cleanup.h"
#include "clock.h"
#include "naming_child.h"
#include "naming_look.h"
#include "naming_places.h"
#include "options.h"
#include "runtimes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKED_AT_MAX 32768
#define REMARKS_MAX   16
#define ANCESTORS_MAX 64

/* Of processes that are not asked. */
struct remark {
    char comm[NAMING_COMM_BYTES];
    const char *why; /* static, or of the table of runtimes */
    const char *setting;
    pid_t first;
    size_t count;
};

#define OLD_PYTHON "no Python before 3.12 can name what it runs; py-spy can show it"

#define FILES_HANG "left out, since its mappings or files do not answer"

static const struct naming_wait usual_wait = {
    .answer_ms = NAMING_ANSWER_MS,
    .listen_ms = 1500, /* so that a file which is left for a Java is removed whatever comes */
    .stuck_ms = 1000,
    .look_ms = NAMING_LOOK_MS,
};

struct naming {
    struct session_targets targets;
    struct naming_wait wait;
    pid_t command; /* 0: none */
    struct naming_places places;
    size_t left_count;     /* for which there was no room, in the last walk */
    size_t left_told;      /* the most of them that was said */
    size_t unlooked_count; /* for which there was no time, in the last walk */
    bool has_told_old;     /* that the command is a Python which cannot be asked */
};

int naming_new(const struct session_targets *targets, pid_t command, const struct naming_wait *wait,
               struct naming **ret)
{
    struct naming *naming = calloc(1, sizeof *naming);
    if (naming == NULL) {
        return -ENOMEM;
    }
    naming->targets = *targets;
    naming->command = command;
    naming->wait = wait == NULL ? usual_wait : *wait;
    *ret = naming;
    return 0;
}

struct naming *naming_free(struct naming *naming)
{
    if (naming != NULL) {
        naming_places_done(&naming->places);
        naming_child_reap();
    }
    free(naming);
    return NULL;
}

/* Whether the command has started it, itself or by others. */
static bool is_of_command(const struct naming *naming, const struct naming_process *process)
{
    pid_t pid = process->pid;
    pid_t parent = process->parent;
    for (size_t i = 0; i < ANCESTORS_MAX && pid != naming->command && parent > 1; i++) {
        struct naming_process above;
        pid = parent;
        parent = 0;
        if (naming_process_open(pid, &above)) {
            parent = above.parent;
            naming_process_close(&above);
        }
    }
    return pid == naming->command;
}

/* What is looked for: the targets that run, or what the command has started. */
typedef bool is_asked_fn(const struct naming *naming, const struct naming_process *process);

static bool is_target(const struct naming *naming, const struct naming_process *process)
{
    return naming_process_is_target(process, &naming->targets);
}

static void remark(struct remark *remarks, const struct naming_process *process, const char *why,
                   const char *setting)
{
    for (size_t i = 0; i < REMARKS_MAX; i++) {
        struct remark *known = &remarks[i];
        if (known->count == 0) {
            *known = (struct remark){.why = why, .setting = setting, .first = process->pid};
            memcpy(known->comm, process->comm, sizeof known->comm);
        }
        if (known->why == why && strcmp(known->comm, process->comm) == 0) {
            known->count++;
            return;
        }
    }
}

/* Whether it is to be looked into. Of a runtime that is another user's it is said here. */
static bool is_candidate(const struct naming *naming, is_asked_fn *is_asked,
                         const struct naming_process *process, struct remark *remarks)
{
    if (naming_places_has(&naming->places, process->pid) || !is_asked(naming, process)) {
        return false;
    }
    if (process->uid == geteuid() || geteuid() == 0) {
        return true;
    }
    if (runtime_of_command(process->comm) != RUNTIME_NONE) {
        remark(remarks, process, "left alone, since it is another user's", NULL);
    }
    return false;
}

static void judge(struct naming *naming, struct naming_process *process,
                  const struct naming_finding *finding, struct remark *remarks)
{
    static naming_ask_fn *const ways[] = {
        [RUNTIME_BY_ATTACH] = naming_jvm_ask,
        [RUNTIME_BY_DIAGNOSTICS] = naming_dotnet_ask,
    };
    if (finding->is_stuck) {
        remark(remarks, process, FILES_HANG, NULL);
        (void)naming_places_take(&naming->places, process, NULL);
        return;
    }
    naming->unlooked_count += !finding->is_seen;
    if (!finding->is_seen) {
        return;
    }
    if (finding->is_old_python) {
        remark(remarks, process, OLD_PYTHON, NULL);
    }
    if (finding->runtime == RUNTIME_NONE) {
        return;
    }
    const struct runtime *runtime = runtime_get(finding->runtime);
    if (runtime->asking != RUNTIME_NOT_ASKED) {
        naming->left_count += !naming_places_take(&naming->places, process, ways[runtime->asking]);
    } else if (finding->names_code) {
        remark(remarks, process, "names its code already", NULL);
    } else {
        remark(remarks, process, "cannot be asked while it runs; start it with ", runtime->setting);
    }
}

/* A walk through /proc. */
struct walk {
    struct naming_process some[NAMING_LOOK_MAX]; /* candidates not yet looked into; folders owned */
    size_t some_count;
    struct naming_patience patience;
    struct remark *remarks; /* REMARKS_MAX */
};

static void look_into_some(struct naming *naming, struct walk *walk)
{
    struct naming_finding findings[NAMING_LOOK_MAX];
    naming_look_all(walk->some, walk->some_count, naming_look_inside, &walk->patience, findings);
    for (size_t i = 0; i < walk->some_count; i++) {
        judge(naming, &walk->some[i], &findings[i], walk->remarks);
        naming_process_close(&walk->some[i]);
    }
    walk->some_count = 0;
}

static void look(struct naming *naming, is_asked_fn *is_asked, struct remark *remarks)
{
    struct walk walk = {
        .patience = {.stuck_ns = naming->wait.stuck_ms * NS_PER_MS,
                     .left_ns = naming->wait.look_ms * NS_PER_MS},
        .remarks = remarks,
    };
    DIR *folder = opendir("/proc");
    const struct dirent *entry = NULL;
    size_t count = 0;
    naming_places_drop_ended(&naming->places);
    naming->left_count = 0;
    naming->unlooked_count = 0;
    while (folder != NULL && count < LOOKED_AT_MAX && (entry = readdir(folder)) != NULL) {
        struct naming_process *process = &walk.some[walk.some_count];
        if (isdigit((unsigned char)entry->d_name[0]) == 0 ||
            !naming_process_open((pid_t)strtol(entry->d_name, NULL, 10), process)) {
            continue;
        }
        count++;
        if (!is_candidate(naming, is_asked, process, remarks)) {
            naming_process_close(process);
        } else if (++walk.some_count == NAMING_LOOK_MAX) {
            look_into_some(naming, &walk);
        }
    }
    look_into_some(naming, &walk);
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/* `why`: only remarks for that reason; NULL: all. Returns how many were printed. */
static size_t print_remarks(const struct remark *remarks, const char *why)
{
    size_t count = 0;
    for (size_t i = 0; i < REMARKS_MAX && remarks[i].count > 0; i++) {
        char more[48] = "";
        if (why != NULL && strcmp(remarks[i].why, why) != 0) {
            continue;
        }
        count++;
        if (remarks[i].count > 1) {
            (void)snprintf(more, sizeof more, " and %zu more", remarks[i].count - 1);
        }
        (void)complain("names: %s (pid %d%s): %s%s", remarks[i].comm, (int)remarks[i].first, more,
                       remarks[i].why, remarks[i].setting == NULL ? "" : remarks[i].setting);
    }
    return count;
}

/* Says what became of a question, if it is new or bad. */
static void say(const struct naming_place *place, const struct naming_answer *answer)
{
    const struct naming_process *process = &place->process;
    if (answer->is_done && place->is_new) {
        (void)complain("names: %s (pid %d): has written its map", process->comm, (int)process->pid);
    } else if (!answer->is_done && (place->is_new || !naming_process_has_ended(process))) {
        (void)complain("names: %s (pid %d): has written no map: %s", process->comm,
                       (int)process->pid, answer->why);
    }
}

static void ask_all(struct naming *naming)
{
    struct naming_question questions[NAMING_PROCESSES_MAX];
    struct naming_place *asked[NAMING_PROCESSES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < naming->places.count; i++) {
        struct naming_place *place = &naming->places.all[i];
        if (place->ask != NULL && naming_place_takes_turn(place)) {
            asked[count] = place;
            questions[count++] =
                (struct naming_question){.process = place->process, .ask = place->ask};
        }
    }
    naming_ask_all(questions, count, &naming->wait);
    for (size_t i = 0; i < count; i++) {
        say(asked[i], &questions[i].answer);
        asked[i]->is_new = false;
        /* .NET goes on by itself. */
        if (!questions[i].answer.is_done || asked[i]->ask == naming_dotnet_ask) {
            asked[i]->ask = NULL;
        }
    }
}

static void say_left(struct naming *naming)
{
    if (naming->left_count > naming->left_told) {
        (void)complain("names: %zu more were not asked: at most %d are, and of one user's half of "
                       "what other users leave",
                       naming->left_count, NAMING_PROCESSES_MAX);
        naming->left_told = naming->left_count;
    }
}

void naming_ask(struct naming *naming)
{
    struct remark remarks[REMARKS_MAX] = {0};
    look(naming, is_target, remarks);
    (void)print_remarks(remarks, NULL);
    if (naming->unlooked_count > 0) {
        (void)complain("names: %zu more were not looked at, since files of others do not answer",
                       naming->unlooked_count);
    }
    for (size_t i = 0; i < naming->places.count; i++) {
        naming->places.all[i].pause = 1; /* these have run for a while */
    }
    ask_all(naming);
    say_left(naming);
}

void naming_ask_again(struct naming *naming)
{
    struct remark remarks[REMARKS_MAX] = {0};
    if (naming->command > 0) {
        look(naming, is_of_command, remarks);
    }
    (void)print_remarks(remarks, FILES_HANG);
    /* All others of the command's runtimes were started so that they name their code. */
    if (!naming->has_told_old) {
        naming->has_told_old = print_remarks(remarks, OLD_PYTHON) > 0;
    }
    ask_all(naming);
    say_left(naming);
}
