/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the screen of profctl top shows, and which key changes what of it. Pure: neither a terminal
 * nor a session.
 */

#include "top_model.h"
#include "top_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define TOP_INPUT_BYTES ((size_t)256)

enum top_prompt {
    TOP_NO_PROMPT,
    TOP_ASK_FILTER,
    TOP_ASK_FILE,
};

/* What the loop has to do after a key. */
enum top_act {
    TOP_ACT_NONE,
    TOP_ACT_QUIT,
    TOP_ACT_SAVE,  /* into the file that `input` names */
    TOP_ACT_RATE,  /* `wanted_hz` */
    TOP_ACT_ALONE, /* say that there is no other event */
};

struct top_screen_state {
    enum top_view view;
    enum top_sort sort;
    uint32_t event;       /* that is shown, one of */
    uint32_t event_count; /* those of the session */
    char filter[TOP_INPUT_BYTES];
    enum top_prompt prompt;
    char input[TOP_INPUT_BYTES]; /* what was typed so far */
    char old_filter[TOP_INPUT_BYTES];
    bool is_frozen;
    bool has_help;
    bool hides_callers;
    bool has_choice;   /* else the first row is chosen, whichever that is */
    char *chosen_name; /* owned; of the row that is chosen, wherever it stands; NULL: none */
    char *chosen_module;
    uint64_t chosen_pid;
    size_t chosen; /* where it stands, among `row_count` */
    size_t row_count;
    size_t first;     /* the first row on the screen */
    size_t page;      /* how many rows that has */
    uint64_t rate_hz; /* of the session */
    uint64_t wanted_hz;
};

/* A key, or a character that was typed: a code of its own where it is no character. */
struct top_key {
    bool is_character;
    wint_t code;
};

/* Codes of keys that are no characters. */
enum top_key_code {
    TOP_KEY_OTHER,
    TOP_KEY_UP,
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_BACKSPACE,
};

enum top_act top_state_key(struct top_screen_state *state, const struct top_key *key);
void top_state_done(struct top_screen_state *state);

/* Finds the chosen row among new ones: by what it is or, where it is gone, by where it stood. */
int top_state_place(struct top_screen_state *state, const struct top_rows *rows);

/* The rate that is taken where the user asks for none: at most TOP_FREQUENCY_HZ, and less where so
 * many CPUs would give more than TOP_SAMPLES_PER_S, since each sample costs profctl some time. */
#define TOP_FREQUENCY_HZ  UINT64_C(499)
#define TOP_SAMPLES_PER_S UINT64_C(2500)
uint64_t top_state_first_rate(size_t cpu_count);

/* The next rate of a few, up or down. */
uint64_t top_state_next_rate(uint64_t rate_hz, bool is_up);
