/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl stop`: ends the sampling of the detached session; what it holds stays to be read.
 */
#include "attach.h"
#include "books_print.h"
#include "cleanup.h"
#include "json.h"
#include "json_out.h"
#include "options.h"
#include "text_out.h"
#include "verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct command_line line = {
    .usage = "profctl stop [--json] [--socket PATH]",
    .help = "Ends the sampling of the session of profctl start, and shows the account of its\n"
            "ticks. What it has recorded stays with the daemon for 600 s, to be fetched by\n"
            "profctl read.\n",
    .more_help = BOOKS_PRINT_HELP,
    .options = attach_options,
};

static void print_json(const struct connection_notes *notes, const struct session_status *session,
                       const char *books)
{
    struct json_out out = {.file = stdout};
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "session", notes->session);
    json_out_string(&out, "stopped_by", notes->stopped_by);
    json_out_u64(&out, "unread_bytes", session->buffer_used_bytes);
    json_out_raw(&out, "books", books);
    json_out_end(&out, '}');
    (void)fputc('\n', stdout);
}

static void print_text(const struct connection_notes *notes, const struct session_status *session,
                       const char *books)
{
    char size[32];
    char closing[SESSION_CLOCK_BYTES];
    (void)fputs("session ", stdout);
    text_print(stdout, notes->session);
    if (strcmp(notes->stopped_by, "max_duration") == 0) {
        (void)printf(": had ended by itself, after %" PRIu64 " s (max_duration)\n",
                     session->max_duration_s);
    } else if (strcmp(notes->stopped_by, "max_unread") == 0) {
        (void)fputs(": had ended by itself, since its client did not read it (max_unread)\n",
                    stdout);
    } else {
        (void)fputs(": stopped by ", stdout);
        text_print(stdout, notes->stopped_by);
        (void)fputc('\n', stdout);
    }
    books_print_short(stdout, books, "profctl status", NULL);
    (void)printf("%s wait for profctl read -o FILE, until %s at least\n",
                 text_size(session->buffer_used_bytes, size),
                 session_clock(SESSION_UNREAD_S, closing));
}

static int tell(struct profctl *conn, bool is_json)
{
    cleanup_(session_status_done) struct session_status session = {0};
    struct profctl_fault fault = {0};
    const struct connection_notes *notes = connection_notes(conn);
    if (session_status_ask(conn, &session, &fault) < 0 || session.id == NULL) {
        return complain("session %s is stopped, but its status cannot be shown: %s", notes->session,
                        fault.text);
    }
    cleanup_(freep) char *books =
        session.books == NULL ? NULL : cJSON_PrintUnformatted(session.books);
    if (is_json) {
        print_json(notes, &session, books);
    } else {
        print_text(notes, &session, books);
    }
    return EXIT_DONE;
}

static int stop(const struct attach_request *request)
{
    cleanup_(connection_closep) struct profctl *conn = NULL;
    struct profctl_fault fault = {0};
    int status = attach_session(request->socket_path, &conn);
    if (status != EXIT_DONE) {
        return status;
    }
    if (profctl_stop(conn, &fault) < 0) {
        return fault.code == EBADFD
                   ? complain("the session is not running; 'profctl read' saves what it has "
                              "recorded, 'profctl close' discards it")
                   : complain("session: %s", fault.text);
    }
    return tell(conn, request->is_json);
}

int verb_stop(int argc, char **argv)
{
    struct attach_request request = {0};
    int status = options_take(&line, argc, argv, &request);
    return status == OPTIONS_TAKEN ? stop(&request) : status;
}
