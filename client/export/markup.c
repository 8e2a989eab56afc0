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

#include "byte_out.h"
#include "cleanup.h"
#include "escaped.h"
#include "export_books.h"
#include "grow.h"
#include "process_layout.h"
#include "sample_order.h"
#include "stack_runs.h"
#include "text_forms.h"

#include <inttypes.h>
#include <string.h>

#define NUMBER_WIDTH   4
#define ADDRESS_DIGITS ((size_t)16)

enum line_kind {
    LINE_PC,     /* an element; of the interrupted instruction */
    LINE_RETURN, /* an element; of a return address */
    LINE_TEXT,   /* with an address */
    LINE_MARKER, /* text without one */
};

/* A line of a stack. */
struct line {
    uint64_t address;
    uint32_t frame;  /* of the profile; of text */
    uint16_t kind;   /* enum line_kind */
    uint16_t number; /* of the address in the stack, which a record of 4095 words bounds */
};

struct markup {
    FILE *file;                    /* borrowed */
    const struct profile *profile; /* borrowed */
    struct byte_out out;           /* to `file`; of samples */
    struct text_forms texts;
    struct process_layout layout; /* of the process at hand */
    struct stack_runs stacks;     /* of it: arrays of struct line */
    struct line *lines;           /* owned; of the stack at hand */
    size_t line_capacity;
    size_t line_count;
};

