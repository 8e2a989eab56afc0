/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the profile format of Callgrind. Names stand once, behind a number in brackets that means
 * them from then on; a name can so begin with a bracket itself. Costs are samples, or what they
 * stand for. A call's count is that of the samples in which it was met: how often functions were
 * called is not known.
 */
#include "writers.h"

#include "call_graph.h"
#include "cleanup.h"
#include "compare.h"
#include "escaped.h"
#include "export_books.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#define UNKNOWN "???"

/* The same names of the file have the same number. */
enum name_kind {
    NAME_OBJECT,
    NAME_FILE,
    NAME_FUNCTION
};
#define NAME_KIND_COUNT 3

struct callgrind {
    FILE *file; /* borrowed */
    struct call_graph graph;
    bool *is_told[NAME_KIND_COUNT]; /* owned; by the name's number */
    uint32_t *places;               /* owned; of the graph, by function */
    uint32_t *calls;                /* owned; of the graph, by calling function */
};

static void callgrind_done(struct callgrind *writer)
{
    call_graph_done(&writer->graph);
    for (size_t i = 0; i < NAME_KIND_COUNT; i++) {
        free(writer->is_told[i]);
    }
    free(writer->places);
    free(writer->calls);
}

/* Prints "KEY=(NUMBER) NAME", later without the name. `number` is the name's, from 0. */
static void print_name(struct callgrind *writer, const char *key, enum name_kind kind,
                       uint32_t number, const char *name)
{
    bool *is_told = &writer->is_told[kind][number];
    (void)fprintf(writer->file, "%s=(%" PRIu64 ")", key, (uint64_t)number + 1);
    if (!*is_told) {
        (void)fputc(' ', writer->file);
        escaped_print(writer->file, name);
        *is_told = true;
    }
    (void)fputc('\n', writer->file);
}

/* Number 0 is that of what is unknown. */
static void print_object(struct callgrind *writer, const char *key, uint32_t module)
{
    const struct profile *profile = writer->graph.profile;
    if (module == INTERN_NONE) {
        print_name(writer, key, NAME_OBJECT, 0, UNKNOWN);
    } else {
        print_name(writer, key, NAME_OBJECT, module + 1,
                   profile_text(profile, profile->modules[module].name));
    }
}

static void print_file(struct callgrind *writer, const char *key, uint32_t text)
{
    if (text == INTERN_NONE) {
        print_name(writer, key, NAME_FILE, 0, UNKNOWN);
    } else {
        print_name(writer, key, NAME_FILE, text + 1, profile_text(writer->graph.profile, text));
    }
}

/* Which function the lines that follow belong to, or (`is_callee`) is called. */
static void print_function(struct callgrind *writer, uint32_t item, bool is_callee)
{
    const struct graph_function *function = call_graph_function(&writer->graph, item);
    const char *name = function->name == INTERN_NONE
                           ? "[truncated]"
                           : profile_text(writer->graph.profile, function->name);
    print_object(writer, is_callee ? "cob" : "ob", function->module);
    print_file(writer, is_callee ? "cfi" : "fl", function->file);
    print_name(writer, is_callee ? "cfn" : "fn", NAME_FUNCTION, item, name);
}

static int compare_place(const struct graph_place *a, const struct graph_place *b)
{
    int r = compare_u64(a->function, b->function);
    return r == 0 ? compare_u64(a->line, b->line) : r;
}

static int compare_places(const void *left, const void *right, void *userdata)
{
    const struct call_graph *graph = userdata;
    return compare_place(call_graph_place(graph, *(const uint32_t *)left),
                         call_graph_place(graph, *(const uint32_t *)right));
}

static int compare_calls(const void *left, const void *right, void *userdata)
{
    const struct call_graph *graph = userdata;
    const struct graph_call *a = call_graph_call(graph, *(const uint32_t *)left);
    const struct graph_call *b = call_graph_call(graph, *(const uint32_t *)right);
    int r = compare_place(&a->from, &b->from);
    return r == 0 ? compare_u64(a->callee, b->callee) : r;
}

/* The numbers 0 to `count` - 1 in that order. Returned: free(). */
static uint32_t *sorted(size_t count, struct call_graph *graph,
                        int (*compare)(const void *, const void *, void *))
{
    uint32_t *order = calloc(count + 1, sizeof *order);
    if (order != NULL) {
        for (size_t i = 0; i < count; i++) {
            order[i] = (uint32_t)i;
        }
        qsort_r(order, count, sizeof *order, compare, graph);
    }
    return order;
}

