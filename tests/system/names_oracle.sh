#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Addresses of modules of all kinds: the worker's tables must name the same functions as eu-addr2line does, with
# binutils (objdump, readelf) for the linkage tables, which eu-addr2line does not know. names_oracle.py draws the
# addresses and judges, and has what differs for a reason. 1,500 addresses; with --long 6,000, of more modules, and
# with the addresses that real samples of clang, node, python3 and the C++ program have.
set -u

SOURCE_DIR=${SOURCE_DIR:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
BUILD_DIR=${BUILD_DIR:-$SOURCE_DIR/build/dev}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$SOURCE_DIR" || exit 1

for program in eu-addr2line objdump readelf objcopy strip gcc g++ python3; do
    command -v "$program" >/dev/null && continue
    echo "$program is missing (scripts/install-deps.sh --test)"
    [ "${CPU_PROFILERD_REQUIRE_PERF:-0}" = 1 ] && exit 1
    exit 77
done

is_long=false
address_count=1500
if [ "${1:-}" = --long ]; then
    is_long=true
    address_count=6000
fi
programs=tests/oracle/programs
modules=() # NAME=FILE[=DEBUG_FILE]

# add NAME FILE: with its debug file where a package has one.
add() {
    local path id debug
    path=$(readlink -f "$2")
    [ -f "$path" ] || { echo "$1 is missing: its names are not compared"; return 0; }
    id=$(readelf -nW "$path" 2>/dev/null | sed -n 's/.*Build ID: //p')
    debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    if [ -n "$id" ] && [ -e "$debug" ]; then
        modules+=("$1=$path=$debug")
    else
        modules+=("$1=$path")
    fi
}

# build NAME COMPILER...: one of our own.
build() {
    local name=$1
    shift
    if ! "$@" -o "$WORK/$name" >"$WORK/$name.log" 2>&1; then
        cat "$WORK/$name.log"
        exit 1
    fi
}

build symtab gcc -O2 -D_GNU_SOURCE -std=gnu17 -fPIC -shared -Icommon -Idaemon/fxt -Idaemon/fxt/include daemon/fxt/*.c
build plain_cxx g++ -O2 "$programs/templates.cc"
build static_pie g++ -O2 -static-pie "$programs/exceptions.cc"
# A library without .symtab, one whose symbols are packed into it, and one that has them in another file.
cp "$WORK/symtab" "$WORK/dynsym" && strip --strip-all "$WORK/dynsym"
cp "$WORK/plain_cxx" "$WORK/packed"
objcopy --only-keep-debug "$WORK/packed" "$WORK/packed.elf"
python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(open(sys.argv[1], "rb").read()))' \
    "$WORK/packed.elf" >"$WORK/packed.xz"
strip --strip-all "$WORK/packed" && objcopy --add-section .gnu_debugdata="$WORK/packed.xz" "$WORK/packed"
build split g++ -O1 -g -Wl,--build-id "$programs/exceptions.cc"
objcopy --only-keep-debug "$WORK/split" "$WORK/split.debug"
strip --strip-all "$WORK/split" && (cd "$WORK" && objcopy --add-gnu-debuglink=split.debug split)
for name in symtab plain_cxx static_pie dynsym packed; do
    modules+=("$name=$WORK/$name")
done
modules+=("split=$WORK/split=$WORK/split.debug")
if command -v rustc >/dev/null; then
    build rust rustc -O -C strip=debuginfo "$programs/mixed.rs"
    modules+=("rust=$WORK/rust")
fi
# The page that the kernel maps into every process.
python3 - "$WORK/vdso" <<'PYTHON'
import sys
for line in open("/proc/self/maps"):
    if line.rstrip().endswith("[vdso]"):
        start, end = (int(x, 16) for x in line.split()[0].split("-"))
        with open("/proc/self/mem", "rb") as memory, open(sys.argv[1], "wb") as file:
            memory.seek(start)
            file.write(memory.read(end - start))
PYTHON
add vdso "$WORK/vdso"
add libc "$(gcc -print-file-name=libc.so.6)"
add ld.so "$(gcc -print-file-name=ld-linux-x86-64.so.2)"
add libstdc++ "$(g++ -print-file-name=libstdc++.so.6)"
add python3 "$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')"
if "$is_long"; then
    add debian_python3 /usr/bin/python3
    add node "$(command -v node || echo /nothing)"
    add libLLVM "$(ldd "$(command -v clang || echo /bin/true)" | awk '/LLVM/ { print $3 }')"
    add libpython "$(python3 -c 'import sysconfig as s; print(s.get_config_var("LIBDIR") + "/" + s.get_config_var("INSTSONAME"))')"
    add libcrypto /usr/lib/x86_64-linux-gnu/libcrypto.so.3
    add bash /bin/bash
    add profctl "$BUILD_DIR/bin/profctl"
    if command -v go >/dev/null; then
        GOCACHE=$WORK/go go build -o "$WORK/go_program" "$programs/mixed.go" || exit 1
        modules+=("go=$WORK/go_program")
    fi
fi
# What really ran: what a recording has of programs in all kinds of languages.
if "$is_long"; then
    # shellcheck source=scripts/daemon.sh
    . scripts/daemon.sh
    release=${RELEASE_DIR:-$SOURCE_DIR/build/release}/bin
    [ -x "$release/cpu-profilerd" ] || { echo "the release build is missing"; exit 1; }
    daemon_start "$release" "$WORK" || exit 1
    trap 'daemon_stop; rm -rf "$WORK"' EXIT
    cp "$programs/mixed.py" "$programs/mixed.js" "$WORK"
    cat >"$WORK/run" <<COMMANDS
$WORK/plain_cxx 1000000
$WORK/rust
$WORK/go_program
python3 $WORK/mixed.py
/usr/bin/python3 $WORK/mixed.py
node $WORK/mixed.js
clang++ -O2 -c $SOURCE_DIR/$programs/templates.cc -o $WORK/templates.o
openssl speed -seconds 5 sha256
COMMANDS
    "$release/profctl" record -F 1000 -o "$WORK/recording.fxt" -- \
        xargs -P 8 -a "$WORK/run" -d '\n' -n 1 timeout 6 sh -c >"$WORK/record.log" 2>&1
    "$release/profctl" dump --json "$WORK/recording.fxt" >"$WORK/recording.json" || exit 1
    daemon_stop || exit 1
    modules+=("RECORDING=$WORK/recording.json")
fi
python3 tests/system/names_oracle.py "$BUILD_DIR/bin/names_probe" "$address_count" "${modules[@]}"
