/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a profile that is loaded says. load.c fills it, resolve.c makes its chains.
 */
#include "profile.h"

#include "tables.h"

uint64_t profile_made_bytes(const struct profile *profile)
{
    return intern_size_bytes(&profile->texts) + intern_size_bytes(&profile->stacks) +
           intern_size_bytes(&profile->chains) + intern_size_bytes(&profile->frames) +
           intern_size_bytes(&profile->unnamed.addresses);
}

uint64_t profile_made_bytes_max(const struct profile *profile)
{
    return PROFILE_MADE_BYTES + PROFILE_MADE_RATIO * profile->read_bytes;
}

struct demangler *profile_demangler(struct profile *profile)
{
    return &profile->tables->symbols.demangler;
}

const struct profile_owner *profile_owner(const struct profile *profile, uint32_t owner)
{
    return owners_get(&profile->tables->owners, owner);
}

bool profile_owner_is_named(const struct profile *profile, uint32_t owner)
{
    const struct profile_owner *known = profile_owner(profile, owner);
    return known->unit != INTERN_NONE || known->container != INTERN_NONE;
}

uint32_t profile_label(const struct profile *profile, const struct profile_sample *sample,
                       enum profile_label label)
{
    return owners_label(&profile->tables->owners, profile_task(profile, sample->task)->owner,
                        label);
}

bool profile_is_kernel_thread(const struct profile *profile, const struct profile_sample *sample)
{
    if (sample->user_stack != 0 || sample->rest_stack != 0 || sample->closed != 0) {
        return false;
    }
    const struct profile_task *task = profile_task(profile, sample->task);
    return task->pid != PROFILE_PID_OUTSIDE && task->pid != PROFILE_PID_EXITED &&
           mappings_process(&profile->tables->mappings, task->segment, task->pid) == NULL;
}

const char *profile_host(const struct profile *profile, uint32_t segment)
{
    return segment >= profile->host_count || profile->hosts[segment] == INTERN_NONE
               ? NULL
               : profile_text(profile, profile->hosts[segment]);
}

bool profile_has_hosts(const struct profile *profile)
{
    for (size_t i = 1; i < profile->host_count; i++) {
        if (profile->hosts[i] != profile->hosts[0]) {
            return true;
        }
    }
    return false;
}
