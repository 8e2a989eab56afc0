/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starts a browser, which goes on when profctl has ended. It is in a session of its own, so that
 * Ctrl-C does not end it, and says nothing on this terminal. The whole path is never an option, and
 * no shell reads it.
 *
 * BROWSER is a list of commands, as sensible-browser and Python's webbrowser have it. Whether a
 * browser that was started shows the page is not waited for.
 */
#include "browser.h"

#include "cleanup.h"
#include "options.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 32 /* of a command */

struct command {
    char *words[WORDS_MAX + 2]; /* owned; a path, and NULL, behind the others */
    size_t count;
};

static void command_done(struct command *command)
{
    for (size_t i = 0; i < command->count; i++) {
        free(command->words[i]);
    }
}

/* The commands to try, or NULL. */
static const char *find_commands(void)
{
    const char *named = getenv("BROWSER");
    bool is_graphical = getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL;
    if (named != NULL && named[strspn(named, ": ")] != '\0') {
        return named;
    }
    return is_graphical ? "xdg-open" : NULL;
}

/* Adds a word in which "%s" is the path, and "%%" a "%". Returns 0, or -errno. */
static int add_word(struct command *command, const char *word, const char *path, bool *has_path)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    if (file == NULL) {
        return -errno;
    }
    for (; *word != '\0'; word++) {
        if (strncmp(word, "%s", 2) == 0) {
            (void)fputs(path, file);
            *has_path = true;
            word++;
        } else {
            word += strncmp(word, "%%", 2) == 0;
            (void)fputc(*word, file);
        }
    }
    if (fclose(file) != 0) {
        free(text);
        return -ENOMEM;
    }
    command->words[command->count++] = text;
    return 0;
}

/* Takes the words of a text (changed). A path that is in none of them is the last. Returns 0, or
 * -errno; -E2BIG for more than WORDS_MAX. */
static int read_command(char *text, const char *path, struct command *command)
{
    const char *word = NULL;
    bool has_path = false;
    while ((word = strsep(&text, " ")) != NULL) {
        int r = command->count == WORDS_MAX ? -E2BIG
                : word[0] == '\0'           ? 0
                                            : add_word(command, word, path, &has_path);
        if (r < 0) {
            return r;
        }
    }
    return has_path || command->count == 0 ? 0 : add_word(command, "%s", path, &has_path);
}

static int start(char *const *words)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid = 0;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    int r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    r = r != 0 ? r
               : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && r == 0; fd++) {
        r = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, fd);
    }
    r = r != 0 ? r : posix_spawnp(&pid, words[0], &actions, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* Starts the first of the commands that starts. Returns 0, or the last one's -errno. */
static int start_one(const char *commands, const char *path)
{
    cleanup_(freep) char *all = strdup(commands);
    char *rest = all;
    char *text = NULL;
    int r = -ENOMEM;
    while ((text = strsep(&rest, ":")) != NULL) {
        cleanup_(command_done) struct command command = {.count = 0};
        int read = read_command(text, path, &command);
        if (read == 0 && command.count == 0) {
            continue;
        }
        r = read < 0 ? read : start(command.words);
        if (r == 0) {
            break;
        }
    }
    return r;
}

int browser_show(const char *path)
{
    cleanup_(freep) char *whole = realpath(path, NULL);
    const char *commands = find_commands();
    if (whole == NULL) {
        return complain("%s: %m", path);
    }
    if (commands == NULL) {
        (void)complain("there is no browser here; open %s in one", whole);
        return EXIT_DONE;
    }
    int r = start_one(commands, whole);
    return r < 0 ? complain("%s does not start: %s; open %s in a browser", commands, strerror(-r),
                            whole)
                 : EXIT_DONE;
}
