/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything is drawn anew each time; ncurses sends what changed. Every text goes through
 * top_cells_fit(), so that no name moves the cursor. From the top: a line about the session; of the
 * CPUs, and of the books, where there is room; the table; what called the chosen function, where
 * there is room; a line to talk with the user. What does not fit is left out from the right, and
 * names lose their middle.
 */
#include "top_screen.h"

#include "clock.h"
#include "percent.h"
#include "text_out.h"
#include "top_cells.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NCURSES_NOMACROS 1
#include <curses.h>

#define PIECE_BYTES       ((size_t)128)
#define LINE_BYTES        (TOP_CELLS_MAX + 1)
#define HEAD_LINES_MIN    10 /* of a screen that has lines of the CPUs and of the books */
#define CALLERS_LINES_MIN 16
#define NARROW_TITLE      "top"
#define WIDE_COLUMNS      50 /* from which on a table has all its columns */
#define TOTAL_WIDTH       9
#define SAMPLES_WIDTH     8
#define PID_WIDTH         8
#define PROCESSES_WIDTH   10
#define AMOUNTS_COLUMNS   64 /* from which on one of functions has amounts of other events, too */
#define BAR_MIN           4
#define BAR_MAX           20
#define HOT_PERCENT       5
#define BAD_PERCENT       1 /* of ticks that are missing */

enum style {
    STYLE_PLAIN,
    STYLE_TITLE,
    STYLE_HEAD,
    STYLE_CHOSEN,
    STYLE_WARNING,
    STYLE_HOT,
};

enum {
    PAIR_WARNING = 1,
    PAIR_HOT,
};

static bool has_colour;

static bool is_wanted(void)
{
    const char *value = getenv("NO_COLOR");
    return (value == NULL || value[0] == '\0') && has_colors();
}

void top_screen_begin(void)
{
    has_colour = is_wanted() && start_color() == OK && use_default_colors() == OK &&
                 init_pair(PAIR_WARNING, COLOR_YELLOW, -1) == OK &&
                 init_pair(PAIR_HOT, COLOR_RED, -1) == OK;
}

static attr_t attributes_of(enum style style, short *ret_pair)
{
    static const attr_t attributes[] = {
        [STYLE_PLAIN] = WA_NORMAL,   [STYLE_TITLE] = WA_BOLD,   [STYLE_HEAD] = WA_UNDERLINE,
        [STYLE_CHOSEN] = WA_REVERSE, [STYLE_WARNING] = WA_BOLD, [STYLE_HOT] = WA_NORMAL,
    };
    *ret_pair = !has_colour              ? 0
                : style == STYLE_WARNING ? PAIR_WARNING
                : style == STYLE_HOT     ? PAIR_HOT
                                         : 0;
    return attributes[style];
}

/* A part of a line. */
struct place {
    int line;
    int column;
    int width;
    enum style style;
};

static void put(const struct top_look *look, const struct place *place, const char *text)
{
    wchar_t cells[TOP_CELLS_MAX + 1];
    short pair = 0;
    if (place->width <= 0) {
        return;
    }
    attr_t attributes = attributes_of(place->style, &pair);
    size_t count = top_cells_fit(text, (size_t)place->width, look->is_utf8, cells);
    (void)wattr_set(stdscr, attributes, pair, NULL);
    (void)mvwaddnwstr(stdscr, place->line, place->column, cells, (int)count);
    (void)wattr_set(stdscr, WA_NORMAL, 0, NULL);
}

/* Texts one behind the other, as many as fit into a line. */
struct pieces {
    char line[LINE_BYTES];
    size_t used;
    size_t columns;
    bool is_full;
};

