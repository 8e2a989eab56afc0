/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The vectors of tests/data/fxt: bytes that a person wrote down from the format. In golden/ the
 * writer must give exactly these bytes for the values below, and the reader these values for the
 * bytes; in refused/ the reader must say what NAME.expected says. Nothing here computes a bit: the
 * values are literals, field masks included.
 */
#include "fxt_records.h"

#include <errno.h>
#include <glob.h>

#define WORDS_MAX 512

struct vector {
    uint64_t words[WORDS_MAX]; /* aligned as the reader wants it */
    size_t size_bytes;
};

/* Appends the bytes of a file: pairs of hexadecimal digits, '#' begins a comment. */
static void append_hex(struct vector *vector, const char *path)
{
    char line[256];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("%s: %s", path, strerror(errno));
    }
    while (fgets(line, sizeof line, file) != NULL) {
        assert_non_null(strchr(line, '\n'));
        line[strcspn(line, "#\n")] = '\0';
        for (const char *token = strtok(line, " "); token != NULL; token = strtok(NULL, " ")) {
            char *end = NULL;
            unsigned long byte = strtoul(token, &end, 16);
            assert_true(end == token + 2 && vector->size_bytes < sizeof vector->words);
            ((uint8_t *)vector->words)[vector->size_bytes++] = (uint8_t)byte;
        }
    }
    (void)fclose(file);
}

static void append_golden(struct vector *vector, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/fxt/golden/%s.hex", TEST_DATA_DIR, name);
    append_hex(vector, path);
}

static const uint8_t fuchsia_build_id[] = {0x68, 0x92, 0x0b, 0xd0, 0x6a, 0x81, 0x49,
                                           0xb5, 0x80, 0x04, 0xce, 0xa8, 0xa0, 0xdd,
                                           0x26, 0x0b, 0x05, 0xe8, 0x7d, 0x57};
static const uint8_t bash_build_id[] = {0xde, 0xad, 0xbe, 0xef};
static const char json_line[] = "{\"period_ns\":10}\n";
static const uint64_t three_entries[] = {0x401136, 0x401180, 0x7f0011223344};
static const uint64_t kernel_entries[] = {0xffffffff8100abcd, 0xffffffff81000000};

static const struct golden {
    const char *name;
    struct fxt_record record;
} goldens[] = {
    {"string_empty", RECORD(STRING, string, .index = 32767, .text = "", .text_bytes = 0)},
    {"process_name",
     RECORD(NAME, name, .pid = 4242, .since_ns = 123456789, .name = {TEXT("bash")})},
    {"thread_name", RECORD(NAME, name, .pid = 4242, .tid = 4243, .since_ns = 0xffffffffffffffff,
                           .name = {.index = 11, TEXT("na\xc3\xafve")})},
    {"module",
     RECORD(MODULE, module, .time_ns = 5000, .pid = 123, .module_id = 99, .name = "test_module.so",
            .name_bytes = 14, .build_id = fuchsia_build_id, .build_id_bytes = 20)},
    {"module_anon", RECORD(MODULE, module, .time_ns = 5000, .pid = 123, .module_id = 65535,
                           .name = "[anon]", .name_bytes = 6)},
    {"mmap", RECORD(MMAP, mmap, .time_ns = 6000, .pid = 456, .module_id = 101, .flags = 1,
                    .start = 0x1000, .size_bytes = 0x2000, .vaddr = 0x3000)},
    {"sample_plain",
     RECORD(SAMPLE, sample, .fields = 0x800000000000003c, .pid = 4242, .tid = 4243,
            .boot_ts_ns = 1000000000, .user_stack = three_entries, .user_count = 3, .cpu = 3)},
    {"sample_partial", RECORD(SAMPLE, sample, .fields = 0x1d, .continuation = 0x0003000000000007,
                              .pid = 4242, .tid = 4243, .boot_ts_ns = 1000000000)},
    {"sample_completion", RECORD(SAMPLE, sample, .fields = 0x2000000000000022,
                                 .continuation_completion = 0x0003000000000007,
                                 .user_stack = three_entries, .user_count = 2, .quality = 0x20001)},
    {"sample_kernel",
     RECORD(SAMPLE, sample, .fields = 0xe00000000000003c, .pid = 4242, .tid = 4243,
            .boot_ts_ns = 1000000000, .user_stack = three_entries, .user_count = 1, .cpu = 3,
            .kernel_stack = kernel_entries, .kernel_count = 2, .quality = 0x400090503)},
    {"sample_in_kernel", RECORD(SAMPLE, sample, .fields = 0xc00000000000001c, .pid = 4242,
                                .tid = 4243, .boot_ts_ns = 1000000000, .cpu = 3)},
    {"sample_event", RECORD(SAMPLE, sample, .fields = 0x980000000000001c, .pid = 4242, .tid = 4243,
                            .boot_ts_ns = 1000000000, .cpu = 3, .weight = 1000, .event = 2)},
    {"sample_empty_stack", RECORD(SAMPLE, sample, .fields = 0x200000000000003c, .pid = 2, .tid = 2,
                                  .boot_ts_ns = 1000000000)},
    {"drop_stats", RECORD(DROP_STATS, drop_stats, .cpu = 5, .first_ns = 2000000000,
                          .last_ns = 3000000000, .record_count = 17, .size_bytes = 1088)},
    {"data", RECORD(DATA, data, .name = {.index = 9, TEXT("cpu-profilerd.books")},
                    .payload = (const uint8_t *)json_line, .payload_bytes = 17)},
    {"backtrace", {.kind = FXT_RECORD_OTHER}}, /* which is passed over */
};
static const struct fxt_record string_eleven =
    RECORD(STRING, string, .index = 11, TEXT("na\xc3\xafve"));

