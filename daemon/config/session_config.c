/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Session configs. A text is parsed whole or not at all; every member is read by one call
 * below read_config(), which gives its range and keeps its default when it is absent. A member that
 * this version does not know is refused, never ignored: a typing error must not record something
 * else than was asked for. Whether the machine can do what a config asks is for session to find
 * out.
 */
#include "session_config.h"

#include "cleanup.h"
#include "config_members.h"
#include "cpu_list.h"
#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_DEPTH_MAX        8
#define NS_PER_S                1000000000
#define PERIOD_DEFAULT_NS       ((uint64_t)(NS_PER_S + 999 / 2) / 999)
#define DETACHED_DURATION_S     600
#define BUFFER_DURATION_MAX_S   60 /* that a default buffer holds */
#define BUFFER_SAMPLE_BYTES     256
#define BUFFER_DEFAULT_KIB_MIN  8192
#define NAME_BYTES_MAX          24
#define SUGGESTION_DISTANCE_MAX 2
#define SUGGESTION_PART_MIN     4 /* letters of a name that suggest it */

#define STACK_COPY_BYTES_MIN 512
#define STACK_COPY_BYTES_MAX 65000
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
    EXCLUDE_SELF,
    CPUS,
    BUFFER_KIB_PER_CPU,
    MAX_DURATION_S,
    MEMBER_COUNT,
};

static const char *const member_names[MEMBER_COUNT] = {
    [FREQUENCY_HZ] = "frequency_hz",         [SAMPLE_PERIOD_NS] = "sample_period_ns",
    [MAX_STACK_DEPTH] = "max_stack_depth",   [UNWIND] = "unwind",
    [STACK_COPY_BYTES] = "stack_copy_bytes", [KERNEL_STACKS] = "kernel_stacks",
    [KERNEL_THREADS] = "kernel_threads",     [TARGETS] = "targets",
    [EXCLUDE_SELF] = "exclude_self",         [BUFFER_KIB_PER_CPU] = "buffer_kib_per_cpu",
    [MAX_DURATION_S] = "max_duration_s",     [CPUS] = "cpus",
};

static const char *const unwind_names[] = {
    [SESSION_UNWIND_FP] = "fp",
    [SESSION_UNWIND_AUTO] = "auto",
    [SESSION_UNWIND_CFI] = "cfi",
};

#define UNWIND_COUNT (sizeof unwind_names / sizeof unwind_names[0])

/* How many single-byte insertions, deletions and exchanges lie between two names. */
static size_t edit_distance(const char *from, const char *to)
{
    size_t row[NAME_BYTES_MAX + 1];
    size_t to_bytes = strlen(to);
    for (size_t j = 0; j <= to_bytes; j++) {
        row[j] = j;
    }
    for (size_t i = 1; from[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= to_bytes; j++) {
            size_t exchanged = diagonal + (from[i - 1] != to[j - 1]);
            diagonal = row[j];
            size_t inserted = row[j - 1] + 1;
            row[j] = row[j] + 1 < inserted ? row[j] + 1 : inserted;
            row[j] = row[j] < exchanged ? row[j] : exchanged;
        }
    }
    return row[to_bytes];
}

/* The first member that `name` is a part of ("frequency", "depth"), or that is a part of it. */
static const char *suggest_by_part(const char *name)
{
    for (size_t i = 0; i < MEMBER_COUNT && strlen(name) >= SUGGESTION_PART_MIN; i++) {
        if (strstr(member_names[i], name) != NULL || strstr(name, member_names[i]) != NULL) {
            return member_names[i];
        }
    }
    return NULL;
}

/* The member that `name` is closest to, or NULL. */
static const char *suggest_member(const char *name)
{
    const char *closest = NULL;
    size_t least = SUGGESTION_DISTANCE_MAX + 1;
    if (strlen(name) > NAME_BYTES_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        size_t distance = edit_distance(name, member_names[i]);
        if (distance < least) {
            least = distance;
            closest = member_names[i];
        }
    }
    return closest != NULL ? closest : suggest_by_part(name);
}

struct shown_name config_show_name(const char *name)
{
    struct shown_name shown = {""};
    size_t bytes = 0;
    while (name[bytes] != '\0' && bytes < sizeof shown.text - 1) {
        shown.text[bytes] = name[bytes] >= ' ' && name[bytes] <= '~' ? name[bytes] : '?';
        bytes++;
    }
    if (bytes == 0) {
        memcpy(shown.text, "\"\"", 2);
    }
    return shown;
}

static int refuse_unknown(const char *name, struct fault *reterr)
{
    struct shown_name shown = config_show_name(name);
    const char *suggestion = suggest_member(name);
    if (suggestion != NULL) {
        return fault_set_member(reterr, shown.text,
                                "is not a member of the config; did you mean '%s'?", suggestion);
    }
    char list[256] = "";
    size_t bytes = 0;
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        bytes += (size_t)snprintf(list + bytes, sizeof list - bytes, "%s%s", i == 0 ? "" : ", ",
                                  member_names[i]);
    }
    return fault_set_member(reterr, shown.text, "is not a member of the config; allowed are %s",
                            list);
}

