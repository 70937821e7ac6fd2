#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/debian.sh - what debian/ repeats is as the tree has it: version, soname, maintainer,
# libraries to build with, and the photographs' authors
set -eu

part() { awk -v name="SHARD_VERSION_$1" '$2 == name {print $3}' include/shard.h; }
minor=$(part MAJOR).$(part MINOR)
so=$(basename "$(readlink "$BUILD/libshard.so")")
# Before 1.0 the name of the shared library has the minor release in it.
name=libshard${so#libshard.so.}

# Prints what is wrong with a folder like debian/.
wrong() { # FOLDER
	stated=$(sed -nE '1s/^libshard \(([^)]*)\) .*/\1/p' "$1/changelog")
	[ "$stated" = "$minor.$(part PATCH)" ] || echo "changelog: version '$stated'; include/shard.h has $minor.$(part PATCH)"
	signed=$(sed -nE 's/^ -- (.*>)  .*/\1/p' "$1/changelog" | head -n 1)
	grep -qx "Maintainer: $signed" "$1/control" || echo "control: the maintainer is not '$signed', as in changelog"
	grep -qx "Package: $name" "$1/control" || echo "control: no package $name, as $so needs it"
	grep -q "^ $name (= \${binary:Version}),$" "$1/control" || echo "control: libshard-dev does not depend on $name"
	[ -f "$1/$name.install" ] || echo "$name.install: is missing"
	grep -sqx "$so $name #MINVER#" "$1/$name.symbols" && grep -sqx " (symver)SHARD_$minor $minor.0" "$1/$name.symbols" ||
		echo "$name.symbols: does not have all that $so exports as SHARD_$minor"

	# What a build needs; the compiler and its company are in every Debian system that builds.
	sed -n "s/^build|\([^|]*\)|.*/\1/p" tools/deps.sh | grep -vxE 'gcc|make|libc6-dev|binutils' |
		while read -r package others; do
			sed -n '/^Build-Depends:/,/^Standards-Version:/p' "$1/control" | grep -qE "^ $package,?$" ||
				echo "control: Build-Depends has no $package ${others:+(or $others) }as tools/deps.sh has"
		done

	# A stanza for each photograph, with the licence that LICENSES.txt tells.
	sed -n 's/^  \([a-z]*\)  *\([^ ].*\)/\1 \2/p' examples/photos/LICENSES.txt | while read -r photo words; do
		case $words in *CC0*) licence=CC0-1.0 ;; *'public domain') licence=public-domain ;; *) licence="one for '$words'" ;; esac
		awk -v RS= -v photo="examples/photos/*/$photo/*" -v licence="License: $licence" \
			'index($0, "Files:") && index($0, photo) && index($0, licence) {found = 1} END {exit !found}' "$1/copyright" ||
			echo "copyright: $photo does not have the licence $licence"
	done

	for list in "$1"/*.docs "$1"/*.examples; do
		while read -r path; do
			# shellcheck disable=SC2086 # the path may be a pattern
			ls -d $path >/dev/null 2>&1 || echo "${list##*/}: there is no $path"
		done <"$list"
	done
}

bad=$(wrong debian)
[ -z "$bad" ] || { echo "$bad" | sed 's,^,debian/,' && exit 1; }
photos=$(grep -c '^  [a-z]' examples/photos/LICENSES.txt)
[ "$photos" = "$(find examples/photos/train -mindepth 1 -type d | wc -l)" ] ||
	{ echo "examples/photos/LICENSES.txt tells of $photos photographs; there are others" && exit 1; }

# Each mistake is noticed, and by its own words.
mistakes=0
planted() { # FILE SCRIPT WORDS
	rm -rf "$TMPDIR/debian"
	cp -r debian "$TMPDIR/debian"
	sed -i "$2" "$TMPDIR/debian/$1"
	! cmp -s "debian/$1" "$TMPDIR/debian/$1" || { echo "'$2' does not change debian/$1" && exit 1; }
	said=$(wrong "$TMPDIR/debian")
	case $said in "$1: $3"*) ;; *) echo "'$2' in $1: '$3' expected: $said" && exit 1 ;; esac
	[ "$(echo "$said" | wc -l)" = 1 ] || { echo "'$2' in $1: one message expected: $said" && exit 1; }
	mistakes=$((mistakes + 1))
}
planted changelog '1s/(.*)/(0.0.1)/' "version '0.0.1'"
planted changelog '1s/)/-1)/' "version '$minor.$(part PATCH)-1'"
planted control 's/^Maintainer: /&A /' "the maintainer is not"
planted control "s/^Package: $name/Package: libshard9.9/" "no package $name"
planted control "s/^ $name (= /&1/" "libshard-dev does not depend"
planted "$name.symbols" 's/SHARD_/SHARD_9/' "does not have all"
planted "$name.symbols" "s/^$so/libshard.so.9/" "does not have all"
planted control '/^ libpng-dev,/d' "Build-Depends has no libpng-dev"
planted copyright 's,photos/\*/rocket,photos/*/rockets,' "rocket does not have the licence public-domain"
planted copyright '/Lav Varshney/{n; s/CC0-1.0/GPL-2/}' "camera does not have the licence CC0-1.0"
planted libshard-tools.docs 's,PACKING,GONE,' "there is no docs/GONE.md"
echo "version $minor.$(part PATCH), $photos photographs; $mistakes mistakes noticed"
