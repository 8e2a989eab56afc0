/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bounds of the opener, and a filesystem that never answers: one of the test's own making,
 * whose requests are not served once its single file is known. That part needs root and FUSE.
 */
#include "opener.h"

#include "clock.h"
#include "hanging_fuse.h"
#include "mapped_files.h"
#include "prepared_child.h"

#include <poll.h>

#define WAIT_MS 10000
#define HANG_MS 200 /* where something is to hang */
#define HANG_NS (HANG_MS * NS_PER_MS)

static struct opener_answer wait_for_answer(struct opener *opener)
{
    struct opener_answer answer = {.userdata = NULL};
    struct pollfd readable = {.fd = opener_fd(opener), .events = POLLIN};
    for (int ms = 0; !opener_next(opener, &answer); ms += 50) {
        assert_true(ms < WAIT_MS);
        (void)poll(&readable, 1, 50);
    }
    return answer;
}

static int submit(struct opener *opener, const struct module_query *query,
                  enum module_urgency urgency)
{
    const struct opener_request request = {
        .query = query, .urgency = urgency, .userdata = (void *)(uintptr_t)query};
    return opener_submit(opener, &request);
}

static void submit_many(struct opener *opener, const struct module_query *query, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(submit(opener, query, MODULE_WANTED), 0);
    }
}

/* The next answer is to this query, for a file that was opened or not. */
static struct opener_answer expect_answer(struct opener *opener, const struct module_query *query,
                                          bool opened)
{
    struct opener_answer answer = wait_for_answer(opener);
    assert_ptr_equal(answer.userdata, query);
    assert_int_equal(answer.failure == MODULE_FAILURE_NONE, opened);
    return answer;
}

static void expect_opened(struct opener *opener, const struct module_query *query)
{
    struct opener_answer answer = expect_answer(opener, query, true);
    opener_release(opener, answer.file.fd, answer.uid);
}

/* An opener whose one uid, that of processes which are gone, has as many files open as it may: what
 * is submitted for it waits, and so do `waiting_count` from the beginning. */
struct full {
    struct opener *opener;
    struct module_query query;
    struct module_query own; /* the same file, for another uid */
    int files[OPENER_UID_FILES_MAX];
};

static struct full *begin_full(uint64_t waiting_count)
{
    static struct full full;
    full = (struct full){.query = query_of("/bin/true"), .own = query_of("/bin/true")};
    full.own.pid = getpid();
    assert_int_equal(opener_new(OPENER_HANG_NS, &full.opener), 0);
    submit_many(full.opener, &full.query, OPENER_UID_FILES_MAX + waiting_count);
    for (int i = 0; i < OPENER_UID_FILES_MAX; i++) {
        struct opener_answer answer = expect_answer(full.opener, &full.query, true);
        assert_int_equal(answer.uid, (uid_t)-1);
        full.files[i] = answer.file.fd;
    }
    return &full;
}

static void close_opener(struct opener *opener)
{
    struct opener_answer answer;
    opener_stop(opener);
    while (opener_next(opener, &answer)) {
        if (answer.failure == MODULE_FAILURE_NONE) {
            opener_release(opener, answer.file.fd, answer.uid);
        }
    }
    opener_free(opener);
}

static void end_full(struct full *full)
{
    for (int i = 0; i < OPENER_UID_FILES_MAX; i++) {
        opener_release(full->opener, full->files[i], (uid_t)-1);
    }
    close_opener(full->opener);
}

#define FULL(name) TEST_MADE(struct full *full, name, begin_full(0), end_full)

TEST_MADE(struct full *full, opens_no_more_than_a_share_for_one_uid, begin_full(10), end_full)
{
    struct opener_answer answer;
    (void)poll(NULL, 0, 50);
    assert_false(opener_next(full->opener, &answer));
    /* Another uid's do not wait behind them. */
    submit_many(full->opener, &full->own, 1);
    answer = expect_answer(full->opener, &full->own, true);
    assert_int_equal(answer.uid, getuid());
    opener_release(full->opener, answer.file.fd, answer.uid);

    /* Each one that is released lets one more in. */
    for (int i = 0; i < 10; i++) {
        opener_release(full->opener, full->files[i], (uid_t)-1);
        full->files[i] = wait_for_answer(full->opener).file.fd;
    }
}

