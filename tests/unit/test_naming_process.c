/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is believed of a process that is looked at while it changes: its user, its root, its files.
 * The processes are children, told by a pipe when to go on.
 */
#include "clock.h"
#include "naming_ask.h"
#include "naming_counters.h"
#include "naming_look.h"
#include "own_map.h"
#include "runtimes.h"
#include "unit_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOBODY 65534

/* Those that are asked are waited for longer than a test may last; none of them listens. */
static const struct naming_wait patient = {.answer_ms = 3600000, .listen_ms = 20};

static char folder[] = "/tmp/naming_process.XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/naming_process.XXXXXX");
    return mkdtemp(folder) == NULL || chmod(folder, 0777) < 0 || chdir(folder) < 0 ? -1 : 0;
}

/* A name in the folder that the test left there is what the test forgot. */
static int remove_folder(void **state)
{
    (void)state;
    return chdir("/") < 0 || rmdir(folder) < 0 ? -1 : 0;
}

struct child {
    pid_t pid;
    int go_on;   /* a byte has it take its next step */
    int replies; /* a byte for each step that is done */
};

typedef void step_fn(void);

/* The child does the first step at once, and the second when it is told to. */
static struct child begin(step_fn *first, step_fn *second)
{
    int down[2];
    int up[2];
    char byte = 0;
    assert_int_equal(pipe(down), 0);
    assert_int_equal(pipe(up), 0);
    struct child child = {.pid = fork(), .go_on = down[1], .replies = up[0]};
    if (child.pid == 0) {
        (void)close(down[1]);
        first();
        (void)!write(up[1], "1", 1);
        while (read(down[0], &byte, 1) == 1) {
            second();
            (void)!write(up[1], "2", 1);
        }
        _exit(0);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    assert_int_equal(read(child.replies, &byte, 1), 1);
    return child;
}

static void go_on(const struct child *child)
{
    char byte = 0;
    assert_int_equal(write(child->go_on, "x", 1), 1);
    assert_int_equal(read(child->replies, &byte, 1), 1);
}

static void end(struct child *child)
{
    int status = 0;
    (void)close(child->go_on);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_int_equal(status, 0);
    (void)close(child->replies);
}

static void do_nothing(void)
{
}

static void on_quit(int number)
{
    (void)number;
}

static void catch_quit(void)
{
    (void)signal(SIGQUIT, on_quit);
}

static void become_nobody(void)
{
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0) {
        _exit(1);
    }
}

/* Has what a Java virtual machine has: the library, and a handler. */
static void look_like_java(void)
{
    int fd = open("libjvm.so", O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    if (fd < 0 || ftruncate(fd, 4096) < 0 ||
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
        _exit(1);
    }
    (void)unlink("libjvm.so");
    catch_quit();
}

/* What is mapped later has a lower address, so the library is the last of 390 KiB of text. */
static void look_like_java_with_a_large_heap(void)
{
    look_like_java();
    for (int i = 0; i < 8000; i++) {
        /* Neighbours that differ do not become one. */
        if (mmap(NULL, 4096, i % 2 == 0 ? PROT_READ : PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
            _exit(1);
        }
    }
}

TEST_WITH(finds_java_behind_thousands_of_mappings, make_folder, remove_folder)
{
    struct naming_process process;
    struct runtime_mappings mappings;
    bool is_old_python = false;
    struct child child = begin(look_like_java_with_a_large_heap, do_nothing);
    assert_true(naming_process_open(child.pid, &process));
    size_t runtime = naming_process_runtime(&process, &mappings, &is_old_python);
    assert_int_not_equal(runtime, RUNTIME_NONE);
    assert_int_equal(runtime_get(runtime)->asking, RUNTIME_BY_ATTACH);
    naming_process_close(&process);
    end(&child);
}

TEST_WITH(finds_no_runtime_where_the_user_has_changed, make_folder, remove_folder)
{
    struct naming_process process;
    struct runtime_mappings mappings;
    bool is_old_python = false;
    if (geteuid() != 0) {
        skip();
    }
    struct child child = begin(look_like_java, become_nobody);
    assert_true(naming_process_open(child.pid, &process));
    size_t runtime = naming_process_runtime(&process, &mappings, &is_old_python);
    assert_int_not_equal(runtime, RUNTIME_NONE);
    assert_int_equal(runtime_get(runtime)->asking, RUNTIME_BY_ATTACH);
    go_on(&child);
    assert_int_equal(naming_process_runtime(&process, &mappings, &is_old_python), RUNTIME_NONE);
    naming_process_close(&process);
    end(&child);
}

/* Root leaves no file in a folder that a user has chosen, who was root when it was looked at. */
TEST_WITH(asks_no_process_whose_user_has_changed, make_folder, remove_folder)
{
    struct naming_question question = {.ask = naming_jvm_ask};
    struct naming_answer answer = {0};
    if (geteuid() != 0) {
        skip();
    }
    struct child child = begin(catch_quit, become_nobody);
    assert_true(naming_process_open(child.pid, &question.process));
    go_on(&child);
    naming_ask_all(&question, 1, &patient);
    assert_string_equal(question.answer.why,
                        "it has ended or has another user since it was looked at");
    /* It may change while it is asked, too. */
    naming_jvm_ask(&question.process, patient.listen_ms, &answer);
    assert_false(answer.is_done);
    assert_string_equal(answer.why, "it has ended or has another user");
    naming_process_close(&question.process);
    end(&child);
}

static void change_root(void)
{
    if (mkdir("root", 0755) < 0 || mkdir("root/inside", 0755) < 0 ||
        symlink("/inside", "root/tmp") < 0 || chroot("root") < 0 || chdir("/") < 0) {
        _exit(1);
    }
}

/* "/inside" is inside of the process's root, and not of the caller's. */
TEST_WITH(follows_no_link_out_of_the_root_of_a_process, make_folder, remove_folder)
{
    struct naming_process process;
    struct stat expected;
    struct stat found;
    if (geteuid() != 0) {
        skip();
    }
    struct child child = begin(change_root, do_nothing);
    assert_true(naming_process_open(child.pid, &process));
    int fd = own_map_open_tmp(process.folder);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &found), 0);
    assert_int_equal(stat("root/inside", &expected), 0);
    assert_int_equal(found.st_ino, expected.st_ino);
    (void)close(fd);
    naming_process_close(&process);
    end(&child);
    assert_int_equal(unlink("root/tmp"), 0);
    assert_int_equal(rmdir("root/inside"), 0);
    assert_int_equal(rmdir("root"), 0);
}

