/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What runtimes read at their start. A value that is there is the user's own, and stays; options of
 * Node.js are added behind those that are there. Java has nothing that does no harm: its variable
 * makes each virtual machine print a line, and a command that is Java is asked while it runs.
 *
 * Node.js and .NET write to whatever has the name of their map. Where any user may put a link into
 * /tmp, and the kernel follows it, that may be a file of the command's user: they are then not
 * asked to. Python follows no link.
 */
#include "naming.h"

#include "cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PROTECTED    "/proc/sys/fs/protected_symlinks"
#define NODE_OPTIONS "NODE_OPTIONS"
#define NODE_MAP     "--perf-basic-prof"

static void add_node_option(void)
{
    const char *options = getenv(NODE_OPTIONS);
    char *all = NULL;
    if (options == NULL || options[0] == '\0') {
        (void)setenv(NODE_OPTIONS, NODE_MAP, 1);
    } else if (strstr(options, "--perf-") == NULL && asprintf(&all, "%s " NODE_MAP, options) > 0) {
        (void)setenv(NODE_OPTIONS, all, 1);
        free(all);
    }
}

bool naming_links_are_followed(void)
{
    struct stat status;
    char value = '1';
    cleanup_(closep) int fd = open(PROTECTED, O_RDONLY | O_CLOEXEC);
    const bool is_known = fd >= 0 && read(fd, &value, 1) == 1;
    const bool is_shared = stat("/tmp", &status) == 0 && (status.st_mode & S_IWOTH) != 0;
    return is_known && value == '0' && is_shared;
}

void naming_set_environment(bool links_are_followed)
{
    (void)setenv("PYTHONPERFSUPPORT", "1", 0);
    if (!links_are_followed) {
        (void)setenv("DOTNET_PerfMapEnabled", "1", 0);
        add_node_option();
    }
}
