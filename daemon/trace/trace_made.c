/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A name in the file holds from its time on until a record says otherwise. So what was sampled
 * since a reading (`pieces`) is compared with the next one: a function that has lost its addresses
 * meanwhile is hidden from the earlier reading on, until the time since which the later one
 * knows the function that is there.
 *
 * A line is of what has been written: a function in its region, a region, a noted address. A
 * process may note many addresses and choose their names, so what a reading brings is gone through
 * in steps. Notes, lines and pieces of all processes are bounded together; what finds no room has
 * no name.
 *
 * A record that hides something is of the kind without which a sample would be misread: where even
 * that finds no room, the sample is dropped.
 */
#include "trace_made.h"

#include "extremes.h"
#include "perf_map.h"
#include "process_table.h"
#include "quota.h"

#include <stdlib.h>
#include <string.h>

#define NOTES_PARTS      4 /* a process has this part of what others leave */
#define UNKNOWN_NAME     "[anon]"
#define CODE_ALIGN_BYTES ((uint64_t)16)

enum line_kind {
    LINE_FUNCTION,
    LINE_REGION,
    LINE_ADDRESS,
    LINE_CLOSED,
};

struct made_note {
    uint64_t address;
    uint64_t line; /* the hash of its line */
    struct shown_mapping region;
};

/* What a claim has of a region. */
struct made_piece {
    uint64_t start;
    uint32_t size_bytes;
    uint32_t claim;
    uint64_t since_ns; /* this function's */
    bool is_carried;   /* it was compared with one reading already */
    struct shown_mapping region;
};

struct made_late {
    uint64_t address;
    uint64_t time_ns; /* of the sample */
    struct shown_mapping region;
};

/* What is taken of the notes of all processes. */
static size_t taken_notes(const struct made_code *code)
{
    return code->note_count + code->lines.count + code->piece_count + code->doubt_count;
}

void made_done(struct made_shared *shared, struct made_code *code)
{
    shared->note_count -= taken_notes(code);
    shared->late_count -= code->late_count;
    jit_map_done(&code->map);
    free(code->notes);
    made_lines_done(&code->lines);
    free(code->pieces);
    free(code->doubts);
    free(code->late);
    *code = (struct made_code){0};
}

bool made_may_note(const struct made_shared *shared, size_t own_count)
{
    return quota_rule_allows(MADE_NOTES_MAX, NOTES_PARTS, shared->note_count, own_count, 1);
}

bool made_may_wait(const struct made_shared *shared, size_t own_count)
{
    return quota_rule_allows(MADE_NOTES_MAX, (uint64_t)2 * NOTES_PARTS, shared->note_count,
                             own_count, 1);
}

static bool may_note(const struct made_shared *shared, const struct made_code *code)
{
    return made_may_note(shared, taken_notes(code));
}

/* What is said of something in a region, in this epoch. */
static uint64_t hash_line(const struct made_code *code, enum line_kind kind, uint64_t a, uint64_t b,
                          const struct shown_mapping *region)
{
    const uint64_t about[] = {a, b, code->map.epoch};
    return made_lines_hash((uint64_t)kind, about, region);
}

/* The place of a line; NULL: it is not there, and there is no room for it. */
static struct made_line *place_line(const struct made_shared *shared, struct made_code *code,
                                    uint64_t hash)
{
    return made_lines_place(&code->lines, hash, may_note(shared, code));
}

static void add_line(struct made_shared *shared, struct made_code *code, struct made_line *line,
                     uint64_t hash)
{
    made_lines_add(&code->lines, line, hash);
    shared->note_count++;
}

/* Says that from a time on a part of a region is what `name` has at `vaddr`. False: refused. */
static bool show(struct made_shared *shared, const struct made_code *code,
                 const struct made_piece *piece, uint64_t from_ns, uint64_t vaddr, const char *name)
{
    struct shown_mapping shown = piece->region;
    shown.start = piece->start;
    shown.size_bytes = piece->size_bytes;
    shown.from_ns = from_ns > piece->region.from_ns ? from_ns : piece->region.from_ns;
    return trace_definition_write(
        shared->log, &shown,
        &(struct definition){
            .owner = code->owner, .kind = DEFINITION_TASK, .vaddr = vaddr, .name = name});
}

/* Writes that its owner is unknown from that time on. False: refused. */
static bool hide(struct made_shared *shared, const struct made_code *code,
                 const struct made_piece *piece, uint64_t from_ns)
{
    return show(shared, code, piece, from_ns, piece->start, UNKNOWN_NAME);
}

