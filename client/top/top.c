/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What both ways of profctl top have in common, and the printed one. The session's first attempt is
 * waited for: what fails at once, as a config that the daemon refuses, fails as with any other
 * verb. Later a screen waits until it is well again, and what is printed ends.
 */
#include "top.h"

#include "cleanup.h"
#include "clock.h"
#include "extremes.h"
#include "options.h"
#include "page.h"
#include "top_full.h"
#include "top_nothing.h"
#include "top_print.h"
#include "top_session.h"
#include "top_state.h"
#include "top_terminal.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS          1000
#define BATCH_READ_NS    (NS_PER_S / 4)
#define FIRST_SAMPLES_NS (3 * NS_PER_S) /* a quiet session is printed after that */

/* Waits until the session runs or has failed. Returns its state. */
static enum top_state wait_for_session(struct top_source *source, char *ret_text)
{
    struct pollfd event = {.fd = top_source_fd(source), .events = POLLIN};
    enum top_state state = TOP_STARTING;
    while (state == TOP_STARTING) {
        (void)poll(&event, 1, TICK_MS);
        state = top_source_state(source, ret_text);
    }
    return state;
}

struct batch {
    const struct top_request *request;
    struct top_session session;
    uint64_t printed_count;
    uint64_t next_ns; /* when to print */
    uint64_t began_ns;
    struct top_first_look first;
    uint32_t event;      /* that is printed, once */
    bool is_event_known; /* is true */
    struct fault fault; /* why it is over; code 0: all was printed; no text: it is said elsewhere */
};

static void print_look(struct batch *batch)
{
    const struct top_request *request = batch->request;
    struct top_books books = {0};
    struct page page;
    char nothing[TOP_NOTHING_BYTES];
    const struct top_events *events = top_intake_events(batch->session.intake);
    const struct top_print print = {
        .model = top_intake_model(batch->session.intake),
        .books = &books,
        .event = &events->all[batch->event],
        .nothing = top_nothing_text(top_intake_model(batch->session.intake), events, batch->event,
                                    false, nothing),
        .query = {.view = (enum top_view)request->view,
                  .sort = request->by_total ? TOP_BY_TOTAL : TOP_BY_SELF,
                  .event = batch->event,
                  .filter = request->filter},
        .limit = request->limit,
        .window_ns = request->window_ns,
        .pending_count = top_history_pending(&batch->session.history,
                                             top_intake_sample_count(batch->session.intake)),
    };
    page_describe(stdout, false, &page);
    int r = top_history_difference(&batch->session.history, &books);
    if (r == 0) {
        r = request->record.is_json ? top_print_json(stdout, &print)
                                    : top_print_text(&page, &print);
    }
    top_books_done(&books);
    if (r < 0) {
        (void)fault_set(&batch->fault, ENOMEM, "there is not enough memory");
    } else if (fflush(stdout) != 0) {
        (void)fault_set(&batch->fault, errno, "%s", ""); /* profctl says so of every verb */
    }
}

/* The first look waits for the samples that were taken until then, which need their names. One that
 * would be empty waits for the first samples. */
static bool is_due(struct batch *batch, uint64_t now_ns)
{
    struct top_sums sums;
    if (now_ns < batch->next_ns || !batch->is_event_known ||
        (batch->printed_count == 0 &&
         !top_first_look_is_due(&batch->first, &batch->session.history, clock_ns(CLOCK_BOOTTIME),
                                top_intake_sample_count(batch->session.intake)))) {
        return false;
    }
    top_model_sum(top_intake_model(batch->session.intake), batch->event, &sums);
    return sums.sample_count > 0 || now_ns >= batch->began_ns + FIRST_SAMPLES_NS;
}

static void print_once(struct batch *batch)
{
    struct pollfd event = {.fd = top_source_fd(batch->session.source), .events = POLLIN};
    struct top_news news;
    (void)poll(&event, 1, TICK_MS);
    if (top_session_take(&batch->session, false, &news, &batch->fault) < 0) {
        return;
    }
    if (news.note[0] != '\0') {
        (void)complain("note: %s", news.note);
    }
    if (news.state != TOP_RUNNING) {
        (void)fault_set(&batch->fault, ENOTCONN, "%s", news.text);
        return;
    }
    if (!batch->is_event_known) {
        int r = top_events_choose(top_intake_events(batch->session.intake), batch->request->event,
                                  &batch->event, &batch->fault);
        batch->is_event_known = r == 0;
    }
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (batch->fault.code == 0 && is_due(batch, now_ns)) {
        print_look(batch);
        batch->printed_count++;
        batch->next_ns = now_ns + batch->request->interval_ns;
    }
}

static int print_looks(const struct top_request *request, struct top_source *source)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    struct batch batch = {
        .request = request,
        .began_ns = now_ns,
        .next_ns = now_ns + request->interval_ns,
        .first = {.due_ns = clock_ns(CLOCK_BOOTTIME) + request->interval_ns},
    };
    if (top_session_init(&batch.session, source, request->window_ns) < 0) {
        (void)fault_set(&batch.fault, ENOMEM, "there is not enough memory");
    }
    while (batch.fault.code == 0 && (request->count == 0 || batch.printed_count < request->count)) {
        print_once(&batch);
    }
    top_session_done(&batch.session);
    return batch.fault.code == 0         ? EXIT_DONE
           : batch.fault.text[0] == '\0' ? EXIT_FAILED
                                         : complain("top: %s", batch.fault.text);
}

/* With a config the rate is the config's. */
static void choose_rate(struct top_request *request)
{
    long cpu_count = sysconf(_SC_NPROCESSORS_ONLN);
    if (request->record.frequency_hz == 0 && request->record.config_path == NULL) {
        request->record.frequency_hz = top_state_first_rate(cpu_count > 0 ? (size_t)cpu_count : 1);
    }
}

int top_run(struct top_request *request)
{
    bool is_batch = request->is_batch || request->record.is_json;
    cleanup_(freep) char *config = NULL;
    struct top_source *source = NULL;
    struct fault fault = {0};
    char text[TOP_TEXT_BYTES];
    if (!is_batch && top_terminal_check(&fault) < 0) {
        return complain("top: %s", fault.text);
    }
    choose_rate(request);
    int status = record_config_load(&request->record, 0, &config);
    if (status != EXIT_DONE) {
        return status;
    }
    int r =
        top_source_new(&request->record, config,
                       min_u64(request->interval_ns, is_batch ? BATCH_READ_NS : NS_PER_S), &source);
    if (r < 0) {
        return complain("top: cannot begin: %s", strerror(-r));
    }
    enum top_state state = wait_for_session(source, text);
    if (state == TOP_FAILED || (state == TOP_BUSY && is_batch)) {
        status = complain("%s", text);
    } else {
        status = is_batch ? print_looks(request, source) : top_full_run(request, source);
    }
    source = top_source_free(source);
    return status;
}
