/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds spots, and names them. A return address may be the first byte of the next function, so
 * callers are looked up one byte lower; reports print the address itself. With debugging
 * information, an address becomes a frame for each function that was inlined there and one more;
 * the last one keeps the recording's name.
 *
 * Which of a process's mappings has an address is told anew each time: mappings.c does that with
 * few steps. The hash is seeded, as for all tables that a file fills.
 */
#include "spots.h"

#include "cleanup.h"
#include "grow.h"
#include "huge_pages.h"
#include "seeded_hash.h"
#include "tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SLOTS_MIN 1024

/* A longer list is none of a program's: its further addresses become a frame each. */
#define LIST_LONG ((size_t)4096)

/* An answer: the number of a frame or, with this bit, of a run; and 1. An intern table has fewer
 * items of their sizes. */
#define ANSWER_IS_RUN (UINT32_C(1) << 31)

/* How an address is meant, beside its module's number among the symbols. */
#define OWNER_KERNEL UINT32_C(1)
#define OWNER_BEHIND UINT32_C(2) /* the stack has the address behind the instruction */
#define OWNER_SHIFT  2
_Static_assert(SYMBOLS_MODULES_MAX - 1 <= UINT32_MAX >> OWNER_SHIFT, "an owner has room for both");

int spots_init(struct spots *spots)
{
    *spots = (struct spots){
        .slots = huge_pages_new(SLOTS_MIN * sizeof *spots->slots),
        .slot_count = SLOTS_MIN,
        .count = SPOTS_NAMED,
    };
    return spots->slots == NULL || grow(spots->spots, spots->capacity, SPOTS_NAMED) < 0 ? -ENOMEM
                                                                                        : 0;
}

void spots_done(struct spots *spots)
{
    free(spots->spots);
    huge_pages_free(spots->slots, spots->slot_count * sizeof *spots->slots);
    free(spots->answers);
    free(spots->of_symbols);
    free(spots->unnamed);
    intern_done(&spots->runs);
    free(spots->run.frames);
    *spots = (struct spots){0};
}

uint64_t spots_size_bytes(const struct spots *spots)
{
    return (uint64_t)spots->count *
           (sizeof *spots->spots + sizeof *spots->slots + sizeof *spots->answers);
}

/* The slot of a spot, or the free one where it goes. */
static struct spot_slot *find_slot(const struct spots *spots, uint64_t hash, uint32_t owner,
                                   uint64_t vaddr)
{
    size_t mask = spots->slot_count - 1;
    size_t at = (size_t)hash & mask;
    while (spots->slots[at].spot != 0 &&
           (spots->slots[at].vaddr != vaddr || spots->slots[at].owner != owner)) {
        at = (at + 1) & mask;
    }
    return &spots->slots[at];
}

static int double_slots(struct spots *spots)
{
    struct spots doubled = {.slot_count = spots->slot_count * 2};
    doubled.slots = huge_pages_new(doubled.slot_count * sizeof *doubled.slots);
    if (doubled.slots == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < spots->slot_count; i++) {
        const struct spot_slot *slot = &spots->slots[i];
        if (slot->spot != 0) {
            uint64_t hash = seeded_hash_pair(slot->vaddr, slot->owner);
            *find_slot(&doubled, hash, slot->owner, slot->vaddr) = *slot;
        }
    }
    huge_pages_free(spots->slots, spots->slot_count * sizeof *spots->slots);
    spots->slots = doubled.slots;
    spots->slot_count = doubled.slot_count;
    return 0;
}

/* The daemon lays a module of this name beneath everything that a process maps. */
static bool is_unknown(const struct profile *profile, uint32_t module)
{
    return module == INTERN_NONE || profile->modules[module].is_unknown;
}

void spots_ask(const struct spots *spots, const struct profile *profile,
               const struct stack_address *address, struct mapping_validity *validity,
               struct asked_spot *ret)
{
    bool is_behind = address->is_caller && address->address > 0;
    uint64_t instruction = address->address - is_behind;
    const struct mapping *mapping =
        mappings_find(address->mappings, instruction, address->time_ns, validity);
    if (mapping == NULL || is_unknown(profile, mapping->module)) {
        ret->number = address->is_kernel ? SPOT_UNKNOWN_KERNEL : SPOT_UNKNOWN;
        return;
    }
    ret->number = SPOTS_NAMED;
    ret->spot = (struct spot){
        .vaddr = instruction - mapping->start + mapping->vaddr,
        .module = mapping->module,
        .owner = mapping->symbols << OWNER_SHIFT | (is_behind ? OWNER_BEHIND : 0) |
                 (address->is_kernel ? OWNER_KERNEL : 0),
    };
    ret->hash = seeded_hash_pair(ret->spot.vaddr, ret->spot.owner);
    __builtin_prefetch(&spots->slots[(size_t)ret->hash & (spots->slot_count - 1)]);
}

