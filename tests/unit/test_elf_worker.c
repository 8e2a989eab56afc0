/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The real worker: this program executed anew, as the daemon does it. Some tests have it replaced
 * by a liar, which plays a worker that a hostile file has taken over; which lie it tells is hidden
 * in the uid of its settings.
 */
#include "code_rows.h"
#include "elf_symbols.h"
#include "elf_worker.h"
#include "elf_worker_wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS     20000
#define LIAR_UID    ((uid_t)0x4c494100)
#define NOBODY      65534
#define TABLE_BYTES ((size_t)96) /* an empty table is a header */
#define ALL_SEALS   (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const struct elf_worker_config honest = {.uid = NOBODY, .gid = NOBODY};

/* A worker whose process is there. */
static struct elf_worker *start(const struct elf_worker_config *config)
{
    struct elf_worker *worker = NULL;
    assert_int_equal(elf_worker_start(config, &worker), 0);
    while (elf_worker_pid(worker) == 0) {
        (void)usleep(1000);
    }
    return worker;
}

/* Waits for the reply; the result of elf_worker_receive(). */
static int receive(struct elf_worker *worker, struct elf_worker_table *ret)
{
    struct pollfd readable = {.fd = elf_worker_fd(worker), .events = POLLIN};
    assert_int_equal(poll(&readable, 1, WAIT_MS), 1);
    return elf_worker_receive(worker, ret);
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

static int ask_symbols(struct elf_worker *worker, int fd)
{
    return elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd, -1, SYMBOL_TABLE_BYTES_MAX);
}

static void gives_the_table_that_this_process_would_build(void **state)
{
    (void)state;
    struct elf_worker *worker = start(&honest);
    struct symbol_builder *builder = symbol_builder_new();
    int fd = open_libc();
    void *expected = NULL;
    size_t expected_bytes = 0;
    assert_int_equal(elf_symbols_read(fd, -1, builder), 0);
    assert_int_equal(symbol_builder_finish(builder, &expected, &expected_bytes), 0);
    for (int i = 0; i < 3; i++) {
        struct elf_worker_table table = {.map = NULL};
        assert_int_equal(elf_worker_receive(worker, &table), -EAGAIN);
        assert_int_equal(ask_symbols(worker, fd), 0);
        assert_int_equal(ask_symbols(worker, fd), -EAGAIN);
        assert_int_equal(receive(worker, &table), 0);
        assert_int_equal(table.map_bytes, expected_bytes);
        assert_memory_equal(table.map, expected, expected_bytes);
        assert_true(table.symbols.symbol_count > 1000);
        (void)munmap(table.map, table.map_bytes);
    }
    free(expected);
    symbol_builder_free(builder);
    (void)close(fd);
    elf_worker_free(worker);
}

static void gives_the_call_frames_that_this_process_would_build(void **state)
{
    (void)state;
    struct elf_worker *worker = start(&honest);
    struct cfi_builder *builder = cfi_builder_new();
    struct elf_worker_table table = {.map = NULL};
    int fd = open_libc();
    void *expected = NULL;
    size_t expected_bytes = 0;
    assert_int_equal(code_rows_read(fd, CODE_ROWS_OWN, builder), 0);
    assert_int_equal(cfi_builder_finish(builder, &expected, &expected_bytes), 0);
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_CFI, fd, -1, CFI_TABLE_BYTES_MAX), 0);
    assert_int_equal(receive(worker, &table), 0);
    assert_int_equal(table.map_bytes, expected_bytes);
    assert_memory_equal(table.map, expected, expected_bytes);
    assert_true(table.cfi.row_count > 1000);
    (void)munmap(table.map, table.map_bytes);
    free(expected);
    cfi_builder_free(builder);
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
    struct elf_worker_table table = {.map = NULL};
    assert_int_equal(ask_symbols(worker, text), 0);
    assert_int_equal(receive(worker, &table), -EBADMSG);
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_KALLSYMS, text, -1, SYMBOL_TABLE_BYTES_MAX),
                     0);
    assert_int_equal(receive(worker, &table), -EBADMSG);
    assert_int_equal(
        elf_worker_send(worker, ELF_WORKER_KALLSYMS, kernel, -1, SYMBOL_TABLE_BYTES_MAX), 0);
    int r = receive(worker, &table);
    assert_true(r == 0 || r == -EACCES);
    if (r == 0) {
        assert_true(table.map_bytes > 10000);
        (void)munmap(table.map, table.map_bytes);
    }
    assert_int_equal(ask_symbols(worker, libc), 0);
    assert_int_equal(receive(worker, &table), 0);
    (void)munmap(table.map, table.map_bytes);
    (void)close(text);
    (void)close(kernel);
    (void)close(libc);
    elf_worker_free(worker);
}

