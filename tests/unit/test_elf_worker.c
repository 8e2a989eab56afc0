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
#include "mapped_files.h"
#include "open_descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS     20000
#define LIAR_UID    ((uid_t)0x4c494100)
#define NOBODY      65534
#define TABLE_BYTES ((size_t)96) /* an empty table is a header */
#define HOLES_BYTES (1 << 20)
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
    struct target libc;
    find_mapping(getpid(), "/libc.so", &libc);
    int fd = open(libc.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void ask(struct elf_worker *worker, enum elf_worker_request request, int fd)
{
    size_t max = request == ELF_WORKER_CFI ? CFI_TABLE_BYTES_MAX : SYMBOL_TABLE_BYTES_MAX;
    assert_int_equal(elf_worker_send(worker, request, fd, -1, max), 0);
}

/* Has it read the C library's symbols. */
static void expect_libc(struct elf_worker *worker)
{
    struct elf_worker_table table = {.map = NULL};
    int fd = open_libc();
    ask(worker, ELF_WORKER_SYMBOLS, fd);
    assert_int_equal(receive(worker, &table), 0);
    assert_true(table.symbols.symbol_count > 1000);
    (void)munmap(table.map, table.map_bytes);
    (void)close(fd);
}

/* The answer to a question is the table that this process has built, which is freed. */
static void expect_table(struct elf_worker *worker, enum elf_worker_request request, int fd,
                         void *expected, size_t expected_bytes)
{
    for (int i = 0; i < 3; i++) {
        struct elf_worker_table table = {.map = NULL};
        assert_int_equal(elf_worker_receive(worker, &table), -EAGAIN);
        ask(worker, request, fd);
        assert_int_equal(elf_worker_send(worker, request, fd, -1, CFI_TABLE_BYTES_MAX), -EAGAIN);
        assert_int_equal(receive(worker, &table), 0);
        assert_int_equal(table.map_bytes, expected_bytes);
        assert_memory_equal(table.map, expected, expected_bytes);
        assert_true((request == ELF_WORKER_CFI ? table.cfi.row_count : table.symbols.symbol_count) >
                    1000);
        (void)munmap(table.map, table.map_bytes);
    }
    free(expected);
}

TEST(gives_the_tables_that_this_process_would_build)
{
    struct elf_worker *worker = start(&honest);
    struct symbol_builder *symbols = symbol_builder_new();
    struct cfi_builder *rows = cfi_builder_new();
    int fd = open_libc();
    void *expected = NULL;
    size_t expected_bytes = 0;
    assert_int_equal(elf_symbols_read(fd, -1, symbols), 0);
    assert_int_equal(symbol_builder_finish(symbols, &expected, &expected_bytes), 0);
    expect_table(worker, ELF_WORKER_SYMBOLS, fd, expected, expected_bytes);
    assert_int_equal(code_rows_read(fd, CODE_ROWS_OWN, rows), 0);
    assert_int_equal(cfi_builder_finish(rows, &expected, &expected_bytes), 0);
    expect_table(worker, ELF_WORKER_CFI, fd, expected, expected_bytes);
    symbol_builder_free(symbols);
    cfi_builder_free(rows);
    (void)close(fd);
    elf_worker_free(worker);
}

/* The tables of a file (borrowed) of unknown age, by one request. */
static void ask_both(struct elf_worker *worker, int fd, size_t cfi_bytes_max,
                     size_t symbols_bytes_max)
{
    const struct elf_worker_file file = {.fd = fd, .debug_fd = -1};
    assert_int_equal(elf_worker_send_both(worker, &file, cfi_bytes_max, symbols_bytes_max), 0);
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd, -1, symbols_bytes_max),
                     -EAGAIN);
}

