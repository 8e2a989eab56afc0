/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lets one allocation of a program fail. Its link options are
 * ${failing_allocation} of tests.cmake; allocations within shared libraries are not counted.
 * To be included once.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
char *__wrap_strdup(const char *text);
__attribute__((format(printf, 2, 3))) int __wrap_asprintf(char **ret, const char *format, ...);

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

char *__wrap_strdup(const char *text)
{
    return allocation_fails() ? NULL : __real_strdup(text);
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
    va_list arguments;
    if (allocation_fails()) {
        return -1;
    }
    va_start(arguments, format);
    int bytes = vasprintf(ret, format, arguments);
    va_end(arguments);
    return bytes;
}
