/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Judges what runs: whether its functions can be named, and by what. None of it is wrong: a
 * recording names what it can.
 */
#include "causes.h"
#include "judge.h"
#include "runtimes.h"

#include "cleanup.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_BYTES ((size_t)320)

/* ", N of others are hidden from you"; "" where none is. */
static void write_hidden(const struct program_facts *programs, char *into, size_t capacity_bytes)
{
    into[0] = '\0';
    if (programs->hidden_count > 0) {
        (void)snprintf(into, capacity_bytes, "; %u processes of other users are hidden from you",
                       programs->hidden_count);
    }
}

#define CLAUSE_BYTES ((size_t)96)

/* "3 of 12 programs that run have", whose number fits the verb. `into` has room for CLAUSE_BYTES;
 * returns it. */
static const char *write_part(uint32_t part, uint32_t count, char *into)
{
    if (count == 1) {
        (void)snprintf(into, CLAUSE_BYTES, "the one program that runs has");
    } else {
        (void)snprintf(into, CLAUSE_BYTES, "%u of %u programs that run %s", part, count,
                       part == 1 ? "has" : "have");
    }
    return into;
}

/* "all 12 programs that run have a build-id, 5 of them symbols"; returns `into` likewise. */
static const char *write_all(const struct program_facts *programs, char *into)
{
    if (programs->file_count == 1) {
        (void)snprintf(into, CLAUSE_BYTES, "the one program that runs has a build-id, %s symbols",
                       programs->with_symbols == 1 ? "and" : "but no");
    } else {
        (void)snprintf(into, CLAUSE_BYTES,
                       "%s%u programs that run have a build-id, %u of them symbols",
                       programs->is_cut ? "of more than can be looked at, the first " : "all ",
                       programs->file_count, programs->with_symbols);
    }
    return into;
}

static void judge_files(const struct facts *facts, struct doctor_report *report)
{
    const struct program_facts *programs = &facts->programs;
    char clause[CLAUSE_BYTES];
    char hidden[96];
    write_hidden(programs, hidden, sizeof hidden);
    if (programs->nameless_count > 0) {
        REPORT(report, CAUSE_PROGRAMS_NO_BUILD_ID,
               write_part(programs->nameless_count, programs->file_count, clause),
               programs->nameless);
    } else {
        REPORT(report, CAUSE_PROGRAMS_GOOD, write_all(programs, clause), hidden);
    }
    (void)write_part(programs->bare_count, programs->file_count, clause);
    if (programs->bare_count == 0 || facts->has_debuginfod) {
        (void)snprintf(clause, sizeof clause, "%u program%s", programs->with_debug_file,
                       programs->with_debug_file == 1 ? " has" : "s have");
        REPORT(report, CAUSE_DEBUG_GOOD, clause,
               facts->has_debuginfod ? ", and DEBUGINFOD_URLS names servers for the others" : "");
    } else if (facts->packages[0] != '\0') {
        REPORT(report, CAUSE_DEBUG_PACKAGES, clause, facts->packages);
    } else if (facts->debuginfod_url[0] != '\0') {
        REPORT(report, CAUSE_DEBUG_SERVERS, clause, facts->debuginfod_url);
    } else {
        REPORT(report, CAUSE_DEBUG_NO_SERVERS, clause);
    }
}

/* ".../bin/jcmd 12 Compiler.perfmap", with the tool beside the caller's own program. */
static void write_running(const struct made_facts *made, const struct runtime *runtime, char *into)
{
    char tool[sizeof made->folder + 16];
    char *command = NULL;
    size_t command_bytes = 0;
    FILE *file = open_memstream(&command, &command_bytes);
    into[0] = '\0';
    if (file == NULL) {
        return;
    }
    (void)snprintf(tool, sizeof tool, "%s/%s", made->folder, runtime->running);
    text_print_argument(file, access(tool, X_OK) == 0 ? tool : runtime->running);
    (void)fprintf(file, " %d Compiler.perfmap", (int)made->pid);
    if (fclose(file) == 0 && command_bytes < COMMAND_BYTES) {
        (void)snprintf(into, COMMAND_BYTES, "%s", command);
    }
    free(command);
}

/* The command for another user's program names no file of that user: root would run it. */
static void judge_running(const struct made_facts *made, const char *pid,
                          struct doctor_report *report)
{
    const char *frames = made->lacks_frames
                             ? "; its stacks end in that code unless it is started with "
                               "-XX:+PreserveFramePointer"
                             : "";
    char command[COMMAND_BYTES];
    if (made->is_own) {
        write_running(made, runtime_get(made->runtime), command);
        REPORT(report, CAUSE_MADE_CODE_RUNNING, made->command, pid, command, frames);
    } else {
        REPORT(report, CAUSE_MADE_CODE_RUNNING_OTHER, made->command, pid, "", frames);
    }
}

/* "NAME=VALUE", which a command exports. Options are added to those that are there already; what a
 * shell does to find them is no place of causes.c. `into` has room for COMMAND_BYTES; returns it.
 */
static const char *write_export(const char *setting, char *into)
{
    static const char *const lists[] = {"NODE_OPTIONS", "JDK_JAVA_OPTIONS"};
    size_t name_bytes = strcspn(setting, "=");
    (void)snprintf(into, COMMAND_BYTES, "%s", setting);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strlen(lists[i]) == name_bytes && memcmp(setting, lists[i], name_bytes) == 0) {
            (void)snprintf(into, COMMAND_BYTES, "%s=\"${%s:+$%s }%s\"", lists[i], lists[i],
                           lists[i], setting + name_bytes + 1);
        }
    }
    return into;
}

static void judge_made(const struct made_facts *made, struct doctor_report *report)
{
    const struct runtime *runtime = runtime_get(made->runtime);
    char pid[JUDGE_NUMBER_BYTES];
    char exported[COMMAND_BYTES];
    (void)judge_number(made->pid, pid);
    if (made->is_named) {
        REPORT(report, CAUSE_MADE_CODE_FRAMES, made->command, pid,
               write_export("JDK_JAVA_OPTIONS=-XX:+PreserveFramePointer", exported));
    } else if (runtime->running != NULL) {
        judge_running(made, pid, report);
    } else {
        REPORT(report, CAUSE_MADE_CODE_RESTART, made->command, pid,
               write_export(runtime->setting, exported));
    }
}

void judge_programs(const struct facts *facts, struct doctor_report *report)
{
    const struct program_facts *programs = &facts->programs;
    if (programs->why[0] != '\0') {
        report_unknown(report, "programs", programs->why);
        report_unknown(report, "debug", programs->why);
        report_unknown(report, "made-code", programs->why);
        return;
    }
    judge_files(facts, report);
    for (size_t i = 0; i < programs->unmapped_count && i < MADE_MAX; i++) {
        judge_made(&programs->made[i], report);
    }
    if (programs->unmapped_count > MADE_MAX) {
        char more[CLAUSE_BYTES];
        uint32_t count = programs->unmapped_count - MADE_MAX;
        (void)snprintf(more, sizeof more, "%u more program%s", count,
                       count == 1 ? " does" : "s do");
        REPORT(report, CAUSE_MADE_CODE_MORE, more, count == 1 ? "it makes" : "they make");
    } else if (programs->unmapped_count == 0) {
        REPORT(report, CAUSE_MADE_CODE_GOOD,
               programs->runtime_count == 0 ? "no program that you see makes code"
                                            : "all programs that make code name it");
    }
}
