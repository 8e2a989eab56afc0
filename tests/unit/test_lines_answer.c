/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers of the child that parses debugging information: what it found comes through whole, and an
 * answer that contradicts itself anywhere changes nothing.
 */
#include "lines_answer.h"
#include "unit_test.h"

#include <errno.h>

/* Two addresses: one() inlined into _Z3twov at a.c:7, and nothing. */
struct example {
    struct lines_answer_header *header; /* owned; its body is behind it */
    size_t size_bytes;
};

static void *body_of(const struct example *example)
{
    return example->header + 1;
}

static void make_example(struct example *ret)
{
    struct intern texts = {0};
    uint32_t one = 0;
    uint32_t two = 0;
    uint32_t file = 0;
    assert_int_equal(intern_add(&texts, "one", 3, &one), 0);
    assert_int_equal(intern_add(&texts, "_Z3twov", 7, &two), 0);
    assert_int_equal(intern_add(&texts, "a.c", 3, &file), 0);
    struct inline_frame frames[] = {{.name = one, .file = file, .line = 7},
                                    {.name = two, .file = INTERN_NONE}};
    const struct inlines table = {.frames = frames, .frame_count = 2};
    const struct lines_address addresses[] = {{.vaddr = 1, .chain = {.first = 0, .count = 2}},
                                              {.vaddr = 2}};
    void *answer = NULL;
    assert_int_equal(lines_answer_make(addresses, 2, &texts, &table, &answer, &ret->size_bytes), 0);
    ret->header = answer;
    intern_done(&texts);
}

/* Takes the example into a table with a frame; returns what lines_answer_take() does. */
static int take(const struct example *example, struct intern *texts, struct inlines *table,
                struct inline_chain chains[2])
{
    struct demangler demangler = {0};
    size_t body_bytes = 0;
    int r = lines_answer_size(example->header, 2, &body_bytes);
    if (r == 0) {
        assert_int_equal(body_bytes, example->size_bytes - sizeof *example->header);
        r = lines_answer_take(example->header, body_of(example), &demangler, texts, table, chains);
    }
    return r;
}

TEST(brings_what_was_found)
{
    struct example example;
    struct intern texts = {0};
    struct inlines table = {
        .frames = calloc(1, sizeof *table.frames), .frame_capacity = 1, .frame_count = 1};
    struct inline_chain chains[2];
    make_example(&example);
    assert_int_equal(take(&example, &texts, &table, chains), 0);
    assert_int_equal(table.frame_count, 3);
    assert_int_equal(chains[0].first, 1);
    assert_int_equal(chains[0].count, 2);
    assert_int_equal(chains[1].count, 0);
    assert_string_equal(intern_text(&texts, table.frames[1].name), "one");
    assert_string_equal(intern_text(&texts, table.frames[1].file), "a.c");
    assert_int_equal(table.frames[1].line, 7);
    assert_string_equal(intern_text(&texts, table.frames[2].name), "two");
    assert_int_equal(table.frames[2].file, INTERN_NONE);
    inlines_done(&table);
    intern_done(&texts);
    free(example.header);
}

