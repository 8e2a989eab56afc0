/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The texts of a profile in the form that a format has them, each made once, when it is first
 * wanted: a function's name is in many frames, and a frame in many samples.
 */

#include "profile.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct text_form {
    char *text; /* owned; NULL: not made yet */
    size_t text_bytes;
};

struct text_forms {
    const struct profile *profile;               /* borrowed; with all its texts */
    void (*print)(FILE *file, const char *text); /* prints the form */
    struct text_form *forms;                     /* owned; by text of the profile */
};

/* Returns 0, or -ENOMEM. */
int text_forms_init(struct text_forms *table, const struct profile *profile,
                    void (*print)(FILE *file, const char *text));
void text_forms_done(struct text_forms *table);

/* The form of a text; borrowed. NULL when there is no memory. */
const struct text_form *text_forms_get(struct text_forms *table, uint32_t text);
