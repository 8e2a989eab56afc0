/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Workers without a process, in place of elf_worker.c. The file that includes this says what
 * becomes of a file that is sent to one, and has an elf_worker_receive() of its own.
 */
#include "elf_worker.h"
#include "unit_test.h"

#include <sys/eventfd.h>
#include <unistd.h>

struct elf_worker {
    int fd;     /* -1: it was told to end */
    int reads;  /* the file that it was sent; 0: none */
    bool both;  /* for two tables, neither of which it has answered */
    bool hangs; /* it does not end before the filesystem answers */
    uint64_t memory_bytes;
};

static struct {
    size_t started_count, alive_count, alive_max;
    bool filesystem_answers;
} workers;

static void on_sent(struct elf_worker *worker, int fd);

int elf_worker_start(const struct elf_worker_config *config, struct elf_worker **ret)
{
    struct elf_worker *worker = calloc(1, sizeof *worker);
    assert_non_null(worker);
    worker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    worker->memory_bytes = config == NULL ? 0 : config->memory_bytes;
    workers.started_count++;
    workers.alive_count++;
    workers.alive_max =
        workers.alive_count > workers.alive_max ? workers.alive_count : workers.alive_max;
    *ret = worker;
    return 0;
}

bool elf_worker_end(struct elf_worker *worker)
{
    if (worker->fd >= 0) {
        (void)close(worker->fd);
        worker->fd = -1;
        workers.alive_count--;
    }
    return !worker->hangs || workers.filesystem_answers;
}

int elf_worker_take_socket(struct elf_worker *worker)
{
    (void)worker;
    return -1;
}

struct elf_worker *elf_worker_free(struct elf_worker *worker)
{
    if (worker != NULL) {
        (void)elf_worker_end(worker);
        free(worker);
    }
    return NULL;
}

enum elf_worker_trouble elf_worker_trouble(const struct elf_worker *worker)
{
    (void)worker;
    return ELF_WORKER_NO_TROUBLE;
}

int elf_worker_fd(const struct elf_worker *worker)
{
    return worker->fd;
}

pid_t elf_worker_pid(const struct elf_worker *worker)
{
    return worker->fd;
}

int elf_worker_send(struct elf_worker *worker, enum elf_worker_request request, int fd,
                    int debug_fd, size_t max_bytes)
{
    (void)request, (void)debug_fd, (void)max_bytes;
    assert_int_equal(worker->reads, 0);
    worker->reads = fd;
    on_sent(worker, fd);
    return 0;
}

int elf_worker_send_file(struct elf_worker *worker, enum elf_worker_request request,
                         const struct elf_worker_file *file, size_t max_bytes)
{
    return elf_worker_send(worker, request, file->fd, file->debug_fd, max_bytes);
}

int elf_worker_send_both(struct elf_worker *worker, const struct elf_worker_file *file,
                         size_t cfi_bytes_max, size_t symbols_bytes_max)
{
    (void)symbols_bytes_max;
    worker->both = true;
    return elf_worker_send(worker, ELF_WORKER_CFI, file->fd, file->debug_fd, cfi_bytes_max);
}

int elf_worker_send_map(struct elf_worker *worker, enum elf_worker_request request, int fd,
                        uint32_t known_bytes, size_t max_bytes)
{
    (void)known_bytes;
    return elf_worker_send(worker, request, fd, -1, max_bytes);
}
