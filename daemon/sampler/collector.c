/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starts and ends the sampling thread. The thread itself is rounds.c, and all that crosses between
 * it and the main thread goes through collector_mail.c.
 */
#include "collector_mail.h"
#include "collector_parts.h"
#include "rounds.h"

int collector_start(const struct drain_config *config, struct collector **ret)
{
    struct collector *collector = NULL;
    struct rounds *rounds = NULL;
    int r = collector_new(config->source->cpu_count, config->source->sideband_count, &collector);
    if (r == 0) {
        r = rounds_new(config, collector, &rounds);
    }
    if (r == 0) {
        r = -pthread_create(&collector->thread, NULL, rounds_run, rounds);
    }
    if (r < 0) {
        (void)rounds_free(rounds);
        (void)collector_free(collector);
        return r;
    }
    collector->rounds = rounds;
    collector_await_walk(collector, COLLECTOR_FIRST_WALK_NS);
    *ret = collector;
    return 0;
}

struct collector *collector_free(struct collector *collector)
{
    if (collector != NULL && collector->rounds != NULL) {
        collector_quit(collector);
        (void)pthread_join(collector->thread, NULL);
        (void)rounds_free(collector->rounds);
    }
    return collector_discard(collector);
}
