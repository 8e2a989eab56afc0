/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Collects and writes the tables of a dictionary. A module is a mapping from 0 on, since addresses
 * are the module's own. Texts are exact; what is not UTF-8 is U+FFFD.
 */
#include "otlp_dictionary.h"

#include "cleanup.h"
#include "utf8.h"

#include <errno.h>
#include <otlp.pb-c.h>
#include <stdlib.h>
#include <string.h>

#define BUILD_ID_KEY    "process.executable.build_id.gnu"
#define FRAME_TYPE_KEY  "profile.frame.type"
#define REPLACED_FACTOR 3 /* bytes of U+FFFD, which stands for one */

/* Fields of Dictionary. */
enum {
    FIELD_MAPPING = 1,
    FIELD_LOCATION,
    FIELD_FUNCTION,
    FIELD_LINK,
    FIELD_STRING,
    FIELD_ATTRIBUTE,
    FIELD_STACK
};

struct otlp_attribute {
    int64_t number;
    int32_t key;
    int32_t text; /* of the strings; -1: it is a number */
};

struct otlp_function {
    int32_t name; /* of the strings, as `file` */
    int32_t file;
};

void otlp_dictionary_done(struct otlp_dictionary *dictionary)
{
    locations_done(&dictionary->locations);
    intern_done(&dictionary->strings);
    intern_done(&dictionary->attributes);
    intern_done(&dictionary->functions);
    intern_done(&dictionary->modules);
}

/* Adds what is kept once. Returns its index, `first` that of the first. */
static int32_t add(struct otlp_dictionary *dictionary, struct intern *table, const void *bytes,
                   size_t size_bytes, int32_t first)
{
    uint32_t item = 0;
    if (dictionary->fault == 0) {
        dictionary->fault = table->item_count >= INT32_MAX - 1
                                ? -ENOMEM
                                : intern_add(table, bytes, size_bytes, &item);
    }
    return first + (int32_t)item;
}

int32_t otlp_string(struct otlp_dictionary *dictionary, const char *text)
{
    size_t capacity_bytes = REPLACED_FACTOR * strlen(text) + 1;
    cleanup_(freep) char *clean = malloc(capacity_bytes);
    if (clean == NULL) {
        dictionary->fault = -ENOMEM;
        return 0;
    }
    size_t size_bytes = utf8_clean(clean, capacity_bytes, text, strlen(text));
    return add(dictionary, &dictionary->strings, clean, size_bytes, 0);
}

int32_t otlp_text_attribute(struct otlp_dictionary *dictionary, const char *key, const char *text)
{
    const struct otlp_attribute attribute = {.key = otlp_string(dictionary, key),
                                             .text = otlp_string(dictionary, text)};
    return add(dictionary, &dictionary->attributes, &attribute, sizeof attribute, 1);
}

int32_t otlp_number_attribute(struct otlp_dictionary *dictionary, const char *key, int64_t number)
{
    const struct otlp_attribute attribute = {
        .number = number, .key = otlp_string(dictionary, key), .text = -1};
    return add(dictionary, &dictionary->attributes, &attribute, sizeof attribute, 1);
}

void otlp_dictionary_init(struct otlp_dictionary *dictionary, const struct profile *profile)
{
    *dictionary = (struct otlp_dictionary){.profile = profile};
    (void)otlp_string(dictionary, "");
}

int32_t otlp_stack(struct otlp_dictionary *dictionary, const struct profile_sample *sample)
{
    uint32_t stack = 0;
    if (dictionary->fault == 0) {
        dictionary->fault =
            locations_add_stack(&dictionary->locations, dictionary->profile, sample, &stack);
    }
    return (int32_t)stack + 1;
}

void otlp_stack_fetch_ahead(const struct otlp_dictionary *dictionary, size_t at)
{
    chain_keys_fetch_ahead(&dictionary->locations.stack_keys, dictionary->profile, at);
}

size_t otlp_stack_count(const struct otlp_dictionary *dictionary)
{
    return dictionary->locations.stacks.item_count + 1;
}

int32_t otlp_lost_stack(struct otlp_dictionary *dictionary)
{
    uint32_t location = 0;
    if (dictionary->fault == 0) {
        dictionary->fault = locations_add_marker(&dictionary->locations, LOCATION_LOST, &location);
    }
    return add(dictionary, &dictionary->locations.stacks, &location, sizeof location, 1);
}

static int32_t text_index(struct otlp_dictionary *dictionary, uint32_t text)
{
    return text == INTERN_NONE ? 0
                               : otlp_string(dictionary, profile_text(dictionary->profile, text));
}