static bool hide_address(struct made_shared *shared, const struct made_code *code,
                         const struct shown_mapping *region, uint64_t address, uint64_t time_ns)
{
    const struct made_piece piece = {.start = address, .size_bytes = 1, .region = *region};
    return hide(shared, code, &piece, time_ns);
}

/* Since when all of a region is one module, whatever functions it has: in the first epoch the
 * process's own, later one without names. */
static uint64_t region_since(const struct made_code *code, const struct shown_mapping *region)
{
    const struct jit_map *map = &code->map;
    uint64_t since_ns = map->epoch == 1 ? map->epoch_ns : map->lost_ns;
    return since_ns > region->from_ns ? since_ns : region->from_ns;
}

static bool show_region(struct made_shared *shared, const struct made_code *code,
                        const struct shown_mapping *region)
{
    struct shown_mapping shown = *region;
    bool is_first = code->map.epoch == 1;
    shown.from_ns = region_since(code, region);
    bool written = trace_definition_write(
        shared->log, &shown,
        &(struct definition){.owner = code->owner,
                             .kind = is_first ? DEFINITION_MAPPING : DEFINITION_TASK,
                             .vaddr = region->start,
                             .name = is_first ? code->name : UNKNOWN_NAME});
    return written || is_first; /* unnamed is not misread */
}

/* The same, once; the region is known to be there at `time_ns`. False: no room. */
static bool define_region(struct made_shared *shared, struct made_code *code,
                          const struct shown_mapping *region, uint64_t time_ns)
{
    if (time_ns < region_since(code, region)) {
        return true; /* it may be gone by then */
    }
    uint64_t hash = hash_line(code, LINE_REGION, 0, 0, region);
    struct made_line *line = place_line(shared, code, hash);
    if (line != NULL && line->hash == hash) {
        return true;
    }
    if (!show_region(shared, code, region)) {
        return false;
    }
    if (line != NULL) {
        add_line(shared, code, line, hash);
    }
    return true;
}

bool made_define(struct made_shared *shared, struct made_code *code,
                 const struct shown_mapping *region, uint64_t vaddr, const char *name)
{
    bool is_made = code->map.epoch == 1 && code->map.epoch_ns <= region->from_ns;
    const struct definition definition = {
        .owner = code->owner,
        .kind = DEFINITION_MAPPING,
        .vaddr = is_made ? region->start : vaddr,
        .name = is_made ? code->name : name,
    };
    if (!trace_definition_write(shared->log, region, &definition)) {
        return false;
    }
    uint64_t hash = hash_line(code, LINE_REGION, 0, 0, region);
    struct made_line *line = is_made ? place_line(shared, code, hash) : NULL;
    if (line != NULL && line->hash == 0) {
        add_line(shared, code, line, hash);
    }
    return true;
}

static void note_address(struct made_shared *shared, struct made_code *code,
                         const struct shown_mapping *region, uint64_t address, uint64_t time_ns)
{
    uint64_t hash = hash_line(code, LINE_ADDRESS, address, 0, region);
    struct made_line *line = place_line(shared, code, hash);
    if (line == NULL) {
        return;
    }
    line->sampled = max_u64(line->sampled, time_ns);
    if (line->hash == hash) {
        return;
    }
    add_line(shared, code, line, hash);
    if (may_note(shared, code) &&
        trace_notes_grow((void **)&code->notes, &code->note_capacity, code->note_count,
                         MADE_NOTES_MAX, sizeof *code->notes)) {
        code->notes[code->note_count++] =
            (struct made_note){.address = address, .line = hash, .region = *region};
        shared->note_count++;
    }
}

static uint32_t claim_of(const struct symbol_table *table, size_t index)
{
    return table->claims == NULL ? 0 : table->claims[index];
}

/* The part of a symbol that lies in a region. */
static struct made_piece piece_of(const struct made_code *code, size_t index,
                                  const struct shown_mapping *region)
{
    const struct symbol_table *table = jit_map_table(&code->map);
    const struct symbol *symbol = &table->symbols[index];
    uint64_t end = symbol->start + symbol->size_bytes;
    uint64_t start = symbol->start > region->start ? symbol->start : region->start;
    end = end < region->start + region->size_bytes ? end : region->start + region->size_bytes;
    uint32_t claim = claim_of(table, index);
    return (struct made_piece){
        .start = start,
        .size_bytes = (uint32_t)(end - start),
        .claim = claim,
        .since_ns = jit_map_since(&code->map, claim),
        .region = *region,
    };
}

