/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes and prints the shared tables. A frame is a function at an address of its module, a row of
 * the stack table a frame below another row: stacks that begin alike share their rows. A module is
 * a library and the resource of its functions, under the same number.
 */
#include "firefox_tables.h"

#include "grow.h"

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

struct firefox_node {
    uint32_t parent; /* INTERN_NONE: it is a root */
    uint32_t frame;
};

void firefox_tables_done(struct firefox_tables *tables)
{
    locations_done(&tables->locations);
    intern_done(&tables->functions);
    intern_done(&tables->frames);
    intern_done(&tables->nodes);
    intern_done(&tables->sources);
    free(tables->node_of);
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

/* Adds the rows of a location below `*node`, which is the last of them then. */
static int add_location(struct firefox_tables *tables, uint32_t number, uint32_t *node)
{
    const struct location *location = locations_at(&tables->locations, number);
    size_t count = 0;
    const uint32_t *frames = locations_frames(&tables->locations, location, &count);
    int r = 0;
    for (size_t i = count; i > 0 && r == 0; i--) {
        struct firefox_node row = {.parent = *node};
        r = add_frame(tables, location, frames[i - 1], count - i, &row.frame);
        r = r == 0 ? intern_add(&tables->nodes, &row, sizeof row, node) : r;
    }
    return r;
}

static int add_stack(struct firefox_tables *tables, uint32_t stack, uint32_t *ret_node)
{
    size_t count = 0;
    const uint32_t *locations = locations_stack(&tables->locations, stack, &count);
    uint32_t node = INTERN_NONE;
    int r = 0;
    for (size_t i = count; i > 0 && r == 0; i--) {
        r = add_location(tables, locations[i - 1], &node);
    }
    *ret_node = node;
    return r;
}

int firefox_tables_add(struct firefox_tables *tables, const struct profile_sample *sample,
                       uint32_t *ret_node)
{
    uint32_t stack = 0;
    int r = locations_add_stack(&tables->locations, tables->profile, sample, &stack);
    if (r < 0 || grow(tables->node_of, tables->node_of_capacity, (size_t)stack + 1) < 0) {
        return -ENOMEM;
    }
    for (; tables->node_of_count <= stack; tables->node_of_count++) {
        tables->node_of[tables->node_of_count] = INTERN_NONE;
    }
    if (tables->node_of[stack] == INTERN_NONE) {
        r = add_stack(tables, stack, &tables->node_of[stack]);
    }
    *ret_node = tables->node_of[stack];
    return r;
}

int firefox_tables_add_lost(struct firefox_tables *tables, uint32_t *ret_node)
{
    struct firefox_node row = {.parent = INTERN_NONE};
    int r = add_marker(tables, LOCATION_LOST, &row.frame);
    return r < 0 ? r : intern_add(&tables->nodes, &row, sizeof row, ret_node);
}

/* A column: its value for a row. */
typedef void cell_fn(struct json_out *out, const void *row);

static void print_column(struct json_out *out, const struct intern *table, const char *name,
                         cell_fn *cell)
{
    json_out_begin(out, name, '[');
    for (size_t i = 0; i < table->item_count; i++) {
        size_t row_bytes = 0;
        cell(out, intern_bytes(table, (uint32_t)i, &row_bytes));
    }
    json_out_end(out, ']');
}

static void null_cell(struct json_out *out, const void *row)
{
    (void)row;
    json_out_raw(out, NULL, NULL);
}

static void false_cell(struct json_out *out, const void *row)
{
    (void)row;
    json_out_raw(out, NULL, "false");
}

static void zero_cell(struct json_out *out, const void *row)
{
    (void)row;
    json_out_u64(out, NULL, 0);
}

static void one_cell(struct json_out *out, const void *row)
{
    (void)row;
    json_out_u64(out, NULL, 1);
}

/* A number, -1 or null where there is none. */
static void print_index(struct json_out *out, uint32_t index, bool is_null)
{
    if (index != INTERN_NONE) {
        json_out_u64(out, NULL, index);
    } else if (is_null) {
        json_out_raw(out, NULL, NULL);
    } else {
        json_out_i64(out, NULL, -1);
    }
}

static void function_name(struct json_out *out, const void *row)
{
    json_out_u64(out, NULL, ((const struct firefox_function *)row)->name);
}

static void function_resource(struct json_out *out, const void *row)
{
    print_index(out, ((const struct firefox_function *)row)->module, false);
}

static void function_source(struct json_out *out, const void *row)
{
    print_index(out, ((const struct firefox_function *)row)->source, true);
}

static void frame_address(struct json_out *out, const void *row)
{
    json_out_i64(out, NULL, ((const struct firefox_frame *)row)->address);
}

static void frame_inline_depth(struct json_out *out, const void *row)
{
    json_out_u64(out, NULL, ((const struct firefox_frame *)row)->inline_depth);
}

static void frame_category(struct json_out *out, const void *row)
{
    json_out_u64(out, NULL, ((const struct firefox_frame *)row)->category);
}

static void frame_function(struct json_out *out, const void *row)
{
    json_out_u64(out, NULL, ((const struct firefox_frame *)row)->function);
}

static void frame_line(struct json_out *out, const void *row)
{
    uint32_t line = ((const struct firefox_frame *)row)->line;
    print_index(out, line == 0 ? INTERN_NONE : line, true);
}

static void source_name(struct json_out *out, const void *row)
{
    json_out_u64(out, NULL, *(const uint32_t *)row);
}

static void print_functions(const struct firefox_tables *tables, struct json_out *out)
{
    const struct intern *table = &tables->functions;
    json_out_begin(out, "funcTable", '{');
    print_column(out, table, "name", function_name);
    print_column(out, table, "isJS", false_cell);
    print_column(out, table, "relevantForJS", false_cell);
    print_column(out, table, "resource", function_resource);
    print_column(out, table, "source", function_source);
    print_column(out, table, "lineNumber", null_cell);
    print_column(out, table, "columnNumber", null_cell);
    print_column(out, table, "originalLocation", null_cell);
    json_out_u64(out, "length", table->item_count);
    json_out_end(out, '}');
}

static void print_frames(const struct firefox_tables *tables, struct json_out *out)
{
    const struct intern *table = &tables->frames;
    json_out_begin(out, "frameTable", '{');
    print_column(out, table, "address", frame_address);
    print_column(out, table, "inlineDepth", frame_inline_depth);
    print_column(out, table, "category", frame_category);
    print_column(out, table, "subcategory", zero_cell);
    print_column(out, table, "func", frame_function);
    print_column(out, table, "nativeSymbol", null_cell);
    print_column(out, table, "innerWindowID", null_cell);
    print_column(out, table, "line", frame_line);
    print_column(out, table, "column", null_cell);
    print_column(out, table, "originalLocation", null_cell);
    json_out_u64(out, "length", table->item_count);
    json_out_end(out, '}');
}

static const struct firefox_node *node_at(const struct firefox_tables *tables, size_t row)
{
    size_t row_bytes = 0;
    return intern_bytes(&tables->nodes, (uint32_t)row, &row_bytes);
}

/* A parent stands before its children; how far before is what the table has, 0 for a root. */
static void print_stacks(const struct firefox_tables *tables, struct json_out *out)
{
    size_t count = tables->nodes.item_count;
    json_out_begin(out, "stackTable", '{');
    json_out_begin(out, "frame", '[');
    for (size_t i = 0; i < count; i++) {
        json_out_u64(out, NULL, node_at(tables, i)->frame);
    }
    json_out_end(out, ']');
    json_out_begin(out, "prefixOffset", '[');
    for (size_t i = 0; i < count; i++) {
        uint32_t parent = node_at(tables, i)->parent;
        json_out_u64(out, NULL, parent == INTERN_NONE ? 0 : i - parent);
    }
    json_out_end(out, ']');
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

static void print_empty_table(struct json_out *out, const char *name, const char *const *columns)
{
    json_out_begin(out, name, '{');
    for (; *columns != NULL; columns++) {
        json_out_begin(out, *columns, '[');
        json_out_end(out, ']');
    }
    json_out_u64(out, "length", 0);
    json_out_end(out, '}');
}

static void print_sources(const struct firefox_tables *tables, struct json_out *out)
{
    const struct intern *table = &tables->sources;
    json_out_begin(out, "sources", '{');
    print_column(out, table, "id", null_cell);
    print_column(out, table, "filename", source_name);
    print_column(out, table, "startLine", one_cell);
    print_column(out, table, "startColumn", one_cell);
    print_column(out, table, "sourceMapURL", null_cell);
    print_column(out, table, "content", null_cell);
    json_out_u64(out, "length", table->item_count);
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
    static const char *const symbol_columns[] = {"libIndex", "address", "name", "functionSize",
                                                 NULL};
    static const char *const place_columns[] = {"source", "line", "column", NULL};
    const struct profile *profile = tables->profile;
    json_out_begin(out, "libs", '[');
    for (size_t i = 0; i < profile->module_count; i++) {
        print_library(profile, &profile->modules[i], out);
    }
    json_out_end(out, ']');
    json_out_begin(out, "shared", '{');
    print_stacks(tables, out);
    print_frames(tables, out);
    print_functions(tables, out);
    print_resources(profile, out);
    print_empty_table(out, "nativeSymbols", symbol_columns);
    print_sources(tables, out);
    print_empty_table(out, "sourceLocationTable", place_columns);
    print_strings(tables, out);
    json_out_end(out, '}');
}
