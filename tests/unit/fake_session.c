/* SPDX-License-Identifier: Apache-2.0 */

/* See fake_session.h. Hands out `ready` in one chunk until its sequence is acknowledged. */
#include "fake_session.h"

#include "cleanup.h"

#include <stdio.h>
#include <string.h>

struct session {
    sd_event_source *stop_source;
    struct session_callbacks callbacks;
    enum session_state state;
    uint64_t sequence;
};

struct fake fake;

void fake_reset(void)
{
    memset(&fake, 0, sizeof fake);
}

void fake_finish_stop(const char *by)
{
    fake.last->state = SESSION_STOPPED;
    fake.last->callbacks.on_stopped(fake.last, by, fake.last->callbacks.userdata);
}

void fake_begin_own_stop(void)
{
    fake.last->state = SESSION_STOPPING;
}

static int on_stop(sd_event_source *source, void *userdata)
{
    (void)source;
    (void)userdata;
    fake_finish_stop(fake.stopped_by);
    return 0;
}

int session_new(const struct session_params *params, const struct session_config *config,
                struct session **ret, struct fault *reterr)
{
    fake.new_count++;
    if (fake.new_result < 0) {
        *reterr = fake.fault;
        return fake.new_result;
    }
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL ||
        sd_event_add_defer(params->event, &session->stop_source, on_stop, NULL) < 0 ||
        sd_event_source_set_enabled(session->stop_source, SD_EVENT_OFF) < 0) {
        abort();
    }
    session->callbacks = params->callbacks;
    fake.config = *config;
    fake.owner = params->owner;
    fake.handed_out_bytes = 0;
    fake.live_count++;
    fake.last = session;
    *ret = session;
    return 0;
}

struct session *session_free(struct session *session)
{
    (void)sd_event_source_disable_unref(session->stop_source);
    free(session);
    fake.live_count--;
    fake.last = NULL;
    return NULL;
}

int session_start(struct session *session, struct fault *reterr)
{
    if (fake.start_result < 0) {
        *reterr = fake.fault;
        return fake.start_result;
    }
    if (session->state != SESSION_CREATED && session->state != SESSION_STOPPED) {
        return fault_set(reterr, EBADFD, "the session runs already");
    }
    session->state = SESSION_RUNNING;
    return 0;
}

int session_stop(struct session *session, const char *by, struct fault *reterr)
{
    if (session->state != SESSION_RUNNING) {
        return fault_set(reterr, EBADFD, "the session does not run");
    }
    session->state = SESSION_STOPPING;
    fake.stopped_by = by;
    if (fake.stops_at_once) {
        (void)sd_event_source_set_enabled(session->stop_source, SD_EVENT_ONESHOT);
    }
    return 0;
}

void session_begin_segment(struct session *session)
{
    (void)session;
    fake.segment_count++;
}

int session_read(struct session *session, uint64_t ack, size_t capacity_bytes,
                 struct session_chunk *ret, struct fault *reterr)
{
    fake.last_ack = ack;
    fake.last_capacity_bytes = capacity_bytes;
    if (ack > session->sequence) {
        return fault_set_member(reterr, "ack", "was never handed out; 0 is allowed");
    }
    if (ack > 0 && ack == session->sequence) {
        fake.ready_bytes -= fake.handed_out_bytes;
        memmove(fake.ready, fake.ready + fake.handed_out_bytes, fake.ready_bytes);
        fake.handed_out_bytes = 0;
    }
    if (session->state == SESSION_CREATED || fake.ready_bytes == 0) {
        *ret = (struct session_chunk){.end = session->state == SESSION_STOPPED};
        return 0;
    }
    if (fake.handed_out_bytes == 0) {
        session->sequence++;
        fake.handed_out_bytes =
            fake.ready_bytes < capacity_bytes ? fake.ready_bytes : capacity_bytes;
    }
    *ret = (struct session_chunk){.bytes = fake.ready,
                                  .size_bytes = fake.handed_out_bytes,
                                  .sequence = session->sequence,
                                  .end = session->state == SESSION_STOPPED &&
                                         fake.handed_out_bytes == fake.ready_bytes};
    return 0;
}

enum session_state session_state(const struct session *session)
{
    return session->state;
}

const char *session_state_name(enum session_state state)
{
    static const char *const names[] = {"created", "running", "running", "stopped"};
    return names[state];
}

const char *session_id(const struct session *session)
{
    (void)session;
    return "7";
}

const struct session_owner *session_owner(const struct session *session)
{
    (void)session;
    return &fake.owner;
}

void session_detach(struct session *session)
{
    (void)session;
    fake.owner.detached = true;
}

const struct session_config *session_config(const struct session *session)
{
    (void)session;
    return &fake.config;
}

uint64_t session_age_ms(const struct session *session)
{
    (void)session;
    return 2500;
}

uint64_t session_holds_s(const struct session *session)
{
    (void)session;
    return 60;
}

void session_acknowledge(struct session *session)
{
    (void)session;
    fake.acknowledged_count++;
}

uint64_t session_unread_samples(const struct session *session)
{
    (void)session;
    return fake.unread_samples;
}

bool session_is_read(const struct session *session)
{
    return session->state == SESSION_STOPPED && fake.ready_bytes == 0;
}

uint64_t session_silent_ns(const struct session *session)
{
    (void)session;
    return fake.silent_ns;
}

struct session_memory session_memory(const struct session *session)
{
    (void)session;
    return (struct session_memory){.buffer_bytes = 4096, .buffer_used_bytes = fake.ready_bytes};
}

struct session_hotplug session_hotplug(const struct session *session)
{
    (void)session;
    return (struct session_hotplug){.returned_count = 8, .refused_count = 9};
}

char *session_books(struct session *session, bool totals_only)
{
    char *books = NULL;
    (void)session;
    cleanup_(freep) char *filler = calloc(1, fake.books_bytes + 1);
    if (filler == NULL) {
        return NULL;
    }
    memset(filler, 'x', fake.books_bytes);
    unsigned long long period_ns = fake.config.period_ns;
    int r = totals_only
                ? asprintf(&books, "{\"period_ns\":%llu,\"total\":{}}", period_ns)
                : asprintf(&books,
                           "{\"period_ns\":%llu,\"cpus\":[],\"events\":[{\"cpus\":[\"%s\"]}],"
                           "\"total\":{}}",
                           period_ns, filler);
    return r < 0 ? NULL : books;
}

struct module_cache_counts module_cache_counts(struct module_cache *cache)
{
    (void)cache;
    return (struct module_cache_counts){.worker_restart_count = fake.worker_restarts};
}
