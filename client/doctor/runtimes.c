/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of runtimes. A program may embed one: then the library that it has mapped tells, and
 * not its name.
 */
#include "runtimes.h"

#include "doctor.h"
#include "maps_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PYTHON_WITH_NAMES 12 /* 3.12 */
#define NODE_NAMES        "profctl record --names -- node ... names it, or node --perf-basic-prof"

static const struct runtime runtimes[] = {
    {"node", "libnode.so", "Node.js", NODE_NAMES, "NODE_OPTIONS=--perf-basic-prof", NULL,
     RUNTIME_NOT_ASKED},
    {"MainThread", NULL, "Node.js", NODE_NAMES, /* what newer ones call themselves */
     "NODE_OPTIONS=--perf-basic-prof", NULL, RUNTIME_NOT_ASKED},
    {"deno", NULL, "Deno", "deno --v8-flags=--perf-prof names it", NULL, NULL, RUNTIME_NOT_ASKED},
    {"java", "libjvm.so", "Java", "profctl record --names has it named, also while it runs", NULL,
     "jcmd", RUNTIME_BY_ATTACH},
    {"dotnet", "libcoreclr.so", ".NET",
     "profctl record --names has it named, also while it runs; or DOTNET_PerfMapEnabled=1",
     "DOTNET_PerfMapEnabled=1", NULL, RUNTIME_BY_DIAGNOSTICS},
    {"python", "libpython3.", "Python",
     "profctl record --names -- python3 ... names it, or python3 -X perf, from 3.12 on",
     "PYTHONPERFSUPPORT=1", NULL, RUNTIME_NOT_ASKED},
    {"ruby", NULL, "Ruby", "ruby --yjit-perf names it", NULL, NULL, RUNTIME_NOT_ASKED},
    {"beam.smp", NULL, "Erlang", "erl +JPperf true names it", NULL, NULL, RUNTIME_NOT_ASKED},
    {"julia", NULL, "Julia", "ENABLE_JITPROFILING=1 names it", "ENABLE_JITPROFILING=1", NULL,
     RUNTIME_NOT_ASKED},
    {"qemu-", NULL, "QEMU", "qemu -perfmap names it", NULL, NULL, RUNTIME_NOT_ASKED},
    {"wasmtime", NULL, "wasmtime", "wasmtime --profile=perfmap names it", NULL, NULL,
     RUNTIME_NOT_ASKED},
};

#define RUNTIMES (sizeof runtimes / sizeof runtimes[0])

const struct runtime *runtime_get(size_t index)
{
    return &runtimes[index];
}

size_t runtime_of_command(const char *command)
{
    for (size_t i = 0; i < RUNTIMES; i++) {
        if (strncmp(command, runtimes[i].command, strlen(runtimes[i].command)) == 0) {
            return i;
        }
    }
    return RUNTIME_NONE;
}

/* "python3.12" or "libpython3.12.so.1.0": whether that version can name what it runs. */
static bool is_python_with_names(const char *name)
{
    const char *version = strstr(name, "python3.");
    return version != NULL && strtol(version + strlen("python3."), NULL, 10) >= PYTHON_WITH_NAMES;
}

const char *doctor_name_interpreted(const char *module)
{
    if (is_python_with_names(module)) {
        return "profctl record --names -- python3 ... names them, or python3 -X perf";
    }
    return strstr(module, "python3.") == NULL
               ? "profctl record --names -- python3 ... names them, from 3.12 on"
               : "this Python cannot name them, py-spy can; from 3.12 on profctl record --names "
                 "-- python3 ... does";
}

static size_t checked(size_t runtime, const char *name)
{
    bool is_python = strcmp(runtimes[runtime].command, "python") == 0;
    return is_python && !is_python_with_names(name) ? RUNTIME_NONE : runtime;
}

