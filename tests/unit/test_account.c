/* SPDX-License-Identifier: Apache-2.0 */

/* Of files that are written here. */
#include "account.h"
#include "unit_test.h"

#include <unistd.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                             "alice:x:1000:1000::/home/alice:/bin/sh\n"
                             "bob:x:1001:1001::/home/bob:/bin/sh\n";

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
}

static const char *passwd_text = passwd;
static const char *nsswitch_text = "passwd: files systemd\n";

static void load(const char *subuid)
{
    char folder[] = "/tmp/account.XXXXXX";
    char subuid_path[64];
    char passwd_path[64];
    char nsswitch_path[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(subuid_path, sizeof subuid_path, "%s/subuid", folder);
    (void)snprintf(passwd_path, sizeof passwd_path, "%s/passwd", folder);
    (void)snprintf(nsswitch_path, sizeof nsswitch_path, "%s/nsswitch.conf", folder);
    if (subuid != NULL) {
        write_file(subuid_path, subuid);
    }
    write_file(passwd_path, passwd_text);
    if (nsswitch_text != NULL) {
        write_file(nsswitch_path, nsswitch_text);
    }
    const struct account_files files = {subuid_path, passwd_path, nsswitch_path};
    assert_int_equal(account_load(&files), 1);
    (void)unlink(subuid_path);
    (void)unlink(passwd_path);
    (void)unlink(nsswitch_path);
    (void)rmdir(folder);
}

struct expected {
    uint32_t uid, account;
};

static void expect(const struct expected *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(account_of(rows[i].uid), rows[i].account);
    }
}

#define EXPECT(...) expect(ROWS_OF(struct expected, __VA_ARGS__))

TEST(a_user_and_its_subordinate_uids_are_one_account)
{
    load("alice:100000:65536\n1001:165536:65536\nalice:300000:10\n");
    EXPECT({1000, 1000}, {99999, 99999}, {100000, 1000}, {165535, 1000}, {165536, 1001},
           {231071, 1001}, {231072, 231072}, {300009, 1000}, {300010, 300010});
}

TEST(each_block_of_root_is_an_account)
{
    load("root:100000:131072\n");
    EXPECT({0, 0}, {100000, 100000}, {165535, 100000}, {165536, 165536}, {231071, 165536},
           {231072, 231072});
}

TEST(ranges_of_a_name_without_entry_are_one_account)
{
    load("carol:500000:100\ndave:600000:100\ncarol:700000:100\n");
    EXPECT({500099, 500000}, {600099, 600000}, {700000, 500000});
}

/* Root of a container that no file lists can become each of 65,536 uids. */
TEST(each_block_of_a_container_is_an_account)
{
    passwd_text = "alice:x:1000:1000::/:/bin/sh\nzoe:x:1000001:1000001::/:/bin/sh\n";
    load("alice:700000:10\n");
    EXPECT({524287, 524287}, {524288, 524288}, {524288 + 65535, 524288},
           {524288 + 65536, 524288 + 65536}, {700009, 1000}, {1000001, 1000001}, {1000000, 983040},
           {1879048191, 1878982656}, {1879048192, 1879048192});
    load(NULL);
    EXPECT({1000001, 1000001}, {1000000, 983040});
    passwd_text = passwd;
}

TEST(people_of_a_directory_service_are_accounts_of_their_own)
{
    static const struct {
        const char *nsswitch;
        uint32_t account;
    } cases[] = {
        {"passwd: files sss\n", 1000009},
        {"# passwd: sss\n passwd:\tcompat [NOTFOUND=return] systemd # sss\ngroup: sss\n", 983040},
        {"group: files\npasswd: ldap files", 1000009},
        {"passwd:files sss\n", 1000009},
        {"passwd:sss files\n", 1000009},
        {"passwd:files\nshadow:sss\n", 983040},
        {"passwd: files[NOTFOUND=return] systemd\n", 983040},
        {"passwd: files [SUCCESS=continue NOTFOUND=return] systemd\n", 983040},
        {"passwd: files[NOTFOUND=continue]sss\n", 1000009},
        {"passwd: files [NOTFOUND=return", 983040},
        {"passwd:\n", 983040},
        {"", 983040},
        {NULL, 983040},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        nsswitch_text = cases[i].nsswitch;
        load("alice:100000:10\n");
        assert_int_equal(account_of(1000009), cases[i].account);
        assert_int_equal(account_of(100009), 1000);
    }
    nsswitch_text = "passwd: files systemd\n";
}

TEST(wrong_lines_are_ignored)
{
    char text[4096];
    size_t bytes = 0;
    memset(text, 'x', 1000);
    bytes = 1000;
    bytes += (size_t)sprintf(text + bytes, "alice:200000:10\n");
    (void)sprintf(text + bytes, "\n:1:2\nalice\nalice:1\nalice:210000:0\nalice:-5:10\n"
                                "alice:4294967295:2\nalice:220000:10x\nalice: 230000:10\n"
                                "alice:100000:10");
    load(text);
    EXPECT({200000, 200000}, {1, 1}, {210000, 210000}, {UINT32_MAX, UINT32_MAX}, {220000, 220000},
           {230000, 230000}, {100009, 1000});
}

TEST(lines_of_any_length_are_read)
{
    static char text[65536];
    (void)snprintf(text, sizeof text, "long:x:1002:1002:%050000d:/:/bin/sh\nshort\n\nx:y\n%s", 0,
                   passwd);
    passwd_text = text;
    load("bob:100000:10\nlong:200000:10\n");
    passwd_text = passwd;
    EXPECT({100000, 1001}, {200000, 1002});
}

TEST(no_file_is_no_range)
{
    load("alice:100000:10\n");
    assert_int_equal(account_of(100000), 1000);
    load(NULL);
    assert_int_equal(account_of(100000), 100000);
}

/* The machine's own file stands for one that has not changed for a while; it has no ranges. */
TEST(reads_nothing_that_has_not_changed)
{
    load("alice:100000:65536\n");
    const struct account_files files = {"/etc/passwd", "/etc/passwd", "/etc/passwd"};
    assert_int_equal(account_load(&files), 1);
    assert_int_equal(account_of(100000), 100000);
    assert_int_equal(account_load(&files), 0);
    load("alice:100000:65536\n");
    assert_int_equal(account_of(100000), 1000);
}
