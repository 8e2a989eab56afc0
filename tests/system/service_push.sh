#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a schedule has recorded is sent by a service without rights: cpu-profilerd-push@NAME, started by its path. Its user
# cannot profile; a credential that nobody else can read reaches the store, and no journal. While the store is away the
# recordings wait, and all arrive once; a recording that is not sent outlives its schedule's rotation. A link that the
# sender puts into its folder changes no file of the recorder's.
. "${0%/*}/lib.sh"
. "${0%/*}/service_lib.sh"
require_perf
use_build release
require_lab
start_service_lab
recorder=cpu-profilerd-record@web.service
sender=cpu-profilerd-push@web.service
secret=s3cr3t-0f-the-lab

# serve FILE: a store in the lab, in the background, that writes what it has into FILE when it is told to end.
serve() {
    lab python3 "$SOURCE_DIR/tests/system/otlp_store.py" 4318 >"$1" 2>"$1.err" </dev/null &
    background_pids+=($!)
    wait_until 10 grep -q ready "$1" || fail "no store in the lab: $(cat "$1.err")"
}

stop_store() {
    lab pkill -TERM -f 'otlp_store.py 4318' || fail "no store to end"
    wait_until 10 grep -q samples "$1" || fail "the store says nothing: $(cat "$1" "$1.err")"
    tail -n 1 "$1" >"$1.json"
}

recorded() {
    lab systemctl start "$recorder" || fail "the recording does not start"
    wait_until 20 recording_ended "$recorder" || fail "the recording does not end"
    [ "$(lab systemctl show "$recorder" -p Result --value)" = success ] ||
        fail "the recording failed: $(lab journalctl --no-pager -u "$recorder")"
}

recording_ended() {
    [ "$(lab systemctl show "$1" -p ActiveState --value)" = inactive ]
}

is_sent() {
    [ -z "$(lab sh -c 'ls /var/spool/cpu-profilerd/web')" ] &&
        [ "$(lab systemctl show "$sender" -p ActiveState --value)" = inactive ]
}

is_retrying() {
    lab journalctl --no-pager -o cat -u "$sender" | grep -q 'trying again'
}

# all_samples: of the recordings that the schedule has kept.
all_samples() {
    lab sh -c 'for f in /var/lib/cpu-profilerd/web/web-*.fxt.gz; do profctl export "$f" --format ndjson; done' |
        grep -c '"table":"sample"'
}

lab ip link set lo up 2>/dev/null
echo '{"frequency_hz": 99, "max_duration_s": 1}' | lab tee /etc/cpu-profilerd/record/web.json >/dev/null
lab sh -c "echo TO=http://127.0.0.1:4318 >/etc/cpu-profilerd/push/web.conf
echo OPTIONS=--timeout 5s --headers /etc/cpu-profilerd/push/web.headers >>/etc/cpu-profilerd/push/web.conf
umask 077; echo 'Authorization: Bearer $secret' >/etc/cpu-profilerd/push/web.headers
chown cpu-profilerd-push /etc/cpu-profilerd/push/web.headers"
lab systemctl start cpu-profilerd-push@web.path || fail "the path does not start"
run_in_lab alice busy --seconds 120
lab_as cpu-profilerd-push profctl status >"$WORK/out" 2>&1 && fail "the sender's user may profile"
lab_as cpu-profilerd-push ls /var/lib/cpu-profilerd/web 2>/dev/null && fail "it sees what is recorded"

# Links of the sender's, in the place of a copy that is being made and of one that is whole.
name=planted-20200101T000000Z.fxt.gz
kept=/var/lib/cpu-profilerd/planted
spool=/var/spool/cpu-profilerd/planted
lab sh -euc "touch /etc/cpu-profilerd/push/planted.conf
install -d -o cpu-profilerd-record -m 755 $kept $kept/folder
install -d -o cpu-profilerd-record -g cpu-profilerd-push -m 2770 $spool
echo new >$kept/$name; echo kept >$kept/file; chown cpu-profilerd-record $kept/*"
lab_as cpu-profilerd-push sh -euc "ln -s $kept/file $spool/.$name.part; ln -s $kept/folder $spool/$name" || fail "no links can be planted"
lab_as cpu-profilerd-record env STATE_DIRECTORY=$kept KEEP=24 /usr/libexec/cpu-profilerd/rotate planted || fail "rotate with links in its way"
[ "$(lab cat $kept/file)" = kept ] || fail "a link of the sender's is followed, and a recorder's file written"
[ -z "$(lab ls -A $kept/folder)" ] || fail "a link of the sender's is followed into a folder: $(lab ls -A $kept/folder)"
[ "$(lab find $spool -type f -printf '%f %g\n')" = "$name cpu-profilerd-push" ] || fail "the copy is not in $spool: $(lab ls -la $spool)"
lab rm -r $spool $kept /etc/cpu-profilerd/push/planted.conf

serve "$WORK/store1"
recorded
wait_until 20 is_sent || fail "a recording is not sent: $(lab journalctl --no-pager -u "$sender"; lab ls -laR /var/spool/cpu-profilerd)"
stop_store "$WORK/store1"
expect_json "$WORK/store1.json" "d['samples'] == $(all_samples) > 0 and d['twice'] == [] and d['complaints'] == [] and d['tokens'] == ['Bearer $secret']" \
    "the store has something else: $(cat "$WORK/store1")"

# The store is away for three recordings, of which the schedule keeps one. AWAY=23 makes a day of it, in fast motion.
away=${AWAY:-3}
lab mkdir -p /run/systemd/system/$recorder.d
printf '[Service]\nEnvironment=KEEP=1\n' | lab tee /run/systemd/system/$recorder.d/keep.conf >/dev/null
lab systemctl daemon-reload
total=0
for ((hour = 0; hour < away; hour++)); do
    recorded
    total=$((total + $(all_samples)))
    sleep 1 # names are of the second
done
wait_until 20 is_retrying || fail "it does not say that the store is away: $(lab journalctl --no-pager -u "$sender")"
[ "$(lab sh -c 'ls /var/spool/cpu-profilerd/web/*.fxt.gz' | wc -l)" -eq "$away" ] || fail "$away recordings do not wait"
serve "$WORK/store2"
wait_until 90 is_sent || fail "what waited is not sent: $(lab journalctl --no-pager -u "$sender")"
stop_store "$WORK/store2"
expect_json "$WORK/store2.json" "d['samples'] == $total and d['twice'] == [] and d['complaints'] == []" \
    "of $total samples the store has: $(cat "$WORK/store2")"
lab journalctl --no-pager -o cat | grep -qF "$secret" && fail "the credential is in the journal"
lab journalctl --no-pager -o cat -u "$sender" | grep -qE '[0-9]+ samples: [0-9]+ accepted' || fail "the journal has no sums"
exit 0
