/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the daemon's own config, once, when the daemon starts. The text is trusted no more than a
 * client's. Only root or the daemon's own user may be able to write the file, since it decides
 * which users see the whole machine.
 */
#include "daemon_config.h"

#include "cleanup.h"
#include "config_members.h"
#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_MAX       UINT32_C(4294967294)
#define MEMBER_BYTES sizeof((struct fault){0}.member)

enum member {
    ALLOWED_UIDS,
    ALLOWED_GIDS,
    MAX_FREQUENCY_HZ,
    MAX_STACK_COPY_BYTES,
    MAX_DURATION_S,
    MAX_UNREAD_S,
    ALLOW_KERNEL_STACKS,
    ALLOWED_EVENTS,
    MAX_EVENT_RATE_HZ,
    MEMBER_COUNT,
};

static const char *const member_names[MEMBER_COUNT] = {
    [ALLOWED_UIDS] = "allowed_uids",
    [ALLOWED_GIDS] = "allowed_gids",
    [MAX_FREQUENCY_HZ] = "max_frequency_hz",
    [MAX_STACK_COPY_BYTES] = "max_stack_copy_bytes",
    [MAX_DURATION_S] = "max_duration_s",
    [MAX_UNREAD_S] = "max_unread_s",
    [ALLOW_KERNEL_STACKS] = "allow_kernel_stacks",
    [ALLOWED_EVENTS] = "allowed_events",
    [MAX_EVENT_RATE_HZ] = "max_event_rate_hz",
};

void daemon_config_init(struct daemon_config *config, const char *path)
{
    *config = (struct daemon_config){.limits = session_no_limits, .max_unread_s = DAEMON_UNREAD_S};
    config->limits.path = path;
}

static int read_ids(const cJSON *array, const char *name, struct daemon_ids *ids,
                    struct fault *reterr)
{
    const cJSON *item = NULL;
    int count = cJSON_GetArraySize(array);
    if (array == NULL) {
        return 0;
    }
    if (!cJSON_IsArray(array) || count > DAEMON_IDS_MAX) {
        return fault_set_member(reterr, name, "%s; an array of at most %d integers is allowed",
                                cJSON_IsArray(array) ? "is too long" : "is not an array",
                                DAEMON_IDS_MAX);
    }
    cJSON_ArrayForEach(item, array)
    {
        char element[MEMBER_BYTES];
        int64_t id = 0;
        (void)snprintf(element, sizeof element, "%s[%zu]", name, ids->count);
        int r = config_read_integer(item, element, 0, ID_MAX, &id, reterr);
        if (r < 0) {
            return r;
        }
        ids->ids[ids->count++] = (uint32_t)id;
    }
    return 0;
}

static int read_stack_copy(const cJSON *item, uint32_t *value, struct fault *reterr)
{
    int64_t bytes = *value;
    bool in_range =
        item == NULL || json_read_integer(item, 0, SESSION_STACK_COPY_BYTES_MAX, &bytes);
    if (!in_range || bytes % 8 != 0 || (bytes > 0 && bytes < SESSION_STACK_COPY_BYTES_MIN)) {
        return fault_set_member(reterr, member_names[MAX_STACK_COPY_BYTES],
                                "%s; 0 and a multiple of 8 from %d to %d are allowed",
                                !json_is_integer(item)      ? "is not an integer"
                                : in_range && bytes % 8 > 0 ? "is not a multiple of 8"
                                                            : "is out of range",
                                SESSION_STACK_COPY_BYTES_MIN, SESSION_STACK_COPY_BYTES_MAX);
    }
    *value = (uint32_t)bytes;
    return 0;
}

static int read_events(const cJSON *array, unsigned *value, struct fault *reterr)
{
    const cJSON *item = NULL;
    const char *name = member_names[ALLOWED_EVENTS];
    unsigned kinds = 0;
    if (array == NULL) {
        return 0;
    }
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) > EVENT_KINDS) {
        return fault_set_member(reterr, name, "%s; an array of at most %d strings is allowed",
                                cJSON_IsArray(array) ? "is too long" : "is not an array",
                                EVENT_KINDS);
    }
    cJSON_ArrayForEach(item, array)
    {
        const char *text = cJSON_GetStringValue(item);
        unsigned kind = 0;
        while (kind < EVENT_KINDS && (text == NULL || strcmp(text, event_kind_names[kind]) != 0)) {
            kind++;
        }
        if (kind == EVENT_KINDS || (kinds >> kind & 1) != 0) {
            return fault_set_member(
                reterr, name, "%s; \"software\", \"hardware\" and \"raw\" are allowed",
                kind == EVENT_KINDS ? "has another element than a kind" : "has a kind twice");
        }
        kinds |= 1U << kind;
    }
    *value = kinds;
    return 0;
}