/* Maps a file of that name. */
static void map(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 1) < 0 ||
        mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
        _exit(1);
    }
    (void)close(fd);
}

static void map_own_jitdump(void)
{
    char name[48];
    (void)snprintf(name, sizeof name, "jit-%d.dump", (int)getpid());
    map(name);
}

static void map_other_dumps(void)
{
    char name[48];
    map("core.dump");
    map("jit-1.dump");
    (void)snprintf(name, sizeof name, "jit-%d.dump2", (int)getpid());
    map(name);
}

static bool names_code(step_fn *first, const char *end_of_name)
{
    struct naming_process process;
    struct naming_finding finding = {0};
    char name[48];
    struct child child = begin(first, do_nothing);
    assert_true(naming_process_open(child.pid, &process));
    naming_look_inside(&process, &finding);
    naming_process_close(&process);
    end(&child);
    (void)snprintf(name, sizeof name, "jit-%d.dump%s", (int)child.pid, end_of_name);
    assert_int_equal(unlink(name), 0);
    return finding.names_code;
}

TEST_WITH(believes_the_jitdump_of_the_process_alone, make_folder, remove_folder)
{
    assert_true(names_code(map_own_jitdump, ""));
    assert_false(names_code(map_other_dumps, "2"));
    assert_int_equal(unlink("core.dump"), 0);
    assert_int_equal(unlink("jit-1.dump"), 0);
}

/* Maps what is left of a real file: the prologue, and the one counter that is looked for. */
static void have_counters(pid_t named)
{
    static const char file[96] =
        "\xca\xfe\xc0\xc0\x01\x02\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0\1\0\0\0"
        "\x34\0\0\0\x14\0\0\0\4\0\0\0B\0\5\1\x2c\0\0\0sun.rt.jvmCapabilities\0\0\x30\x31";
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/hsperfdata_naming%d", (int)getpid());
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "/tmp/hsperfdata_naming%d/%d", (int)getpid(), (int)named);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, file, sizeof file) != (ssize_t)sizeof file ||
        mmap(NULL, sizeof file, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) {
        _exit(1);
    }
}

static void have_own_counters(void)
{
    have_counters(getpid());
}

/* As `jstat PID` has. */
static void have_counters_of_another(void)
{
    have_counters(getppid());
}

