/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Trees of stacks. A node is written as "DEPTH NAME TOTAL ENDING CUT", its parent before it.
 */
#include "functions.h"
#include "made_recording.h"
#include "selection.h"
#include "tree_print.h"

#define MODULES                                                                                    \
    "name 7 0 0 app; module 7 1 /bin/app 0xab; mmap 0 7 1 0x1000 0x1000 0;"                        \
    "symbol ab /bin/app 0 main; symbol ab /bin/app 16 walk; symbol ab /bin/app 32 leaf;"           \
    "symbol ab /bin/app 48 other;"

#define MAIN  "0x1001"
#define WALK  "0x1011"
#define LEAF  "0x1021"
#define OTHER "0x1031"

/* walk calls itself: in the first three samples up to twice; the last stack is cut. */
#define STACKS                                                                                     \
    "sample 1 7 1 " LEAF " " WALK " " WALK " " MAIN ";"                                            \
    "sample 2 7 1 " LEAF " " WALK " " WALK " " MAIN ";"                                            \
    "sample 3 7 1 " WALK " " WALK " " WALK " " MAIN ";"                                            \
    "sample 4 7 1 " LEAF " " WALK " " MAIN ";"                                                     \
    "sample 5 7 1 " OTHER " " MAIN ";"                                                             \
    "sample 6 7 2 " LEAF " " WALK

struct text {
    const struct profile *profile;
    FILE *file;
};

static void on_node(const struct tree_node *node, void *userdata)
{
    const struct text *text = userdata;
    (void)fprintf(text->file, "%u %s %u %u %u\n", node->depth,
                  node->depth == 0     ? "-"
                  : node->is_truncated ? "[truncated]"
                                       : profile_text(text->profile, node->name),
                  (unsigned)node->total, (unsigned)node->ending, (unsigned)node->cut_samples);
}

static void assert_tree(const char *lines, struct tree_request request, const char *expected)
{
    struct profile *profile = load_recording(recording_of(lines));
    EXPECT_PRINTED(expected, struct text text = {profile, file};
                   assert_int_equal(tree_walk(profile, &request, on_node, &text), 0));
    (void)profile_free(profile);
}

TEST(puts_stacks_together_from_the_root)
{
    assert_tree(MODULES STACKS, (struct tree_request){.view = TREE_FROM_ROOT},
                "0 - 6 0 0\n"
                "1 main 5 0 0\n"
                "2 walk 4 0 0\n"
                "3 walk 3 0 0\n"
                "4 leaf 2 2 0\n"
                "4 walk 1 1 0\n"
                "3 leaf 1 1 0\n"
                "2 other 1 1 0\n"
                "1 [truncated] 1 0 0\n"
                "2 walk 1 0 0\n"
                "3 leaf 1 1 0\n");
}

TEST(puts_stacks_together_from_the_leaves)
{
    assert_tree(MODULES STACKS, (struct tree_request){.view = TREE_FROM_LEAVES},
                "0 - 6 0 0\n"
                "1 leaf 4 0 0\n"
                "2 walk 4 0 0\n"
                "3 walk 2 0 0\n"
                "4 main 2 2 0\n"
                "3 main 1 1 0\n"
                "3 [truncated] 1 1 0\n"
                "1 other 1 0 0\n"
                "2 main 1 1 0\n"
                "1 walk 1 0 0\n"
                "2 walk 1 0 0\n"
                "3 walk 1 0 0\n"
                "4 main 1 1 0\n");
}

TEST(counts_a_sample_once_however_often_a_function_calls_itself)
{
    assert_tree(MODULES STACKS, (struct tree_request){TREE_CALLEES, "walk", 0},
                "0 - 5 0 0\n"
                "1 walk 5 0 0\n"
                "2 walk 3 0 0\n"
                "3 leaf 2 2 0\n"
                "3 walk 1 1 0\n"
                "2 leaf 2 2 0\n");
    assert_tree(MODULES STACKS, (struct tree_request){TREE_CALLERS, "walk", 0},
                "0 - 5 0 0\n"
                "1 walk 5 0 0\n"
                "2 walk 3 0 0\n"
                "3 main 2 2 0\n"
                "3 walk 1 0 0\n"
                "4 main 1 1 0\n"
                "2 main 1 1 0\n"
                "2 [truncated] 1 1 0\n");
}

