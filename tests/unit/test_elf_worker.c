/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The real worker: this program executed anew, as the daemon does it. Some tests have it replaced
 * by a liar, which plays a worker that a hostile file has taken over; which lie it tells is hidden
 * in the uid of its settings. The filter is tried out in forks, one for each forbidden call.
 */
#include "elf_symbols.h"
#include "elf_worker.h"
#include "elf_worker_confine.h"
#include "elf_worker_wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS     20000
#define LIAR_UID    ((uid_t)0x4c494100)
#define NOBODY      65534
#define TABLE_BYTES ((size_t)88) /* an empty table is a header */
#define ALL_SEALS   (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const struct elf_worker_config honest = {.uid = NOBODY, .gid = NOBODY};

static struct elf_worker *start(const struct elf_worker_config *config)
{
    struct elf_worker *worker = NULL;
    assert_int_equal(elf_worker_start(config, &worker), 0);
    return worker;
}

/* Waits for the reply; the result of elf_worker_receive(). */
static int receive(struct elf_worker *worker, void **ret_map, size_t *ret_bytes)
{
    struct pollfd readable = {.fd = elf_worker_fd(worker), .events = POLLIN};
    assert_int_equal(poll(&readable, 1, WAIT_MS), 1);
    return elf_worker_receive(worker, ret_map, ret_bytes);
}

static int open_libc(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096];
    while (fgets(line, sizeof line, maps) != NULL) {
        char *path = strchr(line, '/');
        if (path != NULL && strstr(path, "/libc.so") != NULL) {
            path[strcspn(path, "\n")] = '\0';
            (void)close(fd);
            fd = open(path, O_RDONLY | O_CLOEXEC);
            break;
        }
    }
    (void)fclose(maps);
    assert_true(fd >= 0);
    return fd;
}

static void gives_the_table_that_this_process_would_build(void **state)
{
    (void)state;
    struct elf_worker *worker = start(&honest);
    struct symbol_builder *builder = symbol_builder_new();
    int fd = open_libc();
    void *expected = NULL;
    size_t expected_bytes = 0;
    assert_int_equal(elf_symbols_read(fd, builder), 0);
    assert_int_equal(symbol_builder_finish(builder, &expected, &expected_bytes), 0);
    for (int i = 0; i < 3; i++) {
        void *map = NULL;
        size_t bytes = 0;
        assert_int_equal(elf_worker_receive(worker, &map, &bytes), -EAGAIN);
        assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd), 0);
        assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd), -EAGAIN);
        assert_int_equal(receive(worker, &map, &bytes), 0);
        assert_int_equal(bytes, expected_bytes);
        assert_memory_equal(map, expected, bytes);
        (void)munmap(map, bytes);
    }
    free(expected);
    symbol_builder_free(builder);
    (void)close(fd);
    elf_worker_free(worker);
}

static void answers_that_a_file_is_none_of_its_kind_and_goes_on(void **state)
{
    (void)state;
    struct elf_worker *worker = start(&honest);
    int text = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    int kernel = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    int libc = open_libc();
    void *map = NULL;
    size_t bytes = 0;
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, text), 0);
    assert_int_equal(receive(worker, &map, &bytes), -EBADMSG);
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_KALLSYMS, text), 0);
    assert_int_equal(receive(worker, &map, &bytes), -EBADMSG);
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_KALLSYMS, kernel), 0);
    int r = receive(worker, &map, &bytes);
    assert_true(r == 0 || r == -EACCES);
    if (r == 0) {
        assert_true(bytes > 10000);
        (void)munmap(map, bytes);
    }
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, libc), 0);
    assert_int_equal(receive(worker, &map, &bytes), 0);
    (void)munmap(map, bytes);
    (void)close(text);
    (void)close(kernel);
    (void)close(libc);
    elf_worker_free(worker);
}

static void says_when_it_was_killed_and_a_new_one_works(void **state)
{
    (void)state;
    int pipe_fds[2];
    void *map = NULL;
    size_t bytes = 0;
    struct elf_worker *worker = start(&honest);
    assert_int_equal(pipe(pipe_fds), 0);
    /* A text that never comes keeps it at work. */
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_KALLSYMS, pipe_fds[0]), 0);
    assert_int_equal(elf_worker_receive(worker, &map, &bytes), -EAGAIN);
    assert_int_equal(kill(elf_worker_pid(worker), SIGKILL), 0);
    assert_int_equal(receive(worker, &map, &bytes), -EPIPE);
    pid_t pid = elf_worker_pid(worker);
    elf_worker_free(worker);
    assert_int_equal(kill(pid, 0), -1);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);

    int fd = open_libc();
    worker = start(&honest);
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd), 0);
    assert_int_equal(receive(worker, &map, &bytes), 0);
    (void)munmap(map, bytes);
    assert_int_equal(kill(elf_worker_pid(worker), SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)elf_worker_pid(worker), NULL, WEXITED | WNOWAIT), 0);
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd), -EPIPE);
    elf_worker_free(worker);
    (void)close(fd);
}

