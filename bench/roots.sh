#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The share of stacks that reach their root: ours with its defaults, `perf record --call-graph fp` and
# `--call-graph dwarf,16384`, all three at once, so on the same moments of the same program. Goal: 99.5 % of
# the stacks whose live part fits the copy, 98 % for node and java. Exit status 1 when a row misses it.
#   bench/roots.sh [PROGRAM...]     SECONDS_EACH=4
#
# One judge for all (bench/roots_judge.py): the outermost frame is one of the functions that begin a stack,
# which it lists. A frame without a name, as in stripped programs, counts where ours ended a stack on proof
# (quality "complete") at the same place of the same module; this is granted to all three. Samples are those
# of the program's own processes. Ours leaves out tasks without a user stack, amid an exec say.
# "fits": without the stacks that ours marks "copy too short". ">16K": the share of perf's copies that are
# full, an independent figure of how many stacks 16 KiB do not hold.
. "${0%/*}/lib.sh"

hz=1000
seconds=${SECONDS_EACH:-4}
sources=$SOURCE_DIR/tests/oracle/programs
workloads=$SOURCE_DIR/tests/workloads
judge=$SOURCE_DIR/bench/roots_judge.py
work=$BENCH_WORK
root_pid=
missed=0
export PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin:${HOME:-/root}/.cargo/bin

bench_need "$BIN/cpu-profilerd" "$BIN/profctl" perf python3 pgrep

# launch COMMAND...: the program, in the background; what it starts belongs to it.
launch() {
    "$@" </dev/null >/dev/null 2>"$work/program.log" &
    bench_pids+=("$!")
    root_pid=$!
}

# again COMMAND...: as often as it ends.
again() {
    while "$@"; do :; done
}

need() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || return 1
    done
}

# Each begin_NAME starts a program, or returns 1 where it is missing.
begin_c_fp() {
    need gcc && gcc -O2 -D_GNU_SOURCE -fno-omit-frame-pointer -o "$work/c_fp" "$workloads/libc_user.c" &&
        launch "$work/c_fp" --seconds 600
}
begin_c() {
    need gcc && gcc -O2 -D_GNU_SOURCE -fomit-frame-pointer -o "$work/c_nofp" "$workloads/libc_user.c" &&
        launch "$work/c_nofp" --seconds 600
}
begin_cxx() {
    need g++ && g++ -O2 -o "$work/cxx" "$sources/exceptions.cc" && launch "$work/cxx"
}
begin_python3() { need /usr/bin/python3 && launch /usr/bin/python3 "$sources/mixed.py"; }
begin_rust() {
    need rustc && rustc -O -o "$work/rust" "$sources/mixed.rs" 2>/dev/null && launch "$work/rust"
}
begin_go() {
    need go && GOCACHE=$work/go_cache go build -o "$work/go" "$sources/mixed.go" && launch "$work/go"
}
begin_go_stripped() {
    need go && GOCACHE=$work/go_cache go build -ldflags='-s -w' -o "$work/go_stripped" "$sources/mixed.go" &&
        launch "$work/go_stripped"
}
begin_node() { need node && launch node "$sources/mixed.js"; }
begin_java() { need java && launch java -XX:+PreserveFramePointer "$sources/Mixed.java"; }
begin_zstd() {
    need zstd && head -c 48M /dev/urandom | base64 >"$work/text" && launch again zstd -19 -q -c "$work/text"
}
begin_cc1() {
    need gcc && "$sources/big.sh" c 6000 >"$work/big.c" &&
        launch again "$(gcc -print-prog-name=cc1)" -quiet -O2 "$work/big.c" -o /dev/null
}
begin_clang() {
    need clang && "$sources/big.sh" c 6000 >"$work/big.c" && launch again clang -O2 -c "$work/big.c" -o /dev/null
}
begin_rustc() {
    need rustc && "$sources/big.sh" rust 6000 >"$work/big.rs" &&
        launch again "$(rustc --print sysroot)/bin/rustc" -O "$work/big.rs" -o "$work/big_rust"
}
begin_redis() {
    need redis-server redis-benchmark || return 1
    launch redis-server --port 0 --unixsocket "$work/redis.sock" --save ''
    wait_until 5 test -S "$work/redis.sock" || return 1
    redis-benchmark -s "$work/redis.sock" -l -q -n 100000 -t set,get,lrange_100,zadd >/dev/null 2>&1 &
    bench_pids+=("$!")
}
begin_nginx() {
    need nginx ab || return 1
    mkdir -p "$work/www" && head -c 4096 /dev/zero | tr '\0' x >"$work/www/index.html"
    chmod 755 "$work" "$work/www"
    printf '%s\n' "error_log $work/nginx.err; pid $work/nginx.pid; daemon off;" \
        "events {} http { access_log $work/nginx.log; gzip on; gzip_types *; server {" \
        "listen 127.0.0.1:18089; root $work/www; } }" >"$work/nginx.conf"
    launch nginx -c "$work/nginx.conf"
    sleep 0.5
    again ab -q -n 100000 -c 16 -H 'Accept-Encoding: gzip' http://127.0.0.1:18089/index.html >/dev/null 2>&1 &
    bench_pids+=("$!")
}
begin_postgres() {
    local bin
    bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | tail -n 1)
    [ -n "$bin" ] && need runuser || return 1
    mkdir -p "$work/pg" && chmod 755 "$work" && chown postgres "$work/pg"
    runuser -u postgres -- "$bin/initdb" -D "$work/pg/data" -A trust >/dev/null 2>&1 || return 1
    launch runuser -u postgres -- "$bin/postgres" -D "$work/pg/data" -k "$work/pg" -c listen_addresses= -p 15432
    wait_until 10 test -S "$work/pg/.s.PGSQL.15432" || return 1
    wait_until 10 runuser -u postgres -- "$bin/pgbench" -h "$work/pg" -p 15432 -i -q postgres >/dev/null 2>&1
    runuser -u postgres -- "$bin/pgbench" -h "$work/pg" -p 15432 -c 4 -T 600 -S postgres >/dev/null 2>&1 &
    bench_pids+=("$!")
}

