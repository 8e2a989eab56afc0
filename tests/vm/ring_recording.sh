#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes tests/data/rings/deferred.rings, which unit.deferred_write plays: a second and a half of this kernel's rings,
# with a program that is half of its time in the kernel and goes from CPU to CPU, and one whose children
# execute and exit. It is left in $RESULTS. What is recorded says where programs lie, so they lie in /tmp.
. "${0%/*}/../system/lib.sh"
require_perf
[ -n "${RESULTS:-}" ] || skip "changes where pids go on: run it by scripts/test-vm.sh"
# Pids that no machine has, since the player of the recording looks into its own /proc.
echo 4194304 >/proc/sys/kernel/pid_max
echo 4100000 >/proc/sys/kernel/ns_last_pid
mkdir "$WORK/bin"
cp "$WORKLOADS/kernel_entries" "$WORKLOADS/forker" "$WORKLOADS/brief" "$BUILD_DIR/bin/ring_recorder" "$WORK/bin/"
mv "$WORK/bin" /tmp/programs

run_in_background sh -c 'while :; do /tmp/programs/forker --seconds 0.2; done >/dev/null'
run_in_background sh -c 'while :; do /tmp/programs/kernel_entries --seconds 0.5; done >/dev/null'
sleep 0.3
/tmp/programs/ring_recorder "$WORK/deferred.rings" 5000000 50 30 || fail "the recorder failed"
[ "$(head -c 8 "$WORK/deferred.rings")" = perfring ] || fail "no recording"
cp "$WORK/deferred.rings" "$RESULTS/"
ls -l "$WORK/deferred.rings"
