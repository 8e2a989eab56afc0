#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian's own programs that spend time in code without call frames: whether each caller in a recording contains a call
# that reaches its callee, by objdump, and how many stacks reach their root. Goal: no complete stack has an edge that
# nothing proves. Exit status 1 when one has.
#   bench/stock_callers.sh [PROGRAM...]     SECONDS_EACH=4 PROFILER_BEFORE=DIR KEEP=DIR RECORD_ONLY=1
#
# The judge (bench/stock_callers_judge.py) knows nothing of the project but the output of `profctl dump --json`; its
# head says what it accepts. Beside ours record, at the same time: `perf record --call-graph dwarf,16384`, and a second
# daemon, that of an older release build in PROFILER_BEFORE (build/release of its tree), when that is given.
# The columns direct to declared are percent of all edges of all samples; the last is distinct edges: edges of samples.
# KEEP is a folder for the recordings: what is there is not recorded again, and RECORD_ONLY=1 leaves the judging for later.
# The programs come from the packages of `scripts/install-deps.sh --bench`; one that is not there is left out.
. "${0%/*}/lib.sh"

case ${1:-} in -*)
    echo "usage: $0 [PROGRAM...]" >&2
    exit 2
    ;;
esac

hz=1000
seconds=${SECONDS_EACH:-4}
keep=${KEEP:-$BENCH_WORK/recordings}
before=${PROFILER_BEFORE:+$PROFILER_BEFORE/bin}
judge=$SOURCE_DIR/bench/stock_callers_judge.py
work=$BENCH_WORK
root_pid=
warm=1
before_pid=
missed=0

bench_need "$BIN/cpu-profilerd" "$BIN/profctl" ${before:+"$before/cpu-profilerd" "$before/profctl"} \
    perf python3 pgrep objdump readelf

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

speed() {
    need openssl && launch openssl speed -seconds 600 "$@"
}

raw_video() {
    need ffmpeg && { [ -s "$work/video.y4m" ] ||
        ffmpeg -loglevel error -f lavfi -i testsrc2=s=640x360:d=1 -pix_fmt yuv420p "$work/video.y4m" </dev/null; }
}

picture() {
    need cjpeg djpeg && { [ -s "$work/picture.ppm" ] ||
        { printf 'P6\n3000 3000\n255\n' && head -c 27M /dev/urandom; } >"$work/picture.ppm"; }
}

# Each begin_NAME starts a program, or returns 1 where it is missing.
begin_factor() {
    # Pollard's rho with large numbers: this cofactor has no small prime.
    need factor && launch factor 340282366920938463463374607431768211507000000000000000000000000000000000000000000001233
}
begin_openssl_sha256() { speed -evp sha256; }
begin_openssl_gcm() { speed -evp aes-256-gcm; }
begin_openssl_chacha() { speed -evp chacha20-poly1305; }
begin_openssl_rsa() { speed rsa2048; }
begin_openssl_ecdsa() { speed ecdsap256; }
begin_x265() {
    need x265 && raw_video && launch again x265 --log-level none --input "$work/video.y4m" -o /dev/null
}
begin_ffmpeg_x264() {
    raw_video && launch again ffmpeg -loglevel error -i "$work/video.y4m" -c:v libx264 -f null -
}
begin_dav1d() {
    need dav1d SvtAv1EncApp && raw_video || return 1
    [ -s "$work/video.ivf" ] || SvtAv1EncApp --preset 10 -i "$work/video.y4m" -b "$work/video.ivf" >/dev/null 2>&1
    launch again dav1d -q -i "$work/video.ivf" -o /dev/null --muxer null
}
begin_cjpeg() { picture && launch again cjpeg -outfile /dev/null "$work/picture.ppm"; }
begin_djpeg() {
    picture && cjpeg -outfile "$work/picture.jpg" "$work/picture.ppm" &&
        launch again djpeg -outfile /dev/null "$work/picture.jpg"
}
begin_gnutls() { need gnutls-cli && launch gnutls-cli --benchmark-ciphers; }
begin_sha256sum() { need sha256sum && launch sha256sum /dev/zero; }
begin_gpg() {
    need gpg gpg-agent || return 1
    mkdir -p "$work/gnupg" && chmod 700 "$work/gnupg"
    GNUPGHOME=$work/gnupg launch gpg --batch --yes --passphrase x --pinentry-mode loopback -c --compress-algo none \
        -o /dev/null /dev/zero
}
begin_xz() {
    need xz && head -c 48M /dev/urandom | base64 >"$work/text" && launch xz -T1 -c "$work/text"
}
begin_hashlib() {
    [ -x /usr/bin/python3 ] && launch /usr/bin/python3 -c '
import hashlib, itertools, ssl
data = bytes(1 << 16)
for _ in itertools.cycle((1,)):
    for name in ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "blake2s"):
        hashlib.new(name, data).digest()
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2000)
    hashlib.scrypt(b"x", salt=b"y", n=1024, r=8, p=1)
    ssl.create_default_context()'
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

