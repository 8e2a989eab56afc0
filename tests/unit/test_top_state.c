/* SPDX-License-Identifier: Apache-2.0 */

/* Which key of profctl top does what. */
#include "top_state.h"
#include "unit_test.h"

#include <locale.h>

static int take_locale(void **state)
{
    (void)state;
    return setlocale(LC_CTYPE, "C.UTF-8") == NULL;
}

TEST_GROUP(take_locale, NULL)

static enum top_act press(struct top_screen_state *state, wint_t character)
{
    return top_state_key(state, &(struct top_key){.is_character = true, .code = character});
}

static enum top_act press_other(struct top_screen_state *state, enum top_key_code code)
{
    return top_state_key(state, &(struct top_key){.code = code});
}

/* Rows that are called by the letters of a text. */
static void place(struct top_screen_state *state, const char *letters)
{
    static char names[16][2];
    struct top_row rows[16] = {0};
    struct top_rows all = {rows, strlen(letters)};
    for (size_t i = 0; i < all.count; i++) {
        names[i][0] = letters[i];
        rows[i].name = names[i];
        rows[i].module = "m";
    }
    assert_int_equal(top_state_place(state, &all), 0);
}

TEST(follows_the_first_row_until_one_is_chosen)
{
    struct top_screen_state screen = {.page = 2};
    place(&screen, "abc");
    assert_string_equal(screen.chosen_name, "a");
    place(&screen, "cab");
    assert_string_equal(screen.chosen_name, "c");
    (void)press_other(&screen, TOP_KEY_DOWN);
    place(&screen, "cab");
    assert_string_equal(screen.chosen_name, "a");
    place(&screen, "bca");
    assert_int_equal(screen.chosen, 2);
    place(&screen, "bc"); /* it is gone: the one in its place, or the last */
    assert_string_equal(screen.chosen_name, "c");
    (void)press_other(&screen, TOP_KEY_HOME);
    place(&screen, "xbc");
    assert_string_equal(screen.chosen_name, "x");
    place(&screen, "");
    assert_null(screen.chosen_name);
    place(&screen, "y");
    assert_string_equal(screen.chosen_name, "y");
    top_state_done(&screen);
}

TEST(moves_by_rows_and_pages_and_stays_within_them)
{
    struct top_screen_state screen = {.page = 3};
    place(&screen, "abcdefgh");
    (void)press_other(&screen, TOP_KEY_UP);
    assert_int_equal(screen.chosen, 0);
    (void)press_other(&screen, TOP_KEY_PAGE_DOWN);
    assert_int_equal(screen.chosen, 3);
    (void)press_other(&screen, TOP_KEY_END);
    assert_int_equal(screen.chosen, 7);
    (void)press_other(&screen, TOP_KEY_PAGE_DOWN);
    assert_int_equal(screen.chosen, 7);
    (void)press_other(&screen, TOP_KEY_PAGE_UP);
    assert_int_equal(screen.chosen, 4);
    top_state_done(&screen);
}

TEST(filters_while_it_is_typed_and_goes_back)
{
    struct top_screen_state screen = {0};
    (void)press(&screen, '/');
    (void)press(&screen, 'q'); /* a letter now */
    (void)press(&screen, 0xe4);
    assert_string_equal(screen.filter, "q\xc3\xa4");
    (void)press_other(&screen, TOP_KEY_BACKSPACE);
    assert_string_equal(screen.filter, "q");
    (void)press(&screen, 0x1f); /* no character that is shown */
    (void)press_other(&screen, TOP_KEY_ENTER);
    assert_int_equal(screen.prompt, TOP_NO_PROMPT);
    assert_string_equal(screen.filter, "q");
    (void)press(&screen, '/');
    (void)press(&screen, 'x');
    assert_string_equal(screen.filter, "qx");
    (void)press_other(&screen, TOP_KEY_ESCAPE);
    assert_string_equal(screen.filter, "q");
    (void)press_other(&screen, TOP_KEY_ESCAPE);
    assert_string_equal(screen.filter, "");
    (void)press(&screen, '/');
    for (size_t i = 0; i < 2 * TOP_INPUT_BYTES; i++) {
        (void)press(&screen, 'x');
    }
    assert_int_equal(strlen(screen.filter), TOP_INPUT_BYTES - 1);
    for (size_t i = 0; i < 2 * TOP_INPUT_BYTES; i++) {
        (void)press_other(&screen, TOP_KEY_BACKSPACE);
    }
    assert_string_equal(screen.filter, "");
    top_state_done(&screen);
}

