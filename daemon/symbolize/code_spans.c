/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Builds spans by going through the claims in the order of time. At each time the claims that hold
 * are pieces that do not overlap, each identified by the column at which it begins. `begins` marks
 * those columns, in levels of 64 bits, so that the piece before any column is found in a few steps.
 * A claim cuts the pieces at its edges, ends those between them, and takes their place. It makes at
 * most two pieces more than it ends, so there are at most three times as many spans as claims.
 *
 * A span is listed at the nodes of a binary tree over the columns that it fills: those of one node
 * never overlap in time, so a lookup searches by time in each node above its column.
 */
#include "code_spans.h"

#include "array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC      UINT64_C(0x31306e617073434a)
#define LEVELS     5
#define LEVEL_BITS 6
#define NOWHERE    UINT32_MAX

struct header {
    uint64_t magic;
    uint64_t column_count;
    uint64_t span_count;
    uint64_t last_ns;
};

_Static_assert(sizeof(struct header) % 8 == 0 && sizeof(struct code_span) == 40, "no padding");

struct piece {
    uint32_t end;   /* column */
    uint32_t claim; /* number */
    uint64_t from_ns;
};

struct layout {
    const struct code_claim *claims;
    uint64_t *columns; /* owned, as the next four */
    size_t column_count;
    uint64_t *begins[LEVELS];
    struct piece *pieces; /* by the column where they begin */
    struct code_span *spans;
    size_t span_count;
    size_t span_capacity;
};

