/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What `record --open` does with its recording.
 */
#include "open_recording.h"

#include "browser.h"
#include "cleanup.h"
#include "flamegraph.h"
#include "load.h"
#include "options.h"
#include "page_source.h"
#include "save.h"

#include <string.h>

static int print_page(FILE *file, void *userdata)
{
    const struct page_sources *sources = userdata;
    return flamegraph_print_page(file, sources->all, sources->count, FLAME_SWITCHED,
                                 FLAME_BY_COMMAND);
}

/* How many bytes of a text are before an ending. */
static size_t bytes_before(const char *text, size_t bytes, const char *ending)
{
    size_t ending_bytes = strlen(ending);
    bool has_it =
        bytes > ending_bytes && memcmp(text + bytes - ending_bytes, ending, ending_bytes) == 0;
    return has_it ? bytes - ending_bytes : bytes;
}

/* Returned: free(). NULL when there is no memory. */
static char *page_path(const char *path)
{
    char *page = NULL;
    size_t bytes = bytes_before(path, strlen(path), ".gz");
    bytes = bytes_before(path, bytes, ".fxt");
    return asprintf(&page, "%.*s.html", (int)bytes, path) < 0 ? NULL : page;
}

int open_recording(const char *path)
{
    static const struct selection everything = {0};
    const struct load_request wanted = {
        .path = path, .selection = &everything, .elsewhere = LOAD_ELSEWHERE_SHOWN};
    cleanup_(profile_freep) struct profile *profile = NULL;
    cleanup_(waits_done) struct waits waits = {0};
    cleanup_(page_sources_done) struct page_sources sources = {0};
    cleanup_(freep) char *page = page_path(path);
    if (page == NULL) {
        return complain("%s: there is not enough memory", path);
    }
    int status = load_recording(&wanted, &profile);
    if (profile == NULL) {
        return status;
    }
    int waits_status = load_waits(&wanted, profile, &waits);
    if (waits_status != EXIT_DONE) {
        return waits_status;
    }
    page_sources_add(&sources, profile, path);
    page_sources_add_waits(&sources, &waits, path);
    int save_status = save_beside(page, print_page, &sources);
    if (save_status != EXIT_DONE) {
        return save_status;
    }
    int show_status = browser_show(page);
    return show_status == EXIT_DONE ? status : show_status;
}
