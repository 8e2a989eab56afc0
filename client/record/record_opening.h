/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "record.h"

#include <stdio.h>

/* Says on a line what will be recorded under the config, how often, and what ends it. */
void record_opening_print(FILE *to, const struct record_request *request, const char *config);