TEST(gives_call_frames_and_then_symbols_by_one_request)
{
    struct elf_worker *worker = start(&honest);
    struct elf_worker_table cfi = {.map = NULL};
    struct elf_worker_table symbols = {.map = NULL};
    int fd = open_libc();
    ask_both(worker, fd, CFI_TABLE_BYTES_MAX, SYMBOL_TABLE_BYTES_MAX);
    assert_int_equal(receive(worker, &cfi), 0);
    assert_int_equal(cfi.request, ELF_WORKER_CFI);
    assert_true(cfi.cfi.row_count > 1000);
    assert_int_equal(receive(worker, &symbols), 0);
    assert_int_equal(symbols.request, ELF_WORKER_SYMBOLS);
    assert_true(symbols.symbols.symbol_count > 1000);
    (void)munmap(cfi.map, cfi.map_bytes);
    (void)munmap(symbols.map, symbols.map_bytes);
    int text = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ask_both(worker, text, CFI_TABLE_BYTES_MAX, SYMBOL_TABLE_BYTES_MAX);
    assert_int_equal(receive(worker, &cfi), -EBADMSG);
    assert_int_equal(receive(worker, &symbols), -EBADMSG);
    expect_libc(worker);
    (void)close(text);
    (void)close(fd);
    elf_worker_free(worker);
}

TEST(answers_that_a_file_is_none_of_its_kind_and_goes_on)
{
    struct elf_worker *worker = start(&honest);
    int text = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    int kernel = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    struct elf_worker_table table = {.map = NULL};
    ask(worker, ELF_WORKER_SYMBOLS, text);
    assert_int_equal(receive(worker, &table), -EBADMSG);
    ask(worker, ELF_WORKER_KALLSYMS, text);
    assert_int_equal(receive(worker, &table), -EBADMSG);
    ask(worker, ELF_WORKER_KALLSYMS, kernel);
    int r = receive(worker, &table);
    assert_true(r == 0 || r == -EACCES);
    if (r == 0) {
        assert_true(table.map_bytes > 10000);
        (void)munmap(table.map, table.map_bytes);
    }
    expect_libc(worker);
    (void)close(text);
    (void)close(kernel);
    elf_worker_free(worker);
}

TEST(answers_a_request_that_it_does_not_know_and_goes_on)
{
    static const uint32_t unknown[] = {ELF_WORKER_JITDUMP + 1, UINT32_MAX};
    struct elf_worker *worker = start(&honest);
    struct elf_worker_table table = {.map = NULL};
    int fd = open_libc();
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        ask(worker, (enum elf_worker_request)unknown[i], fd);
        assert_int_equal(receive(worker, &table), -ENOSYS);
    }
    expect_libc(worker);
    elf_worker_free(worker);
    (void)close(fd);
}

/* What a worker answers of the C library, if that was so when it was opened. */
static int answer_for(struct elf_worker *worker, const struct elf_worker_file *file)
{
    struct elf_worker_table table = {.map = NULL};
    assert_int_equal(elf_worker_send_file(worker, ELF_WORKER_SYMBOLS, file, SYMBOL_TABLE_BYTES_MAX),
                     0);
    int r = receive(worker, &table);
    if (r == 0) {
        (void)munmap(table.map, table.map_bytes);
    }
    return r;
}

TEST(gives_no_table_of_a_file_that_was_written_since_it_was_opened)
{
    struct elf_worker *worker = start(&honest);
    struct stat status;
    int fd = open_libc();
    assert_int_equal(fstat(fd, &status), 0);
    const struct elf_worker_file same = {
        .fd = fd,
        .debug_fd = -1,
        .size_bytes = (uint64_t)status.st_size,
        .changed_s = status.st_ctim.tv_sec,
        .changed_ns = status.st_ctim.tv_nsec,
        .link_count = status.st_nlink,
    };
    assert_int_equal(answer_for(worker, &same), 0);
    struct elf_worker_file other = same;
    other.size_bytes++;
    assert_int_equal(answer_for(worker, &other), -ESTALE);
    other = same;
    other.changed_s--;
    assert_int_equal(answer_for(worker, &other), -ESTALE);
    other = same;
    other.changed_ns ^= 1;
    assert_int_equal(answer_for(worker, &other), -ESTALE);
    /* A name that came or went is no write. */
    other.link_count++;
    assert_int_equal(answer_for(worker, &other), 0);
    other.link_count = 0;
    assert_int_equal(answer_for(worker, &other), 0);
    expect_libc(worker);
    (void)close(fd);
    elf_worker_free(worker);
}

