/* SPDX-License-Identifier: Apache-2.0 */

/*
 * elf_worker_confine() confines the worker: what common/confine.c does, with the system calls and
 * the limits that are the worker's own. No call sends a descriptor: the worker writes its answer
 * into a memfd that came with the request.
 */
#include "elf_worker_confine.h"

#include "confine.h"
#include "elf_worker.h"
#include "symbol_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static const int calls[] = {SYS_recvmsg};
static const unsigned int fcntl_commands[] = {F_GETFD, F_GETFL, F_ADD_SEALS};

static struct confine_rules make_rules(uid_t uid, gid_t gid, uint64_t memory_bytes)
{
    bool is_less = memory_bytes > 0 && memory_bytes < ELF_WORKER_MEMORY_MAX;
    return (struct confine_rules){
        .uid = uid,
        .gid = gid,
        .address_bytes_max = is_less ? memory_bytes : ELF_WORKER_MEMORY_MAX,
        .file_bytes_max = SYMBOL_TABLE_BYTES_MAX,
        .calls = calls,
        .call_count = sizeof calls / sizeof *calls,
        .fcntl_commands = fcntl_commands,
        .fcntl_command_count = sizeof fcntl_commands / sizeof *fcntl_commands,
        .memfd_flags = ELF_WORKER_MEMFD_FLAGS,
    };
}

int elf_worker_filter(void)
{
    const struct confine_rules rules = make_rules((uid_t)-1, (gid_t)-1, 0);
    return confine_filter(&rules);
}

int elf_worker_confine(uid_t uid, gid_t gid, uint64_t memory_bytes)
{
    const struct confine_rules rules = make_rules(uid, gid, memory_bytes);
    return confine(&rules);
}
