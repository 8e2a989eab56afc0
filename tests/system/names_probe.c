/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What ours calls the functions of a file: for each address on standard input (hexadecimal, a line
 * each) a line
 *     0xADDRESS<tab>NAME<tab>READABLE
 * with "??" for what has no name. The table is the worker's own, made by the process without
 * rights; READABLE is what profctl shows.
 *   names_probe FILE [DEBUG_FILE] <addresses
 */
#include "cleanup.h"
#include "demangle.h"
#include "elf_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS   30000
#define WORKER_FD 3 /* where elf_worker_start() puts the worker's socket */

static void worker_freep(struct elf_worker **worker)
{
    (void)elf_worker_free(*worker);
}

/* Asks a worker for the table of the file, and waits for it. */
static int ask(int fd, int debug_fd, struct elf_worker_table *ret)
{
    static const struct elf_worker_config config = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    cleanup_(worker_freep) struct elf_worker *worker = NULL;
    int r = elf_worker_start(&config, &worker);
    if (r == 0) {
        r = elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd, debug_fd, SYMBOL_TABLE_BYTES_MAX);
    }
    if (r == 0) {
        struct pollfd readable = {.fd = elf_worker_fd(worker), .events = POLLIN};
        (void)poll(&readable, 1, WAIT_MS);
        r = elf_worker_receive(worker, ret);
    }
    return r;
}

static void print_name(const struct symbol_table *table, uint64_t vaddr)
{
    static struct demangler demangler;
    char readable[DEMANGLED_BYTES_MAX];
    ptrdiff_t index = symbol_table_find(table, vaddr);
    const char *name = index < 0 ? "??" : symbol_table_name(table, (size_t)index);
    bool is_mangled = demangle_name(&demangler, name, readable);
    (void)printf("0x%" PRIx64 "\t%s\t%s\n", vaddr, name, is_mangled ? readable : name);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], ELF_WORKER_ARGUMENT) == 0) {
        elf_worker_child(WORKER_FD);
    }
    cleanup_(closep) int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    cleanup_(closep) int debug_fd = argc > 2 ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1;
    struct elf_worker_table table = {0};
    char line[64];
    if (fd < 0 || (argc > 2 && debug_fd < 0)) {
        (void)fprintf(stderr, "usage: names_probe FILE [DEBUG_FILE] <addresses\n");
        return 2;
    }
    int r = ask(fd, debug_fd, &table);
    if (r < 0) {
        (void)fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        print_name(&table.symbols, strtoull(line, NULL, 16));
    }
    return 0;
}
