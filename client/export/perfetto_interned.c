/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Interns. A thing is gathered behind what it refers to itself. Frames have the module's own
 * addresses, so modules are mappings without a place in memory. That and the build-id are also by
 * what a function is found that gets its name later.
 */
#include "perfetto_interned.h"

#include "build_id_bytes.h"
#include "definitions.h"
#include "grow.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

#define BUILD_ID_BYTES ((size_t)64)
#define NAME_BYTES_MAX ((size_t)4096)
#define FIRST_MODULE   2 /* the numbers before it are of no module, and of none of the kernel */

/* Fields of InternedData. */
enum {
    FIELD_FUNCTION = 5,
    FIELD_FRAME = 6,
    FIELD_CALLSTACK = 7,
    FIELD_BUILD_ID = 16,
    FIELD_PATH = 17,
    FIELD_SOURCE = 18,
    FIELD_MAPPING = 19,
};

/* A line of a location. */
struct frame_key {
    uint32_t location;
    uint32_t frame; /* of the profile, or LOCATION_TRUNCATED */
};

void perfetto_interned_forget(struct perfetto_interned *interned)
{
    locations_done(&interned->locations);
    for (size_t i = 0; i < STRING_KINDS; i++) {
        intern_done(&interned->strings[i]);
    }
    intern_done(&interned->frames);
    interned->frame_of_count = 0;
    interned->module_count = 0;
    interned->stack_count = 0;
}

void perfetto_interned_done(struct perfetto_interned *interned)
{
    perfetto_interned_forget(interned);
    free(interned->frame_of);
    free(interned->modules);
    free(interned->frame_ids);
    free(interned->unnamed);
    *interned = (struct perfetto_interned){0};
}

/* The iid of bytes, which are gathered if they are new. */
static uint64_t string_iid(struct perfetto_interned *interned, enum perfetto_string kind,
                           const void *bytes, size_t size_bytes)
{
    static const uint32_t fields[STRING_KINDS] = {FIELD_FUNCTION, FIELD_BUILD_ID, FIELD_PATH,
                                                  FIELD_SOURCE};
    struct intern *known = &interned->strings[kind];
    size_t known_count = known->item_count;
    uint32_t item = 0;
    if (intern_add(known, bytes, size_bytes, &item) < 0) {
        interned->sequence->fault = -ENOMEM;
        return 0;
    }
    if (item == known_count) {
        Perfetto__InternedString string = PERFETTO__INTERNED_STRING__INIT;
        string.has_iid = true;
        string.iid = (uint64_t)item + 1;
        string.has_str = true;
        const void *kept = intern_bytes(known, item, &string.str.len);
        memcpy(&string.str.data, &kept, sizeof kept); /* its interface is older than const */
        perfetto_sequence_gather(interned->sequence, fields[kind], &string.base);
    }
    return (uint64_t)item + 1;
}

/* A long name is cut, between characters, so that packets stay small. */
static uint64_t text_iid(struct perfetto_interned *interned, enum perfetto_string kind,
                         const char *text)
{
    size_t text_bytes = strlen(text);
    if (text_bytes < NAME_BYTES_MAX) {
        return string_iid(interned, kind, text, text_bytes);
    }
    char cut[NAME_BYTES_MAX];
    return string_iid(interned, kind, cut, utf8_clean(cut, sizeof cut, text, text_bytes));
}

/* What readers know the kernel's own mapping by; another name stands for no module. */
static const char *module_path(const struct perfetto_interned *interned, uint32_t module,
                               bool is_kernel)
{
    const struct profile *profile = interned->profile;
    if (is_kernel) {
        return "kernel";
    }
    return module == INTERN_NONE ? "[unknown]"
                                 : profile_text(profile, profile->modules[module].name);
}