static void markup_done(struct markup *writer)
{
    text_forms_done(&writer->texts);
    process_layout_done(&writer->layout);
    stack_runs_done(&writer->stacks);
    free(writer->lines);
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

/* A text form. */
static void print_text(FILE *file, const struct profile *profile, uint32_t text)
{
    print_name(file, profile_text(profile, text), "{");
}

/* Where a frame is an element: its module has a build-id, and is not the kernel. */
static bool is_element(const struct profile *profile, const struct stack_place *place,
                       uint32_t module)
{
    return place->has_address && !place->is_kernel && module != INTERN_NONE &&
           profile_text(profile, profile->modules[module].build_id)[0] != '\0';
}

/* Appends a line to the stack at hand. */
static int add_line(struct markup *writer, const struct line *line)
{
    int r = grow(writer->lines, writer->line_capacity, writer->line_count + 1);
    if (r == 0) {
        writer->lines[writer->line_count++] = *line;
    }
    return r;
}

/* Appends the function of a frame that is no element, and before it what was inlined there. */
static int add_frames(struct markup *writer, size_t number, const struct stack_place *place)
{
    int r = 0;
    for (size_t i = 0; i < place->frame_count && r == 0; i++) {
        const struct line line = {
            .address = place->address,
            .frame = place->frames[i],
            .kind = place->has_address ? LINE_TEXT : LINE_MARKER,
            .number = (uint16_t)number,
        };
        r = add_line(writer, &line);
    }
    return r;
}

/* Appends the lines of a place, and adds its page to the layout. */
static int take_place(struct markup *writer, const struct profile_sample *sample,
                      const struct stack_place *place, size_t number)
{
    struct module_address found = {.module = INTERN_NONE};
    struct line line = {.kind = place->is_caller ? LINE_RETURN : LINE_PC,
                        .number = (uint16_t)number};
    uint32_t module = 0;
    (void)place_find_module(writer->profile, sample, place, &found);
    if (!is_element(writer->profile, place, found.module)) {
        return add_frames(writer, number, place);
    }
    int r =
        process_layout_add(&writer->layout, writer->profile, sample, place, &line.address, &module);
    line.address += place->is_caller;
    return r < 0 ? r : add_line(writer, &line);
}

/* A stack_run_fn. */
static int make_lines(const struct profile_sample *sample, void *userdata, struct made_run *ret)
{
    struct markup *writer = userdata;
    struct place_walk walk;
    struct stack_place place;
    int r = 0;
    writer->line_count = 0;
    place_walk_begin(&walk, writer->profile, sample);
    for (size_t number = 0; r == 0 && place_walk_next(&walk, &place); number++) {
        r = take_place(writer, sample, &place, number);
    }
    *ret = (struct made_run){writer->lines, writer->line_count * sizeof *writer->lines};
    return r;
}

/* Finds the lines of a sample's stack, of which there is at least one. */
static int find_lines(struct markup *writer, const struct profile_sample *sample,
                      const struct line **ret_lines, size_t *ret_count)
{
    struct made_run made = {0};
    int r = stack_runs_get(&writer->stacks, writer->profile, sample, make_lines, writer, &made);
    *ret_lines = made.bytes;
    *ret_count = made.size_bytes / sizeof(struct line);
    return r;
}

/* The number of a task that has none, as one that has exited, is 0. */
static uint64_t shown_number(uint64_t number)
{
    return number > INT32_MAX ? 0 : number;
}

static void put_element(struct byte_out *out, const struct line *line)
{
    byte_out_text(out, "{{{bt:");
    byte_out_decimal(out, line->number);
    byte_out_text(out, ":0x");
    byte_out_hex(out, line->address);
    byte_out_text(out, line->kind == LINE_RETURN ? ":ra}}}\n" : ":pc}}}\n");
}

/* Puts a number as wide as the filter does. */
static void put_number(struct byte_out *out, uint64_t number)
{
    char digits[DIGITS_MAX];
    size_t count = digits_decimal(number, digits);
    byte_out_text(out, "    #");
    byte_out_put(out, digits, count);
    for (; count < NUMBER_WIDTH; count++) {
        byte_out_text(out, " ");
    }
    byte_out_text(out, " ");
}

static void put_address(struct byte_out *out, uint64_t address)
{
    char digits[DIGITS_MAX];
    size_t count = digits_hex(address, digits);
    byte_out_text(out, "0x");
    byte_out_put(out, "0000000000000000", ADDRESS_DIGITS - count);
    byte_out_put(out, digits, count);
    byte_out_text(out, " ");
}

static int put_text(struct markup *writer, uint32_t text)
{
    const struct text_form *form = text_forms_get(&writer->texts, text);
    if (form == NULL) {
        return -ENOMEM;
    }
    byte_out_put(&writer->out, form->text, form->text_bytes);
    return 0;
}

static int put_frame(struct markup *writer, const struct line *line)
{
    struct byte_out *out = &writer->out;
    const struct profile_frame *frame = profile_frame(writer->profile, line->frame);
    put_number(out, line->number);
    if (line->kind == LINE_TEXT) {
        put_address(out, line->address);
    }
    int r = put_text(writer, frame->name);
    if (r == 0 && frame->module != INTERN_NONE) {
        byte_out_text(out, " (");
        r = put_text(writer, writer->profile->modules[frame->module].name);
        byte_out_text(out, ")");
    }
    byte_out_text(out, "\n");
    return r;
}

static int put_sample(struct markup *writer, const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    struct byte_out *out = &writer->out;
    const struct line *lines = NULL;
    size_t count = 0;
    int r = find_lines(writer, sample, &lines, &count);
    byte_out_decimal(out, shown_number(task->pid));
    byte_out_text(out, "\n");
    byte_out_decimal(out, shown_number(task->tid));
    byte_out_text(out, "\n");
    for (size_t i = 0; i < count && r == 0; i++) {
        if (lines[i].kind == LINE_PC || lines[i].kind == LINE_RETURN) {
            put_element(out, &lines[i]);
        } else {
            r = put_frame(writer, &lines[i]);
        }
    }
    if (r == 0 && profile_rooted(sample) == PROFILE_STACK_TRUNCATED) {
        put_number(out, count == 0 ? 0 : lines[count - 1].number + 1);
        byte_out_text(out, "[truncated]\n");
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

/* Prints the context of one process: so many samples. */
static int print_process(struct markup *writer, const uint32_t *samples, size_t count)
{
    const struct profile_task *task =
        profile_task(writer->profile, writer->profile->samples[samples[0]].task);
    int r = 0;
    process_layout_done(&writer->layout);
    stack_runs_done(&writer->stacks);
    (void)fprintf(writer->file, "{{{reset}}}\n# process %" PRIu64 " ", shown_number(task->pid));
    print_text(writer->file, writer->profile, task->process_name);
    (void)fputc('\n', writer->file);
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct line *lines = NULL;
        size_t line_count = 0;
        stack_runs_fetch_ahead(&writer->stacks, writer->profile, samples, count, i);
        r = find_lines(writer, &writer->profile->samples[samples[i]], &lines, &line_count);
    }
    if (r == 0) {
        r = print_layout(writer);
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        stack_runs_fetch_ahead(&writer->stacks, writer->profile, samples, count, i);
        r = put_sample(writer, &writer->profile->samples[samples[i]]);
    }
    byte_out_flush(&writer->out);
    return r;
}

static void print_comment(const char *line, void *userdata)
{
    (void)fprintf(userdata, "# %s\n", line);
}

int markup_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(markup_done) struct markup writer = {
        .file = file, .profile = profile, .out = {.file = file}};
    cleanup_(freep) uint32_t *order = sample_order(profile, SAMPLE_ORDER_PROCESS);
    int r = order == NULL ? -ENOMEM : text_forms_init(&writer.texts, profile, print_text);
    (void)options;
    export_books_lines(profile, print_comment, file);
    for (size_t i = 0, end = 0; i < profile->sample_count && r == 0; i = end) {
        end = sample_order_end(profile, order, SAMPLE_ORDER_PROCESS, i);
        r = print_process(&writer, order + i, end - i);
    }
    return r;
}
