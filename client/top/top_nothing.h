/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is said in place of the rows of an event without a sample in the window. Pure. */

#include "top_events.h"
#include "top_model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `into` has room for TOP_NOTHING_BYTES; returns it. With the first other event that has samples
 * goes how it can be seen: by a key of the screen, else by an option. */
#define TOP_NOTHING_BYTES ((size_t)256)
const char *top_nothing_text(const struct top_model *model, const struct top_events *events,
                             uint32_t shown, bool has_screen, char *into);
