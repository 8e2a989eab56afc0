/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Judges the way from the caller to the daemon: units, socket, group. The first of them that is
 * wrong is why a connection fails.
 */
#include "causes.h"
#include "judge.h"

#include "sampler.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is(const char *state, const char *expected)
{
    return strcmp(state, expected) == 0;
}

/* Of a unit that has failed. */
static const char *last_words(const struct service_facts *service)
{
    return service->journal[0] == '\0' ? service->journal_why : service->journal;
}

/* One that does not listen. */
static bool is_disabled(const struct unit_facts *socket)
{
    return !is(socket->active, "active") && !is(socket->file, "enabled") &&
           !is(socket->file, "enabled-runtime");
}

/* The socket unit is enabled, and does not listen. */
static void judge_stopped(const struct service_facts *service, struct doctor_report *report)
{
    const struct unit_facts *socket = &service->socket;
    if (is(socket->active, "failed")) {
        REPORT(report, CAUSE_UNIT_FAILED, socket->result, last_words(service));
    } else {
        REPORT(report, CAUSE_UNIT_STOPPED);
    }
}

void judge_service(const struct facts *facts, struct doctor_report *report)
{
    const struct service_facts *service = &facts->service;
    if (!facts->access.is_default) {
        REPORT(report, CAUSE_UNIT_OTHER_SOCKET, facts->access.path);
    } else if (!service->is_booted) {
        REPORT(report, CAUSE_UNIT_NOT_BOOTED);
    } else if (service->why[0] != '\0') {
        report_unknown(report, "unit", service->why);
    } else if (is(service->socket.load, "masked") || is(service->service.load, "masked")) {
        REPORT(report, CAUSE_UNIT_MASKED,
               is(service->socket.load, "masked") ? "cpu-profilerd.socket"
                                                  : "cpu-profilerd.service");
    } else if (is(service->socket.load, "not-found")) {
        REPORT(report, CAUSE_UNIT_NOT_INSTALLED);
    } else if (is_disabled(&service->socket)) {
        /* Before a service that has failed: its start would start the socket. */
        REPORT(report, CAUSE_UNIT_DISABLED);
    } else if (is(service->service.active, "failed") && !facts->daemon.has_answered) {
        REPORT(report, CAUSE_UNIT_SERVICE_FAILED, service->service.result, last_words(service));
    } else if (!is(service->socket.active, "active")) {
        judge_stopped(service, report);
    } else if (service->socket.needs_reload || service->service.needs_reload) {
        REPORT(report, CAUSE_UNIT_STALE);
    } else if (is(service->socket.file, "disabled")) {
        REPORT(report, CAUSE_UNIT_UNTIL_BOOT);
    } else {
        REPORT(report, CAUSE_UNIT_GOOD, service->socket.active, service->socket.file);
    }
}

static void judge_missing(const struct facts *facts, struct doctor_report *report)
{
    const struct access_facts *access = &facts->access;
    bool has_units = facts->service.is_booted && !is(facts->service.socket.load, "not-found");
    if (access->stat_errno != ENOENT) {
        REPORT(report, CAUSE_SOCKET_UNREACHABLE, access->path, strerror(access->stat_errno));
    } else if (!access->is_default) {
        REPORT(report, CAUSE_SOCKET_MISSING_ELSEWHERE, access->path);
    } else if (has_units && is(facts->service.socket.active, "active")) {
        REPORT(report, CAUSE_SOCKET_GONE, access->path);
    } else {
        REPORT(report, has_units ? CAUSE_SOCKET_MISSING : CAUSE_SOCKET_MISSING_BY_HAND,
               access->path);
    }
}

static void judge_dead(const struct facts *facts, struct doctor_report *report)
{
    bool is_units = facts->access.is_default && facts->service.is_booted &&
                    is(facts->service.socket.load, "loaded");
    REPORT(report, is_units ? CAUSE_SOCKET_DEAD : CAUSE_SOCKET_DEAD_BY_HAND, facts->access.path);
}

