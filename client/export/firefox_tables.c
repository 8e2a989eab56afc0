/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes and prints the shared tables. A frame is a function at an address of its module, a row of
 * the stack table a frame below another row: stacks that begin alike share their rows. A module is
 * a library and the resource of its functions, under the same number.
 */
#include "firefox_tables.h"

#include "grow.h"
#include "number_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* INTERN_NONE where a member is not known. */
struct firefox_function {
    uint32_t name; /* a string */
    uint32_t module;
    uint32_t source; /* of `sources` */
};

struct firefox_frame {
    int64_t address; /* the module's own; -1: none that the format can hold */
    uint32_t function;
    uint32_t inline_depth;
    uint32_t category;
    uint32_t line;
};

void firefox_tables_done(struct firefox_tables *tables)
{
    locations_done(&tables->locations);
    intern_done(&tables->functions);
    intern_done(&tables->frames);
    call_nodes_done(&tables->nodes);
    chain_keys_done(&tables->stacks);
    intern_done(&tables->sources);
    free(tables->node_of);
    free(tables->frame_of);
}

/* The strings behind the profile's texts. */
static uint32_t truncated_string(const struct firefox_tables *tables)
{
    return (uint32_t)tables->profile->texts.item_count;
}

static uint32_t lost_string(const struct firefox_tables *tables)
{
    return truncated_string(tables) + 1;
}

static int add_function(struct firefox_tables *tables, const struct profile_frame *frame,
                        uint32_t *ret_function)
{
    struct firefox_function function = {frame->name, frame->module, INTERN_NONE};
    int r = 0;
    if (frame->file != INTERN_NONE) {
        r = intern_add(&tables->sources, &frame->file, sizeof frame->file, &function.source);
    }
    return r < 0 ? r : intern_add(&tables->functions, &function, sizeof function, ret_function);
}

static enum firefox_category category_of(const struct profile *profile,
                                         const struct profile_frame *frame)
{
    return frame->is_kernel != 0                          ? FIREFOX_KERNEL
           : frame->module == INTERN_NONE                 ? FIREFOX_OTHER
           : profile->modules[frame->module].is_anonymous ? FIREFOX_MADE
                                                          : FIREFOX_USER;
}

static int add_marker(struct firefox_tables *tables, uint32_t number, uint32_t *ret_frame)
{
    const struct firefox_function function = {number == LOCATION_LOST ? lost_string(tables)
                                                                      : truncated_string(tables),
                                              INTERN_NONE, INTERN_NONE};
    struct firefox_frame frame = {.address = -1, .category = FIREFOX_OTHER};
    int r = intern_add(&tables->functions, &function, sizeof function, &frame.function);
    return r < 0 ? r : intern_add(&tables->frames, &frame, sizeof frame, ret_frame);
}

/* Adds a frame of a location. `depth` says how often it was inlined. */
static int add_frame(struct firefox_tables *tables, const struct location *location,
                     uint32_t number, size_t depth, uint32_t *ret_frame)
{
    const struct profile *profile = tables->profile;
    if (number == LOCATION_TRUNCATED || number == LOCATION_LOST) {
        return add_marker(tables, number, ret_frame);
    }
    const struct profile_frame *told = profile_frame(profile, number);
    bool has_address = location->module != INTERN_NONE && location->address <= INT32_MAX &&
                       !profile->modules[location->module].is_anonymous;
    struct firefox_frame frame = {
        .address = has_address ? (int64_t)location->address : -1,
        .inline_depth = (uint32_t)depth,
        .category = category_of(profile, told),
        .line = told->line,
    };
    int r = add_function(tables, told, &frame.function);
    return r < 0 ? r : intern_add(&tables->frames, &frame, sizeof frame, ret_frame);
}