static int read_limits(const cJSON *const *items, struct session_limits *limits,
                       struct fault *reterr)
{
    int64_t frequency_hz = limits->max_frequency_hz;
    int64_t duration_s = limits->max_duration_s;
    int64_t event_rate_hz = limits->max_event_rate_hz;
    int r = config_read_integer(items[MAX_FREQUENCY_HZ], member_names[MAX_FREQUENCY_HZ], 1,
                                SESSION_FREQUENCY_HZ_MAX, &frequency_hz, reterr);
    if (r >= 0) {
        r = read_stack_copy(items[MAX_STACK_COPY_BYTES], &limits->max_stack_copy_bytes, reterr);
    }
    if (r >= 0) {
        r = config_read_integer(items[MAX_DURATION_S], member_names[MAX_DURATION_S], 1,
                                SESSION_DURATION_S_MAX, &duration_s, reterr);
    }
    if (r >= 0) {
        r = config_read_bool(items[ALLOW_KERNEL_STACKS], member_names[ALLOW_KERNEL_STACKS],
                             &limits->allow_kernel_stacks, reterr);
    }
    if (r >= 0) {
        r = read_events(items[ALLOWED_EVENTS], &limits->allowed_events, reterr);
    }
    if (r >= 0) {
        r = config_read_integer(items[MAX_EVENT_RATE_HZ], member_names[MAX_EVENT_RATE_HZ], 1,
                                SESSION_FREQUENCY_HZ_MAX, &event_rate_hz, reterr);
    }
    limits->max_event_rate_hz = (uint32_t)event_rate_hz;
    limits->max_frequency_hz = (uint32_t)frequency_hz;
    limits->max_duration_s = (uint32_t)duration_s;
    return r;
}

static int read_unread(const cJSON *item, uint32_t *value, struct fault *reterr)
{
    int64_t seconds = *value;
    int r = config_read_integer(item, member_names[MAX_UNREAD_S], 1, DAEMON_UNREAD_S_MAX, &seconds,
                                reterr);
    *value = (uint32_t)seconds;
    return r;
}

int daemon_config_parse(const char *text, size_t text_bytes, const char *path,
                        struct daemon_config *ret, struct fault *reterr)
{
    cleanup_(json_freep) cJSON *tree = NULL;
    const cJSON *items[MEMBER_COUNT];
    struct daemon_config config;
    int r = config_parse_object(text, text_bytes, &tree, reterr);
    if (r >= 0) {
        r = config_take_members(tree, "", member_names, MEMBER_COUNT, items, reterr);
    }
    if (r < 0) {
        return r;
    }
    daemon_config_init(&config, path);
    config.has_allow_list = items[ALLOWED_UIDS] != NULL || items[ALLOWED_GIDS] != NULL;
    r = read_ids(items[ALLOWED_UIDS], member_names[ALLOWED_UIDS], &config.allowed_uids, reterr);
    if (r >= 0) {
        r = read_ids(items[ALLOWED_GIDS], member_names[ALLOWED_GIDS], &config.allowed_gids, reterr);
    }
    config.has_max_frequency = items[MAX_FREQUENCY_HZ] != NULL;
    config.has_allowed_events = items[ALLOWED_EVENTS] != NULL;
    config.has_max_event_rate = items[MAX_EVENT_RATE_HZ] != NULL;
    if (r >= 0) {
        r = read_limits(items, &config.limits, reterr);
    }
    if (r >= 0) {
        r = read_unread(items[MAX_UNREAD_S], &config.max_unread_s, reterr);
    }
    if (r >= 0) {
        *ret = config;
    }
    return r;
}

/* Opens the file, if it is one to be trusted. Returns a descriptor (returned: close()) or -errno.
 */
static int open_file(const char *path, struct fault *reterr)
{
    struct stat status;
    /* A pipe in its place must not keep the daemon waiting. */
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int r = errno;
        return fault_set(reterr, r, "cannot be opened: %s", strerror(r));
    }
    if (!S_ISREG(status.st_mode)) {
        return fault_set(reterr, EBADF, "is not a regular file");
    }
    if (status.st_uid != 0 && status.st_uid != geteuid()) {
        return fault_set(reterr, EPERM,
                         "belongs to uid %u, who could change what the daemon allows; one that "
                         "belongs to root is allowed (chown root)",
                         status.st_uid);
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return fault_set(reterr, EPERM,
                         "may be written to by others (its mode is %04o), who could change what "
                         "the daemon allows; one that only its owner may write to is allowed "
                         "(chmod go-w)",
                         status.st_mode & 07777);
    }
    return take_fd(fd);
}

/* All of it, or as much as shows that it is too long. Returns its bytes, or -errno. */
static ssize_t read_file(int fd, char *buffer, size_t room_bytes)
{
    size_t bytes = 0;
    ssize_t got = 1;
    while (got > 0 && bytes < room_bytes) {
        got = read(fd, buffer + bytes, room_bytes - bytes);
        if (got < 0 && errno != EINTR) {
            return -errno;
        }
        bytes += got > 0 ? (size_t)got : 0;
        got = got < 0 ? 1 : got;
    }
    return (ssize_t)bytes;
}