/* Whether the socket is there and only its owner may connect. */
static bool is_owners_alone(const struct access_facts *access)
{
    return (access->mode & 0066) == 0 || (access->gid == 0 && (access->mode & 0006) == 0);
}

/* What is wrong with the mode of a socket that is not its owner's alone, or of the service's.
 * False: nothing. To connect is to write. */
static bool judge_mode(const struct facts *facts, struct doctor_report *report)
{
    const struct access_facts *access = &facts->access;
    const bool is_units = access->is_default && facts->service.is_booted &&
                          is(facts->service.socket.active, "active");
    const bool is_shut = (access->mode & 0020) == 0;
    char mode[JUDGE_NUMBER_BYTES];
    (void)snprintf(mode, sizeof mode, "%04o", (unsigned)access->mode & 07777U);
    if (is_shut && access->has_group && (is_units || !is_owners_alone(access))) {
        REPORT(report, is_units ? CAUSE_SOCKET_MODE : CAUSE_SOCKET_MODE_BY_HAND, access->path, mode,
               access->group);
    } else if ((access->mode & 0002) != 0) {
        REPORT(report, CAUSE_SOCKET_OPEN, access->path, mode);
    } else {
        return false;
    }
    return true;
}

static void judge_socket(const struct facts *facts, struct doctor_report *report)
{
    const struct access_facts *access = &facts->access;
    if (access->stat_errno != 0) {
        judge_missing(facts, report);
    } else if (!access->is_socket) {
        REPORT(report, CAUSE_SOCKET_NONE, access->path);
    } else if (facts->daemon.code == ECONNREFUSED) {
        judge_dead(facts, report);
    } else if (judge_mode(facts, report)) {
        return;
    } else if (is_owners_alone(access) && !access->is_root && !access->is_ours &&
               access->has_group) {
        REPORT(report, CAUSE_SOCKET_OF_ROOT, access->path, access->group);
    } else {
        char users[96];
        (void)snprintf(users, sizeof users, "root and the group %s", access->group);
        REPORT(report, CAUSE_SOCKET_GOOD, access->path,
               is_owners_alone(access) ? "its owner alone" : users);
    }
}

static void judge_group(const struct facts *facts, struct doctor_report *report)
{
    const struct access_facts *access = &facts->access;
    bool is_open = facts->daemon.is_connected || access->is_ours;
    char gid[JUDGE_NUMBER_BYTES];
    if (access->is_root) {
        REPORT(report, CAUSE_GROUP_ROOT);
    } else if (access->is_in_effect) {
        REPORT(report, CAUSE_GROUP_GOOD, access->group);
    } else if (is_open) {
        report_unknown(report, "group", "the socket lets you connect without one");
    } else if (access->is_foreign) {
        REPORT(report, CAUSE_GROUP_FOREIGN, access->group, judge_number(access->gid, gid),
               SAMPLER_GROUP);
    } else if (!access->has_group) {
        REPORT(report, CAUSE_GROUP_MISSING, access->group);
    } else {
        REPORT(report, access->is_listed ? CAUSE_GROUP_NEW_LOGIN : CAUSE_GROUP_NOT_MEMBER,
               access->group);
    }
}

void judge_access(const struct facts *facts, struct doctor_report *report)
{
    const size_t before = report->count;
    bool is_explained = facts->daemon.is_connected || facts->daemon.code == 0;
    judge_socket(facts, report);
    judge_group(facts, report);
    for (size_t i = 0; i < report->count; i++) {
        const bool is_ours = i >= before || strcmp(report->findings[i].check, "unit") == 0;
        is_explained = is_explained || (is_ours && report->findings[i].verdict == DOCTOR_WRONG);
    }
    if (!is_explained) {
        REPORT(report, CAUSE_SOCKET_REFUSES, facts->daemon.text);
    }
}
