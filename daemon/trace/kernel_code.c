/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An array without an order: changes are rare and lookups are for addresses near such code only.
 */
#include "kernel_code.h"

#include "extremes.h"
#include "grow.h"

#include <stdlib.h>
#include <string.h>

struct kernel_code {
    struct kernel_function *functions; /* owned */
    size_t count;
    size_t capacity;
    uint32_t epoch;
    uint64_t start; /* where the lowest begins, */
    uint64_t end;   /* and the highest ends: of all that ever were */
};

struct kernel_code *kernel_code_new(void)
{
    struct kernel_code *code = calloc(1, sizeof *code);
    if (code != NULL) {
        code->start = UINT64_MAX;
    }
    return code;
}

struct kernel_code *kernel_code_free(struct kernel_code *code)
{
    if (code != NULL) {
        free(code->functions);
        free(code);
    }
    return NULL;
}

uint32_t kernel_code_epoch(const struct kernel_code *code)
{
    return code->epoch;
}

/* A place for one more; that of what has been gone for longest where there is no other. */
static struct kernel_function *find_place(struct kernel_code *code)
{
    if (code->count < KERNEL_CODE_MAX) {
        void *grown = grow_array(code->functions, sizeof *code->functions, &code->capacity,
                                 code->count + 1, 16);
        if (grown != NULL) {
            code->functions = grown;
            return &code->functions[code->count++];
        }
    }
    struct kernel_function *oldest = NULL;
    for (size_t i = 0; i < code->count; i++) {
        struct kernel_function *function = &code->functions[i];
        if (function->to_ns != UINT64_MAX && (oldest == NULL || function->to_ns < oldest->to_ns)) {
            oldest = function;
        }
    }
    return oldest;
}

static bool add(struct kernel_code *code, const struct kernel_function *function)
{
    struct kernel_function *place = find_place(code);
    code->epoch++;
    if (place == NULL) {
        return false;
    }
    *place = *function;
    code->start = min_u64(code->start, function->start);
    code->end = max_u64(code->end, function->start + function->size_bytes);
    return true;
}

static bool overlap(const struct kernel_function *a, const struct kernel_function *b)
{
    return a->start < b->start + b->size_bytes && b->start < a->start + a->size_bytes;
}

bool kernel_code_come(struct kernel_code *code, const struct kernel_function *function)
{
    /* What was there is gone, though the word of it was lost. */
    for (size_t i = 0; i < code->count; i++) {
        struct kernel_function *other = &code->functions[i];
        if (other->to_ns == UINT64_MAX && overlap(other, function)) {
            other->to_ns = function->from_ns;
        }
    }
    return add(code, function);
}

bool kernel_code_go(struct kernel_code *code, const struct kernel_function *function,
                    uint64_t time_ns)
{
    for (size_t i = 0; i < code->count; i++) {
        struct kernel_function *there = &code->functions[i];
        if (there->to_ns == UINT64_MAX && there->start == function->start) {
            there->to_ns = time_ns;
            code->epoch++;
            return true;
        }
    }
    struct kernel_function gone = *function;
    gone.from_ns = 0;
    gone.to_ns = time_ns;
    return add(code, &gone);
}

struct kernel_function *kernel_code_find(struct kernel_code *code, uint64_t address,
                                         uint64_t time_ns, bool *ret_is_known)
{
    struct kernel_function *found = NULL;
    *ret_is_known = false;
    for (size_t i = 0; address >= code->start && address < code->end && i < code->count; i++) {
        struct kernel_function *function = &code->functions[i];
        if (address - function->start >= function->size_bytes) {
            continue;
        }
        *ret_is_known = true;
        if (function->from_ns <= time_ns &&
            (found == NULL || found->from_ns <= function->from_ns)) {
            found = function;
        }
    }
    return found;
}

struct kernel_function *kernel_code_at(struct kernel_code *code, size_t index)
{
    return index < code->count ? &code->functions[index] : NULL;
}
