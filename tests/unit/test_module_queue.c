/* SPDX-License-Identifier: Apache-2.0 */

/* Whose turn it is, with users whose files take any time they like. */
#include "module_queue.h"

#include "module_ticket.h"
#include "unit_test.h"

#define LOADS 4096

static const struct module_turn any = {.busy_count = 0};
static struct module_load loads[LOADS];
static size_t load_count;

static struct module_load *add_load(struct module_queue *queue, const struct module_load *load)
{
    struct module_load *added = &loads[load_count++ % LOADS];
    *added = *load;
    added->file.identity.inode = load_count;
    assert_int_equal(module_queue_claim(queue, added, added->uid), 0);
    assert_int_equal(module_queue_add(queue, added), 0);
    return added;
}

static struct module_load *add(struct module_queue *queue, uid_t uid, enum module_urgency urgency)
{
    return add_load(queue, &(struct module_load){.uid = uid, .request.urgency = urgency});
}

static struct module_load *add_expected(struct module_queue *queue, uid_t uid, uint64_t arrived_ns,
                                        uint64_t expected_ns)
{
    return add_load(queue, &(struct module_load){
                               .uid = uid, .arrived_ns = arrived_ns, .expected_ns = expected_ns});
}

static void expect_first(struct module_queue *queue, const struct module_load *load)
{
    assert_ptr_equal(module_queue_first(queue, &any, NULL), load);
}

/* It is the first, and goes. */
static void take_first(struct module_queue *queue, struct module_load *load)
{
    expect_first(queue, load);
    module_queue_remove(queue, load);
    module_load_free_claims(load);
}

/* Serves the first load for some time; whose it was. */
static uid_t serve(struct module_queue *queue, uint64_t time_ns)
{
    uid_t uid = 0;
    struct module_load *load = module_queue_first(queue, &any, &uid);
    assert_non_null(load);
    module_queue_serve(queue, load, uid);
    module_load_free_claims(load);
    module_queue_charge(queue, uid, time_ns);
    return uid;
}

static void drain(struct module_queue *queue)
{
    for (struct module_load *load; (load = module_queue_first(queue, &any, NULL)) != NULL;) {
        module_queue_remove(queue, load);
        module_load_free_claims(load);
    }
    module_queue_free(queue);
}

#define QUEUE(name) TEST_MADE(struct module_queue *queue, name, module_queue_new(), drain)

/* Ten seconds for one file of uid 1 buy a thousand files of ten milliseconds for the others. */
QUEUE(makes_users_of_slow_files_wait_for_the_others)
{
    uint64_t used_ns[3] = {0};
    uid_t last = 0;
    for (uid_t uid = 0; uid < 3; uid++) {
        add(queue, uid, MODULE_WANTED);
    }
    for (int i = 0; i < 5000; i++) {
        uint64_t time_ns = module_queue_first(queue, &any, NULL)->uid == 1 ? 10000000000 : 10000000;
        uid_t uid = serve(queue, time_ns);
        assert_false(uid == 1 && last == 1);
        used_ns[uid] += time_ns;
        last = uid;
        add(queue, uid, MODULE_WANTED);
    }
    assert_in_range(used_ns[1], 10000000000, used_ns[2] + 10000000000);
    assert_in_range(used_ns[0], used_ns[2] - 20000000, used_ns[2] + 20000000);
}

QUEUE(forgets_no_debt_of_one_who_goes_and_comes_back)
{
    add(queue, 1, MODULE_WANTED);
    assert_int_equal(serve(queue, 1000000), 1);
    add(queue, 1, MODULE_WANTED);
    for (int i = 0; i < 1000; i++) {
        add(queue, 2, MODULE_WANTED);
        assert_int_equal(serve(queue, 1000), 2);
    }
    add(queue, 2, MODULE_WANTED);
    module_queue_charge(queue, 2, 1);
    assert_int_equal(serve(queue, 1000), 1);
}