static void says_when_it_was_killed_and_a_new_one_works(void **state)
{
    (void)state;
    struct elf_worker_table table = {.map = NULL};
    struct elf_worker *worker = start(&honest);
    int fd = open_libc();
    assert_int_equal(kill(elf_worker_pid(worker), SIGSTOP), 0);
    assert_int_equal(ask_symbols(worker, fd), 0);
    assert_int_equal(elf_worker_receive(worker, &table), -EAGAIN);
    assert_int_equal(kill(elf_worker_pid(worker), SIGKILL), 0);
    assert_int_equal(receive(worker, &table), -EPIPE);
    pid_t pid = elf_worker_pid(worker);
    elf_worker_free(worker);
    assert_int_equal(kill(pid, 0), -1);

    worker = start(&honest);
    assert_int_equal(ask_symbols(worker, fd), 0);
    assert_int_equal(receive(worker, &table), 0);
    (void)munmap(table.map, table.map_bytes);
    assert_int_equal(kill(elf_worker_pid(worker), SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)elf_worker_pid(worker), NULL, WEXITED | WNOWAIT), 0);
    assert_int_equal(ask_symbols(worker, fd), -EPIPE);
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

static void expect_no_rights(const struct elf_worker_config *config)
{
    static const struct {
        const char *key;
        const char *value;
        bool root_only;
        bool changed_only;
    } cases[] = {
        {"Seccomp", "2", false, false},
        {"NoNewPrivs", "1", false, false},
        {"CapEff", "0000000000000000", false, false},
        {"CapPrm", "0000000000000000", false, false},
        {"CapInh", "0000000000000000", false, false},
        {"CapAmb", "0000000000000000", false, false},
        {"CapBnd", "0000000000000000", true, false},
        {"Uid", "65534\t65534\t65534\t65534", true, true},
        {"Gid", "65534\t65534\t65534\t65534", true, true},
        {"Groups", " ", true, true},
    };
    struct elf_worker *worker = start(config);
    int fd = open_libc();
    struct elf_worker_table table = {.map = NULL};
    assert_int_equal(ask_symbols(worker, fd), 0);
    assert_int_equal(receive(worker, &table), 0);
    (void)munmap(table.map, table.map_bytes);
    (void)close(fd);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char value[256];
        status_value(elf_worker_pid(worker), cases[i].key, value, sizeof value);
        if ((geteuid() == 0 || !cases[i].root_only) &&
            (config->uid != (uid_t)-1 || !cases[i].changed_only)) {
            assert_string_equal(value[0] == '\0' ? " " : value, cases[i].value);
        }
    }
    elf_worker_free(worker);
}

/* So that no key of a terminal ends it; a session would be a group for the scheduler. */
static void is_in_a_process_group_of_its_own(void **state)
{
    (void)state;
    struct elf_worker *worker = start(&honest);
    pid_t pid = elf_worker_pid(worker);
    assert_int_equal(getpgid(pid), pid);
    assert_int_equal(getsid(pid), getsid(0));
    elf_worker_free(worker);
}

