/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each address of each module is looked up once, all of a module together, however many stacks it
 * is in. Only modules that are files are looked for; the kernel's own and anonymous memory are not.
 */
#include "lines.h"

#include "cleanup.h"
#include "lines_dwarf.h"
#include "lines_file.h"
#include "resolve.h"

#include <string.h>

/* An address that is wanted: of a module, and which one of the profile's table it is. */
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

static bool read_digit(char digit, uint8_t *ret)
{
    const char *digits = "0123456789abcdef";
    const char *found = digit == '\0' ? NULL : strchr(digits, digit);
    *ret = found == NULL ? 0 : (uint8_t)(found - digits);
    return found != NULL;
}

/* From hex, as the profile has it; false where there is none, or one too long to be looked for. */
static bool read_build_id(const char *text, struct lines_build_id *ret)
{
    size_t length = strlen(text);
    *ret = (struct lines_build_id){.size_bytes = length / 2};
    bool is_good = length > 0 && length % 2 == 0 && ret->size_bytes <= sizeof ret->bytes;
    for (size_t i = 0; is_good && i < ret->size_bytes; i++) {
        uint8_t high = 0;
        uint8_t low = 0;
        is_good = read_digit(text[2 * i], &high) && read_digit(text[2 * i + 1], &low);
        ret->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return is_good;
}

/* Reads a module's debug file and hands each address its chain. */
static int read_file(struct profile *profile, const struct lines_file *file,
                     const struct wanted *wanted, size_t count)
{
    cleanup_(freep) struct lines_address *addresses = calloc(count, sizeof *addresses);
    if (addresses == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        addresses[i].vaddr = wanted[i].vaddr;
    }
    int r = lines_dwarf_read(file->dwarf, addresses, count, &profile->symbols.demangler,
                             &profile->texts, &profile->inlines);
    for (size_t i = 0; i < count && r == 0; i++) {
        profile->inlines.chains[wanted[i].item] = addresses[i].chain;
    }
    return r;
}

/* All wanted addresses of one module. */
static int add_module(struct profile *profile, struct lines_remote *remote,
                      const struct wanted *wanted, size_t count)
{
    struct profile_module *module = &profile->modules[wanted->module];
    cleanup_(lines_file_freep) struct lines_file *file = NULL;
    struct lines_build_id build_id;
    const char *name = profile_text(profile, module->name);
    if (name[0] != '/') {
        return 0;
    }
    if (!read_build_id(profile_text(profile, module->build_id), &build_id)) {
        module->source = INLINES_NO_BUILD_ID;
        return 0;
    }
    int r = lines_file_find(name, &build_id, remote, &file);
    if (r == 0) {
        r = intern_add(&profile->texts, file->path, strlen(file->path), &module->debug_file);
    }
    if (r == 0) {
        r = read_file(profile, file, wanted, count);
    }
    module->source = r == 0 ? INLINES_FOUND : r == -ENOENT ? INLINES_NO_FILE : INLINES_BROKEN;
    return r == -ENOMEM ? r : 0;
}

static int add_modules(struct profile *profile, struct lines_remote *remote)
{
    const struct inlines *inlines = &profile->inlines;
    size_t count = inlines->addresses.item_count;
    cleanup_(freep) struct wanted *wanted = calloc(count + 1, sizeof *wanted);
    if (wanted == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        size_t size_bytes = 0;
        const struct inline_address *address =
            intern_bytes(&inlines->addresses, (uint32_t)i, &size_bytes);
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
        r = add_module(profile, remote, &wanted[i], end - i);
    }
    return r;
}

int lines_add(struct profile *profile, bool has_lines, struct lines_remote *remote)
{
    struct inlines *inlines = &profile->inlines;
    inlines->is_wanted = true;
    inlines->has_lines = has_lines;
    int r = resolve_samples(profile);
    if (r == 0) {
        r = add_modules(profile, remote);
    }
    for (size_t i = 0; i < inlines->frame_count && !has_lines; i++) {
        inlines->frames[i].file = INTERN_NONE;
        inlines->frames[i].line = 0;
    }
    return r < 0 ? r : resolve_samples(profile);
}
