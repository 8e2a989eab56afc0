/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lines_reader() is the child of profctl that parses debugging information. It gives up its rights
 * before it reads anything foreign, then answers questions until its socket ends. It ends at the
 * first question that it does not understand, since it cannot know where the next one begins. A
 * file that it cannot survive ends it too.
 */
#include "cleanup.h"
#include "confine.h"
#include "descriptors.h"
#include "disassembly.h"
#include "function_ranges.h"
#include "lines.h"
#include "lines_answer.h"
#include "lines_code.h"
#include "lines_dwarf.h"
#include "lines_file.h"
#include "lines_wire.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static bool read_whole(void *into, size_t size_bytes)
{
    uint8_t *at = into;
    while (size_bytes > 0) {
        ssize_t got = read(LINES_SOCKET_FD, at, size_bytes);
        if (got <= 0) {
            return false;
        }
        at += got;
        size_bytes -= (size_t)got;
    }
    return true;
}

static void write_whole(const void *from, size_t size_bytes)
{
    const uint8_t *at = from;
    while (size_bytes > 0) {
        ssize_t done = write(LINES_PIPE_FD, at, size_bytes);
        if (done <= 0) {
            _exit(EXIT_FAILURE);
        }
        at += done;
        size_bytes -= (size_t)done;
    }
}

/* libdw and libelf look for files by name, which must find none, and the C library for what the
 * machine has. */
static int give_up_rights(const struct lines_settings *settings)
{
    static const int calls[] = {SYS_recvmsg, SYS_lseek};
    static const int refused[] = {
        SYS_open,   SYS_openat, SYS_readlink, SYS_readlinkat,
        SYS_stat,   SYS_lstat,  SYS_access,   SYS_faccessat2,
        SYS_getcwd, SYS_statx,  SYS_sysinfo,  SYS_sched_getaffinity,
    };
    static const unsigned int fcntl_commands[] = {F_GETFD, F_GETFL};
    const struct confine_rules rules = {
        .uid = settings->uid,
        .gid = settings->gid,
        .data_bytes_max = settings->data_bytes_max,
        .file_bytes_max = 1,
        .calls = calls,
        .call_count = sizeof calls / sizeof *calls,
        .refused = refused,
        .refused_count = sizeof refused / sizeof *refused,
        .fcntl_commands = fcntl_commands,
        .fcntl_command_count = sizeof fcntl_commands / sizeof *fcntl_commands,
        .may_map_files = true,
    };
    return confine(&rules);
}

/* Waits for a question and its descriptor (returned: close; -1: none); false: there will be none.
 */
static bool receive_question(struct lines_question *ret, int *ret_fd)
{
    int fds[DESCRIPTORS_MAX];
    size_t fd_count = 0;
    ssize_t got =
        descriptors_receive(LINES_SOCKET_FD, ret, sizeof *ret, MSG_WAITALL, fds, &fd_count);
    if (got != (ssize_t)sizeof *ret) {
        return false;
    }
    *ret_fd = fd_count == 1 ? fds[0] : -1;
    return true;
}

static void answer_error(int error)
{
    const struct lines_answer_header header = {.error = error};
    write_whole(&header, sizeof header);
}

static int make_answer(const struct lines_file *file, struct lines_address *addresses, size_t count,
                       void **ret, size_t *ret_bytes)
{
    struct intern texts = {0};
    struct inlines table = {0};
    int r = lines_dwarf_read(file->dwarf, addresses, count, &texts, &table);
    if (r == 0) {
        r = lines_answer_make(addresses, count, &texts, &table, ret, ret_bytes);
    }
    inlines_done(&table);
    intern_done(&texts);
    return r;
}