TEST(says_when_it_was_killed_and_a_new_one_works)
{
    struct elf_worker_table table = {.map = NULL};
    struct elf_worker *worker = start(&honest);
    int fd = open_libc();
    assert_int_equal(kill(elf_worker_pid(worker), SIGSTOP), 0);
    ask(worker, ELF_WORKER_SYMBOLS, fd);
    assert_int_equal(elf_worker_receive(worker, &table), -EAGAIN);
    assert_int_equal(kill(elf_worker_pid(worker), SIGKILL), 0);
    assert_int_equal(receive(worker, &table), -EPIPE);
    pid_t pid = elf_worker_pid(worker);
    elf_worker_free(worker);
    assert_int_equal(kill(pid, 0), -1);

    worker = start(&honest);
    expect_libc(worker);
    assert_int_equal(kill(elf_worker_pid(worker), SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)elf_worker_pid(worker), NULL, WEXITED | WNOWAIT), 0);
    assert_int_equal(elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd, -1, SYMBOL_TABLE_BYTES_MAX),
                     -EPIPE);
    elf_worker_free(worker);
    (void)close(fd);
}

static void expect_no_rights(const struct elf_worker_config *config)
{
    static const struct {
        const char *line; /* of /proc/PID/status */
        bool root_only;
        bool changed_only;
    } cases[] = {
        {"\nSeccomp:\t2\n", false, false},
        {"\nNoNewPrivs:\t1\n", false, false},
        {"\nCapEff:\t0000000000000000\n", false, false},
        {"\nCapPrm:\t0000000000000000\n", false, false},
        {"\nCapInh:\t0000000000000000\n", false, false},
        {"\nCapAmb:\t0000000000000000\n", false, false},
        {"\nCapBnd:\t0000000000000000\n", true, false},
        {"\nUid:\t65534\t65534\t65534\t65534\n", true, true},
        {"\nGid:\t65534\t65534\t65534\t65534\n", true, true},
        {"\nGroups:\t \n", true, true},
    };
    char text[8192] = "";
    struct elf_worker *worker = start(config);
    expect_libc(worker);
    (void)snprintf(text, sizeof text, "/proc/%d/status", (int)elf_worker_pid(worker));
    FILE *status = fopen(text, "re");
    assert_non_null(status);
    text[fread(text, 1, sizeof text - 1, status)] = '\0';
    (void)fclose(status);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if ((geteuid() == 0 || !cases[i].root_only) &&
            (config->uid != (uid_t)-1 || !cases[i].changed_only)) {
            assert_contains(text, cases[i].line);
        }
    }
    elf_worker_free(worker);
}

/* So that no key of a terminal ends it; a session would be a group for the scheduler. */
TEST(is_in_a_process_group_of_its_own)
{
    struct elf_worker *worker = start(&honest);
    pid_t pid = elf_worker_pid(worker);
    assert_int_equal(getpgid(pid), pid);
    assert_int_equal(getsid(pid), getsid(0));
    elf_worker_free(worker);
}

