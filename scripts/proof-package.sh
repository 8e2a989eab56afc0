#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves what docs/install.md says of the Debian packages: two builds, at different places and times, are equal to the
# byte; lintian has no error and no warning that is not explained; the AppArmor profile and the RPM spec can be read; on
# a bare Debian 12 with a systemd of its own (scripts/systemd_lab.sh) three commands lead to a flame graph; an upgrade
# and a downgrade during a session lose nothing of it; the kernel's setting is lowered by the administrator's word only,
# and goes back with the package; purge leaves nothing; and debian/tests pass under autopkgtest.
# Needs root, perf events and a Debian mirror, and takes a quarter of an hour; not part of the tests. Packages that are
# missing here are installed (scripts/install-deps.sh --package-proof).
#
#   scripts/proof-package.sh [--cache DIR] [--packages DIR]
#
# --cache keeps the bare system, by default $XDG_CACHE_HOME/cpu-profilerd-fresh; --packages takes packages that are
# built already, and builds none.
set -euo pipefail

source_dir=$(cd "${0%/*}/.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/cpu-profilerd-fresh
packages=

while [ $# -gt 0 ]; do
    case $1 in
    --cache) cache=${2:?--cache needs a folder} && shift ;;
    --packages) packages=$(realpath -e "${2:?--packages needs a folder}") && shift ;;
    *)
        echo "usage: $0 [--cache DIR] [--packages DIR]" >&2
        exit 2
        ;;
    esac
    shift
done

"$source_dir/scripts/install-deps.sh" --package-proof
work=$(mktemp -d)
# shellcheck source=scripts/daemon.sh
. "$source_dir/scripts/daemon.sh"
# shellcheck source=scripts/systemd_lab.sh
. "$source_dir/scripts/systemd_lab.sh"
# shellcheck source=scripts/bare_system.sh
. "$source_dir/scripts/bare_system.sh"

clean_up() {
    set +e
    lab_stop
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
    echo "FAIL $*" >&2
    exit 1
}

proved=()
prove() {
    echo "PASS $*"
    proved+=("$*")
}

# ---- the packages themselves

build_twice() {
    echo "== two builds, at different places, with another umask, time zone and language"
    mkdir -p "$work/first" "$work/elsewhere/tmp" "$work/elsewhere/clone"
    "$source_dir/scripts/package.sh" "$work/first"
    tar -C "$source_dir" --exclude=./build --exclude=./.git -cf - . | (umask 077 && tar -C "$work/elsewhere/clone" --no-same-permissions -xf -)
    (
        umask 077
        TMPDIR=$work/elsewhere/tmp TZ=Pacific/Kiritimati LANG=C "$work/elsewhere/clone/scripts/package.sh" "$work/second"
    )
    (cd "$work/first" && sha256sum -- *.deb) >"$work/sums"
    (cd "$work/second" && sha256sum --check "$work/sums") || die "the builds differ"
    prove "$(wc -l <"$work/sums") packages, built twice, are equal to the byte"
    packages=$work/first
}

