#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The sandbox of the installed service, as the kernel has it while a session runs: rights, files, network, programs. What
# is refused within it works outside, so that the refusal is the sandbox's. What a setting says is check.units'.
. "${0%/*}/lib.sh"
. "${0%/*}/service_lib.sh"
require_perf
use_build release
require_lab
start_service_lab
lab_as alice sh -c 'cd /home/alice && profctl start -F 99' >"$WORK/out" || fail "start: $(cat "$WORK/out")"
pid=$(service_property MainPID)

root=/proc/$pid/root # the daemon's files, with its mounts

# Rights: the four and no other, now and for ever.
status=$(lab cat "/proc/$pid/status")
has() {
    sed -n "s/^$1:[[:space:]]*//p" <<<"$status"
}
[ "$(has NoNewPrivs)" = 1 ] || fail "the daemon may gain rights"
[ "$(has Seccomp)" = 2 ] || fail "the daemon has no system call filter"
bits=0
for name in $(sed -n 's/^AmbientCapabilities=//p' "$SOURCE_DIR/systemd/cpu-profilerd.service.in") $LIMITS; do
    number=$(python3 -c 'import re, sys; print(re.search(r"#define\s+" + sys.argv[1] + r"\s+(\d+)", open("/usr/include/linux/capability.h").read())[1])' "$name")
    bits=$((bits | 1 << number))
done
for set in CapEff CapPrm CapBnd; do
    [ "$((16#$(has $set)))" -eq "$bits" ] || fail "$set is $(has $set), not $(printf %x "$bits")"
done
lab grep -q . /usr/share/doc/cpu-profilerd/kernel-names.conf || fail "there is no drop-in for the kernel's names"

# Files: nothing can be written, there is no home folder, and no device but the harmless ones.
for folder in / /etc /usr /var /run /var/lib /tmp /var/tmp /dev/shm; do
    lab test -w "$folder" || fail "$folder cannot be written outside either"
    lab touch "$root$folder/x" 2>"$WORK/err" && fail "$folder can be written"
    grep -q 'Read-only file system' "$WORK/err" || fail "$folder: $(cat "$WORK/err")"
done
# mounted OPTION: where the daemon has a mount without it. Of two mounts of one place the later one is what is seen;
# the kernel's own filesystems are no place for files.
mounted() {
    lab cat "/proc/$pid/mountinfo" | awk -v option="$1" '{
        for (i = 7; $i != "-"; i++) ;
        lacks[$5] = ("," $6 ",") !~ ("," option ",") && $(i + 1) !~ /^(proc|sysfs|cgroup2?|devpts|fusectl|bpf|debugfs|tracefs|securityfs|pstore|efivarfs)$/
    } END { for (place in lacks) if (lacks[place]) print place }' | sort | tr '\n' ' '
}
# What may be executed is mounted anew, as it was; root's files those are, and the daemon is not root.
user=(setpriv --reuid=cpu-profilerd --regid=cpu-profilerd --clear-groups)
for place in $(mounted ro); do
    writable=$(lab "${user[@]}" find "$root$place" -writable ! -type l 2>/dev/null)
    [ -z "$writable" ] || fail "the daemon can write to $writable"
done
lab "${user[@]}" find /tmp -maxdepth 0 -writable | grep -q . || fail "its user can write nowhere outside either"
lab test -e /home/alice || fail "there is no home outside either"
lab touch /tmp/outside
seen=$(lab find "$root/home" "$root/tmp" -mindepth 1)
[ -z "$seen" ] || fail "there are homes: $seen"
[ -z "$(lab find "$root/dev/" -type b)" ] || fail "there are block devices"
lab test -e "$root/dev/kmsg" && fail "there is the kernel's log"

# Network: none.
[ "$(lab sed '1,2d; s/:.*//; s/ //g' "/proc/$pid/net/dev")" = lo ] || fail "there is a network: $(lab cat "/proc/$pid/net/dev")"

# Programs: its own alone.
lab "$root/usr/bin/true" 2>"$WORK/err" && fail "another program can be executed"
grep -qi 'permission denied' "$WORK/err" || fail "true: $(cat "$WORK/err")"
for place in $(mounted noexec); do
    [[ " /lib /lib64 /usr/lib /usr/lib64 /usr/sbin/cpu-profilerd /run/systemd/incoming " == *" $place "* ]] || fail "programs in $place can be executed"
done
lab "$root/usr/sbin/cpu-profilerd" --version >/dev/null || fail "it cannot be executed itself"

# Nothing records on its own.
[ -z "$(lab find /var/lib/cpu-profilerd -type f 2>/dev/null)" ] || fail "there are recordings: $(lab find /var/lib/cpu-profilerd)"
lab systemctl list-units --all --no-legend 'cpu-profilerd-record@*' | grep -q . && fail "something records"
lab_as alice profctl close >/dev/null || fail "close"
