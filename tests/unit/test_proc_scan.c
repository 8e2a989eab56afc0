/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parsers on lines that a hostile process can bring about, and a scan of this very process.
 */
#include "proc_scan.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE_BYTES 256

/* The parser writes into its line. */
static int parse_maps(const char *line, char copy[LINE_BYTES], struct mapping_description *ret)
{
    (void)snprintf(copy, LINE_BYTES, "%s", line);
    return proc_scan_parse_maps_line(copy, ret);
}

static void reads_the_executable_lines_of_maps(void **state)
{
    (void)state;
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
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
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

static void reads_addresses_of_the_whole_range(void **state)
{
    (void)state;
    char copy[LINE_BYTES];
    struct mapping_description mapping;
    assert_int_equal(parse_maps("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  "
                                "                [vsyscall]",
                                copy, &mapping),
                     1);
    assert_int_equal(mapping.start, 0xffffffffff600000);
    assert_string_equal(mapping.path, "[vsyscall]");
}

static void skips_mappings_that_hold_no_code(void **state)
{
    (void)state;
    char copy[LINE_BYTES];
    struct mapping_description mapping = {.start = 5};
    assert_int_equal(parse_maps("1000-2000 rw-p 00003000 fe:1a 77 /x", copy, &mapping), 0);
    assert_int_equal(mapping.start, 5);
}

static void refuses_what_is_no_line_of_maps(void **state)
{
    (void)state;
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
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char copy[LINE_BYTES];
        struct mapping_description mapping;
        assert_int_equal(parse_maps(lines[i], copy, &mapping), -EBADMSG);
    }
}

#define STAT_TAIL "S 7 9 9 0 -1 2097216 0 0 0 0 1 2 3 4 20 0 3 0 215686 31 3 99 94 95 1400 0 0 0 0"

static void reads_a_stat_whatever_the_comm_is(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "12 (cat) " STAT_TAIL,        "12 (a) b) " STAT_TAIL,      "12 () " STAT_TAIL,
        "12 (x\n) R 1 1) " STAT_TAIL, "12 ((((((((()) " STAT_TAIL,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct proc_stat stat = {0};
        assert_int_equal(proc_scan_parse_stat(texts[i], &stat), 0);
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.parent_pid, 7);
        assert_true(stat.kernel_thread);
        assert_int_equal(stat.thread_count, 3);
        assert_int_equal(stat.start_time_ticks, 215686);
        assert_int_equal(stat.stack_start, 1400);
    }
}

static void refuses_what_is_no_stat(void **state)
{
    (void)state;
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
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct proc_stat stat = {.state = 'Q'};
        assert_int_equal(proc_scan_parse_stat(texts[i], &stat), -EBADMSG);
        assert_int_equal(stat.state, 'Q');
    }
}

static void reads_the_effective_uid(void **state)
{
    (void)state;
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
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t uid = 77;
        assert_int_equal(proc_scan_parse_uid(rows[i].text, &uid), rows[i].result);
        assert_int_equal(uid, rows[i].result == 0 ? rows[i].uid : 77);
    }
}

static uint64_t boot_ns(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *wait_with_a_name(void *argument)
{
    pthread_barrier_t *barrier = argument;
    (void)prctl(PR_SET_NAME, "odd (na)me\n");
    (void)pthread_barrier_wait(barrier); /* named */
    (void)pthread_barrier_wait(barrier); /* scanned */
    return NULL;
}

static const char *name_in(struct process *process, const char *wanted)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        if (strcmp(process->threads[i]->names[0].text, wanted) == 0) {
            return process->threads[i]->names[0].text;
        }
    }
    return "missing";
}

static void check_this_process(struct process_table *table, uint64_t begin_ns)
{
    struct process *self = process_table_find(table, getpid(), begin_ns);
    assert_non_null(self);
    assert_true(self->scanned);
    assert_false(self->kernel_thread);
    assert_int_equal(self->parent_pid, getppid());
    assert_in_range(self->start_time_ns, begin_ns - UINT64_C(600) * 1000000000, begin_ns);
    assert_string_equal(name_in(self, "odd (na)me\n"), "odd (na)me\n");
    assert_string_equal(name_in(self, "test_proc_scan"), "test_proc_scan");

    char path[4096] = {0};
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    uint64_t pc = (uint64_t)(uintptr_t)check_this_process;
    const struct mapping *mapping = process_find_mapping(self, pc, begin_ns);
    assert_non_null(mapping);
    assert_string_equal(mapping->file->path, path);
    assert_int_not_equal(mapping->file->inode, 0);
    assert_true(mapping->scanned);
    assert_null(process_find_mapping(self, (uint64_t)(uintptr_t)&pc, begin_ns));
}

