/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Places of processes that are asked. Most of these here are this process again, under other pids
 * and uids; those that end are children.
 */
#include "naming_places.h"
#include "unit_test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct naming_places places;

static int clear(void **state)
{
    (void)state;
    naming_places_done(&places);
    return 0;
}

/* Returns whether a process of that pid and uid finds a place. */
static bool take(pid_t pid, uid_t uid)
{
    struct naming_process process;
    assert_true(naming_process_open(getpid(), &process));
    process.pid = pid;
    process.uid = uid;
    bool is_taken = naming_places_take(&places, &process, naming_jvm_ask);
    assert_int_equal(process.folder < 0, is_taken);
    naming_process_close(&process);
    return is_taken;
}

/* As many of that user as find a place. */
static size_t take_all(uid_t uid)
{
    size_t taken = 0;
    while (taken <= NAMING_PROCESSES_MAX && take((pid_t)(uid << 10 | taken), uid)) {
        taken++;
    }
    return taken;
}

TEST_WITH(leaves_places_to_other_users, clear, clear)
{
    assert_int_equal(take_all(1), NAMING_PROCESSES_MAX / 2);
    assert_int_equal(take_all(2), NAMING_PROCESSES_MAX / 4);
    assert_int_equal(take_all(3), NAMING_PROCESSES_MAX / 8);
    assert_false(take(9, 1));
    assert_true(take(9, 4));
    assert_true(naming_places_has(&places, 9));
    assert_false(naming_places_has(&places, 10));
}

static pid_t begin_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            (void)pause();
        }
    }
    return pid;
}

/* So a command may start any number of them one after another, also with a pid that was there. */
TEST_WITH(gives_back_the_places_of_processes_that_have_ended, clear, clear)
{
    assert_true(take(1, 1));
    for (size_t i = 0; i < 2 * (size_t)NAMING_PROCESSES_MAX; i++) {
        struct naming_process process;
        pid_t pid = begin_child();
        assert_true(pid > 0);
        assert_true(naming_process_open(pid, &process));
        assert_true(naming_places_take(&places, &process, NULL));
        naming_places_drop_ended(&places);
        assert_true(naming_places_has(&places, pid));
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        naming_places_drop_ended(&places);
        assert_false(naming_places_has(&places, pid));
        assert_int_equal(places.count, 1);
    }
    assert_true(naming_places_has(&places, 1));
}

/* 70 of this process's children that have the library of a virtual machine, and do not listen. */
#define MACHINES 70

static void begin_machines(pid_t pids[MACHINES])
{
    char path[] = "/tmp/naming_places.XXXXXX/libjvm.so";
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_non_null(mkdtemp(path));
    *slash = '/';
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    assert_int_equal(ftruncate(fd, 4096), 0);
    void *library = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(library, MAP_FAILED);
    for (size_t i = 0; i < MACHINES; i++) {
        pids[i] = begin_child();
        assert_true(pids[i] > 0);
    }
    assert_int_equal(munmap(library, 4096), 0);
    (void)close(fd);
    assert_int_equal(unlink(path), 0);
    *slash = '\0';
    assert_int_equal(rmdir(path), 0);
}

static void end_machines(const pid_t pids[MACHINES])
{
    for (size_t i = 0; i < MACHINES; i++) {
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    }
}

/* What naming_ask_again() says, in a file. */
static void ask_again(struct naming *naming, FILE *into)
{
    int kept = dup(STDERR_FILENO);
    assert_true(dup2(fileno(into), STDERR_FILENO) >= 0);
    naming_ask_again(naming);
    (void)fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
}

static size_t lines_with(FILE *file, const char *part)
{
    char line[512];
    size_t count = 0;
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL) {
        count += strstr(line, part) != NULL;
    }
    (void)fseek(file, 0, SEEK_END);
    return count;
}

TEST(asks_what_a_command_starts_later_and_says_how_many_it_left)
{
    const struct session_targets targets = {0};
    struct naming *naming = NULL;
    pid_t pids[MACHINES];
    FILE *said = tmpfile();
    assert_non_null(said);
    assert_int_equal(naming_new(&targets, getpid(), NULL, &naming), 0);
    begin_machines(pids);
    ask_again(naming, said);
    assert_int_equal(lines_with(said, "has written no map"), NAMING_PROCESSES_MAX / 2);
    assert_int_equal(lines_with(said, "names: 6 more were not asked"), 1);
    ask_again(naming, said); /* nothing new */
    assert_int_equal(lines_with(said, "names: "), NAMING_PROCESSES_MAX / 2 + 1);
    end_machines(pids);
    begin_machines(pids);
    ask_again(naming, said);
    assert_int_equal(lines_with(said, "has written no map"), NAMING_PROCESSES_MAX);
    assert_int_equal(lines_with(said, "more were not asked"), 1);
    end_machines(pids);
    naming = naming_free(naming);
    assert_int_equal(fclose(said), 0);
}

TEST(asks_ever_more_rarely)
{
    struct naming_place place = {.ask = naming_jvm_ask};
    char turns[33] = "";
    for (size_t i = 0; i < sizeof turns - 1; i++) {
        turns[i] = naming_place_takes_turn(&place) ? 'x' : '.';
    }
    assert_string_equal(turns, "xx.x...x.......x...............x");
}
