#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The default config is taken on a machine of 256 CPUs, and what was cut is in the reply, in Status and in the file. The
# machine is this one under another list of CPUs, in mount namespaces of its own: the CPUs that are not there fail to
# open like CPUs that went offline. Less memory than this machine's cannot be shown to a daemon in this way;
# unit.perf_plan has those machines (8 CPUs with 1 GiB among them).
if [ "$(id -u)" -eq 0 ] && [ -z "${MANY_CPUS_NAMESPACE:-}" ]; then
    MANY_CPUS_NAMESPACE=1 exec unshare --mount --propagation private bash "$0" "$@"
fi
. "${0%/*}/lib.sh"
require_perf
[ "$(id -u)" -eq 0 ] || skip "mounting needs root"
use_build release

echo 0-255 >"$WORK/cpus"
for list in online present possible; do
    mount --bind "$WORK/cpus" "/sys/devices/system/cpu/$list" || skip "a list of CPUs cannot be mounted over"
done
at_end umount /sys/devices/system/cpu/online /sys/devices/system/cpu/present /sys/devices/system/cpu/possible
start_daemon

room=$(awk '/^MemTotal:/ { mib = int($2 / 1024 / 32) ; print mib < 512 ? mib : 512 }' /proc/meminfo)
[ "$room" -ge 64 ] || skip "this machine's memory has room for $room MiB of rings only"
cut="stack_copy_bytes: is [0-9]+ instead of 65000, so that the rings of 256 CPUs fit in $room MiB "

python3 - "$CPU_PROFILERD_SOCKET" "$cut" <<'PYTHON' || fail "the reply of Create, or Status"
import json, re, socket, sys
daemon = socket.socket(socket.AF_UNIX)
daemon.connect(sys.argv[1])

def call(method, parameters):
    daemon.sendall(json.dumps({"method": f"io.cpuprofilerd.Sampler.{method}", "parameters": parameters}).encode() + b"\0")
    reply = b""
    while not reply.endswith(b"\0"):
        reply += daemon.recv(65536)
    return json.loads(reply[:-1])["parameters"]

created = call("Create", {"config": {}})
print(json.dumps(created))
assert any(re.match(sys.argv[2], note) for note in created["notes"]), created
status = call("Status", {})
assert status["session"]["notes"] == created["notes"], status["session"]
PYTHON

profctl record -d 0.3 -o "$WORK/many.fxt" >"$WORK/record.out" 2>"$WORK/record.err" || fail "record: $(cat "$WORK/record.err")"
grep -Eq "^profctl: note: $cut" "$WORK/record.err" || fail "record says nothing of the cut: $(cat "$WORK/record.err")"
profctl dump --json "$WORK/many.fxt" | grep -Eq "\"notes\":\[.*$cut" || fail "the file does not say it"

# What was asked for is not cut but refused.
echo '{"stack_copy_bytes": 65000}' >"$WORK/explicit.json"
! profctl record --config "$WORK/explicit.json" -d 0.3 -o "$WORK/no.fxt" >/dev/null 2>"$WORK/explicit.err" || fail "65,000 bytes are taken"
grep -q 'stack_copy_bytes' "$WORK/explicit.err" || fail "the refusal names another member: $(cat "$WORK/explicit.err")"