/* The value of a line of /proc/PID/status. */
static void status_value(pid_t pid, const char *key, char *value, size_t bytes)
{
    char path[64];
    char line[512];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "re");
    assert_non_null(status);
    value[0] = '\0';
    while (fgets(line, sizeof line, status) != NULL) {
        size_t key_bytes = strlen(key);
        if (strncmp(line, key, key_bytes) == 0 && line[key_bytes] == ':') {
            (void)snprintf(value, bytes, "%.*s", (int)strcspn(line + key_bytes + 2, "\n"),
                           line + key_bytes + 2);
        }
    }
    (void)fclose(status);
}

static void has_no_rights(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *value;
        bool root_only;
    } cases[] = {
        {"Seccomp", "2", false},
        {"NoNewPrivs", "1", false},
        {"CapEff", "0000000000000000", false},
        {"CapPrm", "0000000000000000", false},
        {"CapInh", "0000000000000000", false},
        {"CapAmb", "0000000000000000", false},
        {"CapBnd", "0000000000000000", true},
        {"Uid", "65534\t65534\t65534\t65534", true},
        {"Gid", "65534\t65534\t65534\t65534", true},
        {"Groups", " ", true},
    };
    struct elf_worker *worker = start(&honest);
    int fd = open_libc();
    void *map = NULL;
    size_t bytes = 0;
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd), 0);
    assert_int_equal(receive(worker, &map, &bytes), 0);
    (void)munmap(map, bytes);
    (void)close(fd);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char value[256];
        status_value(elf_worker_pid(worker), cases[i].key, value, sizeof value);
        if (geteuid() == 0 || !cases[i].root_only) {
            assert_string_equal(value[0] == '\0' ? " " : value, cases[i].value);
        }
    }
    elf_worker_free(worker);
}

static void inherits_nothing_but_its_socket(void **state)
{
    (void)state;
    char path[64];
    char target[256] = "";
    int leak = open("/proc/self/status", O_RDONLY); /* without O_CLOEXEC */
    struct elf_worker *first = start(&honest);
    struct elf_worker *worker = start(&honest);
    void *map = NULL;
    size_t bytes = 0;
    int count = 0;
    /* An answer without a table: when it is there, the worker has closed all that it opened. */
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, leak), 0);
    assert_int_equal(receive(worker, &map, &bytes), -EBADMSG);

    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)elf_worker_pid(worker));
    DIR *folder = opendir(path);
    if (folder == NULL) {
        assert_int_not_equal(geteuid(), 0);
        skip();
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        memset(target, 0, sizeof target);
        assert_true(readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0);
        bool expected = strcmp(entry->d_name, "3") == 0 ? strncmp(target, "socket:", 7) == 0
                                                        : strcmp(target, "/dev/null") == 0;
        if (!expected) {
            fail_msg("descriptor %s is %s", entry->d_name, target);
        }
        count++;
    }
    assert_int_equal(count, 4);
    (void)closedir(folder);
    (void)close(leak);
    elf_worker_free(worker);
    elf_worker_free(first);
}