/* Whether the daemon takes a file that is mapped for the jitdump of the process. */
static bool has_jitdump(const char *lines, pid_t inner)
{
    char name[32];
    const char *found = lines;
    (void)snprintf(name, sizeof name, "/jit-%d.dump", (int)inner);
    while ((found = strstr(found, name)) != NULL) {
        found += strlen(name);
        if (*found == '\n' || *found == '\0') {
            return true;
        }
    }
    return false;
}

/* Whether the line that has `found` in it is of code. */
static bool is_of_code(const char *lines, const char *found)
{
    const char *line = found;
    while (line > lines && line[-1] != '\n') {
        line--;
    }
    const char *rights = strchr(line, ' '); /* behind the addresses: " r-xp" */
    return rights != NULL && strnlen(rights, 4) == 4 && rights[3] == 'x';
}

/* Where the code of a library is mapped: of that name, which a version may follow. A file of a
 * longer name, or one that is mapped to be read, is any file. NULL: nowhere. */
static const char *find_library(const char *lines, const char *library)
{
    const size_t bytes = strlen(library);
    const bool is_prefix = library[bytes - 1] == '.'; /* the version is in the name */
    for (const char *found = strstr(lines, library); found != NULL;
         found = strstr(found + 1, library)) {
        const char *behind = found + bytes;
        const bool has_version = behind[0] == '.' && behind[1] >= '0' && behind[1] <= '9';
        const bool is_whole = *behind == '\n' || *behind == '\0' ||
                              strncmp(behind, " (deleted)", strlen(" (deleted)")) == 0;
        if (found > lines && found[-1] == '/' && (is_prefix || has_version || is_whole) &&
            is_of_code(lines, found)) {
            return found;
        }
    }
    return NULL;
}

void runtime_mappings_take(struct runtime_mappings *mappings, const char *lines)
{
    size_t end = mappings->has_library ? mappings->library : RUNTIMES;
    mappings->has_dump = mappings->has_dump || has_jitdump(lines, mappings->inner);
    for (size_t i = 0; i < end; i++) {
        const char *found =
            runtimes[i].library == NULL ? NULL : find_library(lines, runtimes[i].library);
        if (found != NULL) {
            mappings->has_library = true;
            mappings->library = i;
            mappings->runtime = checked(i, found);
            return;
        }
    }
}

static void take_lines(const char *lines, void *userdata)
{
    runtime_mappings_take(userdata, lines);
}

int runtime_mappings_read(int fd, pid_t inner, struct runtime_mappings *ret)
{
    struct runtime_mappings mappings = {.inner = inner};
    int r = maps_lines_read(fd, take_lines, &mappings, &mappings.is_cut);
    if (r == 0) {
        *ret = mappings;
    }
    return r;
}

size_t runtime_of_process(const char *base_name, const struct runtime_mappings *mappings)
{
    if (mappings->has_library) {
        return mappings->runtime;
    }
    size_t runtime = runtime_of_command(base_name);
    if (runtime == RUNTIME_NONE) {
        return RUNTIME_NONE;
    }
    /* Whether a Ruby or a Julia makes code is not known from outside. */
    bool is_enough = runtimes[runtime].setting != NULL ||
                     (mappings->is_cut && runtimes[runtime].library != NULL);
    return is_enough ? checked(runtime, base_name) : RUNTIME_NONE;
}

bool runtime_has_option(const char *texts, size_t texts_bytes, const char *option)
{
    return memmem(texts, texts_bytes, option, strlen(option)) != NULL;
}

const char *doctor_name_made_code(const char *command)
{
    size_t runtime = runtime_of_command(command);
    return runtime == RUNTIME_NONE ? NULL : runtimes[runtime].names_it;
}

const char *doctor_keep_frames(const char *command)
{
    size_t runtime = runtime_of_command(command);
    return runtime == RUNTIME_NONE || runtimes[runtime].running == NULL
               ? NULL
               : "java -XX:+PreserveFramePointer brings them there";
}
