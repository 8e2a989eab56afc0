#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests in a virtual machine with a kernel that this machine may lack: Debian sid's cloud kernel (6.19 and
# newer have deferred callchains), emulated, with Debian's own sysctls and this machine's files as its root,
# read-only. The tests run as root with the programs of the presets dev, release and plain. Prints PASS or FAIL
# for each, and PASS or FAIL at the end; exits 0 only when all passed. Not part of the tests: it downloads a kernel.
#
#   scripts/test-vm.sh [--cache DIR] [--results DIR] [--timeout SECONDS] [TEST.sh ...]
#
# Without TEST all of tests/vm/ and those of tests/system/ that tests/vm/also names. --cache keeps the kernel for
# the next time, --results what the tests printed and left in $RESULTS. Packages that are missing here
# are installed (scripts/install-deps.sh --vm); the kernel is not: it is unpacked beside, and sid is no source
# of this machine's apt at any time.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")/.." && pwd)
cache=
results=
timeout_s=
limit_s=600 # of a test: what takes 25 s elsewhere took 310 s here
tests=()

die() {
    echo "$0: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --cache) cache=${2:?--cache needs a folder} && shift ;;
    --results) results=${2:?--results needs a folder} && shift ;;
    --timeout) timeout_s=${2:?--timeout needs seconds} && shift ;;
    -*)
        echo "usage: $0 [--cache DIR] [--results DIR] [--timeout SECONDS] [TEST.sh ...]" >&2
        exit 2
        ;;
    *) tests+=("$(realpath -e "$1")") ;;
    esac
    shift
