/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection: reads bytes, handles the calls in them one after the other, and sends the replies
 * in the same order. Invariants:
 *   - A call is handled only when the reply to the one before it is queued (or not needed), fewer
 *     than PEER_PENDING_MAX replies wait to be sent, and none of them carries a descriptor. Until
 *     then nothing is read from the socket: a peer that only sends is blocked, not buffered.
 *   - Descriptors that a peer sends are never received (control_socket.c). If the kernel lets a
 * peer send one, its connection is closed.
 *   - While a peer's call is handled, only peer_continue() frees the peer; functions below it
 * report an error instead. At other times peer_end() and the end of the control free a peer, and
 *     peer_resume() continues it.
 */
#include "control_peer.h"
#include "cleanup.h"
#include "clock.h"
#include "descriptors.h"
#include "json.h"
#include "log.h"
#include "sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static struct reply *free_reply(struct reply *reply)
{
    if (reply != NULL) {
        reply->fd = close_fd(reply->fd);
        cJSON_free(reply->text);
        free(reply);
    }
    return NULL;
}

static void drop_first_reply(struct peer *peer)
{
    struct reply *first = peer->replies;
    peer->replies = first->next;
    if (peer->replies == NULL) {
        peer->replies_end = &peer->replies;
    }
    peer->reply_count--;
    peer->output_bytes -= first->size_bytes;
    (void)free_reply(first);
}

struct peer *peer_free(struct peer *peer)
{
    if (peer == NULL) {
        return NULL;
    }
    struct control *control = peer->control;
    control_release_session(peer);
    control_stream_forget(peer);
    *(peer->previous == NULL ? &control->peers : &peer->previous->next) = peer->next;
    if (peer->next != NULL) {
        peer->next->previous = peer->previous;
    }
    control->peer_count--;
    while (peer->replies != NULL) {
        drop_first_reply(peer);
    }
    peer->io_source = sd_event_source_disable_unref(peer->io_source);
    peer->resume_source = sd_event_source_disable_unref(peer->resume_source);
    peer->status_source = sd_event_source_disable_unref(peer->status_source);
    varlink_input_done(&peer->input);
    if (peer->fd >= 0) {
        socket_close(control, peer->fd, peer->cred.uid);
    }
    free(peer);
    return NULL;
}

/* Sends what the socket takes. Returns 0 or -errno. */
static int flush_output(struct peer *peer)
{
    while (peer->replies != NULL) {
        struct reply *first = peer->replies;
        ssize_t sent = descriptors_send(peer->fd, first->text + first->sent_bytes,
                                        first->size_bytes - first->sent_bytes, &first->fd,
                                        first->fd >= 0, MSG_DONTWAIT);
        if (sent == -EINTR) {
            continue;
        }
        if (sent < 0) {
            return sent == -EAGAIN ? 0 : (int)sent;
        }
        first->fd = close_fd(first->fd); /* waits for nothing: see control_stream.c */
        first->sent_bytes += (size_t)sent;
        if (first->sent_bytes == first->size_bytes) {
            drop_first_reply(peer);
        }
    }
    return 0;
}

/* Queues `text`, which is taken always, as `fd` is. */
static int queue_reply(struct peer *peer, char *text, int fd)
{
    struct reply *reply = malloc(sizeof *reply);
    if (reply == NULL) {
        (void)close_fd(fd);
        cJSON_free(text);
        return -ENOMEM;
    }
    *reply = (struct reply){.text = text, .size_bytes = strlen(text) + 1, .fd = fd};
    if (reply->size_bytes > VARLINK_MESSAGE_BYTES_MAX) {
        (void)free_reply(reply);
        return -EMSGSIZE;
    }
    *peer->replies_end = reply;
    peer->replies_end = &reply->next;
    peer->reply_count++;
    peer->output_bytes += reply->size_bytes;
    if (peer->output_bytes <= PEER_OUTPUT_BYTES_MAX) {
        return 0;
    }
    int r = flush_output(peer);
    return r < 0 ? r : peer->output_bytes <= PEER_OUTPUT_BYTES_MAX ? 0 : -ENOBUFS;
}

/* The text of a reply; `parameters` is taken. Returned: cJSON_free(); NULL when there is no memory.
 */
static char *print_reply(const char *error, cJSON *parameters, bool continues)
{
    cJSON *message = cJSON_CreateObject();
    char *text = NULL;
    bool good = error == NULL || cJSON_AddStringToObject(message, "error", error) != NULL;
    if (cJSON_AddItemToObject(message, "parameters", parameters)) {
        good = good && (!continues || cJSON_AddTrueToObject(message, "continues") != NULL);
        text = good ? cJSON_PrintUnformatted(message) : NULL;
    } else {
        cJSON_Delete(parameters);
    }
    cJSON_Delete(message);
    return text;
}

static int send_reply(struct peer *peer, char *text, int fd)
{
    if (text == NULL) {
        (void)close_fd(fd);
        return -ENOMEM;
    }
    if (peer->call_oneway) {
        (void)close_fd(fd);
        cJSON_free(text);
        return 0;
    }
    return queue_reply(peer, text, fd);
}

int peer_reply(struct peer *peer, cJSON *parameters, bool continues)
{
    return send_reply(peer, print_reply(NULL, parameters, continues), -1);
}

int peer_reply_fd(struct peer *peer, cJSON *parameters, int fd)
{
    return send_reply(peer, print_reply(NULL, parameters, false), fd);
}

int peer_reply_error(struct peer *peer, const char *error, cJSON *parameters)
{
    control_log_error(peer, error, parameters);
    return send_reply(peer, print_reply(error, parameters, false), -1);
}