static enum naming_tools tools_of(step_fn *first, bool is_removed)
{
    struct naming_process process;
    char directory[64];
    char path[80];
    struct child child = begin(first, do_nothing);
    (void)snprintf(directory, sizeof directory, "/tmp/hsperfdata_naming%d", (int)child.pid);
    (void)snprintf(path, sizeof path, "%s/%d", directory,
                   (int)(first == have_own_counters ? child.pid : getpid()));
    if (is_removed) {
        assert_int_equal(unlink(path), 0);
    }
    assert_true(naming_process_open(child.pid, &process));
    enum naming_tools tools = naming_counters_tools(&process);
    naming_process_close(&process);
    end(&child);
    assert_int_equal(unlink(path), is_removed ? -1 : 0);
    assert_int_equal(rmdir(directory), 0);
    return tools;
}

TEST(reads_counters_that_the_process_has_mapped_as_its_own)
{
    assert_int_equal(tools_of(have_own_counters, false), NAMING_TOOLS_REFUSED);
    assert_int_equal(tools_of(have_own_counters, true), NAMING_TOOLS_UNKNOWN);
    assert_int_equal(tools_of(have_counters_of_another, false), NAMING_TOOLS_UNKNOWN);
}

static void see(const struct naming_process *process, struct naming_finding *finding)
{
    finding->runtime = (size_t)process->inner;
}

/* As a process whose files never answer does it to a look; and one that kills the child. */
static void hang_at_three(const struct naming_process *process, struct naming_finding *finding)
{
    while (process->inner == 3) {
        (void)pause();
    }
    see(process, finding);
}

static void die_at_three(const struct naming_process *process, struct naming_finding *finding)
{
    if (process->inner == 3) {
        (void)raise(SIGKILL);
    }
    see(process, finding);
}

#define LOOKED_AT 6

static void look_at_six(naming_look_fn *look, struct naming_patience *patience,
                        struct naming_finding findings[LOOKED_AT])
{
    struct naming_process processes[LOOKED_AT];
    for (size_t i = 0; i < LOOKED_AT; i++) {
        processes[i] = (struct naming_process){.folder = -1, .inner = (pid_t)i};
    }
    naming_look_all(processes, LOOKED_AT, look, patience, findings);
}

TEST(looks_past_a_process_that_does_not_answer)
{
    static naming_look_fn *const looks[] = {see, die_at_three, hang_at_three};
    for (size_t i = 0; i < COUNT_OF(looks); i++) {
        struct naming_patience patience = {.stuck_ns = NS_PER_S, .left_ns = 3 * NS_PER_S};
        struct naming_finding findings[LOOKED_AT];
        look_at_six(looks[i], &patience, findings);
        for (size_t k = 0; k < LOOKED_AT; k++) {
            assert_int_equal(findings[k].is_seen, i == 0 || k != 3);
            assert_int_equal(findings[k].is_stuck, i == 2 && k == 3);
            assert_int_equal(findings[k].runtime, findings[k].is_seen ? k : 0);
        }
        /* Only waits in vain cost patience. */
        assert_int_equal(patience.left_ns, (i == 2 ? 2 : 3) * NS_PER_S);
    }
}

TEST(looks_at_no_more_when_the_patience_is_over)
{
    struct naming_patience patience = {.stuck_ns = 2 * NS_PER_S, .left_ns = NS_PER_S};
    struct naming_finding findings[LOOKED_AT];
    look_at_six(hang_at_three, &patience, findings);
    assert_int_equal(patience.left_ns, 0);
    for (size_t k = 0; k < LOOKED_AT; k++) {
        assert_int_equal(findings[k].is_seen, k < 3);
        assert_int_equal(findings[k].is_stuck, k == 3);
    }
}

static void be_nobody_that_catches_quit(void)
{
    (void)prctl(PR_SET_NAME, "Signal Dispatcher");
    catch_quit();
    become_nobody();
    (void)prctl(PR_SET_DUMPABLE, 1); /* as an exec does: its own user may look at it */
}

/* Makes a file that is another user's to the child, which is nobody's. */
static void plant(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "\n", 1), 1);
    (void)close(fd);
}

static void expect_made(const char *path, uid_t uid, int result, bool is_new)
{
    bool is_made = !is_new;
    int tmp = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(tmp >= 0);
    assert_int_equal(own_map_make(tmp, 7, uid, &is_made), result);
    assert_int_equal(is_made, is_new);
    (void)close(tmp);
}

