/* SPDX-License-Identifier: Apache-2.0 */

/* Texts of the kernel and of other programs, as the doctor reads them. */
#include "elf_facts.h"
#include "maps_lines.h"
#include "parse.h"
#include "runtimes.h"
#include "unit_test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(finds_the_mode_of_lockdown)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"[none] integrity confidentiality\n", "none"},
        {"none integrity [confidentiality]\n", "confidentiality"},
        {"none\n", ""},
        {"[a mode whose name is longer than the room that it has]", ""},
        {"", ""},
    };
    char mode[24];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        parse_lockdown(cases[i].text, mode, sizeof mode);
        assert_string_equal(mode, cases[i].expected);
    }
}

TEST(finds_single_lines_of_proc)
{
    int64_t number = 0;
    uint64_t mask = 0;
    uid_t uid = 0;
    assert_true(parse_meminfo("MemFree: 1 kB\nMemAvailable:   2345 kB\n", "MemAvailable", &number));
    assert_int_equal(number, 2345);
    assert_false(parse_meminfo("MemAvailableNot: 1 kB\n", "MemAvailable", &number));
    assert_true(parse_capabilities("Name:\tx\nCapEff:\t0000004000000000\n", &mask));
    assert_int_equal(mask, UINT64_C(1) << 38);
    assert_false(parse_capabilities("Name:\tCapEff:\t1\n", &mask));
    assert_true(parse_filter("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
    assert_false(parse_filter("Seccomp:\t0\nSeccomp_filters:\t2\n"));
    assert_true(parse_uid("Uid:\t1000\t0\t0\t0\n", &uid));
    assert_int_equal(uid, 1000);
    assert_int_equal(parse_inner_pid("Pid:\t9\nNSpid:\t812\t7\n"), 7);
    assert_int_equal(parse_inner_pid("Pid:\t9\n"), 0);
}

TEST(reads_limits)
{
    static const char limits[] =
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max open files            1024                 524288               files     \n"
        "Max locked memory         unlimited            unlimited            bytes     \n";
    int64_t limit = 0;
    assert_true(parse_limit(limits, "Max open files", &limit));
    assert_int_equal(limit, 1024);
    assert_true(parse_limit(limits, "Max locked memory", &limit));
    assert_int_equal(limit, -1);
    assert_false(parse_limit(limits, "Max realtime priority", &limit));
}

TEST(tells_a_time_namespace_by_its_offset)
{
    char offset[16];
    parse_time_offset("monotonic           0         0\nboottime        86400         0\n", offset,
                      sizeof offset);
    assert_string_equal(offset, "86400");
    parse_time_offset("monotonic           0         0\nboottime            0         0\n", offset,
                      sizeof offset);
    assert_string_equal(offset, "");
}

TEST(takes_one_unit_of_several)
{
    static const char shown[] = "Id=cpu-profilerd.socket\nLoadState=loaded\nActiveState=failed\n"
                                "UnitFileState=enabled\nResult=service-start-limit-hit\n"
                                "NeedDaemonReload=no\nDropInPaths=\n\n"
                                "Id=cpu-profilerd.service\nLoadState=masked\nActiveState=inactive\n"
                                "UnitFileState=masked\nResult=success\nNeedDaemonReload=yes\n"
                                "DropInPaths=/etc/a.conf /etc/b.conf\n";
    struct unit_facts unit;
    assert_true(parse_unit(shown, "cpu-profilerd.socket", &unit));
    assert_string_equal(unit.load, "loaded");
    assert_string_equal(unit.active, "failed");
    assert_string_equal(unit.file, "enabled");
    assert_string_equal(unit.result, "service-start-limit-hit");
    assert_string_equal(unit.drop_ins, "");
    assert_false(unit.needs_reload);
    assert_true(parse_unit(shown, "cpu-profilerd.service", &unit));
    assert_string_equal(unit.load, "masked");
    assert_string_equal(unit.drop_ins, "/etc/a.conf /etc/b.conf");
    assert_true(unit.needs_reload);
    assert_false(parse_unit(shown, "other.service", &unit));
    assert_false(parse_unit("", "cpu-profilerd.socket", &unit));
}

TEST(finds_settings_at_the_begin_of_a_line)
{
    static const char text[] = "[Service]\n#LimitMEMLOCK=1\n; SystemCallFilter=x\n"
                               "DynamicUser=yes\n  AmbientCapabilities = CAP_PERFMON\n"
                               "Environment=A=LimitMEMLOCK=1\nUserx=1";
    assert_true(parse_has_setting(text, "AmbientCapabilities"));
    assert_true(parse_has_setting(text, "DynamicUser"));
    assert_false(parse_has_setting(text, "User"));
    assert_false(parse_has_setting(text, "LimitMEMLOCK"));
    assert_false(parse_has_setting(text, "SystemCallFilter"));
    assert_false(parse_has_setting("", "User"));
}

TEST(names_packages_that_apt_knows_and_no_others)
{
    char packages[64];
    char shown[64];
    parse_owners("diversion by dash from: /bin/sh\ncoreutils: /bin/ls\ncoreutils: /bin/cat\n"
                 "evil;rm: /bin/x\nlibc6:amd64: /lib/x\ncron: /usr/sbin/cron\n",
                 packages, sizeof packages);
    assert_string_equal(packages, "coreutils-dbgsym libc6-dbgsym cron-dbgsym");
    parse_shown("Package: cron-dbgsym\nVersion: 1\n\nPackage: other-dbgsym\n", packages, shown,
                sizeof shown);
    assert_string_equal(shown, "cron-dbgsym");
}

TEST(names_the_distribution)
{
    char id[16];
    parse_os_id("PRETTY_NAME=\"x\"\nVERSION_ID=\"12\"\nID=debian\n", id, sizeof id);
    assert_string_equal(id, "debian");
    parse_os_id("ID=\"opensuse\"\n", id, sizeof id);
    assert_string_equal(id, "opensuse");
}

TEST(knows_runtimes_by_name_and_by_library)
{
    static const struct {
        const char *name;
        const char *maps;
        const char *kind; /* NULL: none */
    } cases[] = {
        {"node", "", "Node.js"},
        {"java", "", NULL}, /* it runs no machine yet */
        {"java", "7f00-7f01 r-xp 0 08:01 1 /usr/lib/jvm/lib/server/libjvm.so\n", "Java"},
        {"launcher", "7f00-7f01 r-xp 0 08:01 1 /opt/x/libcoreclr.so\n", ".NET"},
        {"launcher", "7f00-7f01 r-xp 0 08:01 1 /opt/x/libjvm.so (deleted)\n", "Java"},
        {"launcher", "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libnode.so.108\n", "Node.js"},
        /* What a server has mapped that serves files. */
        {"server", "7f00-7f01 r-xp 0 08:01 1 /srv/libjvm.so.mp3\n", NULL},
        {"server", "7f00-7f01 r--p 0 08:01 1 /srv/libjvm.so\n", NULL},
        {"server", "7f00-7f01 r-xp 0 08:01 1 /srv/notlibjvm.so\n", NULL},
        {"server",
         "7f00-7f01 r--p 0 08:01 1 /srv/libjvm.so\n7f02-7f03 r-xp 0 08:01 1 /lib/libjvm.so\n",
         "Java"},
        {"python3.11", "", NULL},
        {"python3.12", "", "Python"},
        {"python3", "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libpython3.13.so.1.0\n", "Python"},
        {"uwsgi", "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libpython3.9.so.1.0\n", NULL},
        {"bash", "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libc.so.6\n", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct runtime_mappings mappings = {0};
        runtime_mappings_take(&mappings, cases[i].maps);
        size_t runtime = runtime_of_process(cases[i].name, &mappings);
        if (cases[i].kind == NULL) {
            assert_int_equal(runtime, RUNTIME_NONE);
        } else {
            assert_int_not_equal(runtime, RUNTIME_NONE);
            assert_string_equal(runtime_get(runtime)->kind, cases[i].kind);
        }
    }
}

/* A machine's first mappings are those of its heap; a Python that it has loaded stands above. */
TEST(finds_a_runtime_behind_thousands_of_mappings)
{
    static const char library[] = "7f00-7f01 r-xp 0 08:01 1 /usr/lib/server/libjvm.so\n";
    static const char python[] = "7f02-7f03 r-xp 0 08:01 1 /usr/lib/libpython3.12.so.1.0\n";
    struct runtime_mappings mappings;
    FILE *file = tmpfile();
    assert_non_null(file);
    for (size_t i = 0; i < 20000; i++) {
        (void)fprintf(file, "%zx000-%zx000 rw-p 00000000 00:00 0 \n", i, i + 1);
        if (i == 10000) {
            (void)fputs(library, file);
        }
    }
    (void)fputs(python, file);
    rewind(file);
    assert_int_equal(runtime_mappings_read(fileno(file), 1, &mappings), 0);
    assert_false(mappings.is_cut);
    size_t runtime = runtime_of_process("launcher", &mappings);
    assert_int_not_equal(runtime, RUNTIME_NONE);
    assert_string_equal(runtime_get(runtime)->kind, "Java");
    assert_int_equal(fclose(file), 0);
}

/* Each line in turn crosses the end of a piece that is read. */
TEST(finds_a_runtime_wherever_its_line_stands)
{
    for (size_t before = 32600; before < 32800; before++) {
        struct runtime_mappings mappings;
        FILE *file = tmpfile();
        assert_non_null(file);
        (void)fprintf(file, "%*s\n%s", (int)before, "/x", "7f00-7f01 r-xp 0 08:01 1 /libjvm.so\n");
        rewind(file);
        assert_int_equal(runtime_mappings_read(fileno(file), 1, &mappings), 0);
        assert_int_not_equal(runtime_of_process("x", &mappings), RUNTIME_NONE);
        assert_int_equal(fclose(file), 0);
    }
}

/* A file without lines, and with more bytes than are read. */
TEST(goes_by_the_name_where_there_are_too_many_mappings)
{
    struct runtime_mappings mappings;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), MAPS_BYTES_MAX + 1), 0);
    assert_int_equal(runtime_mappings_read(fileno(file), 1, &mappings), 0);
    assert_true(mappings.is_cut);
    assert_int_not_equal(runtime_of_process("java", &mappings), RUNTIME_NONE);
    assert_int_equal(runtime_of_process("ruby", &mappings), RUNTIME_NONE);
    assert_int_equal(runtime_of_process("bash", &mappings), RUNTIME_NONE);
    assert_int_equal(fclose(file), 0);
}

