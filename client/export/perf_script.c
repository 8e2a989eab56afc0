/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints what `perf script -F comm,pid,tid,cpu,time,period,event,ip,sym,dso --ns` prints of
 * samples: a line of the event, a line a frame, an empty line. Readers part these lines at spaces
 * and brackets, so what they would take for the end of a name is escaped, once for each name. The
 * period of a sample is what it costs (export_cost.h).
 */
#include "writers.h"

#include "byte_out.h"
#include "cleanup.h"
#include "escaped.h"
#include "export_books.h"
#include "export_cost.h"
#include "places.h"
#include "sample_order.h"
#include "text_forms.h"

#include <inttypes.h>
#include <string.h>

#define KERNEL      "[kernel]"
#define PERF_KERNEL "[kernel.kallsyms]"
#define NO_MODULE   "[unknown]"
#define HEADER_EDGE "# ========\n" /* Firefox's Profiler knows the text by it */
#define COMM_WIDTH  16
#define NS_PER_S    UINT64_C(1000000000)
#define NS_DIGITS   9
#define CPU_DIGITS  3
#define HEX_WIDTH   ((size_t)16)
#define AHEAD       ((size_t)16) /* so many samples ahead their stacks are fetched */

struct perf_script {
    const struct profile *profile; /* borrowed */
    struct byte_out out;
    struct text_forms comms;
    struct text_forms frames; /* what stands behind an address */
    struct export_cost cost;
    char event[EXPORT_EVENT_BYTES];
    int fault; /* the first -errno */
};

