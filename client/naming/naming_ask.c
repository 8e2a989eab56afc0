/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A child for each process that is asked. It takes the user and group of that process, and no
 * other, before it touches anything of it; without CAP_SETUID that fails, unless they are the
 * caller's own. A process whose own have changed since it was looked at is not asked. A child that
 * hangs in the kernel is given up, and ends when it can.
 */
#include "naming_ask.h"

#include "cleanup.h"
#include "clock.h"
#include "naming_child.h"
#include "own_map.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

struct asked {
    pid_t pid; /* of the child; 0: none */
    int fd;    /* owned; -1: it has answered, or never will */
};

/* Returns 0, or -errno. */
static int become(uid_t uid, gid_t gid)
{
    if (geteuid() == uid && getegid() == gid && getuid() == uid) {
        return 0;
    }
    if ((geteuid() == 0 && setgroups(1, &gid) < 0) || setresgid(gid, gid, gid) < 0 ||
        setresuid(uid, uid, uid) < 0) {
        return -errno;
    }
    return 0;
}

/* Asks a process, once its map is a file of its own user. A map that was made here for that is
 * removed if the process does not write it. */
static void ask(const struct naming_question *question, const struct naming_process *process,
                uint64_t listen_ms, struct naming_answer *answer)
{
    bool is_new = false;
    cleanup_(closep) int tmp = own_map_open_tmp(process->folder);
    int r = tmp < 0 ? 0 : own_map_make(tmp, process->inner, process->uid, &is_new);
    if (r == -EEXIST) {
        (void)snprintf(answer->why, sizeof answer->why,
                       "/tmp/perf-%d.map is there and is no file of its user's",
                       (int)process->inner);
    } else if (r == -EPERM) {
        (void)snprintf(answer->why, sizeof answer->why,
                       "other users can replace what is in its /tmp");
    } else if (r < 0) {
        (void)snprintf(answer->why, sizeof answer->why, "its map cannot be made: %s", strerror(-r));
    } else {
        question->ask(process, listen_ms, answer);
    }
    if (is_new && !answer->is_done) {
        own_map_drop_empty(tmp, process->inner);
    }
}

static void run_child(const struct naming_question *question, uint64_t listen_ms, int fd)
{
    struct naming_answer answer = {0};
    struct naming_process now;
    int kept[] = {fd, question->process.folder};
    naming_child_begin(kept, 2);
    int r = become(question->process.uid, question->process.gid);
    if (r < 0) {
        (void)snprintf(answer.why, sizeof answer.why, "its user and group cannot be taken on: %s",
                       strerror(-r));
    } else {
        /* Changing the user has taken this back. */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (naming_process_confirm(&question->process, &now)) {
            ask(question, &now, listen_ms, &answer);
        } else {
            (void)snprintf(answer.why, sizeof answer.why,
                           "it has ended or has another user since it was looked at");
        }
    }
    _exit(write(fd, &answer, sizeof answer) == (ssize_t)sizeof answer ? EXIT_SUCCESS
                                                                      : EXIT_FAILURE);
}

static struct asked start(struct naming_question *question, uint64_t listen_ms)
{
    int ends[2];
    struct asked asked = {.fd = -1};
    question->answer = (struct naming_answer){.why = "it did not answer in time"};
    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void)snprintf(question->answer.why, NAMING_WHY_BYTES, "no pipe can be made: %s",
                       strerror(errno));
        return asked;
    }
    asked.pid = fork();
    if (asked.pid == 0) {
        run_child(question, listen_ms, ends[1]);
    }
    (void)close(ends[1]);
    asked.fd = ends[0];
    if (asked.pid < 0) {
        (void)snprintf(question->answer.why, NAMING_WHY_BYTES, "no child can be made: %s",
                       strerror(errno));
        asked.fd = close_fd(asked.fd);
    }
    return asked;
}

/* Takes what a child has written, in one piece, as a pipe keeps it. */
static void take(struct asked *asked, struct naming_answer *into)
{
    struct naming_answer answer;
    if (read(asked->fd, &answer, sizeof answer) == (ssize_t)sizeof answer) {
        *into = answer;
        into->why[sizeof into->why - 1] = '\0';
    }
    asked->fd = close_fd(asked->fd);
}

void naming_ask_all(struct naming_question *questions, size_t count, const struct naming_wait *wait)
{
    struct asked asked[NAMING_PROCESSES_MAX];
    struct pollfd waited[NAMING_PROCESSES_MAX];
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + wait->answer_ms * NS_PER_MS;
    size_t left = 0;
    naming_child_reap();
    for (size_t i = 0; i < count; i++) {
        asked[i] = start(&questions[i], wait->listen_ms);
        left += asked[i].fd >= 0;
    }
    while (left > 0) {
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        for (size_t i = 0; i < count; i++) {
            waited[i] = (struct pollfd){.fd = asked[i].fd, .events = POLLIN};
        }
        /* What has come is taken at the end too: this process may have got no CPU sooner. */
        int left_ms = now_ns >= end_ns ? 0 : (int)((end_ns - now_ns) / NS_PER_MS) + 1;
        int r = poll(waited, count, left_ms);
        if ((r == 0 && left_ms == 0) || (r < 0 && errno != EINTR)) {
            break;
        }
        for (size_t i = 0; i < count; i++) {
            if (asked[i].fd >= 0 && waited[i].revents != 0) {
                take(&asked[i], &questions[i].answer);
                left--;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        bool hangs = asked[i].fd >= 0;
        asked[i].fd = close_fd(asked[i].fd);
        if (asked[i].pid > 0) {
            naming_child_end(asked[i].pid, hangs);
        }
    }
}
