/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints a still picture: the root at the top, where viewers begin, and what it called below it.
 * Frames that are too narrow to be pointed at are left out, since their deep stacks would make most
 * of the picture white. It has no script; what a frame is stands in its title, which a browser
 * shows. A node's parent
 * stands before it, so the nodes by parent and name are in an order in which each gets its place.
 */
#include "flame_data.h"

#include "cleanup.h"
#include "compare.h"
#include "json.h"
#include "percent.h"
#include "text_out.h"
#include "utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define WIDTH        1200.0
#define MARGIN       10.0
#define HEAD_HEIGHT  52.0
#define ROW_HEIGHT   17.0
#define WIDTH_MIN    1.0 /* of a frame that is drawn */
#define LETTER_WIDTH 7.2
#define LABEL_MIN    3 /* letters */
#define SHADES       4
#define AMOUNT_BYTES 128

struct picture {
    const struct flame *flame;
    FILE *file;
    uint64_t *totals; /* owned; what samples stand for, by node, as all that follow */
    uint64_t *places; /* owned; how much stands left of it */
    uint64_t *next;   /* owned; the place of its next child */
    uint32_t *depths; /* owned; of the root 0 */
    uint32_t *order;  /* owned; nodes by parent and name */
    uint32_t depth_max;
};

static void picture_done(struct picture *picture)
{
    free(picture->totals);
    free(picture->places);
    free(picture->next);
    free(picture->depths);
    free(picture->order);
}

static bool is_drawable(uint32_t character)
{
    return !utf8_is_control(character) && (character & 0xfffe) != 0xfffe;
}

static void print_text(FILE *file, const char *text, size_t text_bytes)
{
    while (text_bytes > 0) {
        uint32_t character = 0;
        size_t length = utf8_character(text, text_bytes, &character);
        if (length == 0 || !is_drawable(character)) {
            (void)fputc('?', file);
            length = length == 0 ? 1 : length;
        } else if (strchr("&<>\"", (int)character) != NULL && character < 0x80) {
            (void)fprintf(file, "&#%" PRIu32 ";", character);
        } else {
            (void)fwrite(text, 1, length, file);
        }
        text += length;
        text_bytes -= length;
    }
}

static const char *text_of(const struct picture *picture, uint32_t text)
{
    return intern_text(&picture->flame->texts, text);
}

static const struct flame_function *function_of(const struct picture *picture, uint32_t node)
{
    return flame_function(picture->flame, picture->flame->nodes.nodes[node].function);
}

static double share_width(const struct picture *picture, uint64_t samples)
{
    return (WIDTH - 2 * MARGIN) * (double)samples / (double)picture->totals[0];
}

static int compare_nodes(const void *left, const void *right, void *userdata)
{
    const struct picture *picture = userdata;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    int r =
        compare_u64(picture->flame->nodes.nodes[a].parent, picture->flame->nodes.nodes[b].parent);
    if (r == 0) {
        r = strcmp(text_of(picture, function_of(picture, a)->name),
                   text_of(picture, function_of(picture, b)->name));
    }
    return r == 0 ? compare_u64(a, b) : r;
}

static int allocate(struct picture *picture, size_t count)
{
    picture->totals = calloc(count, sizeof *picture->totals);
    picture->places = calloc(count, sizeof *picture->places);
    picture->next = calloc(count, sizeof *picture->next);
    picture->depths = calloc(count, sizeof *picture->depths);
    picture->order = calloc(count, sizeof *picture->order);
    return picture->totals == NULL || picture->places == NULL || picture->next == NULL ||
                   picture->depths == NULL || picture->order == NULL
               ? -ENOMEM
               : 0;
}

static void count_samples(struct picture *picture, uint32_t count)
{
    const struct flame_recording *recording = &picture->flame->recordings[0];
    for (size_t i = 0; i < recording->sample_count; i++) {
        picture->totals[recording->nodes[i]] += flame_value(recording, i);
    }
    for (uint32_t i = count - 1; i > 0; i--) {
        picture->totals[picture->flame->nodes.nodes[i].parent] += picture->totals[i];
    }
}

