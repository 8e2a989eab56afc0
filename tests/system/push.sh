#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `profctl push` against a store that is not ours (otlp_store.py): what arrives is what was recorded, whatever the store
# does: 429, 503, 400, partial success, silence, a broken connection, a wrong certificate, other limits. Each sample is
# accepted, rejected by name, or said not to be sent; a later run goes on behind what was taken. A folder of a day of
# recordings is sent with a store that comes and goes; what has no room any more is named and counted. Credentials are in
# no list of processes, message, error, file or core.
. "${0%/*}/lib.sh"
MAKER=${MAKER:-$BUILD_DIR/bin/recording_maker}

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext 'subjectAltName=IP:127.0.0.1' \
    -keyout "$WORK/key.pem" -out "$WORK/cert.pem" 2>/dev/null || fail "openssl"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -addext 'subjectAltName=DNS:other' \
    -keyout "$WORK/other_key.pem" -out "$WORK/other_cert.pem" 2>/dev/null || fail "openssl"
python3 "${0%/*}/push.py" "$BIN/profctl" "$MAKER" "$WORK" || fail "see above"
