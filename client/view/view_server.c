/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waits on one poll() for signals, for new connections and for those there are. A browser opens
 * several, and some that it never uses, so each has its own state and a time after which it is
 * closed. A connection is one request. Beyond CONNECTIONS_MAX new ones wait in the kernel.
 */
#include "view.h"

#include "cleanup.h"
#include "clock.h"
#include "view_request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECTIONS_MAX 32
#define REQUEST_TIME_NS                                                                            \
    (10 * NS_PER_S) /* until a request is there, and between parts of the answer */
#define SEND_BYTES   ((size_t)1 << 20)
#define URL_BYTES    256
#define TARGET_BYTES 512
#define WAIT_MS      1000

const struct view_viewer view_viewers[] = {
    {"firefox", "firefox", "https://profiler.firefox.com", "https://profiler.firefox.com/from-url/",
     "profile.json", 0},
    {"speedscope", "speedscope", "https://www.speedscope.app",
     "https://www.speedscope.app/#profileURL=", "profile.speedscope.json", 0},
    {"perfetto", "perfetto", "https://ui.perfetto.dev",
     "https://ui.perfetto.dev/#!/?url=", "profile.pftrace", 9001},
    {"flamegraph", NULL, NULL, "", "", 0},
    {0},
};

struct connection {
    int fd; /* -1: none */
    uint64_t until_ns;
    char head[VIEW_HEAD_BYTES];
    size_t head_bytes;
    bool is_answered; /* the answer is made; it is sent from here on */
    struct view_answer answer;
    size_t sent_bytes; /* of the answer's head */
    off_t file_offset; /* of the file */
};

struct view_server {
    struct view_site site;
    int listen_fd;
    int signal_fd;
    sigset_t old_signals;
    char url[URL_BYTES];
    char target[TARGET_BYTES];
    struct connection connections[CONNECTIONS_MAX];
    int file_fd; /* borrowed */
    off_t file_bytes;
    bool is_sent; /* all of the file, once */
};

static int make_token(char ret[VIEW_TOKEN_BYTES])
{
    uint8_t bytes[(VIEW_TOKEN_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return -EIO;
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
    return 0;
}

static int listen_here(uint16_t port, int *ret_fd, uint16_t *ret_port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int on = 1;
    cleanup_(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, CONNECTIONS_MAX) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &bytes) < 0) {
        return -errno;
    }
    *ret_port = ntohs(address.sin_port);
    *ret_fd = take_fd(fd);
    return 0;
}

/* The viewer's page with the file's address, whose punctuation is escaped. */
static void make_target(struct view_server *server, const struct view_viewer *viewer)
{
    char file[URL_BYTES];
    (void)snprintf(file, sizeof file, "%s%s", server->url, viewer->file_name);
    size_t used = (size_t)snprintf(server->target, sizeof server->target, "%s", viewer->page);
    for (const char *at = file; *at != '\0' && used + 4 < sizeof server->target; at++) {
        bool is_plain = strchr(":/?#&%", *at) == NULL;
        used += (size_t)snprintf(server->target + used, sizeof server->target - used,
                                 is_plain ? "%c" : "%%%02X", (unsigned char)*at);
    }
}

/* Signals that end the server are taken by its descriptor from now on. */
static int take_signals(struct view_server *server)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &signals, &server->old_signals) < 0) {
        return -errno;
    }
    server->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return server->signal_fd < 0 ? -errno : 0;
}

int view_server_new(const struct view_viewer *viewer, struct view_server **ret,
                    struct fault *reterr)
{
    cleanup_(view_server_freep) struct view_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    server->listen_fd = -1;
    server->signal_fd = -1;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        server->connections[i].fd = -1;
    }
    server->site = (struct view_site){
        .file_name = viewer->file_name, .origin = viewer->origin, .target = server->target};
    int r = take_signals(server);
    r = r < 0 ? r : make_token(server->site.token);
    r = r < 0 ? r : listen_here(viewer->port, &server->listen_fd, &server->site.port);
    if (r == -EADDRINUSE) {
        return fault_set(reterr, -r,
                         "port %" PRIu16 " is in use, and the pages of %s ask no other one; end "
                         "what has it",
                         viewer->port, viewer->name);
    }
    if (r < 0) {
        return fault_set(reterr, -r, "cannot listen on 127.0.0.1: %s", strerror(-r));
    }
    (void)snprintf(server->url, sizeof server->url, "http://127.0.0.1:%" PRIu16 "/%s/",
                   server->site.port, server->site.token);
    make_target(server, viewer);
    *ret = take_ptr(server);
    return 0;
}

void view_server_freep(struct view_server **server)
{
    struct view_server *freed = *server;
    if (freed == NULL) {
        return;
    }
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        freed->connections[i].fd = close_fd(freed->connections[i].fd);
    }
    freed->listen_fd = close_fd(freed->listen_fd);
    if (freed->signal_fd >= 0) {
        freed->signal_fd = close_fd(freed->signal_fd);
        (void)sigprocmask(SIG_SETMASK, &freed->old_signals, NULL);
    }
    free(freed);
    *server = NULL;
}

