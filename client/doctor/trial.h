/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "facts.h"
#include "profctl.h"
#include "spin.h"

/*
 * Records the child for a second, in an attached session on the connection, and reads the
 * recording. trial_done() releases it.
 */
void trial_gather(struct profctl *conn, struct spin *spin, struct sample_facts *ret);
void trial_done(struct sample_facts *facts);

/* Counts what a recording (borrowed) has of a process. Returns 0; or -errno, and the recording has
 * failed. */
int trial_count(const uint8_t *bytes, size_t size_bytes, pid_t pid, struct sample_facts *facts);
