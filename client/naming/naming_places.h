/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The processes that are asked, and those that were and are not asked again. A user's processes
 * have half of the places that other users' leave, and a process that has ended leaves its place.
 */

#include "naming.h"
#include "naming_ask.h"

/* Zeros: empty. */
struct naming_places {
    struct naming_place {
        struct naming_process process; /* folder owned */
        naming_ask_fn *ask;            /* NULL: it is asked no more */
        bool is_new;                   /* nothing was said of it yet */
        unsigned pause;                /* turns that it leaves out after the next one */
        unsigned left;                 /* turns that it still leaves out */
    } all[NAMING_PROCESSES_MAX];
    size_t count;
};

/* Whether it is this place's turn. After each turn it leaves out more of them: 0, 1, 3, 7, .. A map
 * that is written anew costs names (docs/languages.md), and code is made ever more rarely. */
bool naming_place_takes_turn(struct naming_place *place);

void naming_places_done(struct naming_places *places);

/* Frees the places of processes that have ended. */
void naming_places_drop_ended(struct naming_places *places);

/* Whether the process of that pid has a place. After naming_places_drop_ended() it is not that of
 * another process, which had the pid before. */
bool naming_places_has(const struct naming_places *places, pid_t pid);

/* Takes the process, and its folder with it (-1 then); `ask` may be NULL. False: there is no room
 * for a process of that user, and nothing is taken. */
bool naming_places_take(struct naming_places *places, struct naming_process *process,
                        naming_ask_fn *ask);
