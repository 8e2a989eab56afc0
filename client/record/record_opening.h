/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "record.h"

/* Says on a line what will be recorded under the config, how often, and what ends it, if standard
 * error is a terminal. Never waits for that. */
void record_opening_show(const struct record_request *request, const char *config);
