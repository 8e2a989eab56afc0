/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Says on a page of which host a recording is, and what was recorded: as above a report.
 */
#include "page_source.h"

#include "cleanup.h"
#include "input_paths.h"
#include "session_facts.h"

#include <stdio.h>

void page_texts_done(struct page_texts *texts)
{
    free(texts->host);
    free(texts->what);
    *texts = (struct page_texts){0};
}

/* Returned: free(). NULL when there is no memory. */
static char *write_text(const struct session_facts *facts,
                        void (*write)(FILE *file, const struct session_facts *facts))
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    if (file != NULL) {
        write(file, facts);
        (void)fclose(file);
    }
    return text;
}

struct flame_source page_source(const struct profile *profile, const char *path,
                                struct page_texts *texts)
{
    struct flame_source source = {.profile = profile, .name = input_title(path)};
    struct session_facts facts;
    session_facts_take(profile, &facts);
    source.is_whole = facts.is_whole;
    if (facts.session_count > 0) {
        source.host = texts->host = write_text(&facts, session_facts_write_host);
        source.what = texts->what = write_text(&facts, session_facts_write_targets);
    }
    session_facts_done(&facts);
    return source;
}

void page_sources_done(struct page_sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        page_texts_done(&sources->texts[i]);
    }
    *sources = (struct page_sources){0};
}

void page_sources_add(struct page_sources *sources, const struct profile *profile, const char *path)
{
    sources->all[sources->count] = page_source(profile, path, &sources->texts[sources->count]);
    sources->count++;
}

void page_sources_add_waits(struct page_sources *sources, const struct waits *waits,
                            const char *path)
{
    for (size_t i = 0; i < waits->count; i++) {
        page_sources_add(sources, waits->profiles[i], path);
    }
}