static void finds_its_own_code_and_threads(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_t thread;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_with_a_name, &barrier), 0);
    (void)pthread_barrier_wait(&barrier);

    struct process_table *table = process_table_new(NULL, NULL);
    struct proc_scan *scan = proc_scan_new();
    assert_non_null(table);
    assert_non_null(scan);
    uint64_t begin_ns = boot_ns();
    assert_int_equal(proc_scan_process(scan, table, getpid()), 0);
    check_this_process(table, begin_ns);
    uint64_t generation = process_table_find(table, getpid(), begin_ns)->generation;
    assert_int_equal(proc_scan_process(scan, table, getpid()), 0);
    assert_int_equal(process_table_find(table, getpid(), begin_ns)->generation, generation);

    (void)pthread_barrier_wait(&barrier);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&barrier), 0);
    assert_null(proc_scan_free(scan));
    assert_null(process_table_free(table));
}

static void walks_all_processes_in_pieces(void **state)
{
    (void)state;
    struct process_table *table = process_table_new(NULL, NULL);
    struct proc_scan *scan = proc_scan_new();
    assert_non_null(table);
    assert_non_null(scan);
    for (size_t round = 0; round < 2; round++) {
        size_t piece_count = 1;
        int r;
        while ((r = proc_scan_walk(scan, table, 0)) == 1) {
            piece_count++;
        }
        assert_int_equal(r, 0);
        assert_true(piece_count > 1);
        assert_non_null(process_table_find(table, getpid(), boot_ns()));
        assert_non_null(process_table_find(table, 1, boot_ns()));
    }
    const struct process *init = process_table_find(table, 1, boot_ns());
    assert_int_equal(init->parent_pid, 0);
    assert_int_equal(proc_scan_walk(scan, table, 0), 1); /* freed in the middle of a walk */
    assert_null(proc_scan_free(scan));
    assert_null(process_table_free(table));
}

/* Scans this process with the uid as the target, and says whether it was found to be one. */
static bool is_target_by_uid(uint32_t uid, bool judged)
{
    struct session_targets targets = {.uids = {uid}, .uid_count = 1};
    struct filter *filter = filter_new(&(struct filter_config){.targets = &targets});
    struct process_table *table = process_table_new(NULL, NULL);
    struct proc_scan *scan = proc_scan_new();
    if (judged) {
        proc_scan_judge_by(scan, filter);
    }
    assert_int_equal(proc_scan_process(scan, table, getpid()), 0);
    struct process *self = process_table_find(table, getpid(), boot_ns());
    assert_int_equal(self->identity_ns != 0, judged);
    bool matches = self->identity_matches;
    self->identity_matches = !matches;
    proc_scan_identity(scan, self, 12345);
    assert_int_equal(self->identity_ns, 12345);
    assert_int_equal(self->identity_matches, judged ? matches : !matches);
    /* Of what is gone the last word stands. */
    self->pid = 4194304;
    self->identity_matches = !matches;
    proc_scan_identity(scan, self, 12346);
    assert_int_equal(self->identity_matches, !matches);
    self->pid = getpid();
    assert_null(proc_scan_free(scan));
    assert_null(process_table_free(table));
    assert_null(filter_free(filter));
    return matches;
}

static void judges_by_uid_when_told(void **state)
{
    (void)state;
    assert_true(is_target_by_uid(geteuid(), true));
    assert_false(is_target_by_uid(geteuid() + 1, true));
    assert_false(is_target_by_uid(geteuid(), false));
}

static void judges_by_every_cgroup(void **state)
{
    (void)state;
    char line[4096] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    struct process_table *table = process_table_new(NULL, NULL);
    struct proc_scan *scan = proc_scan_new();
    size_t count = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        struct session_targets targets = {.cgroup_count = 1};
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(targets.cgroups[0], sizeof targets.cgroups[0], "%s",
                       strchr(strchr(line, ':') + 1, ':') + 1);
        struct filter *filter = filter_new(&(struct filter_config){.targets = &targets});
        proc_scan_judge_by(scan, filter);
        assert_int_equal(proc_scan_process(scan, table, getpid()), 0);
        assert_true(process_table_find(table, getpid(), boot_ns())->identity_matches);
        assert_null(filter_free(filter));
        count++;
    }
    assert_true(count > 0);
    assert_int_equal(fclose(file), 0);
    assert_null(proc_scan_free(scan));
    assert_null(process_table_free(table));
}