__attribute__((format(printf, 2, 3))) static void add_piece(struct pieces *pieces,
                                                            const char *format, ...)
{
    char piece[PIECE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    size_t gap = pieces->used > 0 ? 2 : 0;
    size_t length = strlen(piece);
    pieces->is_full = pieces->is_full || pieces->used + gap + length > pieces->columns ||
                      pieces->used + gap + length >= sizeof pieces->line;
    if (!pieces->is_full) {
        memset(pieces->line + pieces->used, ' ', gap);
        memcpy(pieces->line + pieces->used + gap, piece, length + 1);
        pieces->used += gap + length;
    }
}

static struct pieces begin_pieces(void)
{
    size_t columns = (size_t)getmaxx(stdscr);
    return (struct pieces){.columns = columns < TOP_CELLS_MAX ? columns : TOP_CELLS_MAX};
}

static void put_line(const struct top_look *look, int line, enum style style, const char *text)
{
    put(look, &(struct place){line, 0, getmaxx(stdscr), style}, text);
}

/* Which event is shown, and in which unit, where there are several. A long name is cut, so that the
 * unit has room. */
static void add_event(struct pieces *pieces, const struct top_look *look)
{
    const struct profile_event *event = look->event;
    const char *unit = top_events_unit(event);
    char amount[TOP_AMOUNT_BYTES];
    int columns = getmaxx(stdscr);
    int left = columns - (int)strlen(NARROW_TITLE "   ") - (int)strlen(unit);
    if (look->state->event_count < 2) {
        return;
    }
    if (event->is_clock) {
        add_piece(pieces, "%s", event->name);
    } else if (columns >= WIDE_COLUMNS) {
        add_piece(pieces, "%.*s %s %s", columns / 2, event->name,
                  top_events_amount(event, look->sums.value, amount), unit);
    } else {
        add_piece(pieces, "%.*s %s", left > 0 ? left : 0, event->name, unit);
    }
}

static void draw_title(const struct top_look *look)
{
    const struct top_screen_state *state = look->state;
    struct pieces pieces = begin_pieces();
    char clock[16];
    char count[TEXT_COUNT_BYTES];
    time_t now = time(NULL);
    struct tm local = {0};
    (void)localtime_r(&now, &local);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &local);
    add_piece(&pieces, getmaxx(stdscr) >= WIDE_COLUMNS ? "profctl top" : NARROW_TITLE);
    if (state->is_frozen) {
        add_piece(&pieces, "FROZEN");
    }
    add_event(&pieces, look);
    add_piece(&pieces, "%s", text_samples(look->sums.sample_count, count));
    add_piece(&pieces, "in %.1f s", (double)look->sums.span_ns / (double)NS_PER_S);
    if (look->books->period_ns > 0 && look->event->is_clock) {
        add_piece(&pieces, "at %.0f Hz", (double)NS_PER_S / (double)look->books->period_ns);
    }
    if (state->filter[0] != '\0') {
        add_piece(&pieces, "filter: %s", state->filter);
    }
    add_piece(&pieces, "%s", clock);
    put_line(look, 0, STYLE_TITLE, pieces.line);
}

/* "0 [|||||     ]  50%" */
static void add_bar(struct pieces *pieces, const struct top_cpu *cpu, int width)
{
    char bar[BAR_MAX + 1];
    double percent = percent_of(cpu->busy, cpu->expected);
    percent = percent > 100 ? 100 : percent;
    for (int i = 0; i < width; i++) {
        bar[i] = (double)i + 0.5 < percent / 100 * width ? '|' : ' ';
    }
    bar[width] = '\0';
    add_piece(pieces, "%" PRIu32 " [%s] %3.0f%%", cpu->cpu, bar, percent);
}