TEST(refuses_what_contradicts_itself)
{
    /* Which 32 bits of the answer are changed, and what to. */
    enum {
        CHAINS = 6,
        FRAMES = CHAINS + 4,
        LENGTHS = FRAMES + 6,
        BYTES = LENGTHS + 3
    };
    static const struct {
        const char *what;
        size_t word;
        uint32_t value;
    } cases[] = {
        {"an error", 0, (uint32_t)-EBADMSG},
        {"a positive error", 0, 1},
        {"more chains than addresses", 1, 3},
        {"fewer chains than addresses", 1, 1},
        {"frames beyond all bounds", 2, UINT32_MAX},
        {"texts beyond all bounds", 3, UINT32_MAX},
        {"bytes beyond all bounds", 5, 1},
        {"a chain that begins behind the frames", CHAINS, 3},
        {"a chain that ends behind the frames", CHAINS + 1, 3},
        {"a chain that overflows", CHAINS + 1, UINT32_MAX},
        {"a name that is not there", FRAMES, 3},
        {"a file that is not there", FRAMES + 1, UINT32_MAX - 1},
        {"a text longer than all", LENGTHS, UINT32_MAX},
        {"texts shorter than their bytes", LENGTHS, 2},
        {"texts longer than their bytes", LENGTHS + 2, 4},
        {"a NUL", BYTES, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct example example;
        struct intern texts = {0};
        struct inlines table = {0};
        struct inline_chain chains[2];
        make_example(&example);
        memcpy((uint8_t *)example.header + 4 * cases[i].word, &cases[i].value, 4);
        if (take(&example, &texts, &table, chains) != -EBADMSG || table.frame_count != 0) {
            fail_msg("%s: is accepted", cases[i].what);
        }
        inlines_done(&table);
        intern_done(&texts);
        free(example.header);
    }
}

TEST(bounds_what_it_makes)
{
    const struct intern texts = {0};
    const struct inlines table = {.frame_count = LINES_ANSWER_BYTES_MAX / 4};
    void *answer = NULL;
    size_t answer_bytes = 0;
    assert_int_equal(lines_answer_make(NULL, 0, &texts, &table, &answer, &answer_bytes), -EBADMSG);
}

TEST(checks_what_a_file_is_said_to_be)
{
    static struct lines_about about;
    assert_true(lines_about_is_sound(&about));
    about.build_id_bytes = LINES_BUILD_ID_BYTES_MAX + 1;
    assert_false(lines_about_is_sound(&about));
    about = (struct lines_about){.alternate_id_bytes = UINT32_MAX};
    assert_false(lines_about_is_sound(&about));
    about = (struct lines_about){.link = "../../etc/file"};
    assert_false(lines_about_is_sound(&about));
    about = (struct lines_about){.link = "name.debug"};
    assert_true(lines_about_is_sound(&about));
    memset(about.link, 'a', sizeof about.link);
    assert_false(lines_about_is_sound(&about));
    about = (struct lines_about){0};
    memset(about.alternate, 'a', sizeof about.alternate);
    assert_false(lines_about_is_sound(&about));
}

TEST(refuses_more_frames_than_a_profile_has)
{
    struct example example;
    struct intern texts = {0};
    struct inlines table = {.frame_count = LINES_FRAME_COUNT_MAX - 1};
    struct inline_chain chains[2];
    make_example(&example);
    assert_int_equal(take(&example, &texts, &table, chains), -EBADMSG);
    intern_done(&texts);
    free(example.header);
}

TEST(refuses_functions_that_do_not_hold_their_addresses)
{
    static const struct {
        struct function_range range;
        bool is_sound;
    } cases[] = {
        {{0, 0}, true},  {{7, 8}, true},  {{0, UINT64_MAX}, true}, {{7, 7}, false},
        {{8, 9}, false}, {{0, 7}, false}, {{8, 7}, false},         {{1, 0}, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const uint64_t vaddrs[] = {3, 7};
        const struct function_range ranges[] = {{0, 4}, cases[i].range};
        assert_int_equal(lines_ranges_are_sound(vaddrs, ranges, 2), cases[i].is_sound);
    }
}

TEST(refuses_code_that_is_not_of_its_range)
{
    static const struct {
        uint64_t addresses[2];
        bool is_sound;
    } cases[] = {
        {{4, 5}, true},  {{4, 7}, true},  {{4, 4}, false},
        {{5, 4}, false}, {{3, 5}, false}, {{4, 8}, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct disassembly_line lines[] = {{cases[i].addresses[0], "nop"},
                                                 {cases[i].addresses[1], "ret"}};
        assert_int_equal(lines_code_is_sound(4, 8, lines, 2), cases[i].is_sound);
    }
    struct disassembly_line endless = {.address = 4};
    memset(endless.text, 'x', sizeof endless.text);
    assert_int_equal(lines_code_is_sound(4, 8, &endless, 1), false);
}
