/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the session of each of a recording's segments, and adds up their books. The session of a
 * segment is known only at its end, since its records may have any order. All members that are
 * there are added, also counters of a newer version.
 */
#include "recorded_books.h"

#include "cleanup.h"
#include "grow.h"
#include "json.h"
#include "recording.h"

#include <string.h>

#define LINES_MAX    1024 /* whose books fit in a blob; of two sessions */
#define MEMBERS_PAST 64   /* among which a member is looked for; no object of books has as many */

void recorded_books_done(struct recorded_books *recorded)
{
    for (size_t i = 0; i < recorded->sessions.item_count; i++) {
        free(recorded->told[i].session_json);
        free(recorded->told[i].books_json);
    }
    free(recorded->told);
    free(recorded->of_segments);
    free(recorded->counted_by);
    free(recorded->session_json);
    free(recorded->books_json);
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

/* The session of this segment; one that has no name is a session of its own. */
static int find_session(struct recorded_books *recorded, uint32_t *ret)
{
    cleanup_(json_freep) cJSON *session =
        recorded->session_json == NULL ? NULL : cJSON_Parse(recorded->session_json);
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "session"));
    size_t number = recorded->sessions.item_count;
    if (grow(recorded->told, recorded->told_capacity, number + 1) < 0) {
        return -ENOMEM;
    }
    recorded->told[number] = (struct recorded_session){0};
    /* No id is such a number: it ends with its first NUL. */
    return id == NULL ? intern_add(&recorded->sessions, &number, sizeof number, ret)
                      : intern_add(&recorded->sessions, id, strlen(id) + 1, ret);
}

/* Puts what came, if it did, in the place of what had come before. */
static void keep_last(char **kept, char **came)
{
    if (*came != NULL) {
        free(*kept);
        *kept = take_ptr(*came);
    }
}

