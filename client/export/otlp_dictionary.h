/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The dictionary of an OTLP request: strings, attributes, and the tables of locations and stacks.
 * All is added first, then it is written. Indices count from 1: the first entry of each table is
 * empty.
 */

#include "locations.h"
#include "message_out.h"

#include <stddef.h>
#include <stdint.h>

struct otlp_dictionary {
    const struct profile *profile; /* borrowed */
    struct locations locations;
    struct intern strings;    /* as they are written, from 0: "" */
    struct intern attributes; /* struct otlp_attribute */
    struct intern functions;  /* struct otlp_function */
    struct intern modules;    /* numbers of the profile's; those that locations are in */
    int fault;                /* the first -errno; what is added then has no meaning */
};

/* Begins with what each dictionary has. `fault` says whether that went well. */
void otlp_dictionary_init(struct otlp_dictionary *dictionary, const struct profile *profile);
void otlp_dictionary_done(struct otlp_dictionary *dictionary);

int32_t otlp_string(struct otlp_dictionary *dictionary, const char *text);
int32_t otlp_text_attribute(struct otlp_dictionary *dictionary, const char *key, const char *text);
int32_t otlp_number_attribute(struct otlp_dictionary *dictionary, const char *key, int64_t number);

/* The stack of a sample; its locations and functions are added. */
int32_t otlp_stack(struct otlp_dictionary *dictionary, const struct profile_sample *sample);
/* Fetches into the CPU's cache what otlp_stack() will look at for a sample of the profile that
 * comes soon behind the one `at`. */
void otlp_stack_fetch_ahead(const struct otlp_dictionary *dictionary, size_t at);
/* Behind the last index of a stack. */
size_t otlp_stack_count(const struct otlp_dictionary *dictionary);
/* The stack of the one frame "[lost]". */
int32_t otlp_lost_stack(struct otlp_dictionary *dictionary);

/* Adds what the tables refer to. To be called when all stacks are there: there is no otlp_stack()
 * from then on. */
void otlp_dictionary_seal(struct otlp_dictionary *dictionary);

/* Writes it as a message without what stands before it. */
void otlp_dictionary_write(struct otlp_dictionary *dictionary, struct message_out *out);
