/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every verb does the same: its options, its help, its complaints. One table of a verb is what
 * the command line is parsed by and what --help prints. A complaint reads
 *     profctl: what happened; what to do
 * and goes to standard error. With --json it is an object, {"message":"what happened; ..."}.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_WRONG_USAGE = 2,
    EXIT_ABOVE_LIMIT = 3, /* of `diff --fail-above`: something grew more than was allowed */
    EXIT_NO_SAMPLE = 4,   /* of `record`: all went well, and there was nothing to record */
};

/* What options_take() and its helpers return when the verb goes on; else an exit status. */
#define OPTIONS_TAKEN (-1)

struct command_line;
struct verb_option;

/* Takes an option's `value` (borrowed; NULL: the option has none) into the member that `at` names.
 * Returns EXIT_DONE, or another exit status after a complaint. */
typedef int option_take_fn(const struct command_line *line, const struct verb_option *option,
                           const char *value, void *into);

/* The words that an option may have as its value, by their number; NULL behind the last. */
typedef const char *option_choice_fn(size_t number);

/* Without letter and name, `help` is a title above the options that follow. {0} ends a table. */
struct verb_option {
    int letter;           /* '\0': none */
    const char *name;     /* of the long option; NULL: none */
    const char *argument; /* what --help calls the value; NULL: it takes none */
    const char *help;     /* lines, of which the last has no newline */
    option_take_fn *take;
    size_t at;                /* of the member in the verb's request */
    size_t level;             /* of options_raise(), which sets an unsigned */
    option_choice_fn *choice; /* of options_choice(), which sets an unsigned; NULL: any value */
};

/* An option of another program that people may type here. {0} ends a table. */
struct option_elsewhere {
    const char *word;    /* "-g", "--call-graph" */
    const char *instead; /* what is to be done here, as the end of a sentence */
};

struct command_line {
    const char *usage;                        /* "profctl report FILE [-n N]" */
    const char *help;                         /* what it does, whole lines */
    const char *more_help;                    /* below the options, whole lines; NULL: nothing */
    const struct verb_option *options;        /* --help is every verb's, and not in it */
    const struct option_elsewhere *elsewhere; /* NULL: none */
    const char *operand;         /* what the only operand is ("recording"); NULL: none */
    const char *operand_example; /* of one that is no recording; NULL: it is one */
    const char *operand_default; /* the file that is taken without one, if it is there; or NULL */
    const char *instead;         /* of an operand where it takes none; NULL: nothing to say */
    bool has_command;            /* the operands are a command after "--", or none */
    size_t operand_at; /* in the request: const char *, or char ** of a command; stays without */
    size_t second_at;  /* of a second recording, which may be left out; 0: it takes only one */
    option_take_fn *take_operand; /* takes each of any number of operands, and options between them,
                                   * in the order of the line, into what is at `operand_at`; without
                                   * an option. NULL: there is one operand at most, or two */
};

/*
 * Takes all options and operands of `argv`, of which argv[0] is the verb, into the verb's
 * `request`. Returns OPTIONS_TAKEN; EXIT_DONE: help has been printed; else another status after a
 * complaint.
 */
int options_take(const struct command_line *line, int argc, char **argv, void *request);

/*
 * From now on options_take() prints what a shell may put in the place of the last of `argv`, and
 * returns EXIT_DONE: a line each, with a TAB and a description behind it where there is one;
 * ":files" stands for the names of files, ":commands" for those of commands.
 */
void options_complete_instead(void);

/* Ways to take a value: a flag (bool); a text (const char *, borrowed), any, or not an empty one
 * that is a name, or the path of a socket or an output; a rate of samples a second (uint64_t); a
 * level that only goes up (unsigned, or an enum); the number of one of the option's words (the
 * same). */
option_take_fn options_flag, options_text, options_name, options_socket, options_output,
    options_frequency, options_raise, options_choice;

/* "command, process, thread". `into` has room for OPTIONS_CHOICES_BYTES; returns it. */
#define OPTIONS_CHOICES_BYTES ((size_t)512)
const char *options_list_choices(option_choice_fn *choice, char *into);

/* The two options that many verbs have. `at` is the member's place in the request. */
#define OPTION_JSON(at)                                                                            \
    {                                                                                              \
        0, "json", NULL, "one JSON object", options_flag, (at), 0                                  \
    }
#define OPTION_SOCKET(at)                                                                          \
    {                                                                                              \
        0, "socket", "PATH", "the daemon's socket (/run/cpu-profilerd/control.sock)",              \
            options_socket, (at), 0                                                                \
    }

/* A whole decimal number of at most `maximum`. */
bool options_number(const char *text, uint64_t maximum, uint64_t *ret);

/* The decimal number, without a sign, that a text begins with; `*ret_end` is what follows, `text`
 * if there is none. */
double options_decimal(const char *text, const char **ret_end);

/* A rate in Hz, of at most `maximum_hz`: such a number, of thousands where k is behind it. */
bool options_rate(const char *text, uint64_t maximum_hz, uint64_t *ret_hz);

/* Complains and adds the usage. Returns EXIT_WRONG_USAGE. */
int options_refuse(const struct command_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says a sentence on standard error, with "profctl: " before it. Returns EXIT_FAILED. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
