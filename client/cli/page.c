/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The terminal: its width, its colours and the pager before it; and how the columns of a table
 * share it. Fitting a text to its column is left to text_out.c.
 */
#include "page.h"

#include "cleanup.h"
#include "options.h"
#include "text_out.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ITEM                  "- "
#define COMMAND               "  "
#define PARAGRAPH_COLUMNS_MAX ((size_t)100) /* longer lines are hard to read */
#define PROSE_COLUMNS_MIN     ((size_t)20)  /* a word has more than one line below that */
#define COLUMNS_MAX           10000
#define PAGER_WORD_BYTES      4096
#define STATUS_NOT_RUN        126 /* a shell's, of what cannot be run */

/* COLUMNS, or 0 where it says nothing. */
static size_t requested_columns(void)
{
    const char *text = getenv("COLUMNS");
    long columns = text == NULL ? 0 : strtol(text, NULL, 10);
    return columns <= 0 ? 0 : columns > COLUMNS_MAX ? COLUMNS_MAX : (size_t)columns;
}

/* The width of a terminal, and of what else COLUMNS was set for; 0: there is none. */
static size_t find_columns(int fd, bool is_terminal)
{
    struct winsize size = {0};
    if (is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    size_t requested = requested_columns();
    return requested == 0 && is_terminal ? PAGE_COLUMNS_DEFAULT : requested;
}

static size_t at_least(size_t columns, size_t minimum)
{
    return columns < minimum ? minimum : columns;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

/* A pager that has other options than ours may not let colours through. */
static bool takes_colours(void)
{
    const char *terminal = getenv("TERM");
    const char *less = getenv("LESS");
    return !is_set("NO_COLOR") && terminal != NULL && terminal[0] != '\0' &&
           strcmp(terminal, "dumb") != 0 && (less == NULL || strpbrk(less, "rR") != NULL);
}

static bool has_utf8_locale(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
        }
    }
    return false;
}

/* The shell's command line of the pager; NULL: there shall be none. */
static const char *find_pager(void)
{
    const char *pager = getenv("PROFCTL_PAGER");
    pager = pager == NULL ? getenv("PAGER") : pager;
    if (pager == NULL) {
        pager = "if command -v less >/dev/null; then exec less; else exec cat; fi";
    }
    pager += strspn(pager, " \t\n");
    return pager[0] == '\0' || strcmp(pager, "cat") == 0 ? NULL : pager;
}

