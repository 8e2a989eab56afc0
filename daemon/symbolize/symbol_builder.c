/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Collects the functions of one module and serialises them as a table. Names are cleaned when they
 * are added; entries are sorted once, at the end. An entry without a name is not written. It ends a
 * symbol without a size, and takes its own bytes from any other.
 *
 * A name that equals a recent one is stored once: many symbols may share one string, and copies of
 * it would make a huge table of a small file. Other duplicates (strings that begin inside each
 * other) end at the table's limit, a small multiple of the file's size.
 *
 * The input is foreign and may be made to be slow; array_sort_by_number() is fast for any order.
 */
#include "array.h"
#include "segments.h"
#include "symbol_format.h"
#include "utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_NONE     UINT32_MAX
#define RANK_NAMELESS 255
#define REPLACEMENT   "\xef\xbf\xbd"
#define RECENT_NAMES  32768 /* a power of two */
#define NOT_WRITTEN   UINT32_MAX
#define PLACE_BYTES   sizeof(uint32_t)

struct entry {
    uint64_t start; /* first: they are sorted by it */
    uint64_t size_bytes;
    uint32_t name; /* offset of a text in the builder's names, or NAME_NONE */
    uint32_t claim;
    uint16_t name_bytes;
    uint16_t underscores;
    uint8_t rank;
};

struct recent {
    uint32_t name; /* offset of a text; 0: none, where no text can be */
    uint32_t hash; /* of it: names that differ are mostly known by it alone */
};

struct symbol_builder {
    struct symbol_header header;
    struct symbol_segment segments[SYMBOL_TABLE_SEGMENTS_MAX];
    struct entry *entries;
    size_t entry_count;
    size_t entry_capacity;
    /* Each text has its place in the table before it: a uint32_t, not aligned. */
    char *names;
    size_t names_bytes;
    size_t names_capacity;
    size_t limit_bytes;
    bool has_claims;
    uint32_t claim;                     /* of what is added */
    struct recent recent[RECENT_NAMES]; /* by hash */
};

struct symbol_builder *symbol_builder_new(void)
{
    struct symbol_builder *builder = calloc(1, sizeof *builder);
    if (builder != NULL) {
        builder->header.magic = SYMBOL_FORMAT_MAGIC;
        builder->limit_bytes = SYMBOL_TABLE_BYTES_MAX;
    }
    return builder;
}

struct symbol_builder *symbol_builder_free(struct symbol_builder *builder)
{
    if (builder != NULL) {
        free(builder->entries);
        free(builder->names);
        free(builder);
    }
    return NULL;
}

void symbol_builder_limit(struct symbol_builder *builder, uint64_t file_bytes)
{
    builder->limit_bytes = symbol_table_limit(file_bytes);
}

int symbol_builder_segment(struct symbol_builder *builder, const struct symbol_segment *segment)
{
    if (!segment_is_valid(segment)) {
        return 0;
    }
    if (builder->header.segment_count == SYMBOL_TABLE_SEGMENTS_MAX) {
        return -E2BIG;
    }
    builder->segments[builder->header.segment_count++] = *segment;
    return 0;
}

int symbol_builder_build_id(struct symbol_builder *builder, const uint8_t *build_id, size_t bytes)
{
    if (bytes > SYMBOL_BUILD_ID_BYTES_MAX) {
        return -E2BIG;
    }
    memset(builder->header.build_id, 0, sizeof builder->header.build_id);
    memcpy(builder->header.build_id, build_id, bytes);
    builder->header.build_id_bytes = (uint32_t)bytes;
    return 0;
}

void symbol_builder_claim(struct symbol_builder *builder, uint32_t claim)
{
    builder->has_claims = true;
    builder->claim = claim;
}

/* What a symbol takes in the table, without its name. */
static size_t symbol_bytes(const struct symbol_builder *builder)
{
    return sizeof(struct symbol) + (builder->has_claims ? sizeof(uint32_t) : 0);
}

static int append_entry(struct symbol_builder *builder, const struct entry *entry)
{
    size_t count = builder->entry_count + 1;
    if (count * symbol_bytes(builder) + builder->names_bytes > builder->limit_bytes) {
        return -E2BIG;
    }
    void *entries = builder->entries;
    int r = array_grow(&entries, &builder->entry_capacity, count, sizeof *entry);
    if (r < 0) {
        return r;
    }
    builder->entries = entries;
    builder->entries[builder->entry_count++] = *entry;
    return 0;
}

/* Copies `name` into `clean` (room for SYMBOL_NAME_BYTES_MAX + 1); gives its length. Nearly all
 * names are ASCII, which goes by words. */
