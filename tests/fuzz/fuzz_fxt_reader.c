/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes, read whole and read in two pieces, give the same records at the same offsets and end
 * at the same place, in the same way. The first two bytes say where to cut; the rest is the file.
 */
#include "fuzz_target.h"

#include "fxt_reader.h"

#include <stdlib.h>
#include <string.h>

/* Reads on from `*at` out of an exact copy, so that a sanitizer sees a read past `end`. */
static int read_on(struct fxt_reader *reader, const uint8_t *bytes, size_t end, size_t *at,
                   uint64_t *digest)
{
    size_t begin = *at;
    uint8_t *copy = memcpy(malloc(end - begin + (end == begin)), bytes + begin, end - begin);
    struct fxt_record record = {0};
    int r = fxt_reader_next(reader, copy, end - begin, &record);
    while (r == 1) {
        if (record.offset_bytes != *at || record.size_bytes - 1 >= end - *at) {
            abort();
        }
        if (record.kind == FXT_RECORD_SAMPLE && record.sample.user_count > 0) {
            *digest += record.sample.user_stack[record.sample.user_count - 1];
        }
        *digest = *digest * 31 + record.kind;
        *at += record.size_bytes;
        r = fxt_reader_next(reader, copy + (*at - begin), end - *at, &record);
    }
    free(copy);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t end = size < 2 ? 0 : size - 2;
    size_t cuts[2] = {0, end == 0 ? 0 : ((size_t)bytes[0] << 8 | bytes[1]) % end};
    uint64_t digests[2] = {0};
    for (size_t i = 0, at = 0; i < 2; i++, at = 0) {
        struct fxt_reader *reader = fxt_reader_new();
        (void)read_on(reader, bytes + size - end, cuts[i], &at, &digests[i]);
        int r = read_on(reader, bytes + size - end, end, &at, &digests[i]);
        digests[i] = (digests[i] * 31 + (uint64_t)r) * 31 + at;
        (void)fxt_reader_free(reader);
    }
    return digests[0] == digests[1] ? 0 : (abort(), 0);
}
