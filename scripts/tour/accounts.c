/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads move money between accounts. Every one of them waits for the same lock, though few
 * touch the same account.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define THREADS  8
#define ACCOUNTS 1024
#define MOVES    3000000

static struct account {
    int64_t amount;
} accounts[ACCOUNTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

__attribute__((noinline)) static void move(uint32_t from, uint32_t to, int64_t amount)
{
    pthread_mutex_lock(&lock);
    accounts[from].amount -= amount;
    accounts[to].amount += amount;
    pthread_mutex_unlock(&lock);
}

static void *work(void *seed_of)
{
    uint32_t seed = (uint32_t)(uintptr_t)seed_of;
    char name[16];
    (void)snprintf(name, sizeof name, "teller-%u", seed);
    (void)pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < MOVES; i++) {
        move(draw(&seed) % ACCOUNTS, draw(&seed) % ACCOUNTS, draw(&seed) % 100);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int64_t sum = 0;
    for (uintptr_t i = 0; i < THREADS; i++) {
        (void)pthread_create(&threads[i], NULL, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < ACCOUNTS; i++) {
        sum += accounts[i].amount;
    }
    (void)printf("%lld\n", (long long)sum);
}
