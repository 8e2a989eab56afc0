/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Workers that do not die, since a filesystem does not let go of them; the worker is a stand-in,
 * and so is whose a process is. What is in a file says what becomes of its reader.
 */
#include "module_cache_fixture.h"

#include "dying_workers.h"
#include "fake_elf_worker.h"
#include "process_owner.h"

#include <errno.h>

#define HANGING "hangs"
#define BROKEN  "is no ELF"

static uint32_t owner; /* of the requests from now on */

uint32_t process_owner(int32_t pid)
{
    (void)pid;
    return owner;
}

static void on_sent(struct elf_worker *worker, int fd)
{
    char text[16] = "";
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    worker->hangs = strcmp(text, HANGING) == 0;
    assert_int_equal(eventfd_write(worker->fd, 1), 0);
}

/* The limit of time is not waited for. */
int elf_worker_receive(struct elf_worker *worker, struct elf_worker_table *ret)
{
    eventfd_t count = 0;
    (void)ret;
    if (worker->reads == 0) {
        return -EAGAIN;
    }
    worker->reads = 0;
    assert_int_equal(eventfd_read(worker->fd, &count), 0);
    return worker->hangs ? -EPIPE : -EBADMSG;
}

static int set_up_hangs(void **state)
{
    memset(&workers, 0, sizeof workers);
    return set_up(state);
}

/* What hangs is let go of. */
static int tear_down_hangs(void **state)
{
    workers.filesystem_answers = true;
    return tear_down(state);
}

#define HANG_TEST(name) TEST_OF(struct fixture *fixture, name, set_up_hangs, tear_down_hangs)

/* A user has a file of that content read, which is another one each time. */
static void expect_of(struct fixture *fixture, uint32_t uid, const char *content,
                      enum module_failure failure)
{
    static unsigned number;
    char path[FILE_BYTES];
    owner = uid;
    (void)snprintf(path, sizeof path, "%s/%u", fixture->folder, number++);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    (void)close(fd);
    struct module_query target = of_gone_process(fixture, path);
    expect_failure(fixture, &target, failure);
}

static void hang_two(struct fixture *fixture, uint32_t uid)
{
    expect_of(fixture, uid, HANGING, MODULE_FAILURE_WORKER);
    expect_of(fixture, uid, HANGING, MODULE_FAILURE_WORKER);
}

HANG_TEST(who_has_two_workers_hanging_gets_no_third)
{
    hang_two(fixture, 1000);
    for (size_t i = 0; i < 20; i++) {
        expect_of(fixture, 1000, HANGING, MODULE_FAILURE_LIMIT);
    }
    assert_int_equal(module_cache_counts(fixture->cache).hung_refused_count, 20);
    /* The others have names. */
    expect_of(fixture, 1001, BROKEN, MODULE_FAILURE_UNREADABLE);
    expect_of(fixture, 0, BROKEN, MODULE_FAILURE_UNREADABLE);
    assert_int_equal(module_cache_counts(fixture->cache).hung_refused_count, 20);
    assert_int_equal(workers.started_count, 3);
}

/* The files of the test are on a local filesystem, so all of them are read until the places end. */
HANG_TEST(what_is_local_is_read_to_the_last_place)
{
    for (uint32_t i = 0; i < DYING_WORKERS_MAX / 2 - 1; i++) {
        hang_two(fixture, 1000 + i);
    }
    expect_of(fixture, 2000, BROKEN, MODULE_FAILURE_UNREADABLE);
    assert_int_equal(module_cache_counts(fixture->cache).hung_refused_count, 0);
}

HANG_TEST(keeps_its_last_places_for_what_is_local)
{
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
    workers.filesystem_answers = true;
    dying_workers_look(&dying);
    assert_false(dying_workers_forbid(&dying, 1000, false));
    dying_workers_done(&dying);
}

HANG_TEST(who_has_them_back_is_served_again)
{
    hang_two(fixture, 1000);
    expect_of(fixture, 1000, BROKEN, MODULE_FAILURE_LIMIT);
    workers.filesystem_answers = true;
    step(fixture->cache);
    expect_of(fixture, 1000, BROKEN, MODULE_FAILURE_UNREADABLE);
}