/* Whether a function has its own addresses in the module: nothing else is known to have had them.
 */
static bool is_in_place(const struct made_code *code, const struct made_piece *piece)
{
    return code->map.epoch == 1 && jit_map_is_first(&code->map, piece->claim);
}

/* Writes a function, and since when it is there. False: no room. */
static bool write_function(struct made_shared *shared, struct made_code *code, size_t index,
                           const struct made_piece *piece)
{
    const struct symbol_table *table = jit_map_table(&code->map);
    struct symbol symbol = table->symbols[index];
    bool in_place = is_in_place(code, piece);
    if (!in_place) {
        symbol.start = code->next_vaddr;
        symbol.size_bytes = piece->size_bytes;
    }
    if (!trace_symbols_write_made(shared->symbols, code->name, code->owner, &symbol,
                                  symbol_table_name(table, index))) {
        return false;
    }
    if (in_place) {
        return true;
    }
    code->next_vaddr +=
        (piece->size_bytes + CODE_ALIGN_BYTES - 1) / CODE_ALIGN_BYTES * CODE_ALIGN_BYTES;
    return show(shared, code, piece, piece->since_ns, symbol.start, code->name);
}

static bool add_piece(struct made_shared *shared, struct made_code *code,
                      const struct made_piece *piece)
{
    if (!may_note(shared, code) ||
        !trace_notes_grow((void **)&code->pieces, &code->piece_capacity, code->piece_count,
                          MADE_NOTES_MAX, sizeof *code->pieces)) {
        return false;
    }
    code->pieces[code->piece_count++] = *piece;
    shared->note_count++;
    return true;
}

/* Has a function compared with the next reading. False: there is no room for that. */
static bool remember_piece(struct made_shared *shared, struct made_code *code,
                           struct made_line *line, const struct made_piece *piece)
{
    uint64_t sampled = hash_line(code, LINE_FUNCTION, code->window, 0, &piece->region);
    if (line->sampled == sampled) {
        return true;
    }
    if (!add_piece(shared, code, piece)) {
        return false;
    }
    line->sampled = sampled;
    return true;
}

/* Names a function that was sampled at a time at which it is known to be there. False: no room. */
static bool name_function(struct made_shared *shared, struct made_code *code, size_t index,
                          const struct shown_mapping *region, uint64_t address, uint64_t time_ns)
{
    const struct made_piece piece = piece_of(code, index, region);
    bool in_place = is_in_place(code, &piece);
    uint64_t hash =
        hash_line(code, LINE_FUNCTION, piece.claim & ~PERF_MAP_CLAIM_SHARED,
                  jit_map_table(&code->map)->symbols[index].start, in_place ? NULL : region);
    struct made_line *line = place_line(shared, code, hash);
    if (line == NULL) {
        return hide_address(shared, code, region, address, time_ns);
    }
    if (line->hash != hash) {
        if (!write_function(shared, code, index, &piece)) {
            return false;
        }
        add_line(shared, code, line, hash);
        code->news_count++;
    }
    /* Of what was sampled before the reading began, all is known. */
    return time_ns < code->map.confirmed_ns || remember_piece(shared, code, line, &piece) ||
           hide_address(shared, code, region, address, time_ns);
}

bool made_postpone(struct made_shared *shared, struct made_code *code,
                   const struct shown_mapping *region, uint64_t address, uint64_t time_ns,
                   uint64_t *ret_from_ns)
{
    const struct jit_map *map = &code->map;
    uint64_t known_ns = max_u64(map->confirmed_ns, jit_map_latest(map));
    *ret_from_ns = time_ns < known_ns ? TIME_OPEN_NS : max_u64(region->from_ns, known_ns);
    if (!quota_rule_allows(MADE_LATE_MAX, NOTES_PARTS, shared->late_count, code->late_count, 1) ||
        !trace_notes_grow((void **)&code->late, &code->late_capacity, code->late_count,
                          MADE_LATE_MAX, sizeof *code->late)) {
        if (map->epoch == 0) {
            return true; /* it has no name that could be another's */
        }
        definition_log_refuse(shared->log, DEFINITION_TASK);
        return false;
    }
    code->late[code->late_count++] =
        (struct made_late){.address = address, .time_ns = time_ns, .region = *region};
    shared->late_count++;
    return true;
}

