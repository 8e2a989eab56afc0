/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flame graphs of a recording: a page for a browser, which has every sample in it and needs nothing
 * else, and a still picture.
 */

#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What the first frame names. */
enum flame_by {
    FLAME_BY_NOTHING, /* there is none: stacks of all tasks are one graph */
    FLAME_BY_UNIT,    /* the systemd unit or the container */
    FLAME_BY_COMMAND, /* all processes of a name */
    FLAME_BY_PROCESS,
    FLAME_BY_THREAD,
    FLAME_BYS,
};

/* "none", "unit", "command", "process", "thread": the words of options and of the page's address;
 * NULL behind the last. */
const char *flame_by_name(size_t by);

struct flame_source {
    const struct profile *profile;
    const char *name; /* what the page calls it */
    bool is_whole;    /* of a whole machine, so that two are compared by the time of all CPUs */
    const char *host; /* "web1 (Linux 6.1.0)"; NULL: the page does not say it, as the next */
    const char *what; /* was recorded */
};

/* What several sources of a page are to each other. */
enum flame_pair {
    FLAME_COMPARED, /* two recordings: the page shows how the second differs from the first */
    FLAME_SWITCHED, /* events of one recording: the page shows one of them at a time */
};

/*
 * Prints a page of one source, of two that are compared, or of the events of one recording. `by` is
 * what it shows first. Returns 0, or -ENOMEM; errors of the stream are for the caller to find.
 */
int flamegraph_print_page(FILE *file, const struct flame_source *sources, size_t count,
                          enum flame_pair pair, enum flame_by by);

/* Recordings of two sides that are compared, as a page needs them. */
struct flame;

/* Returned: flamegraph_freep(). NULL when there is no memory. */
struct flame *flamegraph_new(void);
void flamegraph_freep(struct flame **flame);

/* Adds a recording to side 0 or 1; its profile is needed until the page is printed. Returns 0, or
 * -ENOMEM. */
int flamegraph_add(struct flame *flame, const struct flame_source *source, size_t side);

/* What the page says of a comparison, and where its numbers come from. */
struct flame_verdict {
    const char *head;     /* lines: what its numbers are, and how sure they are */
    const char *warnings; /* lines: what to mind; "" if nothing is */
    const char *json;     /* the object of docs/diff.schema.json */
};

/* Prints the page of a comparison, with both sides. Returns as flamegraph_print_page(). */
int flamegraph_print_difference(FILE *file, const struct flame *flame,
                                const struct flame_verdict *verdict, enum flame_by by);

/* Prints an SVG of one recording. Returns as the other. */
int flamegraph_print_svg(FILE *file, const struct flame_source *source, enum flame_by by);
