/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#define PROCESS_OWNER_UNKNOWN UINT32_MAX

/* The uid that runs a process: on whose account it is. PROCESS_OWNER_UNKNOWN when it is gone. Never
 * waits for the process. */
uint32_t process_owner(int32_t pid);