static bool is_earlier(const void *left, const void *right, const void *userdata)
{
    (void)userdata;
    const struct code_claim *a = left;
    const struct code_claim *b = right;
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static bool is_lower(const void *left, const void *right, const void *userdata)
{
    (void)userdata;
    return *(const uint64_t *)left < *(const uint64_t *)right;
}

static bool is_listed_before(const void *left, const void *right, const void *userdata)
{
    (void)userdata;
    const struct code_span *a = left;
    const struct code_span *b = right;
    return a->node != b->node ? a->node < b->node : a->from_ns < b->from_ns;
}

/* How many columns are not above `address`. */
static size_t columns_until(const uint64_t *columns, size_t count, uint64_t address)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (columns[middle] <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t column_of(const struct layout *layout, uint64_t address)
{
    return (uint32_t)columns_until(layout->columns, layout->column_count, address) - 1;
}

static int make_columns(struct layout *layout, size_t count)
{
    layout->columns = calloc(count * 2 + 1, sizeof *layout->columns);
    if (layout->columns == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        layout->columns[2 * i] = layout->claims[i].start;
        layout->columns[2 * i + 1] = layout->claims[i].end;
    }
    int r = array_sort(layout->columns, count * 2, sizeof *layout->columns, is_lower, NULL);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < count * 2; i++) {
        if (i == 0 || layout->columns[i] != layout->columns[i - 1]) {
            layout->columns[layout->column_count++] = layout->columns[i];
        }
    }
    layout->pieces = calloc(layout->column_count + 1, sizeof *layout->pieces);
    size_t words = layout->column_count;
    for (size_t level = 0; level < LEVELS; level++) {
        words = (words >> LEVEL_BITS) + 1;
        layout->begins[level] = calloc(words, sizeof(uint64_t));
        if (layout->begins[level] == NULL) {
            return -ENOMEM;
        }
    }
    return layout->pieces == NULL ? -ENOMEM : 0;
}

static void mark(struct layout *layout, uint32_t column)
{
    for (size_t level = 0; level < LEVELS; level++, column >>= LEVEL_BITS) {
        layout->begins[level][column >> LEVEL_BITS] |= UINT64_C(1) << (column & 63);
    }
}

static void unmark(struct layout *layout, uint32_t column)
{
    for (size_t level = 0; level < LEVELS; level++, column >>= LEVEL_BITS) {
        uint64_t *word = &layout->begins[level][column >> LEVEL_BITS];
        *word &= ~(UINT64_C(1) << (column & 63));
        if (*word != 0) {
            return;
        }
    }
}

/* The last marked column that is not above, or NOWHERE. */
static uint32_t last_marked(const struct layout *layout, uint32_t column)
{
    uint64_t at = column;
    for (size_t level = 0; level < LEVELS; level++) {
        uint64_t bit = at & 63;
        uint64_t word = layout->begins[level][at >> LEVEL_BITS] & (~UINT64_C(0) >> (63 - bit));
        if (word != 0) {
            at = (at & ~UINT64_C(63)) + 63 - (uint64_t)__builtin_clzll(word);
            for (; level > 0; level--) {
                at = (at << LEVEL_BITS) + 63 -
                     (uint64_t)__builtin_clzll(layout->begins[level - 1][at]);
            }
            return (uint32_t)at;
        }
        at >>= LEVEL_BITS;
        if (at == 0) {
            return NOWHERE;
        }
        at--; /* what is below this word's */
    }
    return NOWHERE;
}

static int list_span(struct layout *layout, const struct code_span *span)
{
    void *spans = layout->spans;
    size_t count = layout->span_count + 1;
    int r = count * sizeof *span > CODE_SPANS_BYTES_MAX / 2
                ? -E2BIG
                : array_grow(&spans, &layout->span_capacity, count, sizeof *span);
    if (r == 0) {
        layout->spans = spans;
        layout->spans[layout->span_count++] = *span;
    }
    return r;
}

/* A piece ends: it is listed at the nodes that it fills. */
static int end_piece(struct layout *layout, uint32_t begin, uint64_t to_ns)
{
    const struct piece *piece = &layout->pieces[begin];
    const struct code_claim *claim = &layout->claims[piece->claim];
    if (piece->from_ns >= to_ns) {
        return 0;
    }
    struct code_span span = {
        .from_ns = piece->from_ns,
        .to_ns = to_ns,
        .start = layout->columns[begin],
        .size_bytes = (uint32_t)(layout->columns[piece->end] - layout->columns[begin]),
    };
    span.vaddr = claim->vaddr == 0 ? 0 : claim->vaddr + (span.start - claim->start);
    uint64_t left = begin + layout->column_count;
    uint64_t right = piece->end + layout->column_count;
    int r = 0;
    for (; r == 0 && left < right; left >>= 1, right >>= 1) {
        if ((left & 1) != 0) {
            span.node = (uint32_t)left++;
            r = list_span(layout, &span);
        }
        if (r == 0 && (right & 1) != 0) {
            span.node = (uint32_t)--right;
            r = list_span(layout, &span);
        }
    }
    return r;
}

/* If a piece lies on both sides of a column, there are two of it from now on. */
static void cut_at(struct layout *layout, uint32_t column)
{
    uint32_t begin = last_marked(layout, column);
    if (begin == NOWHERE || begin == column || layout->pieces[begin].end <= column) {
        return;
    }
    layout->pieces[column] = layout->pieces[begin];
    layout->pieces[begin].end = column;
    mark(layout, column);
}

static int take_claim(struct layout *layout, uint32_t number)
{
    const struct code_claim *claim = &layout->claims[number];
    uint32_t start = column_of(layout, claim->start);
    uint32_t end = column_of(layout, claim->end);
    cut_at(layout, start);
    cut_at(layout, end);
    for (uint32_t at = last_marked(layout, end - 1); at != NOWHERE && at >= start;
         at = last_marked(layout, end - 1)) {
        int r = end_piece(layout, at, claim->time_ns);
        if (r < 0) {
            return r;
        }
        unmark(layout, at);
    }
    layout->pieces[start] = (struct piece){.end = end, .claim = number, .from_ns = claim->time_ns};
    mark(layout, start);
    return 0;
}

static int lay_out(struct layout *layout, size_t count)
{
    int r = make_columns(layout, count);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = take_claim(layout, (uint32_t)i);
    }
    uint32_t at =
        r == 0 && count > 0 ? last_marked(layout, (uint32_t)layout->column_count - 1) : NOWHERE;
    while (r == 0 && at != NOWHERE) {
        r = end_piece(layout, at, CODE_SPAN_OPEN);
        at = at == 0 ? NOWHERE : last_marked(layout, at - 1);
    }
    return r == 0 ? array_sort(layout->spans, layout->span_count, sizeof *layout->spans,
                               is_listed_before, NULL)
                  : r;
}