/* The row of a location that is one frame: a location is in many stacks, so it is kept. */
static int only_frame(struct firefox_tables *tables, uint32_t number,
                      const struct location *location, uint32_t frame, uint32_t *ret_frame)
{
    if (grow(tables->frame_of, tables->frame_of_capacity, (size_t)number + 1) < 0) {
        return -ENOMEM;
    }
    for (; tables->frame_of_count <= number; tables->frame_of_count++) {
        tables->frame_of[tables->frame_of_count] = INTERN_NONE;
    }
    int r = 0;
    if (tables->frame_of[number] == INTERN_NONE) {
        r = add_frame(tables, location, frame, 0, &tables->frame_of[number]);
    }
    *ret_frame = tables->frame_of[number];
    return r;
}

/* Adds the rows of a location below `*node`, which is the last of them then. */
static int add_location(struct firefox_tables *tables, uint32_t number, uint32_t *node)
{
    const struct location *location = locations_at(&tables->locations, number);
    size_t count = 0;
    const uint32_t *frames = locations_frames(&tables->locations, location, &count);
    int r = 0;
    for (size_t i = count; i > 0 && r == 0; i--) {
        struct call_node row = {.parent = *node};
        r = count == 1 ? only_frame(tables, number, location, frames[0], &row.frame)
                       : add_frame(tables, location, frames[i - 1], count - i, &row.frame);
        r = r == 0 ? call_nodes_add(&tables->nodes, &row, node) : r;
    }
    return r;
}

static int add_stack(struct firefox_tables *tables, const struct profile_sample *sample,
                     uint32_t *ret_node)
{
    size_t count = 0;
    const uint32_t *locations = locations_list(&tables->locations, tables->profile, sample, &count);
    uint32_t node = CALL_NODE_NONE;
    int r = locations == NULL ? -ENOMEM : 0;
    for (size_t i = count; i > 0 && r == 0; i--) {
        r = add_location(tables, locations[i - 1], &node);
    }
    *ret_node = node;
    return r;
}

