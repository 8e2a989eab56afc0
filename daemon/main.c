/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The program: arguments, its config, limits, the socket, and then daemon_run(). Executed with
 * ELF_WORKER_ARGUMENT it is the worker instead, which shares nothing with the daemon but the file
 * on disk.
 */
#include "cleanup.h"
#include "control.h"
#include "daemon.h"
#include "daemon_config.h"
#include "elf_worker.h"
#include "fault.h"
#include "log.h"
#include "rights.h"
#include "sampler.h"
#include "standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define WORKER_FD            3
#define DESCRIPTORS_EXPECTED 4096
#define MMAP_THRESHOLD_BYTES (128 * 1024) /* what it is at first */

enum {
    EXIT_USAGE = 2,
};

#define IDLE_EXIT_S     60 /* where the service manager has the socket, and starts the daemon again */
#define IDLE_EXIT_S_MAX 31536000

static const char USAGE[] =
    "Usage: cpu-profilerd [--socket PATH] [--config FILE] [--idle-exit-s SECONDS]\n"
    "       cpu-profilerd --check [FILE]\n";

static const char HELP[] =
    "Samples every CPU on a timer and serves one recording session at a time to its\n"
    "clients.\n"
    "\n"
    "  --socket PATH   listen on PATH instead of $CPU_PROFILERD_SOCKET or\n"
    "                  " SAMPLER_SOCKET_PATH ";\n"
    "                  a socket passed by the service manager comes before either\n"
    "  --config FILE   the file that says which users may use it, and how much,\n"
    "                  instead of " DAEMON_CONFIG_PATH "\n"
    "  --check [FILE]  check that file, say in a line what holds, and end\n"
    "  --idle-exit-s SECONDS\n"
    "                  end after so long without a session and a connection; 0: never\n"
    "                  (60 with a socket of the service manager, else 0)\n"
    "  --version       print the version\n"
    "  --help          print this text\n"
    "\n"
    "It needs the right to open system-wide perf events and to lock their rings: run\n"
    "it as root, or with CAP_PERFMON and CAP_IPC_LOCK.\n"
    "SIGTERM ends sampling; what was recorded can be read for 5 s more. Another one\n"
    "ends at once.\n"
    "Talk to it with profctl: profctl record -d 5\n";

struct arguments {
    const char *socket_path;
    const char *config_path; /* NULL: the default one, if it is there */
    int64_t idle_exit_s;     /* -1: not given */
    bool is_check;
};

/*
 * The rings, the files being opened and the peers need more descriptors than the usual soft limit.
 * The kernel's table has room for most of them from now on. It would grow as they come, and a
 * thread that makes it grow, as the collector may, waits until no CPU uses the old one.
 */
static void make_room_for_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    int last_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, DESCRIPTORS_EXPECTED - 1);
    close_fd(last_fd);
}

/* The socket of the service manager, if it is one that can be served: 1, 0 for none, or -errno. */
static int find_passed_socket(void)
{
    int passed = sd_listen_fds(1);
    if (passed <= 0) {
        return passed;
    }
    if (passed > 1) {
        return log_error(-EINVAL, "%d sockets were passed, one is expected", passed);
    }
    return sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) > 0
               ? 1
               : log_error(-EINVAL, "the passed descriptor is no listening Unix stream socket");
}

/* That socket, else our own at `path`. Returns the descriptor or -errno. */
static int obtain_socket(const char *path, const char **ret_address)
{
    struct fault fault;
    int passed = find_passed_socket();
    if (passed < 0) {
        return passed;
    }
    if (passed == 1) {
        *ret_address = "the socket of the service manager";
        return SD_LISTEN_FDS_START;
    }
    int fd = control_listen(path, &fault);
    if (fd < 0) {
        (void)log_error(0, "%s", fault.text);
        return fd;
    }
    *ret_address = path;
    return fd;
}

/* On standard output, both. Returns the status to end with. */
static int say(const char *text, const char *more)
{
    (void)printf("%s%s", text, more);
    if (fflush(stdout) == 0) {
        return EXIT_SUCCESS;
    }
    (void)fprintf(stderr, "cpu-profilerd: standard output cannot be written: %s\n",
                  strerror(errno));
    return EXIT_FAILURE;
}

static int usage(void)
{
    (void)fputs(USAGE, stderr);
    return EXIT_USAGE;
}

/* The administrator's file, or none where none was named. Returns 1, 0 for none, or -errno. */
static int load_config(const char *path, struct daemon_config *ret, struct fault *reterr)
{
    daemon_config_init(ret, path == NULL ? DAEMON_CONFIG_PATH : path);
    int r = daemon_config_load(ret->limits.path, ret, reterr);
    if (r == -ENOENT && path == NULL) {
        return 0;
    }
    return r < 0 ? r : 1;
}