TEST(says_what_is_cut)
{
    assert_tree(MODULES STACKS, (struct tree_request){TREE_FROM_ROOT, NULL, 40},
                "0 - 6 0 1\n"
                "1 main 5 0 1\n"
                "2 walk 4 0 1\n"
                "3 walk 3 0 3\n");
}

TEST(takes_a_glob_where_no_function_has_the_name)
{
    assert_tree(MODULES STACKS, (struct tree_request){TREE_CALLEES, "[lo]*", 0},
                "0 - 5 0 0\n"
                "1 leaf 4 4 0\n"
                "1 other 1 1 0\n");
    struct profile *profile = load_recording(recording_of(MODULES STACKS));
    const struct tree_request request = {TREE_CALLERS, "x*", 0};
    assert_int_equal(tree_walk(profile, &request, on_node, NULL), TREE_NO_FUNCTION);
    (void)profile_free(profile);
}

/* Samples that are not selected do not hide what a selected one has. */
TEST(takes_the_names_of_selected_samples)
{
    static const struct selection selection = {.pids = {8}, .pid_count = 1};
    static const struct tree_request request = {TREE_CALLEES, "walk", 0};
    struct profile *profile = load_recording(recording_of(
        MODULES "name 8 0 0 other; module 8 1 /bin/b 0xcd; mmap 0 8 1 0x1000 0x1000 0;"
                "symbol cd /bin/b 0 walk.constprop.0; sample 1 7 1 " WALK "; sample 2 8 1 0x1001"));
    struct fault fault = {0};
    assert_int_equal(selection_apply(&selection, profile, &fault), 0);
    EXPECT_PRINTED("0 - 1 0 0\n1 walk.constprop.0 1 1 0\n", struct text text = {profile, file};
                   assert_int_equal(tree_walk(profile, &request, on_node, &text), 0));
    (void)profile_free(profile);
}

