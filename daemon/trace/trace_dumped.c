/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A jitdump says from when until when a function had its addresses. So the span in which a sample
 * fell is shown from the time on at which it began, whenever that becomes known: in the file a
 * later time goes before an earlier one, and no two spans of one reading overlap.
 *
 * A reading knows nothing of what comes after it. What was sampled since (`notes`) is looked up in
 * the next one, and of what was shown without an end (`pieces`), the part that has ended is hidden
 * from its end on, unless what came after it is shown already. A runtime may keep records to itself
 * for a while; so pieces are compared for as long as the log lasts.
 *
 * Both are gone through in steps, and bounded together with those of trace_made.c.
 */
#include "trace_dumped.h"

#include "clock.h"
#include "process_table.h"
#include "seeded_hash.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN_NAME "[anon]"
#define BUCKET_SHIFT 24 /* samples of one address and 17 ms are one note */

enum line_kind {
    LINE_SPAN,
    LINE_FUNCTION,
    LINE_CLOSED,
};

struct dumped_note {
    uint64_t address;
    uint64_t first_ns;
    uint64_t last_ns;
    struct shown_mapping region;
};

struct dumped_piece {
    uint64_t start;
    uint64_t end;
    uint64_t from_ns; /* of the file, as it begins there */
    uint64_t vaddr;   /* of start */
    struct shown_mapping region;
};

struct dumped_code *dumped_new(const struct module_query *query, uint32_t owner, const char *name)
{
    struct dumped_code *code = calloc(1, sizeof *code);
    char *path = code == NULL ? NULL : strdup(query->path);
    if (path == NULL) {
        free(code);
        return NULL;
    }
    code->query = *query;
    code->query.path = path;
    code->owner = owner;
    memcpy(code->name, name, strnlen(name, sizeof code->name - 1));
    return code;
}

struct dumped_code *dumped_free(struct made_shared *shared, struct dumped_code *code)
{
    if (code != NULL) {
        shared->note_count -= code->note_count + code->lines.count + code->piece_count;
        module_ticket_release(code->ready);
        free((void *)(uintptr_t)code->query.path);
        made_lines_done(&code->lines);
        free(code->notes);
        free(code->pieces);
        free(code);
    }
    return NULL;
}

static bool may_note(const struct made_shared *shared, const struct dumped_code *code)
{
    return made_may_note(shared, code->note_count + code->lines.count + code->piece_count);
}

static uint64_t hash_line(enum line_kind kind, uint64_t a, uint64_t b, uint64_t c,
                          const struct shown_mapping *region)
{
    const uint64_t about[] = {a, b, c};
    return made_lines_hash((uint64_t)kind, about, region);
}

static bool is_written(const struct dumped_code *code, uint64_t hash)
{
    return made_lines_find(&code->lines, hash) != NULL;
}

/* The place of a line that is not written; NULL: there is no room. */
static struct made_line *place_line(const struct made_shared *shared, struct dumped_code *code,
                                    uint64_t hash)
{
    return made_lines_place(&code->lines, hash, may_note(shared, code));
}

/* Where there is no room for it, it is written again. */
static void add_line(struct made_shared *shared, struct dumped_code *code, uint64_t hash)
{
    struct made_line *place = place_line(shared, code, hash);
    if (place != NULL) {
        made_lines_add(&code->lines, place, hash);
        shared->note_count++;
    }
}

/* Says that from a time on [start, end) of a region is what `name` has at `vaddr`. False: refused.
 */
static bool show(struct made_shared *shared, const struct dumped_code *code,
                 const struct dumped_piece *piece, uint64_t from_ns, const char *name)
{
    struct shown_mapping shown = piece->region;
    shown.start = piece->start;
    shown.size_bytes = piece->end - piece->start;
    shown.from_ns = from_ns > piece->region.from_ns ? from_ns : piece->region.from_ns;
    return trace_definition_write(
        shared->log, &shown,
        &(struct definition){
            .owner = code->owner, .kind = DEFINITION_TASK, .vaddr = piece->vaddr, .name = name});
}

/* Writes that the owner of [start, end) is unknown from a time on. */
static bool hide(struct made_shared *shared, const struct dumped_code *code,
                 const struct shown_mapping *region, uint64_t start, uint64_t end, uint64_t from_ns)
{
    const struct dumped_piece piece = {
        .start = start, .end = end, .vaddr = start, .region = *region};
    return show(shared, code, &piece, from_ns, UNKNOWN_NAME);
}

