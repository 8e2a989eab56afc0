/* SPDX-License-Identifier: Apache-2.0 */

/*
 * States: created -start-> running -stop-> stopping -drained-> stopped -start-> running. Sideband
 * is recorded and /proc is read from creation on, so the process table is whole when the first
 * sample comes.
 *
 * A stop disables the events at once, lets the collector drain the rings, and makes the books. The
 * collector writes the books after the last names. on_stopped() is called when all samples are in
 * the trace buffer, and `end` when samples, names and books have all been read.
 */
#include "session.h"

#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "cpu_list.h"
#include "extremes.h"
#include "log.h"
#include "memory_limit.h"
#include "perf_pmu.h"
#include "session_cpus.h"
#include "trace.h"
#include "trace_cursor.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>

#define HELD_BYTES_MIN   ((uint64_t)32 << 20) /* where that is no more than an eighth */
#define HELD_BYTES_MAX   ((uint64_t)128 << 20)
#define OWN_BYTES        ((uint64_t)32 << 20) /* what a session needs beside its buffers */
#define LOG_BYTES        ((size_t)32 << 20)   /* of definitions; memory as it fills */
#define NAMES_LIMIT_NS   (5 * NS_PER_S)       /* and the end of a recording */
#define NAMES_HOLD_NS    (2 * NS_PER_S)       /* a reader waits so long for names */
#define SHORT_LOG_NS     (5 * NS_PER_S)       /* one user can have a new log no more often */
#define SESSION_ID_BYTES 17
#define BURST_COPY_BYTES 8192
#define LEAST_BUFFER_KIB 256 /* as in a config */
#define RESERVE_BYTES    ((size_t)1 << 20)
#define LIMIT_GRACE_NS   (200 * NS_PER_MS)
#define LIMIT_WAITS_NS   (3 * NS_PER_S)

struct session {
    char id[SESSION_ID_BYTES];
    struct session_config config;
    struct session_params params;
    enum session_state state;
    const char *stopped_by;
    uint64_t created_ns;

    struct perf_source *source;
    struct process_table *processes;
    struct filter *filter;
    struct trace_buffer *buffer;
    size_t held_bytes; /* for samples that wait */
    struct kernel_code *kernel;
    struct address_cache *addresses;
    struct trace *trace;
    struct code_map *code; /* NULL with SESSION_UNWIND_FP */
    struct trace_cursor *reader;
    struct collector *collector;
    sd_event_source *collector_source;
    sd_event_source *duration_source;

    struct session_cpus *cpus;
    void *reserve; /* memory for the books, should there be none left when sampling stops */

    bool finished; /* names and books are in the buffer */
};

/* The clock and the events beside it, where there are any, without those of waits. */
static size_t event_count(const struct session_config *config)
{
    return config->events.count == 0 && config->off_cpu.is_on ? 1 : config->events.count;
}

/* The member "events", by whose places samples name their events; empty where the clock is the one
 * event. Returned: free(). */
static char *print_events(const struct session_config *config)
{
    cleanup_(freep) char *text = NULL;
    size_t text_bytes = 0;
    const struct session_events *events = &config->events;
    FILE *out = open_memstream(&text, &text_bytes);
    if (out == NULL) {
        return NULL;
    }
    static const struct session_event clock = {.name = EVENT_CLOCK,
                                               .code = {.type = EVENT_SOFTWARE}};
    const size_t count = event_count(config);
    for (size_t i = 0; i < count; i++) {
        const struct session_event *event = events->count > 0 ? &events->all[i] : &clock;
        (void)fprintf(out,
                      "%s{\"event\":\"%s\",\"unit\":\"%s\",\"period\":%" PRIu64 ",\"asked\":%s",
                      i == 0 ? ",\"events\":[" : ",", event->name, event_names_unit(&event->code),
                      i == 0              ? config->period_ns
                      : event->period > 0 ? event->period
                                          : 1,
                      i == 0 && !events->clock_is_asked ? "false" : "true");
        if (event->is_follower) {
            (void)fprintf(out, ",\"leader\":\"%s\"", events->all[event->leader].name);
        }
        (void)fputc('}', out);
    }
    for (size_t i = 0; config->off_cpu.is_on && i < SESSION_WAIT_EVENTS; i++) {
        (void)fprintf(out, ",{\"event\":\"%s\",\"unit\":\"%s\",\"period\":1,\"asked\":true}",
                      session_wait_events[i], SESSION_WAIT_UNIT);
    }
    (void)fputs(count > 0 ? "]" : "", out);
    return fclose(out) == 0 ? take_ptr(text) : NULL;
}

