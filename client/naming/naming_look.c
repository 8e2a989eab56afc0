/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The child writes a finding for each process, in their order, so that the caller knows from the
 * number of findings where it is stuck. One child looks at many, since a walk through /proc meets
 * thousands of processes of which few are slow.
 *
 * Bounded: the patience. Only waits that ended in vain are taken off it: a machine that is slow
 * keeps all of it.
 */
#include "naming_look.h"

#include "cleanup.h"
#include "clock.h"
#include "naming_child.h"
#include "own_map.h"
#include "runtimes.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

void naming_look_inside(const struct naming_process *process, struct naming_finding *finding)
{
    struct runtime_mappings mappings;
    finding->runtime = naming_process_runtime(process, &mappings, &finding->is_old_python);
    finding->names_code =
        mappings.has_dump || own_map_is_there(process->folder, process->inner, process->uid);
}

static void run_child(const struct naming_process *processes, size_t count, naming_look_fn *look,
                      int fd)
{
    int kept[NAMING_LOOK_MAX + 1];
    for (size_t i = 0; i < count; i++) {
        kept[i] = processes[i].folder;
    }
    kept[count] = fd;
    naming_child_begin(kept, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct naming_finding finding = {.is_seen = true};
        look(&processes[i], &finding);
        if (write(fd, &finding, sizeof finding) != (ssize_t)sizeof finding) {
            _exit(EXIT_FAILURE);
        }
    }
    _exit(EXIT_SUCCESS);
}

/* Whether there is something to read before the time is over. */
static bool is_readable(int fd, uint64_t wait_ns)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + wait_ns;
    for (;;) {
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        int wait_ms = now_ns >= end_ns ? 0 : (int)((end_ns - now_ns) / NS_PER_MS) + 1;
        int r = poll(&waited, 1, wait_ms);
        if (r >= 0 || errno != EINTR) {
            return r > 0;
        }
    }
}

/* Takes the findings of a child as they come. Returns how many came; `*ret_is_stuck` is whether
 * the next one was waited for in vain. */
static size_t take(int fd, size_t count, struct naming_patience *patience,
                   struct naming_finding *into, bool *ret_is_stuck)
{
    *ret_is_stuck = false;
    for (size_t i = 0; i < count; i++) {
        uint64_t wait_ns =
            patience->stuck_ns < patience->left_ns ? patience->stuck_ns : patience->left_ns;
        struct naming_finding finding;
        *ret_is_stuck = !is_readable(fd, wait_ns);
        if (*ret_is_stuck) {
            patience->left_ns -= wait_ns;
        }
        if (*ret_is_stuck || read(fd, &finding, sizeof finding) != (ssize_t)sizeof finding) {
            return i;
        }
        into[i] = finding;
    }
    return count;
}

/* Returns how many are done with: seen, or given up. */
static size_t look_on(const struct naming_process *processes, size_t count, naming_look_fn *look,
                      struct naming_patience *patience, struct naming_finding *into)
{
    int ends[2];
    bool is_stuck = false;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return count;
    }
    cleanup_(closep) int fd = ends[0];
    pid_t pid = fork();
    if (pid == 0) {
        run_child(processes, count, look, ends[1]);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        return count;
    }
    size_t seen = take(fd, count, patience, into, &is_stuck);
    naming_child_end(pid, is_stuck);
    if (is_stuck) {
        into[seen].is_stuck = true;
    }
    return seen < count ? seen + 1 : count;
}

void naming_look_all(const struct naming_process *processes, size_t count, naming_look_fn *look,
                     struct naming_patience *patience, struct naming_finding *ret)
{
    memset(ret, 0, count * sizeof *ret);
    for (size_t done = 0; done < count && patience->left_ns > 0;) {
        done += look_on(processes + done, count - done, look, patience, ret + done);
    }
}
