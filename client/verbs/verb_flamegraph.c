/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl flamegraph`: a recording as a page for a browser, or as a still picture; two recordings
 * as a page that compares them.
 */
#include "browser.h"
#include "cleanup.h"
#include "flamegraph.h"
#include "input_paths.h"
#include "load.h"
#include "options.h"
#include "page_source.h"
#include "save.h"
#include "select_options.h"
#include "verbs.h"

#include <unistd.h>

#define OUTPUT_PATH "flamegraph.html"

struct flamegraph_request {
    const char *path;
    const char *second_path; /* NULL: one recording */
    const char *output_path; /* NULL: OUTPUT_PATH */
    enum flame_by by;
    struct selection selection;
    enum profile_names names;
    enum load_detail detail;
    bool is_opened;
};

#define AT(member) offsetof(struct flamegraph_request, member)

static const struct verb_option options[] = {
    {'o', "output", "FILE",
     "where to (" OUTPUT_PATH "): a page, or a still\n"
     "picture if the name ends in .svg; behind it .gz\n"
     "compresses, and \"-\" is a page on standard output",
     options_output, AT(output_path), 0},
    {0, "open", NULL, "show it in the browser, where there is one", options_flag, AT(is_opened), 0},
    {0, "by", "WHAT",
     "what the first frame names: none, unit, command, process,\n"
     "thread (command); in the page that can be changed",
     options_choice, AT(by), 0, flame_by_name},
    OPTIONS_DETAIL(AT(detail), AT(names), INLINE_FRAMES, "each line of a function is a frame"),
    OPTIONS_SELECT(AT(selection)),
    {0},
};

static const struct command_line line = {
    .usage = "profctl flamegraph [FILE [FILE2]] [-o FILE.html|FILE.svg] [OPTION...]",
    .help = "Draws a recording as a flame graph: one page for a browser, which has all\n"
            "samples in it, with a heat map of the time, zoom and search, and needs no\n"
            "network. Where waits were recorded (off-cpu), it has all: time running,\n"
            "blocked and ready. With FILE2 the page shows how that differs from FILE.\n"
            "FILE may be compressed with gzip; \"-\" is standard input.\n",
    .options = options,
    .operand = "recording",
    .operand_default = "profile.fxt",
    .operand_at = AT(path),
    .second_at = AT(second_path),
};

static bool is_picture(const char *path)
{
    return save_ends_in(path, ".svg") || save_ends_in(path, ".svg.gz");
}

/* What is printed, as save_file() has it. */
struct printing {
    struct page_sources sources; /* owned */
    enum flame_pair pair;
    enum flame_by by;
    bool is_picture;
};

static void printing_done(struct printing *printing)
{
    page_sources_done(&printing->sources);
}

static int print_flames(FILE *file, void *userdata)
{
    const struct printing *printing = userdata;
    return printing->is_picture
               ? flamegraph_print_svg(file, &printing->sources.all[0], printing->by)
               : flamegraph_print_page(file, printing->sources.all, printing->sources.count,
                                       printing->pair, printing->by);
}

/* Refuses what the options ask for together. Returns an exit status, or OPTIONS_TAKEN. */
static int check_request(const struct flamegraph_request *request)
{
    const char *output_path = request->output_path;
    if (!save_is_page(output_path) && !is_picture(output_path)) {
        return options_refuse(&line, "-o %s ends neither in .html nor in .svg", output_path);
    }
    if (request->second_path != NULL && is_picture(output_path)) {
        return options_refuse(&line, "-o %s: two recordings are compared in a page, .html, only",
                              output_path);
    }
    if (request->is_opened && !save_can_be_shown(output_path)) {
        return options_refuse(&line,
                              "--open needs a file that is not compressed, such as -o a.html");
    }
    if (save_is_input(request->path, output_path) ||
        (request->second_path != NULL && save_is_input(request->second_path, output_path))) {
        return options_refuse(&line, "-o %s is the recording itself; name another file",
                              output_path);
    }
    return OPTIONS_TAKEN;
}

/* One recording may be shown by its waits; two are compared by the clock. */
static struct load_request wanted_of(const struct flamegraph_request *request, const char *path)
{
    return (struct load_request){
        .path = path,
        .selection = &request->selection,
        .names = request->names,
        .detail = request->detail,
        .elsewhere = request->second_path == NULL ? LOAD_ELSEWHERE_SHOWN : LOAD_ELSEWHERE_NAMED,
    };
}

/* Loads one recording. `*status` becomes that of a failure; false: there is nothing to show. */
static bool load(const struct flamegraph_request *request, const char *path, int *status,
                 struct profile **ret)
{
    const struct load_request wanted = wanted_of(request, path);
    int r = load_recording(&wanted, ret);
    *status = r == EXIT_DONE ? *status : r;
    return *ret != NULL;
}

/* What a page has beside the first recording: another one, or the waits of this one. */
struct others {
    struct profile *second; /* owned; NULL: none */
    struct waits waits;
};

static void others_done(struct others *others)
{
    profile_freep(&others->second);
    waits_done(&others->waits);
}

/* Returns an exit status, or OPTIONS_TAKEN. */
static int load_others(const struct flamegraph_request *request, const struct profile *first,
                       int *status, struct others *ret)
{
    if (request->second_path != NULL) {
        return load(request, request->second_path, status, &ret->second) ? OPTIONS_TAKEN : *status;
    }
    const struct load_request wanted = wanted_of(request, request->path);
    int r = is_picture(request->output_path) || request->selection.event != NULL
                ? EXIT_DONE
                : load_waits(&wanted, first, &ret->waits);
    return r == EXIT_DONE ? OPTIONS_TAKEN : r;
}

/* A page of two recordings has one event. */
static void complain_other_events(const struct profile *first, const struct profile *second)
{
    if (first->event.is_clock && profile_has_waits(first) && profile_has_waits(second)) {
        (void)complain("the page compares time on CPUs; --event off-cpu compares what threads "
                       "waited for");
    }
}

int verb_flamegraph(int argc, char **argv)
{
    struct flamegraph_request request = {.by = FLAME_BY_COMMAND};
    cleanup_(profile_freep) struct profile *first = NULL;
    cleanup_(others_done) struct others others = {0};
    int status = options_take(&line, argc, argv, &request);
    bool is_named = request.output_path != NULL;
    request.output_path = is_named ? request.output_path : OUTPUT_PATH;
    status = status == OPTIONS_TAKEN ? check_request(&request) : status;
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    status = EXIT_DONE;
    if (!load(&request, request.path, &status, &first)) {
        return status;
    }
    int others_status = load_others(&request, first, &status, &others);
    if (others_status != OPTIONS_TAKEN) {
        return others_status;
    }
    cleanup_(printing_done) struct printing printing = {
        .pair = request.second_path == NULL ? FLAME_SWITCHED : FLAME_COMPARED,
        .by = request.by,
        .is_picture = is_picture(request.output_path),
    };
    page_sources_add(&printing.sources, first, request.path);
    page_sources_add_waits(&printing.sources, &others.waits, request.path);
    if (others.second != NULL) {
        page_sources_add(&printing.sources, others.second, request.second_path);
        complain_other_events(first, others.second);
    }
    bool is_replaced = access(request.output_path, F_OK) == 0;
    int save_status = save_file(request.output_path, false, print_flames, &printing);
    if (save_status != EXIT_DONE) {
        return save_status;
    }
    if (!is_named) {
        (void)printf("%s%s\n", request.output_path,
                     is_replaced ? ", in place of an older one" : "");
    }
    int open_status = request.is_opened ? browser_show(request.output_path) : EXIT_DONE;
    return open_status == EXIT_DONE ? status : open_status;
}
