/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory of which walk was useful is the id for which it was asked: a group that the mounted
 * hierarchy does not show, as in a container, must not cost a walk each second.
 *
 * In a cgroup namespace the mounted hierarchy begins at the namespace's own group, but the kernel's
 * records have the whole path. What their paths have in front is learnt from a group that both tell
 * of; until then a walk is asked for, and groups that are not below stay unknown.
 */
#include "cgroup_feed.h"

#include <stdlib.h>
#include <string.h>

#define USELESS_MOST 6  /* a walk every 64 s, however useless it was before */
#define WALK_REST    64 /* times as long as a walk took none is asked for */
#define ROOT_ID      1  /* of a hierarchy, unless a namespace hides it */

struct cgroup_feed {
    struct cgroup_table *table;
    bool is_wanted;         /* a walk is to be asked for */
    bool is_coming;         /* and was */
    uint64_t wanted_id;     /* for this one; 0: for all that there are */
    uint64_t next_walk_ns;  /* not before this */
    unsigned useless_count; /* walks in a row */
    bool has_walked;        /* once, */
    bool is_nested;         /* and the root is a namespace's */
    char *prefix;           /* owned; of paths in records then; NULL: not known yet, as ever else */
    char *example_path;     /* owned; in the newest record, as its id; until the prefix is known */
    uint64_t example_id;
    uint64_t next_lesson_ns; /* no walk is made for the prefix before this */
    bool is_lesson_due;      /* the example is newer than the walk that is coming */
};

struct cgroup_feed *cgroup_feed_new(void)
{
    struct cgroup_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) {
        return NULL;
    }
    feed->table = cgroup_table_new();
    feed->is_wanted = true;
    return feed->table == NULL ? cgroup_feed_free(feed) : feed;
}

struct cgroup_feed *cgroup_feed_free(struct cgroup_feed *feed)
{
    if (feed != NULL) {
        (void)cgroup_table_free(feed->table);
        free(feed->prefix);
        free(feed->example_path);
        free(feed);
    }
    return NULL;
}

/* Keeps what a record said until a walk shows the same group, and has one made. */
static void keep_example(struct cgroup_feed *feed, uint64_t id, const char *path, uint64_t time_ns)
{
    char *copy = strdup(path);
    if (copy == NULL) {
        return;
    }
    free(feed->example_path);
    feed->example_path = copy;
    feed->example_id = id;
    feed->is_lesson_due = time_ns >= feed->next_lesson_ns;
    if (feed->is_lesson_due && !feed->is_coming) {
        feed->is_lesson_due = false;
        feed->is_wanted = true;
        feed->wanted_id = id;
        feed->next_lesson_ns = time_ns + CGROUP_FEED_LEARN_NS;
    }
}

void cgroup_feed_tell(struct cgroup_feed *feed, uint64_t id, const char *path, uint64_t time_ns)
{
    if (feed->prefix == NULL && (feed->is_nested || !feed->has_walked)) {
        keep_example(feed, id, path, time_ns);
    }
    if (!feed->is_nested) {
        cgroup_table_tell(feed->table, id, path);
        return;
    }
    size_t bytes = feed->prefix == NULL ? 0 : strlen(feed->prefix);
    if (feed->prefix != NULL && strncmp(path, feed->prefix, bytes) == 0 && path[bytes] == '/') {
        cgroup_table_tell(feed->table, id, path + bytes);
    }
}

/* Takes note of what a walk says of the hierarchy's root and of the example. */
static void learn_prefix(struct cgroup_feed *feed, uint64_t id, const char *path)
{
    if (strcmp(path, "/") == 0) {
        feed->is_nested = id != ROOT_ID;
    } else if (feed->example_path != NULL && feed->example_id == id && feed->prefix == NULL) {
        size_t whole_bytes = strlen(feed->example_path);
        size_t bytes = strlen(path);
        if (bytes <= whole_bytes && strcmp(feed->example_path + whole_bytes - bytes, path) == 0) {
            feed->prefix = strndup(feed->example_path, whole_bytes - bytes);
        }
    }
}

const struct cgroup *cgroup_feed_find(struct cgroup_feed *feed, uint64_t id, uint32_t account,
                                      uint64_t time_ns, bool *ret_is_coming)
{
    const struct cgroup *cgroup = cgroup_table_find(feed->table, id, account);
    /* No walk helps an account that has its share. */
    bool is_missing = cgroup == NULL && id != 0 && !cgroup_table_knows(feed->table, id);
    if (is_missing && !feed->is_coming && time_ns >= feed->next_walk_ns) {
        feed->is_wanted = true;
        feed->wanted_id = id;
        feed->next_walk_ns = time_ns + (CGROUP_FEED_PERIOD_NS << feed->useless_count);
    }
    *ret_is_coming = is_missing && (feed->is_coming || feed->is_wanted);
    return cgroup;
}

bool cgroup_feed_take_request(struct cgroup_feed *feed)
{
    bool is_wanted = feed->is_wanted;
    feed->is_wanted = false;
    return is_wanted;
}

void cgroup_feed_asked(struct cgroup_feed *feed, bool asked)
{
    feed->is_coming = asked;
}

void cgroup_feed_take(struct cgroup_feed *feed, const struct proc_reading *reading)
{
    const char *path = reading->cgroup_paths;
    const uint64_t rest_ns = WALK_REST * (reading->scan.end_ns - reading->scan.begin_ns);
    const uint64_t rested_ns = reading->scan.end_ns + rest_ns;
    for (size_t i = 0; i < reading->cgroup_count; i++) {
        learn_prefix(feed, reading->cgroup_ids[i], path);
        path += strlen(path) + 1;
    }
    if (reading->cgroup_count > 0) {
        cgroup_table_list(feed->table, reading->cgroup_ids, reading->cgroup_count,
                          reading->cgroup_paths);
    }
    feed->is_coming = false;
    feed->has_walked = true;
    if (rest_ns > CGROUP_FEED_PERIOD_NS && rested_ns > feed->next_walk_ns) {
        feed->next_walk_ns = rested_ns;
    }
    if (feed->wanted_id == 0 || cgroup_table_knows(feed->table, feed->wanted_id)) {
        feed->useless_count = 0;
    } else if (feed->useless_count < USELESS_MOST) {
        feed->useless_count++;
    }
    if (feed->is_lesson_due && feed->is_nested && feed->prefix == NULL) {
        feed->is_wanted = true;
        feed->wanted_id = feed->example_id;
        feed->next_lesson_ns = reading->scan.end_ns + CGROUP_FEED_LEARN_NS;
    }
    feed->is_lesson_due = false;
}
