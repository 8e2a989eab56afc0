/* SPDX-License-Identifier: Apache-2.0 */

/*
 * getopt_long() with sentences of our own. Nothing that a complaint quotes reaches a terminal as
 * control characters.
 */
#include "options.h"

#include "cleanup.h"
#include "complete.h"
#include "json_out.h"
#include "output.h"
#include "suggest.h"
#include "text_out.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FREQUENCY_HZ_MAX UINT64_C(100000)
#define OPTIONS_MAX      32
#define CHOICES_MAX      ((size_t)32) /* of one option */
#define LONG_FIRST       0x100 /* what getopt_long() calls a long option: this and its index */
#define OPERAND          1     /* what it calls an operand, where it hands these out too */

/* What --json asks of messages too. The process has one command line, so it is kept here. */
static bool says_json;

/* A shell asks what may follow, and there is nothing to be done. Kept here for the same reason. */
static bool is_completing;

static const struct verb_option help_option = {'h', "help", NULL, "list the options", NULL, 0, 0};

/* What getopt_long() takes of a table. */
struct getopt_tables {
    char letters[2 * OPTIONS_MAX + 4];
    struct option names[OPTIONS_MAX + 2];
    size_t name_count; /* without the end */
};

/* A message on standard error, as text or as an object. `usage` is NULL unless it helps. */
__attribute__((format(printf, 2, 0))) static void print_complaint(const char *usage,
                                                                  const char *format, va_list args)
{
    cleanup_(freep) char *text = NULL;
    if (vasprintf(&text, format, args) < 0) {
        text = NULL;
        return;
    }
    if (says_json) {
        struct json_out out = {.file = stderr};
        json_out_begin(&out, NULL, '{');
        json_out_string(&out, "message", text);
        json_out_string(&out, "usage", usage);
        json_out_end(&out, '}');
    } else {
        (void)fputs("profctl: ", stderr);
        text_print(stderr, text);
    }
    (void)fputc('\n', stderr);
    if (usage != NULL && !says_json) {
        (void)fprintf(stderr, "usage: %s\n", usage);
    }
}

int complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_complaint(NULL, format, args);
    va_end(args);
    return EXIT_FAILED;
}

int options_refuse(const struct command_line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_complaint(line->usage, format, args);
    va_end(args);
    return EXIT_WRONG_USAGE;
}

static bool is_end(const struct verb_option *option)
{
    return option->help == NULL;
}

static bool is_title(const struct verb_option *option)
{
    return option->letter == '\0' && option->name == NULL;
}

static void add_option(struct getopt_tables *tables, const struct verb_option *option, int code)
{
    size_t length = strlen(tables->letters);
    if (option->letter != '\0') {
        (void)snprintf(tables->letters + length, sizeof tables->letters - length, "%c%s",
                       option->letter, option->argument == NULL ? "" : ":");
    }
    if (option->name != NULL) {
        tables->names[tables->name_count++] =
            (struct option){option->name, option->argument != NULL, NULL, code};
    }
}

static void make_tables(const struct command_line *line, struct getopt_tables *ret)
{
    *ret = (struct getopt_tables){0};
    (void)snprintf(ret->letters, sizeof ret->letters, "%s:",
                   line->has_command            ? "+"
                   : line->take_operand != NULL ? "-"
                                                : "");
    for (int i = 0; i < OPTIONS_MAX && !is_end(&line->options[i]); i++) {
        add_option(ret, &line->options[i], LONG_FIRST + i);
    }
    add_option(ret, &help_option, LONG_FIRST + OPTIONS_MAX);
}

/* The option that getopt_long() calls `code`. */
static const struct verb_option *find_option(const struct command_line *line, int code)
{
    if (code == LONG_FIRST + OPTIONS_MAX || code == help_option.letter) {
        return &help_option;
    }
    const struct verb_option *option = line->options;
    if (code >= LONG_FIRST) {
        return &option[code - LONG_FIRST];
    }
    while (!is_end(option) && option->letter != code) {
        option++;
    }
    return option;
}

/* "  -F, --frequency HZ". `into` has room for LEFT_BYTES; returns it. */
#define LEFT_BYTES ((size_t)64)
static const char *left_side(const struct verb_option *option, char *into)
{
    char letter[] = {'-', (char)option->letter, '\0'};
    (void)snprintf(into, LEFT_BYTES, "  %s%s%s%s%s", option->letter == '\0' ? "  " : letter,
                   option->name == NULL     ? ""
                   : option->letter == '\0' ? "  --"
                                            : ", --",
                   option->name == NULL ? "" : option->name, option->argument == NULL ? "" : " ",
                   option->argument == NULL ? "" : option->argument);
    return into;
}

