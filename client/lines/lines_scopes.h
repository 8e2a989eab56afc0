/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The functions of one unit that hold the wanted addresses, inlined ones too: one walk over the
 * unit's tree, in which whatever holds none of them is passed over.
 */

#include "lines_dwarf.h"

#include <dwarf.h>

#include <stdbool.h>

/* A function, inlined or not, that holds an address. */
struct lines_node {
    uint32_t outer; /* the node that it was inlined into, or INTERN_NONE */
    uint32_t name;  /* of `texts` */
    uint32_t call_file;
    uint32_t call_line;
};

struct lines_walk {
    struct lines_address *addresses; /* borrowed; sorted */
    size_t address_count;
    struct intern *texts;     /* borrowed */
    struct lines_node *nodes; /* owned */
    size_t node_capacity;
    size_t node_count;
    uint32_t scope_count;
    uint64_t dead_end;  /* functions that the linker left out pretend to hold [0, dead_end) */
    bool has_files;     /* the unit's table of files may be read, which is part of its lines */
    const char *folder; /* of the unit at hand, borrowed, or NULL */
    uint64_t work_left; /* of what is allowed; about a unit for each byte that is looked at */
};

/* The first address that is not below `vaddr`. */
size_t lines_find_address(const struct lines_walk *walk, uint64_t vaddr);

/*
 * Puts the addresses that a unit holds into the scope and node of its innermost function. Returns
 * 0, -EBADMSG or -ENOMEM as lines_dwarf_read().
 */
int lines_scopes_read(struct lines_walk *walk, Dwarf_Die *unit);

/* The number of a path (borrowed, or NULL), with the unit's folder where it is not absolute;
 * INTERN_NONE for none. Returns 0, or -ENOMEM. */
int lines_add_path(struct lines_walk *walk, const char *path, uint32_t *ret_text);
