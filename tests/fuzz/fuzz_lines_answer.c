/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whatever the child that parses debugging information answers is refused, or gives each address a
 * chain of frames within the table, whose texts are there. The input is an answer as it comes
 * through the pipe, and, where it is long enough, what an open file is said to be.
 */
#include "fuzz_target.h"
#include "lines_answer.h"

#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so) {
        abort();
    }
}

static bool is_text(const struct intern *texts, uint32_t item)
{
    return item == INTERN_NONE || item < texts->item_count;
}

static void take(const struct lines_answer_header *header, const void *body)
{
    struct demangler demangler = {0};
    struct intern texts = {0};
    struct inlines table = {0};
    struct inline_chain *chains = calloc((size_t)header->chain_count + 1, sizeof *chains);
    if (chains != NULL &&
        lines_answer_take(header, body, &demangler, &texts, &table, chains) == 0) {
        for (size_t i = 0; i < header->chain_count; i++) {
            require(chains[i].count <= LINES_CHAIN_COUNT_MAX &&
                    chains[i].first <= table.frame_count &&
                    chains[i].count <= table.frame_count - chains[i].first);
        }
        for (size_t i = 0; i < table.frame_count; i++) {
            require(is_text(&texts, table.frames[i].name) && is_text(&texts, table.frames[i].file));
        }
    }
    free(chains);
    inlines_done(&table);
    intern_done(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lines_answer_header header;
    struct lines_about about;
    size_t body_bytes = 0;
    if (size >= sizeof about) {
        memcpy(&about, bytes, sizeof about);
        require(!lines_about_is_sound(&about) ||
                (strlen(about.link) < sizeof about.link &&
                 strlen(about.alternate) < sizeof about.alternate));
    }
    if (size < sizeof header) {
        return 0;
    }
    memcpy(&header, bytes, sizeof header);
    if (lines_answer_size(&header, header.chain_count, &body_bytes) == 0 &&
        body_bytes <= size - sizeof header) {
        void *body = malloc(body_bytes + 1); /* aligned, and its end guarded */
        if (body != NULL) {
            memcpy(body, bytes + sizeof header, body_bytes);
            take(&header, body);
        }
        free(body);
    }
    return 0;
}