/* Hides a whole region from the last reading on, once: there may be little room in the log. False:
 * no room. */
static bool close_region(struct made_shared *shared, struct dumped_code *code,
                         const struct shown_mapping *region)
{
    uint64_t hash = hash_line(LINE_CLOSED, code->confirmed_ns, 0, 0, region);
    if (is_written(code, hash)) {
        return true;
    }
    if (!hide(shared, code, region, region->start, region->start + region->size_bytes,
              code->confirmed_ns)) {
        return false;
    }
    add_line(shared, code, hash);
    return true;
}

static const struct code_spans *spans_of(const struct dumped_code *code)
{
    return &module_ticket_module(code->ready)->spans;
}

/* The span that a sample fell in, or NULL. */
static const struct code_span *find_sampled(const struct made_shared *shared,
                                            const struct dumped_code *code, uint64_t address,
                                            uint64_t time_ns)
{
    uint64_t monotonic_ns = 0;
    bool is_known =
        code->ready != NULL && dump_clock_monotonic(&shared->dump_clock, time_ns, &monotonic_ns);
    return is_known ? code_spans_find(spans_of(code), address, monotonic_ns) : NULL;
}

/* The part of a span that lies in a region. */
static struct dumped_piece piece_of(const struct code_span *span,
                                    const struct shown_mapping *region)
{
    uint64_t region_end = region->start + region->size_bytes;
    uint64_t end = span->start + span->size_bytes;
    uint64_t start = span->start > region->start ? span->start : region->start;
    return (struct dumped_piece){
        .start = start,
        .end = end < region_end ? end : region_end,
        .from_ns = span->from_ns,
        .vaddr = span->vaddr == 0 ? start : span->vaddr + (start - span->start),
        .region = *region,
    };
}

static uint64_t hash_piece(const struct dumped_piece *piece)
{
    return hash_line(LINE_SPAN, piece->start, piece->end, piece->from_ns, &piece->region);
}

/* Writes the function that has `vaddr` of the module, once. `*ret_named`: there is one. False: no
 * room. */
static bool write_function(struct made_shared *shared, struct dumped_code *code, uint64_t vaddr,
                           bool *ret_named)
{
    const struct symbol_table *table = &module_ticket_module(code->ready)->symbols;
    ptrdiff_t found = symbol_table_find(table, vaddr);
    *ret_named = found >= 0;
    if (found < 0) {
        return true;
    }
    const struct symbol *symbol = &table->symbols[found];
    uint64_t hash = hash_line(LINE_FUNCTION, symbol->start, 0, 0, NULL);
    if (is_written(code, hash)) {
        return true;
    }
    if (!trace_symbols_write_made(shared->symbols, code->name, code->owner, symbol,
                                  symbol_table_name(table, (size_t)found))) {
        return false;
    }
    add_line(shared, code, hash);
    return true;
}

static bool add_piece(struct made_shared *shared, struct dumped_code *code,
                      const struct dumped_piece *piece)
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

/* Shows a span that was sampled, once. Where there is no room to keep in mind that it was shown,
 * only the address is hidden. False: no room in the log. */
static bool show_span(struct made_shared *shared, struct dumped_code *code,
                      const struct code_span *span, const struct dumped_note *sampled)
{
    const struct dumped_piece piece = piece_of(span, &sampled->region);
    uint64_t hash = hash_piece(&piece);
    bool is_named = false;
    if (is_written(code, hash)) {
        return true;
    }
    bool is_kept = place_line(shared, code, hash) != NULL &&
                   (span->to_ns != CODE_SPAN_OPEN || add_piece(shared, code, &piece));
    if (!is_kept) {
        return hide(shared, code, &sampled->region, sampled->address, sampled->address + 1,
                    sampled->first_ns);
    }
    if ((span->vaddr != 0 && !write_function(shared, code, piece.vaddr, &is_named)) ||
        !show(shared, code, &piece, dump_clock_boot(&shared->dump_clock, piece.from_ns),
              is_named ? code->name : UNKNOWN_NAME)) {
        if (span->to_ns == CODE_SPAN_OPEN) {
            code->piece_count--;
            shared->note_count--;
        }
        return false;
    }
    add_line(shared, code, hash);
    code->news_count++;
    return true;
}

