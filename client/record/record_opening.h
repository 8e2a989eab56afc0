/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "record.h"
#include "target_watch.h"

/* Says on a line what will be recorded under the config, how often, and what ends it (`watch` has
 * the tasks whose end does), if standard error is a terminal. Never waits for that. */
void record_opening_show(const struct record_request *request, const char *config,
                         const struct target_watch *watch);
