/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A reading shows the text as it was since the file's last change. The kernel takes that time from
 * a clock that stands still between two ticks of one CPU: for 10 ms at the most, but for longer
 * when a hypervisor keeps that CPU waiting, hence PERF_MAP_SLACK_NS. It is a time of day, so what
 * lies before a moment at which that was set cannot be told from then.
 */
#include "jit_map.h"

#include "clock.h"
#include "perf_map.h"

#include <string.h>

#define SET_NS        NS_PER_MS /* a larger step is none of the clock's own */
#define LOOK_LIMIT_NS (NS_PER_MS / 10)

void jit_clock_look(struct jit_clock *clock)
{
    uint64_t before_ns = clock_ns(CLOCK_BOOTTIME);
    uint64_t real_ns = clock_ns(CLOCK_REALTIME);
    uint64_t after_ns = clock_ns(CLOCK_BOOTTIME);
    if (after_ns - before_ns > LOOK_LIMIT_NS) {
        return; /* something came in between */
    }
    int64_t offset_ns = (int64_t)(real_ns - before_ns);
    uint64_t step_ns = (uint64_t)(offset_ns > clock->offset_ns ? offset_ns - clock->offset_ns
                                                               : clock->offset_ns - offset_ns);
    if (clock->is_known && step_ns > SET_NS) {
        clock->set_ns = after_ns;
    }
    clock->offset_ns = offset_ns;
    clock->is_known = true;
}

const struct symbol_table *jit_map_table(const struct jit_map *map)
{
    return &module_ticket_module(map->ready)->symbols;
}

void jit_map_done(struct jit_map *map)
{
    module_ticket_release(map->ready);
    *map = (struct jit_map){0};
}

/* Since when the text is as it was read. */
static uint64_t unchanged_since(const struct perf_map_state *state, uint64_t end_ns,
                                const struct jit_clock *clock)
{
    int64_t changed_ns = 0;
    int64_t since_ns = 0;
    if (!clock->is_known || (state->changed_s == 0 && state->changed_ns == 0) ||
        __builtin_mul_overflow(state->changed_s, (int64_t)NS_PER_S, &changed_ns) ||
        __builtin_add_overflow(changed_ns, state->changed_ns, &changed_ns) ||
        __builtin_sub_overflow(changed_ns, clock->offset_ns, &since_ns)) {
        return end_ns;
    }
    uint64_t from_ns = since_ns < 0 ? 0 : (uint64_t)since_ns;
    from_ns = (from_ns > clock->set_ns ? from_ns : clock->set_ns) + PERF_MAP_SLACK_NS;
    return from_ns < end_ns ? from_ns : end_ns;
}

static void add_reading(struct jit_map *map, uint64_t from_ns)
{
    if (map->reading_count == JIT_READINGS_MAX) {
        /* What only the oldest had seen counts as of the next one. */
        map->reading_count--;
        memmove(map->readings, map->readings + 1, map->reading_count * sizeof *map->readings);
    }
    map->readings[map->reading_count++] =
        (struct jit_reading){.text_bytes = map->text_bytes, .from_ns = from_ns};
}

/* The same text of a file that was not changed: a young one is read again, since it may have been
 * changed twice between two ticks. */
static bool is_same(const struct jit_map *map, const struct perf_map_state *state)
{
    return state->changed_s != 0 && state->changed_s == map->changed_s &&
           state->changed_ns == map->changed_ns && state->text_bytes == map->text_bytes &&
           state->text_hash == map->text_hash;
}

/* A file that has changed and reads as before has been written anew. */
static bool has_grown(const struct jit_map *map, const struct perf_map_state *state)
{
    return map->text_bytes > 0 && state->known_bytes == map->text_bytes &&
           state->known_hash == map->text_hash && state->text_bytes > map->text_bytes;
}

/* The least that a changed text may be since: it comes after what was read before, and what was
 * said then from that time on. */
static uint64_t earliest(const struct jit_map *map)
{
    uint64_t last_ns = map->reading_count == 0 ? 0 : map->readings[map->reading_count - 1].from_ns;
    return map->epoch == 0 ? 0 : (last_ns > map->confirmed_ns ? last_ns : map->confirmed_ns) + 1;
}

enum jit_map_news jit_map_take(struct jit_map *map, struct module_ticket *ticket, uint64_t begin_ns,
                               uint64_t end_ns, const struct jit_clock *clock)
{
    const struct module *module = module_ticket_module(ticket);
    bool first = map->epoch == 0;
    struct perf_map_state state = {0};
    (void)perf_map_state(&module->symbols, &state);
    bool same = !first && (module_ticket_module(map->ready) == module || is_same(map, &state));
    bool grown = !first && has_grown(map, &state);
    uint64_t from_ns = unchanged_since(&state, end_ns, clock);
    uint64_t least_ns = earliest(map);
    from_ns = from_ns > least_ns ? from_ns : least_ns;

    module_ticket_release(map->ready);
    map->ready = ticket;
    if (!same && !grown) {
        map->epoch++;
        map->lost_ns = map->confirmed_ns;
        map->epoch_ns = first && map->was_absent ? 0 : from_ns;
        map->reading_count = 0;
    }
    map->confirmed_ns = begin_ns;
    if (same) {
        return JIT_MAP_SAME;
    }
    map->text_bytes = state.text_bytes;
    map->epoch_bytes = grown ? map->epoch_bytes : state.text_bytes;
    map->text_hash = state.text_hash;
    map->changed_s = state.changed_s;
    map->changed_ns = state.changed_ns;
    add_reading(map, from_ns);
    return grown ? JIT_MAP_GREW : JIT_MAP_ANEW;
}

bool jit_map_is_first(const struct jit_map *map, uint32_t claim)
{
    return (claim & PERF_MAP_CLAIM_SHARED) == 0 && claim < map->epoch_bytes;
}

uint64_t jit_map_since(const struct jit_map *map, uint32_t claim)
{
    if (jit_map_is_first(map, claim)) {
        return map->epoch_ns;
    }
    size_t at = 0;
    while (at + 1 < map->reading_count &&
           map->readings[at].text_bytes <= claim % PERF_MAP_CLAIM_SHARED) {
        at++;
    }
    return map->readings[at].from_ns;
}

uint64_t jit_map_latest(const struct jit_map *map)
{
    return map->reading_count == 0 ? 0 : map->readings[map->reading_count - 1].from_ns;
}
