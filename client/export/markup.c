/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints samples as symbolizer markup, a text in which addresses stand in elements that a filter
 * replaces by names. Each process, as it is called, is a context of its own: what begins it, its
 * modules and their pages, and then its samples, each as its pid, its tid and its frames.
 *
 * A frame is an element where the filter can find its module: by a build-id. Every other frame is a
 * line of text in the form that the filter's own have: the kernel's, code that was made while it
 * ran, and markers have only the name that the recording has.
 */
#include "writers.h"

#include "cleanup.h"
#include "escaped.h"
#include "export_books.h"
#include "process_layout.h"
#include "sample_order.h"

#include <inttypes.h>
#include <string.h>

struct markup {
    FILE *file;                    /* borrowed */
    const struct profile *profile; /* borrowed */
    struct process_layout layout;  /* of the process at hand */
};

static void markup_done(struct markup *writer)
{
    process_layout_done(&writer->layout);
}

/* Prints a name in which nothing can begin an element, nor, with a colon, end a field of one. */
static void print_name(FILE *file, const char *name, const char *special)
{
    while (name[0] != '\0') {
        size_t count = strcspn(name, special);
        escaped_print_bytes(file, name, count);
        name += count;
        if (name[0] != '\0') {
            (void)fprintf(file, "\\x%02x", (unsigned)name[0]);
            name++;
        }
    }
}

static void print_field(FILE *file, const char *name)
{
    print_name(file, name, "{}:");
}

static void print_text(FILE *file, const char *name)
{
    print_name(file, name, "{");
}

/* Where a frame is an element: its module has a build-id, and is not the kernel. */
static bool is_element(const struct profile *profile, const struct stack_place *place,
                       uint32_t module)
{
    return place->has_address && !place->is_kernel && module != INTERN_NONE &&
           profile_text(profile, profile->modules[module].build_id)[0] != '\0';
}

/* Prints the function of a frame that is no element, and before it what was inlined there. */
static void print_frames(const struct markup *writer, size_t number,
                         const struct stack_place *place)
{
    FILE *file = writer->file;
    for (size_t i = 0; i < place->frame_count; i++) {
        const struct profile_frame *frame = profile_frame(writer->profile, place->frames[i]);
        (void)fprintf(file, "    #%-4zu ", number);
        if (place->has_address) {
            (void)fprintf(file, "0x%016" PRIx64 " ", place->address);
        }
        print_text(file, profile_text(writer->profile, frame->name));
        if (frame->module != INTERN_NONE) {
            const struct profile_module *module = &writer->profile->modules[frame->module];
            (void)fputs(" (", file);
            print_text(file, profile_text(writer->profile, module->name));
            (void)fputc(')', file);
        }
        (void)fputc('\n', file);
    }
}

/* Adds a place's page to the layout, or with `number` prints the frame too. */
static int take_place(struct markup *writer, const struct profile_sample *sample,
                      const struct stack_place *place, const size_t *number)
{
    struct module_address found = {.module = INTERN_NONE};
    uint64_t address = 0;
    uint32_t module = 0;
    int r = 0;
    (void)place_find_module(writer->profile, sample, place, &found);
    if (is_element(writer->profile, place, found.module)) {
        r = process_layout_add(&writer->layout, writer->profile, sample, place, &address, &module);
        if (number != NULL) {
            (void)fprintf(writer->file, "{{{bt:%zu:0x%" PRIx64 ":%s}}}\n", *number,
                          address + place->is_caller, place->is_caller ? "ra" : "pc");
        }
    } else if (number != NULL) {
        print_frames(writer, *number, place);
    }
    return r;
}

static int take_sample(struct markup *writer, const struct profile_sample *sample, bool prints)
{
    struct place_walk walk;
    struct stack_place place;
    size_t number = 0;
    int r = 0;
    place_walk_begin(&walk, writer->profile, sample);
    while (r == 0 && place_walk_next(&walk, &place)) {
        r = take_place(writer, sample, &place, prints ? &number : NULL);
        number++;
    }
    if (prints && profile_rooted(sample) == PROFILE_STACK_TRUNCATED) {
        (void)fprintf(writer->file, "    #%-4zu [truncated]\n", number);
    }
    return r;
}

static int print_layout(struct markup *writer)
{
    size_t count = 0;
    cleanup_(freep) struct layout_range *ranges = process_layout_ranges(&writer->layout, &count);
    if (ranges == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < writer->layout.modules.item_count; i++) {
        const struct layout_module *laid = process_layout_module(&writer->layout, (uint32_t)i);
        const struct profile_module *module = &writer->profile->modules[laid->module];
        (void)fprintf(writer->file, "{{{module:%zu:", i);
        print_field(writer->file, profile_text(writer->profile, module->name));
        (void)fprintf(writer->file, ":elf:%s}}}\n",
                      profile_text(writer->profile, module->build_id));
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t bias = process_layout_module(&writer->layout, ranges[i].module)->bias;
        (void)fprintf(writer->file,
                      "{{{mmap:0x%" PRIx64 ":0x%" PRIx64 ":load:%" PRIu32 ":rx:0x%" PRIx64 "}}}\n",
                      ranges[i].start, ranges[i].size_bytes, ranges[i].module,
                      ranges[i].start - bias);
    }
    return 0;
}

/* The number of a task that has none, as one that has exited, is 0. */
static uint64_t shown_number(uint64_t number)
{
    return number > INT32_MAX ? 0 : number;
}

/* Prints the context of one process: so many samples. */
static int print_process(struct markup *writer, const uint32_t *samples, size_t count)
{
    const struct profile_sample *first = &writer->profile->samples[samples[0]];
    int r = 0;
    process_layout_done(&writer->layout);
    (void)fprintf(writer->file, "{{{reset}}}\n# process %" PRIu64 " ", shown_number(first->pid));
    print_text(writer->file, profile_text(writer->profile, first->process_name));
    (void)fputc('\n', writer->file);
    for (size_t i = 0; i < count && r == 0; i++) {
        r = take_sample(writer, &writer->profile->samples[samples[i]], false);
    }
    if (r == 0) {
        r = print_layout(writer);
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct profile_sample *sample = &writer->profile->samples[samples[i]];
        (void)fprintf(writer->file, "%" PRIu64 "\n%" PRIu64 "\n", shown_number(sample->pid),
                      shown_number(sample->tid));
        r = take_sample(writer, sample, true);
    }
    return r;
}

static void print_comment(const char *line, void *userdata)
{
    (void)fprintf(userdata, "# %s\n", line);
}

int markup_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(markup_done) struct markup writer = {.file = file, .profile = profile};
    cleanup_(freep) uint32_t *order = sample_order(profile, SAMPLE_ORDER_PROCESS);
    int r = order == NULL ? -ENOMEM : 0;
    (void)options;
    export_books_lines(profile, print_comment, file);
    for (size_t i = 0, end = 0; i < profile->sample_count && r == 0; i = end) {
        end = sample_order_end(profile, order, SAMPLE_ORDER_PROCESS, i);
        r = print_process(&writer, order + i, end - i);
    }
    return r;
}
