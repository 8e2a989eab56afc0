/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints an annotation: the lines that samples were at, and a few around each, with "..." where
 * some are left out. JSON has only the lines with samples.
 */
#include "annotation.h"

#include "annotation_source.h"
#include "json_out.h"
#include "measure.h"
#include "percent.h"
#include "text_out.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define HOT_PERCENT           5
#define INSTRUCTION_BYTES_MAX ((uint64_t)15)
#define NUMBERS_WIDTH         ((size_t)18) /* of the percentages, with their gaps */

/* What is being printed: a file's lines, or a part of the code. */
struct listing {
    const struct page *page;
    const struct annotation *annotation;
    const struct annotation_row *rows; /* those of the listing */
    size_t row_count;
    size_t place_width; /* of line numbers or addresses */
};

static void print_percent(const struct listing *listing, uint64_t samples, bool may_be_hot)
{
    double percent = percent_of(samples, listing->annotation->whole);
    bool is_hot = may_be_hot && percent >= HOT_PERCENT;
    if (samples == 0) {
        (void)fputs("         ", listing->page->file);
    } else {
        (void)fprintf(listing->page->file, "%s%7.2f%s  ",
                      is_hot ? page_style(listing->page, PAGE_HOT) : "", percent,
                      is_hot ? page_style(listing->page, PAGE_PLAIN) : "");
    }
}

/* `row` NULL: no sample was there; `place` NULL: it is not known where they were. */
static void print_line(const struct listing *listing, const struct annotation_row *row,
                       const char *place, const char *text)
{
    const struct page *page = listing->page;
    size_t used = NUMBERS_WIDTH + listing->place_width + 2;
    print_percent(listing, row == NULL ? 0 : row->self, true);
    print_percent(listing, row == NULL ? 0 : row->total, false);
    (void)fprintf(page->file, "%*s", (int)listing->place_width, place);
    if (text[0] != '\0') {
        (void)fputs("  ", page->file);
        text_print_fitted(page->file, text,
                          page->columns == PAGE_UNLIMITED ? PAGE_UNLIMITED : page->columns - used,
                          false);
    }
    (void)fputc('\n', page->file);
}

static void print_titles(const struct listing *listing, const char *place, const char *text)
{
    (void)fprintf(listing->page->file, "%s self %%  total %%  %*s%s%s%s\n",
                  page_style(listing->page, PAGE_TITLE), (int)listing->place_width, place,
                  text[0] == '\0' ? "" : "  ", text, page_style(listing->page, PAGE_PLAIN));
}

static void print_gap(const struct listing *listing)
{
    (void)fprintf(listing->page->file, "%*s...\n", (int)(NUMBERS_WIDTH + listing->place_width) - 3,
                  "");
}

/* Prints the lines without samples from `from` to before `until` that the file has. */
static void print_around(const struct listing *listing, const struct annotation_file *file,
                         uint64_t from, uint64_t until)
{
    char place[24];
    for (uint64_t line = from; line < until; line++) {
        const char *text = annotation_find_text(file, line);
        if (text != NULL) {
            (void)snprintf(place, sizeof place, "%" PRIu64, line);
            print_line(listing, NULL, place, text);
        }
    }
}

/* Prints a source file's lines: those of `listing`, and what is around them if it could be read. */
static void print_source(const struct listing *listing, const struct annotation_file *file)
{
    char place[24];
    uint64_t next = 0; /* the first line that is not printed yet */
    print_titles(listing, "line", "source");
    for (size_t i = 0; i < listing->row_count; i++) {
        const struct annotation_row *row = &listing->rows[i];
        const char *text = annotation_find_text(file, row->line);
        uint64_t from = row->line > ANNOTATION_AROUND ? row->line - ANNOTATION_AROUND : 1;
        if (next > 0 && from > next) {
            print_gap(listing);
        }
        print_around(listing, file, from > next ? from : next, row->line);
        (void)snprintf(place, sizeof place, "%" PRIu32, row->line);
        print_line(listing, row, row->line == 0 ? "-" : place,
                   row->line == 0 ? "(line not known)"
                   : text == NULL ? ""
                                  : text);
        next = (uint64_t)row->line + 1;
        uint64_t until = next + ANNOTATION_AROUND;
        if (i + 1 < listing->row_count && listing->rows[i + 1].line < until) {
            until = listing->rows[i + 1].line;
        }
        print_around(listing, file, next, until);
        next = until;
    }
}