judge() {
    echo "== lintian, and the AppArmor profile"
    lintian --display-info --show-overrides --allow-root "$packages"/*.changes | tee "$work/lintian"
    ! grep -E '^[EW]: ' "$work/lintian" || die "lintian"
    prove "lintian: no error, no warning, $(grep -c '^O: ' "$work/lintian" || true) overrides, each with its reason"
    apparmor_parser --skip-kernel-load --skip-cache "$source_dir/debian/apparmor/usr.sbin.cpu-profilerd" ||
        die "the AppArmor profile"
    prove "the AppArmor profile compiles; whether the kernel here has AppArmor: $([ -d /sys/kernel/security/apparmor ] && echo yes || echo no)"
}

judge_spec() {
    echo "== the RPM spec"
    rpmspec --parse "$source_dir/packaging/cpu-profilerd.spec" >/dev/null || die "rpmspec"
    rpmlint --config "$source_dir/packaging/rpmlint.toml" "$source_dir/packaging/cpu-profilerd.spec" >"$work/rpmlint" 2>&1 || die "rpmlint: $(cat "$work/rpmlint")"
    tail -n 1 "$work/rpmlint"
    prove "the RPM spec is read by rpmspec, and rpmlint finds nothing"
}

# ---- a bare system

deb=cpu-profilerd_0.1.0_amd64.deb
unit=cpu-profilerd.service
paranoid=/proc/sys/kernel/perf_event_paranoid

# boot: a bare Debian 12 with the packages in /root. Its kernel seems to have Debian's own value of the setting; the
# machine's own is not touched.
boot() {
    local setup
    setup="cp $work/lab/packages/* /root/
printf '%s\n' '[Service]' 'AmbientCapabilities=CAP_IPC_LOCK CAP_SYS_NICE' 'CapabilityBoundingSet=CAP_IPC_LOCK CAP_SYS_NICE' >/root/limits.conf
useradd --create-home alice"
    lab_stop || true
    rm -rf "$work/lab"
    mkdir -p "$work/lab/packages" "$work/source"
    cp "$packages"/*.deb "$work/lab/packages/"
    # What is below SOURCE_DIR is there inside.
    LAB_BASE=$work/bare lab_start "$work/lab" "$work/lab/packages" "$setup" || die "systemd did not boot: $(cat "$work/lab/boot.log")"
    lab sh -c "echo 3 >/root/paranoid && mount --bind /root/paranoid $paranoid"
    # Debconf asks there, before anything is unpacked.
    lab mknod -m 666 /dev/tty c 5 0
    # Where this machine's root may not raise limits, neither may the systemd inside: capabilities stand for them.
    if ! setpriv --dump | grep -q 'Capability bounding set:.*sys_resource'; then
        lab install -D -m 644 /root/limits.conf /etc/systemd/system/$unit.d/limits.conf
        lab systemctl daemon-reload
    fi
    lab_online apt-get -qq update || die "apt-get update"
}

# apt ARGUMENT...: unattended.
apt() {
    lab_online env DEBIAN_FRONTEND=noninteractive apt-get -y -q "$@" </dev/null >"$work/apt.log" 2>&1 || {
        cat "$work/apt.log" >&2
        die "apt-get $*"
    }
}

is_asked() {
    grep -q '\[yes/no\]' "$work/apt.log"
}

# apt_answered TEXT ARGUMENT...: on a terminal, where TEXT is typed when the question has been asked.
apt_answered() {
    local text=$1 pid
    shift
    mkfifo "$work/typed"
    lab_online env DEBIAN_FRONTEND=teletype TERM=dumb script --quiet --return --flush \
        --command "apt-get -y -q $*" /dev/null <"$work/typed" >"$work/apt.log" 2>&1 &
    pid=$!
    exec 3>"$work/typed"
    wait_until 120 is_asked || die "nothing is asked: $(cat "$work/apt.log")"
    echo "$text" >&3
    wait "$pid" || die "apt-get $*: $(cat "$work/apt.log")"
    exec 3>&-
    rm "$work/typed"
}

# in_lab COMMAND: by a shell of root, in /root.
in_lab() {
    lab sh -euc "cd /root; $1"
}

as_alice() {
    lab_as alice sh -euc "cd /home/alice; $1"
}

# record_failed WHAT: with what the daemon had to say.
record_failed() {
    lab journalctl --no-pager -o short-precise -u $unit >&2 || true
    die "$1"
}

expect_paranoid() {
    [ "$(lab cat $paranoid)" = "$1" ] || die "kernel.perf_event_paranoid is $(lab cat $paranoid), not $1: $2"
}

service_pid() {
    lab systemctl show $unit -p MainPID --value
}

# files: every name on the machine that is not of the kernel, of a log, or of apt's, dpkg's and debconf's own books.
files() {
    in_lab "find / -xdev ! -path '/root/*' ! -path '/var/log/*' ! -path '/var/cache/apt/*' ! -path '/var/lib/apt/*' ! -path /var/cache/debconf/tmp.ci
        find /run /tmp -xdev ! -path '/run/systemd/*' ! -path '/run/log/*'" | sort
}

units() {
    lab systemctl list-units --all --plain --no-legend 'cpu-profilerd*' | awk '{ print $1, $2 }'
}

# start_load NAME: a stock program, under a name of its own, that keeps a CPU busy.
start_load() {
    in_lab "cp /usr/bin/sha256sum /usr/bin/$1; systemd-run --quiet --unit=$1 /usr/bin/$1 /dev/zero"
}

stop_load() {
    in_lab "systemctl stop $1; rm /usr/bin/$1"
}

purge_leaves_nothing() {
    local left
    files >"$work/files.after"
    left=$(comm -13 "$work/files.before" "$work/files.after")
    [ -z "$left" ] || die "$1: purge leaves: $left"
    [ -z "$(units)" ] || die "$1: purge leaves units: $(units)"
    expect_paranoid 3 "$1"
    ! lab debconf-show cpu-profilerd 2>/dev/null | grep . || die "$1: purge leaves an answer"
}

# preset ANSWER: the answer to the package's question, in advance.
preset() {
    echo "cpu-profilerd cpu-profilerd/perf-event-paranoid boolean $1" | lab debconf-set-selections
}

# expect_answer ANSWER VALUE WHAT: what debconf has, and the setting.
expect_answer() {
    local answer
    answer=$(lab debconf-show cpu-profilerd | sed -n 's/^[* ] cpu-profilerd\/perf-event-paranoid: //p')
    [ "$answer" = "$1" ] || die "the answer is $answer, not $1: $3"
    expect_paranoid "$2" "$3"
}

reconfigure() {
    lab env DEBIAN_FRONTEND=noninteractive dpkg-reconfigure cpu-profilerd >"$work/apt.log" 2>&1 || die "dpkg-reconfigure: $(cat "$work/apt.log")"
}

expect_said() {
    grep -F "$1" "$work/apt.log" || die "it is not said that: $1: $(cat "$work/apt.log")"
}

# ---- the stories

# in_image COMMAND: by a shell of root, in a chroot with its own /proc, whose settings are the machine's.
in_image() {
    unshare --mount --pid --fork --kill-child env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        ${http_proxy:+http_proxy="$http_proxy" https_proxy="$http_proxy"} \
        sh -euc 'mount -t proc proc "$1/proc"; exec chroot "$1" sh -euc "$2"' sh "$work/image" "$1" </dev/null >"$work/apt.log" 2>&1 || {
        cat "$work/apt.log" >&2
        die "in the image: $1"
    }
}

image_files() {
    in_image "find / -xdev ! -path '/root/*' ! -path '/var/log/*' ! -path '/var/cache/apt/*' ! -path '/var/lib/apt/*'"
    # Of the users, which stay.
    grep -vxE '/etc/((passwd|group|shadow|gshadow)-|\.pwd\.lock)' "$work/apt.log" | sort
}

image() {
    local link=/etc/sysctl.d/00-cpu-profilerd.conf before left
    echo "== installed into an image, without systemd and procps, and with the answer yes in advance"
    bare_make bookworm "$work" "$cache" systemd-standalone-sysusers
    bare_unpack "$work/image" "$work"
    [ ! -e "$work/image/etc/sysctl.d" ] || die "the image has /etc/sysctl.d already"
    cp "$packages/$deb" "$work/image/root/"
    before=$(cat $paranoid)
    in_image "apt-get -qq update; apt-get -y -q satisfy --no-install-recommends '$(dpkg-deb -f "$packages/$deb" Depends)'"
    image_files >"$work/image.before"
    in_image "echo cpu-profilerd cpu-profilerd/perf-event-paranoid boolean true | debconf-set-selections
        apt-get -y -q install --no-install-recommends /root/$deb"
    in_image "dpkg-query -W -f '\${Status}\n' cpu-profilerd; readlink -e $link; cat $link"
    grep -x 'install ok installed' "$work/apt.log" || die "the image: $(cat "$work/apt.log")"
    grep -xF -e '-kernel.perf_event_paranoi[d] = 2' "$work/apt.log" || die "the image will not lower the setting: $(cat "$work/apt.log")"
    in_image "apt-get -y -q purge cpu-profilerd"
    image_files >"$work/image.after"
    left=$(comm -13 "$work/image.before" "$work/image.after")
    [ -z "$left" ] || die "the image: purge leaves: $left"
    [ "$(cat $paranoid)" = "$before" ] || die "the image: the machine's setting was $before"
    rm -rf "$work/image"
    prove "an image without systemd takes the answer yes, for its boots, and purge leaves nothing in it"
}

unattended() {
    echo "== installed unattended, and purged"
    apt satisfy --no-install-recommends "$(dpkg-deb -f "$packages/$deb" Depends)"
    apt install --no-install-recommends apt-utils
    files >"$work/files.before"
    apt install --no-install-recommends /root/$deb
    grep 'perf_event_paranoid is 3, so cpu-profilerd cannot sample' "$work/apt.log" || die "the administrator is not told: $(cat "$work/apt.log")"
    expect_paranoid 3 "nothing was asked"
    apt purge cpu-profilerd
    purge_leaves_nothing "unattended"
    in_lab "getent passwd | grep cpu-prof; getent group cpu-profiler"
    prove "unattended: the setting of the kernel is left alone and said; purge leaves the four users and the group, and nothing else"
}

three_commands() {
    echo "== three commands, with the question answered by yes"
    start_load load
    echo "# apt install ./cpu-profilerd_*.deb"
    apt_answered yes install --no-install-recommends "/root/$deb"
    grep -a 'kernel.perf_event_paranoid' "$work/apt.log" | head -n 3
    expect_paranoid 2 "the question was answered by yes"
    echo "# profctl record -d 3 -o p.fxt"
    in_lab 'profctl record -d 3 -o p.fxt' >"$work/record" 2>&1 || record_failed "record: $(cat "$work/record")"
    head -n 3 "$work/record"
    echo "# profctl flamegraph p.fxt"
    in_lab 'profctl flamegraph p.fxt; grep -q "<canvas" flamegraph.html; ls -l flamegraph.html'
    in_lab 'profctl flamegraph p.fxt -o p.svg; grep -q ">load" p.svg' || die "the flame graph lacks the load"
    [ "$(lab readlink /run/varlink/registry/io.cpuprofilerd.Sampler)" = /run/cpu-profilerd/control.sock ] || die "varlink's registry"
    lab usermod -aG cpu-profiler alice
    as_alice 'profctl record -d 1 -o a.fxt; profctl report -n 3 a.fxt' >"$work/report" 2>&1 || record_failed "a member: $(cat "$work/report")"
    in_lab "ls -l /etc/sysctl.d/00-cpu-profilerd.conf"
    prove "three commands lead to a flame graph; the setting is 2 since the administrator has said so"
}

# other_version VERSION: the same files with another version, /root/VERSION.deb.
other_version() {
    dpkg-deb -R "$packages/$deb" "$work/$1"
    sed -i "s/^Version: .*/Version: $1/" "$work/$1/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/$1" "$work/$1.deb" >/dev/null
    lab tee "/root/$1.deb" <"$work/$1.deb" >/dev/null
}

