/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the records of tests/data/perf_record, each written by hand from the kernel's
 * documentation. Every good one has a function here that says what it means, every truncated one is
 * refused, and a good one cut at any length is refused or understood within what is left.
 */
#include "perf_record_views.h"
#include "unit_test.h"

#include "perf_abi.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>

#define GOOD_FOLDER      TEST_DATA_DIR "/perf_record/good"
#define TRUNCATED_FOLDER TEST_DATA_DIR "/perf_record/truncated"

struct vector {
    struct perf_record_layout layout;
    _Alignas(8) uint8_t bytes[512];
    size_t size_bytes;
};

/* A run of hex digits is one little-endian number, as wide as it is written. */
static const char *add_number(struct vector *vector, const char *text)
{
    size_t digits = 0;
    while (isxdigit((unsigned char)text[digits])) {
        digits++;
    }
    assert_true(digits >= 2 && digits <= 16 && digits % 2 == 0);
    char number[17] = {0};
    memcpy(number, text, digits);
    uint64_t value = strtoull(number, NULL, 16);
    assert_true(vector->size_bytes + digits / 2 <= sizeof vector->bytes);
    for (size_t i = 0; i < digits / 2; i++) {
        vector->bytes[vector->size_bytes++] = (uint8_t)(value >> (8 * i));
    }
    return text + digits;
}

static const char *add_text(struct vector *vector, const char *text)
{
    const char *end = strchr(text + 1, '"');
    assert_non_null(end);
    size_t size = (size_t)(end - text - 1);
    assert_true(vector->size_bytes + size <= sizeof vector->bytes);
    memcpy(vector->bytes + vector->size_bytes, text + 1, size);
    vector->size_bytes += size;
    return end + 1;
}

static void add_line(struct vector *vector, const char *line)
{
    while (*line != '\0' && *line != '#' && *line != '\n') {
        if (*line == ' ') {
            line++;
        } else if (*line == '"') {
            line = add_text(vector, line);
        } else {
            line = add_number(vector, line);
        }
    }
}

static struct vector load(const char *folder, const char *name)
{
    char path[4096];
    char line[256];
    struct vector vector = {0};
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "layout ", 7) == 0) {
            char *end = NULL;
            uint64_t type = strtoull(line + 7, &end, 16);
            vector.layout = perf_record_layout_make(type, strtoull(end, NULL, 16));
        } else {
            add_line(&vector, line);
        }
    }
    (void)fclose(file);
    return vector;
}

static int is_hex_file(const struct dirent *entry)
{
    return strstr(entry->d_name, ".hex") != NULL;
}

/* Calls `check` for every file of a folder, and returns how many there are. */
static int for_each_vector(const char *folder, void (*check)(const char *name, const void *vector))
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_hex_file, alphasort);
    for (int i = 0; i < count; i++) {
        struct vector vector = load(folder, entries[i]->d_name);
        check(entries[i]->d_name, &vector);
        free(entries[i]);
    }
    free(entries);
    return count;
}

static void expect_chain(const uint64_t *chain, size_t count, const uint64_t *expected,
                         size_t expected_count)
{
    assert_int_equal(count, expected_count);
    assert_memory_equal(chain, expected, count * sizeof *chain);
}

#define EXPECT_CHAIN(chain, count, ...)                                                            \
    expect_chain(chain, count, (const uint64_t[]){__VA_ARGS__},                                    \
                 sizeof(const uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

/* The ids that most vectors have, in the sample or in the trailer. */
static void expect_usual_ids(const struct perf_record *record)
{
    assert_int_equal(record->event_id, 42);
    assert_int_equal(record->pid, 11);
    assert_int_equal(record->tid, 12);
    assert_int_equal(record->time_ns, 0x1000);
    assert_int_equal(record->cpu, 3);
}

static void check_sample_user_deferred(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_SAMPLE);
    assert_int_equal(record->mode, PERF_MODE_USER);
    assert_int_equal(record->pid, 70);
    assert_int_equal(record->tid, 70);
    assert_int_equal(record->time_ns, 0x38692f976);
    assert_true(record->sample.deferred);
    assert_int_equal(record->sample.deferred_cookie, 0x18900000001);
    assert_int_equal(record->sample.user_count, 0);
    assert_int_equal(record->sample.kernel_count, 0);
}

static void check_deferred_callchain(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_DEFERRED_CALLCHAIN);
    assert_int_equal(record->tid, 70);
    assert_int_equal(record->time_ns, 0x3869635fd);
    assert_int_equal(record->deferred.cookie, 0x18900000001);
    EXPECT_CHAIN(record->deferred.chain, record->deferred.count, 0x401b3f, 0x401b64, 0x401b88,
                 0x401b7a, 0x401b7a, 0x401b7a, 0x401b7a, 0x401b7a, 0x401b7a, 0x401b7a, 0x401b7a,
                 0x4020dd, 0x4024d4);
}

