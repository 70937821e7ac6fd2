#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/format.sh - C code is formatted as .clang-format says
#
# `make format` mends it.  Versions of clang-format differ in details, so one version decides.
set -eu
. tests/tree/lib.sh
version=14

if ! clang-format --version 2>/dev/null | grep -q "version $version\."; then
	echo "needs clang-format $version"
	exit 77
fi
# Prints a line for each place that differs.
differing() {
	clang-format --style=file --dry-run "$@" 2>&1 | grep 'warning: code should be clang-formatted' || :
}
files=$(tree_files | grep -E '\.(c|h|cu)$')
# shellcheck disable=SC2086 # our file names hold no blanks
bad=$(differing $files)
[ -z "$bad" ] || { echo "$bad" | head -n 20 && echo "run: make format" && exit 1; }

cp .clang-format "$TMPDIR"
printf 'int f(int x)\n{\n\treturn x;\n}\n' >"$TMPDIR/good.c"
printf 'int f(int x)\n{\n    return x ;\n}\n' >"$TMPDIR/bad.c"
[ -z "$(differing "$TMPDIR/good.c")" ] || { echo "good code is refused" && exit 1; }
[ -n "$(differing "$TMPDIR/bad.c")" ] || { echo "bad code is not noticed" && exit 1; }
echo "$(echo "$files" | wc -l) files"
