/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What bounds a drain, for itself and for its parts. */

#include <stdint.h>

#define DRAIN_SINKS_MAX 2
#define DRAIN_HELD_NS   UINT64_C(2000000000) /* a sample waits no longer for what it lacks */
