#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What debian/ and packaging/ say of the sources is so: every file that `cmake --install` installs is in one package,
# and no package names a file that is not installed; versions, build dependencies and the library's functions are those
# of the sources. The AppArmor profile compiles where apparmor_parser is at hand. No package is built:
# scripts/proof-package.sh does that.
. "${0%/*}/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DESTDIR=$work/root cmake --install "$BUILD_DIR" --prefix /usr >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

# A line for each file, folder or pattern that a package has.
debian_claims() {
    sed -E '/^debian\//d; s/ .*//' debian/*.install
}

spec_claims() {
    sed -n '/^%files/,/^%changelog/p' packaging/cpu-profilerd.spec | grep -oE '(^|%dir )%\{_.*' |
        sed -E 's/^%dir //; s|%\{_unitdir\}|usr/lib/systemd/system|; s|%\{_sysusersdir\}|usr/lib/sysusers.d|
            s|%\{_tmpfilesdir\}|usr/lib/tmpfiles.d|; s|%\{_docdir\}/%\{name\}|usr/share/doc/cpu-profilerd|
            s|%\{_bindir\}|usr/bin|; s|%\{_sbindir\}|usr/sbin|; s|%\{_libexecdir\}|usr/libexec|; s|%\{_datadir\}|usr/share|
            s|%\{_mandir\}|usr/share/man|; s|%\{_includedir\}|usr/include|; s|%\{_libdir\}|usr/lib|; s|%\{version\}|'"$version"'|' |
        grep -v '%{_sysconfdir}'
}

# compare_claims WHAT: the files on standard input, as WHAT has them, against the patterns in $work/claims.
compare_claims() {
    local file pattern found
    local -A used=()
    while read -r file; do
        found=0
        while read -r pattern; do
            # shellcheck disable=SC2053 # a pattern it is
            if [[ $file == $pattern || $file == $pattern/* ]]; then
                found=$((found + 1))
                used[$pattern]=1
            fi
        done <"$work/claims"
        [ "$found" -eq 1 ] || complain "$1: $file is in $found packages"
    done
    while read -r pattern; do
        [ -n "${used[$pattern]:-}" ] || complain "$1: nothing is installed as $pattern"
    done <"$work/claims"
}

version=$(sed -n 's/^project(cpu-profilerd VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
(cd "$work/root" && find usr ! -type d) | sort >"$work/files"
[ "$(wc -l <"$work/files")" -gt 30 ] || complain "too few files are installed: $(cat "$work/files")"

for page in profctl profctl-record profctl_connect libprofctl cpu-profilerd cpu-profilerd-fxt cpu-profilerd-record cpu-profilerd-session cpu-profilerd-session.json; do
    found=$(man -M "$work/root/usr/share/man" -P cat "$page" 2>&1) && grep -qx NAME <<<"$found" || complain "man $page: $found"
done

# The installed pages lead to one another: no link is dead, and few lead back to the sources.
while IFS=: read -r page target; do
    target=${target#*(}
    target=${target%%[#)]*}
    [ -z "$target" ] || [[ $target =~ ^https?$|^https?: ]] || [ -e "${page%/*}/$target" ] || complain "$page: no file '$target'"
done < <(grep -rHoE --include='*.md' '\]\([^)]+\)' "$work/root/usr/share/doc/cpu-profilerd" || true)
! grep -nE 'scripts/|build/(release|packages)|from a clone' "$work/root/usr/share/doc/cpu-profilerd/README.md" | grep -v proof-package ||
    complain "README.md, as it is installed, speaks of the sources"
grep -q '](install.md)' "$work/root/usr/share/doc/cpu-profilerd/README.md" || complain "README.md does not lead to install.md"

debian_claims >"$work/claims"
compare_claims "debian/*.install" < <(sed -E 's|^usr/lib/systemd/|lib/systemd/|; s|^usr/lib/sysctl.d/|usr/share/cpu-profilerd/|
    s|^usr/lib/(libprofctl\|pkgconfig)|usr/lib/x86_64-linux-gnu/\1|' "$work/files")
spec_claims >"$work/claims"
compare_claims "packaging/cpu-profilerd.spec" < <(sed -E 's|^usr/lib/sysctl.d/|usr/share/cpu-profilerd/|' "$work/files")

[ "$(sed -n '1s/^cpu-profilerd (\(.*\)) .*/\1/p' debian/changelog)" = "$version" ] || complain "debian/changelog: another version than $version"
[ "$(sed -n 's/^Version: *//p' packaging/cpu-profilerd.spec)" = "$version" ] || complain "packaging/cpu-profilerd.spec: another version than $version"

# What the build needs by install-deps.sh, but for what build-essential brings, and what packaging needs.
needed=$(sed -n '/^packages=(/,/^)/p; /^package_packages=(/,/^)/p' scripts/install-deps.sh | sed 's/#.*//; s/.*(//; s/)//' | tr -s ' ' '\n' |
    sed '/^$/d' | grep -vxE 'gcc|libc6-dev|binutils|build-essential|debhelper' | sort -u)
declared=$(sed -n '/^Build-Depends:/,/^[^ B]/p' debian/control | grep -oE '[a-z][a-z0-9-]+(,| *\(|$)' | tr -d ', (' |
    grep -vxE 'debhelper-compat|dh-sequence-installsysusers' | sort -u)
diff <(echo "$needed") <(echo "$declared") || complain "scripts/install-deps.sh (<) and Build-Depends in debian/control (>) differ"

functions=$(grep -oE '^[a-z][a-z ]*\*?profctl_[a-z_]+\(' client/include/profctl.h | grep -oE 'profctl_[a-z_]+' | sort)
listed=$(sed -n 's/^ \(profctl_[a-z_]*\)@LIBPROFCTL_0 .*/\1/p' debian/libprofctl0.symbols | sort)
diff <(echo "$functions") <(echo "$listed") || complain "profctl.h (<) and debian/libprofctl0.symbols (>) differ"

if command -v apparmor_parser >/dev/null; then
    apparmor_parser --skip-kernel-load --skip-cache debian/apparmor/usr.sbin.cpu-profilerd 2>"$work/log" ||
        complain "the AppArmor profile: $(cat "$work/log")"
fi
exit "$failed"
