/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The data in the page of a flame graph, read back as page/unpack.js reads them: each sample has
 * its time, task and stack. And the picture.
 */
#include "made_recording.h"

#include "flame_data.h"
#include "flamegraph.h"
#include "packed.h"

#include <zlib.h>

#define UNPACKED_BYTES_MAX ((size_t)1 << 20)

/* The sections of a stream. */
struct unpacked {
    uint8_t *bytes;
    size_t size_bytes;
    size_t at;
};

/* A section, as its numbers are read. */
struct section {
    const uint8_t *bytes;
    size_t size_bytes;
    size_t at;
};

static unsigned letter_value(char letter)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = strchr(letters, letter);
    assert_non_null(found);
    return (unsigned)(found - letters);
}

static size_t decode_base64(const char *text, size_t text_bytes, uint8_t *ret)
{
    size_t count = 0;
    uint32_t bits = 0;
    unsigned letter_count = 0;
    for (size_t i = 0; i < text_bytes && text[i] != '='; i++) {
        if (text[i] != '\n') {
            bits = bits << 6 | letter_value(text[i]);
            if (++letter_count % 4 != 1) {
                ret[count++] = (uint8_t)(bits >> (6 - 2 * ((letter_count - 1) % 4)));
            }
        }
    }
    return count;
}

/* Of a text that is only that. */
static void unpack(struct unpacked *unpacked, const char *text, size_t text_bytes)
{
    uint8_t *packed = malloc(text_bytes + 1);
    uLongf size_bytes = UNPACKED_BYTES_MAX;
    *unpacked = (struct unpacked){.bytes = malloc(UNPACKED_BYTES_MAX)};
    assert_non_null(packed);
    assert_non_null(unpacked->bytes);
    size_t packed_bytes = decode_base64(text, text_bytes, packed);
    assert_int_equal(uncompress(unpacked->bytes, &size_bytes, packed, packed_bytes), Z_OK);
    unpacked->size_bytes = size_bytes;
    free(packed);
}

static struct section next_section(struct unpacked *unpacked)
{
    uint64_t size_bytes = 0;
    assert_in_range(unpacked->at + sizeof size_bytes, 0, unpacked->size_bytes);
    memcpy(&size_bytes, unpacked->bytes + unpacked->at, sizeof size_bytes);
    struct section section = {unpacked->bytes + unpacked->at + sizeof size_bytes, size_bytes, 0};
    unpacked->at += sizeof size_bytes + size_bytes;
    assert_in_range(unpacked->at, 0, unpacked->size_bytes);
    return section;
}

static uint64_t next_number(struct section *section)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte = 0x80;
    for (; byte >= 0x80; shift += 7) {
        assert_in_range(section->at + 1, 0, section->size_bytes);
        byte = section->bytes[section->at++];
        value |= (uint64_t)(byte & 0x7f) << shift;
    }
    return value;
}

static int64_t next_signed(struct section *section)
{
    uint64_t value = next_number(section);
    return (int64_t)(value >> 1 ^ -(value & 1));
}

TEST(numbers_are_read_back)
{
    static const uint64_t numbers[] = {0, 1, 127, 128, 300, UINT32_MAX, UINT64_MAX};
    static const int64_t signed_numbers[] = {0, -1, 1, -64, 64, INT64_MIN, INT64_MAX};
    struct column column = {0};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        assert_int_equal(column_put(&column, numbers[i]), 0);
        assert_int_equal(column_put_signed(&column, signed_numbers[i]), 0);
    }
    struct section section = {column.bytes, column.size_bytes, 0};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        assert_int_equal(next_number(&section), numbers[i]);
        assert_int_equal(next_signed(&section), signed_numbers[i]);
    }
    assert_int_equal(section.at, section.size_bytes);
    column_done(&column);
}

