/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs that make code while they run, and what has each name it: for one that will be started,
 * and for one that runs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RUNTIME_NONE ((size_t)-1)

/* How one that runs is asked for a map of the code that it has made. */
enum runtime_asking {
    RUNTIME_NOT_ASKED,
    RUNTIME_BY_ATTACH,      /* HotSpot's socket of attached programs */
    RUNTIME_BY_DIAGNOSTICS, /* the socket of .NET's tools */
};

struct runtime {
    const char *command;  /* its name begins so */
    const char *library;  /* a mapped file's name begins so; NULL: none tells */
    const char *kind;     /* what to call it */
    const char *names_it; /* a clause for what was recorded */
    const char *setting;  /* of the environment, for the next start; NULL: none does */
    const char *running;  /* the program that has one that runs name it; NULL: none can */
    enum runtime_asking asking;
};

const struct runtime *runtime_get(size_t index);

/* The first that a command's name may be; RUNTIME_NONE: none. */
size_t runtime_of_command(const char *command);

/* What the mappings of a process say. Zeros but for `inner`: nothing was looked at. */
struct runtime_mappings {
    pid_t inner;      /* of the process in its own namespace, for the name of its jitdump */
    bool has_library; /* of a runtime */
    bool has_dump;    /* "jit-PID.dump" */
    bool is_cut;      /* there are more than were looked at */
    size_t library;   /* the first of the table that is mapped */
    size_t runtime;   /* that it is of; RUNTIME_NONE: a Python that cannot name what it runs */
};

/* Takes what whole lines of /proc/PID/maps say, beside what earlier lines have said. Pure. */
void runtime_mappings_take(struct runtime_mappings *mappings, const char *lines);

/* Takes all lines of a file like /proc/PID/maps (borrowed), within the bound of maps_lines.h.
 * Returns 0, or -errno. */
int runtime_mappings_read(int fd, pid_t inner, struct runtime_mappings *ret);

/* What runs behind a file of that base name with such mappings. Where they are cut, the name of a
 * runtime is enough. Pythons before 3.12 cannot name what they run, and make no code: RUNTIME_NONE.
 */
size_t runtime_of_process(const char *base_name, const struct runtime_mappings *mappings);

/* Whether a command line or an environment (NULs between its texts) has the text in one of them. */
bool runtime_has_option(const char *texts, size_t texts_bytes, const char *option);