TEST(sees_no_path)
{
    char path[64];
    if (geteuid() != 0) {
        skip();
    }
    struct elf_worker *worker = start(&honest);
    expect_libc(worker);
    (void)snprintf(path, sizeof path, "/proc/%d/root", (int)elf_worker_pid(worker));
    static const char *const names[] = {"etc", "proc", "self", "0", "3"};
    int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; root >= 0 && i < COUNT_OF(names); i++) {
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

TEST(has_no_rights)
{
    const struct elf_worker_config parents = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    expect_no_rights(&honest);
    expect_no_rights(&parents);
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
TEST(inherits_nothing_but_its_socket)
{
    static const char expected[] = "0=/dev/null 1=/dev/null 2=/dev/null 3=socket: ";
    char path[64];
    char text[4096] = "";
    int leak = open("/proc/self/status", O_RDONLY); /* without O_CLOEXEC */
    struct elf_worker *first = start(&honest);
    struct elf_worker *worker = start(&honest);
    struct elf_worker_table table;
    ask(worker, ELF_WORKER_SYMBOLS, leak);
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

enum content {
    CONTENT_EMPTY_TABLE,
    CONTENT_HOLES,
    CONTENT_GARBAGE,
    CONTENT_NONE,
};

enum message {
    MESSAGE_WHOLE,
    MESSAGE_SHORT,
    MESSAGE_LONG,
    MESSAGE_EMPTY,
    MESSAGE_NONE, /* it dies */
};

/* What is wrong with an answer. */
static const struct lie {
    const char *what;
    enum content content;
    int unsealed; /* seals that are missing */
    ssize_t size_more;
    enum message message;
    int32_t error;
    size_t descriptor_count;
    bool is_old;
} lies[] = {
    {"a descriptor", .descriptor_count = 1},
    {"many descriptors", .descriptor_count = 200},
    {"nothing written", .content = CONTENT_NONE},
    {"not sealed", .unsealed = ALL_SEALS},
    {"half sealed", .unsealed = F_SEAL_WRITE},
    {"size too large", .size_more = 4096},
    {"size too small", .size_more = -8},
    {"size zero", .size_more = -(ssize_t)TABLE_BYTES},
    {"holes", .content = CONTENT_HOLES, .size_more = HOLES_BYTES - (ssize_t)TABLE_BYTES},
    {"garbage", .content = CONTENT_GARBAGE},
    {"short message", .message = MESSAGE_SHORT},
    {"long message", .message = MESSAGE_LONG},
    {"empty message", .message = MESSAGE_EMPTY},
    {"old answer", .is_old = true},
    {"error that is positive", .error = 5},
    {"error to ask again", .error = -EAGAIN},
    {"error that is huge", .error = INT32_MIN},
    {"error with a descriptor", .error = -EIO, .descriptor_count = 1},
    {"death", .message = MESSAGE_NONE},
};
#define LIES        COUNT_OF(lies)
#define LIE_TRUTH   LIES       /* shows that what the liars change is all that is wrong */
#define LIE_UNASKED (LIES + 1) /* an answer to no question, which is no lie otherwise */

/* Into the memfd that came with the question. */
static void fill_table(const struct lie *lie, int fd)
{
    char bytes[TABLE_BYTES] = {0};
    size_t size = sizeof bytes;
    struct symbol_builder *builder = symbol_builder_new();
    void *table = NULL;
    if (lie->content != CONTENT_GARBAGE && symbol_builder_finish(builder, &table, &size) == 0) {
        memcpy(bytes, table, size);
    }
    bool written = lie->content == CONTENT_HOLES ? ftruncate(fd, HOLES_BYTES) == 0
                                                 : write(fd, bytes, size) == (ssize_t)size;
    int seals = ALL_SEALS & ~lie->unsealed;
    if (!written || (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) < 0)) {
        _exit(1);
    }
}

static void tell_lie(const struct lie *lie, uint64_t sequence, int table_fd)
{
    char bytes[64] = {0};
    struct elf_worker_answer answer = {
        .sequence = sequence - lie->is_old,
        .size_bytes = TABLE_BYTES + (uint64_t)lie->size_more,
        .error = lie->error,
    };
    const size_t sizes[] = {[MESSAGE_WHOLE] = sizeof answer,
                            [MESSAGE_SHORT] = sizeof answer - 1,
                            [MESSAGE_LONG] = sizeof bytes,
                            [MESSAGE_EMPTY] = 0};
    if (lie->content != CONTENT_NONE && table_fd >= 0) {
        fill_table(lie, table_fd);
    }
    static union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(200 * sizeof(int))];
    } control;
    memcpy(bytes, &answer, sizeof answer);
    struct iovec data = {.iov_base = bytes, .iov_len = sizes[lie->message]};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    const size_t count = lie->descriptor_count;
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

/* With the memfd for the table, the second one, and of two tables that of the second. */
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
    size_t place = ret->then_symbols != 0 ? 2 : 1;
    memcpy(ret_table_fd, CMSG_DATA(&control.align) + place * sizeof(int), sizeof(int));
    return true;
}

/* That there are no call frames. */
static void refuse_first(const struct elf_worker_question *question)
{
    static const struct lie refusal = {.content = CONTENT_NONE, .error = -EBADMSG};
    if (question->then_symbols != 0) {
        tell_lie(&refusal, question->sequence, -1);
    }
}

/* What a worker does that has been taken over. */
static _Noreturn void be_liar(size_t number)
{
    static const struct lie truth = {.what = "truth"};
    const struct lie *lie = number < LIES ? &lies[number] : &truth;
    struct elf_worker_settings settings;
    struct elf_worker_question question = {0};
    int table_fd = -1;
    (void)recv(3, &settings, sizeof settings, 0);
    if (number == LIE_UNASKED) {
        tell_lie(lie, 0, -1);
    }
    while (receive_question(&question, &table_fd) && lie->message != MESSAGE_NONE) {
        refuse_first(&question);
        tell_lie(lie, question.sequence, table_fd);
    }
    _exit(0);
}

