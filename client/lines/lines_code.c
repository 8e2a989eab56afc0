/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lines_code_read() finds the module's own file by its build-id and has the child disassemble
 * parts of it. What the child answers is checked before it is used (lines_answer.h).
 */
#include "lines_code.h"

#include "cleanup.h"
#include "grow.h"
#include "lines_build_id.h"
#include "lines_search.h"

#include <string.h>

void lines_code_done(struct lines_code *code)
{
    free(code->instructions);
    *code = (struct lines_code){0};
}

static int find_module(const struct profile *profile, uint32_t module,
                       struct lines_readers *readers, struct lines_found *ret)
{
    const char *name = profile_text(profile, profile->modules[module].name);
    const char *build_id = profile_text(profile, profile->modules[module].build_id);
    struct lines_build_id id;
    return name[0] != '/' || !lines_build_id_read(build_id, &id)
               ? -ENOENT
               : lines_search_module(readers, name, &id, ret);
}

static int take_lines(const struct disassembly_line *lines, size_t count, struct lines_code *ret)
{
    if (grow(ret->instructions, ret->capacity, ret->count + count) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        struct lines_instruction *instruction = &ret->instructions[ret->count++];
        _Static_assert(sizeof instruction->text == sizeof lines->text, "one is copied");
        instruction->address = lines[i].address;
        memcpy(instruction->text, lines[i].text, sizeof lines[i].text);
    }
    return 0;
}

/* Reads a range up to `end`. */
static int read_range(struct lines_worker *worker, struct lines_range *range, uint64_t end,
                      struct lines_code *ret)
{
    cleanup_(freep) struct disassembly_line *lines = NULL;
    size_t count = 0;
    int r = lines_worker_code(worker, range->start, end, &lines, &count);
    if (r == 0) {
        r = take_lines(lines, count, ret);
    }
    if (r == 0) {
        range->read_end = end;
        range->first = ret->count - count;
        range->count = count;
    }
    return r;
}

int lines_code_read(const struct profile *profile, uint32_t module, struct lines_range *ranges,
                    size_t range_count, struct lines_code *ret)
{
    cleanup_(lines_readers_done) struct lines_readers readers = {0};
    struct lines_found found = {0};
    uint64_t left = LINES_CODE_BYTES_MAX;
    *ret = (struct lines_code){0};
    int r = find_module(profile, module, &readers, &found);
    for (size_t i = 0; i < range_count && i < LINES_CODE_RANGES_MAX && r == 0 && left > 0; i++) {
        if (ranges[i].start < ranges[i].end) {
            uint64_t size = ranges[i].end - ranges[i].start;
            size = size < left ? size : left;
            left -= size;
            r = read_range(found.worker, &ranges[i], ranges[i].start + size, ret);
        }
    }
    if (r == -EPIPE || r == -ETIME) {
        lines_readers_lose(&readers, found.worker, r, found.path);
        r = -EBADMSG;
    }
    free(found.path);
    ret->losses = readers.losses;
    return r;
}
