/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lines_answer_take() turns an answer's numbers into those of a profile, each text once: names are
 * demangled here, since that is the profile's choice.
 */
#include "lines_answer.h"

#include "cleanup.h"
#include "grow.h"

#include <string.h>

/* A text of an answer, and its numbers in the profile; INTERN_NONE: not asked for yet. */
struct taken_text {
    const char *start; /* borrowed */
    uint32_t name;     /* as a name */
    uint32_t file;     /* as a file */
};

/* An answer that is being taken. */
struct taking {
    const struct lines_answer_header *header; /* borrowed, as the next four; parts of the body */
    const struct lines_answer_chain *chains;
    const struct lines_answer_frame *frames;
    const uint32_t *lengths;
    const char *bytes;
    struct demangler *demangler; /* borrowed, as the next */
    struct intern *texts;
    struct taken_text *taken; /* owned; by number of the text in the answer */
};

static void taking_done(struct taking *taking)
{
    free(taking->taken);
}

static bool is_text(const char *text, size_t capacity_bytes)
{
    return memchr(text, '\0', capacity_bytes) != NULL;
}

bool lines_about_is_sound(const struct lines_about *about)
{
    return about->build_id_bytes <= sizeof about->build_id &&
           about->alternate_id_bytes <= sizeof about->alternate_id &&
           is_text(about->link, sizeof about->link) && strchr(about->link, '/') == NULL &&
           is_text(about->alternate, sizeof about->alternate);
}

bool lines_ranges_are_sound(const uint64_t *vaddrs, const struct function_range *ranges,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_empty = ranges[i].start == 0 && ranges[i].end == 0;
        if (!is_empty && (ranges[i].start > vaddrs[i] || ranges[i].end <= vaddrs[i])) {
            return false;
        }
    }
    return true;
}

bool lines_code_is_sound(uint64_t start, uint64_t end, const struct disassembly_line *lines,
                         size_t count)
{
    uint64_t least = start;
    for (size_t i = 0; i < count; i++) {
        if (lines[i].address < least || lines[i].address >= end ||
            !is_text(lines[i].text, sizeof lines[i].text)) {
            return false;
        }
        least = lines[i].address + 1;
    }
    return true;
}

int lines_answer_size(const struct lines_answer_header *header, size_t address_count,
                      size_t *ret_bytes)
{
    if (header->error != 0 || header->chain_count != address_count ||
        header->text_bytes > LINES_ANSWER_BYTES_MAX) {
        return -EBADMSG;
    }
    uint64_t sum_bytes = header->text_bytes +
                         header->chain_count * (uint64_t)sizeof(struct lines_answer_chain) +
                         header->frame_count * (uint64_t)sizeof(struct lines_answer_frame) +
                         header->text_count * (uint64_t)sizeof(uint32_t);
    if (sum_bytes > LINES_ANSWER_BYTES_MAX) {
        return -EBADMSG;
    }
    *ret_bytes = (size_t)sum_bytes;
    return 0;
}

/* Finds where each text begins, if together they are all the bytes, and none holds a NUL. */
static int find_texts(struct taking *taking)
{
    size_t count = taking->header->text_count;
    uint64_t text_bytes = taking->header->text_bytes;
    uint64_t used_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (taking->lengths[i] > text_bytes - used_bytes ||
            taking->lengths[i] > LINES_TEXT_BYTES_MAX) {
            return -EBADMSG;
        }
        taking->taken[i] =
            (struct taken_text){taking->bytes + used_bytes, INTERN_NONE, INTERN_NONE};
        used_bytes += taking->lengths[i];
    }
    bool has_nul = memchr(taking->bytes, '\0', (size_t)text_bytes) != NULL;
    return used_bytes != text_bytes || has_nul ? -EBADMSG : 0;
}

static int check_chains(const struct taking *taking)
{
    const struct lines_answer_header *header = taking->header;
    for (size_t i = 0; i < header->chain_count; i++) {
        const struct lines_answer_chain *chain = &taking->chains[i];
        if (chain->count > LINES_CHAIN_COUNT_MAX || chain->first > header->frame_count ||
            chain->count > header->frame_count - chain->first) {
            return -EBADMSG;
        }
    }
    return 0;
}

