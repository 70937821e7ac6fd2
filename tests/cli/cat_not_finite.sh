#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_not_finite.sh - shardcat info adds up the NaN and infinite values that shards have recorded, over
# any way to make a dataset of shards; and says where it does not know them
# TAKES: 5
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

"$PYTHON" - "$ROOT/format" <<'END'
import json, os, struct, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import shardfmt as sf
infinite, nan = float("inf"), float("nan")
clean = [[0.0] * 4] * 4
for name, rows in (("clean", clean), ("odd", [[nan, infinite, -infinite, 1], [1, 2, 3, nan], *clean[:2], *clean])):
    with open(name, "wb") as f:
        f.write(b"".join(struct.pack("<4f", *row) for row in rows))

# What others may write: 3 records of 4 numbers x, of one number y and of one whole number n.
groups = [sf.Group(32, 32, 4, 0, 128)]
fields = [sf.Field("x", 11, (4,), 0, 0), sf.Field("y", 12, (), 0, 16), sf.Field("n", 8, (), 0, 24)]

def write(folder, texts):
    os.mkdir(folder)
    lines, of = [], {}
    for i, text in enumerate(texts):
        if text not in of:
            of[text] = sf.write_shard(groups, fields, [[bytes(32)] * 3], provenance=text.encode() or None)
        lines.append(sf.shard_line("%05d.shard" % i, of[text]))
        with open("%s/%05d.shard" % (folder, i), "wb") as f:
            f.write(of[text])
    with open(folder + "/dataset.manifest", "wb") as f:
        f.write(sf.write_manifest(groups, fields, lines))

LINE = "not-finite x nan 1 infinite 2\n"
none = lambda some, all=1: "none is recorded in %d of %d shard%s: there is none, unless a version before 0.3.0 packed it; " \
    "to count: shardcat stats " % (some, all, "s" * (all != 1))
bad = "not known of 1 shard: shard 0: a line of its provenance begins with 'not-finite', and does not count a field"
x = "1 NaN and 2 infinite values in x"
rows = [
    ("no text", [""], [none(1)]),
    ("a text without such lines", ["made by hand\nnot-finite\nxnot-finite x nan 1 infinite 2\n"], [none(1)]),
    ("a line", [LINE], [x]),
    ("a line behind others", ["made by hand\n\n" + LINE], [x]),
    ("two lines", [LINE + "not-finite y nan 3 infinite 0\n"], [x, "3 NaN and 0 infinite values in y"]),
    ("they are the last lines, so this is the text of somebody", [LINE + "more\n"], [none(1)]),
    ("a last line without an end is no line", ["x\n" + LINE[:-1]], [none(1)]),
    ("two shards, and one without", [LINE, "", LINE], ["2 NaN and 4 infinite values in x", none(1, 3)]),
    ("as many as there are", ["not-finite x nan 6 infinite 6\n"], ["6 NaN and 6 infinite values in x"]),
    ("more than there are", ["not-finite x nan 7 infinite 6\n"], [bad]),
    ("far more", ["not-finite x nan 18446744073709551615 infinite 18446744073709551615\n"], [bad]),
    ("a field of whole numbers", ["not-finite n nan 1 infinite 0\n"], [bad]),
    ("a field that is not there", ["not-finite z nan 1 infinite 0\n"], [bad]),
    ("a number is missing", ["not-finite x nan 1 infinite\n"], [bad]),
    ("a word too many", ["not-finite x nan 1 infinite 2 3\n"], [bad]),
    ("a number that is none", ["not-finite x nan +1 infinite 2\n"], [bad]),
    ("another order", ["not-finite x infinite 1 nan 2\n"], [bad]),
    ("a good line behind a bad one", ["not-finite x\n" + LINE], [bad]),
    ("other shards are not spoiled", ["not-finite \33[31m\n", LINE], [x, bad]),
    ("1,000 shards are opened", [LINE] * 1000, ["1,000 NaN and 2,000 infinite values in x"]),
    ("more are not", [LINE] * 1001, ["not added up, because 1,001 shards would be opened; -v does so"]),
]
with open("rows", "w") as f:
    for i, (story, texts, want) in enumerate(rows):
        write("d%d" % i, texts)
        want = [line + ("d%d" % i if line.endswith("stats ") else "") for line in want]
        print("d%d\t%s\t%s" % (i, story, "|".join(want)), file=f)
