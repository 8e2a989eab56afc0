/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses session configs, whole or not at all. Each member is read by one call below read_config(),
 * with its range; an absent member keeps its default. Values are checked against the
 * administrator's limits. session.c finds out whether the machine can do what a config asks for.
 */
#include "session_config.h"

#include "cleanup.h"
#include "config_members.h"
#include "cpu_list.h"
#include "json.h"
#include "sampling_period.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S               1000000000
#define FREQUENCY_DEFAULT_HZ   999
#define DEFAULT_RATES_BELOW    20 /* below a limit, among which default_rate_hz() looks */
#define DETACHED_DURATION_S    600
#define BUFFER_DURATION_MAX_S  60 /* that a default buffer holds */
#define BUFFER_DEFAULT_KIB_MIN 8192

/* What a CPU may copy in a second by default. */
#define STACK_COPY_RATE_MAX UINT64_C(66000000)

enum member {
    FREQUENCY_HZ,
    SAMPLE_PERIOD_NS,
    MAX_STACK_DEPTH,
    UNWIND,
    STACK_COPY_BYTES,
    KERNEL_STACKS,
    KERNEL_THREADS,
    TARGETS,
    EVENTS,
    OFF_CPU,
    EXCLUDE_SELF,
    CPUS,
    BUFFER_KIB_PER_CPU,
    MAX_DURATION_S,
    MEMBER_COUNT,
};

static const char *const member_names[MEMBER_COUNT] = {
    [FREQUENCY_HZ] = "frequency_hz",
    [SAMPLE_PERIOD_NS] = "sample_period_ns",
    [MAX_STACK_DEPTH] = "max_stack_depth",
    [UNWIND] = "unwind",
    [STACK_COPY_BYTES] = "stack_copy_bytes",
    [KERNEL_STACKS] = "kernel_stacks",
    [KERNEL_THREADS] = "kernel_threads",
    [TARGETS] = "targets",
    [EXCLUDE_SELF] = "exclude_self",
    [BUFFER_KIB_PER_CPU] = "buffer_kib_per_cpu",
    [MAX_DURATION_S] = "max_duration_s",
    [CPUS] = "cpus",
    [EVENTS] = "events",
    [OFF_CPU] = "off_cpu",
};

static const char *const unwind_names[] = {
    [SESSION_UNWIND_FP] = "fp",
    [SESSION_UNWIND_AUTO] = "auto",
    [SESSION_UNWIND_CFI] = "cfi",
};

#define UNWIND_COUNT (sizeof unwind_names / sizeof unwind_names[0])

const struct session_limits session_no_limits = {
    .path = "",
    .max_frequency_hz = SESSION_FREQUENCY_HZ_MAX,
    .max_stack_copy_bytes = SESSION_STACK_COPY_BYTES_MAX,
    .allow_kernel_stacks = true,
    .allowed_events = (1U << EVENT_KINDS) - 1,
};

/* `allowed` is what the administrator allows, and `limit` the member that says so. */
static int refuse_limit(const struct session_limits *limits, const char *limit, const char *name,
                        uint64_t allowed, struct fault *reterr)
{
    bool is_least = strcmp(name, "sample_period_ns") == 0;
    return fault_set_member(reterr, name,
                            "is %s the administrator's limit; at %s %llu is allowed (%s in %.120s)",
                            is_least ? "below" : "above", is_least ? "least" : "most",
                            (unsigned long long)allowed, limit, limits->path);
}

/* The highest rate up to a limit, or a little below it, whose samples are not in step with a tick:
 * no user has asked for one that is. */
static uint32_t default_rate_hz(uint32_t highest_hz)
{
    char note[SAMPLING_TEXT_BYTES];
    for (uint32_t hz = highest_hz; hz > 0 && highest_hz - hz <= DEFAULT_RATES_BELOW; hz--) {
        if (!sampling_period_warn(sampling_period_ns(hz), hz, note)) {
            return hz;
        }
    }
    return highest_hz;
}

