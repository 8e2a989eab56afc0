/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The administrator's config of the daemon: the users that may use it, and the limits of a session.
 * docs/daemon-config.md has each member.
 */

#include "fault.h"
#include "session_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DAEMON_CONFIG_PATH      "/etc/cpu-profilerd/daemon.json"
#define DAEMON_CONFIG_BYTES_MAX ((size_t)65536)
#define DAEMON_IDS_MAX          256   /* of each kind */
#define DAEMON_MEMBERS_HZ       10000 /* without "max_frequency_hz", for all but root */
#define DAEMON_UNREAD_S         600   /* unless the file says otherwise */
#define DAEMON_UNREAD_S_MAX     31536000

struct daemon_ids {
    uint32_t ids[DAEMON_IDS_MAX];
    size_t count;
};

struct daemon_config {
    bool has_allow_list; /* else all users may that can connect to the socket */
    struct daemon_ids allowed_uids;
    struct daemon_ids allowed_gids;
    bool has_max_frequency;
    bool has_allowed_events;
    bool has_max_event_rate;
    struct session_limits limits; /* of root; daemon_config_limits() has those of others */
    uint32_t max_unread_s;        /* then an attached session is stopped */
};

/* Everything is allowed. `path` (borrowed) is what faults will call the file. */
void daemon_config_init(struct daemon_config *config, const char *path);

/*
 * Parses the text of the file `path` (borrowed for the life of `*ret`). Pure. Returns 0, -EINVAL
 * with a fault that always names a member ("config" for the text as a whole), or -ENOMEM.
 */
int daemon_config_parse(const char *text, size_t text_bytes, const char *path,
                        struct daemon_config *ret, struct fault *reterr);

/*
 * Reads and parses the file `path` (borrowed likewise). It must be a regular file that belongs to
 * root or to the caller's user, and that only its owner may write to. Returns as the parser
 * does, or another -errno with a fault that names no member; -ENOENT when there is no such file.
 */
int daemon_config_load(const char *path, struct daemon_config *ret, struct fault *reterr);

/* Whether a peer of this uid and these groups may use the daemon. Root always may. */
bool daemon_config_admits(const struct daemon_config *config, uid_t uid, const gid_t *gids,
                          size_t gid_count);

/* The limits of a session that this user creates. Without "max_frequency_hz", root may have any
 * rate and others at most DAEMON_MEMBERS_HZ; so without "max_event_rate_hz" of other events;
 * without "allowed_events" others may have the kernel's own alone. */
struct session_limits daemon_config_limits(const struct daemon_config *config, uid_t uid);

/* What holds, as one line without a newline: "everybody on the socket; at most 4000 Hz, ...". */
struct daemon_config_line {
    char text[400];
};
struct daemon_config_line daemon_config_describe(const struct daemon_config *config);
