/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One of the twin libraries (twin_library.c) at a time is at one path, and is loaded from there.
 * Each is written over the one before, into the same file. Both come to one address, so only the
 * time tells them apart; with TRUTH_BACK the time of the write is set back each time. While a twin
 * is loaded the process has its name.
 */
#include "truth.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef TRUTH_BACK
#define SPIN 16000000 /* more than a tick of the clock by which files are stamped */
#else
#define SPIN 4000000 /* some milliseconds */
#endif
#define BYTES_MAX 65536
#define LIBRARY   TRUTH_FOLDER "/" TRUTH_NAME ".so"

static const struct twin {
    const char *path;
    const char *name;
} twins[] = {
    {TRUTH_FOLDER "/twin_a.so", "t." TRUTH_NAME ".a"},
    {TRUTH_FOLDER "/twin_b.so", "t." TRUTH_NAME ".b"},
};

static unsigned char contents[2][BYTES_MAX];
static ssize_t sizes[2];

static void check(int is_right)
{
    if (!is_right) {
        perror(TRUTH_NAME);
        exit(1);
    }
}

static void read_twin(int number)
{
    int fd = open(twins[number].path, O_RDONLY | O_CLOEXEC);
    sizes[number] = read(fd, contents[number], BYTES_MAX);
    check(sizes[number] > 0 && sizes[number] < BYTES_MAX);
    (void)close(fd);
}

static void write_twin(int number)
{
    int fd = open(LIBRARY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    check(write(fd, contents[number], (size_t)sizes[number]) == sizes[number]);
#ifdef TRUTH_BACK
    const struct timespec times[] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
    check(futimens(fd, times) == 0);
#endif
    (void)close(fd);
}

TRUTH_FUNCTION void turn(int number);
TRUTH_FUNCTION void turn(int number)
{
    truth_name(twins[number].name);
    void *library = dlopen(LIBRARY, RTLD_NOW);
    check(library != NULL);
    void (*work)(uint64_t) = (void (*)(uint64_t))dlsym(library, "work");
    work(SPIN);
    check(dlclose(library) == 0);
    truth_begin();
}

int main(void)
{
    read_twin(0);
    read_twin(1);
    for (int number = 0;; number = !number) {
        write_twin(number);
        turn(number);
        TRUTH_STAY();
    }
}
