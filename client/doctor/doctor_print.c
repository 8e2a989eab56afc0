/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A line for each check, and below it what helps. Sentences are broken where the page ends; a
 * command never is, so that it can be pasted.
 */
#include "doctor.h"

#include "cleanup.h"
#include "json_out.h"
#include "text_out.h"

#include <stdlib.h>
#include <string.h>

#define VERDICT_WIDTH 8
#define CHECK_WIDTH   13
#define INDENT        "           "
#define INDENT_WIDTH  (sizeof INDENT - 1)
#define INDENT_NARROW ((size_t)2)
#define ROOM_MIN      ((size_t)20)

static const char *const verdicts[] = {
    [DOCTOR_OK] = "ok",
    [DOCTOR_NOTE] = "note",
    [DOCTOR_WARNING] = "warning",
    [DOCTOR_WRONG] = "wrong",
};

/* Prints a text in what is left of the columns beside `indent_width`, further lines below it; where
 * too little is left, all of it below, as far to the right as what helps. */
static void print_beside(const struct page *page, const char *text, size_t indent_width)
{
    size_t columns = page_prose_columns(page);
    if (columns < indent_width + ROOM_MIN && indent_width > INDENT_WIDTH) {
        indent_width = columns < INDENT_WIDTH + ROOM_MIN ? INDENT_NARROW : INDENT_WIDTH;
        (void)fprintf(page->file, "\n%*s", (int)indent_width, "");
    }
    size_t room = columns == PAGE_UNLIMITED ? PAGE_UNLIMITED : columns - indent_width;
    bool is_first = true;
    do {
        size_t bytes = page_fitting_bytes(text, room);
        (void)fprintf(page->file, "%*s", is_first ? 0 : (int)indent_width, "");
        text_print_bytes(page->file, text, bytes);
        (void)fputc('\n', page->file);
        text += bytes + (text[bytes] == ' ');
        is_first = false;
    } while (*text != '\0');
}

static void print_remedy(const struct page *page, const struct doctor_finding *finding)
{
    cleanup_(freep) char *commands = strdup(finding->commands);
    char *rest = NULL;
    char *command = commands == NULL ? NULL : strtok_r(commands, "\n", &rest);
    for (; command != NULL; command = strtok_r(NULL, "\n", &rest)) {
        (void)fputs(INDENT, page->file);
        text_print(page->file, command);
        (void)fputc('\n', page->file);
    }
    if (finding->advice[0] != '\0') {
        (void)fputs(INDENT, page->file);
        print_beside(page, finding->advice, INDENT_WIDTH);
    }
}

static enum page_style style_of(enum doctor_verdict verdict)
{
    return verdict == DOCTOR_WRONG     ? PAGE_HOT
           : verdict == DOCTOR_WARNING ? PAGE_WARNING
                                       : PAGE_PLAIN;
}

/* What counts, since the findings may fill more than a screen. */
static void print_sum(const struct page *page, const struct doctor_report *report,
                      enum doctor_verdict verdict, const char *words)
{
    bool is_first = true;
    struct page_text text;
    if (!page_text_begin(&text)) {
        return;
    }
    for (size_t i = 0; i < report->count; i++) {
        if (report->findings[i].verdict == verdict) {
            (void)fprintf(text.file, "%s%s", is_first ? words : ", ", report->findings[i].check);
            is_first = false;
        }
    }
    page_text_end(&text, page, PAGE_PLAIN);
}

void doctor_print(const struct page *page, const struct doctor_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct doctor_finding *finding = &report->findings[i];
        enum page_style style = style_of(finding->verdict);
        (void)fprintf(
            page->file, "%s%-*s%s %-*s ", style == PAGE_PLAIN ? "" : page_style(page, style),
            VERDICT_WIDTH, verdicts[finding->verdict],
            style == PAGE_PLAIN ? "" : page_style(page, PAGE_PLAIN), CHECK_WIDTH, finding->check);
        print_beside(page, finding->text, VERDICT_WIDTH + CHECK_WIDTH + 2);
        print_remedy(page, finding);
    }
    if (report->is_cut) {
        (void)fputs("more was found than there is room for\n", page->file);
    }
    (void)fputc('\n', page->file);
    if (!doctor_is_ill(report)) {
        (void)fputs("nothing is wrong\n", page->file);
    }
    print_sum(page, report, DOCTOR_WRONG, "wrong: ");
    print_sum(page, report, DOCTOR_WARNING, "warnings: ");
}

static void print_commands(struct json_out *out, const struct doctor_finding *finding)
{
    cleanup_(freep) char *commands = strdup(finding->commands);
    char *rest = NULL;
    char *command = commands == NULL ? NULL : strtok_r(commands, "\n", &rest);
    json_out_begin(out, "commands", '[');
    for (; command != NULL; command = strtok_r(NULL, "\n", &rest)) {
        json_out_string(out, NULL, command);
    }
    json_out_end(out, ']');
}

void doctor_print_json(FILE *file, const struct doctor_report *report)
{
    struct json_out out = {.file = file};
    json_out_begin(&out, NULL, '{');
    json_out_raw(&out, "well", doctor_is_ill(report) ? "false" : "true");
    json_out_begin(&out, "findings", '[');
    for (size_t i = 0; i < report->count; i++) {
        const struct doctor_finding *finding = &report->findings[i];
        json_out_begin(&out, NULL, '{');
        json_out_string(&out, "check", finding->check);
        json_out_string(&out, "cause", finding->cause);
        json_out_string(&out, "verdict", verdicts[finding->verdict]);
        json_out_raw(&out, "known", finding->is_known ? "true" : "false");
        json_out_string(&out, "text", finding->text);
        print_commands(&out, finding);
        json_out_string(&out, "advice", finding->advice);
        json_out_raw(&out, "fixable", finding->is_fixable ? "true" : "false");
        json_out_end(&out, '}');
    }
    json_out_end(&out, ']');
    json_out_end(&out, '}');
    (void)fputc('\n', file);
}
