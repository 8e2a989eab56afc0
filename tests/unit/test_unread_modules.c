/* SPDX-License-Identifier: Apache-2.0 */

/* Modules without an identity, until they have one. */
#include "recording.h"
#include "unit_test.h"

#include <string.h>

static void see_bytes(struct unread_modules *modules, const char *name, size_t name_bytes,
                      size_t build_id_bytes)
{
    const struct fxt_record record = {
        .kind = FXT_RECORD_MODULE,
        .module = {.name = name, .name_bytes = name_bytes, .build_id_bytes = build_id_bytes}};
    unread_modules_see(modules, &record);
}

static void see_module(struct unread_modules *modules, const char *name, size_t build_id_bytes)
{
    see_bytes(modules, name, strlen(name), build_id_bytes);
}

static void see_names(struct unread_modules *modules, const char *line)
{
    struct fxt_record record = {.kind = FXT_RECORD_DATA};
    record.data.name =
        (struct fxt_string){.text = DATA_NAME_SYMBOLS, .text_bytes = strlen(DATA_NAME_SYMBOLS)};
    record.data.payload = (const uint8_t *)line;
    record.data.payload_bytes = strlen(line);
    unread_modules_see(modules, &record);
}

TEST(keeps_what_never_got_an_identity)
{
    struct unread_modules modules = {0};
    see_module(&modules, "/bin/read", 0);
    see_module(&modules, "/bin/gone", 0);
    see_module(&modules, "/bin/gone", 0);
    see_module(&modules, "/bin/bare", 0);
    see_module(&modules, "[anon]", 0);
    see_module(&modules, "/bin/read", 20);
    see_module(&modules, "/bin/bare (inode 801:77)", 0);
    assert_int_equal(modules.count, 1);
    assert_string_equal(modules.paths[0], "/bin/gone");
    unread_modules_done(&modules);
}

/* A recording may have any bytes in a name. */
TEST(compares_all_bytes_of_a_name)
{
    static const char names[][13] = {"/bin/a\0one..", "/bin/a\0two.."};
    struct unread_modules modules = {0};
    see_bytes(&modules, names[0], sizeof names[0], 0);
    see_bytes(&modules, names[0], sizeof names[0], 0);
    see_bytes(&modules, names[1], sizeof names[1], 0);
    see_module(&modules, "/bin/a", 0);
    assert_int_equal(modules.count, 3);
    see_bytes(&modules, names[0], sizeof names[0], 20);
    see_module(&modules, "/bin/a", 20);
    assert_int_equal(modules.count, 1);
    see_bytes(&modules, names[1], sizeof names[1], 20);
    assert_int_equal(modules.count, 0);
    unread_modules_done(&modules);
}

TEST(knows_a_kernel_without_names)
{
    struct unread_modules modules = {0};
    assert_false(unread_modules_has_kernel(&modules));
    see_module(&modules, "[kernel]", 0);
    see_names(&modules, "{\"build_id\":\"\",\"module\":\"/bin/a\",\"name\":\"f\"}\n");
    assert_true(unread_modules_has_kernel(&modules));
    see_names(&modules, "{\"build_id\":\"\",\"module\":\"[kernel]\",\"name\":\"f\"}\n");
    assert_false(unread_modules_has_kernel(&modules));
    unread_modules_done(&modules);
}

TEST(bounds_its_list)
{
    struct unread_modules modules = {0};
    for (unsigned i = 0; i < UNREAD_MODULES_MAX + 9; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "/bin/%u", i);
        see_module(&modules, path, 0);
    }
    assert_int_equal(modules.count, UNREAD_MODULES_MAX);
    unread_modules_done(&modules);
}
