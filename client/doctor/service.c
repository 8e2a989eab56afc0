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

/* Its own last line; of a unit that said nothing, what systemd says of it. */
static void gather_journal(const char *unit, struct service_facts *ret)
{
    char own[64];
    (void)snprintf(own, sizeof own, "_SYSTEMD_UNIT=%s", unit);
    const char *const of_unit[] = {"journalctl", "--no-pager", "-q", "-n", "1",
                                   "-o",         "cat",        own,  NULL};
    const char *const of_systemd[] = {"journalctl", "--no-pager", "-q", "-n", "1",
                                      "-o",         "cat",        "-u", unit, NULL};
    int status = ask_program(of_unit, RUN_LIMIT_MS, ret->journal, sizeof ret->journal);
    if (status >= 0 && ret->journal[strspn(ret->journal, "\n")] == '\0') {
        status = ask_program(of_systemd, RUN_LIMIT_MS, ret->journal, sizeof ret->journal);
    }
    ret->journal[strcspn(ret->journal, "\n")] = '\0';
    if (status < 0) {
        (void)snprintf(ret->journal_why, sizeof ret->journal_why, "journalctl: %s",
                       strerror(-status));
    } else if (ret->journal[0] == '\0') {
        (void)snprintf(ret->journal_why, sizeof ret->journal_why, "%s",
                       "nothing that you may read; root and the group systemd-journal may");
    }
}

/* A drop-in goes over those before it, so the last that has a setting counts. */
void gather_drop_ins(const char *root, struct service_facts *ret)
{
    static const struct {
        enum rights_kind kind;
        const char *name;
    } settings[] = {
        {RIGHTS_CAPABILITIES, "User"},
        {RIGHTS_CAPABILITIES, "CapabilityBoundingSet"},
        {RIGHTS_CAPABILITIES, "AmbientCapabilities"},
        {RIGHTS_FILTER, "SystemCallFilter"},
        {RIGHTS_MEMLOCK, "LimitMEMLOCK"},
    };
    char paths[sizeof ret->service.drop_ins];
    char text[DROP_IN_BYTES];
    char *rest = NULL;
    (void)snprintf(paths, sizeof paths, "%s", ret->service.drop_ins);
    for (char *path = strtok_r(paths, " ", &rest); path != NULL;
         path = strtok_r(NULL, " ", &rest)) {
        if (files_read(root, path, text, sizeof text) <= 0 ||
            strlen(path) >= sizeof ret->drop_ins[0].path) {
            continue;
        }
        for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
            struct drop_in *drop_in = &ret->drop_ins[settings[i].kind];
            if (parse_has_setting(text, settings[i].name)) {
                (void)snprintf(drop_in->path, sizeof drop_in->path, "%s", path);
                (void)snprintf(drop_in->setting, sizeof drop_in->setting, "%s", settings[i].name);
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
        gather_drop_ins("", ret);
        if (strcmp(ret->service.active, "failed") == 0) {
            gather_journal(SERVICE_UNIT, ret);
        } else if (strcmp(ret->socket.active, "failed") == 0) {
            gather_journal(SOCKET_UNIT, ret);
        }
    }
}
