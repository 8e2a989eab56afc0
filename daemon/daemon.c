/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Wires the parts to the loop. Order of shutdown, the reverse of what depends on what: control
 * first (its session ends sampling and joins the collector, which holds tickets of the cache), then
 * the cache (which joins the openers and ends the worker), then the loop.
 */
#include "daemon.h"

#include "cleanup.h"
#include "control.h"
#include "elf_worker.h"
#include "log.h"
#include "module_cache.h"

#include <pwd.h>
#include <signal.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define WORKER_USER "cpu-profilerd-worker"
#define NOBODY      65534
#define TICK_USEC   UINT64_C(1000000)

/* Lower comes first. */
enum {
    PRIORITY_CACHE =
        SD_EVENT_PRIORITY_NORMAL, /* names wait on it, and a session's end on the names */
    PRIORITY_PEER, /* last: a chatty client may cost other clients time, never a name */
};

struct daemon {
    sd_event *event;
    struct module_cache *cache;
    struct control *control;
    sd_event_source *cache_source;
    sd_event_source *tick_source;
};

static void daemon_done(struct daemon *daemon)
{
    daemon->control = control_free(daemon->control);
    daemon->cache_source = sd_event_source_disable_unref(daemon->cache_source);
    daemon->tick_source = sd_event_source_disable_unref(daemon->tick_source);
    daemon->cache = module_cache_free(daemon->cache);
    daemon->event = sd_event_unref(daemon->event);
}

static int on_cache_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct daemon *daemon = userdata;
    (void)source;
    (void)fd;
    (void)revents;
    module_cache_dispatch(daemon->cache);
    return 0;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct daemon *daemon = userdata;
    (void)usec;
    module_cache_dispatch(daemon->cache);
    int r = sd_event_source_set_time_relative(source, TICK_USEC);
    return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The user that the worker becomes, where the daemon may change users at all. */
static struct elf_worker_config worker_identity(void)
{
    const struct passwd *user = getpwnam(WORKER_USER);
    if (user == NULL) {
        if (geteuid() == 0) {
            log_warning(0,
                        "there is no user '%s': files are read as uid %d, which others may be too",
                        WORKER_USER, NOBODY);
        }
        return (struct elf_worker_config){.uid = NOBODY, .gid = NOBODY};
    }
    return (struct elf_worker_config){.uid = user->pw_uid, .gid = user->pw_gid};
}

static int set_up_cache(struct daemon *daemon)
{
    struct elf_worker_config identity = worker_identity();
    int r = module_cache_new(&identity, &daemon->cache);
    if (r < 0) {
        return log_error(r, "the ELF worker cannot be started");
    }
    r = sd_event_add_io(daemon->event, &daemon->cache_source, module_cache_fd(daemon->cache),
                        EPOLLIN, on_cache_ready, daemon);
    if (r < 0) {
        return r;
    }
    (void)sd_event_source_set_description(daemon->cache_source, "module-cache");
    (void)sd_event_source_set_priority(daemon->cache_source, PRIORITY_CACHE);
    r = sd_event_add_time_relative(daemon->event, &daemon->tick_source, CLOCK_MONOTONIC, TICK_USEC,
                                   0, on_tick, daemon);
    if (r < 0) {
        return r;
    }
    (void)sd_event_source_set_description(daemon->tick_source, "tick");
    return sd_event_source_set_exit_on_failure(daemon->tick_source, true);
}

/* For Status; a kernel that refuses is told to whoever creates a session, with the reason. */
static struct perf_features probe_features(void)
{
    struct perf_features features = {0};
    struct fault fault;
    if (perf_source_probe(&features, &fault) < 0) {
        log_warning(0, "no session can be created for now: %s", fault.text);
    }
    return features;
}

int daemon_run(int listen_fd, const char *address)
{
    cleanup_(daemon_done) struct daemon daemon = {0};
    cleanup_(closep) int fd = listen_fd;

    int r = sd_event_default(&daemon.event);
    if (r < 0) {
        return log_error(r, "there is no event loop");
    }
    /* Before any thread, so that every thread has the signals blocked. */
    r = sd_event_set_signal_exit(daemon.event, true);
    if (r < 0) {
        return log_error(r, "signals cannot be handled");
    }
    r = set_up_cache(&daemon);
    if (r < 0) {
        return r;
    }
    struct control_params params = {
        .event = daemon.event,
        .cache = daemon.cache,
        .features = probe_features(),
        .priority = PRIORITY_PEER,
    };
    r = control_new(take_fd(fd), &params, &daemon.control);
    if (r < 0) {
        return log_error(r, "the control socket cannot be served");
    }
    log_info("listening on %s", address);
    (void)sd_notify(0, "READY=1");
    r = sd_event_loop(daemon.event);
    (void)sd_notify(0, "STOPPING=1");
    return r;
}
