/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The text of folded stacks: what stands in a line, and in which order lines stand.
 */

#include "unit_test.h"

#include "app_recording.h"

TEST(prints_nothing_without_samples)
{
    assert_folded(recording_new(), "");
}

TEST(keeps_names_from_breaking_lines_and_frames)
{
    static const struct {
        const char *name;
        const char *expected;
    } cases[] = {
        {"a;b", "a:b"},
        {"a\nb", "a:b"},
        {"a\rb", "a:b"},
        {"a\033[2Jb", "a?[2Jb"},
        {"a\xc2\x9b"
         "2Jb",
         "a?2Jb"},                        /* C1 */
        {"a\xe2\x80\xaex", "a?x"},        /* right-to-left override */
        {"a\xe2\x80\xa8;b\x7f", "a?:b?"}, /* a line separator */
        {"with space", "with space"},
        {"\xc3\xa4", "\xc3\xa4"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char expected[128];
        struct recording *recording = recording_new();
        add_name(recording, 7, 0, 0, cases[i].name);
        add_module(recording, 7, 1, cases[i].name, 0);
        add_mmap(recording, 0, 7, 1, 0x1000, 0x1000, 0);
        add_sample(recording, 1, 7, COMPLETE, ADDRESSES(0x1002));
        (void)snprintf(expected, sizeof expected, "%s;%s+0x2 1\n", cases[i].expected,
                       cases[i].expected);
        assert_folded(recording, expected);
    }
}

TEST(counts_stacks_with_the_same_names_together)
{
    struct recording *recording = recording_new();
    /* Two processes of one name, with the same function at different places. */
    for (uint64_t pid = 7; pid < 9; pid++) {
        add_name(recording, pid, 0, 0, "twin");
        add_module(recording, pid, 1, "lib", 0xab);
        add_mmap(recording, 0, pid, 1, 0x1000 * pid, 0x1000, 0);
        add_sample(recording, 1, pid, COMPLETE, ADDRESSES(0x1000 * pid + 4));
        add_sample(recording, 2, pid, COMPLETE, ADDRESSES(0x1000 * pid + 5));
    }
    add_data(recording, FXT_STRING_SYMBOLS,
             "{\"build_id\":\"ab\",\"module\":\"lib\",\"start\":4,\"size\":4,\"name\":\"spin\"}\n");
    assert_folded(recording, "twin;spin 4\n");
}

TEST(sorts_lines_whatever_the_order_of_the_file)
{
    struct recording *recording = recording_new();
    add_name(recording, 8, 0, 0, "b");
    add_name(recording, 7, 0, 0, "a");
    for (uint64_t pid = 8; pid > 6; pid--) {
        add_module(recording, pid, 1, "m", 0);
        add_mmap(recording, 0, pid, 1, 0x1000, 0x1000, 0);
        add_sample(recording, 1, pid, TRUNCATED, ADDRESSES(0x1001));
        add_sample(recording, 1, pid, COMPLETE, ADDRESSES(0x1002, 0x1001));
        add_sample(recording, 1, pid, COMPLETE, ADDRESSES(0x1001, 0x1001));
        add_sample(recording, 1, pid, COMPLETE, ADDRESSES(0x1001));
    }
    assert_folded(recording,
                  "a;m+0x1 1\na;m+0x1;m+0x1 1\na;m+0x1;m+0x2 1\na;[truncated];m+0x1 1\n"
                  "b;m+0x1 1\nb;m+0x1;m+0x1 1\nb;m+0x1;m+0x2 1\nb;[truncated];m+0x1 1\n");
}
