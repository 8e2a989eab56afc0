/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Executes a program while the kernel has no room for the record of that:
 * `lost_exec FOLDER COUNT PROGRAM [ARGUMENT...]`. Makes nearly all addresses of programs
 * executable, fills the rings of a CPU's profiler with COUNT mappings of a file with a long path,
 * and what is left of them with new names, and becomes PROGRAM on that CPU.
 *
 * `lost_exec FOLDER` has the same mappings at the same addresses, says so, and waits: PROGRAM may
 * become that.
 *
 * A profiler must not see: code of this program in PROGRAM.
 */
#include "workload.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES   ((size_t)4096)
#define CODE_START   ((void *)0x556000000000)
#define CODE_BYTES   ((size_t)0x25a000000000)
#define FILE_START   ((void *)0x7c0000000000)
#define NAME_LETTERS 240
#define FOLDERS      14
#define NAMES        2000

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* A file in FOLDERS folders with long names. */
static int make_file(const char *folder)
{
    char name[NAME_LETTERS + 1];
    (void)memset(name, 'x', NAME_LETTERS);
    name[NAME_LETTERS] = '\0';
    if (chdir(folder) < 0) {
        die(folder);
    }
    for (int i = 0; i < FOLDERS; i++) {
        (void)mkdir(name, 0755);
        if (chdir(name) < 0) {
            die("chdir");
        }
    }
    int file = open("f", O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    if (file < 0 || ftruncate(file, (off_t)PAGE_BYTES) < 0) {
        die("f");
    }
    return file;
}

/* The same program has the same addresses each time. */
static void fix_addresses(char **argv)
{
    int before = personality(UINT32_MAX);
    if (before < 0) {
        die("personality");
    }
    if ((before & ADDR_NO_RANDOMIZE) == 0) {
        (void)personality((unsigned long)before | ADDR_NO_RANDOMIZE);
        (void)execv(argv[0], argv);
        die(argv[0]);
    }
}

static void map_file(int file)
{
    if (mmap(FILE_START, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) ==
        MAP_FAILED) {
        die("mmap");
    }
}

static void stay_here(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)sched_getcpu(), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) < 0) {
        die("sched_setaffinity");
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc == 3) {
        (void)fprintf(stderr, "usage: lost_exec FOLDER [COUNT PROGRAM [ARGUMENT...]]\n");
        return 2;
    }
    fix_addresses(argv);
    stay_here();
    (void)prctl(PR_SET_NAME, "lost_exec");
    int file = make_file(argv[1]);
    map_file(file);
    if (mmap(CODE_START, CODE_BYTES, PROT_READ | PROT_EXEC,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
             0) == MAP_FAILED) {
        die("lost_exec");
    }
    if (argc == 2) {
        (void)puts("it is back");
        (void)fflush(stdout);
        (void)usleep(500000);
        return 0;
    }
    for (long i = strtol(argv[2], NULL, 10); i > 0; i--) {
        map_file(file);
    }
    for (int i = 0; i < NAMES; i++) {
        (void)prctl(PR_SET_NAME, "lost_exec");
    }
    (void)execv(argv[3], &argv[3]);
    die(argv[3]);
}
