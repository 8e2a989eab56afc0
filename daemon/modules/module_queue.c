/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fair queueing by worker time. Each uid has a clock that advances by the worker time that it uses.
 * The next file is of the uid whose clock will be lowest after that file. The queue's clock is that
 * of the uid served last. A uid that returns starts at the queue's clock or at its own, whichever
 * is later: absence neither saves time up nor clears what was used. A uid whose clock is not ahead
 * of the queue's can be forgotten, also while a worker reads for it.
 */
#include "module_queue.h"

#include "cleanup.h"
#include "module_ticket.h"

/* A load's place in the queue of one user. */
struct module_claim {
    struct module_claim *next;         /* of the user, while the load waits */
    struct module_claim *next_of_load; /* of other users */
    struct module_load *load;
    uid_t uid;
};

struct user {
    struct user *next;
    uid_t uid;
    uint64_t clock_ns;
    struct module_claim *claims[MODULE_URGENCIES]; /* by rising due_ns() of their loads */
};

struct module_queue {
    struct user *users;
    size_t user_count;
    uint64_t clock_ns;
};

struct module_queue *module_queue_new(void)
{
    return calloc(1, sizeof(struct module_queue));
}

struct module_queue *module_queue_free(struct module_queue *queue)
{
    while (queue != NULL && queue->users != NULL) {
        struct user *user = queue->users;
        queue->users = user->next;
        free(user);
    }
    free(queue);
    return NULL;
}

static bool is_idle(const struct user *user)
{
    for (size_t i = 0; i < MODULE_URGENCIES; i++) {
        if (user->claims[i] != NULL) {
            return false;
        }
    }
    return true;
}

static void forget_user(struct module_queue *queue, struct user **link)
{
    struct user *user = *link;
    *link = user->next;
    queue->user_count--;
    free(user);
}

/* Forgets idle users that are not ahead of the queue's clock and, where there are too many, the one
 * that is least ahead. */
static void forget_idle(struct module_queue *queue)
{
    struct user **least = NULL;
    struct user **link = &queue->users;
    while (*link != NULL) {
        if (!is_idle(*link)) {
            link = &(*link)->next;
        } else if ((*link)->clock_ns <= queue->clock_ns) {
            forget_user(queue, link);
        } else {
            least = least == NULL || (*link)->clock_ns < (*least)->clock_ns ? link : least;
            link = &(*link)->next;
        }
    }
    if (least != NULL && queue->user_count > MODULE_QUEUE_USERS_MAX) {
        forget_user(queue, least);
    }
}

static struct user *find_user(const struct module_queue *queue, uid_t uid)
{
    struct user *user = queue->users;
    while (user != NULL && user->uid != uid) {
        user = user->next;
    }
    return user;
}

static struct user *get_user(struct module_queue *queue, uid_t uid)
{
    struct user *user = find_user(queue, uid);
    if (user == NULL) {
        user = calloc(1, sizeof *user);
        if (user == NULL) {
            return NULL;
        }
        user->uid = uid;
        user->next = queue->users;
        queue->users = user;
        queue->user_count++;
    }
    if (is_idle(user) && user->clock_ns < queue->clock_ns) {
        user->clock_ns = queue->clock_ns;
    }
    return user;
}

static uint64_t due_ns(const struct module_load *load)
{
    uint64_t spare_ns = load->request.table == MODULE_SYMBOLS ? MODULE_QUEUE_NAMES_SPARE_NS : 0;
    return load->arrived_ns + load->expected_ns + spare_ns;
}

/* Inserts by due time, behind equal ones. */
static void insert(struct module_claim **link, struct module_claim *claim)
{
    while (*link != NULL && due_ns((*link)->load) <= due_ns(claim->load)) {
        link = &(*link)->next;
    }
    claim->next = *link;
    *link = claim;
}

/* Puts the claim of a waiting load into its user's queue. */
static int stand(struct module_queue *queue, struct module_claim *claim)
{
    struct user *user = get_user(queue, claim->uid);
    if (user == NULL) {
        return -ENOMEM;
    }
    insert(&user->claims[claim->load->request.urgency], claim);
    return 0;
}

/* Takes the claim out of that queue. */
static void leave(struct module_queue *queue, const struct module_claim *claim)
{
    struct user *user = find_user(queue, claim->uid);
    struct module_claim **link = user == NULL ? NULL : &user->claims[claim->load->request.urgency];
    while (link != NULL && *link != NULL) {
        if (*link == claim) {
            *link = claim->next;
            return;
        }
        link = &(*link)->next;
    }
}

static struct module_claim **find_claim(struct module_load *load, uid_t uid)
{
    struct module_claim **link = &load->claims;
    while (*link != NULL && (*link)->uid != uid) {
        link = &(*link)->next_of_load;
    }
    return link;
}

int module_queue_claim(struct module_queue *queue, struct module_load *load, uid_t uid)
{
    struct module_claim **link = find_claim(load, uid);
    if (*link != NULL) {
        return 0;
    }
    struct module_claim *claim = calloc(1, sizeof *claim);
    if (claim == NULL) {
        return -ENOMEM;
    }
    claim->load = load;
    claim->uid = uid;
    if (load->is_waiting && stand(queue, claim) < 0) {
        free(claim);
        return -ENOMEM;
    }
    *link = claim;
    return 0;
}

bool module_queue_unclaim(struct module_queue *queue, struct module_load *load, uid_t uid)
{
    struct module_claim **link = find_claim(load, uid);
    struct module_claim *claim = *link;
    if (claim != NULL) {
        leave(queue, claim);
        *link = claim->next_of_load;
        free(claim);
    }
    return load->claims == NULL;
}

