/* SPDX-License-Identifier: Apache-2.0 */

/* Texts that a hostile process can bring about, and what can only come of a mistake. */
#include "proc_parse.h"
#include "unit_test.h"

#include <errno.h>
#include <unistd.h>

#define LINE_BYTES 256

/* The parser writes into its line. */
static int parse_maps(const char *line, char copy[LINE_BYTES], struct mapping_description *ret)
{
    (void)snprintf(copy, LINE_BYTES, "%s", line);
    return proc_parse_maps_line(copy, ret);
}

TEST(reads_the_executable_lines_of_maps)
{
    static const struct {
        const char *line;
        const char *path;
        uint64_t inode;
    } rows[] = {
        {"1000-2000 r-xp 00003000 fe:1a 77                         /usr/bin/a", "/usr/bin/a", 77},
        {"1000-2000 r-xp 00003000 fe:1a 77   /tmp/a b (deleted)", "/tmp/a b", 77},
        {"1000-2000 --xs 00003000 fe:1a 77 /tmp/a\\012b\\0123\\134", "/tmp/a\nb\n3\\134", 77},
        {"1000-2000 rwxp 00003000 fe:1a 0 ", "", 0},
        {"1000-2000 rwxp 00003000 fe:1a 0", "", 0},
        {"1000-2000 r-xp 00003000 fe:1a 0      [vdso]", "[vdso]", 0},
        {"1000-2000 r-xp 00003000 fe:1a 5 /memfd:x (deleted) (deleted)", "/memfd:x (deleted)", 5},
        {"1000-2000 r-xp 00003000 fe:1a 5 /\\01", "/\\01", 5},
        {"1000-2000 r-xp 00003000 fe:1a 18446744073709551615 /x", "/x", UINT64_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char copy[LINE_BYTES];
        struct mapping_description mapping;
        memset(&mapping, 0xff, sizeof mapping);
        assert_int_equal(parse_maps(rows[i].line, copy, &mapping), 1);
        assert_int_equal(mapping.start, 0x1000);
        assert_int_equal(mapping.end, 0x2000);
        assert_int_equal(mapping.file_offset, 0x3000);
        assert_int_equal(mapping.device_major, 0xfe);
        assert_int_equal(mapping.device_minor, 0x1a);
        assert_int_equal(mapping.inode, rows[i].inode);
        assert_string_equal(mapping.path, rows[i].path);
    }
}

TEST(a_path_may_be_what_marks_deleted_ones)
{
    char path[] = " (deleted)";
    proc_parse_undo_deleted(path);
    assert_string_equal(path, "");
}

TEST(tells_a_file_from_memory_with_a_path)
{
    static const struct {
        const char *path;
        bool is_file;
    } rows[] = {
        {"/usr/bin/a", true},
        {"/usr/bin/a (deleted)", true},
        {"/dev/zero", false},
        {"/dev/zero (deleted)", false},
        {"/dev/zero2 (deleted)", true},
        {"/dev/zero/a", true},
        {"/SYSV00000000", false},
        {"/SYSV0123beef (deleted)", false},
        {"/SYSV", true},
        {"/SYSV0000000", true},
        {"/SYSV000000000", true},
        {"/SYSV0000000g", true},
        {"/SYSV00000000/lib.so", true},
        {"/SYSV00000000 (deleted) (deleted)", true}, /* a user's file, whose name ends like that */
        {"/anon_hugepage", false},
        {"/anon_hugepage (deleted)", false},
        {"/anon_hugepages/a", true},
        {"/memfd:doublemapper", false},
        {"/memfd:doublemapper (deleted)", false},
        {"/memfd:doublemapper2 (deleted)", true},
        {"/memfd:program (deleted)", true},
        {"/home/user/dev/zero (deleted)", true},
        {"/home/user/SYSV00000000 (deleted)", true},
        {"/home/user/anon_hugepage", true},
        {"/home/user/memfd:doublemapper", true},
        {"//anon", false},
        {"//toolong", false},
        {"[heap]", false},
        {"[vdso]", false},
        {"anon_inode:[perf_event]", false},
        {"", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (proc_parse_is_file(rows[i].path) != rows[i].is_file) {
            fail_msg("%s", rows[i].path);
        }
    }
}

TEST(reads_addresses_of_the_whole_range)
{
    char copy[LINE_BYTES];
    struct mapping_description mapping;
    assert_int_equal(parse_maps("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  "
                                "                [vsyscall]",
                                copy, &mapping),
                     1);
    assert_int_equal(mapping.start, 0xffffffffff600000);
    assert_string_equal(mapping.path, "[vsyscall]");
}

TEST(tells_mappings_that_hold_no_code)
{
    char copy[LINE_BYTES];
    struct mapping_description mapping = {.path = "old"};
    assert_int_equal(parse_maps("1000-2000 rw-p 00003000 fe:1a 77 /x", copy, &mapping), 0);
    assert_int_equal(mapping.start, 0x1000);
    assert_int_equal(mapping.inode, 77);
    assert_null(mapping.path);
}

TEST(refuses_what_is_no_line_of_maps)
{
    static const char *const lines[] = {
        "",
        "1000",
        "1000-2000",
        "1000-2000 r-xp",
        "2000-1000 r-xp 0 fe:1a 77 /x",
        "1000-1000 r-xp 0 fe:1a 77 /x",
        "10000000000001000-10000000000002000 r-xp 0 fe:1a 77 /x",
        "-2000 r-xp 0 fe:1a 77 /x",
        "1000-2000 r-x 0 fe:1a 77 /x",
        "1000-2000 r-xpp 0 fe:1a 77 /x",
        "1000-2000 r-xp 0 fe:1a 18446744073709551616 /x",
        "1000-2000 r-xp 0 100000000:0 1 /x",
        "1000-2000 r-xp 0 0:100000000 1 /x",
        "1000-2000 r-xp 0 fe1a 1 /x",
        "1000-2000 r-xp 0 fe:1a 1/x",
        "1000-2000 r-xp 0 fe:1a  /x",
        "0x1000-0x2000 r-xp 0 fe:1a 1 /x",
        "1000-2000\nr-xp 0 fe:1a 1 /x",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char copy[LINE_BYTES];
        struct mapping_description mapping;
        assert_int_equal(parse_maps(lines[i], copy, &mapping), -EBADMSG);
    }
}

#define STAT_TAIL "S 7 9 9 0 -1 2097216 0 0 0 0 1 2 3 4 20 0 3 0 215686 31 3 99 94 95 1400 0 0 0 0"

TEST(reads_a_stat_whatever_the_comm_is)
{
    static const char *const texts[] = {
        "12 (cat) " STAT_TAIL,        "12 (a) b) " STAT_TAIL,      "12 () " STAT_TAIL,
        "12 (x\n) R 1 1) " STAT_TAIL, "12 ((((((((()) " STAT_TAIL,
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct proc_stat stat = {0};
        assert_int_equal(proc_parse_stat(texts[i], &stat), 0);
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.parent_pid, 7);
        assert_true(stat.kernel_thread);
        assert_int_equal(stat.thread_count, 3);
        assert_int_equal(stat.start_time_ticks, 215686);
        assert_int_equal(stat.stack_start, 1400);
    }
}

TEST(refuses_what_is_no_stat)
{
    static const char *const texts[] = {
        "",
        "12 (cat",
        "12 (cat)",
        "12 (cat) ",
        "12 (cat) S",
        "12 (cat) S 7",
        "12 (cat) S 2147483648 9 9 0 -1 2 0 0 0 0 1 2 3 4 20 0 3 0 1 31 3 99 94 95 1400 0",
        "12 (cat) S 7 9 9 0 -1 2 0 0 0 0 1 2 3 4 20 0 3 0 18446744073709551616 31 3 99 94 95 1 0",
        "12 (cat) S 7 9 9 0 -1 2 0 0 0 0 1 2 3 4 20 0 3 0 1 31 3 99 94 95",
        "12 (cat) S 7 9 9 0 - 2 0 0 0 0 1 2 3 4 20 0 3 0 1 31 3 99 94 95 1 0",
        "12 (cat) S 7  9 9 0 -1 2 0 0 0 0 1 2 3 4 20 0 3 0 1 31 3 99 94 95 1 0",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct proc_stat stat = {.state = 'Q'};
        assert_int_equal(proc_parse_stat(texts[i], &stat), -EBADMSG);
        assert_int_equal(stat.state, 'Q');
    }
}

TEST(reads_the_effective_uid)
{
    static const struct {
        const char *text;
        int result;
        uint32_t uid;
    } rows[] = {
        {"Name:\ta\nUmask:\t0022\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n", 0, 2},
        {"Name:\tUid:\t9\nUid:\t0\t4294967295\t0\t0\n", 0, UINT32_MAX},
        {"Name:\t\\nUid:\t9\t9\nUid:\t1\t2\t3\t4\n", 0, 2},
        {"Uid:\t1\t2\t3\t4\n", -EBADMSG, 0},
        {"Name:\ta\nUid:\t1\t4294967296\t3\t4\n", -EBADMSG, 0},
        {"Name:\ta\nUid:\t1\t-2\t3\t4\n", -EBADMSG, 0},
        {"Name:\ta\nUid:\t1\t\t3\n", -EBADMSG, 0},
        {"Name:\ta\nUid:\t1 2 3 4\n", -EBADMSG, 0},
        {"Name:\ta\nUid:\t1\t2", -EBADMSG, 0},
        {"Name:\ta\nGid:\t1\t2\t3\t4\n", -EBADMSG, 0},
        {"", -EBADMSG, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint32_t uid = 77;
        assert_int_equal(proc_parse_uid(rows[i].text, &uid), rows[i].result);
        assert_int_equal(uid, rows[i].result == 0 ? rows[i].uid : 77);
    }
}

TEST(takes_whole_numbers_for_pids)
{
    static const struct {
        const char *name;
        int32_t pid;
    } rows[] = {
        {"1", 1},
        {"2147483647", INT32_MAX},
        {"0", -1},
        {"2147483648", -1},
        {"18446744073709551617", -1},
        {"", -1},
        {"-1", -1},
        {"1a", -1},
        {"self", -1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(proc_parse_id(rows[i].name), rows[i].pid);
    }
}

TEST(knows_when_a_process_began)
{
    const uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t start_ns = 5;
    struct proc_stat stat = {.start_time_ticks = 7};
    assert_int_equal(proc_parse_start_time(&stat, &start_ns), 0);
    assert_int_equal(start_ns, 7 * tick_ns);
    stat.start_time_ticks = UINT64_MAX;
    assert_int_equal(proc_parse_start_time(&stat, &start_ns), -EBADMSG);
    assert_int_equal(start_ns, 7 * tick_ns);
}

TEST(a_process_of_one_user_has_it_four_times)
{
    static const struct {
        const char *text;
        int error;
        uint32_t uid;
    } rows[] = {
        {"Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t1\t1\t1\t1\n", 0, 7},
        {"Name:\tx\nUid:\t0\t0\t0\t0\n", 0, 0},
        {"Name:\tx\nUid:\t7\t0\t0\t0\n", -EPERM, 0},
        {"Name:\tx\nUid:\t7\t7\t0\t7\n", -EPERM, 0},
        {"Name:\tx\nUid:\t7\t7\t7\t0\n", -EPERM, 0},
        {"Name:\tx\nUid:\t7\t7\t7\n", -EBADMSG, 0},
        {"Name:\tx\nUid:\t7\t7\t7\t7", -EBADMSG, 0},
        {"Name:\tx\nUid:\t7 7\t7\t7\n", -EBADMSG, 0},
        {"Name:\tx\nUid:\t4294967296\t0\t0\t0\n", -EBADMSG, 0},
        {"Uid:\t7\t7\t7\t7\n", -EBADMSG, 0},
        {"", -EBADMSG, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint32_t uid = UINT32_MAX;
        assert_int_equal(proc_parse_only_uid(rows[i].text, &uid), rows[i].error);
        assert_int_equal(uid, rows[i].error == 0 ? rows[i].uid : UINT32_MAX);
    }
}
