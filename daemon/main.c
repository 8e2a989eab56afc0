/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The program: arguments, limits, the socket, and then daemon_run(). Executed with
 * ELF_WORKER_ARGUMENT it is the worker instead, which shares nothing with the daemon but the file
 * on disk.
 */
#include "cleanup.h"
#include "control.h"
#include "daemon.h"
#include "elf_worker.h"
#include "fault.h"
#include "log.h"
#include "sampler.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#define WORKER_FD 3

enum {
    EXIT_USAGE = 2,
};

static const char HELP[] =
    "Usage: cpu-profilerd [--socket PATH]\n"
    "Samples every CPU on a timer and serves one recording session at a time to its clients.\n"
    "\n"
    "  --socket PATH  listen on PATH instead of $CPU_PROFILERD_SOCKET or " SAMPLER_SOCKET_PATH ";\n"
    "                 a socket passed by the service manager comes before either\n"
    "  --version      print the version\n"
    "  --help         print this text\n"
    "\n"
    "It needs the right to open system-wide perf events and to lock their rings: run it as root,\n"
    "or with CAP_PERFMON and CAP_IPC_LOCK.\n"
    "Talk to it with profctl: profctl record -d 5\n";

/* The rings, the files being opened and the peers need more descriptors than the usual soft limit.
 */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The socket of the service manager, else our own at `path`. Returns the descriptor or -errno. */
static int obtain_socket(const char *path, const char **ret_address)
{
    struct fault fault;
    int passed = sd_listen_fds(1);
    if (passed > 1) {
        return log_error(-EINVAL, "%d sockets were passed, one is expected", passed);
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

static int usage(void)
{
    (void)fputs("Usage: cpu-profilerd [--socket PATH] [--version] [--help]\n", stderr);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    if (argc > 1 && strcmp(argv[1], ELF_WORKER_ARGUMENT) == 0) {
        elf_worker_child(WORKER_FD);
    }
    const char *environment = getenv(SAMPLER_SOCKET_ENVIRONMENT);
    const char *path =
        environment != NULL && environment[0] != '\0' ? environment : SAMPLER_SOCKET_PATH;
    for (int option = getopt_long(argc, argv, "", options, NULL); option != -1;
         option = getopt_long(argc, argv, "", options, NULL)) {
        switch (option) {
        case 's':
            path = optarg;
            break;
        case 'v':
            (void)puts("cpu-profilerd " CPU_PROFILERD_VERSION);
            return EXIT_SUCCESS;
        case 'h':
            (void)fputs(HELP, stdout);
            return EXIT_SUCCESS;
        default:
            return usage();
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "cpu-profilerd: '%s' is not an option\n", argv[optind]);
        return usage();
    }

    /* Memory holds what other users' programs run: no core file, no debugger but root's. */
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();

    const char *address = NULL;
    int listen_fd = obtain_socket(path, &address);
    if (listen_fd < 0) {
        return EXIT_FAILURE;
    }
    int r = daemon_run(listen_fd, address);
    if (address == path) {
        control_unlisten(path);
    }
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
