/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One load of a file, and the path of its debug file. Distributions strip their programs, and
 * install the symbols below /usr/lib/debug under the program's build-id. The worker reads that id
 * from the program, so it may be any bytes: only its hexadecimal digits become part of a path. A
 * program with another program's build-id gets that program's names for its own frames only, since
 * a table belongs to one file.
 */
#include "module_load.h"

#include "module_ticket.h"

#include <stdio.h>

/* Large libraries take 1 to 3 ns a byte. */
#define NS_PER_BYTE 2

#define BOTH_BYTES_MAX     ((uint64_t)4 << 20)
#define CFI_SPARE_BYTES    ((size_t)4 << 20)
#define MAP_GROWTH_BYTES   ((size_t)1 << 20) /* of a perf map before it is read */
#define DEBUG_FOLDER       "/usr/lib/debug/.build-id/"
#define BUILD_ID_BYTES_MIN 8 /* shorter ones are nothing that a linker makes */

/* What the table of a file may take. A row of call frames takes two bytes there at least, and four
 * here; pages and rules are bounded by themselves. */
static size_t table_limit(enum module_table table, uint64_t file_bytes)
{
    switch (table) {
    case MODULE_CFI:
    case MODULE_CODE:
        return file_bytes < (CFI_TABLE_BYTES_MAX - CFI_SPARE_BYTES) / 4
                   ? file_bytes * 4 + CFI_SPARE_BYTES
                   : CFI_TABLE_BYTES_MAX;
    case MODULE_SYMBOLS:
    case MODULE_TABLES:
        break;
    }
    return symbol_table_limit(file_bytes);
}

static enum elf_worker_request file_request(enum module_table table)
{
    switch (table) {
    case MODULE_CFI:
        return ELF_WORKER_CFI;
    case MODULE_CODE:
        return ELF_WORKER_CODE;
    case MODULE_SYMBOLS:
    case MODULE_TABLES:
        break;
    }
    return ELF_WORKER_SYMBOLS;
}

bool module_load_is_abandoned(const struct module_load *load)
{
    const struct module_ticket *ticket = load->tickets;
    while (ticket != NULL && module_ticket_is_abandoned(ticket)) {
        ticket = ticket->next;
    }
    return load->tickets != NULL && ticket == NULL;
}

uint64_t module_load_expected_ns(const struct module_load *load, uint64_t known_ns)
{
    const uint64_t bytes_max = MODULE_LOAD_LIMIT_NS / NS_PER_BYTE;
    uint64_t file_bytes = load->file.identity.size_bytes;
    uint64_t debug_bytes = load->debug_fd >= 0 ? load->debug_bytes : 0;
    if (known_ns > 0) {
        return known_ns;
    }
    if (file_bytes > bytes_max || debug_bytes > bytes_max - file_bytes) {
        return MODULE_LOAD_LIMIT_NS;
    }
    return (file_bytes + debug_bytes) * NS_PER_BYTE;
}

static int send_file(const struct module_load *load, struct elf_worker *worker, size_t limit_bytes,
                     bool both)
{
    const struct elf_worker_file file = {
        .fd = load->file.fd,
        .debug_fd = load->debug_fd,
        .size_bytes = load->file.identity.size_bytes,
        .changed_s = load->file.identity.changed_s,
        .changed_ns = load->file.identity.changed_ns,
        .link_count = load->file.link_count,
    };
    return both ? elf_worker_send_both(worker, &file, limit_bytes,
                                       table_limit(MODULE_SYMBOLS, file.size_bytes))
                : elf_worker_send_file(worker, file_request(load->request.table), &file,
                                       limit_bytes);
}

bool module_load_may_be_both(const struct module_load *load)
{
    return load->then_symbols && load->request.source == MODULE_FILE &&
           load->request.table == MODULE_CFI && load->file.identity.size_bytes <= BOTH_BYTES_MAX;
}

bool module_load_go_on(struct module_load *load)
{
    bool goes_on = load->then_symbols;
    if (goes_on) {
        load->request.table = MODULE_SYMBOLS;
        load->then_symbols = false;
        load->is_for_first = false;
    }
    return goes_on;
}

int module_load_ask(const struct module_load *load, struct elf_worker *worker, bool both)
{
    enum module_table table = load->request.table;
    uint64_t file_bytes = load->file.identity.size_bytes;
    file_bytes += load->debug_fd >= 0 ? load->debug_bytes : 0;
    size_t limit_bytes = table_limit(table, file_bytes);
    enum elf_worker_request request = file_request(table);
    switch (load->request.source) {
    case MODULE_KERNEL:
        request = ELF_WORKER_KALLSYMS;
        limit_bytes = SYMBOL_TABLE_BYTES_MAX;
        break;
    case MODULE_PERF_MAP:
        limit_bytes = symbol_table_limit(MAP_GROWTH_BYTES + 2 * file_bytes);
        return elf_worker_send_map(worker, ELF_WORKER_PERF_MAP, load->file.fd,
                                   load->request.known_bytes, limit_bytes);
    case MODULE_JITDUMP:
        limit_bytes = symbol_table_limit(MAP_GROWTH_BYTES + 2 * file_bytes);
        return elf_worker_send_map(worker, ELF_WORKER_JITDUMP, load->file.fd,
                                   load->request.known_bytes, limit_bytes);
    case MODULE_FILE:
        return send_file(load, worker, limit_bytes, both);
    case MODULE_VDSO:
    case MODULE_VDSO_32BIT:
    case MODULE_DEBUG:
        break;
    }
    return elf_worker_send(worker, request, load->file.fd, -1, limit_bytes);
}

bool module_load_debug_path(const struct module_load *load, const struct elf_worker_table *table,
                            char ret[MODULE_DEBUG_PATH_BYTES])
{
    const uint8_t *build_id = table->symbols.build_id;
    size_t bytes = table->symbols.build_id_bytes;
    if (load->request.source != MODULE_FILE || load->request.table != MODULE_SYMBOLS ||
        load->first.map != NULL || bytes < BUILD_ID_BYTES_MIN) {
        return false;
    }
    int used = snprintf(ret, MODULE_DEBUG_PATH_BYTES, DEBUG_FOLDER);
    for (size_t i = 0; i < bytes; i++) {
        used += snprintf(ret + used, MODULE_DEBUG_PATH_BYTES - (size_t)used, "%02x%s", build_id[i],
                         i == 0 ? "/" : "");
    }
    (void)snprintf(ret + used, MODULE_DEBUG_PATH_BYTES - (size_t)used, ".debug");
    return true;
}
