#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The collector goes before the programs that it samples, and shares locks with threads that do not. So every lock of the
# daemon is one whose holder inherits the priority of the thread that waits for it: threads_init_lock() makes it. One is
# not: that of the threads that open files, which at a storm of new mappings would go before all else (system.storms).
# The collector never takes it: opener_submit() does without. Nor does it wake threads by a condition, which waits for
# those that were woken before (thread_news.h does not).
. "${0%/*}/lib.sh"

# The lines that make another lock.
find_others() {
    grep -rnE 'PTHREAD_(MUTEX|RWLOCK)_INITIALIZER|pthread_(mutex|rwlock|spin)_init' "$@" | grep -vE '^common/(threads\.h|thread_pool\.c):'
}

# The lines that wake by a condition.
find_conditions() {
    grep -rnE '^[^*]*pthread_cond_(signal|broadcast)' "$@"
}

sample=$(mktemp)
trap 'rm -f "$sample"' EXIT
echo 'static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;' >"$sample"
find_others "$sample" >/dev/null || complain "the check itself: it misses a lock"
others=$(find_others daemon common) && complain "these locks do not inherit (threads_init_lock() makes one that does):
$others"
echo '    (void)pthread_cond_signal(&changed);' >"$sample"
find_conditions "$sample" >/dev/null || complain "the check itself: it misses a condition"
others=$(find_conditions daemon common) && complain "these may wait for the threads that they wake (thread_news_tell() does not):
$others"
awk '/^int opener_submit\(/, /^}/' daemon/modules/opener.c | grep -q 'thread_pool_tell' || complain "opener_submit() is not where it was"
awk '/^int opener_submit\(/, /^}/' daemon/modules/opener.c | grep -q ' lock(' && complain "opener_submit() takes the lock of the threads that open files"
exit "$failed"
