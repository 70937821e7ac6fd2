#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_select.sh - shardcat select chooses what its conditions say: parts and folds are those of
# format/ORDER.md part 11, computed by format/shardorder.py
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

CHANCE=18446744073709551614 # the epoch of orders that parts are taken of
make_images src 61 3
run 0 "$PACK" images src -o ds --resize 8 --crop 8
n=61
for ((i = 0; i < n; i++)); do
	"$CAT" get ds "$i" | sed -n 's/.*label[^:]*: *\([0-9]*\).*/\1/p' | head -n 1
done >labels
[ "$(sort -u labels | wc -l)" = 3 ] || die "labels: $(sort -u labels | tr '\n' ' ')"

# selected WANT ARGUMENTS...: select --list prints the numbers in the file WANT
selected() {
	local want=$1
	shift
	run 0 "$CAT" select ds --list "$@"
	[ -s "$want" ] && diff "$want" out >&2 || die "select $*: other records"
}
# places FIRST COUNT OF SEED: the records at these places of the order by chance, of those in OF
places() {
	"$PYTHON" "$ROOT/format/shardorder.py" order one_level "$(wc -l <"$3")" 1 1 1 0 "$4" $CHANCE "$1" "$2" |
		awk 'NR == FNR { of[NR - 1] = $1; next } { print of[$1] }' "$3" - | sort -n
}

seq 0 $((n - 1)) >all
awk '$1 == 1 { print NR - 1 }' labels >ones
awk '$1 != 1 { print NR - 1 }' labels >others
selected ones --where label=1
selected others --where label=2,0
name=$(printf '%s\n' src/* | sed -n '2s|.*/||p') # class 1 is the second folder
selected ones --where "label=$name"
for seed in 0 7; do
	places 0 46 all $seed >want
	selected want --part 0.75 --seed $seed
	places 46 15 all $seed >want
	selected want --part 0.75-1 --seed $seed
	of=$(wc -l <others)
	places 0 $((of / 4)) others $seed >want
	selected want --where label=0,2 --fold 0/4 --seed $seed
	places $((of / 4)) $((of - of / 4)) others $seed >want
	selected want --where label=0,2 --fold 0/4 --rest --seed $seed
done

# A file, which is not written over, and what is said of it.
run 0 "$CAT" select ds --where label=1 -o ones.sel
grep -q "ones.sel: $(wc -l <ones) of 61 records" err || die "$(cat err)"
run 3 "$CAT" select ds --where label=2 -o ones.sel
grep -q 'ones.sel' err || die "$(cat err)"
head -n 1 ones.sel | grep -q '^libshard selection 1$' || die "$(head -n 1 ones.sel)"

# A loader delivers these records, and no others.
run 0 "$CAT" prove-order ds --select ones.sel --worlds 1,2 --epochs 1
grep -q '^proven: .* every record of the selection, and no other, was delivered exactly once' out || die "$(cat out)"
run 0 "$CAT" order ds --select ones.sel --seed 4
sort -n out | diff ones - >&2 || die "the order has other records"
run 0 "$CAT" select ds --part 0.5 -o half.sel

# The doctor says what a selection costs: little, if each image is a unit; else a unit for a record.
run 0 "$PACK" images src -o large --resize 40 --crop 40
run 0 "$CAT" select large --where label=1 -o large.sel
run 0 "$CAT" doctor large --select large.sel
grep -q "^good     selection      $(wc -l <ones) of 61 records; a loader reads 1\.0[0-9]* times what it" out || die "$(cat out)"
"$PYTHON" -c 'open("numbers.bin", "wb").write(bytes(64 * 20000))'
run 0 "$PACK" raw numbers.bin --schema 'x:u8[64]' -o small -q
run 0 "$CAT" select small --part 0.001 -o few.sel # of 64 in a unit
run 0 "$CAT" doctor small --select few.sel
grep -Eq '^slower   selection      20 of 20000 records; a loader reads (6[0-4]|5[0-9])' out || die "$(cat out)"
run 0 "$CAT" doctor small --select few.sel --json
[ "$(json out '[f["facts"]["records"] for f in d["findings"] if f["name"] == "selection"]')" = '[20]' ] || die "$(cat out)"
run 5 "$CAT" doctor large --select few.sel
[ ! -s out ] || die "$(cat out)"
run 2 "$CAT" doctor --select few.sel
grep -q 'few.sel: of which dataset' err || die "$(cat err)"
run 0 "$PACK" images src -o other --resize 8 --crop 4
run 5 "$CAT" order other --select half.sel
printf 'x' | dd of=half.sel bs=1 seek=200 conv=notrunc 2>/dev/null
run 1 "$CAT" order ds --select half.sel

# refused WORDS ARGUMENTS...: exit code 2, and these words
refused() {
	local words=$1
	shift
	run 2 "$CAT" select ds "$@"
	grep -q -e "$words" err || die "select $*: $(cat err)"
}
refused 'give --where, --part or --fold' --list
refused 'give --out FILE, or --list' --part 0.5
refused 'exclude each other' --part 0.5 --fold 0/2 --list
refused '--rest needs --fold' --part 0.5 --rest --list
refused 'must be a part from 0 to 1' --part 1.5 --list
for part in 0.5-0.5 0x1p-1 +0.5 ' 0.5' 0x0-0.5 0-0x1 inf nan - 0.5- -0.5 0.1-0.2-0.3; do
	refused 'must be a part from 0 to 1' --part="$part" --list
done
refused "ds has no field 'cat'; 'shardcat info' lists them" --where cat=1 --list
refused 'there is no class of that name' --where label=unicorn --list
refused 'selects none of the 61 records' --where label=17 -o bad.sel
[ ! -e bad.sel ] || die "a file was left"