static void print_option(const struct verb_option *option, int width)
{
    char left[LEFT_BYTES];
    const char *text = option->help;
    (void)printf("%-*s", width, left_side(option, left));
    for (;;) {
        int length = (int)strcspn(text, "\n");
        (void)printf("%.*s\n", length, text);
        if (text[length] == '\0') {
            return;
        }
        text += length + 1;
        (void)printf("%*s", width, "");
    }
}

static void print_help(const struct command_line *line, const char *verb)
{
    char left[LEFT_BYTES];
    const struct verb_option *option = line->options;
    size_t width = strlen(left_side(&help_option, left));
    for (; !is_end(option); option++) {
        size_t length = is_title(option) ? 0 : strlen(left_side(option, left));
        width = length > width ? length : width;
    }
    (void)printf("usage: %s\n\n%s\n", line->usage, line->help);
    for (option = line->options; !is_end(option) && !is_title(option); option++) {
        print_option(option, (int)width + 2);
    }
    print_option(&help_option, (int)width + 2);
    for (; !is_end(option); option++) {
        if (is_title(option)) {
            (void)printf("\n%s\n", option->help);
        } else {
            print_option(option, (int)width + 2);
        }
    }
    if (line->more_help != NULL) {
        (void)printf("\n%s", line->more_help);
    }
    (void)printf("\nman profctl-%s has more.\n", verb);
}

/* How many long options a word like "--co=x" may stand for. */
static size_t count_meant(const struct getopt_tables *tables, const char *word)
{
    size_t count = 0;
    size_t bytes = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    for (const struct option *option = tables->names; option->name != NULL; option++) {
        count += bytes > 0 && strncmp(option->name, word + 2, bytes) == 0;
    }
    return count;
}

/* The long option that a mistyped word like "--jsn=x" stands for, or NULL. */
static const char *suggest_long(const struct getopt_tables *tables, const char *word)
{
    const char *names[OPTIONS_MAX + 1];
    cleanup_(freep) char *typed = strdup(word);
    if (typed == NULL || strncmp(word, "--", 2) != 0) {
        return NULL;
    }
    typed[strcspn(typed, "=")] = '\0';
    for (size_t i = 0; i < tables->name_count; i++) {
        names[i] = tables->names[i].name;
    }
    return suggest_word(typed + 2, names, tables->name_count);
}

/* The first long option without a letter that begins with this one, or NULL: -f for --format. */
static const char *suggest_for_letter(const struct command_line *line, int letter)
{
    for (const struct verb_option *option = line->options; !is_end(option); option++) {
        if (option->letter == '\0' && option->name != NULL && option->name[0] == letter) {
            return option->name;
        }
    }
    return NULL;
}

/* What is done here in place of an option of another program, if the word is one of these. */
static const char *find_elsewhere(const struct command_line *line, const char *word)
{
    const struct option_elsewhere *option = line->elsewhere;
    size_t bytes = strncmp(word, "--", 2) == 0 ? strcspn(word, "=") : strlen(word);
    for (; option != NULL && option->word != NULL; option++) {
        if (strlen(option->word) == bytes && strncmp(option->word, word, bytes) == 0) {
            return option->instead;
        }
    }
    return NULL;
}

static int refuse_unknown(const struct command_line *line, const char *word, const char *suggestion)
{
    const char *instead = find_elsewhere(line, word);
    if (instead != NULL) {
        return options_refuse(line, "%s: there is no such option; %s", word, instead);
    }
    return suggestion == NULL
               ? options_refuse(line, "%s: there is no such option; see --help", word)
               : options_refuse(line, "%s: there is no such option; did you mean --%s?", word,
                                suggestion);
}

/* What getopt_long() calls '?'. It leaves the letter or code in `optopt`, 0 for a long option that
 * it does not know. */
static int refuse_option(const struct command_line *line, const struct getopt_tables *tables,
                         const char *word)
{
    if (optopt >= LONG_FIRST) {
        return options_refuse(line, "%s takes no value", word);
    }
    if (optopt > 0) {
        const char letter[] = {'-', (char)optopt, '\0'};
        return refuse_unknown(line, letter, suggest_for_letter(line, optopt));
    }
    return count_meant(tables, word) > 1
               ? options_refuse(line, "%s may be one of several options; write it out", word)
               : refuse_unknown(line, word, suggest_long(tables, word));
}

/* Takes the operands behind "--". */
static int take_rest(const struct command_line *line, int argc, char **argv, char *request)
{
    int status = EXIT_DONE;
    for (; optind < argc && status == EXIT_DONE; optind++) {
        status = line->take_operand(line, NULL, argv[optind], request + line->operand_at);
    }
    return status == EXIT_DONE ? OPTIONS_TAKEN : status;
}

/* The place in `argv` of what is named as a recording, and was taken as the value of the option
 * before it; 0: there is none. */