int daemon_config_load(const char *path, struct daemon_config *ret, struct fault *reterr)
{
    const size_t room_bytes = DAEMON_CONFIG_BYTES_MAX + 1;
    cleanup_(closep) int fd = open_file(path, reterr);
    if (fd < 0) {
        return fd;
    }
    cleanup_(freep) char *text = malloc(room_bytes);
    if (text == NULL) {
        return fault_set(reterr, ENOMEM, "there is no memory to read it");
    }
    ssize_t bytes = read_file(fd, text, room_bytes);
    if (bytes < 0) {
        return fault_set(reterr, (int)-bytes, "cannot be read: %s", strerror((int)-bytes));
    }
    return daemon_config_parse(text, (size_t)bytes, path, ret, reterr);
}

static bool has_id(const struct daemon_ids *ids, uint32_t id)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->ids[i] == id) {
            return true;
        }
    }
    return false;
}

bool daemon_config_admits(const struct daemon_config *config, uid_t uid, const gid_t *gids,
                          size_t gid_count)
{
    bool admitted = !config->has_allow_list || uid == 0 || has_id(&config->allowed_uids, uid);
    for (size_t i = 0; i < gid_count && !admitted; i++) {
        admitted = has_id(&config->allowed_gids, gids[i]);
    }
    return admitted;
}

struct session_limits daemon_config_limits(const struct daemon_config *config, uid_t uid)
{
    struct session_limits limits = config->limits;
    if (!config->has_max_frequency && uid != 0) {
        limits.max_frequency_hz = DAEMON_MEMBERS_HZ;
        limits.max_frequency_is_default = true;
    }
    if (!config->has_allowed_events && uid != 0) {
        limits.allowed_events = 1U << EVENT_KIND_SOFTWARE;
        limits.allowed_events_is_default = true;
    }
    if (!config->has_max_event_rate && uid != 0) {
        limits.max_event_rate_hz = DAEMON_MEMBERS_HZ;
    }
    return limits;
}

/* "root, 1 other user and the members of 2 groups": what the lists allow. */
static void describe_listed(const struct daemon_config *config, char *into, size_t into_bytes)
{
    size_t gids = config->allowed_gids.count;
    size_t uids = 0; /* but root's, which is said anyway */
    for (size_t i = 0; i < config->allowed_uids.count; i++) {
        uids += config->allowed_uids.ids[i] != 0;
    }
    char users[40] = "";
    char groups[48] = "";
    if (uids > 0) {
        (void)snprintf(users, sizeof users, "%s%zu other user%s", gids > 0 ? ", " : " and ", uids,
                       uids == 1 ? "" : "s");
    }
    if (gids > 0) {
        (void)snprintf(groups, sizeof groups, " and the members of %zu group%s", gids,
                       gids == 1 ? "" : "s");
    }
    (void)snprintf(into, into_bytes, "%s%s%s", uids + gids == 0 ? "root alone" : "root", users,
                   groups);
}

/* "software and raw events": what members may have. */
static void describe_events(const struct daemon_config *config, char *into, size_t into_bytes)
{
    unsigned allowed = daemon_config_limits(config, 1).allowed_events;
    size_t bytes = 0;
    into[0] = '\0';
    for (size_t i = 0; i < EVENT_KINDS; i++) {
        if ((allowed >> i & 1) != 0 && bytes < into_bytes) {
            bytes += (size_t)snprintf(into + bytes, into_bytes - bytes, "%s%s",
                                      bytes > 0 ? ", " : "", event_kind_names[i]);
        }
    }
    if (bytes < into_bytes) {
        (void)snprintf(into + bytes, into_bytes - bytes, "%s events%s", bytes == 0 ? "no" : "",
                       config->has_allowed_events ? "" : " (root any)");
    }
}

struct daemon_config_line daemon_config_describe(const struct daemon_config *config)
{
    const struct session_limits *limits = &config->limits;
    struct daemon_config_line line;
    char who[112] = "every user that may connect to the socket";
    char copies[48] = "no copies of stacks";
    char duration[48] = "any duration";
    char rate[48];
    char events[64];
    (void)snprintf(rate, sizeof rate, "at most %u Hz%s",
                   daemon_config_limits(config, 1).max_frequency_hz,
                   config->has_max_frequency ? "" : " (root any rate)");
    describe_events(config, events, sizeof events);
    if (config->has_allow_list) {
        describe_listed(config, who, sizeof who);
    }
    if (limits->max_stack_copy_bytes > 0) {
        (void)snprintf(copies, sizeof copies, "at most %u bytes of a stack",
                       limits->max_stack_copy_bytes);
    }
    if (limits->max_duration_s > 0) {
        (void)snprintf(duration, sizeof duration, "at most %u s", limits->max_duration_s);
    }
    (void)snprintf(line.text, sizeof line.text,
                   "%s; %s, %s, %s, stopped when unread for %u s, %s kernel stacks, %s", who, rate,
                   copies, duration, config->max_unread_s,
                   limits->allow_kernel_stacks ? "with" : "without", events);
    return line;
}
