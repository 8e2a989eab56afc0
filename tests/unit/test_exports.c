/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What each format has of small recordings, byte for byte: tests/data/export/FORMAT has it as text.
 * JSON stands there a member a line, protobuf by the numbers of its fields, other bytes in words of
 * eight with their characters. What other programs make of a format is for system.export_formats.
 */
#include "app_recording.h"
#include "cleanup.h"
#include "failing_allocation.h"
#include "fxt_format.h"
#include "packets.h"

#include <ctype.h>
#include <inttypes.h>

#define MS            UINT64_C(1000000)
#define BLOB_PERFETTO 3

/* Each kind of frame, of stack and of name. */
static struct recording *rich_recording(void)
{
    struct recording *recording =
        recording_of(APP "symbol ab /bin/app 0x1030 at+0x1f; symbol ab /bin/app 0x1040 at+0y1f;"
                         "symbol ab /bin/app 0x1050 at+0x;"
                         "module 7 2 /lib/x{y}:z 0; module 7 3 [anon] 0; module 7 4 /bin/new 0xef;"
                         "mmap 0 7 2 0x20000 0x1000 0; mmap 0 7 3 0x30000 0x1000 0;"
                         "module 9 1 /bin/app 0xcd; mmap 0 9 1 0x10000 0x1000 0x1000;"
                         "symbol cd /bin/app 0x1000 main;"
                         "mmap 5500000 7 4 0x10000 0x3000 0x5000");
    add_kernel(recording);
    add_name(recording, 7, 8, 0, " b [x 2 ");
    add_name(recording, 9, 0, 0, "#{b}");
    add_data(recording, FXT_STRING_PROCESSES,
             "{\"pid\":9,\"boot_ts_ns\":\"0\",\"uid\":33,\"cgroup\":\"/web\","
             "\"unit\":\"web.service\",\"container\":\"c0ffee\",\"runtime\":\"docker\"}\n");
    add_lines(recording,
              "sample 1000000 7 1 0x10022 0x10012 0x10002;"
              "sample 2000000 7 4 0x10022 0x10012;"
              "sample 3000000 9 1 0x10003 | 0xffffffff81000001 0xffffffff81000002;"
              "sample 4000000 7 1 0x20010 0x30010 0x10032 0x10042 0x10052 0x5;"
              "sample 5000000 7 1 0x10022 0x10012 0x10002;"
              "sample 6000000 7 1 0x10022 0x11000 0x11002 0x12002 0x20010; sample 7000000 9 0");
    struct fxt_sample thread = user_sample(4 * MS, 7, COMPLETE, ADDRESSES(0x10002));
    thread.tid = 8;
    thread.cpu = 0;
    fxt_write_sample(&recording->writer, &thread);
    thread.boot_ts_ns = 5 * MS; /* as many as of process 9 */
    fxt_write_sample(&recording->writer, &thread);
    add_data(recording, FXT_STRING_SESSION,
             "{\"session\":\"s1\",\"config\":{\"sample_period_ns\":1000000},\"host\":\"box\","
             "\"kernel\":\"6.1\",\"created_boot_ns\":\"0\","
             "\"created_realtime_ns\":\"1700000000000000000\"}\n");
    add_data(recording, FXT_STRING_BOOKS,
             "{\"period_ns\":1000000,\"cpus\":[],\"total\":{\"expected\":20,\"received\":9,"
             "\"kept\":9,\"filtered\":0,\"lost\":1,\"missed\":2,\"idle\":8,\"unexplained\":0},"
             "\"truncated_stacks\":1}\n");
    return recording;
}

static struct recording *bare_recording(void)
{
    return recording_new();
}

/* Waits of 3 and 1 s. */
static struct recording *waits_recording(void)
{
    struct recording *recording = recording_of(APP);
    for (uint64_t i = 0; i < 2; i++) {
        struct fxt_sample sample =
            user_sample((4 + i) * 1000 * MS, 7, COMPLETE, ADDRESSES(0x10002));
        sample.fields |= FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT;
        sample.event = 1;
        sample.weight = (3 - 2 * i) * 1000 * MS;
        fxt_write_sample(&recording->writer, &sample);
    }
    add_data(recording, FXT_STRING_SESSION,
             "{\"session\":\"s2\",\"events\":[{\"event\":\"cpu-clock\"},"
             "{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1}]}\n");
    add_data(recording, FXT_STRING_BOOKS,
             "{\"events\":[{\"event\":\"off-cpu\",\"period\":1,\"total\":{\"counted\":5,"
             "\"sampled\":4,\"lost\":1,\"kept\":2,\"dropped\":2}}]}\n");
    return recording;
}

