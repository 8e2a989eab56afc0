/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl close`: ends the detached session, whatever its state.
 */
#include "attach.h"
#include "cleanup.h"
#include "json_out.h"
#include "options.h"
#include "text_out.h"
#include "verbs.h"

#include <stdio.h>

static const struct command_line line = {
    .usage = "profctl close [--json] [--socket PATH]",
    .help = "Ends the session of profctl start, whether it runs or not. What was not read is\n"
            "gone.\n",
    .options = attach_options,
};

static void print_json(const struct session_status *session)
{
    struct json_out out = {.file = stdout};
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "session", session->id);
    json_out_string(&out, "state", "closed");
    json_out_u64(&out, "unread_bytes", session->buffer_used_bytes);
    json_out_end(&out, '}');
    (void)fputc('\n', stdout);
}

static int close_session(const struct attach_request *request)
{
    cleanup_(connection_closep) struct profctl *conn = NULL;
    cleanup_(session_status_done) struct session_status session = {0};
    struct profctl_fault fault = {0};
    char size[32];
    int status = attach_session(request->socket_path, &conn);
    if (status != EXIT_DONE) {
        return status;
    }
    if (session_status_ask(conn, &session, &fault) < 0 || profctl_close(conn, &fault) < 0) {
        return complain("session: %s", fault.text);
    }
    if (request->is_json) {
        print_json(&session);
        return EXIT_DONE;
    }
    (void)fputs("session ", stdout);
    text_print(stdout, session.id == NULL ? "" : session.id);
    (void)fputs(": closed", stdout);
    if (session.buffer_used_bytes > 0) {
        (void)printf(", with %s that %s not read", text_size(session.buffer_used_bytes, size),
                     session.buffer_used_bytes == 1 ? "was" : "were");
    }
    (void)fputc('\n', stdout);
    return EXIT_DONE;
}

int verb_close(int argc, char **argv)
{
    struct attach_request request = {0};
    int status = options_take(&line, argc, argv, &request);
    return status == OPTIONS_TAKEN ? close_session(&request) : status;
}