/* FILE: MEMBER: what is wrong; what is allowed */
static const char *separate(const struct fault *fault)
{
    return fault->member[0] == '\0' ? "" : ": ";
}

static int check_config(const char *path)
{
    struct daemon_config config;
    struct fault fault = {0};
    int r = load_config(path, &config, &fault);
    if (r < 0) {
        (void)fprintf(stderr, "cpu-profilerd: %s: %s%s%s\n", config.limits.path, fault.member,
                      separate(&fault), fault.text);
        return EXIT_FAILURE;
    }
    (void)printf("%s: %s: %s\n", config.limits.path, r == 0 ? "is not there" : "ok",
                 daemon_config_describe(&config).text);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool parse_seconds(const char *text, int64_t *ret)
{
    char *end = NULL;
    errno = 0;
    long long seconds = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || seconds < 0 || seconds > IDLE_EXIT_S_MAX) {
        (void)fprintf(stderr,
                      "cpu-profilerd: --idle-exit-s: '%s' is not a number of seconds; 0 to %d are "
                      "allowed\n",
                      text, IDLE_EXIT_S_MAX);
        return false;
    }
    *ret = seconds;
    return true;
}

/* The file that --check may have behind it; anything else is one argument too many. */
static bool take_operand(int argc, char **argv, struct arguments *arguments)
{
    if (arguments->is_check && optind == argc - 1) {
        arguments->config_path = argv[optind++];
    }
    if (optind < argc) {
        (void)fprintf(stderr, "cpu-profilerd: '%s' is not an option\n", argv[optind]);
    }
    return optind == argc;
}

/* Returns -1, or the status to end with. */
static int parse_arguments(int argc, char **argv, struct arguments *arguments)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'},
        {"config", required_argument, NULL, 'c'},
        {"check", no_argument, NULL, 'C'},
        {"idle-exit-s", required_argument, NULL, 'i'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int option = getopt_long(argc, argv, "h", options, NULL); option != -1;
         option = getopt_long(argc, argv, "h", options, NULL)) {
        switch (option) {
        case 's':
            arguments->socket_path = optarg;
            break;
        case 'c':
            arguments->config_path = optarg;
            break;
        case 'C':
            arguments->is_check = true;
            break;
        case 'i':
            if (!parse_seconds(optarg, &arguments->idle_exit_s)) {
                return usage();
            }
            break;
        case 'v':
            return say("cpu-profilerd " CPU_PROFILERD_VERSION "\n", "");
        case 'h':
            return say(USAGE, HELP);
        default:
            return usage();
        }
    }
    return take_operand(argc, argv, arguments) ? -1 : usage();
}

static int run(const struct arguments *arguments)
{
    struct daemon_config config;
    struct fault fault = {0};
    int r = load_config(arguments->config_path, &config, &fault);
    if (r < 0) {
        (void)log_error(0, "%s: %s%s%s", config.limits.path, fault.member, separate(&fault),
                        fault.text);
        return EXIT_FAILURE;
    }
    if (r > 0) {
        log_info("%s: %s", config.limits.path, daemon_config_describe(&config).text);
    }

    /* Memory holds what other users' programs run: no core file, no debugger but root's. */
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    /* A session's tables go back to the machine when it ends. Left to itself, glibc takes them from
     * where they stay with it as soon as the first ones have been freed. */
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
    /* malloc_trim() gives back what is free in a thread's arena, but for its end; that is free()'s.
     * A small block there that waits in a list of its own, not yet free, would keep all below. */
    (void)mallopt(M_MXFAST, 0);
    make_room_for_descriptors();

    struct daemon_params params = {.config = &config};
    params.listen_fd = obtain_socket(arguments->socket_path, &params.address);
    if (params.listen_fd < 0) {
        return EXIT_FAILURE;
    }
    r = rights_drop();
    if (r < 0) {
        (void)log_error(r, "cannot give up the rights that are not needed");
        (void)close(params.listen_fd);
        return EXIT_FAILURE;
    }
    bool is_own = params.address == arguments->socket_path;
    params.idle_exit_s = arguments->idle_exit_s >= 0 ? (uint32_t)arguments->idle_exit_s
                         : is_own                    ? 0
                                                     : IDLE_EXIT_S;
    r = daemon_run(&params);
    if (is_own) {
        control_unlisten(arguments->socket_path);
    }
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], ELF_WORKER_ARGUMENT) == 0) {
        elf_worker_child(WORKER_FD);
    }
    standard_streams_take();
    const char *environment = getenv(SAMPLER_SOCKET_ENVIRONMENT);
    struct arguments arguments = {
        .socket_path =
            environment != NULL && environment[0] != '\0' ? environment : SAMPLER_SOCKET_PATH,
        .idle_exit_s = -1,
    };
    int status = parse_arguments(argc, argv, &arguments);
    if (status >= 0) {
        return status;
    }
    return arguments.is_check ? check_config(arguments.config_path) : run(&arguments);
}
