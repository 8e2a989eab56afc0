#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the build needs on Debian 12, with --test also what the tests need, with --bench also what the
# benches measure, with --coverage also what scripts/coverage.sh needs, with --vm what scripts/test-vm.sh needs, with
# --package also what scripts/package.sh needs, and with --package-proof what scripts/proof-package.sh needs.
# Installs only what is missing, says nothing when nothing is, and shows apt's output only when it fails. The lists
# here are the only ones, but for Build-Depends in debian/control, which check.package holds against them.
set -euo pipefail

packages=(
    gcc libc6-dev binutils cmake ninja-build pkg-config
    libcjson-dev   # JSON of the control socket and of the configs
    libcurl4-openssl-dev # profctl push
    libdebuginfod-dev # profctl: debug files from servers
    libdw-dev      # profctl: inlined functions and lines
    libelf-dev     # symbols, in the worker
    libiberty-dev  # readable names of C++ and Rust
    liblzma-dev    # the symbols of stripped programs, in the worker
    libncurses-dev # profctl top
    libprotobuf-c-dev protobuf-c-compiler # profctl: exports that are protobuf
    libseccomp-dev # the confinement of what parses files
    libsystemd-dev # the event loop
    libzydis-dev   # the instructions of code without call frames, in the worker
    zlib1g-dev     # profile.fxt.gz
)
test_packages=(
    libcmocka-dev                      # unit tests
    clang libclang-rt-14-dev           # the fuzz preset, and the public header as C++
    clang-format clang-tidy shellcheck # checks
    tmux                               # a terminal, for profctl top
    procps util-linux valgrind gdb     # system tests
    systemd passwd                     # its tools; the units, and the service in a systemd of its own
    python3                            # JSON in system tests and benches
    python3-jsonschema                 # the schemas of configs
    elfutils                           # independent readers of symbols, call frames and lines
    debuginfod                         # a server of debug files
    g++ libc6-dbg                      # debugging information to read
    gcc-multilib                       # 32-bit programs
    lld mold musl-tools                # programs that other linkers and another C library make
    llvm                               # another reader of lines
    llvm-19                            # an independent reader of exports: llvm 14 does not filter markup
    groff-base man-db                  # the manual pages
    make                               # what an example of the pages records
    btrfs-progs                        # a filesystem with subvolumes
    protobuf-compiler                  # an independent reader of exports
    libcap2-bin                        # a program with a capability
    linux-perf                         # what the benches compare with
    chromium                           # a browser, for pages
    zsh fish                           # shells, for completions
)

bench_packages=(
    apache2-utils default-jdk-headless golang-go nginx nodejs
    postgresql postgresql-contrib redis-server redis-tools rustc sqlite3 xz-utils zstd
    dav1d ffmpeg gnupg gnutls-bin libjpeg-turbo-progs openssl svt-av1 x265 # code without call frames
)

coverage_packages=(
    gcovr # sums what gcov finds
)

vm_packages=(
    qemu-system-x86 qemu-system-common # the machine, and virtiofsd
    busybox-static cpio                # its initrd
    python3                            # JSON in system tests
)

package_packages=(
    build-essential debhelper
    dh-apparmor # loads the AppArmor profile
    po-debconf  # translations of the question
)

package_proof_packages=(
    lintian rpm rpmlint   # judge the packages
    apparmor              # reads the profile
    autopkgtest           # runs debian/tests
    debootstrap systemd   # a bare system to install them in
)

case "${1:-}" in
"") ;;
--test) packages+=("${test_packages[@]}") ;;
--bench) packages+=("${test_packages[@]}" "${bench_packages[@]}") ;;
--coverage) packages+=("${test_packages[@]}" "${coverage_packages[@]}") ;;
--vm) packages=("${vm_packages[@]}") ;;
--package) packages+=("${package_packages[@]}") ;;
--package-proof) packages+=("${package_packages[@]}" "${package_proof_packages[@]}") ;;
*)
    echo "usage: $0 [--test|--bench|--coverage|--vm|--package|--package-proof]" >&2
    exit 2
    ;;
esac

# Of a package that dpkg does not know it prints nothing.
mapfile -t installed < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null |
    sed -n 's/ installed$//p')
missing=()
for package in "${packages[@]}"; do
    if [[ " ${installed[*]} " != *" $package "* ]]; then
        missing+=("$package")
    fi
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "$0: run me as root, these packages are missing: ${missing[*]}" >&2
    exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# Two tries: a mirror may have moved on between the update and the download.
for try in 1 2; do
    if apt-get -q update >"$log" 2>&1 &&
        apt-get -q -y --no-install-recommends install "${missing[@]}" >>"$log" 2>&1; then
        exit 0
    fi
    echo "$0: apt-get failed (try $try of 2)" >&2
done
cat "$log" >&2
exit 1
