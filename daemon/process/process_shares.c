/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the processes of each account hold of a process table. A share lives as long as a process is
 * charged to it, so there are never more shares than processes.
 */
#include "process_parts.h"

#include "cleanup.h"
#include "quota.h"

#define ACCOUNT_PARTS 2 /* an account may hold a half of what the others leave, */
#define UNKNOWN_PARTS 4 /* all processes without a known account together a fourth */
#define ROOT_PART     8 /* the part of each table that only root may fill */
#define ROOT_ACCOUNT  0

/* Spreads accounts over the buckets: blocks of subordinate uids differ in their upper half. */
static struct process_share **bucket_of(struct process_totals *totals, uint32_t account)
{
    return &totals->shares[account * UINT32_C(0x9e3779b1) >> (32 - PROCESS_SHARE_BUCKETS_LOG)];
}

struct process_share *process_share_get(struct process_totals *totals, uint32_t account)
{
    struct process_share **bucket = bucket_of(totals, account);
    struct process_share *share = *bucket;
    while (share != NULL && share->account != account) {
        share = share->next;
    }
    if (share == NULL) {
        share = calloc(1, sizeof *share);
        if (share != NULL) {
            share->account = account;
            share->next = *bucket;
            *bucket = share;
        }
    }
    return share;
}

void process_share_put(struct process_totals *totals, struct process_share *share)
{
    struct process_share **link = bucket_of(totals, share->account);
    if (share->process_count > 0) {
        return;
    }
    while (*link != share) {
        link = &(*link)->next;
    }
    *link = share->next;
    free(share);
}

bool process_share_allows(struct process_totals *totals, const struct process_share *share,
                          size_t max, size_t total, size_t own, size_t more)
{
    bool is_root = share->account == ROOT_ACCOUNT;
    uint64_t parts = share->account == PROCESS_ACCOUNT_UNKNOWN ? UNKNOWN_PARTS : ACCOUNT_PARTS;
    bool allows = quota_rule_allows(is_root ? max : max - max / ROOT_PART, parts, total, own, more);
    totals->root_refused = totals->root_refused || (is_root && !allows);
    return allows;
}

void process_share_move(struct process_totals *totals, struct process *process, uint32_t account)
{
    struct process_share *from = process->share;
    struct process_share *to = process_share_get(totals, account);
    size_t unreserved_weight = process_unreserved_weight(process->mapping_weight);
    if (to == NULL) {
        return;
    }
    from->process_count--;
    from->thread_count -= process->thread_count;
    from->older_name_count -= process->older_name_count;
    from->unreserved_weight -= unreserved_weight;
    to->process_count++;
    to->thread_count += process->thread_count;
    to->older_name_count += process->older_name_count;
    to->unreserved_weight += unreserved_weight;
    process->share = to;
    process_share_put(totals, from);
}