static void perf_script_done(struct perf_script *writer)
{
    text_forms_done(&writer->comms);
    text_forms_done(&writer->frames);
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* A name ends at white space that is followed by a number, so such a space is escaped. A line that
 * begins with '#' is a comment. */
static void print_comm(FILE *file, const char *comm)
{
    size_t left = strlen(comm);
    size_t width = 0;
    for (size_t length = 0, at = 0; at < left; at += length, width++) {
        char next = comm[at + 1];
        if (comm[at] == ' ' && (at == 0 || next == '\0' || next == '[' || is_digit(next))) {
            (void)fputs("\\x20", file);
            length = 1;
        } else if (comm[at] == '#' && at == 0) {
            (void)fputs("\\x23", file);
            length = 1;
        } else {
            length = escaped_print_character(file, comm + at, left - at);
        }
    }
    if (left == 0) {
        (void)fputs("[unknown]", file);
        width = strlen("[unknown]");
    }
    for (; width < COMM_WIDTH; width++) {
        (void)fputc(' ', file);
    }
}

/* The module's name stands behind the last " (" of the line. */
static void print_module(FILE *file, const char *name)
{
    name = strcmp(name, KERNEL) == 0 ? PERF_KERNEL : name;
    for (const char *space = NULL; (space = strstr(name, " (")) != NULL; name = space + 1) {
        escaped_print_bytes(file, name, (size_t)(space - name));
        (void)fputs("\\x20", file);
    }
    escaped_print_bytes(file, name, strlen(name));
}

/* Text forms. */
static void print_comm_form(FILE *file, const struct profile *profile, uint32_t text)
{
    print_comm(file, profile_text(profile, text));
}

/* Whether a name ends as one does behind which an offset stands, "+0x1f". */
static bool ends_in_offset(const char *name)
{
    const char *plus = strrchr(name, '+');
    return plus != NULL && strncmp(plus, "+0x", 3) == 0 && plus[3] != '\0' &&
           plus[3 + strspn(plus + 3, "0123456789abcdef")] == '\0';
}

/* Readers take an offset off the end of a name. So one that is a part of the name, as in that of a
 * function without a symbol, has one more behind it. */
static void print_frame_form(FILE *file, const struct profile *profile, uint32_t number)
{
    const struct profile_frame *frame = profile_frame(profile, number);
    const char *name = profile_text(profile, frame->name);
    escaped_print(file, name);
    (void)fputs(ends_in_offset(name) ? "+0x0" : "", file);
    (void)fputs(" (", file);
    if (frame->is_inlined != 0) {
        (void)fputs("inlined", file);
    } else if (frame->module == INTERN_NONE) {
        (void)fputs(NO_MODULE, file);
    } else {
        print_module(file, profile_text(profile, profile->modules[frame->module].name));
    }
    (void)fputs(")\n", file);
}

/* The number of a task that has none, as one that has exited, is 0. */
static uint64_t task_number(uint64_t number)
{
    return number > INT32_MAX ? 0 : number;
}

static void put_form(struct perf_script *writer, struct text_forms *forms, uint32_t number)
{
    const struct text_form *form = text_forms_get(forms, number);
    if (form == NULL) {
        writer->fault = -ENOMEM;
        return;
    }
    byte_out_put(&writer->out, form->text, form->text_bytes);
}

static void put_padded(struct byte_out *out, uint64_t value, size_t least)
{
    char *into = byte_out_room(out, DIGITS_MAX);
    out->used_bytes += digits_decimal_padded(value, least, into);
}

static void put_event(struct perf_script *writer, const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    struct byte_out *out = &writer->out;
    uint32_t thread = task->thread_name;
    put_form(writer, &writer->comms, thread == INTERN_NONE ? task->process_name : thread);
    byte_out_text(out, " ");
    byte_out_decimal(out, task_number(task->pid));
    byte_out_text(out, "/");
    byte_out_decimal(out, task_number(task->tid));
    byte_out_text(out, " [");
    put_padded(out, sample->cpu, CPU_DIGITS);
    byte_out_text(out, "] ");
    byte_out_decimal(out, sample->time_ns / NS_PER_S);
    byte_out_text(out, ".");
    put_padded(out, sample->time_ns % NS_PER_S, NS_DIGITS);
    byte_out_text(out, ": ");
    byte_out_decimal(out, export_cost_of_sample(&writer->cost, writer->profile, sample));
    byte_out_text(out, " ");
    byte_out_text(out, writer->event);
    byte_out_text(out, ":\n");
}

/* Puts what a line of a frame begins with: a tab, the address in 16 columns, a space. */
static void put_address(struct byte_out *out, uint64_t address)
{
    char *into = byte_out_room(out, HEX_WIDTH + 2);
    into[0] = '\t';
    memset(into + 1, ' ', HEX_WIDTH + 1);
    (void)digits_hex(address, into + 1 + HEX_WIDTH - digits_hex_count(address));
    out->used_bytes += HEX_WIDTH + 2;
}

static void put_sample(struct perf_script *writer, const struct profile_sample *sample)
{
    struct place_walk walk;
    struct stack_place place;
    put_event(writer, sample);
    place_walk_begin(&walk, writer->profile, sample);
    while (place_walk_next(&walk, &place)) {
        for (size_t i = 0; i < place.frame_count; i++) {
            put_address(&writer->out, place.address);
            put_form(writer, &writer->frames, place.frames[i]);
        }
    }
    if (profile_rooted(sample) == PROFILE_STACK_TRUNCATED) {
        put_address(&writer->out, 0);
        byte_out_text(&writer->out, "[truncated] (" NO_MODULE ")\n");
    }
    byte_out_text(&writer->out, "\n");
}

static void print_comment(const char *line, void *userdata)
{
    (void)fprintf(userdata, "# %s\n", line);
}

static void print_lost(FILE *file, const struct profile *profile, const struct export_cost *cost)
{
    char event[EXPORT_EVENT_BYTES];
    uint64_t lost_cost = export_books_lost_cost(profile, cost);
    if (lost_cost > 0) {
        (void)fprintf(file,
                      "%-*s 0/0 [000] %" PRIu64 ".%09" PRIu64 ": %" PRIu64
                      " %s:\n\t%16x [lost] (" NO_MODULE ")\n\n",
                      COMM_WIDTH, "[lost]", profile->last_ns / NS_PER_S,
                      profile->last_ns % NS_PER_S, lost_cost,
                      export_event_name(&profile->event, event), 0);
    }
}

/* Fetches into the CPU's cache what will be needed for the sample so far behind the one `at`. */
static void fetch_ahead(const struct profile *profile, const uint32_t *order, size_t at)
{
    if (profile->sample_count - at > AHEAD) {
        const struct profile_sample *sample = &profile->samples[order[at + AHEAD]];
        intern_fetch_bytes(&profile->chains, sample->chain);
        intern_fetch_bytes(&profile->stacks, sample->user_stack);
    }
}

/* Returns 0, or -ENOMEM. */
static int put_samples(struct perf_script *writer)
{
    const struct profile *profile = writer->profile;
    if (text_forms_init(&writer->comms, profile, print_comm_form) < 0 ||
        text_forms_init_frames(&writer->frames, profile, print_frame_form) < 0) {
        return -ENOMEM;
    }
    cleanup_(freep) uint32_t *order = sample_order(profile, SAMPLE_ORDER_TIME);
    if (order == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count && writer->fault == 0; i++) {
        fetch_ahead(profile, order, i);
        put_sample(writer, &profile->samples[order[i]]);
    }
    byte_out_flush(&writer->out);
    return writer->fault;
}

int perf_script_print(FILE *file, const struct profile *profile,
                      const struct export_options *options)
{
    cleanup_(perf_script_done) struct perf_script writer = {
        .profile = profile,
        .out = {.file = file},
        .cost = export_cost_of(profile),
    };
    (void)export_event_name(&profile->event, writer.event);
    (void)fputs(HEADER_EDGE, file);
    export_books_lines(profile, print_comment, file);
    (void)fputs(HEADER_EDGE "#\n", file);
    int r = put_samples(&writer);
    if (r == 0 && options->has_lost_frame) {
        print_lost(file, profile, &writer.cost);
    }
    return r;
}
