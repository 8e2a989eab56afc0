/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records of perf.data: which control groups they name, and that the longest stacks fit. What perf
 * makes of a file is for system.export_formats.
 */
#include "export.h"
#include "made_recording.h"

#include <linux/perf_event.h>

/* Of a record of FXT that is a part or a completion: its head, fields and id, and a stack's count.
 */
#define LONGEST    ((size_t)FXT_RECORD_WORDS_MAX - 4)
#define PIPE_BYTES 16
#define HEAD_WORDS 7 /* of a sample's record, before its stacks */

struct printed {
    char *bytes; /* owned */
    size_t size_bytes;
};

/* Prints and frees a profile, as into a pipe. */
static struct printed print_profile(struct profile *profile)
{
    const struct export_options options = {.is_piped = true};
    struct printed printed = {0};
    FILE *file = open_memstream(&printed.bytes, &printed.size_bytes);
    assert_non_null(file);
    assert_int_equal(export_format_find("perf-data")->print(file, profile, &options), 0);
    assert_int_equal(fclose(file), 0);
    (void)profile_free(profile);
    return printed;
}

static struct printed print(struct recording *recording)
{
    return print_profile(load_recording(recording));
}

/* Copies the only record of its type, which has `*ret_bytes`; 0: there is none. All records are
 * whole. */
static void find(const struct printed *printed, uint32_t type, uint64_t *ret, size_t *ret_bytes)
{
    *ret_bytes = 0;
    for (size_t at = PIPE_BYTES; at < printed->size_bytes;) {
        struct perf_event_header header;
        assert_in_range(at + sizeof header, 0, printed->size_bytes);
        memcpy(&header, printed->bytes + at, sizeof header);
        assert_in_range(header.size, sizeof header, printed->size_bytes - at);
        if (header.type == type) {
            assert_int_equal(*ret_bytes, 0);
            memcpy(ret, printed->bytes + at, header.size);
            *ret_bytes = header.size;
        }
        at += header.size;
    }
}

static void add_group(struct recording *recording, const char *path)
{
    char line[128];
    (void)snprintf(line, sizeof line, "{\"pid\":0,\"boot_ts_ns\":\"0\",\"cgroup\":\"%s\"}\n", path);
    add_data(recording, FXT_STRING_PROCESSES, line);
}

/* A sample of the longest stacks that two records hold. */
static void add_longest(struct recording *recording)
{
    static uint64_t user[LONGEST];
    static uint64_t kernel[LONGEST];
    for (size_t i = 0; i < LONGEST; i++) {
        user[i] = 1 + i;
        kernel[i] = UINT64_MAX / 2 + i;
    }
    const struct fxt_sample part = {
        .fields = FXT_SAMPLE_CONTINUATION | FXT_SAMPLE_KERNEL_STACK,
        .continuation = 1,
        .kernel_stack = kernel,
        .kernel_count = LONGEST,
    };
    const struct fxt_sample rest = {
        .fields = FXT_SAMPLE_CONTINUATION_COMPLETION | FXT_SAMPLE_USER_STACK,
        .continuation_completion = 1,
        .user_stack = user,
        .user_count = LONGEST,
    };
    fxt_write_sample(&recording->writer, &part);
    fxt_write_sample(&recording->writer, &rest);
}

TEST(the_longest_stacks_and_their_group_fit_a_record)
{
    static uint64_t record[UINT16_MAX / sizeof(uint64_t)];
    size_t size_bytes = 0;
    struct recording *recording = recording_new();
    add_group(recording, "/a b");
    add_longest(recording);
    struct printed printed = print(recording);
    find(&printed, PERF_RECORD_CGROUP, record, &size_bytes);
    assert_in_range(size_bytes, 1, sizeof record);
    uint64_t group = record[1];
    assert_int_not_equal(group, 0);
    assert_string_equal((const char *)&record[2], "/a b");
    find(&printed, PERF_RECORD_SAMPLE, record, &size_bytes);
    size_t words = size_bytes / sizeof(uint64_t);
    uint64_t count = record[HEAD_WORDS - 1];
    assert_int_equal(words, HEAD_WORDS + count + 1);
    assert_int_equal(record[words - 1], group);
    /* Both stacks and what stands before each, without the outermost address. */
    assert_int_equal(count, 2 * (1 + LONGEST) - 1);
    assert_int_equal(record[HEAD_WORDS], (uint64_t)PERF_CONTEXT_KERNEL);
    assert_int_equal(record[HEAD_WORDS + 1 + LONGEST], (uint64_t)PERF_CONTEXT_USER);
    assert_int_equal(record[words - 2], LONGEST - 1);
    free(printed.bytes);
}

