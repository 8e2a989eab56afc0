/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lets one allocation of a program fail. Its link options are
 * LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc; allocations within shared libraries are not
 * counted. To be included once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many allocations succeed before one does not. */
static size_t good_allocations = SIZE_MAX;

static bool allocation_fails(void)
{
    return good_allocations-- == 0;
}

/* The linker calls these in the place of those of the C library, which it calls __real_. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return allocation_fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return allocation_fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *block, size_t bytes)
{
    return allocation_fails() ? NULL : __real_realloc(block, bytes);
}