static int prepare(struct callgrind *writer, const struct profile *profile)
{
    struct call_graph *graph = &writer->graph;
    int r = call_graph_build(graph, profile);
    if (r < 0) {
        return r;
    }
    const size_t counts[NAME_KIND_COUNT] = {
        profile->module_count + 1, profile->texts.item_count + 1, graph->functions.item_count + 1};
    for (size_t i = 0; i < NAME_KIND_COUNT; i++) {
        writer->is_told[i] = calloc(counts[i], sizeof *writer->is_told[i]);
        r = writer->is_told[i] == NULL ? -ENOMEM : r;
    }
    writer->places = sorted(graph->places.item_count, graph, compare_places);
    writer->calls = sorted(graph->calls.item_count, graph, compare_calls);
    return writer->places == NULL || writer->calls == NULL ? -ENOMEM : r;
}

static void print_description(const char *line, void *userdata)
{
    (void)fprintf(userdata, "desc: %s\n", line);
}

static int uppercase(char character)
{
    return toupper((unsigned char)character);
}

/* An event's name has only letters and digits here: "Samples", "PageFaults", "OffCpuNs". */
static void print_event(FILE *file, const struct profile_event *event)
{
    bool begins_word = true;
    if (event->is_clock) {
        (void)fputs("Samples", file);
        return;
    }
    if (isalpha((unsigned char)event->name[0]) == 0) {
        (void)fputs("Event", file);
    }
    for (const char *at = event->name; *at != '\0'; at++) {
        bool is_part = isalnum((unsigned char)*at) != 0;
        if (is_part) {
            (void)fputc(begins_word ? uppercase(*at) : *at, file);
        }
        begins_word = !is_part;
    }
    (void)fputs(event->is_time ? "Ns" : "", file);
}

static void print_head(struct callgrind *writer)
{
    (void)fputs("# callgrind format\nversion: 1\ncreator: cpu-profilerd " CPU_PROFILERD_VERSION
                "\ncmd: a recording\npart: 1\n",
                writer->file);
    export_books_lines(writer->graph.profile, print_description, writer->file);
    (void)fputs("positions: line\nevents: ", writer->file);
    print_event(writer->file, &writer->graph.profile->event);
    (void)fputc('\n', writer->file);
}

/* Whether the next own cost or call is the function's: others have only been called. */
static bool has_costs(const struct callgrind *writer, uint32_t item, size_t place_at,
                      size_t call_at)
{
    const struct call_graph *graph = &writer->graph;
    return (place_at < graph->places.item_count &&
            call_graph_place(graph, writer->places[place_at])->function == item) ||
           (call_at < graph->calls.item_count &&
            call_graph_call(graph, writer->calls[call_at])->from.function == item);
}

/* Prints a function's own costs and its calls; both lists go on behind them. */
static void print_costs(struct callgrind *writer, uint32_t item, size_t *place_at, size_t *call_at)
{
    struct call_graph *graph = &writer->graph;
    if (!has_costs(writer, item, *place_at, *call_at)) {
        return;
    }
    (void)fputc('\n', writer->file);
    print_function(writer, item, false);
    for (; *place_at < graph->places.item_count; (*place_at)++) {
        const struct graph_place *place = call_graph_place(graph, writer->places[*place_at]);
        if (place->function != item) {
            break;
        }
        (void)fprintf(writer->file, "%" PRIu32 " %" PRIu64 "\n", place->line,
                      graph->self[writer->places[*place_at]]);
    }
    for (; *call_at < graph->calls.item_count; (*call_at)++) {
        const struct graph_call *call = call_graph_call(graph, writer->calls[*call_at]);
        uint64_t samples = graph->inclusive[writer->calls[*call_at]];
        if (call->from.function != item) {
            break;
        }
        print_function(writer, call->callee, true);
        (void)fprintf(writer->file, "calls=%" PRIu64 " 0\n%" PRIu32 " %" PRIu64 "\n", samples,
                      call->from.line, samples);
    }
}

static uint64_t print_lost(struct callgrind *writer)
{
    uint64_t lost = export_books_lost(writer->graph.profile);
    if (lost > 0) {
        (void)fputc('\n', writer->file);
        print_object(writer, "ob", INTERN_NONE);
        print_file(writer, "fl", INTERN_NONE);
        print_name(writer, "fn", NAME_FUNCTION, (uint32_t)writer->graph.functions.item_count,
                   "[lost]");
        (void)fprintf(writer->file, "0 %" PRIu64 "\n", lost);
    }
    return lost;
}

int callgrind_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(callgrind_done) struct callgrind writer = {.file = file};
    size_t place_at = 0;
    size_t call_at = 0;
    uint64_t total = profile_total(profile);
    int r = prepare(&writer, profile);
    if (r < 0) {
        return r;
    }
    print_head(&writer);
    for (size_t i = 0; i < writer.graph.functions.item_count; i++) {
        print_costs(&writer, (uint32_t)i, &place_at, &call_at);
    }
    if (options->has_lost_frame) {
        total += print_lost(&writer);
    }
    (void)fprintf(file, "\ntotals: %" PRIu64 "\n", total);
    return 0;
}