TEST_WITH(makes_a_map_where_no_other_user_can_replace_it, make_folder, remove_folder)
{
    const uid_t own = geteuid();
    assert_int_equal(mkdir("tmp", 0700), 0);
    assert_int_equal(chmod("tmp", 0777), 0);
    expect_made("tmp", own, -EPERM, false);
    assert_int_equal(chmod("tmp", 01777), 0);
    expect_made("tmp", own, 0, true);
    expect_made("tmp", own, 0, false);
    assert_int_equal(link("tmp/perf-7.map", "tmp/other"), 0);
    expect_made("tmp", own, -EEXIST, false);
    assert_int_equal(unlink("tmp/perf-7.map"), 0);
    assert_int_equal(symlink("other", "tmp/perf-7.map"), 0);
    expect_made("tmp", own, -EEXIST, false);
    assert_int_equal(unlink("tmp/perf-7.map"), 0);
    assert_int_equal(mkfifo("tmp/perf-7.map", 0600), 0);
    expect_made("tmp", own, -EEXIST, false);
    assert_int_equal(unlink("tmp/perf-7.map"), 0);
    plant("tmp/perf-7.map");
    expect_made("tmp", own + 1, -EEXIST, false);
    int tmp = open("tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_map_drop_empty(tmp, 7);
    assert_int_equal(access("tmp/perf-7.map", F_OK), 0);
    assert_int_equal(truncate("tmp/perf-7.map", 0), 0);
    own_map_drop_empty(tmp, 7);
    assert_int_not_equal(access("tmp/perf-7.map", F_OK), 0);
    (void)close(tmp);
    assert_int_equal(unlink("tmp/other"), 0);
    assert_int_equal(rmdir("tmp"), 0);
}

TEST_WITH(believes_no_map_of_another_user, make_folder, remove_folder)
{
    struct naming_process process;
    char path[48];
    if (geteuid() != 0) {
        skip();
    }
    struct child child = begin(become_nobody, do_nothing);
    (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)child.pid);
    assert_true(naming_process_open(child.pid, &process));
    assert_false(own_map_is_there(process.folder, process.inner, process.uid));
    plant(path);
    assert_false(own_map_is_there(process.folder, process.inner, process.uid));
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    assert_true(own_map_is_there(process.folder, process.inner, process.uid));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(lchown(path, NOBODY, NOBODY), 0);
    assert_false(own_map_is_there(process.folder, process.inner, process.uid));
    assert_int_equal(unlink(path), 0);
    naming_process_close(&process);
    end(&child);
}

/* The machine goes by no file of another user, so that the question tries the other folder, and is
 * told where both are taken. */
TEST_WITH(leaves_a_file_beside_those_of_another_user, make_folder, remove_folder)
{
    struct naming_question question = {.ask = naming_jvm_ask};
    char in_cwd[48];
    char in_tmp[48];
    if (geteuid() != 0) {
        skip();
    }
    struct child child = begin(be_nobody_that_catches_quit, do_nothing);
    (void)snprintf(in_cwd, sizeof in_cwd, ".attach_pid%d", (int)child.pid);
    (void)snprintf(in_tmp, sizeof in_tmp, "/tmp/.attach_pid%d", (int)child.pid);
    assert_true(naming_process_open(child.pid, &question.process));
    plant(in_cwd);
    naming_ask_all(&question, 1, &patient);
    assert_string_equal(question.answer.why, "it opens no socket for tools"); /* it was asked */
    assert_int_not_equal(access(in_tmp, F_OK), 0);
    plant(in_tmp);
    naming_ask_all(&question, 1, &patient);
    assert_string_equal(question.answer.why, "no file can be left for it: File exists");
    assert_int_equal(unlink(in_cwd), 0);
    assert_int_equal(unlink(in_tmp), 0);
    naming_process_close(&question.process);
    end(&child);
}

/* Its map is there, but nothing else can be made in its /tmp. */
static void be_nobody_without_a_place_for_files(void)
{
    char path[48];
    (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    if (mkdir("root", 0755) < 0 || mkdir("root/tmp", 0755) < 0 || chroot("root") < 0 ||
        chdir("/") < 0) {
        _exit(1);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || fchown(fd, NOBODY, NOBODY) < 0) {
        _exit(1);
    }
    be_nobody_that_catches_quit();
}

TEST_WITH(says_why_no_file_can_be_left, make_folder, remove_folder)
{
    struct naming_question question = {.ask = naming_jvm_ask};
    char map[48];
    if (geteuid() != 0) {
        skip();
    }
    struct child child = begin(be_nobody_without_a_place_for_files, do_nothing);
    (void)snprintf(map, sizeof map, "root/tmp/perf-%d.map", (int)child.pid);
    assert_true(naming_process_open(child.pid, &question.process));
    naming_ask_all(&question, 1, &patient);
    assert_string_equal(question.answer.why, "no file can be left for it: Permission denied");
    naming_process_close(&question.process);
    end(&child);
    assert_int_equal(unlink(map), 0);
    assert_int_equal(rmdir("root/tmp"), 0);
    assert_int_equal(rmdir("root"), 0);
}
