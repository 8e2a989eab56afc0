/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "profctl.h"

/* For cleanup_(). */
static inline void connection_closep(struct profctl **conn)
{
    *conn = profctl_disconnect(*conn);
}