/* A heading and the lines of each file. */
static void print_files(const struct page *page, const struct profile *profile,
                        const struct annotation *annotation)
{
    for (size_t i = 0, next = 0; i < annotation->row_count; i = next) {
        uint32_t file = annotation->rows[i].file;
        while (next < annotation->row_count && annotation->rows[next].file == file) {
            next++;
        }
        int width =
            snprintf(NULL, 0, "%" PRIu64, annotation->rows[next - 1].line + ANNOTATION_AROUND);
        const struct listing listing = {
            .page = page,
            .annotation = annotation,
            .rows = &annotation->rows[i],
            .row_count = next - i,
            .place_width = width > 4 ? (size_t)width : 4,
        };
        if (file != INTERN_NONE) {
            text_print_fitted(page->file, profile_text(profile, file), page->columns, false);
            (void)fputc('\n', page->file);
        }
        print_source(&listing, annotation_find_file(annotation, file));
        (void)fputc('\n', page->file);
    }
}

/* The instructions of a part. */
static const struct lines_instruction *instructions_of(const struct annotation *annotation,
                                                       const struct annotation_part *part)
{
    return part->range.count == 0 ? NULL : &annotation->code.instructions[part->range.first];
}

/* The address behind an instruction. Behind the last one that was read, code may go on. */
static uint64_t instruction_end(const struct annotation *annotation,
                                const struct annotation_part *part, size_t number)
{
    const struct lines_instruction *at = &instructions_of(annotation, part)[number];
    uint64_t longest = at->address + INSTRUCTION_BYTES_MAX;
    return number + 1 < part->range.count   ? at[1].address
           : longest < part->range.read_end ? longest
                                            : part->range.read_end;
}

/* The row of an instruction: the address of a caller is one within it. */
static const struct annotation_row *row_of(const struct listing *listing, uint64_t end,
                                           size_t *next, struct annotation_row *sum)
{
    *sum = (struct annotation_row){0};
    for (; *next < listing->row_count && listing->rows[*next].address < end; (*next)++) {
        sum->self += listing->rows[*next].self;
        sum->total += listing->rows[*next].total;
    }
    return sum->total > 0 ? sum : NULL;
}

static void print_instruction(const struct listing *listing, const struct annotation_row *row,
                              const struct lines_instruction *instruction)
{
    char place[24];
    (void)snprintf(place, sizeof place, "%#" PRIx64, instruction->address);
    print_line(listing, row, place, instruction->text);
}

/* Prints the rows from `*next` on that are before `until`: their instructions were not read. */
static void print_addresses(const struct listing *listing, size_t *next, uint64_t until)
{
    char place[24];
    for (; *next < listing->row_count && listing->rows[*next].address < until; (*next)++) {
        (void)snprintf(place, sizeof place, "%#" PRIx64, listing->rows[*next].address);
        print_line(listing, &listing->rows[*next], place, "");
    }
}

static void print_instructions(const struct listing *listing, const struct annotation_part *part)
{
    const struct lines_instruction *instructions = instructions_of(listing->annotation, part);
    size_t next_row = 0;
    size_t shown_until = 0; /* instructions */
    for (size_t i = 0; i < part->range.count; i++) {
        struct annotation_row sum;
        print_addresses(listing, &next_row, instructions[i].address);
        const struct annotation_row *row =
            row_of(listing, instruction_end(listing->annotation, part, i), &next_row, &sum);
        if (row == NULL && i >= shown_until) {
            continue;
        }
        if (row != NULL && i >= shown_until) {
            size_t from = i > ANNOTATION_AROUND ? i - ANNOTATION_AROUND : 0;
            if (shown_until > 0 && from > shown_until) {
                print_gap(listing);
            }
            from = from > shown_until ? from : shown_until;
            for (size_t before = from; before < i; before++) {
                print_instruction(listing, NULL, &instructions[before]);
            }
        }
        print_instruction(listing, row, &instructions[i]);
        shown_until = row == NULL ? shown_until : i + 1 + ANNOTATION_AROUND;
    }
    print_addresses(listing, &next_row, UINT64_MAX);
}

