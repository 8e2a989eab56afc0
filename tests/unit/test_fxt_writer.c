/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The limits of the writer: what it refuses, and that refusing leaves only whole records behind.
 * What the bytes are is test_fxt_golden.c's matter.
 */
#include "fxt_records.h"

static uint64_t memory[8192];
static const char text[32768];
static const uint64_t stack[4095];

static struct fxt_writer writer_of(size_t capacity_bytes)
{
    struct fxt_writer writer;
    assert_in_range(capacity_bytes, 0, sizeof memory);
    fxt_writer_init(&writer, memory, capacity_bytes);
    return writer;
}

#define USER_STACK_OF(entry_count)                                                                 \
    RECORD(SAMPLE, sample, .fields = FXT_SAMPLE_USER_STACK, .user_stack = stack,                   \
           .user_count = (entry_count))
#define STRING_OF(string_index, byte_count)                                                        \
    RECORD(STRING, string, .index = (string_index), .text = text, .text_bytes = (byte_count))
#define NAME_OF(string_index, byte_count)                                                          \
    RECORD(NAME, name, .name = {.index = (string_index), .text = text, .text_bytes = (byte_count)})
#define DATA_OF(string_index, byte_count)                                                          \
    RECORD(DATA, data, .name = {.index = (string_index)}, .payload = (const uint8_t *)text,        \
           .payload_bytes = (byte_count))

static const struct fxt_record at_the_limit[] = {
    STRING_OF(11, 4096),
    STRING_OF(32767, 1),
    NAME_OF(0, 4096),
    NAME_OF(32767, 0),
    DATA_OF(7, 32752),
    DATA_OF(10, 0),
    USER_STACK_OF(4092),
    RECORD(MODULE, module, .name = text, .name_bytes = 255),
    RECORD(MODULE, module, .build_id = (const uint8_t *)text, .build_id_bytes = 255),
    RECORD(MMAP, mmap, .flags = 7),
    /* A stack whose field is not there is none. */
    RECORD(SAMPLE, sample, .fields = FXT_SAMPLE_PID, .user_count = SIZE_MAX, .kernel_count = 9),
};

static const struct fxt_record beyond_the_limit[] = {
    STRING_OF(11, 4097),
    STRING_OF(10, 1),    /* a known string */
    STRING_OF(32768, 1), /* an inline reference */
    STRING_OF(0, 1),
    NAME_OF(0, 4097),
    NAME_OF(32768, 0),
    DATA_OF(7, 32753),
    DATA_OF(0, 1),
    DATA_OF(11, 1),
    USER_STACK_OF(4093),
    USER_STACK_OF(SIZE_MAX),
    USER_STACK_OF(SIZE_MAX / 8 + 1),
    RECORD(SAMPLE, sample, .fields = FXT_SAMPLE_USER_STACK | FXT_SAMPLE_KERNEL_STACK,
           .user_stack = stack, .user_count = 2046, .kernel_stack = stack, .kernel_count = 2046),
    RECORD(SAMPLE, sample, .fields = FXT_SAMPLE_KERNEL_STACK, .kernel_stack = stack,
           .kernel_count = SIZE_MAX),
    RECORD(SAMPLE, sample, .fields = UINT64_C(1) << 58),
    RECORD(SAMPLE, sample, .fields = UINT64_C(1) << 6),
    RECORD(MODULE, module, .name = text, .name_bytes = 256),
    RECORD(MODULE, module, .build_id = (const uint8_t *)text, .build_id_bytes = 256),
    RECORD(MMAP, mmap, .flags = 8),
};

TEST(writes_what_is_at_a_limit)
{
    for (size_t i = 0; i < COUNT_OF(at_the_limit); i++) {
        struct fxt_writer writer = writer_of(sizeof memory);
        write_record(&writer, &at_the_limit[i]);
        print_message("case %zu\n", i);
        assert_true(fxt_writer_ok(&writer));
        assert_int_equal((memory[0] >> 4 & 4095) * 8, writer.used_bytes);
    }
}

TEST(refuses_what_is_beyond_a_limit_and_writes_nothing)
{
    for (size_t i = 0; i < COUNT_OF(beyond_the_limit); i++) {
        struct fxt_writer writer = writer_of(sizeof memory);
        write_record(&writer, &beyond_the_limit[i]);
        print_message("case %zu\n", i);
        assert_false(fxt_writer_ok(&writer));
        assert_int_equal(writer.used_bytes, 0);
    }
}

TEST(refuses_a_record_that_does_not_fit_and_all_after_it)
{
    const struct fxt_mmap mmap = {0};
    struct fxt_writer writer = writer_of(2 * 56 + 55);
    fxt_write_mmap(&writer, &mmap);
    fxt_write_mmap(&writer, &mmap);
    assert_true(fxt_writer_ok(&writer));
    memory[14] = 0x5a5a;
    fxt_write_mmap(&writer, &mmap);
    assert_false(fxt_writer_ok(&writer));
    fxt_write_string(&writer, 11, "", 0); /* would fit */
    assert_false(fxt_writer_ok(&writer));
    assert_int_equal(writer.used_bytes, 2 * 56);
    assert_int_equal(memory[14], 0x5a5a);
}

TEST(begins_a_segment_whole_or_not_at_all)
{
    struct fxt_writer writer = writer_of(sizeof memory);
    fxt_write_segment_begin(&writer, 1, "cpu-profilerd");
    assert_true(fxt_writer_ok(&writer));
    size_t segment_bytes = writer.used_bytes;
    for (size_t capacity_bytes = 0; capacity_bytes <= segment_bytes; capacity_bytes += 8) {
        bool fits = capacity_bytes == segment_bytes; /* to the last word */
        writer = writer_of(capacity_bytes);
        fxt_write_segment_begin(&writer, 1, "cpu-profilerd");
        assert_int_equal(fxt_writer_ok(&writer), fits);
        assert_int_equal(writer.used_bytes, fits ? segment_bytes : 0);
    }
}

TEST(refuses_a_provider_without_id_or_with_too_long_a_name)
{
    char name[257] = {0};
    struct fxt_writer writer = writer_of(sizeof memory);
    fxt_write_segment_begin(&writer, 0, "cpu-profilerd");
    assert_false(fxt_writer_ok(&writer));

    memset(name, 'n', 255);
    writer = writer_of(sizeof memory);
    fxt_write_segment_begin(&writer, 1, name);
    assert_true(fxt_writer_ok(&writer));

    name[255] = 'n';
    writer = writer_of(sizeof memory);
    fxt_write_segment_begin(&writer, 1, name);
    assert_false(fxt_writer_ok(&writer));
    assert_int_equal(writer.used_bytes, 0);
}