static void answer_question(const struct lines_file *file, uint64_t count)
{
    cleanup_(freep) void *answer = NULL;
    cleanup_(freep) uint64_t *vaddrs = calloc(count + 1, sizeof *vaddrs);
    cleanup_(freep) struct lines_address *addresses = calloc(count + 1, sizeof *addresses);
    size_t answer_bytes = 0;
    if (addresses == NULL || vaddrs == NULL || !read_whole(vaddrs, count * sizeof *vaddrs)) {
        _exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < count; i++) {
        addresses[i].vaddr = vaddrs[i];
    }
    int r = file == NULL || !lines_file_is_whole(file)
                ? -EBADMSG
                : make_answer(file, addresses, count, &answer, &answer_bytes);
    if (r < 0) {
        answer_error(r);
    } else {
        write_whole(answer, answer_bytes);
    }
}

static void answer_list(int error, const void *items, size_t count, size_t item_bytes)
{
    const struct lines_list_header header = {.error = error, .count = (uint32_t)count};
    write_whole(&header, sizeof header);
    if (error == 0) {
        write_whole(items, count * item_bytes);
    }
}

static void answer_functions(const struct lines_file *file, uint64_t count)
{
    cleanup_(freep) uint64_t *vaddrs = calloc(count + 1, sizeof *vaddrs);
    cleanup_(freep) struct function_range *ranges = calloc(count + 1, sizeof *ranges);
    if (ranges == NULL || vaddrs == NULL || !read_whole(vaddrs, count * sizeof *vaddrs)) {
        _exit(EXIT_FAILURE);
    }
    int r = file == NULL ? -EBADMSG : function_ranges_find(file->fd, vaddrs, count, ranges);
    answer_list(r, ranges, count, sizeof *ranges);
}

static void answer_code(const struct lines_file *file)
{
    uint64_t range[2];
    if (!read_whole(range, sizeof range) || range[1] < range[0] ||
        range[1] - range[0] > LINES_CODE_BYTES_MAX) {
        _exit(EXIT_FAILURE);
    }
    size_t count = 0;
    cleanup_(freep) struct disassembly_line *lines = calloc(range[1] - range[0] + 1, sizeof *lines);
    int r = lines == NULL  ? -ENOMEM
            : file == NULL ? -EBADMSG
                           : disassembly_read(file->fd, range[0], range[1], lines, &count);
    answer_list(r, lines, count, sizeof *lines);
}

static void answer_open(struct lines_file **file, bool is_alternate, int fd)
{
    struct lines_about about;
    if (!is_alternate) {
        *file = lines_file_free(*file);
    }
    struct lines_file *opened = lines_file_begin(fd, &about);
    if (!is_alternate) {
        *file = opened;
    } else if (opened != NULL && *file != NULL) {
        lines_file_share(*file, opened);
    } else {
        (void)lines_file_free(opened);
    }
    write_whole(&about, sizeof about);
}

/* Takes the descriptor, where the question is to open it. False: there is no such question. */
static bool take_up_question(struct lines_file **file, const struct lines_question *question,
                             int fd)
{
    switch ((enum lines_request)question->request) {
    case LINES_OPEN:
    case LINES_OPEN_ALTERNATE:
        answer_open(file, question->request == LINES_OPEN_ALTERNATE, fd);
        return true;
    case LINES_READ:
        answer_question(*file, question->address_count);
        return true;
    case LINES_CODE:
        answer_code(*file);
        return true;
    case LINES_FUNCTIONS:
        answer_functions(*file, question->address_count);
        return true;
    }
    return false;
}

static _Noreturn void lines_reader(void)
{
    struct lines_settings settings;
    struct lines_question question;
    struct lines_file *file = NULL;
    int fd = -1;
    confine_offer_to_be_killed();
    int r = read_whole(&settings, sizeof settings) ? give_up_rights(&settings) : -EBADMSG;
    if (r < 0) {
        _exit(r == -EOPNOTSUPP ? LINES_EXIT_UNFILTERED : LINES_EXIT_UNCONFINED);
    }
    while (receive_question(&question, &fd)) {
        if (!take_up_question(&file, &question, fd)) {
            _exit(EXIT_FAILURE);
        }
    }
    _exit(EXIT_SUCCESS);
}

void lines_reader_start(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], LINES_READER_ARGUMENT) == 0) {
        lines_reader();
    }
}