/* Of all lengths around the ends of lines and groups, and one that fills pieces. */
TEST(sections_are_read_back)
{
    static uint8_t bytes[300000];
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)draw_below(&seed, 256);
    }
    for (size_t length = 0; length < 130; length++) {
        size_t long_bytes = length == 0 ? sizeof bytes : 0;
        char *text = NULL;
        size_t text_bytes = 0;
        FILE *file = open_memstream(&text, &text_bytes);
        assert_non_null(file);
        struct packed *packed = packed_new(file);
        assert_non_null(packed);
        packed_put(packed, bytes, length);
        packed_put(packed, bytes, long_bytes);
        packed_end(packed);
        packed_freep(&packed);
        assert_int_equal(fclose(file), 0);
        struct unpacked unpacked;
        unpack(&unpacked, text, text_bytes);
        struct section section = next_section(&unpacked);
        assert_int_equal(section.size_bytes, length);
        assert_memory_equal(section.bytes, bytes, length);
        section = next_section(&unpacked);
        assert_int_equal(section.size_bytes, long_bytes);
        assert_memory_equal(section.bytes, bytes, long_bytes);
        assert_int_equal(unpacked.at, unpacked.size_bytes);
        free(unpacked.bytes);
        free(text);
    }
}

/* What is read of a page's samples, all of CPU 1. */
struct read_sample {
    int64_t time_us;
    uint32_t task;
    uint32_t node;
};

static void read_samples(struct unpacked *unpacked, struct read_sample *samples, size_t count)
{
    uint32_t frequent[16];
    struct section list = next_section(unpacked);
    size_t frequent_count = 0;
    while (list.at < list.size_bytes) {
        frequent[frequent_count++] = (uint32_t)next_number(&list);
    }
    struct section times = next_section(unpacked);
    struct section tasks = next_section(unpacked);
    struct section nodes = next_section(unpacked);
    struct section rare = next_section(unpacked);
    int64_t time_us = 0;
    int64_t task = 0;
    int64_t node = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t place = next_number(&nodes);
        time_us += next_signed(&times); /* there is no period */
        task += next_signed(&tasks);
        node += place == 0 ? next_signed(&rare) : 0;
        samples[i] = (struct read_sample){time_us, (uint32_t)task,
                                          place == 0 ? (uint32_t)node : frequent[place - 1]};
    }
    assert_int_equal(times.at, times.size_bytes);
    assert_int_equal(tasks.at, tasks.size_bytes);
    assert_int_equal(nodes.at, nodes.size_bytes);
    assert_int_equal(rare.at, rare.size_bytes);
    assert_int_equal(unpacked->at, unpacked->size_bytes);
}

static char *print_page(const struct profile *profile)
{
    const struct flame_source source = {profile, "</script><b>"};
    char *page = NULL;
    size_t page_bytes = 0;
    FILE *file = open_memstream(&page, &page_bytes);
    assert_non_null(file);
    assert_int_equal(flamegraph_print_page(file, &source, 1, FLAME_SWITCHED, FLAME_BY_THREAD), 0);
    assert_int_equal(fclose(file), 0);
    return page;
}

/* Two threads in functions of a program, not in the order of time, one stack without its root. */
#define STORY                                                                                      \
    "name 7 0 0 app; module 7 1 /bin/app 0xab; mmap 0 7 1 0x10000 0x1000 0x1000;"                  \
    "symbol ab /bin/app 0x1000 main; symbol ab /bin/app 0x1010 </script>;"                         \
    "name 8 0 0 two; module 8 1 /bin/app 0xab; mmap 0 8 1 0x10000 0x1000 0x1000;"                  \
    "sample 9000000 7 1 0x10012 0x10002; sample 5000000 7 1 0x10012 0x10002;"                      \
    "sample 5000999 8 1 0x10002; sample 7001000 8 2 0x10012;"