int firefox_tables_add(struct firefox_tables *tables, const struct profile_sample *sample,
                       uint32_t *ret_node)
{
    const struct stack_key key = stack_key(tables->profile, sample);
    size_t known_count = tables->stacks.count;
    uint32_t item = 0;
    if (chain_keys_add(&tables->stacks, tables->profile, sample, &key, sizeof key, &item) < 0 ||
        grow(tables->node_of, tables->node_of_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    int r = item == known_count ? add_stack(tables, sample, &tables->node_of[item]) : 0;
    *ret_node = tables->node_of[item];
    return r;
}

int firefox_tables_add_lost(struct firefox_tables *tables, uint32_t *ret_node)
{
    struct call_node row = {.parent = CALL_NODE_NONE};
    int r = add_marker(tables, LOCATION_LOST, &row.frame);
    return r < 0 ? r : call_nodes_add(&tables->nodes, &row, ret_node);
}

/* Prints the value of a row that is at `value`. */
typedef void cell_fn(struct json_out *out, const void *value);

/* A column of a table, whose rows are structs. */
struct column {
    const char *name;
    cell_fn *cell;        /* NULL: all rows have the constant */
    size_t at;            /* of the value, in the row */
    const char *constant; /* NULL: null */
};

static void print_column(struct json_out *out, const struct intern *table,
                         const struct column *column)
{
    json_out_begin(out, column->name, '[');
    for (size_t i = 0; i < table->item_count; i++) {
        size_t row_bytes = 0;
        const uint8_t *row = intern_bytes(table, (uint32_t)i, &row_bytes);
        if (column->cell == NULL) {
            json_out_raw(out, NULL, column->constant);
        } else {
            column->cell(out, row + column->at);
        }
    }
    json_out_end(out, ']');
}

/* The last of the columns has no name. */
static void print_table(struct json_out *out, const struct intern *table, const char *name,
                        const struct column *columns)
{
    json_out_begin(out, name, '{');
    for (; columns->name != NULL; columns++) {
        print_column(out, table, columns);
    }
    json_out_u64(out, "length", table->item_count);
    json_out_end(out, '}');
}

static void number_cell(struct json_out *out, const void *value)
{
    json_out_u64(out, NULL, *(const uint32_t *)value);
}

static void index_cell(struct json_out *out, const void *value)
{
    uint32_t index = *(const uint32_t *)value;
    json_out_i64(out, NULL, index == INTERN_NONE ? -1 : (int64_t)index);
}

static void source_cell(struct json_out *out, const void *value)
{
    if (*(const uint32_t *)value == INTERN_NONE) {
        json_out_raw(out, NULL, NULL);
    } else {
        number_cell(out, value);
    }
}

static void line_cell(struct json_out *out, const void *value)
{
    if (*(const uint32_t *)value == 0) {
        json_out_raw(out, NULL, NULL);
    } else {
        number_cell(out, value);
    }
}

static void address_cell(struct json_out *out, const void *value)
{
    json_out_i64(out, NULL, *(const int64_t *)value);
}

static const struct column function_columns[] = {
    {"name", number_cell, offsetof(struct firefox_function, name), NULL},
    {"isJS", NULL, 0, "false"},
    {"relevantForJS", NULL, 0, "false"},
    {"resource", index_cell, offsetof(struct firefox_function, module), NULL},
    {"source", source_cell, offsetof(struct firefox_function, source), NULL},
    {"lineNumber", NULL, 0, NULL},
    {"columnNumber", NULL, 0, NULL},
    {"originalLocation", NULL, 0, NULL},
    {0},
};

static const struct column frame_columns[] = {
    {"address", address_cell, offsetof(struct firefox_frame, address), NULL},
    {"inlineDepth", number_cell, offsetof(struct firefox_frame, inline_depth), NULL},
    {"category", number_cell, offsetof(struct firefox_frame, category), NULL},
    {"subcategory", NULL, 0, "0"},
    {"func", number_cell, offsetof(struct firefox_frame, function), NULL},
    {"nativeSymbol", NULL, 0, NULL},
    {"innerWindowID", NULL, 0, NULL},
    {"line", line_cell, offsetof(struct firefox_frame, line), NULL},
    {"column", NULL, 0, NULL},
    {"originalLocation", NULL, 0, NULL},
    {0},
};

static const struct column source_columns[] = {
    {"id", NULL, 0, NULL},
    {"filename", number_cell, 0, NULL},
    {"startLine", NULL, 0, "1"},
    {"startColumn", NULL, 0, "1"},
    {"sourceMapURL", NULL, 0, NULL},
    {"content", NULL, 0, NULL},
    {0},
};

/* Those of tables without rows. */
static const struct column symbol_columns[] = {
    {.name = "libIndex"}, {.name = "address"}, {.name = "name"}, {.name = "functionSize"}, {0}};
static const struct column place_columns[] = {
    {.name = "source"}, {.name = "line"}, {.name = "column"}, {0}};

/* A parent stands before its children; how far before is what the table has, 0 for a root. */
static void print_stacks(const struct firefox_tables *tables, struct json_out *out)
{
    struct number_list numbers = {0};
    const struct call_node *rows = tables->nodes.rows;
    size_t count = tables->nodes.count;
    json_out_begin(out, "stackTable", '{');
    number_list_begin(&numbers, out, "frame");
    for (size_t i = 0; i < count; i++) {
        number_list_add(&numbers, rows[i].frame);
    }
    number_list_end(&numbers, out);
    number_list_begin(&numbers, out, "prefixOffset");
    for (size_t i = 0; i < count; i++) {
        uint32_t parent = rows[i].parent;
        number_list_add(&numbers, parent == CALL_NODE_NONE ? 0 : i - parent);
    }
    number_list_end(&numbers, out);
    json_out_u64(out, "length", count);
    json_out_end(out, '}');
}

static void print_resources(const struct profile *profile, struct json_out *out)
{
    size_t count = profile->module_count;
    json_out_begin(out, "resourceTable", '{');
    json_out_begin(out, "lib", '[');
    for (size_t i = 0; i < count; i++) {
        json_out_u64(out, NULL, i);
    }
    json_out_end(out, ']');
    json_out_begin(out, "name", '[');
    for (size_t i = 0; i < count; i++) {
        json_out_u64(out, NULL, profile->modules[i].basename);
    }
    json_out_end(out, ']');
    json_out_begin(out, "host", '[');
    for (size_t i = 0; i < count; i++) {
        json_out_raw(out, NULL, NULL);
    }
    json_out_end(out, ']');
    json_out_begin(out, "type", '[');
    for (size_t i = 0; i < count; i++) {
        json_out_u64(out, NULL, 1); /* a library */
    }
    json_out_end(out, ']');
    json_out_u64(out, "length", count);
    json_out_end(out, '}');
}

static void print_strings(const struct firefox_tables *tables, struct json_out *out)
{
    const struct profile *profile = tables->profile;
    json_out_begin(out, "stringArray", '[');
    for (size_t i = 0; i < profile->texts.item_count; i++) {
        json_out_string(out, NULL, profile_text(profile, (uint32_t)i));
    }
    json_out_string(out, NULL, "[truncated]");
    json_out_string(out, NULL, "[lost]");
    json_out_end(out, ']');
}

/* The first 16 bytes of a build-id as a debug id: its first three groups are little-endian numbers
 * there. `into` has room for 34 characters. */
static void print_debug_id(const char *build_id, char *into)
{
    static const uint8_t order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    size_t bytes = strlen(build_id) / 2;
    for (size_t i = 0; i < sizeof order; i++) {
        const char *digits = order[i] < bytes ? build_id + 2 * (size_t)order[i] : "00";
        for (size_t digit = 0; digit < 2; digit++) {
            char c = digits[digit];
            into[2 * i + digit] = (char)(c >= 'a' && c <= 'f' ? c - 'a' + 'A' : c);
        }
    }
    into[2 * sizeof order] = '0'; /* the age, which ELF files have not */
    into[2 * sizeof order + 1] = '\0';
}

static void print_library(const struct profile *profile, const struct profile_module *module,
                          struct json_out *out)
{
    const char *build_id = profile_text(profile, module->build_id);
    char debug_id[34] = "";
    if (build_id[0] != '\0') {
        print_debug_id(build_id, debug_id);
    }
    json_out_begin(out, NULL, '{');
    json_out_string(out, "arch", "x86_64");
    json_out_string(out, "name", profile_text(profile, module->basename));
    json_out_string(out, "path", profile_text(profile, module->name));
    json_out_string(out, "debugName", profile_text(profile, module->basename));
    json_out_string(out, "debugPath", profile_text(profile, module->name));
    json_out_string(out, "breakpadId", debug_id);
    json_out_string(out, "codeId", build_id[0] == '\0' ? NULL : build_id);
    json_out_end(out, '}');
}

void firefox_tables_print(const struct firefox_tables *tables, struct json_out *out)
{
    const struct intern nothing = {0};
    const struct profile *profile = tables->profile;
    json_out_begin(out, "libs", '[');
    for (size_t i = 0; i < profile->module_count; i++) {
        print_library(profile, &profile->modules[i], out);
    }
    json_out_end(out, ']');
    json_out_begin(out, "shared", '{');
    print_stacks(tables, out);
    print_table(out, &tables->frames, "frameTable", frame_columns);
    print_table(out, &tables->functions, "funcTable", function_columns);
    print_resources(profile, out);
    print_table(out, &nothing, "nativeSymbols", symbol_columns);
    print_table(out, &tables->sources, "sources", source_columns);
    print_table(out, &nothing, "sourceLocationTable", place_columns);
    print_strings(tables, out);
    json_out_end(out, '}');
}