static void sees_no_path(void **state)
{
    (void)state;
    char path[64];
    if (geteuid() != 0) {
        skip();
    }
    struct elf_worker *worker = start(&honest);
    struct elf_worker_table table;
    int fd = open_libc();
    assert_int_equal(ask_symbols(worker, fd), 0);
    assert_int_equal(receive(worker, &table), 0);
    (void)munmap(table.map, table.map_bytes);
    (void)close(fd);
    (void)snprintf(path, sizeof path, "/proc/%d/root", (int)elf_worker_pid(worker));
    static const char *const names[] = {"etc", "proc", "self", "0", "3"};
    int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; root >= 0 && i < sizeof names / sizeof *names; i++) {
        struct stat status;
        if (fstatat(root, names[i], &status, 0) == 0) {
            fail_msg("there is a '%s'", names[i]);
        }
    }
    (void)close(root);
    (void)snprintf(path, sizeof path, "/proc/%d/root/etc/passwd", (int)elf_worker_pid(worker));
    assert_int_equal(access(path, F_OK), -1);
    elf_worker_free(worker);
}

static void has_no_rights(void **state)
{
    (void)state;
    expect_no_rights(&honest);
}

static void has_no_rights_under_the_uid_of_its_parent(void **state)
{
    (void)state;
    const struct elf_worker_config keep = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    expect_no_rights(&keep);
}

/* What a process has open, as "0=/dev/null 1=...", sorted as /proc does. */
static void list_descriptors(DIR *folder, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    rewinddir(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL && used < bytes;
         entry = readdir(folder)) {
        char target[256];
        ssize_t length = entry->d_name[0] == '.'
                             ? 0
                             : readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (length > 0) {
            target[length] = '\0';
            target[strcspn(target, "[")] = '\0'; /* the socket's number */
            used += (size_t)snprintf(text + used, bytes - used, "%s=%s ", entry->d_name, target);
        }
    }
}

/* The answer comes before the worker has closed what it was handed for the question: wait. */
static void inherits_nothing_but_its_socket(void **state)
{
    (void)state;
    static const char expected[] = "0=/dev/null 1=/dev/null 2=/dev/null 3=socket: ";
    char path[64];
    char text[4096] = "";
    int leak = open("/proc/self/status", O_RDONLY); /* without O_CLOEXEC */
    struct elf_worker *first = start(&honest);
    struct elf_worker *worker = start(&honest);
    struct elf_worker_table table;
    assert_int_equal(ask_symbols(worker, leak), 0);
    assert_int_equal(receive(worker, &table), -EBADMSG);

    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)elf_worker_pid(worker));
    DIR *folder = opendir(path);
    for (int ms = 0; folder != NULL && ms < WAIT_MS && strcmp(text, expected) != 0; ms += 5) {
        (void)poll(NULL, 0, ms == 0 ? 0 : 5);
        list_descriptors(folder, text, sizeof text);
    }
    (void)close(leak);
    elf_worker_free(worker);
    elf_worker_free(first);
    if (folder == NULL && geteuid() != 0) {
        skip();
    }
    assert_string_equal(text, expected);
    (void)closedir(folder);
}

enum lie {
    LIE_DESCRIPTOR,
    LIE_MANY_DESCRIPTORS,
    LIE_NOTHING_WRITTEN,
    LIE_NOT_SEALED,
    LIE_HALF_SEALED,
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

/* Into the memfd that came with the question. */
static void fill_table(enum lie lie, int fd)
{
    char bytes[TABLE_BYTES] = {0};
    size_t size = sizeof bytes;
    struct symbol_builder *builder = symbol_builder_new();
    void *table = NULL;
    if (lie != LIE_GARBAGE && symbol_builder_finish(builder, &table, &size) == 0) {
        memcpy(bytes, table, size);
    }
    bool written =
        lie == LIE_HOLES ? ftruncate(fd, 1 << 20) == 0 : write(fd, bytes, size) == (ssize_t)size;
    int seals = lie == LIE_NOT_SEALED ? 0 : ALL_SEALS;
    seals = lie == LIE_HALF_SEALED ? ALL_SEALS & ~F_SEAL_WRITE : seals;
    if (!written || (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) < 0)) {
        _exit(1);
    }
}