static int find_taken_recording(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        size_t bytes = strlen(argv[i]);
        if (argv[i - 1][0] == '-' && strchr(argv[i - 1], '=') == NULL && bytes > 4 &&
            strcmp(argv[i] + bytes - 4, ".fxt") == 0) {
            return i;
        }
    }
    return 0;
}

/* Without an operand. */
static int take_default(const struct command_line *line, int argc, char **argv, char *request)
{
    int taken = find_taken_recording(argc, argv);
    if (taken > 0) {
        return options_refuse(
            line, "name a %s, such as: profctl %s profile.fxt; %s was taken as what %s is to be",
            line->operand, argv[0], argv[taken], argv[taken - 1]);
    }
    if (line->operand_default != NULL && access(line->operand_default, F_OK) == 0) {
        *(const char **)(void *)(request + line->operand_at) = line->operand_default;
        return OPTIONS_TAKEN;
    }
    return options_refuse(line, "name a %s, such as: profctl %s %s%s%s%s", line->operand, argv[0],
                          line->operand_example == NULL ? "profile.fxt" : line->operand_example,
                          line->operand_default == NULL ? "" : "; there is no ",
                          line->operand_default == NULL ? "" : line->operand_default,
                          line->operand_default == NULL ? "" : " here");
}

/* `has_dashes`: it was "--" that ended the options. */
static int take_operands(const struct command_line *line, int argc, char **argv, bool has_dashes,
                         char *request)
{
    const char *what = line->operand;
    if (line->has_command) {
        if (optind < argc && !has_dashes) {
            return options_refuse(line, "'%s' is not an option; a command goes after --",
                                  argv[optind]);
        }
        if (optind == argc && has_dashes) {
            return options_refuse(line, "a command must follow '--'");
        }
        if (optind < argc) {
            *(char ***)(void *)(request + line->operand_at) = argv + optind;
        }
        return OPTIONS_TAKEN;
    }
    if (what == NULL) {
        return optind == argc ? OPTIONS_TAKEN
                              : options_refuse(line, "%s: %s takes no operand%s", argv[optind],
                                               argv[0], line->instead == NULL ? "" : line->instead);
    }
    bool is_recording = line->operand_example == NULL;
    if (optind == argc) {
        return take_default(line, argc, argv, request);
    }
    if (line->second_at > 0 && argc - optind == 2) {
        *(const char **)(void *)(request + line->second_at) = argv[optind + 1];
    } else if (line->second_at > 0 && argc - optind > 2) {
        return options_refuse(line, "two recordings at most");
    } else if (argc - optind > 1 && is_recording) {
        return options_refuse(line,
                              "one recording at a time; join parts with: cat %s %s | profctl %s -",
                              argv[optind], argv[optind + 1], argv[0]);
    }
    if (argc - optind > 1 && !is_recording) {
        return options_refuse(line, "one %s at a time", what);
    }
    *(const char **)(void *)(request + line->operand_at) = argv[optind];
    return OPTIONS_TAKEN;
}

/* Whether --json is among the options: a message may come before getopt_long() meets it. */
static bool asks_for_json(const struct command_line *line, int argc, char **argv)
{
    bool has_option = false;
    for (const struct verb_option *option = line->options; !is_end(option); option++) {
        has_option = has_option || (option->name != NULL && strcmp(option->name, "json") == 0);
    }
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0 && has_option; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            return true;
        }
    }
    return false;
}

void options_complete_instead(void)
{
    is_completing = true;
}

