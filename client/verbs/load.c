/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loads a recording and prints its warnings. A recording that is cut off or damaged is shown up to
 * that place, but the exit status is that of a failure.
 */
#include "load.h"

#include "cleanup.h"
#include "options.h"
#include "text_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int complain_truncated(const char *path, const struct input_summary *input)
{
    return complain("%s %s byte %" PRIu64 "; showing the samples before that", path,
                    input->damaged ? "is damaged at" : "ends within the record at",
                    input->size_bytes);
}

static int load_profile(const struct load_request *request, struct profile **ret)
{
    struct fault fault = {0};
    struct profile *profile = NULL;
    const char *path = request->path;
    if (profile_load(path, request->names, request->selection->event, &profile, &fault) < 0) {
        return complain("%s", fault.text);
    }
    *ret = profile;
    return profile->input.truncated || profile->input.damaged
               ? complain_truncated(path, &profile->input)
               : EXIT_DONE;
}

/* Says how much of the recording is selected. */
static void complain_selection(const struct load_request *request, const struct profile *profile)
{
    bool is_part = profile->from_ns > 0 || profile->to_ns > 0;
    if (selection_is_empty(request->selection) || request->shows_selection) {
        return;
    }
    (void)complain(
        "%s: %zu of %" PRIu64 " samples %s selected; %s are those of the whole recording",
        request->path, profile->sample_count, profile->sample_count + profile->unselected_count,
        profile->sample_count == 1 ? "is" : "are", is_part ? "the books" : "length and books");
}

/* One line, however many files were lost. */
void complain_losses(const struct lines_losses *losses)
{
    char more[64] = "";
    if (losses->count > 1) {
        (void)snprintf(more, sizeof more, "; so with %zu more files", losses->count - 1);
    }
    if (losses->count > 0) {
        (void)complain("%s: the process that reads files of programs %s; the module is shown "
                       "without%s",
                       losses->path, losses->ending, more);
    }
}

/* Says how many samples are shown with less than is known, for want of room. */
static void complain_no_room(const char *path, const struct profile *profile)
{
    char count[TEXT_COUNT_BYTES];
    if (profile->left_out_count > 0) {
        (void)complain("%s: %s %s shown as [left out]: the stacks of their "
                       "processes would take more memory than there is for a recording of its size",
                       path, text_samples(profile->left_out_count, count),
                       profile->left_out_count == 1 ? "is" : "are");
    }
    if (profile->plain_count > 0) {
        (void)complain("%s: %s %s shown without debugging information: with it, "
                       "the stacks of their processes would take more memory than there is for a "
                       "recording of its size",
                       path, text_samples(profile->plain_count, count),
                       profile->plain_count == 1 ? "is" : "are");
    }
}

static int add_lines(const char *path, enum lines_detail detail, struct profile *profile)
{
    cleanup_(lines_remote_freep) struct lines_remote *remote =
        detail == LINES_WANT_FUNCTIONS ? NULL : lines_remote_new();
    struct lines_losses losses = {0};
    if (lines_add(profile, detail, remote, &losses) < 0) {
        return complain("%s: there is not enough memory", path);
    }
    complain_losses(&losses);
    if (lines_remote_fault(remote) != NULL) {
        (void)complain("debuginfod: %s; what this machine has itself is shown",
                       lines_remote_fault(remote));
    }
    return EXIT_DONE;
}

static const enum lines_detail details[] = {
    [LOAD_FUNCTIONS] = LINES_WANT_FUNCTIONS,
    [LOAD_INLINED] = LINES_WANT_INLINED,
    [LOAD_LINES] = LINES_WANT_LINES,
};

static int load_detail(const char *path, enum load_detail detail, struct profile *profile)
{
    int status = detail == LOAD_ADDRESSES ? EXIT_DONE : add_lines(path, details[detail], profile);
    complain_no_room(path, profile);
    return status;
}

static bool has_event(const struct profile *profile, const char *event)
{
    for (size_t i = 0; i < profile->event_count; i++) {
        if (strcmp(profile->event_names[i], event) == 0) {
            return true;
        }
    }
    return false;
}

/* Loads an event, and leaves what is selected of it. */
static int load_selected(const struct load_request *request, const char *event,
                         struct profile **ret, struct fault *reterr)
{
    int r = profile_load(request->path, request->names, event, ret, reterr);
    return r < 0 || selection_is_empty(request->selection)
               ? r
               : selection_apply(request->selection, *ret, reterr);
}

/* Adds to another event of the recording what files know; what they lack was said of the first. */
static int add_same_lines(const struct load_request *request, struct profile *profile)
{
    bool has_files = request->detail == LOAD_INLINED || request->detail == LOAD_LINES;
    cleanup_(lines_remote_freep) struct lines_remote *remote =
        has_files ? lines_remote_new() : NULL;
    struct lines_losses losses = {0};
    bool failed = request->detail != LOAD_ADDRESSES &&
                  lines_add(profile, details[request->detail], remote, &losses) < 0;
    return failed ? complain("%s: there is not enough memory", request->path) : EXIT_DONE;
}

int load_event(const struct load_request *request, const char *event, struct profile **ret)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    struct fault fault = {0};
    *ret = NULL;
    if (load_selected(request, event, &profile, &fault) < 0) {
        return complain("%s", fault.text);
    }
    int status = add_same_lines(request, profile);
    *ret = status == EXIT_DONE ? take_ptr(profile) : NULL;
    return status;
}