/* One more request was for a user that has too many. */
static void expect_refused(struct full *full)
{
    struct opener_answer answer = wait_for_answer(full->opener);
    assert_int_equal(answer.failure, MODULE_FAILURE_LIMIT);
    assert_true(answer.is_refused);
    assert_false(opener_next(full->opener, &answer));
}

FULL(leaves_half_of_its_queue_to_others)
{
    submit_many(full->opener, &full->query, OPENER_REQUESTS_MAX / 2);
    struct opener_answer answer;
    assert_false(opener_next(full->opener, &answer));
    submit_many(full->opener, &full->query, 1);
    expect_refused(full);

    /* Another uid's are taken, and done at once. */
    submit_many(full->opener, &full->own, 1);
    expect_opened(full->opener, &full->own);
}

FULL(counts_a_long_path_as_several_requests)
{
    static char path[4000];
    struct module_query long_query = full->query;
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    long_query.path = path;
    uint64_t weight = 1 + (sizeof path - 1) / OPENER_REQUEST_BYTES;
    submit_many(full->opener, &long_query, OPENER_REQUESTS_MAX / 2 / weight);
    struct opener_answer answer;
    assert_false(opener_next(full->opener, &answer));
    submit_many(full->opener, &long_query, 1);
    expect_refused(full);
}

FULL(opens_what_is_wanted_before_what_may_be)
{
    struct module_query early = full->query;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(submit(full->opener, &early, MODULE_PREFETCH), 0);
    }
    submit_many(full->opener, &full->query, 1);
    opener_release(full->opener, full->files[0], (uid_t)-1);
    full->files[0] = expect_answer(full->opener, &full->query, true).file.fd;
}

static bool become(const void *userdata)
{
    const uid_t *uid = userdata;
    return setresuid(*uid, *uid, *uid) == 0;
}

/* An opener that gives up what hangs, and a filesystem that does. */
struct hang {
    struct fuse fuse;
    struct opener *opener;
    struct module_query hanging;
    struct module_query fine; /* of this process */
};

static struct hang *begin_hang(uint64_t hang_ns, bool opens)
{
    static struct hang hang;
    if (!mount_fuse(&hang.fuse, opens)) {
        skip();
    }
    hang.hanging = query_of(hang.fuse.file);
    hang.fine = query_of("/bin/true");
    hang.fine.pid = getpid();
    assert_int_equal(opener_new(hang_ns, &hang.opener), 0);
    return &hang;
}

static void end_hang(const struct hang *hang)
{
    close_opener(hang->opener);
    unmount_fuse(&hang->fuse);
}

#define HANG(name) TEST_MADE(struct hang *hang, name, begin_hang(HANG_NS, false), end_hang)

HANG(gives_up_a_filesystem_that_does_not_answer)
{
    hang->fine.pid = INT32_MAX; /* which has the uid of what hangs */
    submit_many(hang->opener, &hang->hanging, 1);
    submit_many(hang->opener, &hang->fine, 1);
    expect_opened(hang->opener, &hang->fine);
    struct opener_answer answer = expect_answer(hang->opener, &hang->hanging, false);
    assert_int_equal(answer.failure, MODULE_FAILURE_LIMIT);
    assert_int_equal(opener_hang_count(hang->opener), 1);

    /* It is not touched again, so these fail at once, and all threads but one go on. */
    for (int i = 0; i < 20; i++) {
        submit_many(hang->opener, &hang->hanging, 1);
        assert_int_equal(wait_for_answer(hang->opener).failure, MODULE_FAILURE_LIMIT);
    }
    assert_int_equal(opener_hang_count(hang->opener), 1);
    submit_many(hang->opener, &hang->fine, 1);
    expect_opened(hang->opener, &hang->fine);
    /* One thread still hangs; neither stopping nor freeing waits for it. */
}

