/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Gatherers: each fills its part of the facts with what the caller's rights let it see. `root` is a
 * folder with proc/, sys/ and etc/ in it, "" for this machine.
 */

#include "facts.h"
#include "profctl.h"

void gather_machine(const char *root, struct machine_facts *ret);

/* `path` NULL: as profctl_connect() has it. It is borrowed as long as the facts. */
void gather_access(const char *path, struct access_facts *ret);

/* Asks systemctl, and journalctl where a unit has failed. */
void gather_service(struct service_facts *ret);

/* Which of the service's drop-ins set its rights. */
void gather_drop_ins(const char *root, struct service_facts *ret);

/* What the daemon says over the connection, and what /proc says of its process. The latter alone,
 * of `ret->pid`, is gather_process(). */
void gather_daemon(struct profctl *conn, struct daemon_facts *ret);
void gather_process(const char *root, struct daemon_facts *ret);

/* Which client holds a session, and what can be done; false: there is none. */
struct session_status;
bool gather_holder(const struct session_status *status, struct daemon_facts *ret);

/*
 * Programs that run, as a child sees them, which may take GATHER_PROGRAMS_MS. gather_scan() is what
 * that child does.
 */
#define GATHER_PROGRAMS_MS 5000
void gather_programs(const char *root, struct program_facts *ret);
void gather_scan(const char *root, struct program_facts *ret);

/* Where debugging information comes from on this distribution. */
void gather_packages(const char *root, struct facts *facts);
