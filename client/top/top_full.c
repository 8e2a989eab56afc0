/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop of the screen: signals, keys and news, then a new look at the window. It waits for
 * nothing else: the session has its own thread, so keys work while the daemon does not.
 */
#include "top_full.h"

#include "cleanup.h"
#include "clock.h"
#include "options.h"
#include "text_out.h"
#include "top_nothing.h"
#include "top_screen.h"
#include "top_session.h"
#include "top_terminal.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define TICK_MS        1000
#define MESSAGE_NS     (8 * NS_PER_S)
#define SILENT_NS      (2 * NS_PER_S) /* a daemon that owes an answer for longer is spoken of */
#define EMPTY_KEYS_MAX 3              /* a terminal that has only these to read is gone */

struct full {
    const struct top_request *request;
    struct top_session session;
    struct top_screen_state state;
    char message[TOP_TEXT_BYTES];
    uint64_t message_until_ns;
    char trouble[TOP_TEXT_BYTES];
    uint64_t due_ns; /* when the next look is; a key makes one at once */
    unsigned empty_keys;
    bool is_utf8;
    bool is_event_known; /* the one that is shown first has been found */
    bool is_over;
    struct fault fault; /* why it is over; code 0: its user wanted it */
};

static void say(struct full *full, const char *text)
{
    (void)snprintf(full->message, sizeof full->message, "%s", text);
    full->message_until_ns = clock_ns(CLOCK_MONOTONIC) + MESSAGE_NS;
}

static void save(struct full *full)
{
    char text[TOP_TEXT_BYTES];
    char count[TEXT_COUNT_BYTES];
    struct fault fault = {0};
    struct top_kept kept;
    struct top_saved saved = {0};
    char events[TEXT_COUNT_BYTES + 24] = "";
    if (strcmp(full->state.input, "-") == 0) {
        say(full, "not saved: standard output is the screen; name a file");
        return;
    }
    top_intake_kept(full->session.intake, clock_ns(CLOCK_BOOTTIME), &kept);
    if (top_intake_save(full->session.intake, full->state.input, &saved, &fault) < 0) {
        /* What it advises behind its last semicolon is an option of verbs that have one. */
        const char *advice = strrchr(fault.text, ';');
        (void)snprintf(text, sizeof text, "not saved: %.*s",
                       advice == NULL ? (int)sizeof text : (int)(advice - fault.text), fault.text);
    } else {
        if (saved.event_sample_count > 0) {
            (void)snprintf(events, sizeof events, ", %" PRIu64 " of other events,",
                           saved.event_sample_count);
        }
        (void)snprintf(text, sizeof text, "saved %s%s of %" PRIu64 " s in %s",
                       text_samples(saved.sample_count, count), events, kept.span_ns / NS_PER_S,
                       full->state.input);
    }
    say(full, text);
}

static void act(struct full *full, enum top_act what)
{
    char text[64];
    switch (what) {
    case TOP_ACT_NONE:
        break;
    case TOP_ACT_QUIT:
        full->is_over = true;
        break;
    case TOP_ACT_SAVE:
        save(full);
        break;
    case TOP_ACT_RATE:
        full->state.rate_hz = full->state.wanted_hz;
        top_source_set_rate(full->session.source, full->state.wanted_hz);
        (void)snprintf(text, sizeof text, "%" PRIu64 " Hz: a new session begins",
                       full->state.wanted_hz);
        say(full, text);
        break;
    case TOP_ACT_ALONE:
        say(full, "the session has no other event: --wall adds off-cpu and preempted, -e others");
        break;
    }
}

/* `is_readable`: the terminal has something, if only its end. */
static void take_keys(struct full *full, bool is_readable)
{
    struct top_key key;
    bool is_empty = true;
    while (!full->is_over && top_screen_key(&key)) {
        is_empty = false;
        act(full, top_state_key(&full->state, &key));
        full->due_ns = 0;
    }
    full->empty_keys = is_readable && is_empty ? full->empty_keys + 1 : 0;
    full->is_over = full->is_over || full->empty_keys > EMPTY_KEYS_MAX;
}

static void take_signals(struct full *full)
{
    struct top_signals signals = top_terminal_signals();
    full->is_over = full->is_over || signals.is_ending;
    if (signals.is_resized) {
        top_terminal_resize();
        full->due_ns = 0;
    }
    if (signals.is_suspending && !full->is_over) {
        top_source_pause(full->session.source);
        top_terminal_suspend();
        top_source_resume(full->session.source);
        signals.is_continued = true;
    }
    if (signals.is_continued) {
        top_terminal_retake();
        full->due_ns = 0;
    }
}

/* Counts the events of the session, and finds the one that is shown first. */
static void take_events(struct full *full)
{
    const struct top_events *events = top_intake_events(full->session.intake);
    full->state.event_count = (uint32_t)events->count;
    if (!full->is_event_known) {
        int r = top_events_choose(events, full->request->event, &full->state.event, &full->fault);
        full->is_event_known = r == 0;
        full->is_over = full->is_over || full->fault.code != 0;
    }
}

