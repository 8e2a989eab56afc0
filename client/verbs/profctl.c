/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command line: finds the verb and runs it. A new verb is a file verb_<verb>.c, a line in
 * verbs.h, and a page man/profctl-<verb>.1.in. `--complete WORD...` is what the shells'
 * completions ask. With an argument of its own it is the child that parses debugging information,
 * which shares nothing with profctl but the program.
 */
#include "lines.h"
#include "options.h"
#include "standard_streams.h"
#include "suggest.h"
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int verb_help(int argc, char **argv);

#define VERB_ROW(name, summary) {#name, summary, verb_##name},
static const struct verb {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
} verbs[] = {VERBS(VERB_ROW) VERB_ROW(help, "explain a verb")};
#undef VERB_ROW

#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

static const char usage[] = "profctl VERB [OPTION...] [FILE]";

static int print_help(void)
{
    (void)printf("usage: %s\n\nRecords and reads CPU profiles, with cpu-profilerd.\n\n", usage);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        (void)printf("  %-11s %s\n", verbs[i].name, verbs[i].summary);
    }
    (void)fputs("\n  profctl record -- make   records a command; then profctl report profile.fxt\n"
                "  profctl record -d 10     records the whole machine for ten seconds\n"
                "  profctl flamegraph --open profile.fxt\n"
                "  profctl record --wall -- make   has what it waits for, too; then\n"
                "  profctl report --event off-cpu profile.fxt\n",
                stdout);
    (void)printf("\n  profctl help VERB     explains a verb; man profctl-VERB has more\n"
                 "  profctl --version     prints the version\n\n"
                 "The daemon is asked at --socket PATH, else at CPU_PROFILERD_SOCKET, else at\n"
                 "/run/cpu-profilerd/control.sock.\n"
                 "Exit status: 0 done, 1 failed, 2 wrong usage; 3 of diff --fail-above; 4 of\n"
                 "record without a sample.\n");
    return EXIT_DONE;
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(name, verbs[i].name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

static int refuse_verb(const struct command_line *line, const char *name)
{
    const char *names[VERB_COUNT];
    for (size_t i = 0; i < VERB_COUNT; i++) {
        names[i] = verbs[i].name;
    }
    const char *suggestion = suggest_word(name, names, VERB_COUNT);
    return suggestion == NULL
               ? options_refuse(line, "%s: there is no such verb; see profctl --help", name)
               : options_refuse(line, "%s: there is no such verb; did you mean %s?", name,
                                suggestion);
}

/* `help`, and --help before a verb. */
static int verb_help(int argc, char **argv)
{
    static const struct verb_option none[] = {{0}};
    static const struct command_line line = {
        .usage = "profctl help [VERB]",
        .help = "Explains a verb, as VERB --help does; without one, lists them.\n",
        .options = none,
    };
    if (argc < 2) {
        return print_help();
    }
    if (argv[1][0] == '-') {
        return options_take(&line, argc, argv, NULL);
    }
    const struct verb *verb = find_verb(argv[1]);
    if (verb == NULL) {
        return refuse_verb(&line, argv[1]);
    }
    char *asked[] = {argv[1], (char[]){"--help"}, NULL};
    return argc > 2 ? options_refuse(&line, "one verb at a time") : verb->run(2, asked);
}

/* What a shell may put in the place of the last word: `argv` is what stands on the command line
 * behind the name of the program. */
static int complete(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[0], "help") == 0 && argv[1][0] != '-') {
        argc--;
        argv++;
    }
    const char *begun = argc > 0 ? argv[0] : "";
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (argc <= 1 && strncmp(verbs[i].name, begun, strlen(begun)) == 0) {
            (void)printf("%s\t%s\n", verbs[i].name, verbs[i].summary);
        } else if (argc > 1 && strcmp(verbs[i].name, begun) == 0) {
            options_complete_instead();
            return verbs[i].run(argc, argv);
        }
    }
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    const struct command_line line = {.usage = usage};
    if (argc < 2) {
        return options_refuse(&line, "name a verb, such as: profctl record; see profctl --help");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        return verb_help(argc - 1, argv + 1);
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("profctl %s\n", CPU_PROFILERD_VERSION);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--complete") == 0) {
        return complete(argc - 2, argv + 2);
    }
    const struct verb *verb = find_verb(argv[1]);
    if (verb != NULL) {
        return verb->run(argc - 1, argv + 1);
    }
    if (argv[1][0] != '-') {
        return refuse_verb(&line, argv[1]);
    }
    static const char *const own[] = {"--version", "--help"};
    const char *suggestion = strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "-v") == 0
                                 ? own[0]
                                 : suggest_word(argv[1], own, sizeof own / sizeof own[0]);
    return suggestion == NULL
               ? options_refuse(&line, "%s: a verb comes first, such as: profctl status %s",
                                argv[1], argv[1])
               : options_refuse(&line, "%s: there is no such option; did you mean %s?", argv[1],
                                suggestion);
}

int main(int argc, char **argv)
{
    lines_reader_start(argc, argv);
    standard_streams_take();
    int status = run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        return complain("standard output cannot be written: %s", strerror(errno));
    }
    return status;
}