static uint64_t lying_size(enum lie lie)
{
    static const uint64_t sizes[LIE_TRUTH + 1] = {
        [LIE_HOLES] = 1 << 20,
        [LIE_SIZE_TOO_LARGE] = TABLE_BYTES + 4096,
        [LIE_SIZE_TOO_SMALL] = TABLE_BYTES - 8,
    };
    return sizes[lie] != 0 || lie == LIE_SIZE_ZERO ? sizes[lie] : TABLE_BYTES;
}

static int32_t lying_error(enum lie lie)
{
    static const int32_t errors[LIE_TRUTH + 1] = {
        [LIE_ERROR_POSITIVE] = 5,
        [LIE_ERROR_AGAIN] = -EAGAIN,
        [LIE_ERROR_HUGE] = INT32_MIN,
        [LIE_ERROR_WITH_DESCRIPTOR] = -EIO,
    };
    return errors[lie];
}

static size_t descriptors_of(enum lie lie)
{
    bool one = lie == LIE_DESCRIPTOR || lie == LIE_ERROR_WITH_DESCRIPTOR;
    return lie == LIE_MANY_DESCRIPTORS ? 200 : one;
}

static void tell_lie(enum lie lie, uint64_t sequence, int table_fd)
{
    char bytes[64] = {0};
    struct elf_worker_answer answer = {
        .sequence = lie == LIE_OLD_ANSWER ? sequence - 1 : sequence,
        .size_bytes = lying_size(lie),
        .error = lying_error(lie),
    };
    if (lie != LIE_NOTHING_WRITTEN && table_fd >= 0) {
        fill_table(lie, table_fd);
    }
    static union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(200 * sizeof(int))];
    } control;
    memcpy(bytes, &answer, sizeof answer);
    struct iovec data = {.iov_base = bytes, .iov_len = sizeof answer};
    data.iov_len = lie == LIE_SHORT_MESSAGE ? sizeof answer - 1 : data.iov_len;
    data.iov_len =
        lie == LIE_LONG_MESSAGE ? sizeof bytes : data.iov_len * (lie != LIE_EMPTY_MESSAGE);
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    size_t count = descriptors_of(lie);
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.align = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                         .cmsg_type = SCM_RIGHTS,
                                         .cmsg_len = CMSG_LEN(count * sizeof(int))};
        for (size_t i = 0; i < count; i++) {
            memcpy(CMSG_DATA(&control.align) + i * sizeof table_fd, &table_fd, sizeof table_fd);
        }
    }
    (void)sendmsg(3, &message, MSG_NOSIGNAL);
}

/* With the memfd for the table, the second one. */
static bool receive_question(struct elf_worker_question *ret, int *ret_table_fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(ELF_WORKER_FILES_MAX * sizeof(int))];
    } control;
    struct iovec data = {.iov_base = ret, .iov_len = sizeof *ret};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    if (recvmsg(3, &message, 0) <= 0 || CMSG_FIRSTHDR(&message) == NULL) {
        return false;
    }
    memcpy(ret_table_fd, CMSG_DATA(&control.align) + sizeof(int), sizeof(int));
    return true;
}

