/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads perf maps. Each line claims a range of addresses; the last line that claims an address has
 * it. The ranges are sorted by their starts, and a sweep over them keeps a heap of those that it is
 * inside of, the last line on top. Each step makes one piece, which belongs to the line on top. So
 * pieces do not overlap, there are at most twice as many as lines, and no order of the lines is
 * slow. A piece ends where the next line begins. Of the lines that the sweep has passed, the two
 * that reach furthest show whether a piece was claimed by another line, too.
 */
#include "perf_map.h"

#include "array.h"
#include "cleanup.h"
#include "heap.h"

#include <string.h>
#include <sys/stat.h>

#define NUMBER_DIGITS_MAX 16

struct claim {
    uint64_t start;
    uint64_t end;
    const char *name; /* borrowed from the text, not terminated */
    uint32_t name_bytes;
    uint32_t line; /* where it begins in the text: a later one is higher */
};

struct claims {
    struct claim *all;
    size_t count;
    size_t capacity;
    struct heap heap;             /* numbers of claims; the latest line is the first */
    const struct claim *furthest; /* of those that were met, or NULL */
    uint64_t further_end;         /* of the others */
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes a number and the space behind it; "0x" may stand before it. */
static bool take_number(const char **at, const char *end, uint64_t *ret)
{
    const char *begin = *at;
    if (end - begin > 2 && begin[0] == '0' && (begin[1] | 0x20) == 'x') {
        begin += 2;
    }
    uint64_t value = 0;
    const char *digit = begin;
    while (digit < end && hex_digit(*digit) >= 0 && digit - begin < NUMBER_DIGITS_MAX) {
        value = value << 4 | (uint64_t)hex_digit(*digit);
        digit++;
    }
    if (digit == begin || digit == end || *digit != ' ') {
        return false;
    }
    *at = digit + 1;
    *ret = value;
    return true;
}

static bool parse_line(const char *text, const char *end, struct claim *ret)
{
    uint64_t size_bytes = 0;
    if (!take_number(&text, end, &ret->start) || !take_number(&text, end, &size_bytes) ||
        size_bytes == 0 || size_bytes > UINT32_MAX || ret->start > UINT64_MAX - size_bytes ||
        text == end) {
        return false;
    }
    ret->end = ret->start + size_bytes;
    ret->name = text;
    ret->name_bytes = (uint32_t)(end - text);
    return true;
}

static int read_lines(const char *text, size_t bytes, struct claims *claims)
{
    const char *begin = text;
    const char *end = text + bytes;
    const char *newline = NULL;
    while ((newline = memchr(text, '\n', (size_t)(end - text))) != NULL) {
        struct claim claim = {.line = (uint32_t)(text - begin)};
        if (parse_line(text, newline, &claim)) {
            void *all = claims->all;
            int r = claims->count == PERF_MAP_LINES_MAX
                        ? -E2BIG
                        : array_grow(&all, &claims->capacity, claims->count + 1, sizeof claim);
            if (r < 0) {
                return r;
            }
            claims->all = all;
            claims->all[claims->count++] = claim;
        }
        text = newline + 1;
    }
    return 0;
}

static bool is_before(const void *left, const void *right, const void *userdata)
{
    (void)userdata;
    const struct claim *a = left;
    const struct claim *b = right;
    return a->start != b->start ? a->start < b->start : a->line < b->line;
}

static int add_piece(struct symbol_builder *builder, const struct claim *claim, bool is_shared,
                     uint64_t start, uint64_t end)
{
    char name[SYMBOL_NAME_BYTES_MAX + 1];
    size_t bytes =
        claim->name_bytes < sizeof name ? claim->name_bytes : (uint32_t)(sizeof name - 1);
    memcpy(name, claim->name, bytes);
    name[bytes] = '\0';
    symbol_builder_claim(builder, claim->line | (is_shared ? PERF_MAP_CLAIM_SHARED : 0));
    return symbol_builder_add(builder, start, end - start, 0, name);
}

/* Adds what lies before `limit`, from `*at` on, of the claims that the walk is inside of. */
static int add_until(struct claims *claims, uint64_t *at, uint64_t limit,
                     struct symbol_builder *builder)
{
    int r = 0;
    while (r == 0 && claims->heap.count > 0 && *at < limit) {
        const struct claim *top = &claims->all[claims->heap.entries[0].number];
        if (top->end <= *at) {
            heap_pop(&claims->heap);
            continue;
        }
        uint64_t end = top->end < limit ? top->end : limit;
        uint64_t others_end = top == claims->furthest ? claims->further_end : claims->furthest->end;
        r = add_piece(builder, top, others_end > *at, *at, end);
        *at = end;
    }
    return r;
}

/* The walk meets one more. */
static void meet(struct claims *claims, const struct claim *claim)
{
    if (claims->furthest == NULL) {
        claims->furthest = claim;
        return;
    }
    uint64_t end = claim->end;
    if (end > claims->furthest->end) {
        end = claims->furthest->end;
        claims->furthest = claim;
    }
    claims->further_end = end > claims->further_end ? end : claims->further_end;
}

static int add_claims(struct claims *claims, struct symbol_builder *builder)
{
    uint64_t at = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < claims->count; i++) {
        r = add_until(claims, &at, claims->all[i].start, builder);
        at = claims->all[i].start;
        heap_push(&claims->heap, UINT32_MAX - claims->all[i].line, (uint32_t)i);
        meet(claims, &claims->all[i]);
    }
    return r == 0 ? add_until(claims, &at, UINT64_MAX, builder) : r;
}

