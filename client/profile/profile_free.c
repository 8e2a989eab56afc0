/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of a profile: it releases all that loading and resolving have made.
 */
#include "profile.h"

#include "cleanup.h"
#include "huge_pages.h"
#include "located_stacks.h"
#include "session_times.h"
#include "tables.h"

struct profile *profile_free(struct profile *profile)
{
    if (profile != NULL) {
        huge_pages_free(profile->samples, profile->sample_capacity * sizeof *profile->samples);
        free(profile->values);
        profile_event_done(&profile->event);
        intern_done(&profile->texts);
        intern_done(&profile->tasks);
        intern_done(&profile->stacks);
        intern_done(&profile->chains);
        intern_done(&profile->frames);
        free(profile->modules);
        if (profile->tables != NULL) {
            names_done(&profile->tables->names);
            owners_done(&profile->tables->owners);
            mappings_done(&profile->tables->mappings);
            symbols_done(&profile->tables->symbols);
            free(profile->tables->sampled);
            free(profile->tables);
        }
        profile->located = located_stacks_free(profile->located);
        inlines_done(&profile->inlines);
        unnamed_done(&profile->unnamed);
        free(profile->groups);
        free(profile->drops);
        free(profile->threads);
        intern_done(&profile->whole_waits);
        free(profile->hosts);
        for (size_t i = 0; i < profile->session_count; i++) {
            free(profile->session_jsons[i]);
        }
        free(profile->session_jsons);
        session_times_done(profile);
        for (size_t i = 0; i < profile->event_count; i++) {
            free(profile->event_names[i]);
        }
        free(profile->event_names);
        free(profile->session_json);
        free(profile->books_json);
        first_samples_done(&profile->firsts);
        free(profile);
    }
    return NULL;
}

void profile_freep(struct profile **profile)
{
    *profile = profile_free(*profile);
}