/* Starts a shell that reads from `input_fd`. Returns its pid, 0: it cannot be started. */
static pid_t spawn_shell(const char *command, int input_fd)
{
    char *const arguments[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return 0;
    }
    int error = posix_spawn_file_actions_adddup2(&actions, input_fd, STDIN_FILENO);
    if (error != 0 || posix_spawn(&pid, "/bin/sh", &actions, NULL, arguments, environ) != 0) {
        pid = 0;
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* Whether the shell finds the program that a command line begins with. */
static bool is_found(const char *command)
{
    char script[PAGER_WORD_BYTES + 32];
    const size_t word_bytes = strcspn(command, " \t\n$`\"'\\;&|<>(){}*?[]~#=!");
    int status = 0;
    if (word_bytes > PAGER_WORD_BYTES || strchr(" \t\n", command[word_bytes]) == NULL) {
        return true; /* the shell itself makes of it what it can */
    }
    (void)snprintf(script, sizeof script, "command -v %.*s >/dev/null", (int)word_bytes, command);
    const pid_t pid = spawn_shell(script, STDIN_FILENO);
    return pid == 0 || waitpid(pid, &status, 0) < 0 || status == 0;
}

/* Has standard output go through a pager. Where that fails it goes to the terminal. */
static void start_pager(struct page *page, const char *command)
{
    cleanup_(closep) int saved_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int ends[2];
    if (saved_fd < 0 || pipe2(ends, O_CLOEXEC) < 0) {
        return;
    }
    cleanup_(closep) int read_fd = ends[0];
    cleanup_(closep) int write_fd = ends[1];
    (void)setenv("LESS", "FRX", 0);
    (void)setenv("LV", "-c", 0);
    pid_t pid = spawn_shell(command, read_fd);
    if (pid > 0 && dup2(write_fd, STDOUT_FILENO) >= 0) {
        page->pager = pid;
        page->terminal_fd = take_fd(saved_fd);
        /* Ctrl-C is the pager's: it goes on showing what it has. And it may end before it has all.
         */
        page->interrupt_before = signal(SIGINT, SIG_IGN);
        page->pipe_before = signal(SIGPIPE, SIG_IGN);
    }
}

void page_describe(FILE *file, bool is_wide, struct page *ret)
{
    int fd = fileno(file);
    bool is_terminal = isatty(fd) != 0;
    size_t columns = find_columns(fd, is_terminal);
    *ret = (struct page){
        .file = file,
        .columns = is_wide || columns == 0 ? PAGE_UNLIMITED : at_least(columns, PAGE_COLUMNS_MIN),
        .prose_columns = is_wide        ? PAGE_UNLIMITED
                         : columns == 0 ? PAGE_COLUMNS_DEFAULT
                                        : at_least(columns, PROSE_COLUMNS_MIN),
        .has_colours = is_terminal && takes_colours(),
        .is_utf8 = has_utf8_locale(),
        .terminal_fd = -1,
    };
}

void page_describe_summary(FILE *file, struct page *ret)
{
    page_describe(file, false, ret);
    if (ret->columns == PAGE_UNLIMITED) {
        ret->prose_columns = PAGE_UNLIMITED;
    }
}

void page_open(bool is_wide, struct page *ret)
{
    page_describe(stdout, is_wide, ret);
    const char *pager = isatty(STDOUT_FILENO) != 0 ? find_pager() : NULL;
    if (pager != NULL && !is_found(pager)) {
        (void)complain("note: the pager is not found, so there is none: %s", pager);
    } else if (pager != NULL) {
        start_pager(ret, pager);
    }
}

/* What a pager that has ended did not want goes nowhere, and is no error. */
static void drain_output(void)
{
    cleanup_(closep) int nowhere_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fflush(stdout) != 0 && nowhere_fd >= 0) {
        (void)dup2(nowhere_fd, STDOUT_FILENO);
        (void)fflush(stdout);
    }
    clearerr(stdout);
}

void page_close(struct page *page)
{
    if (page->pager > 0) {
        drain_output();
        (void)dup2(page->terminal_fd, STDOUT_FILENO);
        (void)close(page->terminal_fd);
        int status = 0;
        (void)waitpid(page->pager, &status, 0);
        if (WIFSIGNALED(status) || WEXITSTATUS(status) >= STATUS_NOT_RUN) {
            (void)complain("note: the pager failed, so some of the text may not have been shown; "
                           "PROFCTL_PAGER=cat is none");
        }
        (void)signal(SIGINT, page->interrupt_before);
        (void)signal(SIGPIPE, page->pipe_before);
    }
    *page = (struct page){.terminal_fd = -1};
}

const char *page_style(const struct page *page, enum page_style style)
{
    static const char *const styles[] = {
        [PAGE_PLAIN] = "\033[m",   [PAGE_TITLE] = "\033[1m", [PAGE_WARNING] = "\033[33m",
        [PAGE_HOT] = "\033[31m",   [PAGE_GREW] = "\033[31m", [PAGE_SHRANK] = "\033[36m",
        [PAGE_FAINT] = "\033[90m",
    };
    return page->has_colours ? styles[style] : "";
}

size_t page_fitting_bytes(const char *text, size_t columns)
{
    size_t most = text_bytes_of(text, columns);
    size_t fitting = 0;
    if (text[most] == '\0') {
        return most;
    }
    for (size_t bytes = 0; bytes <= most; bytes++) {
        if (text[bytes] == ' ' && text[bytes + 1] != '%') {
            fitting = bytes;
        }
    }
    return fitting > 0 ? fitting : most;
}

/* Further lines of an item of a list stand below its text. */
static void print_paragraph(const struct page *page, enum page_style style, const char *text)
{
    size_t columns = page_prose_columns(page);
    int indent = strncmp(text, ITEM, strlen(ITEM)) == 0 ? (int)strlen(ITEM) : 0;
    bool is_first = true;
    if (strncmp(text, COMMAND, strlen(COMMAND)) == 0) {
        columns = PAGE_UNLIMITED;
    }
    if (columns != PAGE_UNLIMITED) {
        columns = columns > PARAGRAPH_COLUMNS_MAX ? PARAGRAPH_COLUMNS_MAX : columns;
        columns -= (size_t)indent;
    }
    do {
        size_t item_bytes = is_first ? (size_t)indent : 0;
        size_t bytes = item_bytes + page_fitting_bytes(text + item_bytes, columns);
        (void)fprintf(page->file, "%*s%s", is_first ? 0 : indent, "",
                      style == PAGE_PLAIN ? "" : page_style(page, style));
        text_print_bytes(page->file, text, bytes);
        (void)fprintf(page->file, "%s\n", style == PAGE_PLAIN ? "" : page_style(page, PAGE_PLAIN));
        text += bytes + (text[bytes] == ' ');
        is_first = false;
    } while (*text != '\0');
}

void page_print_lines(const struct page *page, enum page_style style, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        print_paragraph(page, style, line);
    }
}