static int32_t function_index(struct otlp_dictionary *dictionary, uint32_t number)
{
    struct otlp_function function = {0};
    if (number == LOCATION_TRUNCATED || number == LOCATION_LOST) {
        function.name = otlp_string(dictionary, number == LOCATION_LOST ? "[lost]" : "[truncated]");
    } else {
        const struct profile_frame *frame = profile_frame(dictionary->profile, number);
        function.name = text_index(dictionary, frame->name);
        function.file = text_index(dictionary, frame->file);
    }
    return add(dictionary, &dictionary->functions, &function, sizeof function, 1);
}

/* The index of "kernel" or "native", or 0: it is a marker. */
static int32_t frame_type(struct otlp_dictionary *dictionary, const struct location *location,
                          uint32_t number)
{
    if (location->module == INTERN_NONE) {
        return 0;
    }
    return otlp_text_attribute(
        dictionary, FRAME_TYPE_KEY,
        profile_frame(dictionary->profile, number)->is_kernel != 0 ? "kernel" : "native");
}

static int32_t build_id_index(struct otlp_dictionary *dictionary, size_t module)
{
    const char *build_id =
        profile_text(dictionary->profile, dictionary->profile->modules[module].build_id);
    return build_id[0] == '\0' ? 0 : otlp_text_attribute(dictionary, BUILD_ID_KEY, build_id);
}

/* Of a module of the profile. */
static int32_t mapping_index(struct otlp_dictionary *dictionary, uint32_t module)
{
    return add(dictionary, &dictionary->modules, &module, sizeof module, 1);
}

void otlp_dictionary_seal(struct otlp_dictionary *dictionary)
{
    locations_forget_samples(&dictionary->locations);
    for (size_t i = 0; i < dictionary->locations.items.item_count; i++) {
        const struct location *location = locations_at(&dictionary->locations, (uint32_t)i);
        size_t count = 0;
        const uint32_t *frames = locations_frames(&dictionary->locations, location, &count);
        for (size_t frame = 0; frame < count; frame++) {
            (void)function_index(dictionary, frames[frame]);
        }
        if (location->module != INTERN_NONE) {
            (void)frame_type(dictionary, location, frames[0]);
            (void)mapping_index(dictionary, location->module);
            (void)text_index(dictionary, dictionary->profile->modules[location->module].name);
            (void)build_id_index(dictionary, location->module);
        }
    }
}

static void write_field(struct otlp_dictionary *dictionary, struct message_out *out, uint32_t field,
                        const ProtobufCMessage *message)
{
    int r = message_out_field(out, field, message);
    dictionary->fault = dictionary->fault == 0 ? r : dictionary->fault;
}

static void write_mappings(struct otlp_dictionary *dictionary, struct message_out *out)
{
    cleanup_(freep) uint64_t *limits =
        locations_find_limits(&dictionary->locations, dictionary->profile);
    Otlp__Mapping mapping = OTLP__MAPPING__INIT;
    if (limits == NULL) {
        dictionary->fault = -ENOMEM;
        return;
    }
    write_field(dictionary, out, FIELD_MAPPING, &mapping.base);
    for (size_t i = 0; i < dictionary->modules.item_count; i++) {
        size_t size_bytes = 0;
        uint32_t module =
            *(const uint32_t *)intern_bytes(&dictionary->modules, (uint32_t)i, &size_bytes);
        int32_t build_id = build_id_index(dictionary, module);
        mapping.memory_limit = limits[module];
        mapping.filename_strindex =
            text_index(dictionary, dictionary->profile->modules[module].name);
        mapping.n_attribute_indices = build_id > 0;
        mapping.attribute_indices = &build_id;
        write_field(dictionary, out, FIELD_MAPPING, &mapping.base);
    }
}

static void write_location(struct otlp_dictionary *dictionary, struct message_out *out,
                           const struct location *location)
{
    size_t count = 0;
    const uint32_t *frames = locations_frames(&dictionary->locations, location, &count);
    cleanup_(freep) Otlp__Line *lines = calloc(count, sizeof *lines);
    cleanup_(freep) Otlp__Line **line_list = calloc(count, sizeof(Otlp__Line *));
    int32_t type = frame_type(dictionary, location, frames[0]);
    Otlp__Location message = OTLP__LOCATION__INIT;
    if (lines == NULL || line_list == NULL) {
        dictionary->fault = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool is_marker = frames[i] == LOCATION_TRUNCATED || frames[i] == LOCATION_LOST;
        lines[i] = (Otlp__Line)OTLP__LINE__INIT;
        lines[i].function_index = function_index(dictionary, frames[i]);
        lines[i].line = is_marker ? 0 : profile_frame(dictionary->profile, frames[i])->line;
        line_list[i] = &lines[i];
    }
    message.mapping_index =
        location->module == INTERN_NONE ? 0 : mapping_index(dictionary, location->module);
    message.address = location->address;
    message.n_lines = count;
    message.lines = line_list;
    message.n_attribute_indices = type > 0;
    message.attribute_indices = &type;
    write_field(dictionary, out, FIELD_LOCATION, &message.base);
}

