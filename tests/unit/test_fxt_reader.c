/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the reader makes of files that others write, and of the order of records: kinds that are
 * passed over, references, providers and segments, ticks, limits of the tables. Files are arrays of
 * words; "test_fxt_golden" has single records and what is refused for its own bits.
 */
#include "fxt_records.h"

#include <errno.h>

#define MAGIC         UINT64_C(0x0016547846040010)
#define PROVIDER(id)  (UINT64_C(0x10010) | (uint64_t)(id) << 20)
#define SECTION(id)   (UINT64_C(0x20010) | (uint64_t)(id) << 20)
#define INIT          UINT64_C(0x21)
#define STRING(index) (UINT64_C(0x0000000100000022) | (uint64_t)(index) << 16) /* of one byte */
#define PROCESS_NAME  UINT64_C(0x00010027) /* 2 words, empty name, no argument */
#define MODULE        UINT64_C(0x1000004a) /* module 1, 4 words, no name */

struct stream {
    struct fxt_reader *reader;
    const uint64_t *words;
    size_t word_count;
};

/* Reads the next record and moves on. */
static int next(struct stream *stream, struct fxt_record *ret)
{
    int r = fxt_reader_next(stream->reader, (const uint8_t *)stream->words, stream->word_count * 8,
                            ret);
    if (r == 1) {
        stream->words += ret->size_bytes / 8;
        stream->word_count -= ret->size_bytes / 8;
    }
    return r;
}

/* Reads `count` records, the last of which must be as expected, and then either the words are over
 * or what follows is refused with that error. */
static void read_words(size_t count, const struct fxt_record *expected, const char *error,
                       const uint64_t *words, size_t word_count)
{
    struct stream stream = {fxt_reader_new(), words, word_count};
    struct fxt_record record = {0};
    for (size_t i = 0; i < count; i++) {
        if (next(&stream, &record) != 1) {
            fail_msg("record %zu: %s", i, fxt_reader_error(stream.reader));
        }
    }
    if (error != NULL) {
        assert_int_equal(next(&stream, &record), -EBADMSG);
        assert_string_equal(fxt_reader_error(stream.reader), error);
    } else {
        assert_int_equal(stream.word_count, 0);
        assert_same_record(&record, expected);
        assert_int_equal(record.type, expected->type == 0 ? record.type : expected->type);
        assert_int_equal(record.provider_id,
                         expected->provider_id == 0 ? record.provider_id : expected->provider_id);
    }
    (void)fxt_reader_free(stream.reader);
}

#define EXPECT_LAST(count, expected, ...)                                                          \
    read_words(count, &(const struct fxt_record)expected, NULL, ROWS_OF(uint64_t, __VA_ARGS__))
#define EXPECT_REFUSED(count, error, ...)                                                          \
    read_words(count, NULL, error, ROWS_OF(uint64_t, __VA_ARGS__))

TEST(waits_for_the_whole_record)
{
    const uint64_t words[] = {MAGIC, STRING(5), 'a'};
    struct fxt_record record = {0};
    struct fxt_reader *reader = fxt_reader_new();
    for (size_t size_bytes = 0; size_bytes < 8; size_bytes++) {
        assert_int_equal(fxt_reader_next(reader, (const uint8_t *)words, size_bytes, &record), 0);
    }
    assert_int_equal(fxt_reader_next(reader, (const uint8_t *)words, 8, &record), 1);
    for (size_t size_bytes = 0; size_bytes < 16; size_bytes++) {
        assert_int_equal(fxt_reader_next(reader, (const uint8_t *)(words + 1), size_bytes, &record),
                         0);
    }
    assert_int_equal(record.kind, FXT_RECORD_MAGIC);
    assert_int_equal(fxt_reader_next(reader, (const uint8_t *)(words + 1), 16, &record), 1);
    assert_int_equal(record.kind, FXT_RECORD_STRING);
    assert_int_equal(record.offset_bytes, 8);
    (void)fxt_reader_free(reader);
}

TEST(passes_over_valid_records_of_other_kinds)
{
    static const struct {
        uint64_t header;
        uint8_t type;
    } others[] = {
        {0x0000000000030010, 0},  /* provider event: buffer filled up */
        {0x00000000000f0020, 0},  /* a kind of metadata that is not defined */
        {0x0000000000140010, 0},  /* trace info of another kind */
        {0x0000000000010033, 3},  /* thread 1 */
        {0x0000000000000044, 4},  /* instant event without category and name */
        {0x0003000800000025, 5},  /* blob of Perfetto packets */
        {0x0000000000000025, 5},  /* blob of type 0, bits as they like */
        {0x0000000000000036, 6},  /* userspace object */
        {0x0000000000030027, 7},  /* kernel object of type 3 */
        {0x0000000000020027, 7},  /* a thread's name without its process */
        {0x1000000000000028, 8},  /* scheduling */
        {0x0000000000000029, 9},  /* log */
        {0x000000000002004a, 10}, /* backtrace */
        {0x00000000000f001a, 10}, /* a kind of profiler record that is not defined */
        {0x000000000000001b, 11}, {0x000000000000001c, 12},
        {0x000000000000001d, 13}, {0xffffffffffff002e, 14},
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        const uint64_t words[] = {MAGIC, others[i].header, 7, 7, 7};
        size_t size = others[i].header >> 4 & 4095;
        print_message("header 0x%llx\n", (unsigned long long)others[i].header);
        read_words(2, &(struct fxt_record){.kind = FXT_RECORD_OTHER, .type = others[i].type}, NULL,
                   words, 1 + size);
    }
}

TEST(takes_a_name_without_arguments_as_of_any_time)
{
    EXPECT_LAST(2, RECORD(NAME, name, .pid = 4242), MAGIC, PROCESS_NAME, 4242);
}