/* Says whose code a part is, where that is not said by what stands above all. */
static void print_part_name(const struct page *page, const struct profile *profile,
                            const struct annotation *annotation, const struct annotation_part *part)
{
    struct page_text text;
    bool is_inlined = part->name != annotation->name;
    if ((annotation->part_count == 1 && !is_inlined) || !page_text_begin(&text)) {
        return;
    }
    (void)fputs(is_inlined ? "Inlined into " : "", text.file);
    text_print(text.file, profile_text(profile, part->name));
    if (part->range.start < part->range.end) {
        (void)fprintf(text.file, " at %#" PRIx64, part->range.start);
    }
    (void)fprintf(text.file, ": %.2f %% of the ", percent_of(part->self, annotation->whole));
    text_print(text.file, measure_whole(&profile->event));
    (void)fprintf(text.file, ", %.2f %% with what was called there.\n",
                  percent_of(part->total, annotation->whole));
    page_text_end(&text, page, PAGE_PLAIN);
}

static void print_code(const struct page *page, const struct profile *profile,
                       const struct annotation *annotation)
{
    for (size_t i = 0; i < annotation->part_count; i++) {
        const struct annotation_part *part = &annotation->parts[i];
        const struct annotation_row *rows = &annotation->rows[part->first_row];
        int width = snprintf(NULL, 0, "%#" PRIx64, rows[part->row_count - 1].address);
        const struct listing listing = {
            .page = page,
            .annotation = annotation,
            .rows = rows,
            .row_count = part->row_count,
            .place_width = width > 7 ? (size_t)width : 7,
        };
        print_part_name(page, profile, annotation, part);
        print_titles(&listing, "address", part->range.count > 0 ? "instruction" : "");
        print_instructions(&listing, part);
        (void)fputc('\n', page->file);
    }
}

static void write_missing(FILE *file, const struct profile *profile,
                          const struct annotation *annotation)
{
    const int error = -annotation->missing_error;
    if (error == ENOENT || error == ENOTDIR) {
        (void)fputs(" Its source is not on this machine: ", file);
    } else if (error == EFBIG) {
        (void)fprintf(file, " Its source is larger than the %d MiB that are read: ",
                      ANNOTATION_SOURCE_MIB_MAX);
    } else if (error == EBADF) {
        (void)fputs(" Its source is no regular file, so it is not read: ", file);
    } else {
        (void)fprintf(file, " Its source cannot be read (%s): ", strerror(error));
    }
    text_print(file, profile_text(profile, annotation->missing_source));
    (void)fputs(".", file);
}

/* What is shown, and what is not and why. */
static void write_heading(FILE *file, const struct profile *profile,
                          const struct annotation *annotation)
{
    (void)fputs("In ", file);
    text_print(file, profile_text(profile, annotation->name));
    if (annotation->module != INTERN_NONE) {
        (void)fputs(" of ", file);
        text_print(file, profile_text(profile, annotation->module));
    }
    if (annotation->other_build_count > 0) {
        (void)fputs(" with build-id ", file);
        text_print(file, profile_text(profile, annotation->build_id));
    }
    (void)fprintf(file, ": %.2f %% of the ", percent_of(annotation->self, annotation->whole));
    text_print(file, measure_whole(&profile->event));
    (void)fprintf(file, ", %.2f %% with what it called.",
                  percent_of(annotation->total, annotation->whole));
    if (annotation->other_count > 0) {
        (void)fprintf(file, " %zu more functions match, with %s ", annotation->other_count,
                      measure_is_one(&profile->event) ? "less" : "fewer");
        text_print(file, measure_whole(&profile->event));
        (void)fputs(".", file);
    }
    if (annotation->other_build_count > 0) {
        (void)fprintf(file, " Of them %zu in other builds of the module.",
                      annotation->other_build_count);
    }
    if (annotation->kind == ANNOTATION_CODE && annotation->part_count > 1) {
        (void)fprintf(file, " Its code is in %zu places, each shown by itself.",
                      annotation->part_count);
    }
    if (annotation->missing_source != INTERN_NONE) {
        write_missing(file, profile, annotation);
    } else if (annotation->kind == ANNOTATION_CODE) {
        (void)fputs(" No lines of its source are known.", file);
    }
    if (annotation->kind == ANNOTATION_CODE && annotation->code.count == 0) {
        (void)fputs(" Its instructions are not on this machine.", file);
    }
    if (annotation->kind == ANNOTATION_SOURCE && annotation->has_newer_source) {
        (void)fputs(" Source was changed after the recording, so lines may be others.", file);
    }
    (void)fputs("\n", file);
}

