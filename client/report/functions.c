/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Interns what is shown of each frame. Inlined copies of a function and the function itself are
 * one, and so are user and kernel frames, whose modules differ anyway.
 */
#include "functions.h"

#include "cleanup.h"
#include "frame_identity.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

void functions_done(struct functions *functions)
{
    intern_done(&functions->items);
    free(functions->of_frame);
    *functions = (struct functions){0};
}

/* The module that a frame without one is named after, as "[kernel]" is where its functions were not
 * recorded; INTERN_NONE: it is named after none. */
static uint32_t find_module(const struct profile *profile, uint32_t name)
{
    for (size_t i = 0; i < profile->module_count; i++) {
        if (profile->modules[i].name == name) {
            return (uint32_t)i;
        }
    }
    return INTERN_NONE;
}

static struct function describe(const struct profile *profile, const struct profile_frame *shown,
                                enum functions_unit unit)
{
    struct profile_frame frame = *shown;
    if (unit == FUNCTIONS_OF_MODULES && frame.module == INTERN_NONE) {
        frame.module = find_module(profile, frame.name);
    }
    struct frame_identity identity = frame_identity(profile, &frame, unit == FUNCTIONS_OF_MODULES);
    return (struct function){
        .name = identity.name,
        .module = frame.module == INTERN_NONE ? INTERN_NONE : profile->modules[frame.module].name,
        .basename = identity.module,
        .build_id = identity.build_id,
        .file = unit == FUNCTIONS_EACH ? frame.file : INTERN_NONE,
        .line = unit == FUNCTIONS_EACH ? frame.line : 0,
    };
}

int functions_find(const struct profile *profile, enum functions_unit unit, struct functions *ret)
{
    size_t frame_count = profile->frames.item_count;
    *ret = (struct functions){.of_frame = calloc(frame_count + 1, sizeof *ret->of_frame)};
    int r = ret->of_frame == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < frame_count && r == 0; i++) {
        struct function function = describe(profile, profile_frame(profile, (uint32_t)i), unit);
        r = intern_add(&ret->items, &function, sizeof function, &ret->of_frame[i]);
    }
    return r;
}

const struct function *functions_get(const struct functions *functions, uint32_t item)
{
    size_t size_bytes = 0;
    return intern_bytes(&functions->items, item, &size_bytes);
}

static int compare_texts(const struct profile *profile, uint32_t a, uint32_t b)
{
    const char *left = a == INTERN_NONE ? "" : profile_text(profile, a);
    const char *right = b == INTERN_NONE ? "" : profile_text(profile, b);
    return a == b ? 0 : strcmp(left, right);
}

int functions_compare(const struct profile *profile, const struct function *a,
                      const struct function *b)
{
    int r = compare_texts(profile, a->name, b->name);
    r = r == 0 ? compare_texts(profile, a->module, b->module) : r;
    r = r == 0 ? compare_texts(profile, a->build_id, b->build_id) : r;
    r = r == 0 ? compare_texts(profile, a->file, b->file) : r;
    return r == 0 ? (a->line > b->line) - (a->line < b->line) : r;
}

/* Whether a name is the wanted one with a suffix of gcc or clang, such as ".constprop.0.isra.0". */
static bool is_variant(const char *wanted, const char *name)
{
    static const char *const suffixes[] = {".constprop.", ".isra.",  ".part.", ".cold",
                                           ".lto_priv.",  ".clone.", ".llvm."};
    size_t length = strlen(wanted);
    if (strncmp(name, wanted, length) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (strncmp(name + length, suffixes[i], strlen(suffixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* As a glob; of a text that is too long for a name a page shortened, the beginning counts. */
static bool is_glob_of(const char *wanted, const char *name)
{
    char glob[512];
    size_t used = 0;
    for (const char *at = wanted; *at != '\0' && used + 1 < sizeof glob; used++) {
        bool is_cut = strncmp(at, "...", 3) == 0;
        glob[used] = *at;
        if (is_cut) {
            glob[used] = '*';
        }
        at += is_cut ? 3 : 1;
    }
    glob[used] = '\0';
    return fnmatch(glob, name, 0) == 0;
}

bool functions_are_meant(unsigned reading, const char *wanted, const char *name)
{
    return reading == 0   ? strcmp(wanted, name) == 0
           : reading == 1 ? is_variant(wanted, name)
                          : is_glob_of(wanted, name);
}

bool *functions_sampled_frames(const struct profile *profile)
{
    cleanup_(freep) bool *chains = calloc(profile->chains.item_count + 1, sizeof *chains);
    bool *frames = calloc(profile->frames.item_count + 1, sizeof *frames);
    if (chains == NULL || frames == NULL) {
        free(frames);
        return NULL;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        chains[profile->samples[i].chain] = true;
    }
    for (size_t i = 0; i < profile->chains.item_count; i++) {
        size_t count = 0;
        const uint32_t *of_chain = chains[i] ? profile_chain(profile, (uint32_t)i, &count) : NULL;
        for (size_t j = 0; j < count; j++) {
            frames[of_chain[j]] = true;
        }
    }
    return frames;
}
