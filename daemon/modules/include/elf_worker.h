/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The child without rights, the only process that parses other people's files. It is this program
 * executed anew, with one socket: no capabilities, an own uid where the daemon may change it, a
 * seccomp filter that knows no open, socket, connect, exec, clone, ptrace or kill, limited memory.
 * It is sent {request, fds}, leaves a table in the memfd among them and seals it, or answers with
 * an errno. No descriptor is ever taken from it: closing one could hang for ever.
 */

#include "cfi_table.h"
#include "code_spans.h"
#include "symbol_table.h"

#include <sys/types.h>

#define ELF_WORKER_MEMORY_MAX (UINT64_C(1536) << 20)

struct elf_worker_config {
    uid_t uid; /* to become when the daemon is root; (uid_t)-1: keep */
    gid_t gid;
    uint64_t memory_bytes; /* of addresses, at most ELF_WORKER_MEMORY_MAX; 0: that */
};

enum elf_worker_request {
    ELF_WORKER_SYMBOLS,  /* fd: an ELF file; debug_fd: what was split off it */
    ELF_WORKER_KALLSYMS, /* fd: /proc/kallsyms */
    ELF_WORKER_CFI,      /* fd: an ELF file; its call frames */
    ELF_WORKER_CODE,     /* the same, and rows from the instructions of code without any */
    ELF_WORKER_PERF_MAP, /* fd: what a runtime says of the code that it made */
    ELF_WORKER_JITDUMP,  /* the same, with the times */
};

/* What the worker made: read-only, checked, and never to change. */
struct elf_worker_table {
    void *map; /* returned: munmap */
    size_t map_bytes;
    enum elf_worker_request request;
    struct symbol_table symbols; /* a view of it, this or the next, as it was asked for */
    struct cfi_table cfi;
    struct code_spans spans; /* of a jitdump, beside its symbols */
};

/* What ends a worker that is no file's doing, and will end the next one too. */
enum elf_worker_trouble {
    ELF_WORKER_NO_TROUBLE,
    ELF_WORKER_NO_FILTER,    /* it could load none, and does not go on without */
    ELF_WORKER_REFUSED_CALL, /* it made a system call that its filter does not know */
    ELF_WORKER_TROUBLES,
};

struct elf_worker;

/* What main() does with this program's argv[1] equal to ELF_WORKER_ARGUMENT: never returns. */
#define ELF_WORKER_ARGUMENT "--elf-worker"
_Noreturn void elf_worker_child(int socket_fd);

/* Starts a worker, and waits at most 200 ms for its process: one that does not come after that is
 * one that has died. Returns 0 and an object to release with elf_worker_free() (which ends it), or
 * -errno. */
int elf_worker_start(const struct elf_worker_config *config, struct elf_worker **ret);
struct elf_worker *elf_worker_free(struct elf_worker *worker);

/*
 * Kills it and closes the socket, without waiting; true once the process is gone, else to be called
 * again: a process that reads from a filesystem which hangs dies only when that lets go of it.
 * After it only elf_worker_free(), which waits up to a second, elf_worker_trouble() and
 * elf_worker_take_socket() are valid.
 */
bool elf_worker_end(struct elf_worker *worker);

/* After elf_worker_end(), once: the socket, if there are descriptors in it that the worker should
 * not have sent (returned: close it where closing may hang), else -1. */
int elf_worker_take_socket(struct elf_worker *worker);

/* Of one that is gone: what it died of. */
enum elf_worker_trouble elf_worker_trouble(const struct elf_worker *worker);

int elf_worker_fd(
    const struct elf_worker *worker); /* borrowed; readable: a reply, or it has died */
pid_t elf_worker_pid(const struct elf_worker *worker); /* 0: there is none, or none yet */

/* Sends one request (fds borrowed, debug_fd -1: none), whose table may have `max_bytes`; one may be
 * under way. Returns 0, -EAGAIN, or -EPIPE when it died. */
int elf_worker_send(struct elf_worker *worker, enum elf_worker_request request, int fd,
                    int debug_fd, size_t max_bytes);

/* A file as it was when it was opened. */
struct elf_worker_file {
    int fd;       /* borrowed, as the next */
    int debug_fd; /* -1: none */
    uint64_t size_bytes;
    int64_t changed_s; /* st_ctim */
    int64_t changed_ns;
    uint64_t link_count; /* 0: it has no name, and is not compared */
};

/* The same for a file that others may write meanwhile: then the answer is -ESTALE. */
int elf_worker_send_file(struct elf_worker *worker, enum elf_worker_request request,
                         const struct elf_worker_file *file, size_t max_bytes);

/* The same for the call frames of a file and then its symbols (there is no debug file): two answers
 * come, in this order, each with a table or an error of its own. */
int elf_worker_send_both(struct elf_worker *worker, const struct elf_worker_file *file,
                         size_t cfi_bytes_max, size_t symbols_bytes_max);

/* The same for a perf map or a jitdump, of which `known_bytes` were read before (perf_map.h). */
int elf_worker_send_map(struct elf_worker *worker, enum elf_worker_request request, int fd,
                        uint32_t known_bytes, size_t max_bytes);

/*
 * Takes the reply, without blocking. Returns 0 with a table; -EAGAIN when there is none yet; -EPIPE
 * when the worker has died; -ENOBUFS when this process has no room for the table; another -errno
 * that the worker answered (-EBADMSG: not an ELF file that it can read).
 */
int elf_worker_receive(struct elf_worker *worker, struct elf_worker_table *ret);
