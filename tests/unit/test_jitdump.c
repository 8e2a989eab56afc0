/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jitdumps written by hand, and random ones against a model that asks every record about every
 * address and time.
 */
#include "jitdump.h"

#include "built_tables.h"
#include "dump_clock.h"
#include "perf_map.h"

#include <errno.h>

#define SECOND UINT64_C(1000000000)

struct text {
    char bytes[65536];
    size_t used;
};

static void put(struct text *text, const void *bytes, size_t count)
{
    assert_true(text->used + count <= sizeof text->bytes);
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
}

static void put_words(struct text *text, const uint32_t *words, size_t count)
{
    put(text, words, count * sizeof *words);
}

static void put_longs(struct text *text, const uint64_t *longs, size_t count)
{
    put(text, longs, count * sizeof *longs);
}

static void put_header(struct text *text, uint32_t magic, uint32_t machine, uint64_t flags)
{
    put_words(text, (uint32_t[]){magic, 1, 40, machine, 0, 7}, 6);
    put_longs(text, (uint64_t[]){0, flags}, 2);
}

static void put_load(struct text *text, uint64_t time_ns, uint64_t start, uint64_t size_bytes,
                     uint64_t index, const char *name)
{
    uint32_t code_bytes = size_bytes < 64 ? (uint32_t)size_bytes : 0;
    static const char code[64];
    put_words(text, (uint32_t[]){0, 56 + (uint32_t)strlen(name) + 1 + code_bytes}, 2);
    put_longs(text, &time_ns, 1);
    put_words(text, (uint32_t[]){7, 7}, 2);
    put_longs(text, (uint64_t[]){start, start, size_bytes, index}, 4);
    put(text, name, strlen(name) + 1);
    put(text, code, code_bytes);
}

static void put_move(struct text *text, uint64_t time_ns, uint64_t old_start, uint64_t start,
                     uint64_t size_bytes, uint64_t index)
{
    put_words(text, (uint32_t[]){1, 64}, 2);
    put_longs(text, &time_ns, 1);
    put_words(text, (uint32_t[]){7, 7}, 2);
    put_longs(text, (uint64_t[]){start, old_start, start, size_bytes, index}, 5);
}

struct parsed {
    struct made_symbols symbols;
    struct code_spans spans;
    struct perf_map_state state;
    void *laid; /* owned */
    int result;
};

static void free_parsed(struct parsed *parsed)
{
    free_symbols(&parsed->symbols);
    free(parsed->laid);
}

static struct parsed parse(const struct text *text, size_t known_bytes)
{
    struct parsed parsed = {0};
    size_t laid_bytes = 0;
    size_t used = 0;
    struct symbol_builder *builder = symbol_builder_new();
    parsed.result =
        jitdump_parse(text->bytes, text->used, known_bytes, builder, &parsed.laid, &laid_bytes);
    if (parsed.result < 0) {
        symbol_builder_free(builder);
        return parsed;
    }
    parsed.symbols = finish_symbols(builder);
    assert_int_equal(code_spans_open(parsed.laid, laid_bytes, &parsed.spans, &used), 0);
    assert_int_equal(used, laid_bytes);
    assert_true(perf_map_state(&parsed.symbols.table, &parsed.state));
    return parsed;
}

/* "": unknown. Of an address inside a function, all but its name is checked, too. */
static const char *name_at(const struct parsed *parsed, uint64_t address, uint64_t time_ns)
{
    const struct code_span *span = code_spans_find(&parsed->spans, address, time_ns);
    if (span == NULL || span->vaddr == 0) {
        return "";
    }
    const char *name = symbol_at(&parsed->symbols.table, span->vaddr + (address - span->start));
    assert_string_not_equal(name, "");
    return name;
}

struct expected_name {
    uint64_t address;
    uint64_t time_ns;
    const char *name;
};

static void expect_names(const struct parsed *parsed, const struct expected_name *expected,
                         size_t count)
{
    assert_int_equal(parsed->result, 0);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(name_at(parsed, expected[i].address, expected[i].time_ns),
                            expected[i].name);
    }
}

#define EXPECT_NAMES(parsed, ...) expect_names(parsed, ROWS_OF(struct expected_name, __VA_ARGS__))

/* A text with its header, which a test goes on with. */
static struct text *begin_text(void)
{
    static struct text text;
    text.used = 0;
    put_header(&text, 0x4a695444, 62, 0);
    return &text;
}

TEST(names_hold_from_their_time_on)
{
    struct text *text = begin_text();
    put_load(text, 10, 0x1000, 32, 1, "f");
    put_words(text, (uint32_t[]){2, 24, 0, 0, 0, 0}, 6); /* lines, which are passed over */
    put_load(text, 20, 0x1010, 32, 2, "g");
    put_words(text, (uint32_t[]){3, 16, 0, 0}, 4); /* the end, behind which more may come */
    put_load(text, 30, 0x0ff0, 128, 3, "h");
    cleanup_(free_parsed) struct parsed parsed = parse(text, 0);
    EXPECT_NAMES(&parsed, {0x1000, 9, ""}, {0x1000, 10, "f"}, {0x101f, 19, "f"}, {0x1020, 19, ""},
                 {0x100f, 29, "f"}, {0x1010, 20, "g"}, {0x102f, 29, "g"}, {0x1030, 29, ""},
                 {0x0ff0, 30, "h"}, {0x1010, UINT64_MAX - 1, "h"});
    assert_int_equal(parsed.state.text_bytes, text->used);
    assert_int_equal(parsed.spans.last_ns, 30);
}

