/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One trace_jit for each program of a process that was sampled in made code, from the first such
 * sample until the log ends; a map is read again at its own pace, never more than once at a time.
 *
 * An address is looked for in the map as it was read last, and if it is not in it, noted, and
 * looked for in each later reading until it is found. What has a name is compared with the next
 * reading, so a map is read again as long as something is sampled (trace_made.c). What a map that
 * has come brings is gone through in slices, a bounded number of steps for each poll: the
 * collector, which calls it, has rings to empty.
 */
#include "trace_jit.h"

#include "cleanup.h"
#include "clock.h"
#include "extremes.h"
#include "mapping_query.h"
#include "quota.h"
#include "seeded_hash.h"
#include "trace_dumped.h"
#include "trace_made.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JITS_MAX    2048
#define SHARE_PARTS 2
#define BUCKETS     1024
/* What one call of trace_jits_poll() may do, whatever waits, and the samples before it: a name
 * takes 2 to 6 us. */
#define SETTLE_STEPS_MAX 1024 /* and what the samples leave of the names */
#define NAMES_MAX        4096 /* that samples look up at once; the others are late */
#define SETTLE_SLICE     64   /* of these, of one process before it is the next one's turn */
#define ASKS_MAX         32 /* maps that are asked for; with those of the samples since the last */
#define INTERVAL_MIN_NS  (500 * NS_PER_MS)
#define INTERVAL_MAX_NS  NS_PER_S /* the gap that a map written anew leaves is as long */
#define READING_PARTS    2 /* of the time a map is read, if that takes long, within these limits */

struct trace_jit {
    struct trace_jit *next;
    struct trace_jit *next_of_image; /* in its bucket, as the next */
    struct trace_jit *next_of_pid;
    int32_t pid;
    uint64_t image_ns; /* when the process began, or began its program */
    uint64_t start_time_ns;
    size_t number;                 /* of the pid's in this log, from 1 */
    struct made_code code;         /* owned; of a perf map */
    struct dumped_code *dump;      /* owned; of a jitdump, which goes before a map, or NULL */
    bool is_dump_refused;          /* there is none that can be read */
    struct module_ticket *pending; /* owned; a map that is being read */
    uint64_t asked_ns;
    uint64_t reading_ns; /* what the last reading took */
    uint64_t interval_ns;
    bool is_unasked;     /* it has not been asked for yet: too much was at that time */
    bool is_asked_again; /* at the end, whatever the time */
    bool is_last;        /* what is pending was asked for then */
    bool is_unsettled;   /* not all that the last reading brings has been gone through */
};

struct trace_jits {
    struct made_shared shared;
    struct module_cache *cache;
    struct trace_jit *first;
    struct trace_jit *turn;              /* the one that is settled first next time; NULL: first */
    struct trace_jit *ask_turn;          /* the one that was asked for last, or NULL */
    struct trace_jit *of_image[BUCKETS]; /* by pid and image_ns */
    struct trace_jit *of_pid[BUCKETS];   /* of one pid the newest comes first */
    struct quota processes;              /* by owner */
    struct quota names;                  /* by owner: looked up for samples since the last poll */
    uint32_t epoch;                      /* from 1, of what has been said of any frame */
    uint64_t epoch_from_ns;
    size_t asks_left;  /* until the next poll */
    size_t steps_left; /* of this poll */
};

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

/* From now on each frame in made code is looked up again. */
static void begin_epoch(struct trace_jits *jits, uint64_t time_ns)
{
    jits->epoch = jits->epoch == UINT32_MAX ? 1 : jits->epoch + 1;
    jits->epoch_from_ns = time_ns;
}

static struct trace_jit *free_jit(struct made_shared *shared, struct trace_jit *jit)
{
    module_ticket_release(jit->pending);
    made_done(shared, &jit->code);
    (void)dumped_free(shared, jit->dump);
    free(jit);
    return NULL;
}

struct trace_jits *trace_jits_new(struct definition_log *log, struct module_cache *cache,
                                  struct trace_symbols *symbols)
{
    struct trace_jits *jits = calloc(1, sizeof *jits);
    if (jits != NULL) {
        jits->shared.log = log;
        jits->shared.symbols = symbols;
        jits->cache = cache;
        jits->processes.max = JITS_MAX;
        jits->processes.parts = SHARE_PARTS;
        jits->names.max = NAMES_MAX;
        jits->names.parts = SHARE_PARTS;
        jits->epoch = 1;
        jits->asks_left = ASKS_MAX;
        jit_clock_look(&jits->shared.clock);
        dump_clock_look(&jits->shared.dump_clock);
    }
    return jits;
}

