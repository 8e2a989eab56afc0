/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the sampling thread does, round for round. Everything here belongs to that thread; what
 * crosses to the main thread is in collector_mail.h. Of collector.c only.
 */

#include "collector.h"

struct rounds;

/* `collector` is borrowed for its life. Returns 0 or -errno. */
int rounds_new(const struct drain_config *config, struct collector *collector, struct rounds **ret);
struct rounds *rounds_free(struct rounds *rounds);

/* A thread's function; `userdata` are the rounds. Ends when it is asked to. */
void *rounds_run(void *userdata);
