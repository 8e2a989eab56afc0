/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Function names on their way into the file: each once in a log for each module name that it is
 * known by. A scope is one file (by identity) under one module name; no two files of a log share a
 * (build-id, module name), so that a file with another's build-id and path names only its own
 * frames.
 */

#include "definition_log.h"
#include "module_cache.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULE_NAME_BYTES 256 /* with its NUL: what a Module record can hold */

struct trace_symbols;

struct symbol_scope {
    struct symbol_scope *next;       /* of one inode's bucket */
    struct symbol_scope *next_named; /* of one name's bucket */
    struct file_identity identity;
    size_t user_count;
    struct module_ticket *ticket;        /* owned while there are users: keeps `module` alive */
    const struct module *module;         /* NULL while there are none */
    char wanted_name[MODULE_NAME_BYTES]; /* the module name asked for */
    char name[MODULE_NAME_BYTES]; /* the one it has: with " (2)" where another file came first */
    uint8_t build_id[SYMBOL_BUILD_ID_BYTES_MAX];
    size_t build_id_bytes;
    unsigned number; /* the last that was given to another of its name and build-id */
    uint32_t owner;  /* the account that pays for it */
    size_t symbol_count;
    uint64_t *written; /* owned: a bit for each symbol of the table */
};

/* Returned; NULL when there is no memory. `log` is borrowed. */
struct trace_symbols *trace_symbols_new(struct definition_log *log);
struct trace_symbols *trace_symbols_free(struct trace_symbols *symbols);

/* The name of a path, as valid text. What a name by inode has behind its path is changed in it, so
 * that no file can be called like another one. */
void trace_symbols_name_by_path(char *ret, size_t capacity, const char *path);

/*
 * A definition whose file was never read stands under its path and no build-id. So that no other
 * file's functions can be taken for that one's, a file that has no build-id is known by its inode
 * instead.
 */
void trace_symbols_name_by_inode(char ret[MODULE_NAME_BYTES], const char *name,
                                 const struct module *module);

/*
 * The scope of a ready ticket's module (the ticket is taken, whatever the outcome) under `name`,
 * with one more user that trace_symbols_leave() takes away again; a new one counts for `owner`.
 * NULL for now, when there is no memory or the owner has its share; borrowed.
 */
struct symbol_scope *trace_symbols_scope(struct trace_symbols *symbols,
                                         struct module_ticket *ticket, uint32_t owner,
                                         const char *name, const uint8_t *build_id,
                                         size_t build_id_bytes);

/* The last user's leaving lets go of the module; what has been written of it stays known until the
 * next log begins. */
void trace_symbols_leave(struct symbol_scope *scope);

/*
 * Writes the name of the function at `vaddr` of the module, if it has one, it is not written yet,
 * and `owner` has room for it. Returns false when there is no room now: try again.
 */
bool trace_symbols_write(struct trace_symbols *symbols, struct symbol_scope *scope, uint32_t owner,
                         uint64_t vaddr);

/*
 * Writes a function of code that was made while it ran, of a module without a build-id: the place
 * of `symbol`, and `name` (both borrowed). Each call writes it. As trace_symbols_write().
 */
bool trace_symbols_write_made(struct trace_symbols *symbols, const char *module, uint32_t owner,
                              const struct symbol *symbol, const char *name);

/* A log begins, in which nothing is written yet. Lines that were not published go there. */
void trace_symbols_begin(struct trace_symbols *symbols);

/* Publishes the lines that were written. False when there is no room now. */
bool trace_symbols_flush(struct trace_symbols *symbols);
