#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_json.sh - every --json document parses, and says what the Python reader says
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

golden=("$ROOT"/format/golden/*.shard "$ROOT"/format/golden/dataset*/)
records=$("$PYTHON" "$ROOT/tests/cli/cat_reference.py" json "$CAT" "${golden[@]}")

# Part of a list; past its end; an index that is not there.
cp -r "$ROOT/format/golden/dataset" ds
run 0 "$CAT" list ds --first 3 --count 1 --json
[ "$(json out '[r["index"] for r in d["records"]]')" = "[3]" ] || die "not one record from 3"
run 0 "$CAT" list ds --first 4 --count 99 --json
[ "$(json out '[r["index"] for r in d["records"]]')" = "[4]" ] || die "not the last record"
run 0 "$CAT" list ds --count 0 --json
[ "$(json out 'd')" = "{'records': []}" ] || die "not an empty list"
run 2 "$CAT" list ds --first 5
said_only "shardcat: ds: record 5: must be 0 to 4"
echo "${#golden[@]} golden files, $records records"