bool made_name(struct made_shared *shared, struct made_code *code,
               const struct shown_mapping *region, uint64_t address, uint64_t time_ns,
               uint64_t *ret_from_ns)
{
    const struct jit_map *map = &code->map;
    *ret_from_ns = region->from_ns;
    if (map->epoch == 0) {
        note_address(shared, code, region, address, time_ns);
        return true;
    }
    if (time_ns < map->confirmed_ns) {
        *ret_from_ns = TIME_OPEN_NS; /* a later one is to be compared with the next reading */
    }
    if (!define_region(shared, code, region, time_ns)) {
        return false;
    }
    const struct symbol_table *table = jit_map_table(map);
    ptrdiff_t found = symbol_table_find(table, address);
    if (found < 0) {
        note_address(shared, code, region, address, time_ns);
        return true;
    }
    uint32_t claim = claim_of(table, (size_t)found);
    uint64_t since_ns = jit_map_since(map, claim);
    if (time_ns < since_ns) {
        *ret_from_ns = TIME_OPEN_NS;
        bool is_hidden = map->epoch == 1 && jit_map_is_first(map, claim);
        return is_hidden || hide_address(shared, code, region, address, time_ns);
    }
    if (*ret_from_ns < since_ns) {
        *ret_from_ns = since_ns;
    }
    return name_function(shared, code, (size_t)found, region, address, time_ns);
}

bool made_take(struct made_shared *shared, struct made_code *code, struct module_ticket *ticket,
               uint64_t begin_ns, uint64_t end_ns, bool is_last)
{
    uint64_t proved_ns = code->map.confirmed_ns;
    enum jit_map_news news = jit_map_take(&code->map, ticket, begin_ns, end_ns, &shared->clock);
    code->news_count = 0;
    if (news == JIT_MAP_SAME) {
        if (is_last) {
            shared->note_count -= code->piece_count;
            code->piece_count = 0;
            code->window++;
        }
        return is_last;
    }
    code->is_last = is_last;
    /* What was sampled until now, against what is there now. Settled: there are no doubts left. */
    struct made_piece *pieces = code->doubts;
    size_t capacity = code->doubt_capacity;
    code->doubts = code->pieces;
    code->doubt_count = code->piece_count;
    code->doubt_capacity = code->piece_capacity;
    code->doubt_ns = proved_ns;
    code->doubts_are_all = news == JIT_MAP_ANEW;
    code->pieces = pieces;
    code->piece_count = 0;
    code->piece_capacity = capacity;
    code->window++;
    code->unsettled_count = code->note_count;
    return true;
}

/* Whether the last reading says that all of a piece is still the same line's. */
static bool is_confirmed(const struct made_code *code, const struct made_piece *piece)
{
    const struct symbol_table *table = jit_map_table(&code->map);
    ptrdiff_t found = code->doubts_are_all ? -1 : symbol_table_find(table, piece->start);
    if (found < 0) {
        return false;
    }
    const struct symbol *symbol = &table->symbols[found];
    uint32_t claim = claim_of(table, (size_t)found);
    return ((claim ^ piece->claim) & ~PERF_MAP_CLAIM_SHARED) == 0 &&
           piece->start - symbol->start + piece->size_bytes <= symbol->size_bytes;
}

/* A piece that was sampled between the beginning of the reading and its end is to be compared with
 * the next one, too. False: there is no room for that. */
static bool carry_piece(struct made_shared *shared, struct made_code *code,
                        const struct made_piece *piece)
{
    if (code->is_last || piece->is_carried) {
        return true;
    }
    if (!add_piece(shared, code, piece)) {
        return false;
    }
    code->pieces[code->piece_count - 1].is_carried = true;
    return true;
}

static bool settle_doubt(struct made_shared *shared, struct made_code *code)
{
    const struct made_piece piece = code->doubts[code->doubt_count - 1];
    bool is_kept = is_confirmed(code, &piece) && carry_piece(shared, code, &piece);
    if (!is_kept) {
        uint64_t from_ns = code->doubt_ns > piece.since_ns ? code->doubt_ns : piece.since_ns;
        if (!hide(shared, code, &piece, from_ns)) {
            return false;
        }
        code->news_count++;
    }
    code->doubt_count--;
    shared->note_count--;
    return true;
}

/* Looks for the last of the addresses that the reading was not searched for yet; one that is found
 * is noted no longer. Its last sample counts: the reading may begin to be true after the first. */
