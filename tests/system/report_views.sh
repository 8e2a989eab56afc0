#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Lists, trees, callers and callees are what report_views.py counts from `dump --json`: of a made recording, and of a
# real one of a program that calls itself, has inlined functions and one without a name, works in the kernel, and has
# stacks that are cut.
. "${0%/*}/lib.sh"
use_build release
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}

python3 - "$SOURCE_DIR/tests/system" "$MAKER" "$WORK/made.fxt" <<'PYTHON' || fail "the recording cannot be made"
import random, sys
sys.path.insert(0, sys.argv[1])
from recording_maker import Recording, PROCESSES, SYMBOLS
draw = random.Random(1)
made = Recording()
modules = [(7, 1, "/bin/app", "ab"), (7, 2, "/lib/x.so", "cd"), (7, 3, "[anon]", ""), (0, 4, "[kernel]", ""), (9, 1, "/bin/app", "ab")]
starts = {}
for number, (pid, module, name, build_id) in enumerate(modules):
    starts.setdefault(pid, []).append(0x100000 * (number + 1))
    made.module(pid, module, name, build_id, starts[pid][-1], 0x1000)
for name, build_id, prefix in (("/bin/app", "ab", "app_"), ("/lib/x.so", "cd", "app_"), ("[kernel]", "", "kernel_")):
    # The last of the functions has no name.
    made.data(SYMBOLS, *({"build_id": build_id, "module": name, "start": hex(64 * i), "size": 64, "name": f"{prefix}{i}"}
                         for i in range(5)))
made.name(7, 0, "app")
made.name(9, 0, "other")
made.name(11, 0, "kthread")
def stack(pid, most):
    places = [start + 64 * draw.randrange(6) + draw.randrange(4) for start in starts[pid]] + [0x10]
    return [draw.choice(places) for _ in range(draw.randrange(1, most))]
# Parents of processes: pids that are there twice, parents without samples, a circle, one that is not known, and commands of
# which few and many differ. Each of 30 to 69 begins when its first sample is taken.
def line(pid, since, parent=None, *command):
    return {"pid": pid, "boot_ts_ns": str(since), **({} if parent is None else {"ppid": parent}), **({"cmdline": command} if command else {})}
lines = [line(1, 0, None, "/sbin/init"), line(7, 0, 1, "/bin/app", "-x", "two words"), line(9, 0, 20), line(20, 0, 1, "sh", "-c", "x y"),
         line(9, 150000, 20, "other", "1"), line(11, 0, 2), line(21, 0, 22), line(22, 0, 21), line(23, 0, 99)]
for pid in range(30, 70):
    lines.append(line(pid, 400000 + 1000 * (pid - 30), 20 if pid % 2 else 7, "cc", "-c", *(["-O2", f"{pid}.c"] if pid < 60 else [str(pid % 4 // 2)])))
    made.name(pid, 0, "cc1" if pid < 60 else "cc")
lines += [line(31, 500000, 30, "cc", "again"), line(31, 600000, 30)]
draw.shuffle(lines)
made.data(PROCESSES, *lines)
made.name(20, 0, "sh")
made.name(21, 0, "loop")
made.name(22, 0, "loop")
for _ in range(400):
    pid = draw.choice((7, 7, 7, 9))
    user = stack(pid, 9) if draw.random() < 0.9 else []
    kernel = draw.choice((None, None, stack(0, 5)))
    made.stack(pid, user, kernel, quality=draw.choice((1, 1, 2, 4, 6, 7)) if user else 0)
for pid in [*range(30, 70), 21, 22, 23, 31, 31] * 2:
    made.stack(pid, [0x10], None, quality=1)
for _ in range(5):
    made.stack(11, [], draw.choice((None, stack(0, 4))), quality=0)
made.write(*sys.argv[2:])
PYTHON
python3 "$SOURCE_DIR/tests/system/report_views.py" "$BIN/profctl" "$WORK/made.fxt" || fail "see above"

require_perf
cat >"$WORK/views.c" <<'C'
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile uint64_t sum;
static int zeros;
static __attribute__((always_inline)) inline void spin_inlined(int count)
{
    for (int i = 0; i < count; i++)
        sum += (uint64_t)i * i;
}
static __attribute__((noinline)) void read_zeros(void)
{
    static char bytes[65536];
    sum += (uint64_t)read(zeros, bytes, sizeof bytes);
}
static int turn(int depth);
static __attribute__((noinline)) int descend(int depth)
{
    volatile char frame[200];
    memset((char *)frame, depth, sizeof frame);
    spin_inlined(300);
    if (depth % 7 == 0)
        read_zeros();
    int below = depth == 0 ? 0 : depth % 3 == 0 ? turn(depth - 1) : descend(depth - 1);
    spin_inlined(100);
    return below + frame[depth % 200];
}
static __attribute__((noinline)) int turn(int depth)
{
    spin_inlined(200);
    return (depth == 0 ? 0 : descend(depth - 1)) + 1;
}
int main(void)
{
    struct timespec now;
    zeros = open("/dev/zero", O_RDONLY);
    do {
        sum += (uint64_t)descend(40);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec == 0 && now.tv_nsec < 500000000);
    return 0;
}
C
gcc -O2 -g -fomit-frame-pointer "$WORK/views.c" -o "$WORK/views" || fail "gcc"
# A function without a name: rows of it are named by where the file says that it begins.
objcopy --strip-symbol=read_zeros "$WORK/views" || fail "objcopy"
start_daemon
# Its stacks have some 40 frames, so those of more than 24 are cut, however they are completed.
echo '{"max_stack_depth": 24, "kernel_stacks": true}' >"$WORK/config.json"
profctl record --native -F 1999 --config "$WORK/config.json" -o "$WORK/real.fxt" -- "$WORK/views" >"$WORK/out" 2>&1 ||
    fail "record: $(cat "$WORK/out")"
python3 "$SOURCE_DIR/tests/system/report_views.py" "$BIN/profctl" "$WORK/real.fxt" | tee "$WORK/verdict"
[ "${PIPESTATUS[0]}" -eq 0 ] || fail "see above"
grep -qE ' [1-9][0-9]* of them cut, [1-9][0-9]* in the kernel; [1-9][0-9]* functions' "$WORK/verdict" ||
    fail "the test shows too little: no stack was cut, none in the kernel, or no function called itself"
profctl report --json -n 0 "$WORK/real.fxt" | grep -q '"views+0x' || fail "the test shows too little: no function without a name"