int recorded_books_end_segment(struct recorded_books *recorded)
{
    uint32_t item = INTERN_NONE;
    if (grow(recorded->of_segments, recorded->segment_capacity, recorded->segment_count + 1) < 0) {
        return -ENOMEM;
    }
    if (recorded->session_json != NULL || recorded->books_json != NULL) {
        int r = find_session(recorded, &item);
        if (r < 0) {
            return r;
        }
        keep_last(&recorded->told[item].session_json, &recorded->session_json);
        keep_last(&recorded->told[item].books_json, &recorded->books_json);
    }
    recorded->of_segments[recorded->segment_count++] = item;
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

static bool has_same(const cJSON *a, const cJSON *b, const char *member)
{
    return is_same(cJSON_GetObjectItemCaseSensitive(a, member),
                   cJSON_GetObjectItemCaseSensitive(b, member));
}

/* Whether both are of one CPU, or of one event by the same period. */
static bool is_of_same(const cJSON *a, const cJSON *b)
{
    return has_same(a, b, "cpu") || (has_same(a, b, "event") && has_same(a, b, "period"));
}

/* Adds the object of each CPU, or event, to that of the same. Sums of too many are left as they
 * are. */
static bool add_lines(cJSON *sum, const cJSON *lines)
{
    const cJSON *line = NULL;
    if (cJSON_GetArraySize(sum) + cJSON_GetArraySize(lines) > LINES_MAX) {
        return true;
    }
    cJSON_ArrayForEach(line, lines)
    {
        cJSON *same = NULL;
        cJSON_ArrayForEach(same, sum)
        {
            if (is_of_same(same, line)) {
                break;
            }
        }
        if (same == NULL ? !cJSON_AddItemToArray(sum, cJSON_Duplicate(line, true))
                         : !add_counts(same, line)) {
            return false;
        }
    }
    return true;
}

/* Puts null in the place of a member, which it frees. */
static bool make_null(cJSON *sum, cJSON *item)
{
    cJSON *null = cJSON_CreateNull();
    char *name = strdup(item->string);
    if (null == NULL || name == NULL) {
        cJSON_Delete(null);
        free(name);
        return false;
    }
    null->string = name;
    return cJSON_ReplaceItemViaPointer(sum, item, null);
}

/* Adds one member of the books, or of a line's. */
static bool add_member(cJSON *sum, cJSON *item, const cJSON *other)
{
    bool is_name = strcmp(item->string, "cpu") == 0 || strcmp(item->string, "period") == 0 ||
                   strcmp(item->string, "period_ns") == 0;
    if (cJSON_IsArray(item) && cJSON_IsArray(other)) {
        return add_lines(item, other);
    }
    if (cJSON_IsObject(item) && cJSON_IsObject(other)) {
        return add_counts(item, other);
    }
    if (!is_name && cJSON_IsNumber(item) && cJSON_IsNumber(other)) {
        (void)cJSON_SetNumberHelper(item, item->valuedouble + other->valuedouble);
        return true;
    }
    return is_same(item, other) || make_null(sum, item);
}

/* The member of that name, or NULL, from `*at` on, past the end at the beginning, among a bounded
 * number. `*at` goes on to the one behind it. */
static const cJSON *find_member(const cJSON *object, const char *name, const cJSON **at)
{
    const cJSON *member = *at;
    for (size_t i = 0; i < MEMBERS_PAST; i++) {
        member = member == NULL ? object->child : member;
        if (member == NULL || strcmp(member->string, name) == 0) {
            *at = member == NULL ? NULL : member->next;
            return member;
        }
        member = member->next;
    }
    return NULL;
}

/* Adds the members of `books` to those of `sum`. Both are in one order, so the search for a member
 * begins behind the last one. False when there is no memory. */
static bool add_counts(cJSON *sum, const cJSON *books)
{
    const cJSON *at = NULL;
    cJSON *next = NULL;
    for (cJSON *item = sum->child; item != NULL; item = next) {
        const cJSON *other = find_member(books, item->string, &at);
        next = item->next;
        if (!add_member(sum, item, other)) {
            return false;
        }
    }
    return true;
}

/* The sum of all books as a text, or NULL where there are none. */
static int add_books(const struct recorded_books *recorded, char **ret)
{
    cleanup_(json_freep) cJSON *sum = NULL;
    for (size_t i = 0; i < recorded->sessions.item_count; i++) {
        const char *books_json = recorded->told[i].books_json;
        cJSON *books = books_json == NULL ? NULL : cJSON_Parse(books_json);
        bool good = books != NULL || books_json == NULL;
        if (sum == NULL) {
            sum = books;
        } else if (books != NULL) {
            good = add_counts(sum, books);
            cJSON_Delete(books);
        }
        if (!good) {
            return -ENOMEM;
        }
    }
    *ret = sum == NULL ? NULL : cJSON_PrintUnformatted(sum);
    return sum != NULL && *ret == NULL ? -ENOMEM : 0;
}

/* Gives the segments that tell no session that of a neighbour. `takes_books`: books alone make one.
 */
static void fill_segments(const struct recorded_books *recorded, uint32_t *of_segments,
                          bool takes_books)
{
    uint32_t last = INTERN_NONE;
    for (size_t i = 0; i < recorded->segment_count; i++) {
        uint32_t session = of_segments[i];
        bool is_told =
            session != INTERN_NONE && (takes_books || recorded->told[session].session_json != NULL);
        for (size_t before = i; is_told && last == INTERN_NONE && before > 0; before--) {
            of_segments[before - 1] = session;
        }
        last = is_told ? session : last;
        of_segments[i] = last;
    }
}

static int find_counted(struct recorded_books *recorded)
{
    size_t size_bytes = recorded->segment_count * sizeof *recorded->counted_by;
    recorded->counted_by = malloc(size_bytes + 1);
    if (recorded->counted_by == NULL) {
        return -ENOMEM;
    }
    memcpy(recorded->counted_by, recorded->of_segments, size_bytes);
    fill_segments(recorded, recorded->counted_by, true);
    return 0;
}

int recorded_books_close(struct recorded_books *recorded, char **ret_books_json)
{
    int r = recorded_books_end_segment(recorded);
    r = r < 0 ? r : find_counted(recorded);
    if (r == 0) {
        fill_segments(recorded, recorded->of_segments, false);
        r = add_books(recorded, ret_books_json);
    }
    return r;
}

uint32_t recorded_books_last_session(const struct recorded_books *recorded)
{
    return recorded->segment_count == 0 ? INTERN_NONE
                                        : recorded->of_segments[recorded->segment_count - 1];
}
