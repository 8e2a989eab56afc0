/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks for units by their control groups, whose folders have their names. The walk is bounded in
 * depth and in the number of units; what it does not see may still run, so it only makes a note.
 */
#include "unit_names.h"

#include "cleanup.h"
#include "suggest.h"

#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX  8
#define UNITS_MAX  ((size_t)1024)
#define LIKE_MAX   3
#define SERVICE    ".service"
#define PATH_BYTES 512

struct units {
    char *names[UNITS_MAX]; /* owned; without ".service" */
    size_t count;
    bool is_found;
    bool has_folder;
};

static void units_done(struct units *units)
{
    for (size_t i = 0; i < units->count; i++) {
        free(units->names[i]);
    }
}

bool unit_names_resolve(const char *const *folders, const char *glob,
                        char ret[UNIT_GLOB_BYTES_MAX + 1])
{
    for (; *folders != NULL && strpbrk(glob, "*?/") == NULL; folders++) {
        char path[PATH_BYTES];
        char target[PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/%s", *folders, glob);
        ssize_t target_bytes = readlink(path, target, sizeof target - 1);
        if (target_bytes <= 0) {
            continue;
        }
        target[target_bytes] = '\0';
        const char *slash = strrchr(target, '/');
        const char *name = slash == NULL ? target : slash + 1;
        /* A unit that is masked is a link to /dev/null, an instance one to its template. */
        if (strchr(name, '.') != NULL && strchr(name, '@') == NULL && strcmp(name, glob) != 0 &&
            unit_glob_make(name, ret)) {
            return true;
        }
    }
    return false;
}

static void add_unit(struct units *units, const char *name, const char *glob)
{
    units->is_found = units->is_found || unit_glob_matches(glob, name, strlen(name));
    if (units->count < UNITS_MAX) {
        const char *dot = strrchr(name, '.');
        size_t name_bytes = strcmp(dot, SERVICE) == 0 ? (size_t)(dot - name) : strlen(name);
        char *copy = strndup(name, name_bytes);
        if (copy != NULL) {
            units->names[units->count++] = copy;
        }
    }
}

static void find_units(struct units *units, const char *folder, const char *glob)
{
    char root[PATH_BYTES];
    (void)snprintf(root, sizeof root, "%s", folder);
    char *const paths[] = {root, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry = NULL;
    while (walk != NULL && !units->is_found && (entry = fts_read(walk)) != NULL) {
        if (entry->fts_info != FTS_D) {
            continue;
        }
        units->has_folder = true;
        if (entry->fts_level > 0 && unit_glob_is_unit(entry->fts_name)) {
            add_unit(units, entry->fts_name, glob);
        }
        if (entry->fts_level >= DEPTH_MAX) {
            (void)fts_set(walk, entry, FTS_SKIP);
        }
    }
    if (walk != NULL) {
        (void)fts_close(walk);
    }
}

/* The units whose names have the wanted one in them, else the one that was most likely meant. */
static void write_like(FILE *file, const struct units *units, const char *wanted)
{
    const char *separator = "; there are ";
    size_t count = 0;
    for (size_t i = 0; i < units->count && count < LIKE_MAX; i++) {
        if (strstr(units->names[i], wanted) != NULL) {
            (void)fprintf(file, "%s%s", separator, units->names[i]);
            separator = ", ";
            count++;
        }
    }
    const char *meant =
        count > 0 ? NULL : suggest_word(wanted, (const char *const *)units->names, units->count);
    if (meant != NULL) {
        (void)fprintf(file, "; did you mean %s?", meant);
    }
}

char *unit_names_describe_missing(const char *folder, const char *glob)
{
    cleanup_(units_done) struct units units = {0};
    char wanted[UNIT_GLOB_BYTES_MAX + 1];
    char *text = NULL;
    size_t text_bytes = 0;
    find_units(&units, folder, glob);
    if (units.is_found || !units.has_folder) {
        return NULL;
    }
    (void)snprintf(wanted, sizeof wanted, "%s", glob);
    char *dot = strrchr(wanted, '.');
    if (dot != NULL && strcmp(dot, SERVICE) == 0) {
        *dot = '\0';
    }
    FILE *file = open_memstream(&text, &text_bytes);
    if (file == NULL) {
        return NULL;
    }
    (void)fprintf(file, "no process of unit '%s' runs now; it is waited for", wanted);
    write_like(file, &units, wanted);
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
