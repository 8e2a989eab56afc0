/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Workers that do not die, since a filesystem does not let go of them; the worker is a stand-in,
 * and so is whose a process is. What is in a file says what becomes of who reads it.
 */
#include "module_cache_fixture.h"

#include "dying_workers.h"
#include "process_owner.h"

#include <errno.h>
#include <sys/eventfd.h>

#define HANGING "hangs"
#define BROKEN  "is no ELF"

struct elf_worker {
    int fd;
    bool asked;
    bool hangs;
};

static uint32_t owner; /* of whoever asks now */
static bool filesystem_answers;
static size_t started_count;

uint32_t process_owner(int32_t pid)
{
    (void)pid;
    return owner;
}

int elf_worker_start(const struct elf_worker_config *config, struct elf_worker **ret)
{
    (void)config;
    struct elf_worker *worker = calloc(1, sizeof *worker);
    assert_non_null(worker);
    worker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    started_count++;
    *ret = worker;
    return 0;
}

bool elf_worker_end(struct elf_worker *worker)
{
    if (worker->fd >= 0) {
        (void)close(worker->fd);
        worker->fd = -1;
    }
    return !worker->hangs || filesystem_answers;
}

int elf_worker_take_socket(struct elf_worker *worker)
{
    (void)worker;
    return -1;
}

struct elf_worker *elf_worker_free(struct elf_worker *worker)
{
    if (worker != NULL) {
        (void)elf_worker_end(worker);
        free(worker);
    }
    return NULL;
}

enum elf_worker_trouble elf_worker_trouble(const struct elf_worker *worker)
{
    (void)worker;
    return ELF_WORKER_NO_TROUBLE;
}

int elf_worker_fd(const struct elf_worker *worker)
{
    return worker->fd;
}

pid_t elf_worker_pid(const struct elf_worker *worker)
{
    (void)worker;
    return 1;
}

int elf_worker_send(struct elf_worker *worker, enum elf_worker_request request, int fd,
                    int debug_fd, size_t max_bytes)
{
    char text[16] = "";
    (void)request;
    (void)debug_fd;
    (void)max_bytes;
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    worker->asked = true;
    worker->hangs = strcmp(text, HANGING) == 0;
    assert_int_equal(eventfd_write(worker->fd, 1), 0);
    return 0;
}

int elf_worker_send_map(struct elf_worker *worker, enum elf_worker_request request, int fd,
                        uint32_t known_bytes, size_t max_bytes)
{
    (void)known_bytes;
    return elf_worker_send(worker, request, fd, -1, max_bytes);
}

/* The limit of time is not waited for. */
int elf_worker_receive(struct elf_worker *worker, struct elf_worker_table *ret)
{
    eventfd_t count = 0;
    (void)ret;
    if (!worker->asked) {
        return -EAGAIN;
    }
    worker->asked = false;
    assert_int_equal(eventfd_read(worker->fd, &count), 0);
    return worker->hangs ? -EPIPE : -EBADMSG;
}

/* A user has a file of that content read, which is another one each time. */
static void expect_of(struct fixture *fixture, uint32_t uid, const char *content,
                      enum module_failure failure)
{
    static unsigned number;
    char path[PATH_BYTES + 16];
    owner = uid;
    (void)snprintf(path, sizeof path, "%s/%u", fixture->folder, number++);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    (void)close(fd);
    struct target target = of_gone_process(fixture, path);
    target.query.path = target.path;
    expect_failure(fixture, &target.query, failure);
}

static void who_has_two_workers_hanging_gets_no_third(void **state)
{
    struct fixture *fixture = *state;
    expect_of(fixture, 1000, HANGING, MODULE_FAILURE_WORKER);
    expect_of(fixture, 1000, HANGING, MODULE_FAILURE_WORKER);
    for (size_t i = 0; i < 20; i++) {
        expect_of(fixture, 1000, HANGING, MODULE_FAILURE_LIMIT);
    }
    assert_int_equal(module_cache_counts(fixture->cache).hung_refused_count, 20);
    /* The others have names. */
    expect_of(fixture, 1001, BROKEN, MODULE_FAILURE_UNREADABLE);
    expect_of(fixture, 0, BROKEN, MODULE_FAILURE_UNREADABLE);
    assert_int_equal(module_cache_counts(fixture->cache).hung_refused_count, 20);
    assert_int_equal(started_count, 3);
}

/* The files of the test are on a local filesystem, so all of them are read until the places end. */
static void what_is_local_is_read_to_the_last_place(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < DYING_WORKERS_MAX / 2 - 1; i++) {
        expect_of(fixture, 1000 + i, HANGING, MODULE_FAILURE_WORKER);
        expect_of(fixture, 1000 + i, HANGING, MODULE_FAILURE_WORKER);
    }
    expect_of(fixture, 2000, BROKEN, MODULE_FAILURE_UNREADABLE);
    assert_int_equal(module_cache_counts(fixture->cache).hung_refused_count, 0);
}

static void keeps_its_last_places_for_what_is_local(void **state)
{
    (void)state;
    struct dying_workers dying = {.troubles = 0};
    for (uint32_t i = 0; i < DYING_WORKERS_MAX - DYING_WORKERS_KEPT; i++) {
        struct elf_worker *worker = NULL;
        const uid_t uid = 1000 + i / 2;
        assert_false(dying_workers_forbid(&dying, uid, false));
        assert_int_equal(elf_worker_start(NULL, &worker), 0);
        worker->hangs = true;
        assert_true(dying_workers_reserve(&dying));
        dying_workers_add(&dying, worker, &uid);
    }
    assert_true(dying_workers_forbid(&dying, 2000, false));
    assert_false(dying_workers_forbid(&dying, 2000, true));
    assert_true(dying_workers_forbid(&dying, 1000, true));
    filesystem_answers = true;
    dying_workers_look(&dying);
    assert_false(dying_workers_forbid(&dying, 1000, false));
    dying_workers_done(&dying);
}

static void who_has_them_back_is_served_again(void **state)
{
    struct fixture *fixture = *state;
    expect_of(fixture, 1000, HANGING, MODULE_FAILURE_WORKER);
    expect_of(fixture, 1000, HANGING, MODULE_FAILURE_WORKER);
    expect_of(fixture, 1000, BROKEN, MODULE_FAILURE_LIMIT);
    filesystem_answers = true;
    step(fixture->cache);
    expect_of(fixture, 1000, BROKEN, MODULE_FAILURE_UNREADABLE);
}

static int set_up_hangs(void **state)
{
    filesystem_answers = false;
    started_count = 0;
    return set_up(state);
}

/* What hangs is let go of. */
static int tear_down_hangs(void **state)
{
    filesystem_answers = true;
    return tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_has_two_workers_hanging_gets_no_third, set_up_hangs,
                                        tear_down_hangs),
        cmocka_unit_test_setup_teardown(what_is_local_is_read_to_the_last_place, set_up_hangs,
                                        tear_down_hangs),
        cmocka_unit_test_setup_teardown(keeps_its_last_places_for_what_is_local, set_up_hangs,
                                        tear_down_hangs),
        cmocka_unit_test_setup_teardown(who_has_them_back_is_served_again, set_up_hangs,
                                        tear_down_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