/* A sample of init. Debugging information tells of a function that is inlined there. */
static struct recording *init_recording(void)
{
    return recording_of("name 1 0 0 init; name 1 1 0 first; module 1 1 /bin/one 0xab;"
                        "mmap 0 1 1 0x10000 0x1000 0; symbol ab /bin/one 0 main;"
                        "sample 1000000 1 1 0x10012");
}

static void tell_inlined(struct profile *profile)
{
    static const char *const texts[] = {"leaf", "main", "/src/a.c"};
    struct inlines *table = &profile->inlines;
    uint32_t items[COUNT_OF(texts)];
    table->is_wanted = true;
    table->has_lines = true;
    assert_int_equal(profile_resolve(profile), 0);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(intern_add(&profile->texts, texts[i], strlen(texts[i]), &items[i]), 0);
    }
    table->frames = calloc(2, sizeof *table->frames);
    assert_non_null(table->frames);
    table->frames[0] = (struct inline_frame){items[0], items[2], 7};
    table->frames[1] = (struct inline_frame){items[1], items[2], 9};
    table->frame_count = 2;
    table->chains[0] = (struct inline_chain){0, 2};
    assert_int_equal(profile_resolve(profile), 0);
}

static const struct {
    struct recording *(*make)(void);
    const char *event;
    void (*tell)(struct profile *profile);
} recordings[] = {{rich_recording, NULL, NULL},
                  {bare_recording, NULL, NULL},
                  {waits_recording, "off-cpu", NULL},
                  {init_recording, NULL, tell_inlined}};

static struct profile *load(size_t number)
{
    struct recording *recording = recordings[number].make();
    struct profile *profile = NULL;
    struct fault fault = {0};
    if (profile_load_memory((const uint8_t *)recording->memory, recording->writer.used_bytes,
                            recordings[number].event, &profile, &fault) < 0) {
        fail_msg("%s", fault.text);
    }
    free(recording);
    if (recordings[number].tell != NULL) {
        recordings[number].tell(profile);
    }
    return profile;
}

