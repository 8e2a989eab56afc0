/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON objects in Data blobs. Each object of a name replaces the ones before it, so the last line
 * of the last blob is the one that counts.
 */
#include "recording.h"

#include "cleanup.h"
#include "json.h"

#include <string.h>

#define OBJECT_DEPTH_MAX 16

bool data_is_named(const struct fxt_data *data, const char *name)
{
    return data->name.text_bytes == strlen(name) &&
           memcmp(data->name.text, name, data->name.text_bytes) == 0;
}

int data_take_object(const struct fxt_data *data, char **kept)
{
    const char *line = (const char *)data->payload;
    size_t line_bytes = data->payload_bytes;
    while (line_bytes > 0 && line[line_bytes - 1] == '\n') {
        line_bytes--;
    }
    const char *newline = line_bytes == 0 ? NULL : memrchr(line, '\n', line_bytes);
    if (newline != NULL) {
        line_bytes -= (size_t)(newline + 1 - line);
        line = newline + 1;
    }
    cleanup_(json_freep) cJSON *object = NULL;
    int r = json_parse(line, line_bytes, OBJECT_DEPTH_MAX, &object, NULL);
    if (r == -ENOMEM || !cJSON_IsObject(object)) {
        return r == -ENOMEM ? r : 0;
    }
    char *text = cJSON_PrintUnformatted(object);
    if (text == NULL) {
        return -ENOMEM;
    }
    free(*kept);
    *kept = text;
    return 0;
}
