#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/docs.sh - paths, targets and programs that documents name exist; no line is too long
#
# Documents and comments have 100 columns, code has 120.
set -eu
. tests/tree/lib.sh

# Prints each thing that the given documents name and that is not there.
dangling() {
	for doc in "$@"; do
		# Paths begin with one of our folders.  `*` and `a.[ch]` match as in a shell.
		grep -oE '(^|[^A-Za-z0-9_./<-])(libshard|tools|format|include|tests|examples|bench|docs|python|\.ci)/[A-Za-z0-9_./*-]*(\[ch\])?' "$doc" |
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

too_long() { # FILE...
	"${PYTHON:-python3}" tests/tree/lines.py "$@" || :
}

docs=$(tree_files | grep -E '(\.md|^NEWS)$')
# All but kernels that a compiler wrote.
lines="$docs $(tree_files | grep -E '(\.(c|h|cu|py|sh)|^Makefile|^\.ci/run)$' | grep -v '_ptx\.c$')"
# shellcheck disable=SC2086 # our file names hold no blanks
bad=$(dangling $docs && too_long $lines)
[ -z "$bad" ] || { echo "$bad" && exit 1; }

# ---- each mistake is noticed, and what looks like one is not ----

seen() { # FUNCTION COUNT FILE: it tells so many mistakes
	[ "$("$1" "$TMPDIR/$3" | grep -c .)" = "$2" ] ||
		{ echo "of $2 planted in $3, the check sees:" && "$1" "$TMPDIR/$3" && exit 1; }
}
wide() { # COLUMNS BEGIN [END]: a line of so many columns
	end=${3-}
	printf '%s%0*d%s\n' "$2" $(($1 - ${#2} - ${#end})) 0 "$end"
}
{
	echo "See \`libshard/base/gone.c\` and tests/unit/t_*.c, run \`make everything\` and build/bin/shardgone."
	echo 'All ranks'
	echo "make the same steps, as \`make check T=x\` shows."
	echo '```sh'
	echo 'make nothing # and more'
	echo '```'
	wide 100 'this may be so wide '
	wide 101 'this may not be so wide '
	wide 300 '| a table may be wider ' ' |'
	wide 300 'https://an.address/may/be/wider/'
} >"$TMPDIR/planted.md"
seen dangling 4 planted.md
seen too_long 1 planted.md
{
	wide 100 '/* a comment ' ' */'
	wide 101 '/* one that is too wide ' ' */'
	echo '/*'
	wide 101 ' * a further line of one '
	echo ' */'
	wide 120 'int code; /* and what is behind it ' ' */'
	wide 121 'int code; /* too wide ' ' */'
	wide 94 '	// behind a tab, which takes 8 columns '
} >"$TMPDIR/planted.c"
seen too_long 4 planted.c
{
	echo '"""A docstring'
	wide 101 ''
	echo '"""'
	echo 'text = """'
	wide 120 'a string is none '
	echo '"""'
	wide 101 '# a comment '
	wide 120 'x = 1  # behind code '
} >"$TMPDIR/planted.py"
seen too_long 2 planted.py
{
	wide 120 'echo '
	wide 101 '# a comment '
} >"$TMPDIR/planted.sh"
seen too_long 1 planted.sh
echo "$(echo "$docs" | wc -l) documents, $(echo "$lines" | tr ' ' '\n' | grep -c .) files with lines"
