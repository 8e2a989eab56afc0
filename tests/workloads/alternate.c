/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two libraries take turns at one address: libping.so is opened, spins for 2 ms, is closed, and
 * libpong.so comes to where it was.
 *
 * A profiler must see: library_spin of each library in its own turns and at no other time. Prints
 * for each turn `name begin end address`, times of CLOCK_BOOTTIME around the call.
 */
#include "workload.h"

#include <dlfcn.h>
#include <inttypes.h>

#define TURN_NS 2000000

/* Returns whether the library was there. */
static bool take_turn(const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "lib%s.so", name);
    void *library = dlopen(path, RTLD_NOW);
    void *symbol = library == NULL ? NULL : dlsym(library, "library_spin");
    if (symbol == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    void (*library_spin)(uint64_t end_ns) = NULL;
    (void)memcpy(&library_spin, &symbol, sizeof symbol);
    uint64_t begin_ns = workload_clock_ns(CLOCK_BOOTTIME);
    library_spin(begin_ns + TURN_NS);
    printf("%s %" PRIu64 " %" PRIu64 " %p\n", name, begin_ns, workload_clock_ns(CLOCK_BOOTTIME),
           symbol);
    return dlclose(library) == 0;
}

int main(int argc, char **argv)
{
    struct workload_options options = workload_options(argc, argv, 4);
    uint64_t end_ns = workload_deadline_ns(options.seconds);
    for (unsigned turn = 0; !workload_time_is_up(end_ns); turn++) {
        if (!take_turn(turn % 2 == 0 ? "ping" : "pong")) {
            return 1;
        }
    }
    return 0;
}
