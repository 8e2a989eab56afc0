#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Whose a process was: units of the system and of a user, containers and a pod, made of control groups and
# namespaces; of each kind one that is gone before the recording ends. The recording, its report and its exports say
# it of each sample, and --unit selects by it, when it is recorded and afterwards. Processes that go round groups
# know when they were where. A user who makes groups as fast as he can takes nothing from the others.
. "${0%/*}/lib.sh"
require_perf
use_build release

MOUNT=
for folder in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    [ "$(stat -f -c %T "$folder" 2>/dev/null)" = cgroup2fs ] && MOUNT=$folder
done
[ -n "$MOUNT" ] && [ -w "$MOUNT/cgroup.procs" ] || skip "no control groups of version 2 can be made here"

TOOL="${0%/*}/owners.py"
PYTHON=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))') # not a script that calls it
groups=() # that were made here, the outer ones first

# Who is still there goes back to the root, so that the folders can be removed.
remove_groups() {
    local status=$? i pid
    for ((i = ${#groups[@]} - 1; i >= 0; i--)); do
        while read -r pid; do
            echo "$pid" >"$MOUNT/cgroup.procs"
        done <"${groups[i]}/cgroup.procs"
        find "${groups[i]}" -mindepth 1 -depth -type d -exec rmdir {} +
        rmdir "${groups[i]}"
    done 2>/dev/null
    return $status
}
trap 'remove_groups; finish' EXIT

# make PATH: a group with all above it that are not there yet; its folder in GROUP.
make() {
    local part
    GROUP=$MOUNT
    IFS=/ read -ra parts <<<"$1"
    for part in "${parts[@]}"; do
        GROUP=$GROUP/$part
        if [ ! -d "$GROUP" ]; then
            mkdir "$GROUP" || fail "mkdir $GROUP"
            groups+=("$GROUP")
        fi
    done
}

ID1=$(printf '1%.0s' {1..64})
ID2=$(printf '2%.0s' {1..64})
ID3=$(printf '3%.0s' {1..64})
UNIT=cpt-web.service # a name that no unit of the machine has
USER_FOLDER=user.slice/user-4242.slice/user@4242.service/app.slice
SECONDS_LONG=2.2
SECONDS_SHORT=0.6

# spin NAME PATH SECONDS [WRAPPER...]: a program NAME in a group of its own.
spin() {
    local name=$1 seconds=$3
    make "$2"
    ln -sf "$PYTHON" "$WORK/$name"
    shift 3
    run_in_background "$@" "$WORK/$name" "$TOOL" run "$GROUP" "$seconds" >/dev/null
}
inside=(unshare --fork --pid --mount-proc --uts)

start_daemon
profctl start --no-kernel -F 999 >/dev/null || fail start
spin web "system.slice/$UNIT" $SECONDS_LONG
spin docker1 "system.slice/docker-$ID1.scope/system.slice/$UNIT" $SECONDS_LONG "${inside[@]}"
spin sync "$USER_FOLDER/cpt-sync.service" $SECONDS_LONG
spin pod "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef.slice/cri-containerd-$ID3.scope" $SECONDS_LONG
spin webgone "system.slice/cpt-gone.service" $SECONDS_SHORT
spin podman2 "machine.slice/libpod-$ID2.scope/system.slice/$UNIT" $SECONDS_SHORT "${inside[@]}"
spin syncgone "$USER_FOLDER/cpt-gone.service" $SECONDS_SHORT
sleep 1.2
gone=0
for group in "$MOUNT/system.slice/cpt-gone.service" "$MOUNT/machine.slice/libpod-$ID2.scope/system.slice/$UNIT" \
    "$MOUNT/$USER_FOLDER/cpt-gone.service"; do
    wait_until 10 rmdir "$group" 2>/dev/null || fail "$group is still in use"
    gone=$((gone + 1))
done
wait_until 20 background_is_over || fail "the programs do not end"
profctl stop >/dev/null && profctl read --native -o "$WORK/p.fxt" >/dev/null && profctl close >/dev/null || fail read

# name|unit|container, as rows of report have them. The interpreter is the same file: its name tells the programs apart.
expected="web|$UNIT|[no known container]
docker1|$UNIT in docker:$ID1|docker:$ID1
sync|cpt-sync.service (user@4242)|[no known container]
pod|cri-containerd-$ID3.scope in containerd:$ID3|containerd:$ID3
webgone|cpt-gone.service|[no known container]
podman2|$UNIT in podman:$ID2|podman:$ID2
syncgone|cpt-gone.service (user@4242)|[no known container]"
for by in command unit container user; do
    profctl report --by $by -n 0 --json "$WORK/p.fxt" >"$WORK/$by.json" || fail "report --by $by"
done
profctl export --format pprof "$WORK/p.fxt" -o "$WORK/p.pprof" && profctl export --format otlp "$WORK/p.fxt" -o "$WORK/p.otlp" || fail export
python3 - "$WORK" "${0%/*}" "$expected" <<'PYTHON' || fail "report and exports"
import collections, gzip, json, re, subprocess, sys
folder, here, expected = sys.argv[1:]
rows = {by: {r["name"]: r["self"] for r in json.load(open(f"{folder}/{by}.json"))["rows"]} for by in ("command", "unit", "container", "user")}
of_unit, of_container = collections.Counter(), collections.Counter()
names = {}
for line in expected.split("\n"):
    name, unit, container = line.split("|")
    names[name] = unit, container
    # What starts and joins the group was in another one for some ticks.
    of_unit[unit] += rows["command"].get(name, 0)
    if container != "[no known container]":
        of_container[container] += rows["command"].get(name, 0)
for wanted, found in ((of_unit, rows["unit"]), (of_container, rows["container"])):
    for label, samples in wanted.items():
        # An interpreter is up within 0.1 s of CPU time, and one of several that share a CPU has less.
        if not 50 < samples or not samples - 150 <= found.get(label, 0) <= samples:
            sys.exit(f"FAIL: {label}: {found.get(label)} of {samples} samples")
if sum(rows["unit"].values()) != sum(rows["command"].values()):
    sys.exit("FAIL: rows by unit are not all samples")
def decode(message, proto, data):
    return subprocess.run(["protoc", f"--decode=test.{message}", f"-I{here}", f"{here}/{proto}"], input=data, stdout=subprocess.PIPE, check=True).stdout.decode()
data = open(f"{folder}/p.pprof", "rb").read()
text = decode("Profile", "export_profile.proto", gzip.decompress(data))
# Other programs of the machine may have any name.
strings = [s.encode().decode("unicode_escape").encode("latin-1").decode() for s in re.findall(r'^string_table: "(.*)"$', text, re.M)]
labels = collections.Counter()
for sample in re.findall(r"^sample \{\n(.*?)^\}", text, re.M | re.S):
    count = int(re.search(r"value: (\d+)", sample)[1])
    of = {}
    for label in re.findall(r"label \{\n(.*?)  \}", sample, re.S):
        at = dict(re.findall(r"(key|str|num): (\d+)", label))
        of[strings[int(at["key"])]] = strings[int(at["str"])] if "str" in at else int(at.get("num", 0))
    labels[of.get("unit"), of.get("user_unit"), of.get("container"), of.get("runtime"), of.get("pod")] += count
text = decode("Request", "export_otlp.proto", open(f"{folder}/p.otlp", "rb").read())
resources = collections.Counter()
for resource in re.findall(r"^resource_profiles \{\n  resource \{\n(.*?)^  \}", text, re.M | re.S):
    at = dict(re.findall(r'key: "(.*?)"\n\s+value \{\n\s+string_value: "(.*?)"', resource))
    resources[at.get("systemd.unit.name"), at.get("systemd.user_unit.name"), at.get("container.id"), at.get("container.runtime.name"), at.get("k8s.pod.uid")] += 1
for label, samples in rows["unit"].items():
    match = re.fullmatch(r"(\S+?)(?: \((user@\d+)\))?(?: in (\w+):(\w+))?", label)
    if label.startswith("/") or not match or "cpt-" not in label and "cri-" not in label:
        continue
    unit, user, runtime, container = match.groups()
    pod = "01234567-89ab-cdef-0123-456789abcdef" if runtime == "containerd" else None
    key = (user + ".service", unit, None, None, None) if user else (unit, None, container, runtime, pod)
    if labels[key] != samples or resources[key] == 0:
        sys.exit(f"FAIL: {label}: {samples} samples, {labels[key]} in pprof, {resources[key]} resources of otlp")
print(", ".join(f"{label} {samples}" for label, samples in sorted(rows["unit"].items())))
PYTHON
count_of() {
    profctl report --json -n 0 "$@" "$WORK/p.fxt" >"$WORK/part.json" 2>/dev/null && json "$WORK/part.json" "d['samples']"
}
of_unit=$(json "$WORK/unit.json" "sum(r['self'] for r in d['rows'] if r['name'].split()[0] == '$UNIT')")
[ "$(count_of -U "${UNIT%.service}")" = "$of_unit" ] || fail "-U selects other samples than $of_unit"
[ "$(count_of -G /machine.slice)" = "$(json "$WORK/container.json" "sum(r['self'] for r in d['rows'] if 'podman' in r['name'])")" ] || fail "-G selects other samples"
[ "$(count_of -u root)" = "$(json "$WORK/user.json" "sum(r['self'] for r in d['rows'] if r['name'] in ('root', 'uid 0'))")" ] || fail "-u selects other samples"

# Of a unit alone, as it is recorded.
make "system.slice/cpt-a.service"
a=$GROUP
make "system.slice/cpt-b.service"
b=$GROUP
make "system.slice/cpt-vm.scope"
vm=$GROUP
for part in vcpu0 vcpu1; do
    make "system.slice/cpt-vm.scope/$part"
    echo threaded >"$GROUP/cgroup.type" || fail "no threaded groups"
done
make "system.slice/cpt-flood.service"
chown nobody "$GROUP" "$GROUP/cgroup.procs" || fail chown
flood=$GROUP
mkdir "$WORK/truth"
profctl start --no-kernel -F 4000 -U "cpt-?.service" -U cpt-vm.scope >/dev/null || fail "start -U"
run_in_background setpriv --reuid=nobody --regid=nogroup --clear-groups env PATH=/usr/bin:/bin python3 "$TOOL" flood 2.5 "$flood" >"$WORK/flood.out"
flooder=$BACKGROUND_PID
run_in_background python3 "$TOOL" move 2 10 "$WORK/truth/few.truth" "$a" "$b" >/dev/null
run_in_background python3 "$TOOL" move 2 60 "$WORK/truth/many.truth" "$a" "$b" >/dev/null
run_in_background bash -c "echo \$\$ >$vm/cgroup.procs; exec python3 $TOOL threads 2 $vm/vcpu0 $vm/vcpu1" >/dev/null
wait_until 30 background_is_over || fail "the programs do not end"
wait "$flooder" || fail "flood"
profctl stop >/dev/null && profctl read --native -o "$WORK/q.fxt" >/dev/null || fail read
profctl status --json >"$WORK/status.json"
profctl close >/dev/null
profctl dump --json "$WORK/q.fxt" >"$WORK/dump" || fail dump
cat "$WORK/flood.out"
python3 "$TOOL" judge "$WORK/dump" "$WORK/truth" "$MOUNT" many.truth || fail "who was where"
profctl report --by unit --json -n 0 "$WORK/q.fxt" >"$WORK/q.json"
json "$WORK/q.json" "', '.join('%s %d' % (r['name'], r['self']) for r in d['rows'])"
expect_json "$WORK/q.json" "all(r['name'].startswith('cpt-') or r['name'] == '[unknown]' for r in d['rows'])" "-U recorded others"
expect_json "$WORK/q.json" "sum(r['self'] for r in d['rows'] if r['name'] == 'cpt-vm.scope') > 500" "the threads in two groups are not those of their unit"