/* A bar for each CPU, a number for each, or a sentence about all, whatever fits. */
static void draw_cpus(const struct top_look *look, int line)
{
    const struct top_books *books = look->books;
    struct pieces pieces = begin_pieces();
    struct top_cpu all = {0};
    struct top_cpu busiest = {0};
    int count = (int)books->cpu_count;
    int room = count == 0 ? 0 : (getmaxx(stdscr) - 4) / count - 13;
    add_piece(&pieces, count == 0 ? "" : "CPU");
    for (int i = 0; i < count; i++) {
        const struct top_cpu *cpu = &books->cpus[i];
        double percent = percent_of(cpu->busy, cpu->expected);
        all.busy += cpu->busy;
        all.expected += cpu->expected;
        busiest = i == 0 || percent > percent_of(busiest.busy, busiest.expected) ? *cpu : busiest;
        if (room >= BAR_MIN) {
            add_bar(&pieces, cpu, room < BAR_MAX ? room : BAR_MAX);
        } else {
            add_piece(&pieces, "%" PRIu32 ":%.0f%%", cpu->cpu, percent > 100 ? 100 : percent);
        }
    }
    if (pieces.is_full) {
        pieces = begin_pieces();
        add_piece(&pieces, "%d CPUs %.0f%% busy", count, percent_of(all.busy, all.expected));
        add_piece(&pieces, "most CPU %" PRIu32 ", %.0f%%", busiest.cpu,
                  percent_of(busiest.busy, busiest.expected));
    }
    put_line(look, line, STYLE_PLAIN, pieces.line);
}

static void draw_books(const struct top_look *look, int line)
{
    const struct top_books *books = look->books;
    struct pieces pieces = begin_pieces();
    char size[32];
    double missing = percent_of(books->lost + books->missed, books->expected);
    uint64_t kept_s = look->kept.span_ns / NS_PER_S;
    add_piece(&pieces, "lost %" PRIu64, books->lost);
    add_piece(&pieces, "missed %" PRIu64 " (%.1f%%)", books->missed, missing);
    add_piece(&pieces, "truncated %" PRIu64 " (%.1f%%)", look->sums.truncated_count,
              percent_of(look->sums.truncated_count, look->sums.sample_count));
    if (books->dropped > 0) {
        add_piece(&pieces, "dropped %" PRIu64, books->dropped);
    }
    add_piece(&pieces, "kept %" PRIu64 ":%02" PRIu64 " (%s)", kept_s / 60, kept_s % 60,
              text_size(look->kept.size_bytes, size));
    put_line(look, line, missing > BAD_PERCENT || books->dropped > 0 ? STYLE_WARNING : STYLE_PLAIN,
             pieces.line);
}

/* Prints a sentence on lines that end between words. Returns how many. */
static int draw_sentence(const struct top_look *look, int line, int line_max, const char *text)
{
    size_t columns = (size_t)getmaxx(stdscr);
    int count = 0;
    while (*text != '\0' && count < line_max) {
        char part[LINE_BYTES];
        size_t bytes = text_bytes_of(text, columns);
        bytes = bytes < sizeof part ? bytes : sizeof part - 1;
        size_t end = bytes;
        while (text[bytes] != '\0' && end > 0 && text[end] != ' ') {
            end--;
        }
        bytes = end > 0 ? end : bytes;
        (void)snprintf(part, sizeof part, "%.*s", (int)bytes, text);
        put_line(look, line + count, STYLE_WARNING, part);
        text += bytes + strspn(text + bytes, " ");
        count++;
    }
    return count;
}

static bool has_amounts(const struct top_look *look)
{
    return look->state->view != TOP_FUNCTIONS ||
           (!look->event->is_clock && getmaxx(stdscr) >= AMOUNTS_COLUMNS);
}

static int amount_width(const struct top_look *look)
{
    return look->event->is_clock ? SAMPLES_WIDTH : TOP_AMOUNT_WIDTH;
}

