/* SPDX-License-Identifier: Apache-2.0 */

/* Notes are few and short: they live in a fixed array, and are printed for replies and the file. */
#include "session_notes.h"

#include "cleanup.h"
#include "json.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>

void session_notes_add(struct session_notes *notes, const char *member, const char *format, ...)
{
    assert(notes->count < SESSION_NOTES_MAX);
    struct session_note *note = &notes->notes[notes->count++];
    note->member = member;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(note->text, sizeof note->text, format, arguments);
    va_end(arguments);
}

char *session_notes_print(const struct session_notes *notes)
{
    cleanup_(json_freep) cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < notes->count; i++) {
        char line[SESSION_NOTE_BYTES_MAX + 32];
        (void)snprintf(line, sizeof line, "%s: %s", notes->notes[i].member, notes->notes[i].text);
        cJSON *text = cJSON_CreateString(line);
        if (!cJSON_AddItemToArray(array, text)) {
            cJSON_Delete(text);
            return NULL;
        }
    }
    return array == NULL ? NULL : cJSON_PrintUnformatted(array);
}
