/* SPDX-License-Identifier: Apache-2.0 */

/*
 * unwind_stack() over a live process: its executable ranges from /proc, and a table of each file
 * that is mapped there, read as the worker reads it.
 */
#include "cfi_table.h"
#include "code_rows.h"
#include "oracle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define VDSO_BYTES_MAX ((size_t)16384)

struct range {
    uint64_t start, end, file_offset;
    uint64_t inode;
    bool is_vdso;
    bool has_table;
    struct cfi_table table;
    void *table_bytes; /* owned by the first range of its file */
};

struct oracle_ours {
    struct range *ranges; /* the executable ones, by rising address */
    size_t count;
};

/* The whole file is in memory, mapped by the kernel: every process has the same. */
static int open_vdso(void)
{
    const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR); // NOLINT
    int fd = memfd_create("vdso", MFD_CLOEXEC);
    if (vdso != NULL && fd >= 0) {
        (void)!write(fd, vdso, VDSO_BYTES_MAX); /* less where it is shorter */
    }
    return fd;
}

static void read_table(struct range *range, pid_t pid)
{
    char path[96];
    (void)snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", (int)pid,
                   (unsigned long long)range->start, (unsigned long long)range->end);
    int fd = range->is_vdso ? open_vdso() : open(path, O_RDONLY | O_CLOEXEC);
    struct cfi_builder *builder = cfi_builder_new();
    size_t size_bytes = 0;
    if (fd >= 0 && builder != NULL && code_rows_read(fd, CODE_ROWS_ALL, builder) == 0 &&
        cfi_builder_finish(builder, &range->table_bytes, &size_bytes) == 0) {
        range->has_table = cfi_table_open(range->table_bytes, size_bytes, &range->table) == 0;
    }
    (void)cfi_builder_free(builder);
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void find_table(struct oracle_ours *ours, struct range *range, pid_t pid)
{
    for (size_t i = 0; i < ours->count; i++) {
        const struct range *other = &ours->ranges[i];
        if (other != range && other->inode == range->inode && range->inode != 0 &&
            other->has_table) {
            range->table = other->table;
            range->has_table = true;
            return;
        }
    }
    if (range->inode != 0 || range->is_vdso) {
        read_table(range, pid);
    }
}

struct oracle_ours *oracle_ours_open(pid_t pid)
{
    struct oracle_ours *ours = oracle_alloc(NULL, sizeof *ours);
    char line[4096];
    *ours = (struct oracle_ours){0};
    (void)snprintf(line, sizeof line, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        struct range range = {0};
        char mode[5] = "";
        if (sscanf(line, "%lx-%lx %4s %lx %*s %lu", &range.start, &range.end, mode, // NOLINT
                   &range.file_offset, &range.inode) != 5 ||
            mode[2] != 'x') {
            continue;
        }
        range.is_vdso = strstr(line, "[vdso]") != NULL;
        ours->ranges = oracle_alloc(ours->ranges, (ours->count + 1) * sizeof *ours->ranges);
        ours->ranges[ours->count++] = range;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    for (size_t i = 0; i < ours->count; i++) {
        find_table(ours, &ours->ranges[i], pid);
    }
    return ours;
}

static enum unwind_code look_up(uint64_t pc, const struct cfi_rule **ret, void *userdata)
{
    const struct oracle_ours *ours = userdata;
    for (size_t i = 0; i < ours->count; i++) {
        const struct range *range = &ours->ranges[i];
        uint64_t vaddr = 0;
        if (pc < range->start || pc >= range->end) {
            continue;
        }
        if (!range->has_table ||
            !cfi_table_vaddr(&range->table, pc - range->start + range->file_offset, &vaddr)) {
            return UNWIND_CODE_NO_RULE;
        }
        *ret = cfi_table_find(&range->table, vaddr);
        return (*ret)->kind == CFI_NONE || (*ret)->kind == CFI_UNSUPPORTED ? UNWIND_CODE_NO_RULE
                                                                           : UNWIND_CODE_RULE;
    }
    return UNWIND_CODE_NONE;
}

void oracle_ours_unwind(struct oracle_ours *ours, const struct oracle_sample *sample,
                        struct oracle_stack *ret, struct unwind_result *ret_result)
{
    struct unwind_input input = {
        .mode = UNWIND_AUTO,
        .max_depth = UNWIND_DEPTH_MAX,
        .lookup = look_up,
        .userdata = ours,
        .ip = sample->ip,
        .stack = sample->stack,
        .stack_bytes = sample->stack_bytes,
        .stack_cut = sample->stack_cut,
        .chain = sample->chain,
        .chain_count = sample->chain_count,
        .chain_cut = sample->chain_cut,
    };
    memcpy(input.registers, sample->registers, sizeof input.registers);
    unwind_stack(&input, ret->frames, ret->places, ret_result);
    ret->count = ret_result->frame_count;
}

bool oracle_ours_has_code(struct oracle_ours *ours, uint64_t pc)
{
    const struct cfi_rule *rule = NULL;
    return look_up(pc, &rule, ours) != UNWIND_CODE_NONE;
}

struct oracle_ours *oracle_ours_free(struct oracle_ours *ours)
{
    for (size_t i = 0; i < ours->count; i++) {
        free(ours->ranges[i].table_bytes);
    }
    free(ours->ranges);
    free(ours);
    return NULL;
}
