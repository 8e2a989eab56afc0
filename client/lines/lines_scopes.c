/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the scopes of addresses in a unit. A scope has an address if the scope around it has it,
 * and no earlier scope in that one does: the first of two that overlap wins, as in libdw's
 * dwarf_getscopes(). The walk enters a function only if it has a wanted address. So the time
 * depends on the functions that were sampled, and other entries cost one look each.
 *
 * The walk has a stack of bounded depth, goes to later siblings only, and counts each step against
 * `work_left`. So it ends for entries in circles, and for ranges that many scopes share.
 */
#include "lines_scopes.h"

#include "grow.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX         192
#define DEPTH_OUTSIDE_MAX 32 /* of namespaces and classes, before a function begins */
#define NAME_BYTES_MAX    (LINES_TEXT_BYTES_MAX / 2)

enum scope_kind {
    SCOPE_NONE,        /* holds no code that could be wanted */
    SCOPE_TRANSPARENT, /* has functions in it, and no addresses of its own */
    SCOPE_BLOCK,       /* a part of a function */
    SCOPE_FUNCTION,
};

struct scope {
    Dwarf_Die entry;
    uint32_t number; /* 0: no function is around it */
    uint32_t node;
};

static enum scope_kind scope_kind(int tag)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
        return SCOPE_TRANSPARENT;
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
        return SCOPE_BLOCK;
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_entry_point:
        return SCOPE_FUNCTION;
    default:
        return SCOPE_NONE;
    }
}

static bool pay(struct lines_walk *walk, uint64_t work)
{
    bool has_paid = work <= walk->work_left;
    walk->work_left = has_paid ? walk->work_left - work : 0;
    return has_paid;
}

