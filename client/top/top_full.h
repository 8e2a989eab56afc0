/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "top.h"
#include "top_source.h"

/*
 * profctl top on all of the terminal, until its user ends it. Returns an exit status, after a
 * complaint where something failed.
 */
int top_full_run(const struct top_request *request, struct top_source *source);
