/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gathers the state of the units from systemctl, which any user may ask. What a unit that has
 * failed said last is in the journal, which few users may read.
 */
#include "files.h"
#include "gather.h"
#include "parse.h"
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SOCKET_UNIT   "cpu-profilerd.socket"
#define SERVICE_UNIT  "cpu-profilerd.service"
#define SHOWN_BYTES   ((size_t)4096)
#define DROP_IN_BYTES ((size_t)4096)

static void gather_journal(const char *unit, struct service_facts *ret)
{
    const char *const arguments[] = {"journalctl", "--no-pager", "-q", "-n", "1",
                                     "-o",         "cat",        "-u", unit, NULL};
    int status = ask_program(arguments, RUN_LIMIT_MS, ret->journal, sizeof ret->journal);
    ret->journal[strcspn(ret->journal, "\n")] = '\0';
    if (status < 0) {
        (void)snprintf(ret->journal_why, sizeof ret->journal_why, "journalctl: %s",
                       strerror(-status));
    } else if (ret->journal[0] == '\0') {
        (void)snprintf(ret->journal_why, sizeof ret->journal_why, "%s",
                       "nothing that you may read; root and the group systemd-journal may");
    }
}

/* The last drop-in that sets capabilities, calls or limits: it goes over those before it. */
static void find_rights(const char *drop_ins, char *into, size_t capacity_bytes)
{
    static const char *const settings[] = {"AmbientCapabilities=", "CapabilityBoundingSet=",
                                           "SystemCallFilter=", "LimitMEMLOCK=", "User="};
    char paths[sizeof((struct unit_facts *)0)->drop_ins];
    char text[DROP_IN_BYTES];
    char *rest = NULL;
    into[0] = '\0';
    (void)snprintf(paths, sizeof paths, "%s", drop_ins);
    for (char *path = strtok_r(paths, " ", &rest); path != NULL;
         path = strtok_r(NULL, " ", &rest)) {
        if (files_read("", path, text, sizeof text) <= 0 || strlen(path) >= capacity_bytes) {
            continue;
        }
        for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
            if (strstr(text, settings[i]) != NULL) {
                (void)snprintf(into, capacity_bytes, "%s", path);
            }
        }
    }
}

void gather_service(struct service_facts *ret)
{
    static const char *const arguments[] = {
        "systemctl",
        "show",
        "--no-pager",
        "--property=Id,LoadState,ActiveState,UnitFileState,Result,NeedDaemonReload,DropInPaths",
        SOCKET_UNIT,
        SERVICE_UNIT,
        NULL};
    char shown[SHOWN_BYTES];
    *ret = (struct service_facts){.is_booted = access("/run/systemd/system", F_OK) == 0};
    if (!ret->is_booted) {
        return;
    }
    int status = ask_program(arguments, RUN_LIMIT_MS, shown, sizeof shown);
    if (status < 0) {
        (void)snprintf(ret->why, sizeof ret->why, "systemctl: %s", strerror(-status));
    } else if (!parse_unit(shown, SOCKET_UNIT, &ret->socket) ||
               !parse_unit(shown, SERVICE_UNIT, &ret->service)) {
        (void)snprintf(ret->why, sizeof ret->why, "systemctl ended with status %d", status);
    } else {
        find_rights(ret->service.drop_ins, ret->rights_drop_in, sizeof ret->rights_drop_in);
        if (strcmp(ret->service.active, "failed") == 0) {
            gather_journal(SERVICE_UNIT, ret);
        } else if (strcmp(ret->socket.active, "failed") == 0) {
            gather_journal(SOCKET_UNIT, ret);
        }
    }
}
