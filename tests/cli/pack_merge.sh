#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_merge.sh - merged datasets hold the records of their parts, split ones those of
# some shards; what would give wrong labels or the same record twice is refused
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

RECIPE=(--resize 12 --crop 12 --shard-records 7 -j2)
make_images src 30 3
mkdir -p one two new
for class in src/*; do
	mkdir -p "one/${class##*/}" "two/${class##*/}"
	find "$class" -type f | sort | sed -n 'p;n' | xargs -I{} mv {} "one/${class##*/}"
	mv "$class"/* "two/${class##*/}"
done
run 0 "$PACK" images one -o a "${RECIPE[@]}"
run 0 "$PACK" images two -o b "${RECIPE[@]}" --seed 5 --on-error skip
cp -r a a.before && cp -r b b.before

# equal DIR FROM...: the records of DIR are those of FROM, one behind the other
equal() {
	"$PYTHON" - "$@" <<'PY' || die "$1 has other records"
import os, sys
sys.path.insert(0, os.path.join(os.environ["ROOT"], "tests/cli"))
import numpy, records
got, parts = records.read(sys.argv[1]), [records.read(a) for a in sys.argv[2:]]
assert got.keys() == parts[0].keys(), got.keys()
for name in got:
    assert numpy.array_equal(got[name], numpy.concatenate([p[name] for p in parts])), name
PY
	for part in "${@:2}"; do "$CAT" list "$part" | cut -f 2-; done >want
	"$CAT" list "$1" | cut -f 2- | diff want - || die "$1 has other keys or labels"
	run 0 "$CAT" verify "$1" --sha256
	run 0 "$CAT" prove-order "$1"
}

# ---- merge ----

run 0 "$PACK" merge a b -o c
said_only "shardpack: c: 30 records in 6 shards: 6 hard links"
equal c a b
[ "$(sed -n 's/^plan //p; s/^order //p' c/dataset.manifest | tr '\n' ' ')" = "- - " ] || die "$(cat c/dataset.manifest)"
[ a/00001.shard -ef c/00001.shard ] && [ b/00000.shard -ef c/00003.shard ] || die "no hard links"
same a a.before && same b b.before
"$CAT" stats c >out || die "stats"
run 0 "$PACK" merge a b -o c
said_only "shardpack: c: the same dataset is there already; nothing to do"
run 2 "$PACK" merge b a -o c
said_only "shardpack: c: holds a dataset, of 30 records; nothing was touched; give another folder with -o"

# A copy has the same bytes, and outlives the parts.
run 0 "$PACK" merge a b -o copy --by copy
said_only "shardpack: copy: 30 records in 6 shards: 6 copies"
same c copy
[ ! a/00001.shard -ef copy/00001.shard ] || die "a link in the place of a copy"
run 0 "$PACK" merge a b -o clone --by clone
grep -qE ': 6 (copies|clones \(reflinks\))$' err || die "$(cat err)"
same c clone
if [ -d /dev/shm ] && [ "$(stat -c %d /dev/shm)" != "$(stat -c %d .)" ]; then
	other=$(mktemp -d /dev/shm/pack_merge.XXXXXX)
	trap 'rm -rf "$other"' EXIT
	run 0 "$PACK" merge a b -o "$other/c"
	said_only "shardpack: $other/c: 30 records in 6 shards: 6 copies"
	same c "$other/c"
fi

# ---- split, and back ----

run 0 "$PACK" split c --shards 0-2 -o first
said_only "shardpack: first: 15 records in 3 shards: 3 hard links
shardpack: its records are those of c from 0 on"
run 0 "$PACK" split c --shards 3-5 -o last
equal first a
equal last b
run 0 "$PACK" split c --shards 4 -o middle
said "shardpack: middle: 7 records in 1 shard: 1 hard link"
said "shardpack: its records are those of c from 22 on"
run 0 "$PACK" split c --shards 3 -o three
run 0 "$PACK" split c --shards 5 -o five
run 0 "$PACK" merge first three middle five -o again
same c again
same a a.before && same b b.before

# ---- what is refused ----

# no LINE CODE ARGUMENT...: `shardpack ARGUMENT... -o no` says that first, and makes nothing
no() {
	local line=$1 code=$2
	shift 2
	run "$code" "$PACK" "$@" -o no
	[ "$(head -n 1 err)" = "shardpack: $line" ] || { cat err >&2 && die "instead of: $line"; }
	[ ! -e no ] || die "made for nothing: $*"
	n=$((n + 1))
}
whole="must be A-B or A, numbers of whole shards with A at most B; for other parts of a dataset, make a \
selection with \`shardcat select\`"
no "shard 0 of a and shard 0 of a have the same bytes, so each record of them would be there twice; leave one of \
them out, or add --duplicates keep" 1 merge a a
run 0 "$PACK" merge a a -o double --duplicates keep
equal double a a
run 0 "$PACK" merge double b -o triple # what one dataset has twice is its own affair
equal triple a a b
no "shard 3 of double and shard 0 of a have the same bytes, so each record of them would be there twice; leave one of \
them out, or add --duplicates keep" 1 merge double a
no "1 dataset: name at least two, and at most 4096" 2 merge a
no "--shards 2-6: c has 6 shards, counted from 0" 2 split c --shards 2-6
for shards in 3-2 1.5 0,2 -1 1- x 18446744073709551615; do
	no "--shards $shards: $whole" 2 split c "--shards=$shards"