void peer_end(struct peer *peer, const char *text)
{
    cleanup_(json_freep) cJSON *parameters = cJSON_CreateObject();
    peer->call_oneway = false;
    if (cJSON_AddStringToObject(parameters, "text", text) != NULL &&
        peer_reply_error(peer, SAMPLER_INTERFACE ".Failed", take_ptr(parameters)) >= 0) {
        (void)flush_output(peer);
    }
    (void)peer_free(peer);
}

/* Descriptors go out one at a time: at most one of a peer is held here. */
static bool may_take_call(const struct peer *peer)
{
    bool fd_waits = false;
    for (const struct reply *reply = peer->replies; reply != NULL; reply = reply->next) {
        fd_waits = fd_waits || reply->fd >= 0;
    }
    return peer->wait == PEER_READY && !fd_waits && peer->reply_count < PEER_PENDING_MAX;
}

static int take_calls(struct peer *peer)
{
    while (may_take_call(peer)) {
        const char *text = NULL;
        size_t text_bytes = 0;
        int r = varlink_input_next(&peer->input, &text, &text_bytes);
        peer->input_starved = r == 0;
        if (r <= 0) {
            return r;
        }
        peer->called_ns = clock_ns(CLOCK_MONOTONIC);
        r = peer->control->on_call(peer, text, text_bytes);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int watch_events(struct peer *peer)
{
    bool wants_input = peer->input_starved && !peer->input_ended && may_take_call(peer);
    uint32_t events = wants_input ? EPOLLIN : 0;
    events |= peer->replies != NULL ? EPOLLOUT : 0;
    return sd_event_source_set_io_events(peer->io_source, events);
}

/* Calls and replies until both are held up. */
static int advance(struct peer *peer)
{
    do {
        int r = take_calls(peer);
        if (r >= 0) {
            r = flush_output(peer);
        }
        if (r < 0) {
            return r;
        }
    } while (!peer->input_starved && may_take_call(peer));
    if (peer->input_ended && peer->input_starved && peer->wait == PEER_READY &&
        peer->replies == NULL) {
        return -ENOTCONN;
    }
    return watch_events(peer);
}

void peer_continue(struct peer *peer, int r)
{
    if (r >= 0) {
        r = advance(peer);
    }
    bool gone = r == -ENOTCONN || r == -EPIPE || r == -ECONNRESET;
    if (r < 0 && !gone) {
        const struct control_subject subject = {.uid = peer->cred.uid, .pid = peer->cred.pid};
        control_log(peer->control, CONTROL_REFUSED, &subject, "peer pid %d uid %u: cut off: %s",
                    (int)subject.pid, subject.uid, strerror(-r));
    }
    if (r < 0) {
        (void)peer_free(peer);
    }
}

static int on_resume(sd_event_source *source, void *userdata)
{
    struct peer *peer = userdata;
    (void)source;
    peer_continue(peer, peer->error);
    return 0;
}

void peer_resume(struct peer *peer, int r)
{
    peer->wait = PEER_READY;
    peer->error = r;
    (void)sd_event_source_set_enabled(peer->resume_source, SD_EVENT_ONESHOT);
}

/* One recv() into the input. Returns 0 or -errno. */
static int receive(struct peer *peer)
{
    char *space = NULL;
    size_t space_bytes = 0;
    int r = varlink_input_space(&peer->input, &space, &space_bytes);
    if (r < 0) {
        return r;
    }
    ssize_t received = socket_receive(peer->fd, space, space_bytes);
    if (received < 0) {
        return received == -EAGAIN || received == -EINTR ? 0 : (int)received;
    }
    varlink_input_filled(&peer->input, (size_t)received);
    peer->input_ended = received == 0;
    return 0;
}

static int on_peer_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct peer *peer = userdata;
    int r = 0;
    (void)source;
    (void)fd;
    if ((revents & EPOLLIN) != 0) {
        r = receive(peer); /* what it said before it went is done yet */
    } else if ((revents & (EPOLLHUP | EPOLLERR)) != 0) {
        r = -ENOTCONN;
    }
    peer_continue(peer, r);
    return 0;
}

static int watch_peer(struct peer *peer)
{
    const struct control_params *params = &peer->control->params;
    int r = sd_event_add_io(params->event, &peer->io_source, peer->fd, EPOLLIN, on_peer_io, peer);
    if (r >= 0) {
        r = sd_event_add_defer(params->event, &peer->resume_source, on_resume, peer);
    }
    if (r >= 0) {
        r = sd_event_source_set_enabled(peer->resume_source, SD_EVENT_OFF);
    }
    if (r >= 0) {
        r = sd_event_source_set_priority(peer->io_source, params->priority);
    }
    if (r >= 0) {
        r = sd_event_source_set_priority(peer->resume_source, params->priority);
    }
    if (r >= 0) {
        r = sd_event_source_set_description(peer->io_source, "control-peer");
    }
    return r < 0 ? r : sd_event_source_set_description(peer->resume_source, "control-resume");
}

int peer_new(struct control *control, int fd, const struct ucred *cred, bool is_admitted)
{
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL) {
        return -ENOMEM;
    }
    *peer = (struct peer){.control = control,
                          .next = control->peers,
                          .fd = fd,
                          .cred = *cred,
                          .called_ns = clock_ns(CLOCK_MONOTONIC),
                          .is_admitted = is_admitted,
                          .input_starved = true,
                          .replies_end = &peer->replies};
    if (control->peers != NULL) {
        control->peers->previous = peer;
    }
    control->peers = peer;
    control->peer_count++;
    int r = watch_peer(peer);
    if (r < 0) {
        peer->fd = -1; /* not taken */
        (void)peer_free(peer);
    }
    return r;
}