static void try_open(void)
{
    (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void try_socket(void)
{
    (void)socket(AF_UNIX, SOCK_STREAM, 0);
}

static void try_connect(void)
{
    (void)connect(0, NULL, 0);
}

static void try_fork(void)
{
    (void)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void try_execute(void)
{
    (void)syscall(SYS_execve, "/bin/true", NULL, NULL);
}

static void try_kill(void)
{
    (void)kill(getppid(), 0);
}

static void try_ptrace(void)
{
    (void)syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
}

static void try_executable_memory(void)
{
    (void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void try_making_memory_executable(void)
{
    static char memory[8192];
    (void)mprotect((void *)((uintptr_t)(memory + 4095) & ~(uintptr_t)4095), 4096,
                   PROT_READ | PROT_EXEC);
}

static void try_mapping_a_file(void)
{
    (void)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 0, 0);
}

static void try_another_memfd(void)
{
    (void)memfd_create("x", MFD_ALLOW_SEALING);
}

static void try_stat_by_path(void)
{
    struct stat status;
    (void)syscall(SYS_newfstatat, AT_FDCWD, "/", &status, 0);
}

static void try_dup(void)
{
    (void)fcntl(0, F_DUPFD, 5);
}

static void try_x32_call(void)
{
    (void)syscall(0x40000000 | SYS_read, 0, NULL, 0);
}

static void try_what_is_allowed(void)
{
    struct stat status;
    (void)fstat(0, &status);
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)munmap(memory, 4096);
    (void)memfd_create("x", ELF_WORKER_MEMFD_FLAGS);
    free(malloc(1 << 20));
}

static void filter_kills_whatever_it_does_not_list(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        void (*attempt)(void);
        bool allowed;
    } cases[] = {
        {"open", try_open, false},
        {"socket", try_socket, false},
        {"connect", try_connect, false},
        {"fork", try_fork, false},
        {"execve", try_execute, false},
        {"kill", try_kill, false},
        {"ptrace", try_ptrace, false},
        {"mmap executable", try_executable_memory, false},
        {"mprotect executable", try_making_memory_executable, false},
        {"mmap of a file", try_mapping_a_file, false},
        {"memfd_create otherwise", try_another_memfd, false},
        {"stat by path", try_stat_by_path, false},
        {"dup", try_dup, false},
        {"a call of another architecture", try_x32_call, false},
        {"what is allowed", try_what_is_allowed, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
            (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            if (elf_worker_filter() == 0) {
                cases[i].attempt();
            }
            /* Not _exit(): a leak checker would do forbidden things in it. */
            (void)syscall(SYS_exit_group, 7);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
        bool passed = WIFEXITED(status) && WEXITSTATUS(status) == 7;
        if (cases[i].allowed ? !passed : !killed) {
            fail_msg("%s: status %x", cases[i].what, (unsigned)status);
        }
    }
}

enum lie {
    LIE_NO_DESCRIPTOR,
    LIE_TWO_DESCRIPTORS,
    LIE_MANY_DESCRIPTORS,
    LIE_NOT_SEALED,
    LIE_HALF_SEALED,
    LIE_PIPE,
    LIE_ORDINARY_FILE,
    LIE_SIZE_TOO_LARGE,
    LIE_SIZE_TOO_SMALL,
    LIE_SIZE_ZERO,
    LIE_HOLES,
    LIE_GARBAGE,
    LIE_SHORT_MESSAGE,
    LIE_LONG_MESSAGE,
    LIE_EMPTY_MESSAGE,
    LIE_OLD_ANSWER,
    LIE_ERROR_POSITIVE,
    LIE_ERROR_AGAIN,
    LIE_ERROR_HUGE,
    LIE_ERROR_WITH_DESCRIPTOR,
    LIE_DEATH,
    LIES,
    LIE_UNASKED = LIES,
    LIE_TRUTH, /* shows that what the liars change is all that is wrong */
};

static int table_file(enum lie lie)
{
    char bytes[88] = {0};
    size_t size = sizeof bytes;
    struct symbol_builder *builder = symbol_builder_new();
    void *table = NULL;
    if (lie != LIE_GARBAGE && symbol_builder_finish(builder, &table, &size) == 0) {
        memcpy(bytes, table, size);
    }
    int fd = memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool written =
        lie == LIE_HOLES ? ftruncate(fd, 1 << 20) == 0 : write(fd, bytes, size) == (ssize_t)size;
    int seals = lie == LIE_NOT_SEALED ? 0 : ALL_SEALS;
    seals = lie == LIE_HALF_SEALED ? ALL_SEALS & ~F_SEAL_WRITE : seals;
    if (!written || (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) < 0)) {
        _exit(1);
    }
    return fd;
}

static uint64_t lying_size(enum lie lie)
{
    if (lie == LIE_HOLES) {
        return 1 << 20;
    }
    if (lie == LIE_SIZE_TOO_LARGE) {
        return TABLE_BYTES + 4096;
    }
    if (lie == LIE_SIZE_TOO_SMALL) {
        return TABLE_BYTES - 8;
    }
    return lie == LIE_SIZE_ZERO ? 0 : TABLE_BYTES;
}

static int32_t lying_error(enum lie lie)
{
    if (lie == LIE_ERROR_POSITIVE) {
        return 5;
    }
    if (lie == LIE_ERROR_AGAIN) {
        return -EAGAIN;
    }
    if (lie == LIE_ERROR_HUGE) {
        return INT32_MIN;
    }
    return lie == LIE_ERROR_WITH_DESCRIPTOR ? -EIO : 0;
}

static size_t descriptors_of(enum lie lie)
{
    bool none = lie == LIE_NO_DESCRIPTOR || lie == LIE_ERROR_POSITIVE || lie == LIE_ERROR_AGAIN ||
                lie == LIE_ERROR_HUGE;
    if (lie == LIE_MANY_DESCRIPTORS) {
        return 200;
    }
    if (none) {
        return 0;
    }
    return lie == LIE_TWO_DESCRIPTORS ? 2 : 1;
}

static void tell_lie(enum lie lie, uint64_t sequence)
{
    char bytes[64] = {0};
    struct elf_worker_answer answer = {
        .sequence = lie == LIE_OLD_ANSWER ? sequence - 1 : sequence,
        .size_bytes = lying_size(lie),
        .error = lying_error(lie),
    };
    int pipe_fds[2];
    int fd = table_file(lie);
    if (lie == LIE_PIPE && pipe(pipe_fds) == 0) {
        fd = pipe_fds[0];
    } else if (lie == LIE_ORDINARY_FILE) {
        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    }

    static union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(200 * sizeof(int))];
    } control;
    memcpy(bytes, &answer, sizeof answer);
    struct iovec data = {.iov_base = bytes, .iov_len = sizeof answer};
    data.iov_len = lie == LIE_SHORT_MESSAGE ? sizeof answer - 1 : data.iov_len;
    data.iov_len = lie == LIE_LONG_MESSAGE ? sizeof bytes : data.iov_len;
    data.iov_len = lie == LIE_EMPTY_MESSAGE ? 0 : data.iov_len;
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    size_t count = descriptors_of(lie);
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.align = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                         .cmsg_type = SCM_RIGHTS,
                                         .cmsg_len = CMSG_LEN(count * sizeof(int))};
        for (size_t i = 0; i < count; i++) {
            memcpy(CMSG_DATA(&control.align) + i * sizeof fd, &fd, sizeof fd);
        }
    }
    (void)sendmsg(3, &message, MSG_NOSIGNAL);
}