static void ends_what_a_whole_walk_did_not_meet(void **state)
{
    (void)state;
    enum {
        CHILD_COUNT = 3
    };
    struct process_table *table = process_table_new(NULL, NULL);
    struct proc_scan *scan = proc_scan_new();
    assert_non_null(table);
    assert_non_null(scan);
    pid_t children[CHILD_COUNT];
    for (size_t i = 0; i < CHILD_COUNT; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            (void)pause();
            _exit(0);
        }
        assert_int_equal(proc_scan_process(scan, table, children[i]), 0);
    }
    for (size_t i = 1; i < CHILD_COUNT; i++) {
        assert_int_equal(kill(children[i], SIGKILL), 0);
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
    }
    const uint64_t begin_ns = boot_ns();
    assert_int_equal(proc_scan_walk(scan, table, 0), 1);
    /* Not in /proc, but its first word came during the walk, whatever its time is. */
    process_table_comm(table, INT32_MAX, INT32_MAX, "new", false, begin_ns - 1);
    assert_int_equal(process_table_find(table, children[1], begin_ns)->to_ns, TIME_OPEN_NS);
    while (proc_scan_walk(scan, table, 0) == 1) {
    }
    assert_int_equal(process_table_find(table, children[0], begin_ns)->to_ns, TIME_OPEN_NS);
    assert_int_equal(process_table_find(table, getpid(), boot_ns())->to_ns, TIME_OPEN_NS);
    assert_int_equal(process_table_find(table, INT32_MAX, begin_ns)->to_ns, TIME_OPEN_NS);
    for (size_t i = 1; i < CHILD_COUNT; i++) {
        const struct process *gone = process_table_find(table, children[i], begin_ns);
        assert_in_range(gone->to_ns, begin_ns, boot_ns());
        assert_int_equal(gone->live_thread_count, 0);
    }
    assert_int_equal(proc_scan_walk(scan, table, UINT64_MAX), 0);
    assert_in_range(process_table_find(table, INT32_MAX, begin_ns)->to_ns, begin_ns, boot_ns());
    assert_int_equal(kill(children[0], SIGKILL), 0);
    assert_int_equal(waitpid(children[0], NULL, 0), children[0]);
    assert_null(proc_scan_free(scan));
    assert_null(process_table_free(table));
}

static void says_that_a_process_is_gone_or_a_zombie(void **state)
{
    (void)state;
    struct process_table *table = process_table_new(NULL, NULL);
    struct proc_scan *scan = proc_scan_new();
    assert_non_null(table);
    assert_non_null(scan);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    assert_int_equal(proc_scan_process(scan, table, child), 0);
    assert_non_null(process_table_find(table, child, boot_ns()));
    uint64_t begin_ns = boot_ns();
    assert_int_equal(kill(child, SIGKILL), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(proc_scan_process(scan, table, child), -ESRCH); /* a zombie */
    assert_in_range(process_table_find(table, child, boot_ns())->to_ns, begin_ns, boot_ns());
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(proc_scan_process(scan, table, child), -ESRCH);
    assert_int_equal(proc_scan_process(scan, table, 0), -ESRCH);
    assert_int_equal(process_table_counts(table).process_count, 1);
    assert_null(proc_scan_free(scan));
    assert_null(process_table_free(table));
}

static void reads_a_process_with_very_many_mappings(void **state)
{
    (void)state;
    enum {
        PAGES = 8000,
        PAGE_BYTES = 4096
    };
    char *pages = mmap(NULL, (size_t)PAGES * PAGE_BYTES, PROT_READ | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < PAGES; i += 2) {
        assert_int_equal(mprotect(pages + i * PAGE_BYTES, PAGE_BYTES, PROT_READ), 0);
    }
    struct process_table *table = process_table_new(NULL, NULL);
    struct proc_scan *scan = proc_scan_new();
    assert_int_equal(proc_scan_process(scan, table, getpid()), 0);
    struct process *self = process_table_find(table, getpid(), boot_ns());
    for (size_t i = 0; i < PAGES; i++) {
        uint64_t pc = (uint64_t)(uintptr_t)pages + i * PAGE_BYTES;
        const struct mapping *mapping = process_find_mapping(self, pc, boot_ns());
        assert_int_equal(mapping != NULL, i % 2);
    }
    assert_null(proc_scan_free(scan));
    assert_null(process_table_free(table));
    assert_int_equal(munmap(pages, (size_t)PAGES * PAGE_BYTES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_executable_lines_of_maps),
        cmocka_unit_test(reads_addresses_of_the_whole_range),
        cmocka_unit_test(skips_mappings_that_hold_no_code),
        cmocka_unit_test(refuses_what_is_no_line_of_maps),
        cmocka_unit_test(reads_a_stat_whatever_the_comm_is),
        cmocka_unit_test(refuses_what_is_no_stat),
        cmocka_unit_test(reads_the_effective_uid),
        cmocka_unit_test(judges_by_uid_when_told),
        cmocka_unit_test(judges_by_every_cgroup),
        cmocka_unit_test(finds_its_own_code_and_threads),
        cmocka_unit_test(walks_all_processes_in_pieces),
        cmocka_unit_test(ends_what_a_whole_walk_did_not_meet),
        cmocka_unit_test(says_that_a_process_is_gone_or_a_zombie),
        cmocka_unit_test(reads_a_process_with_very_many_mappings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