/* What the file says of the recording: one line of JSON. Returned: free(). */
static char *print_session(const struct session *session)
{
    struct utsname host;
    char name[sizeof host.nodename * 6];
    char release[sizeof host.release * 6];
    cleanup_(freep) char *config = session_config_print(&session->config);
    cleanup_(freep) char *notes = session_notes_print(&session->config.notes);
    cleanup_(freep) char *events = print_events(&session->config);
    char *text = NULL;
    if (config == NULL || notes == NULL || events == NULL || uname(&host) < 0) {
        return NULL;
    }
    (void)utf8_json(name, sizeof name, host.nodename, strlen(host.nodename));
    (void)utf8_json(release, sizeof release, host.release, strlen(host.release));
    int r = asprintf(&text,
                     "{\"session\":\"%s\",\"version\":\"%s\",\"host\":\"%s\",\"kernel\":\"%s\","
                     "\"created_boot_ns\":%" PRIu64 ",\"created_realtime_ns\":\"%" PRIu64
                     "\",\"config\":%s,\"notes\":%s%s}",
                     session->id, CPU_PROFILERD_VERSION, name, release, session->created_ns,
                     clock_ns(CLOCK_REALTIME), config, notes, events);
    return r < 0 ? NULL : text;
}

/* Whose command lines the session may have: those of its owner, who can read them anyway. */
static struct command_right commands_of(const struct session *session)
{
    return (struct command_right){.is_given = true, .uid = session->params.owner.uid};
}

static int make_filter(struct session *session)
{
    const struct session_config *config = &session->config;
    _Static_assert(MODULE_CACHE_WORKERS == 2, "each worker is excluded");
    int32_t self[] = {(int32_t)getpid(), module_cache_worker_pid(session->params.cache, 0),
                      module_cache_worker_pid(session->params.cache, 1), session->params.owner.pid};
    struct filter_config filter = {
        .targets = &config->targets,
        .excluded_pids = self,
        .excluded_pid_count = config->exclude_self ? sizeof self / sizeof self[0] : 0,
        .excluded_parent_pid = config->exclude_self ? self[0] : 0,
        .kernel_threads = config->kernel_threads,
    };
    session->filter = filter_new(&filter);
    if (session->filter == NULL) {
        return -ENOMEM;
    }
    return 0;
}

/*
 * This process would be killed for more memory than it may use. Beside OWN_BYTES, at most half of
 * it, the buffers get half, whatever was asked for: what does not fit then is dropped, and counted.
 * Samples that wait get a 16th, within bounds: a copied stack of 16 KiB at 4000 Hz is 64 MiB a
 * second of one CPU.
 */
static void fit_buffers(struct session *session)
{
    uint64_t memory_bytes = memory_limit_bytes(MEMORY_LIMIT_GROUPS, MEMORY_LIMIT_ROOT);
    uint64_t held_bytes = max_u64(memory_bytes / 16, min_u64(memory_bytes / 8, HELD_BYTES_MIN));
    session->held_bytes = min_u64(held_bytes, HELD_BYTES_MAX);
    uint64_t own_bytes = min_u64(memory_bytes / 2, OWN_BYTES);
    uint64_t kib = (memory_bytes - own_bytes) / 2 / 1024 / session->source->cpu_count;
    kib = kib < LEAST_BUFFER_KIB ? LEAST_BUFFER_KIB : kib;
    if (session->config.buffer_kib_per_cpu > kib) {
        session_notes_add(&session->config.notes, "buffer_kib_per_cpu",
                          "is %" PRIu64 " instead of %u: of the %" PRIu64
                          " MiB that the daemon may "
                          "use the buffers of all CPUs take at most %" PRIu64,
                          kib, session->config.buffer_kib_per_cpu, memory_bytes >> 20,
                          (memory_bytes - own_bytes) / 2 >> 20);
        session->config.buffer_kib_per_cpu = (uint32_t)kib;
    }
}

