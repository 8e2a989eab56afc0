/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl push`: recordings to a store of the team's, by OTLP over HTTP, and to a folder as they
 * are.
 */
#include "cleanup.h"
#include "clock.h"
#include "json_out.h"
#include "options.h"
#include "push.h"
#include "text_out.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RECORDINGS_MAX    ((size_t)1024)
#define PATH_BYTES        ((size_t)4096)
#define WINDOW_S_DEFAULT  15
#define WINDOW_S_MAX      3600
#define TIMEOUT_S_MAX     86400
#define REQUEST_BYTES_MAX (UINT64_C(1) << 30)
#define SECONDS_MAX       (UINT64_C(10) * 365 * 86400)
/* What Grafana Pyroscope takes, less a tenth for what it adds. */
#define SAMPLES_DEFAULT 16000
#define FRAMES_MAX      1000
#define BYTES_DEFAULT   ((uint64_t)15 << 18)

struct operands {
    const char *paths[RECORDINGS_MAX];
    size_t count;
};

struct push_request {
    struct operands operands;
    struct push_target target;
    struct push_keep keep;
    const char *folder;
    const char *progress_path;
    uint64_t window_s;
    uint64_t samples_max;
    uint64_t bytes_max;
    uint64_t patience_s;
    unsigned labels;
    bool is_json;
};

static int take_operand(const struct command_line *line, const struct verb_option *option,
                        const char *value, void *into)
{
    struct operands *operands = into;
    (void)option;
    if (operands->count == RECORDINGS_MAX) {
        return options_refuse(line, "more than %zu recordings are too many", RECORDINGS_MAX);
    }
    operands->paths[operands->count++] = value;
    return EXIT_DONE;
}

/* A number with a letter behind it that multiplies it; '\0' is one that may be missing. */
static bool read_amount(const char *text, const char *letters, const uint64_t *factors,
                        uint64_t *ret)
{
    char digits[24];
    size_t bytes = strspn(text, "0123456789");
    const char *letter = text[bytes] == '\0' ? letters : strchr(letters, text[bytes]);
    if (bytes == 0 || bytes >= sizeof digits || letter == NULL ||
        (text[bytes] != '\0' && text[bytes + 1] != '\0')) {
        return false;
    }
    memcpy(digits, text, bytes);
    digits[bytes] = '\0';
    uint64_t factor = factors[letter - letters];
    return options_number(digits, UINT64_MAX / factor, ret) && (*ret *= factor) > 0;
}

static bool read_bytes(const char *text, uint64_t *ret)
{
    static const uint64_t factors[] = {1, UINT64_C(1) << 10, UINT64_C(1) << 20, UINT64_C(1) << 30};
    return read_amount(text, "BKMG", factors, ret);
}

static int take_bytes(const struct command_line *line, const struct verb_option *option,
                      const char *value, void *into)
{
    return read_bytes(value, into)
               ? EXIT_DONE
               : options_refuse(line, "--%s: '%s': is no number of bytes; such as 500M or 2G",
                                option->name, value);
}

static bool read_seconds(const char *text, uint64_t max, uint64_t *ret)
{
    static const uint64_t factors[] = {1, 60, 3600, 86400};
    return read_amount(text, "smhd", factors, ret) && *ret <= max;
}

static int take_seconds(const struct command_line *line, const struct verb_option *option,
                        const char *value, void *into)
{
    return read_seconds(value, SECONDS_MAX, into)
               ? EXIT_DONE
               : options_refuse(line, "--%s: '%s': is no time; such as 30s, 5m, 24h or 7d",
                                option->name, value);
}

static int take_timeout(const struct command_line *line, const struct verb_option *option,
                        const char *value, void *into)
{
    return read_seconds(value, TIMEOUT_S_MAX, into)
               ? EXIT_DONE
               : options_refuse(line, "--%s: '%s': is no time from 1s to 1d", option->name, value);
}

static int take_window(const struct command_line *line, const struct verb_option *option,
                       const char *value, void *into)
{
    return read_seconds(value, WINDOW_S_MAX, into)
               ? EXIT_DONE
               : options_refuse(line, "--%s: '%s': is no time from 1s to 1h", option->name, value);
}

static int take_request_bytes(const struct command_line *line, const struct verb_option *option,
                              const char *value, void *into)
{
    return read_bytes(value, into) && *(uint64_t *)into <= REQUEST_BYTES_MAX
               ? EXIT_DONE
               : options_refuse(line, "--%s: '%s': is no number of bytes up to 1G", option->name,
                                value);
}

static int take_samples(const struct command_line *line, const struct verb_option *option,
                        const char *value, void *into)
{
    return options_number(value, UINT32_MAX, into) && *(uint64_t *)into > 0
               ? EXIT_DONE
               : options_refuse(line, "--%s: '%s': is no number of samples", option->name, value);
}

static const char *label_name(size_t number)
{
    static const char *const names[] = {[OTLP_DETAIL_SERVICE] = "service",
                                        [OTLP_DETAIL_PROCESS] = "process",
                                        [OTLP_DETAIL_THREAD] = "thread",
                                        NULL};
    return names[number];
}

#define AT(member) offsetof(struct push_request, member)

static const struct verb_option options[] = {
    {0, "to", "URL", "the store; without a path /v1development/profiles", options_text,
     AT(target.url), 0},
    {0, "headers", "FILE", "lines \"Name: value\"; of mode 0600", options_text,
     AT(target.headers_path), 0},
    {0, "ca", "FILE", "certificates that sign the store's (the system's)", options_text,
     AT(target.ca_path), 0},
    {0, "proxy", "URL", "as the environment has it (http_proxy, no_proxy)", options_text,
     AT(target.proxy), 0},
    {0, "timeout", "TIME", "of one request (30s)", take_timeout, AT(target.timeout_s), 0},
    {0, "patience", "TIME", "how long the store may take nothing (5m)", take_seconds,
     AT(patience_s), 0},
    {0, "no-gzip", NULL, "requests are not compressed", options_flag, AT(target.is_plain), 0},
    {0, "raw", "FOLDER", "copies each recording to FOLDER/HOST/ too", options_text,
     AT(target.raw_folder), 0},
    {0, "progress", "FILE", "where it is noted what has been sent (FILE.push)", options_text,
     AT(progress_path), 0},
    {0, "labels", "WHAT", "what a sample has: service, process, thread (service)", options_choice,
     AT(labels), 0, label_name},
    {0, "window", "TIME", "a profile's samples are of so long (15s)", take_window, AT(window_s), 0},
    {0, "max-samples", "N", "of a profile (16000)", take_samples, AT(samples_max), 0},
    {0, "max-bytes", "SIZE", "of a request, before it is compressed (3840K)", take_request_bytes,
     AT(bytes_max), 0},
    OPTION_JSON(AT(is_json)),
    {.help = "A folder of recordings:"},
    {0, "folder", "FOLDER",
     "sends all recordings in it, and removes each that is\n"
     "settled; ends when there is none",
     options_text, AT(folder), 0},
    {0, "keep-bytes", "SIZE", "what may wait while the store is away (1G)", take_bytes,
     AT(keep.bytes), 0},
    {0, "keep-age", "TIME", "how long it may (24h)", take_seconds, AT(keep.age_s), 0},
    {0},
};

static const struct command_line line = {
    .usage = "profctl push FILE... --to URL [OPTION...]",
    .help = "Sends recordings to a store by OTLP over HTTP: a profile for each service and\n"
            "event, of at most 15 s. Tries again what the store cannot take now, and goes on\n"
            "where an earlier run has stopped. FILE may be compressed with gzip; \"-\" is\n"
            "standard input.\n",
    .options = options,
    .operand = "recording",
    .operand_at = AT(operands),
    .take_operand = take_operand,
};

static int check_request(struct push_request *request)
{
    if (request->target.url == NULL && request->target.raw_folder == NULL) {
        return options_refuse(&line, "name the store's address with --to, or with --raw a folder");
    }
    if ((request->folder != NULL) == (request->operands.count > 0)) {
        return options_refuse(&line, "name recordings, or with --folder a folder of them");
    }
    if (request->progress_path != NULL && request->operands.count != 1) {
        return options_refuse(&line, "--progress takes one recording");
    }
    for (size_t i = 0; i < request->operands.count; i++) {
        if (strcmp(request->operands.paths[i], "-") == 0 && request->target.raw_folder != NULL) {
            return options_refuse(&line, "--raw: standard input has no name to be copied under");
        }
    }
    request->target.limits = (struct otlp_limits){
        .window_ns = request->window_s * NS_PER_S,
        .samples_max = (size_t)request->samples_max,
        .frames_max = FRAMES_MAX,
        .bytes_max = (size_t)request->bytes_max,
        .detail = request->labels,
    };
    return OPTIONS_TAKEN;
}

static uint64_t unsent(const struct push_totals *totals)
{
    return totals->samples - totals->accepted_samples - totals->partly_samples -
           totals->rejected_samples - totals->given_up_samples;
}

static void print_json(const struct push_totals *totals)
{
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {
        {"recordings", totals->recordings},
        {"samples", totals->samples},
        {"accepted_samples", totals->accepted_samples},
        {"partly_samples", totals->partly_samples},
        {"rejected_samples", totals->rejected_samples},
        {"given_up_samples", totals->given_up_samples},
        {"unsent_samples", unsent(totals)},
        {"given_up_recordings", totals->given_up},
        {"rejected_profiles", totals->rejected_profiles},
        {"cut_stacks", totals->cut_stacks},
        {"requests", totals->requests},
        {"retries", totals->retries},
        {"unsure", totals->unsure},
        {"body_bytes", totals->body_bytes},
        {"message_bytes", totals->message_bytes},
        {"copied_bytes", totals->copied_bytes},
    };
    struct json_out out = {.file = stdout};
    json_out_begin(&out, NULL, '{');
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        json_out_u64(&out, members[i].name, members[i].value);
    }
    json_out_end(&out, '}');
    (void)fputc('\n', stdout);
}

static void print_count(const char *what, uint64_t count)
{
    if (count > 0) {
        (void)printf(", %" PRIu64 " %s", count, what);
    }
}

static void print_totals(const struct push_totals *totals, const struct push_target *target)
{
    char count[TEXT_COUNT_BYTES];
    if (target->url != NULL) {
        (void)printf("%s: %" PRIu64 " accepted", text_samples(totals->samples, count),
                     totals->accepted_samples);
        print_count("in requests of which profiles were rejected", totals->partly_samples);
        print_count("rejected", totals->rejected_samples);
        print_count("given up", totals->given_up_samples);
        print_count("not sent", unsent(totals));
        (void)printf("; %" PRIu64 " request%s, %.1f KiB sent, %.1f KiB before compression\n",
                     totals->requests, totals->requests == 1 ? "" : "s",
                     (double)totals->body_bytes / 0x1p10, (double)totals->message_bytes / 0x1p10);
    }
    if (totals->cut_stacks > 0) {
        (void)printf("%s %s a stack of more than %d frames, cut at its root\n",
                     text_samples(totals->cut_stacks, count),
                     totals->cut_stacks == 1 ? "has" : "have", FRAMES_MAX);
    }
    if (target->raw_folder != NULL) {
        (void)printf("%.1f KiB copied to %s\n", (double)totals->copied_bytes / 0x1p10,
                     target->raw_folder);
    }
}

/* Sends one recording. */
static bool send_file(struct pusher *pusher, const struct push_request *request, const char *path)
{
    char progress_path[PATH_BYTES];
    const char *kept = request->progress_path;
    if (kept == NULL && strcmp(path, "-") != 0 && request->target.url != NULL) {
        int bytes =
            snprintf(progress_path, sizeof progress_path, "%s%s", path, PUSH_PROGRESS_ENDING);
        if (bytes < 0 || (size_t)bytes >= sizeof progress_path) {
            (void)complain("%s: the name is too long", path);
            return false;
        }
        kept = progress_path;
    }
    return pusher_send(pusher, path, kept, request->patience_s) == PUSH_SETTLED;
}

static bool send_all(struct pusher *pusher, const struct push_request *request)
{
    bool is_done = true;
    if (request->folder != NULL) {
        return pusher_send_folder(pusher, request->folder, &request->keep);
    }
    for (size_t i = 0; i < request->operands.count; i++) {
        is_done = send_file(pusher, request, request->operands.paths[i]) && is_done;
    }
    return is_done;
}

int verb_push(int argc, char **argv)
{
    struct push_request request = {
        .target = {.timeout_s = 30},
        .keep = {.bytes = UINT64_C(1) << 30, .age_s = 86400},
        .window_s = WINDOW_S_DEFAULT,
        .samples_max = SAMPLES_DEFAULT,
        .bytes_max = BYTES_DEFAULT,
        .patience_s = 300,
    };
    cleanup_(pusher_freep) struct pusher *pusher = NULL;
    struct fault fault = {0};
    int status = options_take(&line, argc, argv, &request);
    status = status == OPTIONS_TAKEN ? check_request(&request) : status;
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    int r = pusher_new(&request.target, &pusher, &fault);
    if (r < 0) {
        return r == -EINVAL ? options_refuse(&line, "%s", fault.text) : complain("%s", fault.text);
    }
    bool is_done = send_all(pusher, &request);
    const struct push_totals *totals = pusher_totals(pusher);
    if (request.is_json) {
        print_json(totals);
    } else {
        print_totals(totals, &request.target);
    }
    if (request.folder != NULL) {
        (void)fflush(stdout);
        pusher_end_by_signal(); /* to a service manager that stops it, that is no failure */
        return is_done ? EXIT_DONE : EXIT_FAILED; /* what is lost has been said, and is no more */
    }
    bool is_all = totals->rejected_samples + totals->partly_samples == 0 &&
                  (request.target.url == NULL || unsent(totals) == 0);
    return is_done && is_all ? EXIT_DONE : EXIT_FAILED;
}
