/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Gives up, for good, the rights that the daemon does not use: for one that was started by hand as
 * root. To be called before there are other threads, after the socket was made. Limits that a
 * capability would replace are raised first.
 *
 * What is left of the capabilities that it has: those of the service; CAP_SYSLOG for the kernel's
 * names; CAP_IPC_LOCK and CAP_SYS_NICE where the limits could not be raised; CAP_SYS_ADMIN where
 * perf_event_paranoid of more than 2 asks for it; and for root those that start and end a worker
 * under another uid. No program that is executed gives it any other, and what is no call of
 * allowed_calls.h fails with EPERM (not in builds with sanitizers, which need more).
 *
 * Returns 0, or -errno with rights half given up: the daemon must not go on.
 */
int rights_drop(void);
