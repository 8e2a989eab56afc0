/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl events`: what the daemon has found that this machine counts. Events that are missing for
 * the same reason stand together.
 */
#include "attach.h"
#include "cleanup.h"
#include "json_out.h"
#include "options.h"
#include "text_out.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS      78
#define NAME_COLUMNS 26

static const struct command_line line = {
    .usage = "profctl events [--json] [--socket PATH]",
    .help = "Lists the events that record -e and start -e can sample by on this machine, and\n"
            "those that it cannot count, with the reason.\n",
    .options = attach_options,
};

static const char *member(const cJSON *event, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, name));
    return text == NULL ? "" : text;
}

static bool is_true(const cJSON *event, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(event, name));
}

/* Whether there is no earlier event with the same member that is, or is not, available. */
static bool is_first(const cJSON *events, const cJSON *event, const char *name, bool is_available)
{
    const cJSON *other = NULL;
    cJSON_ArrayForEach(other, events)
    {
        if (other == event) {
            return true;
        }
        if (is_true(other, "available") == is_available &&
            strcmp(member(other, name), member(event, name)) == 0) {
            return false;
        }
    }
    return true;
}

static void print_kind(const cJSON *events, const char *kind)
{
    const cJSON *event = NULL;
    text_print(stdout, kind);
    (void)fputs(" events\n", stdout);
    cJSON_ArrayForEach(event, events)
    {
        if (is_true(event, "available") && strcmp(member(event, "kind"), kind) == 0) {
            (void)fputs("  ", stdout);
            text_print_padded(stdout, member(event, "event"), NAME_COLUMNS);
            (void)fputs("  counts ", stdout);
            text_print(stdout, member(event, "unit"));
            (void)fputs(is_true(event, "allowed") ? "\n" : "; not allowed to you\n", stdout);
        }
    }
    (void)fputc('\n', stdout);
}

/* Prints a word behind those of its paragraph, on a new line where it does not fit. */
static void print_word(const char *word, size_t word_bytes, size_t *column)
{
    if (*column > 0 && *column + 1 + word_bytes > COLUMNS) {
        (void)fputs("\n ", stdout);
        *column = 1;
    }
    if (*column > 0) {
        (void)fputc(' ', stdout);
        (*column)++;
    }
    text_print_bytes(stdout, word, word_bytes);
    *column += word_bytes;
}

/* Those that are missing for one reason, as a paragraph. */
static void print_missing(const cJSON *events, const char *why)
{
    const cJSON *event = NULL;
    size_t column = 0;
    print_word("Each of these", strlen("Each of these"), &column);
    for (const char *word = why; *word != '\0'; word += strspn(word, " ")) {
        size_t word_bytes = strcspn(word, " ");
        print_word(word, word_bytes, &column);
        word += word_bytes;
    }
    (void)fputs(":\n ", stdout);
    column = 1;
    cJSON_ArrayForEach(event, events)
    {
        const char *name = member(event, "event");
        if (!is_true(event, "available") && strcmp(member(event, "why"), why) == 0) {
            print_word(name, strlen(name), &column);
        }
    }
    (void)fputs("\n\n", stdout);
}

static void print_events(const cJSON *events)
{
    const cJSON *event = NULL;
    bool is_limited = false;
    cJSON_ArrayForEach(event, events)
    {
        is_limited |= is_true(event, "available") && !is_true(event, "allowed");
        if (is_true(event, "available") && is_first(events, event, "kind", true)) {
            print_kind(events, member(event, "kind"));
        }
    }
    if (is_limited) {
        (void)fputs(
            "allowed_events of the daemon's config says which events are allowed to you.\n\n",
            stdout);
    }
    cJSON_ArrayForEach(event, events)
    {
        if (!is_true(event, "available") && is_first(events, event, "why", false)) {
            print_missing(events, member(event, "why"));
        }
    }
    (void)fputs("Besides, raw events (r01c2) and terms of a device (cpu/event=0x3c,umask=1/).\n"
                "Behind a name, :u counts in programs alone, :k in the kernel alone, :p at the\n"
                "exact instruction. record -e page-faults:100 samples each 100th, cycles@99 99\n"
                "times a second. cycles@99+instructions+cache-misses counts these two with each\n"
                "sample of cycles. What threads wait for, record --wall records.\n",
                stdout);
}

static int show_events(const struct attach_request *request)
{
    cleanup_(connection_closep) struct profctl *conn = NULL;
    cleanup_(freep) char *text = NULL;
    if (attach_connect(request->socket_path, &conn) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    if (profctl_events(conn, &text) < 0) {
        return complain("daemon: %s", connection_notes(conn)->fault.text);
    }
    if (request->is_json) {
        struct json_out out = {.file = stdout};
        json_out_raw(&out, NULL, text);
        (void)fputc('\n', stdout);
        return EXIT_DONE;
    }
    cJSON *events = cJSON_Parse(text);
    print_events(events);
    cJSON_Delete(events);
    return EXIT_DONE;
}

int verb_events(int argc, char **argv)
{
    struct attach_request request = {0};
    int status = options_take(&line, argc, argv, &request);
    return status == OPTIONS_TAKEN ? show_events(&request) : status;
}
