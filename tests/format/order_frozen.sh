#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# shuffle-v1 is frozen: the vectors of format/ORDER.md are those of the day it was frozen, to the
# byte. Other tests hold the code to the vectors; this one holds the vectors still. A better shuffle
# is another name, with vectors and a document of its own; never change the hash below.
set -eu

document=$(dirname "$0")/../../format/ORDER.md
frozen=b36243e72d1f4694f44569fa33fd19743b1f6784b2a07dafaad243d15906a7e9

vectors_hash() { # of the document on standard input
	grep -E '^(key|order|at|share) .* -> ' | sha256sum | cut -d ' ' -f 1
}

found=$(vectors_hash <"$document")
[ "$found" = $frozen ] || {
	echo "format/ORDER.md: its vectors have the SHA-256 $found;" \
		"those of shuffle-v1 have $frozen and never change: put them back"
	exit 1
}
[ "$(sed 's/^\(at .*\)[0-9]$/\1x/' "$document" | vectors_hash)" != $frozen ] ||
	{ echo "changed vectors went unnoticed" && exit 1; }
grep -q '^\*\*Frozen as .shuffle-v1.\.\*\*' "$document" ||
	{ echo "format/ORDER.md no longer says that it is frozen" && exit 1; }
grep -cE '^(key|order|at|share) .* -> ' "$document"