# change_during_session VERB VERSION: whether what alice records is whole, before and after the change.
change_during_session() {
    local pid
    as_alice 'rm -f all.fxt; profctl start -F 999' >/dev/null
    pid=$(service_pid)
    sleep 2
    apt install --no-install-recommends --allow-downgrades "/root/$2.deb"
    grep 'a session is under way' "$work/apt.log" || die "$1: it is not said that the session goes on: $(cat "$work/apt.log")"
    [ "$(service_pid)" = "$pid" ] || die "$1: the daemon was restarted"
    # The old program goes on, and so does its worker: it reads files that are new, and a worker that is killed is replaced.
    lab sh -c "kill -KILL \$(cat /proc/$pid/task/*/children)" || die "$1: there is no worker"
    start_load fresh
    sleep 3
    as_alice 'profctl stop; profctl read -o all.fxt; profctl close; profctl report --json -n 0 all.fxt' >"$work/session" 2>&1 || record_failed "$1: $(cat "$work/session")"
    stop_load fresh
    as_alice 'profctl report --json -n 0 all.fxt' >"$work/all.json"
    as_alice 'profctl report --json -n 0 --comm fresh all.fxt' >"$work/fresh.json"
    python3 - "$work/all.json" "$work/fresh.json" <<'PYTHON' || die "$1: the recording is not whole"
import json, sys
whole, fresh = (json.load(open(name)) for name in sys.argv[1:])
total = whole["books"]["total"]
print(f"{whole['samples']} samples are in the file, {total['kept']} were kept; {fresh['samples']} of a program that began after the change")
named = sum(row["self"] for row in fresh["rows"] if row["module"] and row["module"] != "[unknown]")
sys.exit(not (whole["samples"] == total["kept"] > 1000 and total["dropped"] == 0 and fresh["samples"] > 20 and named > 0.9 * fresh["samples"]))
PYTHON
    prove "$1 during a session: the daemon goes on, and all samples of before and after can be read"
}

