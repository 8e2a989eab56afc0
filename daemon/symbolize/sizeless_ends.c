/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A symbol without a size would name all code up to the next symbol, and in a stripped file most
 * functions in between have none. Call frames say where functions begin and end. Entries come in
 * any order and may contradict each other: the nearest end counts. One entry bounds at most two
 * symbols, the last that it holds and the last before it, since each of the others ends at the next
 * one.
 */
#include "sizeless_ends.h"

#include "array.h"
#include "eh_frame.h"

#include <errno.h>
#include <stdlib.h>

#define END_UNKNOWN UINT64_MAX

struct sizeless {
    uint64_t start; /* first: they are sorted by it */
    uint64_t end;
};

void sizeless_ends_done(struct sizeless_ends *ends)
{
    free(ends->all);
    *ends = (struct sizeless_ends){0};
}

int sizeless_ends_want(struct sizeless_ends *ends, uint64_t start)
{
    void *all = ends->all;
    int r = array_grow(&all, &ends->capacity, ends->count + 1, sizeof *ends->all);
    ends->all = all;
    if (r == 0) {
        ends->all[ends->count++] = (struct sizeless){start, END_UNKNOWN};
    }
    return r;
}

/* The last that begins before an address, or NULL. */
static struct sizeless *last_before(const struct sizeless_ends *ends, uint64_t address)
{
    size_t low = 0;
    size_t high = ends->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ends->all[middle].start < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? NULL : &ends->all[low - 1];
}

static void bound(struct sizeless *symbol, uint64_t end)
{
    symbol->end = end < symbol->end ? end : symbol->end;
}

static int on_function(const struct dwarf_cie *cie, struct dwarf_cursor program, uint64_t start,
                       uint64_t end, void *userdata)
{
    (void)cie;
    (void)program;
    struct sizeless *last = last_before(userdata, end);
    if (last != NULL && last->start >= start) {
        bound(last, end);
        last = last_before(userdata, start);
    }
    if (last != NULL) {
        bound(last, start);
    }
    return 0;
}

int sizeless_ends_add(struct sizeless_ends *ends, const struct elf_file *file,
                      struct symbol_builder *builder)
{
    int r = array_sort_by_number(ends->all, ends->count, sizeof *ends->all, NULL, NULL);
    if (r == 0 && ends->count > 0) {
        r = eh_frame_walk(file, on_function, ends);
    }
    /* More than is read tells nothing. */
    r = r == -E2BIG ? 0 : r;
    for (size_t i = 0; r == 0 && i < ends->count; i++) {
        if (ends->all[i].end != END_UNKNOWN) {
            r = symbol_builder_barrier(builder, ends->all[i].end);
        }
    }
    return r;
}
