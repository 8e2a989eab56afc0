/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A prompt takes all keys until Enter or Escape; without one each key has one meaning. A row is
 * remembered by its texts, since rows move with every look.
 */
#include "top_state.h"

#include "cleanup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const uint64_t rates_hz[] = {19, 49, 99, 199, 499, 999, 1999, 3999};
#define RATE_COUNT (sizeof rates_hz / sizeof rates_hz[0])

uint64_t top_state_first_rate(size_t cpu_count)
{
    size_t i = 0;
    while (rates_hz[i + 1] <= TOP_FREQUENCY_HZ &&
           rates_hz[i + 1] * cpu_count <= TOP_SAMPLES_PER_S) {
        i++;
    }
    return rates_hz[i];
}

uint64_t top_state_next_rate(uint64_t rate_hz, bool is_up)
{
    size_t i = 0;
    if (is_up) {
        while (i < RATE_COUNT - 1 && rates_hz[i] <= rate_hz) {
            i++;
        }
        return rates_hz[i] > rate_hz ? rates_hz[i] : rate_hz;
    }
    i = RATE_COUNT - 1;
    while (i > 0 && rates_hz[i] >= rate_hz) {
        i--;
    }
    return rates_hz[i] < rate_hz ? rates_hz[i] : rate_hz;
}

static void forget_choice(struct top_screen_state *state)
{
    free(state->chosen_name);
    free(state->chosen_module);
    state->chosen_name = NULL;
    state->chosen_module = NULL;
    state->chosen_pid = 0;
}

void top_state_done(struct top_screen_state *state)
{
    forget_choice(state);
}

/* Goes to a row; the next look remembers what it is. */
static void choose(struct top_screen_state *state, size_t row)
{
    forget_choice(state);
    state->chosen = row < state->row_count ? row : state->row_count - 1;
    state->chosen = state->row_count == 0 ? 0 : state->chosen;
}

static void show_view(struct top_screen_state *state, enum top_view view)
{
    state->view = view;
    state->has_choice = false;
    state->first = 0;
    choose(state, 0);
}

static bool is_chosen(const struct top_screen_state *state, const struct top_row *row)
{
    return row->pid == state->chosen_pid && strcmp(row->name, state->chosen_name) == 0 &&
           strcmp(row->module == NULL ? "" : row->module, state->chosen_module) == 0;
}

int top_state_place(struct top_screen_state *state, const struct top_rows *rows)
{
    state->row_count = rows->count;
    if (!state->has_choice) {
        choose(state, 0);
    }
    for (size_t i = 0; i < rows->count && state->chosen_name != NULL; i++) {
        if (is_chosen(state, &rows->rows[i])) {
            state->chosen = i;
            return 0;
        }
    }
    choose(state, state->chosen);
    if (rows->count == 0) {
        return 0;
    }
    const struct top_row *row = &rows->rows[state->chosen];
    state->chosen_name = strdup(row->name);
    state->chosen_module = strdup(row->module == NULL ? "" : row->module);
    state->chosen_pid = row->pid;
    if (state->chosen_name == NULL || state->chosen_module == NULL) {
        forget_choice(state);
        return -ENOMEM;
    }
    return 0;
}

/* Takes the last character away, of one or several bytes. */
static void erase(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && ((unsigned char)text[length - 1] & 0xc0U) == 0x80) {
        length--;
    }
    text[length > 0 ? length - 1 : 0] = '\0';
}

/* Adds a character to what was typed, if there is room. */
static void add(char *text, wint_t character)
{
    size_t length = strlen(text);
    char bytes[MB_LEN_MAX];
    mbstate_t shift = {0};
    size_t count = wcrtomb(bytes, (wchar_t)character, &shift);
    if (count != (size_t)-1 && character >= ' ' && character != 0x7f &&
        length + count < TOP_INPUT_BYTES) {
        memcpy(text + length, bytes, count);
        text[length + count] = '\0';
    }
}

static enum top_act type(struct top_screen_state *state, const struct top_key *key)
{
    enum top_prompt prompt = state->prompt;
    bool is_entered = !key->is_character && key->code == TOP_KEY_ENTER;
    bool is_left = !key->is_character && key->code == TOP_KEY_ESCAPE;
    if (is_entered || is_left) {
        state->prompt = TOP_NO_PROMPT;
    } else if (key->is_character) {
        add(state->input, key->code);
    } else if (key->code == TOP_KEY_BACKSPACE) {
        erase(state->input);
    }
    if (prompt == TOP_ASK_FILTER) {
        (void)snprintf(state->filter, sizeof state->filter, "%s",
                       is_left ? state->old_filter : state->input);
        state->first = 0;
    }
    return prompt == TOP_ASK_FILE && is_entered && state->input[0] != '\0' ? TOP_ACT_SAVE
                                                                           : TOP_ACT_NONE;
}

