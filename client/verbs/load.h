/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lines.h"
#include "options.h"
#include "profile.h"
#include "selection.h"

/* What a verb was asked to show of what files of this machine know. */
enum load_detail {
    LOAD_FUNCTIONS, /* functions: those that the recording names, and where others begin */
    LOAD_INLINED,   /* inlined functions */
    LOAD_LINES,     /* these, and files and lines */
    LOAD_ADDRESSES, /* nothing: no file is opened, and what has no name is shown by its address */
};

/* What to do where no event was asked for, and the clock has no sample, or none that is selected:
 * as of a process that hangs. Other events may have some, waits first. */
enum load_elsewhere {
    LOAD_ELSEWHERE_NAMED,  /* that event is named */
    LOAD_ELSEWHERE_SHOWN,  /* it is loaded in the clock's place, which is said */
    LOAD_ELSEWHERE_UNSAID, /* nothing */
};

struct load_request {
    const char *path;                  /* borrowed; "-": standard input */
    const struct selection *selection; /* borrowed */
    enum profile_names names;
    enum load_detail detail;
    bool shows_selection; /* the verb says itself how much is selected */
    enum load_elsewhere elsewhere;
};

/*
 * Loads a recording for a verb, leaves what is selected of it, and adds what was asked for. Says on
 * standard error how much is selected, unless the verb does. Complains if anything fails, if the
 * recording is cut off or damaged, if servers that were to be asked cannot be, or if there was no
 * room for all that samples have. `*ret` (returned: profile_free()) is what can be shown; NULL:
 * nothing. Returns the exit status that this makes, however well the showing goes.
 */
int load_recording(const struct load_request *request, struct profile **ret);

/* The waits of a recording: "off-cpu" and "preempted", as far as there are such. All zero: none. */
#define LOAD_WAITS_MAX ((size_t)2)
struct waits {
    struct profile *profiles[LOAD_WAITS_MAX]; /* owned; `count` of them */
    size_t count;
};
void waits_done(struct waits *waits);

/*
 * Loads the waits of a recording that was loaded for the same request, whose profile this is, so
 * that all can be shown, but for those that it has itself. Says nothing, since all was said then.
 * There are none to show where none were recorded, or are selected, another event was asked for, or
 * the recording cannot be read again. Returns an exit status.
 */
int load_waits(const struct load_request *request, const struct profile *profile,
               struct waits *ret);

/*
 * Loads another event of a recording that was loaded for the same request, so that both can be
 * shown. Complains where it cannot be read, or has no such event. Returns an exit status; `*ret` is
 * NULL but with EXIT_DONE.
 */
int load_event(const struct load_request *request, const char *event, struct profile **ret);

/* The options that say how much is shown of names and lines: `detail_at` is where an enum
 * load_detail is, `names_at` an enum profile_names. Each verb says what inlined functions and lines
 * become. */
#define OPTION_INLINE(detail_at, text)                                                             \
    {                                                                                              \
        0, "inline", NULL, text, options_raise, (detail_at), LOAD_INLINED                          \
    }
#define OPTION_LINES(detail_at, text)                                                              \
    {                                                                                              \
        0, "lines", NULL, "the same, and " text, options_raise, (detail_at), LOAD_LINES            \
    }
#define OPTION_NO_DEMANGLE(names_at)                                                               \
    {                                                                                              \
        0, "no-demangle", NULL, "names of C++ and Rust as compilers write them", options_raise,    \
            (names_at), PROFILE_NAMES_MANGLED                                                      \
    }
#define OPTION_ADDRESSES(detail_at)                                                                \
    {                                                                                              \
        0, "addresses", NULL,                                                                      \
            "functions without a name are shown by each address;\nno file is opened for them",     \
            options_raise, (detail_at), LOAD_ADDRESSES                                             \
    }
#define OPTIONS_DETAIL(detail_at, names_at, inline_text, lines_text)                               \
    OPTION_INLINE(detail_at, inline_text), OPTION_LINES(detail_at, lines_text),                    \
        OPTION_NO_DEMANGLE(names_at), OPTION_ADDRESSES(detail_at)

/* What --inline does in verbs whose frames are those of stacks. */
#define INLINE_FRAMES                                                                              \
    "functions that were inlined are frames too; report --help\nsays what that needs"

/* Complains about files that ended the child which read them, if there are any. */
void complain_losses(const struct lines_losses *losses);

/* Complains about a recording that is cut off or damaged. Returns EXIT_FAILED. */
int complain_truncated(const char *path, const struct input_summary *input);
