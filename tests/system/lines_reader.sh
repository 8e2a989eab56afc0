#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Debugging information is parsed by a child of profctl that has no rights. A file that shrinks while it is mapped, one
# that never lets its reader go on, and one of a terabyte lose their own lines: profctl says so in one line, and
# shows the others'. As root and as an ordinary user. Where no child can work, each module counts once as lost.
. "${0%/*}/lib.sh"
use_build release
for program in gcc readelf; do
    command -v "$program" >/dev/null || skip "$program is not installed (scripts/install-deps.sh --test)"
done
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}
chmod 755 "$WORK"
mkdir "$WORK/own" "$WORK/user"
check=$SOURCE_DIR/tests/system/lines_reader.py
# The test looks into /proc of the child, which only root may: it stays what it is, and profctl is run as the user.
python3 "$check" "$BIN/profctl" "$MAKER" "$WORK/own" "$(id -u)" shrinks vast || fail "as uid $(id -u): see above"
if [ "$(id -u)" -eq 0 ]; then
    python3 "$check" "$BIN/profctl" "$MAKER" "$WORK/user" 4711 shrinks hangs vast || fail "as uid 4711: see above"
    mkdir -p /usr/lib/debug "$WORK/useless"
    unshare --mount bash -c 'mount -t tmpfs none /usr/lib/debug && exec "$@"' bash python3 "$check" "$BIN/profctl" \
        "$MAKER" "$WORK/useless" "$BUILD_DIR/bin/under_filter" useless || fail "where no child can work: see above"
fi
