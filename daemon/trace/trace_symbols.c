/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Collects `cpu-profilerd.symbols` lines into Data blobs of whole lines. A line is
 *     {"build_id":"...","module":"...","start":"0x...","size":N,"name":"..."}
 * with addresses as the module itself counts them: texts, since many JSON readers know only
 * doubles. A function is marked as written when its line is in the staging area, which is never
 * thrown away: what cannot be published yet waits there.
 */
#include "trace_symbols.h"

#include "capacity.h"
#include "cleanup.h"
#include "fxt_writer.h"
#include "quota.h"
#include "seeded_hash.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SCOPES_MAX           16384
#define SCOPE_PARTS          2 /* an account has this part of what others leave */
#define SCOPE_BUCKETS        CAPACITY(1024)
#define BY_INODE             " (inode "
#define ESCAPED_NAME_BYTES   ((size_t)4097) /* a name in a line is cut here */
#define ESCAPED_MODULE_BYTES ((size_t)MODULE_NAME_BYTES * 6)
#define LINE_BYTES_MAX       (ESCAPED_NAME_BYTES + ESCAPED_MODULE_BYTES + 512)

struct trace_symbols {
    struct definition_log *log;
    struct symbol_scope *buckets[SCOPE_BUCKETS];       /* by wanted name */
    struct symbol_scope *named_buckets[SCOPE_BUCKETS]; /* by the name they have */
    struct quota scopes;                               /* by owner */
    size_t staged_bytes;
    char staging[FXT_DATA_BYTES_MAX];
    char line[LINE_BYTES_MAX];
    uint64_t group[FXT_DATA_BYTES_MAX / sizeof(uint64_t) + 8];
};

/* A function, and what its module is called in the file. */
struct named_function {
    const struct symbol *symbol;
    const char *name;
    const char *module;
    const uint8_t *build_id;
    size_t build_id_bytes;
    uint32_t owner; /* the account that pays for its line */
};

struct trace_symbols *trace_symbols_new(struct definition_log *log)
{
    struct trace_symbols *symbols = calloc(1, sizeof *symbols);
    if (symbols != NULL) {
        symbols->log = log;
        symbols->scopes.max = SCOPES_MAX;
        symbols->scopes.parts = SCOPE_PARTS;
    }
    return symbols;
}

static struct symbol_scope *free_scope(struct symbol_scope *scope)
{
    module_ticket_release(scope->ticket);
    free(scope->written);
    free(scope);
    return NULL;
}

struct trace_symbols *trace_symbols_free(struct trace_symbols *symbols)
{
    if (symbols == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < SCOPE_BUCKETS; i++) {
        while (symbols->buckets[i] != NULL) {
            struct symbol_scope *scope = symbols->buckets[i];
            symbols->buckets[i] = scope->next;
            (void)free_scope(scope);
        }
    }
    free(symbols);
    return NULL;
}

static size_t hash_name(const char *name)
{
    return seeded_hash(name, strlen(name)) % SCOPE_BUCKETS;
}

static bool same_build_id(const struct symbol_scope *scope, const uint8_t *build_id, size_t bytes)
{
    return scope->build_id_bytes == bytes && memcmp(scope->build_id, build_id, bytes) == 0;
}

static size_t hash_file(const struct file_identity *identity)
{
    return seeded_hash(&identity->inode, sizeof identity->inode) % SCOPE_BUCKETS;
}

/* The scope with this build-id that stands under this name already; NULL: none. */
static struct symbol_scope *find_named(const struct trace_symbols *symbols,
                                       const struct symbol_scope *wanted)
{
    struct symbol_scope *other = symbols->named_buckets[hash_name(wanted->name)];
    while (other != NULL && (strcmp(other->name, wanted->name) != 0 ||
                             !same_build_id(other, wanted->build_id, wanted->build_id_bytes))) {
        other = other->next_named;
    }
    return other;
}

/* Chooses the scope's name: as wanted, or numbered when another file with its build-id has it. The
 * scope that has the name knows how far the numbers have gone: thousands of copies of a file are
 * numbered in as many steps. */
static void choose_name(const struct trace_symbols *symbols, struct symbol_scope *scope)
{
    memcpy(scope->name, scope->wanted_name, sizeof scope->name);
    struct symbol_scope *first = find_named(symbols, scope);
    while (find_named(symbols, scope) != NULL) {
        first->number++;
        (void)snprintf(scope->name, sizeof scope->name, "%.240s (%u)", scope->wanted_name,
                       first->number + 1);
    }
}