/* The number in the profile of a text of the answer, as a name or as a file. */
static int add_text(struct taking *taking, uint32_t number, bool is_name, uint32_t *ret)
{
    char text[LINES_TEXT_BYTES_MAX + 1];
    if (number == INTERN_NONE) {
        *ret = INTERN_NONE;
        return 0;
    }
    if (number >= taking->header->text_count) {
        return -EBADMSG;
    }
    struct taken_text *taken = &taking->taken[number];
    uint32_t *item = is_name ? &taken->name : &taken->file;
    size_t text_bytes = taking->lengths[number];
    int r = 0;
    if (*item == INTERN_NONE) {
        memcpy(text, taken->start, text_bytes);
        text[text_bytes] = '\0';
        r = is_name ? demangle_add(taking->demangler, taking->texts, text, item)
                    : intern_add(taking->texts, text, text_bytes, item);
    }
    *ret = *item;
    return r;
}

/* `into` has room for all frames. */
static int take_frames(struct taking *taking, struct inline_frame *into)
{
    int r = 0;
    for (size_t i = 0; i < taking->header->frame_count && r == 0; i++) {
        const struct lines_answer_frame *frame = &taking->frames[i];
        into[i].line = frame->line;
        r = add_text(taking, frame->name, true, &into[i].name);
        if (r == 0) {
            r = add_text(taking, frame->file, false, &into[i].file);
        }
    }
    return r;
}

int lines_answer_take(const struct lines_answer_header *header, const void *body,
                      struct demangler *demangler, struct intern *texts, struct inlines *table,
                      struct inline_chain *ret_chains)
{
    const struct lines_answer_chain *chains = body;
    const void *frames = chains + header->chain_count;
    const void *lengths = (const struct lines_answer_frame *)frames + header->frame_count;
    const void *bytes = (const uint32_t *)lengths + header->text_count;
    cleanup_(taking_done) struct taking taking = {
        .header = header,
        .chains = chains,
        .frames = frames,
        .lengths = lengths,
        .bytes = bytes,
        .demangler = demangler,
        .texts = texts,
        .taken = calloc((size_t)header->text_count + 1, sizeof *taking.taken),
    };
    if (taking.taken == NULL) {
        return -ENOMEM;
    }
    size_t first = table->frame_count;
    int r = check_chains(&taking);
    if (r == 0) {
        r = find_texts(&taking);
    }
    if (r < 0 || header->frame_count > LINES_FRAME_COUNT_MAX - first) {
        return r < 0 ? r : -EBADMSG;
    }
    if (grow(table->frames, table->frame_capacity, first + header->frame_count) < 0) {
        return -ENOMEM;
    }
    r = take_frames(&taking, &table->frames[first]);
    if (r < 0) {
        return r;
    }
    table->frame_count = first + header->frame_count;
    for (size_t i = 0; i < header->chain_count; i++) {
        ret_chains[i] = (struct inline_chain){.first = (uint32_t)first + chains[i].first,
                                              .count = chains[i].count};
    }
    return 0;
}

int lines_answer_make(const struct lines_address *addresses, size_t address_count,
                      const struct intern *texts, const struct inlines *table, void **ret,
                      size_t *ret_bytes)
{
    struct lines_answer_header header = {.chain_count = (uint32_t)address_count,
                                         .frame_count = (uint32_t)table->frame_count,
                                         .text_count = (uint32_t)texts->item_count};
    size_t size_bytes = 0;
    for (size_t i = 0; i < texts->item_count; i++) {
        size_t text_bytes = 0;
        (void)intern_bytes(texts, (uint32_t)i, &text_bytes);
        header.text_bytes += text_bytes;
    }
    if (lines_answer_size(&header, address_count, &size_bytes) < 0) {
        return -EBADMSG;
    }
    uint8_t *answer = calloc(1, sizeof header + size_bytes);
    if (answer == NULL) {
        return -ENOMEM;
    }
    memcpy(answer, &header, sizeof header);
    struct lines_answer_chain *chains = (struct lines_answer_chain *)(answer + sizeof header);
    struct lines_answer_frame *frames = (struct lines_answer_frame *)(chains + address_count);
    uint32_t *lengths = (uint32_t *)(frames + table->frame_count);
    uint8_t *bytes = (uint8_t *)(lengths + texts->item_count);
    for (size_t i = 0; i < address_count; i++) {
        chains[i] = (struct lines_answer_chain){addresses[i].chain.first, addresses[i].chain.count};
    }
    for (size_t i = 0; i < table->frame_count; i++) {
        const struct inline_frame *frame = &table->frames[i];
        frames[i] = (struct lines_answer_frame){frame->name, frame->file, frame->line};
    }
    for (size_t i = 0; i < texts->item_count; i++) {
        size_t text_bytes = 0;
        const void *text = intern_bytes(texts, (uint32_t)i, &text_bytes);
        lengths[i] = (uint32_t)text_bytes;
        memcpy(bytes, text, text_bytes);
        bytes += text_bytes;
    }
    *ret = answer;
    *ret_bytes = sizeof header + size_bytes;
    return 0;
}