static void check_deferred_forged_marker(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_DEFERRED_CALLCHAIN);
    expect_usual_ids(record);
    assert_int_equal(record->deferred.cookie, 0x18b00000002);
    EXPECT_CHAIN(record->deferred.chain, record->deferred.count, 0x401000, 0x402000);
}

static void check_deferred_empty(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_DEFERRED_CALLCHAIN);
    expect_usual_ids(record);
    assert_int_equal(record->deferred.cookie, 0x18b00000002);
    assert_int_equal(record->deferred.count, 0);
}

static void check_sample_kernel_deferred(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_SAMPLE);
    assert_int_equal(record->mode, PERF_MODE_KERNEL);
    assert_int_equal(record->pid, 70);
    assert_int_equal(record->tid, 71);
    assert_int_equal(record->cpu, 1);
    EXPECT_CHAIN(record->sample.kernel_chain, record->sample.kernel_count, 0xffffffff81a2b3c4,
                 0xffffffff81000010);
    assert_true(record->sample.deferred);
    assert_int_equal(record->sample.deferred_cookie, 0x18b00000002);
    assert_int_equal(record->sample.user_count, 0);
}

static void check_sample_kernel_and_user(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_SAMPLE);
    expect_usual_ids(record);
    EXPECT_CHAIN(record->sample.kernel_chain, record->sample.kernel_count, 0xffffffff81000020,
                 0xffffffff81000010);
    EXPECT_CHAIN(record->sample.user_chain, record->sample.user_count, 0x401000, 0x402000,
                 0x403000);
    assert_false(record->sample.deferred);
    assert_false(record->sample.has_user_regs);
}

static void check_sample_forged_marker(const struct perf_record *record)
{
    expect_usual_ids(record);
    EXPECT_CHAIN(record->sample.user_chain, record->sample.user_count, 0x401000);
    assert_int_equal(record->sample.kernel_count, 0);
    assert_false(record->sample.deferred);
}

static void check_sample_unknown_context(const struct perf_record *record)
{
    assert_int_equal(record->mode, PERF_MODE_OTHER);
    EXPECT_CHAIN(record->sample.kernel_chain, record->sample.kernel_count, 0xffffffff81000010);
    EXPECT_CHAIN(record->sample.user_chain, record->sample.user_count, 0x401000);
}

static void check_sample_regs_and_stack(const struct perf_record *record)
{
    expect_usual_ids(record);
    EXPECT_CHAIN(record->sample.user_chain, record->sample.user_count, 0x401000);
    assert_true(record->sample.has_user_regs);
    assert_int_equal(record->sample.user_regs_abi, PERF_SAMPLE_REGS_ABI_64);
    EXPECT_CHAIN(record->sample.user_regs, record->sample.user_regs_count, 0xa00, 0xb00, 0xc00);
    assert_int_equal(record->sample.user_stack_bytes, 8);
    assert_memory_equal(record->sample.user_stack, "live\4\3\2\1", 8);
    assert_false(record->sample.user_stack_cut);
}

static void check_sample_stack_cut(const struct perf_record *record)
{
    expect_usual_ids(record);
    assert_int_equal(record->sample.user_stack_bytes, 16);
    assert_memory_equal(record->sample.user_stack, "live\4\3\2\1more\0\0\0", 16);
    assert_true(record->sample.user_stack_cut);
}

static void check_sample_stack_unreadable(const struct perf_record *record)
{
    expect_usual_ids(record);
    assert_true(record->sample.has_user_regs);
    assert_int_equal(record->sample.user_stack_bytes, 0);
    assert_false(record->sample.user_stack_cut);
}

