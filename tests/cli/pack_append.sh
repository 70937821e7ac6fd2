#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_append.sh - a dataset that grows has its old records and then the new ones; its
# shards stay as they are, and its old manifest is kept; old tokens are refused
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

RECIPE=(--resize 12 --crop 12 --shard-records 7 -j2)
make_images src 45 3
for class in src/*; do
	mkdir -p {one,two,three}/"${class##*/}"
	find "$class" -type f | sort >all
	sed -n 'p;n;n' all | xargs -I{} mv {} "one/${class##*/}"
	sed -n 'n;p;n' all | xargs -I{} mv {} "two/${class##*/}"
	mv "$class"/* "three/${class##*/}"
done
mkdir three/zebra && for f in three/"$(ls three | head -n 1)"/*; do cp "$f" "three/zebra/z${f##*/}"; done
run 0 "$PACK" images one -o ds "${RECIPE[@]}"
run 0 "$PACK" images two -o more "${RECIPE[@]}" --classes ds
cp -r ds before && cp -r more more.before
id=$("$CAT" info ds | sed -n 's/^id *//p')
added=added-${id:0:16}
# What the old shards are, to the nanosecond.
look() { stat -c '%n %i %Y %y %s' ds/*.shard; }
look >was

run 0 "$PACK" append ds more
said_only "shardpack: ds: 15 records were added to 15, in 3 shards: 3 hard links"
look | diff was - || die "an old shard was touched"
for f in before/*.shard; do cmp "$f" "ds/${f##*/}"; done
same more more.before
cmp before/dataset.manifest "ds/dataset.manifest.$id"
[ "$(ls "ds/$added")" = "$(printf '%05d.shard\n' 0 1 2)" ] || die "$(ls "ds/$added")"
[ "$(sed -n 's/^plan //p; s/^order //p' ds/dataset.manifest | tr '\n' ' ')" = "- - " ] || die "plan and order"
run 0 "$CAT" verify ds --sha256
run 0 "$CAT" prove-order ds
run 0 "$CAT" stats ds
run 0 "$PACK" merge before more -o merged
# equal A B: the same records, keys and labels
equal() {
	"$PYTHON" - "$@" <<'PY' || die "$1 and $2 have other records"
import os, sys
sys.path.insert(0, os.path.join(os.environ["ROOT"], "tests/cli"))
import numpy, records
a, b = records.read(sys.argv[1]), records.read(sys.argv[2])
assert all(numpy.array_equal(a[name], b[name]) for name in a.keys() | b.keys())
PY
	diff <("$CAT" list "$1") <("$CAT" list "$2") || die "$1 and $2 have other keys or labels"
}
equal ds merged

# Again: there is nothing to do, in any state that a kill can leave.
cp -r ds grown
run 0 "$PACK" append ds more
said_only "shardpack: ds: has these shards at its end already; nothing to do"
same ds grown

# The dataset as it was: its manifest, and links.
cp -al ds old && mv "old/dataset.manifest.$id" old/dataset.manifest
run 0 "$CAT" verify old --sha256 --id "$id"
equal old before

# A new class stands behind the others, and the history goes on.
second=$("$CAT" info ds | sed -n 's/^id *//p')
{ sed -n 's/^class [0-9]* //p' ds/dataset.manifest && echo zebra; } >names
run 0 "$PACK" images three -o third "${RECIPE[@]}" --classes names
run 0 "$PACK" append ds third --by copy
grep -qE "records were added to 30, in 3 shards: 3 copies$" err || die "$(cat err)"
[ -e "ds/dataset.manifest.$id" ] && [ -e "ds/dataset.manifest.$second" ] || die "an old manifest is gone"
[ "$(grep -c '^class ' ds/dataset.manifest)" = 4 ] || die "the new class is not there"
run 0 "$PACK" merge before more third -o merged3
equal ds merged3
run 0 "$CAT" verify ds --sha256

# What is refused leaves all as it was.
cp -r ds kept
no() {
	local line=$1 code=$2
	shift 2
	run "$code" "$PACK" append "$@"
	[ "$(head -n 1 err)" = "shardpack: $line" ] || { cat err >&2 && die "instead of: $line"; }
	same ds kept
	n=$((n + 1))
}
no "nothing to append; name a dataset behind ds" 2 ds
no "shard 0 of ds and shard 0 of before have the same bytes, so each record of them would be there twice; leave one \
of them out, or add --duplicates keep" 1 ds before
run 0 "$PACK" images one -o other "${RECIPE[@]}" --filter bicubic
no "ds and other were not packed alike: the first has 'filter bilinear' where the second has 'filter bicubic'" 5 \
	ds other
