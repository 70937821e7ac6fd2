#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/spdx.sh - every source file says its licence in its first lines, and LICENSE is that
# licence
set -eu
. tests/tree/lib.sh
unlicensed() { # of the files named on stdin
	while read -r f; do
		head -n 3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f: no SPDX line"
	done
}
sources=$(tree_files | grep -E '(\.([ch]|cc|cu|ptx|sh|py|awk|map)|/run|Makefile)$')
bad=$(echo "$sources" | unlicensed)
[ -z "$bad" ] || { echo "$bad" && exit 1; }
grep -q 'Version 2.0, January 2004' LICENSE && grep -q 'END OF TERMS AND CONDITIONS' LICENSE
echo 'int x;' >"$TMPDIR/planted.c"
[ -n "$(echo "$TMPDIR/planted.c" | unlicensed)" ] ||
	{ echo "a planted file without a licence went unnoticed" && exit 1; }
echo "$(echo "$sources" | wc -l) files"