static bool has_ticket_of(const struct module_load *load, uid_t uid)
{
    const struct module_ticket *ticket = load->tickets;
    while (ticket != NULL && ticket->uid != uid) {
        ticket = ticket->next;
    }
    return ticket != NULL;
}

void module_queue_review(struct module_queue *queue, struct module_load *load)
{
    struct module_claim *next = NULL;
    for (struct module_claim *claim = load->claims; claim != NULL; claim = next) {
        next = claim->next_of_load;
        if (!has_ticket_of(load, claim->uid)) {
            (void)module_queue_unclaim(queue, load, claim->uid);
        }
    }
}

void module_load_free_claims(struct module_load *load)
{
    while (load->claims != NULL) {
        struct module_claim *claim = load->claims;
        load->claims = claim->next_of_load;
        free(claim);
    }
}

int module_queue_add(struct module_queue *queue, struct module_load *load)
{
    bool waits = false;
    for (struct module_claim *claim = load->claims; claim != NULL; claim = claim->next_of_load) {
        waits = stand(queue, claim) == 0 || waits;
    }
    load->is_waiting = waits;
    return waits ? 0 : -ENOMEM;
}

static bool is_busy(const struct module_turn *turn, uid_t uid)
{
    bool is_busy = false;
    for (size_t i = 0; i < turn->busy_count; i++) {
        is_busy = is_busy || turn->busy[i] == uid;
    }
    return is_busy;
}

/* The first of a user's loads that may be begun, or NULL. */
static struct module_load *first_of(const struct user *user, size_t urgency,
                                    const struct module_turn *turn)
{
    const struct module_claim *claim = user->claims[urgency];
    while (claim != NULL && turn->is_for_second && claim->load->is_for_first) {
        claim = claim->next;
    }
    return claim == NULL ? NULL : claim->load;
}

/* The first load among the busy accounts, or among the others. */
static struct module_load *first_among(const struct module_queue *queue, size_t urgency,
                                       const struct module_turn *turn, bool busy, uid_t *ret_uid)
{
    struct module_load *first = NULL;
    uint64_t first_ns = 0;
    for (const struct user *user = queue->users; user != NULL; user = user->next) {
        struct module_load *load =
            is_busy(turn, user->uid) == busy ? first_of(user, urgency, turn) : NULL;
        uint64_t clock_ns = load == NULL ? 0 : user->clock_ns + load->expected_ns;
        if (load != NULL && (first == NULL || clock_ns < first_ns ||
                             (clock_ns == first_ns && due_ns(load) < due_ns(first)))) {
            first = load;
            first_ns = clock_ns;
            *ret_uid = user->uid;
        }
    }
    return first;
}

struct module_load *module_queue_first(struct module_queue *queue, const struct module_turn *turn,
                                       uid_t *ret_uid)
{
    struct module_load *first = NULL;
    uid_t uid = 0;
    for (size_t i = 0; i < MODULE_URGENCIES && first == NULL; i++) {
        first = first_among(queue, i, turn, false, &uid);
        if (first == NULL && i == MODULE_WANTED) {
            first = first_among(queue, i, turn, true, &uid);
        }
    }
    if (first != NULL && ret_uid != NULL) {
        *ret_uid = uid;
    }
    return first;
}

void module_queue_remove(struct module_queue *queue, struct module_load *load)
{
    for (const struct module_claim *claim = load->claims; claim != NULL;
         claim = claim->next_of_load) {
        leave(queue, claim);
    }
    load->is_waiting = false;
}

void module_queue_serve(struct module_queue *queue, struct module_load *load, uid_t uid)
{
    const struct user *user = find_user(queue, uid);
    module_queue_remove(queue, load);
    if (user != NULL && user->clock_ns > queue->clock_ns) {
        queue->clock_ns = user->clock_ns;
    }
}

bool module_load_is(const struct module_load *load, enum module_table table,
                    const struct file_identity *identity)
{
    bool has_table =
        load->request.table == table || (table == MODULE_SYMBOLS && load->then_symbols);
    return load->request.source != MODULE_KERNEL && has_table &&
           file_identity_equal(&load->file.identity, identity);
}

static struct module_load *find_load(const struct module_claim *claim, enum module_table table,
                                     const struct file_identity *identity)
{
    while (claim != NULL && !module_load_is(claim->load, table, identity)) {
        claim = claim->next;
    }
    return claim == NULL ? NULL : claim->load;
}

struct module_load *module_queue_find(struct module_queue *queue, enum module_table table,
                                      const struct file_identity *identity)
{
    for (const struct user *user = queue->users; user != NULL; user = user->next) {
        for (size_t i = 0; i < MODULE_URGENCIES; i++) {
            struct module_load *load = find_load(user->claims[i], table, identity);
            if (load != NULL) {
                return load;
            }
        }
    }
    return NULL;
}

void module_queue_want(struct module_queue *queue, struct module_load *load)
{
    if (load->request.urgency == MODULE_WANTED) {
        return;
    }
    for (struct module_claim *claim = load->claims; claim != NULL; claim = claim->next_of_load) {
        struct user *user = find_user(queue, claim->uid);
        if (user != NULL) {
            leave(queue, claim);
            insert(&user->claims[MODULE_WANTED], claim);
        }
    }
    load->request.urgency = MODULE_WANTED;
}

void module_queue_charge(struct module_queue *queue, uid_t uid, uint64_t time_ns)
{
    struct user *user = get_user(queue, uid);
    if (user != NULL) {
        user->clock_ns += time_ns;
    }
    forget_idle(queue);
}