static void write_mapping(struct perfetto_interned *interned, uint64_t iid, uint32_t module,
                          bool is_kernel)
{
    const struct profile *profile = interned->profile;
    Perfetto__Mapping mapping = PERFETTO__MAPPING__INIT;
    uint8_t build_id[BUILD_ID_BYTES];
    size_t bytes = 0;
    uint64_t path = text_iid(interned, STRING_PATH, module_path(interned, module, is_kernel));
    if (module != INTERN_NONE && !is_kernel) {
        const char *digits = profile_text(profile, profile->modules[module].build_id);
        bytes = build_id_bytes(digits, build_id, sizeof build_id);
    }
    if (bytes > 0) {
        mapping.has_build_id = true;
        mapping.build_id = string_iid(interned, STRING_BUILD_ID, build_id, bytes);
    }
    mapping.has_iid = true;
    mapping.iid = iid;
    mapping.has_start = true;
    mapping.has_end = true;
    mapping.n_path_string_ids = 1;
    mapping.path_string_ids = &path;
    perfetto_sequence_gather(interned->sequence, FIELD_MAPPING, &mapping.base);
}

/* Without a build-id, a name that comes late could be taken for that of another module. */
static uint32_t find_symbols(const struct perfetto_interned *interned, uint32_t module,
                             uint32_t segment)
{
    const struct profile *profile = interned->profile;
    return interned->is_live && module != INTERN_NONE &&
                   profile_text(profile, profile->modules[module].build_id)[0] != '\0'
               ? defined_symbols(profile, segment, module)
               : INTERN_NONE;
}

/* What was gathered of a location's module, at `*ret_number`, which is its iid less 1; it is
 * gathered if it is new. NULL when there is no memory. */
static const struct gathered_module *add_module(struct perfetto_interned *interned, uint32_t module,
                                                bool is_kernel, uint32_t segment,
                                                size_t *ret_number)
{
    size_t number = module == INTERN_NONE ? is_kernel : (size_t)module + FIRST_MODULE;
    if (grow(interned->modules, interned->module_capacity, number + 1) < 0) {
        interned->sequence->fault = -ENOMEM;
        return NULL;
    }
    for (; interned->module_count <= number; interned->module_count++) {
        interned->modules[interned->module_count].is_gathered = false;
    }
    struct gathered_module *gathered = &interned->modules[number];
    if (!gathered->is_gathered) {
        gathered->is_gathered = true;
        gathered->symbols = find_symbols(interned, module, segment);
        write_mapping(interned, number + 1, module, is_kernel);
    }
    *ret_number = number;
    return gathered;
}

static void fill_names(struct perfetto_interned *interned, uint32_t number, Perfetto__Frame *frame)
{
    if (number == LOCATION_TRUNCATED) {
        frame->function_name_id = text_iid(interned, STRING_FUNCTION, "[truncated]");
        return;
    }
    const struct profile *profile = interned->profile;
    const struct profile_frame *known = profile_frame(profile, number);
    frame->function_name_id =
        text_iid(interned, STRING_FUNCTION, profile_text(profile, known->name));
    if (known->file != INTERN_NONE) {
        frame->has_source_path_iid = true;
        frame->source_path_iid =
            text_iid(interned, STRING_SOURCE, profile_text(profile, known->file));
        frame->has_line_number = true;
        frame->line_number = known->line;
    }
}

/* Notes a frame whose function nothing names yet. */
static void note_unnamed(struct perfetto_interned *interned, const struct location *location,
                         uint32_t symbols)
{
    if (symbols == INTERN_NONE ||
        defined_symbol_find(interned->profile, symbols, location->address) != INTERN_NONE) {
        return;
    }
    if (grow(interned->unnamed, interned->unnamed_capacity, interned->unnamed_count + 1) < 0) {
        interned->sequence->fault = -ENOMEM;
        return;
    }
    interned->unnamed[interned->unnamed_count++] =
        (struct unnamed_frame){location->address, location->module, symbols};
}

