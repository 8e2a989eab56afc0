/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lays modules out by pages: the first module that a page is asked for owns the page. Another
 * module's page that would lie there is numbered, and lies in the hole between the addresses of
 * programs and those of the kernel, which no real address is in. Ranges come last, since the owners
 * of all pages are known then.
 */
#include "process_layout.h"

#include "compare.h"
#include "grow.h"

#include <stdlib.h>

#define PAGE_BYTES UINT64_C(4096)
#define HOLE_FIRST (UINT64_C(1) << 47) /* of addresses; the hole is as long as all below it */
#define HOLE_LAST  (UINT64_MAX - (UINT64_C(1) << 47))

struct moved_page {
    uint64_t page; /* of the module's own addresses */
    uint64_t bias; /* and how the process had them */
    uint32_t module;
    uint32_t zero;
};

void process_layout_done(struct process_layout *layout)
{
    intern_done(&layout->modules);
    intern_done(&layout->pages);
    intern_done(&layout->moved);
    free(layout->owners);
    *layout = (struct process_layout){0};
}

/* Takes a page for a module, unless another has it. Returns 0, -EEXIST, or -ENOMEM. */
static int take_page(struct process_layout *layout, uint64_t page, uint32_t module, uint64_t bias)
{
    const struct layout_module owner = {.bias = bias, .module = module};
    size_t known_count = layout->pages.item_count;
    uint32_t item = 0;
    uint32_t number = 0;
    if (intern_add(&layout->modules, &owner, sizeof owner, &number) < 0 ||
        intern_add(&layout->pages, &page, sizeof page, &item) < 0 ||
        grow(layout->owners, layout->owner_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    if (item == known_count) {
        layout->owners[item] = number;
    }
    return layout->owners[item] == number ? 0 : -EEXIST;
}

static bool is_in_hole(uint64_t address)
{
    return address >= HOLE_FIRST && address <= HOLE_LAST;
}

/* Shows an address of a module, which the process had `bias` above it, in the hole. */
static int move(struct process_layout *layout, uint64_t address, uint32_t module, uint64_t bias,
                uint64_t *ret_address)
{
    const struct moved_page key = {.page = address / PAGE_BYTES, .bias = bias, .module = module};
    uint32_t item = 0;
    int r = intern_add(&layout->moved, &key, sizeof key, &item);
    if (r < 0) {
        return r;
    }
    uint64_t shown = HOLE_FIRST + item * PAGE_BYTES + address % PAGE_BYTES;
    *ret_address = shown;
    return take_page(layout, shown / PAGE_BYTES, module, shown - address);
}

int process_layout_add(struct process_layout *layout, const struct profile *profile,
                       const struct profile_sample *sample, const struct stack_place *place,
                       uint64_t *ret_address, uint32_t *ret_module)
{
    uint64_t address = place->address - (place->is_caller && place->address > 0 ? 1 : 0);
    struct module_address found = {.module = INTERN_NONE, .address = address};
    (void)place_find_module(profile, sample, place, &found);
    uint64_t bias = address - found.address;
    *ret_address = address;
    *ret_module = found.module;
    int r =
        is_in_hole(address) ? -EEXIST : take_page(layout, address / PAGE_BYTES, found.module, bias);
    return r == -EEXIST ? move(layout, found.address, found.module, bias, ret_address) : r;
}

const struct layout_module *process_layout_module(const struct process_layout *layout,
                                                  uint32_t module)
{
    size_t size_bytes = 0;
    return intern_bytes(&layout->modules, module, &size_bytes);
}

static int compare_ranges(const void *left, const void *right)
{
    const struct layout_range *a = left;
    const struct layout_range *b = right;
    return compare_u64(a->start, b->start);
}

/* Puts ranges that follow each other in one module together. Returns how many there are then. */
static size_t merge_ranges(struct layout_range *ranges, size_t count)
{
    size_t kept_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct layout_range *last = kept_count == 0 ? NULL : &ranges[kept_count - 1];
        if (last != NULL && last->module == ranges[i].module &&
            last->start + last->size_bytes == ranges[i].start) {
            last->size_bytes += ranges[i].size_bytes;
        } else {
            ranges[kept_count++] = ranges[i];
        }
    }
    return kept_count;
}

struct layout_range *process_layout_ranges(const struct process_layout *layout, size_t *ret_count)
{
    struct layout_range *ranges = calloc(layout->pages.item_count + 1, sizeof *ranges);
    size_t count = 0;
    for (size_t i = 0; ranges != NULL && i < layout->pages.item_count; i++) {
        size_t size_bytes = 0;
        const uint64_t *page = intern_bytes(&layout->pages, (uint32_t)i, &size_bytes);
        if (process_layout_module(layout, layout->owners[i])->module != INTERN_NONE) {
            ranges[count++] = (struct layout_range){
                .start = *page * PAGE_BYTES,
                .size_bytes = PAGE_BYTES,
                .module = layout->owners[i],
            };
        }
    }
    if (count > 0) {
        qsort(ranges, count, sizeof *ranges, compare_ranges);
    }
    *ret_count = merge_ranges(ranges, count);
    return ranges;
}
