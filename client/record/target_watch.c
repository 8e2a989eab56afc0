/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watches processes by a descriptor each, which sees the end of one that is not waited for (a
 * zombie) and of one whose pid is used again. A thread, and a process for which there is no
 * descriptor, is looked for by a signal that is not sent.
 */
#include "target_watch.h"

#include "cleanup.h"
#include "session_config.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

struct watched_task {
    int32_t id;
    int pid_fd; /* owned; -1: looked for by its id */
    bool is_process;
    bool has_ended;
};

void target_watch_done(struct target_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        watch->tasks[i].pid_fd = close_fd(watch->tasks[i].pid_fd);
    }
    free(watch->tasks);
    *watch = (struct target_watch){0};
}

static void add_tasks(struct target_watch *watch, const int32_t *ids, size_t count, bool is_process)
{
    for (size_t i = 0; i < count; i++) {
        watch->tasks[watch->count++] = (struct watched_task){
            .id = ids[i],
            .pid_fd = is_process ? pidfd_open(ids[i], 0) : -1,
            .is_process = is_process,
        };
    }
}

static bool names_tasks_alone(const struct session_targets *targets)
{
    return targets->uid_count == 0 && targets->comm_count == 0 && targets->cgroup_count == 0 &&
           targets->unit_count == 0;
}

int target_watch_begin(struct target_watch *watch, const char *config)
{
    cleanup_(freep) struct session_config *parsed = malloc(sizeof *parsed);
    if (parsed == NULL) {
        return -ENOMEM;
    }
    /* What the daemon does not accept records nothing either. */
    if (session_config_parse(config, strlen(config), false, parsed, NULL) < 0 ||
        !names_tasks_alone(&parsed->targets)) {
        return 0;
    }
    const struct session_targets *targets = &parsed->targets;
    watch->tasks = calloc(targets->pid_count + targets->tid_count + 1, sizeof *watch->tasks);
    if (watch->tasks == NULL) {
        return -ENOMEM;
    }
    add_tasks(watch, targets->pids, targets->pid_count, true);
    add_tasks(watch, targets->tids, targets->tid_count, false);
    return 0;
}

static bool has_task_ended(const struct watched_task *task)
{
    struct pollfd end = {.fd = task->pid_fd, .events = POLLIN};
    return task->pid_fd >= 0 ? poll(&end, 1, 0) > 0 : kill(task->id, 0) < 0 && errno == ESRCH;
}

bool target_watch_has_ended(struct target_watch *watch)
{
    bool has_ended = watch->count > 0;
    for (size_t i = 0; i < watch->count; i++) {
        struct watched_task *task = &watch->tasks[i];
        task->has_ended = task->has_ended || has_task_ended(task);
        has_ended = has_ended && task->has_ended;
    }
    return has_ended;
}

const char *target_watch_describe(const struct target_watch *watch, char *into)
{
    if (watch->count == 1) {
        (void)snprintf(into, TARGET_WATCH_TEXT_BYTES, "%s %d has ended",
                       watch->tasks[0].is_process ? "process" : "thread", watch->tasks[0].id);
    } else {
        (void)snprintf(into, TARGET_WATCH_TEXT_BYTES, "all %zu targets have ended", watch->count);
    }
    return into;
}