static int lay_out(struct picture *picture)
{
    uint32_t count = (uint32_t)picture->flame->nodes.count;
    if (allocate(picture, count) < 0) {
        return -ENOMEM;
    }
    count_samples(picture, count);
    for (uint32_t i = 1; i < count; i++) {
        picture->order[i] = i;
    }
    qsort_r(picture->order + 1, count - 1, sizeof *picture->order, compare_nodes, picture);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t node = picture->order[i];
        uint32_t parent = picture->flame->nodes.nodes[node].parent;
        picture->places[node] = picture->next[parent];
        picture->next[parent] += picture->totals[node];
        picture->next[node] = picture->places[node];
        picture->depths[node] = picture->depths[parent] + 1;
        if (picture->depths[node] > picture->depth_max &&
            share_width(picture, picture->totals[node]) >= WIDTH_MIN) {
            picture->depth_max = picture->depths[node];
        }
    }
    return 0;
}

/* What samples stand for in words: "3 samples", "30,000 faults". Its unit may be any text. */
static void print_amount(const struct picture *picture, uint64_t value)
{
    const struct profile_event *event = &picture->flame->recordings[0].profile->event;
    char amount[AMOUNT_BYTES];
    const char *text = event->is_clock ? text_samples(value, amount)
                                       : text_amount(value, event->unit, amount, sizeof amount);
    print_text(picture->file, text, strlen(text));
}

/* One of the shades of a kind: those of a module are alike. */
static unsigned shade_of(const struct picture *picture, const struct flame_function *function)
{
    const char *text =
        text_of(picture, function->module == INTERN_NONE ? function->name : function->module);
    uint32_t hash = 0;
    for (; *text != '\0'; text++) {
        hash = hash * 31 + (unsigned char)*text;
    }
    return hash % SHADES;
}

static void print_label(const struct picture *picture, const char *name, double x, double y,
                        double width)
{
    double letters = (width - 6) / LETTER_WIDTH;
    if (letters < LABEL_MIN) {
        return;
    }
    size_t fitting = (size_t)letters;
    bool is_cut = text_width(name) > fitting;
    (void)fprintf(picture->file, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + 12.5);
    print_text(picture->file, name, text_bytes_of(name, is_cut ? fitting - 2 : fitting));
    (void)fputs(is_cut ? "..</text>" : "</text>", picture->file);
}

static void print_frame(const struct picture *picture, uint32_t node)
{
    static const char letters[] = {
        [FLAME_USER] = 'u',   [FLAME_KERNEL] = 'k', [FLAME_INLINED] = 'i',
        [FLAME_MARKER] = 'm', [FLAME_GROUP] = 'g',
    };
    static const char *const words[] = {
        [FLAME_USER] = "",   [FLAME_KERNEL] = ", kernel", [FLAME_INLINED] = ", inlined",
        [FLAME_MARKER] = "", [FLAME_GROUP] = "",
    };
    const struct flame_function *function = function_of(picture, node);
    const char *name = text_of(picture, function->name);
    uint64_t total = picture->totals[node];
    double width = share_width(picture, total);
    double x = MARGIN + share_width(picture, picture->places[node]);
    double y = HEAD_HEIGHT + ROW_HEIGHT * picture->depths[node];
    (void)fputs("<g><title>", picture->file);
    print_text(picture->file, name, strlen(name));
    if (function->module != INTERN_NONE) {
        const char *module = text_of(picture, function->module);
        (void)fputs(" in ", picture->file);
        print_text(picture->file, module, strlen(module));
    }
    (void)fprintf(picture->file, "%s: ", words[function->kind]);
    print_amount(picture, total);
    (void)fprintf(picture->file,
                  ", %.2f %%</title><rect class=\"%c%u\" x=\"%.2f\" y=\"%.1f\" "
                  "width=\"%.2f\" height=\"%.1f\"/>",
                  percent_of(total, picture->totals[0]), letters[function->kind],
                  shade_of(picture, function), x, y, width, ROW_HEIGHT - 1);
    print_label(picture, name, x, y, width);
    (void)fputs("</g>\n", picture->file);
}

/* Where all ticks went, by the books. */
static void print_ticks(const struct picture *picture)
{
    static const char *const terms[] = {
        "kept", "filtered", "dropped", "lost", "throttled", "missed", "idle", "unexplained",
    };
    cleanup_(json_freep) cJSON *books = cJSON_Parse(picture->flame->recordings[0].books_json);
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(books, "total");
    const cJSON *expected = cJSON_GetObjectItemCaseSensitive(total, "expected");
    if (!cJSON_IsNumber(expected)) {
        return;
    }
    (void)fprintf(picture->file, "; of %.0f ticks", expected->valuedouble);
    const char *separator = " ";
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        const cJSON *term = cJSON_GetObjectItemCaseSensitive(total, terms[i]);
        if (cJSON_IsNumber(term) && fabs(term->valuedouble) >= 1) {
            (void)fprintf(picture->file, "%s%.0f %s", separator, term->valuedouble, terms[i]);
            separator = ", ";
        }
    }
}