# family PID: it and all that descends from it.
family() {
    local child
    echo "$1"
    for child in $(pgrep -P "$1"); do
        family "$child"
    done
}

# end_program: what it started would outlive it.
end_program() {
    local pids pid
    pids=$(for pid in "${bench_pids[@]}"; do family "$pid"; done)
    bench_pids=()
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null || true
    # shellcheck disable=SC2086
    wait $pids 2>/dev/null || true
}

script() {
    perf script -i "$1" --no-inline -F ip,sym,dso 2>/dev/null >"$1.txt" || true
}

# measure NAME GOAL
measure() {
    local pids
    sleep 1.5
    pids=$(family "$root_pid" | paste -sd,)
    printf '{"frequency_hz":%s,"kernel_stacks":false,"targets":{"pids":[%s]}}\n' "$hz" "$pids" >"$work/config.json"
    perf record -q -e cpu-clock -F "$hz" --call-graph fp -p "$pids" -o "$work/fp" -- sleep "$seconds" \
        >/dev/null 2>&1 &
    local fp=$!
    perf record -q -e cpu-clock -F "$hz" --call-graph dwarf,16384 -p "$pids" -o "$work/dwarf" -- \
        sleep "$seconds" >/dev/null 2>&1 &
    local dwarf=$!
    "$BIN/profctl" record --config "$work/config.json" -d "$seconds" -o "$work/ours.fxt" >"$work/ours.log" 2>&1 ||
        cat "$work/ours.log" >&2
    wait "$fp" "$dwarf" || true
    end_program
    "$BIN/profctl" export --format folded --addresses -o "$work/ours.folded" "$work/ours.fxt"
    "$BIN/profctl" dump --json "$work/ours.fxt" >"$work/ours.json"
    script "$work/fp"
    script "$work/dwarf"
    python3 "$judge" "$1" "$2" "$work" || missed=1
}

bench_machine
daemon_start "$BIN" "$BENCH_WORK"
python3 "$judge" --head
programs=("$@")
[ $# -gt 0 ] || programs=(c_fp c cxx python3 rust go node java zstd cc1 clang rustc redis nginx postgres)
for program in "${programs[@]}"; do
    goal=99.5
    case $program in node | java) goal=98 ;; esac
    if "begin_$program"; then
        measure "$program" "$goal"
    else
        echo "$program: not here"
        [ ${#bench_pids[@]} -eq 0 ] || end_program
    fi
done
exit "$missed"
