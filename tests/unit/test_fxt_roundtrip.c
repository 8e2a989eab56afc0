/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The property of writer and reader: what is written comes back, whatever it is and however the
 * bytes are cut on their way. Each round makes a file of one or two segments with random records,
 * from a seed that a failure prints. What the bytes are is test_fxt_golden.c's matter.
 */
#include "fxt_records.h"

#define ROUNDS             200
#define RECORDS_PER_ROUND  200
#define ROUND_BYTES_MAX    ((size_t)8 << 20)
#define ARENA_BYTES_MAX    ((size_t)8 << 20)
#define STACK_ENTRIES_MAX  510
#define TEXT_BYTES_MAX     4096
#define PAYLOAD_BYTES_MAX  32752
#define SHORT_BYTES_MAX    255
#define STRINGS_BEGIN      10
#define STRINGS_END        32768
#define SAMPLE_FIELD_COUNT 11

/* One file, and what the reader must say of it. */
struct round {
    uint64_t random;
    uint8_t *arena; /* what the expected records point to */
    size_t arena_used_bytes;
    struct fxt_writer writer;
    struct fxt_record expected[2 * RECORDS_PER_ROUND];
    size_t expected_count;
    uint16_t next_string; /* of the segment at hand */
    const struct fxt_record *strings[STRINGS_END];
};

/* xorshift64 */
static uint64_t draw(struct round *round)
{
    uint64_t x = round->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    round->random = x;
    return x;
}

/* 0..max, both ends and what is near 0 more often than the rest. */
static size_t draw_size(struct round *round, size_t max)
{
    uint64_t way = draw(round) % 8;
    if (way < 2) {
        return way == 0 ? 0 : max;
    }
    return draw(round) % ((way == 2 || max < 40 ? max : 40) + 1);
}

/* Any 64 bits, small and extreme ones more often. */
static uint64_t draw_value(struct round *round)
{
    uint64_t way = draw(round) % 8;
    if (way < 2) {
        return way == 0 ? 0 : UINT64_MAX;
    }
    return way == 2 ? draw(round) % 1000 : draw(round);
}

static uint8_t *draw_bytes(struct round *round, size_t size_bytes)
{
    uint8_t *bytes = round->arena + round->arena_used_bytes;
    round->arena_used_bytes += (size_bytes + 7) / 8 * 8;
    assert_in_range(round->arena_used_bytes, 0, ARENA_BYTES_MAX);
    for (size_t i = 0; i < size_bytes; i++) {
        bytes[i] = (uint8_t)draw(round);
    }
    return bytes;
}

static struct fxt_string draw_string_reference(struct round *round)
{
    if (round->next_string > STRINGS_BEGIN && draw(round) % 2 == 0) {
        size_t index = STRINGS_BEGIN + draw(round) % (size_t)(round->next_string - STRINGS_BEGIN);
        return round->strings[index]->string;
    }
    size_t text_bytes = draw_size(round, TEXT_BYTES_MAX);
    return (struct fxt_string){.text = (const char *)draw_bytes(round, text_bytes),
                               .text_bytes = text_bytes};
}

static struct fxt_record draw_string(struct round *round)
{
    size_t text_bytes = draw_size(round, TEXT_BYTES_MAX);
    return (struct fxt_record)RECORD(STRING, string, .index = round->next_string,
                                     .text = (const char *)draw_bytes(round, text_bytes),
                                     .text_bytes = text_bytes);
}

static struct fxt_record draw_name(struct round *round)
{
    return (struct fxt_record)RECORD(NAME, name, .pid = draw_value(round), .tid = draw_value(round),
                                     .since_ns = draw_value(round),
                                     .name = draw_string_reference(round));
}

static struct fxt_record draw_module(struct round *round)
{
    size_t name_bytes = draw_size(round, SHORT_BYTES_MAX);
    size_t build_id_bytes = draw_size(round, SHORT_BYTES_MAX);
    return (struct fxt_record)RECORD(
        MODULE, module, .time_ns = draw_value(round), .pid = draw_value(round),
        .module_id = (uint16_t)draw_value(round),
        .name = (const char *)draw_bytes(round, name_bytes), .name_bytes = name_bytes,
        .build_id = draw_bytes(round, build_id_bytes), .build_id_bytes = build_id_bytes);
}