# The daemon ends when it is idle, and the next client has the new program.
is_idle() {
    [ "$(lab systemctl is-active $unit)" = inactive ]
}

new_program_runs() {
    wait_until 80 is_idle || die "the daemon does not end when it is not needed"
    in_lab 'profctl status >/dev/null'
    [ "$(lab readlink "/proc/$(service_pid)/exe")" = /usr/sbin/cpu-profilerd ] || die "the old program runs"
    prove "a minute after the session the next client has the new program"
}

upgrades() {
    echo "== upgrade and downgrade"
    other_version 0.1.0+later
    other_version 0.1.0~earlier
    change_during_session upgrade 0.1.0+later
    new_program_runs
    change_during_session downgrade 0.1.0~earlier
    apt install --no-install-recommends /root/$deb
    in_lab 'profctl status >/dev/null'
    [ "$(lab readlink "/proc/$(service_pid)/exe")" = /usr/sbin/cpu-profilerd ] || die "a daemon without a session is not replaced"
    prove "a daemon without a session is replaced by an upgrade at once"
    expect_paranoid 2 "after the upgrades"
}

own_setting() {
    local link=/etc/sysctl.d/00-cpu-profilerd.conf
    echo "== a file of the administrator's in the place of the link"
    in_lab "rm $link; echo 'kernel.perf_event_paranoid = 3' >$link; /lib/systemd/systemd-sysctl --prefix=/kernel/perf_event_paranoid"
    apt install --reinstall --no-install-recommends /root/$deb
    expect_paranoid 3 "the administrator's file says so"
    grep 'is 3, so cpu-profilerd cannot sample; another file in sysctl.d names it' "$work/apt.log" || die "it is not said what holds: $(cat "$work/apt.log")"
    in_lab "echo 'kernel.perf_event_paranoid = 2' >$link; /lib/systemd/systemd-sysctl --prefix=/kernel/perf_event_paranoid"
    apt install --reinstall --no-install-recommends /root/$deb
    expect_paranoid 2 "the administrator's file says so"
    apt remove cpu-profilerd
    expect_paranoid 2 "removed, and the administrator's file says so"
    in_lab "grep -x 'kernel.perf_event_paranoid = 2' $link; rm $link; ln -s /usr/share/cpu-profilerd/00-cpu-profilerd.conf $link; echo 3 >$paranoid"
    apt install --no-install-recommends /root/$deb
    expect_paranoid 2 "the link is there again"
    prove "a sysctl file of the administrator's holds in an upgrade and after a removal"
}

