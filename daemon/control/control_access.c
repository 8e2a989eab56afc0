/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may use the sampler. The socket's mode comes first: who cannot connect is not heard at all.
 * Beyond that the administrator may have a list, which is asked once, when a connection is made,
 * with what the kernel noted of the client then: whatever it becomes later, a connection stays who
 * it was. A peer that is not on the list gets org.varlink.service, and a sentence.
 */
#include "cleanup.h"
#include "control_peer.h"
#include "json.h"
#include "log.h"
#include "sampler.h"

#include <errno.h>
#include <string.h>

#define GROUPS_AT_FIRST 32
#define GROUPS_MAX      65536 /* the kernel's own limit */

/* The supplementary groups. Returned: free(). Returns 0 or -errno. */
static int read_groups(int fd, gid_t **ret_gids, size_t *ret_count)
{
    for (size_t room = GROUPS_AT_FIRST; room <= GROUPS_MAX; room = GROUPS_MAX) {
        cleanup_(freep) gid_t *gids = calloc(room, sizeof *gids);
        socklen_t bytes = (socklen_t)(room * sizeof *gids);
        if (gids == NULL) {
            return -ENOMEM;
        }
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, &bytes) == 0) {
            *ret_count = bytes / sizeof *gids;
            *ret_gids = take_ptr(gids);
            return 0;
        }
        if (errno != ERANGE || room == GROUPS_MAX) {
            return -errno;
        }
    }
    return -ERANGE;
}

bool control_admits(const struct control *control, int fd, const struct ucred *cred)
{
    const struct daemon_config *config = control->params.config;
    cleanup_(freep) gid_t *gids = NULL;
    size_t count = 0;
    if (daemon_config_admits(config, cred->uid, &cred->gid, 1)) {
        return true;
    }
    int r = read_groups(fd, &gids, &count);
    if (r < 0) {
        (void)log_warning(r, "peer pid %d uid %u: its groups are not known, so none is allowed",
                          (int)cred->pid, cred->uid);
    }
    return daemon_config_admits(config, cred->uid, gids, count);
}

int control_reply_not_admitted(struct peer *peer)
{
    struct fault fault = {0};
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    (void)fault_set(&fault, EACCES,
                    "uid %u is not in allowed_uids, and none of its groups in allowed_gids, of "
                    "%.120s; the administrator can put it there",
                    peer->cred.uid, peer->control->params.config->limits.path);
    if (cJSON_AddStringToObject(parameters, "text", fault.text) == NULL) {
        return -ENOMEM;
    }
    return peer_reply_error(peer, SAMPLER_INTERFACE ".PermissionDenied", take_ptr(parameters));
}