/* What a worker does that has been taken over. */
static _Noreturn void be_liar(enum lie lie)
{
    struct elf_worker_settings settings;
    struct elf_worker_question question = {0};
    int table_fd = -1;
    (void)recv(3, &settings, sizeof settings, 0);
    if (lie == LIE_UNASKED) {
        tell_lie(lie, 0, -1);
    }
    while (receive_question(&question, &table_fd) && lie != LIE_DEATH) {
        tell_lie(lie, question.sequence, table_fd);
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

static struct elf_worker *start_liar(enum lie lie)
{
    return start(&(struct elf_worker_config){.uid = LIAR_UID + lie, .gid = NOBODY});
}

static void believes_no_worker_that_was_taken_over(void **state)
{
    (void)state;
    size_t before = count_descriptors();
    for (unsigned int lie = 0; lie < LIES; lie++) {
        struct elf_worker *worker = start_liar((enum lie)lie);
        struct elf_worker_table table = {.map = NULL};
        assert_int_equal(ask_symbols(worker, STDIN_FILENO), 0);
        int r = receive(worker, &table);
        if (r != -EPIPE || table.map != NULL) {
            fail_msg("lie %u: %d", lie, r);
        }
        (void)elf_worker_end(worker);
        int socket_fd = elf_worker_take_socket(worker);
        if ((socket_fd >= 0) != (descriptors_of((enum lie)lie) > 0)) {
            fail_msg("lie %u: the socket %d is left", lie, socket_fd);
        }
        (void)close(socket_fd);
        elf_worker_free(worker);
    }
    assert_int_equal(count_descriptors(), before);
}

static void takes_no_answer_that_it_did_not_ask_for(void **state)
{
    (void)state;
    struct elf_worker *worker = start_liar(LIE_UNASKED);
    struct elf_worker_table table = {.map = NULL};
    assert_int_equal(receive(worker, &table), -EPIPE);
    elf_worker_free(worker);
}

/* An answer of the other kind is no answer. */
static void takes_no_symbols_for_call_frames(void **state)
{
    (void)state;
    struct elf_worker *worker = start_liar(LIE_TRUTH);
    struct elf_worker_table table = {.map = NULL};
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_CFI, STDIN_FILENO, -1, CFI_TABLE_BYTES_MAX),
                     0);
    assert_int_equal(receive(worker, &table), -EPIPE);
    elf_worker_free(worker);
}

static void believes_no_table_that_is_larger_than_allowed(void **state)
{
    (void)state;
    struct elf_worker *worker = start_liar(LIE_TRUTH);
    struct elf_worker_table table = {.map = NULL};
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, STDIN_FILENO, -1, TABLE_BYTES - 1),
                     0);
    assert_int_equal(receive(worker, &table), -EPIPE);
    elf_worker_free(worker);
}

static void takes_the_same_answer_when_it_is_true(void **state)
{
    (void)state;
    struct elf_worker *worker = start_liar(LIE_TRUTH);
    struct elf_worker_table table = {.map = NULL};
    assert_int_equal(ask_symbols(worker, STDIN_FILENO), 0);
    assert_int_equal(receive(worker, &table), 0);
    assert_int_equal(table.map_bytes, TABLE_BYTES);
    (void)munmap(table.map, table.map_bytes);
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
        cmocka_unit_test(gives_the_call_frames_that_this_process_would_build),
        cmocka_unit_test(takes_no_symbols_for_call_frames),
        cmocka_unit_test(answers_that_a_file_is_none_of_its_kind_and_goes_on),
        cmocka_unit_test(says_when_it_was_killed_and_a_new_one_works),
        cmocka_unit_test(is_in_a_process_group_of_its_own),
        cmocka_unit_test(sees_no_path),
        cmocka_unit_test(has_no_rights),
        cmocka_unit_test(has_no_rights_under_the_uid_of_its_parent),
        cmocka_unit_test(inherits_nothing_but_its_socket),
        cmocka_unit_test(believes_no_worker_that_was_taken_over),
        cmocka_unit_test(takes_no_answer_that_it_did_not_ask_for),
        cmocka_unit_test(believes_no_table_that_is_larger_than_allowed),
        cmocka_unit_test(takes_the_same_answer_when_it_is_true),
        cmocka_unit_test(dies_with_its_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