/* A default gives way to the limit, what was asked for does not. */
static int limit_period(const struct session_limits *limits, struct session_config *config,
                        struct fault *reterr)
{
    uint32_t highest_hz = limits->max_frequency_hz;
    uint64_t exact_ns = sampling_period_exact_ns(highest_hz);
    uint64_t swept_ns = sampling_period_ns(highest_hz);
    uint64_t shortest_ns = swept_ns < exact_ns ? swept_ns : exact_ns;
    if (config->frequency_hz == 0 && config->period_ns < shortest_ns &&
        limits->max_frequency_is_default) {
        return fault_set_member(reterr, "sample_period_ns",
                                "is less than users other than root may ask for; at least %llu is "
                                "allowed, unless max_frequency_hz in %.120s says more",
                                (unsigned long long)shortest_ns, limits->path);
    }
    if (config->frequency_hz == 0) {
        return config->period_ns >= shortest_ns
                   ? 0
                   : refuse_limit(limits, "max_frequency_hz", "sample_period_ns", shortest_ns,
                                  reterr);
    }
    if (config->frequency_hz > highest_hz && !config->rate_is_default &&
        limits->max_frequency_is_default) {
        return fault_set_member(reterr, "frequency_hz",
                                "is more than users other than root may ask for; at most %u is "
                                "allowed, unless max_frequency_hz in %.120s says more",
                                highest_hz, limits->path);
    }
    if (config->frequency_hz > highest_hz && !config->rate_is_default) {
        return refuse_limit(limits, "max_frequency_hz", "frequency_hz", highest_hz, reterr);
    }
    if (config->frequency_hz > highest_hz) {
        config->frequency_hz = default_rate_hz(highest_hz);
    }
    config->period_ns = sampling_period_ns(config->frequency_hz);
    return 0;
}

/* What the clock's element of "events" asks for, in the place of the two members. */
static int take_clock(const cJSON *const *items, struct session_events *events,
                      int64_t *frequency_hz, int64_t *period_ns, struct fault *reterr)
{
    struct session_event *clock = &events->all[0];
    uint64_t period = clock->period;
    if (clock->frequency_hz == 0 && period == 0) {
        return 0;
    }
    if (items[FREQUENCY_HZ] != NULL || items[SAMPLE_PERIOD_NS] != NULL) {
        return fault_set_member(reterr, "events",
                                "has a rate of cpu-clock beside %s; one of the two is allowed",
                                items[FREQUENCY_HZ] != NULL ? "frequency_hz" : "sample_period_ns");
    }
    if (period > 0 && (period < SAMPLING_PERIOD_MIN_NS || period > SAMPLING_PERIOD_MAX_NS)) {
        return fault_set_member(
            reterr, "events",
            "has a period of cpu-clock that is out of range; %llu to %llu ns are "
            "allowed",
            (unsigned long long)SAMPLING_PERIOD_MIN_NS, (unsigned long long)SAMPLING_PERIOD_MAX_NS);
    }
    *frequency_hz = clock->frequency_hz;
    *period_ns = (int64_t)period;
    clock->frequency_hz = 0;
    clock->period = 0;
    return 0;
}

static int read_period(const cJSON *const *items, const struct session_limits *limits,
                       struct session_config *config, struct fault *reterr)
{
    int64_t frequency_hz = FREQUENCY_DEFAULT_HZ;
    int64_t period_ns = 0;
    char note[SAMPLING_TEXT_BYTES];
    if (items[FREQUENCY_HZ] != NULL && items[SAMPLE_PERIOD_NS] != NULL) {
        return fault_set_member(reterr, "sample_period_ns",
                                "is given beside frequency_hz; one of the two is allowed");
    }
    int r = config_read_integer(items[FREQUENCY_HZ], "frequency_hz", 1, SESSION_FREQUENCY_HZ_MAX,
                                &frequency_hz, reterr);
    if (r >= 0) {
        r = config_read_integer(items[SAMPLE_PERIOD_NS], "sample_period_ns", SAMPLING_PERIOD_MIN_NS,
                                SAMPLING_PERIOD_MAX_NS, &period_ns, reterr);
    }
    if (r >= 0) {
        r = take_clock(items, &config->events, &frequency_hz, &period_ns, reterr);
    }
    config->period_ns = (uint64_t)period_ns;
    config->frequency_hz = period_ns > 0 ? 0 : (uint32_t)frequency_hz;
    r = r < 0 ? r : limit_period(limits, config, reterr);
    if (r >= 0 && sampling_period_warn(config->period_ns, config->frequency_hz, note)) {
        session_notes_add(&config->notes,
                          config->frequency_hz == 0 ? "sample_period_ns" : "frequency_hz", "%s",
                          note);
    }
    return r;
}