static void take_news(struct full *full)
{
    struct top_news news;
    if (top_session_take(&full->session, full->state.is_frozen, &news, &full->fault) < 0) {
        full->is_over = true;
        return;
    }
    take_events(full);
    if (news.note[0] != '\0') {
        say(full, news.note);
    }
    if (news.frequency_hz > 0 && news.state == TOP_RUNNING) {
        full->state.rate_hz = news.frequency_hz;
    }
    bool was_well = full->trouble[0] == '\0';
    if (news.silent_ns > SILENT_NS) {
        (void)snprintf(full->trouble, sizeof full->trouble,
                       "the daemon has not answered for %" PRIu64 " s", news.silent_ns / NS_PER_S);
    } else if (news.state == TOP_BUSY) {
        (void)snprintf(full->trouble, sizeof full->trouble, "waiting: %.*s",
                       (int)(sizeof full->trouble - 16), news.text);
    } else {
        (void)snprintf(full->trouble, sizeof full->trouble, "%.*s%s",
                       (int)(sizeof full->trouble - 48), news.text,
                       news.text[0] == '\0' ? "" : "; trying again each second");
    }
    if (was_well != (full->trouble[0] == '\0')) {
        full->due_ns = 0;
    }
}

static int look_and_draw(struct full *full)
{
    const struct top_model *model = top_intake_model(full->session.intake);
    const struct top_events *events = top_intake_events(full->session.intake);
    struct top_screen_state *state = &full->state;
    struct top_rows rows = {0};
    struct top_rows callers = {0};
    struct top_books books = {0};
    char nothing[TOP_NOTHING_BYTES];
    const struct top_query query = {state->view, state->sort, state->event, state->filter};
    int r = top_model_rows(model, &query, &rows);
    if (r == 0) {
        r = top_state_place(state, &rows);
    }
    if (r == 0 && state->view == TOP_FUNCTIONS && state->chosen_name != NULL) {
        r = top_model_callers(model, state->event, state->chosen_name, state->chosen_module,
                              &callers);
    }
    if (r == 0) {
        r = top_history_difference(&full->session.history, &books);
    }
    if (r == 0) {
        bool is_old = clock_ns(CLOCK_MONOTONIC) >= full->message_until_ns;
        struct top_look look = {
            .state = state,
            .rows = &rows,
            .callers = &callers,
            .books = &books,
            .event = &events->all[state->event],
            .nothing = top_nothing_text(model, events, state->event, true, nothing),
            .trouble = full->trouble,
            .message = is_old ? "" : full->message,
            .is_utf8 = full->is_utf8,
        };
        top_model_sum(model, state->event, &look.sums);
        top_intake_kept(full->session.intake, clock_ns(CLOCK_BOOTTIME), &look.kept);
        top_screen_draw(&look);
    }
    top_rows_done(&rows);
    top_rows_done(&callers);
    top_books_done(&books);
    return r < 0 ? fault_set(&full->fault, ENOMEM, "there is not enough memory") : 0;
}

static void wait_for_events(struct full *full)
{
    struct pollfd events[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = top_terminal_fd(), .events = POLLIN},
        {.fd = top_source_fd(full->session.source), .events = POLLIN},
    };
    (void)poll(events, sizeof events / sizeof events[0], TICK_MS);
    take_signals(full);
    take_keys(full, (events[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0);
    if (!full->is_over) {
        take_news(full);
    }
}

static void run(struct full *full)
{
    while (!full->is_over) {
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (now_ns >= full->due_ns) {
            full->is_over = look_and_draw(full) < 0;
            full->due_ns = now_ns + full->request->interval_ns - NS_PER_S / 20;
        }
        if (!full->is_over) {
            wait_for_events(full);
        }
    }
}

int top_full_run(const struct top_request *request, struct top_source *source)
{
    struct full full = {
        .request = request,
        .state = {.view = (enum top_view)request->view,
                  .sort = request->by_total ? TOP_BY_TOTAL : TOP_BY_SELF,
                  .rate_hz = request->record.frequency_hz},
        .is_utf8 = top_terminal_is_utf8(),
    };
    (void)snprintf(full.state.filter, sizeof full.state.filter, "%s", request->filter);
    int r = top_session_init(&full.session, source, request->window_ns);
    if (r < 0) {
        (void)fault_set(&full.fault, ENOMEM, "there is not enough memory");
    } else if (top_terminal_open(&full.fault) == 0) {
        top_screen_begin();
        run(&full);
        top_terminal_close();
    }
    top_session_done(&full.session);
    top_state_done(&full.state);
    return full.fault.code == 0 ? EXIT_DONE : complain("top: %s", full.fault.text);
}
