/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a profile that is loaded says. load.c fills it, resolve.c makes its chains.
 */
#include "profile.h"

#include "cleanup.h"
#include "extremes.h"
#include "json.h"
#include "recording_length.h"
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

struct profile_span profile_span(const struct profile *profile)
{
    uint64_t begin_ns = profile->first_ns - profile->unselected_ns;
    uint64_t between_ns = profile->last_ns - profile->first_ns;
    uint64_t length_ns = recording_length_ns(profile->books_json, between_ns);
    if (profile->from_ns == 0 && profile->to_ns == 0) {
        return (struct profile_span){begin_ns, length_ns};
    }
    uint64_t end_ns = max_u64(begin_ns + length_ns, profile->last_ns);
    begin_ns = max_u64(begin_ns, profile->from_ns);
    end_ns = profile->to_ns == 0 ? end_ns : min_u64(end_ns, profile->to_ns);
    return (struct profile_span){begin_ns, end_ns > begin_ns ? end_ns - begin_ns : 0};
}

/* A number of at least 1 in an object, else 0. */
static uint64_t positive_member(const cJSON *object, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
    double number = cJSON_IsNumber(value) ? value->valuedouble : 0;
    return number >= 1 && number <= 1e15 ? (uint64_t)number : 0;
}

uint64_t profile_period_ns(const struct profile *profile)
{
    cleanup_(json_freep) cJSON *books = cJSON_Parse(profile->books_json);
    cleanup_(json_freep) cJSON *session = cJSON_Parse(profile->session_json);
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(session, "config");
    if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(books, "period_ns"))) {
        return 0;
    }
    uint64_t period_ns = positive_member(books, "period_ns");
    uint64_t frequency_hz = positive_member(config, "frequency_hz");
    if (period_ns == 0) {
        period_ns = positive_member(config, "sample_period_ns");
    }
    if (period_ns == 0 && frequency_hz > 0) {
        period_ns = (UINT64_C(1000000000) + frequency_hz / 2) / frequency_hz;
    }
    return period_ns;
}
