/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What of an OTLP request is the same in an export and in what is sent: where samples come from,
 * what they count, what wrote them, and the books of the recording.
 */

#include "message_out.h"
#include "otlp_dictionary.h"
#include "profile.h"

#include <otlp.pb-c.h>
#include <stddef.h>
#include <stdint.h>

/* Field numbers of what is written around messages. */
enum {
    OTLP_FIELD_RESOURCE_PROFILES = 1, /* of the request, as the next */
    OTLP_FIELD_DICTIONARY = 2,
    OTLP_FIELD_SCOPE_PROFILES = 2, /* of a resource's profiles */
    OTLP_FIELD_PROFILES = 2,       /* of a scope's profiles */
    OTLP_FIELD_SAMPLES = 2         /* of a profile */
};

/* Where samples come from. Texts are borrowed; of those of a recording, what is not UTF-8 is
 * written as U+FFFD. */
struct otlp_origin {
    const char *service;
    const char *executable; /* the process's name; NULL: it is not of one process */
    const char *host;       /* NULL: not known */
    uint64_t pid;           /* PROFILE_PID_OUTSIDE: none */
    struct profile_owner owner;
};

/* Write the head of a resource's profiles, and of a scope's. Return 0, or -ENOMEM. */
int otlp_write_resource(struct message_out *out, const struct profile *profile,
                        const struct otlp_origin *origin);
int otlp_write_scope(struct message_out *out);

/* Names what the samples of the dictionary's profile count, and what their period is in. A store
 * names a profile by the latter, or where there is none, as of waits, by the former. */
void otlp_name_types(struct otlp_dictionary *dictionary, Otlp__ValueType *samples,
                     Otlp__ValueType *period);

/* The period of samples, in units of its type; 0: it is not known, or there is none. */
uint64_t otlp_period(const struct profile *profile);

/* A line of the books is an attribute of a profile. */
#define OTLP_BOOKS_MAX 64
struct otlp_books {
    int32_t attributes[OTLP_BOOKS_MAX];
    size_t count;
};

/* Adds the books of the dictionary's profile to it. The dictionary keeps its faults. */
void otlp_books_add(struct otlp_books *books, struct otlp_dictionary *dictionary);