/* Requests that come together must not take all threads before the first is given up. */
HANG(leaves_threads_to_others_while_a_uid_hangs)
{
    submit_many(hang->opener, &hang->hanging, UINT64_C(2) * OPENER_THREADS);
    (void)poll(NULL, 0, HANG_MS / 4);
    submit_many(hang->opener, &hang->fine, 1);
    expect_opened(hang->opener, &hang->fine);
    for (int i = 0; i < 2 * OPENER_THREADS; i++) {
        (void)expect_answer(hang->opener, &hang->hanging, false);
    }
    assert_int_equal(opener_hang_count(hang->opener), OPENER_UID_THREADS_MAX);
}

#define ACCOUNTS  (OPENER_THREADS_MAX / OPENER_UID_THREADS_MAX + 1)
#define FIRST_UID 20000

/* Each account takes what it may, and together they take every thread that may hang. */
TEST_MADE(struct hang *hang, opens_local_files_while_everything_else_hangs,
          begin_hang(5 * HANG_NS, false), end_hang)
{
    if (!root_is_local()) {
        end_hang(hang);
        skip();
    }
    static struct module_query hanging[ACCOUNTS];
    for (uid_t i = 0; i < ACCOUNTS; i++) {
        /* A process of that uid, which has mapped nothing of what is asked for. */
        hanging[i] = hang->hanging;
        hanging[i].pid = start_prepared_child(become, &(uid_t){FIRST_UID + i});
        submit_many(hang->opener, &hanging[i], UINT64_C(2) * OPENER_UID_THREADS_MAX);
    }
    /* For each of these, one more that is fine. */
    for (unsigned i = 0; i < 2 * ACCOUNTS * 2 * OPENER_UID_THREADS_MAX; i++) {
        struct opener_answer answer = wait_for_answer(hang->opener);
        if (answer.userdata == &hang->fine) {
            assert_int_equal(answer.failure, MODULE_FAILURE_NONE);
            assert_true(answer.file.is_local);
            opener_release(hang->opener, answer.file.fd, answer.uid);
        } else {
            assert_int_not_equal(answer.failure, MODULE_FAILURE_NONE);
            submit_many(hang->opener, &hang->fine, 1);
        }
    }
    assert_in_range(opener_hang_count(hang->opener), OPENER_UID_THREADS_MAX,
                    OPENER_THREADS_MAX - 1);
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        end_child(hanging[i].pid);
    }
}

/* A path on the way to another filesystem hangs where nothing says so. */
HANG(walks_no_path_over_a_filesystem_that_hangs)
{
    struct module_query across = query_of("/bin/true");
    char path[128];
    (void)snprintf(path, sizeof path, "%s/x/y", hang->fuse.folder);
    across.path = path;
    submit_many(hang->opener, &hang->hanging, 1);
    assert_int_equal(wait_for_answer(hang->opener).failure, MODULE_FAILURE_LIMIT);
    assert_int_equal(opener_hang_count(hang->opener), 1);
    (void)kill(hang->fuse.server, SIGSTOP); /* now lookups hang as well */
    for (int i = 0; i < 20; i++) {
        submit_many(hang->opener, &across, 1);
        assert_int_equal(wait_for_answer(hang->opener).failure, MODULE_FAILURE_LIMIT);
    }
    assert_int_equal(opener_hang_count(hang->opener), 1);
}

TEST(ends_although_a_file_cannot_be_closed)
{
    const struct hang *hang = begin_hang(HANG_NS, true);
    struct opener_answer answers[10];
    submit_many(hang->opener, &hang->hanging, 10);
    for (int i = 0; i < 10; i++) {
        answers[i] = expect_answer(hang->opener, &hang->hanging, true);
    }
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < 10; i++) {
        opener_release(hang->opener, answers[i].file.fd, answers[i].uid);
    }
    /* The end of the threads is waited for, and then no more: the filesystem never answers. */
    close_opener(hang->opener);
    assert_true(clock_ns(CLOCK_MONOTONIC) - begin_ns >= HANG_NS);
    unmount_fuse(&hang->fuse);
}
