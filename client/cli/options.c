/* SPDX-License-Identifier: Apache-2.0 */

/*
 * getopt_long() with sentences of our own. Nothing that a complaint quotes reaches a terminal as
 * control characters.
 */
#include "options.h"

#include "cleanup.h"
#include "text_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FREQUENCY_HZ_MAX UINT64_C(100000)

__attribute__((format(printf, 1, 0))) static void print_complaint(const char *format, va_list args)
{
    cleanup_(freep) char *text = NULL;
    if (vasprintf(&text, format, args) < 0) {
        text = NULL;
        return;
    }
    (void)fputs("profctl: ", stderr);
    text_print(stderr, text);
    (void)fputc('\n', stderr);
}

int complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_complaint(format, args);
    va_end(args);
    return EXIT_FAILED;
}

int options_refuse(const struct command_line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_complaint(format, args);
    va_end(args);
    (void)fprintf(stderr, "usage: %s\n", line->usage);
    return EXIT_WRONG_USAGE;
}

/* How many long options a word like "--co=x" may stand for. */
static size_t count_meant(const struct command_line *line, const char *word)
{
    size_t count = 0;
    size_t bytes = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    for (const struct option *option = line->long_options; option->name != NULL; option++) {
        count += bytes > 0 && strncmp(option->name, word + 2, bytes) == 0;
    }
    return count;
}

/* What getopt_long() calls '?'. It leaves the letter or value in `optopt`, 0 for a long option that
 * it does not know. */
static void refuse_option(const struct command_line *line, const char *word)
{
    if (optopt >= OPTION_HELP) {
        (void)options_refuse(line, "%s: takes no value", word);
    } else if (optopt > 0) {
        (void)options_refuse(line, "-%c: there is no such option; see --help", optopt);
    } else if (count_meant(line, word) > 1) {
        (void)options_refuse(line, "%s: may be one of several options; write it out", word);
    } else {
        (void)options_refuse(line, "%s: there is no such option; see --help", word);
    }
}

int options_next(const struct command_line *line, int argc, char **argv)
{
    opterr = 0;
    int option = getopt_long(argc, argv, line->short_options, line->long_options, NULL);
    switch (option) {
    case OPTION_HELP:
    case 'h':
        (void)printf("usage: %s\n\n%s", line->usage, line->help);
        return OPTIONS_HELP;
    case ':':
        (void)options_refuse(line, "%s: takes a value, and none follows", argv[optind - 1]);
        return OPTIONS_WRONG;
    case '?':
        refuse_option(line, argv[optind - 1]);
        return OPTIONS_WRONG;
    default:
        return option;
    }
}

bool options_socket(const struct command_line *line, const char *text, const char **ret)
{
    if (text[0] == '\0') {
        (void)options_refuse(line, "--socket: is empty; give the socket's path");
        return false;
    }
    *ret = text;
    return true;
}

bool options_number(const char *text, uint64_t maximum, uint64_t *ret)
{
    uint64_t number = 0;
    if (text[0] == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || number > (maximum - (uint64_t)(*text - '0')) / 10) {
            return false;
        }
        number = number * 10 + (uint64_t)(*text - '0');
    }
    *ret = number;
    return true;
}

bool options_frequency(const struct command_line *line, const char *text, uint64_t *ret_hz)
{
    if (!options_number(text, FREQUENCY_HZ_MAX, ret_hz) || *ret_hz == 0) {
        (void)options_refuse(line, "-F: %s: is not a number from 1 to 100000", text);
        return false;
    }
    return true;
}

bool options_one_operand(const struct command_line *line, int argc, char **argv, const char *what,
                         const char **ret)
{
    if (optind == argc) {
        (void)options_refuse(line, "%s: is missing", what);
        return false;
    }
    if (argc - optind > 1) {
        (void)options_refuse(line, "%s: is one %s too many", argv[optind + 1], what);
        return false;
    }
    *ret = argv[optind];
    return true;
}
