#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program keeps a secret of 32 bytes on its stack, between the frame that spins and main. Its samples are
# unwound to the root, so the copies of its stack had the secret in them; but it is in no recording, no log,
# no reply, no core dump of the daemon, and in no memory of the daemon but what a core dump leaves out: the
# rings, and where samples are held.
. "${0%/*}/lib.sh"
require_perf
[ "$(id -u)" -eq 0 ] || skip "only root can read the daemon's memory"
use_build release
start_daemon
SECRET=$(python3 -c 'print(bytes((7 * i * i + 59 * i + 195) % 256 for i in range(32)).hex())')
export SECRET

# secret_in FILE: its 32 bytes, or any 8 of them that a frame's address could be.
secret_in() {
    python3 - "$1" <<'PYTHON'
import os, sys
secret = bytes.fromhex(os.environ["SECRET"])
data = open(sys.argv[1], "rb").read()
sys.exit(not any(secret[first : first + 8] in data for first in range(0, 32, 8)))
PYTHON
}

# memory_of PID: a line for each mapping of the process that has the secret: its VmFlags has dd or not.
memory_of() {
    python3 - "$1" <<'PYTHON'
import os, re, sys
SECRET = bytes.fromhex(os.environ["SECRET"])
pid, mappings = sys.argv[1], []
for line in open(f"/proc/{pid}/smaps"):
    head = re.match(r"([0-9a-f]+)-([0-9a-f]+) r\S+ \S+ \S+ \S+ *(.*)", line)
    if head:
        mappings.append([int(head[1], 16), int(head[2], 16), head[3], False])
    elif re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
        mappings.append([0, 0, "", False])
    elif line.startswith("VmFlags:"):
        mappings[-1][3] = "dd" in line.split()
with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
    for start, end, name, left_out in mappings:
        tail = b""
        for at in range(start, end, 1 << 20):
            try:
                memory.seek(at)
                piece = memory.read(min(1 << 20, end - at))
            except (OSError, OverflowError):  # a ring's pages cannot be read so, nor can [vvar]
                break
            if SECRET in tail + piece:
                print("excluded" if left_out else "plain", name or hex(start))
                break
            tail = piece[-32:]
PYTHON
}

cp "$WORKLOADS/secret_keeper" "$WORK/keeper"
profctl record --native --no-kernel -F 4000 -a -o "$WORK/secret.fxt" >"$WORK/record.out" 2>&1 &
record_pid=$!
background_pids+=("$record_pid")
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
# Its table is not there yet: the first samples are held.
run_in_background "$WORK/keeper" 280
keeper_pid=$BACKGROUND_PID
sleep 0.2
memory_of "$keeper_pid" >"$WORK/keeper.memory"
grep -q 'plain.*stack' "$WORK/keeper.memory" || fail "the program does not have its secret, so no other can"
for _ in 1 2 3; do
    memory_of "$daemon_pid" >>"$WORK/daemon.memory"
    profctl status --json >>"$WORK/replies" || fail "no status"
    sleep 0.5
done
if grep plain "$WORK/daemon.memory"; then
    fail "the daemon has stack bytes in memory that a core dump shows"
fi
gcore -o "$WORK/core" "$daemon_pid" >"$WORK/gcore.out" 2>&1 || fail "no core: $(cat "$WORK/gcore.out")"
if secret_in "$WORK/core.$daemon_pid"; then
    fail "the core dump has the secret"
fi
expect_run 500 "$keeper_pid" # 2,000 ticks more
kill -TERM "$record_pid"
wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
stop_background
profctl status --json >>"$WORK/replies" || fail "no status"
memory_of "$daemon_pid" >"$WORK/after.memory"
[ ! -s "$WORK/after.memory" ] || fail "after the session, the daemon has the secret: $(cat "$WORK/after.memory")"

profctl export --format folded "$WORK/secret.fxt" >"$WORK/folded" || fail "export failed"
rooted=$(awk '/^keeper;_start;.*;main;keep / { sum += $NF } END { print sum + 0 }' "$WORK/folded")
[ "$rooted" -gt 1000 ] || fail "only $rooted samples went past the secret to the root"
for file in secret.fxt folded daemon.log replies record.out; do
    if secret_in "$WORK/$file"; then
        fail "$file has the secret"
    fi
done
python3 -c "open('$WORK/probe', 'wb').write(bytes.fromhex('$SECRET'))"
secret_in "$WORK/probe" || fail "the search for the secret does not find it"
