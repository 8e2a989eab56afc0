/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What ours says of addresses of a file: for each address on standard input (hexadecimal, a line
 * each) its line again, then a line for each function there, innermost first, as
 *     NAME<tab>FILE:LINE
 * with "??" for what is not known. Sorted and without repeats.
 *   lines_probe FILE <addresses
 *   lines_probe --answer FILE <addresses    what profctl's child would answer, for
 * fuzz.lines_answer
 */
#include "cleanup.h"
#include "grow.h"
#include "lines_answer.h"
#include "lines_dwarf.h"
#include "lines_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int compare_addresses(const void *left, const void *right)
{
    const struct lines_address *a = left;
    const struct lines_address *b = right;
    return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* Returns how many; the array is the caller's. */
static size_t read_addresses(struct lines_address **ret)
{
    char line[64];
    size_t count = 0;
    size_t capacity = 0;
    size_t kept = 0;
    while (fgets(line, sizeof line, stdin) != NULL && grow(*ret, capacity, count + 1) == 0) {
        (*ret)[count++] = (struct lines_address){.vaddr = strtoull(line, NULL, 16)};
    }
    if (count > 0) {
        qsort(*ret, count, sizeof **ret, compare_addresses);
    }
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || (*ret)[kept - 1].vaddr != (*ret)[i].vaddr) {
            (*ret)[kept++] = (*ret)[i];
        }
    }
    return kept;
}

static void print_chain(const struct lines_address *address, const struct intern *texts,
                        const struct inlines *table)
{
    (void)printf("0x%" PRIx64 "\n", address->vaddr);
    for (uint32_t i = 0; i < address->chain.count; i++) {
        const struct inline_frame *frame = &table->frames[address->chain.first + i];
        (void)printf("%s\t%s:%" PRIu32 "\n",
                     frame->name == INTERN_NONE ? "??" : intern_text(texts, frame->name),
                     frame->file == INTERN_NONE ? "??" : intern_text(texts, frame->file),
                     frame->line);
    }
}

static int print_answer(const struct lines_address *addresses, size_t count,
                        const struct intern *texts, const struct inlines *table)
{
    cleanup_(freep) void *answer = NULL;
    size_t answer_bytes = 0;
    int r = lines_answer_make(addresses, count, texts, table, &answer, &answer_bytes);
    return r == 0 && fwrite(answer, 1, answer_bytes, stdout) != answer_bytes ? -EIO : r;
}

int main(int argc, char **argv)
{
    bool is_answer = argc == 3 && strcmp(argv[1], "--answer") == 0;
    const char *path = argc == 2 || is_answer ? argv[argc - 1] : NULL;
    struct intern texts = {0};
    struct inlines table = {0};
    cleanup_(lines_file_freep) struct lines_file *file = NULL;
    cleanup_(freep) struct lines_address *addresses = NULL;
    size_t count = read_addresses(&addresses);
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    struct lines_about about;
    file = fd < 0 ? NULL : lines_file_begin(fd, &about);
    int r = file == NULL || !lines_file_is_whole(file) ? -ENOENT : 0;
    if (r == 0) {
        r = lines_dwarf_read(file->dwarf, addresses, count, &texts, &table);
    }
    if (r == 0 && is_answer) {
        r = print_answer(addresses, count, &texts, &table);
    }
    for (size_t i = 0; i < count && r == 0 && !is_answer; i++) {
        print_chain(&addresses[i], &texts, &table);
    }
    inlines_done(&table);
    intern_done(&texts);
    if (r < 0) {
        (void)fprintf(stderr, "%s: cannot be read\n", path == NULL ? "FILE" : path);
    }
    return r < 0;
}