static void write_functions(struct otlp_dictionary *dictionary, struct message_out *out)
{
    Otlp__Function message = OTLP__FUNCTION__INIT;
    write_field(dictionary, out, FIELD_FUNCTION, &message.base);
    for (size_t i = 0; i < dictionary->functions.item_count; i++) {
        size_t size_bytes = 0;
        const struct otlp_function *function =
            intern_bytes(&dictionary->functions, (uint32_t)i, &size_bytes);
        message.name_strindex = function->name;
        message.system_name_strindex = function->name;
        message.filename_strindex = function->file;
        write_field(dictionary, out, FIELD_FUNCTION, &message.base);
    }
}

static void write_attributes(struct otlp_dictionary *dictionary, struct message_out *out)
{
    Otlp__KeyValueAndUnit message = OTLP__KEY_VALUE_AND_UNIT__INIT;
    write_field(dictionary, out, FIELD_ATTRIBUTE, &message.base);
    for (size_t i = 0; i < dictionary->attributes.item_count; i++) {
        size_t size_bytes = 0;
        const struct otlp_attribute *attribute =
            intern_bytes(&dictionary->attributes, (uint32_t)i, &size_bytes);
        Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;
        cleanup_(freep) char *text =
            attribute->text < 0
                ? NULL
                : strdup(intern_text(&dictionary->strings, (uint32_t)attribute->text));
        if (text == NULL && attribute->text >= 0) {
            dictionary->fault = -ENOMEM;
            return;
        }
        value.value_case =
            text == NULL ? OTLP__ANY_VALUE__VALUE_INT_VALUE : OTLP__ANY_VALUE__VALUE_STRING_VALUE;
        if (text == NULL) {
            value.int_value = attribute->number;
        } else {
            value.string_value = text;
        }
        message.key_strindex = attribute->key;
        message.value = &value;
        write_field(dictionary, out, FIELD_ATTRIBUTE, &message.base);
    }
}

static void write_stacks(struct otlp_dictionary *dictionary, struct message_out *out)
{
    Otlp__Stack message = OTLP__STACK__INIT;
    write_field(dictionary, out, FIELD_STACK, &message.base);
    for (size_t i = 0; i < dictionary->locations.stacks.item_count; i++) {
        size_t count = 0;
        const uint32_t *stack = locations_stack(&dictionary->locations, (uint32_t)i, &count);
        cleanup_(freep) int32_t *indices = calloc(count, sizeof *indices);
        if (indices == NULL) {
            dictionary->fault = -ENOMEM;
            return;
        }
        for (size_t frame = 0; frame < count; frame++) {
            indices[frame] = (int32_t)stack[frame] + 1;
        }
        message.n_location_indices = count;
        message.location_indices = indices;
        write_field(dictionary, out, FIELD_STACK, &message.base);
    }
}

void otlp_dictionary_write(struct otlp_dictionary *dictionary, struct message_out *out)
{
    Otlp__Location no_location = OTLP__LOCATION__INIT;
    Otlp__Link no_link = OTLP__LINK__INIT;
    uint8_t zeros[16] = {0};
    no_link.trace_id = (ProtobufCBinaryData){16, zeros};
    no_link.span_id = (ProtobufCBinaryData){8, zeros};
    write_mappings(dictionary, out);
    write_field(dictionary, out, FIELD_LOCATION, &no_location.base);
    for (size_t i = 0; i < dictionary->locations.items.item_count && dictionary->fault == 0; i++) {
        write_location(dictionary, out, locations_at(&dictionary->locations, (uint32_t)i));
    }
    write_functions(dictionary, out);
    write_field(dictionary, out, FIELD_LINK, &no_link.base);
    for (size_t i = 0; i < dictionary->strings.item_count; i++) {
        size_t size_bytes = 0;
        const uint8_t *text = intern_bytes(&dictionary->strings, (uint32_t)i, &size_bytes);
        message_out_begin(out, FIELD_STRING, size_bytes);
        message_out_bytes(out, text, size_bytes);
    }
    write_attributes(dictionary, out);
    write_stacks(dictionary, out);
}