void trace_jits_begin(struct trace_jits *jits)
{
    while (jits->first != NULL) {
        struct trace_jit *jit = jits->first;
        jits->first = jit->next;
        (void)free_jit(&jits->shared, jit);
    }
    jits->turn = jits->ask_turn = NULL;
    memset(jits->of_image, 0, sizeof jits->of_image);
    memset(jits->of_pid, 0, sizeof jits->of_pid);
    quota_clear(&jits->processes);
}

struct trace_jits *trace_jits_free(struct trace_jits *jits)
{
    if (jits != NULL) {
        trace_jits_begin(jits);
        free(jits);
    }
    return NULL;
}

static struct module_ticket *ask_dump(struct trace_jits *jits, const struct dumped_code *dump)
{
    struct module_query query = dump->query;
    query.map_device = dump->ready == NULL ? 0 : 1;
    return module_cache_request_jitdump(jits->cache, &query, (uint32_t)dump->state.text_bytes);
}

static struct module_ticket *ask_map(struct trace_jits *jits, const struct trace_jit *jit)
{
    const struct jit_map *map = &jit->code.map;
    struct module_query query = {.pid = jit->pid, .start_time_ns = jit->start_time_ns, .path = ""};
    if (map->ready != NULL) {
        const struct file_identity *identity = &module_ticket_module(map->ready)->identity;
        query.map_device = identity->device;
        query.inode = identity->inode;
        query.inode_generation = identity->generation;
    }
    return module_cache_request_perf_map(jits->cache, &query, (uint32_t)map->text_bytes);
}

/* Has the map read, now or in one of the next polls. A request that is refused is as if there were
 * no map. */
static void ask(struct trace_jits *jits, struct trace_jit *jit)
{
    if (jits->asks_left == 0) {
        return;
    }
    jits->asks_left--;
    jit->asked_ns = now_ns();
    jit->is_last = jit->is_asked_again;
    jit->is_unasked = jit->is_asked_again = false;
    jit->pending = jit->dump != NULL ? ask_dump(jits, jit->dump) : ask_map(jits, jit);
}

static struct trace_jit **find_image(struct trace_jits *jits, int32_t pid, uint64_t image_ns)
{
    const uint64_t words[] = {(uint32_t)pid, image_ns};
    struct trace_jit **link = &jits->of_image[seeded_hash(words, sizeof words) % BUCKETS];
    while (*link != NULL && ((*link)->pid != pid || (*link)->image_ns != image_ns)) {
        link = &(*link)->next_of_image;
    }
    return link;
}

static struct trace_jit **bucket_of_pid(struct trace_jits *jits, int32_t pid)
{
    return &jits->of_pid[seeded_hash(&pid, sizeof pid) % BUCKETS];
}

/* A process's own name: another that had the pid before it, in this log, has it without a number.
 */
static void choose_name(struct trace_jits *jits, struct trace_jit *jit)
{
    const struct trace_jit *newest = *bucket_of_pid(jits, jit->pid);
    while (newest != NULL && newest->pid != jit->pid) {
        newest = newest->next_of_pid;
    }
    jit->number = newest == NULL ? 1 : newest->number + 1;
    int bytes =
        snprintf(jit->code.name, sizeof jit->code.name, "[jit] (pid %" PRId32 ")", jit->pid);
    if (jit->number > 1) {
        (void)snprintf(jit->code.name + bytes, sizeof jit->code.name - (size_t)bytes, " (%zu)",
                       jit->number);
    }
}

/* A jitdump that comes to light is read from now on, if nothing was read before it. */
static struct trace_jit *look_for_dump(struct trace_jit *jit, const struct process *process)
{
    if (jit->dump != NULL || jit->is_dump_refused || jit->code.map.epoch != 0 ||
        jit->pending != NULL) {
        return jit;
    }
    const struct mapping *mapping = process_find_jitdump(process);
    if (mapping != NULL) {
        const struct module_query query = mapping_query(process, mapping);
        jit->dump = dumped_new(&query, jit->code.owner, jit->code.name);
        jit->is_unasked = jit->dump != NULL;
    }
    return jit;
}

struct trace_jit *trace_jits_find(struct trace_jits *jits, const struct process *process)
{
    uint64_t image_ns = process->exec_ns > process->from_ns ? process->exec_ns : process->from_ns;
    struct trace_jit **place = find_image(jits, process->pid, image_ns);
    if (*place != NULL) {
        return look_for_dump(*place, process);
    }
    struct trace_jit *jit = calloc(1, sizeof *jit);
    if (jit == NULL || !quota_take(&jits->processes, process->owner, 1)) {
        free(jit);
        return NULL;
    }
    jit->pid = process->pid;
    jit->code.owner = process->owner;
    jit->code.next_vaddr = MADE_VADDR;
    jit->image_ns = image_ns;
    jit->start_time_ns = process->start_time_ns;
    jit->interval_ns = INTERVAL_MIN_NS;
    jit->is_unasked = true;
    choose_name(jits, jit);
    (void)look_for_dump(jit, process);
    ask(jits, jit);
    *place = jit;
    struct trace_jit **of_pid = bucket_of_pid(jits, jit->pid);
    jit->next_of_pid = *of_pid;
    *of_pid = jit;
    jit->next = jits->first;
    jits->first = jit;
    return jit;
}

