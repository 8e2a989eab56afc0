/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The texts as the walk has them, and an open hash of numbers of groups, at most half full.
 */
#include "cgroup_list.h"

#include "seeded_hash.h"

#include <stdlib.h>
#include <string.h>

struct cgroup_list {
    uint64_t *ids;
    size_t *offsets;  /* of the paths */
    uint32_t *places; /* 1 + a number; 0: free */
    size_t place_mask;
    char *paths;
};

struct cgroup_list *cgroup_list_free(struct cgroup_list *list)
{
    if (list != NULL) {
        free(list->ids);
        free(list->offsets);
        free(list->places);
        free(list->paths);
        free(list);
    }
    return NULL;
}

/* The place of an id, or the free one where it would be. */
static size_t find_place(const struct cgroup_list *list, uint64_t id)
{
    size_t at = seeded_hash_pair(id, 0) & list->place_mask;
    while (list->places[at] != 0 && list->ids[list->places[at] - 1] != id) {
        at = (at + 1) & list->place_mask;
    }
    return at;
}

struct cgroup_list *cgroup_list_new(const uint64_t *ids, size_t count, const char *paths)
{
    struct cgroup_list *list = calloc(1, sizeof *list);
    size_t bytes = 0;
    size_t places = 64;
    if (list == NULL || count >= UINT32_MAX / 4) {
        return cgroup_list_free(list);
    }
    while (places < 2 * count) {
        places *= 2;
    }
    list->place_mask = places - 1;
    list->ids = calloc(count + 1, sizeof *list->ids);
    list->offsets = calloc(count + 1, sizeof *list->offsets);
    list->places = calloc(places, sizeof *list->places);
    if (list->ids == NULL || list->offsets == NULL || list->places == NULL) {
        return cgroup_list_free(list);
    }
    for (size_t i = 0; i < count; i++) {
        list->ids[i] = ids[i];
        list->offsets[i] = bytes;
        list->places[find_place(list, ids[i])] = (uint32_t)i + 1;
        bytes += strlen(paths + bytes) + 1;
    }
    list->paths = malloc(bytes + 1);
    if (list->paths == NULL) {
        return cgroup_list_free(list);
    }
    if (bytes > 0) {
        memcpy(list->paths, paths, bytes);
    }
    return list;
}

const char *cgroup_list_find(const struct cgroup_list *list, uint64_t id)
{
    size_t place = find_place(list, id);
    return list->places[place] == 0 ? NULL : list->paths + list->offsets[list->places[place] - 1];
}
