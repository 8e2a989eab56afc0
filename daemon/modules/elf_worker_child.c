/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The worker's side: takes its settings, gives up its rights, and then answers requests one after
 * the other until the socket ends. Nothing foreign is read before the rights are gone. From one
 * request to the next it keeps a little free memory, and what it can use again of the call frames
 * of a few files.
 *
 * A message that is not a whole question ends it: what follows cannot be trusted. Each question has
 * an answer, which says that there is no table where the question is for one that it does not know
 * (-ENOSYS). So one file has no names, and no user waits for a new worker.
 */
#include "elf_worker.h"

#include "cleanup.h"
#include "code_rows.h"
#include "confine.h"
#include "descriptors.h"
#include "elf_symbols.h"
#include "elf_worker_confine.h"
#include "elf_worker_wire.h"
#include "jitdump.h"
#include "kallsyms.h"
#include "kept_builders.h"
#include "perf_map.h"
#include "seals.h"

#include <malloc.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define KEPT_BYTES_MAX (16 << 20)

/* Most files need some megabytes for a moment. To fetch them from the kernel for each file, a page
 * at a time, takes longer than the reading. */
static void keep_free_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES_MAX);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
}

static bool receive_settings(int socket_fd, struct elf_worker_settings *ret)
{
    return recv(socket_fd, ret, sizeof *ret, MSG_TRUNC) == (ssize_t)sizeof *ret;
}

/* A question's files; -1: none. */
struct files {
    int fd;
    int table_fd; /* empty, for the answer */
    int debug_fd;
    int next_fd; /* of a question for two tables: empty, for the second */
};

static void close_files(struct files *files)
{
    files->fd = close_fd(files->fd);
    files->table_fd = close_fd(files->table_fd);
    files->debug_fd = close_fd(files->debug_fd);
    files->next_fd = close_fd(files->next_fd);
}

/* Waits for a question and its files (returned: close_files()); false: there will be none. */
static bool receive_question(int socket_fd, struct elf_worker_question *ret,
                             struct files *ret_files)
{
    int fds[DESCRIPTORS_MAX] = {-1, -1, -1};
    size_t fd_count = 0;
    ssize_t got = descriptors_receive(socket_fd, ret, sizeof *ret, 0, fds, &fd_count);
    if (got != (ssize_t)sizeof *ret ||
        (fd_count != ELF_WORKER_FILES_MIN && fd_count != ELF_WORKER_FILES_MAX)) {
        return false;
    }
    bool is_for_two = ret->then_symbols != 0;
    *ret_files = (struct files){.fd = fds[0],
                                .table_fd = fds[1],
                                .debug_fd = is_for_two ? -1 : fds[2],
                                .next_fd = is_for_two ? fds[2] : -1};
    return true;
}

/* By write(): the filter knows no call that could send a descriptor. */
static void send_answer(int socket_fd, const struct elf_worker_answer *answer)
{
    if (write(socket_fd, answer, sizeof *answer) < 0) {
        _exit(EXIT_FAILURE);
    }
}

/* Puts the table into the file that was sent for it, and seals that, for good. */
static int seal_table(const char *bytes, size_t size_bytes, int fd)
{
    for (size_t written = 0; written < size_bytes;) {
        ssize_t done = write(fd, bytes + written, size_bytes - written);
        if (done < 0) {
            return -errno;
        }
        written += (size_t)done;
    }
    return seals_add(fd);
}

static int read_symbols(enum elf_worker_request request, const struct files *files,
                        size_t known_bytes, struct symbol_builder *builder)
{
    switch (request) {
    case ELF_WORKER_SYMBOLS:
        return elf_symbols_read(files->fd, files->debug_fd, builder);
    case ELF_WORKER_KALLSYMS:
        return kallsyms_read(files->fd, builder);
    case ELF_WORKER_PERF_MAP:
        return perf_map_read(files->fd, known_bytes, builder);
    case ELF_WORKER_CFI:
    case ELF_WORKER_CODE:
    case ELF_WORKER_JITDUMP:
        break;
    }
    return -ENOSYS;
}

static int build_symbols(enum elf_worker_request request, const struct files *files,
                         size_t known_bytes, void **ret_bytes, size_t *ret_size_bytes)
{
    struct symbol_builder *builder = symbol_builder_new();
    if (builder == NULL) {
        return -ENOMEM;
    }
    int r = read_symbols(request, files, known_bytes, builder);
    if (r == 0) {
        r = symbol_builder_finish(builder, ret_bytes, ret_size_bytes);
    }
    symbol_builder_free(builder);
    return r;
}

/* Symbols behind spans, as one. */
static int join(const void *spans, size_t spans_bytes, const void *symbols, size_t symbols_bytes,
                void **ret_bytes, size_t *ret_size_bytes)
{
    char *bytes = malloc(spans_bytes + symbols_bytes);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    memcpy(bytes, spans, spans_bytes);
    memcpy(bytes + spans_bytes, symbols, symbols_bytes);
    *ret_bytes = bytes;
    *ret_size_bytes = spans_bytes + symbols_bytes;
    return 0;
}

static int build_jitdump(int fd, size_t known_bytes, void **ret_bytes, size_t *ret_size_bytes)
{
    cleanup_(freep) void *spans = NULL;
    cleanup_(freep) void *symbols = NULL;
    size_t spans_bytes = 0;
    size_t symbols_bytes = 0;
    struct symbol_builder *builder = symbol_builder_new();
    if (builder == NULL) {
        return -ENOMEM;
    }
    int r = jitdump_read(fd, known_bytes, builder, &spans, &spans_bytes);
    if (r == 0) {
        r = symbol_builder_finish(builder, &symbols, &symbols_bytes);
    }
    symbol_builder_free(builder);
    return r != 0 ? r : join(spans, spans_bytes, symbols, symbols_bytes, ret_bytes, ret_size_bytes);
}