END

# tells DIR LINE...: all that info says of NaN and infinite values
tells() {
	local dir=$1
	shift
	{ printf 'NaN, inf  %s\n' "$1" && shift && [ $# = 0 ] || printf '          %s\n' "$@"; } >want
	run 0 "$CAT" info "$dir"
	sed -n '/^NaN, inf/,/^fields$/p' out | grep -v '^fields$' | diff -u want - >&2 || die "$dir: $STORY"
	n=$((n + 1))
}
while IFS=$'\t' read -r dir STORY want; do
	IFS='|' read -ra lines <<<"$want"
	tells "$dir" "${lines[@]}"
	last=$dir
done <rows
run 0 "$CAT" info -v "$last"
printed "NaN, inf  1,001 NaN and 2,002 infinite values in x"
run 0 "$CAT" info --json "$last"
[ "$(json out 'd["not_finite"]')" = \
	"{'fields': [], 'shards_with': 0, 'shards_without': 0, 'shards_not_read': 1001}" ] || die "$(cat out)"

# ---- shardpack: in shards of four, of which the first has 2 NaN and 2 infinite values ----

STORY="as shardpack makes them"
RAW=(--schema "x:f32[4]" --shard-records 4 --order source)
FOUND="2 NaN and 2 infinite values in x"
none() { # none SOME ALL DIR
	echo "none is recorded in $1 of $2 shard$([ "$2" = 1 ] || echo s): there is none, unless a version before 0.3.0 packed it; \
to count: shardcat stats $3"
}
run 0 "$PACK" raw odd "${RAW[@]}" -o odd.ds
run 0 "$PACK" raw clean "${RAW[@]}" -o clean.ds
tells odd.ds "$FOUND" "$(none 1 2 odd.ds)"
tells odd.ds/00000.shard "$FOUND"
tells odd.ds/00001.shard "$(none 1 1 odd.ds/00001.shard)"
tells clean.ds "$(none 1 1 clean.ds)"
run 0 "$CAT" info --json odd.ds
[ "$(json out 'd["not_finite"]')" = "{'fields': [{'field': 'x', 'nan': 2, 'infinite': 2}], 'shards_with': 1, \
'shards_without': 1, 'shards_not_read': 0}" ] || die "$(cat out)"
tail -c 12K odd.ds/00000.shard | grep -aqx 'not-finite x nan 2 infinite 2' || die "no line in the shard"
! grep -aq not-finite odd.ds/00001.shard clean.ds/*.shard || die "a line for nothing"
run 0 "$PACK" raw odd --schema "x:u32[4]" -o whole.ds
run 0 "$CAT" info whole.ds
! grep -q NaN out || die "whole numbers are finite"
run 0 "$CAT" info --json whole.ds
[ "$(json out 'd.get("not_finite")')" = None ] || die "$(cat out)"

# shards keep it, whatever dataset they are in; and datasets with and without such values are alike
run 0 "$PACK" merge odd.ds clean.ds -o merged --duplicates keep
tells merged "$FOUND" "$(none 2 3 merged)"
run 0 "$PACK" merge clean.ds odd.ds -o turned --duplicates keep
tells turned "$FOUND" "$(none 2 3 turned)"
run 0 "$PACK" split merged --shards 0-0 -o first
tells first "$FOUND"
run 0 "$PACK" split merged --shards 1-2 -o rest
tells rest "$(none 2 2 rest)"
run 0 "$PACK" append rest first
tells rest "$FOUND" "$(none 2 3 rest)"

# a shard that is not there
rm merged/00000.shard
tells merged "not known of 1 shard: merged/00000.shard: D1: the manifest names it, but the file does not exist" \
	"$(none 2 3 merged)"
rm merged/0000[12].shard
run 0 "$CAT" info merged
printed "NaN, inf  not known of 3 shards: merged/00000.shard: D1: the manifest names it, but the file does not exist"
echo "$n datasets and shards"