size_t lines_find_address(const struct lines_walk *walk, uint64_t vaddr)
{
    size_t low = 0;
    size_t high = walk->address_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (walk->addresses[middle].vaddr < vaddr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int lines_add_path(struct lines_walk *walk, const char *path, uint32_t *ret_text)
{
    char whole[2 * NAME_BYTES_MAX];
    *ret_text = INTERN_NONE;
    if (path == NULL || path[0] == '\0') {
        return 0;
    }
    bool is_whole = path[0] == '/' || walk->folder == NULL;
    int whole_bytes =
        snprintf(whole, sizeof whole, "%.*s%s%.*s", (int)NAME_BYTES_MAX - 2,
                 is_whole ? "" : walk->folder, is_whole ? "" : "/", (int)NAME_BYTES_MAX, path);
    return intern_add(walk->texts, whole, (size_t)whole_bytes, ret_text);
}

static const char *read_linkage_name(Dwarf_Die *entry)
{
    Dwarf_Attribute attribute;
    Dwarf_Attribute *found = dwarf_attr_integrate(entry, DW_AT_linkage_name, &attribute);
    if (found == NULL) {
        found = dwarf_attr_integrate(entry, DW_AT_MIPS_linkage_name, &attribute);
    }
    return found == NULL ? NULL : dwarf_formstring(found);
}

static uint64_t read_number(Dwarf_Die *entry, unsigned int name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_formudata(dwarf_attr(entry, name, &attribute), &value) == 0 ? value : 0;
}

/* The file and line of the call that was inlined. */
static int read_call(struct lines_walk *walk, Dwarf_Die *entry, struct lines_node *node)
{
    Dwarf_Die unit;
    Dwarf_Files *files = NULL;
    size_t file_count = 0;
    uint64_t file = read_number(entry, DW_AT_call_file);
    uint64_t line = read_number(entry, DW_AT_call_line);
    if (!walk->has_files || !dwarf_hasattr(entry, DW_AT_call_file) ||
        dwarf_diecu(entry, &unit, NULL, NULL) == NULL ||
        dwarf_getsrcfiles(&unit, &files, &file_count) != 0 || file >= file_count) {
        return 0;
    }
    node->call_line = line > UINT32_MAX ? 0 : (uint32_t)line;
    return lines_add_path(walk, dwarf_filesrc(files, (size_t)file, NULL, NULL), &node->call_file);
}

static int add_node(struct lines_walk *walk, Dwarf_Die *entry, uint32_t outer, uint32_t *ret_node)
{
    struct lines_node node = {.outer = INTERN_NONE, .call_file = INTERN_NONE};
    const char *name = read_linkage_name(entry);
    if (name == NULL) {
        name = dwarf_diename(entry);
    }
    bool is_named =
        name != NULL && name[0] != '\0' && strnlen(name, NAME_BYTES_MAX) < NAME_BYTES_MAX;
    const char *shown = is_named ? name : "[unknown]";
    int r = intern_add(walk->texts, shown, strlen(shown), &node.name);
    if (r == 0 && dwarf_tag(entry) == DW_TAG_inlined_subroutine) {
        node.outer = outer;
        r = read_call(walk, entry, &node);
    }
    if (r < 0 || walk->node_count >= INTERN_NONE ||
        grow(walk->nodes, walk->node_capacity, walk->node_count + 1) < 0) {
        return -ENOMEM;
    }
    *ret_node = (uint32_t)walk->node_count;
    walk->nodes[walk->node_count++] = node;
    return 0;
}

/* Takes the addresses in [start, end) that the outer scope has and no inner one has yet. */
static int take_addresses(struct lines_walk *walk, const struct scope *outer, struct scope *scope,
                          uint64_t start, uint64_t end)
{
    for (size_t i = lines_find_address(walk, start);
         i < walk->address_count && walk->addresses[i].vaddr < end; i++) {
        struct lines_address *address = &walk->addresses[i];
        if (!pay(walk, 1)) {
            return -EBADMSG;
        }
        if (address->scope != outer->number) {
            continue;
        }
        if (scope->number == 0) {
            int r = 0;
            if (scope_kind(dwarf_tag(&scope->entry)) == SCOPE_FUNCTION) {
                r = add_node(walk, &scope->entry, outer->node, &scope->node);
            }
            if (r < 0 || walk->scope_count == UINT32_MAX) {
                return r < 0 ? r : -EBADMSG;
            }
            scope->number = ++walk->scope_count;
        }
        address->scope = scope->number;
        address->node = scope->node;
    }
    return 0;
}

/* A function that the linker left out still has its entry, at 0, where there never is code.
 * Makes `scope->number` other than 0 if the entry holds wanted addresses. */
static int enter_scope(struct lines_walk *walk, const struct scope *outer, struct scope *scope)
{
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    ptrdiff_t offset = 0;
    scope->node = outer->node;
    while ((offset = dwarf_ranges(&scope->entry, offset, &base, &start, &end)) > 0) {
        if (!pay(walk, 1)) {
            return -EBADMSG;
        }
        if (start == 0) {
            walk->dead_end = end > walk->dead_end ? end : walk->dead_end;
            continue;
        }
        int r = take_addresses(walk, outer, scope, start, end);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* Whether the entry is to be looked into, as `scope` then. Negative: -EBADMSG or -ENOMEM. */
static int consider(struct lines_walk *walk, const struct scope *outer, struct scope *scope)
{
    scope->number = 0;
    switch (scope_kind(dwarf_tag(&scope->entry))) {
    case SCOPE_NONE:
        return 0;
    case SCOPE_TRANSPARENT:
        /* Within a function it has nothing that holds the function's own addresses. */
        scope->node = INTERN_NONE;
        return outer->number == 0;
    case SCOPE_BLOCK:
    case SCOPE_FUNCTION: {
        int r = enter_scope(walk, outer, scope);
        return r < 0 ? r : scope->number != 0;
    }
    }
    return 0;
}

/* Goes on to the entry after `scope` and what is in it: 0, or 1 at the end of its list. */
static int step(struct lines_walk *walk, struct scope *scope)
{
    Dwarf_Die next;
    int r = dwarf_siblingof(&scope->entry, &next);
    if (r != 0) {
        return r > 0 ? 1 : -EBADMSG;
    }
    Dwarf_Off from = dwarf_dieoffset(&scope->entry);
    Dwarf_Off to = dwarf_dieoffset(&next);
    if (to <= from || !pay(walk, to - from)) {
        return -EBADMSG;
    }
    scope->entry = next;
    return 0;
}

int lines_scopes_read(struct lines_walk *walk, Dwarf_Die *unit)
{
    struct scope stack[DEPTH_MAX];
    size_t depth = 1;
    stack[0] = (struct scope){.entry = *unit, .node = INTERN_NONE};
    bool is_wanted = true; /* to look into the entry on top */
    while (depth > 0) {
        struct scope *top = &stack[depth - 1];
        int r = 1;
        if (is_wanted && depth < (top->number == 0 ? DEPTH_OUTSIDE_MAX : DEPTH_MAX)) {
            r = dwarf_child(&top->entry, &stack[depth].entry);
            depth += r == 0;
        }
        while (r > 0 && depth > 1) {
            r = step(walk, &stack[depth - 1]);
            depth -= r > 0;
        }
        if (r != 0) {
            return r < 0 ? -EBADMSG : 0;
        }
        r = consider(walk, &stack[depth - 2], &stack[depth - 1]);
        if (r < 0) {
            return r;
        }
        is_wanted = r > 0;
    }
    return 0;
}