static int make_trace(struct session *session)
{
    size_t cpu_count = session->source->cpu_count;
    cleanup_(freep) char *json = print_session(session);
    cleanup_(freep) uint32_t *cpus = calloc(cpu_count, sizeof *cpus);
    /* What is configured is for samples; what the buffer adds to each comes on top. */
    size_t lane_bytes = (size_t)session->config.buffer_kib_per_cpu * 1024;
    lane_bytes += lane_bytes / SESSION_SAMPLE_BYTES * TRACE_GROUP_HEADER_BYTES;
    session->buffer = trace_buffer_new(cpu_count, LOG_BYTES, lane_bytes);
    session->kernel = kernel_code_new();
    session->addresses = address_cache_new();
    if (json == NULL || cpus == NULL || session->buffer == NULL || session->kernel == NULL ||
        session->addresses == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < cpu_count; i++) {
        cpus[i] = session->source->cpus[i].cpu;
    }
    return trace_new(
        &(struct trace_config){
            .buffer = session->buffer,
            .cache = session->params.cache,
            .addresses = session->addresses,
            .kernel = session->kernel,
            .cpus = cpus,
            .cpu_count = cpu_count,
            .session_json = json,
            .hold_ns = NAMES_HOLD_NS,
            .short_ns = SHORT_LOG_NS,
            .max_stack_depth = session->config.max_stack_depth,
            .commands = commands_of(session),
        },
        &session->trace);
}

static void on_file_gone(struct mapped_file *file, void *userdata)
{
    struct session *session = userdata;
    trace_file_gone(file, session->trace);
    code_map_file_gone(file);
}

/* Everything that only takes memory. */
static int make_parts(struct session *session)
{
    int r = make_trace(session);
    if (r == 0) {
        r = trace_cursor_new(session->buffer, &session->reader);
    }
    if (r < 0) {
        return r;
    }
    session->processes = process_table_new(on_file_gone, session);
    session->reserve = malloc(RESERVE_BYTES);
    if (session->processes == NULL || session->reserve == NULL) {
        return -ENOMEM;
    }
    if (session->config.unwind != SESSION_UNWIND_FP) {
        session->code = code_map_new(session->params.cache, session->addresses);
    }
    if (session->config.unwind != SESSION_UNWIND_FP && session->code == NULL) {
        return -ENOMEM;
    }
    return make_filter(session);
}

static char *print_books(struct session *session, bool totals_only)
{
    size_t cpu_count = session->source->cpu_count;
    cleanup_(freep) struct books_cpu *cpus = calloc(cpu_count, sizeof *cpus);
    struct books books = {
        .period_ns = session->config.period_ns,
        .cpus = cpus,
        .cpu_count = cpu_count,
        .totals_only = totals_only,
    };
    if (cpus == NULL) {
        return NULL;
    }
    const struct session_events *events = &session->config.events;
    for (size_t i = 1; i < events->count; i++) {
        books.events[books.event_count++] = (struct books_event_name){
            .name = events->all[i].name,
            .unit = event_names_unit(&events->all[i].code),
            .period = events->all[i].period,
            .leader = events->all[i].is_follower ? events->all[events->all[i].leader].name : NULL,
        };
    }
    for (size_t i = 0; session->source->config.has_waits && i < SESSION_WAIT_EVENTS; i++) {
        books.events[books.event_count++] = (struct books_event_name){
            .name = session_wait_events[i],
            .unit = SESSION_WAIT_UNIT,
            .period = 1,
            .is_wait = true,
        };
    }
    collector_snapshot(session->collector, &books);
    return books_print(&books);
}

