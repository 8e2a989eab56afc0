/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three tables by id. The one of what was told has a few places for each hash, of which the oldest
 * is taken, and a hand that goes round and frees until the paths fit. What the last walk found is
 * apart, so that no group that is made displaces one that was there. The one of sampled groups only
 * grows; its quota counts bytes, so it is never full before its places are.
 */
#include "cgroup_table.h"

#include "capacity.h"
#include "cgroup_list.h"
#include "quota.h"
#include "seeded_hash.h"

#include <stdlib.h>
#include <string.h>

#define TOLD_PLACES    CAPACITY(16384)
#define TOLD_WAYS      4
#define TOLD_BYTES_MAX ((size_t)4 << 20)
#define SAMPLED_PLACES CAPACITY(131072)
#define SAMPLED_PARTS  2
#define WEIGHT_BYTES   ((size_t)64)
#define SAMPLED_WEIGHT (CAPACITY(262144) - 1) /* 16 MiB; each has a few, so half the places */
#define PATH_BYTES_MAX 4096

_Static_assert(sizeof(struct cgroup) >= 2 * WEIGHT_BYTES,
               "as many as the quota lets in have places");

struct told {
    uint64_t id; /* 0: free */
    char *path;  /* owned */
};

struct cgroup_table {
    struct told told[TOLD_PLACES];
    size_t told_bytes;
    size_t hand;
    struct cgroup_list *listed;             /* owned; NULL: none */
    struct cgroup *sampled[SAMPLED_PLACES]; /* owned; open addressing */
    struct quota shares;                    /* of these, in weights */
};

struct cgroup_table *cgroup_table_new(void)
{
    struct cgroup_table *table = calloc(1, sizeof *table);
    if (table != NULL) {
        table->shares.max = SAMPLED_WEIGHT;
        table->shares.parts = SAMPLED_PARTS;
    }
    return table;
}

static void forget(struct cgroup_table *table, struct told *told)
{
    if (told->id != 0) {
        table->told_bytes -= strlen(told->path) + 1;
        free(told->path);
        *told = (struct told){0};
    }
}

struct cgroup_table *cgroup_table_free(struct cgroup_table *table)
{
    if (table != NULL) {
        for (size_t i = 0; i < TOLD_PLACES; i++) {
            forget(table, &table->told[i]);
        }
        (void)cgroup_list_free(table->listed);
        for (size_t i = 0; i < SAMPLED_PLACES; i++) {
            free(table->sampled[i]);
        }
        free(table);
    }
    return NULL;
}

/* The first of the places that an id may have; the newest comes first. */
static struct told *ways_of(struct cgroup_table *table, uint64_t id)
{
    return &table->told[seeded_hash_pair(id, 0) % (TOLD_PLACES / TOLD_WAYS) * TOLD_WAYS];
}

static struct told *find_told(struct cgroup_table *table, uint64_t id)
{
    struct told *ways = ways_of(table, id);
    for (size_t i = 0; i < TOLD_WAYS && id != 0; i++) {
        if (ways[i].id == id) {
            return &ways[i];
        }
    }
    return NULL;
}

static struct cgroup **find_sampled(struct cgroup_table *table, uint64_t id)
{
    size_t i = seeded_hash_pair(id, 0) % SAMPLED_PLACES;
    while (table->sampled[i] != NULL && table->sampled[i]->id != id) {
        i = (i + 1) % SAMPLED_PLACES;
    }
    return &table->sampled[i];
}

/* What is known of a group that was not sampled yet, or NULL. */
static const char *find_path(struct cgroup_table *table, uint64_t id)
{
    const struct told *told = find_told(table, id);
    if (told != NULL) {
        return told->path;
    }
    return table->listed == NULL ? NULL : cgroup_list_find(table->listed, id);
}

bool cgroup_table_knows(struct cgroup_table *table, uint64_t id)
{
    return *find_sampled(table, id) != NULL || find_path(table, id) != NULL;
}

void cgroup_table_list(struct cgroup_table *table, const uint64_t *ids, size_t count,
                       const char *paths)
{
    struct cgroup_list *list = cgroup_list_new(ids, count, paths);
    if (list != NULL) {
        (void)cgroup_list_free(table->listed);
        table->listed = list;
    }
}

/* The kernel says "//enomem" where it has no memory for a path. */
static bool is_path(const char *text)
{
    return text[0] == '/' && text[1] != '/' && strlen(text) < PATH_BYTES_MAX;
}

void cgroup_table_tell(struct cgroup_table *table, uint64_t id, const char *path)
{
    size_t bytes = strlen(path) + 1;
    if (id == 0 || !is_path(path) || cgroup_table_knows(table, id)) {
        return;
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return;
    }
    struct told *ways = ways_of(table, id);
    forget(table, &ways[TOLD_WAYS - 1]);
    memmove(&ways[1], &ways[0], (TOLD_WAYS - 1) * sizeof *ways);
    ways[0] = (struct told){0};
    while (table->told_bytes + bytes > TOLD_BYTES_MAX) {
        forget(table, &table->told[table->hand]);
        table->hand = (table->hand + 1) % TOLD_PLACES;
    }
    ways[0] = (struct told){id, copy};
    table->told_bytes += bytes;
}

/* A group with its path behind it, in one piece of memory; NULL when there is none. */
static struct cgroup *new_cgroup(uint64_t id, const char *path)
{
    size_t path_bytes = strlen(path) + 1;
    struct cgroup *cgroup = calloc(1, sizeof *cgroup + path_bytes);
    if (cgroup != NULL) {
        cgroup->id = id;
        cgroup->path = memcpy(cgroup + 1, path, path_bytes);
        cgroup_owner_parse(cgroup->path, &cgroup->owner);
        cgroup->owner_key = seeded_hash(path, cgroup->owner.prefix_bytes);
    }
    return cgroup;
}

const struct cgroup *cgroup_table_find(struct cgroup_table *table, uint64_t id, uint32_t account)
{
    struct cgroup **place = find_sampled(table, id);
    if (*place != NULL) {
        return *place;
    }
    const char *path = find_path(table, id);
    if (path == NULL || !is_path(path)) {
        return NULL;
    }
    size_t weight = (sizeof(struct cgroup) + strlen(path)) / WEIGHT_BYTES;
    if (!quota_take(&table->shares, account, weight)) {
        return NULL;
    }
    *place = new_cgroup(id, path);
    if (*place == NULL) {
        quota_give(&table->shares, account, weight);
        return NULL;
    }
    struct told *told = find_told(table, id);
    if (told != NULL) {
        forget(table, told);
    }
    return *place;
}