static void check_sample_without_regs(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_SAMPLE);
    assert_int_equal(record->pid, 2);
    assert_int_equal(record->sample.user_count, 0);
    assert_false(record->sample.has_user_regs);
    assert_int_equal(record->sample.user_regs_count, 0);
    assert_int_equal(record->sample.user_stack_bytes, 0);
    assert_false(record->sample.user_stack_cut);
}

static void check_sample_every_word(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_SAMPLE);
    expect_usual_ids(record);
}

static void expect_mapping(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_MMAP);
    expect_usual_ids(record);
    assert_int_equal(record->mmap.start, 0x400000);
    assert_int_equal(record->mmap.size_bytes, 0x2000);
    assert_int_equal(record->mmap.file_offset, 0x1000);
    assert_string_equal(record->mmap.path, "/bin/tr");
}

static void check_mmap2_inode(const struct perf_record *record)
{
    expect_mapping(record);
    assert_true(record->mmap.executable);
    assert_false(record->mmap.has_build_id);
    assert_int_equal(record->mmap.device_major, 8);
    assert_int_equal(record->mmap.device_minor, 1);
    assert_int_equal(record->mmap.inode, 0x12345);
    assert_int_equal(record->mmap.inode_generation, 7);
}

static void check_mmap2_build_id(const struct perf_record *record)
{
    expect_mapping(record);
    assert_false(record->mmap.executable);
    assert_true(record->mmap.has_build_id);
    assert_int_equal(record->mmap.build_id_bytes, 16);
    assert_memory_equal(record->mmap.build_id, "0123456789abcdef", 16);
    assert_int_equal(record->mmap.inode, 0);
}

static void check_comm_exec(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_COMM);
    expect_usual_ids(record);
    assert_true(record->comm.exec);
    assert_string_equal(record->comm.text, "python3");
}

static void check_comm_renamed(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_COMM);
    assert_false(record->comm.exec);
    assert_string_equal(record->comm.text, "worker");
}

static void check_fork(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_FORK);
    assert_int_equal(record->pid, 21);
    assert_int_equal(record->tid, 22);
    assert_int_equal(record->task.pid, 21);
    assert_int_equal(record->task.tid, 22);
    assert_int_equal(record->task.parent_pid, 11);
    assert_int_equal(record->task.parent_tid, 12);
    assert_int_equal(record->task.time_ns, 0xfff);
    assert_int_equal(record->time_ns, 0x1000);
}

static void check_exit(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_EXIT);
    expect_usual_ids(record);
    assert_int_equal(record->task.pid, 11);
    assert_int_equal(record->task.tid, 12);
}

static void check_lost(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_LOST);
    expect_usual_ids(record);
    assert_int_equal(record->lost.count, 5517);
}

static void check_throttle(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_THROTTLE);
    expect_usual_ids(record);
}

static void check_unthrottle(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_UNTHROTTLE);
    expect_usual_ids(record);
}

static void check_switch_to_idle(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_SWITCH);
    expect_usual_ids(record);
    assert_true(record->context_switch.out);
    assert_int_equal(record->context_switch.other_pid, 0);
}

static void check_switch_from_task(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_SWITCH);
    assert_false(record->context_switch.out);
    assert_int_equal(record->context_switch.other_pid, 21);
}

static void check_ksymbol_came(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_KSYMBOL);
    expect_usual_ids(record);
    assert_int_equal(record->ksymbol.start, UINT64_C(0xffffffffc0000000));
    assert_int_equal(record->ksymbol.size_bytes, 0x100);
    assert_true(record->ksymbol.is_bpf);
    assert_false(record->ksymbol.gone);
    assert_string_equal(record->ksymbol.name, "bpf_xyz");
}

/* Its ids do not lie at its end. */
static void check_ksymbol_second(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_KSYMBOL);
    expect_usual_ids(record);
    assert_string_equal(record->ksymbol.name, "bpf_xyz_");
}

static void check_ksymbol_went(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_KSYMBOL);
    assert_false(record->ksymbol.is_bpf);
    assert_true(record->ksymbol.gone);
    assert_string_equal(record->ksymbol.name, "ftrace_");
}

