/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A hash table of paths that doubles when it is full. The hash is seeded, so that no user can
 * choose paths that share a bucket and slow the daemon down.
 */
#include "path_set.h"

#include "cleanup.h"
#include "seeded_hash.h"

#include <stdint.h>
#include <string.h>

#define BUCKETS_MIN ((size_t)1024)

struct path_text {
    struct path_text *next;
    uint64_t hash;
    size_t user_count;
    size_t bytes;
    char text[]; /* with its NUL */
};

void path_set_done(struct path_set *set)
{
    free(set->buckets);
    *set = (struct path_set){0};
}

static struct path_text **bucket_of(const struct path_set *set, uint64_t hash)
{
    return &set->buckets[hash & (set->bucket_count - 1)];
}

static int grow(struct path_set *set)
{
    if (set->path_count < set->bucket_count) {
        return 0;
    }
    struct path_set grown = *set;
    grown.bucket_count = set->bucket_count == 0 ? BUCKETS_MIN : set->bucket_count * 2;
    grown.buckets = calloc(grown.bucket_count, sizeof(struct path_text *));
    if (grown.buckets == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < set->bucket_count; i++) {
        while (set->buckets[i] != NULL) {
            struct path_text *path = set->buckets[i];
            struct path_text **bucket = bucket_of(&grown, path->hash);
            set->buckets[i] = path->next;
            path->next = *bucket;
            *bucket = path;
        }
    }
    free(set->buckets);
    *set = grown;
    return 0;
}

const char *path_set_get(struct path_set *set, const char *path, size_t bytes)
{
    if (grow(set) < 0) {
        return NULL;
    }
    bytes = strnlen(path, bytes);
    uint64_t hash = seeded_hash(path, bytes);
    struct path_text **bucket = bucket_of(set, hash);
    for (struct path_text *known = *bucket; known != NULL; known = known->next) {
        if (known->hash == hash && known->bytes == bytes && memcmp(known->text, path, bytes) == 0) {
            known->user_count++;
            return known->text;
        }
    }
    struct path_text *fresh = malloc(sizeof *fresh + bytes + 1);
    if (fresh == NULL) {
        return NULL;
    }
    *fresh = (struct path_text){.next = *bucket, .hash = hash, .user_count = 1, .bytes = bytes};
    memcpy(fresh->text, path, bytes);
    fresh->text[bytes] = '\0';
    *bucket = fresh;
    set->path_count++;
    set->path_bytes += bytes;
    return fresh->text;
}

void path_set_put(struct path_set *set, const char *path)
{
    uintptr_t place = (uintptr_t)path - offsetof(struct path_text, text);
    struct path_text *text = (struct path_text *)place;
    text->user_count--;
    if (text->user_count > 0) {
        return;
    }
    struct path_text **link = bucket_of(set, text->hash);
    while (*link != text) {
        link = &(*link)->next;
    }
    *link = text->next;
    set->path_count--;
    set->path_bytes -= text->bytes;
    free(text);
}
