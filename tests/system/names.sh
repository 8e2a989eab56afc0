#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every program spins in a function of its own name, and the recording that an unprivileged member of the group
# takes and reads names it: whatever has become of the program's file, whichever users may read it, wherever its symbols
# are. Runtimes that not every machine has (node, java, go, rustc) are left out where they are missing, in words.
. "${0%/*}/lib.sh"
require_perf
use_build release
[ "$(id -u)" -eq 0 ] || skip "only root can make files and processes of other users"
private=(unshare --mount --pid --fork --kill-child)
"${private[@]}" true 2>/dev/null || skip "no namespaces can be made here"
# The group, and a folder of debug files, are for this test alone.
if [ -z "${OWN_MOUNTS:-}" ]; then
    rm -rf "$WORK"
    OWN_MOUNTS=1 exec unshare --mount "$0"
fi

user=4711 owner=4712 stranger=4713 group=4700
member=(setpriv --reuid="$user" --regid="$user" --groups="$group")
chmod 755 "$WORK"
mkdir -m 1777 "$WORK/scratch" # runtimes leave files where they are started
{ grep -v '^cpu-profiler:' /etc/group && echo "cpu-profiler:x:$group:"; } >"$WORK/group"
chmod 644 "$WORK/group"
mount --bind "$WORK/group" /etc/group || fail "no group can be made"
mkdir -p /usr/lib/debug
mount -t tmpfs names /usr/lib/debug || fail "no folder of debug files can be made"

cat >"$WORK/spin.c" <<'C'
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned sink;
#ifdef LABEL
__attribute__((noinline)) void SPIN(void) __asm__(LABEL);
#endif
#ifndef ELSEWHERE
__attribute__((noinline)) void SPIN(void)
{
    for (unsigned i = 0; i < 2000000; i++) {
        sink += i;
    }
}
#else
void SPIN(void);
#endif
#ifdef THREADED
#include <pthread.h>
static void *run(void *unused)
{
    time_t end = time(NULL) + 250;
    while (time(NULL) < end) {
        SPIN();
        usleep(50000);
    }
    return unused;
}
/* The first thread ends, and leaves a process whose own folder in /proc shows no memory. */
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    pthread_exit(NULL);
}
#elif !defined LIBRARY
int main(void)
{
    time_t end = time(NULL) + 250;
    while (time(NULL) < end) {
        SPIN();
        usleep(50000);
    }
    return 0;
}
#endif
C

# build NAME [OPTION...]: a program that spins in NAME().
build() {
    local name=$1
    shift
    gcc -O1 -fno-omit-frame-pointer -DSPIN="$name" "$WORK/spin.c" -o "$WORK/$name" "$@" || fail "gcc: $name"
}

# start COMMAND...: one of the many that share the machine; whatever runs beside this test goes before them. They rest
# between their turns: dozens run while others are compiled.
# Those that are the process that was started are in `started`; what runs in a namespace is a child of it.
started=()
start() {
    run_in_background nice -n 15 "$@"
    [ "$1" = unshare ] || started+=("$BACKGROUND_PID")
}

runs() {
    [ "$(readlink "/proc/$1/exe")" = "$WORK/$2" ]
}

leader_has_ended() {
    grep -q '^State:.Z' "/proc/$1/status"
}

# start_deleted NAME: its file is gone as soon as it runs.
start_deleted() {
    start "$WORK/$1"
    wait_until 5 runs "$BACKGROUND_PID" "$1" || fail "$1 does not start"
    rm "$WORK/$1"
}

# The compilers first, while they have the machine to themselves.
names=()
if command -v rustc >/dev/null; then
    cat >"$WORK/crate.rs" <<'RUST'