/* The books as they are written into the file: with the time at which they are made, by both
 * clocks. The session has that of its creation, so a reader can tell how far the wall clock was
 * moved. */
static char *print_dated_books(struct session *session, bool totals_only)
{
    cleanup_(freep) char *books = print_books(session, totals_only);
    char *dated = NULL;
    if (books == NULL) {
        return NULL;
    }
    int r =
        asprintf(&dated, "%.*s,\"at_boot_ns\":\"%" PRIu64 "\",\"at_realtime_ns\":\"%" PRIu64 "\"}",
                 (int)strlen(books) - 1, books, clock_ns(CLOCK_BOOTTIME), clock_ns(CLOCK_REALTIME));
    return r < 0 ? NULL : dated;
}

static void finish_stop(struct session *session)
{
    session->state = SESSION_STOPPED;
    free(take_ptr(session->reserve));
    char *books = print_dated_books(session, false);
    if (books != NULL && strlen(books) > TRACE_JSON_BYTES_MAX) {
        free(books);
        books = print_dated_books(session, true);
    }
    if (books == NULL) {
        log_warning(-ENOMEM, "session %s: no memory for the books, ignoring", session->id);
        session->finished = true;
    } else {
        bool is_shutdown = strcmp(session->stopped_by, SESSION_SHUTDOWN) == 0;
        collector_finish(session->collector, books, is_shutdown ? NS_PER_S : NAMES_LIMIT_NS);
    }
    session->params.callbacks.on_stopped(session, session->stopped_by,
                                         session->params.callbacks.userdata);
}

/* The samples that there are will be drained. */
static void end_sampling(struct session *session)
{
    int r = perf_source_disable_sampling(session->source);
    if (r < 0) {
        log_warning(r, "session %s: a CPU's event cannot be switched off, ignoring", session->id);
    }
    collector_drain(session->collector);
}

static int on_collector_event(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct session *session = userdata;
    (void)source;
    (void)fd;
    (void)revents;
    for (;;) {
        switch (collector_take_event(session->collector)) {
        case COLLECTOR_DRAINED:
            finish_stop(session);
            break;
        case COLLECTOR_READ:
            end_sampling(session);
            break;
        case COLLECTOR_FINISHED:
            /* In any other state it is that of a stop which a start has overtaken. */
            session->finished = session->state == SESSION_STOPPED;
            break;
        case COLLECTOR_HUNG:
            log_warning(
                0, "session %s: /proc/%" PRId32 "/maps does not answer; its mappings stay unknown",
                session->id, collector_hung_pid(session->collector));
            break;
        case COLLECTOR_REPLACED:
            session_cpus_replaced(session->cpus);
            break;
        case COLLECTOR_NOTHING:
            return 0;
        }
    }
}

static int begin_collecting(struct session *session)
{
    struct drain_config config = {
        .source = session->source,
        .processes = session->processes,
        .sinks = {{.filter = session->filter,
                   .trace = session->trace,
                   .commands = commands_of(session)}},
        .sink_count = 1,
        .kernel = session->kernel,
        .code = session->code,
        .unwind = session->config.unwind,
        .max_stack_depth = session->config.max_stack_depth,
        .held_bytes = session->held_bytes,
        .min_wait_ns = (uint64_t)session->config.off_cpu.min_wait_us * 1000,
    };
    int r = perf_source_enable_sideband(session->source);
    if (r < 0) {
        return r;
    }
    r = collector_start(&config, &session->collector);
    if (r < 0) {
        return r;
    }
    r = sd_event_add_io(session->params.event, &session->collector_source,
                        collector_fd(session->collector), EPOLLIN, on_collector_event, session);
    if (r < 0) {
        return r;
    }
    (void)sd_event_source_set_description(session->collector_source, "collector");
    return session_cpus_new(
        &(struct session_cpus_params){
            .event = session->params.event,
            .source = session->source,
            .collector = session->collector,
            .session_id = session->id,
        },
        &session->cpus);
}

