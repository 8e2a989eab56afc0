#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What `record` and `read` add to a recording for Perfetto, by a decoder that has nothing of the writer: the rules of both
# formats, and the same samples, stacks, names and losses as the recording's own records. From made recordings, whose
# records come in batches of all sizes, whose names come late and whose stacks come later; from a command's recording; and
# from a session that is read in pieces, into one file and into another that is compressed. --native leaves them out.
. "${0%/*}/lib.sh"
require_perf
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}
decode() {
    python3 "${0%/*}/packets.py" "$@" || fail "packets.py $1: see above"
}

decode made "$BIN/profctl" "$MAKER" "$BUILD_DIR/bin/packets_probe" "$WORK"

use_build release
start_daemon
profctl record -F 2000 -o "$WORK/command.fxt" -- "$WORKLOADS/forker" --seconds 1.5 >/dev/null 2>&1 || fail "record"
profctl record -F 2000 --native -o "$WORK/native.fxt" -- "$WORKLOADS/busy" --seconds 0.5 >/dev/null 2>&1 || fail "record --native"
decode recorded "$BIN/profctl" "$WORK/command.fxt"

run_in_background "$WORKLOADS/busy" --seconds 60 --rest 3 >/dev/null
profctl start -F 2000 -p "$BACKGROUND_PID" >/dev/null || fail "start"
sleep 1
profctl read -o "$WORK/pieces.fxt" >/dev/null || fail "read"
sleep 1
profctl read --append -o "$WORK/pieces.fxt" >/dev/null || fail "read --append"
sleep 0.5
profctl read -o "$WORK/packed.fxt.gz" >/dev/null || fail "read of the rest"
gzip -dk "$WORK/packed.fxt.gz" || fail "gzip"
sleep 0.3
profctl stop >/dev/null || fail "stop"
profctl read --native --append -o "$WORK/native.fxt" >/dev/null || fail "read --native"
profctl close >/dev/null || fail "close"
decode recorded "$BIN/profctl" "$WORK/pieces.fxt" "$WORK/packed.fxt"

cat "$WORK/pieces.fxt" "$WORK/command.fxt" >"$WORK/both.fxt"
python3 - "${0%/*}" "$WORK/native.fxt" "$WORK/both.fxt" <<'PYTHON' || fail "other packets"
import sys
sys.path.append(sys.argv.pop(1))
from packet_decoder import Decoder, complaints
native, both = (Decoder(open(path, "rb").read()) for path in sys.argv[1:])
sys.exit(native.blobs > 0 or not both.samples or not both.offsets or bool(complaints))
PYTHON