/* Where no copies are allowed, frame pointers are the one way to unwind. */
static int limit_unwind(const cJSON *item, const struct session_limits *limits,
                        enum session_unwind *value, struct fault *reterr)
{
    if (limits->max_stack_copy_bytes > 0 || *value == SESSION_UNWIND_FP) {
        return 0;
    }
    if (item != NULL) {
        return fault_set_member(reterr, "unwind",
                                "takes copies of stacks, and the administrator allows none; \"fp\" "
                                "is allowed (max_stack_copy_bytes in %.120s)",
                                limits->path);
    }
    *value = SESSION_UNWIND_FP;
    return 0;
}

static int read_unwind(const cJSON *item, const struct session_limits *limits,
                       enum session_unwind *value, struct fault *reterr)
{
    if (item == NULL) {
        return limit_unwind(item, limits, value, reterr);
    }
    for (size_t i = 0; i < UNWIND_COUNT && cJSON_IsString(item); i++) {
        if (strcmp(item->valuestring, unwind_names[i]) == 0) {
            *value = (enum session_unwind)i;
            return limit_unwind(item, limits, value, reterr);
        }
    }
    return fault_set_member(reterr, "unwind", "%s; \"auto\", \"fp\" and \"cfi\" are allowed",
                            cJSON_IsString(item) ? "is not a way to unwind" : "is not a string");
}

/* What sizes go by: they are the same for all periods that a rate may come to. */
static uint64_t nominal_period_ns(const struct session_config *config)
{
    uint64_t period_ns = config->frequency_hz == 0 ? config->period_ns
                                                   : sampling_period_exact_ns(config->frequency_hz);
    assert(period_ns > 0);
    return period_ns;
}

/* The most that keeps a CPU within STACK_COPY_RATE_MAX, in powers of two; at high rates the least
 * of them. */
static uint32_t default_stack_copy_bytes(uint64_t period_ns)
{
    static const uint32_t sizes[] = {SESSION_STACK_COPY_BYTES_MAX, 32768, 16384, 8192};
    size_t i = 0;
    while (i < sizeof sizes / sizeof sizes[0] - 1 &&
           sizes[i] * (uint64_t)NS_PER_S > STACK_COPY_RATE_MAX * period_ns) {
        i++;
    }
    return sizes[i];
}

/* Needs the period and the way to unwind. */
static int read_stack_copy(const cJSON *item, const struct session_limits *limits,
                           struct session_config *config, struct fault *reterr)
{
    int64_t bytes = 0;
    if (item != NULL && limits->max_stack_copy_bytes > 0 && config->unwind == SESSION_UNWIND_FP) {
        return fault_set_member(reterr, "stack_copy_bytes",
                                "is given, and frame pointers need no copies; with \"unwind\": "
                                "\"auto\" or \"cfi\" it is allowed");
    }
    if (item == NULL) {
        uint32_t wanted_bytes = default_stack_copy_bytes(nominal_period_ns(config));
        uint32_t allowed_bytes = limits->max_stack_copy_bytes;
        config->stack_copy_bytes = config->unwind == SESSION_UNWIND_FP ? 0
                                   : wanted_bytes > allowed_bytes      ? allowed_bytes
                                                                       : wanted_bytes;
        return 0;
    }
    bool in_range =
        json_read_integer(item, SESSION_STACK_COPY_BYTES_MIN, SESSION_STACK_COPY_BYTES_MAX, &bytes);
    if (!in_range || bytes % 8 != 0) {
        return fault_set_member(reterr, "stack_copy_bytes",
                                "%s; a multiple of 8 from %d to %d is allowed",
                                !json_is_integer(item) ? "is not an integer"
                                : in_range             ? "is not a multiple of 8"
                                                       : "is out of range",
                                SESSION_STACK_COPY_BYTES_MIN, SESSION_STACK_COPY_BYTES_MAX);
    }
    config->stack_copy_bytes = (uint32_t)bytes;
    return config->stack_copy_bytes <= limits->max_stack_copy_bytes
               ? 0
               : refuse_limit(limits, "max_stack_copy_bytes", "stack_copy_bytes",
                              limits->max_stack_copy_bytes, reterr);
}