/* As a person reads them off a page, or out of a source. */
TEST(takes_names_without_what_compilers_append_and_shortened_ones)
{
    static const struct {
        const char *wanted;
        const char *name;
        int reading; /* FUNCTION_READINGS: it is not meant */
    } cases[] = {
        {"heavy", "heavy", 0},
        {"heavy", "heavy.constprop.0", 1},
        {"heavy", "heavy.isra.0.cold", 1},
        {"heavy", "heavy.other", FUNCTION_READINGS},
        {"heavy", "heavyweight", FUNCTION_READINGS},
        {"heavy.constprop.0", "heavy", FUNCTION_READINGS},
        {"__memset_av...igned_erms", "__memset_avx512_unaligned_erms", 2},
        {"__memset_av...igned_erms", "__memset_avx512_unaligned", FUNCTION_READINGS},
        {"h*y", "heavy", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int reading = 0;
        while (reading < FUNCTION_READINGS &&
               !functions_are_meant((unsigned)reading, cases[i].wanted, cases[i].name)) {
            reading++;
        }
        assert_int_equal(reading, cases[i].reading);
    }
}

TEST(keeps_functions_of_two_modules_apart)
{
    assert_tree("module 7 1 /bin/app 0xab; mmap 0 7 1 0x1000 0x1000 0; module 7 2 /lib/x 0xcd;"
                "mmap 0 7 2 0x2000 0x1000 0; symbol ab /bin/app 0 main; symbol cd /lib/x 0 main;"
                "sample 1 7 1 0x1001 0x2001; sample 2 7 1 0x2001 0x1001; sample 3 7 1 0x2001",
                (struct tree_request){.view = TREE_FROM_ROOT},
                "0 - 3 0 0\n"
                "1 main 2 1 0\n"
                "2 main 1 1 0\n"
                "1 main 1 0 0\n"
                "2 main 1 1 0\n");
}

TEST(has_one_node_for_a_recording_without_samples)
{
    assert_tree(MODULES, (struct tree_request){.view = TREE_FROM_ROOT}, "0 - 0 0 0\n");
}

static char *print_tree(const char *lines, const struct tree_request *request, size_t columns,
                        bool is_json)
{
    struct profile *profile = load_recording(recording_of(lines));
    struct summary summary;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    const struct page page = {.file = file, .columns = columns};
    assert_int_equal(summary_take(profile, &summary), 0);
    assert_int_equal(is_json ? tree_print_json(file, profile, &summary, request)
                             : tree_print_text(&page, profile, &summary, request),
                     0);
    assert_int_equal(fclose(file), 0);
    (void)profile_free(profile);
    return text;
}

TEST(indents_where_the_way_forks)
{
    const struct tree_request request = {TREE_FROM_ROOT, NULL, 20};
    char *text = print_tree(MODULES STACKS, &request, PAGE_COLUMNS_DEFAULT, false);
    assert_contains(text, "total %   self %    cut %  function\n"
                          " 100.00             16.67  (all of them)\n"
                          "  83.33             16.67  main\n"
                          "  66.67             16.67  walk\n"
                          "  50.00             16.67  walk\n"
                          "  33.33    33.33           leaf\n"
                          "cut: 4 branches below 20 %, 4 samples; --min 0 shows all\n");
    free(text);
    const struct tree_request whole = {TREE_CALLERS, "walk", 0};
    text = print_tree(MODULES STACKS, &whole, PAGE_COLUMNS_DEFAULT, false);
    assert_contains(text, "total %   root %    cut %  function\n"
                          "  83.33                    (all of them)\n"
                          "  83.33                    walk\n"
                          "  50.00                    - walk\n"
                          "  33.33    33.33             - main\n"
                          "  16.67                      - walk\n"
                          "  16.67    16.67               main\n"
                          "  16.67    16.67           - main\n"
                          "  16.67    16.67           - [truncated]\n");
    free(text);
}

TEST(prints_a_flat_list_of_nodes_as_json)
{
    const struct tree_request request = {TREE_CALLEES, "walk", 50};
    char *text = print_tree(MODULES STACKS, &request, PAGE_COLUMNS_DEFAULT, true);
    assert_contains(
        text, "{\"samples\":6,\"period_ns\":null,\"duration_ns\":5,\"by\":\"function\","
              "\"view\":\"callees\",\"function\":\"walk\",\"min_percent\":50,\"tree\":["
              "{\"depth\":0,\"parent\":null,\"name\":null,\"module\":null,\"total\":5,\"self\":0,"
              "\"cut\":0,\"cut_branches\":0,\"total_percent\":83.33},"
              "{\"depth\":1,\"parent\":0,\"name\":\"walk\",\"module\":\"/bin/app\",\"total\":5,"
              "\"self\":0,\"cut\":2,\"cut_branches\":1,\"total_percent\":83.33},"
              "{\"depth\":2,\"parent\":1,\"name\":\"walk\",\"module\":\"/bin/app\",\"total\":3,"
              "\"self\":0,\"cut\":3,\"cut_branches\":2,\"total_percent\":50.00}],"
              "\"stacks\":{\"complete\":5,\"unproved\":0,\"truncated\":1,\"stitched\":0,\"none\":0,"
              "\"kernel_threads\":0},\"books\":null,\"summary\":{");
    free(text);
}

TEST(keeps_deep_forks_within_the_page)
{
    char lines[4096] = MODULES;
    size_t used = strlen(lines);
    /* Each walk has a sample of its own below it, so each is a fork. */
    for (int depth = 1; depth < 8; depth++) {
        used += (size_t)snprintf(lines + used, sizeof lines - used, "sample %d 7 1 " LEAF, depth);
        for (int i = 0; i < depth; i++) {
            used += (size_t)snprintf(lines + used, sizeof lines - used, " " WALK);
        }
        used += (size_t)snprintf(lines + used, sizeof lines - used, ";");
    }
    lines[used - 1] = '\0';
    const struct tree_request request = {TREE_FROM_ROOT, NULL, 0};
    char *text = print_tree(lines, &request, PAGE_COLUMNS_MIN, false);
    assert_contains(text, "        - walk\n");
    assert_contains(text, "        - +2 leaf\n");
    free(text);
}