/* From here on the config says what is done, and the notes where that is less than usual. */
static void take_plan(struct session *session)
{
    const struct perf_plan *plan = &session->source->plan;
    struct session_config *config = &session->config;
    config->stack_copy_bytes = plan->stack_copy_bytes;
    if (plan->stack_copy_bytes == 0) {
        config->unwind = SESSION_UNWIND_FP;
    }
    if (plan->cut.code != 0) {
        session_notes_add(&config->notes, plan->cut.member, "%s", plan->cut.text);
    }
}

/* An event that has a period comes in bursts, of which a ring holds more where the copies are
 * small; what was asked for explicitly is done. */
static uint32_t event_copy_bytes(const struct session_config *config,
                                 const struct session_event *event)
{
    bool is_small = event->period > 0 && config->stack_copy_is_default;
    return is_small && config->stack_copy_bytes > BURST_COPY_BYTES ? BURST_COPY_BYTES
                                                                   : config->stack_copy_bytes;
}

static uint32_t wait_copy_bytes(const struct session_config *config)
{
    const struct session_event switches = {.period = 1};
    return event_copy_bytes(config, &switches);
}

/* The session's events beside the clock, with the numbers that their devices have here. */
static int choose_events(const struct session *session,
                         struct perf_event_choice choices[PERF_EVENTS_MAX], size_t *ret_count,
                         struct fault *reterr)
{
    _Static_assert(SESSION_EVENTS_MAX == 1 + PERF_EVENTS_MAX, "one of them is the clock");
    _Static_assert(EVENT_NAME_BYTES == PERF_EVENT_NAME_BYTES, "no name is cut");
    const struct session_events *events = &session->config.events;
    int r = 0;
    *ret_count = events->count > 0 ? events->count - 1 : 0;
    for (size_t i = 0; i < *ret_count && r == 0; i++) {
        const struct session_event *event = &events->all[i + 1];
        choices[i] = (struct perf_event_choice){
            .code = event->code,
            .is_follower = event->is_follower,
            .leader = event->leader,
            .period = event->period,
            .frequency_hz = event->frequency_hz,
            .stack_copy_bytes = event_copy_bytes(&session->config, event),
        };
        memcpy(choices[i].name, event->name, sizeof choices[i].name);
        if (event->code.type == EVENT_OF_PMU) {
            r = perf_pmu_find(PERF_PMU_ROOT, event->name, &choices[i].code, reterr);
        }
    }
    return r;
}

static int open_source(struct session *session, struct fault *reterr)
{
    cleanup_(freep) uint32_t *cpus = NULL;
    size_t cpu_count = 0;
    if (session->config.cpus[0] != '\0') {
        int r = cpu_list_parse(session->config.cpus, &cpus, &cpu_count);
        if (r < 0) {
            return fault_set(reterr, -r, "no memory for a list of CPUs");
        }
    }
    struct perf_event_choice choices[PERF_EVENTS_MAX];
    size_t choice_count = 0;
    int r = choose_events(session, choices, &choice_count, reterr);
    if (r < 0) {
        return r;
    }
    struct perf_source_config config = {
        .cpus = cpus,
        .cpu_count = cpu_count,
        .events = choices,
        .event_count = choice_count,
        .has_waits = session->config.off_cpu.is_on,
        .wait_cost_percent = session->config.off_cpu.max_cost_percent,
        .wait_copy_bytes = wait_copy_bytes(&session->config),
        .event_rate_max_hz = session->config.max_event_rate_hz,
        .period_ns = session->config.period_ns,
        .max_stack_depth = session->config.max_stack_depth,
        .stack_copy_bytes = session->config.stack_copy_bytes,
        .may_shrink_copy = session->config.stack_copy_is_default,
        .may_drop_copy = session->config.unwind_is_default,
        .may_shrink_time = session->config.rate_is_default,
        .kernel_stacks = session->config.kernel_stacks,
    };
    r = perf_source_open(&config, &session->source, reterr);
    if (r == 0 && config.has_waits && !session->source->config.has_waits) {
        return fault_set_member(reterr, "off_cpu",
                                "needs the pids of all tasks, and the daemon is in a pid namespace "
                                "of its own; start it outside, or leave the member out");
    }
    if (r == 0) {
        take_plan(session);
    }
    if (r == 0 && session->config.targets.unit_count > 0 && !session->source->features.cgroup) {
        return fault_set(reterr, EOPNOTSUPP,
                         "this kernel does not say which control group a sample is of, which "
                         "targets.units needs (Linux 5.7, CONFIG_CGROUP_PERF); give the unit's "
                         "path in targets.cgroups");
    }
    return r;
}

