/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connects the parts to the event loop, and the loop to the service manager. The service manager is
 * notified when the daemon is ready, of its status (at most once a second), and when it ends. The
 * watchdog is notified while both the loop and the collector of a session make progress.
 *
 * Order of shutdown, the reverse of what depends on what: control first (its session ends sampling
 * and joins the collector, which holds tickets of the cache), then the cache (which joins the
 * openers and ends the worker), then the loop.
 */
#include "daemon.h"

#include "account.h"
#include "cleanup.h"
#include "control.h"
#include "elf_worker.h"
#include "extremes.h"
#include "log.h"
#include "memory_limit.h"
#include "module_cache.h"

#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define WORKER_USER             "cpu-profilerd-worker"
#define NOBODY                  65534
#define SECOND_WORKER_PART      8 /* of what the daemon may use, between these two */
#define SECOND_WORKER_BYTES_MIN (UINT64_C(128) << 20)
#define SECOND_WORKER_BYTES_MAX (UINT64_C(512) << 20)
#define TABLES_PART             4 /* as much of it, at most the next, is for the tables of files */
#define TABLES_BYTES_MAX        (UINT64_C(512) << 20)

#define SECOND_USEC UINT64_C(1000000)
#define TICK_USEC   SECOND_USEC
#define SERVE_USEC  (5 * SECOND_USEC) /* what was recorded, after the first signal */
#define BEATS       4                 /* that the service manager is sent in its time */

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
    sd_event_source *watchdog_source; /* NULL: no watchdog */
    sd_event_source *end_source;      /* NULL but while what was recorded is served, as the next */
    sd_event_source *served_source;
    struct control_line told; /* to the service manager */
    uint64_t watchdog_usec;
    bool is_silent;         /* the collector, and the log says so */
    unsigned told_troubles; /* of the worker; as module_cache_counts() has them */
    bool has_told_clock;    /* of a jitdump */
    bool is_ending;
    uint32_t idle_exit_s;
    uint64_t busy_usec; /* when there was a session or a connection last */
};