static size_t clean_name(const char *name, char *clean)
{
    size_t left = strnlen(name, SYMBOL_NAME_BYTES_MAX + 1);
    size_t used = 0;
    while (left > 0) {
        uint64_t word = 0;
        if (left >= sizeof word && used + sizeof word <= SYMBOL_NAME_BYTES_MAX) {
            memcpy(&word, name, sizeof word);
        }
        if (word != 0 && (word & UINT64_C(0x8080808080808080)) == 0) {
            memcpy(clean + used, &word, sizeof word);
            used += sizeof word;
            name += sizeof word;
            left -= sizeof word;
            continue;
        }
        size_t sequence = utf8_character(name, left, NULL);
        const char *piece = sequence == 0 ? REPLACEMENT : name;
        size_t piece_bytes = sequence == 0 ? strlen(REPLACEMENT) : sequence;
        if (used + piece_bytes > SYMBOL_NAME_BYTES_MAX) {
            break;
        }
        memcpy(clean + used, piece, piece_bytes);
        used += piece_bytes;
        name += sequence == 0 ? 1 : sequence;
        left -= sequence == 0 ? 1 : sequence;
    }
    clean[used] = '\0';
    return used;
}

static uint64_t hash_name(const char *name, size_t length)
{
    uint64_t hash = length;
    while (length > 0) {
        uint64_t word = 0;
        size_t bytes = length < sizeof word ? length : sizeof word;
        memcpy(&word, name, bytes);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
        name += bytes;
        length -= bytes;
    }
    return hash;
}

/* Keeps a clean name, or finds it among the recent ones. */
static int keep_name(struct symbol_builder *builder, const char *clean, size_t length,
                     uint32_t *ret_name)
{
    static const uint32_t not_written = NOT_WRITTEN;
    uint64_t hash = hash_name(clean, length);
    struct recent *recent = &builder->recent[(hash >> 32) % RECENT_NAMES];
    if (recent->name != 0 && recent->hash == (uint32_t)hash &&
        strcmp(builder->names + recent->name, clean) == 0) {
        *ret_name = recent->name;
        return 0;
    }
    size_t used = builder->names_bytes + PLACE_BYTES + length + 1;
    if (used > builder->limit_bytes) {
        return -E2BIG;
    }
    void *names = builder->names;
    int r = array_grow(&names, &builder->names_capacity, used, 1);
    if (r < 0) {
        return r;
    }
    builder->names = names;
    char *place = builder->names + builder->names_bytes;
    memcpy(place, &not_written, PLACE_BYTES);
    memcpy(place + PLACE_BYTES, clean, length + 1);
    *ret_name = (uint32_t)(builder->names_bytes + PLACE_BYTES);
    *recent = (struct recent){*ret_name, (uint32_t)hash};
    builder->names_bytes = used;
    return 0;
}

int symbol_builder_add(struct symbol_builder *builder, uint64_t start, uint64_t size_bytes,
                       int rank, const char *name)
{
    char clean[SYMBOL_NAME_BYTES_MAX + 1];
    size_t length = clean_name(name, clean);
    if (length == 0) {
        return 0;
    }
    uint32_t kept = 0;
    int r = keep_name(builder, clean, length, &kept);
    if (r < 0) {
        return r;
    }
    return append_entry(builder, &(struct entry){
                                     .start = start,
                                     .size_bytes = size_bytes,
                                     .name = kept,
                                     .claim = builder->claim,
                                     .name_bytes = (uint16_t)length,
                                     .underscores = (uint16_t)strspn(clean, "_"),
                                     .rank = (uint8_t)rank,
                                 });
}

int symbol_builder_nameless(struct symbol_builder *builder, uint64_t start, uint64_t size_bytes)
{
    return append_entry(builder, &(struct entry){.start = start,
                                                 .size_bytes = size_bytes,
                                                 .name = NAME_NONE,
                                                 .rank = RANK_NAMELESS});
}

int symbol_builder_barrier(struct symbol_builder *builder, uint64_t address)
{
    return symbol_builder_nameless(builder, address, 0);
}

/* Whether `a` comes before `b` of the same address: the best name first. */
static bool is_before(const void *left, const void *right, const void *userdata)
{
    const struct symbol_builder *builder = userdata;
    const struct entry *a = left;
    const struct entry *b = right;
    /* A function that is empty shares its address with the next one. */
    if ((a->size_bytes == 0) != (b->size_bytes == 0)) {
        return b->size_bytes == 0;
    }
    if (a->rank != b->rank) {
        return a->rank < b->rank;
    }
    if (a->name == NAME_NONE || b->name == NAME_NONE) {
        return false;
    }
    if (a->underscores != b->underscores) {
        return a->underscores < b->underscores;
    }
    if (a->name_bytes != b->name_bytes) {
        return a->name_bytes < b->name_bytes;
    }
    int order = memcmp(builder->names + a->name, builder->names + b->name, a->name_bytes);
    return order != 0 ? order < 0 : a->size_bytes > b->size_bytes;
}

static uint64_t add_saturated(uint64_t start, uint64_t bytes)
{
    return start > UINT64_MAX - bytes ? UINT64_MAX : start + bytes;
}

/* What is known of one address: the best name, with its size, or if it has none the largest one of
 * all. Goes through the sorted entries of the address, the best of which comes first. */