/* False: there is no room. To hide the address instead would take the room of names in the log. */
static bool note_sample(struct made_shared *shared, struct dumped_code *code,
                        const struct shown_mapping *region, uint64_t address, uint64_t time_ns)
{
    const uint64_t words[] = {address, time_ns >> BUCKET_SHIFT};
    uint32_t *recent = &code->recent[seeded_hash(words, sizeof words) % DUMPED_RECENT_NOTES];
    struct dumped_note *note = *recent < code->note_count ? &code->notes[*recent] : NULL;
    if (note != NULL && *recent >= code->unsettled_count && note->address == address &&
        note->region.start == region->start && note->region.from_ns == region->from_ns &&
        note->last_ns >> BUCKET_SHIFT == time_ns >> BUCKET_SHIFT) {
        note->first_ns = time_ns < note->first_ns ? time_ns : note->first_ns;
        note->last_ns = time_ns > note->last_ns ? time_ns : note->last_ns;
        return true;
    }
    if (!may_note(shared, code) || !made_may_wait(shared, code->note_count) ||
        !trace_notes_grow((void **)&code->notes, &code->note_capacity, code->note_count,
                          MADE_NOTES_MAX, sizeof *code->notes)) {
        definition_log_refuse(shared->log, DEFINITION_TASK);
        return false;
    }
    *recent = (uint32_t)code->note_count;
    code->notes[code->note_count++] = (struct dumped_note){
        .address = address, .first_ns = time_ns, .last_ns = time_ns, .region = *region};
    shared->note_count++;
    return true;
}

bool dumped_name(struct made_shared *shared, struct dumped_code *code,
                 const struct shown_mapping *region, uint64_t address, uint64_t time_ns)
{
    if (code->is_over && time_ns >= code->confirmed_ns) {
        return close_region(shared, code, region);
    }
    const struct dumped_note sampled = {address, time_ns, time_ns, *region};
    const struct code_span *span = find_sampled(shared, code, address, time_ns);
    if (span != NULL && !show_span(shared, code, span, &sampled)) {
        return false;
    }
    if (span != NULL && time_ns < code->confirmed_ns) {
        return true;
    }
    return code->is_over ? hide(shared, code, region, address, address + 1, time_ns)
                         : note_sample(shared, code, region, address, time_ns);
}

/* Whether the file begins as it did. */
static bool has_grown(const struct dumped_code *code, const struct perf_map_state *state)
{
    return code->state.text_bytes == 0 || (state->known_bytes == code->state.text_bytes &&
                                           state->known_hash == code->state.text_hash);
}

bool dumped_take(struct made_shared *shared, struct dumped_code *code, struct module_ticket *ticket,
                 uint64_t begin_ns)
{
    const struct module *module = module_ticket_module(ticket);
    struct perf_map_state state = {0};
    bool is_same = code->ready != NULL && module_ticket_module(code->ready) == module;
    (void)perf_map_state(&module->symbols, &state);
    if (code->is_over || (!is_same && !has_grown(code, &state))) {
        module_ticket_release(ticket);
        dumped_end(shared, code);
        return false;
    }
    bool is_longer = !is_same && state.text_bytes != code->state.text_bytes;
    module_ticket_release(code->ready);
    code->ready = ticket;
    code->state = is_same ? code->state : state;
    code->confirmed_ns = begin_ns;
    code->news_count = 0;
    code->doubt_count = is_longer ? code->piece_count : 0;
    code->unsettled_count = code->note_count;
    return true;
}

