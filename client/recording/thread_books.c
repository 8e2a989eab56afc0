/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the books of a thread. A recording may come from anywhere, so each number is bounded, and
 * sums of any number of them are too.
 */
#include "thread_books.h"

#include "json.h"
#include "recording.h"

#include <string.h>

#define TIME_MAX (INT64_MAX / 4)

static int64_t number(const cJSON *line, const char *member, int64_t least)
{
    int64_t value = 0;
    bool is_one =
        json_read_integer(cJSON_GetObjectItemCaseSensitive(line, member), least, TIME_MAX, &value);
    return is_one ? value : 0;
}

bool thread_books_read(const struct cJSON *line, struct thread_books *ret)
{
    const char *source = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "source"));
    struct thread_books books = {
        .pid = number(line, "pid", 0),
        .tid = number(line, "tid", 0),
        .name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "name")),
        .voluntary_count = (uint64_t)number(line, "voluntary", 0),
        .involuntary_count = (uint64_t)number(line, "involuntary", 0),
        .is_unread = source != NULL && strcmp(source, "switches") == 0,
        .times = {number(line, "wall_ns", -TIME_MAX), number(line, "running_ns", -TIME_MAX),
                  number(line, "waiting_ns", -TIME_MAX), number(line, "blocked_ns", -TIME_MAX),
                  number(line, "unexplained_ns", -TIME_MAX), 0},
    };
    if (books.pid == 0 || books.tid == 0) {
        return false;
    }
    (void)data_read_u64(cJSON_GetObjectItemCaseSensitive(line, "boot_ts_ns"), &books.begin_ns);
    *ret = books;
    return true;
}

static void add(int64_t *sum_ns, int64_t time_ns)
{
    int64_t new_ns = *sum_ns + time_ns;
    *sum_ns = new_ns > TIME_MAX ? TIME_MAX : new_ns < -TIME_MAX ? -TIME_MAX : new_ns;
}

void thread_split_add(struct thread_split *sum, const struct thread_split *other)
{
    add(&sum->wall_ns, other->wall_ns);
    add(&sum->running_ns, other->running_ns);
    add(&sum->ready_ns, other->ready_ns);
    add(&sum->blocked_ns, other->blocked_ns);
    add(&sum->unexplained_ns, other->unexplained_ns);
    add(&sum->preempted_ns, other->preempted_ns);
}
