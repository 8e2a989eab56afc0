/* SPDX-License-Identifier: Apache-2.0 */

/* Whose turn it is, with users whose files take any time they like. */
#include "module_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LOADS 4096

static const struct module_turn any = {.busy_count = 0};
static struct module_load loads[LOADS];
static size_t load_count;

static struct module_load *add(struct module_queue *queue, uid_t uid, enum module_urgency urgency)
{
    struct module_load *load = &loads[load_count++ % LOADS];
    *load = (struct module_load){
        .uid = uid, .request.urgency = urgency, .file.identity.inode = load_count};
    assert_int_equal(module_queue_claim(queue, load, uid), 0);
    assert_int_equal(module_queue_add(queue, load), 0);
    return load;
}

static struct module_load *add_expected(struct module_queue *queue, uid_t uid, uint64_t arrived_ns,
                                        uint64_t expected_ns)
{
    struct module_load *load = &loads[load_count++ % LOADS];
    *load = (struct module_load){.uid = uid,
                                 .arrived_ns = arrived_ns,
                                 .expected_ns = expected_ns,
                                 .is_for_first = uid > 100};
    assert_int_equal(module_queue_claim(queue, load, uid), 0);
    assert_int_equal(module_queue_add(queue, load), 0);
    return load;
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

static void serves_each_of_three_uids(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
    size_t served[3] = {0};
    for (uid_t uid = 0; uid < 3; uid++) {
        add(queue, uid, MODULE_WANTED);
        add(queue, uid, MODULE_WANTED);
    }
    for (int i = 0; i < 300; i++) {
        uid_t uid = serve(queue, 1000);
        served[uid]++;
        add(queue, uid, MODULE_WANTED);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(served[i], 100);
    }
    drain(queue);
}

/* Ten seconds for one file of uid 1 buy a thousand files of ten milliseconds for the others. */
static void makes_users_of_slow_files_wait_for_the_others(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
    uint64_t used_ns[4] = {0};
    uid_t last = 0;
    for (uid_t uid = 1; uid < 4; uid++) {
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
    assert_in_range(used_ns[3], used_ns[2] - 20000000, used_ns[2] + 20000000);
    drain(queue);
}

static void forgets_no_debt_of_one_who_goes_and_comes_back(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
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
    drain(queue);
}

static void gives_a_newcomer_no_time_for_his_absence(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
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
    drain(queue);
}

static void serves_what_is_wanted_first_and_moves_up_what_becomes_so(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
    struct module_load *early = add(queue, 1, MODULE_PREFETCH);
    struct module_load *late = add(queue, 1, MODULE_PREFETCH);
    struct module_load *wanted = add(queue, 2, MODULE_WANTED);
    assert_ptr_equal(module_queue_first(queue, &any, NULL), wanted);
    module_queue_remove(queue, wanted);
    module_load_free_claims(wanted);
    assert_ptr_equal(module_queue_first(queue, &any, NULL), early);
    module_queue_want(queue, late);
    assert_ptr_equal(module_queue_first(queue, &any, NULL), late);
    assert_ptr_equal(module_queue_find(queue, MODULE_SYMBOLS, &late->file.identity), late);
    assert_ptr_equal(module_queue_find(queue, MODULE_SYMBOLS, &early->file.identity), early);
    assert_null(module_queue_find(queue, MODULE_SYMBOLS, &wanted->file.identity));
    drain(queue);
}

/* A file passes another one of its account for as long as that is expected to take, no longer. */
static void lets_quick_files_pass_for_a_while(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
    struct module_load *slow = add_expected(queue, 1, 0, 1000);
    struct module_load *quick = add_expected(queue, 1, 900, 50);
    struct module_load *late = add_expected(queue, 1, 960, 50);
    assert_ptr_equal(module_queue_first(queue, &any, NULL), quick);
    module_queue_remove(queue, quick);
    module_load_free_claims(quick);
    assert_ptr_equal(module_queue_first(queue, &any, NULL), slow);
    module_queue_remove(queue, slow);
    module_load_free_claims(slow);
    assert_ptr_equal(module_queue_first(queue, &any, NULL), late);
    drain(queue);
}

/* Among accounts that had the same the one with the quicker file is next, then who came first. */
static void serves_the_quicker_of_two_accounts(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
    add_expected(queue, 1, 0, 1000);
    add_expected(queue, 2, 10, 100);
    add_expected(queue, 3, 5, 100);
    assert_int_equal(serve(queue, 100), 3);
    assert_int_equal(serve(queue, 100), 2);
    assert_int_equal(serve(queue, 100), 1);
    drain(queue);
}

static void begins_what_the_turn_allows(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
    const struct module_turn second = {.is_for_second = true};
    struct module_load *large = add_expected(queue, 101, 0, 0);
    struct module_load *other = add_expected(queue, 2, 10, 10);
    assert_true(large->is_for_first);
    assert_ptr_equal(module_queue_first(queue, &any, NULL), large);
    assert_ptr_equal(module_queue_first(queue, &second, NULL), other);
    drain(queue);
}

/* An account that a worker reads for: what samples of others wait for is first, its own is next,
 * and what no sample waits for stays. */
static void begins_little_of_a_busy_account(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
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
    drain(queue);
}

/* One account wants a file first, and is not served; others want it as well. */
static void serves_a_file_by_the_earliest_turn_of_all_who_want_it(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
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
    drain(queue);
}

/* What another worker has done in the meantime does not wipe out what is being used. */
static void charges_a_user_who_was_forgotten_meanwhile(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
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
    drain(queue);
}

static void remembers_a_bounded_number_of_users(void **state)
{
    (void)state;
    struct module_queue *queue = module_queue_new();
    /* Each is ahead of the queue's clock when it goes; the first must be known still. */
    for (uid_t uid = 1; uid < 10 * MODULE_QUEUE_USERS_MAX; uid++) {
        add(queue, uid, MODULE_WANTED);
        assert_int_equal(serve(queue, uid == 1 ? 1000000 : 1000), uid);
    }
    add(queue, 1, MODULE_WANTED);
    add(queue, 99999, MODULE_WANTED);
    assert_int_equal(serve(queue, 1), 99999);
    drain(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_each_of_three_uids),
        cmocka_unit_test(makes_users_of_slow_files_wait_for_the_others),
        cmocka_unit_test(forgets_no_debt_of_one_who_goes_and_comes_back),
        cmocka_unit_test(gives_a_newcomer_no_time_for_his_absence),
        cmocka_unit_test(serves_what_is_wanted_first_and_moves_up_what_becomes_so),
        cmocka_unit_test(lets_quick_files_pass_for_a_while),
        cmocka_unit_test(serves_the_quicker_of_two_accounts),
        cmocka_unit_test(begins_what_the_turn_allows),
        cmocka_unit_test(begins_little_of_a_busy_account),
        cmocka_unit_test(serves_a_file_by_the_earliest_turn_of_all_who_want_it),
        cmocka_unit_test(charges_a_user_who_was_forgotten_meanwhile),
        cmocka_unit_test(remembers_a_bounded_number_of_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
