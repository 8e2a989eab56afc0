/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl view`: a recording in a viewer that runs in a browser. It is converted into a file
 * without a name, which is served for the viewer's pages as long as the verb runs.
 */
#include "cleanup.h"
#include "export.h"
#include "flamegraph.h"
#include "load.h"
#include "options.h"
#include "page_source.h"
#include "save.h"
#include "select_options.h"
#include "verbs.h"
#include "view.h"

#include <stdio.h>

struct view_request {
    const char *path;
    unsigned viewer; /* of view_viewers */
    struct selection selection;
    enum profile_names names;
    enum load_detail detail;
    bool is_once;
};

static const char *viewer_name(size_t number)
{
    return view_viewers[number].name;
}

#define AT(member) offsetof(struct view_request, member)

static const struct verb_option options[] = {
    {0, "in", "VIEWER", "firefox, speedscope, perfetto or flamegraph (firefox)", options_choice,
     AT(viewer), 0, viewer_name},
    {0, "once", NULL, "end when a browser has the whole profile", options_flag, AT(is_once), 0},
    OPTIONS_DETAIL(AT(detail), AT(names), INLINE_FRAMES, "frames have their file and line"),
    OPTIONS_SELECT(AT(selection)),
    {0},
};

static const struct command_line line = {
    .usage = "profctl view FILE [--in VIEWER] [--once] [OPTION...]",
    .help = "Shows a recording in a viewer that runs in a browser of this machine: prints the\n"
            "address to open, and serves the converted recording there until Ctrl-C. FILE may\n"
            "be compressed with gzip; \"-\" is standard input.\n"
            "The viewer's page comes from its own site, but that of flamegraph; the recording\n"
            "stays on this machine.\n",
    .options = options,
    .operand = "recording",
    .operand_at = AT(path),
};

/* What is shown. */
struct shown {
    const struct profile *profile;
    const struct waits *waits; /* which our own page has as well */
};

/* Prints what the viewer reads. Returns 0, or -ENOMEM. */
static int print_for_viewer(FILE *file, const struct shown *shown,
                            const struct view_request *request)
{
    static const struct export_options plain = {.root = EXPORT_ROOT_COMMAND};
    const char *format = view_viewers[request->viewer].format;
    cleanup_(page_sources_done) struct page_sources sources = {0};
    page_sources_add(&sources, shown->profile, request->path);
    page_sources_add_waits(&sources, shown->waits, request->path);
    return format == NULL ? flamegraph_print_page(file, sources.all, sources.count, FLAME_SWITCHED,
                                                  FLAME_BY_COMMAND)
                          : export_format_find(format)->print(file, shown->profile, &plain);
}

static int serve(const struct shown *shown, const struct view_request *request)
{
    cleanup_(fclosep) FILE *file = tmpfile();
    cleanup_(view_server_freep) struct view_server *server = NULL;
    struct fault fault = {0};
    if (file == NULL) {
        return complain("there is no room for a temporary file: %m");
    }
    if (print_for_viewer(file, shown, request) < 0) {
        return complain("%s: there is not enough memory", request->path);
    }
    if (!save_flush(file)) {
        return complain("the converted recording cannot be written to a temporary file in " P_tmpdir
                        "; is there room for it?");
    }
    if (view_server_new(&view_viewers[request->viewer], &server, &fault) < 0) {
        return complain("%s", fault.text);
    }
    (void)printf("%s\n", view_server_url(server));
    (void)fflush(stdout);
    (void)fprintf(stderr, "Open this address in a browser of this machine; Ctrl-C ends it\n");
    return view_server_run(server, file, request->is_once, &fault) < 0 ? complain("%s", fault.text)
                                                                       : EXIT_DONE;
}

int verb_view(int argc, char **argv)
{
    struct view_request request = {0};
    cleanup_(profile_freep) struct profile *profile = NULL;
    cleanup_(waits_done) struct waits waits = {0};
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    bool has_page = view_viewers[request.viewer].format == NULL;
    const struct load_request load = {
        .path = request.path,
        .selection = &request.selection,
        .names = request.names,
        .detail = request.detail,
        .elsewhere = has_page ? LOAD_ELSEWHERE_SHOWN : LOAD_ELSEWHERE_NAMED,
    };
    status = load_recording(&load, &profile);
    if (profile == NULL) {
        return status;
    }
    int waits_status = has_page ? load_waits(&load, profile, &waits) : EXIT_DONE;
    if (waits_status != EXIT_DONE) {
        return waits_status;
    }
    const struct shown shown = {profile, &waits};
    int serve_status = serve(&shown, &request);
    return serve_status == EXIT_DONE ? status : serve_status;
}
