/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A library that comes late. Spins 0.5 s in early_spin(), then opens the library that $LIBRARY
 * names (default: liblate.so beside this program) and calls its late_spin() for the rest.
 *
 * A profiler must see: early_spin in `dlopener`, then late_spin in the library, called by main,
 * though the library was not mapped when the recording began. Prints `name nanoseconds` of both.
 */
#include "workload.h"

#include <dlfcn.h>

#define EARLY_S 0.5

static WORKLOAD_NOINLINE void early_spin(uint64_t deadline_ns)
{
    while (!workload_time_is_up(deadline_ns)) {
        (void)workload_spin(100000);
    }
}

int main(int argc, char **argv)
{
    struct workload_options options = workload_options(argc, argv, 1.5);
    uint64_t end_ns = workload_deadline_ns(options.seconds);
    early_spin(workload_deadline_ns(EARLY_S));
    uint64_t early_cpu_ns = workload_cpu_ns();

    const char *path = getenv("LIBRARY");
    void *library = dlopen(path == NULL ? "liblate.so" : path, RTLD_NOW);
    void *symbol = library == NULL ? NULL : dlsym(library, "late_spin");
    if (symbol == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*late_spin)(uint64_t deadline_ns) = NULL;
    (void)memcpy(&late_spin, &symbol, sizeof symbol);
    late_spin(end_ns);

    workload_tell("early_spin", early_cpu_ns);
    workload_tell("late_spin", workload_cpu_ns() - early_cpu_ns);
    return 0;
}
