/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sender, and when it tries again. A wait is twice as long as the one before, up to a minute,
 * and by a random part shorter, so that many hosts whose store was away do not come back as one;
 * what the store asks for is a least, and the random part comes on top of it. A process has one
 * pusher.
 */
#include "pusher.h"

#include "cleanup.h"
#include "clock.h"
#include "extremes.h"
#include "options.h"
#include "recording.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>

#define WAIT_FIRST_NS (NS_PER_S / 4)
#define WAIT_TRIES    8 /* 64 s; it is not doubled after that */

/* A signal between a look for it and the sleep is seen this late. */
#define NAP_NS NS_PER_S

static volatile sig_atomic_t stopped_by; /* the signal; 0: none has come */

static void on_signal(int number)
{
    stopped_by = number;
}

bool pusher_is_stopped(void)
{
    return stopped_by != 0;
}

void pusher_end_by_signal(void)
{
    if (pusher_is_stopped()) {
        (void)signal(stopped_by, SIG_DFL);
        (void)raise(stopped_by);
    }
}

/* No core has what the headers say, and no other process of the user reads it. */
static void keep_secret(void)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)prctl(PR_SET_DUMPABLE, 0);
}

/* A proxy with a password in its address would be in the list of processes. */
static int check_target(const struct push_target *target, struct fault *reterr)
{
    bool has_path = false;
    struct fault fault = {0};
    if (target->proxy != NULL && transport_check_url(target->proxy, &has_path, &fault) < 0) {
        return fault_set(reterr, EINVAL, "--proxy: the address %s", fault.text);
    }
    if (target->url != NULL && transport_check_url(target->url, &has_path, &fault) < 0) {
        return fault_set(reterr, EINVAL, "--to: the address %s", fault.text);
    }
    return 0;
}

int pusher_new(const struct push_target *target, struct pusher **ret, struct fault *reterr)
{
    const struct sigaction action = {.sa_handler = on_signal};
    int r = check_target(target, reterr);
    if (r < 0) {
        return r;
    }
    if (target->headers_path != NULL) {
        keep_secret();
    }
    cleanup_(pusher_freep) struct pusher *pusher = calloc(1, sizeof *pusher);
    if (pusher == NULL) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    pusher->target = *target;
    r = target->url == NULL ? 0 : transport_new(target, &pusher->transport, reterr);
    if (r < 0) {
        return r;
    }
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    *ret = take_ptr(pusher);
    return 0;
}

struct pusher *pusher_free(struct pusher *pusher)
{
    if (pusher != NULL) {
        pusher->transport = transport_free(pusher->transport);
        free(pusher);
    }
    return NULL;
}

void pusher_freep(struct pusher **pusher)
{
    *pusher = pusher_free(*pusher);
}

const struct push_totals *pusher_totals(const struct pusher *pusher)
{
    return &pusher->totals;
}

uint64_t pusher_count_samples(const char *path)
{
    struct record_scan scan;
    struct input_summary summary = {0};
    uint64_t count = 0;
    if (record_scan_init(&scan) == 0) {
        (void)input_read(path, record_scan_record, &scan, &summary, NULL);
        count = scan.sample_count + scan.event_sample_count;
    }
    record_scan_done(&scan);
    return count;
}

static uint64_t random_below(uint64_t limit)
{
    uint64_t number = 0;
    bool is_random = getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number;
    return limit == 0 || !is_random ? 0 : number % limit;
}

/* Sleeps until a time of CLOCK_BOOTTIME, or a signal. */
static void sleep_until(uint64_t end_ns)
{
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    while (!pusher_is_stopped() && now_ns < end_ns) {
        const struct timespec next = clock_timespec(min_u64(end_ns, now_ns + NAP_NS));
        (void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &next, NULL);
        now_ns = clock_ns(CLOCK_BOOTTIME);
    }
}

/* Whether two texts are equal but for numbers, such as that of milliseconds. */
static bool is_said(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    for (;; a++, b++) {
        a += strspn(a, digits);
        b += strspn(b, digits);
        if (*a != *b || *a == '\0') {
            return *a == *b;
        }
    }
}

void pusher_complain(struct pusher *pusher, const char *text)
{
    if (!is_said(pusher->last_text, text)) {
        (void)complain("%s", text);
        (void)snprintf(pusher->last_text, sizeof pusher->last_text, "%s", text);
    }
}

void pusher_complain_once(struct pusher *pusher, const char *text)
{
    char begin[sizeof pusher->said[0]];
    (void)snprintf(begin, sizeof begin, "%s", text);
    for (size_t i = 0; i < pusher->said_count && i < PUSHER_SAID_MAX; i++) {
        if (strcmp(pusher->said[i], begin) == 0) {
            return;
        }
    }
    (void)complain("%s", text);
    memcpy(pusher->said[pusher->said_count++ % PUSHER_SAID_MAX], begin, sizeof begin);
}

void pusher_count(struct pusher *pusher, uint64_t samples, const struct progress *progress)
{
    struct push_totals *totals = &pusher->totals;
    totals->samples += samples;
    totals->accepted_samples += progress->accepted;
    totals->partly_samples += progress->partly;
    totals->rejected_samples += progress->rejected;
    totals->rejected_profiles += progress->rejected_profiles;
}

void pusher_taken(struct pusher *pusher)
{
    if (pusher->tries > 0 && pusher->last_text[0] != '\0') {
        (void)complain("the store takes requests again");
    }
    pusher->tries = 0;
    pusher->last_text[0] = '\0';
    pusher->taken_ns = clock_ns(CLOCK_BOOTTIME);
}

bool pusher_wait(struct pusher *pusher, uint64_t asked_s)
{
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    uint64_t base_ns = WAIT_FIRST_NS << min_u64(pusher->tries, WAIT_TRIES);
    uint64_t wait_ns = asked_s > 0 ? asked_s * NS_PER_S + random_below(base_ns)
                                   : base_ns / 2 + random_below(base_ns / 2);
    pusher->tries++;
    if (pusher->taken_ns == 0) {
        pusher->taken_ns = now_ns;
    }
    uint64_t waited_ns = now_ns - pusher->taken_ns;
    if (pusher_is_stopped() || waited_ns >= pusher->patience_ns ||
        wait_ns > pusher->patience_ns - waited_ns ||
        (pusher->on_wait != NULL && !pusher->on_wait(pusher, pusher->userdata))) {
        return false;
    }
    sleep_until(now_ns + wait_ns);
    return !pusher_is_stopped() &&
           (pusher->on_wait == NULL || pusher->on_wait(pusher, pusher->userdata));
}