bool page_text_begin(struct page_text *text)
{
    *text = (struct page_text){0};
    text->file = open_memstream(&text->text, &text->text_bytes);
    return text->file != NULL;
}

void page_text_end(struct page_text *text, const struct page *page, enum page_style style)
{
    if (fclose(text->file) == 0) {
        page_print_lines(page, style, text->text);
    }
    free(text->text);
    *text = (struct page_text){0};
}

void page_print_command(const struct page *page, const char *command, const char *path,
                        const char *what)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    if (file == NULL) {
        return;
    }
    (void)fprintf(file, "%s ", command);
    text_print_argument(file, path);
    if (fclose(file) == 0) {
        size_t columns = page_prose_columns(page);
        bool fits = columns == PAGE_UNLIMITED || text_width(text) + 1 + strlen(what) <= columns;
        text_print(page->file, text);
        (void)fprintf(page->file, "%c%s\n", fits ? ' ' : '\n', what);
    }
    free(text);
}

/* Gives the columns without a width what they need, if all of them have that within their part of
 * `room`, else what is their part; of several, those alone that need less than it. Returns whether
 * some are still without. */
static bool share_once(struct page_column *columns, size_t count, size_t room)
{
    size_t weights = 0;
    bool found = false;
    bool is_left = false;
    for (size_t i = 0; i < count; i++) {
        bool is_open = columns[i].width == PAGE_UNLIMITED;
        weights += is_open ? columns[i].weight : 0;
        room -= is_open ? 0 : columns[i].width;
    }
    for (size_t i = 0; i < count; i++) {
        if (columns[i].width == PAGE_UNLIMITED &&
            columns[i].needed <= room * columns[i].weight / weights) {
            columns[i].width = columns[i].needed;
            found = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (columns[i].width == PAGE_UNLIMITED) {
            is_left = found;
            columns[i].width = found ? PAGE_UNLIMITED : room * columns[i].weight / weights;
        }
    }
    return is_left;
}

void page_share(struct page_column *columns, size_t count, size_t room)
{
    for (size_t i = 0; i < count; i++) {
        columns[i].width = room == PAGE_UNLIMITED ? columns[i].needed : PAGE_UNLIMITED;
    }
    for (size_t i = 0; i < count && share_once(columns, count, room); i++) {
    }
}
