#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_text.sh - what shardcat prints for golden files, which never change, is what cat_text.out says
#
# To renew it after a change that was meant: tests/cli/cat_text.sh --print >tests/cli/cat_text.out,
# with BUILD, ROOT and TMPDIR set; then read the difference.
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

cp -r "$ROOT"/format/golden/dataset "$ROOT"/format/golden/dataset_empty .
cp "$ROOT"/format/golden/{all_sections,ragged_string,dtypes,keys,full_tables}.shard .

session() {
	while read -r line; do
		echo "\$ shardcat $line"
		code=0
		eval "\"\$CAT\" $line" 2>&1 </dev/null || code=$?
		[ $code = 0 ] || echo "(exit code $code)"
	done <<'END'
info dataset
info -v dataset
info dataset_empty
info -v all_sections.shard
info full_tables.shard
list dataset
list dataset --first 2 --count 2
list keys.shard --count 4
list dataset_empty
get dataset 3
get dataset 3 --field label
get ragged_string.shard 1
get ragged_string.shard 2
get dtypes.shard 0
get dtypes.shard 1 --field f_bool
get keys.shard 3
manifest dataset
manifest dataset --sha256sums
manifest dataset_empty --json
manifest keys.shard
order dataset --shuffle sequential
order dataset --shuffle global --epoch 1 --seed 7 --rank 1 --world 2
order dataset_empty
info nowhere
END
}

session >out
if [ "${1-}" = --print ]; then
	cat out
else
	diff -u "$ROOT/tests/cli/cat_text.out" out >&2 || die "not as in cat_text.out"
	echo "$(grep -c '^\$' out) commands"
fi