QUEUE(gives_a_newcomer_no_time_for_his_absence)
{
    for (int i = 0; i < 100; i++) {
        add(queue, 1, MODULE_WANTED);
        assert_int_equal(serve(queue, 1000000), 1);
    }
    for (int i = 0; i < 10; i++) {
        add(queue, 1, MODULE_WANTED);
        add(queue, 2, MODULE_WANTED);
    }
    size_t served[3] = {0};
    for (int i = 0; i < 10; i++) {
        served[serve(queue, 1000000)]++;
    }
    assert_in_range(served[2], 4, 6);
}

QUEUE(serves_what_is_wanted_first_and_moves_up_what_becomes_so)
{
    struct module_load *early = add(queue, 1, MODULE_PREFETCH);
    struct module_load *late = add(queue, 1, MODULE_PREFETCH);
    struct module_load *wanted = add(queue, 2, MODULE_WANTED);
    take_first(queue, wanted);
    expect_first(queue, early);
    module_queue_want(queue, late);
    expect_first(queue, late);
    assert_ptr_equal(module_queue_find(queue, MODULE_SYMBOLS, &late->file.identity), late);
    assert_ptr_equal(module_queue_find(queue, MODULE_SYMBOLS, &early->file.identity), early);
    assert_null(module_queue_find(queue, MODULE_SYMBOLS, &wanted->file.identity));
}

/* A file passes another one of its account for as long as that is expected to take, no longer. */
QUEUE(lets_quick_files_pass_for_a_while)
{
    struct module_load *slow = add_expected(queue, 1, 0, 1000);
    struct module_load *quick = add_expected(queue, 1, 900, 50);
    struct module_load *late = add_expected(queue, 1, 960, 50);
    take_first(queue, quick);
    take_first(queue, slow);
    expect_first(queue, late);
}

/* Among accounts that had the same the one with the quicker file is next, then the one that came
 * first. */
QUEUE(serves_the_quicker_of_two_accounts)
{
    add_expected(queue, 1, 0, 1000);
    add_expected(queue, 2, 10, 100);
    add_expected(queue, 3, 5, 100);
    assert_int_equal(serve(queue, 100), 3);
    assert_int_equal(serve(queue, 100), 2);
    assert_int_equal(serve(queue, 100), 1);
}

/* An account that a worker reads for: what samples of others wait for is first, its own is next,
 * and what no sample waits for stays. */
QUEUE(begins_little_of_a_busy_account)
{
    const struct module_turn turn = {.busy_count = 1, .busy = {1}};
    uid_t uid = 0;
    struct module_load *ahead = add(queue, 1, MODULE_PREFETCH);
    assert_null(module_queue_first(queue, &turn, &uid));
    struct module_load *others_ahead = add(queue, 2, MODULE_PREFETCH);
    assert_ptr_equal(module_queue_first(queue, &turn, &uid), others_ahead);
    struct module_load *wanted = add(queue, 1, MODULE_WANTED);
    module_queue_charge(queue, 2, 1000);
    assert_ptr_equal(module_queue_first(queue, &turn, &uid), wanted);
    assert_int_equal(uid, 1);
    struct module_load *others = add(queue, 2, MODULE_WANTED);
    assert_ptr_equal(module_queue_first(queue, &turn, &uid), others);
    assert_int_equal(uid, 2);
    assert_ptr_equal(module_queue_first(queue, &any, &uid), wanted);
    assert_int_equal(ahead->request.urgency, MODULE_PREFETCH);
}

