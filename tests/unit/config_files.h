/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Folders of configs, each of which is accepted, or refused with the line in the file beside it. */
#include "unit_test.h"

#include "fault.h"

#include <errno.h>
#include <glob.h>

#define CONFIG_FILE_BYTES_MAX ((size_t)65536)

/* Returned: free(). NULL: there is no such file. */
static inline char *read_config_file(const char *path, size_t *ret_bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    char *text = calloc(1, CONFIG_FILE_BYTES_MAX + 1);
    assert_non_null(text);
    *ret_bytes = fread(text, 1, CONFIG_FILE_BYTES_MAX, file);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* Calls `parse` with each NAME.json of a folder. Where there is a NAME.expected, parse() must
 * refuse it with that line. */
static inline void expect_verdicts(const char *folder, int (*parse)(const char *text, size_t bytes,
                                                                    struct fault *reterr))
{
    char path[512];
    glob_t found;
    (void)snprintf(path, sizeof path, "%s/*.json", folder);
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct fault fault = {0};
        size_t bytes = 0;
        char line[sizeof fault + 8] = "";
        char *text = read_config_file(found.gl_pathv[i], &bytes);
        int r = parse(text, bytes, &fault);
        if (r < 0) {
            (void)snprintf(line, sizeof line, "%s: %s\n", fault.member, fault.text);
        }
        free(text);
        (void)snprintf(path, sizeof path, "%.*s.expected",
                       (int)(strlen(found.gl_pathv[i]) - strlen(".json")), found.gl_pathv[i]);
        char *expected = read_config_file(path, &bytes);
        print_message("%s\n", found.gl_pathv[i]);
        assert_string_equal(line, expected == NULL ? "" : expected);
        assert_int_equal(r, expected == NULL ? 0 : -EINVAL);
        assert_int_equal(fault.code, -r);
        free(expected);
    }
    globfree(&found);
}
