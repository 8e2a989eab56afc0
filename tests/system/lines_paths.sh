#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A recording, a debug link and a link to shared debugging information name FIFOs, sockets, devices and files of the
# kernel. `profctl report --lines` opens none of them: inotify, and a writer that waits for a reader, are the witnesses.
# As root and as an ordinary user.
. "${0%/*}/lib.sh"
for program in gcc objcopy readelf; do
    command -v "$program" >/dev/null || skip "$program is not installed (scripts/install-deps.sh --test)"
done
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}
chmod 755 "$WORK"
# The python3 of a machine may be one that only root can start, so it takes the uid itself.
mkdir "$WORK/root" "$WORK/user"
python3 "$SOURCE_DIR/tests/system/lines_paths.py" "$BIN/profctl" "$MAKER" "$WORK/root" || fail "as $(id -un): see above"
if [ "$(id -u)" -eq 0 ]; then
    chown 4711:4711 "$WORK/user"
    python3 "$SOURCE_DIR/tests/system/lines_paths.py" "$BIN/profctl" "$MAKER" "$WORK/user" 4711 ||
        fail "as 4711: see above"
fi
