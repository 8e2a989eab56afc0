/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table without gaps, in no order. Each place has its process's folder of /proc open, which says
 * whether that process still is, whatever has its pid now.
 */
#include "naming_places.h"

#include "cleanup.h"
#include "quota.h"

#include <fcntl.h>

#define PARTS     2  /* half of what other users leave */
#define PAUSE_MAX 63 /* turns */

bool naming_place_takes_turn(struct naming_place *place)
{
    if (place->left > 0) {
        place->left--;
        return false;
    }
    place->left = place->pause;
    place->pause = place->pause >= PAUSE_MAX ? PAUSE_MAX : 2 * place->pause + 1;
    return true;
}

void naming_places_done(struct naming_places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        naming_process_close(&places->all[i].process);
    }
    places->count = 0;
}

void naming_places_drop_ended(struct naming_places *places)
{
    size_t kept = 0;
    for (size_t i = 0; i < places->count; i++) {
        struct naming_place *place = &places->all[i];
        if (naming_process_has_ended(&place->process)) {
            naming_process_close(&place->process);
        } else {
            places->all[kept++] = *place;
        }
    }
    places->count = kept;
}

bool naming_places_has(const struct naming_places *places, pid_t pid)
{
    for (size_t i = 0; i < places->count; i++) {
        if (places->all[i].process.pid == pid) {
            return true;
        }
    }
    return false;
}

bool naming_places_take(struct naming_places *places, struct naming_process *process,
                        naming_ask_fn *ask)
{
    uint64_t own = 0;
    for (size_t i = 0; i < places->count; i++) {
        own += places->all[i].process.uid == process->uid;
    }
    if (!quota_rule_allows(NAMING_PROCESSES_MAX, PARTS, places->count, own, 1)) {
        return false;
    }
    places->all[places->count++] =
        (struct naming_place){.process = *process, .ask = ask, .is_new = true};
    process->folder = -1;
    return true;
}
