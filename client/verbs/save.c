/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Saves what a verb prints. All errors of the stream are found at its end.
 */
#include "save.h"

#include "cleanup.h"
#include "options.h"
#include "output.h"
#include "recording.h"

#include <string.h>
#include <sys/stat.h>

int save_file(const char *path, bool is_gzip, save_print_fn *print, void *userdata)
{
    cleanup_(output_freep) struct output *output = NULL;
    struct fault fault = {0};
    if (output_open(path, &output, &fault) < 0) {
        return complain("%s", fault.text);
    }
    output_remove_on_signals(output);
    if (is_gzip && output_compress(output) < 0) {
        return complain("%s: there is not enough memory", path);
    }
    if (input_is_recording(path)) {
        output_leave_old(output);
    }
    FILE *file = output_stream(output);
    if (file == NULL || print(file, userdata) < 0) {
        return complain("%s: there is not enough memory", path);
    }
    if (output_finish(output, &fault) < 0) {
        return complain("%s", fault.text);
    }
    if (output_old_path(output) != NULL) {
        (void)complain("%s held a recording, which is %s now", path, output_old_path(output));
    }
    return EXIT_DONE;
}

bool save_is_input(const char *input_path, const char *output_path)
{
    struct stat input;
    struct stat output;
    return strcmp(input_path, "-") != 0 && strcmp(output_path, "-") != 0 &&
           stat(input_path, &input) == 0 && stat(output_path, &output) == 0 &&
           S_ISREG(input.st_mode) && input.st_dev == output.st_dev && input.st_ino == output.st_ino;
}