done
if [ ${#tests[@]} -eq 0 ]; then
    tests=("$source_dir"/tests/vm/*.sh)
    while read -r name; do
        tests+=("$source_dir/tests/system/$name.sh")
    done < <(sed 's/#.*//' "$source_dir/tests/vm/also" | awk 'NF > 0 { print $1 }')
fi
timeout_s=${timeout_s:-$((120 + limit_s * ${#tests[@]}))}

[ "$(uname -m)" = x86_64 ] || die "needs an x86-64 machine"
[ "$(id -u)" -eq 0 ] || die "needs root, to show this machine's files to the virtual one"
for preset in dev release plain; do
    [ -x "$source_dir/build/$preset/bin/cpu-profilerd" ] ||
        die "build first: cmake --preset $preset && cmake --build --preset $preset"
done
"$source_dir/scripts/install-deps.sh" --vm
virtiofsd=$(find /usr/lib/qemu /usr/libexec -name virtiofsd -print -quit 2>/dev/null || true)
[ -n "$virtiofsd" ] || die "needs virtiofsd, which is not where qemu has it"

work=$(mktemp -d)
pids=()
clean_up() {
    local pid
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cache=${cache:-$work/cache}
mkdir -p "$cache" "$work/results"
cache=$(realpath "$cache")

# fetch_kernel: sid's kernel to $cache/vmlinuz and its overlay filesystem, a module, to $cache/overlay.ko, by an apt whose configuration, lists and archives are its own.
fetch_kernel() (
    apt=$work/apt
    # shellcheck source=scripts/archive.sh
    . "$source_dir/scripts/archive.sh"
    archive_find "$(. /etc/os-release && echo "$VERSION_CODENAME")"
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    : >"$apt/status"
    echo "deb [signed-by=$archive_keyring] $archive_mirror sid main" >"$apt/sources.list"
    {
        archive_settings
        cat <<CONF
Dir::Etc "$apt";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "$apt";
Dir::State::Lists "$apt/lists";
Dir::State::Status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::Archives "$apt/archives";
APT::Sandbox::User "root";
Acquire::Languages "none";
CONF
    } >"$apt/apt.conf"
    export APT_CONFIG=$apt/apt.conf
    cd "$apt"
    apt-get -q update
    version=$(apt-cache depends linux-image-cloud-amd64 |
        sed -n 's/^ *Depends: linux-image-\([0-9].*-cloud-amd64\)$/\1/p')
    # What holds the kernel itself has had two names, and its modules may be in a package of their own.
    apt-get -q download "linux-binary-$version" || apt-get -q download "linux-image-$version"
    apt-get -q download "linux-modules-$version" || true
    for package in ./*.deb; do
        dpkg -x "$package" root
    done
    xz -dc "$(find root -name 'overlay.ko.xz' -print -quit)" >"$cache/overlay.ko"
    cp "$(find root -type f -name 'vmlinuz*' -print -quit)" "$cache/vmlinuz.new"
    mv "$cache/vmlinuz.new" "$cache/vmlinuz"
)

if [ ! -e "$cache/vmlinuz" ] || [ ! -e "$cache/overlay.ko" ]; then
    echo "== fetching sid's kernel"
    fetch_kernel >"$work/fetch.log" 2>&1 || {
        tail -n 20 "$work/fetch.log" >&2
        die "no kernel"
    }
fi

# make_initrd: a static busybox that mounts what the host shows and goes on there. Nothing of the root can be
# written to, so what programs write to is memory; sources and tests that lie below /tmp show through.
make_initrd() {
    mkdir -p "$work/initrd"/{bin,proc,root}
    cp /bin/busybox "$work/initrd/bin/"
    cp "$cache/overlay.ko" "$work/initrd/"
    cat >"$work/initrd/init" <<INIT
#!/bin/busybox sh
set -e
export PATH=/bin
busybox insmod /overlay.ko
busybox mount -t virtiofs -o ro root /root
for folder in proc sys dev run tmp; do busybox mount -t tmpfs tmpfs /root/\$folder; done
busybox mount -t proc proc /root/proc
busybox mount -t sysfs sysfs /root/sys
busybox mount -t devtmpfs devtmpfs /root/dev
busybox mkdir /root/run/results /root/run/host
busybox mount -t virtiofs results /root/run/results
busybox mount -t virtiofs -o ro root /root/run/host
show_through() {
    busybox mkdir -p "/root\$1"
    busybox mount --bind "/root/run/host\$1" "/root\$1"
}
$(for folder in "$source_dir" "${tests[@]%/*}"; do echo "show_through '$folder'"; done | sort -u)
exec busybox switch_root /root /bin/bash /run/results/run
INIT
    chmod +x "$work/initrd/init"
    (cd "$work/initrd" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"
}

# What the machine does when it is up: the tests, one after the other, each with a time limit of its own.
make_run() {
    {
        printf 'source_dir=%q\nlimit_s=%q\ntests=(' "$source_dir" "$limit_s"
        printf ' %q' "${tests[@]}"
        echo ' )'
        cat <<'RUN'
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb RESULTS=/run/results
export SOURCE_DIR=$source_dir BUILD_DIR=$source_dir/build/dev RELEASE_DIR=$source_dir/build/release
export CPU_PROFILERD_REQUIRE_PERF=1 CPU_PROFILERD_PATIENCE=6
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +cpu +memory +pids +io >/sys/fs/cgroup/cgroup.subtree_control
ip link set lo up 2>/dev/null
ln -sf /proc/self/fd /dev/fd
echo "== $(uname -sr), perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid), $(nproc) CPUs, up in $(cut -d ' ' -f 1 /proc/uptime) s"
boot_paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
status=0
for test in "${tests[@]}"; do
    name=$(basename "$test" .sh)
    began=$SECONDS
    cd /tmp
    # What a machine where it is installed has; the others find Debian's own.
    paranoid=$boot_paranoid
    [[ $test != "$source_dir"/tests/system/* ]] || paranoid=2
    echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
    if timeout -k 10 "$limit_s" "$test" >"$RESULTS/$name.out" 2>&1 </dev/null; then
        echo "PASS $name ($((SECONDS - began)) s)"
    else
        echo "FAIL $name ($((SECONDS - began)) s)"
        tail -n 40 "$RESULTS/$name.out"
        status=1
    fi
done
echo "$status" >"$RESULTS/status"
sync
echo b >/proc/sysrq-trigger
sleep 60
RUN
    } >"$work/results/run"
}

# show_files TAG FOLDER: a virtiofs daemon; qemu finds it at $work/TAG.sock.
show_files() {
    "$virtiofsd" --socket-path="$work/$1.sock" -o source="$2" -o sandbox=chroot -o cache=always \
        -o announce_submounts --rlimit-nofile=0 >"$work/$1.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 100); do
        [ ! -S "$work/$1.sock" ] || return 0
        sleep 0.05
    done
    cat "$work/$1.log" >&2
    die "virtiofsd does not run"
}

make_initrd
make_run
show_files root /
show_files results "$work/results"
echo "== booting"
# shellcheck disable=SC2054
machine=(
    -accel tcg,thread=multi -cpu max -smp 2 -m 4608
    -object memory-backend-memfd,id=memory,size=4608M,share=on -numa node,memdev=memory
    -nodefaults -no-user-config -display none -no-reboot -serial stdio
    -chardev socket,id=root,path="$work/root.sock" -device vhost-user-fs-pci,chardev=root,tag=root
    -chardev socket,id=results,path="$work/results.sock" -device vhost-user-fs-pci,chardev=results,tag=results
    -kernel "$cache/vmlinuz" -initrd "$work/initrd.gz"
    -append "console=ttyS0 quiet panic=-1 random.trust_cpu=on sysrq_always_enabled"
)
# In the background: bash would not heed a signal while it waits for a command in the foreground.
timeout "$timeout_s" qemu-system-x86_64 "${machine[@]}" </dev/null > >(sed -u 's/\r//g') 2>&1 &
pids+=($!)
wait "$!" || true

status=$(cat "$work/results/status" 2>/dev/null || echo "it did not come to its end")
if [ -n "$results" ]; then
    mkdir -p "$results"
    rm -f "$work/results/run"
    cp -r "$work/results/." "$results/"
fi
if [ "$status" != 0 ]; then
    [ "$status" = 1 ] || echo "$0: $status"
    echo FAIL
    exit 1
fi
echo PASS
