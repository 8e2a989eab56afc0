#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Addresses in ten modules of all kinds (gcc, clang, C, C++, DWARF 4 and 5, a stripped one with a debug file of its
# own, and the C library's): ours must name the same functions, inlined ones too, with the same files and lines, as
# `eu-addr2line -f -i` does. lines_oracle.py judges, and has what differs for a reason. 1,500 addresses; with --long
# 5,000, and more of the C library's modules, our own programs, Rust, LTO, compressed sections, and functions that the
# linker left out.
set -u

SOURCE_DIR=${SOURCE_DIR:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
BUILD_DIR=${BUILD_DIR:-$SOURCE_DIR/build/dev}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$SOURCE_DIR" || exit 1

for program in eu-addr2line addr2line gcc g++ clang++ nm python3; do
    command -v "$program" >/dev/null && continue
    echo "$program is missing (scripts/install-deps.sh --test)"
    [ "${CPU_PROFILERD_REQUIRE_PERF:-0}" = 1 ] && exit 1
    exit 77
done

# build NAME COMPILER...: a module, its file last. Two at a time; one that does not build is a failure.
modules=()
build() {
    local name=$1
    shift
    modules+=("$WORK/$name")
    "$@" -o "$WORK/$name" >"$WORK/$name.log" 2>&1 &
    [ $((${#modules[@]} % 2)) -eq 0 ] || return 0
    built
}
built() {
    wait
    local module
    for module in "${modules[@]}"; do
        [ -e "$module" ] && continue
        cat "$module.log"
        exit 1
    done
}

programs=tests/oracle/programs
c_sources=(daemon/fxt/*.c)
c_flags=(-D_GNU_SOURCE -std=gnu17 -O2 -g -fPIC -shared -Icommon -Idaemon/fxt -Idaemon/fxt/include -Idaemon/symbolize -Idaemon/symbolize/include)
address_count=1500
libraries=(libc.so.6 libm.so.6 ld-linux-x86-64.so.2)
is_long=false
if [ "${1:-}" = --long ]; then
    is_long=true
    address_count=5000
    libraries+=(libmvec.so.1 libnsl.so.1 libresolv.so.2 libthread_db.so.1 libnss_compat.so.2 libc_malloc_debug.so.0)
    c_sources+=(daemon/symbolize/*.c common/fault.c)
fi

build gcc_c gcc "${c_flags[@]}" "${c_sources[@]}"
build clang_c clang "${c_flags[@]}" -gdwarf-aranges "${c_sources[@]}"
build gcc_cxx g++ -O2 -g "$programs/templates.cc"
build gcc_cxx_4 g++ -O3 -gdwarf-4 -fdebug-types-section "$programs/templates.cc"
build clang_cxx clang++ -O2 -g -gdwarf-aranges "$programs/templates.cc"
build clang_cxx_plain clang++ -O2 -g "$programs/templates.cc"
build stripped.debug g++ -O1 -g "$programs/exceptions.cc"
if "$is_long"; then
    build gcc_c_lto gcc "${c_flags[@]}" -flto "${c_sources[@]}"
    build gcc_c_compressed gcc "${c_flags[@]}" -gz -gdwarf-4 "${c_sources[@]}"
    # Functions that the linker leaves out.
    build gcc_cxx_sections g++ -O2 -g -ffunction-sections -fkeep-inline-functions -Wl,--gc-sections "$programs/templates.cc"
    if command -v rustc >/dev/null; then
        build rust rustc -O -g -C strip=none "$programs/mixed.rs"
    else
        echo "rustc is missing: its lines are not compared"
    fi
fi
built
"$is_long" && modules+=("$BUILD_DIR/bin/cpu-profilerd" "$BUILD_DIR/bin/profctl")
objcopy --only-keep-debug "$WORK/stripped.debug"
# What the C library's package has.
for library in "${libraries[@]}"; do
    path=$(find /lib/x86_64-linux-gnu /lib64 -maxdepth 1 -name "$library" 2>/dev/null | head -n 1)
    id=$(readelf -nW "${path:-/nothing}" 2>/dev/null | sed -n 's/.*Build ID: //p')
    debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    [ -n "$id" ] && [ -e "$debug" ] && modules+=("$debug")
done
exec python3 tests/system/lines_oracle.py "$BUILD_DIR/bin/lines_probe" "$address_count" "${modules[@]}"