static struct symbol_scope *new_scope(const struct module *module, const char *name,
                                      const uint8_t *build_id, size_t build_id_bytes)
{
    struct symbol_scope *scope = calloc(1, sizeof *scope);
    if (scope == NULL) {
        return NULL;
    }
    scope->identity = module->identity;
    scope->symbol_count = module->symbols.symbol_count;
    (void)snprintf(scope->wanted_name, sizeof scope->wanted_name, "%s", name);
    scope->build_id_bytes =
        build_id_bytes < sizeof scope->build_id ? build_id_bytes : sizeof scope->build_id;
    memcpy(scope->build_id, build_id, scope->build_id_bytes);
    scope->written = calloc(module->symbols.symbol_count / 64 + 1, sizeof *scope->written);
    if (scope->written == NULL) {
        free(scope);
        return NULL;
    }
    return scope;
}

static void enter(struct symbol_scope *scope, struct module_ticket *ticket)
{
    if (scope->user_count++ > 0) {
        module_ticket_release(ticket);
        return;
    }
    scope->ticket = ticket;
    scope->module = module_ticket_module(ticket);
}

void trace_symbols_leave(struct symbol_scope *scope)
{
    if (--scope->user_count == 0) {
        scope->module = NULL;
        module_ticket_release(take_ptr(scope->ticket));
    }
}

struct symbol_scope *trace_symbols_scope(struct trace_symbols *symbols,
                                         struct module_ticket *ticket, uint32_t owner,
                                         const char *name, const uint8_t *build_id,
                                         size_t build_id_bytes)
{
    const struct module *module = module_ticket_module(ticket);
    struct symbol_scope **bucket = &symbols->buckets[hash_file(&module->identity)];
    for (struct symbol_scope *scope = *bucket; scope != NULL; scope = scope->next) {
        if (file_identity_equal(&scope->identity, &module->identity) &&
            scope->symbol_count == module->symbols.symbol_count &&
            strcmp(scope->wanted_name, name) == 0) {
            enter(scope, ticket);
            return scope;
        }
    }
    struct symbol_scope *scope = NULL;
    if (quota_take(&symbols->scopes, owner, 1)) {
        scope = new_scope(module, name, build_id, build_id_bytes);
        if (scope == NULL) {
            quota_give(&symbols->scopes, owner, 1);
        }
    }
    if (scope == NULL) {
        module_ticket_release(ticket);
        return NULL;
    }
    scope->owner = owner;
    enter(scope, ticket);
    choose_name(symbols, scope);
    scope->next = *bucket;
    *bucket = scope;
    struct symbol_scope **named = &symbols->named_buckets[hash_name(scope->name)];
    scope->next_named = *named;
    *named = scope;
    return scope;
}

/* Frees the unused scopes of a bucket; the others have no symbol written. */
static void begin_bucket(struct trace_symbols *symbols, struct symbol_scope **link)
{
    while (*link != NULL) {
        struct symbol_scope *scope = *link;
        if (scope->user_count == 0) {
            *link = scope->next;
            quota_give(&symbols->scopes, scope->owner, 1);
            (void)free_scope(scope);
            continue;
        }
        struct symbol_scope **named = &symbols->named_buckets[hash_name(scope->name)];
        scope->next_named = *named;
        *named = scope;
        memset(scope->written, 0, (scope->symbol_count / 64 + 1) * sizeof *scope->written);
        link = &scope->next;
    }
}

void trace_symbols_begin(struct trace_symbols *symbols)
{
    memset(symbols->named_buckets, 0, sizeof symbols->named_buckets);
    for (size_t i = 0; i < SCOPE_BUCKETS; i++) {
        begin_bucket(symbols, &symbols->buckets[i]);
    }
}

void trace_symbols_name_by_path(char *ret, size_t capacity, const char *path)
{
    (void)utf8_clean(ret, capacity, path, strlen(path));
    for (char *at = strstr(ret, BY_INODE); at != NULL; at = strstr(at, BY_INODE)) {
        at[1] = '[';
    }
}