int spots_find(struct spots *spots, const struct asked_spot *asked, uint32_t *ret_spot)
{
    if (asked->number < SPOTS_NAMED) {
        *ret_spot = asked->number;
        return 0;
    }
    struct spot_slot *slot = find_slot(spots, asked->hash, asked->spot.owner, asked->spot.vaddr);
    if (slot->spot != 0) {
        *ret_spot = slot->spot;
        return 0;
    }
    if (spots->count >= UINT32_MAX || grow(spots->spots, spots->capacity, spots->count + 1) < 0 ||
        (spots->count * 2 >= spots->slot_count && double_slots(spots) < 0)) {
        return -ENOMEM;
    }
    *ret_spot = (uint32_t)spots->count;
    *find_slot(spots, asked->hash, asked->spot.owner, asked->spot.vaddr) = (struct spot_slot){
        .vaddr = asked->spot.vaddr, .owner = asked->spot.owner, .spot = *ret_spot};
    spots->spots[spots->count++] = asked->spot;
    return 0;
}

void spots_forget_frames(struct spots *spots, const struct profile *profile)
{
    if (profile->inlines.is_wanted) {
        spots->answer_count = 0;
    }
    for (size_t i = 0; i < spots->unnamed_count && spots->answer_count > 0; i++) {
        spots->answers[spots->unnamed[i]] = 0;
    }
    spots->unnamed_count = 0;
}

static int add_frame(struct profile *profile, const struct profile_frame *frame,
                     struct frame_list *list)
{
    uint32_t number = 0;
    int r = intern_add(&profile->frames, frame, sizeof *frame, &number);
    return r < 0 ? r : frame_list_append(list, &number, 1);
}

static int add_named(struct profile *profile, uint32_t spot, struct frame_list *list)
{
    static const char *const names[SPOTS_NAMED] = {
        [SPOT_UNKNOWN] = "[unknown]",       [SPOT_UNKNOWN_KERNEL] = "[unknown]",
        [SPOT_IN_KERNEL] = "[kernel]",      [SPOT_KERNEL_THREAD] = "[kernel thread]",
        [SPOT_NO_STACK] = PROFILE_NO_STACK,
    };
    struct profile_frame frame = {
        .module = INTERN_NONE,
        .is_kernel = spot == SPOT_UNKNOWN_KERNEL,
        .file = INTERN_NONE,
    };
    int r = intern_add(&profile->texts, names[spot], strlen(names[spot]), &frame.name);
    return r < 0 ? r : add_frame(profile, &frame, list);
}

/*
 * What stands for a function that nothing names: the module's name where an address in it says
 * nothing, else that and where the function begins or, if that is not known, the address that the
 * stack has.
 */
static int name_unnamed(struct spots *spots, struct profile *profile, uint32_t number,
                        bool is_nameless, uint32_t *ret_name)
{
    const struct spot *spot = &spots->spots[number];
    const struct profile_module *module = &profile->modules[spot->module];
    if (module->is_anonymous || is_nameless) {
        *ret_name = module->basename;
        return 0;
    }
    cleanup_(freep) char *name = NULL;
    uint64_t address = spot->vaddr + ((spot->owner & OWNER_BEHIND) != 0);
    const struct unnamed_function *function = NULL;
    if (unnamed_add(&profile->unnamed, spot->module, spot->vaddr, &function) < 0) {
        return -ENOMEM;
    }
    if (function != NULL) {
        address = function->start;
    } else if (grow(spots->unnamed, spots->unnamed_capacity, spots->unnamed_count + 1) < 0) {
        return -ENOMEM;
    } else {
        spots->unnamed[spots->unnamed_count++] = number;
    }
    int bytes = asprintf(&name, "%s+0x%" PRIx64, profile_text(profile, module->basename), address);
    if (bytes < 0) {
        name = NULL;
        return -ENOMEM;
    }
    return intern_add(&profile->texts, name, (size_t)bytes, ret_name);
}

/* Adds `function`, and before it what debugging information says was inlined there. */
static int add_inlined(struct profile *profile, const struct profile_frame *function,
                       uint64_t vaddr, struct frame_list *list)
{
    struct profile_frame frame = *function;
    size_t known_count = 0;
    const struct inline_frame *known =
        inlines_find(&profile->inlines, function->module, vaddr, &known_count);
    int r = known_count > 0 ? 0 : add_frame(profile, function, list);
    for (size_t i = 0; i < known_count && r == 0; i++) {
        frame.is_inlined = i + 1 < known_count;
        frame.name = frame.is_inlined != 0 ? known[i].name : function->name;
        frame.file = known[i].file;
        frame.line = known[i].line;
        r = add_frame(profile, &frame, list);
    }
    return r;
}

