/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The text of folded stacks: what stands in a line, and in which order lines stand.
 */
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
        {"a\xc2\x9b[2J", "a?[2J"},        /* C1 */
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
    /* Two processes of one name, with the same function at different places. */
    assert_folded(recording_of("name 7 0 0 twin; module 7 1 lib 0xab; mmap 0 7 1 0x7000 0x1000 0;"
                               "name 8 0 0 twin; module 8 1 lib 0xab; mmap 0 8 1 0x8000 0x1000 0;"
                               "sample 1 7 1 0x7004; sample 2 7 1 0x7005;"
                               "sample 1 8 1 0x8004; sample 2 8 1 0x8005;"
                               "symbol ab lib 4 spin"),
                  "twin;spin 4\n");
}

#define SAMPLES_OF(pid)                                                                            \
    "module " pid " 1 m; mmap 0 " pid " 1 0x1000 0x1000 0; sample 1 " pid " 2 0x1001;"             \
    "sample 1 " pid " 1 0x1002 0x1001; sample 1 " pid " 1 0x1001 0x1001;"                          \
    "sample 1 " pid " 1 0x1001;"

TEST(sorts_lines_whatever_the_order_of_the_file)
{
    assert_folded(recording_of("name 8 0 0 b; name 7 0 0 a;" SAMPLES_OF("8") SAMPLES_OF("7")),
                  "a;m+0x1 1\na;m+0x1;m+0x1 1\na;m+0x1;m+0x2 1\na;[truncated];m+0x1 1\n"
                  "b;m+0x1 1\nb;m+0x1;m+0x1 1\nb;m+0x1;m+0x2 1\nb;[truncated];m+0x1 1\n");
}