TEST(the_page_has_each_sample)
{
    struct profile *profile = load_recording(recording_of(STORY));
    char *page = print_page(profile);
    assert_null(strstr(page, "<b>"));
    assert_contains(page, "default-src 'none'; script-src 'sha256-");
    const char *data = strstr(page, "id=\"data\">");
    assert_non_null(data);
    data += strlen("id=\"data\">");
    struct unpacked unpacked;
    unpack(&unpacked, data, (size_t)(strstr(data, "</script>") - data));
    struct section head = next_section(&unpacked);
    char *json = strndup((const char *)head.bytes, head.size_bytes);
    assert_contains(json, "{\"by\":\"thread\",\"texts\":[\"[truncated]\"");
    assert_contains(json, "\"cpus\":[{\"cpu\":1,\"count\":4}]");
    /* From the root: main, in it </script>; [truncated], in it </script>. */
    struct section parents = next_section(&unpacked);
    struct section functions = next_section(&unpacked);
    static const uint64_t gaps[] = {1, 1, 3, 1};
    uint64_t function_of[4];
    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        assert_int_equal(next_number(&parents), gaps[i]);
        function_of[i] = next_number(&functions);
    }
    assert_int_equal(parents.at, parents.size_bytes);
    assert_int_equal(function_of[1], function_of[3]);
    assert_int_equal(function_of[2], 0); /* the first function that is added */
    struct read_sample samples[4];
    read_samples(&unpacked, samples, COUNT_OF(samples));
    static const struct read_sample expected[] = {{0, 0, 2}, {0, 1, 1}, {2001, 1, 4}, {4000, 0, 2}};
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_int_equal(samples[i].time_us, expected[i].time_us);
        assert_int_equal(samples[i].task, expected[i].task);
        assert_int_equal(samples[i].node, expected[i].node);
    }
    free(unpacked.bytes);
    free(json);
    free(page);
    (void)profile_free(profile);
}

/* Two waits of 3 and 1 s between two ticks. */
static struct profile *load_waits_or_ticks(const char *event)
{
    static const uint64_t weights_s[] = {0, 3, 1, 0};
    struct recording *recording =
        recording_of("name 7 0 0 app;module 7 1 /bin/app 171;mmap 0 7 1 0x1000 0x1000 0x1000;"
                     "symbol ab /bin/app 0x1001 longer 1;symbol ab /bin/app 0x1002 shorter 1");
    struct profile *profile = NULL;
    struct fault fault = {0};
    for (size_t i = 0; i < COUNT_OF(weights_s); i++) {
        const uint64_t address = 0x1000 + i;
        struct fxt_sample sample = user_sample(1000000 * (i + 1), 7, COMPLETE, &address, 1);
        bool is_wait = weights_s[i] > 0;
        sample.fields |= is_wait ? FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT : 0;
        sample.event = 1;
        sample.weight = weights_s[i] * 1000000000;
        fxt_write_sample(&recording->writer, &sample);
    }
    add_data(recording, FXT_STRING_SESSION,
             "{\"session\":\"a\",\"events\":[{\"event\":\"cpu-clock\"},"
             "{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1}]}\n");
    if (profile_load_memory((const uint8_t *)recording->memory, recording->writer.used_bytes, event,
                            &profile, &fault) < 0) {
        fail_msg("%s", fault.text);
    }
    free(recording);
    return profile;
}

/* The object of a page, and the rest of its data behind the tree. Returned: free(), as the data. */
static char *unpack_head(const char *page, struct unpacked *ret)
{
    const char *data = strstr(page, "id=\"data\">");
    assert_non_null(data);
    data += strlen("id=\"data\">");
    unpack(ret, data, (size_t)(strstr(data, "</script>") - data));
    struct section head = next_section(ret);
    (void)next_section(ret);
    (void)next_section(ret);
    return strndup((const char *)head.bytes, head.size_bytes);
}

