/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl start`: starts a detached session, which continues without this program. If starting
 * fails, the session is closed again.
 */
#include "attach.h"
#include "cleanup.h"
#include "clock.h"
#include "duration.h"
#include "json_out.h"
#include "options.h"
#include "record.h"
#include "session_config.h"
#include "text_out.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdio.h>

static int take_duration(const struct command_line *line, const struct verb_option *option,
                         const char *value, void *into)
{
    const uint64_t max_ns = SESSION_DURATION_S_MAX * NS_PER_S;
    uint64_t time_ns = 0;
    (void)option;
    if (!duration_parse(value, max_ns, &time_ns) || time_ns == 0 || time_ns % NS_PER_S > 0) {
        return options_refuse(
            line, "-d %s: give a whole number of seconds, 1 to %d, such as 90, 5m or 1h", value,
            SESSION_DURATION_S_MAX);
    }
    *(uint64_t *)into = time_ns / NS_PER_S;
    return EXIT_DONE;
}

static const struct verb_option options[] = {
    OPTION_FREQUENCY,
    {'d', "duration", "TIME", "when sampling ends by itself (600): 90, 5m, 1h", take_duration,
     RECORD_AT(max_duration_s), 0},
    OPTION_KERNEL,
    OPTION_NO_KERNEL,
    OPTION_EVENTS,
    OPTION_WALL,
    OPTION_MIN_WAIT,
    OPTION_CONFIG,
    OPTION_JSON(RECORD_AT(is_json)),
    OPTION_SOCKET(RECORD_AT(socket_path)),
    TARGET_OPTIONS,
    {0},
};

static const struct command_line line = {
    .usage = "profctl start [-F HZ] [-d TIME] [-p PID] [OPTION...]",
    .help = "Begins to record what the CPUs do, and returns. The session is yours, survives\n"
            "this program, and ends by itself after 600 s unless -d or the config's\n"
            "max_duration_s says otherwise. profctl stop ends it, profctl read fetches what\n"
            "it has recorded, profctl close closes it.\n",
    .options = options,
    .elsewhere = record_perf_options,
    .instead = "; to record a command, use record",
};

static void print_json(const struct connection_notes *notes, const struct session_status *session)
{
    struct json_out out = {.file = stdout};
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "session", notes->session);
    json_out_string(&out, "state", session->state);
    json_out_i64(&out, "holds_s", notes->holds_s);
    json_out_u64(&out, "sample_period_ns", session->period_ns);
    json_out_u64(&out, "max_duration_s", session->max_duration_s);
    json_out_begin(&out, "notes", '[');
    for (size_t i = 0; i < notes->remark_count; i++) {
        json_out_string(&out, NULL, notes->remarks[i]);
    }
    json_out_end(&out, ']');
    json_out_end(&out, '}');
    (void)fputc('\n', stdout);
}

static void print_text(const struct connection_notes *notes, const struct session_status *session)
{
    char end[SESSION_END_BYTES];
    (void)fputs("session ", stdout);
    text_print(stdout, notes->session);
    (void)fputs(": ", stdout);
    text_print(stdout, session->state);
    if (session->period_ns > 0) {
        char rate[TEXT_RATE_BYTES];
        (void)fputs(text_rate(session->period_ns, rate), stdout);
    }
    if (session->max_duration_s > 0 && (uint64_t)notes->holds_s >= session->max_duration_s) {
        (void)fputs("\nholds all of it, until profctl read -o FILE fetches it\n", stdout);
    } else {
        (void)printf("\nholds %" PRId64
                     " s: run profctl read --append -o FILE at least that often,\n"
                     "or what follows is dropped and counted\n",
                     notes->holds_s);
    }
    (void)printf("sampling ends %s; profctl stop ends it before\n", session_end(session, end));
}

static int tell(struct profctl *conn, bool is_json)
{
    cleanup_(session_status_done) struct session_status session = {0};
    struct profctl_fault fault = {0};
    const struct connection_notes *notes = connection_notes(conn);
    if (session_status_ask(conn, &session, &fault) < 0 || session.id == NULL) {
        return complain("session %s runs, but its status cannot be shown: %s", notes->session,
                        fault.text);
    }
    if (is_json) {
        print_json(notes, &session);
    } else {
        print_text(notes, &session);
    }
    return fflush(stdout) == 0
               ? EXIT_DONE
               : complain("session %s runs; profctl stop and profctl close end it", notes->session);
}

static int start(const struct record_request *request)
{
    cleanup_(connection_closep) struct profctl *conn = NULL;
    cleanup_(freep) char *config = NULL;
    struct profctl_fault fault = {0};
    int status = record_config_load(request, 0, &config);
    if (status != EXIT_DONE) {
        return status;
    }
    status = attach_connect(request->socket_path, &conn);
    if (status != EXIT_DONE) {
        return status;
    }
    status = record_session_create(conn, request, config, true, 0, NULL);
    if (status != EXIT_DONE) {
        return status;
    }
    if (!request->is_json) {
        attach_print_remarks(conn);
    }
    if (profctl_start(conn, &fault) < 0) {
        (void)profctl_close(conn, NULL);
        return complain("session: %s", fault.text);
    }
    return tell(conn, request->is_json);
}

int verb_start(int argc, char **argv)
{
    cleanup_(record_request_done) struct record_request request = {0};
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    if (request.kernel_stacks && request.no_kernel_stacks) {
        return options_refuse(&line, "--kernel and --no-kernel cannot be combined");
    }
    return start(&request);
}