int session_new(const struct session_params *params, const struct session_config *config,
                struct session **ret, struct fault *reterr)
{
    uint64_t id = 0;
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL || getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) {
        free(session);
        return fault_set(reterr, ENOMEM, "there is no memory for a session");
    }
    (void)snprintf(session->id, sizeof session->id, "%016" PRIx64, id);
    session->config = *config;
    session->params = *params;
    session->created_ns = clock_ns(CLOCK_BOOTTIME);

    int r = open_source(session, reterr);
    if (r == 0) {
        fit_buffers(session);
        r = make_parts(session);
        if (r == 0) {
            r = begin_collecting(session);
        }
        if (r < 0) {
            (void)fault_set(reterr, -r, "the session cannot be set up: %s",
                            r == -EAGAIN ? "no thread can be started" : strerror(-r));
        }
    }
    if (r < 0) {
        (void)session_free(session);
        return r;
    }
    *ret = session;
    return 0;
}

struct session *session_free(struct session *session)
{
    if (session == NULL) {
        return NULL;
    }
    (void)session_cpus_free(session->cpus);
    (void)sd_event_source_disable_unref(session->collector_source);
    (void)sd_event_source_disable_unref(session->duration_source);
    if (session->source != NULL) {
        (void)perf_source_disable_sampling(session->source);
    }
    (void)collector_free(session->collector);
    (void)process_table_free(session->processes);
    (void)code_map_free(session->code);
    (void)filter_free(session->filter);
    (void)trace_free(session->trace);
    (void)address_cache_free(session->addresses);
    (void)kernel_code_free(session->kernel);
    (void)trace_cursor_free(session->reader);
    (void)trace_buffer_free(session->buffer);
    (void)perf_source_free(session->source);
    free(session->reserve);
    free(session);
    return NULL;
}

/* The books of threads need what /proc says at the end of the run, which takes milliseconds. */
static void begin_stop(struct session *session, const char *by)
{
    session_cpus_look(session->cpus);
    session->duration_source = sd_event_source_disable_unref(session->duration_source);
    session->state = SESSION_STOPPING;
    session->stopped_by = by;
    if (session->source->config.has_waits) {
        collector_read_times(session->collector);
    } else {
        end_sampling(session);
    }
}

static int on_max_duration(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *session = userdata;
    (void)source;
    (void)usec;
    if (session->state == SESSION_RUNNING) {
        begin_stop(session, "max_duration");
    }
    return 0;
}

/* When the sampling thread ends the sampling that this thread has not ended: a moment after the
 * timer, and with waits when /proc has been read, too. */
static uint64_t sampling_limit_ns(const struct session *session)
{
    uint64_t grace_ns = session->source->config.has_waits ? LIMIT_WAITS_NS : LIMIT_GRACE_NS;
    return session->config.max_duration_s == 0
               ? 0
               : clock_ns(CLOCK_BOOTTIME) + grace_ns + session->config.max_duration_s * NS_PER_S;
}

int session_start(struct session *session, struct fault *reterr)
{
    if (session->state != SESSION_CREATED && session->state != SESSION_STOPPED) {
        return fault_set(reterr, EBADFD, "the session is %s already",
                         session_state_name(session->state));
    }
    session_cpus_look(session->cpus);
    int r = perf_source_enable_sampling(session->source);
    if (r == 0 && session->config.max_duration_s > 0) {
        r = sd_event_add_time_relative(
            session->params.event, &session->duration_source, CLOCK_BOOTTIME,
            (uint64_t)session->config.max_duration_s * 1000000, 0, on_max_duration, session);
    }
    if (r < 0) {
        (void)perf_source_disable_sampling(session->source);
        return fault_set(reterr, -r, "sampling cannot be switched on: %s", strerror(-r));
    }
    if (session->reserve == NULL) {
        session->reserve = malloc(RESERVE_BYTES);
    }
    session->state = SESSION_RUNNING;
    session->finished = false;
    collector_resume(session->collector, sampling_limit_ns(session));
    return 0;
}