TEST(a_page_of_an_event_has_what_its_samples_stand_for)
{
    struct profile *profile = load_waits_or_ticks("off-cpu");
    struct unpacked unpacked;
    char *page = print_page(profile);
    char *json = unpack_head(page, &unpacked);
    assert_contains(json, "\"event\":\"off-cpu\",\"unit\":\"ns\",\"has_values\":true");
    assert_contains(json, "\"period_ns\":0");
    assert_null(strstr(json, "is_switch"));
    for (size_t i = 0; i < 5; i++) { /* frequent nodes, times, tasks, nodes, rare nodes */
        (void)next_section(&unpacked);
    }
    struct section values = next_section(&unpacked);
    assert_int_equal(next_number(&values), 3000000000);
    assert_int_equal(next_number(&values), 1000000000);
    assert_int_equal(values.at, values.size_bytes);
    assert_int_equal(unpacked.at, unpacked.size_bytes);
    free(unpacked.bytes);
    free(json);
    free(page);
    (void)profile_free(profile);
}

/* Both begin at the recording's first sample, of whichever event. */
TEST(a_page_of_two_events_switches_between_them)
{
    struct profile *ticks = load_waits_or_ticks(NULL);
    struct profile *waits = load_waits_or_ticks("off-cpu");
    const struct flame_source sources[] = {{ticks, "a"}, {waits, "a"}};
    struct unpacked unpacked;
    char *page = NULL;
    size_t page_bytes = 0;
    FILE *file = open_memstream(&page, &page_bytes);
    assert_non_null(file);
    assert_int_equal(flamegraph_print_page(file, sources, 2, FLAME_SWITCHED, FLAME_BY_COMMAND), 0);
    assert_int_equal(fclose(file), 0);
    char *json = unpack_head(page, &unpacked);
    assert_contains(json, "\"is_switch\":true");
    for (size_t i = 0; i < 6; i++) { /* those of the ticks, and the waits' frequent nodes */
        (void)next_section(&unpacked);
    }
    struct section times = next_section(&unpacked);
    assert_int_equal(next_signed(&times), 1000);
    assert_int_equal(next_signed(&times), 1000);
    free(unpacked.bytes);
    free(json);
    free(page);
    (void)profile_free(ticks);
    (void)profile_free(waits);
}

/* Two events of which the caller says that they are compared, and one recording with two programs
 * of one name, of which it says that they are not. */
TEST(the_caller_says_what_a_pair_is)
{
    struct profile *ticks = load_waits_or_ticks(NULL);
    struct profile *waits = load_waits_or_ticks("off-cpu");
    static const char two[] =
        "name 7 0 0 app; module 7 1 /usr/bin/app 0xab; mmap 0 7 1 0x10000 0x1000 0x1000;"
        "symbol ab /usr/bin/app 0x1000 main; sample 5000000 7 1 0x10002;"
        "name 8 0 0 app; module 8 1 /opt/app 0xcd; mmap 0 8 1 0x10000 0x1000 0x1000;"
        "symbol cd /opt/app 0x1000 main; sample 6000000 8 1 0x10002";
    struct profile *profile = load_recording(recording_of(two));
    const struct {
        const struct profile *pair[2];
        enum flame_pair what;
        bool is_switch;
        size_t function_count; /* with [truncated] and [left out] */
    } cases[] = {
        {{ticks, waits}, FLAME_COMPARED, false, 6},
        {{profile, profile}, FLAME_COMPARED, false, 3},
        {{profile, profile}, FLAME_SWITCHED, true, 4},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct flame_source sources[] = {{cases[i].pair[0], "a"}, {cases[i].pair[1], "b"}};
        struct unpacked unpacked;
        char *page = NULL;
        size_t page_bytes = 0;
        FILE *file = open_memstream(&page, &page_bytes);
        assert_non_null(file);
        assert_int_equal(flamegraph_print_page(file, sources, 2, cases[i].what, FLAME_BY_NOTHING),
                         0);
        assert_int_equal(fclose(file), 0);
        char *json = unpack_head(page, &unpacked);
        assert_int_equal(strstr(json, "\"is_switch\":true") != NULL, cases[i].is_switch);
        const char *end = strstr(json, "],\"tasks\"");
        size_t member_count = 1; /* of which a function has five */
        for (const char *at = strstr(json, "\"functions\":["); at < end; at++) {
            member_count += *at == ',';
        }
        assert_true(cases[i].function_count == 0 || member_count == 5 * cases[i].function_count);
        free(unpacked.bytes);
        free(json);
        free(page);
    }
    (void)profile_free(ticks);
    (void)profile_free(waits);
    (void)profile_free(profile);
}

