/* SPDX-License-Identifier: Apache-2.0 */

/* Preloaded into the daemon: the machine has MACHINE_MEMORY_BYTES of memory, by sysconf(). */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef long (*sysconf_fn)(int name);

long sysconf(int name)
{
    static sysconf_fn next;
    const char *bytes = getenv("MACHINE_MEMORY_BYTES");
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "sysconf");
    }
    return name == _SC_PHYS_PAGES && bytes != NULL ? atol(bytes) / next(_SC_PAGESIZE) : next(name);
}