int session_stop(struct session *session, const char *by, struct fault *reterr)
{
    if (session->state != SESSION_RUNNING) {
        return fault_set(reterr, EBADFD, "the session is not running, it is %s",
                         session_state_name(session->state));
    }
    begin_stop(session, by);
    return 0;
}

void session_begin_segment(struct session *session)
{
    trace_cursor_begin_segment(session->reader);
}

int session_read(struct session *session, uint64_t ack, size_t capacity_bytes,
                 struct session_chunk *ret, struct fault *reterr)
{
    struct trace_chunk chunk = {0};
    if (!trace_cursor_acknowledge(session->reader, ack)) {
        return fault_set_member(reterr, "ack", "no bytes were handed out with sequence %" PRIu64,
                                ack);
    }
    /* Asked before the read: what comes after it belongs to a later one. */
    bool finished = session->finished;
    if (session->state != SESSION_CREATED) {
        trace_cursor_read(session->reader, capacity_bytes, &chunk);
    }
    *ret = (struct session_chunk){
        .bytes = chunk.bytes,
        .size_bytes = chunk.size_bytes,
        .sequence = chunk.sequence,
        .end = finished && trace_cursor_unread_bytes(session->reader) == chunk.size_bytes,
    };
    return 0;
}

char *session_books(struct session *session, bool totals_only)
{
    return print_books(session, totals_only);
}

enum session_state session_state(const struct session *session)
{
    return session->state;
}

const char *session_state_name(enum session_state state)
{
    switch (state) {
    case SESSION_CREATED:
        return "created";
    case SESSION_RUNNING:
    case SESSION_STOPPING:
        return "running";
    case SESSION_STOPPED:
        return "stopped";
    }
    return "unknown";
}

const char *session_id(const struct session *session)
{
    return session->id;
}

const struct session_owner *session_owner(const struct session *session)
{
    return &session->params.owner;
}

void session_detach(struct session *session)
{
    session->params.owner.detached = true;
}

const struct session_config *session_config(const struct session *session)
{
    return &session->config;
}

uint64_t session_age_ms(const struct session *session)
{
    return (clock_ns(CLOCK_BOOTTIME) - session->created_ns) / NS_PER_MS;
}

uint64_t session_holds_s(const struct session *session)
{
    uint64_t samples = (uint64_t)session->config.buffer_kib_per_cpu * 1024 / SESSION_SAMPLE_BYTES;
    return samples * session->config.period_ns / NS_PER_S;
}

struct session_hotplug session_hotplug(const struct session *session)
{
    struct session_cpus_counts counts = session_cpus_counts(session->cpus);
    return (struct session_hotplug){
        .returned_count = counts.returned,
        .refused_count = counts.refused,
    };
}

void session_acknowledge(struct session *session)
{
    trace_cursor_acknowledge_all(session->reader);
}

uint64_t session_unread_samples(const struct session *session)
{
    return trace_cursor_unread_samples(session->reader);
}

bool session_is_read(const struct session *session)
{
    return session->finished && trace_cursor_unread_bytes(session->reader) == 0;
}

uint64_t session_silent_ns(const struct session *session)
{
    uint64_t beat_ns = collector_beat_ns(session->collector);
    uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);
    return time_ns > beat_ns ? time_ns - beat_ns : 0;
}

struct session_memory session_memory(const struct session *session)
{
    return (struct session_memory){
        .buffer_bytes = trace_buffer_capacity_bytes(session->buffer),
        .buffer_used_bytes = trace_cursor_unread_bytes(session->reader),
        .ring_bytes = session->source->ring_bytes,
    };
}
