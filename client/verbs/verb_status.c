/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl status`: what the daemon says about itself, its kernel and its session.
 */
#include "attach.h"
#include "books_print.h"
#include "cleanup.h"
#include "json_out.h"
#include "options.h"
#include "percent.h"
#include "text_out.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct command_line line = {
    .usage = "profctl status [--json] [--socket PATH]",
    .help = "Shows what the daemon is doing: its version, what its kernel can do, and the\n"
            "session, if there is one, with the account of its ticks.\n",
    .more_help = BOOKS_PRINT_HELP,
    .options = attach_options,
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

/* Members of the session that print_session() tells in words, or the table of books. */
static bool is_told(const char *name)
{
    static const char *const told[] = {"session",           "state",  "owner_uid", "owner_pid",
                                       "detached",          "age_s",  "books",     "buffer_bytes",
                                       "buffer_used_bytes", "is_read"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        if (strcmp(name, told[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A line a member. */
static void print_members(const cJSON *object)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, object)
    {
        if (!is_told(member->string)) {
            (void)fputs("  ", stdout);
            text_print_padded(stdout, member->string, 20);
            (void)fputc(' ', stdout);
            print_value(member);
            (void)fputc('\n', stdout);
        }
    }
}

static void print_object(const char *title, const cJSON *object)
{
    (void)printf("%s\n", title);
    print_members(object);
}

/* What a person asks first; the rest follows as the daemon gives it. */
static void print_session(const struct session_status *session)
{
    char text[SESSION_END_BYTES];
    char client[SESSION_CLIENT_BYTES];
    char used[32];
    char whole[32];
    (void)fputs("session\n", stdout);
    text_print_member(stdout, "session", session->id);
    text_print_member(stdout, "state", session->state);
    (void)printf("  %-20s ", "owner");
    text_print(stdout, session_owner_name(session->uid, text));
    (void)fputs(", ", stdout);
    text_print(stdout, session->detached ? "detached" : session_client(session, client));
    (void)fputc('\n', stdout);
    (void)printf("  %-20s %" PRIu64 " s\n", "age", session->age_s);
    text_print_member(stdout, "ends", session_end(session, text));
    (void)printf("  %-20s %s of %s (%.1f %%), in buffers of one CPU each\n", "unread",
                 text_size(session->buffer_used_bytes, used),
                 text_size(session->buffer_bytes, whole),
                 percent_of(session->buffer_used_bytes, session->buffer_bytes));
}

static int print_status(const struct session_status *session)
{
    print_object("daemon", cJSON_GetObjectItemCaseSensitive(session->tree, "daemon"));
    print_object("kernel", cJSON_GetObjectItemCaseSensitive(session->tree, "kernel"));
    if (session->id == NULL) {
        (void)fputs("session\n  none\n", stdout);
        return EXIT_DONE;
    }
    cleanup_(freep) char *books =
        session->books == NULL ? NULL : cJSON_PrintUnformatted(session->books);
    print_session(session);
    print_members(cJSON_GetObjectItemCaseSensitive(session->tree, "session"));
    (void)fputc('\n', stdout);
    books_print_print(stdout, books);
    return EXIT_DONE;
}

static int show_status(const struct attach_request *request)
{
    cleanup_(connection_closep) struct profctl *conn = NULL;
    cleanup_(session_status_done) struct session_status session = {0};
    struct profctl_fault fault = {0};
    if (attach_connect(request->socket_path, &conn) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    if (session_status_ask(conn, &session, &fault) < 0) {
        return complain("daemon: %s", fault.text);
    }
    if (request->is_json) {
        cleanup_(freep) char *text = cJSON_PrintUnformatted(session.tree);
        struct json_out out = {.file = stdout};
        json_out_raw(&out, NULL, text);
        (void)fputc('\n', stdout);
        return EXIT_DONE;
    }
    return print_status(&session);
}

int verb_status(int argc, char **argv)
{
    struct attach_request request = {0};
    int status = options_take(&line, argc, argv, &request);
    return status == OPTIONS_TAKEN ? show_status(&request) : status;
}