# record_ours BIN SOCKET NAME: a dump of what one of the daemons recorded.
record_ours() {
    "$1/profctl" record --socket "$2" --config "$work/config.json" -d "$seconds" -o "$work/$3.fxt" >"$work/$3.log" 2>&1 ||
        cat "$work/$3.log" >&2
    "$1/profctl" dump --json "$work/$3.fxt" >"$work/$3.json"
}

# measure FOLDER
measure() {
    local perf_pid before_record=
    printf '{"frequency_hz":%s,"kernel_stacks":false,"targets":{"pids":[%s]}}\n' "$hz" "$root_pid" >"$work/config.json"
    sleep 1
    [ "$warm" -eq 1 ] || "$BIN/profctl" record --config "$work/config.json" -d "$warm" -o "$work/warm.fxt" >/dev/null 2>&1
    rm -f "$work/perf.data"
    # What again() starts from now on is its child, and recorded by all; what runs already ends soon.
    perf record -q -e cpu-clock -F "$hz" --call-graph dwarf,16384 -p "$root_pid" -o "$work/perf.data" -- \
        sleep "$seconds" >/dev/null 2>&1 &
    perf_pid=$!
    if [ -n "$before" ]; then
        record_ours "$before" "$work/before/control.sock" before &
        before_record=$!
    fi
    record_ours "$BIN" "$CPU_PROFILERD_SOCKET" ours
    wait "$perf_pid" ${before_record:+"$before_record"} || true
    end_program
    perf script -i "$work/perf.data" --no-inline -F ip,sym,dso 2>/dev/null >"$work/dwarf.txt" || true
    mkdir -p "$1"
    mv "$work/dwarf.txt" ${before:+"$work/before.json"} "$1"
    mv "$work/ours.json" "$1" # the last: a folder that has it is whole
}

# The older daemon has a socket of its own; lib.sh knows of one daemon.
start_before() {
    mkdir -p "$work/before"
    "$before/cpu-profilerd" --socket "$work/before/control.sock" >"$work/before/daemon.log" 2>&1 &
    before_pid=$!
    wait_until 10 test -S "$work/before/control.sock"
}

stop_before() {
    [ -z "$before_pid" ] || kill "$before_pid" 2>/dev/null || true
    bench_finish
}

programs=("$@")
[ $# -gt 0 ] || programs=(factor openssl_sha256 openssl_gcm openssl_chacha openssl_rsa openssl_ecdsa x265 ffmpeg_x264
    dav1d cjpeg djpeg gnutls sha256sum gpg xz hashlib)
trap stop_before EXIT
daemon_start "$BIN" "$BENCH_WORK"
[ -z "$before" ] || start_before
for program in "${programs[@]}"; do
    if [ -s "$keep/$program/ours.json" ]; then
        continue
    fi
    # The rows of a library with many megabytes of code without call frames take seconds to make, once for a daemon.
    warm=1
    case $program in x265 | ffmpeg_x264) warm=8 ;; esac
    if "begin_$program"; then
        measure "$keep/$program"
    else
        echo "$program: not here"
    fi
done
[ -z "${RECORD_ONLY:-}" ] || exit 0

bench_machine
"$judge" --head
for program in "${programs[@]}"; do
    if [ -s "$keep/$program/ours.json" ]; then
        "$judge" "$program" "$keep/$program" || missed=1
    fi
done
if [ "$missed" -eq 0 ]; then
    echo "reached goal: every edge of every complete stack is proved"
else
    echo "MISSED  goal: every edge of every complete stack is proved"
fi
exit "$missed"
