/* SPDX-License-Identifier: Apache-2.0 */

/* Facts from a folder that looks like a machine. */
#include "doctor.h"
#include "files.h"
#include "gather.h"
#include "run.h"
#include "sampler.h"
#include "unit_test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char root[] = "/tmp/doctor-XXXXXX";

static void put(const char *path, const char *text)
{
    char whole[256];
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(whole, 0755);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* /proc/PID of the test's own program. */
static void put_process(const char *pid, const char *maps, const char *command_line)
{
    char path[64];
    char whole[256];
    char status[96];
    (void)snprintf(path, sizeof path, "/proc/%s/maps", pid);
    put(path, maps);
    (void)snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
    put(path, command_line);
    (void)snprintf(path, sizeof path, "/proc/%s/environ", pid);
    put(path, "HOME=/");
    (void)snprintf(path, sizeof path, "/proc/%s/status", pid);
    int uid = (int)geteuid(); /* the maps' */
    (void)snprintf(status, sizeof status, "Uid:\t%d\t%d\t%d\t%d\nNSpid:\t%s\t7\n", uid, uid, uid,
                   uid, pid);
    put(path, status);
    (void)snprintf(whole, sizeof whole, "%s/proc/%s/exe", root, pid);
    assert_int_equal(symlink("/proc/self/exe", whole), 0);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int remove_root(void **state)
{
    (void)state;
    int r = nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    (void)snprintf(root, sizeof root, "/tmp/doctor-XXXXXX");
    return r;
}

TEST_WITH(reads_the_kernels_settings, make_root, remove_root)
{
    struct machine_facts facts;
    put("/proc/sys/kernel/perf_event_paranoid", "4\n");
    put("/proc/sys/kernel/kptr_restrict", "2\n");
    put("/proc/sys/kernel/perf_event_max_sample_rate", "x\n");
    put("/proc/meminfo", "MemAvailable: 77 kB\n");
    put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    gather_machine(root, &facts);
    assert_int_equal(facts.paranoid.value, 4);
    assert_string_equal(facts.paranoid.why, "");
    assert_int_equal(facts.kptr_restrict.value, 2);
    assert_string_not_equal(facts.max_sample_rate.why, "");
    assert_contains(facts.cpu_time_max_percent.why, "No such file");
    assert_int_equal(facts.available_kib.value, 77);
    assert_string_equal(facts.lockdown, "integrity");
    assert_string_equal(facts.clock_source, "hpet");
}

TEST_WITH(tells_no_lockdown_from_one_that_is_not_known, make_root, remove_root)
{
    struct machine_facts facts;
    gather_machine(root, &facts);
    assert_contains(facts.lockdown_why, "not mounted");
    put("/sys/kernel/security/lsm", "capability");
    gather_machine(root, &facts);
    assert_string_equal(facts.lockdown_why, "");
    assert_string_equal(facts.lockdown, "");
}

TEST_WITH(reads_rights_of_the_daemon_alone, make_root, remove_root)
{
    struct daemon_facts facts = {.pid = 9};
    put("/proc/9/comm", "bash\n");
    gather_process(root, &facts);
    assert_contains(facts.process_why, "pid 9");
    put("/proc/9/comm", "cpu-profilerd\n");
    put("/proc/9/status", "CapEff:\t0000004000000000\n");
    put("/proc/9/limits", "Max locked memory         65536     65536     bytes\n");
    facts = (struct daemon_facts){.pid = 9};
    gather_process(root, &facts);
    assert_string_equal(facts.process_why, "");
    assert_int_equal(facts.capabilities, UINT64_C(1) << 38);
    assert_int_equal(facts.locked_bytes.value, 65536);
    assert_string_not_equal(facts.descriptors.why, "");
}

TEST_WITH(tells_the_sockets_group_from_the_daemons, make_root, remove_root)
{
    char path[sizeof root + 8];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct access_facts facts;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct group *daemons = getgrnam(SAMPLER_GROUP);
    gid_t gid = daemons == NULL ? 0 : daemons->gr_gid;
    (void)snprintf(path, sizeof path, "%s/socket", root);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    (void)close(fd);
    if (chown(path, (uid_t)-1, 1) < 0) { /* "daemon" of every machine */
        skip();
    }
    gather_access(path, &facts);
    assert_true(facts.is_foreign);
    assert_string_not_equal(facts.group, SAMPLER_GROUP);
    assert_int_equal(chown(path, (uid_t)-1, 987654), 0);
    gather_access(path, &facts);
    assert_true(facts.is_foreign);
    assert_false(facts.has_group);
    assert_int_equal(chown(path, (uid_t)-1, gid), 0);
    gather_access(path, &facts);
    assert_false(facts.is_foreign);
    assert_string_equal(facts.group, SAMPLER_GROUP);
}

TEST_WITH(blames_the_last_drop_in_with_each_setting, make_root, remove_root)
{
    struct service_facts facts = {.service = {.drop_ins = "/a.conf /b.conf /c.conf /gone.conf"}};
    put("/a.conf", "[Service]\nLimitMEMLOCK=64K\nAmbientCapabilities=\n");
    put("/b.conf", "[Service]\nAmbientCapabilities=CAP_PERFMON\n");
    put("/c.conf", "[Service]\n#LimitMEMLOCK=1\nDynamicUser=no\nNice=1\n");
    gather_drop_ins(root, &facts);
    assert_string_equal(facts.drop_ins[RIGHTS_MEMLOCK].path, "/a.conf");
    assert_string_equal(facts.drop_ins[RIGHTS_MEMLOCK].setting, "LimitMEMLOCK");
    assert_string_equal(facts.drop_ins[RIGHTS_CAPABILITIES].path, "/b.conf");
    assert_string_equal(facts.drop_ins[RIGHTS_CAPABILITIES].setting, "AmbientCapabilities");
    assert_string_equal(facts.drop_ins[RIGHTS_FILTER].path, "");
}

#define JVM "7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/jvm/lib/server/libjvm.so\n"

TEST_WITH(finds_programs_that_do_not_name_their_code, make_root, remove_root)
{
    struct program_facts facts;
    put_process("10", JVM, "java");
    put_process("11", JVM, "java -XX:+PreserveFramePointer");
    put("/proc/11/root/tmp/perf-7.map", "1 1 f\n");
    put_process("12", JVM, "java");
    put("/proc/12/root/tmp/perf-7.map", "1 1 f\n");
    put_process("13", "", "bash");
    gather_programs(root, &facts);
    assert_string_equal(facts.why, "");
    assert_int_equal(facts.process_count, 4);
    assert_int_equal(facts.file_count, 1);
    assert_int_equal(facts.with_symbols, 1);
    assert_int_equal(facts.runtime_count, 3);
    assert_int_equal(facts.unmapped_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct made_facts *made = &facts.made[i];
        assert_true(made->pid == 10 || made->pid == 12);
        assert_true(made->lacks_frames);
        assert_int_equal(made->is_named, made->pid == 12);
    }
}

static void put_link(const char *path, const char *target)
{
    char whole[256];
    put(path, "");
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    assert_int_equal(unlink(whole), 0);
    assert_int_equal(symlink(target, whole), 0);
}

/* As in a container whose /tmp is a link of its user's: the link leads nowhere outside. */
TEST_WITH(follows_no_link_to_a_map_out_of_a_process_root, make_root, remove_root)
{
    struct program_facts facts;
    char outside[256];
    put("/outside/perf-7.map", "1 1 f\n");
    put("/proc/14/root/inside/perf-7.map", "1 1 f\n");
    put_process("13", JVM, "java");
    (void)snprintf(outside, sizeof outside, "%s/outside", root);
    put_link("/proc/13/root/tmp", outside);
    put_process("14", JVM, "java");
    put_link("/proc/14/root/tmp", "/inside");
    gather_scan(root, &facts);
    assert_int_equal(facts.unmapped_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(facts.made[i].is_named, facts.made[i].pid == 14);
    }
}

TEST_WITH(takes_no_other_file_for_a_jitdump, make_root, remove_root)
{
    struct program_facts facts;
    put_process("15", JVM "7f02-7f03 r--p 0 08:01 1 /home/x/heap.dump\n", "java");
    put_process("16", JVM "7f02-7f03 r--p 0 08:01 1 /tmp/jit-7.dump\n", "java");
    gather_scan(root, &facts);
    assert_int_equal(facts.unmapped_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(facts.made[i].is_named, facts.made[i].pid == 16);
    }
}

static void put_uid(const char *path, unsigned uid)
{
    char status[64];
    (void)snprintf(status, sizeof status, "Uid:\t%u\t0\t0\t0\n", uid);
    put(path, status);
}

TEST_WITH(tells_own_programs_from_those_of_other_users_and_containers, make_root, remove_root)
{
    struct program_facts facts;
    put_link("/proc/self/ns/mnt", "mnt:[1]");
    put_process("10", JVM, "java");
    put_uid("/proc/10/status", geteuid());
    put_link("/proc/10/ns/mnt", "mnt:[1]");
    put_process("11", JVM, "java");
    put_uid("/proc/11/status", geteuid() + 1);
    put_link("/proc/11/ns/mnt", "mnt:[1]");
    put_process("12", JVM, "java");
    put_uid("/proc/12/status", geteuid());
    put_link("/proc/12/ns/mnt", "mnt:[2]");
    put_process("13", JVM, "java");
    put_uid("/proc/13/status", geteuid());
    gather_scan(root, &facts);
    assert_int_equal(facts.unmapped_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(facts.made[i].is_own, facts.made[i].pid == 10);
    }
}

TEST_WITH(counts_a_file_once, make_root, remove_root)
{
    struct program_facts facts;
    for (int pid = 20; pid < 40; pid++) {
        char text[8];
        (void)snprintf(text, sizeof text, "%d", pid);
        put_process(text, "", "x");
    }
    gather_scan(root, &facts);
    assert_int_equal(facts.process_count, 20);
    assert_int_equal(facts.file_count, 1);
}

/* A daemon that gives the same answer to so many requests, and dies at the next. */
struct server {
    int fd; /* listens */
    const char *answer;
    size_t answer_count;
};

static void *serve(void *userdata)
{
    const struct server *server = userdata;
    int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
    size_t left = server->answer_count;
    char byte = 0;
    while (read(fd, &byte, 1) == 1) {
        if (byte != '\0') {
            continue;
        }
        if (left == 0 || write(fd, server->answer, strlen(server->answer) + 1) < 0) {
            break;
        }
        left--;
    }
    (void)close(fd);
    return NULL;
}

/* What the doctor says of such a daemon. */
static struct doctor_report examine(struct server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct doctor_report report;
    pthread_t thread;
    server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", root);
    assert_int_equal(bind(server->fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server->fd, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, serve, server), 0);
    doctor_examine(address.sun_path, &report);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(server->fd);
    assert_int_equal(unlink(address.sun_path), 0);
    return report;
}

static bool has_cause(const struct doctor_report *report, const char *cause)
{
    for (size_t i = 0; i < report->count; i++) {
        if (strcmp(report->findings[i].cause, cause) == 0) {
            return true;
        }
    }
    return false;
}

/* Status, Create and Start are answered; then the daemon dies at Stop, or at Read. */
TEST_WITH(finds_a_daemon_that_dies_in_the_trial_wrong, make_root, remove_root)
{
    for (size_t answer_count = 3; answer_count <= 4; answer_count++) {
        struct server server = {.answer = "{\"parameters\":{\"status\":{}}}",
                                .answer_count = answer_count};
        struct doctor_report report = examine(&server);
        assert_true(has_cause(&report, "sample-failed"));
        assert_false(has_cause(&report, "sample-refused"));
        assert_true(doctor_is_ill(&report));
        doctor_report_done(&report);
    }
}

static size_t fork_count;
static size_t shared_count; /* connections to a daemon that a child would have had */

static void count_shared(void)
{
    fork_count++;
    for (int fd = 0; fd < 256; fd++) {
        struct sockaddr_un address = {0};
        socklen_t size = sizeof address;
        if (getpeername(fd, (struct sockaddr *)&address, &size) == 0 &&
            address.sun_family == AF_UNIX && strncmp(address.sun_path, root, strlen(root)) == 0) {
            shared_count++;
        }
    }
}

TEST_WITH(shares_its_connection_with_no_child, make_root, remove_root)
{
    struct server server = {.answer = "{\"error\":\"io.cpuprofilerd.Sampler.NoSession\"}",
                            .answer_count = 16};
    assert_int_equal(pthread_atfork(count_shared, NULL, NULL), 0);
    struct doctor_report report = examine(&server);
    assert_true(has_cause(&report, "daemon-silent"));
    assert_true(fork_count >= 2); /* the trial's, and that which looks at programs */
    assert_int_equal(shared_count, 0);
    doctor_report_done(&report);
}

/* Processes beyond the bound have no folder with anything in it, and are not looked at. */
TEST_WITH(says_when_there_are_more_processes_than_it_looks_at, make_root, remove_root)
{
    struct program_facts facts;
    for (int pid = 1; pid <= 4097; pid++) {
        char path[32];
        (void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
        put(path, "");
        if (pid == 4096) {
            gather_scan(root, &facts);
            assert_false(facts.is_cut);
        }
    }
    gather_scan(root, &facts);
    assert_true(facts.is_cut);
}

/* Runs a line of the shell. */
static int run(const char *line, uint64_t limit_ms, char text[8])
{
    return ask_program((const char *const[]){"sh", "-c", line, NULL}, limit_ms, text, 8);
}

TEST(bounds_what_other_programs_print)
{
    char text[8];
    assert_int_equal(run("echo a text that is long", 10000, text), 0);
    assert_string_equal(text, "a text ");
    assert_int_equal(run("exit 3", 10000, text), 3);
    assert_int_equal(run("kill -KILL $$", 10000, text), -ECHILD);
    assert_int_equal(ask_program((const char *const[]){"no-such-program", NULL}, 10000, text, 8),
                     -ENOENT);
}

TEST(ends_a_program_that_does_not_end)
{
    char text[8];
    assert_int_equal(run("echo begun; exec sleep 60", 200, text), -ETIMEDOUT);
    /* It prints no more, and goes on. The test would last for as long as it is waited for. */
    assert_int_equal(run("exec >&-; exec sleep 1000", 200, text), -ETIMEDOUT);
}
