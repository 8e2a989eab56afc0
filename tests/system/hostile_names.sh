#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program of one user that has 5,000 functions with names of 4 KiB, and runs them all by turns, and one that
# maps code anew as fast as it can: what the log of definitions holds would be theirs alone. The others' programs,
# those that come afterwards too, have names in every sample, and the books say what was refused. A stopped session
# is read at its end, so that no new log can be had meanwhile.
. "${0%/*}/lib.sh"
require_perf
use_build release
chmod 711 "$WORK"
hostile=(setpriv --reuid=12345 --regid=12345 --clear-groups)

cat >"$WORK/remaps.c" <<'C'
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* mov $20000, %eax; dec %eax; jne; ret */
static const unsigned char code[] = {0xb8, 0x20, 0x4e, 0x00, 0x00, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
int main(void)
{
    for (int i = 0; ; i++) {
        char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(made, code, sizeof code);
        ((void (*)(void))made)();
        munmap(made, 4096);
    }
}
C
python3 - >"$WORK/long.s" <<'PY'
count = 5000
print(".text\n.globl main\nmain:\n1:")
for i in range(count):
    print(f"call .Lf{i}")
print("jmp 1b")
for i in range(count):
    name = f"f{i:05}" + "x" * 4080
    print(f".type {name},@function\n{name}:\n.Lf{i}: mov $4000, %eax\n2: dec %eax\njne 2b\nret\n.size {name}, . - {name}")
PY
gcc -O1 "$WORK/remaps.c" -o "$WORK/remaps" || fail "gcc: remaps"
gcc -c "$WORK/long.s" -o "$WORK/long.o" && gcc "$WORK/long.o" -Wl,-z,noexecstack -o "$WORK/long" || fail "gcc: long"
rm "$WORK/long.s" "$WORK/long.o"

start_daemon
for program in long remaps; do
    run_in_background "${hostile[@]}" "$WORK/$program"
done
profctl start -F 4000 || fail "start"
names_are_refused() {
    profctl status --json >"$WORK/status.json" || fail "status"
    [ "$(json "$WORK/status.json" "d['session']['books']['names_refused']")" -gt 1000 ]
}
# However many functions the machine lets them run each second.
wait_until 120 names_are_refused || fail "no name was refused, so this tests nothing: $(cat "$WORK/status.json")"
# 4,000 ticks of two CPUs, of which each of three functions must have 100 beside two other programs.
run_in_background "$WORKLOADS/threads" --seconds 280 >/dev/null
sleep 1
profctl stop || fail "stop"
profctl read --native -o "$WORK/p.fxt" || fail "read"
profctl close
stop_background
profctl report --json -n 0 "$WORK/p.fxt" >"$WORK/p.json" || fail "report"
profctl report --json -n 0 --by process "$WORK/p.fxt" >"$WORK/processes.json" || fail "report by process"
# The reports have 5,000 names of 4 KiB, so each is read once.
python3 - "$WORK/p.json" "$WORK/processes.json" <<'PY' || fail "a hostile program takes the room of the others"
import collections
import json
import sys

report, processes = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
failed = False


def expect(holds, sentence):
    global failed
    if not holds:
        print(sentence)
        failed = True


for told, kind, names in (
        (report, "the samples of the function", ("alpha_spin", "bravo_spin", "charlie_spin")),
        (processes, "the samples of the process", ("long", "remaps", "threads"))):
    samples = collections.Counter()
    for row in told["rows"]:
        samples[row["name"]] += row["self"]
    for name in names:
        expect(samples[name] > 100, f"{kind} {name} have no name")
books = report["books"]
expect(books["names_refused"] > 1000, "no name was refused, so this tests nothing")
expect(books["total"]["dropped"] * 50 < books["total"]["received"], "samples were dropped")
for count in ("names_refused", "mappings_refused", "tasks_refused", "addresses_refused"):
    print(count, books[count])
print("dropped", books["total"]["dropped"])
sys.exit(failed)
PY
echo "file $(stat -c %s "$WORK/p.fxt") bytes"
