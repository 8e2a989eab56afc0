/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths of recordings, for a person.
 */
#include "input_paths.h"

#include <string.h>

const char *input_title(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "standard input" : slash == NULL ? path : slash + 1;
}