/* Fills a new builder, or one that a request before this has left. */
static int read_rows(struct kept_builders *kept, int fd, enum code_rows_extent extent,
                     struct kept_builder *one)
{
    const struct cfi_table *table = NULL;
    if (extent == CODE_ROWS_ALL && kept_builders_take(kept, &one->file, one, &table)) {
        return code_rows_read_again(fd, extent, table, &one->pointers, one->builder);
    }
    one->builder = cfi_builder_new();
    return one->builder == NULL ? -ENOMEM
                                : code_rows_read_first(fd, extent, &one->pointers, one->builder);
}

static int build_cfi(struct kept_builders *kept, const struct elf_worker_question *question, int fd,
                     void **ret_bytes, size_t *ret_size_bytes)
{
    enum code_rows_extent extent =
        question->request == ELF_WORKER_CODE ? CODE_ROWS_ALL : CODE_ROWS_OWN;
    struct kept_builder one = {.builder = NULL};
    if (fstat(fd, &one.file) < 0) {
        return -errno;
    }
    int r = read_rows(kept, fd, extent, &one);
    if (r == 0) {
        r = cfi_builder_finish(one.builder, ret_bytes, ret_size_bytes);
    }
    if (r == 0 && extent == CODE_ROWS_OWN && question->link_count != 0) {
        kept_builders_keep(kept, fd, &one);
    } else {
        kept_builder_done(&one);
    }
    return r;
}

static int build(struct kept_builders *kept, const struct elf_worker_question *question,
                 const struct files *files, void **ret_bytes, size_t *ret_size_bytes)
{
    enum elf_worker_request known = (enum elf_worker_request)question->request;
    switch (known) {
    case ELF_WORKER_SYMBOLS:
    case ELF_WORKER_KALLSYMS:
    case ELF_WORKER_PERF_MAP:
        return build_symbols(known, files, question->known_bytes, ret_bytes, ret_size_bytes);
    case ELF_WORKER_JITDUMP:
        return build_jitdump(files->fd, question->known_bytes, ret_bytes, ret_size_bytes);
    case ELF_WORKER_CFI:
    case ELF_WORKER_CODE:
        return build_cfi(kept, question, files->fd, ret_bytes, ret_size_bytes);
    }
    return -ENOSYS;
}

/* True when the file may have been written since it was opened. Its time of change is also that of
 * its names: one that came or went is told by their count. */
static bool is_written_since(const struct elf_worker_question *question, int fd)
{
    struct stat now;
    if (question->link_count == 0) {
        return false;
    }
    return fstat(fd, &now) < 0 || (uint64_t)now.st_size != question->size_bytes ||
           (now.st_nlink == question->link_count && (now.st_ctim.tv_sec != question->changed_s ||
                                                     now.st_ctim.tv_nsec != question->changed_ns));
}

static int build_table(struct kept_builders *kept, const struct elf_worker_question *question,
                       const struct files *files, size_t *ret_bytes)
{
    cleanup_(freep) void *bytes = NULL;
    size_t size_bytes = 0;
    int r = build(kept, question, files, &bytes, &size_bytes);
    if (is_written_since(question, files->fd)) {
        r = -ESTALE;
    }
    if (r == 0) {
        r = seal_table(bytes, size_bytes, files->table_fd);
    }
    if (r == 0) {
        *ret_bytes = size_bytes;
    }
    return r;
}

static void answer_one(int socket_fd, struct kept_builders *kept,
                       const struct elf_worker_question *question, const struct files *files)
{
    struct elf_worker_answer answer = {.sequence = question->sequence};
    size_t size_bytes = 0;
    answer.error = build_table(kept, question, files, &size_bytes);
    answer.size_bytes = size_bytes;
    send_answer(socket_fd, &answer);
}

/* Each table has its answer, before the next one is made. */
static void answer_all(int socket_fd, struct kept_builders *kept,
                       const struct elf_worker_question *question, const struct files *files)
{
    answer_one(socket_fd, kept, question, files);
    if (question->then_symbols != 0) {
        struct elf_worker_question next = *question;
        const struct files next_files = {
            .fd = files->fd, .table_fd = files->next_fd, .debug_fd = -1, .next_fd = -1};
        next.request = ELF_WORKER_SYMBOLS;
        answer_one(socket_fd, kept, &next, &next_files);
    }
}

_Noreturn void elf_worker_child(int socket_fd)
{
    struct elf_worker_settings settings;
    struct kept_builders kept = {.count = 0};
    (void)prctl(PR_SET_NAME, "cpu-profilerd");
    keep_free_memory();
    confine_offer_to_be_killed();
    int r = receive_settings(socket_fd, &settings)
                ? elf_worker_confine(settings.uid, settings.gid, settings.memory_bytes)
                : -EBADMSG;
    if (r < 0) {
        _exit(r == -EOPNOTSUPP ? ELF_WORKER_EXIT_UNFILTERED : EXIT_FAILURE);
    }
    for (;;) {
        struct elf_worker_question question;
        struct files files;
        if (!receive_question(socket_fd, &question, &files)) {
            kept_builders_done(&kept);
            _exit(EXIT_SUCCESS);
        }
        answer_all(socket_fd, &kept, &question, &files);
        close_files(&files);
    }
}