const char *view_server_url(const struct view_server *server)
{
    return server->url;
}

static struct connection *free_connection(struct view_server *server)
{
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        if (server->connections[i].fd < 0) {
            return &server->connections[i];
        }
    }
    return NULL;
}

static void end_connection(struct connection *connection)
{
    connection->fd = close_fd(connection->fd);
}

static void accept_one(struct view_server *server)
{
    struct connection *connection = free_connection(server);
    int fd = connection == NULL
                 ? -1
                 : accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        connection->fd = fd;
        connection->until_ns = clock_ns(CLOCK_MONOTONIC) + REQUEST_TIME_NS;
        connection->head_bytes = 0;
        connection->is_answered = false;
        connection->sent_bytes = 0;
        connection->file_offset = 0;
    }
}

/* Whether a call that moved no bytes has to be made again later. */
static bool is_later(ssize_t moved)
{
    return moved < 0 && (errno == EAGAIN || errno == EINTR);
}

static void read_request(struct view_server *server, struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->head + connection->head_bytes,
                       sizeof connection->head - connection->head_bytes, 0);
    if (is_later(got)) {
        return;
    }
    if (got <= 0) {
        end_connection(connection);
        return;
    }
    connection->head_bytes += (size_t)got;
    size_t bytes = view_request_bytes(connection->head, connection->head_bytes);
    if (bytes > 0 || connection->head_bytes == sizeof connection->head) {
        view_request_answer(&server->site, connection->head, bytes, (uint64_t)server->file_bytes,
                            &connection->answer);
        connection->is_answered = true;
    }
}

/* Sends what the connection takes now. Returns whether there is more. */
static bool send_some(struct view_server *server, struct connection *connection)
{
    const struct view_answer *answer = &connection->answer;
    ssize_t sent = 0;
    if (connection->sent_bytes < answer->head_bytes) {
        sent = send(connection->fd, answer->head + connection->sent_bytes,
                    answer->head_bytes - connection->sent_bytes, MSG_NOSIGNAL);
        connection->sent_bytes += sent > 0 ? (size_t)sent : 0;
    } else if (answer->has_file && connection->file_offset < server->file_bytes) {
        sent = sendfile(connection->fd, server->file_fd, &connection->file_offset, SEND_BYTES);
    }
    if (sent > 0) {
        connection->until_ns = clock_ns(CLOCK_MONOTONIC) + REQUEST_TIME_NS;
    }
    bool is_done = connection->sent_bytes == answer->head_bytes &&
                   (!answer->has_file || connection->file_offset >= server->file_bytes);
    server->is_sent = server->is_sent || (is_done && answer->has_file);
    return !is_done && (sent > 0 || is_later(sent));
}

static void serve(struct view_server *server, struct connection *connection, short events)
{
    if (!connection->is_answered && (events & (POLLIN | POLLHUP | POLLERR)) != 0) {
        read_request(server, connection);
    } else if (connection->is_answered && events != 0 && !send_some(server, connection)) {
        end_connection(connection);
    }
    if (connection->fd >= 0 && clock_ns(CLOCK_MONOTONIC) >= connection->until_ns) {
        end_connection(connection);
    }
}

/* One wait, and what came of it. Returns 1 when a signal ends the server, 0, or -errno. */
static int run_once(struct view_server *server)
{
    struct pollfd polled[2 + CONNECTIONS_MAX];
    polled[0] = (struct pollfd){.fd = server->signal_fd, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = server->listen_fd, .events = POLLIN};
    if (free_connection(server) == NULL) {
        polled[1].fd = -1;
    }
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *connection = &server->connections[i];
        polled[2 + i] = (struct pollfd){.fd = connection->fd,
                                        .events = connection->is_answered ? POLLOUT : POLLIN};
    }
    if (poll(polled, 2 + CONNECTIONS_MAX, WAIT_MS) < 0) {
        return errno == EINTR ? 0 : -errno;
    }
    if (polled[0].revents != 0) {
        struct signalfd_siginfo taken; /* else it would come once more at the end */
        return read(server->signal_fd, &taken, sizeof taken) == (ssize_t)sizeof taken;
    }
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        if (polled[2 + i].fd >= 0) {
            serve(server, &server->connections[i], polled[2 + i].revents);
        }
    }
    if (polled[1].revents != 0) {
        accept_one(server);
    }
    return 0;
}

int view_server_run(struct view_server *server, FILE *file, bool is_once, struct fault *reterr)
{
    struct stat status;
    if (fstat(fileno(file), &status) < 0) {
        return fault_set(reterr, errno, "cannot look at the converted profile: %s",
                         strerror(errno));
    }
    server->file_fd = fileno(file);
    server->file_bytes = status.st_size;
    int r = 0;
    while (r == 0 && !(is_once && server->is_sent)) {
        r = run_once(server);
    }
    return r < 0 ? fault_set(reterr, -r, "cannot wait for requests: %s", strerror(-r)) : 0;
}
