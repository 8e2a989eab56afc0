/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of events with names, the grammar of those that are composed (caches, raw numbers,
 * devices), and modifiers. The names are those of perf, since that is what people have in their
 * fingers. What a kernel or a machine lacks is found when the event is opened.
 */
#include "event_names.h"

#include "config_members.h"
#include "suggest.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct named_event {
    const char *name;
    const char *other_name; /* NULL: none */
    enum event_type type;
    uint64_t config;
    const char *unit;
};

/* Numbers and names of the kernel's PERF_COUNT_SW_* and PERF_COUNT_HW_*. */
static const struct named_event named[] = {
    {EVENT_CLOCK, NULL, EVENT_SOFTWARE, 0, "ns"},
    {"task-clock", NULL, EVENT_SOFTWARE, 1, "ns"},
    {"page-faults", "faults", EVENT_SOFTWARE, 2, "faults"},
    {"context-switches", "cs", EVENT_SOFTWARE, 3, "switches"},
    {"cpu-migrations", "migrations", EVENT_SOFTWARE, 4, "migrations"},
    {"minor-faults", NULL, EVENT_SOFTWARE, 5, "faults"},
    {"major-faults", NULL, EVENT_SOFTWARE, 6, "faults"},
    {"alignment-faults", NULL, EVENT_SOFTWARE, 7, "faults"},
    {"emulation-faults", NULL, EVENT_SOFTWARE, 8, "faults"},
    {"cycles", "cpu-cycles", EVENT_HARDWARE, 0, "cycles"},
    {"instructions", NULL, EVENT_HARDWARE, 1, "instructions"},
    {"cache-references", NULL, EVENT_HARDWARE, 2, "references"},
    {"cache-misses", NULL, EVENT_HARDWARE, 3, "misses"},
    {"branches", "branch-instructions", EVENT_HARDWARE, 4, "branches"},
    {"branch-misses", NULL, EVENT_HARDWARE, 5, "misses"},
    {"bus-cycles", NULL, EVENT_HARDWARE, 6, "cycles"},
    {"stalled-cycles-frontend", "idle-cycles-frontend", EVENT_HARDWARE, 7, "cycles"},
    {"stalled-cycles-backend", "idle-cycles-backend", EVENT_HARDWARE, 8, "cycles"},
    {"ref-cycles", NULL, EVENT_HARDWARE, 9, "cycles"},
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* By the numbers of PERF_COUNT_HW_CACHE_*: what is looked up, with a bit for each way that no
 * kernel refuses; */
static const struct {
    const char *name;
    unsigned operations;
} caches[] = {{"L1-dcache", 7}, {"L1-icache", 5}, {"LLC", 7}, {"dTLB", 7},
              {"iTLB", 1},      {"branch", 1},    {"node", 7}};
/* how (a name ends with it or, before "-misses", with the singular), and how that went. */
static const char *const cache_operations[] = {"-load", "-store", "-prefetch"};
static const char *const cache_plurals[] = {"-loads", "-stores", "-prefetches"};

const char *const event_kind_names[EVENT_KINDS] = {
    [EVENT_KIND_SOFTWARE] = "software",
    [EVENT_KIND_HARDWARE] = "hardware",
    [EVENT_KIND_RAW] = "raw",
};

#define CACHE_OPERATION_SHIFT 8
#define CACHE_RESULT_SHIFT    16
#define CACHE_MISS            1

static bool find_named(const char *name, struct event_code *ret)
{
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        if (strcmp(name, named[i].name) == 0 ||
            (named[i].other_name != NULL && strcmp(name, named[i].other_name) == 0)) {
            *ret = (struct event_code){.type = named[i].type, .config = named[i].config};
            return true;
        }
    }
    return false;
}

/* "LLC-loads", "LLC-load-misses". */
static bool find_cache(const char *name, struct event_code *ret)
{
    for (size_t cache = 0; cache < COUNT_OF(caches); cache++) {
        size_t bytes = strlen(caches[cache].name);
        if (strncmp(name, caches[cache].name, bytes) != 0) {
            continue;
        }
        for (size_t i = 0; i < COUNT_OF(cache_operations); i++) {
            size_t single = strlen(cache_operations[i]);
            bool is_miss = strncmp(name + bytes, cache_operations[i], single) == 0 &&
                           strcmp(name + bytes + single, "-misses") == 0;
            bool is_named = is_miss || strcmp(name + bytes, cache_plurals[i]) == 0;
            if (is_named && (caches[cache].operations >> i & 1) != 0) {
                *ret = (struct event_code){
                    .type = EVENT_CACHE,
                    .config = cache | i << CACHE_OPERATION_SHIFT |
                              (uint64_t)(is_miss ? CACHE_MISS : 0) << CACHE_RESULT_SHIFT,
                };
                return true;
            }
        }
    }
    return false;
}