run 0 "$PACK" images one -o again "${RECIPE[@]}" --seed 4
run 1 "$PACK" append ds again
grep -q "have one key, '" err || die "$(cat err)"
same ds kept
exec 9<ds && flock 9
no "ds: another process appends to it; run again when it has ended" 3 ds again --duplicates keep
exec 9<&-
run 0 "$PACK" append ds again --duplicates keep
run 0 "$CAT" verify ds --sha256

# What is not a dataset: the commands that make one of it, as they are to be typed.
no_dataset() {
	local what=$1 hint=$2 rest
	shift 2
	rest=${what#*|}
	[ "$rest" != "$what" ] || rest="is not a dataset, and append adds the shards of datasets to a dataset"
	run 2 "$PACK" append "$@"
	[ "$(cat err)" = "shardpack: ${what%%|*}: $rest
$hint" ] || { cat err >&2 && die "instead of: $hint"; }
	n=$((n + 1))
}
options="--resize 12 --crop 12 --classes"
no_dataset one "pack it with the options of ds: \`shardpack images one -o one.ds $options ds\`, then \
\`shardpack append ds one.ds more\`" ds one more
no_dataset one/ "pack it with the options of more: \`shardpack images one/ -o one.ds $options more\`, then \
\`shardpack append one.ds more\`" one/ more
no_dataset one "pack it: \`shardpack images one -o one.ds\`, then \`shardpack append one.ds two\`" one two
no_dataset "gone|there is no such dataset to append to" "to begin it with one: \`shardpack images one -o gone\`" \
	gone one
cp -r two "of May"
no_dataset "of May" "pack it with the options of ds: \`shardpack images 'of May' -o 'of May.ds' $options ds\`, then \
\`shardpack append ds 'of May.ds'\`" ds "of May"
eval "$(sed -n 's/^pack it[^`]*`shardpack \([^`]*\)`.*/run 0 "$PACK" \1/p' err)" # as it is said
cp -r before typed && run 0 "$PACK" append typed "of May.ds"
run 0 "$PACK" plan images one -o planned "${RECIPE[@]:0:6}"
no_dataset "planned|is not a dataset yet, but a plan" "complete it with \`shardpack build planned\`, then \
\`shardpack seal planned\`, and append then" ds planned
head -c 1600 /dev/zero >records.bin
run 0 "$PACK" raw records.bin -o records --schema 'x:u8[2,4],label:i64' --compress lz4
no_dataset records.bin "pack it with the options of records: \`shardpack raw records.bin -o records.bin.ds \
--compress lz4 --schema 'x:u8[2,4],label:i64'\`, then \`shardpack append records records.bin.ds\`" records records.bin
run 3 "$PACK" append ds nowhere
said_only "shardpack: nowhere/dataset.manifest: cannot be opened: No such file or directory"

# With `keep`, too, there is nothing to do after it was done.  But a dataset that was packed with
# equal shards at its end has not got these yet.
rm -r kept && cp -r ds kept
run 0 "$PACK" append ds again --duplicates keep
said_only "shardpack: ds: has these shards at its end already; nothing to do"
same ds kept
run 0 "$PACK" merge before before -o twice --duplicates keep
run 0 "$PACK" append twice before --duplicates keep
said_only "shardpack: twice: 15 records were added to 30, in 3 shards: 3 hard links"
run 0 "$PACK" append twice before before --duplicates keep
said_only "shardpack: twice: 30 records were added to 45, in 6 shards: 6 hard links"

# An old token names the dataset that was.  The thread sanitizer cannot look into Python.
. "$ROOT/tests/python/lib.sh"
[ "${VARIANT-}" = tsan ] || python - <<'PY' || die "tokens"
import libshard
token = libshard.Loader(libshard.open("old"), batch_size=4, shuffle=True, seed=3).state_dict()
try:
    libshard.Loader(libshard.open("ds"), batch_size=4, shuffle=True, seed=3).load_state_dict(token)
except libshard.MismatchError as error:
    assert "the state belongs to" in str(error) and "records were appended since" in str(error), error
else:
    raise AssertionError("an old token is taken for one of this dataset")
PY
echo "appended datasets equal merged ones; $n commands refused"