TEST(moved_code_keeps_its_name)
{
    struct text *text = begin_text();
    put_load(text, 10, 0x1000, 32, 1, "f");
    put_move(text, 20, 0x1000, 0x2000, 32, 1);
    put_load(text, 30, 0x3000, 32, 2, "g");
    put_move(text, 40, 0x1000, 0x3000, 32, 1); /* it is not there */
    cleanup_(free_parsed) struct parsed parsed = parse(text, 0);
    EXPECT_NAMES(&parsed, {0x1004, 19, "f"}, {0x1004, 20, ""}, {0x2004, 19, ""}, {0x2004, 20, "f"},
                 {0x3004, 39, "g"}, {0x3004, 40, ""});
}

/* Every beginning of a file is read up to the last whole record, and knows what it has had. */
TEST(half_records_wait)
{
    const struct text nothing = {.bytes = "what is behind the end is not looked at"};
    cleanup_(free_parsed) struct parsed empty = parse(&nothing, 0);
    assert_int_equal(empty.result, 0);
    struct text *text = begin_text();
    put_load(text, 10, 0x1000, 32, 1, "f");
    size_t first_bytes = text->used;
    put_load(text, 20, 0x1000, 32, 2, "g");
    size_t all_bytes = text->used;
    cleanup_(free_parsed) struct parsed all = parse(text, first_bytes);
    for (text->used = 0; text->used < all_bytes; text->used++) {
        cleanup_(free_parsed) struct parsed parsed = parse(text, 0);
        assert_int_equal(parsed.result, 0);
        size_t whole = text->used < 40 ? 0 : text->used < first_bytes ? 40 : first_bytes;
        assert_int_equal(parsed.state.text_bytes, whole);
        assert_string_equal(name_at(&parsed, 0x1000, 20), whole == first_bytes ? "f" : "");
        if (whole == first_bytes) {
            assert_int_equal(all.state.known_bytes, first_bytes);
            assert_true(all.state.known_hash == parsed.state.text_hash);
            assert_true(all.symbols.table.symbols[0].start ==
                        parsed.symbols.table.symbols[0].start);
        }
    }
}

TEST(what_is_no_jitdump_is_refused)
{
    static const struct {
        uint32_t magic;
        uint32_t machine;
        uint64_t flags;
        int result;
    } cases[] = {
        {0x4a695444, 62, 0, 0},        {0x4454694a, 62, 0, -EBADMSG}, /* of the other byte order */
        {0x464c457f, 62, 0, -EBADMSG}, {0x4a695444, 183, 0, -EBADMSG},
        {0x4a695444, 62, 1, -ENOTSUP}, /* times of the processor */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct text text;
        text.used = 0;
        put_header(&text, cases[i].magic, cases[i].machine, cases[i].flags);
        cleanup_(free_parsed) struct parsed parsed = parse(&text, 0);
        assert_int_equal(parsed.result, cases[i].result);
    }
}

TEST(hostile_records_claim_nothing)
{
    struct text *text = begin_text();
    put_load(text, 1, 0x1000, 32, 1, "f");
    put_load(text, 2, UINT64_MAX - 8, 64, 2, "wraps");
    put_load(text, 2, 0x1000, 0, 3, "empty");
    put_load(text, 2, 0x1000, UINT64_C(1) << 40, 4, "huge");
    put_load(text, 2, 0x1000, 32, 5, "");
    put_move(text, 2, UINT64_MAX - 8, 0x1000, 64, 1);
    put_words(text, (uint32_t[]){0, 15, 0, 0}, 4); /* shorter than it can be: the end */
    put_load(text, 3, 0x1000, 32, 6, "g");
    cleanup_(free_parsed) struct parsed parsed = parse(text, 0);
    assert_int_equal(parsed.result, 0);
    assert_int_equal(parsed.symbols.table.symbol_count, 1);
    assert_string_equal(name_at(&parsed, 0x1000, 3), "f");
}

TEST(large_files_and_endless_records_are_refused)
{
    struct text *text = begin_text();
    cleanup_(closep) int fd = memory_file(text->bytes, text->used);
    struct symbol_builder *builder = symbol_builder_new();
    void *laid = NULL;
    size_t laid_bytes = 0;
    assert_int_equal(ftruncate(fd, (off_t)JITDUMP_BYTES_MAX + 1), 0);
    assert_int_equal(jitdump_read(fd, 0, builder, &laid, &laid_bytes), -E2BIG);

    static uint32_t records[4096][4];
    for (size_t i = 0; i < 4096; i++) {
        records[i][0] = 3;
        records[i][1] = 16;
    }
    assert_int_equal(ftruncate(fd, 40), 0);
    for (size_t i = 0; i <= JITDUMP_RECORDS_MAX / 4096; i++) {
        assert_int_equal(write(fd, records, sizeof records), sizeof records);
    }
    assert_int_equal(jitdump_read(fd, 0, builder, &laid, &laid_bytes), -E2BIG);
    symbol_builder_free(builder);
}