TEST(ignores_arguments_that_it_does_not_know)
{
    /* A thread's name of 13 words with four arguments, whose names all stand in the record. */
    EXPECT_LAST(2, RECORD(NAME, name, .pid = 4242, .tid = 4243, .since_ns = 99), MAGIC,
                0x00000400000200d7, 4243,                    /* koid */
                0x80010026, 'x',                             /* string "x", empty */
                0x0000000780010021, 'y',                     /* i32 "y", 7 */
                0x80070038, 0x00737365636f7270, 4242,        /* koid "process" */
                0x800a0044, 0x5f73745f746f6f62, 0x736e, 99); /* u64 "boot_ts_ns" */
}

TEST(knows_drop_stats_by_inline_texts_and_an_indexed_thread)
{
    EXPECT_LAST(3,
                RECORD(DROP_STATS, drop_stats, .cpu = 6, .first_ns = 1000, .last_ns = 2000,
                       .record_count = 3, .size_bytes = 100),
                MAGIC, 0x0000000000070033, 0, 6, /* thread 7: process 0, thread 6 */
                0x800a800b072400d4, 1000,        /* 13 words, thread 7, inline texts */
                0x6d3a6c656e72656b, 0x617465,    /* "kernel:meta" */
                0x6174735f706f7264, 0x7374,      /* "drop_stats" */
                0x00000003800b0032, 0x6f6365725f6d756e, 0x736472,    /* num_records 3 */
                0x0000006480090032, 0x657479625f6d756e, 0x73, 2000); /* num_bytes 100, the end */
}

TEST(keeps_the_strings_of_providers_apart)
{
    static const struct fxt_record name = {.kind = FXT_RECORD_NAME,
                                           .provider_id = 1,
                                           .name = {.pid = 4242, .name = {.index = 5, TEXT("a")}}};
    read_words(7, &name, NULL,
               ROWS_OF(uint64_t, MAGIC, PROVIDER(1), STRING(5), 'a', PROVIDER(2), STRING(5), 'b',
                       SECTION(1), PROCESS_NAME | 5 << 24, 4242));
    EXPECT_REFUSED(4, "offset 40: string 5 is not defined", MAGIC, PROVIDER(1), STRING(5), 'a',
                   PROVIDER(2), PROCESS_NAME | 5 << 24, 4242);
}

TEST(keeps_records_before_any_provider_apart_from_provider_zero)
{
    EXPECT_REFUSED(3, "offset 32: string 5 is not defined", MAGIC, STRING(5), 'a', PROVIDER(0),
                   PROCESS_NAME | 5 << 24, 4242);
}

TEST(begins_anew_at_each_magic_number)
{
    EXPECT_LAST(8, RECORD(MODULE, module, .time_ns = 77, .pid = 4242, .module_id = 1), MAGIC,
                PROVIDER(1), INIT, 1000, STRING(5), 'a', MAGIC, PROVIDER(1), STRING(5), 'b', MODULE,
                77, 4242, 0);
    EXPECT_REFUSED(3, "offset 24: provider 1 is not defined", MAGIC, PROVIDER(1), MAGIC,
                   SECTION(1));
    EXPECT_REFUSED(3, "offset 32: string 5 is not defined", MAGIC, STRING(5), 'a', MAGIC,
                   PROCESS_NAME | 5 << 24, 4242);
}

TEST(turns_ticks_into_nanoseconds)
{
    static const struct {
        uint64_t ticks_per_second;
        uint64_t ticks;
        uint64_t time_ns;
    } cases[] = {
        {1000000000, UINT64_MAX, UINT64_MAX},
        {24000000, 24000001, 1000000041},
        {1, 18446744073, 18446744073000000000U},
        {UINT64_MAX, UINT64_MAX, 1000000000},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        EXPECT_LAST(
            3, RECORD(MODULE, module, .time_ns = cases[i].time_ns, .pid = 4242, .module_id = 1),
            MAGIC, INIT, cases[i].ticks_per_second, MODULE, cases[i].ticks, 4242, 0);
    }
}

/* Feeds `count` records of one or two words, whose header `header(i)` makes. */
static int feed_many(struct fxt_reader *reader, uint64_t (*header)(size_t), size_t begin,
                     size_t end)
{
    struct fxt_record record;
    int r = 1;
    for (size_t i = begin; r == 1 && i < end; i++) {
        const uint64_t words[2] = {header(i), 'a'};
        r = fxt_reader_next(reader, (const uint8_t *)words, sizeof words, &record);
    }
    return r;
}

static uint64_t magic_header(size_t i)
{
    (void)i;
    return MAGIC;
}

static uint64_t provider_header(size_t i)
{
    return PROVIDER(i * 2654435761U % 4294967296U); /* in no order, all different */
}

static uint64_t section_header(size_t i)
{
    return SECTION(i * 2654435761U % 4294967296U);
}

static uint64_t string_header(size_t i)
{
    return STRING(i);
}

TEST(holds_every_string_and_4096_providers_and_no_more)
{
    struct fxt_reader *reader = fxt_reader_new();
    assert_int_equal(feed_many(reader, magic_header, 0, 1), 1);
    assert_int_equal(feed_many(reader, string_header, 1, 32768), 1);
    assert_int_equal(feed_many(reader, provider_header, 0, 4096), 1);
    assert_int_equal(feed_many(reader, section_header, 0, 4096), 1);
    assert_int_equal(feed_many(reader, provider_header, 4096, 4097), -EBADMSG);
    assert_contains(fxt_reader_error(reader), "more than 4096 providers");
    (void)fxt_reader_free(reader);
}
