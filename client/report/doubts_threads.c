/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines of threads are exact where switches were recorded. Where records were off or lost, blocked
 * and ready time is what the others tell, and the rest of a line is unexplained. A little is
 * unexplained of each: the scheduler's sums are up to a tick old at both ends of a recording, each
 * switch takes some microseconds, and the hypervisor some time.
 */
#include "doubts_threads.h"

#include "books_print.h"

#include <inttypes.h>

#define ENDS_NS      INT64_C(8000000) /* two ticks at 250 Hz */
#define LITTLE_PARTS 100              /* of the time of a thread */
#define READ_MAX     8192             /* threads of a process that the daemon reads */

static int64_t distance(int64_t time_ns)
{
    return time_ns < 0 ? -time_ns : time_ns;
}

static bool is_little(int64_t unexplained_ns, int64_t wall_ns)
{
    return distance(unexplained_ns) <= wall_ns / LITTLE_PARTS + ENDS_NS;
}

bool doubts_threads_is_explained(const struct profile_thread *thread)
{
    return is_little(thread->times.unexplained_ns, thread->times.wall_ns);
}

/* Each of them, and all together: many short threads may be within the bound of one each.
 * `*ret_ns`: what is unexplained. */
static bool are_explained(const struct profile *profile, int64_t *ret_ns)
{
    struct thread_split sum = {0};
    bool is_each = true;
    for (size_t i = 0; i < profile->thread_count; i++) {
        struct thread_split times = profile->threads[i].times;
        times.unexplained_ns = distance(times.unexplained_ns);
        thread_split_add(&sum, &times);
        is_each = is_each && doubts_threads_is_explained(&profile->threads[i]);
    }
    *ret_ns = sum.unexplained_ns;
    return is_each && is_little(sum.unexplained_ns, sum.wall_ns);
}

bool doubts_threads_have_switches(const struct profile *profile)
{
    int64_t held_back_ns = 0;
    int64_t unexplained_ns = 0;
    (void)books_print_event(profile->books_json, PROFILE_EVENT_OFF_CPU, "held_back_ns",
                            &held_back_ns);
    return held_back_ns == 0 && are_explained(profile, &unexplained_ns);
}

const char *doubts_threads_at_least(const struct profile *profile)
{
    int64_t unexplained_ns = 0;
    return are_explained(profile, &unexplained_ns) ||
                   profile_threads_sum(profile).unexplained_ns < 0
               ? ""
               : "at least ";
}

static size_t unread_count(const struct profile *profile)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->thread_count; i++) {
        count += profile->threads[i].is_unread;
    }
    return count;
}

void doubts_threads_write_spent(FILE *file, const struct profile *profile)
{
    const struct thread_split sum = profile_threads_sum(profile);
    const char *at_least = doubts_threads_at_least(profile);
    int64_t unexplained_ns = 0;
    const bool is_explained = are_explained(profile, &unexplained_ns);
    (void)fprintf(file, "blocked for %s%.3f s and ready for %s%.3f s", at_least,
                  (double)sum.blocked_ns / 1e9, at_least, (double)sum.ready_ns / 1e9);
    if (!is_explained) {
        (void)fprintf(file,
                      " (%.3f s of their time is unexplained, as where no switches were recorded)",
                      (double)unexplained_ns / 1e9);
    } else if (unread_count(profile) == 0) {
        (void)fputs(", exactly", file);
    }
}

/* Lines are in the order of their processes. */
static bool has_unread_threads(const struct profile *profile)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->thread_count && count < READ_MAX; i++) {
        const struct profile_task *task = &profile->threads[i].task;
        const struct profile_task *before = i > 0 ? &profile->threads[i - 1].task : task;
        count = task->pid == before->pid && task->segment == before->segment ? count + 1 : 1;
    }
    return count >= READ_MAX && books_print_counter(profile->books_json, "proc_unread") > 0;
}

bool doubts_threads_write_lacks(FILE *file, const struct profile *profile, const char *before)
{
    const size_t count = unread_count(profile);
    const bool has_more = has_unread_threads(profile);
    if (count > 0) {
        (void)fprintf(file,
                      "%sblocked time of the %zu that had ended or could not be read again has the "
                      "ready time after each waking, too",
                      before, count);
    }
    if (has_more) {
        (void)fprintf(file,
                      "%sa process had more threads than are read (8,192): the others have no line "
                      "unless they switched",
                      count > 0 ? "; " : before);
    }
    return count > 0 || has_more;
}
