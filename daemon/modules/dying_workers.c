/* SPDX-License-Identifier: Apache-2.0 */

/*
 * No call waits for their exit: each is looked at now and then. No worker is started
 * without a place for it here.
 */
#include "dying_workers.h"

#include "cleanup.h"

void dying_workers_look(struct dying_workers *dying)
{
    for (size_t i = 0; i < DYING_WORKERS_MAX; i++) {
        struct dying_worker *place = &dying->places[i];
        if (place->worker != NULL && elf_worker_end(place->worker)) {
            dying->troubles |= 1U << elf_worker_trouble(place->worker);
            place->worker = elf_worker_free(place->worker);
        }
    }
}

bool dying_workers_reserve(struct dying_workers *dying)
{
    size_t free_count = 0;
    dying_workers_look(dying);
    for (size_t i = 0; i < DYING_WORKERS_MAX; i++) {
        free_count += dying->places[i].worker == NULL;
    }
    bool has_room = free_count > dying->reserved_count;
    dying->reserved_count += has_room;
    return has_room;
}

void dying_workers_unreserve(struct dying_workers *dying)
{
    dying->reserved_count--;
}

void dying_workers_add(struct dying_workers *dying, struct elf_worker *worker, const uid_t *uid)
{
    struct dying_worker *place = dying->places;
    while (place->worker != NULL) {
        place++;
    }
    *place = (struct dying_worker){
        .worker = worker,
        .was_reading = uid != NULL,
        .uid = uid == NULL ? 0 : *uid,
    };
    dying->reserved_count--;
    (void)elf_worker_end(worker);
}

/* Each that is alive, but for the one that would read the file, may be about to hang as well. */
static size_t others_alive(const struct dying_workers *dying)
{
    return dying->reserved_count > 0 ? dying->reserved_count - 1 : 0;
}

bool dying_workers_forbid(const struct dying_workers *dying, uid_t uid, bool is_local)
{
    size_t own_count = 0;
    size_t reading_count = 0;
    for (size_t i = 0; i < DYING_WORKERS_MAX; i++) {
        const struct dying_worker *place = &dying->places[i];
        bool was_reading = place->worker != NULL && place->was_reading;
        reading_count += was_reading;
        own_count += was_reading && place->uid == uid;
    }
    return own_count >= DYING_WORKERS_OF_A_UID_MAX ||
           (!is_local &&
            reading_count + others_alive(dying) >= DYING_WORKERS_MAX - DYING_WORKERS_KEPT);
}

void dying_workers_done(struct dying_workers *dying)
{
    for (size_t i = 0; i < DYING_WORKERS_MAX; i++) {
        dying->places[i].worker = elf_worker_free(take_ptr(dying->places[i].worker));
    }
}