/* How many samples there are, and of which event; of the clock where all ticks went, too. */
static void print_facts(const struct picture *picture)
{
    const struct flame_recording *recording = &picture->flame->recordings[0];
    const struct profile_event *event = &recording->profile->event;
    char samples[TEXT_COUNT_BYTES];
    char rate[TEXT_RATE_BYTES];
    (void)fputs(text_samples(recording->sample_count, samples), picture->file);
    if (event->is_clock) {
        (void)fputs(text_rate(recording->period_ns, rate), picture->file);
        print_ticks(picture);
        return;
    }
    (void)fputs(" of ", picture->file);
    print_text(picture->file, event->name, strlen(event->name));
    (void)fputs(", ", picture->file);
    print_amount(picture, picture->totals[0]);
    (void)fprintf(picture->file, "%s%s", event->is_wait ? " " : "", profile_event_state(event));
}

/* The same colours as in page/page.css. */
static void print_style(FILE *file)
{
    static const struct {
        char letter;
        int hue;
        int saturation;
    } kinds[] = {{'u', 28, 85}, {'k', 212, 70}, {'i', 140, 45}, {'m', 0, 0}, {'g', 45, 12}};
    (void)fputs("<style>text{fill:#111}.page{fill:#fff}", file);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (int shade = 0; shade < SHADES; shade++) {
            (void)fprintf(file, ".%c%d{fill:hsl(%d,%d%%,%d%%)}", kinds[i].letter, shade,
                          kinds[i].hue + 5 * shade, kinds[i].saturation, 68 + 4 * shade);
        }
    }
    (void)fputs("</style>\n", file);
}

static void print_head(const struct picture *picture)
{
    const struct flame_recording *recording = &picture->flame->recordings[0];
    const char *name = recording->name;
    double height = HEAD_HEIGHT + ROW_HEIGHT * (picture->depth_max + 1) + MARGIN;
    (void)fprintf(picture->file,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" font-family=\"monospace\" font-size=\"12\">\n<title>",
                  WIDTH, height, WIDTH, height);
    print_text(picture->file, name, strlen(name));
    (void)fputs("</title>\n", picture->file);
    print_style(picture->file);
    (void)fputs("<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n"
                "<text x=\"10\" y=\"20\" font-weight=\"bold\">",
                picture->file);
    print_text(picture->file, name, strlen(name));
    (void)fputs("</text>\n<text x=\"10\" y=\"38\">", picture->file);
    print_facts(picture);
    (void)fputs("</text>\n", picture->file);
}

/* What all frames hang below. */
static void print_root(const struct picture *picture)
{
    (void)fputs("<g><title>all: ", picture->file);
    print_amount(picture, picture->totals[0]);
    (void)fprintf(picture->file,
                  "</title><rect class=\"g0\" x=\"%.1f\" y=\"%.1f\" "
                  "width=\"%.1f\" height=\"%.1f\"/>",
                  MARGIN, HEAD_HEIGHT, WIDTH - 2 * MARGIN, ROW_HEIGHT - 1);
    print_label(picture, "all", MARGIN, HEAD_HEIGHT, WIDTH - 2 * MARGIN);
    (void)fputs("</g>\n", picture->file);
}

int flamegraph_print_svg(FILE *file, const struct flame_source *source, enum flame_by by)
{
    cleanup_(flame_done) struct flame flame = {0};
    cleanup_(picture_done) struct picture picture = {.flame = &flame, .file = file};
    int r = flame_add(&flame, source, 0, by);
    r = r < 0 ? r : lay_out(&picture);
    if (r < 0) {
        return r;
    }
    print_head(&picture);
    print_root(&picture);
    for (size_t i = 1; i < flame.nodes.count; i++) {
        uint32_t node = picture.order[i];
        if (share_width(&picture, picture.totals[node]) >= WIDTH_MIN) {
            print_frame(&picture, node);
        }
    }
    (void)fputs("</svg>\n", file);
    return 0;
}
