/* SPDX-License-Identifier: Apache-2.0 */

/*
 * naming_probe PID...: asks these processes for names, as `profctl record --names -p PID,...` does
 * before it records, and says the same of them. It waits until each has answered, however busy the
 * machine is, so a process that never answers has no place here.
 */
#include "naming.h"

#include <stdio.h>
#include <stdlib.h>

#define FOR_EVER_MS 3600000

int main(int argc, char **argv)
{
    static const struct naming_wait wait = {
        .answer_ms = FOR_EVER_MS,
        .listen_ms = FOR_EVER_MS,
        .stuck_ms = FOR_EVER_MS,
        .look_ms = FOR_EVER_MS,
    };
    static struct session_targets targets;
    struct naming *naming = NULL;
    for (int i = 1; i < argc && targets.pid_count < SESSION_PIDS_MAX; i++) {
        targets.pids[targets.pid_count++] = (int32_t)strtol(argv[i], NULL, 10);
    }
    if (targets.pid_count == 0 || naming_new(&targets, 0, &wait, &naming) < 0) {
        (void)fprintf(stderr, "usage: naming_probe PID...\n");
        return 2;
    }
    naming_ask(naming);
    (void)naming_free(naming);
    return 0;
}
