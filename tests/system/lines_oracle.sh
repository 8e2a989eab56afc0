#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# 5,000 addresses in more than ten modules of all kinds (gcc, clang, C, C++, Rust, DWARF 4 and 5, LTO, compressed
# sections, stripped ones with a debug file of their own): ours must name the same functions, inlined ones too, with
# the same files and lines, as `eu-addr2line -f -i` does. lines_oracle.py judges, and has what differs for a reason.
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

programs=tests/oracle/programs
c_sources=(daemon/fxt/*.c daemon/symbolize/*.c common/fault.c)
c_flags=(-D_GNU_SOURCE -std=gnu17 -O2 -g -fPIC -shared -Icommon -Idaemon/fxt -Idaemon/symbolize)
modules=()

# build NAME COMPILER...: a module, its file last; one that does not build is a failure.
build() {
    local name=$1
    shift
    "$@" -o "$WORK/$name" >"$WORK/log" 2>&1 || {
        cat "$WORK/log"
        exit 1
    }
    modules+=("$WORK/$name")
}

build gcc_c gcc "${c_flags[@]}" "${c_sources[@]}"
build gcc_c_lto gcc "${c_flags[@]}" -flto "${c_sources[@]}"
build gcc_c_compressed gcc "${c_flags[@]}" -gz -gdwarf-4 "${c_sources[@]}"
build clang_c clang "${c_flags[@]}" -gdwarf-aranges "${c_sources[@]}"
build gcc_cxx g++ -O2 -g "$programs/templates.cc"
build gcc_cxx_4 g++ -O3 -gdwarf-4 -fdebug-types-section "$programs/templates.cc"
# Functions that the linker leaves out.
build gcc_cxx_sections g++ -O2 -g -ffunction-sections -fkeep-inline-functions -Wl,--gc-sections "$programs/templates.cc"
build clang_cxx clang++ -O2 -g -gdwarf-aranges "$programs/templates.cc"
build clang_cxx_plain clang++ -O2 -g "$programs/templates.cc"
build stripped.debug g++ -O1 -g "$programs/exceptions.cc"
objcopy --only-keep-debug "$WORK/stripped.debug"
if command -v rustc >/dev/null; then
    build rust rustc -O -g -C strip=none "$programs/mixed.rs"
fi
# What the C library's package has.
for library in libc.so.6 libm.so.6 ld-linux-x86-64.so.2; do
    path=$(find /lib/x86_64-linux-gnu /lib64 -maxdepth 1 -name "$library" 2>/dev/null | head -n 1)
    id=$(readelf -nW "${path:-/nothing}" 2>/dev/null | sed -n 's/.*Build ID: //p')
    debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    [ -n "$id" ] && [ -e "$debug" ] && modules+=("$debug")
done
exec python3 tests/system/lines_oracle.py "$BUILD_DIR/bin/lines_probe" "${modules[@]}"
