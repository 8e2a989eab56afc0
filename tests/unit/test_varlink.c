/* SPDX-License-Identifier: Apache-2.0 */

/* Framing: messages come out as they were put in, however the bytes are cut. */
#include "varlink.h"

#include <errno.h>
/* cmocka wants the four above */
#include "unit_test.h"

#define STREAM       "{\"a\":1}\0{}\0\"x\"\0"
#define STREAM_BYTES (sizeof STREAM - 1)

/* Puts `size` bytes in, in as many pieces as the room asks for. Returns 0 or the first error. */
static int put(struct varlink_input *input, const char *bytes, size_t size)
{
    while (size > 0) {
        char *space = NULL;
        size_t room = 0;
        int r = varlink_input_space(input, &space, &room);
        if (r < 0) {
            return r;
        }
        assert_true(room > 0);
        size_t piece = size < room ? size : room;
        memcpy(space, bytes, piece);
        varlink_input_filled(input, piece);
        bytes += piece;
        size -= piece;
    }
    return 0;
}

static void assert_next(struct varlink_input *input, const char *wanted)
{
    const char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(varlink_input_next(input, &text, &bytes), 1);
    assert_string_equal(text, wanted);
    assert_int_equal(bytes, strlen(wanted));
}

static void assert_none(struct varlink_input *input)
{
    const char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(varlink_input_next(input, &text, &bytes), 0);
}

TEST(hands_out_messages_that_came_at_once)
{
    struct varlink_input input = {0};
    assert_none(&input);
    assert_int_equal(put(&input, STREAM, STREAM_BYTES), 0);
    assert_next(&input, "{\"a\":1}");
    assert_next(&input, "{}");
    assert_next(&input, "\"x\"");
    assert_none(&input);
    varlink_input_done(&input);
}

TEST(hands_out_messages_that_came_in_two_pieces)
{
    for (size_t cut = 0; cut <= STREAM_BYTES; cut++) {
        struct varlink_input input = {0};
        const char *text = NULL;
        size_t bytes = 0;
        unsigned count = 0;
        assert_int_equal(put(&input, STREAM, cut), 0);
        while (varlink_input_next(&input, &text, &bytes) == 1) {
            count++;
        }
        assert_int_equal(put(&input, &STREAM[cut], STREAM_BYTES - cut), 0);
        while (varlink_input_next(&input, &text, &bytes) == 1) {
            count++;
        }
        assert_int_equal(count, 3);
        assert_string_equal(text, "\"x\"");
        varlink_input_done(&input);
    }
}

TEST(hands_out_a_message_of_the_largest_size)
{
    static char message[VARLINK_MESSAGE_BYTES_MAX];
    struct varlink_input input = {0};
    memset(message, 'm', sizeof message - 1);
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(put(&input, message, sizeof message), 0);
        assert_next(&input, message);
    }
    varlink_input_done(&input);
}

TEST(refuses_a_message_beyond_the_largest_size)
{
    static char message[VARLINK_MESSAGE_BYTES_MAX];
    struct varlink_input input = {0};
    memset(message, 'm', sizeof message);
    assert_int_equal(put(&input, message, sizeof message), 0);
    assert_none(&input);
    assert_int_equal(put(&input, "", 1), -EMSGSIZE);
    varlink_input_done(&input);
}

TEST(refuses_an_empty_message)
{
    struct varlink_input input = {0};
    const char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(put(&input, "{}\0\0", 4), 0);
    assert_next(&input, "{}");
    assert_int_equal(varlink_input_next(&input, &text, &bytes), -EBADMSG);
    varlink_input_done(&input);
}