/* The titles of the columns of numbers. Of functions, amounts are of what rows are sorted by. */
static void print_titles(const struct top_look *look, char *into)
{
    bool is_wide = getmaxx(stdscr) >= WIDE_COLUMNS;
    int width = amount_width(look);
    const char *unit = top_events_unit(look->event);
    const char *sort = look->state->sort == TOP_BY_TOTAL ? "total" : "self";
    char title[PIECE_BYTES];
    bool of_functions = look->state->view == TOP_FUNCTIONS;
    bool of_processes = look->state->view == TOP_PROCESSES;
    if (!is_wide) {
        (void)snprintf(into, PIECE_BYTES, "%s",
                       !of_functions                       ? "     %"
                       : look->state->sort == TOP_BY_TOTAL ? "total%"
                                                           : "self %");
    } else if (!has_amounts(look)) {
        (void)snprintf(into, PIECE_BYTES, " self %%  total %%");
    } else if (of_functions) {
        (void)snprintf(title, sizeof title, "%s %s", sort, unit);
        (void)snprintf(into, PIECE_BYTES, " self %%  total %% %*.*s", width, width, title);
    } else {
        (void)snprintf(into, PIECE_BYTES, "      %% %*.*s %*s", width, width, unit,
                       of_processes ? PID_WIDTH : PROCESSES_WIDTH,
                       of_processes ? "pid" : "processes");
    }
}

/* The numbers of a row: all of them, or the one that rows are sorted by. */
static void print_numbers(const struct top_look *look, const struct top_row *row, char *into)
{
    bool is_wide = getmaxx(stdscr) >= WIDE_COLUMNS;
    double self = percent_of(row->self, look->sums.value);
    double total = percent_of(row->total, look->sums.value);
    int width = amount_width(look);
    bool by_total = look->state->sort == TOP_BY_TOTAL;
    char amount[TOP_AMOUNT_BYTES];
    (void)top_events_amount(look->event, by_total ? row->total : row->self, amount);
    if (!is_wide) {
        (void)snprintf(into, PIECE_BYTES, "%6.2f", by_total ? total : self);
    } else if (!has_amounts(look)) {
        (void)snprintf(into, PIECE_BYTES, " %6.2f   %6.2f", self, total);
    } else if (look->state->view == TOP_FUNCTIONS) {
        (void)snprintf(into, PIECE_BYTES, " %6.2f   %6.2f %*s", self, total, width, amount);
    } else if (look->state->view == TOP_PROCESSES) {
        (void)snprintf(into, PIECE_BYTES, " %6.2f %*s %*" PRId64, self, width, amount, PID_WIDTH,
                       (int64_t)row->pid);
    } else {
        (void)snprintf(into, PIECE_BYTES, " %6.2f %*s %*" PRIu64, self, width, amount,
                       PROCESSES_WIDTH, row->process_count);
    }
}

static const char *basename_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

/* Numbers, a name and, where there is room, its module. */
static void draw_texts(const struct top_look *look, int line, enum style style,
                       const char *const texts[3])
{
    int columns = getmaxx(stdscr);
    int numbers = (int)strlen(texts[0]);
    int names = columns - numbers - 2;
    int modules = texts[2] != NULL && columns >= WIDE_COLUMNS ? names / 3 : 0;
    names -= modules > 0 ? modules + 2 : 0;
    put_line(look, line, style, "");
    put(look, &(struct place){line, 0, numbers, style}, texts[0]);
    put(look, &(struct place){line, numbers + 2, names, style}, texts[1]);
    put(look, &(struct place){line, numbers + names + 4, modules, style},
        texts[2] == NULL ? "" : texts[2]);
}

static void draw_head(const struct top_look *look, int line)
{
    static const char *const titles[TOP_VIEWS] = {
        [TOP_FUNCTIONS] = "function", [TOP_PROCESSES] = "process", [TOP_UNITS] = "unit"};
    bool of_functions = look->state->view == TOP_FUNCTIONS;
    bool is_wide = getmaxx(stdscr) >= WIDE_COLUMNS; /* else the number's title says it */
    char numbers[PIECE_BYTES];
    char title[PIECE_BYTES];
    print_titles(look, numbers);
    (void)snprintf(title, sizeof title, "%s%s", titles[look->state->view],
                   !of_functions || !is_wide           ? ""
                   : look->state->sort == TOP_BY_TOTAL ? " (by total)"
                                                       : " (by self)");
    draw_texts(look, line, STYLE_HEAD,
               (const char *const[]){numbers, title, of_functions ? "module" : NULL});
}