bool trace_jit_define(struct trace_jits *jits, struct trace_jit *jit,
                      const struct shown_mapping *shown, uint64_t vaddr, const char *name)
{
    return made_define(&jits->shared, &jit->code, shown, vaddr, name);
}

bool trace_jit_name(struct trace_jits *jits, struct trace_jit *jit,
                    const struct shown_mapping *shown, uint64_t address, uint64_t time_ns,
                    uint64_t *ret_from_ns)
{
    if (jit->dump != NULL) {
        *ret_from_ns = TIME_OPEN_NS;
        return dumped_name(&jits->shared, jit->dump, shown, address, time_ns);
    }
    return quota_take(&jits->names, jit->code.owner, 1)
               ? made_name(&jits->shared, &jit->code, shown, address, time_ns, ret_from_ns)
               : made_postpone(&jits->shared, &jit->code, shown, address, time_ns, ret_from_ns);
}

/* Whether addresses wait to be looked up in the map as it was read last. */
static bool is_late(const struct trace_jit *jit)
{
    return jit->dump == NULL && jit->code.late_count > 0;
}

/* How long until the map is read again: sooner when the last reading brought something. */
static void pace(struct trace_jit *jit, bool has_news)
{
    uint64_t least_ns = READING_PARTS * jit->reading_ns;
    if (has_news) {
        jit->interval_ns = INTERVAL_MIN_NS;
    } else {
        jit->interval_ns =
            jit->interval_ns < INTERVAL_MAX_NS / 2 ? jit->interval_ns * 2 : INTERVAL_MAX_NS;
    }
    jit->interval_ns = max_u64(jit->interval_ns, min_u64(least_ns, INTERVAL_MAX_NS));
}

static bool is_settled(const struct trace_jit *jit)
{
    return jit->dump != NULL ? dumped_is_settled(jit->dump) : made_is_settled(&jit->code);
}

static bool wants(const struct trace_jit *jit)
{
    return jit->dump != NULL ? dumped_wants(jit->dump) : made_wants(&jit->code);
}

/* Goes through what the last reading brings, a slice of it. False: there is no room in the log now.
 */
static bool settle_slice(struct trace_jits *jits, struct trace_jit *jit)
{
    bool room = true;
    size_t steps = jits->steps_left < SETTLE_SLICE ? jits->steps_left : SETTLE_SLICE;
    for (; steps > 0 && room && !is_settled(jit); steps--) {
        jits->steps_left--;
        room = jit->dump != NULL ? dumped_settle(&jits->shared, jit->dump)
                                 : made_settle(&jits->shared, &jit->code);
    }
    if (jit->is_unsettled && is_settled(jit)) {
        jit->is_unsettled = false;
        pace(jit, (jit->dump != NULL ? jit->dump->news_count : jit->code.news_count) > 0);
    }
    return room;
}

/* A failure for now changes nothing: what samples want is asked for again. A jitdump that cannot be
 * read is none: what it wanted to know is asked of a perf map. One that was read, and that has
 * become too much to be read, only grows: it is not asked for again. */
static void take_failure(struct trace_jits *jits, struct trace_jit *jit,
                         enum module_failure failure)
{
    if (failure == MODULE_FAILURE_LIMIT) {
        return;
    }
    if (jit->dump == NULL) {
        jit->code.map.was_absent |= failure == MODULE_FAILURE_NOT_FOUND;
    } else if (jit->dump->ready == NULL) {
        jit->dump = dumped_free(&jits->shared, jit->dump);
        jit->is_dump_refused = jit->is_unasked = true;
    } else if (failure == MODULE_FAILURE_UNREADABLE) {
        dumped_end(&jits->shared, jit->dump);
    }
}

/* Takes up the answer, if it has come. */
static void take_map(struct trace_jits *jits, struct trace_jit *jit)
{
    enum module_state state = module_ticket_state(jit->pending);
    if (state == MODULE_PENDING) {
        return;
    }
    struct module_ticket *answer = take_ptr(jit->pending);
    uint64_t end_ns = now_ns();
    jit->reading_ns = end_ns - jit->asked_ns;
    if (state == MODULE_FAILED) {
        take_failure(jits, jit, module_ticket_failure(answer));
        module_ticket_release(answer);
        pace(jit, false);
        return;
    }
    bool is_news = jit->dump != NULL ? dumped_take(&jits->shared, jit->dump, answer, jit->asked_ns)
                                     : made_take(&jits->shared, &jit->code, answer, jit->asked_ns,
                                                 end_ns, jit->is_last);
    if (is_news) {
        jit->is_unsettled = true;
        begin_epoch(jits, end_ns);
    } else {
        pace(jit, false);
    }
}

