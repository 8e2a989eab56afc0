/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl status`: what the daemon says about itself, its kernel and its session.
 */
#include "books_table.h"
#include "cleanup.h"
#include "connection.h"
#include "json.h"
#include "options.h"
#include "text_out.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 24

static const struct option long_options[] = {
    {"json", no_argument, NULL, OPTION_OF_VERB},
    {"socket", required_argument, NULL, OPTION_OF_VERB + 1},
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

static const struct command_line line = {
    .usage = "profctl status [--json] [--socket PATH]",
    .help =
        "Shows what the daemon is doing: its version, what its kernel can do, and the session,\n"
        "if there is one, with the account of its ticks.\n\n"
        "      --json         one JSON object\n"
        "      --socket PATH  the daemon's socket\n"
        "  -h, --help         this text\n",
    .short_options = ":h",
    .long_options = long_options,
};

/* A member's value as a person reads it: texts without quotes. */
static void print_value(const cJSON *value)
{
    cleanup_(freep) char *printed = cJSON_IsString(value) ? NULL : cJSON_PrintUnformatted(value);
    if (cJSON_IsTrue(value) || cJSON_IsFalse(value)) {
        (void)fputs(cJSON_IsTrue(value) ? "yes" : "no", stdout);
    } else if (cJSON_IsNull(value)) {
        (void)fputc('-', stdout);
    } else {
        const char *text = cJSON_IsString(value) ? value->valuestring : printed;
        text_print(stdout, text == NULL ? "" : text);
    }
}

/* An object, a line a member; objects in it are left to others. */
static void print_object(const char *title, const cJSON *object)
{
    const cJSON *member = NULL;
    (void)printf("%s\n", title);
    cJSON_ArrayForEach(member, object)
    {
        if (strcmp(member->string, "books") != 0) {
            (void)fputs("  ", stdout);
            text_print_padded(stdout, member->string, 20);
            (void)fputc(' ', stdout);
            print_value(member);
            (void)fputc('\n', stdout);
        }
    }
}

static int print_status(const cJSON *status)
{
    const cJSON *session = cJSON_GetObjectItemCaseSensitive(status, "session");
    print_object("daemon", cJSON_GetObjectItemCaseSensitive(status, "daemon"));
    print_object("kernel", cJSON_GetObjectItemCaseSensitive(status, "kernel"));
    if (!cJSON_IsObject(session)) {
        (void)fputs("session\n  none\n", stdout);
        return EXIT_DONE;
    }
    cleanup_(freep) char *books =
        cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(session, "books"));
    print_object("session", session);
    (void)fputc('\n', stdout);
    books_table_print(stdout, books);
    return EXIT_DONE;
}

static int show_status(const char *socket_path, bool is_json)
{
    cleanup_(connection_closep) struct profctl *conn = NULL;
    cleanup_(freep) char *text = NULL;
    cleanup_(json_freep) cJSON *status = NULL;
    struct profctl_fault fault = {0};
    if (profctl_connect(socket_path, &conn, &fault) < 0 ||
        profctl_status(conn, &text, &fault) < 0) {
        return complain("daemon: %s", fault.text);
    }
    if (json_parse(text, strlen(text), DEPTH_MAX, &status, NULL) < 0 || !cJSON_IsObject(status)) {
        return complain("daemon: its status is not a JSON object");
    }
    if (is_json) {
        (void)puts(text);
        return EXIT_DONE;
    }
    return print_status(status);
}

int cmd_status(int argc, char **argv)
{
    const char *socket_path = NULL;
    bool is_json = false;
    int option = 0;
    while ((option = options_next(&line, argc, argv)) != OPTIONS_END) {
        switch (option) {
        case OPTION_OF_VERB:
            is_json = true;
            break;
        case OPTION_OF_VERB + 1:
            socket_path = optarg;
            break;
        default:
            return option == OPTIONS_HELP ? EXIT_DONE : EXIT_WRONG_USAGE;
        }
    }
    if (optind < argc) {
        return options_refuse(&line, "%s: status takes no operand", argv[optind]);
    }
    return show_status(socket_path, is_json);
}