TEST(a_recording_without_groups_says_nothing_of_them)
{
    static uint64_t record[UINT16_MAX / sizeof(uint64_t)];
    size_t size_bytes = 0;
    struct printed printed = print(recording_of("sample 1 7 1 0x10 0x20 | 0x30"));
    find(&printed, PERF_RECORD_CGROUP, record, &size_bytes);
    assert_int_equal(size_bytes, 0);
    find(&printed, PERF_RECORD_SAMPLE, record, &size_bytes);
    assert_int_equal(size_bytes / sizeof(uint64_t), HEAD_WORDS + record[HEAD_WORDS - 1]);
    free(printed.bytes);
}

/* A recording with a sample of an event that stands for 100, and such books of it; the rest is
 * zero. */
static struct profile *load_of(const char *event, const char *total)
{
    struct recording *recording = recording_of("name 7 0 0 app");
    struct fxt_sample sample = user_sample(1000, 7, COMPLETE, ADDRESSES(0x1000));
    struct profile *profile = NULL;
    char text[512];
    (void)snprintf(
        text, sizeof text,
        "{\"session\":\"a\",\"events\":[{\"event\":\"cpu-clock\"},{\"event\":\"%s\",\"period\":100}]}\n",
        event);
    add_data(recording, FXT_STRING_SESSION, text);
    sample.fields |= FXT_SAMPLE_EVENT;
    sample.event = 1;
    fxt_write_sample(&recording->writer, &sample);
    (void)snprintf(text, sizeof text,
                   "{\"total\":{\"lost\":9},\"events\":[{\"event\":\"%s\",\"total\":{%s}}]}\n",
                   event, total);
    add_data(recording, FXT_STRING_BOOKS, text);
    assert_int_equal(profile_load_memory((const uint8_t *)recording->memory,
                                         recording->writer.used_bytes, event, &profile, NULL),
                     0);
    free(recording);
    return profile;
}

TEST(tells_how_many_samples_of_an_event_there_are_not)
{
    static const struct {
        const char *event;
        const char *total;
        uint64_t expected;
    } cases[] = {
        {"faults", "\"counted\":1000,\"sampled\":1000,\"received\":10", 0},
        {"faults", "\"counted\":1000,\"sampled\":1000,\"received\":10,\"dropped\":4", 4},
        {"faults", "\"counted\":1300,\"sampled\":1000,\"received\":10,\"lost\":2", 3},
        {"faults", "\"counted\":1300,\"sampled\":1000,\"received\":10,\"lost\":5", 5},
        {"faults", "\"counted\":1399,\"sampled\":1000,\"received\":10,\"dropped\":1", 4},
        {"faults", "\"counted\":13,\"sampled\":0,\"received\":0", 13},
        {"faults", "\"counted\":900,\"sampled\":1000,\"received\":10", 0},
        {"off-cpu", "\"counted\":1300,\"sampled\":1000,\"received\":10,\"lost\":2,\"dropped\":3",
         5},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t record[16] = {0};
        size_t size_bytes = 0;
        struct printed printed = print_profile(load_of(cases[i].event, cases[i].total));
        find(&printed, PERF_RECORD_LOST_SAMPLES, record, &size_bytes);
        assert_in_range(size_bytes, 16, sizeof record);
        assert_int_equal(record[1], cases[i].expected);
        free(printed.bytes);
    }
}