void trace_symbols_name_by_inode(char ret[MODULE_NAME_BYTES], const char *name,
                                 const struct module *module)
{
    (void)snprintf(ret, MODULE_NAME_BYTES, "%.180s" BY_INODE "%" PRIx64 ":%" PRIu64 ")", name,
                   module->identity.device, module->identity.inode);
}

bool trace_symbols_flush(struct trace_symbols *symbols)
{
    struct fxt_writer writer;
    if (symbols->staged_bytes == 0) {
        return true;
    }
    fxt_writer_init(&writer, symbols->group, sizeof symbols->group);
    fxt_write_data(&writer, FXT_STRING_SYMBOLS, symbols->staging, symbols->staged_bytes);
    if (!fxt_writer_ok(&writer) ||
        !definition_log_put_paid(symbols->log, symbols->group, writer.used_bytes)) {
        return false;
    }
    symbols->staged_bytes = 0;
    return true;
}

/* Prints the line of one function into symbols->line. Returns its bytes. */
static size_t print_line(struct trace_symbols *symbols, const struct named_function *named)
{
    char build_id[SYMBOL_BUILD_ID_BYTES_MAX * 2 + 1] = "";
    char module[ESCAPED_MODULE_BYTES];
    char function[ESCAPED_NAME_BYTES];

    for (size_t i = 0; i < named->build_id_bytes; i++) {
        (void)snprintf(build_id + 2 * i, 3, "%02x", named->build_id[i]);
    }
    (void)utf8_json(module, sizeof module, named->module, strlen(named->module));
    (void)utf8_json(function, sizeof function, named->name, strlen(named->name));
    int bytes =
        snprintf(symbols->line, sizeof symbols->line,
                 "{\"build_id\":\"%s\",\"module\":\"%s\",\"start\":\"0x%" PRIx64
                 "\",\"size\":%" PRIu32 ",\"name\":\"%s\"}\n",
                 build_id, module, named->symbol->start, named->symbol->size_bytes, function);
    return (size_t)bytes;
}

enum staging {
    STAGING_DONE,
    STAGING_NO_ROOM, /* now */
    STAGING_REFUSED, /* to this owner, in this log */
};

/* Stages the line of one function. */
static enum staging stage(struct trace_symbols *symbols, const struct named_function *named)
{
    /* A long name takes long to print, so it is not printed for an account without room for it. */
    size_t least_bytes = strnlen(named->name, ESCAPED_NAME_BYTES - 1);
    if (!definition_log_may_pay(symbols->log, named->owner, DEFINITION_NAME, least_bytes)) {
        return STAGING_REFUSED;
    }
    size_t bytes = print_line(symbols, named);
    if (sizeof symbols->staging - symbols->staged_bytes < bytes && !trace_symbols_flush(symbols)) {
        return STAGING_NO_ROOM;
    }
    if (!definition_log_pay(symbols->log, named->owner, DEFINITION_NAME, bytes)) {
        return STAGING_REFUSED;
    }
    memcpy(symbols->staging + symbols->staged_bytes, symbols->line, bytes);
    symbols->staged_bytes += bytes;
    return STAGING_DONE;
}

bool trace_symbols_write(struct trace_symbols *symbols, struct symbol_scope *scope, uint32_t owner,
                         uint64_t vaddr)
{
    ptrdiff_t found = symbol_table_find(&scope->module->symbols, vaddr);
    if (found < 0) {
        return true;
    }
    size_t index = (size_t)found;
    uint64_t bit = UINT64_C(1) << (index % 64);
    if ((scope->written[index / 64] & bit) != 0) {
        return true;
    }
    const struct named_function named = {
        .symbol = &scope->module->symbols.symbols[index],
        .name = symbol_table_name(&scope->module->symbols, index),
        .module = scope->name,
        .build_id = scope->build_id,
        .build_id_bytes = scope->build_id_bytes,
        .owner = owner,
    };
    enum staging staging = stage(symbols, &named);
    if (staging == STAGING_DONE) {
        scope->written[index / 64] |= bit;
    }
    return staging != STAGING_NO_ROOM;
}

bool trace_symbols_write_made(struct trace_symbols *symbols, const char *module, uint32_t owner,
                              const struct symbol *symbol, const char *name)
{
    const struct named_function named = {
        .symbol = symbol, .name = name, .module = module, .owner = owner};
    return stage(symbols, &named) != STAGING_NO_ROOM;
}
