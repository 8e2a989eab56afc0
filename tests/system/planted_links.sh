#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A user without rights plants symbolic links in a folder for all users (fs.protected_symlinks is on, as distributions have
# it) under the name that root's profctl is to write: to a file of root's, to one that is not there yet, and to either in
# turn with a file of the user's own, hundreds of times a second. The link's place is written, never what it names. Pipes
# of the user's, which the user reads, and a link to one or to a device, get nothing, even where the kernel follows links.
. "${0%/*}/lib.sh"
# shellcheck source=tests/system/machine_settings.sh
. "${0%/*}/machine_settings.sh"
use_build release
[ "$(id -u)" -eq 0 ] || skip "this changes a sysctl"
sysctl=/proc/sys/fs/protected_symlinks
keep_settings $sysctl || fail "the machine would not be as it was"
trap finish_restored EXIT
echo 1 >$sysctl || fail "$sysctl cannot be set"

user=(setpriv --reuid=4711 --regid=4711 --clear-groups)
chmod 711 "$WORK"
mkdir -m 700 "$WORK/root"
mkdir -m 1777 "$WORK/all"
printf '\020\000\004\106\170\124\026\000' >"$WORK/magic" # an empty recording

write() {
    profctl export "$WORK/magic" --format speedscope -o "$WORK/all/$1"
}
expect_untouched() {
    [ "$(cat "$WORK/root/there")" = "root's" ] || fail "a file of root's was written through a link of a user ($1)"
    [ "$(ls "$WORK/root")" = there ] || fail "a file was made in root's folder through a link of a user ($1)"
}

echo "root's" >"$WORK/root/there"
for name in there new; do
    "${user[@]}" ln -s "$WORK/root/$name" "$WORK/all/$name" || fail "ln"
    write "$name" || fail "export to $name"
    expect_untouched "$name"
    [ -f "$WORK/all/$name" ] && [ ! -L "$WORK/all/$name" ] || fail "$name is still a link"
done

# The user's own file, and a link, each moved over the other while root writes.
cat >"$WORK/swap.py" <<'PYTHON'
import itertools, os, sys
folder, target = sys.argv[1:]
place, next = folder + "/swapped", folder + "/next"
for kind in itertools.cycle(("file", "there", "file", "new")):
    try:
        if kind == "file":
            open(next, "w").close()
        else:
            os.symlink(target + "/" + kind, next)
        os.rename(next, place)
    except OSError:  # root's file is there, which the user may not move
        os.path.lexists(next) and os.unlink(next)
PYTHON
run_in_background "${user[@]}" python3 "$WORK/swap.py" "$WORK/all" "$WORK/root"
wait_until 10 test -e "$WORK/all/swapped" -o -L "$WORK/all/swapped" || fail "nothing is swapped"
for ((i = 0; i < 200; i++)); do
    write swapped 2>/dev/null || true # it may be told that the file has changed
    expect_untouched swapped
    rm -f "$WORK/all/swapped"
done

# A pipe of the user's, which the user reads; a link to one; a link to a device.
"${user[@]}" mkfifo "$WORK/all/pipe" "$WORK/all/behind" || fail "mkfifo"
"${user[@]}" ln -s "$WORK/all/behind" "$WORK/all/pipe_link" || fail "ln"
"${user[@]}" ln -s /dev/null "$WORK/all/device_link" || fail "ln"
for name in pipe behind; do
    run_in_background "${user[@]}" timeout 60 dd if="$WORK/all/$name" of="$WORK/all/read_$name" status=none
done
echo 0 >$sysctl || fail "$sysctl cannot be set"
for name in pipe pipe_link device_link; do
    timeout 30 profctl export "$WORK/magic" --format speedscope -o "$WORK/all/$name" 2>"$WORK/err" &&
        fail "$name of a user was written"
    grep -q "$name is another user's pipe or device, or behind another user's link" "$WORK/err" ||
        fail "$name: says '$(cat "$WORK/err")'"
done
echo 1 >$sysctl || fail "$sysctl cannot be set"
for name in pipe behind; do
    [ ! -s "$WORK/all/read_$name" ] || fail "the user has read $(wc -c <"$WORK/all/read_$name") bytes of root's export ($name)"
done

# A pipe and a link to a device of root's own are written.
mkfifo "$WORK/all/roots_pipe"
ln -s /dev/null "$WORK/all/roots_link"
write roots_link || fail "export to a link of root's to a device"
run_in_background dd if="$WORK/all/roots_pipe" of="$WORK/read" status=none
write roots_pipe || fail "export to a pipe of root's"
wait_until 10 test -s "$WORK/read" || fail "nothing came out of root's pipe"

# A link of root's own, onto another folder, stays one.
mkdir "$WORK/disk"
ln -s "$WORK/disk/new" "$WORK/all/own"
write own || fail "export to a link of one's own"
[ -L "$WORK/all/own" ] && [ -s "$WORK/disk/new" ] || fail "a link of one's own is not followed"
