/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where in a function the time went: by lines of its source where debugging information has them
 * and the source is on this machine, else by instructions. `self` counts the samples that were
 * there (of another event than the clock, what they stand for), `total` also those that were in
 * what the function had called from there, each stack once. By lines, functions that were inlined
 * are called; by instructions they are a part of the code.
 *
 * A function is one of one build of a module. Code of that name may be in several places: several
 * static functions have it, or it was inlined. Each such place is a part with its own instructions.
 */

#include "lines_code.h"
#include "page.h"
#include "profile.h"
#include "summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum annotation_kind {
    ANNOTATION_SOURCE,
    ANNOTATION_CODE,
};

/* A line or an instruction that samples were at. */
struct annotation_row {
    uint32_t file;    /* of the profile's texts, or INTERN_NONE; of source, as the next */
    uint32_t line;    /* 0: not known */
    uint64_t address; /* the module's own; of code, as the next */
    size_t part;
    uint64_t self;
    uint64_t total;
};

/* The function in whose code samples were: the one that is shown, or one that it was inlined into.
 */
struct annotation_part {
    uint32_t name; /* of the profile's texts */
    uint64_t self;
    uint64_t total;
    struct lines_range range; /* empty where its code is not known */
    size_t first_row;
    size_t row_count;
};

/* A line of source that is shown, hot or not. */
struct annotation_text {
    uint64_t line; /* from 1 on */
    char *text;    /* owned */
};

#define ANNOTATION_SOURCE_MIB_MAX 16

struct annotation {
    enum annotation_kind kind;
    uint32_t name;     /* of the function; of the profile's texts */
    uint32_t module;   /* its path; or INTERN_NONE */
    uint32_t build_id; /* of the module, in hex; "" where it has none; or INTERN_NONE */
    uint64_t self;
    uint64_t total;
    size_t other_count;       /* functions that also match, with fewer samples */
    size_t other_build_count; /* of them: of this name, in other builds of the module */
    uint64_t whole;           /* of all samples, wherever they were */
    uint32_t missing_source;  /* the file of most samples, if it cannot be read; or INTERN_NONE */
    int missing_error;        /* why: -errno; -EFBIG: it is larger than ANNOTATION_SOURCE_MIB_MAX */
    bool has_newer_source;    /* a file was changed after the recording */
    struct annotation_row *rows; /* owned; by file and line, or by part and address */
    size_t row_capacity;
    size_t row_count;
    struct annotation_file *files; /* owned; source files; the one of most samples first */
    size_t file_count;
    struct annotation_part *parts; /* owned; of code; the one with the most samples first */
    size_t part_capacity;
    size_t part_count;
    struct lines_code code; /* the instructions, where their file is there */
};

/* A source file, and of it what is shown. */
struct annotation_file {
    uint32_t file;                 /* of the profile's texts */
    int error;                     /* 0: it was read; or -errno, -EFBIG as above */
    struct annotation_text *texts; /* owned; by line */
    size_t text_capacity;
    size_t text_count;
};

/*
 * Annotates the function of that name or, where no function has it, that matches it as a glob; of
 * several the one with the most samples. The profile has lines (lines.h). Returns 0, -ENOMEM, or
 * ANNOTATION_NO_FUNCTION. In any case annotation_done() releases it.
 */
#define ANNOTATION_NO_FUNCTION 1
int annotation_build(const struct profile *profile, const char *function, struct annotation *ret);
void annotation_done(struct annotation *annotation);

void annotation_print_text(const struct page *page, const struct profile *profile,
                           const struct summary *summary, const struct annotation *annotation);
void annotation_print_json(FILE *file, const struct profile *profile, const struct summary *summary,
                           const struct annotation *annotation);
