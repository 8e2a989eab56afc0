/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What runtimes read at their start. A value that is there is the user's own, and stays; options of
 * Node.js are added behind those that are there. Java has nothing that does no harm: its variable
 * makes each virtual machine print a line, and a command that is Java is asked while it runs.
 */
#include "naming.h"

#include "cleanup.h"

#include <stdio.h>
#include <string.h>

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

void naming_set_environment(void)
{
    (void)setenv("PYTHONPERFSUPPORT", "1", 0);
    (void)setenv("DOTNET_PerfMapEnabled", "1", 0);
    add_node_option();
}
