/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gathers which users may connect to the socket, and whether the caller may. Groups are asked of
 * the database of groups (getgrnam(), getgrouplist()), which may be a network's, and of the
 * caller's own process (getgroups()): a change of the one reaches the other with a new login.
 */
#include "cleanup.h"
#include "gather.h"
#include "sampler.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GROUPS_MAX 1024

static bool has_gid(const gid_t *groups, int count, gid_t gid)
{
    for (int i = 0; i < count; i++) {
        if (groups[i] == gid) {
            return true;
        }
    }
    return false;
}

static bool is_in_effect(gid_t gid)
{
    gid_t groups[GROUPS_MAX];
    int count = getgroups(GROUPS_MAX, groups);
    return getegid() == gid || has_gid(groups, count, gid);
}

static bool is_listed(gid_t gid)
{
    gid_t groups[GROUPS_MAX];
    int count = GROUPS_MAX;
    const struct passwd *user = getpwuid(geteuid());
    return user != NULL && getgrouplist(user->pw_name, user->pw_gid, groups, &count) >= 0 &&
           has_gid(groups, count, gid);
}

/* The socket's group, or that which the socket would have. */
static void gather_group(struct access_facts *ret)
{
    bool is_sockets = ret->stat_errno == 0 && ret->is_socket && ret->gid != 0;
    const struct group *group = is_sockets ? getgrgid(ret->gid) : getgrnam(SAMPLER_GROUP);
    ret->has_group = group != NULL;
    ret->is_foreign = is_sockets && (group == NULL || strcmp(group->gr_name, SAMPLER_GROUP) != 0);
    if (group == NULL && ret->is_foreign) {
        (void)snprintf(ret->group, sizeof ret->group, "%s", "without a name");
        ret->is_in_effect = is_in_effect(ret->gid);
        return;
    }
    if (group == NULL) {
        (void)snprintf(ret->group, sizeof ret->group, "%s", SAMPLER_GROUP);
        return;
    }
    gid_t gid = group->gr_gid;
    (void)snprintf(ret->group, sizeof ret->group, "%s", group->gr_name);
    ret->is_listed = is_listed(gid);
    ret->is_in_effect = is_in_effect(gid);
}

void gather_access(const char *path, struct access_facts *ret)
{
    struct stat status;
    path = path == NULL ? getenv(SAMPLER_SOCKET_ENVIRONMENT) : path;
    path = path == NULL || path[0] == '\0' ? SAMPLER_SOCKET_PATH : path;
    *ret = (struct access_facts){
        .path = path,
        .is_default = strcmp(path, SAMPLER_SOCKET_PATH) == 0,
        .is_root = geteuid() == 0,
    };
    if (stat(path, &status) < 0) {
        ret->stat_errno = errno;
    } else {
        ret->is_socket = S_ISSOCK(status.st_mode);
        ret->is_ours = status.st_uid == geteuid();
        ret->mode = status.st_mode & 0777;
        ret->gid = status.st_gid;
    }
    gather_group(ret);
}
