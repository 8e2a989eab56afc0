/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the records of tests/data/perf_record, each written by hand from the kernel's
 * documentation. Every good one has a line here that says what it means, every truncated one is
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
            vector.layout = perf_record_layout_make(type, strtoull(end, &end, 16));
            vector.layout.read_words = strtoull(end, &end, 16);
            vector.layout.follower_count = strtoull(end, NULL, 16);
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

/* What a record says, as text. */
static char said[1024];
static size_t said_bytes;

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    said_bytes += (size_t)vsnprintf(said + said_bytes, sizeof said - said_bytes, format, arguments);
    va_end(arguments);
    assert_true(said_bytes < sizeof said);
}

static void tell_words(const char *what, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tell("%s%llx", i == 0 ? what : " ", (unsigned long long)words[i]);
    }
}

static void tell_bytes(const uint8_t *bytes, size_t size_bytes)
{
    for (size_t i = 0; i < size_bytes; i++) {
        tell(isgraph(bytes[i]) ? "%c" : "\\%x", bytes[i]);
    }
}

static void tell_sample(const struct perf_sample_view *sample)
{
    tell_words("; kernel ", sample->kernel_chain, sample->kernel_count);
    tell_words("; user ", sample->user_chain, sample->user_count);
    if (sample->counted != 0) {
        tell("; counted %llu", (unsigned long long)sample->counted);
    }
    for (size_t i = 0; i < sample->followed.count; i++) {
        tell("; follower %llu", (unsigned long long)sample->followed.values[i]);
    }
    if (sample->deferred) {
        tell("; deferred %llx", (unsigned long long)sample->deferred_cookie);
    }
    if (sample->has_user_regs) {
        tell("; abi %llu", (unsigned long long)sample->user_regs_abi);
    }
    tell_words(" regs ", sample->user_regs, sample->user_regs_count);
    if (sample->user_stack_bytes > 0) {
        tell("; stack ");
    }
    tell_bytes(sample->user_stack, sample->user_stack_bytes);
    tell(sample->user_stack_cut ? " cut" : "");
    if (sample->cgroup_id != 0) {
        tell("; group %llu", (unsigned long long)sample->cgroup_id);
    }
}

static void tell_mapping(const struct perf_mmap_view *mmap)
{
    tell(": %llx+%llx at %llx%s %s, ", (unsigned long long)mmap->start,
         (unsigned long long)mmap->size_bytes, (unsigned long long)mmap->file_offset,
         mmap->executable ? " code" : "", mmap->path);
    if (mmap->has_build_id) {
        tell("build-id ");
        tell_bytes(mmap->build_id, mmap->build_id_bytes);
        tell(", ");
    }
    tell("inode %u:%u %llx generation %llu", mmap->device_major, mmap->device_minor,
         (unsigned long long)mmap->inode, (unsigned long long)mmap->inode_generation);
}

static void tell_task(const struct perf_record *record)
{
    tell(": %d/%d of %d/%d at %llx", record->task.pid, record->task.tid, record->task.parent_pid,
         record->task.parent_tid, (unsigned long long)record->task.time_ns);
}

static void tell_record(const struct perf_record *record)
{
    static const char *const kinds[] = {"sample",  "mmap",     "comm",       "fork",   "exit",
                                        "lost",    "throttle", "unthrottle", "switch", "deferred",
                                        "ksymbol", "cgroup",   "other"};
    static const char *const modes[] = {"", "kernel ", "user ", "other "};
    said_bytes = 0;
    tell("%s%s %llu %d/%d at %llx on %u", modes[record->mode], kinds[record->kind],
         (unsigned long long)record->event_id, record->pid, record->tid,
         (unsigned long long)record->time_ns, record->cpu);
    switch (record->kind) {
    case PERF_KIND_SAMPLE:
        tell_sample(&record->sample);
        break;
    case PERF_KIND_MMAP:
        tell_mapping(&record->mmap);
        break;
    case PERF_KIND_COMM:
        tell(": %s%s", record->comm.text, record->comm.exec ? " exec" : "");
        break;
    case PERF_KIND_FORK:
    case PERF_KIND_EXIT:
        tell_task(record);
        break;
    case PERF_KIND_LOST:
        tell(": %llu", (unsigned long long)record->lost.count);
        break;
    case PERF_KIND_SWITCH:
        tell(": %s %d", record->context_switch.out ? "to" : "from",
             record->context_switch.other_pid);
        break;
    case PERF_KIND_DEFERRED_CALLCHAIN:
        tell(": %llx", (unsigned long long)record->deferred.cookie);
        tell_words("; user ", record->deferred.chain, record->deferred.count);
        break;
    case PERF_KIND_KSYMBOL:
        tell(": %llx+%x%s%s %s", (unsigned long long)record->ksymbol.start,
             record->ksymbol.size_bytes, record->ksymbol.is_bpf ? " bpf" : "",
             record->ksymbol.gone ? " gone" : "", record->ksymbol.name);
        break;
    case PERF_KIND_CGROUP:
        tell(": %llu %s", (unsigned long long)record->cgroup.id, record->cgroup.path);
        break;
    case PERF_KIND_THROTTLE:
    case PERF_KIND_UNTHROTTLE:
    case PERF_KIND_OTHER:
        break;
    }
}