void waits_done(struct waits *waits)
{
    for (size_t i = 0; i < waits->count; i++) {
        profile_freep(&waits->profiles[i]);
    }
    *waits = (struct waits){0};
}

/* Adds the waits of one event, if there are any. */
static int add_waits(const struct load_request *request, const char *event, struct waits *waits)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    struct fault fault = {0};
    int r = load_selected(request, event, &profile, &fault);
    if (r < 0 || profile->sample_count == 0) {
        return r == -ENOMEM ? complain("%s", fault.text) : EXIT_DONE;
    }
    int status = add_same_lines(request, profile);
    if (status == EXIT_DONE) {
        waits->profiles[waits->count++] = take_ptr(profile);
    }
    return status;
}

static const char *const wait_events[LOAD_WAITS_MAX] = {PROFILE_EVENT_OFF_CPU,
                                                        PROFILE_EVENT_PREEMPTED};

int load_waits(const struct load_request *request, const struct profile *profile, struct waits *ret)
{
    bool is_possible = (profile->event.is_clock || request->selection->event == NULL) &&
                       strcmp(request->path, "-") != 0;
    int status = EXIT_DONE;
    *ret = (struct waits){0};
    for (size_t i = 0; i < LOAD_WAITS_MAX && is_possible && status == EXIT_DONE; i++) {
        if (has_event(profile, wait_events[i]) &&
            strcmp(profile->event.name, wait_events[i]) != 0) {
            status = add_waits(request, wait_events[i], ret);
        }
    }
    return status;
}

static bool is_wait_event(const char *event)
{
    return strcmp(event, PROFILE_EVENT_OFF_CPU) == 0 || strcmp(event, PROFILE_EVENT_PREEMPTED) == 0;
}

/* Loads an event if the recording has it, with a sample that is selected. NULL: it has none.
 * Returned: profile_free(). */
static struct profile *try_event(const struct load_request *request, const struct profile *profile,
                                 const char *event)
{
    cleanup_(profile_freep) struct profile *found = NULL;
    struct fault fault = {0};
    bool has_some = has_event(profile, event) &&
                    load_selected(request, event, &found, &fault) == 0 && found->sample_count > 0;
    return has_some ? take_ptr(found) : NULL;
}

/* The first other event of a recording that has something to show, waits before others, since they
 * are time. NULL: there is none, or the recording cannot be read again. Returned: profile_free().
 */
static struct profile *find_elsewhere(const struct load_request *request,
                                      const struct profile *profile)
{
    struct profile *found = NULL;
    if (request->elsewhere == LOAD_ELSEWHERE_UNSAID || request->selection->event != NULL ||
        strcmp(request->path, "-") == 0) {
        return NULL;
    }
    for (size_t i = 0; i < LOAD_WAITS_MAX && found == NULL; i++) {
        found = try_event(request, profile, wait_events[i]);
    }
    for (size_t i = 1; i < profile->event_count && found == NULL; i++) {
        const char *event = profile->event_names[i];
        found = is_wait_event(event) ? NULL : try_event(request, profile, event);
    }
    return found;
}

/* Says of a recording of several events that there is nothing to show, and how to see the times of
 * threads where there are some. */
static void complain_none(const struct load_request *request, const struct profile *profile)
{
    const struct profile_event *event = &profile->event;
    if (profile->event_count > 1 && request->elsewhere != LOAD_ELSEWHERE_UNSAID) {
        (void)complain(
            "%s: has no sample of %s%s", request->path, event->is_clock ? "the clock" : event->name,
            profile->thread_count > 0 ? "; profctl report --threads has the times of its threads"
                                      : "");
    }
}

/* Leaves what is selected; where the clock has nothing of it, of another event, or names that.
 * Returns EXIT_DONE, or EXIT_FAILED after a complaint. */
static int load_selection(const struct load_request *request, struct profile **profile)
{
    cleanup_(profile_freep) struct profile *other = NULL;
    struct fault fault = {0};
    bool has_none = (*profile)->sample_count == 0;
    int r = selection_is_empty(request->selection)
                ? 0
                : selection_apply(request->selection, *profile, &fault);
    if (has_none || r == -ESRCH) {
        other = find_elsewhere(request, *profile);
    }
    const char *event = other == NULL ? NULL : other->event.name;
    const char *missing =
        has_none ? "has no sample of the clock" : "no sample of the clock is selected";
    if (other != NULL && request->elsewhere == LOAD_ELSEWHERE_SHOWN) {
        (void)complain("%s: %s; what is shown is %s", request->path, missing, event);
        profile_freep(profile);
        *profile = take_ptr(other);
        r = 0;
    } else if (r < 0) {
        (void)complain("%s: %s", request->path, fault.text);
    }
    if (other != NULL) {
        (void)complain("%s: %s; --event %s has %zu", request->path, missing, event,
                       other->sample_count);
    } else if (r == 0 && (*profile)->sample_count == 0) {
        complain_none(request, *profile);
    }
    if (r == 0) {
        complain_selection(request, *profile);
    }
    return r == 0 ? EXIT_DONE : EXIT_FAILED;
}

int load_recording(const struct load_request *request, struct profile **ret)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    int status = load_profile(request, &profile);
    *ret = NULL;
    if (profile == NULL) {
        return status;
    }
    if (load_selection(request, &profile) != EXIT_DONE ||
        load_detail(request->path, request->detail, profile) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    *ret = take_ptr(profile);
    return status;
}
