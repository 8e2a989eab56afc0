/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks at recordings: whose they are, and what their clocks say. A session has both clocks at its
 * beginning, and in its books at their end; the difference of the differences is what the wall
 * clock was moved.
 */
#include "merge.h"

#include "cleanup.h"
#include "extremes.h"
#include "first_samples.h"
#include "json.h"
#include "recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS_TYPE 5 /* of a blob; those of cpu-profilerd are SAMPLE, Data and packets */

struct looking {
    struct merge_input *input;
    struct first_samples *firsts;
    char *session_json; /* owned; of the segment, as the next */
    char *books_json;
    bool is_mixed; /* it has two hosts */
    bool is_timeless;
};

static void looking_done(struct looking *looking)
{
    free(looking->session_json);
    free(looking->books_json);
}

static bool read_number(const cJSON *object, const char *name, uint64_t *ret)
{
    return data_read_u64(cJSON_GetObjectItemCaseSensitive(object, name), ret);
}

static int take_host(struct looking *looking, const cJSON *session)
{
    struct merge_input *input = looking->input;
    const char *host = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "host"));
    host = host == NULL ? "" : host;
    if (input->host == NULL) {
        input->host = strdup(host);
        return input->host == NULL ? -ENOMEM : 0;
    }
    looking->is_mixed = looking->is_mixed || strcmp(input->host, host) != 0;
    return 0;
}

/* What the segment that ends here says. */
static int end_segment(struct looking *looking)
{
    struct merge_input *input = looking->input;
    cleanup_(freep) char *session_json = take_ptr(looking->session_json);
    cleanup_(freep) char *books_json = take_ptr(looking->books_json);
    cleanup_(json_freep) cJSON *session = cJSON_Parse(session_json);
    cleanup_(json_freep) cJSON *books = cJSON_Parse(books_json);
    uint64_t boot_ns = 0;
    uint64_t wall_ns = 0;
    uint64_t end_boot_ns = 0;
    uint64_t end_wall_ns = 0;
    if (session == NULL) {
        return 0;
    }
    if (!read_number(session, "created_boot_ns", &boot_ns) ||
        !read_number(session, "created_realtime_ns", &wall_ns)) {
        looking->is_timeless = true;
        return 0;
    }
    input->from_unix_ns =
        input->session_count == 0 ? wall_ns : min_u64(input->from_unix_ns, wall_ns);
    input->session_count++;
    if (read_number(books, "at_boot_ns", &end_boot_ns) &&
        read_number(books, "at_realtime_ns", &end_wall_ns)) {
        input->to_unix_ns = max_u64(input->to_unix_ns, end_wall_ns);
        /* Each of the two may be the larger, so of their differences only that between them counts.
         */
        uint64_t moved_ns = (end_wall_ns - end_boot_ns) - (wall_ns - boot_ns);
        input->moved_ns = max_u64(input->moved_ns, min_u64(moved_ns, -moved_ns));
    }
    return take_host(looking, session);
}

static int look(const struct fxt_record *record, void *userdata)
{
    struct looking *looking = userdata;
    int r = first_samples_see(looking->firsts, record);
    if (r < 0) {
        return r;
    }
    if (record->kind == FXT_RECORD_MAGIC) {
        return end_segment(looking);
    }
    if (record->kind == FXT_RECORD_SAMPLE) {
        looking->input->sample_count +=
            (record->sample.fields & FXT_SAMPLE_CONTINUATION_COMPLETION) == 0;
    } else if (record->kind == FXT_RECORD_DATA && data_is_named(&record->data, DATA_NAME_SESSION)) {
        return data_take_object(&record->data, &looking->session_json);
    } else if (record->kind == FXT_RECORD_DATA && data_is_named(&record->data, DATA_NAME_BOOKS)) {
        return data_take_object(&record->data, &looking->books_json);
    } else if (record->kind == FXT_RECORD_OTHER && record->type == PACKETS_TYPE) {
        looking->input->has_packets = true;
    }
    return 0;
}

static int read_input(const char *path, struct merge_input *input, struct first_samples *firsts,
                      struct fault *reterr)
{
    cleanup_(looking_done) struct looking looking = {.input = input, .firsts = firsts};
    struct input_summary summary = {0};
    input->path = path;
    int r = input_read(path, look, &looking, &summary, reterr);
    r = r < 0 ? r : end_segment(&looking);
    r = r < 0 ? r : first_samples_end(firsts);
    if (r < 0) {
        return r == -ENOMEM ? fault_set(reterr, ENOMEM, "%s: there is not enough memory", path) : r;
    }
    if (looking.is_mixed) {
        return fault_set(reterr, EINVAL, "%s has recordings of several hosts; merge those", path);
    }
    if (input->session_count == 0 || looking.is_timeless || input->host[0] == '\0') {
        return fault_set(reterr, ENODATA,
                         "%s does not say %s, so nothing can be said to be earlier or later", path,
                         input->session_count == 0 || looking.is_timeless ? "what time it was"
                                                                          : "which host it is of");
    }
    input->size_bytes = summary.size_bytes;
    input->is_cut = summary.truncated || summary.damaged;
    return 0;
}

int merge_inputs_read(const char *const *paths, size_t count, struct merge_input **ret,
                      struct fault *reterr)
{
    struct merge_input *inputs = calloc(count + 1, sizeof *inputs);
    cleanup_(first_samples_done) struct first_samples firsts = {0};
    int r = 0;
    if (inputs == NULL) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        r = read_input(paths[i], &inputs[i], &firsts, reterr);
    }
    if (r < 0) {
        merge_inputs_free(inputs, count);
        return r;
    }
    size_t first = 0;
    size_t second = 0;
    if (first_samples_find_shared(&firsts, &first, &second)) {
        inputs[second].shared_path = paths[first];
    }
    if (first_samples_find_mistaken(&firsts, &first, &second)) {
        inputs[second].other_path = paths[first];
    }
    *ret = inputs;
    return 0;
}

void merge_inputs_free(struct merge_input *inputs, size_t count)
{
    for (size_t i = 0; i < count && inputs != NULL; i++) {
        free(inputs[i].host);
    }
    free(inputs);
}

bool merge_apart_ns(const struct merge_input *inputs, size_t count, uint64_t *ret_ns)
{
    bool is_known = true;
    *ret_ns = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(inputs[i].host, inputs[j].host) != 0) {
                *ret_ns = max_u64(*ret_ns, inputs[i].moved_ns + inputs[j].moved_ns);
                is_known = is_known && inputs[i].to_unix_ns > 0 && inputs[j].to_unix_ns > 0;
            }
        }
    }
    return is_known;
}