/* What stands in file.hex behind the segment's start. */
static const struct fxt_record file_records[] = {
    RECORD(DATA, data, .name = {.index = 7, TEXT("cpu-profilerd.session")},
           .payload = (const uint8_t *)json_line, .payload_bytes = 17),
    RECORD(NAME, name, .pid = 4242, .since_ns = 123456789, .name = {TEXT("bash")}),
    RECORD(MODULE, module, .time_ns = 123456789, .pid = 4242, .module_id = 1, .name = "/bin/bash",
           .name_bytes = 9, .build_id = bash_build_id, .build_id_bytes = 4),
    RECORD(MMAP, mmap, .time_ns = 123456789, .pid = 4242, .module_id = 1, .flags = 5,
           .start = 0x401000, .size_bytes = 0x2000, .vaddr = 0x1000),
    RECORD(SAMPLE, sample, .fields = 0x1d, .pid = 4242, .tid = 4242, .boot_ts_ns = 1000000000),
    RECORD(SAMPLE, sample, .fields = 0x1d, .pid = 4242, .tid = 4242, .boot_ts_ns = 1000266384),
    RECORD(SAMPLE, sample, .fields = 0x2000000000000022, .user_stack = three_entries,
           .user_count = 2, .quality = 0x20001),
    RECORD(DROP_STATS, drop_stats, .first_ns = 2000000000, .last_ns = 2000000000, .record_count = 1,
           .size_bytes = 48),
};

/* What every segment of ours begins with, when it is of `provider`. */
static const struct fxt_record segment_records[] = {
    {.kind = FXT_RECORD_MAGIC},
    RECORD(PROVIDER, string, TEXT("test_provider")),
    RECORD(PROVIDER, string, TEXT("")),
    {.kind = FXT_RECORD_INITIALIZATION, .ticks_per_second = 1000000000},
    RECORD(STRING, string, .index = 1, TEXT("process")),
    RECORD(STRING, string, .index = 2, TEXT("boot_ts_ns")),
    RECORD(STRING, string, .index = 3, TEXT("kernel:meta")),
    RECORD(STRING, string, .index = 4, TEXT("drop_stats")),
    RECORD(STRING, string, .index = 5, TEXT("num_records")),
    RECORD(STRING, string, .index = 6, TEXT("num_bytes")),
    RECORD(STRING, string, .index = 7, TEXT("cpu-profilerd.session")),
    RECORD(STRING, string, .index = 8, TEXT("cpu-profilerd.symbols")),
    RECORD(STRING, string, .index = 9, TEXT("cpu-profilerd.books")),
    RECORD(STRING, string, .index = 10, TEXT("cpu-profilerd.processes")),
};

/* Reads one record at `*offset_bytes` and moves it on. */
static void read_next(struct fxt_reader *reader, const struct vector *vector, size_t *offset_bytes,
                      struct fxt_record *ret)
{
    const uint8_t *bytes = (const uint8_t *)vector->words;
    int r = fxt_reader_next(reader, bytes + *offset_bytes, vector->size_bytes - *offset_bytes, ret);
    if (r != 1) {
        fail_msg("%d: %s", r, fxt_reader_error(reader));
    }
    assert_int_equal(ret->offset_bytes, *offset_bytes);
    *offset_bytes += ret->size_bytes;
}

static void expect_records(struct fxt_reader *reader, const struct vector *vector,
                           size_t *offset_bytes, const struct fxt_record *expected, size_t count)
{
    struct fxt_record record;
    for (size_t i = 0; i < count; i++) {
        read_next(reader, vector, offset_bytes, &record);
        assert_same_record(&record, &expected[i]);
    }
}

/* For the values the writer gives the bytes of one golden file, or of two. `provider_id`: of the
 * segment that it begins, 0: of none. */
