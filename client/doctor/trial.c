/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The way that every sample goes, tried once: Create, Start, a second, Stop, Read, and the reading
 * of what came. The stacks of the child are known, so each of its samples can be judged.
 */
#include "trial.h"

#include "books_print.h"
#include "cleanup.h"
#include "clock.h"
#include "connection.h"
#include "elf_facts.h"
#include "profile.h"

#include <errno.h>
#include <link.h>
#include <poll.h>
#include <string.h>

#define SAMPLED_MS          1000
#define DRAIN_INTERVAL_MS   5
#define DRAIN_LIMIT_MS      10000
#define RECORDING_BYTES_MAX ((size_t)32 << 20)
#define CONFIG_BYTES        ((size_t)160)

/* A buffer that grows. */
struct bytes {
    uint8_t *bytes; /* owned */
    size_t size_bytes;
};

static void bytes_done(struct bytes *bytes)
{
    free(bytes->bytes);
}

/* The session is there, so this is a fault, and not a check that could not be made. */
static void fail(struct sample_facts *facts, const char *text)
{
    facts->has_failed = true;
    (void)snprintf(facts->text, sizeof facts->text, "%s", text);
}

static void refuse(struct sample_facts *facts, const struct profctl_fault *fault)
{
    facts->is_refused = true;
    facts->code = fault->code;
    (void)snprintf(facts->text, sizeof facts->text, "%s", fault->text);
}

static int create(struct profctl *conn, pid_t pid, bool with_kernel, struct profctl_fault *fault)
{
    char config[CONFIG_BYTES];
    (void)snprintf(config, sizeof config, "{\"targets\":{\"pids\":[%d]},\"max_duration_s\":30%s}",
                   (int)pid, with_kernel ? ",\"kernel_stacks\":true" : "");
    return profctl_create(conn, config, false, fault);
}

/* Makes the session and starts it. Returns whether it runs. */
static bool begin(struct profctl *conn, pid_t pid, struct sample_facts *facts)
{
    static const char kernel_stacks[] = "kernel_stacks:";
    struct profctl_fault fault = {0};
    int r = create(conn, pid, true, &fault);
    if (r < 0 && strncmp(fault.text, kernel_stacks, sizeof kernel_stacks - 1) == 0) {
        facts->is_kernel_off = true;
        r = create(conn, pid, false, &fault);
    }
    if (r >= 0) {
        const struct connection_notes *notes = connection_notes(conn);
        for (size_t i = 0; i < notes->remark_count; i++) {
            size_t used_bytes = strlen(facts->remarks);
            (void)snprintf(facts->remarks + used_bytes, sizeof facts->remarks - used_bytes, "%s\n",
                           notes->remarks[i]);
        }
        r = profctl_start(conn, &fault);
    }
    if (r < 0) {
        refuse(facts, &fault);
    }
    return r >= 0;
}

/* Reads what is ready. Returns 0 or -errno. */
static int read_ready(struct profctl *conn, struct bytes *into, bool *ret_end)
{
    size_t got_bytes = 0;
    do {
        if (into->size_bytes + PROFCTL_READ_BYTES_MAX > RECORDING_BYTES_MAX) {
            return -EFBIG;
        }
        int r = profctl_read(conn, into->bytes + into->size_bytes, PROFCTL_READ_BYTES_MAX,
                             &got_bytes, ret_end);
        if (r < 0) {
            return r;
        }
        into->size_bytes += got_bytes;
    } while (got_bytes > 0 && !*ret_end);
    return 0;
}

static int read_all(struct profctl *conn, struct bytes *into)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + DRAIN_LIMIT_MS * NS_PER_MS;
    bool is_over = false;
    int r = 0;
    while (r == 0 && !is_over) {
        r = read_ready(conn, into, &is_over);
        if (r == 0 && !is_over) {
            (void)poll(NULL, 0, DRAIN_INTERVAL_MS);
            r = clock_ns(CLOCK_MONOTONIC) > end_ns ? -ETIMEDOUT : 0;
        }
    }
    return r;
}

