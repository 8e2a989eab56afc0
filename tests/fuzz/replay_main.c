/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a fuzz target over files, without libFuzzer: every file of the folders and every file that
 * the command line names, once each. So a corpus is an ordinary regression test under any compiler.
 * An empty corpus is a failure: a replay of nothing proves nothing.
 */
#include "fuzz_target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    uint8_t *bytes = malloc(FUZZ_INPUT_BYTES_MAX);
    size_t size = bytes == NULL ? 0 : fread(bytes, 1, FUZZ_INPUT_BYTES_MAX, file);
    (void)fclose(file);

    /* An exact-size copy, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc(size == 0 ? 1 : size);
    if (bytes == NULL || exact == NULL) {
        free(bytes);
        free(exact);
        return -1;
    }
    memcpy(exact, bytes, size);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    free(bytes);
    return 1;
}

static int replay_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    int replayed = 0;
    if (count < 0) {
        perror(folder);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && replayed >= 0) {
            replayed = replay_file(path) < 0 ? -1 : replayed + 1;
        }
        free(entries[i]);
    }
    free(entries);
    return replayed;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        struct stat status;
        if (stat(argv[i], &status) != 0) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
        int replayed = S_ISDIR(status.st_mode) ? replay_folder(argv[i]) : replay_file(argv[i]);
        if (replayed < 0) {
            return EXIT_FAILURE;
        }
        total += replayed;
    }
    printf("%d inputs replayed\n", total);
    return total > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
