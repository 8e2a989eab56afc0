/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gathers where debugging information of programs that run can come from: a package of this
 * distribution that apt knows, or a server of it. A package is named only if apt knows it. That
 * takes apt a second, so it is asked only where it has lists of an archive of such packages.
 */
#include "files.h"
#include "gather.h"
#include "parse.h"
#include "run.h"

#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OS_RELEASE_BYTES ((size_t)4096)
#define OUTPUT_BYTES     ((size_t)16384)

static const struct {
    const char *id;
    const char *url;
} servers[] = {
    {"debian", "https://debuginfod.debian.net"},
    {"ubuntu", "https://debuginfod.ubuntu.com"},
    {"fedora", "https://debuginfod.fedoraproject.org"},
    {"arch", "https://debuginfod.archlinux.org"},
    {"opensuse-tumbleweed", "https://debuginfod.opensuse.org"},
    {"opensuse-leap", "https://debuginfod.opensuse.org"},
};

/* Arguments of a command: two, then two for each path, and NULL. */
#define ARGUMENTS_MAX (2 * PACKAGES_MAX + 4)

/* Where apt has the lists of the archives of Debian and of Ubuntu. */
static bool has_archive(const char *root)
{
    static const char *const patterns[] = {"/var/lib/apt/lists/*debug*_Packages*",
                                           "/var/lib/apt/lists/*ddebs*_Packages*"};
    bool is_found = false;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        char pattern[FILES_PATH_BYTES];
        glob_t found = {0};
        (void)snprintf(pattern, sizeof pattern, "%s%s", root, patterns[i]);
        is_found = is_found || glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
        globfree(&found);
    }
    return is_found;
}

static void find_packages(const struct program_facts *programs, char *into, size_t capacity_bytes)
{
    char output[OUTPUT_BYTES];
    char candidates[512];
    const char *arguments[ARGUMENTS_MAX] = {"dpkg-query", "-S"};
    size_t count = 2;
    into[0] = '\0';
    for (size_t i = 0; i < programs->bare_count && i < PACKAGES_MAX; i++) {
        const char *path = programs->bare[i];
        if (path[0] == '/') {
            arguments[count++] = path;
        }
        /* Packages have files in /bin that are in /usr/bin on a machine of today. */
        if (strncmp(path, "/usr/", strlen("/usr/")) == 0) {
            arguments[count++] = path + strlen("/usr");
        }
    }
    if (count == 2 || ask_program(arguments, RUN_LIMIT_MS, output, sizeof output) < 0) {
        return;
    }
    parse_owners(output, candidates, sizeof candidates);
    const char *shown[ARGUMENTS_MAX] = {"apt-cache", "show"};
    char words[sizeof candidates];
    char *rest = NULL;
    count = 2;
    (void)snprintf(words, sizeof words, "%s", candidates);
    for (char *word = strtok_r(words, " ", &rest); word != NULL && count < ARGUMENTS_MAX - 1;
         word = strtok_r(NULL, " ", &rest)) {
        shown[count++] = word;
    }
    if (count > 2 && ask_program(shown, RUN_LIMIT_MS, output, sizeof output) >= 0) {
        parse_shown(output, candidates, into, capacity_bytes);
    }
}

void gather_packages(const char *root, struct facts *facts)
{
    char text[OS_RELEASE_BYTES];
    char id[32];
    const char *set = getenv("DEBUGINFOD_URLS");
    facts->has_debuginfod = set != NULL && set[0] != '\0';
    (void)files_read(root, "/etc/os-release", text, sizeof text);
    parse_os_id(text, id, sizeof id);
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++) {
        if (strcmp(id, servers[i].id) == 0) {
            (void)snprintf(facts->debuginfod_url, sizeof facts->debuginfod_url, "%s",
                           servers[i].url);
        }
    }
    if (facts->programs.bare_count > 0 && has_archive(root)) {
        find_packages(&facts->programs, facts->packages, sizeof facts->packages);
    }
}
