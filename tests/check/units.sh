#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The units as they are installed: systemd-analyze has nothing to say about them, and rates the exposure of each
# service at 1.5 or less. No service manager runs for that; what the units do, system.service shows. What SECURITY.md
# promises of the daemon's service and no test can wait for (that memory is out, that it was restarted too often) is
# there to the letter, and the system call filter, its groups spelt out, lacks what it promises not to know.
. "${0%/*}/lib.sh"

limit=1.5
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$BUILD_DIR" --prefix "$prefix" >"$prefix/log" 2>&1 || { cat "$prefix/log"; exit 1; }
units=$prefix/lib/systemd/system

# A template is judged as an instance of it. Manual pages are looked for below: man would not find them here.
verify() {
    systemd-analyze verify --man=no "$@" >"$prefix/log" 2>&1 || complain "systemd-analyze verify fails: $*"
    [ ! -s "$prefix/log" ] || complain "systemd-analyze verify $*: $(cat "$prefix/log")"
}

# exposure SERVICE: systemd's number, 0.0 to 10.0.
exposure() {
    systemd-analyze security --no-pager --offline=true "$1" |
        sed -n 's/.*Overall exposure level for [^:]*: \([0-9.]*\) .*/\1/p'
}

cd "$units"
verify ./cpu-profilerd.socket ./cpu-profilerd.service ./cpu-profilerd-record@hourly.service \
    ./cpu-profilerd-record@hourly.timer ./cpu-profilerd-push@hourly.path ./cpu-profilerd-push@hourly.service
while read -r page section; do
    [ -e "$prefix/share/man/man$section/$page.$section" ] || complain "Documentation=: no page $page($section)"
done < <(sed -n 's/^Documentation=man:\(.*\)(\(.*\))$/\1 \2/p' ./* | sort -u)
for service in cpu-profilerd-push@.service cpu-profilerd.service cpu-profilerd-record@.service; do
    measured=$(exposure "./$service")
    echo "$service: exposure $measured"
    awk -v measured="$measured" -v limit="$limit" 'BEGIN { exit !(measured != "" && measured <= limit) }' ||
        complain "$service: an exposure of '$measured', at most $limit"
done

# unheld SERVICE: the settings that are missing in it, and the forbidden calls that its filter knows.
unheld() {
    python3 - "$1" <<'PYTHON'
import re, subprocess, sys
lines = [line.strip() for line in open(sys.argv[1], encoding="utf-8")]
for line in ("MemoryMax=50%", "MemorySwapMax=0", "OOMScoreAdjust=500", "OOMPolicy=continue", "WatchdogSec=20",
             "Restart=on-failure", "StartLimitIntervalSec=60", "StartLimitBurst=5", "LimitCORE=0",
             "MemoryDenyWriteExecute=yes", "RestrictNamespaces=yes", "RestrictSUIDSGID=yes",
             "RestrictAddressFamilies=AF_UNIX"):
    if line not in lines:
        print(line)
groups, allowed = {}, set()
for line in subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True).stdout.splitlines():
    if line.startswith("@"):
        group = groups.setdefault(line.strip(), [])
    elif re.match(r"\s+[@a-z]", line):
        group.append(line.strip())
def calls(name):
    return set().union(*map(calls, groups[name])) if name in groups else {name}
for line in lines:
    if line.startswith("SystemCallFilter="):
        value = line.partition("=")[2]
        named = set().union(*map(calls, value.lstrip("~").split()))
        allowed = allowed - named if value.startswith("~") else allowed | named
if not {"read", "openat", "perf_event_open"} <= allowed:
    print("the filter was not understood:", len(allowed), "calls")
print(*sorted(allowed & {"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "bpf", "mount",
                         "init_module", "reboot", "setuid", "userfaultfd", "vmsplice"}))
PYTHON
}
[ -z "$(unheld cpu-profilerd.service)" ] || complain "cpu-profilerd.service: $(unheld cpu-profilerd.service)"

# What cpu-profilerd-record(8) says of tries, which no test can wait for: each minute, 20 times, in less than the hour of
# the timer; and what is no failure.
for line in RestartSec=60 StartLimitBurst=20 StartLimitIntervalSec=50min SuccessExitStatus=4 RestartPreventExitStatus=78; do
    grep -qx "$line" cpu-profilerd-record@.service || complain "cpu-profilerd-record@.service: has no $line"
done
grep -q 'EXIT_NO_SAMPLE = 4,' "$SOURCE_DIR/client/cli/include/options.h" || complain "cpu-profilerd-record@.service: 4 is no status of record"

# What it would find: an unknown setting, and a right too many.
sed -i 's/^MemorySwapMax=0/MemorySwapMax=1G/; s/^SystemCallFilter=/&@debug /' cpu-profilerd.service
[[ $(unheld cpu-profilerd.service) == MemorySwapMax=0*ptrace* ]] || complain "the check itself: it misses a setting: $(unheld cpu-profilerd.service)"
sed -i 's/^PrivateNetwork=yes/PrivateNetwrok=yes/; s/^CapabilityBoundingSet=.*/CapabilityBoundingSet=~/' cpu-profilerd.service
systemd-analyze verify --man=no ./cpu-profilerd.service 2>&1 | grep -q PrivateNetwrok || complain "the check itself: it finds no mistake"
[ "$(exposure ./cpu-profilerd.service 2>/dev/null | tr -d .)" -gt "${limit/./}" ] || complain "the check itself: it finds no right too many"
exit "$failed"