static void draw_row(const struct top_look *look, int line, size_t number)
{
    const struct top_row *row = &look->rows->rows[number];
    char numbers[PIECE_BYTES];
    bool is_hot = percent_of(row->self, look->sums.value) >= HOT_PERCENT;
    enum style style = number == look->state->chosen ? STYLE_CHOSEN
                       : is_hot                      ? STYLE_HOT
                                                     : STYLE_PLAIN;
    print_numbers(look, row, numbers);
    draw_texts(look, line, style,
               (const char *const[]){numbers, row->name,
                                     row->module == NULL ? NULL : basename_of(row->module)});
}

/* Draws the part of the table that has the chosen row. */
static void draw_rows(const struct top_look *look, int line, int end)
{
    struct top_screen_state *state = look->state;
    state->page = end > line ? (size_t)(end - line) : 1;
    if (state->chosen < state->first) {
        state->first = state->chosen;
    } else if (state->chosen >= state->first + state->page) {
        state->first = state->chosen - state->page + 1;
    }
    for (size_t i = state->first; i < look->rows->count && line < end; i++, line++) {
        draw_row(look, line, i);
    }
    if (look->rows->count == 0 && line < end) {
        put_line(look, line, STYLE_PLAIN,
                 look->sums.sample_count > 0 ? "nothing matches the filter" : look->nothing);
    }
}

/* The share of a caller, and its amount, below those of the table. */
static void print_caller(const struct top_look *look, const struct top_row *row, uint64_t all,
                         char *into)
{
    bool is_clock = look->event->is_clock;
    char amount[TOP_AMOUNT_BYTES] = "";
    if (is_clock || has_amounts(look)) {
        (void)top_events_amount(look->event, row->total, amount);
    }
    (void)snprintf(into, PIECE_BYTES, " %6.2f %*s", percent_of(row->total, all),
                   is_clock || !has_amounts(look) ? SAMPLES_WIDTH : TOTAL_WIDTH + TOP_AMOUNT_WIDTH,
                   amount);
}

static void draw_callers(const struct top_look *look, int line, int end)
{
    const struct top_screen_state *state = look->state;
    char title[LINE_BYTES];
    uint64_t all = 0;
    if (state->chosen_name == NULL) {
        return;
    }
    (void)snprintf(title, sizeof title, "callers of %s", state->chosen_name);
    put_line(look, line++, STYLE_HEAD, title);
    for (size_t i = 0; i < look->callers->count; i++) {
        all += look->callers->rows[i].total;
    }
    for (size_t i = 0; i < look->callers->count && line < end; i++, line++) {
        const struct top_row *row = &look->callers->rows[i];
        char numbers[PIECE_BYTES];
        print_caller(look, row, all, numbers);
        draw_texts(look, line, STYLE_PLAIN,
                   (const char *const[]){numbers, row->name, basename_of(row->module)});
    }
}

static void draw_hints(const struct top_look *look, int line)
{
    /* Those that matter most first: what does not fit is left out. */
    static const char *const hints[] = {"q quit",   "? help",      "/ filter",  "f p u views",
                                        "e events", "s sort",      "c callers", "w save",
                                        "+ - rate", "space freeze"};
    struct pieces pieces = begin_pieces();
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        if (hints[i][0] != 'e' || look->state->event_count > 1) {
            add_piece(&pieces, "%s", hints[i]);
        }
    }
    put_line(look, line, STYLE_PLAIN, pieces.line);
}

static void draw_foot(const struct top_look *look, int line)
{
    const struct top_screen_state *state = look->state;
    char text[TOP_INPUT_BYTES + 32];
    if (state->prompt != TOP_NO_PROMPT) {
        (void)snprintf(text, sizeof text, "%s: %s_",
                       state->prompt == TOP_ASK_FILTER ? "filter" : "save as", state->input);
        put_line(look, line, STYLE_TITLE, text);
    } else if (look->message[0] != '\0') {
        put_line(look, line, STYLE_TITLE, look->message);
    } else {
        draw_hints(look, line);
    }
}