/* The name that debugging information has for the function itself, or INTERN_NONE. */
static uint32_t find_other_name(const struct profile *profile, const struct spot *spot)
{
    size_t count = 0;
    const struct inline_frame *known =
        inlines_find(&profile->inlines, spot->module, spot->vaddr, &count);
    return count > 0 ? known[count - 1].name : INTERN_NONE;
}

/* Adds the frames of an address of a module, in the function `symbol`; NULL: none is told. */
static int add_address(struct spots *spots, struct profile *profile, uint32_t number,
                       const struct symbol_entry *symbol, struct frame_list *list)
{
    const struct symbols *symbols = &profile->tables->symbols;
    const struct spot *spot = &spots->spots[number];
    struct profile_frame frame = {
        .name = symbol != NULL ? symbol->name : find_other_name(profile, spot),
        .module = spot->module,
        .is_kernel = (spot->owner & OWNER_KERNEL) != 0,
        .file = INTERN_NONE,
    };
    int r = 0;
    if (profile->inlines.is_wanted) {
        r = inlines_add(&profile->inlines, spot->module, spot->vaddr);
    }
    if (r == 0 && frame.name == INTERN_NONE) {
        /* The daemon, or its worker, could not read the kernel's names. */
        bool is_nameless =
            frame.is_kernel != 0 && !symbols_know(symbols, spot->owner >> OWNER_SHIFT);
        r = name_unnamed(spots, profile, number, is_nameless, &frame.name);
    }
    return r < 0 ? r : add_inlined(profile, &frame, spot->vaddr, list);
}

/* Makes the frames in `run` an answer. */
static int find_answer(struct spots *spots, uint32_t *ret_answer)
{
    const struct frame_list *run = &spots->run;
    uint32_t number = run->frames[0];
    int r = 0;
    if (run->count > 1) {
        r = intern_add(&spots->runs, run->frames, run->count * sizeof *run->frames, &number);
        number |= ANSWER_IS_RUN;
    }
    *ret_answer = number + 1;
    return r;
}

/* Where the answer of all spots in a function is kept. NULL: theirs may differ, or there is no
 * memory. */
static uint32_t *shared_answer(struct spots *spots, const struct profile *profile,
                               const struct spot *spot, const struct symbol_entry *symbol)
{
    const struct symbols *symbols = &profile->tables->symbols;
    if (symbol == NULL || (spot->owner & OWNER_KERNEL) != 0 || profile->inlines.is_wanted) {
        return NULL;
    }
    if (spots->of_symbols == NULL) {
        spots->of_symbols = calloc(symbols->count, sizeof *spots->of_symbols);
    }
    return spots->of_symbols == NULL ? NULL : &spots->of_symbols[symbol - symbols->entries];
}

/* Finds the answer of a spot that has none. */
static int answer_spot(struct spots *spots, struct profile *profile, uint32_t number)
{
    const struct spot *spot = &spots->spots[number];
    const struct symbol_entry *symbol = NULL;
    uint32_t *shared = NULL;
    if (number >= SPOTS_NAMED) {
        symbol = symbols_find(&profile->tables->symbols, spot->owner >> OWNER_SHIFT, spot->vaddr);
        shared = shared_answer(spots, profile, spot, symbol);
    }
    if (shared != NULL && *shared != 0) {
        spots->answers[number] = *shared;
        return 0;
    }
    spots->run.count = 0;
    int r = number < SPOTS_NAMED ? add_named(profile, number, &spots->run)
                                 : add_address(spots, profile, number, symbol, &spots->run);
    r = r < 0 ? r : find_answer(spots, &spots->answers[number]);
    if (r == 0 && shared != NULL) {
        *shared = spots->answers[number];
    }
    return r;
}

/* Makes room for an answer of each spot; those that are new have none. */
static int grow_answers(struct spots *spots)
{
    if (grow(spots->answers, spots->answer_capacity, spots->count) < 0) {
        return -ENOMEM;
    }
    memset(spots->answers + spots->answer_count, 0,
           (spots->count - spots->answer_count) * sizeof *spots->answers);
    spots->answer_count = spots->count;
    return 0;
}

int spots_append_frames(struct spots *spots, struct profile *profile, uint32_t spot,
                        struct frame_list *list)
{
    int r = spot < spots->answer_count ? 0 : grow_answers(spots);
    if (r == 0 && spots->answers[spot] == 0) {
        r = answer_spot(spots, profile, spot);
    }
    if (r < 0) {
        return r;
    }
    uint32_t number = spots->answers[spot] - 1;
    if ((number & ANSWER_IS_RUN) == 0) {
        return frame_list_append(list, &number, 1);
    }
    size_t run_bytes = 0;
    const uint32_t *frames = intern_bytes(&spots->runs, number & ~ANSWER_IS_RUN, &run_bytes);
    size_t count = run_bytes / sizeof *frames;
    size_t passed_over = list->count > LIST_LONG ? count - 1 : 0;
    return frame_list_append(list, frames + passed_over, count - passed_over);
}