/* One account wants a file first, and is not served; others want it as well. */
QUEUE(serves_a_file_by_the_earliest_turn_of_all_who_want_it)
{
    const struct module_turn turn = {.busy_count = 1, .busy = {1}};
    uid_t uid = 0;
    struct module_load *load = add(queue, 1, MODULE_PREFETCH);
    assert_null(module_queue_first(queue, &turn, &uid));
    assert_int_equal(module_queue_claim(queue, load, 2), 0);
    assert_int_equal(module_queue_claim(queue, load, 2), 0);
    module_queue_want(queue, load);
    assert_ptr_equal(module_queue_first(queue, &turn, &uid), load);
    assert_int_equal(uid, 2);
    /* With a worker, and back. */
    module_queue_serve(queue, load, uid);
    assert_null(module_queue_first(queue, &any, NULL));
    assert_int_equal(module_queue_claim(queue, load, 3), 0);
    assert_null(module_queue_first(queue, &any, NULL));
    module_queue_charge(queue, 2, 1000);
    assert_int_equal(module_queue_add(queue, load), 0);
    assert_ptr_equal(module_queue_first(queue, &turn, &uid), load);
    assert_int_equal(uid, 3);
    assert_false(module_queue_unclaim(queue, load, 3));
    assert_false(module_queue_unclaim(queue, load, 1));
    assert_ptr_equal(module_queue_first(queue, &any, &uid), load);
    assert_int_equal(uid, 2);
    assert_true(module_queue_unclaim(queue, load, 2));
    assert_null(module_queue_first(queue, &any, NULL));
}

/* What another worker has done in the meantime does not wipe out what is being used. */
QUEUE(charges_a_user_who_was_forgotten_meanwhile)
{
    uid_t uid = 0;
    struct module_load *slow = add(queue, 1, MODULE_WANTED);
    assert_ptr_equal(module_queue_first(queue, &any, &uid), slow);
    module_queue_serve(queue, slow, uid);
    module_load_free_claims(slow);
    add(queue, 2, MODULE_WANTED);
    assert_int_equal(serve(queue, 10), 2);
    module_queue_charge(queue, 1, 1000000);
    add(queue, 1, MODULE_WANTED);
    add(queue, 2, MODULE_WANTED);
    assert_int_equal(serve(queue, 10), 2);
}

QUEUE(remembers_a_bounded_number_of_users)
{
    /* Each is ahead of the queue's clock when it goes; the first must be known still. */
    for (uid_t uid = 1; uid < 10 * MODULE_QUEUE_USERS_MAX; uid++) {
        add(queue, uid, MODULE_WANTED);
        assert_int_equal(serve(queue, uid == 1 ? 1000000 : 1000), uid);
    }
    add(queue, 1, MODULE_WANTED);
    add(queue, 99999, MODULE_WANTED);
    assert_int_equal(serve(queue, 1), 99999);
}

TEST(a_load_for_two_tables_is_found_for_both)
{
    const struct file_identity identity = {.inode = 1};
    struct module_load load = {.request.table = MODULE_CFI, .file.identity = identity};
    assert_true(module_load_is(&load, MODULE_CFI, &identity));
    assert_false(module_load_is(&load, MODULE_SYMBOLS, &identity));
    load.then_symbols = true;
    assert_true(module_load_is(&load, MODULE_CFI, &identity));
    assert_true(module_load_is(&load, MODULE_SYMBOLS, &identity));
    assert_false(module_load_is(&load, MODULE_CODE, &identity));
}

TEST(an_account_that_has_its_table_waits_for_no_other)
{
    struct module_queue *queue = module_queue_new();
    struct module_ticket ticket = {.uid = 2};
    struct module_load load = {.tickets = &ticket};
    for (uid_t uid = 1; uid <= 3; uid++) {
        assert_int_equal(module_queue_claim(queue, &load, uid), 0);
    }
    module_queue_review(queue, &load);
    assert_int_equal(module_queue_add(queue, &load), 0);
    uid_t uid = 0;
    assert_ptr_equal(module_queue_first(queue, &any, &uid), &load);
    assert_int_equal(uid, 2);
    assert_true(module_queue_unclaim(queue, &load, 2));
    module_queue_free(queue);
}
