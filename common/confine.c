/* SPDX-License-Identifier: Apache-2.0 */

/*
 * confine() drops a process's rights. The order follows from what each step needs: chroot() needs
 * CAP_SYS_CHROOT, the bounding set CAP_SETPCAP, the ids CAP_SETUID. A change of ids clears the
 * parent-death signal and some flags, so those follow it. The last step is the seccomp filter, a
 * list of allowed calls, of which none makes a path, a socket, a process or executable memory.
 *
 * The filter sees numbers, not the memory behind pointers. So the one allowed call that takes a
 * path (newfstatat, with which the C library does fstat()) may have any path. That is why the root
 * is empty, where the caller may change it.
 *
 * A step that only a privileged caller can do is skipped when the kernel returns EPERM, since then
 * the process does not have that right. Each other failure is returned.
 */
#include "confine.h"

#include "cleanup.h"
#include "sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_MAX 16

int confine_bounding_set(uint64_t kept)
{
    for (unsigned capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++) {
        bool is_kept = capability < 64 && (kept >> capability & 1) != 0;
        if (!is_kept && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) {
            return errno == EPERM ? 0 : -errno;
        }
    }
    return 0;
}

void confine_offer_to_be_killed(void)
{
    static const char score[] = "1000";
    cleanup_(closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, score, sizeof score - 1);
    }
}

/* Moves into the folder of a process's descriptor infos, for the whole process if it shares its
 * root with this child; when the child has ended there is nothing in that folder any more, and no
 * one can put anything there. */
static _Noreturn void enter_own_folder(void)
{
    bool entered = chroot("/proc/self/fdinfo") == 0 && chdir("/") == 0;
    _exit(entered ? 0 : errno);
}

static int empty_root(void)
{
    int status = 0;
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        enter_own_folder();
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return -errno;
    }
    if (!WIFEXITED(status)) {
        return -ECHILD;
    }
    return WEXITSTATUS(status) == EPERM ? 0 : -WEXITSTATUS(status);
}

/* One that may not be done is no reason to leave out the next. */
static int tolerate(int result)
{
    return result < 0 && errno != EPERM ? -errno : 0;
}

static int change_ids(uid_t uid, gid_t gid)
{
    if (geteuid() != 0 || uid == (uid_t)-1) {
        return 0;
    }
    int r = tolerate(setgroups(0, NULL));
    if (r == 0) {
        r = tolerate(setresgid(gid, gid, gid));
    }
    if (r == 0) {
        r = tolerate(setresuid(uid, uid, uid));
    }
    return r;
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        syscall(SYS_capset, &header, none) < 0) {
        return -errno;
    }
    return 0;
}

/* A limit that is stricter already stays. */
static int limit(__rlimit_resource_t resource, uint64_t value)
{
    struct rlimit both;
    if (getrlimit(resource, &both) < 0) {
        return -errno;
    }
    both.rlim_max = both.rlim_max < value ? both.rlim_max : value;
    both.rlim_cur = both.rlim_max;
    return setrlimit(resource, &both) < 0 ? -errno : 0;
}

static int limit_resources(const struct confine_rules *rules)
{
    int r = limit(RLIMIT_CORE, 0);
    if (r == 0) {
        r = limit(RLIMIT_NOFILE, FILES_MAX);
    }
    if (r == 0 && rules->file_bytes_max > 0) {
        r = limit(RLIMIT_FSIZE, rules->file_bytes_max);
    }
    if (r == 0 && rules->address_bytes_max > 0 && !IS_SANITIZED) {
        r = limit(RLIMIT_AS, rules->address_bytes_max);
    }
    if (r == 0 && rules->data_bytes_max > 0 && !IS_SANITIZED) {
        r = limit(RLIMIT_DATA, rules->data_bytes_max);
    }
    return r;
}

static int add_calls(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t count)
{
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        r = seccomp_rule_add(filter, action, calls[i], 0);
    }
    return r;
}

/* Memory, and the C library's fstat(). */
static int allow_memory(scmp_filter_ctx filter, bool may_map_files)
{
    const struct scmp_arg_cmp not_executable = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
    const struct scmp_arg_cmp anonymous = SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS);
    const struct scmp_arg_cmp privately = SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_TYPE, MAP_PRIVATE);
    const struct scmp_arg_cmp by_descriptor = SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH);
    int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, not_executable,
                             may_map_files ? privately : anonymous);
    if (r == 0) {
        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, not_executable);
    }
    if (r == 0) {
        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1, by_descriptor);
    }
    return r;
}

static int allow_files(scmp_filter_ctx filter, const struct confine_rules *rules)
{
    int r = 0;
    if (rules->memfd_flags != 0) {
        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(memfd_create), 1,
                             SCMP_A1(SCMP_CMP_EQ, rules->memfd_flags));
    }
    for (size_t i = 0; r == 0 && i < rules->fcntl_command_count; i++) {
        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                             SCMP_A1(SCMP_CMP_EQ, rules->fcntl_commands[i]));
    }
    return r;
}

static int add_rules(scmp_filter_ctx filter, const struct confine_rules *rules)
{
    static const int common[] = {
        SCMP_SYS(read),    SCMP_SYS(pread64),    SCMP_SYS(write),  SCMP_SYS(close),
        SCMP_SYS(fstat),   SCMP_SYS(brk),        SCMP_SYS(munmap), SCMP_SYS(mremap),
        SCMP_SYS(madvise), SCMP_SYS(getrandom),  SCMP_SYS(futex),  SCMP_SYS(rt_sigreturn),
        SCMP_SYS(exit),    SCMP_SYS(exit_group),
    };
    int r = add_calls(filter, SCMP_ACT_ALLOW, common, sizeof common / sizeof *common);
    if (r == 0 && IS_SANITIZED) {
        /* AddressSanitizer calls it before _exit(). */
        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sigaltstack), 0);
    }
    if (r == 0) {
        r = add_calls(filter, SCMP_ACT_ALLOW, rules->calls, rules->call_count);
    }
    if (r == 0) {
        r = add_calls(filter, SCMP_ACT_ERRNO(EPERM), rules->refused, rules->refused_count);
    }
    if (r == 0) {
        r = allow_memory(filter, rules->may_map_files);
    }
    return r < 0 ? r : allow_files(filter, rules);
}

int confine_filter(const struct confine_rules *rules)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (filter == NULL) {
        return -EOPNOTSUPP; /* the kernel does not know that it can kill a process */
    }
    int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (r == 0) {
        r = add_rules(filter, rules);
    }
    if (r == 0) {
        r = seccomp_load(filter);
        r = r < 0 && r != -ENOMEM ? -EOPNOTSUPP : r;
    }
    seccomp_release(filter);
    return r;
}

int confine(const struct confine_rules *rules)
{
    int r = empty_root();
    if (r == 0) {
        r = confine_bounding_set(0);
    }
    if (r == 0) {
        r = change_ids(rules->uid, rules->gid);
    }
    if (r == 0) {
        r = drop_capabilities();
    }
    if (r == 0) {
        r = limit_resources(rules);
    }
    if (r < 0) {
        return r;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) {
        return -errno;
    }
    return confine_filter(rules);
}
