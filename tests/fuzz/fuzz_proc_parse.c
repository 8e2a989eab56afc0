/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a stat, a status and a maps line: what is accepted keeps its promises (a mapping is
 * not empty, its path lies inside the line), and everything else is refused without harm. */
#include "fuzz_target.h"
#include "proc_parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_text(bytes, size);
    if (text == NULL) {
        return 0;
    }
    const size_t line_bytes = strlen(text);

    struct proc_stat stat = {.parent_pid = -1};
    int r = proc_parse_stat(text, &stat);
    require(r == 0 ? stat.parent_pid >= 0 && stat.state > ' ' : r == -EBADMSG);

    uint32_t uid = UINT32_MAX;
    r = proc_parse_uid(text, &uid);
    require(r == 0 ? strstr(text, "\nUid:\t") != NULL : r == -EBADMSG && uid == UINT32_MAX);

    uint32_t only_uid = UINT32_MAX;
    r = proc_parse_only_uid(text, &only_uid);
    require(r == 0 ? only_uid == uid : r == -EPERM || r == -EBADMSG);
    require(r == 0 || only_uid == UINT32_MAX);

    struct mapping_description mapping = {0};
    r = proc_parse_maps_line(text, &mapping);
    require(r == 0 || r == 1 || r == -EBADMSG);
    if (r == 1) {
        require(mapping.start < mapping.end);
        require(mapping.path >= text && mapping.path + strlen(mapping.path) <= text + line_bytes);
        require(mapping.path[0] != ' ');
    } else {
        require(mapping.path == NULL);
    }
    free(text);
    return 0;
}
