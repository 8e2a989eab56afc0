/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each uid has a clock that runs while the worker works for it; the one that is furthest behind is
 * served. A uid that comes, or comes back, starts at the queue's own clock, which is that of the
 * last one served, unless its own is ahead: nobody saves up time by being away, and nobody gets rid
 * of what he has used by going. Those who are behind the queue's clock can be forgotten.
 */
#include "module_queue.h"

#include "cleanup.h"

struct user {
    struct user *next;
    uid_t uid;
    uint64_t clock_ns;
    struct module_load *loads[MODULE_URGENCIES]; /* in the order of their coming */
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
        if (user->loads[i] != NULL) {
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

/* Forgets who has used nothing that counts and, where they are too many, who has used least. */
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

static void append(struct module_load **link, struct module_load *load)
{
    while (*link != NULL) {
        link = &(*link)->next;
    }
    load->next = NULL;
    *link = load;
}

int module_queue_add(struct module_queue *queue, struct module_load *load)
{
    struct user *user = get_user(queue, load->uid);
    if (user == NULL) {
        return -ENOMEM;
    }
    append(&user->loads[load->request.urgency], load);
    return 0;
}

struct module_load *module_queue_first(struct module_queue *queue)
{
    const struct user *first = NULL;
    struct module_load *load = NULL;
    for (size_t i = 0; i < MODULE_URGENCIES && load == NULL; i++) {
        for (const struct user *user = queue->users; user != NULL; user = user->next) {
            if (user->loads[i] != NULL && (load == NULL || user->clock_ns < first->clock_ns)) {
                first = user;
                load = user->loads[i];
            }
        }
    }
    return load;
}

void module_queue_remove(struct module_queue *queue, struct module_load *load)
{
    struct user *user = find_user(queue, load->uid);
    struct module_load **link = &user->loads[load->request.urgency];
    while (*link != load) {
        link = &(*link)->next;
    }
    *link = load->next;
    load->next = NULL;
    if (user->clock_ns > queue->clock_ns) {
        queue->clock_ns = user->clock_ns;
    }
}

bool module_load_is(const struct module_load *load, enum module_table table,
                    const struct file_identity *identity)
{
    return load->request.source != MODULE_KERNEL && load->request.table == table &&
           file_identity_equal(&load->file.identity, identity);
}

static struct module_load *find_load(struct module_load *load, enum module_table table,
                                     const struct file_identity *identity)
{
    while (load != NULL && !module_load_is(load, table, identity)) {
        load = load->next;
    }
    return load;
}

struct module_load *module_queue_find(struct module_queue *queue, enum module_table table,
                                      const struct file_identity *identity)
{
    for (const struct user *user = queue->users; user != NULL; user = user->next) {
        for (size_t i = 0; i < MODULE_URGENCIES; i++) {
            struct module_load *load = find_load(user->loads[i], table, identity);
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
    uint64_t clock_ns = queue->clock_ns;
    module_queue_remove(queue, load);
    queue->clock_ns = clock_ns; /* nobody was served */
    load->request.urgency = MODULE_WANTED;
    append(&find_user(queue, load->uid)->loads[MODULE_WANTED], load);
}

void module_queue_charge(struct module_queue *queue, uid_t uid, uint64_t time_ns)
{
    struct user *user = find_user(queue, uid);
    if (user != NULL) {
        user->clock_ns += time_ns;
    }
    forget_idle(queue);
}
