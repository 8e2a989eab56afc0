/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each address of each module is looked up once, all of a module together, however many stacks it
 * is in. Only modules that are files are looked for; the kernel's own and anonymous memory are not.
 *
 * Functions that the recording cannot name come first, from the modules' own files; debugging
 * information, which may have their names, comes after.
 */
#include "lines.h"

#include "cleanup.h"
#include "lines_answer.h"
#include "lines_build_id.h"
#include "lines_search.h"

#include <string.h>

/* An address that is wanted: of a module, and which one of a table of the profile it is. */
struct wanted {
    uint64_t vaddr;
    uint32_t module;
    uint32_t item;
};

static int compare_wanted(const void *left, const void *right)
{
    const struct wanted *a = left;
    const struct wanted *b = right;
    int r = (a->module > b->module) - (a->module < b->module);
    return r != 0 ? r : (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* The addresses of a module that are wanted, as the child takes them. Returned: free(); NULL: there
 * is no memory. */
static uint64_t *list_vaddrs(const struct wanted *wanted, size_t count)
{
    uint64_t *vaddrs = calloc(count, sizeof *vaddrs);
    for (size_t i = 0; i < count && vaddrs != NULL; i++) {
        vaddrs[i] = wanted[i].vaddr;
    }
    return vaddrs;
}

/* Has the child read a module's debug file, and hands each address its chain. */
static int read_file(struct profile *profile, struct lines_readers *readers,
                     const struct lines_found *found, const struct wanted *wanted, size_t count)
{
    struct lines_answer_header header = {0};
    cleanup_(freep) void *body = NULL;
    cleanup_(freep) uint64_t *vaddrs = list_vaddrs(wanted, count);
    cleanup_(freep) struct inline_chain *chains = calloc(count, sizeof *chains);
    if (vaddrs == NULL || chains == NULL) {
        return -ENOMEM;
    }
    int r = lines_worker_read(found->worker, vaddrs, count, &readers->left_bytes, &header, &body);
    if (r == -EPIPE || r == -ETIME) {
        lines_readers_lose(readers, found->worker, r, found->path);
    }
    if (r == 0) {
        r = lines_answer_take(&header, body, profile_demangler(profile), &profile->texts,
                              &profile->inlines, chains);
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        profile->inlines.chains[wanted[i].item] = chains[i];
    }
    return r;
}

/* What the modules of a recording are asked for. */
struct asking {
    struct profile *profile; /* borrowed, as the next two */
    struct lines_readers *readers;
    struct lines_remote *remote; /* NULL: none */
    bool has_functions;          /* a function was found that has no name */
};

/* Asks one module for its wanted addresses, of which there is at least one. Returns 0, or -ENOMEM.
 */
typedef int ask_fn(struct asking *asking, const struct wanted *wanted, size_t count);

static int ask_for_lines(struct asking *asking, const struct wanted *wanted, size_t count)
{
    struct profile *profile = asking->profile;
    struct profile_module *module = &profile->modules[wanted->module];
    struct lines_found found = {0};
    struct lines_build_id build_id;
    const char *name = profile_text(profile, module->name);
    if (name[0] != '/' || module->source == INLINES_BROKEN) {
        return 0;
    }
    if (!lines_build_id_read(profile_text(profile, module->build_id), &build_id)) {
        module->source = INLINES_NO_BUILD_ID;
        return 0;
    }
    int r = lines_search(asking->readers, name, &build_id, asking->remote, &found);
    if (r == 0) {
        r = intern_add(&profile->texts, found.path, strlen(found.path), &module->debug_file);
    }
    if (r == 0) {
        r = read_file(profile, asking->readers, &found, wanted, count);
    }
    free(found.path);
    module->source = r == 0 ? INLINES_FOUND : r == -ENOENT ? INLINES_NO_FILE : INLINES_BROKEN;
    return r == -ENOMEM ? r : 0;
}

/* Has the child find the functions in a module's own file, and hands each address its own. */
static int read_functions(struct asking *asking, const struct lines_found *found,
                          const struct wanted *wanted, size_t count)
{
    cleanup_(freep) uint64_t *vaddrs = list_vaddrs(wanted, count);
    cleanup_(freep) struct function_range *ranges = calloc(count, sizeof *ranges);
    if (vaddrs == NULL || ranges == NULL) {
        return -ENOMEM;
    }
    int r = lines_worker_functions(found->worker, vaddrs, count, ranges);
    if (r == -EPIPE || r == -ETIME) {
        lines_readers_lose(asking->readers, found->worker, r, found->path);
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        asking->profile->unnamed.functions[wanted[i].item] =
            (struct unnamed_function){ranges[i].start, ranges[i].end};
        asking->has_functions |= ranges[i].start < ranges[i].end;
    }
    return 0;
}

/* A file that ended its reader is not read again, for its lines. */
static int ask_for_functions(struct asking *asking, const struct wanted *wanted, size_t count)
{
    struct profile *profile = asking->profile;
    struct profile_module *module = &profile->modules[wanted->module];
    size_t losses = asking->readers->losses.count;
    struct lines_found found = {0};
    struct lines_build_id build_id;
    const char *name = profile_text(profile, module->name);
    if (name[0] != '/' ||
        !lines_build_id_read(profile_text(profile, module->build_id), &build_id)) {
        return 0;
    }
    int r = lines_search_module(asking->readers, name, &build_id, &found);
    if (r == 0) {
        r = read_functions(asking, &found, wanted, count);
    }
    free(found.path);
    if (asking->readers->losses.count > losses) {
        module->source = INLINES_BROKEN;
    }
    return r == -ENOMEM ? r : 0;
}

/* Asks each module for those addresses of a table (struct inline_address) that are its own. */
static int ask_modules(struct asking *asking, const struct intern *addresses, ask_fn *ask)
{
    size_t count = addresses->item_count;
    cleanup_(freep) struct wanted *wanted = calloc(count + 1, sizeof *wanted);
    if (wanted == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        size_t size_bytes = 0;
        const struct inline_address *address = intern_bytes(addresses, (uint32_t)i, &size_bytes);
        wanted[i] = (struct wanted){
            .vaddr = address->vaddr,
            .module = address->module,
            .item = (uint32_t)i,
        };
    }
    qsort(wanted, count, sizeof *wanted, compare_wanted);
    int r = 0;
    for (size_t i = 0, end = 0; i < count && r == 0; i = end) {
        while (end < count && wanted[end].module == wanted[i].module) {
            end++;
        }
        r = ask(asking, &wanted[i], end - i);
    }
    return r;
}

static int add_debugging_information(struct asking *asking, bool has_lines)
{
    struct inlines *inlines = &asking->profile->inlines;
    inlines->is_wanted = true;
    inlines->has_lines = has_lines;
    int r = profile_resolve(asking->profile);
    if (r == 0) {
        r = ask_modules(asking, &inlines->addresses, ask_for_lines);
    }
    for (size_t i = 0; i < inlines->frame_count && !has_lines; i++) {
        inlines->frames[i].file = INTERN_NONE;
        inlines->frames[i].line = 0;
    }
    return r;
}

int lines_add(struct profile *profile, enum lines_detail detail, struct lines_remote *remote,
              struct lines_losses *ret_losses)
{
    cleanup_(lines_readers_done) struct lines_readers readers = {.left_bytes =
                                                                     LINES_ANSWERS_BYTES_MAX};
    struct asking asking = {.profile = profile, .readers = &readers, .remote = remote};
    int r = ask_modules(&asking, &profile->unnamed.addresses, ask_for_functions);
    if (r == 0 && detail != LINES_WANT_FUNCTIONS) {
        r = add_debugging_information(&asking, detail == LINES_WANT_LINES);
    }
    if (r < 0) {
        return r;
    }
    *ret_losses = readers.losses;
    return detail != LINES_WANT_FUNCTIONS || asking.has_functions ? profile_resolve(profile) : 0;
}