static bool settle_note(struct made_shared *shared, struct made_code *code)
{
    struct made_note note = code->notes[code->unsettled_count - 1];
    const struct symbol_table *table = jit_map_table(&code->map);
    ptrdiff_t found = symbol_table_find(table, note.address);
    uint64_t time_ns = made_lines_find(&code->lines, note.line)->sampled;
    if (!define_region(shared, code, &note.region, time_ns)) {
        return false;
    }
    if (found >= 0) {
        uint32_t claim = claim_of(table, (size_t)found);
        bool is_known = time_ns >= jit_map_since(&code->map, claim);
        if (is_known &&
            !name_function(shared, code, (size_t)found, &note.region, note.address, time_ns)) {
            return false;
        }
    }
    code->unsettled_count--;
    if (found >= 0) {
        code->notes[code->unsettled_count] = code->notes[--code->note_count];
        shared->note_count--;
    }
    return true;
}

static bool settle_late(struct made_shared *shared, struct made_code *code)
{
    const struct made_late *late = &code->late[code->late_count - 1];
    uint64_t from_ns = 0;
    if (!made_name(shared, code, &late->region, late->address, late->time_ns, &from_ns)) {
        return false;
    }
    code->late_count--;
    shared->late_count--;
    return true;
}

bool made_settle(struct made_shared *shared, struct made_code *code)
{
    if (code->doubt_count > 0) {
        return settle_doubt(shared, code);
    }
    if (code->unsettled_count > 0) {
        return settle_note(shared, code);
    }
    return code->late_count == 0 || settle_late(shared, code);
}

bool made_is_settled(const struct made_code *code)
{
    return code->doubt_count == 0 && code->unsettled_count == 0 && code->late_count == 0;
}

bool made_wants(const struct made_code *code)
{
    return code->note_count > 0 || code->piece_count > 0 || code->late_count > 0;
}

bool made_is_proved(const struct made_code *code, uint64_t time_ns)
{
    return made_is_settled(code) && (code->piece_count == 0 || code->map.confirmed_ns >= time_ns);
}

/* A whole region, once: there is little room in a log that ends. */
static void close_region(struct made_shared *shared, struct made_code *code,
                         const struct shown_mapping *region, uint64_t from_ns)
{
    struct shown_mapping hidden = *region;
    uint64_t hash = hash_line(code, LINE_CLOSED, from_ns, 0, region);
    struct made_line *line = place_line(shared, code, hash);
    if (line != NULL && line->hash == hash) {
        return;
    }
    hidden.from_ns = from_ns > region->from_ns ? from_ns : region->from_ns;
    const struct definition definition = {.owner = code->owner,
                                          .kind = DEFINITION_TASK,
                                          .vaddr = region->start,
                                          .name = UNKNOWN_NAME};
    (void)trace_definition_write(shared->log, &hidden, &definition);
    if (line != NULL) {
        add_line(shared, code, line, hash);
    }
}

/* The same from `from_ns` on, whatever was shown of it from a later time on. */
static void close_since(struct made_shared *shared, struct made_code *code,
                        const struct shown_mapping *region, uint64_t from_ns)
{
    uint64_t latest_ns = jit_map_latest(&code->map);
    close_region(shared, code, region, from_ns);
    if (latest_ns > from_ns) {
        close_region(shared, code, region, latest_ns);
    }
}

static void close_pieces(struct made_shared *shared, struct made_code *code,
                         const struct made_piece *pieces, size_t count, uint64_t from_ns)
{
    for (size_t i = 0; i < count; i++) {
        close_since(shared, code, &pieces[i].region, from_ns);
    }
}

/* What was not looked up has no name, nor what was sampled after the first of it. Without a map
 * nothing has a name. */
static void close_late(struct made_shared *shared, struct made_code *code)
{
    uint64_t from_ns = code->map.confirmed_ns;
    for (size_t i = 0; i < code->late_count; i++) {
        from_ns = min_u64(from_ns, code->late[i].time_ns);
    }
    for (size_t i = 0; i < code->late_count && code->map.epoch != 0; i++) {
        close_since(shared, code, &code->late[i].region, from_ns);
    }
    shared->late_count -= code->late_count;
    code->late_count = 0;
}

void made_close(struct made_shared *shared, struct made_code *code)
{
    close_pieces(shared, code, code->doubts, code->doubt_count, code->doubt_ns);
    close_pieces(shared, code, code->pieces, code->piece_count, code->map.confirmed_ns);
    shared->note_count -= code->doubt_count + code->piece_count;
    code->doubt_count = code->piece_count = 0;
    close_late(shared, code);
    code->window++;
}
