/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scheduler's sums are of the time between two readings, and the run is longer at both ends:
 * there the records count. What the scheduler knows and records do not is how long a thread was
 * ready after it was woken: its delay, less the time for which it was preempted.
 */
#include "thread_line.h"

#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

int64_t thread_line_unexplained(const struct thread_line *line)
{
    return (int64_t)(line->wall_ns - line->running_ns - line->waiting_ns - line->blocked_ns);
}

/* No record: it had a CPU all the time, or none. What the records should have told is unexplained.
 */
static void add_unseen(struct thread_line *line, const struct thread_run *run)
{
    const struct thread_reading *first = &run->first;
    const struct thread_reading *last = &run->last;
    bool is_read = run->has_first && run->has_last;
    if (is_read && last->run_count != first->run_count) {
        line->running_ns += less(last->run_ns, first->run_ns);
    } else if (is_read && last->run_ns > first->run_ns) {
        line->running_ns += less(first->at_ns, run->from_ns) + last->run_ns - first->run_ns +
                            less(run->to_ns, last->at_ns);
    } else if (is_read) {
        line->blocked_ns += less(run->to_ns, run->from_ns);
    }
}

static uint64_t sum_of(const struct thread_sums *sums)
{
    return sums->running_ns + sums->preempted_ns + sums->blocked_ns;
}

static void add_read(struct thread_line *line, const struct thread_run *run)
{
    const struct thread_sums *sums = &run->sums;
    uint64_t delay_ns = less(run->last.delay_ns, run->first.delay_ns);
    uint64_t preempted_ns = less(run->last_sums.preempted_ns, run->first_sums.preempted_ns);
    uint64_t told_ns = less(sum_of(&run->last_sums), sum_of(&run->first_sums));
    uint64_t untold_ns = less(run->last.at_ns - run->first.at_ns, told_ns);
    uint64_t woken_ns = less(delay_ns, preempted_ns);
    untold_ns = less(untold_ns, less(less(run->last.run_ns, run->first.run_ns),
                                     less(run->last_sums.running_ns, run->first_sums.running_ns)));
    /* It was ready in what no record tells, as far as it did not run then; else while it was off.
     */
    uint64_t off_ns = less(woken_ns, untold_ns);
    off_ns = off_ns < sums->blocked_ns ? off_ns : sums->blocked_ns;
    woken_ns = woken_ns < untold_ns ? woken_ns : untold_ns + off_ns;
    line->running_ns += run->first_sums.running_ns + less(run->last.run_ns, run->first.run_ns) +
                        less(sums->running_ns, run->last_sums.running_ns);
    line->waiting_ns += sums->preempted_ns + woken_ns;
    line->blocked_ns += sums->blocked_ns - off_ns;
}

void thread_line_add(struct thread_line *line, const struct thread_run *run)
{
    bool is_read = run->has_first && run->has_last;
    line->boot_ts_ns = line->has_runs ? line->boot_ts_ns : run->from_ns;
    line->by_schedstat = is_read && (line->by_schedstat || !line->has_runs);
    line->has_runs = true;
    line->wall_ns += less(run->to_ns, run->from_ns);
    if (!run->is_seen) {
        add_unseen(line, run);
    } else if (is_read) {
        add_read(line, run);
    } else {
        line->running_ns += run->sums.running_ns;
        line->waiting_ns += run->sums.preempted_ns;
        line->blocked_ns += run->sums.blocked_ns;
    }
}

size_t thread_line_print(const struct thread_line *line, char into[THREAD_LINE_BYTES])
{
    char name[THREAD_LINE_NAME_BYTES * 6];
    char member[sizeof name + 16] = "";
    if (line->name[0] != '\0') {
        (void)utf8_json(name, sizeof name, line->name, strnlen(line->name, sizeof line->name));
        (void)snprintf(member, sizeof member, ",\"name\":\"%s\"", name);
    }
    int bytes =
        snprintf(into, THREAD_LINE_BYTES,
                 "{\"pid\":%" PRId32 ",\"tid\":%" PRId32 "%s,\"boot_ts_ns\":%" PRIu64
                 ",\"wall_ns\":%" PRIu64 ",\"running_ns\":%" PRIu64 ",\"waiting_ns\":%" PRIu64
                 ",\"blocked_ns\":%" PRIu64 ",\"unexplained_ns\":%" PRId64 ",\"voluntary\":%" PRIu64
                 ",\"involuntary\":%" PRIu64 ",\"source\":\"%s\"}\n",
                 line->pid, line->tid, member, line->boot_ts_ns, line->wall_ns, line->running_ns,
                 line->waiting_ns, line->blocked_ns, thread_line_unexplained(line), line->voluntary,
                 line->involuntary, line->by_schedstat ? "schedstat" : "switches");
    return (size_t)bytes;
}
