/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes in any pieces give the same messages, and the same end, as the bytes at once. The first
 * byte chooses the pieces.
 */
#include "fuzz_target.h"
#include "varlink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Feeds `bytes` in pieces of at most `piece`; checks each message against the bytes themselves.
 * Returns the error that ended it, or the count of messages. */
static int feed(const uint8_t *bytes, size_t size, size_t piece)
{
    struct varlink_input input = {0};
    size_t fed = 0;
    size_t seen = 0;
    int r = 0;
    int count = 0;
    while (r >= 0 && fed < size) {
        char *space = NULL;
        size_t room = 0;
        const char *text = NULL;
        size_t text_bytes = 0;
        r = varlink_input_space(&input, &space, &room);
        room = r < 0 || room > piece ? piece : room;
        room = room > size - fed ? size - fed : room;
        if (r >= 0) {
            memcpy(space, bytes + fed, room);
            varlink_input_filled(&input, room);
            fed += room;
        }
        while (r >= 0 && (r = varlink_input_next(&input, &text, &text_bytes)) == 1) {
            if (strlen(text) != text_bytes || memcmp(text, bytes + seen, text_bytes + 1) != 0) {
                abort();
            }
            seen += text_bytes + 1;
            count++;
        }
    }
    varlink_input_done(&input);
    return r < 0 ? r : count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > 0 && feed(bytes + 1, size - 1, (size_t)bytes[0] % 61 + 1) !=
                        feed(bytes + 1, size - 1, VARLINK_MESSAGE_BYTES_MAX)) {
        abort();
    }
    return 0;
}
