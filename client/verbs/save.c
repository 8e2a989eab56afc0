/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Saves what a verb prints. All errors of the stream are found at its end. What is saved can be
 * made again, so it replaces what was saved before; a recording cannot, and is replaced by nothing.
 * A file that the user has not named is kept under another name.
 */
#include "save.h"

#include "cleanup.h"
#include "output.h"
#include "recording.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int save(const char *path, bool is_gzip, bool leaves_old, save_print_fn *print,
                void *userdata)
{
    cleanup_(output_freep) struct output *output = NULL;
    struct fault fault = {0};
    if (input_is_recording(path)) {
        return complain("%s is a recording, and nothing that is made of one takes its place; name "
                        "another file with -o, or remove it",
                        path);
    }
    if (output_open(path, &output, &fault) < 0) {
        return complain("%s", fault.text);
    }
    if (leaves_old) {
        output_leave_old(output);
    }
    output_remove_on_signals(output);
    if (is_gzip && output_compress(output) < 0) {
        return complain("%s: there is not enough memory", path);
    }
    FILE *file = output_stream(output);
    int r = file == NULL ? -ENOMEM : print(file, userdata);
    if (r < 0) {
        return r == -ENOMEM ? complain("%s: there is not enough memory", path) : EXIT_FAILED;
    }
    if (output_finish(output, &fault) < 0) {
        return complain("%s", fault.text);
    }
    output_print_old(stderr, output);
    return EXIT_DONE;
}

int save_file(const char *path, bool is_gzip, save_print_fn *print, void *userdata)
{
    return save(path, is_gzip, false, print, userdata);
}

int save_beside(const char *path, save_print_fn *print, void *userdata)
{
    return save(path, false, true, print, userdata);
}

bool save_flush(FILE *file)
{
    bool is_lost = ferror(file) != 0;
    return fflush(file) == 0 && !is_lost;
}

/* What "-" means is open already, perhaps as a file of a shell's `>>`. */
static bool find_file(const char *path, int standard_fd, struct stat *ret)
{
    return (strcmp(path, "-") == 0 ? fstat(standard_fd, ret) : stat(path, ret)) == 0;
}

bool save_is_input(const char *input_path, const char *output_path)
{
    struct stat input;
    struct stat output;
    return find_file(input_path, STDIN_FILENO, &input) &&
           find_file(output_path, STDOUT_FILENO, &output) && S_ISREG(input.st_mode) &&
           input.st_dev == output.st_dev && input.st_ino == output.st_ino;
}

int save_refuse_input(const struct command_line *line, const char *input_path)
{
    return save_is_input(input_path, "-")
               ? options_refuse(line, "standard output is the recording itself; send it to another "
                                      "file")
               : EXIT_DONE;
}

bool save_ends_in(const char *path, const char *ending)
{
    size_t bytes = strlen(path);
    size_t ending_bytes = strlen(ending);
    return bytes >= ending_bytes && strcmp(path + bytes - ending_bytes, ending) == 0;
}

bool save_is_page(const char *path)
{
    return save_ends_in(path, ".html") || save_ends_in(path, ".html.gz") || strcmp(path, "-") == 0;
}

bool save_can_be_shown(const char *path)
{
    return strcmp(path, "-") != 0 && !save_ends_in(path, ".gz");
}
