/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prefixes against the lines of /proc/PID/cgroup, of both versions.
 */
#include "cgroup_prefix.h"
#include "unit_test.h"

#define VERSION_1                                                                                  \
    "9:name=systemd:/user.slice\n4:memory:/docker/a\n3:cpu,cpuacct:/b:c\n2:cpuset:/\n"             \
    "0::/init.scope/x\n"

TEST(matches_cgroups_at_whole_components)
{
    static const struct {
        const char *lines;
        const char *prefix;
        bool matches;
    } rows[] = {
        {"0::/a/b/c\n", "/a", true},
        {"0::/a/b/c\n", "/a/", true},
        {"0::/a/b/c\n", "/a/b/c", true},
        {"0::/a/b/c\n", "/a/b/c/d", false},
        {"0::/a/b/c\n", "/a/b/c//", true},
        {"0::/a/b/c\n", "/", true},
        {"0::/a/b/c\n", "/b", false},
        {"0::/ab\n", "/a", false},
        {"0::/a", "/a", true},
        {"0::/\n", "/", true},
        {"0::/\n", "/a", false},
        {"", "/", false},
        {"\n\n0::/a\n", "/a", true},
        {"0:/a\n", "/", false},
        {"no line at all\n", "/", false},
        {VERSION_1, "/docker", true},
        {VERSION_1, "/user.slice", true},
        {VERSION_1, "/init.scope", true},
        {VERSION_1, "/b:c", true},
        {VERSION_1, "/b", false},
        {VERSION_1, "/c", false},
        {"0::/a/b\n", "/sys/fs/cgroup/a", true},
        {"0::/a/b\n", "/sys/fs/cgroup/a/b/", true},
        {"0::/a/b\n", "/sys/fs/cgroup/", true},
        {"0::/a/b\n", "/sys/fs/cgroup", true},
        {VERSION_1, "/sys/fs/cgroup", true},
        {VERSION_1, "/sys/fs/cgroup//", true},
        {"4:memory:/docker\n", "/sys/fs/cgroup", true},
        {"0::/a/b\n", "/sys/fs/cgroups", false},
        {"0::/a/b\n", "/sys/fs/cgroup/b", false},
        {"0::/memory/x\n", "/sys/fs/cgroup/memory/x", true},
        {VERSION_1, "/sys/fs/cgroup/memory/docker", true},
        {VERSION_1, "/sys/fs/cgroup/memory", true},
        {VERSION_1, "/sys/fs/cgroup/memory/user.slice", false},
        {VERSION_1, "/sys/fs/cgroup/cpu/docker", false},
        {VERSION_1, "/sys/fs/cgroup/cpu/b:c", true},
        {VERSION_1, "/sys/fs/cgroup/cpuacct/b:c", true},
        {VERSION_1, "/sys/fs/cgroup/cpu,cpuacct/b:c", true},
        {VERSION_1, "/sys/fs/cgroup/acct/b:c", false},
        {VERSION_1, "/sys/fs/cgroup/systemd/user.slice", true},
        {VERSION_1, "/sys/fs/cgroup/name=systemd/user.slice", true},
        {VERSION_1, "/sys/fs/cgroup/unified/init.scope", true},
        {VERSION_1, "/sys/fs/cgroup/unified/docker", false},
        {VERSION_1, "/sys/fs/cgroup/docker", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (cgroup_has_prefix(rows[i].lines, rows[i].prefix) != rows[i].matches) {
            fail_msg("%s in %s", rows[i].prefix, rows[i].lines);
        }
    }
}
