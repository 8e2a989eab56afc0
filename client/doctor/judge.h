/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Judges: facts -> findings, by the table of causes. They ask nothing of the machine. */

#include "doctor.h"
#include "facts.h"

void judge_kernel(const struct facts *facts, struct doctor_report *report);
void judge_service(const struct facts *facts, struct doctor_report *report);
void judge_access(const struct facts *facts, struct doctor_report *report);
void judge_daemon(const struct facts *facts, struct doctor_report *report);
void judge_rights(const struct facts *facts, struct doctor_report *report);
void judge_memory(const struct facts *facts, struct doctor_report *report);
void judge_session(const struct facts *facts, struct doctor_report *report);
void judge_sample(const struct facts *facts, struct doctor_report *report);
void judge_clock(const struct facts *facts, struct doctor_report *report);
void judge_programs(const struct facts *facts, struct doctor_report *report);

/* Whether the recording of the doctor's child came about. */
bool facts_are_sampled(const struct facts *facts);

/* Whether events were given to it, whatever became of it then. */
bool facts_have_begun(const struct facts *facts);

/* Whether the daemon's process has the capability; false where that is not known. */
bool facts_have_capability(const struct facts *facts, unsigned capability);

#define JUDGE_PARANOID_MAX 2 /* the most that Linux itself knows of */

/* A number as a text. `into` has room for JUDGE_NUMBER_BYTES; returns it. */
#define JUDGE_NUMBER_BYTES ((size_t)32)
const char *judge_number(int64_t number, char *into);
