/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl merge`: recordings of several hosts as one archive, recording or export.
 */
#include "cleanup.h"
#include "clock.h"
#include "export.h"
#include "input_paths.h"
#include "json_out.h"
#include "load.h"
#include "merge.h"
#include "options.h"
#include "save.h"
#include "selection.h"
#include "text_out.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define RECORDINGS_MAX ((size_t)1024)
#define UNSAID         UINT32_MAX
#define TIME_BYTES     32

struct operands {
    const char *paths[RECORDINGS_MAX];
    size_t count;
};

struct merge_request {
    struct operands operands;
    const char *output_path;
    unsigned format;
    bool is_json;
};

enum merge_format {
    MERGE_ARCHIVE,
    MERGE_FXT,
    MERGE_PPROF, /* from here on of export_formats, as they are called there */
    MERGE_OTLP,
    MERGE_NDJSON,
};

static const char *format_name(size_t number)
{
    static const char *const names[] = {
        [MERGE_ARCHIVE] = "archive", [MERGE_FXT] = "fxt",       [MERGE_PPROF] = "pprof",
        [MERGE_OTLP] = "otlp",       [MERGE_NDJSON] = "ndjson", NULL};
    return names[number];
}

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

#define AT(member) offsetof(struct merge_request, member)

static const struct verb_option options[] = {
    {'o', "output", "FILE",
     "where to; its name tells the format: .tar, .fxt, .fxt.gz,\n"
     "or .pb.gz, .ndjson, .ndjson.gz",
     options_output, AT(output_path), 0},
    {0, "format", "FORMAT",
     "archive: for Perfetto, all files as they are; fxt: one\n"
     "recording; pprof, otlp, ndjson: with labels of hosts",
     options_choice, AT(format), 0, format_name},
    OPTION_JSON(AT(is_json)),
    {0},
};

static const struct command_line line = {
    .usage = "profctl merge FILE... -o FILE [--format FORMAT]",
    .help = "Makes one of several recordings, of several hosts perhaps, on one timeline, and\n"
            "says how far the hosts' clocks may be apart. FILE may be compressed with gzip.\n",
    .options = options,
    .operand = "recording",
    .operand_at = AT(operands),
    .take_operand = take_operand,
};

/* The format that a name tells, or UNSAID. */
static unsigned format_of(const char *path)
{
    static const struct {
        const char *ending;
        enum merge_format format;
    } endings[] = {
        {".tar", MERGE_ARCHIVE}, {".fxt", MERGE_FXT},       {".fxt.gz", MERGE_FXT},
        {".pb.gz", MERGE_PPROF}, {".ndjson", MERGE_NDJSON}, {".ndjson.gz", MERGE_NDJSON},
    };
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (save_ends_in(path, endings[i].ending)) {
            return endings[i].format;
        }
    }
    return UNSAID;
}

/* Whether it is there, and is not a file or a folder, which is refused as it is read. */
static bool is_stream(const char *path)
{
    struct stat status;
    return strcmp(path, "-") == 0 ||
           (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

/* Refuses what can be read once only, and a file that stands there twice. */
static int check_files(const struct operands *operands)
{
    size_t first = 0;
    size_t second = 0;
    for (size_t i = 0; i < operands->count; i++) {
        if (is_stream(operands->paths[i])) {
            return options_refuse(&line, "%s: merge reads a recording twice; name a file",
                                  operands->paths[i]);
        }
    }
    int r = input_find_same_file(operands->paths, operands->count, &first, &second);
    if (r < 0) {
        return complain("there is not enough memory");
    }
    return r == 0 ? OPTIONS_TAKEN
                  : options_refuse(&line,
                                   "%s and %s are the same file, whose samples would count twice; "
                                   "name it once",
                                   operands->paths[first], operands->paths[second]);
}

static int check_request(struct merge_request *request)
{
    if (request->operands.count == 0) {
        return options_refuse(&line,
                              "name recordings, such as: profctl merge a.fxt b.fxt -o all.tar");
    }
    if (request->output_path == NULL) {
        return options_refuse(&line, "name a file with -o, such as all.tar");
    }
    request->format = request->format == UNSAID ? format_of(request->output_path) : request->format;
    if (request->format == UNSAID) {
        return options_refuse(&line, "-o %s: the name tells no format; name one with --format",
                              request->output_path);
    }
    if (request->is_json && strcmp(request->output_path, "-") == 0) {
        return options_refuse(&line, "--json and -o - both write to standard output");
    }
    for (size_t i = 0; i < request->operands.count; i++) {
        if (save_is_input(request->operands.paths[i], request->output_path)) {
            return options_refuse(&line, "-o %s is one of the recordings; name another file",
                                  request->output_path);
        }
    }
    return check_files(&request->operands);
}

/* What is written, as save_file() has it. */
struct writing {
    const struct merge_input *inputs;
    size_t count;
    unsigned format;
    const struct profile *profile; /* of an export */
    struct fault fault;
};

static int print_merged(FILE *file, void *userdata)
{
    struct writing *writing = userdata;
    static const struct export_options plain = {.root = EXPORT_ROOT_COMMAND};
    switch (writing->format) {
    case MERGE_ARCHIVE:
        return merge_write_archive(writing->inputs, writing->count, file, &writing->fault);
    case MERGE_FXT:
        return merge_write_recording(writing->inputs, writing->count, file, &writing->fault);
    default:
        return export_format_find(format_name(writing->format))
            ->print(file, writing->profile, &plain);
    }
}

/* Names the events that an export leaves out. */
static void complain_events(const struct profile *profile)
{
    cleanup_(freep) char *names = NULL;
    size_t names_bytes = 0;
    FILE *file = profile->event_count > 1 ? open_memstream(&names, &names_bytes) : NULL;
    if (file == NULL) {
        return;
    }
    for (size_t i = 1; i < profile->event_count; i++) {
        (void)fprintf(file, "%s%s", i == 1 ? "" : ", ", profile->event_names[i]);
    }
    if (fclose(file) == 0) {
        (void)complain("an export of several recordings has the samples of the clock alone; for "
                       "those of %s merge to a .fxt file, and export that with --event",
                       names);
    }
}

/* Loads all recordings as one. */
static int load_merged(struct writing *writing, struct profile **ret)
{
    static const struct selection everything;
    char path[64];
    cleanup_(fclosep) FILE *file = tmpfile();
    if (file == NULL) {
        return complain("there is no room for a temporary file: %m");
    }
    if (merge_write_recording(writing->inputs, writing->count, file, &writing->fault) < 0) {
        return complain("%s", writing->fault.text);
    }
    if (!save_flush(file)) {
        return complain("the recordings together cannot be written to a temporary file in " P_tmpdir
                        "; is there room for them?");
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
    const struct load_request load = {
        .path = path, .selection = &everything, .elsewhere = LOAD_ELSEWHERE_UNSAID};
    return load_recording(&load, ret);
}

static int write_merged(const struct merge_request *request, const struct merge_input *inputs)
{
    struct writing writing = {
        .inputs = inputs, .count = request->operands.count, .format = request->format};
    cleanup_(profile_freep) struct profile *profile = NULL;
    bool is_gzip = request->format == MERGE_PPROF;
    if (request->format >= MERGE_PPROF) {
        int status = load_merged(&writing, &profile);
        if (profile == NULL) {
            return status;
        }
        complain_events(profile);
        writing.profile = profile;
    }
    int status = save_file(request->output_path, is_gzip, print_merged, &writing);
    if (status != EXIT_DONE && writing.fault.code != 0 && writing.fault.code != ENOMEM) {
        (void)complain("%s", writing.fault.text);
    }
    return status;
}

static const char *say_time(uint64_t unix_ns, char *into)
{
    time_t seconds = (time_t)(unix_ns / NS_PER_S);
    struct tm utc;
    if (unix_ns == 0) {
        return "-";
    }
    (void)gmtime_r(&seconds, &utc);
    (void)strftime(into, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return into;
}

static void print_json(const struct merge_input *inputs, size_t count)
{
    struct json_out out = {.file = stdout};
    uint64_t apart_ns = 0;
    json_out_begin(&out, NULL, '{');
    json_out_begin(&out, "recordings", '[');
    for (size_t i = 0; i < count; i++) {
        json_out_begin(&out, NULL, '{');
        json_out_string(&out, "path", inputs[i].path);
        json_out_string(&out, "host", inputs[i].host);
        json_out_u64(&out, "samples", inputs[i].sample_count);
        json_out_u64(&out, "from_unix_ns", inputs[i].from_unix_ns);
        if (inputs[i].to_unix_ns > 0) {
            json_out_u64(&out, "to_unix_ns", inputs[i].to_unix_ns);
            json_out_u64(&out, "moved_ns", inputs[i].moved_ns);
        } else {
            json_out_raw(&out, "to_unix_ns", NULL);
            json_out_raw(&out, "moved_ns", NULL);
        }
        json_out_end(&out, '}');
    }
    json_out_end(&out, ']');
    if (merge_apart_ns(inputs, count, &apart_ns)) {
        json_out_u64(&out, "apart_ns", apart_ns);
    } else {
        json_out_raw(&out, "apart_ns", NULL);
    }
    json_out_end(&out, '}');
    (void)fputc('\n', stdout);
}

static bool has_hosts(const struct merge_input *inputs, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (strcmp(inputs[i].host, inputs[0].host) != 0) {
            return true;
        }
    }
    return false;
}

static void print_clocks(FILE *file, const struct merge_input *inputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char from[TIME_BYTES];
        char to[TIME_BYTES];
        char samples[TEXT_COUNT_BYTES];
        char moved[64] = "not known";
        if (inputs[i].to_unix_ns > 0) {
            (void)snprintf(moved, sizeof moved, "%.3f ms", (double)inputs[i].moved_ns / 1e6);
        }
        (void)fprintf(file, "%s from %s to %s, wall clock moved: %s, ",
                      text_samples(inputs[i].sample_count, samples),
                      say_time(inputs[i].from_unix_ns, from), say_time(inputs[i].to_unix_ns, to),
                      moved);
        text_print(file, inputs[i].host);
        (void)fputc('\n', file);
    }
    uint64_t apart_ns = 0;
    if (!has_hosts(inputs, count)) {
        return;
    }
    if (merge_apart_ns(inputs, count, &apart_ns)) {
        (void)fprintf(file, "by their own clocks hosts are apart by up to %.3f ms",
                      (double)apart_ns / 1e6);
    } else {
        (void)fputs("how far hosts are apart by their own clocks is not known, as a recording does "
                    "not have its end",
                    file);
    }
    (void)fputs(", and by what each was set wrong,\nwhich no recording says (NTP: milliseconds, "
                "PTP: microseconds); within a session the order is exact\n",
                file);
}

/* Refuses samples that two recordings have, as a copy of another file has, and sessions that only
 * pretend to be one: what one says would be said of both. */
static int check_inputs(const struct merge_input *inputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (inputs[i].shared_path != NULL) {
            return complain("%s and %s have the same samples of a session, which would count "
                            "twice; name one of them",
                            inputs[i].shared_path, inputs[i].path);
        }
        if (inputs[i].other_path != NULL) {
            return complain("%s and %s have sessions of one id that were created on different "
                            "hosts or at different times; one is not what cpu-profilerd wrote",
                            inputs[i].other_path, inputs[i].path);
        }
    }
    return EXIT_DONE;
}

/* Returns the exit status that the recordings make, however well they are written: of one that is
 * not whole EXIT_FAILED. */
static int complain_inputs(const struct merge_input *inputs, size_t count, unsigned format)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < count; i++) {
        if (inputs[i].is_cut) {
            status = complain("%s is not whole; it has the samples before byte %" PRIu64,
                              inputs[i].path, inputs[i].size_bytes);
        }
        if (format == MERGE_ARCHIVE && !inputs[i].has_packets) {
            (void)complain("%s has no packets, so Perfetto shows no samples of it: it was recorded "
                           "with --native, or read by another program",
                           inputs[i].path);
        }
    }
    return status;
}

int verb_merge(int argc, char **argv)
{
    struct merge_request request = {.format = UNSAID};
    struct merge_input *inputs = NULL;
    struct fault fault = {0};
    int status = options_take(&line, argc, argv, &request);
    status = status == OPTIONS_TAKEN ? check_request(&request) : status;
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    size_t count = request.operands.count;
    if (merge_inputs_read(request.operands.paths, count, &inputs, &fault) < 0) {
        return complain("%s", fault.text);
    }
    int inputs_status = complain_inputs(inputs, count, request.format);
    status = check_inputs(inputs, count);
    status = status == EXIT_DONE ? write_merged(&request, inputs) : status;
    if (status == EXIT_DONE && request.is_json) {
        print_json(inputs, count);
    } else if (status == EXIT_DONE) {
        print_clocks(strcmp(request.output_path, "-") == 0 ? stderr : stdout, inputs, count);
    }
    merge_inputs_free(inputs, count);
    return status == EXIT_DONE ? inputs_status : status;
}