TEST(asks_for_the_name_of_a_file)
{
    struct top_screen_state screen = {0};
    assert_int_equal(press(&screen, 'w'), TOP_ACT_NONE);
    assert_int_equal(strncmp(screen.input, "top-", 4), 0);
    assert_int_equal(press(&screen, 'z'), TOP_ACT_NONE);
    assert_int_equal(press_other(&screen, TOP_KEY_ENTER), TOP_ACT_SAVE);
    assert_string_equal(screen.input + strlen(screen.input) - 5, ".fxtz");
    (void)press(&screen, 'w');
    assert_int_equal(press_other(&screen, TOP_KEY_ESCAPE), TOP_ACT_NONE);
    (void)press(&screen, 'w');
    for (size_t i = 0; i < 64; i++) {
        (void)press_other(&screen, TOP_KEY_BACKSPACE);
    }
    assert_int_equal(press_other(&screen, TOP_KEY_ENTER), TOP_ACT_NONE); /* no name, no file */
    assert_string_equal(screen.filter, "");
    top_state_done(&screen);
}

TEST(takes_each_key_for_one_thing)
{
    struct top_screen_state screen = {.rate_hz = 499};
    assert_int_equal(press(&screen, 'q'), TOP_ACT_QUIT);
    (void)press(&screen, 'p');
    assert_int_equal(screen.view, TOP_PROCESSES);
    (void)press(&screen, '\t');
    assert_int_equal(screen.view, TOP_UNITS);
    (void)press(&screen, '\t');
    assert_int_equal(screen.view, TOP_FUNCTIONS);
    (void)press(&screen, 's');
    assert_int_equal(screen.sort, TOP_BY_TOTAL);
    (void)press(&screen, ' ');
    assert_true(screen.is_frozen);
    (void)press(&screen, '?');
    assert_true(screen.has_help);
    (void)press(&screen, ' '); /* leaves the help, and no more */
    assert_false(screen.has_help);
    assert_true(screen.is_frozen);
    (void)press_other(&screen, TOP_KEY_ENTER);
    assert_true(screen.hides_callers);
    assert_int_equal(press(&screen, 'e'), TOP_ACT_ALONE);
    assert_int_equal(press(&screen, '+'), TOP_ACT_RATE);
    assert_int_equal(screen.wanted_hz, 999);
    top_state_done(&screen);
}

TEST(goes_round_the_events_and_keeps_what_is_chosen)
{
    struct top_screen_state screen = {.event_count = 3, .filter = "part"};
    place(&screen, "abc");
    (void)press_other(&screen, TOP_KEY_DOWN);
    place(&screen, "abc");
    assert_int_equal(press(&screen, 'e'), TOP_ACT_NONE);
    assert_int_equal(screen.event, 1);
    place(&screen, "cxb");
    assert_string_equal(screen.chosen_name, "b");
    assert_int_equal(screen.chosen, 2);
    assert_string_equal(screen.filter, "part");
    (void)press(&screen, 'e');
    assert_int_equal(screen.event, 2);
    (void)press(&screen, 'e');
    assert_int_equal(screen.event, 0);
    top_state_done(&screen);
}

TEST(steps_through_rates_and_ends_where_they_do)
{
    assert_int_equal(top_state_next_rate(499, true), 999);
    assert_int_equal(top_state_next_rate(499, false), 199);
    assert_int_equal(top_state_next_rate(500, false), 499);
    assert_int_equal(top_state_next_rate(3999, true), 3999);
    assert_int_equal(top_state_next_rate(10000, true), 10000);
    assert_int_equal(top_state_next_rate(10000, false), 3999);
    assert_int_equal(top_state_next_rate(19, false), 19);
    assert_int_equal(top_state_next_rate(1, true), 19);
}

TEST(begins_slower_on_more_cpus)
{
    static const struct {
        size_t cpus;
        uint64_t rate_hz;
    } cases[] = {{1, 499}, {5, 499}, {6, 199}, {12, 199}, {16, 99}, {64, 19}, {4096, 19}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(top_state_first_rate(cases[i].cpus), cases[i].rate_hz);
    }
}