int perf_map_parse(const char *text, size_t bytes, struct symbol_builder *builder)
{
    struct claims claims = {0};
    int r = read_lines(text, bytes, &claims);
    if (r == 0) {
        r = array_sort(claims.all, claims.count, sizeof *claims.all, is_before, NULL);
    }
    if (r == 0) {
        r = heap_init(&claims.heap, claims.count);
    }
    if (r == 0) {
        r = add_claims(&claims, builder);
    }
    heap_done(&claims.heap);
    free(claims.all);
    return r;
}

static uint64_t hash_text(const char *text, size_t bytes)
{
    uint64_t hash = bytes;
    while (bytes > 0) {
        uint64_t word = 0;
        size_t taken = bytes < sizeof word ? bytes : sizeof word;
        memcpy(&word, text, taken);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
        text += taken;
        bytes -= taken;
    }
    return hash;
}

/* Reads what the file had when it was looked at: what is appended from then on is another
 * reading's.
 */
static int read_text(int fd, char *text, size_t size_bytes, size_t *ret_used)
{
    size_t used = 0;
    while (used < size_bytes) {
        ssize_t got = pread(fd, text + used, size_bytes - used, (off_t)used);
        if (got < 0) {
            return -errno;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    *ret_used = used;
    return 0;
}

static bool is_unchanged(int fd, const struct stat *before)
{
    struct stat after;
    return fstat(fd, &after) == 0 && after.st_size == before->st_size &&
           after.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           after.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

static struct perf_map_state describe_text(const char *text, size_t used, size_t known_bytes)
{
    const char *last = used == 0 ? NULL : memrchr(text, '\n', used);
    size_t bytes = last == NULL ? 0 : (size_t)(last - text) + 1;
    struct perf_map_state state = {.text_bytes = bytes, .text_hash = hash_text(text, bytes)};
    if (known_bytes > 0 && known_bytes <= bytes) {
        state.known_bytes = known_bytes;
        state.known_hash = hash_text(text, known_bytes);
    }
    return state;
}

int perf_map_read(int fd, size_t known_bytes, struct symbol_builder *builder)
{
    struct stat status;
    if (fstat(fd, &status) < 0) {
        return -errno;
    }
    if (status.st_size < 0 || (uint64_t)status.st_size > PERF_MAP_BYTES_MAX) {
        return -E2BIG;
    }
    size_t size_bytes = (size_t)status.st_size;
    size_t used = 0;
    cleanup_(freep) char *text = calloc(size_bytes + 1, 1);
    int r = text == NULL ? -ENOMEM : read_text(fd, text, size_bytes, &used);
    if (r < 0) {
        return r;
    }
    struct perf_map_state state = describe_text(text, used, known_bytes);
    if (is_unchanged(fd, &status)) {
        state.changed_s = status.st_ctim.tv_sec;
        state.changed_ns = status.st_ctim.tv_nsec;
    }
    symbol_builder_limit(builder, size_bytes + size_bytes / 2); /* claims take room, too */
    r = symbol_builder_build_id(builder, (const uint8_t *)&state, sizeof state);
    return r < 0 ? r : perf_map_parse(text, used, builder);
}

bool perf_map_state(const struct symbol_table *table, struct perf_map_state *ret)
{
    if (table->build_id_bytes != sizeof *ret) {
        return false;
    }
    memcpy(ret, table->build_id, sizeof *ret);
    return true;
}