/* Takes a number of protobuf. */
static bool take_number(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        *ret |= (uint64_t)(**at & 0x7f) << shift;
        if ((*(*at)++ & 0x80) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_text(const uint8_t *bytes, size_t count)
{
    size_t at = 0;
    while (at < count && isprint(bytes[at])) {
        at++;
    }
    return count > 0 && at == count;
}

static bool dump_message(FILE *file, const uint8_t *at, size_t count, int line_levels);

/* Prints bytes that are a field: a text, a message, or else numbers. */
static void dump_field(FILE *file, const uint8_t *bytes, size_t count, int line_levels)
{
    char *inside = NULL;
    size_t inside_bytes = 0;
    FILE *inner = open_memstream(&inside, &inside_bytes);
    bool is_message = dump_message(inner, bytes, count, line_levels);
    assert_int_equal(fclose(inner), 0);
    if (is_text(bytes, count)) {
        (void)fprintf(file, " '%.*s'", (int)count, (const char *)bytes);
    } else if (is_message) {
        (void)fprintf(file, " {%s}", inside);
    } else {
        for (size_t i = 0; i < count; i++) {
            (void)fprintf(file, "%c%u", i == 0 ? ' ' : '.', bytes[i]);
        }
    }
    free(inside);
}

/* Prints a message's fields, of so many levels of messages each in a line of its own. False: it is
 * no message. */
static bool dump_message(FILE *file, const uint8_t *at, size_t count, int line_levels)
{
    for (const uint8_t *begin = at, *end = at + count; at < end;) {
        uint64_t key = 0;
        uint64_t value = 0;
        (void)fputs(line_levels > 0 ? "\n" : at > begin ? " " : "", file);
        if (!take_number(&at, end, &key) || key < 8) {
            return false;
        }
        size_t fixed_bytes = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : 0;
        if (fixed_bytes > 0 && fixed_bytes <= (size_t)(end - at)) {
            memcpy(&value, at, fixed_bytes);
            at += fixed_bytes;
        } else if ((key % 8 != 0 && key % 8 != 2) || !take_number(&at, end, &value)) {
            return false;
        }
        (void)fprintf(file, "%" PRIu64 ":", key / 8);
        if (key % 8 != 2) {
            (void)fprintf(file, "%" PRIu64, value);
        } else if (value > (size_t)(end - at)) {
            return false;
        } else {
            dump_field(file, at, value, line_levels - 1);
            at += value;
        }
    }
    return true;
}

/* Eight words a line, and their characters. */
static void dump_words(FILE *file, const uint8_t *bytes, size_t count)
{
    for (size_t at = 0; at < count; at += 64) {
        for (size_t word = at; word < at + 64 && word < count; word += 8) {
            uint64_t value = 0;
            memcpy(&value, bytes + word, count - word < 8 ? count - word : 8);
            (void)fprintf(file, "%" PRIx64 " ", value);
        }
        for (size_t i = at; i < at + 64 && i < count; i++) {
            (void)fprintf(file, isgraph(bytes[i]) ? "%c" : "", bytes[i]);
        }
        (void)fputc('\n', file);
    }
}

/* Of JSON, each object of a list has a line, and what stands behind a list or an object. */
static void dump_text(FILE *file, const char *text, bool is_json)
{
    for (char before = '\0'; *text != '\0'; before = *text++) {
        (void)fputc(*text, file);
        if (is_json && ((*text == ',' && (before == ']' || before == '}')) ||
                        (*text == '[' && text[1] == '{'))) {
            (void)fputc('\n', file);
        }
    }
}

static char *print(const struct export_format *format, const struct profile *profile, bool is_piped,
                   size_t *ret_bytes, int *ret_result)
{
    const struct export_options options = {
        .is_piped = is_piped, .has_lost_frame = !format->has_no_frame && profile->event.is_clock};
    char *bytes = NULL;
    FILE *file = open_memstream(&bytes, ret_bytes);
    assert_non_null(file);
    *ret_result = format->print(file, profile, &options);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

/* The version of the program is no part of a format. */
static void hide_version(char *text, size_t *bytes, bool is_padded)
{
    const size_t version_bytes = strlen(CPU_PROFILERD_VERSION);
    char *at = memmem(text, *bytes, CPU_PROFILERD_VERSION, version_bytes);
    for (; at != NULL; at = memmem(text, *bytes, CPU_PROFILERD_VERSION, version_bytes)) {
        memset(at, 0, version_bytes);
        *at = '#';
        if (!is_padded) {
            *bytes -= version_bytes - 1;
            memmove(at + 1, at + version_bytes, (size_t)(text + *bytes - at));
        }
    }
}

static const struct {
    const char *format;
    int line_levels; /* of protobuf; 0: it is JSON */
} shapes[] = {{"perfetto", 1},   {"pprof", 1},   {"otlp", 2},
              {"speedscope", 0}, {"firefox", 0}, {"chrome", 0}};

static void dump(FILE *file, const struct export_format *format, char *bytes, size_t count)
{
    size_t shape = 0;
    while (shape < COUNT_OF(shapes) && strcmp(format->name, shapes[shape].format) != 0) {
        shape++;
    }
    if (shape < COUNT_OF(shapes) && format->is_binary) {
        assert_true(dump_message(file, (const uint8_t *)bytes, count, shapes[shape].line_levels));
        (void)fputc('\n', file);
    } else if (format->is_binary) {
        hide_version(bytes, &count, true);
        dump_words(file, (const uint8_t *)bytes, count);
    } else {
        dump_text(file, bytes, shape < COUNT_OF(shapes));
    }
}

static void assert_as_told(const char *name, const char *found)
{
    static char told[1 << 17];
    char path[512];
    (void)snprintf(path, sizeof path, "%s/export/%s", TEST_DATA_DIR, name);
    FILE *file = fopen(path, "re");
    size_t bytes = file == NULL ? 0 : fread(told, 1, sizeof told - 1, file);
    assert_true(file == NULL || fclose(file) == 0);
    told[bytes] = '\0';
    const char *begin = found;
    size_t at = 0;
    for (; found[at] != '\0' && found[at] == told[at]; at++) {
        begin = found[at] == '\n' ? found + at + 1 : begin;
    }
    if (found[at] != told[at]) {
        const char *expected = told + (begin - found);
        fail_msg("%s: '%.*s' is there, '%.*s' is expected", path, (int)strcspn(begin, "\n"), begin,
                 (int)strcspn(expected, "\n"), expected);
    }
}

TEST(each_format_has_what_its_rules_say)
{
    for (const struct export_format *format = export_formats; format->name != NULL; format++) {
        char *text = NULL;
        size_t text_bytes = 0;
        FILE *file = open_memstream(&text, &text_bytes);
        assert_non_null(file);
        for (size_t i = 0; i < COUNT_OF(recordings); i++) {
            struct profile *profile = load(i);
            int r = 0;
            size_t count = 0;
            bool fits = profile->event.is_clock || !format->has_no_value;
            /* Of perf.data, the last one as into a pipe as well. */
            bool has_pipe = i == 2 && strcmp(format->name, "perf-data") == 0;
            for (size_t is_piped = !fits; is_piped <= has_pipe; is_piped++) {
                char *bytes = print(format, profile, is_piped != 0, &count, &r);
                assert_int_equal(r, 0);
                (void)fprintf(file, "== recording %zu\n", i);
                dump(file, format, bytes, count);
                free(bytes);
            }
            (void)profile_free(profile);
        }
        assert_int_equal(fclose(file), 0);
        hide_version(text, &text_bytes, false);
        assert_as_told(format->name, text);
        free(text);
    }
}

/* A packets_out_fn. Writes the packets of blobs, without the recording around them. */
static int take_packets(const void *bytes, size_t size_bytes, void *userdata)
{
    const uint64_t *words = bytes;
    for (size_t at = 0; at < size_bytes / 8; at += fxt_get(words[at], FXT_HEADER_WORDS)) {
        if (fxt_get(words[at], FXT_HEADER_TYPE) == FXT_TYPE_BLOB &&
            fxt_get(words[at], FXT_BLOB_TYPE) == BLOB_PERFETTO) {
            (void)fwrite(&words[at + 1], 1, fxt_get(words[at], FXT_BLOB_PAYLOAD_BYTES), userdata);
        }
    }
    return 0;
}

/* The name comes when the packets of the sample are written already. */
TEST(packets_name_a_function_late)
{
    struct recording *recording = recording_of("name 7 0 0 app; module 7 1 app.so 0xab;"
                                               "mmap 0 7 1 0x10000 0x1000 0x1000;"
                                               "sample 1000000 7 1 0x10022");
    const char *start = (const char *)recording->memory;
    size_t told_bytes = recording->writer.used_bytes;
    char *made = NULL;
    size_t made_bytes = 0;
    FILE *stream = open_memstream(&made, &made_bytes);
    struct packets *packets = packets_new(take_packets, stream);
    add_lines(recording, "symbol ab app.so 0x1020 leaf");
    assert_int_equal(packets_pass(packets, start, told_bytes), 0);
    assert_int_equal(packets_flush(packets, false), 0);
    assert_int_equal(
        packets_pass(packets, start + told_bytes, recording->writer.used_bytes - told_bytes), 0);
    assert_int_equal(packets_flush(packets, true), 0);
    assert_int_equal(fclose(stream), 0);
    assert_false(packets_are_cut(packets));
    EXPECT_PRINTED(
        "\n1: {8:1000000 10:1 13:1 59: {12: {1: {4:1 10: 'cpu-clock'}}}}"
        "\n1: {2: {1: {1:7 3: 'app'}} 8:1000000 10:1 13:2}"
        "\n1: {8:1000000 10:1 13:2 66: {1:1 2:7 3:7 4:1 5:2} 12: {17: {1:1 2: 'app.so'}"
        " 16: {1:1 2: 171} 19: {1:3 2:1 4:0 5:0 7:1} 5: {1:1 2: 'app.so+0x1022'}"
        " 6: {1:1 2:1 3:3 4:4130} 7: {1:1 2:1}}}"
        "\n1: {8:1000000 10:1 13:2 61: {1: '/app.so' 2: 171 3: {1:4130 2: {1: 'leaf'}}}}",
        assert_true(dump_message(file, (uint8_t *)made, made_bytes, 1)));
    (void)packets_free(packets);
    free(made);
    free(recording);
}

/* Whichever allocation fails, the caller hears of it, or the result is as without. */
TEST(a_profile_does_not_hide_that_there_was_too_little_memory)
{
    const struct export_format *format = export_format_find("ndjson");
    struct recording *recording = rich_recording();
    struct profile *profile = load(0);
    int r = 0;
    size_t whole_bytes = 0;
    char *whole = print(format, profile, false, &whole_bytes, &r);
    (void)profile_free(profile);
    bool has_failed = true;
    for (size_t good = 0; has_failed; good++) {
        struct fault fault = {0};
        good_allocations = good;
        profile = NULL;
        r = profile_load_memory((const uint8_t *)recording->memory, recording->writer.used_bytes,
                                NULL, &profile, &fault);
        has_failed = good_allocations > good;
        good_allocations = SIZE_MAX;
        assert_int_equal(r, profile == NULL ? -ENOMEM : 0);
        if (profile != NULL) {
            size_t bytes = 0;
            char *text = print(format, profile, false, &bytes, &r);
            assert_string_equal(text, whole);
            free(text);
        }
        (void)profile_free(profile);
    }
    free(whole);
    free(recording);
}

TEST(no_format_hides_that_there_was_too_little_memory)
{
    for (const struct export_format *format = export_formats; format->name != NULL; format++) {
        struct profile *profile = load(0);
        int r = 0;
        size_t whole_bytes = 0;
        char *whole = print(format, profile, false, &whole_bytes, &r);
        bool has_failed = true;
        for (size_t good = 0; has_failed; good++) {
            size_t bytes = 0;
            good_allocations = good;
            char *text = print(format, profile, false, &bytes, &r);
            has_failed = good_allocations > good;
            good_allocations = SIZE_MAX;
            assert_true(r == -ENOMEM ||
                        (r == 0 && bytes == whole_bytes && memcmp(text, whole, bytes) == 0));
            free(text);
        }
        assert_int_equal(r, 0);
        free(whole);
        (void)profile_free(profile);
    }
}
