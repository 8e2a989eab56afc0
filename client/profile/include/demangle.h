/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "intern.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Readable names of functions of C++ and of Rust, whose compilers write them in an encoding.
 * Parameters and hashes are left out: `ns::list<int>::push`, `core::fmt::write`.
 */

/* A longer readable name is none: the encoding can make very much out of little. */
#define DEMANGLED_BYTES_MAX ((size_t)4096)

/* All zero at first. */
struct demangler {
    bool keeps_mangled;      /* demangle_add() leaves names as the compiler wrote them */
    unsigned exploded_count; /* names whose readable form was too long */
};

/*
 * Writes what a name means, as valid UTF-8, into `ret`, which has DEMANGLED_BYTES_MAX bytes.
 * "@plt" behind it is kept. False when it is in no encoding that is known, or too long; and after
 * many that were too long, always: such a recording was made to be slow.
 */
bool demangle_name(struct demangler *demangler, const char *name, char *ret);

/* The number in `texts` of a name as people know it. Returns 0, or -ENOMEM. */
int demangle_add(struct demangler *demangler, struct intern *texts, const char *name,
                 uint32_t *ret_text);
