/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In the service most of this has been done by the service manager, and is done again without
 * effect. The bounding set can be changed with CAP_SETPCAP only; without that there is no way to
 * a capability that is in no set of ours, since no_new_privs is set.
 */
#include "rights.h"

#include "allowed_calls.h"
#include "cleanup.h"
#include "confine.h"
#include "sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PARANOID_PATH "/proc/sys/kernel/perf_event_paranoid"
#define PARANOID_MAX  2 /* the most that the kernel itself knows of */

static uint64_t bit(unsigned capability)
{
    return UINT64_C(1) << capability;
}

/* Raises a limit to at least `least`; false: it is lower, and stays so. */
static bool raise_limit(__rlimit_resource_t resource, rlim_t least)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0) {
        return false;
    }
    if (limit.rlim_cur >= least) {
        return true;
    }
    limit.rlim_max = limit.rlim_max < least ? least : limit.rlim_max;
    limit.rlim_cur = least;
    return setrlimit(resource, &limit) == 0;
}

/* Some distributions' kernels ask for more than CAP_PERFMON. */
static bool is_paranoid(void)
{
    char text[16] = "";
    cleanup_(closep) int fd = open(PARANOID_PATH, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    return bytes > 0 && strtol(text, NULL, 10) > PARANOID_MAX;
}

static uint64_t needed_capabilities(void)
{
    uint64_t needed = bit(CAP_PERFMON) | bit(CAP_SYS_PTRACE) | bit(CAP_CHECKPOINT_RESTORE) |
                      bit(CAP_DAC_READ_SEARCH) | bit(CAP_SYSLOG);
    if (!raise_limit(RLIMIT_MEMLOCK, RLIM_INFINITY)) {
        needed |= bit(CAP_IPC_LOCK);
    }
    if (!raise_limit(RLIMIT_RTPRIO, 1)) {
        needed |= bit(CAP_SYS_NICE);
    }
    if (is_paranoid()) {
        needed |= bit(CAP_SYS_ADMIN);
    }
    if (geteuid() == 0) {
        needed |= bit(CAP_SETUID) | bit(CAP_SETGID) | bit(CAP_SETPCAP) | bit(CAP_SYS_CHROOT) |
                  bit(CAP_KILL);
    }
    return needed;
}

/* An ambient capability that is not inheritable any more is none. */
static int drop_capabilities(uint64_t needed)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, sets) < 0) {
        return -errno;
    }
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        const uint32_t part = (uint32_t)(needed >> (32 * i));
        sets[i].effective &= part;
        sets[i].permitted &= part;
        sets[i].inheritable &= part;
    }
    return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

static int allow(scmp_filter_ctx filter, const char *name)
{
    int call = seccomp_syscall_resolve_name(name);
    return call < 0 ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
}

static int fill_filter(scmp_filter_ctx filter)
{
#define NAME(call) #call,
    static const char *const names[] = {ALLOWED_CALLS(NAME)};
    static const char *const root_names[] = {ALLOWED_ROOT_CALLS(NAME)};
#undef NAME
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof names / sizeof *names; i++) {
        r = allow(filter, names[i]);
    }
    for (size_t i = 0; r == 0 && geteuid() == 0 && i < sizeof root_names / sizeof *root_names;
         i++) {
        r = allow(filter, root_names[i]);
    }
    return r;
}

static int load_filter(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (filter == NULL) {
        return -ENOMEM;
    }
    int r = fill_filter(filter);
    if (r == 0) {
        r = seccomp_load(filter);
    }
    seccomp_release(filter);
    return r;
}

int rights_drop(void)
{
    const uint64_t needed = needed_capabilities();
    int r = confine_bounding_set(needed);
    if (r == 0) {
        r = drop_capabilities(needed);
    }
    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        r = -errno;
    }
    if (r == 0 && !IS_SANITIZED) {
        /* A kernel or container without filters is no reason not to run: the worker says so. */
        (void)load_filter();
    }
    return r;
}