static struct fxt_record draw_mmap(struct round *round)
{
    return (struct fxt_record)RECORD(
        MMAP, mmap, .time_ns = draw_value(round), .pid = draw_value(round),
        .module_id = (uint16_t)draw_value(round), .flags = (uint8_t)(draw(round) % 8),
        .start = draw_value(round), .size_bytes = draw_value(round), .vaddr = draw_value(round));
}

static const uint64_t *draw_stack(struct round *round, size_t *ret_count)
{
    size_t count = draw_size(round, STACK_ENTRIES_MAX);
    uint64_t *stack = (uint64_t *)(void *)draw_bytes(round, count * 8);
    *ret_count = count;
    return stack;
}

/* A value of its own in every field that there is, and 0 in the others. */
static struct fxt_record draw_sample(struct round *round)
{
    static const uint64_t bits[SAMPLE_FIELD_COUNT] = {
        1, 2, 4, 8, 16, 32, 1ULL << 61, 1ULL << 62, 1ULL << 63, 1ULL << 60, 1ULL << 59};
    struct fxt_record record = {.kind = FXT_RECORD_SAMPLE};
    struct fxt_sample *sample = &record.sample;
    uint64_t choice = draw_value(round);
    for (size_t i = 0; i < SAMPLE_FIELD_COUNT; i++) {
        sample->fields |= (choice >> i & 1) != 0 ? bits[i] : 0;
    }
    sample->continuation = (sample->fields & bits[0]) != 0 ? draw_value(round) : 0;
    sample->continuation_completion = (sample->fields & bits[1]) != 0 ? draw_value(round) : 0;
    sample->pid = (sample->fields & bits[2]) != 0 ? draw_value(round) : 0;
    sample->tid = (sample->fields & bits[3]) != 0 ? draw_value(round) : 0;
    sample->boot_ts_ns = (sample->fields & bits[4]) != 0 ? draw_value(round) : 0;
    if ((sample->fields & bits[5]) != 0) {
        sample->user_stack = draw_stack(round, &sample->user_count);
    }
    sample->quality = (sample->fields & bits[6]) != 0 ? draw_value(round) : 0;
    if ((sample->fields & bits[7]) != 0) {
        sample->kernel_stack = draw_stack(round, &sample->kernel_count);
    }
    sample->cpu = (sample->fields & bits[8]) != 0 ? draw_value(round) : 0;
    sample->weight = (sample->fields & bits[9]) != 0 ? draw_value(round) : 0;
    sample->event = (sample->fields & bits[10]) != 0 ? draw_value(round) : 0;
    return record;
}

static struct fxt_record draw_drop_stats(struct round *round)
{
    return (struct fxt_record)RECORD(DROP_STATS, drop_stats, .cpu = draw_value(round),
                                     .first_ns = draw_value(round), .last_ns = draw_value(round),
                                     .record_count = (uint32_t)draw_value(round),
                                     .size_bytes = (uint32_t)draw_value(round));
}

static struct fxt_record draw_data(struct round *round)
{
    static const char *names[] = {"cpu-profilerd.session", "cpu-profilerd.symbols",
                                  "cpu-profilerd.books"};
    size_t choice = draw(round) % 3;
    size_t payload_bytes = draw_size(round, PAYLOAD_BYTES_MAX);
    return (struct fxt_record)RECORD(DATA, data,
                                     .name = {.index = (uint16_t)(7 + choice),
                                              .text = names[choice],
                                              .text_bytes = strlen(names[choice])},
                                     .payload = draw_bytes(round, payload_bytes),
                                     .payload_bytes = payload_bytes);
}

static struct fxt_record draw_record(struct round *round)
{
    static struct fxt_record (*const draws[8])(struct round *) = {
        draw_string,     draw_name, draw_module, draw_mmap,
        draw_drop_stats, draw_data, draw_sample, draw_sample};
    return draws[draw(round) % COUNT_OF(draws)](round);
}