/* "r01c2": hexadecimal digits. */
static bool find_raw(const char *name, struct event_code *ret)
{
    const char *digits = name + 1;
    size_t count = strspn(digits, "0123456789abcdefABCDEF");
    if (name[0] != 'r' || count == 0 || count > 16 || digits[count] != '\0') {
        return false;
    }
    *ret = (struct event_code){.type = EVENT_RAW, .config = strtoull(digits, NULL, 16)};
    return true;
}

/* "cpu/event=0x3c,umask=0x00/": a device of /sys/bus/event_source, and terms. */
static bool is_of_pmu(const char *name)
{
    const char *slash = strchr(name, '/');
    size_t bytes = strlen(name);
    if (slash == NULL || slash == name || bytes < 2 || name[bytes - 1] != '/' ||
        name + bytes - slash < 3) {
        return false;
    }
    for (const char *at = name; at < slash; at++) {
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != '-') {
            return false;
        }
    }
    for (const char *at = slash + 1; at < name + bytes - 1; at++) {
        if (!isalnum((unsigned char)*at) && strchr("_-=,.", *at) == NULL) {
            return false;
        }
    }
    return true;
}

static bool take_modifiers(const char *modifiers, struct event_code *code)
{
    bool user = false;
    bool kernel = false;
    for (const char *at = modifiers; *at != '\0'; at++) {
        if (*at == 'u') {
            user = true;
        } else if (*at == 'k') {
            kernel = true;
        } else if (*at == 'p' && code->precise < 3) {
            code->precise++;
        } else {
            return false;
        }
    }
    code->exclude_kernel = user && !kernel;
    code->exclude_user = kernel && !user;
    return modifiers[0] != '\0';
}

static int refuse_name(const char *name, const char *member, struct fault *reterr)
{
    const char *names[COUNT_OF(named)];
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        names[i] = named[i].name;
    }
    const char *meant = suggest_word(name, names, COUNT_OF(named));
    struct shown_name shown = config_show_name(name);
    if (meant != NULL) {
        return fault_set_member(reterr, member, "'%s' is no event; did you mean '%s'?", shown.text,
                                meant);
    }
    return fault_set_member(reterr, member,
                            "'%s' is no event; 'profctl events' lists those of this machine",
                            shown.text);
}

int event_names_find(const char *name, const char *member, struct event_code *ret,
                     struct fault *reterr)
{
    char base[EVENT_NAME_BYTES];
    const char *colon = strrchr(name, ':');
    size_t bytes = colon == NULL ? strlen(name) : (size_t)(colon - name);
    if (bytes == 0 || bytes >= sizeof base || strlen(name) >= EVENT_NAME_BYTES) {
        return fault_set_member(reterr, member, "is %s; a name of 1 to %d bytes is allowed",
                                bytes == 0 ? "empty" : "too long", EVENT_NAME_BYTES - 1);
    }
    memcpy(base, name, bytes);
    base[bytes] = '\0';
    if (is_of_pmu(base)) {
        *ret = (struct event_code){.type = EVENT_OF_PMU};
    } else if (!find_named(base, ret) && !find_cache(base, ret) && !find_raw(base, ret)) {
        return refuse_name(base, member, reterr);
    }
    if (colon != NULL && !take_modifiers(colon + 1, ret)) {
        return fault_set_member(reterr, member,
                                "has '%s' behind its name; modifiers (u, k, at most three p) are "
                                "allowed, and of -e a period, as in page-faults:100",
                                config_show_name(colon).text);
    }
    return 0;
}

enum event_kind event_names_kind(const struct event_code *code)
{
    return code->type == EVENT_SOFTWARE                                ? EVENT_KIND_SOFTWARE
           : code->type == EVENT_HARDWARE || code->type == EVENT_CACHE ? EVENT_KIND_HARDWARE
                                                                       : EVENT_KIND_RAW;
}

const char *event_names_unit(const struct event_code *code)
{
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        if (code->type == named[i].type && code->config == named[i].config) {
            return named[i].unit;
        }
    }
    return "events";
}

/* The cache's event of a number, of those that there are; false: no more. */
static bool print_cache(size_t index, char *into)
{
    for (size_t cache = 0; cache < COUNT_OF(caches); cache++) {
        for (size_t i = 0; i < COUNT_OF(cache_operations); i++) {
            size_t count = (caches[cache].operations >> i & 1) != 0 ? 2 : 0;
            if (index < count) {
                (void)snprintf(into, EVENT_NAME_BYTES, "%s%s%s", caches[cache].name,
                               index == 0 ? cache_plurals[i] : cache_operations[i],
                               index == 0 ? "" : "-misses");
                return true;
            }
            index -= count;
        }
    }
    return false;
}

bool event_names_at(size_t index, char *into, struct event_code *ret)
{
    if (index < COUNT_OF(named)) {
        *ret = (struct event_code){.type = named[index].type, .config = named[index].config};
        (void)snprintf(into, EVENT_NAME_BYTES, "%s", named[index].name);
        return true;
    }
    return print_cache(index - COUNT_OF(named), into) && find_cache(into, ret);
}