static const struct {
    const char *name, *said;
} good[] = {
    {"cgroup_made.hex", "cgroup 42 11/12 at 1000 on 3: 4711 /a/b.slice"},
    {"cgroup_root.hex", "cgroup 42 11/12 at 1000 on 3: 1 /"},
    {"comm_exec.hex", "comm 42 11/12 at 1000 on 3: python3 exec"},
    {"comm_renamed.hex", "comm 42 11/12 at 1000 on 3: worker"},
    {"deferred_callchain.hex",
     "user deferred 0 70/70 at 3869635fd on 0: 18900000001; "
     "user 401b3f 401b64 401b88 401b7a 401b7a 401b7a 401b7a 401b7a 401b7a 401b7a 401b7a "
     "4020dd 4024d4"},
    {"deferred_empty.hex", "user deferred 42 11/12 at 1000 on 3: 18b00000002"},
    {"deferred_forged_marker.hex", "user deferred 42 11/12 at 1000 on 3: 18b00000002; "
                                   "user 401000 402000"},
    {"exit.hex", "exit 42 11/12 at 1000 on 3: 11/12 of 11/11 at fff"},
    {"fork.hex", "fork 42 21/22 at 1000 on 3: 21/22 of 11/12 at fff"},
    {"ksymbol_came.hex", "ksymbol 42 11/12 at 1000 on 3: ffffffffc0000000+100 bpf bpf_xyz"},
    {"ksymbol_second.hex", "ksymbol 42 11/12 at 1000 on 3: ffffffffc0000000+100 bpf bpf_xyz_"},
    {"ksymbol_went.hex", "ksymbol 42 11/12 at 1000 on 3: ffffffffc0000000+100 gone ftrace_"},
    {"lost.hex", "lost 42 11/12 at 1000 on 3: 5517"},
    {"mmap2_build_id.hex", "user mmap 42 11/12 at 1000 on 3: 400000+2000 at 1000 /bin/tr, build-id "
                           "0123456789abcdef, inode 0:0 0 generation 0"},
    {"mmap2_inode.hex",
     "user mmap 42 11/12 at 1000 on 3: 400000+2000 at 1000 code /bin/tr, inode 8:1 "
     "12345 generation 7"},
    {"sample_cgroup.hex", "user sample 42 11/12 at 1000 on 3; user 401000; abi 2 regs a00; "
                          "stack live\\4\\3\\2; group 4711"},
    {"sample_cgroup_alone.hex", "user sample 42 11/12 at 1000 on 3; user 401000; group 1"},
    {"sample_cgroup_no_copy.hex",
     "kernel sample 42 11/12 at 1000 on 3; group 18446744073709551615"},
    {"sample_every_word.hex", "user sample 42 11/12 at 1000 on 3"},
    {"sample_forged_marker.hex", "user sample 42 11/12 at 1000 on 3; user 401000"},
    {"sample_group.hex", "user sample 42 11/12 at 1000 on 3; user 401000; counted 3333; "
                         "follower 5555; follower 7"},
    {"sample_group_without_lost.hex", "kernel sample 42 11/12 at 1000 on 3; counted 3333; "
                                      "follower 18446744073709551615"},
    {"sample_kernel_and_user.hex",
     "kernel sample 42 11/12 at 1000 on 3; kernel ffffffff81000020 ffffffff81000010; "
     "user 401000 402000 403000"},
    {"sample_kernel_deferred.hex",
     "kernel sample 0 70/71 at 38692f976 on 1; "
     "kernel ffffffff81a2b3c4 ffffffff81000010; deferred 18b00000002"},
    {"sample_read.hex", "user sample 42 11/12 at 1000 on 3; user 401000; counted 3333"},
    {"sample_regs_and_stack.hex",
     "user sample 42 11/12 at 1000 on 3; user 401000; abi 2 regs a00 b00 c00; "
     "stack live\\4\\3\\2\\1"},
    {"sample_stack_cut.hex",
     "user sample 42 11/12 at 1000 on 3; user 401000; abi 2 regs a00 b00 c00; "
     "stack live\\4\\3\\2\\1more\\0\\0\\0\\0 cut"},
    {"sample_stack_unreadable.hex", "user sample 42 11/12 at 1000 on 3; user 401000; "
                                    "abi 2 regs a00 b00 c00"},
    {"sample_unknown_context.hex", "other sample 42 11/12 at 1000 on 3; kernel ffffffff81000010; "
                                   "user 401000"},
    {"sample_user_deferred.hex", "user sample 0 70/70 at 38692f976 on 0; deferred 18900000001"},
    {"sample_without_regs.hex", "kernel sample 42 2/2 at 1000 on 3"},
    {"short_other.hex", "other 0 0/0 at 0 on 0"},
    {"switch_from_task.hex", "switch 42 11/12 at 1000 on 3: from 21"},
    {"switch_to_idle.hex", "switch 42 11/12 at 1000 on 3: to 0"},
    {"throttle.hex", "throttle 42 11/12 at 1000 on 3"},
    {"unthrottle.hex", "unthrottle 42 11/12 at 1000 on 3"},
};

#define GOOD_COUNT (COUNT_OF(good))

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
    tell_record(&record);
    if (strcmp(said, good[i].said) != 0) {
        fail_msg("%s: %s", name, said);
    }
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
    assert_in_range(for_each_vector(TRUNCATED_FOLDER, expect_refused), 24, 1000);
}

TEST(never_leaves_a_record_that_is_cut)
{
    assert_int_equal(for_each_vector(GOOD_FOLDER, expect_every_cut_is_safe), GOOD_COUNT);
}