static void write_frame(struct perfetto_interned *interned, uint64_t iid,
                        const struct frame_key *key, uint32_t segment)
{
    const struct location *location = locations_at(&interned->locations, key->location);
    bool is_kernel = key->frame != LOCATION_TRUNCATED &&
                     profile_frame(interned->profile, key->frame)->is_kernel != 0;
    size_t number = 0;
    const struct gathered_module *module =
        add_module(interned, location->module, is_kernel, segment, &number);
    if (module == NULL) {
        return;
    }
    Perfetto__Frame frame = PERFETTO__FRAME__INIT;
    frame.has_iid = true;
    frame.iid = iid;
    frame.has_function_name_id = true;
    fill_names(interned, key->frame, &frame);
    frame.has_mapping_id = true;
    frame.mapping_id = number + 1;
    frame.has_rel_pc = true;
    frame.rel_pc = location->address;
    perfetto_sequence_gather(interned->sequence, FIELD_FRAME, &frame.base);
    note_unnamed(interned, location, module->symbols);
}

/* The iid of a line of a location, which is gathered if it is new. */
static uint64_t frame_iid(struct perfetto_interned *interned, const struct frame_key *key,
                          uint32_t segment)
{
    size_t known_count = interned->frames.item_count;
    uint32_t item = 0;
    if (intern_add(&interned->frames, key, sizeof *key, &item) < 0) {
        interned->sequence->fault = -ENOMEM;
        return 0;
    }
    if (item == known_count) {
        write_frame(interned, (uint64_t)item + 1, key, segment);
    }
    return (uint64_t)item + 1;
}

/* The iid of the frame that is a location's only line. A location is in many stacks, so the iid is
 * kept by the location's number. */
static uint64_t only_frame_iid(struct perfetto_interned *interned, uint32_t number, uint32_t frame,
                               uint32_t segment)
{
    const struct frame_key key = {number, frame};
    if (grow(interned->frame_of, interned->frame_of_capacity, (size_t)number + 1) < 0) {
        interned->sequence->fault = -ENOMEM;
        return 0;
    }
    while (interned->frame_of_count <= number) {
        interned->frame_of[interned->frame_of_count++] = 0;
    }
    if (interned->frame_of[number] == 0) {
        interned->frame_of[number] = frame_iid(interned, &key, segment);
    }
    return interned->frame_of[number];
}

/* Lists the frames of a stack, the outermost first. Returns how many there are. */
static size_t list_frames(struct perfetto_interned *interned, uint32_t stack, uint32_t segment)
{
    size_t location_count = 0;
    size_t count = 0;
    const uint32_t *numbers = locations_stack(&interned->locations, stack, &location_count);
    for (size_t i = location_count; i-- > 0 && interned->sequence->fault == 0;) {
        size_t line_count = 0;
        const struct location *location = locations_at(&interned->locations, numbers[i]);
        const uint32_t *lines = locations_frames(&interned->locations, location, &line_count);
        if (grow(interned->frame_ids, interned->frame_capacity, count + line_count) < 0) {
            interned->sequence->fault = -ENOMEM;
            return count;
        }
        if (line_count == 1) {
            interned->frame_ids[count++] = only_frame_iid(interned, numbers[i], lines[0], segment);
            continue;
        }
        for (size_t line = line_count; line-- > 0;) {
            const struct frame_key key = {numbers[i], lines[line]};
            interned->frame_ids[count++] = frame_iid(interned, &key, segment);
        }
    }
    return count;
}

/* A stack is gathered when it is new: then its number is the next. */
uint64_t perfetto_interned_stack(struct perfetto_interned *interned,
                                 const struct profile_sample *sample)
{
    uint32_t stack = 0;
    if (locations_add_stack(&interned->locations, interned->profile, sample, &stack) < 0) {
        interned->sequence->fault = -ENOMEM;
        return 0;
    }
    if (stack == interned->stack_count) {
        Perfetto__Callstack callstack = PERFETTO__CALLSTACK__INIT;
        interned->stack_count++;
        callstack.has_iid = true;
        callstack.iid = (uint64_t)stack + 1;
        callstack.n_frame_ids =
            list_frames(interned, stack, profile_task(interned->profile, sample->task)->segment);
        callstack.frame_ids = interned->frame_ids;
        perfetto_sequence_gather(interned->sequence, FIELD_CALLSTACK, &callstack.base);
    }
    return (uint64_t)stack + 1;
}