int config_read_integer(const cJSON *item, const char *name, int64_t minimum, int64_t maximum,
                        int64_t *value, struct fault *reterr)
{
    if (item == NULL || json_read_integer(item, minimum, maximum, value)) {
        return 0;
    }
    return fault_set_member(reterr, name, "%s; an integer from %lld to %lld is allowed",
                            json_is_integer(item) ? "is out of range" : "is not an integer",
                            (long long)minimum, (long long)maximum);
}

static int read_bool(const cJSON *item, const char *name, bool *value, struct fault *reterr)
{
    if (item == NULL) {
        return 0;
    }
    if (!cJSON_IsBool(item)) {
        return fault_set_member(reterr, name, "is not a boolean; true and false are allowed");
    }
    *value = cJSON_IsTrue(item);
    return 0;
}

static int read_period(const cJSON *const *items, struct session_config *config,
                       struct fault *reterr)
{
    int64_t frequency_hz = 0;
    int64_t period_ns = (int64_t)config->period_ns;
    if (items[FREQUENCY_HZ] != NULL && items[SAMPLE_PERIOD_NS] != NULL) {
        return fault_set_member(reterr, "sample_period_ns",
                                "is given beside frequency_hz; one of the two is allowed");
    }
    int r =
        config_read_integer(items[FREQUENCY_HZ], "frequency_hz", 1, 100000, &frequency_hz, reterr);
    if (r >= 0) {
        r = config_read_integer(items[SAMPLE_PERIOD_NS], "sample_period_ns", 10000, NS_PER_S,
                                &period_ns, reterr);
    }
    if (frequency_hz > 0) {
        period_ns = (NS_PER_S + frequency_hz / 2) / frequency_hz;
    }
    config->period_ns = (uint64_t)period_ns;
    return r;
}

static int read_unwind(const cJSON *item, enum session_unwind *value, struct fault *reterr)
{
    if (item == NULL) {
        return 0;
    }
    for (size_t i = 0; i < UNWIND_COUNT && cJSON_IsString(item); i++) {
        if (strcmp(item->valuestring, unwind_names[i]) == 0) {
            *value = (enum session_unwind)i;
            return 0;
        }
    }
    return fault_set_member(reterr, "unwind", "%s; \"auto\", \"fp\" and \"cfi\" are allowed",
                            cJSON_IsString(item) ? "is not a way to unwind" : "is not a string");
}

/* The most that keeps a CPU within STACK_COPY_RATE_MAX, in powers of two; at high rates the least
 * of them. */
static uint32_t default_stack_copy_bytes(uint64_t period_ns)
{
    static const uint32_t sizes[] = {STACK_COPY_BYTES_MAX, 32768, 16384, 8192};
    size_t i = 0;
    while (i < sizeof sizes / sizeof sizes[0] - 1 &&
           sizes[i] * (uint64_t)NS_PER_S > STACK_COPY_RATE_MAX * period_ns) {
        i++;
    }
    return sizes[i];
}