done
run 0 "$PACK" images one -o larger --resize 16 --crop 16
no "a and larger have different fields: 'image' is tensor u8 [12,12,3] in the first, and tensor u8 [16,16,3] in the \
second" 5 merge a larger
run 0 "$PACK" images one -o packed.lz4 "${RECIPE[@]}" --compress lz4
no "a and packed.lz4 have different fields: the first has 'group 0 stride 432 record 432 align 4 codec raw unit 16 \
chunk 0' where the second has 'group 0 stride 432 record 432 align 4 codec lz4 unit 256 chunk 256'" 5 \
	merge a packed.lz4
run 0 "$PACK" images one -o other "${RECIPE[@]}" --filter bicubic
no "a and other were not packed alike: the first has 'filter bilinear' where the second has 'filter bicubic'" 5 \
	merge a other
grep -q "options that .shardcat info. prints" err || die "no remedy"

# Classes: a list may be longer at its end, and nothing else.
classes=(one/*)
classes=("${classes[@]##*/}")
mkdir -p "new/${classes[1]}" new/zebra
cp one/"${classes[0]}"/*1*.* new/zebra || cp one/"${classes[0]}"/* new/zebra
for f in new/zebra/*; do mv "$f" "new/zebra/z${f##*/}"; done
cp "new/zebra/$(ls new/zebra | head -n 1)" "new/${classes[1]}/y.png"
run 0 "$PACK" images new -o wrong "${RECIPE[@]}"
no "class 0 is '${classes[0]}' in a and '${classes[1]}' in wrong" 5 merge a wrong
grep -q "pack the sources of wrong again with --classes a" err || die "no remedy"
{ printf '%s\n' "${classes[@]}" && echo zebra; } >names
run 0 "$PACK" images new -o more "${RECIPE[@]}" --classes names
for order in "a more" "more a"; do
	# shellcheck disable=SC2086 # two words
	run 0 "$PACK" merge $order -o grown
	[ "$(grep -c '^class ' grown/dataset.manifest)" = 4 ] || die "not all classes are there"
	# shellcheck disable=SC2086
	equal grown $order
	run 0 "$CAT" stats grown
	rm -r grown
done

# Labels without names of classes may be numbered in another way than named ones.
"$PYTHON" - <<'PY'
import numpy
for name, first in ("named", 0), ("bare", 4):
    numpy.savez(name, x=numpy.arange(first, first + 4), label=numpy.arange(4) % 2)
PY
printf '%s\n' cat dog >pets
run 0 "$PACK" array named.npz -o named --classes pets -q
run 0 "$PACK" array bare.npz -o bare -q
for order in "named bare" "bare named"; do
	# shellcheck disable=SC2086 # two words
	no "bare has labels and no names of classes, and named has 2: nothing says that they number them alike" 5 \
		merge $order
	grep -q "pack the sources of bare again with --classes named" err || die "no remedy"
done

# Two records of one key are one record that is there twice, or two of one name.
mkdir -p shadow && cp -r two shadow/one
run 0 "$PACK" images shadow/one -o b2 "${RECIPE[@]}" --seed 9
key=$("$CAT" list b | cut -f 4)
first=$("$CAT" list b2 | cut -f 4 | head -n 1)
at=$(grep -nxF "$first" <<<"$key" | cut -d : -f 1)
no "record $((at - 1)) of b and record 0 of b2 have one key, '$first', and others do, too" 1 merge b b2
grep -q "15 records of this kind; if they are other images of the same names, add --duplicates keep" err ||
	die "no remedy"
run 0 "$PACK" merge b b2 -o both --duplicates keep
equal both b b2

# A name that is taken stays what it is, and a file that is none of ours is in the way.
mkdir taken && cp b/00000.shard taken/00001.shard
run 2 "$PACK" merge a b -o taken
grep -q "taken/00001.shard: already exists and is another shard; it was left as it is" err || die "$(cat err)"
cmp b/00000.shard taken/00001.shard || die "it was touched"
[ ! -e taken/dataset.manifest ] || die "a manifest all the same"
mkdir foreign && echo mine >foreign/notes
run 2 "$PACK" merge a b -o foreign
said_only "shardpack: foreign: holds 'notes', which is not part of this dataset; nothing was touched; give a new or \
empty folder with -o"

# A damaged shard is found when it is copied; a link leaves that to verify.
cp -r a damaged && printf x | dd of=damaged/00001.shard bs=1 seek=4200 conv=notrunc status=none
run 5 "$PACK" merge damaged b -o no --by copy
grep -q "damaged/00001.shard: D6: its SHA-256 is " err || die "$(cat err)"
[ ! -e no/dataset.manifest ] && [ ! -e no/00001.shard ] || die "published what is damaged"
find no -name '.tmp.*' | grep . && die "temporary files are left"
rm -r no && run 0 "$PACK" merge damaged b -o no && run 1 "$CAT" verify no
rm -r no
rm damaged/00002.shard
no "damaged/00002.shard: D1: the manifest names it, but the file does not exist" 5 merge damaged b

echo "merged and split datasets equal their parts; $n commands refused"
