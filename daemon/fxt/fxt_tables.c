/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tables of one segment. A second definition of an index is refused, since readers disagree on
 * which definition counts. The tables are bounded: FXT_PROVIDERS_MAX providers, each with
 * FXT_STRING_INDEX_MAX strings and FXT_THREAD_INDEX_MAX threads, and texts that together are not
 * longer than the input. A call that fails changes nothing.
 */
#include "fxt_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct fxt_provider *provider_new(uint32_t id)
{
    struct fxt_provider *provider = calloc(1, sizeof *provider);
    if (provider != NULL) {
        provider->id = id;
        provider->ticks_per_second = FXT_TICKS_PER_SECOND;
    }
    return provider;
}

static void provider_free(struct fxt_provider *provider)
{
    if (provider == NULL) {
        return;
    }
    for (size_t i = 0; i < FXT_STRING_PAGE_COUNT; i++) {
        struct fxt_string_page *page = provider->pages[i];
        for (size_t j = 0; page != NULL && j < FXT_STRING_PAGE_SIZE; j++) {
            free(page->texts[j]);
        }
        free(page);
    }
    free(provider->threads);
    free(provider);
}

void fxt_tables_reset(struct fxt_tables *tables)
{
    for (size_t i = 0; i < tables->provider_count; i++) {
        provider_free(tables->providers[i]);
    }
    free(tables->providers);
    provider_free(tables->unnamed);
    *tables = (struct fxt_tables){0};
}

int fxt_tables_need_provider(struct fxt_tables *tables)
{
    if (tables->current == NULL) {
        tables->unnamed = provider_new(0);
        tables->current = tables->unnamed;
    }
    return tables->current == NULL ? -ENOMEM : 0;
}

/* Where `id` stands among the providers, or would. */
static size_t find_position(const struct fxt_tables *tables, uint32_t id)
{
    size_t low = 0;
    size_t high = tables->provider_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tables->providers[middle]->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool position_holds(const struct fxt_tables *tables, size_t position, uint32_t id)
{
    return position < tables->provider_count && tables->providers[position]->id == id;
}

int fxt_tables_define_provider(struct fxt_tables *tables, uint32_t id)
{
    size_t position = find_position(tables, id);
    if (position_holds(tables, position, id)) {
        return -EEXIST;
    }
    if (tables->provider_count == FXT_PROVIDERS_MAX) {
        return -ENOSPC;
    }
    struct fxt_provider **providers =
        reallocarray(tables->providers, tables->provider_count + 1, sizeof(struct fxt_provider *));
    if (providers == NULL) {
        return -ENOMEM;
    }
    tables->providers = providers;
    struct fxt_provider *provider = provider_new(id);
    if (provider == NULL) {
        return -ENOMEM;
    }
    memmove(providers + position + 1, providers + position,
            (tables->provider_count - position) * sizeof(struct fxt_provider *));
    providers[position] = provider;
    tables->provider_count++;
    tables->current = provider;
    return 0;
}

int fxt_tables_select_provider(struct fxt_tables *tables, uint32_t id)
{
    size_t position = find_position(tables, id);
    if (!position_holds(tables, position, id)) {
        return -ENOENT;
    }
    tables->current = tables->providers[position];
    return 0;
}

int fxt_provider_define_string(struct fxt_provider *provider, uint16_t index, const char *text,
                               size_t text_bytes)
{
    struct fxt_string_page **page = &provider->pages[index / FXT_STRING_PAGE_SIZE];
    if (*page == NULL) {
        *page = calloc(1, sizeof **page);
    }
    if (*page == NULL) {
        return -ENOMEM;
    }
    struct fxt_text **slot = &(*page)->texts[index % FXT_STRING_PAGE_SIZE];
    if (*slot != NULL) {
        return -EEXIST;
    }
    struct fxt_text *copy = malloc(sizeof *copy + text_bytes);
    if (copy == NULL) {
        return -ENOMEM;
    }
    copy->size_bytes = text_bytes;
    memcpy(copy->bytes, text, text_bytes);
    *slot = copy;
    return 0;
}

const struct fxt_text *fxt_provider_find_string(const struct fxt_provider *provider, uint16_t index)
{
    const struct fxt_string_page *page = provider->pages[index / FXT_STRING_PAGE_SIZE];
    return page == NULL ? NULL : page->texts[index % FXT_STRING_PAGE_SIZE];
}

int fxt_provider_define_thread(struct fxt_provider *provider, uint8_t index, uint64_t pid,
                               uint64_t tid)
{
    if (provider->threads == NULL) {
        provider->threads = calloc(FXT_THREAD_INDEX_MAX + 1, sizeof *provider->threads);
    }
    if (provider->threads == NULL) {
        return -ENOMEM;
    }
    struct fxt_thread *thread = &provider->threads[index];
    if (thread->defined) {
        return -EEXIST;
    }
    *thread = (struct fxt_thread){.defined = true, .pid = pid, .tid = tid};
    return 0;
}

const struct fxt_thread *fxt_provider_find_thread(const struct fxt_provider *provider,
                                                  uint8_t index)
{
    if (provider->threads == NULL || !provider->threads[index].defined) {
        return NULL;
    }
    return &provider->threads[index];
}