/* What a worker does that has been taken over. */
static _Noreturn void be_liar(enum lie lie)
{
    struct elf_worker_settings settings;
    struct elf_worker_question question = {0};
    (void)recv(3, &settings, sizeof settings, 0);
    if (lie == LIE_UNASKED) {
        tell_lie(lie, 0);
    }
    while (recv(3, &question, sizeof question, 0) > 0 && lie != LIE_DEATH) {
        tell_lie(lie, question.sequence);
    }
    _exit(0);
}

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}

static void believes_no_worker_that_was_taken_over(void **state)
{
    (void)state;
    size_t before = count_descriptors();
    for (unsigned int lie = 0; lie < LIES; lie++) {
        const struct elf_worker_config config = {.uid = LIAR_UID + lie, .gid = NOBODY};
        struct elf_worker *worker = start(&config);
        void *map = NULL;
        size_t bytes = 0;
        assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, STDIN_FILENO), 0);
        int r = receive(worker, &map, &bytes);
        if (r != -EPIPE || map != NULL) {
            fail_msg("lie %u: %d", lie, r);
        }
        elf_worker_free(worker);
    }
    assert_int_equal(count_descriptors(), before);
}

static void takes_no_answer_that_it_did_not_ask_for(void **state)
{
    (void)state;
    const struct elf_worker_config config = {.uid = LIAR_UID + LIE_UNASKED, .gid = NOBODY};
    struct elf_worker *worker = start(&config);
    void *map = NULL;
    size_t bytes = 0;
    assert_int_equal(receive(worker, &map, &bytes), -EPIPE);
    elf_worker_free(worker);
}

static void takes_the_same_answer_when_it_is_true(void **state)
{
    (void)state;
    const struct elf_worker_config config = {.uid = LIAR_UID + LIE_TRUTH, .gid = NOBODY};
    struct elf_worker *worker = start(&config);
    void *map = NULL;
    size_t bytes = 0;
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, STDIN_FILENO), 0);
    assert_int_equal(receive(worker, &map, &bytes), 0);
    assert_int_equal(bytes, TABLE_BYTES);
    (void)munmap(map, bytes);
    elf_worker_free(worker);
}

static void dies_with_its_socket(void **state)
{
    (void)state;
    struct elf_worker *worker = start(&honest);
    assert_int_equal(shutdown(elf_worker_fd(worker), SHUT_RDWR), 0);
    assert_int_equal(waitid(P_PID, (id_t)elf_worker_pid(worker), NULL, WEXITED | WNOWAIT), 0);
    elf_worker_free(worker);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], ELF_WORKER_ARGUMENT) == 0) {
        struct elf_worker_settings settings = {0};
        (void)recv(3, &settings, sizeof settings, MSG_PEEK);
        if (settings.uid >= LIAR_UID && settings.uid <= LIAR_UID + LIE_TRUTH) {
            be_liar((enum lie)(settings.uid - LIAR_UID));
        }
        elf_worker_child(3);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_table_that_this_process_would_build),
        cmocka_unit_test(answers_that_a_file_is_none_of_its_kind_and_goes_on),
        cmocka_unit_test(says_when_it_was_killed_and_a_new_one_works),
        cmocka_unit_test(has_no_rights),
        cmocka_unit_test(inherits_nothing_but_its_socket),
        cmocka_unit_test(filter_kills_whatever_it_does_not_list),
        cmocka_unit_test(believes_no_worker_that_was_taken_over),
        cmocka_unit_test(takes_no_answer_that_it_did_not_ask_for),
        cmocka_unit_test(takes_the_same_answer_when_it_is_true),
        cmocka_unit_test(dies_with_its_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
