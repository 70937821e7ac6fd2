#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/docs.sh - paths, targets and programs that documents name exist, and the version that
# they state is the one of include/shard.h
set -eu
. tests/tree/lib.sh

# Prints each thing that the given documents name and that is not there.
dangling() {
	for doc in "$@"; do
		# Paths begin with one of our folders.  `*` and `a.[ch]` match as in a shell.
		grep -oE '(^|[^A-Za-z0-9_./<-])(libshard|tools|format|include|tests|examples|bench|docs|python|debian|conda|\.ci)/[A-Za-z0-9_./*-]*(\[ch\])?' "$doc" |
			sed -E 's,^[^A-Za-z.]*,,; s,[.]+$,,' | sort -u | while read -r path; do
			# shellcheck disable=SC2086 # the path may be a pattern
			ls -d $path >/dev/null 2>&1 || echo "$doc: $path does not exist"
		done
		# Targets: `make x` in backticks, or on a line of its own in a block of commands.
		# shellcheck disable=SC2016 # those are backticks of Markdown
		{
			tr '\n' ' ' <"$doc" | grep -oE '`make +[a-z][^`]*`'
			awk '/^```/ {on = $0 == "```sh"} on && /^ *make [a-z]/' "$doc"
		} | sed -E 's,#.*,,; s,^[` ]*make ,,; s,&&.*,,; s,[;|].*,,; s,`,,g' | tr ' ' '\n' |
			grep -E '^[a-z][a-z-]*$' | sort -u | while read -r target; do
			grep -q "^$target:" Makefile || echo "$doc: Makefile has no target $target"
		done
		# Programs.
		grep -oE 'build/(bin|examples|bench)/[a-z_]+' "$doc" | sort -u | while read -r program; do
			name=${program##*/}
			case $program in
			build/bin/*) source=tools/$name/main.c ;;
			*) source=${program#build/}.c ;;
			esac
			[ -f "$source" ] || echo "$doc: there is no $source to build $program from"
		done
	done
}

docs=$(tree_files | grep -E '(\.md|^NEWS)$')
# shellcheck disable=SC2086 # our file names hold no blanks
bad=$(dangling $docs)
[ -z "$bad" ] || { echo "$bad" && exit 1; }

# ---- each mistake is noticed, and what looks like one is not ----

{
	echo "See \`libshard/base/gone.c\` and tests/unit/t_*.c, run \`make everything\` and build/bin/shardgone."
	echo 'All ranks'
	echo "make the same steps, as \`make check T=x\` shows."
	echo '```sh'
	echo 'make nothing # and more'
	echo '```'
} >"$TMPDIR/planted.md"
[ "$(dangling "$TMPDIR/planted.md" | grep -c .)" = 4 ] ||
	{ echo "of 4 mistakes planted, the check sees:" && dangling "$TMPDIR/planted.md" && exit 1; }

# ---- the version: the header says it, the build and the package take it from there ----

# Each place that a release has to write by hand: what it says, a blank, and the file.
stated() { # FOLDER
	echo "$(sed -nE 's/^\*\*Status:\*\* version ([0-9.]+),.*/\1/p' "$1/README.md") README.md"
	echo "$(grep -m 1 -E '^[0-9]+\.[0-9]+\.[0-9]+$' "$1/NEWS") NEWS"
	echo "$(sed -nE 's/^SHARD_([0-9.]+) \{$/\1/p' "$1/libshard/libshard.map" | tail -n 1)$patch libshard/libshard.map"
}
part() { awk -v name="SHARD_VERSION_$1" '$2 == name {print $3}' include/shard.h; }
patch=.$(part PATCH) # the map has a node for each minor release
version=$(part MAJOR).$(part MINOR)$patch
differ() { stated "$1" | awk -v version="$version" '$1 != version'; }
bad=$(differ .)
[ -z "$bad" ] || { echo "include/shard.h has version $version, and these have another: $bad" && exit 1; }
mkdir -p "$TMPDIR/old/libshard"
for file in README.md NEWS libshard/libshard.map; do
	sed "s/version $version,/version 0.0.1,/; s/^$version\$/0.0.1/; s/^SHARD_${version%.*} {/SHARD_0.0 {/" \
		"$file" >"$TMPDIR/old/$file"
done
[ "$(differ "$TMPDIR/old" | grep -c .)" = 3 ] ||
	{ echo "of 3 old versions planted, the check sees:" && differ "$TMPDIR/old" && exit 1; }
echo "$(echo "$docs" | wc -l) documents of version $version"
