/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What becomes of a profile when debugging information knows more of its addresses: frames, rows,
 * folded stacks. The information is made up here.
 */
#include "app_recording.h"
#include "report.h"

/* Two samples: work() at 0x1012, once called from main(), which goes on at 0x1005. */
static struct profile *load_example(void)
{
    struct recording *recording =
        recording_of("name 7 0 0 app; module 7 1 /bin/app 0xab; mmap 0 7 1 0x1000 0x1000 0;"
                     "symbol ab /bin/app 0 main; symbol ab /bin/app 16 work.part.0;"
                     "sample 1 7 1 0x1012 0x1005; sample 2 7 1 0x1030 0x1005");
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile->inlines.addresses.item_count, 0); /* before they are wanted */
    profile->inlines.is_wanted = true;
    assert_int_equal(profile_resolve(profile), 0);
    return profile;
}

static uint32_t add_text(struct profile *profile, const char *text)
{
    uint32_t item = 0;
    assert_int_equal(intern_add(&profile->texts, text, strlen(text), &item), 0);
    return item;
}

/* Says of an address that these functions are there, innermost first, in lines 1, 2, ... of a file.
 */
static void tell(struct profile *profile, uint64_t vaddr, const char *const *names, size_t count,
                 const char *file)
{
    struct inlines *table = &profile->inlines;
    const struct inline_address address = {.vaddr = vaddr};
    uint32_t item = intern_find(&table->addresses, &address, sizeof address);
    assert_int_not_equal(item, INTERN_NONE);
    table->chains[item] = (struct inline_chain){(uint32_t)table->frame_count, (uint32_t)count};
    struct inline_frame *frames =
        realloc(table->frames, (table->frame_count + count) * sizeof *frames);
    assert_non_null(frames);
    table->frames = frames;
    for (size_t i = 0; i < count; i++) {
        frames[table->frame_count++] = (struct inline_frame){
            .name = add_text(profile, names[i]),
            .file = file == NULL ? INTERN_NONE : add_text(profile, file),
            .line = file == NULL ? 0 : (uint32_t)i + 1,
        };
    }
    table->frame_capacity = table->frame_count;
}

static void tell_all(struct profile *profile, const char *file)
{
    tell(profile, 0x12, (const char *const[]){"leaf", "middle", "work"}, 3, file);
    tell(profile, 0x30, (const char *const[]){"leaf", "nameless"}, 2, file);
    profile->inlines.has_lines = file != NULL;
    assert_int_equal(profile_resolve(profile), 0);
}

TEST(asks_for_a_caller_one_byte_lower)
{
    struct profile *profile = load_example();
    const uint64_t expected[] = {0x12, 0x04, 0x30};
    assert_int_equal(profile->inlines.addresses.item_count, 3);
    for (size_t i = 0; i < 3; i++) {
        size_t size_bytes = 0;
        const struct inline_address *address =
            intern_bytes(&profile->inlines.addresses, (uint32_t)i, &size_bytes);
        assert_int_equal(address->vaddr, expected[i]);
    }
    (void)profile_free(profile);
}

TEST(changes_nothing_where_nothing_is_known)
{
    struct profile *profile = load_example();
    assert_int_equal(profile_resolve(profile), 0);
    assert_profile_folded(profile, "app;main;app+0x30 1\napp;main;work.part.0 1\n");
}

TEST(keeps_the_recordings_name_of_the_function_itself)
{
    struct profile *profile = load_example();
    tell_all(profile, NULL);
    assert_profile_folded(profile, "app;main;nameless;leaf_[i] 1\n"
                                   "app;main;work.part.0;middle_[i];leaf_[i] 1\n");
}

TEST(shows_lines_without_folders_in_folded_stacks)
{
    struct profile *profile = load_example();
    tell_all(profile, "/src/a;b.c");
    assert_profile_folded(profile,
                          "app;main;nameless:a:b.c:2;leaf:a:b.c:1_[i] 1\n"
                          "app;main;work.part.0:a:b.c:3;middle:a:b.c:2_[i];leaf:a:b.c:1_[i] 1\n");
}