static int serialise(const struct layout *layout, uint64_t last_ns, void **ret_bytes,
                     size_t *ret_size)
{
    const struct header header = {MAGIC, layout->column_count, layout->span_count, last_ns};
    size_t columns_bytes = layout->column_count * sizeof *layout->columns;
    size_t spans_bytes = layout->span_count * sizeof *layout->spans;
    size_t size = sizeof header + columns_bytes + spans_bytes;
    char *bytes = size > CODE_SPANS_BYTES_MAX ? NULL : malloc(size);
    if (bytes == NULL) {
        return size > CODE_SPANS_BYTES_MAX ? -E2BIG : -ENOMEM;
    }
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, layout->columns, columns_bytes);
    if (spans_bytes > 0) {
        memcpy(bytes + sizeof header + columns_bytes, layout->spans, spans_bytes);
    }
    *ret_bytes = bytes;
    *ret_size = size;
    return 0;
}

int code_spans_build(struct code_claim *claims, size_t count, void **ret_bytes, size_t *ret_size)
{
    struct layout layout = {.claims = claims};
    int r = count > UINT32_MAX / 8 ? -E2BIG
                                   : array_sort(claims, count, sizeof *claims, is_earlier, NULL);
    if (r == 0) {
        r = lay_out(&layout, count);
    }
    if (r == 0) {
        r = serialise(&layout, count == 0 ? 0 : claims[count - 1].time_ns, ret_bytes, ret_size);
    }
    for (size_t level = 0; level < LEVELS; level++) {
        free(layout.begins[level]);
    }
    free(layout.columns);
    free(layout.pieces);
    free(layout.spans);
    return r;
}

static bool are_valid(const struct code_spans *spans)
{
    for (size_t i = 1; i < spans->column_count; i++) {
        if (spans->columns[i - 1] >= spans->columns[i]) {
            return false;
        }
    }
    for (size_t i = 0; i < spans->span_count; i++) {
        const struct code_span *span = &spans->spans[i];
        if (span->from_ns >= span->to_ns || span->size_bytes == 0 ||
            span->start > UINT64_MAX - span->size_bytes ||
            span->vaddr > UINT64_MAX - span->size_bytes ||
            (i > 0 && is_listed_before(span, span - 1, NULL))) {
            return false;
        }
    }
    return true;
}

int code_spans_open(const void *bytes, size_t size_bytes, struct code_spans *ret, size_t *ret_used)
{
    const struct header *header = bytes;
    if (size_bytes < sizeof *header || (uintptr_t)bytes % 8 != 0 || header->magic != MAGIC ||
        header->column_count > CODE_SPANS_BYTES_MAX / sizeof(uint64_t) ||
        header->span_count > CODE_SPANS_BYTES_MAX / sizeof(struct code_span)) {
        return -EBADMSG;
    }
    struct code_spans spans = {
        .columns = (const uint64_t *)(header + 1),
        .column_count = header->column_count,
        .span_count = header->span_count,
        .last_ns = header->last_ns,
    };
    spans.spans = (const struct code_span *)(spans.columns + spans.column_count);
    size_t used = sizeof *header + spans.column_count * sizeof *spans.columns +
                  spans.span_count * sizeof *spans.spans;
    if (used > size_bytes || !are_valid(&spans)) {
        return -EBADMSG;
    }
    *ret = spans;
    *ret_used = used;
    return 0;
}

/* Of a node, the last span that began by then. */
static const struct code_span *find_at_node(const struct code_spans *spans, uint64_t node,
                                            uint64_t time_ns)
{
    size_t low = 0;
    size_t high = spans->span_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct code_span *span = &spans->spans[middle];
        if (span->node < node || (span->node == node && span->from_ns <= time_ns)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && spans->spans[low - 1].node == node ? &spans->spans[low - 1] : NULL;
}

const struct code_span *code_spans_find(const struct code_spans *spans, uint64_t address,
                                        uint64_t time_ns)
{
    size_t until = columns_until(spans->columns, spans->column_count, address);
    if (until == 0) {
        return NULL;
    }
    for (uint64_t node = until - 1 + spans->column_count; node > 0; node >>= 1) {
        const struct code_span *span = find_at_node(spans, node, time_ns);
        /* The tree is the worker's: what it lists is asked. */
        if (span != NULL && time_ns < span->to_ns && address >= span->start &&
            address - span->start < span->size_bytes) {
            return span;
        }
    }
    return NULL;
}