static int read_cpus(const cJSON *item, struct session_config *config, struct fault *reterr)
{
    cleanup_(freep) uint32_t *cpus = NULL;
    size_t count = 0;
    if (item == NULL) {
        return 0;
    }
    const char *text = cJSON_GetStringValue(item);
    int r = text == NULL || strlen(text) >= SESSION_CPUS_BYTES || strchr(text, '\n') != NULL
                ? -EBADMSG
                : cpu_list_parse(text, &cpus, &count);
    if (r == -ENOMEM) {
        return fault_set(reterr, ENOMEM, "no memory for a list of CPUs");
    }
    if (r < 0) {
        return fault_set_member(reterr, "cpus",
                                "%s; numbers below %u and ranges of them in rising order, as in "
                                "\"0-3,8\", in at most %d characters, are allowed",
                                text == NULL ? "is not a string" : "is not a list of CPUs",
                                CPU_LIST_LIMIT, SESSION_CPUS_BYTES - 1);
    }
    (void)snprintf(config->cpus, sizeof config->cpus, "%s", text);
    return 0;
}

static uint64_t divide_up(uint64_t dividend, uint64_t divisor)
{
    return (dividend + divisor - 1) / divisor;
}

/* Holds what the shortest period that its frequency may come to gives in that time. */
static uint32_t default_buffer_kib(const struct session_config *config)
{
    uint64_t duration_s = config->max_duration_s;
    if (duration_s == 0 || duration_s > BUFFER_DURATION_MAX_S) {
        duration_s = BUFFER_DURATION_MAX_S;
    }
    uint64_t period_ns = nominal_period_ns(config);
    if (config->frequency_hz != 0) {
        period_ns -= period_ns / SAMPLING_TOLERANCE;
    }
    uint64_t samples = divide_up(NS_PER_S * duration_s, period_ns);
    uint64_t kib = divide_up(samples * SESSION_SAMPLE_BYTES, 1024);
    return (uint32_t)(kib < BUFFER_DEFAULT_KIB_MIN ? BUFFER_DEFAULT_KIB_MIN : kib);
}

static int read_duration(const cJSON *item, const struct session_limits *limits,
                         struct session_config *config, struct fault *reterr)
{
    int64_t duration_s = config->max_duration_s;
    int r =
        config_read_integer(item, "max_duration_s", 1, SESSION_DURATION_S_MAX, &duration_s, reterr);
    int64_t allowed_s = limits->max_duration_s;
    if (r >= 0 && allowed_s > 0 && (duration_s == 0 || duration_s > allowed_s)) {
        duration_s = allowed_s;
        r = item == NULL ? 0
                         : refuse_limit(limits, "max_duration_s", "max_duration_s",
                                        limits->max_duration_s, reterr);
    }
    config->max_duration_s = (uint32_t)duration_s;
    return r;
}

/* Needs the period and the duration. */
static int read_sizes(const cJSON *const *items, struct session_config *config,
                      struct fault *reterr)
{
    int64_t depth = config->max_stack_depth;
    int64_t buffer_kib = 0;
    int r = config_read_integer(items[MAX_STACK_DEPTH], "max_stack_depth", 1, 510, &depth, reterr);
    if (r >= 0) {
        r = config_read_integer(items[BUFFER_KIB_PER_CPU], "buffer_kib_per_cpu", 256, 4194304,
                                &buffer_kib, reterr);
    }
    config->max_stack_depth = (uint16_t)depth;
    config->buffer_kib_per_cpu =
        buffer_kib == 0 ? default_buffer_kib(config) : (uint32_t)buffer_kib;
    return r;
}

static int read_booleans(const cJSON *const *items, const struct session_limits *limits,
                         struct session_config *config, struct fault *reterr)
{
    int r = config_read_bool(items[KERNEL_STACKS], "kernel_stacks", &config->kernel_stacks, reterr);
    if (r >= 0 && config->kernel_stacks && !limits->allow_kernel_stacks) {
        return fault_set_member(reterr, "kernel_stacks",
                                "is kept from sessions by the administrator; false is allowed "
                                "(allow_kernel_stacks in %.120s)",
                                limits->path);
    }
    if (r >= 0) {
        r = config_read_bool(items[KERNEL_THREADS], "kernel_threads", &config->kernel_threads,
                             reterr);
    }
    if (r >= 0) {
        r = config_read_bool(items[EXCLUDE_SELF], "exclude_self", &config->exclude_self, reterr);
    }
    return r;
}

