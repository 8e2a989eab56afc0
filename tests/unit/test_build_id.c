/* SPDX-License-Identifier: Apache-2.0 */

/* ELF notes, whole and broken. Every case is looked at in memory of exactly its size. */
#include "build_id.h"
#include "unit_test.h"

struct notes {
    const char *what;
    uint64_t align;
    const char *bytes;
    size_t size;
    const char *id; /* NULL: none */
    size_t id_bytes;
};

#define BYTES(text) (text), sizeof(text) - 1

static const struct notes cases[] = {
    {"alone", 4, BYTES("\4\0\0\0\3\0\0\0\3\0\0\0GNU\0abc\0"), BYTES("abc")},
    {"last, without its padding", 4, BYTES("\4\0\0\0\3\0\0\0\3\0\0\0GNU\0abc"), BYTES("abc")},
    {"after another note", 4,
     BYTES("\4\0\0\0\4\0\0\0\1\0\0\0GNU\0....\4\0\0\0\4\0\0\0\3\0\0\0GNU\0wxyz"), BYTES("wxyz")},
    {"after a note with an odd name and an odd descriptor", 4,
     BYTES("\5\0\0\0\1\0\0\0\3\0\0\0Linux\0\0\0x\0\0\0\4\0\0\0\4\0\0\0\3\0\0\0GNU\0wxyz"),
     BYTES("wxyz")},
    {"aligned to 8", 8,
     BYTES("\4\0\0\0\4\0\0\0\5\0\0\0GNU\0....\0\0\0\0\4\0\0\0\4\0\0\0\3\0\0\0GNU\0wxyz"),
     BYTES("wxyz")},
    {"of another owner", 4, BYTES("\4\0\0\0\4\0\0\0\3\0\0\0FOO\0abcd"), NULL, 0},
    {"of no bytes", 4, BYTES("\4\0\0\0\0\0\0\0\3\0\0\0GNU\0"), NULL, 0},
    {"cut in the id", 4, BYTES("\4\0\0\0\24\0\0\0\3\0\0\0GNU\0abcd"), NULL, 0},
    {"cut in the name", 4, BYTES("\4\0\0\0\24\0\0\0\3\0\0\0GN"), NULL, 0},
    {"cut in the header", 4, BYTES("\4\0\0\0\24\0\0\0\3\0\0"), NULL, 0},
    {"empty", 4, BYTES(""), NULL, 0},
    {"with a name size near 2^32", 4, BYTES("\xff\xff\xff\xff\4\0\0\0\3\0\0\0GNU\0abcd"), NULL, 0},
    {"with a name size near 2^32, aligned to 8", 8,
     BYTES("\xf4\xff\xff\xff\4\0\0\0\3\0\0\0GNU\0abcd"), NULL, 0},
    {"with an id size near 2^32", 4, BYTES("\4\0\0\0\xff\xff\xff\xff\3\0\0\0GNU\0abcd"), NULL, 0},
    {"behind a note that is too long", 4,
     BYTES("\4\0\0\0\xfd\xff\xff\xff\1\0\0\0GNU\0\4\0\0\0\4\0\0\0\3\0\0\0GNU\0wxyz"), NULL, 0},
};

TEST(finds_the_build_id_or_says_there_is_none)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct notes *notes = &cases[i];
        const uint8_t *id = NULL;
        size_t id_bytes = 0;
        uint8_t *exact = malloc(notes->size == 0 ? 1 : notes->size);
        memcpy(exact, notes->bytes, notes->size);
        bool found = build_id_find(exact, notes->size, notes->align, &id, &id_bytes);
        bool right = found == (notes->id != NULL) && id_bytes == notes->id_bytes &&
                     (!found || memcmp(id, notes->id, id_bytes) == 0);
        free(exact);
        if (!right) {
            fail_msg("a note %s", notes->what);
        }
    }
}

TEST(refuses_an_id_that_is_longer_than_a_table_holds)
{
    uint8_t notes[16 + 65] = "\4\0\0\0\100\0\0\0\3\0\0\0GNU";
    const uint8_t *id = NULL;
    size_t id_bytes = 0;
    assert_true(build_id_find(notes, sizeof notes, 4, &id, &id_bytes));
    assert_int_equal(id_bytes, 64);
    assert_ptr_equal(id, notes + 16);
    notes[4] = 65;
    assert_false(build_id_find(notes, sizeof notes, 4, &id, &id_bytes));
}