static bool is_function(const struct profile *profile, const struct profile_frame *frame,
                        const char *name)
{
    return frame->is_kernel == 0 && strcmp(profile_text(profile, frame->name), name) == 0;
}

/* The names that stand for functions of the kernel without one begin so. */
static bool has_kernel_name(const struct profile *profile, const struct profile_frame *frame)
{
    const char *name = profile_text(profile, frame->name);
    return name[0] != '[' && strstr(name, "+0x") == NULL;
}

static void count_sample(const struct profile *profile, const struct profile_sample *sample,
                         struct sample_facts *facts)
{
    size_t count = 0;
    const uint32_t *chain = profile_chain(profile, sample->chain, &count);
    bool has_outer = false;
    bool has_kernel = false;
    bool is_kernel_named = true;
    for (size_t i = 0; i < count; i++) {
        const struct profile_frame *frame = profile_frame(profile, chain[i]);
        if (frame->is_kernel != 0) {
            has_kernel = true;
            is_kernel_named = is_kernel_named && has_kernel_name(profile, frame);
        }
        if (is_function(profile, frame, SPIN_OUTER)) {
            has_outer = true;
            if (frame->module != INTERN_NONE) {
                (void)snprintf(facts->build_id, sizeof facts->build_id, "%s",
                               profile_text(profile, profile->modules[frame->module].build_id));
            }
        }
    }
    facts->sample_count++;
    facts->complete_count += profile_rooted(sample) == PROFILE_STACK_COMPLETE;
    facts->named_count += has_outer;
    facts->kernel_count += has_kernel;
    facts->kernel_named_count += has_kernel && is_kernel_named;
}

int trial_count(const uint8_t *bytes, size_t size_bytes, pid_t pid, struct sample_facts *facts)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    struct fault fault = {0};
    int r = profile_load_memory(bytes, size_bytes, NULL, &profile, &fault);
    if (r < 0) {
        fail(facts, fault.text);
        return r;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        if (profile_task(profile, profile->samples[i].task)->pid == (uint64_t)pid) {
            count_sample(profile, &profile->samples[i], facts);
        }
    }
    facts->books_json = take_ptr(profile->books_json);
    return 0;
}

/* A callback of dl_iterate_phdr(), whose first object is the program. */
static int take_own_build_id(struct dl_phdr_info *info, size_t size, void *userdata)
{
    struct sample_facts *facts = userdata;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum && facts->own_build_id[0] == '\0'; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_NOTE) {
            elf_facts_build_id((const uint8_t *)(info->dlpi_addr + header->p_vaddr),
                               header->p_memsz, facts->own_build_id);
        }
    }
    return 1;
}

void trial_gather(struct profctl *conn, struct spin *spin, struct sample_facts *ret)
{
    cleanup_(bytes_done) struct bytes recording = {.bytes = malloc(RECORDING_BYTES_MAX)};
    struct profctl_fault fault = {0};
    *ret = (struct sample_facts){0};
    (void)dl_iterate_phdr(take_own_build_id, ret);
    if (recording.bytes == NULL) {
        (void)snprintf(ret->why, sizeof ret->why, "there is not enough memory");
        return;
    }
    if (!begin(conn, spin->pid, ret)) {
        return;
    }
    spin_go(spin);
    (void)poll(NULL, 0, SAMPLED_MS);
    if (profctl_stop(conn, &fault) < 0) {
        fail(ret, fault.text);
        return;
    }
    pid_t pid = spin->pid;
    uint64_t ran_ns = spin_end(spin);
    int r = read_all(conn, &recording);
    if (r < 0) {
        fail(ret, r == -EFBIG       ? "its recording is too large"
                  : r == -ETIMEDOUT ? "its recording could not be read in time"
                                    : connection_notes(conn)->fault.text);
        return;
    }
    (void)profctl_close(conn, NULL);
    if (trial_count(recording.bytes, recording.size_bytes, pid, ret) == 0) {
        uint64_t period_ns = books_print_period_ns(ret->books_json);
        ret->expected_count = period_ns == 0 ? 0 : ran_ns / period_ns;
    }
}

void trial_done(struct sample_facts *facts)
{
    free(facts->books_json);
    facts->books_json = NULL;
}