TEST(finds_options_behind_the_first_text)
{
    static const char line[] = "java\0-XX:+PreserveFramePointer\0Main";
    assert_true(runtime_has_option(line, sizeof line, "+PreserveFramePointer"));
    assert_false(runtime_has_option(line, 4, "+PreserveFramePointer"));
}

/* What the test's own program has. */
TEST(reads_what_a_program_has)
{
    struct elf_facts kind;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    elf_facts_read(fd, &kind);
    (void)close(fd);
    assert_true(kind.is_elf);
    assert_true(kind.has_symbols);
}

TEST(takes_a_text_for_no_program)
{
    struct elf_facts kind;
    int fd = memfd_create("text", MFD_CLOEXEC);
    assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
    elf_facts_read(fd, &kind);
    (void)close(fd);
    assert_false(kind.is_elf);
}

TEST(finds_a_build_id_behind_other_notes)
{
    static const uint8_t notes[] = {
        4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 'G', 'N', 'U', 0, 9,    9,    9,    9, /* another */
        4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0x01, 0xff, 0,
    };
    char id[ELF_FACTS_BUILD_ID_BYTES];
    elf_facts_build_id(notes, sizeof notes, id);
    assert_string_equal(id, "ab01ff");
    elf_facts_build_id(notes, sizeof notes - 2, id);
    assert_string_equal(id, "");
}