TEST(the_picture_of_an_event_is_as_wide_as_what_samples_stand_for)
{
    struct profile *profile = load_waits_or_ticks("off-cpu");
    const struct flame_source source = {profile, "waits"};
    char *picture = NULL;
    size_t picture_bytes = 0;
    FILE *file = open_memstream(&picture, &picture_bytes);
    assert_non_null(file);
    assert_int_equal(flamegraph_print_svg(file, &source, FLAME_BY_COMMAND), 0);
    assert_int_equal(fclose(file), 0);
    assert_contains(picture, "2 samples of off-cpu, 4.000 s blocked</text>");
    assert_contains(picture, "<title>all: 4.000 s</title>");
    assert_contains(picture, "longer in /bin/app: 3.000 s, 75.00 %</title>");
    assert_contains(picture, "width=\"885.00\"");
    free(picture);
    (void)profile_free(profile);
}

TEST(a_recording_without_samples_has_a_page_and_a_picture)
{
    struct profile *profile = load_recording(recording_new());
    const struct flame_source source = {profile, "empty"};
    char *page = print_page(profile);
    assert_contains(page, "</html>");
    free(page);
    char *picture = NULL;
    size_t picture_bytes = 0;
    FILE *file = open_memstream(&picture, &picture_bytes);
    assert_non_null(file);
    assert_int_equal(flamegraph_print_svg(file, &source, FLAME_BY_PROCESS), 0);
    assert_int_equal(fclose(file), 0);
    assert_contains(picture, "<title>all: 0 samples</title>");
    free(picture);
    (void)profile_free(profile);
}

TEST(the_picture_has_whom_the_first_frame_names)
{
    struct profile *profile = load_recording(recording_of(STORY));
    const struct flame_source source = {profile, "a & b"};
    char *picture = NULL;
    size_t picture_bytes = 0;
    FILE *file = open_memstream(&picture, &picture_bytes);
    assert_non_null(file);
    assert_int_equal(flamegraph_print_svg(file, &source, FLAME_BY_PROCESS), 0);
    assert_int_equal(fclose(file), 0);
    assert_contains(picture, "<title>a &#38; b</title>");
    assert_contains(picture, "<title>app-7: 2 samples, 50.00 %</title>");
    assert_contains(picture, "<title>two-8: 2 samples, 50.00 %</title>");
    assert_contains(picture, "<title>&#60;/script&#62; in /bin/app: 2 samples, 50.00 %</title>");
    assert_contains(picture, "<title>[truncated]: 1 sample, 25.00 %</title>");
    assert_null(strstr(picture, "script>"));
    free(picture);
    (void)profile_free(profile);
}

/* A program that was built in another folder has the same frames, as in the rows of a comparison;
 * alone, two folders are two programs. */
TEST(frames_of_a_comparison_are_one_in_all_folders)
{
#define BUILD(folder, id)                                                                          \
    "name 7 0 0 app; module 7 1 " folder "app 0x" id "; mmap 0 7 1 0x10000 0x1000 0x1000;"         \
    "symbol " id " " folder "app 0x1000 main; symbol " id " " folder "app 0x1010 work;"            \
    "sample 5000000 7 1 0x10012 0x10002;"
    struct profile *profiles[] = {load_recording(recording_of(BUILD("/old/", "ab"))),
                                  load_recording(recording_of(BUILD("/new/", "cd")))};
    for (unsigned is_comparison = 0; is_comparison < 2; is_comparison++) {
        struct flame flame = {.is_comparison = is_comparison != 0};
        for (size_t i = 0; i < COUNT_OF(profiles); i++) {
            const struct flame_source source = {profiles[i], "a", false};
            assert_int_equal(flame_add(&flame, &source, i, FLAME_BY_NOTHING), 0);
        }
        /* The root, main and work. */
        assert_int_equal(flame.nodes.count, is_comparison != 0 ? 3 : 5);
        assert_int_equal(flame.module_count, flame.functions.item_count);
        assert_string_equal(intern_text(&flame.texts, flame.modules[flame.nodes.nodes[1].function]),
                            "/old/app");
        flame_done(&flame);
    }
    for (size_t i = 0; i < COUNT_OF(profiles); i++) {
        (void)profile_free(profiles[i]);
    }
}

