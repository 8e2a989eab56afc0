/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a format prints of a text of a profile, or of a frame, again and again: each made once, when
 * it is first wanted. A function's name is in many frames, and a frame in many samples.
 */

#include "profile.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct text_form {
    char *text; /* owned; NULL: not made yet */
    size_t text_bytes;
};

/* Prints the form of a number: of a text, or of a frame. */
typedef void text_form_fn(FILE *file, const struct profile *profile, uint32_t number);

struct text_forms {
    const struct profile *profile; /* borrowed; with all its texts and frames */
    text_form_fn *print;
    struct text_form *forms; /* owned; by number */
    size_t count;
    FILE *memory; /* owned; where a form is printed, into the bytes that follow */
    char *printed;
    size_t printed_bytes;
};

/* For the profile's texts, or its frames. Return 0, or -ENOMEM. */
int text_forms_init(struct text_forms *table, const struct profile *profile, text_form_fn *print);
int text_forms_init_frames(struct text_forms *table, const struct profile *profile,
                           text_form_fn *print);
void text_forms_done(struct text_forms *table);

/* The form of a number; borrowed. NULL when there is no memory. */
const struct text_form *text_forms_get(struct text_forms *table, uint32_t number);