static void expect_written(const char *name, const char *second_name, uint32_t provider_id,
                           const char *provider_name, const struct fxt_record *records,
                           size_t count)
{
    struct vector expected = {0};
    struct vector actual;
    struct fxt_writer writer;
    print_message("%s\n", name);
    append_golden(&expected, name);
    if (second_name != NULL) {
        append_golden(&expected, second_name);
    }
    memset(&actual, 0xa5, sizeof actual);
    fxt_writer_init(&writer, actual.words, sizeof actual.words);
    if (provider_id != 0) {
        fxt_write_segment_begin(&writer, provider_id, provider_name);
    }
    for (size_t i = 0; i < count; i++) {
        write_record(&writer, &records[i]);
    }
    assert_true(fxt_writer_ok(&writer));
    assert_same_bytes(actual.words, writer.used_bytes, expected.words, expected.size_bytes);
}

TEST(writes_the_golden_bytes)
{
    expect_written("segment", "string", 0xaabbccdd, "test_provider", &string_eleven, 1);
    expect_written("file", NULL, 1, "cpu-profilerd", file_records, COUNT_OF(file_records));
    for (size_t i = 0; i < COUNT_OF(goldens); i++) {
        if (goldens[i].record.kind != FXT_RECORD_OTHER) {
            expect_written(goldens[i].name, NULL, 0, NULL, &goldens[i].record, 1);
        }
    }
}

TEST(reads_the_golden_bytes)
{
    for (size_t i = 0; i < COUNT_OF(goldens); i++) {
        struct vector vector = {0};
        struct fxt_record record = {0};
        size_t offset_bytes = 0;
        struct fxt_reader *reader = fxt_reader_new();
        append_golden(&vector, "segment");
        append_golden(&vector, "string");
        append_golden(&vector, goldens[i].name);
        print_message("%s\n", goldens[i].name);
        expect_records(reader, &vector, &offset_bytes, segment_records, COUNT_OF(segment_records));
        expect_records(reader, &vector, &offset_bytes, &string_eleven, 1);
        read_next(reader, &vector, &offset_bytes, &record);
        assert_same_record(&record, &goldens[i].record);
        assert_int_equal(record.provider_id, 0xaabbccdd);
        assert_int_equal(offset_bytes, vector.size_bytes);
        (void)fxt_reader_free(reader);
    }
}

/* The golden file, then a segment of another provider: two segments are a file, too. */
TEST(reads_the_golden_file_and_a_segment_after_it)
{
    const size_t start = COUNT_OF(segment_records);
    struct vector vector = {0};
    struct fxt_record record = {0};
    size_t offset_bytes = 0;
    struct fxt_reader *reader = fxt_reader_new();
    append_golden(&vector, "file");
    append_golden(&vector, "segment");
    for (size_t i = 0; i < start; i++) {
        read_next(reader, &vector, &offset_bytes, &record);
        assert_int_equal(record.provider_id, i == 0 ? 0 : 1);
    }
    expect_records(reader, &vector, &offset_bytes, file_records, COUNT_OF(file_records));
    expect_records(reader, &vector, &offset_bytes, segment_records, start);
    assert_int_equal(offset_bytes, vector.size_bytes);
    (void)fxt_reader_free(reader);
}

static void read_expected_error(const char *hex_path, char *ret, size_t ret_bytes)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%.*s.expected", (int)(strlen(hex_path) - strlen(".hex")),
                   hex_path);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("%s: %s", path, strerror(errno));
    }
    assert_non_null(fgets(ret, (int)ret_bytes, file));
    (void)fclose(file);
    ret[strcspn(ret, "\n")] = '\0';
}

static void expect_refused(const char *path)
{
    char expected[256];
    struct vector vector = {0};
    struct fxt_record record = {0};
    size_t offset_bytes = 0;
    int r = 1;
    struct fxt_reader *reader = fxt_reader_new();
    append_hex(&vector, path);
    read_expected_error(path, expected, sizeof expected);
    while (r == 1) {
        r = fxt_reader_next(reader, (const uint8_t *)vector.words + offset_bytes,
                            vector.size_bytes - offset_bytes, &record);
        offset_bytes += r == 1 ? record.size_bytes : 0;
    }
    print_message("%s\n", path);
    assert_int_equal(r, -EBADMSG);
    assert_string_equal(fxt_reader_error(reader), expected);

    /* An error changes nothing: the same bytes give it again. */
    r = fxt_reader_next(reader, (const uint8_t *)vector.words + offset_bytes,
                        vector.size_bytes - offset_bytes, &record);
    assert_int_equal(r, -EBADMSG);
    assert_string_equal(fxt_reader_error(reader), expected);
    (void)fxt_reader_free(reader);
}

TEST(refuses_each_broken_file_with_its_reason)
{
    glob_t paths;
    assert_int_equal(glob(TEST_DATA_DIR "/fxt/refused/*.hex", 0, NULL, &paths), 0);
    assert_in_range(paths.gl_pathc, 40, 1000);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        expect_refused(paths.gl_pathv[i]);
    }
    globfree(&paths);
}