static void ask(struct top_screen_state *state, enum top_prompt prompt, const char *input)
{
    state->prompt = prompt;
    (void)snprintf(state->input, sizeof state->input, "%s", input);
    (void)snprintf(state->old_filter, sizeof state->old_filter, "%s", state->filter);
}

/* A rate that is not known is that of the config. */
static enum top_act change_rate(struct top_screen_state *state, bool is_up)
{
    if (state->rate_hz == 0) {
        return TOP_ACT_NONE;
    }
    state->wanted_hz = top_state_next_rate(state->rate_hz, is_up);
    return state->wanted_hz == state->rate_hz ? TOP_ACT_NONE : TOP_ACT_RATE;
}

/* What is chosen stays chosen, as far as the other event has it. */
static enum top_act show_next_event(struct top_screen_state *state)
{
    if (state->event_count < 2) {
        return TOP_ACT_ALONE;
    }
    state->event = (state->event + 1) % state->event_count;
    return TOP_ACT_NONE;
}

static void name_file(struct top_screen_state *state)
{
    char name[TOP_INPUT_BYTES];
    time_t now = time(NULL);
    struct tm local = {0};
    (void)localtime_r(&now, &local);
    (void)strftime(name, sizeof name, "top-%Y%m%d-%H%M%S.fxt", &local);
    ask(state, TOP_ASK_FILE, name);
}

static void move_choice(struct top_screen_state *state, wint_t code)
{
    size_t page = state->page == 0 ? 1 : state->page;
    state->has_choice = code == TOP_KEY_ENTER ? state->has_choice : code != TOP_KEY_HOME;
    switch (code) {
    case TOP_KEY_UP:
        choose(state, state->chosen > 0 ? state->chosen - 1 : 0);
        break;
    case TOP_KEY_DOWN:
        choose(state, state->chosen + 1);
        break;
    case TOP_KEY_PAGE_UP:
        choose(state, state->chosen > page ? state->chosen - page : 0);
        break;
    case TOP_KEY_PAGE_DOWN:
        choose(state, state->chosen + page);
        break;
    case TOP_KEY_HOME:
        choose(state, 0);
        break;
    case TOP_KEY_END:
        choose(state, state->row_count);
        break;
    case TOP_KEY_ENTER:
        state->hides_callers = !state->hides_callers;
        break;
    default:
        break;
    }
}

static enum top_act press(struct top_screen_state *state, wint_t character)
{
    switch (character) {
    case 'q':
        return TOP_ACT_QUIT;
    case 'f':
        show_view(state, TOP_FUNCTIONS);
        break;
    case 'p':
        show_view(state, TOP_PROCESSES);
        break;
    case 'u':
        show_view(state, TOP_UNITS);
        break;
    case '\t':
        show_view(state, (enum top_view)((state->view + 1) % TOP_VIEWS));
        break;
    case 'e':
        return show_next_event(state);
    case 's':
        state->sort = state->sort == TOP_BY_SELF ? TOP_BY_TOTAL : TOP_BY_SELF;
        break;
    case 'c':
        state->hides_callers = !state->hides_callers;
        break;
    case '/':
        ask(state, TOP_ASK_FILTER, state->filter);
        break;
    case 'w':
        name_file(state);
        break;
    case ' ':
        state->is_frozen = !state->is_frozen;
        break;
    case '+':
    case '-':
        return change_rate(state, character == '+');
    case '?':
    case 'h':
        state->has_help = true;
        break;
    default:
        break;
    }
    return TOP_ACT_NONE;
}

enum top_act top_state_key(struct top_screen_state *state, const struct top_key *key)
{
    if (state->has_help) {
        state->has_help = false;
        return key->is_character && key->code == 'q' ? TOP_ACT_QUIT : TOP_ACT_NONE;
    }
    if (state->prompt != TOP_NO_PROMPT) {
        return type(state, key);
    }
    if (key->is_character) {
        return press(state, key->code);
    }
    if (key->code == TOP_KEY_ESCAPE) {
        state->filter[0] = '\0';
    } else {
        move_choice(state, key->code);
    }
    return TOP_ACT_NONE;
}