/* An event that counts time has as many samples a second as its period says, and each interrupts:
 * it is refused before it is tried. */
static int limit_event_rate(const struct session_limits *limits, const struct session_event *event,
                            struct fault *reterr)
{
    const uint32_t highest_hz =
        limits->max_event_rate_hz > 0 ? limits->max_event_rate_hz : SESSION_FREQUENCY_HZ_MAX;
    const uint64_t shortest_ns = NS_PER_S / highest_hz;
    const bool is_time = strcmp(event_names_unit(&event->code), "ns") == 0;
    if (limits->max_event_rate_hz > 0 && event->frequency_hz > highest_hz) {
        return fault_set_member(reterr, "events",
                                "has '%s' at %u a second, above the limit; at most %u is allowed "
                                "(max_event_rate_hz in %.120s)",
                                event->name, event->frequency_hz, highest_hz, limits->path);
    }
    if (is_time && event->period > 0 && event->period < shortest_ns) {
        return fault_set_member(
            reterr, "events",
            "has '%s' with a period of %llu ns; at least %llu is allowed%s%.120s%s", event->name,
            (unsigned long long)event->period, (unsigned long long)shortest_ns,
            limits->max_event_rate_hz > 0 ? " (max_event_rate_hz in " : "",
            limits->max_event_rate_hz > 0 ? limits->path : "",
            limits->max_event_rate_hz > 0 ? ")" : "");
    }
    return 0;
}