/* The length is that of the report, by the books. */
TEST(a_page_is_as_long_as_the_report)
{
    struct recording *recording = recording_of(STORY);
    struct unpacked unpacked;
    add_data(recording, FXT_STRING_BOOKS,
             "{\"period_ns\":1000000,\"cpus\":[{\"cpu\":0,\"expected\":5429}]}\n");
    struct profile *profile = load_recording(recording);
    char *page = print_page(profile);
    char *json = unpack_head(page, &unpacked);
    assert_contains(json, "\"length_ns\":5429000000,");
    free(unpacked.bytes);
    free(json);
    free(page);
    (void)profile_free(profile);
}

/* A time of the day that no clock reaches is none. */
TEST(a_page_does_not_say_a_time_that_is_too_late)
{
    static const struct {
        const char *session;
        bool is_told;
    } cases[] = {
        {"{\"session\":\"a\",\"created_boot_ns\":\"0\",\"created_realtime_ns\":\"1000000000\"}\n",
         true},
        {"{\"session\":\"a\",\"created_boot_ns\":\"0\","
         "\"created_realtime_ns\":\"9223372036854775807\"}\n",
         false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct recording *recording =
            recording_of("name 7 0 0 app; sample 4611686018427387904 7 1 0x10002");
        struct unpacked unpacked;
        add_data(recording, FXT_STRING_SESSION, cases[i].session);
        struct profile *profile = load_recording(recording);
        char *page = print_page(profile);
        char *json = unpack_head(page, &unpacked);
        assert_int_equal(strstr(json, "\"began_unix_ms\":4611686019427,") != NULL,
                         cases[i].is_told);
        assert_int_equal(strstr(json, "began_unix_ms") != NULL, cases[i].is_told);
        free(unpacked.bytes);
        free(json);
        free(page);
        (void)profile_free(profile);
    }
}

/* Viewers open a picture at its top: the root is there, and main below it. */
TEST(the_picture_begins_with_its_root_and_says_where_all_ticks_went)
{
    struct recording *recording = recording_of(STORY);
    add_data(recording, FXT_STRING_BOOKS,
             "{\"period_ns\":1000000,\"cpus\":[],\"total\":{\"expected\":20,\"received\":16,"
             "\"kept\":4,\"filtered\":12,\"missed\":5,\"idle\":0,\"unexplained\":-1}}\n");
    struct profile *profile = load_recording(recording);
    const struct flame_source source = {profile, "a"};
    char *picture = NULL;
    size_t picture_bytes = 0;
    FILE *file = open_memstream(&picture, &picture_bytes);
    assert_non_null(file);
    assert_int_equal(flamegraph_print_svg(file, &source, FLAME_BY_NOTHING), 0);
    assert_int_equal(fclose(file), 0);
    assert_contains(picture, "; of 20 ticks 4 kept, 12 filtered, 5 missed, -1 unexplained</text>");
    const char *root = strstr(picture, "<title>all: 4 samples</title><rect class=\"g0\" x=\"10.0\" "
                                       "y=\"52.0\"");
    assert_non_null(root);
    const char *below = strstr(picture, "<title>main in /bin/app");
    assert_non_null(below);
    assert_contains(below, "y=\"69.0\"");
    assert_contains(picture, "y=\"86.0\"");
    free(picture);
    (void)profile_free(profile);
}
