/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any file gives a table of symbols and spans that are accepted, or is refused. The same bytes as
 * spans are refused, or can be searched.
 */
#include "fuzz_target.h"
#include "jitdump.h"

#include <stdlib.h>
#include <string.h>

static void search(const struct code_spans *spans)
{
    for (size_t i = 0; i < spans->span_count && i < 64; i++) {
        const struct code_span *span = &spans->spans[i];
        (void)code_spans_find(spans, span->start, span->from_ns);
        (void)code_spans_find(spans, span->start + span->size_bytes, span->to_ns);
    }
}

/* Each span is what is found at its beginning. */
static void check(const struct code_spans *spans)
{
    for (size_t i = 0; i < spans->span_count && i < 64; i++) {
        const struct code_span *span = &spans->spans[i];
        const struct code_span *found = code_spans_find(spans, span->start, span->from_ns);
        if (found == NULL || found->start != span->start || found->vaddr != span->vaddr ||
            found->from_ns != span->from_ns || found->to_ns != span->to_ns) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct symbol_builder *builder = symbol_builder_new();
    struct symbol_table table;
    struct code_spans spans;
    void *made = NULL;
    void *laid = NULL;
    size_t made_bytes = 0;
    size_t laid_bytes = 0;
    size_t used = 0;
    if (builder != NULL && jitdump_parse(bytes, size, size / 2, builder, &laid, &laid_bytes) == 0 &&
        symbol_builder_finish(builder, &made, &made_bytes) == 0) {
        if (symbol_table_open(made, made_bytes, &table) < 0 ||
            code_spans_open(laid, laid_bytes, &spans, &used) < 0 || used != laid_bytes) {
            abort();
        }
        check(&spans);
    }
    free(made);
    free(laid);
    symbol_builder_free(builder);

    void *foreign = malloc(size + 1); /* aligned */
    if (foreign != NULL) {
        memcpy(foreign, bytes, size);
        if (code_spans_open(foreign, size, &spans, &used) == 0) {
            search(&spans);
        }
    }
    free(foreign);
    return 0;
}