TEST(gives_the_innermost_function_the_time)
{
    struct profile *profile = load_example();
    struct report report;
    tell_all(profile, NULL);
    assert_int_equal(report_build(profile, REPORT_BY_FUNCTION, REPORT_SORT_SELF, &report), 0);
    assert_int_equal(report.row_count, 5);
    assert_string_equal(profile_text(profile, report.rows[0].name), "leaf");
    assert_int_equal(report.rows[0].self, 2);
    assert_int_equal(report.rows[0].self_inlined, 2);
    assert_string_equal(profile_text(profile, report.rows[1].name), "main");
    assert_int_equal(report.rows[1].self, 0);
    assert_int_equal(report.rows[1].total, 2);
    for (size_t i = 0; i < report.row_count; i++) {
        assert_int_equal(report.rows[i].file, INTERN_NONE);
    }
    report_done(&report);
    (void)profile_free(profile);
}

TEST(makes_each_line_a_row)
{
    struct profile *profile = load_example();
    struct report report;
    struct summary summary;
    char *text = NULL;
    size_t text_bytes = 0;
    tell(profile, 0x12, (const char *const[]){"f", "work"}, 2, "/src/a.c");
    tell(profile, 0x30, (const char *const[]){"f", "work"}, 2, "/src/b.c");
    profile->inlines.has_lines = true;
    assert_int_equal(profile_resolve(profile), 0);
    assert_int_equal(report_build(profile, REPORT_BY_FUNCTION, REPORT_SORT_SELF, &report), 0);
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(summary_take(profile, &summary), 0);
    report_print_json(file, profile, &summary, &report, 2);
    report_print_table(&(struct page){.file = file, .columns = PAGE_COLUMNS_DEFAULT}, profile,
                       &summary, &report, 2);
    assert_int_equal(fclose(file), 0);
    assert_contains(text, "\"self_inlined\":1,\"file\":\"/src/a.c\",\"line\":1}");
    assert_contains(text, "\"self_inlined\":1,\"file\":\"/src/b.c\",\"line\":1}");
    assert_contains(text, "\"debug_files\":[]");
    assert_contains(text, "  f         a.c:1");
    free(text);
    report_done(&report);
    (void)profile_free(profile);
}

TEST(does_not_let_chains_grow_without_end)
{
    const char *names[1000];
    uint64_t stack[400];
    struct recording *recording =
        recording_of("module 7 1 /bin/app 0xab; mmap 0 7 1 0x1000 0x1000 0");
    for (size_t i = 0; i < 400; i++) {
        stack[i] = 0x1011;
    }
    for (size_t i = 0; i < 1000; i++) {
        names[i] = "again";
    }
    add_sample(recording, 1, 7, COMPLETE, stack, 400);
    struct profile *profile = load_recording(recording);
    profile->inlines.is_wanted = true;
    assert_int_equal(profile_resolve(profile), 0);
    tell(profile, 0x10, names, 1000, NULL);
    assert_int_equal(profile_resolve(profile), 0);
    size_t count = 0;
    (void)profile_chain(profile, profile->samples[0].chain, &count);
    assert_in_range(count, 4096, 6000);
    (void)profile_free(profile);
}

#define MANY       1200 /* samples, of different stacks */
#define LONG_COUNT 4000 /* functions, inlined into each of two that all of them have */

/* Samples keep the frames that they have, where a process has no room for those that debugging
 * information knows. */
TEST(what_finds_no_room_is_shown_without)
{
    static const char *names[LONG_COUNT];
    struct recording *recording =
        recording_of("name 7 0 0 app; module 7 1 /bin/app 0xab; mmap 0 7 1 0x1000 0x1000 0;"
                     "symbol ab /bin/app 0 main; symbol ab /bin/app 16 work");
    for (uint64_t i = 0; i < MANY; i++) {
        add_sample(recording, 1 + i, 7, COMPLETE, ADDRESSES(0x1012, 0x1031, 0x1101 + i));
    }
    struct profile *profile = load_recording(recording);
    profile->inlines.is_wanted = true;
    assert_int_equal(profile_resolve(profile), 0);
    for (size_t i = 0; i < LONG_COUNT; i++) {
        names[i] = "leaf";
    }
    tell(profile, 0x12, names, LONG_COUNT, "file");
    tell(profile, 0x30, names, LONG_COUNT, "file");
    profile->inlines.has_lines = true;
    assert_int_equal(profile_resolve(profile), 0);
    assert_int_equal(profile->left_out_count, 0);
    assert_in_range(profile->plain_count, 1, MANY / 2);
    for (size_t i = 0; i < MANY; i++) {
        size_t count = 0;
        (void)profile_chain(profile, profile->samples[i].chain, &count);
        assert_int_equal(count, i < MANY - profile->plain_count ? 2 * LONG_COUNT + 1 : 3);
    }
    (void)profile_free(profile);
}
