/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Command lines of processes. A process that forks shares its own with the child until one of them
 * executes another program. What they take together is bounded, and shared by account.
 */
#include "process_parts.h"

#include <stdlib.h>
#include <string.h>

void process_command_put(struct process_totals *totals, struct process_command *command)
{
    if (command != NULL && --command->reference_count == 0) {
        quota_give(&totals->command_bytes, command->account, command->size_bytes);
        free(command);
    }
}

void process_command_inherit(struct process *child, struct process *parent)
{
    if (child->command == NULL && parent->command != NULL) {
        child->command = parent->command;
        child->command->reference_count++;
    }
}

void process_command_forget(struct process_totals *totals, struct process *process)
{
    process_command_put(totals, process->command);
    process->command = NULL;
}

/* Whether a process has this command line already. */
static bool is_known(const struct process *process, const struct process_scan *scan)
{
    const struct process_command *known = process->command;
    return known != NULL && known->uid == scan->command_uid &&
           known->size_bytes == scan->command_bytes &&
           memcmp(known->bytes, scan->command, scan->command_bytes) == 0;
}

void process_command_take(struct process_totals *totals, struct process *process,
                          const struct process_scan *scan)
{
    if (scan->command_bytes == 0 || is_known(process, scan)) {
        return;
    }
    process_command_forget(totals, process);
    const uint32_t account = process->share->account;
    struct process_command *command = malloc(sizeof *command + scan->command_bytes);
    if (command == NULL || !quota_take(&totals->command_bytes, account, scan->command_bytes)) {
        totals->counts.counters.table_refused++;
        free(command);
        return;
    }
    *command = (struct process_command){
        .reference_count = 1,
        .number = ++totals->last_number,
        .account = account,
        .uid = scan->command_uid,
        .size_bytes = scan->command_bytes,
    };
    memcpy(command->bytes, scan->command, scan->command_bytes);
    process->command = command;
}