answers() {
    local link=/etc/sysctl.d/00-cpu-profilerd.conf
    echo "== answers in advance where the package is or has been, and links that are made and removed by hand"
    apt install --no-install-recommends /root/$deb
    expect_answer false 3 "nobody has answered"
    preset true
    reconfigure
    expect_answer true 2 "preset, and reconfigured"
    reconfigure
    expect_answer true 2 "reconfigured again"
    lab rm $link
    apt install --reinstall --no-install-recommends /root/$deb
    expect_answer false 3 "the link was removed since"
    preset true
    apt install --reinstall --no-install-recommends /root/$deb
    expect_answer true 2 "preset, and installed again"
    lab rm $link
    preset true
    reconfigure
    expect_answer true 2 "the link was removed, and then the answer was preset"
    apt remove cpu-profilerd
    preset false
    apt install --no-install-recommends /root/$deb
    expect_answer false 3 "removed, preset to no, and installed"
    lab ln -s /usr/share/cpu-profilerd/00-cpu-profilerd.conf $link
    reconfigure
    expect_answer true 2 "the link was made by hand"
    apt remove cpu-profilerd
    lab rm $link
    apt install --no-install-recommends /root/$deb
    expect_answer false 3 "the link was removed after the package"
    apt remove cpu-profilerd
    preset true
    apt install --no-install-recommends /root/$deb
    expect_answer true 2 "removed, preset, and installed"
    apt purge cpu-profilerd
    apt install --no-install-recommends /root/$deb
    expect_answer false 3 "purged, and installed unattended"
    apt_answered yes install --reinstall --no-install-recommends "/root/$deb"
    expect_answer true 2 "asked in an upgrade, as nobody had answered"
    lab rm $link
    apt install --reinstall --no-install-recommends /root/$deb
    expect_answer false 3 "the link was removed after an answer that was typed"
    apt purge cpu-profilerd
    purge_leaves_nothing "answers"
    prove "an answer in advance holds whether or not the package has been there, and so does a link that is made or removed after it"
}

