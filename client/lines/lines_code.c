/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lines_code_read() finds the module's own file by its build-id and has the child disassemble a
 * part of it. What the child answers is checked before it is used (lines_answer.h).
 */
#include "lines_code.h"

#include "cleanup.h"
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
    ret->instructions = calloc(count + 1, sizeof *ret->instructions);
    if (ret->instructions == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        _Static_assert(sizeof ret->instructions->text == sizeof lines->text, "one is copied");
        ret->instructions[i].address = lines[i].address;
        memcpy(ret->instructions[i].text, lines[i].text, sizeof lines[i].text);
    }
    ret->count = count;
    return 0;
}

int lines_code_read(const struct profile *profile, uint32_t module, uint64_t start, uint64_t end,
                    struct lines_code *ret)
{
    cleanup_(lines_readers_done) struct lines_readers readers = {0};
    cleanup_(freep) struct disassembly_line *lines = NULL;
    struct lines_found found = {0};
    size_t count = 0;
    *ret = (struct lines_code){0};
    end = end - start > LINES_CODE_BYTES_MAX ? start + LINES_CODE_BYTES_MAX : end;
    int r = find_module(profile, module, &readers, &found);
    if (r == 0) {
        r = lines_worker_code(found.worker, start, end, &lines, &count);
        if (r == -EPIPE || r == -ETIME) {
            lines_readers_lose(&readers, found.worker, r, found.path);
            r = -EBADMSG;
        }
    }
    free(found.path);
    ret->losses = readers.losses;
    return r == 0 ? take_lines(lines, count, ret) : r;
}