/* Needs the period and the way to unwind. */
static int read_stack_copy(const cJSON *item, struct session_config *config, struct fault *reterr)
{
    int64_t bytes = 0;
    if (item != NULL && config->unwind == SESSION_UNWIND_FP) {
        return fault_set_member(reterr, "stack_copy_bytes",
                                "is given, and frame pointers need no copies; with \"unwind\": "
                                "\"auto\" or \"cfi\" it is allowed");
    }
    if (item == NULL) {
        config->stack_copy_bytes =
            config->unwind == SESSION_UNWIND_FP ? 0 : default_stack_copy_bytes(config->period_ns);
        return 0;
    }
    bool in_range = json_read_integer(item, STACK_COPY_BYTES_MIN, STACK_COPY_BYTES_MAX, &bytes);
    if (!in_range || bytes % 8 != 0) {
        return fault_set_member(reterr, "stack_copy_bytes",
                                "%s; a multiple of 8 from %d to %d is allowed",
                                !json_is_integer(item) ? "is not an integer"
                                : in_range             ? "is not a multiple of 8"
                                                       : "is out of range",
                                STACK_COPY_BYTES_MIN, STACK_COPY_BYTES_MAX);
    }
    config->stack_copy_bytes = (uint32_t)bytes;
    return 0;
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

static uint32_t default_buffer_kib(const struct session_config *config)
{
    uint64_t duration_s = config->max_duration_s;
    if (duration_s == 0 || duration_s > BUFFER_DURATION_MAX_S) {
        duration_s = BUFFER_DURATION_MAX_S;
    }
    uint64_t bytes = NS_PER_S * duration_s * BUFFER_SAMPLE_BYTES / config->period_ns;
    uint64_t kib = (bytes + 1023) / 1024;
    return (uint32_t)(kib < BUFFER_DEFAULT_KIB_MIN ? BUFFER_DEFAULT_KIB_MIN : kib);
}

static int read_sizes(const cJSON *const *items, struct session_config *config,
                      struct fault *reterr)
{
    int64_t depth = config->max_stack_depth;
    int64_t duration_s = config->max_duration_s;
    int64_t buffer_kib = 0;
    int r = config_read_integer(items[MAX_STACK_DEPTH], "max_stack_depth", 1, 510, &depth, reterr);
    if (r >= 0) {
        r = config_read_integer(items[MAX_DURATION_S], "max_duration_s", 1, 31536000, &duration_s,
                                reterr);
    }
    if (r >= 0) {
        r = config_read_integer(items[BUFFER_KIB_PER_CPU], "buffer_kib_per_cpu", 256, 4194304,
                                &buffer_kib, reterr);
    }
    config->max_stack_depth = (uint16_t)depth;
    config->max_duration_s = (uint32_t)duration_s;
    config->buffer_kib_per_cpu =
        buffer_kib == 0 ? default_buffer_kib(config) : (uint32_t)buffer_kib;
    return r;
}

static int read_booleans(const cJSON *const *items, struct session_config *config,
                         struct fault *reterr)
{
    int r = read_bool(items[KERNEL_STACKS], "kernel_stacks", &config->kernel_stacks, reterr);
    if (r >= 0) {
        r = read_bool(items[KERNEL_THREADS], "kernel_threads", &config->kernel_threads, reterr);
    }
    if (r >= 0) {
        r = read_bool(items[EXCLUDE_SELF], "exclude_self", &config->exclude_self, reterr);
    }
    return r;
}

static int read_config(const cJSON *const *items, struct session_config *config,
                       struct fault *reterr)
{
    int r = read_period(items, config, reterr);
    if (r >= 0) {
        r = read_sizes(items, config, reterr);
    }
    if (r >= 0) {
        r = read_unwind(items[UNWIND], &config->unwind, reterr);
    }
    if (r >= 0) {
        r = read_stack_copy(items[STACK_COPY_BYTES], config, reterr);
    }
    if (r >= 0) {
        r = read_booleans(items, config, reterr);
    }
    if (r >= 0) {
        r = read_cpus(items[CPUS], config, reterr);
    }
    return r < 0 ? r : session_targets_read(items[TARGETS], &config->targets, reterr);
}

static int parse_text(const char *text, size_t text_bytes, cJSON **ret, struct fault *reterr)
{
    if (text_bytes > SESSION_CONFIG_BYTES_MAX) {
        return fault_set_member(reterr, "config", "has %zu bytes; at most %zu are allowed",
                                text_bytes, SESSION_CONFIG_BYTES_MAX);
    }
    struct fault fault = {0};
    int r = json_parse(text, text_bytes, CONFIG_DEPTH_MAX, ret, &fault);
    if (r == -EINVAL) {
        return fault_set_member(reterr, "config", "%s", fault.text);
    }
    if (r < 0) {
        return fault_set(reterr, -r, "%s", fault.text);
    }
    return cJSON_IsObject(*ret)
               ? 0
               : fault_set_member(reterr, "config", "is not an object; an object is allowed");
}

int session_config_parse(const char *text, size_t text_bytes, bool detached,
                         struct session_config *ret, struct fault *reterr)
{
    cleanup_(json_freep) cJSON *tree = NULL;
    int r = parse_text(text, text_bytes, &tree, reterr);
    if (r < 0) {
        return r;
    }
    const cJSON *items[MEMBER_COUNT];
    const char *offender = NULL;
    r = json_take_members(tree, member_names, MEMBER_COUNT, items, &offender);
    if (r == -EEXIST) {
        return fault_set_member(reterr, offender, "is there twice; once is allowed");
    }
    if (r < 0) {
        return refuse_unknown(offender, reterr);
    }
    struct session_config config = {
        .period_ns = PERIOD_DEFAULT_NS,
        .max_stack_depth = 127,
        .unwind = SESSION_UNWIND_DEFAULT,
        .kernel_threads = true,
        .exclude_self = true,
        .max_duration_s = detached ? DETACHED_DURATION_S : 0,
    };
    r = read_config(items, &config, reterr);
    if (r >= 0) {
        *ret = config;
    }
    return r;
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
        cJSON_AddBoolToObject(tree, "exclude_self", config->exclude_self) != NULL &&
        (config->cpus[0] == '\0' || cJSON_AddStringToObject(tree, "cpus", config->cpus) != NULL) &&
        cJSON_AddNumberToObject(tree, "buffer_kib_per_cpu", config->buffer_kib_per_cpu) != NULL &&
        (config->max_duration_s == 0 ||
         cJSON_AddNumberToObject(tree, "max_duration_s", config->max_duration_s) != NULL);
    return good ? cJSON_PrintUnformatted(tree) : NULL;
}
