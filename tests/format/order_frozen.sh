#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# shuffle-v1, select-v1 and mix-v1 are frozen: the vectors of format/ORDER.md are those of the day
# they were frozen, to the byte. Other tests hold the code to the vectors; this one holds the
# vectors still. A better order is another name, with vectors and a document of its own. Never
# change a hash below.
set -eu

document=$(dirname "$0")/../../format/ORDER.md

# hold NAME QUESTIONS HASH: the vectors of these questions have this SHA-256
hold() {
	vectors_hash() { # of the document on standard input
		grep -E "^($questions) .* -> " | sha256sum | cut -d ' ' -f 1
	}
	name=$1 questions=$2 frozen=$3
	found=$(vectors_hash <"$document")
	[ "$found" = "$frozen" ] || {
		echo "format/ORDER.md: its vectors have the SHA-256 $found;" \
			"those of $name have $frozen and never change: put them back"
		exit 1
	}
	[ "$(sed 's/^\([a-z_]* .*\)[0-9a-f]$/\1x/' "$document" | vectors_hash)" != "$frozen" ] ||
		{ echo "changed vectors of $name went unnoticed" && exit 1; }
	grep -q "^\*\*Frozen as .$name.[.]*\*\*" "$document" ||
		{ echo "format/ORDER.md no longer says that $name is frozen" && exit 1; }
	echo "$name: $(grep -cE "^($questions) .* -> " "$document") vectors"
}

hold shuffle-v1 'key|order|at|share' b36243e72d1f4694f44569fa33fd19743b1f6784b2a07dafaad243d15906a7e9
hold select-v1 'part|fold|others|selected' 260d025be13223d3af1f931c0ba6b1316f201e4172e3e930c4908e7912371a6b
hold mix-v1 'mix|mixat|mixture|run_on' ff7d3eef2284e43f26a0b3fe2d2cf4a41489e570aebf64293512bdeabd3e7d88