static void daemon_done(struct daemon *daemon)
{
    daemon->control = control_free(daemon->control);
    daemon->cache_source = sd_event_source_disable_unref(daemon->cache_source);
    daemon->tick_source = sd_event_source_disable_unref(daemon->tick_source);
    daemon->watchdog_source = sd_event_source_disable_unref(daemon->watchdog_source);
    daemon->end_source = sd_event_source_disable_unref(daemon->end_source);
    daemon->served_source = sd_event_source_disable_unref(daemon->served_source);
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

static int on_end(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct daemon *daemon = userdata;
    (void)source;
    (void)usec;
    return sd_event_exit(daemon->event, 0);
}

/* After whatever else has happened. */
static int on_something_served(sd_event_source *source, void *userdata)
{
    struct daemon *daemon = userdata;
    (void)source;
    return control_has_ended(daemon->control) ? sd_event_exit(daemon->event, 0) : 0;
}

static int serve_what_is_left(struct daemon *daemon)
{
    int r = sd_event_add_time_relative(daemon->event, &daemon->end_source, CLOCK_MONOTONIC,
                                       SERVE_USEC, 0, on_end, daemon);
    if (r >= 0) {
        r = sd_event_add_post(daemon->event, &daemon->served_source, on_something_served, daemon);
    }
    if (r >= 0) {
        r = sd_event_source_set_description(daemon->end_source, "end");
    }
    return r < 0 ? r : sd_event_source_set_description(daemon->served_source, "served");
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
    struct daemon *daemon = userdata;
    const char *name = info->ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT";
    (void)source;
    if (daemon->is_ending) {
        log_info("another %s: ending at once", name);
        return sd_event_exit(daemon->event, 0);
    }
    daemon->is_ending = true;
    (void)sd_notify(0, "STOPPING=1");
    control_begin_end(daemon->control);
    if (control_has_ended(daemon->control)) {
        log_info("%s from process %u: the daemon ends", name, (unsigned)info->ssi_pid);
        return sd_event_exit(daemon->event, 0);
    }
    log_info("%s: sampling ends; what was recorded can be read for %u s", name,
             (unsigned)(SERVE_USEC / SECOND_USEC));
    int r = serve_what_is_left(daemon);
    return r < 0 ? sd_event_exit(daemon->event, r) : 0;
}

/* Before any thread is there, so that every thread has the signals blocked. */
static int take_signals(struct daemon *daemon)
{
    int r = sd_event_add_signal(daemon->event, NULL, SIGTERM | SD_EVENT_SIGNAL_PROCMASK, on_signal,
                                daemon);
    return r < 0 ? r
                 : sd_event_add_signal(daemon->event, NULL, SIGINT | SD_EVENT_SIGNAL_PROCMASK,
                                       on_signal, daemon);
}

/* At most once a second, and when it is another one. */
static void tell_status(struct daemon *daemon)
{
    struct control_line line = control_describe(daemon->control);
    if (strcmp(line.text, daemon->told.text) != 0) {
        daemon->told = line;
        (void)sd_notifyf(0, "STATUS=%s", line.text);
    }
}

static bool is_idle_for_long(struct daemon *daemon)
{
    uint64_t usec = 0;
    if (sd_event_now(daemon->event, CLOCK_MONOTONIC, &usec) < 0 ||
        !control_is_idle(daemon->control) || daemon->busy_usec == 0) {
        daemon->busy_usec = usec;
    }
    return daemon->idle_exit_s > 0 && usec - daemon->busy_usec >= daemon->idle_exit_s * SECOND_USEC;
}

/* Once each: what keeps every worker from its work. */
static void tell_of_worker(struct daemon *daemon)
{
    static const char *const lines[ELF_WORKER_TROUBLES] = {
        [ELF_WORKER_NO_FILTER] =
            "the worker, which reads files, does not run where it cannot load its system call "
            "filter: functions stay without names, and stacks without call-frame information; the "
            "kernel needs CONFIG_SECCOMP_FILTER, and a container must allow seccomp(2)",
        [ELF_WORKER_REFUSED_CALL] =
            "the worker, which reads files, was killed for a system call that its filter does not "
            "know: functions stay without names; the kernel's log has the number of the call "
            "(journalctl -k -g type=1326): report it with the version of the C library, which may "
            "be newer than this program",
    };
    unsigned troubles = module_cache_counts(daemon->cache).worker_troubles;
    for (size_t i = 0; i < ELF_WORKER_TROUBLES; i++) {
        if (lines[i] != NULL && (troubles & ~daemon->told_troubles & 1U << i) != 0) {
            log_warning(0, "%s", lines[i]);
        }
    }
    daemon->told_troubles = troubles;
}

/* Once: any user can write such a file again and again. */
static void tell_of_jitdump(struct daemon *daemon)
{
    const struct module_cache_counts counts = module_cache_counts(daemon->cache);
    if (counts.foreign_clock_count > 0 && !daemon->has_told_clock) {
        daemon->has_told_clock = true;
        log_warning(0,
                    "a jitdump of uid %u was not read: its header says that it has times of the "
                    "processor's own counter, which samples do not have; its runtime must write "
                    "CLOCK_MONOTONIC (for libperf-jvmti.so, unset JITDUMP_USE_ARCH_TIMESTAMP); "
                    "this is not logged again",
                    (unsigned)counts.foreign_clock_uid);
    }
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct daemon *daemon = userdata;
    (void)usec;
    module_cache_dispatch(daemon->cache);
    control_tick(daemon->control);
    tell_of_worker(daemon);
    tell_of_jitdump(daemon);
    tell_status(daemon);
    if (is_idle_for_long(daemon)) {
        log_info("there was no session and no connection for %u s: ending", daemon->idle_exit_s);
        return sd_event_exit(daemon->event, 0);
    }
    int r = sd_event_source_set_time_relative(source, TICK_USEC);
    return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* A service manager that is not told in time ends the daemon, and starts another one. */
static int on_watchdog(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct daemon *daemon = userdata;
    uint64_t silent_usec = control_silent_ns(daemon->control) / 1000;
    bool is_silent = silent_usec > daemon->watchdog_usec / 2;
    (void)usec;
    if (!is_silent) {
        (void)sd_notify(0, "WATCHDOG=1");
    } else if (!daemon->is_silent) {
        log_warning(0, "the collector has not moved for %u ms: the watchdog is told no more",
                    (unsigned)(silent_usec / 1000));
    }
    daemon->is_silent = is_silent;
    int r = sd_event_source_set_time_relative(source, daemon->watchdog_usec / BEATS);
    return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int feed_watchdog(struct daemon *daemon)
{
    int r = sd_watchdog_enabled(1, &daemon->watchdog_usec);
    if (r <= 0) {
        return r;
    }
    r = sd_event_add_time_relative(daemon->event, &daemon->watchdog_source, CLOCK_MONOTONIC, 0, 0,
                                   on_watchdog, daemon);
    if (r >= 0) {
        r = sd_event_source_set_exit_on_failure(daemon->watchdog_source, true);
    }
    return r < 0 ? r : sd_event_source_set_description(daemon->watchdog_source, "watchdog");
}

/* The user that the worker becomes, where the daemon may change users at all. */
static struct elf_worker_config worker_identity(void)
{
    const struct passwd *user = getpwnam(WORKER_USER);
    if (user == NULL) {
        if (geteuid() == 0) {
            log_warning(0,
                        "there is no user '%s': files are read as uid %d, which others may be too; "
                        "systemd-sysusers makes it, or useradd --system",
                        WORKER_USER, NOBODY);
        }
        return (struct elf_worker_config){.uid = NOBODY, .gid = NOBODY};
    }
    return (struct elf_worker_config){.uid = user->pw_uid, .gid = user->pw_gid};
}

static int set_up_cache(struct daemon *daemon)
{
    uint64_t memory_bytes = memory_limit_bytes(MEMORY_LIMIT_GROUPS, MEMORY_LIMIT_ROOT);
    /* The second worker reads what is quick, beside a first one that may use more. */
    const struct module_cache_config config = {
        .worker = worker_identity(),
        .second_memory_bytes =
            min_u64(max_u64(memory_bytes / SECOND_WORKER_PART, SECOND_WORKER_BYTES_MIN),
                    SECOND_WORKER_BYTES_MAX),
        .table_bytes_max = min_u64(memory_bytes / TABLES_PART, TABLES_BYTES_MAX),
    };
    int r = module_cache_new(&config, &daemon->cache);
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

/* For Status. If the kernel refuses, Create replies with the reason. */
static struct perf_features probe_features(void)
{
    struct perf_features features = {0};
    struct fault fault;
    if (perf_source_probe(&features, &fault) < 0) {
        log_warning(0, "no session can be created for now: %s", fault.text);
    }
    return features;
}

static int set_up(struct daemon *daemon, const struct daemon_params *params)
{
    cleanup_(closep) int fd = params->listen_fd;
    int r = sd_event_default(&daemon->event);
    if (r < 0) {
        return log_error(r, "there is no event loop");
    }
    r = take_signals(daemon);
    if (r < 0) {
        return log_error(r, "signals cannot be handled");
    }
    r = account_load(ACCOUNT_FILES_OF_MACHINE);
    if (r < 0) {
        (void)log_warning(r, "'%s', '%s' or '%s' cannot be read, so each uid has shares of its own",
                          ACCOUNT_FILES_OF_MACHINE->subuid, ACCOUNT_FILES_OF_MACHINE->passwd,
                          ACCOUNT_FILES_OF_MACHINE->nsswitch);
    }
    r = set_up_cache(daemon);
    if (r < 0) {
        return r;
    }
    struct control_params control = {
        .event = daemon->event,
        .cache = daemon->cache,
        .config = params->config,
        .features = probe_features(),
        .priority = PRIORITY_PEER,
    };
    r = control_new(take_fd(fd), &control, &daemon->control);
    if (r < 0) {
        return log_error(r, "the control socket cannot be served");
    }
    r = feed_watchdog(daemon);
    return r < 0 ? log_error(r, "the watchdog cannot be told") : 0;
}

int daemon_run(const struct daemon_params *params)
{
    cleanup_(daemon_done) struct daemon daemon = {.idle_exit_s = params->idle_exit_s};
    int r = set_up(&daemon, params);
    if (r < 0) {
        return r;
    }
    if (params->idle_exit_s > 0) {
        log_info("listening on %s; ends after %u s without a session and a connection",
                 params->address, params->idle_exit_s);
    } else {
        log_info("listening on %s", params->address);
    }
    daemon.told = control_describe(daemon.control);
    (void)sd_notifyf(0, "READY=1\nSTATUS=%s", daemon.told.text);
    r = sd_event_loop(daemon.event);
    if (!daemon.is_ending) {
        (void)sd_notify(0, "STOPPING=1");
    }
    return r;
}