mod turning {
    #[inline(never)]
    pub fn rust_spin<T: Into<u64>>(from: T) -> u64 {
        (from.into()..2_000_000).fold(0, |sum, i| std::hint::black_box(sum ^ i))
    }
}
fn main() {
    loop {
        std::hint::black_box(turning::rust_spin(1u32));
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
}
RUST
    rustc -O -C strip=none "$WORK/crate.rs" -o "$WORK/crate" 2>"$WORK/log" || fail "rustc: $(cat "$WORK/log")"
    start "$WORK/crate"
    names+=(crate::turning::rust_spin)
else
    echo "rustc is missing: its names are not shown"
fi
if command -v go >/dev/null; then
    cat >"$WORK/turner.go" <<'GO'
package main

import "time"

type turner struct{ sum int }

//go:noinline
func (t *turner) go_spin(count int) {
	for i := 0; i < count; i++ {
		t.sum ^= i
	}
}

func main() {
	for t := (&turner{}); ; {
		t.go_spin(2000000)
		time.Sleep(30 * time.Millisecond)
	}
}
GO
    go build -o "$WORK/turner" "$WORK/turner.go" || fail "go"
    start "$WORK/turner"
    names+=('main.(*turner).go_spin')
    # As Go programs are shipped, without symbols; and the same at an address of the kernel's choice.
    for kind in exe pie; do
        sed "s/go_spin/stripped_${kind}_spin/" "$WORK/turner.go" >"$WORK/turner_$kind.go"
        go build -buildmode="$kind" -ldflags='-s -w' -o "$WORK/turner_$kind" "$WORK/turner_$kind.go" || fail "go: $kind"
        start "$WORK/turner_$kind"
        names+=("main.(*turner).stripped_${kind}_spin")
    done
else
    echo "go is missing: its names are not shown"
fi
java_pid=
if command -v javac >/dev/null; then
    cat >"$WORK/Spin.java" <<'JAVA'
class Spin {
    static int java_spin(int count) {
        int sum = 0;
        for (int i = 0; i < count; i++) sum = (sum * 31 + i) % 1000003;
        return sum;
    }
    public static void main(String[] arguments) throws InterruptedException {
        for (int all = 0;; Thread.sleep(10)) all += java_spin(200000);
    }
}
JAVA
    javac -d "$WORK" "$WORK/Spin.java" || fail "javac"
    chmod 755 "$WORK/Spin.class"
    run_in_background "${member[@]}" env -C "$WORK/scratch" java -XX:+PreserveFramePointer -cp "$WORK" Spin
    java_pid=$BACKGROUND_PID
    names+=(java_spin)
else
    echo "java is missing: its names are not shown"
fi
if command -v node >/dev/null; then
    cat >"$WORK/spin.js" <<'JS'
function node_spin(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
const never = new Int32Array(new SharedArrayBuffer(4));
for (let all = 0;; Atomics.wait(never, 0, 0, 10)) all += node_spin(200000);
JS
    run_in_background "${member[@]}" env -C "$WORK/scratch" node --perf-basic-prof --no-turbo-inlining "$WORK/spin.js" >/dev/null
    node_pid=$BACKGROUND_PID
    names+=(node_spin)
else
    echo "node is missing: its names are not shown"
fi

# A name of C++, though no compiler for it is needed.
build readable_spin -DLABEL='"_ZN2ns7spinnerIiE4spinEv"'
start "$WORK/readable_spin"
names+=('ns::spinner<int>::spin')

build deleted_spin
start_deleted deleted_spin
build ended_spin -DTHREADED -pthread
start "$WORK/ended_spin"
wait_until 5 leader_has_ended "$BACKGROUND_PID" || fail "the first thread of ended_spin does not end"
rm "$WORK/ended_spin"

build replaced_spin
start "$WORK/replaced_spin"
wait_until 5 runs "$BACKGROUND_PID" replaced_spin || fail "replaced_spin does not start"
gcc -O1 -DSPIN=other_spin "$WORK/spin.c" -o "$WORK/other" && mv "$WORK/other" "$WORK/replaced_spin"

build static_spin -static-pie
start "$WORK/static_spin"

# As distributions do: stripped of all, with the symbols as a compressed section.
build packed_spin
objcopy --only-keep-debug "$WORK/packed_spin" "$WORK/packed.debug"
python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(open(sys.argv[1], "rb").read()))' "$WORK/packed.debug" >"$WORK/packed.xz"
strip --strip-all "$WORK/packed_spin"
objcopy --add-section .gnu_debugdata="$WORK/packed.xz" "$WORK/packed_spin" || fail "objcopy"
start "$WORK/packed_spin"

# And with the symbols in a file that is found by its build-id.
build split_spin -Wl,--build-id
build_id=$(readelf -nW "$WORK/split_spin" | sed -n 's/.*Build ID: //p')
debug_file=/usr/lib/debug/.build-id/${build_id:0:2}/${build_id:2}.debug
mkdir -p "${debug_file%/*}"
objcopy --only-keep-debug "$WORK/split_spin" "$debug_file"
strip --strip-all "$WORK/split_spin"
start "$WORK/split_spin"

build setuid_spin
chown "$owner" "$WORK/setuid_spin"
chmod 4711 "$WORK/setuid_spin"
start "${member[@]}" "$WORK/setuid_spin"

build root_only_spin
chmod 0700 "$WORK/root_only_spin"
start "$WORK/root_only_spin"

# A program that never was in a folder.
build memory_spin
start python3 -c 'import os, sys
memory = os.memfd_create("memory_spin")
os.write(memory, open(sys.argv[1], "rb").read())
os.remove(sys.argv[1])
os.execve(memory, ["memory_spin"], {})' "$WORK/memory_spin"
memory_pid=$BACKGROUND_PID
runs_from_memory() {
    [[ $(readlink "/proc/$memory_pid/exe") == /memfd:memory_spin* ]]
}
wait_until 20 runs_from_memory || fail "memory_spin does not start"

# A library that is nowhere but in an overlay of the process's own mount namespace.
build overlay_spin -DLIBRARY -shared -fPIC -Wl,-soname=overlay_spin
build overlay_main -DELSEWHERE -USPIN -DSPIN=overlay_spin "$WORK/overlay_spin" -Wl,-rpath="$WORK/overlay"
mkdir "$WORK/overlay"
# shellcheck disable=SC2016 # for the shell inside
start "${private[@]}" sh -c 'mount -t tmpfs names "$1/overlay" && mkdir "$1/overlay/low" "$1/overlay/up" "$1/overlay/work" &&
    mount -t overlay names -o "lowerdir=$1/overlay/low,upperdir=$1/overlay/up,workdir=$1/overlay/work" "$1/overlay" &&
    mv "$1/overlay_spin" "$1/overlay/" && exec "$1/overlay_main"' sh "$WORK"

# Code that is made as the program runs; in a namespace the map is in a /tmp, and under a pid, of its own.
cat >"$WORK/maker.c" <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>
#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)
/* Memory for code: private, shared, System V, or behind a descriptor that can be mapped twice. */
static void *make(const char *kind)
{
    int fd = -1;
    switch (*kind) {
    case 's':
        return mmap(NULL, 4096, RWX, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    case 'v':
        fd = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0700);
        void *made = shmat(fd, NULL, SHM_EXEC);
        shmctl(fd, IPC_RMID, NULL);
        return made;
    case 'm':
        fd = memfd_create("doublemapper", 0);
        return ftruncate(fd, 4096) < 0 ? MAP_FAILED : mmap(NULL, 4096, RWX, MAP_SHARED, fd, 0);
    default:
        return mmap(NULL, 4096, RWX, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
}
/* mov $2000000, %eax; dec %eax; jne; ret */
static const unsigned char code[] = {0xb8, 0x80, 0x84, 0x1e, 0x00, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
int main(int argc, char **argv)
{
    char path[64];
    void *made = make(argc < 3 ? "private" : argv[2]);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = argc < 2 || made == MAP_FAILED ? NULL : fopen(path, "w");
    if (map == NULL) {
        return 1;
    }
    memcpy(made, code, sizeof code);
    fprintf(map, "%lx %zx %s\n", (unsigned long)made, sizeof code, argv[1]);
    fclose(map);
    for (int i = 0; i < 100000; i++) {
        ((void (*)(void))made)();
        usleep(30000);
    }
    return 0;
}
C
gcc -O1 "$WORK/maker.c" -o "$WORK/maker" || fail "gcc: maker"
start "${member[@]}" "$WORK/maker" outside_spin
maker_maps=("/tmp/perf-$BACKGROUND_PID.map")
for kind in shared v_system memfd; do
    start "${member[@]}" "$WORK/maker" "${kind}_spin" "$kind"
    maker_maps+=("/tmp/perf-$BACKGROUND_PID.map")
    names+=("${kind}_spin")
done
start "${private[@]}" env -C "$WORK" sh -c 'mount -t tmpfs names /tmp && exec ./maker inside_spin'

names+=(deleted_spin ended_spin replaced_spin static_spin packed_spin split_spin setuid_spin root_only_spin memory_spin overlay_spin
    outside_spin inside_spin)

start_daemon
[ "$(stat -c '%g %a' "$CPU_PROFILERD_SOCKET")" = "$group 660" ] || fail "the socket is $(stat -c '%g %a' "$CPU_PROFILERD_SOCKET")"
cp "$BIN/profctl" "$WORK/profctl"
setpriv --reuid="$stranger" --regid="$stranger" --clear-groups "$WORK/profctl" status >"$WORK/log" 2>&1 &&
    fail "a user that is not in the group is let in"

"${member[@]}" "$WORK/profctl" record --no-kernel -F 3999 -o - >"$WORK/names.fxt" 2>"$WORK/record.out" &
record_pid=$!
background_pids+=("$record_pid")
wait_until 10 session_runs || fail "nothing is recorded: $(cat "$WORK/record.out")"
# Programs of the time that is recorded: one of 20 ms, and one that is deleted as soon as it runs.
"$WORKLOADS/brief" >/dev/null
build fresh_spin
start_deleted fresh_spin
names+=(brief_spin fresh_spin)
[ -z "$java_pid" ] || setpriv --reuid="$user" --regid="$user" --groups="$group" jcmd "$java_pid" Compiler.perfmap >"$WORK/log" 2>&1 ||
    fail "jcmd: $(cat "$WORK/log")"
# 240 ticks, of which each name must have 20; what runs in a namespace has as large a share of the CPUs.
expect_run 60 "${started[@]}"
kill -TERM "$record_pid"
wait "$record_pid" || fail "record: $(cat "$WORK/record.out")"
stop_background
rm -f "${maker_maps[@]}" "/tmp/perf-${java_pid:-none}.map" "/tmp/.java_pid${java_pid:-none}" "/tmp/perf-${node_pid:-none}.map"

"${member[@]}" "$WORK/profctl" report --json -n 0 - <"$WORK/names.fxt" >"$WORK/names.json" || fail "report"
python3 - "$WORK/names.json" "${names[@]}" <<'PYTHON' || fail "not every name is there"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
missing = 0
for name in sys.argv[2:]:
    found = [row for row in rows if name in row["name"]]
    count = sum(row["self"] for row in found)
    missing += count < (4 if name == "brief_spin" else 20)
    print(f"{name:28} {count:6}  {', '.join(sorted({row['module'] for row in found}))}")
wrong = sum(row["self"] for row in rows if "other_spin" in row["name"])
print(f"{wrong} samples in a file that was never run")
sys.exit(missing > 0 or wrong > 0)
PYTHON
profctl report --json -n 0 --no-demangle "$WORK/names.fxt" >"$WORK/mangled.json" || fail "report --no-demangle"
expect_json "$WORK/mangled.json" "[r for r in d['rows'] if r['name'] == '_ZN2ns7spinnerIiE4spinEv']" "--no-demangle demangles"