int options_take(const struct command_line *line, int argc, char **argv, void *request)
{
    if (is_completing) {
        complete_print(stdout, line, (size_t)argc - 1, argv + 1);
        return EXIT_DONE;
    }
    says_json = asks_for_json(line, argc, argv);
    struct getopt_tables tables;
    int taken = optind; /* the arguments that options are made of */
    int code = 0;
    make_tables(line, &tables);
    opterr = 0;
    while ((code = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
        if (code == ':') {
            return options_refuse(line, "%s takes a value, and none follows", argv[optind - 1]);
        }
        if (code == '?') {
            return refuse_option(line, &tables, argv[optind - 1]);
        }
        const struct verb_option *option = code == OPERAND ? NULL : find_option(line, code);
        if (option == &help_option) {
            print_help(line, argv[0]);
            return EXIT_DONE;
        }
        int status =
            option == NULL
                ? line->take_operand(line, NULL, optarg, (char *)request + line->operand_at)
                : option->take(line, option, optarg, (char *)request + option->at);
        if (status != EXIT_DONE) {
            return status;
        }
        taken = optind;
    }
    for (int i = optind; i < argc && (i == optind || !line->has_command); i++) {
        if (argv[i][0] == '\0') {
            return options_refuse(line, "an operand is empty; give %s",
                                  line->has_command ? "a command" : "a name");
        }
    }
    return line->take_operand != NULL ? take_rest(line, argc, argv, request)
                                      : take_operands(line, argc, argv, optind > taken, request);
}

bool options_number(const char *text, uint64_t maximum, uint64_t *ret)
{
    uint64_t number = 0;
    if (text[0] == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        const uint64_t digit = (uint64_t)*text - '0';
        if (*text < '0' || *text > '9' || digit > maximum || number > (maximum - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *ret = number;
    return true;
}

double options_decimal(const char *text, const char **ret_end)
{
    char *end = NULL;
    const bool is_decimal =
        ((text[0] >= '0' && text[0] <= '9') || text[0] == '.') && text[1] != 'x' && text[1] != 'X';
    const double number = is_decimal ? strtod(text, &end) : 0;
    *ret_end = is_decimal ? end : text;
    return number;
}

bool options_rate(const char *text, uint64_t maximum_hz, uint64_t *ret_hz)
{
    char digits[24];
    size_t bytes = strlen(text);
    bool is_kilo = bytes > 0 && (text[bytes - 1] == 'k' || text[bytes - 1] == 'K');
    uint64_t factor = is_kilo ? 1000 : 1;
    uint64_t number = 0;
    if (bytes >= sizeof digits) {
        return false;
    }
    (void)snprintf(digits, sizeof digits, "%.*s", (int)(bytes - is_kilo), text);
    if (!options_number(digits, maximum_hz / factor, &number)) {
        return false;
    }
    *ret_hz = number * factor;
    return true;
}

/* Every way to take a value has the same type, though few need all of it. */
#define TAKE(name)                                                                                 \
    int name(const struct command_line *line, const struct verb_option *option, const char *value, \
             void *into)

TAKE(options_flag)
{
    (void)line, (void)option, (void)value;
    *(bool *)into = true;
    return EXIT_DONE;
}

TAKE(options_raise)
{
    unsigned *level = into;
    (void)line, (void)value;
    *level = *level > option->level ? *level : (unsigned)option->level;
    return EXIT_DONE;
}

const char *options_list_choices(option_choice_fn *choice, char *into)
{
    into[0] = '\0';
    for (size_t i = 0; choice(i) != NULL; i++) {
        size_t used = strlen(into);
        (void)snprintf(into + used, OPTIONS_CHOICES_BYTES - used, "%s%s", i == 0 ? "" : ", ",
                       choice(i));
    }
    return into;
}

TAKE(options_choice)
{
    const char *words[CHOICES_MAX];
    char names[OPTIONS_CHOICES_BYTES];
    unsigned count = 0;
    for (; count < CHOICES_MAX && option->choice(count) != NULL; count++) {
        words[count] = option->choice(count);
        if (strcmp(value, words[count]) == 0) {
            *(unsigned *)into = count;
            return EXIT_DONE;
        }
    }
    const char *meant = suggest_word(value, words, count);
    (void)options_list_choices(option->choice, names);
    return meant == NULL
               ? options_refuse(line, "--%s %s: give one of %s", option->name, value, names)
               : options_refuse(line, "--%s %s: give one of %s; did you mean %s?", option->name,
                                value, names, meant);
}

TAKE(options_text)
{
    (void)line, (void)option;
    *(const char **)into = value;
    return EXIT_DONE;
}

TAKE(options_name)
{
    return value[0] == '\0' ? options_refuse(line, "--%s is empty; give a name", option->name)
                            : options_text(line, option, value, into);
}

TAKE(options_socket)
{
    return value[0] == '\0' ? options_refuse(line, "--socket is empty; give the socket's path")
                            : options_text(line, option, value, into);
}

/* The end of a name that promises a compression other than gzip; NULL: there is none. */
static const char *find_compression(const char *path)
{
    static const char *const ends[] = {".zst", ".xz", ".bz2", ".lz4", ".lzma", ".zip"};
    size_t bytes = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end_bytes = strlen(ends[i]);
        if (bytes > end_bytes && strcmp(path + bytes - end_bytes, ends[i]) == 0) {
            return path + bytes - end_bytes;
        }
    }
    return NULL;
}

TAKE(options_output)
{
    const char *compression = find_compression(value);
    if (compression != NULL) {
        int plain_bytes = (int)(compression - value);
        return options_refuse(
            line, "-o %s: %s is not supported; name %.*s, or %.*s.gz, which is compressed by gzip",
            value, compression, plain_bytes, value, plain_bytes, value);
    }
    return value[0] == '\0'
               ? options_refuse(line, "-o is empty; name a file, or - for standard output")
               : options_text(line, option, output_plain_path(value), into);
}

TAKE(options_frequency)
{
    uint64_t *ret_hz = into;
    (void)option;
    return !options_rate(value, FREQUENCY_HZ_MAX, ret_hz) || *ret_hz == 0
               ? options_refuse(line, "-F %s: give a number from 1 to 100000, such as 999 or 4k",
                                value)
               : EXIT_DONE;
}
