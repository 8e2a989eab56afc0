/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every verb does the same: its options, its help, its complaints. A complaint reads
 *     profctl: what: why; what to do
 * and goes to standard error.
 */

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_WRONG_USAGE = 2,
};

struct command_line {
    const char *usage;         /* "profctl report FILE [-n N]" */
    const char *help;          /* what it does and the options, whole lines */
    const char *short_options; /* getopt's; begins with ':', or "+:" where a command may follow */
    const struct option *long_options;
};

/* Values of `struct option` that have no letter; `--help` is every verb's. */
#define OPTION_HELP    0x100
#define OPTION_OF_VERB 0x101 /* and upward */

/* What options_next() returns instead of an option. */
#define OPTIONS_END   (-1) /* the operands begin at argv[optind] */
#define OPTIONS_HELP  (-2) /* help has been printed */
#define OPTIONS_WRONG (-3) /* a complaint has been printed */

/* The next option's letter or value, with `optarg`, or one of OPTIONS_*. */
int options_next(const struct command_line *line, int argc, char **argv);

/* A whole decimal number of at most `maximum`. */
bool options_number(const char *text, uint64_t maximum, uint64_t *ret);

/* A rate of samples a second, as -F takes it; else complains, and returns false. */
bool options_frequency(const struct command_line *line, const char *text, uint64_t *ret_hz);

/* The path of a socket, as --socket takes it (`*ret` borrowed); else complains, and returns false.
 */
bool options_socket(const struct command_line *line, const char *text, const char **ret);

/* The only operand, `what` it is ("recording"); else complains, and returns false. */
bool options_one_operand(const struct command_line *line, int argc, char **argv, const char *what,
                         const char **ret);

/* Complains and adds the usage. Returns EXIT_WRONG_USAGE. */
int options_refuse(const struct command_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says a sentence on standard error, with "profctl: " before it. Returns EXIT_FAILED. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