void annotation_print_text(const struct page *page, const struct profile *profile,
                           const struct summary *summary, const struct annotation *annotation)
{
    struct page_text text;
    summary_print_head(page, profile, summary);
    if (page_text_begin(&text)) {
        write_heading(text.file, profile, annotation);
        page_text_end(&text, page, PAGE_PLAIN);
        (void)fputc('\n', page->file);
    }
    if (annotation->kind == ANNOTATION_SOURCE) {
        print_files(page, profile, annotation);
    } else {
        print_code(page, profile, annotation);
    }
}

/* The text of a row, or NULL. */
static const char *text_of(const struct annotation *annotation, const struct annotation_row *row)
{
    if (annotation->kind == ANNOTATION_SOURCE) {
        const struct annotation_file *file = annotation_find_file(annotation, row->file);
        return row->line == 0 ? NULL : annotation_find_text(file, row->line);
    }
    const struct annotation_part *part = &annotation->parts[row->part];
    size_t low = 0; /* the instructions before it begin at the address or below */
    size_t high = part->range.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (instructions_of(annotation, part)[middle].address <= row->address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 || row->address >= instruction_end(annotation, part, low - 1)
               ? NULL
               : instructions_of(annotation, part)[low - 1].text;
}

static void print_json_row(struct json_out *out, const struct profile *profile,
                           const struct annotation *annotation, const struct annotation_row *row)
{
    json_out_begin(out, NULL, '{');
    if (annotation->kind == ANNOTATION_SOURCE) {
        json_out_string(out, "file",
                        row->file == INTERN_NONE ? NULL : profile_text(profile, row->file));
        if (row->line > 0) {
            json_out_u64(out, "line", row->line);
        } else {
            json_out_raw(out, "line", NULL);
        }
    } else {
        const struct annotation_part *part = &annotation->parts[row->part];
        json_out_hex(out, "address", row->address);
        json_out_string(out, "of", profile_text(profile, part->name));
        if (part->range.start < part->range.end) {
            json_out_hex(out, "start", part->range.start);
        } else {
            json_out_raw(out, "start", NULL);
        }
    }
    json_out_string(out, "text", text_of(annotation, row));
    json_out_u64(out, "self", row->self);
    json_out_u64(out, "total", row->total);
    json_out_percent(out, "self_percent", row->self, annotation->whole);
    json_out_percent(out, "total_percent", row->total, annotation->whole);
    json_out_end(out, '}');
}

void annotation_print_json(FILE *file, const struct profile *profile, const struct summary *summary,
                           const struct annotation *annotation)
{
    struct json_out out = {.file = file};
    summary_json_head(&out, profile, summary);
    json_out_string(&out, "by", annotation->kind == ANNOTATION_SOURCE ? "line" : "instruction");
    json_out_string(&out, "function", profile_text(profile, annotation->name));
    json_out_string(&out, "module",
                    annotation->module == INTERN_NONE ? NULL
                                                      : profile_text(profile, annotation->module));
    json_out_string(
        &out, "build_id",
        annotation->build_id == INTERN_NONE ? NULL : profile_text(profile, annotation->build_id));
    json_out_u64(&out, "self", annotation->self);
    json_out_u64(&out, "total", annotation->total);
    json_out_u64(&out, "others", annotation->other_count);
    json_out_begin(&out, "annotation", '[');
    for (size_t i = 0; i < annotation->row_count; i++) {
        print_json_row(&out, profile, annotation, &annotation->rows[i]);
    }
    json_out_end(&out, ']');
    summary_json_foot(&out, profile, summary);
}