static void draw_help(const struct top_look *look)
{
    static const char *const lines[] = {
        "profctl top: where the CPUs' time goes now",
        "",
        "up down, PgUp PgDn, Home End   choose a row",
        "f p u, Tab   functions, processes, units",
        "e            the next event: CPU time, off-cpu, preempted (--wall)",
        "s            sort by self or total",
        "c, Enter     show or hide what called the chosen function",
        "/            filter by a part of a name; Esc: no filter",
        "space        freeze, or go on",
        "+ -          more or fewer samples a second (a new session)",
        "w            save the last minutes as a recording",
        "q            quit",
        "",
        "self: in the function itself; total: also in what it called.",
        "The last 5 minutes are kept to be saved, 64 MiB at most.",
        "any other key goes back",
    };
    for (int i = 0; i < (int)(sizeof lines / sizeof lines[0]) && i < getmaxy(stdscr); i++) {
        put_line(look, i, i == 0 ? STYLE_TITLE : STYLE_PLAIN, lines[i]);
    }
}

static void draw_all(struct top_look *look)
{
    int lines = getmaxy(stdscr);
    int line = 1;
    int end = lines - 1;
    draw_title(look);
    if (look->trouble[0] != '\0') {
        line += draw_sentence(look, line, lines < HEAD_LINES_MIN ? lines - 3 : 4, look->trouble);
    } else if (lines >= HEAD_LINES_MIN) {
        draw_cpus(look, line++);
    }
    if (lines >= HEAD_LINES_MIN) {
        draw_books(look, line++);
    }
    draw_foot(look, end);
    if (look->state->view == TOP_FUNCTIONS && !look->state->hides_callers &&
        lines >= CALLERS_LINES_MIN) {
        int most = (lines - line) / 3;
        int callers_line =
            end - ((int)look->callers->count < most ? (int)look->callers->count + 1 : most);
        draw_callers(look, callers_line, end);
        end = callers_line;
    }
    draw_head(look, line++);
    draw_rows(look, line, end);
}

void top_screen_draw(struct top_look *look)
{
    (void)werase(stdscr);
    if (getmaxx(stdscr) < TOP_COLUMNS_MIN || getmaxy(stdscr) < TOP_LINES_MIN) {
        put_line(look, 0, STYLE_PLAIN, "too small");
    } else if (look->state->has_help) {
        draw_help(look);
    } else {
        draw_all(look);
    }
    (void)wrefresh(stdscr);
}

static enum top_key_code code_of(wint_t code)
{
    switch (code) {
    case KEY_UP:
        return TOP_KEY_UP;
    case KEY_DOWN:
        return TOP_KEY_DOWN;
    case KEY_PPAGE:
        return TOP_KEY_PAGE_UP;
    case KEY_NPAGE:
        return TOP_KEY_PAGE_DOWN;
    case KEY_HOME:
        return TOP_KEY_HOME;
    case KEY_END:
        return TOP_KEY_END;
    case KEY_ENTER:
        return TOP_KEY_ENTER;
    case KEY_BACKSPACE:
        return TOP_KEY_BACKSPACE;
    default:
        return TOP_KEY_OTHER;
    }
}

bool top_screen_key(struct top_key *ret)
{
    wint_t code = 0;
    int r = wget_wch(stdscr, &code);
    if (r == ERR) {
        return false;
    }
    *ret = (struct top_key){.is_character = r != KEY_CODE_YES, .code = code};
    if (r == KEY_CODE_YES) {
        ret->code = code_of(code);
    } else if (code == '\r' || code == '\n') {
        *ret = (struct top_key){.code = TOP_KEY_ENTER};
    } else if (code == 0x1b) {
        *ret = (struct top_key){.code = TOP_KEY_ESCAPE};
    } else if (code == 0x7f || code == '\b') {
        *ret = (struct top_key){.code = TOP_KEY_BACKSPACE};
    }
    return true;
}
