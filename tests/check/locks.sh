#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The collector goes before the programs that it samples, and shares locks with threads that do not. So every lock of the
# daemon is one whose holder inherits the priority of the thread that waits for it: threads_init_lock() makes it. One is
# not: that of the threads that open files, which at a storm of new mappings would go before all else (system.storms).
. "${0%/*}/lib.sh"

# The lines that make another lock.
find_others() {
    grep -rnE 'PTHREAD_(MUTEX|RWLOCK)_INITIALIZER|pthread_(mutex|rwlock|spin)_init' "$@" | grep -vE '^common/(threads\.h|thread_pool\.c):'
}

sample=$(mktemp)
trap 'rm -f "$sample"' EXIT
echo 'static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;' >"$sample"
find_others "$sample" >/dev/null || complain "the check itself: it misses a lock"
others=$(find_others daemon common) && complain "these locks do not inherit (threads_init_lock() makes one that does):
$others"
exit "$failed"
