#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/deps.sh - tools/deps.sh asks for what is missing and nothing else, in the right words,
# on either system
#
# The package systems are stand-ins in a PATH of our own: they say what is there, and write down
# what they are told.
set -eu
mkdir "$TMPDIR/bin"
stories=0
for tool in sh awk sed grep cut tr env tail mktemp rm; do ln -s "$(command -v $tool)" "$TMPDIR/bin/$tool"; done
plant() {
	printf '#!/bin/sh\n%s\n' "$2" >"$TMPDIR/bin/$1"
	chmod +x "$TMPDIR/bin/$1"
}
expect() { # story, exit status, text that must be printed, group
	status=0
	stories=$((stories + 1))
	: >"$TMPDIR/told"
	printed=$(PATH=$TMPDIR/bin sh tools/deps.sh "$4" 2>&1 && cat "$TMPDIR/told") || status=$?
	if [ $status != "$2" ] || ! echo "$printed" | grep -qF -e "$3"; then
		echo "$1: exit $status, want $2 and '$3'; printed:" && echo "$printed"
		exit 1
	fi
}
whole() { # what a machine has that lacks only the packages matching $1
	sed -n "/^packages=/,/^'/p" tools/deps.sh | awk -F '|' -v c="$2" 'NF == 4 {split($c, n, " "); print n[1]}' |
		grep -vxE "$1"
}

plant id 'echo 0'
expect "no package system" 1 "DEPS=skip" build
plant apt-get "echo told: \"\$*\" >>$TMPDIR/told"
plant dpkg-query "echo '$(whole none 2 | sed 's/$/ installed/')'"
expect "nothing is missing" 0 "" ci
[ -z "$printed" ] || { echo "nothing is missing, but it says: $printed" && exit 1; }
plant dpkg-query "echo '$(whole 'libpng-dev|clang|libjpeg-dev' 2 | sed 's/$/ installed/'; echo libjpeg62-turbo-dev installed)'"
expect "one is missing, another is there by its other name" 0 "told: install -y --no-install-recommends libpng-dev" \
	check
expect "the group decides" 0 "told: install -y --no-install-recommends libpng-dev clang" ci
expect "lists are fetched first" 0 "told: update" build
expect "the reason is given" 0 "shardpack reads PNG" build
expect "no such group" 2 "'biuld' is not a group" biuld
plant dpkg-query "echo '$(whole none 2 | sed 's/$/ installed/; s/^zlib1g-dev .*/zlib1g-dev config-files/')'"
expect "a removed package is not there" 0 "told: install -y --no-install-recommends zlib1g-dev" build
plant id 'echo 1000'
expect "neither root nor sudo" 1 "As root, run:  apt-get update; env DEBIAN_FRONTEND=noninteractive apt-get install" \
	build
# shellcheck disable=SC2016 # for the stand-in to expand
plant sudo 'echo sudo "$@"; exec "$@"'
expect "through sudo" 0 "sudo env DEBIAN_FRONTEND=noninteractive apt-get install" build
plant id 'echo 0'
# shellcheck disable=SC2016
plant apt-get '[ "$1" = update ]'
expect "the package system refuses" 1 "deps: that failed" build
rm "$TMPDIR/bin/apt-get" "$TMPDIR/bin/dpkg-query"
plant dnf "echo told: \"\$*\" >>$TMPDIR/told"
plant rpm "echo '$(whole lz4-devel 3)'"
expect "the other system" 0 "told: install -y lz4-devel" build
echo "$stories stories"