/* The last piece in doubt, from its start to the next edge of what the reading says of it. */
static bool settle_doubt(struct made_shared *shared, struct dumped_code *code)
{
    size_t at = code->doubt_count - 1;
    struct dumped_piece piece = code->pieces[at];
    const struct code_span *span = code_spans_find(spans_of(code), piece.start, piece.from_ns);
    struct dumped_piece now = {.end = piece.end};
    if (span != NULL) {
        now = piece_of(span, &piece.region);
        now.end = now.end < piece.end ? now.end : piece.end;
        if (now.vaddr + (piece.start - now.start) != piece.vaddr) {
            span = NULL; /* it has never been there, as it turns out */
        }
    }
    bool is_open = span != NULL && span->to_ns == CODE_SPAN_OPEN;
    if (is_open && now.start == piece.start && now.end == piece.end) {
        code->doubt_count--;
        return true;
    }
    if (is_open) {
        now.start = piece.start;
        now.vaddr = piece.vaddr;
        now.from_ns = piece.from_ns;
        if (!add_piece(shared, code, &now)) {
            is_open = false; /* it cannot be compared any more */
        }
    }
    if (!is_open) {
        uint64_t to_ns = span == NULL ? piece.from_ns : span->to_ns;
        const struct code_span *next =
            to_ns == CODE_SPAN_OPEN ? NULL : code_spans_find(spans_of(code), piece.start, to_ns);
        struct dumped_piece after = {0};
        if (next != NULL) {
            after = piece_of(next, &piece.region);
            now.end = after.end < now.end ? after.end : now.end;
        }
        uint64_t from_ns = to_ns == CODE_SPAN_OPEN ? code->confirmed_ns
                                                   : dump_clock_boot(&shared->dump_clock, to_ns);
        if ((next == NULL || !is_written(code, hash_piece(&after))) &&
            !hide(shared, code, &piece.region, piece.start, now.end, from_ns)) {
            return false;
        }
        code->news_count++;
    }
    if (now.end < piece.end) {
        code->pieces[at].vaddr += now.end - piece.start;
        code->pieces[at].start = now.end;
        return true;
    }
    code->pieces[at] = code->pieces[--code->piece_count];
    code->doubt_count--;
    shared->note_count--;
    return true;
}

/* Whether a later reading may tell more of what was sampled then. */
static bool is_early(const struct made_shared *shared, const struct dumped_code *code,
                     const struct dumped_note *note, bool is_found)
{
    return note->last_ns >= code->confirmed_ns ||
           (!is_found &&
            note->last_ns >= dump_clock_boot(&shared->dump_clock, spans_of(code)->last_ns));
}

/* The last note that the reading was not asked about yet, up to the end of a span. */
static bool settle_note(struct made_shared *shared, struct dumped_code *code)
{
    size_t at = code->unsettled_count - 1;
    struct dumped_note *note = &code->notes[at];
    const struct code_span *span = find_sampled(shared, code, note->address, note->first_ns);
    const struct dumped_note sampled = *note;
    if (span != NULL && !show_span(shared, code, span, &sampled)) {
        return false;
    }
    uint64_t to_ns = span == NULL || span->to_ns == CODE_SPAN_OPEN
                         ? UINT64_MAX
                         : dump_clock_boot(&shared->dump_clock, span->to_ns);
    if (span == NULL && note->first_ns < note->last_ns) {
        to_ns = note->last_ns; /* of what lies between, nothing is said */
    }
    if (to_ns <= note->last_ns && to_ns > note->first_ns) {
        note->first_ns = to_ns;
        return true;
    }
    if (!is_early(shared, code, note, span != NULL)) {
        code->notes[at] = code->notes[--code->note_count];
        shared->note_count--;
    }
    code->unsettled_count--;
    return true;
}

bool dumped_settle(struct made_shared *shared, struct dumped_code *code)
{
    if (code->doubt_count > 0) {
        return settle_doubt(shared, code);
    }
    return code->unsettled_count == 0 || settle_note(shared, code);
}

bool dumped_is_settled(const struct dumped_code *code)
{
    return code->doubt_count == 0 && code->unsettled_count == 0;
}

bool dumped_wants(const struct dumped_code *code)
{
    return code->note_count > 0;
}

bool dumped_is_proved(const struct dumped_code *code, uint64_t time_ns)
{
    return dumped_is_settled(code) && (code->note_count == 0 || code->confirmed_ns >= time_ns);
}

void dumped_close(struct made_shared *shared, struct dumped_code *code)
{
    for (size_t i = 0; i < code->note_count; i++) {
        const struct dumped_note *note = &code->notes[i];
        if (code->ready != NULL && note->last_ns >= code->confirmed_ns) {
            (void)close_region(shared, code, &note->region);
        }
    }
    shared->note_count -= code->note_count;
    code->note_count = code->unsettled_count = 0;
    code->doubt_count = 0;
}

void dumped_end(struct made_shared *shared, struct dumped_code *code)
{
    dumped_close(shared, code);
    code->is_over = true;
}