#define RANDOM_RECORDS 60
#define RANDOM_SPACE   200

/* The latest record that has the address by then, of equal times the last. */
static const char *model_at(const struct code_claim *claims, size_t count, uint64_t address,
                            uint64_t time_ns, char name[16])
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        if (claims[i].start <= address && address < claims[i].end && claims[i].time_ns <= time_ns &&
            (best == SIZE_MAX || claims[i].time_ns >= claims[best].time_ns)) {
            best = i;
        }
    }
    (void)snprintf(name, 16, "n%zu", best);
    return best == SIZE_MAX ? "" : name;
}

TEST(random_claims_agree_with_a_model)
{
    srand(1);
    for (size_t round = 0; round < 60; round++) {
        struct text *text = begin_text();
        struct code_claim claims[RANDOM_RECORDS];
        for (size_t i = 0; i < RANDOM_RECORDS; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "n%zu", i);
            claims[i].time_ns = (uint64_t)(rand() % 40);
            claims[i].start = (uint64_t)(rand() % (RANDOM_SPACE - 60));
            claims[i].end = claims[i].start + 1 + (uint64_t)(rand() % 60);
            put_load(text, claims[i].time_ns, claims[i].start, claims[i].end - claims[i].start, i,
                     name);
        }
        cleanup_(free_parsed) struct parsed parsed = parse(text, 0);
        assert_int_equal(parsed.result, 0);
        for (uint64_t address = 0; address < RANDOM_SPACE; address++) {
            for (uint64_t time_ns = 0; time_ns < 41; time_ns++) {
                char name[16];
                assert_string_equal(name_at(&parsed, address, time_ns),
                                    model_at(claims, RANDOM_RECORDS, address, time_ns, name));
            }
        }
    }
}

TEST(broken_spans_are_refused)
{
    struct code_claim claims[] = {{.time_ns = 1, .start = 16, .end = 32, .vaddr = 64}};
    struct code_spans spans;
    void *bytes = NULL;
    size_t size_bytes = 0;
    size_t used = 0;
    assert_int_equal(code_spans_build(claims, 1, &bytes, &size_bytes), 0);
    assert_int_equal(code_spans_open(bytes, size_bytes, &spans, &used), 0);
    for (size_t i = 0; i < size_bytes; i++) {
        assert_int_equal(code_spans_open(bytes, i, &spans, &used), -EBADMSG);
    }
    uint64_t *words = bytes;
    for (size_t i = 0; i < 3; i++) { /* what it is, and how much of it there is */
        words[i] += UINT64_C(1) << 60;
        assert_int_equal(code_spans_open(bytes, size_bytes, &spans, &used), -EBADMSG);
        words[i] -= UINT64_C(1) << 60;
    }
    words[4] = words[5]; /* columns that do not rise */
    assert_int_equal(code_spans_open(bytes, size_bytes, &spans, &used), -EBADMSG);
    free(bytes);
}

TEST(suspends_are_told_apart)
{
    struct dump_clock clock = {0};
    uint64_t ns = 0;
    assert_false(dump_clock_monotonic(&clock, SECOND, &ns));
    dump_clock_note(&clock, 100 * SECOND, 90 * SECOND, 100);
    dump_clock_note(&clock, 101 * SECOND, 91 * SECOND, 50);
    dump_clock_note(&clock, 160 * SECOND, 92 * SECOND, 50); /* suspended for 58 s in between */
    assert_true(dump_clock_monotonic(&clock, 100 * SECOND, &ns));
    assert_int_equal(ns, 90 * SECOND);
    assert_false(dump_clock_monotonic(&clock, 130 * SECOND, &ns));
    assert_true(dump_clock_monotonic(&clock, 161 * SECOND, &ns));
    assert_int_equal(ns, 93 * SECOND);
    assert_int_equal(dump_clock_boot(&clock, 90 * SECOND), 100 * SECOND);
    assert_int_equal(dump_clock_boot(&clock, 91 * SECOND + SECOND / 2), 160 * SECOND);
    assert_int_equal(dump_clock_boot(&clock, 94 * SECOND), 162 * SECOND);
    assert_true(dump_clock_boot(&clock, UINT64_MAX) == UINT64_MAX);
}

/* A machine that was never suspended has both clocks alike, as exact as a look is. */
TEST(equal_clocks_agree)
{
    struct dump_clock clock = {0};
    uint64_t ns = 0;
    dump_clock_note(&clock, 100 * SECOND, 100 * SECOND + 20, 40);
    assert_true(dump_clock_monotonic(&clock, 50 * SECOND, &ns));
    assert_int_equal(ns, 50 * SECOND + 20);
    assert_int_equal(dump_clock_boot(&clock, 50 * SECOND + 20), 50 * SECOND);
    clock = (struct dump_clock){0};
    dump_clock_look(&clock);
    assert_int_equal(clock.step_count, 1);
}
