/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any file of a program gives a build-id of hexadecimal digits or none, and any text of the kernel
 * or of another program gives values that fit their places.
 */
#include "elf_facts.h"
#include "fuzz_target.h"
#include "parse.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void expect(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void read_file(const uint8_t *bytes, size_t size)
{
    struct elf_facts kind;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, bytes, size) == (ssize_t)size) {
        elf_facts_read(fd, &kind);
        size_t length = strnlen(kind.build_id, sizeof kind.build_id);
        expect(length < sizeof kind.build_id && length % 2 == 0 &&
               strspn(kind.build_id, "0123456789abcdef") == length);
    }
    (void)close(fd);
}

static void read_text(const char *text)
{
    struct unit_facts unit;
    char small[16];
    char packages[64];
    char shown[64];
    int64_t number = 0;
    uint64_t mask = 0;
    uid_t uid = 0;
    parse_lockdown(text, small, sizeof small);
    expect(strnlen(small, sizeof small) < sizeof small);
    parse_time_offset(text, small, sizeof small);
    parse_os_id(text, small, sizeof small);
    expect(strnlen(small, sizeof small) < sizeof small);
    expect(!parse_meminfo(text, "MemAvailable", &number) || number >= 0);
    expect(!parse_limit(text, "Max locked memory", &number) || number >= -1);
    expect(parse_inner_pid(text) >= 0);
    (void)parse_capabilities(text, &mask);
    (void)parse_uid(text, &uid);
    expect(!parse_unit(text, "cpu-profilerd.socket", &unit) || unit.load[0] != '\0');
    parse_owners(text, packages, sizeof packages);
    expect(strspn(packages, "abcdefghijklmnopqrstuvwxyz0123456789+.- ") == strlen(packages));
    parse_shown(text, packages, shown, sizeof shown);
    expect(strlen(shown) <= strlen(packages));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_text(bytes, size);
    if (text == NULL) {
        return 0;
    }
    read_text(text);
    free(text);
    read_file(bytes, size);
    return 0;
}
