/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runtimes that are asked for names. Those here are children that speak the protocols of HotSpot
 * and .NET, well and badly.
 */
#include "cleanup.h"
#include "naming.h"
#include "naming_ask.h"
#include "naming_counters.h"
#include "unit_test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* Longer than a test may last, so that what answers is waited for. */
static const struct naming_wait patient = {.answer_ms = 3600000, .listen_ms = 3600000};

static const char status_text[] =
    "Name:\tjava\nUmask:\t0022\nPPid:\t7\nUid:\t1000\t1001\t1000\t1000\n"
    "Gid:\t100\t101\t100\t100\nNSpid:\t812\t12\t3\n"
    "SigCgt:\t0000000000000004\n";

TEST(takes_what_status_says)
{
    struct naming_process process = {0};
    assert_true(naming_process_parse(status_text, &process));
    assert_string_equal(process.comm, "java");
    assert_int_equal(process.parent, 7);
    assert_int_equal(process.inner, 3);
    assert_int_equal(process.real_uid, 1000);
    assert_int_equal(process.uid, 1001);
    assert_int_equal(process.gid, 101);
    assert_int_equal(process.caught, 4);
    assert_false(naming_process_parse("Name:\tjava\nPPid:\t7\n", &process));
}

TEST(finds_control_groups_and_units)
{
    static const struct {
        const char *group;
        const char *unit;
        const char *text;
        bool expected;
    } cases[] = {
        {"/a", NULL, "0::/a", true},
        {"/a/", NULL, "0::/a/b\n", true},
        {"/sys/fs/cgroup/a", NULL, "0::/a/b\n", true},
        {"/a", NULL, "0::/ab\n", false},
        {"/a", NULL, "4:cpu:/b\n0::/a\n", true},
        {"/a", NULL, "no line of that file\n", false},
        {NULL, "nginx.service", "0::/system.slice/nginx.service\n", true},
        {NULL, "nginx.service", "0::/system.slice/nginx.service/worker\n", true},
        {NULL, "nginx.service", "0::/system.slice/nginx2.service\n", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct session_targets targets = {0};
        char text[128];
        (void)snprintf(text, sizeof text, "%s", cases[i].text);
        if (cases[i].group != NULL) {
            (void)snprintf(targets.cgroups[targets.cgroup_count++], sizeof targets.cgroups[0], "%s",
                           cases[i].group);
        } else {
            (void)snprintf(targets.units[targets.unit_count++], sizeof targets.units[0], "%s",
                           cases[i].unit);
        }
        assert_int_equal(naming_cgroup_matches(text, &targets), cases[i].expected);
    }
}

TEST(keeps_what_the_user_has_set)
{
    assert_int_equal(setenv("NODE_OPTIONS", "--no-warnings", 1), 0);
    assert_int_equal(setenv("PYTHONPERFSUPPORT", "0", 1), 0);
    assert_int_equal(unsetenv("DOTNET_PerfMapEnabled"), 0);
    naming_set_environment(false);
    assert_string_equal(getenv("NODE_OPTIONS"), "--no-warnings --perf-basic-prof");
    assert_string_equal(getenv("PYTHONPERFSUPPORT"), "0");
    assert_string_equal(getenv("DOTNET_PerfMapEnabled"), "1");
    assert_int_equal(setenv("NODE_OPTIONS", "--perf-prof", 1), 0);
    naming_set_environment(false);
    assert_string_equal(getenv("NODE_OPTIONS"), "--perf-prof");
    assert_int_equal(unsetenv("NODE_OPTIONS"), 0);
    naming_set_environment(false);
    assert_string_equal(getenv("NODE_OPTIONS"), "--perf-basic-prof");
}

TEST(tells_those_that_follow_links_nothing)
{
    assert_int_equal(unsetenv("NODE_OPTIONS"), 0);
    assert_int_equal(unsetenv("PYTHONPERFSUPPORT"), 0);
    assert_int_equal(unsetenv("DOTNET_PerfMapEnabled"), 0);
    naming_set_environment(true);
    assert_null(getenv("NODE_OPTIONS"));
    assert_string_equal(getenv("PYTHONPERFSUPPORT"), "1");
    assert_null(getenv("DOTNET_PerfMapEnabled"));
}

static void answer_well(const struct naming_process *process, uint64_t listen_ms,
                        struct naming_answer *answer)
{
    (void)listen_ms;
    (void)process;
    answer->is_done = true;
}

static void never_answer(const struct naming_process *process, uint64_t listen_ms,
                         struct naming_answer *answer)
{
    (void)listen_ms;
    (void)process;
    (void)answer;
    for (;;) {
        (void)pause();
    }
}

static void die(const struct naming_process *process, uint64_t listen_ms,
                struct naming_answer *answer)
{
    (void)listen_ms;
    (void)process;
    (void)answer;
    (void)raise(SIGKILL);
}

/* The map that was made for a question to this process, which a child that was killed leaves. */
static void remove_map(void)
{
    char path[48];
    (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    (void)unlink(path);
}

TEST(waits_for_none_longer_than_it_may)
{
    struct naming_question questions[3] = {0};
    naming_ask_fn *const ways[] = {answer_well, die, never_answer};
    for (size_t i = 0; i < 3; i++) {
        assert_true(naming_process_open(getpid(), &questions[i].process));
        questions[i].ask = ways[i];
    }
    naming_ask_all(questions, 2, &patient);
    assert_true(questions[0].answer.is_done);
    assert_false(questions[1].answer.is_done);
    naming_ask_all(&questions[2], 1, &(struct naming_wait){.answer_ms = 200});
    assert_false(questions[2].answer.is_done);
    assert_string_equal(questions[2].answer.why, "it did not answer in time");
    for (size_t i = 0; i < 3; i++) {
        naming_process_close(&questions[i].process);
    }
    remove_map();
}

/* A child that was killed takes a while to end, so its end is waited for; an earlier test's too. */
TEST(keeps_no_child_that_was_given_up)
{
    struct naming_question question = {.ask = never_answer};
    siginfo_t died;
    assert_true(naming_process_open(getpid(), &question.process));
    naming_ask_all(&question, 1, &(struct naming_wait){.answer_ms = 20});
    assert_false(question.answer.is_done);
    while (waitid(P_ALL, 0, &died, WEXITED | WNOWAIT) == 0) {
        naming_ask_all(NULL, 0, &patient);
        assert_int_equal(waitpid(died.si_pid, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
    naming_process_close(&question.process);
    remove_map();
}

static void on_any(int number)
{
    (void)number;
}

#define HANDLED       ((const int[]){SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD})
#define HANDLED_COUNT 5

static void look_at_signals(const struct naming_process *process, uint64_t listen_ms,
                            struct naming_answer *answer)
{
    struct sigaction now;
    (void)listen_ms;
    (void)process;
    for (size_t i = 0; i < HANDLED_COUNT; i++) {
        if (sigaction(HANDLED[i], NULL, &now) < 0 || now.sa_handler != SIG_DFL) {
            (void)snprintf(answer->why, sizeof answer->why, "signal %d", HANDLED[i]);
            return;
        }
    }
    answer->is_done = sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* What the caller ignores, for itself or since `nohup` did, stays so. */
TEST(has_children_that_no_handler_of_the_caller_keeps)
{
    struct naming_question question = {.ask = look_at_signals};
    const struct sigaction action = {.sa_handler = on_any};
    for (size_t i = 0; i < HANDLED_COUNT; i++) {
        assert_int_equal(sigaction(HANDLED[i], &action, NULL), 0);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    assert_true(naming_process_open(getpid(), &question.process));
    naming_ask_all(&question, 1, &patient);
    naming_process_close(&question.process);
    for (size_t i = 0; i < HANDLED_COUNT; i++) {
        (void)signal(HANDLED[i], SIG_DFL);
    }
    (void)signal(SIGPIPE, SIG_DFL);
    assert_string_equal(question.answer.why, "");
    assert_true(question.answer.is_done);
    remove_map();
}

/* A server that speaks for its own process, or not. */
struct server {
    const char *before; /* of the socket's path, before the pid */
    const char *behind;
    const void *reply;
    size_t reply_bytes;
    const void *expected; /* the request */
    size_t expected_bytes;
    bool is_attached_to;        /* listens after SIGQUIT, and if the file is there */
    const char *const *planted; /* stamps of .NET's sockets that the asking process has made */
    size_t planted_count;
};

static volatile sig_atomic_t has_quit;

static void on_quit(int number)
{
    (void)number;
    has_quit = 1;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    (void)unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0
               ? fd
               : -1;
}

static void server_path(const struct server *server, pid_t pid, char into[64])
{
    (void)snprintf(into, 64, "%s%d%s", server->before, (int)pid, server->behind);
}

/* Ends with 0 if the request was as it should. */
static void run_server(const struct server *server, int ready_fd)
{
    (void)prctl(PR_SET_NAME, "Signal Dispatcher"); /* the thread that takes a Java's signals */
    char path[64];
    char request[128];
    char file[64];
    size_t bytes = 0;
    ssize_t got = 0;
    server_path(server, getpid(), path);
    (void)unlink(path); /* an earlier process with this pid may have left it */
    if (server->is_attached_to) {
        (void)signal(SIGQUIT, on_quit);
        (void)!write(ready_fd, "r", 1);
        while (has_quit == 0) {
            (void)usleep(1000);
        }
        (void)snprintf(file, sizeof file, ".attach_pid%d", (int)getpid());
        if (access(file, F_OK) != 0) {
            _exit(2);
        }
    }
    int listener = listen_at(path);
    if (!server->is_attached_to) {
        (void)!write(ready_fd, "r", 1);
    }
    int fd = accept(listener, NULL, NULL);
    (void)signal(SIGTERM, SIG_IGN); /* it has been asked, and ends by itself */
    while (bytes < server->expected_bytes &&
           (got = read(fd, request + bytes, sizeof request - bytes)) > 0) {
        bytes += (size_t)got;
    }
    (void)!write(fd, server->reply, server->reply_bytes);
    (void)unlink(path);
    _exit(bytes == server->expected_bytes && memcmp(request, server->expected, bytes) == 0 ? 0 : 3);
}

static void planted_path(const struct server *server, size_t i, pid_t pid, char into[64])
{
    (void)snprintf(into, 64, "%s%d-%s-socket", server->before, (int)pid, server->planted[i]);
}

static struct naming_answer ask(const struct server *server, naming_ask_fn *way)
{
    int ready[2];
    int planted[4] = {-1, -1, -1, -1};
    char path[64];
    char byte = 0;
    int status = 0;
    struct naming_question question = {.ask = way};
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        run_server(server, ready[1]);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    for (size_t i = 0; i < server->planted_count; i++) {
        planted_path(server, i, pid, path);
        planted[i] = listen_at(path);
        assert_true(planted[i] >= 0);
        if (i == 0) { /* on which nobody listens */
            planted[i] = close_fd(planted[i]);
        }
    }
    assert_true(naming_process_open(pid, &question.process));
    naming_ask_all(&question, 1, &patient);
    naming_process_close(&question.process);
    for (size_t i = 0; i < server->planted_count; i++) {
        planted_path(server, i, pid, path);
        (void)close_fd(planted[i]);
        assert_int_equal(unlink(path), 0);
    }
    if (!question.answer.is_done) {
        (void)kill(pid, SIGTERM); /* one that was not asked waits for that */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    server_path(server, pid, path);
    (void)unlink(path); /* of one that was not asked */
    (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)pid);
    (void)unlink(path); /* made before the question */
    assert_true(status == 0 || server->planted_count > 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return question.answer;
}

#define JVM_REQUEST    "1\0jcmd\0Compiler.perfmap\0\0\0"
#define DOTNET_REQUEST "DOTNET_IPC_V1\0\x18\0\x04\x05\0\0\x01\0\0\0"

TEST(asks_a_virtual_machine)
{
    static const struct {
        const char *reply;
        size_t reply_bytes;
        const char *why; /* NULL: it is done */
    } cases[] = {
        {"0\nCommand executed successfully\n", 32, NULL},
        {"1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n", 66,
         "it has no Compiler.perfmap, which Java has from 17 on: "
         "'java.lang.IllegalArgumentException: Unknown diagnostic command'"},
        {"0", 1, "its answer is no virtual machine's"},
        {"", 0, "its answer is no virtual machine's"},
        {"00\n", 3, "it has no Compiler.perfmap, which Java has from 17 on: ''"},
    };
    char folder[] = "/tmp/naming.XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct server server = {
            .before = "/tmp/.java_pid",
            .behind = "",
            .reply = cases[i].reply,
            .reply_bytes = cases[i].reply_bytes,
            .expected = JVM_REQUEST,
            .expected_bytes = sizeof JVM_REQUEST - 1,
            .is_attached_to = true,
        };
        struct naming_answer answer = ask(&server, naming_jvm_ask);
        assert_int_equal(answer.is_done, cases[i].why == NULL);
        assert_string_equal(answer.why, cases[i].why == NULL ? "" : cases[i].why);
    }
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing was left in it */
}

/* A file of counters as HotSpot writes it: a number, and the text that is looked for. */
#define PROLOGUE(accessible, first, count)                                                         \
    "\xca\xfe\xc0\xc0\x01\x02\0" accessible "\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0" first             \
    "\0\0\0" count "\0\0\0"
#define NUMBER "\x20\0\0\0\x14\0\0\0\0\0\0\0J\0\x01\x01\x18\0\0\0abc\0\x11\0\0\0\0\0\0\0"
#define CAPABILITIES(bytes, name, value, text)                                                     \
    bytes "\0\0\0" name "\0\0\0\x04\0\0\0B\0\x05\x01" value "\0\0\0"                               \
          "sun.rt.jvmCapabilities\0\0" text "\0\0\0\0"
#define FILE_OF(text) text, sizeof(text) - 1

TEST(goes_by_the_counters_of_a_virtual_machine)
{
    static const struct {
        const char *file;
        size_t file_bytes;
        enum naming_tools expected;
    } cases[] = {
        {FILE_OF(PROLOGUE("\1", "\x20", "\2") NUMBER CAPABILITIES("\x34", "\x14", "\x2c", "1100")),
         NAMING_TOOLS_ALLOWED},
        {FILE_OF(PROLOGUE("\1", "\x20", "\2") NUMBER CAPABILITIES("\x34", "\x14", "\x2c", "0100")),
         NAMING_TOOLS_REFUSED},
        {FILE_OF(PROLOGUE("\1", "\x40", "\1") NUMBER CAPABILITIES("\x34", "\x14", "\x2c", "0100")),
         NAMING_TOOLS_REFUSED},
        /* Not all of it is there yet. */
        {FILE_OF(PROLOGUE("\0", "\x20", "\2") NUMBER CAPABILITIES("\x34", "\x14", "\x2c", "0100")),
         NAMING_TOOLS_UNKNOWN},
        /* No second entry; none that is so long; none that begins there; a name and a value beyond
         * the entry. */
        {FILE_OF(PROLOGUE("\1", "\x20", "\1") NUMBER CAPABILITIES("\x34", "\x14", "\x2c", "0100")),
         NAMING_TOOLS_UNKNOWN},
        {FILE_OF(PROLOGUE("\1", "\x20", "\2") NUMBER CAPABILITIES("\x3f", "\x14", "\x2c", "0100")),
         NAMING_TOOLS_UNKNOWN},
        {FILE_OF(PROLOGUE("\1", "\xff", "\2") NUMBER CAPABILITIES("\x34", "\x14", "\x2c", "0100")),
         NAMING_TOOLS_UNKNOWN},
        {FILE_OF(PROLOGUE("\1", "\x20", "\2") NUMBER CAPABILITIES("\x34", "\x33", "\x2c", "0100")),
         NAMING_TOOLS_UNKNOWN},
        {FILE_OF(PROLOGUE("\1", "\x20", "\2") NUMBER CAPABILITIES("\x34", "\x14", "\x34", "0100")),
         NAMING_TOOLS_UNKNOWN},
        {FILE_OF("\xca\xfe\xc0\xc0"), NAMING_TOOLS_UNKNOWN},
        {FILE_OF("\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         NAMING_TOOLS_UNKNOWN},
        {"", 0, NAMING_TOOLS_UNKNOWN},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        /* As long as the file, so that a read beyond its end is seen. */
        cleanup_(freep) char *file = malloc(cases[i].file_bytes + 1);
        assert_non_null(file);
        memcpy(file + 1, cases[i].file, cases[i].file_bytes);
        assert_int_equal(naming_counters_judge(file + 1, cases[i].file_bytes), cases[i].expected);
    }
}

TEST(asks_a_dotnet_runtime)
{
    static const struct {
        const char *reply;
        size_t reply_bytes;
        const char *why; /* NULL: it is done */
    } cases[] = {
        {"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0", 24, NULL},
        {"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x01\0\0\0", 24,
         "it refuses, as each .NET before 8 does; start it with DOTNET_PerfMapEnabled=1"},
        {"DOTNET_IPC_V1\0\x18\0", 16, "its answer is no runtime's"},
        {"HTTP/1.1 200 OK is no answer", 24, "its answer is no runtime's"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct server server = {
            .before = "/tmp/dotnet-diagnostic-",
            .behind = "-77-socket",
            .reply = cases[i].reply,
            .reply_bytes = cases[i].reply_bytes,
            .expected = DOTNET_REQUEST,
            .expected_bytes = sizeof DOTNET_REQUEST - 1,
        };
        struct naming_answer answer = ask(&server, naming_dotnet_ask);
        assert_int_equal(answer.is_done, cases[i].why == NULL);
        assert_string_equal(answer.why, cases[i].why == NULL ? "" : cases[i].why);
    }
}

/* The child that is asked, and what is told of it. It listens nowhere, and catches no signal. */
static struct naming_answer ask_sleeper(naming_ask_fn *way, bool has_foreign_socket)
{
    char path[64];
    int status = 0;
    int listener = -1;
    struct naming_question question = {.ask = way};
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            (void)pause();
        }
    }
    (void)snprintf(path, sizeof path, "/tmp/.java_pid%d", (int)pid);
    (void)unlink(path); /* an earlier process with this pid may have left it */
    if (has_foreign_socket) {
        listener = listen_at(path);
        assert_true(listener >= 0);
    }
    assert_true(naming_process_open(pid, &question.process));
    naming_ask_all(&question, 1, &patient);
    naming_process_close(&question.process);
    (void)close_fd(listener);
    (void)unlink(path);
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0); /* it still runs */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return question.answer;
}

TEST(sends_no_signal_that_would_end_a_process)
{
    struct naming_answer answer = ask_sleeper(naming_jvm_ask, false);
    assert_false(answer.is_done);
    assert_string_equal(answer.why, "it does not catch SIGQUIT, which would end it");
}

TEST(speaks_to_no_socket_of_another_process)
{
    struct naming_answer answer = ask_sleeper(naming_jvm_ask, true);
    assert_false(answer.is_done);
    assert_string_equal(answer.why, "its socket for tools is of no use: Operation not permitted");
}

/* Planted ones: a socket on which nobody listens, and three of another process. */
TEST(tries_each_socket_of_dotnet)
{
    static const char *const names[] = {"0", "1", "2", "77"};
    const struct server server = {
        .before = "/tmp/dotnet-diagnostic-",
        .behind = "-5-socket",
        .reply = "DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0",
        .reply_bytes = 24,
        .expected = DOTNET_REQUEST,
        .expected_bytes = sizeof DOTNET_REQUEST - 1,
        .planted = names,
        .planted_count = COUNT_OF(names),
    };
    struct naming_answer answer = ask(&server, naming_dotnet_ask);
    assert_string_equal(answer.why, "");
    assert_true(answer.is_done);
}

TEST(finds_no_socket_of_dotnet)
{
    struct naming_answer answer = ask_sleeper(naming_dotnet_ask, false);
    assert_string_equal(answer.why, "it has no socket for tools in /tmp");
}