static struct elf_worker *start_liar(size_t number)
{
    return start(&(struct elf_worker_config){.uid = (uid_t)(LIAR_UID + number), .gid = NOBODY});
}

TEST(believes_no_worker_that_was_taken_over)
{
    size_t before = count_descriptors();
    for (size_t i = 0; i < LIES; i++) {
        struct elf_worker *worker = start_liar(i);
        struct elf_worker_table table = {.map = NULL};
        ask(worker, ELF_WORKER_SYMBOLS, STDIN_FILENO);
        int r = receive(worker, &table);
        if (r != -EPIPE || table.map != NULL) {
            fail_msg("%s: %d", lies[i].what, r);
        }
        (void)elf_worker_end(worker);
        int socket_fd = elf_worker_take_socket(worker);
        if ((socket_fd >= 0) != (lies[i].descriptor_count > 0)) {
            fail_msg("%s: the socket %d is left", lies[i].what, socket_fd);
        }
        (void)close(socket_fd);
        elf_worker_free(worker);
    }
    assert_int_equal(count_descriptors(), before);
}

TEST(believes_the_second_answer_of_a_request_no_more_than_the_first)
{
    size_t before = count_descriptors();
    for (size_t i = 0; i <= LIE_TRUTH; i++) {
        struct elf_worker *worker = start_liar(i);
        struct elf_worker_table table = {.map = NULL};
        ask_both(worker, STDIN_FILENO, CFI_TABLE_BYTES_MAX, TABLE_BYTES);
        bool dies = i < LIES && lies[i].message == MESSAGE_NONE;
        assert_int_equal(receive(worker, &table), dies ? -EPIPE : -EBADMSG);
        int r = receive(worker, &table);
        if (r != (i == LIE_TRUTH ? 0 : -EPIPE)) {
            fail_msg("%s: %d", i == LIE_TRUTH ? "truth" : lies[i].what, r);
        }
        assert_int_equal(table.map_bytes, r == 0 ? TABLE_BYTES : 0);
        (void)munmap(table.map, table.map_bytes);
        (void)elf_worker_end(worker);
        (void)close(elf_worker_take_socket(worker));
        elf_worker_free(worker);
    }
    assert_int_equal(count_descriptors(), before);
}

TEST(takes_no_answer_that_it_did_not_ask_for)
{
    struct elf_worker *worker = start_liar(LIE_UNASKED);
    struct elf_worker_table table = {.map = NULL};
    assert_int_equal(receive(worker, &table), -EPIPE);
    elf_worker_free(worker);
}

/* The same answer, the empty table of symbols. */
TEST(takes_no_table_of_another_kind_or_size_than_it_asked_for)
{
    static const struct {
        enum elf_worker_request request;
        size_t max_bytes;
        int result;
    } cases[] = {
        {ELF_WORKER_SYMBOLS, SYMBOL_TABLE_BYTES_MAX, 0},
        {ELF_WORKER_SYMBOLS, TABLE_BYTES, 0},
        {ELF_WORKER_SYMBOLS, TABLE_BYTES - 1, -EPIPE},
        {ELF_WORKER_CFI, CFI_TABLE_BYTES_MAX, -EPIPE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct elf_worker *worker = start_liar(LIE_TRUTH);
        struct elf_worker_table table = {.map = NULL};
        assert_int_equal(
            elf_worker_send(worker, cases[i].request, STDIN_FILENO, -1, cases[i].max_bytes), 0);
        int r = receive(worker, &table);
        if (r != cases[i].result) {
            fail_msg("case %zu: %d", i, r);
        }
        assert_int_equal(table.map_bytes, r == 0 ? TABLE_BYTES : 0);
        (void)munmap(table.map, table.map_bytes);
        elf_worker_free(worker);
    }
}

TEST(dies_with_its_socket)
{
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
        if (settings.uid >= LIAR_UID && settings.uid <= LIAR_UID + LIE_UNASKED) {
            be_liar(settings.uid - LIAR_UID);
        }
        elf_worker_child(3);
    }
    return unit_test_run();
}