/* Events beside the clock. */
static int limit_events(const struct session_limits *limits, struct session_events *events,
                        struct fault *reterr)
{
    for (size_t i = 1; i < events->count; i++) {
        const struct session_event *event = &events->all[i];
        enum event_kind kind = event_names_kind(&event->code);
        if ((limits->allowed_events >> kind & 1) == 0) {
            return fault_set_member(
                reterr, "events", "has '%s', a %s event, which %s (allowed_events in %.120s)",
                event->name, event_kind_names[kind],
                limits->allowed_events_is_default
                    ? "users other than root may not have, unless the administrator says so"
                    : "the administrator does not allow",
                limits->path);
        }
        int r = limit_event_rate(limits, event, reterr);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_events(const cJSON *item, const struct session_limits *limits,
                       struct session_config *config, struct fault *reterr)
{
    int r = session_events_read(item, &config->events, reterr);
    const struct session_event *clock = &config->events.all[0];
    if (clock->frequency_hz > 0 || clock->period > 0) {
        config->rate_is_default = false;
    }
    return r < 0 ? r : limit_events(limits, &config->events, reterr);
}

/* Only CPUs that are sampled have records of switches: what a thread runs elsewhere would be a
 * wait. */
static int refuse_waits_of_some_cpus(const struct session_config *config, struct fault *reterr)
{
    if (!config->off_cpu.is_on || config->cpus[0] == '\0') {
        return 0;
    }
    return fault_set_member(reterr, "cpus",
                            "is given beside off_cpu (--wall), which needs all CPUs: a thread that "
                            "runs on another one would seem to wait; one of the two is allowed");
}

/* Waits are made of samples of a software event. */
static int read_off_cpu(const cJSON *item, const struct session_limits *limits,
                        struct session_off_cpu *off_cpu, struct fault *reterr)
{
    int r = session_off_cpu_read(item, off_cpu, reterr);
    if (r >= 0 && off_cpu->is_on && (limits->allowed_events >> EVENT_KIND_SOFTWARE & 1) == 0) {
        return fault_set_member(reterr, "off_cpu",
                                "samples a software event, which %s; a session without it is "
                                "allowed (allowed_events in %.120s)",
                                limits->allowed_events_is_default
                                    ? "users other than root may not have, unless the "
                                      "administrator says so"
                                    : "the administrator does not allow",
                                limits->path);
    }
    return r;
}

static int read_config(const cJSON *const *items, const struct session_limits *limits,
                       struct session_config *config, struct fault *reterr)
{
    int r = read_events(items[EVENTS], limits, config, reterr);
    if (r >= 0) {
        r = read_off_cpu(items[OFF_CPU], limits, &config->off_cpu, reterr);
    }
    if (r >= 0) {
        r = read_period(items, limits, config, reterr);
    }
    if (r >= 0) {
        r = read_duration(items[MAX_DURATION_S], limits, config, reterr);
    }
    if (r >= 0) {
        r = read_sizes(items, config, reterr);
    }
    if (r >= 0) {
        r = read_unwind(items[UNWIND], limits, &config->unwind, reterr);
    }
    if (r >= 0) {
        r = read_stack_copy(items[STACK_COPY_BYTES], limits, config, reterr);
    }
    if (r >= 0) {
        r = read_booleans(items, limits, config, reterr);
    }
    if (r >= 0) {
        r = read_cpus(items[CPUS], config, reterr);
    }
    if (r >= 0) {
        r = refuse_waits_of_some_cpus(config, reterr);
    }
    return r < 0 ? r : session_targets_read(items[TARGETS], &config->targets, reterr);
}

int session_config_parse_within(const char *text, size_t text_bytes, bool detached,
                                const struct session_limits *limits, struct session_config *ret,
                                struct fault *reterr)
{
    cleanup_(json_freep) cJSON *tree = NULL;
    const cJSON *items[MEMBER_COUNT];
    int r = config_parse_object(text, text_bytes, &tree, reterr);
    if (r >= 0) {
        r = config_take_members(tree, "", member_names, MEMBER_COUNT, items, reterr);
    }
    if (r < 0) {
        return r;
    }
    struct session_config config = {
        .max_stack_depth = 127,
        .unwind = SESSION_UNWIND_DEFAULT,
        .kernel_threads = true,
        .exclude_self = true,
        .max_duration_s = detached ? DETACHED_DURATION_S : 0,
        .rate_is_default = items[FREQUENCY_HZ] == NULL && items[SAMPLE_PERIOD_NS] == NULL,
        .unwind_is_default = items[UNWIND] == NULL,
        .stack_copy_is_default = items[STACK_COPY_BYTES] == NULL,
        .max_event_rate_hz = limits->max_event_rate_hz,
    };
    r = read_config(items, limits, &config, reterr);
    if (r >= 0) {
        *ret = config;
    }
    return r;
}

int session_config_parse(const char *text, size_t text_bytes, bool detached,
                         struct session_config *ret, struct fault *reterr)
{
    return session_config_parse_within(text, text_bytes, detached, &session_no_limits, ret, reterr);
}

char *session_config_print(const struct session_config *config)
{
    cleanup_(json_freep) cJSON *tree = cJSON_CreateObject();
    bool good =
        cJSON_AddNumberToObject(tree, "sample_period_ns", (double)config->period_ns) != NULL &&
        cJSON_AddNumberToObject(tree, "max_stack_depth", config->max_stack_depth) != NULL &&
        cJSON_AddStringToObject(tree, "unwind", unwind_names[config->unwind]) != NULL &&
        (config->unwind == SESSION_UNWIND_FP ||
         cJSON_AddNumberToObject(tree, "stack_copy_bytes", config->stack_copy_bytes) != NULL) &&
        cJSON_AddBoolToObject(tree, "kernel_stacks", config->kernel_stacks) != NULL &&
        cJSON_AddBoolToObject(tree, "kernel_threads", config->kernel_threads) != NULL &&
        session_targets_print(tree, &config->targets) &&
        session_events_print(tree, &config->events) &&
        session_off_cpu_print(tree, &config->off_cpu) &&
        cJSON_AddBoolToObject(tree, "exclude_self", config->exclude_self) != NULL &&
        (config->cpus[0] == '\0' || cJSON_AddStringToObject(tree, "cpus", config->cpus) != NULL) &&
        cJSON_AddNumberToObject(tree, "buffer_kib_per_cpu", config->buffer_kib_per_cpu) != NULL &&
        (config->max_duration_s == 0 ||
         cJSON_AddNumberToObject(tree, "max_duration_s", config->max_duration_s) != NULL);
    return good ? cJSON_PrintUnformatted(tree) : NULL;
}
