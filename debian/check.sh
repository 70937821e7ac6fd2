#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debian/check.sh FOLDER ROOT - install the packages in FOLDER where none of them is, use all of them,
# and remove them
#
# ROOT is the folder of a system of its own, as `debootstrap --variant=minbase` makes one; its apt
# fetches what the packages need.  Each test of debian/tests has the packages of its Depends, and no
# other, so that a missing dependency is noticed.  What apt added for it is purged at its end.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
folder=$(realpath "${1:?usage: check.sh FOLDER ROOT}") root=$(realpath "${2:?usage: check.sh FOLDER ROOT}")
die() {
	echo "deb: $*" >&2
	exit 1
}
[ "$root" != / ] || die "ROOT is this system; give the folder of another one"
on() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nowhere DEBIAN_FRONTEND=noninteractive sh -ec "$*"; }
quietly() { on "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log" && die "failed: $*"; }; }
packages() { on "dpkg-query -W -f '\${Package}\n'" | sort; }
# All files but those of apt, of dpkg's own notes, and logs.
files() {
	(cd "$root" && find . \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/cache -o \
		-path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/log \) -prune -o -print | sort)
}

work=$(mktemp -d "$root/tmp/deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
inside=${work#"$root"} # how the system calls the folder
cp -r "$here/tests" "$work"
for name in libshard0.3 libshard-dev libshard-tools python3-libshard; do
	cp "$folder/${name}"_*.deb "$work/$name.deb"
done
quietly apt-get update
count=0
while read -r name depends; do
	packages >"$work/packages"
	files >"$work/files"
	! grep -i libshard "$work/packages" || die "these are installed already; purge them first"
	wanted=
	for package in ${depends//,/ }; do
		[ ! -e "$work/$package.deb" ] || package=$inside/$package.deb
		# It is in no repository, so apt has to be given what its Depends names.
		[ "$package" != "$inside/libshard-dev.deb" ] || wanted+=" $inside/libshard0.3.deb"
		wanted+=" $package"
	done
	quietly "apt-get install -y --no-install-recommends$wanted"
	on "mkdir $inside/work; cd /; AUTOPKGTEST_TMP=$inside/work PATH=/usr/bin:/bin $inside/tests/$name" ||
		die "debian/tests/$name fails on the installed packages"
	rm -rf "$work/work"
	added=$(packages | comm -13 "$work/packages" - | tr '\n' ' ')
	quietly "apt-get purge -y $added"
	files | diff "$work/files" - || die "a purge of $added leaves the files above"
	count=$((count + 1))
done < <(awk -F ': ' '/^Tests:/ {name = $2} /^Depends:/ {print name, $2}' "$here/tests/control")
[ "$count" = 3 ] || die "debian/tests/control should name 3 tests; $count were run"
echo "$count tests pass on installed packages, and a purge leaves nothing"
