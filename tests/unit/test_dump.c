/* SPDX-License-Identifier: Apache-2.0 */

/* What a dump shows of a recording of several segments. */
#include "dump.h"
#include "made_recording.h"
#include "recording.h"

static int dump_json(const struct fxt_record *record, void *userdata)
{
    dump_print_json(userdata, record);
    return 0;
}

/* Frees the recording. */
static void print_json(FILE *file, struct recording *recording)
{
    struct input_summary summary = {0};
    struct fault fault = {0};
    assert_true(fxt_writer_ok(&recording->writer));
    assert_int_equal(input_read_memory((const uint8_t *)recording->memory,
                                       recording->writer.used_bytes, dump_json, file, &summary,
                                       &fault),
                     0);
    free(recording);
}

/* Pids, modules and continuation ids of two segments may be the same, and mean others. */
TEST(says_in_json_where_a_segment_begins)
{
#define LINES                                                                                      \
    "{\"record\":\"segment\"}\n"                                                                   \
    "{\"record\":\"process\",\"pid\":7,\"since_ns\":0,\"name\":\"app\"}\n"                         \
    "{\"record\":\"sample\",\"time_ns\":1,\"pid\":7,\"tid\":7,\"continuation\":\"0x5\"}\n"
    struct recording *recording = recording_new();
    for (int segment = 0; segment < 2; segment++) {
        struct fxt_sample sample = partial(1, 5);
        if (segment > 0) {
            fxt_write_segment_begin(&recording->writer, 2, "test");
        }
        add_name(recording, 7, 0, 0, "app");
        fxt_write_sample(&recording->writer, &sample);
    }
    EXPECT_PRINTED(LINES LINES, print_json(file, recording));
}
