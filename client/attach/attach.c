/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Explains why a session cannot be attached. The daemon's refusal has few details, since sessions
 * belong to users. Status is open to all members, so the explanation comes from a Status right
 * after the refusal.
 */
#include "attach.h"

#include "cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct verb_option attach_options[] = {
    OPTION_JSON(offsetof(struct attach_request, is_json)),
    OPTION_SOCKET(offsetof(struct attach_request, socket_path)),
    {0},
};

/* The session's holder and since when, "root (uid 0) since 14:02:11 (12 s ago)". */
#define HOLDER_BYTES (SESSION_OWNER_BYTES + SESSION_CLOCK_BYTES + 48)
static const char *describe_holder(const struct session_status *status, char *into)
{
    char owner[SESSION_OWNER_BYTES];
    char since[SESSION_CLOCK_BYTES];
    (void)snprintf(into, HOLDER_BYTES, "%s since %s (%" PRIu64 " s ago)",
                   session_owner_name(status->uid, owner),
                   session_clock(-(int64_t)status->age_s, since), status->age_s);
    return into;
}

/* "root is recording (profctl, pid 13963, for 596 s)". `into` has room for CLIENT_BYTES; returns
 * it.
 */
#define CLIENT_BYTES (SESSION_OWNER_BYTES + SESSION_CLIENT_BYTES + 64)
static const char *describe_client(const struct session_status *status, const char *already,
                                   char *into)
{
    char owner[SESSION_OWNER_BYTES];
    char client[SESSION_CLIENT_BYTES];
    (void)snprintf(into, CLIENT_BYTES, "%s is %srecording (%s, for %" PRIu64 " s)",
                   session_owner_name(status->uid, owner), already, session_client(status, client),
                   status->age_s);
    return into;
}

static int complain_attach(const struct session_status *status, const struct profctl_fault *fault)
{
    char text[HOLDER_BYTES + CLIENT_BYTES];
    if (status->id == NULL) {
        return complain("there is no session; profctl start begins one");
    }
    if (!status->detached) {
        return complain("%s; only that client and root can end it",
                        describe_client(status, "", text));
    }
    if (fault->code == EACCES) {
        return complain("the session belongs to %s, not to you; its owner and root can stop, read "
                        "and close it",
                        describe_holder(status, text));
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
    char holder[HOLDER_BYTES];
    if (status->id == NULL || (status->detached && status->uid == 0)) {
        return;
    }
    (void)complain("session %s: it belongs to %s%s", status->id, describe_holder(status, holder),
                   status->detached ? "" : ", and was taken from the client that recorded it");
}

int attach_session(const char *socket_path, struct profctl **ret)
{
    cleanup_(connection_closep) struct profctl *conn = NULL;
    cleanup_(session_status_done) struct session_status status = {0};
    struct profctl_fault fault = {0};
    struct profctl_fault status_fault = {0};
    if (profctl_connect(socket_path, &conn, &fault) < 0) {
        return complain("daemon: %s", fault.text);
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

int attach_complain_create(struct profctl *conn, const struct profctl_fault *fault)
{
    cleanup_(session_status_done) struct session_status status = {0};
    struct profctl_fault status_fault = {0};
    char text[HOLDER_BYTES + CLIENT_BYTES];
    if (fault->code != EEXIST || session_status_ask(conn, &status, &status_fault) < 0 ||
        status.id == NULL) {
        return complain("session: %s", fault->text);
    }
    bool may_end = geteuid() == 0 || geteuid() == status.uid;
    if (!status.detached) {
        return complain("%s; wait for its end, or %s", describe_client(&status, "already ", text),
                        geteuid() == 0
                            ? "take it over as root: 'profctl stop' then 'profctl read' saves it, "
                              "'profctl close' discards it"
                        : may_end ? "end that client"
                                  : "ask its owner to end it");
    }
    (void)describe_holder(&status, text);
    if (!may_end) {
        return complain("there is a session already, of %s; wait for its end, or ask its owner to "
                        "close it",
                        text);
    }
    if (strcmp(status.state, "created") == 0) {
        return complain("there is a session already that was never started, of %s; 'profctl close' "
                        "discards it",
                        text);
    }
    return complain("a session is already %s, of %s; 'profctl stop' then 'profctl read' saves it, "
                    "'profctl close' discards it",
                    status.state, text);
}