static void check_short_other(const struct perf_record *record)
{
    assert_int_equal(record->kind, PERF_KIND_OTHER);
    assert_int_equal(record->pid, 0);
}

#define GOOD(name)                                                                                 \
    {                                                                                              \
#name ".hex", check_##name                                                                 \
    }

static const struct {
    const char *name;
    void (*check)(const struct perf_record *record);
} good[] = {
    GOOD(comm_exec),
    GOOD(comm_renamed),
    GOOD(deferred_callchain),
    GOOD(deferred_empty),
    GOOD(deferred_forged_marker),
    GOOD(exit),
    GOOD(fork),
    GOOD(ksymbol_came),
    GOOD(ksymbol_second),
    GOOD(ksymbol_went),
    GOOD(lost),
    GOOD(mmap2_build_id),
    GOOD(mmap2_inode),
    GOOD(sample_every_word),
    GOOD(sample_forged_marker),
    GOOD(sample_kernel_and_user),
    GOOD(sample_kernel_deferred),
    GOOD(sample_regs_and_stack),
    GOOD(sample_stack_cut),
    GOOD(sample_stack_unreadable),
    GOOD(sample_unknown_context),
    GOOD(sample_user_deferred),
    GOOD(sample_without_regs),
    GOOD(short_other),
    GOOD(switch_from_task),
    GOOD(switch_to_idle),
    GOOD(throttle),
    GOOD(unthrottle),
};

#define GOOD_COUNT (sizeof good / sizeof good[0])

static void expect_good(const char *name, const void *vector_pointer)
{
    const struct vector *vector = vector_pointer;
    struct perf_record record;
    size_t i = 0;
    while (i < GOOD_COUNT && strcmp(good[i].name, name) != 0) {
        i++;
    }
    if (i == GOOD_COUNT) {
        fail_msg("%s has no check", name);
    }
    if (perf_record_parse(&vector->layout, vector->bytes, vector->size_bytes, &record) != 0) {
        fail_msg("%s is refused", name);
    }
    assert_true(perf_record_views_inside(&record, vector->bytes, vector->size_bytes));
    good[i].check(&record);
}

static void expect_refused(const char *name, const void *vector_pointer)
{
    const struct vector *vector = vector_pointer;
    struct perf_record record;
    int r = perf_record_parse(&vector->layout, vector->bytes, vector->size_bytes, &record);
    if (r != -EBADMSG) {
        fail_msg("%s gives %d", name, r);
    }
}

/* In memory of exactly that size, so that a sanitizer sees a step outside. */
static void expect_cut_is_safe(const struct vector *vector, size_t size_bytes, bool tell_size)
{
    struct perf_record record;
    uint8_t *cut = malloc(size_bytes > 0 ? size_bytes : 1);
    assert_non_null(cut);
    memcpy(cut, vector->bytes, size_bytes);
    if (tell_size && size_bytes >= sizeof(struct perf_event_header)) {
        uint16_t size = (uint16_t)size_bytes;
        memcpy(cut + offsetof(struct perf_event_header, size), &size, sizeof size);
    }
    int r = perf_record_parse(&vector->layout, cut, size_bytes, &record);
    if (r == 0) {
        assert_true(tell_size && perf_record_views_inside(&record, cut, size_bytes));
    } else {
        assert_int_equal(r, -EBADMSG);
    }
    free(cut);
}

static void expect_every_cut_is_safe(const char *name, const void *vector_pointer)
{
    const struct vector *vector = vector_pointer;
    (void)name;
    for (size_t size_bytes = 0; size_bytes < vector->size_bytes; size_bytes++) {
        expect_cut_is_safe(vector, size_bytes, false);
        expect_cut_is_safe(vector, size_bytes, true);
    }
}

TEST(understands_every_good_record)
{
    assert_int_equal(for_each_vector(GOOD_FOLDER, expect_good), GOOD_COUNT);
}

TEST(refuses_every_truncated_record)
{
    assert_in_range(for_each_vector(TRUNCATED_FOLDER, expect_refused), 14, 1000);
}

TEST(never_leaves_a_record_that_is_cut)
{
    assert_int_equal(for_each_vector(GOOD_FOLDER, expect_every_cut_is_safe), GOOD_COUNT);
}
