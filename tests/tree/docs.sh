#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/docs.sh - what the documents name exists: paths of the tree, make targets, programs in build/
set -eu
. tests/tree/lib.sh

# Prints each thing that the given documents name and that is not there.
dangling() {
	for doc in "$@"; do
		# Paths: anything that begins with one of our folders.  `*` matches as in a shell; `a.[ch]` does too.
		grep -oE '(^|[^A-Za-z0-9_./<-])(libshard|tools|format|include|tests|examples|bench|docs|python|\.ci)/[A-Za-z0-9_./*-]*(\[ch\])?' "$doc" |
			sed -E 's,^[^A-Za-z.]*,,; s,[.]+$,,' | sort -u | while read -r path; do
			# shellcheck disable=SC2086 # the path may be a pattern
			ls -d $path >/dev/null 2>&1 || echo "$doc: $path does not exist"
		done
		# Targets: `make x` in backticks, or on a line of its own in a block of commands.
		# shellcheck disable=SC2016 # that is a backtick of Markdown
		grep -oE '(`|^[ \t]*(\$ )?)make [a-z][^`#]*' "$doc" | sed -E 's,.*make ,,; s,&&.*,,; s,[;|].*,,' | tr ' ' '\n' |
			grep -E '^[a-z]+$' | sort -u | while read -r target; do
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

cat >"$TMPDIR/planted.md" <<-'PLANTED'
	See `libshard/base/gone.c` and tests/unit/t_*.c, then run `make everything` and build/bin/shardgone.
PLANTED
[ "$(dangling "$TMPDIR/planted.md" | wc -l)" = 3 ] ||
	{ echo "planted 3 names, the check sees:" && dangling "$TMPDIR/planted.md" && exit 1; }
echo "$(echo "$docs" | wc -l) documents"
