/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#define PROCESS_OWNER_UNKNOWN UINT32_MAX

/* The account (account.h) that a process is charged to: that of the uid that runs it.
 * PROCESS_OWNER_UNKNOWN when the process is gone. Never waits for the process. */
uint32_t process_owner(int32_t pid);
