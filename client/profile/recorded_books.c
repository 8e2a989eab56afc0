/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Adds up the books of a recording's segments. The session of a segment is known only at its end,
 * since its records may have any order. All members that are there are added, also counters of a
 * newer version.
 */
#include "recorded_books.h"

#include "cleanup.h"
#include "grow.h"
#include "json.h"
#include "recording.h"

#include <string.h>

#define CPUS_MAX 1024 /* whose books fit in a blob; of two sessions */

void recorded_books_done(struct recorded_books *recorded)
{
    for (size_t i = 0; i < recorded->sessions.item_count; i++) {
        free(recorded->books[i]);
    }
    free(recorded->books);
    free(recorded->session_json);
    free(recorded->books_json);
    free(recorded->last_session_json);
    intern_done(&recorded->sessions);
    *recorded = (struct recorded_books){0};
}

int recorded_books_take(struct recorded_books *recorded, const struct fxt_data *data)
{
    if (data_is_named(data, DATA_NAME_SESSION)) {
        return data_take_object(data, &recorded->session_json);
    }
    if (data_is_named(data, DATA_NAME_BOOKS)) {
        return data_take_object(data, &recorded->books_json);
    }
    return 0;
}

/* Where the books of this segment's session are kept; a segment without its name has its own. */
static int find_books(struct recorded_books *recorded, char ***ret_books)
{
    cleanup_(json_freep) cJSON *session =
        recorded->session_json == NULL ? NULL : cJSON_Parse(recorded->session_json);
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "session"));
    size_t number = recorded->sessions.item_count;
    uint32_t item = 0;
    if (grow(recorded->books, recorded->books_capacity, number + 1) < 0) {
        return -ENOMEM;
    }
    /* No id is such a number: it ends with its first NUL. */
    int r = id == NULL ? intern_add(&recorded->sessions, &number, sizeof number, &item)
                       : intern_add(&recorded->sessions, id, strlen(id) + 1, &item);
    if (r < 0) {
        return r;
    }
    if (item == number) {
        recorded->books[item] = NULL;
    }
    *ret_books = &recorded->books[item];
    return 0;
}

int recorded_books_end_segment(struct recorded_books *recorded)
{
    if (recorded->books_json != NULL) {
        char **books = NULL;
        int r = find_books(recorded, &books);
        if (r < 0) {
            return r;
        }
        free(*books);
        *books = take_ptr(recorded->books_json);
    }
    if (recorded->session_json != NULL) {
        free(recorded->last_session_json);
        recorded->last_session_json = take_ptr(recorded->session_json);
    }
    return 0;
}

static bool add_counts(cJSON *sum, const cJSON *books);

/* Whether both are the same number, text or word. Objects and arrays never are: a comparison of
 * these takes twice as long with each level. */
static bool is_same(const cJSON *a, const cJSON *b)
{
    bool is_scalar = cJSON_IsNumber(a) || cJSON_IsString(a) || cJSON_IsBool(a) || cJSON_IsNull(a);
    return is_scalar && cJSON_Compare(a, b, true);
}

/* Adds the object of each CPU to that of the same CPU. Sums of too many are left as they are. */
static bool add_cpus(cJSON *sum, const cJSON *cpus)
{
    const cJSON *cpu = NULL;
    if (cJSON_GetArraySize(sum) + cJSON_GetArraySize(cpus) > CPUS_MAX) {
        return true;
    }
    cJSON_ArrayForEach(cpu, cpus)
    {
        const cJSON *number = cJSON_GetObjectItemCaseSensitive(cpu, "cpu");
        cJSON *same = NULL;
        cJSON_ArrayForEach(same, sum)
        {
            if (is_same(cJSON_GetObjectItemCaseSensitive(same, "cpu"), number)) {
                break;
            }
        }
        if (same == NULL ? !cJSON_AddItemToArray(sum, cJSON_Duplicate(cpu, true))
                         : !add_counts(same, cpu)) {
            return false;
        }
    }
    return true;
}

/* Adds one member of the books, or of a CPU's. */
static bool add_member(cJSON *sum, cJSON *item, const cJSON *other)
{
    bool is_name = strcmp(item->string, "cpu") == 0 || strcmp(item->string, "period_ns") == 0;
    if (cJSON_IsArray(item) && cJSON_IsArray(other)) {
        return add_cpus(item, other);
    }
    if (cJSON_IsObject(item) && cJSON_IsObject(other)) {
        return add_counts(item, other);
    }
    if (!is_name && cJSON_IsNumber(item) && cJSON_IsNumber(other)) {
        (void)cJSON_SetNumberHelper(item, item->valuedouble + other->valuedouble);
        return true;
    }
    return is_same(item, other) ||
           cJSON_ReplaceItemInObjectCaseSensitive(sum, item->string, cJSON_CreateNull());
}

/* Adds the members of `books` to those of `sum`. False when there is no memory. */
static bool add_counts(cJSON *sum, const cJSON *books)
{
    cJSON *next = NULL;
    for (cJSON *item = sum->child; item != NULL; item = next) {
        const cJSON *other = cJSON_GetObjectItemCaseSensitive(books, item->string);
        next = item->next;
        if (!add_member(sum, item, other)) {
            return false;
        }
    }
    return true;
}

/* The sum of all books as a text. */
static char *add_books(const struct recorded_books *recorded)
{
    cleanup_(json_freep) cJSON *sum = NULL;
    for (size_t i = 0; i < recorded->sessions.item_count; i++) {
        cJSON *books = cJSON_Parse(recorded->books[i]);
        bool good = books != NULL;
        if (sum == NULL) {
            sum = books;
        } else {
            good = good && add_counts(sum, books);
            cJSON_Delete(books);
        }
        if (!good) {
            return NULL;
        }
    }
    return cJSON_PrintUnformatted(sum);
}

int recorded_books_close(struct recorded_books *recorded, char **ret_session_json,
                         char **ret_books_json)
{
    char *books_json = NULL;
    int r = recorded_books_end_segment(recorded);
    if (r == 0 && recorded->sessions.item_count > 0) {
        books_json = add_books(recorded);
        r = books_json == NULL ? -ENOMEM : 0;
    }
    if (r == 0) {
        *ret_session_json = take_ptr(recorded->last_session_json);
        *ret_books_json = books_json;
    }
    return r;
}