static struct entry join_entries(const struct entry *entries, size_t count, size_t *ret_count)
{
    struct entry joined = entries[0];
    size_t i = 0;
    uint64_t size_bytes = 0;
    for (; i < count && entries[i].start == joined.start; i++) {
        size_bytes = entries[i].size_bytes > size_bytes ? entries[i].size_bytes : size_bytes;
        joined = joined.name == NAME_NONE ? entries[i] : joined;
    }
    joined.size_bytes = joined.size_bytes == 0 ? size_bytes : joined.size_bytes;
    *ret_count = i;
    return joined;
}

/*
 * Reduces the sorted entries to those that will be written, with their final sizes; gives their
 * count. One step handles the entries of one address.
 */
static size_t resolve_entries(struct entry *entries, size_t count)
{
    size_t kept = 0;
    uint64_t sized_end = 0; /* how far the functions with a size reach so far */
    size_t step = 0;
    for (size_t i = 0; i < count; i += step) {
        struct entry best = join_entries(entries + i, count - i, &step);
        uint64_t end = add_saturated(best.start, best.size_bytes);
        if (best.size_bytes == 0 && (best.name == NAME_NONE || best.start < sized_end)) {
            continue;
        }

        if (best.size_bytes == 0) {
            uint64_t limit = i + step < count ? entries[i + step].start : UINT64_MAX;
            end = add_saturated(best.start, SYMBOL_SIZELESS_BYTES_MAX);
            end = limit < end ? limit : end;
        } else {
            sized_end = end > sized_end ? end : sized_end;
        }
        if (kept > 0 && best.start - entries[kept - 1].start < entries[kept - 1].size_bytes) {
            entries[kept - 1].size_bytes = best.start - entries[kept - 1].start;
        }
        best.size_bytes = end - best.start < UINT32_MAX ? end - best.start : UINT32_MAX;
        if (best.size_bytes > 0 && best.name != NAME_NONE) {
            entries[kept++] = best;
        }
    }
    return kept;
}

/* Gives each name of an entry its place in the table, once; returns the bytes of all of them. */
static size_t place_names(struct symbol_builder *builder)
{
    size_t used = 0;
    for (size_t i = 0; i < builder->entry_count; i++) {
        const struct entry *entry = &builder->entries[i];
        char *place = builder->names + entry->name - PLACE_BYTES;
        uint32_t at = 0;
        memcpy(&at, place, PLACE_BYTES);
        if (at == NOT_WRITTEN) {
            at = (uint32_t)used;
            memcpy(place, &at, PLACE_BYTES);
            used += (size_t)entry->name_bytes + 1;
        }
    }
    return used;
}

/* Writes symbols, claims and names; there is room for all of them. */
static void write_symbols(const struct symbol_builder *builder, struct symbol *symbols)
{
    uint32_t *claims = (uint32_t *)(symbols + builder->entry_count);
    char *names = (char *)(claims + builder->header.claim_count);
    for (size_t i = 0; i < builder->entry_count; i++) {
        const struct entry *entry = &builder->entries[i];
        const char *text = builder->names + entry->name;
        uint32_t at = 0;
        memcpy(&at, text - PLACE_BYTES, PLACE_BYTES);
        symbols[i] = (struct symbol){
            .start = entry->start,
            .size_bytes = (uint32_t)entry->size_bytes,
            .name = at,
        };
        if (builder->has_claims) {
            claims[i] = entry->claim;
        }
        memcpy(names + at, text, (size_t)entry->name_bytes + 1);
    }
}

int symbol_builder_finish(struct symbol_builder *builder, void **ret_bytes, size_t *ret_size_bytes)
{
    int r = array_sort_by_number(builder->entries, builder->entry_count, sizeof *builder->entries,
                                 is_before, builder);
    if (r < 0) {
        return r;
    }
    builder->entry_count = resolve_entries(builder->entries, builder->entry_count);

    size_t names_bytes = place_names(builder);
    size_t segments_bytes = builder->header.segment_count * sizeof(struct symbol_segment);
    size_t symbols_bytes = builder->entry_count * symbol_bytes(builder);
    size_t total = sizeof builder->header + segments_bytes + symbols_bytes + names_bytes;
    if (total > builder->limit_bytes) {
        return -E2BIG;
    }
    char *bytes = malloc(total);
    if (bytes == NULL) {
        return -ENOMEM;
    }

    builder->header.symbol_count = (uint32_t)builder->entry_count;
    builder->header.claim_count = builder->has_claims ? builder->header.symbol_count : 0;
    builder->header.names_bytes = (uint32_t)names_bytes;
    char *segments = bytes + sizeof builder->header;
    memcpy(bytes, &builder->header, sizeof builder->header);
    memcpy(segments, builder->segments, segments_bytes);
    write_symbols(builder, (struct symbol *)(void *)(segments + segments_bytes));
    *ret_bytes = bytes;
    *ret_size_bytes = total;
    return 0;
}
