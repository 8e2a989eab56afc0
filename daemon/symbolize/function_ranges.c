/* SPDX-License-Identifier: Apache-2.0 */

/*
 * function_ranges_find() collects the ranges of the functions that .eh_frame_hdr has for the
 * addresses, or without it of all functions of .eh_frame, sorts them once, and looks each address
 * up by halving. So a section in which every function has every address costs no more than another
 * one. Only the last function that begins at or before an address is looked at: those that hold a
 * whole other one are not what a compiler makes.
 */
#include "function_ranges.h"

#include "array.h"
#include "cleanup.h"
#include "eh_frame.h"
#include "elf_file.h"

#include <errno.h>

struct ranges {
    struct function_range *items; /* owned */
    size_t capacity;
    size_t count;
};

static void ranges_done(struct ranges *ranges)
{
    free(ranges->items);
}

static int on_function(const struct dwarf_cie *cie, struct dwarf_cursor program, uint64_t start,
                       uint64_t end, void *userdata)
{
    struct ranges *ranges = userdata;
    void *items = ranges->items;
    (void)cie, (void)program;
    int r = array_grow(&items, &ranges->capacity, ranges->count + 1, sizeof *ranges->items);
    if (r == 0) {
        ranges->items = items;
        ranges->items[ranges->count++] = (struct function_range){start, end};
    }
    return r;
}

static bool begins_before(const void *left, const void *right, const void *userdata)
{
    const struct function_range *a = left;
    const struct function_range *b = right;
    (void)userdata;
    return a->start != b->start ? a->start < b->start : a->end < b->end;
}

static struct function_range find(const struct ranges *ranges, uint64_t address)
{
    size_t low = 0;
    size_t high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_in = low > 0 && address < ranges->items[low - 1].end;
    return is_in ? ranges->items[low - 1] : (struct function_range){0};
}

int function_ranges_find(int fd, const uint64_t *addresses, size_t count,
                         struct function_range *ret)
{
    cleanup_(ranges_done) struct ranges ranges = {0};
    struct elf_file file;
    int r = elf_file_init(&file, fd);
    if (r < 0) {
        return r;
    }
    r = eh_frame_find(&file, addresses, count, on_function, &ranges);
    if (r == -ENOENT) {
        ranges.count = 0;
        r = eh_frame_walk(&file, on_function, &ranges);
    }
    elf_file_done(&file);
    if (r == 0) {
        r = array_sort(ranges.items, ranges.count, sizeof *ranges.items, begins_before, NULL);
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        ret[i] = find(&ranges, addresses[i]);
    }
    return r;
}