/* What is late is looked up in the reading before: the first one has none, and need not wait until
 * a busy process leaves nothing late. */
static bool may_take(const struct trace_jit *jit)
{
    return !is_late(jit) || jit->code.map.epoch == 0;
}

/* Whether something has been sampled of which the map may say more by now, and it is time to look.
 */
static bool is_due(const struct trace_jit *jit, uint64_t time_ns)
{
    bool again = wants(jit) && (jit->is_asked_again || time_ns - jit->asked_ns >= jit->interval_ns);
    return jit->pending == NULL && !jit->is_unsettled && !is_late(jit) &&
           (jit->is_unasked || again);
}

/* Gives each process a slice, until all is settled, there is no room, or it is enough for now: the
 * next poll goes on with the process behind the last. */
static void settle(struct trace_jits *jits)
{
    bool room = true;
    bool any = true;
    jits->steps_left = SETTLE_STEPS_MAX + jits->names.max - jits->names.taken;
    quota_clear(&jits->names);
    while (room && any && jits->steps_left > 0) {
        any = false;
        struct trace_jit *jit = jits->turn != NULL ? jits->turn : jits->first;
        for (size_t i = 0; i < jits->processes.taken && jit != NULL && room && jits->steps_left > 0;
             i++) {
            if (jit->is_unsettled || is_late(jit)) {
                room = settle_slice(jits, jit);
                any = true;
            }
            jit = jit->next != NULL ? jit->next : jits->first;
        }
        jits->turn = jit;
    }
}

bool trace_jits_poll(struct trace_jits *jits)
{
    uint64_t time_ns = now_ns();
    bool settled = true;
    bool is_first_read = false;
    jits->asks_left = ASKS_MAX;
    jit_clock_look(&jits->shared.clock);
    dump_clock_look(&jits->shared.dump_clock);
    for (struct trace_jit *jit = jits->first; jit != NULL; jit = jit->next) {
        if (jit->pending != NULL) {
            if (may_take(jit)) {
                take_map(jits, jit);
            }
            is_first_read = is_first_read || (jit->pending != NULL && jit->code.map.epoch == 0);
        }
    }
    if (is_first_read && time_ns - jits->epoch_from_ns >= INTERVAL_MIN_NS) {
        begin_epoch(jits, time_ns); /* so that the last sample of each address is known */
    }
    settle(jits);
    struct trace_jit *jit = jits->ask_turn != NULL ? jits->ask_turn : jits->first;
    for (size_t i = 0; i < jits->processes.taken && jit != NULL; i++) {
        if (is_due(jit, time_ns) && jits->asks_left > 0) {
            ask(jits, jit);
            jits->ask_turn = jit;
        }
        settled = settled && !jit->is_unsettled && !is_late(jit);
        jit = jit->next != NULL ? jit->next : jits->first;
    }
    return settled;
}

/* A reading that was under way may have named all that another one was to be asked for. */
static bool is_pending(const struct trace_jit *jit)
{
    return jit->pending != NULL || jit->is_unasked || jit->is_unsettled || is_late(jit) ||
           (jit->is_asked_again && wants(jit));
}

bool trace_jits_pending(const struct trace_jits *jits)
{
    const struct trace_jit *jit = jits->first;
    while (jit != NULL && !is_pending(jit)) {
        jit = jit->next;
    }
    return jit != NULL;
}

void trace_jits_ask_again(struct trace_jits *jits)
{
    for (struct trace_jit *jit = jits->first; jit != NULL; jit = jit->next) {
        jit->is_asked_again = wants(jit);
    }
}

bool trace_jits_proved(const struct trace_jits *jits, uint64_t time_ns)
{
    const struct trace_jit *jit = jits->first;
    while (jit != NULL && (jit->dump != NULL ? dumped_is_proved(jit->dump, time_ns)
                                             : made_is_proved(&jit->code, time_ns))) {
        jit = jit->next;
    }
    return jit == NULL;
}

void trace_jits_close(struct trace_jits *jits)
{
    for (struct trace_jit *jit = jits->first; jit != NULL; jit = jit->next) {
        made_close(&jits->shared, &jit->code);
        if (jit->dump != NULL) {
            dumped_close(&jits->shared, jit->dump);
        }
    }
}

uint32_t trace_jits_epoch(const struct trace_jits *jits)
{
    return jits->epoch;
}
