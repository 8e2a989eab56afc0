/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Explains why a session cannot be attached. The daemon's refusal has few details, since sessions
 * belong to users. Status is open to all members, so the explanation comes from a Status right
 * after the refusal.
 */
#include "attach.h"

#include "cleanup.h"
#include "doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct verb_option attach_options[] = {
    OPTION_JSON(offsetof(struct attach_request, is_json)),
    OPTION_SOCKET(offsetof(struct attach_request, socket_path)),
    {0},
};

static int complain_attach(const struct session_status *status, const struct profctl_fault *fault)
{
    char text[SESSION_HOLDER_BYTES + SESSION_RECORDER_BYTES];
    if (status->id == NULL) {
        return complain("there is no session; profctl start begins one");
    }
    if (!status->detached) {
        return complain("%s; only that client and root can end it",
                        session_recorder(status, "", text));
    }
    if (fault->code == EACCES) {
        return complain("the session belongs to %s, not to you; its owner and root can stop, read "
                        "and close it",
                        session_holder(status, text));
    }
    if (fault->code == EBADFD) {
        return complain("another client of its owner, maybe a profctl read, holds the session; "
                        "wait for its end, or end it (%s)",
                        fault->text);
    }
    return complain("session: %s", fault->text);
}

/* Says whose session root has taken, unless it is one of root's that no client was to end. */
static void say_whose(const struct session_status *status)
{
    char holder[SESSION_HOLDER_BYTES];
    if (status->id == NULL || (status->detached && status->uid == 0)) {
        return;
    }
    (void)complain("session %s: it belongs to %s%s", status->id, session_holder(status, holder),
                   status->detached ? "" : ", and was taken from the client that recorded it");
}

int attach_connect(const char *socket_path, struct profctl **ret)
{
    struct profctl_fault fault = {0};
    return profctl_connect(socket_path, ret, &fault) < 0
               ? doctor_complain_connect(socket_path, &fault)
               : EXIT_DONE;
}

int attach_session(const char *socket_path, struct profctl **ret)
{
    cleanup_(connection_closep) struct profctl *conn = NULL;
    cleanup_(session_status_done) struct session_status status = {0};
    struct profctl_fault fault = {0};
    struct profctl_fault status_fault = {0};
    if (attach_connect(socket_path, &conn) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    /* Root may take a session from the client that holds it: whose it was must be known before. */
    if (geteuid() == 0 && session_status_ask(conn, &status, &status_fault) < 0) {
        return complain("session: %s", status_fault.text);
    }
    if (profctl_attach(conn, NULL, &fault) < 0) {
        session_status_done(&status);
        return session_status_ask(conn, &status, &status_fault) < 0
                   ? complain("session: %s", fault.text)
                   : complain_attach(&status, &fault);
    }
    if (geteuid() == 0) {
        say_whose(&status);
    }
    *ret = take_ptr(conn);
    return EXIT_DONE;
}

void attach_print_remarks(const struct profctl *conn)
{
    const struct connection_notes *notes = connection_notes(conn);
    for (size_t i = 0; i < notes->remark_count; i++) {
        (void)complain("note: %s", notes->remarks[i]);
    }
}