static void write_segment(struct round *round, uint32_t provider_id)
{
    fxt_write_segment_begin(&round->writer, provider_id, "cpu-profilerd");
    round->next_string = STRINGS_BEGIN;
    for (size_t i = 0; i < RECORDS_PER_ROUND; i++) {
        struct fxt_record *record = &round->expected[round->expected_count++];
        *record = draw_record(round);
        if (record->kind == FXT_RECORD_STRING) {
            round->strings[round->next_string++] = record;
        }
        write_record(&round->writer, record);
    }
}

/* Whether the segment's start wrote it, and so nothing that was drawn. */
static bool is_of_segment_start(const struct fxt_record *record)
{
    return record->kind == FXT_RECORD_MAGIC || record->kind == FXT_RECORD_PROVIDER ||
           record->kind == FXT_RECORD_INITIALIZATION ||
           (record->kind == FXT_RECORD_STRING && record->string.index < STRINGS_BEGIN);
}

/* Reads all records that are whole in the file's first `end_bytes`, from an exact copy of what is
 * not yet consumed, so that a sanitizer sees a read past the end. */
static void read_piece(struct round *round, struct fxt_reader *reader, size_t end_bytes,
                       size_t *consumed_bytes, size_t *matched_count)
{
    size_t piece_bytes = end_bytes - *consumed_bytes;
    size_t at = 0;
    struct fxt_record record = {0};
    uint8_t *piece = malloc(piece_bytes == 0 ? 1 : piece_bytes);
    assert_non_null(piece);
    memcpy(piece, round->writer.bytes + *consumed_bytes, piece_bytes);
    int r = fxt_reader_next(reader, piece, piece_bytes, &record);
    for (; r == 1; r = fxt_reader_next(reader, piece + at, piece_bytes - at, &record)) {
        assert_int_equal(record.offset_bytes, *consumed_bytes + at);
        at += record.size_bytes;
        if (!is_of_segment_start(&record)) {
            assert_in_range(*matched_count, 0, round->expected_count - 1);
            assert_same_record(&record, &round->expected[(*matched_count)++]);
        }
    }
    assert_string_equal(fxt_reader_error(reader), "");
    assert_int_equal(r, 0);
    *consumed_bytes += at;
    free(piece);
}

static void read_in_pieces(struct round *round)
{
    struct fxt_reader *reader = fxt_reader_new();
    size_t total_bytes = round->writer.used_bytes;
    size_t end_bytes = 0;
    size_t consumed_bytes = 0;
    size_t matched_count = 0;
    while (end_bytes < total_bytes) {
        size_t left_bytes = total_bytes - end_bytes;
        size_t piece_bytes = 1 + draw(round) % (draw(round) % 2 == 0 ? 64 : 65536);
        end_bytes += piece_bytes < left_bytes ? piece_bytes : left_bytes;
        read_piece(round, reader, end_bytes, &consumed_bytes, &matched_count);
    }
    assert_int_equal(consumed_bytes, total_bytes);
    assert_int_equal(matched_count, round->expected_count);
    (void)fxt_reader_free(reader);
}

static void run_round(struct round *round)
{
    fxt_writer_init(&round->writer, round->writer.bytes, ROUND_BYTES_MAX);
    round->arena_used_bytes = 0;
    round->expected_count = 0;
    write_segment(round, 1);
    if (draw(round) % 2 == 0) {
        write_segment(round, 0xffffffff);
    }
    assert_true(fxt_writer_ok(&round->writer));
    read_in_pieces(round);
}

TEST(gives_back_what_was_written)
{
    struct round *round = calloc(1, sizeof *round);
    assert_non_null(round);
    round->arena = malloc(ARENA_BYTES_MAX);
    round->writer.bytes = malloc(ROUND_BYTES_MAX);
    assert_true(round->arena != NULL && round->writer.bytes != NULL);
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        round->random = seed * 0x9e3779b97f4a7c15;
        print_message("seed %d\n", (int)seed);
        run_round(round);
    }
    free(round->writer.bytes);
    free(round->arena);
    free(round);
}
