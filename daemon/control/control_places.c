/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gives connections their places, and chooses which connection is closed for another. Shares are by
 * account, so a user's subordinate uids count as that user. Root has places of its own, and always
 * gets one. An account without any connection gets one, too: if all places are taken, the account
 * with the most connections loses one. The connection that is closed does not hold the session, and
 * made no call for the longest time; one that streams Status comes last. A connection that does not
 * hold the session, streams no Status and makes no call for leases.idle_ms is closed in any case.
 *
 * A connection that lingers (see control_socket.c) cannot be closed. It counts as one of its
 * account's, but takes no place of another account.
 */
#include "account.h"
#include "clock.h"
#include "control_peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static bool is_of(const struct peer *peer, uint32_t account)
{
    return account_of(peer->cred.uid) == account;
}

static size_t count_peers_of(const struct control *control, uint32_t account)
{
    size_t count = 0;
    for (const struct peer *peer = control->peers; peer != NULL; peer = peer->next) {
        count += is_of(peer, account);
    }
    return count;
}

/* Of all users but root. */
static size_t count_users_peers(const struct control *control)
{
    size_t count = 0;
    for (const struct peer *peer = control->peers; peer != NULL; peer = peer->next) {
        count += peer->cred.uid != 0;
    }
    return count;
}

static bool may_be_ended(const struct peer *peer)
{
    return peer->control->holder != peer;
}

/* Whether `peer` gives up its place before `other`, which may be NULL, does. */
static bool goes_before(const struct peer *peer, const struct peer *other)
{
    if (other == NULL) {
        return true;
    }
    bool streams = peer->wait == PEER_STREAMS_STATUS;
    bool other_streams = other->wait == PEER_STREAMS_STATUS;
    return streams != other_streams ? other_streams : peer->called_ns < other->called_ns;
}

static struct peer *find_idlest_of(struct control *control, uint32_t account)
{
    struct peer *found = NULL;
    for (struct peer *peer = control->peers; peer != NULL; peer = peer->next) {
        if (is_of(peer, account) && may_be_ended(peer) && goes_before(peer, found)) {
            found = peer;
        }
    }
    return found;
}

/* The connection that a user without any gets the place of; NULL: there is none. */
static struct peer *find_one_to_end(struct control *control)
{
    struct peer *found = NULL;
    size_t found_count = 0;
    for (struct peer *peer = control->peers; peer != NULL; peer = peer->next) {
        if (peer->cred.uid == 0 || !may_be_ended(peer)) {
            continue;
        }
        size_t count = count_peers_of(control, account_of(peer->cred.uid));
        if (count > found_count || (count == found_count && goes_before(peer, found))) {
            found = peer;
            found_count = count;
        }
    }
    return found;
}

static int end_for_another(struct peer *peer)
{
    if (peer == NULL) {
        return -EUSERS;
    }
    peer_end(peer, "this connection has been idle for longest, and its place was needed for "
                   "another one; connect anew");
    return 0;
}

int control_make_place(struct control *control, uid_t uid)
{
    const uint32_t account = account_of(uid);
    const size_t peer_count = count_peers_of(control, account);
    const size_t own_count = peer_count + control_lingering_count(control, &account);
    if (uid == 0) {
        return peer_count < CONTROL_PEERS_PER_ACCOUNT_MAX
                   ? 0
                   : end_for_another(find_idlest_of(control, account));
    }
    if (own_count >= CONTROL_PEERS_PER_ACCOUNT_MAX) {
        return -EUSERS;
    }
    if (count_users_peers(control) < CONTROL_PEERS_MAX) {
        return 0;
    }
    return own_count > 0 ? -EUSERS : end_for_another(find_one_to_end(control));
}

void control_end_idle(struct control *control)
{
    const uint64_t limit_ns = control->params.leases.idle_ms * NS_PER_MS;
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    struct peer *next = NULL;
    for (struct peer *peer = control->peers; peer != NULL; peer = next) {
        next = peer->next;
        if (may_be_ended(peer) && peer->wait != PEER_STREAMS_STATUS &&
            now_ns - peer->called_ns >= limit_ns) {
            char text[128];
            (void)snprintf(text, sizeof text,
                           "this connection has no session, and made no call for %.3g s, so it "
                           "was ended; connect anew",
                           (double)limit_ns / (double)NS_PER_S);
            peer_end(peer, text);
        }
    }
}
