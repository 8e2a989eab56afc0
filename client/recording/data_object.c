/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON objects in Data blobs. Of a name with one object each replaces the ones before it, so the
 * last line of the last blob is the one that counts; of others each line says something.
 */
#include "recording.h"

#include "cleanup.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define OBJECT_DEPTH_MAX 16
#define LINE_DEPTH       2 /* of a line of Data: an object, and arrays in it */

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

int data_each_line(const struct fxt_data *data, data_line_fn on_line, void *userdata)
{
    const char *lines = (const char *)data->payload;
    size_t size_bytes = data->payload_bytes;
    int r = 0;
    while (size_bytes > 0 && r == 0) {
        const char *end = memchr(lines, '\n', size_bytes);
        size_t line_bytes = end == NULL ? size_bytes : (size_t)(end - lines);
        if (line_bytes > 0) {
            cleanup_(json_freep) cJSON *line = NULL;
            r = json_parse(lines, line_bytes, LINE_DEPTH, &line, NULL);
            r = r == -ENOMEM ? r : on_line(line, userdata);
        }
        size_t taken_bytes = end == NULL ? line_bytes : line_bytes + 1;
        lines += taken_bytes;
        size_bytes -= taken_bytes;
    }
    return r;
}

bool data_read_u64(const struct cJSON *value, uint64_t *ret)
{
    if (cJSON_IsNumber(value)) {
        int64_t number = 0;
        bool is_exact = json_read_integer(value, 0, JSON_INTEGER_MAX, &number);
        *ret = (uint64_t)number;
        return is_exact;
    }
    if (!cJSON_IsString(value) || value->valuestring[0] < '0' || value->valuestring[0] > '9') {
        return false;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(value->valuestring, &end, 0);
    if (errno != 0 || *end != '\0') {
        return false;
    }
    *ret = number;
    return true;
}