full_disk() {
    local state=/var/lib/cpu-profilerd
    echo "== no room in $state"
    in_lab "mkdir $state; mount -t tmpfs -o size=4k,mode=755 none $state; head -c 4096 /dev/zero >$state/fill"
    preset true
    ! (apt install --no-install-recommends /root/$deb) 2>/dev/null || die "the former setting has no place, and nothing fails"
    expect_said "kernel.perf_event_paranoid stays 3, since $state/perf_event_paranoid.former cannot be written"
    expect_paranoid 3 "its former value cannot be noted"
    [ "$(in_lab "echo $state/*")" = $state/fill ] || die "a note without a value is left: $(in_lab "ls -l $state")"
    in_lab "rm $state/fill; DEBIAN_FRONTEND=noninteractive dpkg --configure -a"
    expect_answer true 2 "there is room"
    apt remove cpu-profilerd
    expect_paranoid 3 "removed, after the disk was full"
    apt install --no-install-recommends /root/$deb
    in_lab ": >$state/perf_event_paranoid.former"
    apt remove cpu-profilerd
    expect_paranoid 2 "nothing says what it was"
    expect_said "kernel.perf_event_paranoid stays 2: $state/perf_event_paranoid.former does not say what it was"
    in_lab "echo 3 >$paranoid; umount $state; rmdir $state"
    apt purge cpu-profilerd
    purge_leaves_nothing "a full disk"
    prove "on a full disk the setting stays, and is restored by a removal once there was room; an empty note is no value"
}

mounted_state() {
    local state=/var/lib/cpu-profilerd
    echo "== purged, where $state is a mount point"
    in_lab "mkdir $state; mount -t tmpfs -o mode=755 none $state; mkdir $state/lost+found"
    apt install --no-install-recommends /root/$deb
    in_lab "install -d -o cpu-profilerd-record $state/web; : >$state/web/.hidden"
    apt purge cpu-profilerd
    expect_said "$state stays: it is a mount point"
    [ "$(in_lab "find $state -mindepth 1")" = $state/lost+found ] || die "purge leaves in $state: $(in_lab "find $state")"
    in_lab "umount $state; rmdir $state"
    purge_leaves_nothing "a mount point"
    prove "purge empties $state where it is a mount point"
}

linked_state() {
    local state=/var/lib/cpu-profilerd
    echo "== purged, where $state is a link"
    in_lab "mkdir /srv/rec; echo root >/srv/rec/mine; ln -s ../../srv/rec $state"
    apt install --no-install-recommends /root/$deb
    in_lab "install -d -o cpu-profilerd-record /srv/rec/web; echo recording >/srv/rec/web/web-1.fxt.gz"
    apt purge cpu-profilerd
    expect_said "/srv/rec, to which $state led, stays"
    [ "$(in_lab "find /srv/rec -mindepth 1")" = /srv/rec/mine ] || die "purge leaves in /srv/rec: $(in_lab "find /srv/rec")"
    # A folder of alice's, who puts a link to another in its place.
    in_lab "ln -s /home/alice/rec $state; install -d -o cpu-profilerd-record /srv/rec/web"
    as_alice 'ln -s /srv/rec rec'
    apt install --no-install-recommends /root/$deb
    apt purge cpu-profilerd
    expect_said "not root alone decides where that is"
    lab test -d /srv/rec/web || die "purge follows a link of alice's"
    as_alice 'rm rec; mkdir rec'
    in_lab "ln -s /home/alice/rec $state; install -d -o cpu-profilerd-record /home/alice/rec/web"
    as_alice 'ln -s /srv/rec/mine rec/perf_event_paranoid.former.new'
    preset true
    apt install --no-install-recommends /root/$deb
    expect_paranoid 2 "the answer was preset"
    [ "$(lab cat /srv/rec/mine)" = root ] || die "the former setting is written through a link of alice's"
    apt purge cpu-profilerd
    expect_said "not root alone decides where that is"
    lab test -d /home/alice/rec/web || die "purge empties a folder that alice can exchange"
    in_lab "rm -r /srv/rec /home/alice/rec"
    purge_leaves_nothing "a link"
    prove "purge removes the recordings where $state is a link of root's, and follows no other's"
}

is_recording() {
    in_lab 'profctl status --json' | grep -q '"state": *"running"'
}

# The schedule is in the middle of a recording.
expect_recording() {
    wait_until 30 is_recording || die "the schedule does not record: $(in_lab 'profctl status')"
}

removal() {
    echo "== removed, installed again, and purged while it records"
    in_lab "profctl start"
    apt remove cpu-profilerd
    expect_said "a recording session ends"
    expect_paranoid 3 "removed"
    ! lab test -e /run/cpu-profilerd || die "removed: /run/cpu-profilerd is there"
    apt install --no-install-recommends /root/$deb
    expect_paranoid 2 "the answer holds after a removal"
    in_lab "echo '{\"frequency_hz\": 99, \"max_duration_s\": 600}' >/etc/cpu-profilerd/record/web.json
        echo '{\"max_frequency_hz\": 1000}' >/etc/cpu-profilerd/daemon.json
        systemctl enable --now cpu-profilerd-record@web.timer; systemctl start cpu-profilerd-record@web.service" 2>&1
    expect_recording
    stop_load load
    # A user's recordings are the user's.
    in_lab "rm -f /home/alice/*.fxt"
    apt remove cpu-profilerd
    apt install --no-install-recommends /root/$deb
    lab systemctl --quiet is-active cpu-profilerd-record@web.timer || die "installed again: an enabled schedule does not run"
    in_lab "cp /var/lib/dpkg/info/cpu-profilerd.prerm prerm; echo 'exit 1' >>/var/lib/dpkg/info/cpu-profilerd.prerm
        ! dpkg --remove cpu-profilerd; mv prerm /var/lib/dpkg/info/cpu-profilerd.prerm" 2>&1
    [ "$(lab systemctl is-active cpu-profilerd.socket cpu-profilerd-record@web.timer | sort -u)" = active ] ||
        die "a removal that failed: the socket or an enabled schedule does not run"
    prove "a removal that fails leaves the socket and the enabled schedules running"
    in_lab "systemctl start cpu-profilerd-record@web.service"
    expect_recording
    apt purge cpu-profilerd
    lab journalctl --no-pager -o cat -u cpu-profilerd-record@web.service | tail -n 3
    purge_leaves_nothing "purged while it records"
    prove "purged while it records on a schedule: nothing is left"
}

autopkgtests() {
    echo "== debian/tests, by autopkgtest"
    boot
    echo 2 | lab tee /root/paranoid >/dev/null
    tar -C "$source_dir" -cf - debian client/examples | lab sh -c 'mkdir /root/tree; tar -C /root/tree -xf -'
    apt install --no-install-recommends autopkgtest
    # The lab is the isolation, which the runner `null` does not know of.
    lab_online sh -c 'cd /root; autopkgtest --ignore-restrictions=isolation-container --no-built-binaries ./*.deb tree/ -- null' >"$work/autopkgtest" 2>&1 ||
        { tail -n 60 "$work/autopkgtest" >&2; die "autopkgtest"; }
    grep -A 5 '@@@@.* summary' "$work/autopkgtest"
    ! grep -E ' SKIP ' "$work/autopkgtest" || die "a test was skipped"
    prove "autopkgtest: all of debian/tests pass"
}

[ -z "$(lab_why_not)" ] || die "$(lab_why_not)"
[ -n "$packages" ] || build_twice
judge
judge_spec
bare_find bookworm "$work"
bare_make bookworm "$work" "$cache" systemd systemd-sysv dbus
bare_unpack "$work/bare" "$work"
image
boot
unattended
three_commands
upgrades
own_setting
removal
answers
full_disk
mounted_state
linked_state
autopkgtests

echo
printf 'PASS %s\n' "${proved[@]}"
