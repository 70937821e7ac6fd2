#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_parts.sh - plan, build and seal apart; --classes; --replace; receipts lost and
# spoilt
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

make_images src 60 3
ARGS=(--resize 16 --crop 16 --shard-records 10)
run 0 "$PACK" images src -o ref "${ARGS[@]}" -q

# ---- three steps are one ----

run 0 "$PACK" plan images src -o ds "${ARGS[@]}"
grep -q "^shardpack: plan [0-9a-f]\{64\}: 60 inputs in 6 shards$" err || die "$(cat err)"
[ "$(contents ds)" = ".shardpack .shardpack/decoders .shardpack/plan .shardpack/source .shardpack/sources" ] ||
	die "a plan is $(contents ds)"
[ "$(cat ds/.shardpack/source)" = "$PWD/src" ] || die "where the source is"
digest=$(sed -n 's/^shardpack: plan \([0-9a-f]*\):.*/\1/p' err)
[ "$(head -n -1 ds/.shardpack/plan | sha256sum | cut -d ' ' -f 1)" = "$digest" ] ||
	die "the digest of a plan is its SHA-256"
grep -q -e "$PWD" -e "$(hostname)" ds/.shardpack/plan && die "the plan knows this machine"

run 5 "$PACK" seal ds
said "shardpack: ds: 6 of 6 shards are not there yet: 0-5; \`shardpack build ds\` makes them"
run 0 "$PACK" build ds --part 1/3 --report part.json
[ "$(find ds -maxdepth 1 -name '*.shard' | sort | tr '\n' ' ')" = "ds/00001.shard ds/00004.shard " ] || die "part 1/3"
[ "$(json part.json 'd["outcome"], d["inputs"], d["written"]')" = "('built', 20, 20)" ] || die "the report of a part"
run 5 "$PACK" seal ds
said "shardpack: ds: 4 of 6 shards are not there yet: 0,2-3,5; \`shardpack build ds\` makes them"
run 0 "$PACK" build ds --part 0/3
run 0 "$PACK" build ds --part 2/3
run 0 "$PACK" build ds
said "shardpack: ds: 6 of 6 shards are there already"
run 0 "$PACK" seal ds --report seal.json
same ref ds
# A job that is run once more finds nothing to do.
for verb in build seal; do
	run 0 "$PACK" $verb ds
	said_only "shardpack: ds: sealed already; nothing to do"
done
same ref ds
[ "$(json seal.json 'd["outcome"], d["inputs"], d["written"]')" = "('sealed', 60, 60)" ] || die "the report of a seal"

# The source may have moved; the plan does not say where it is.
mkdir moved && cp -r src moved/there
run 0 "$PACK" plan images src -o ds2 "${ARGS[@]}" -q
mv src gone
run 3 "$PACK" build ds2
run 5 "$PACK" build ds2 --source moved/there
grep -q "moved/there/class_0./00...[.]jpg: changed since the plan was made: written .* then, .* now$" err || die "$(cat err)"
run 0 "$PACK" build ds2 --source moved/there --trust-names
mv gone src
rm ds2/.shardpack/source
run 0 "$PACK" seal ds2
same ref ds2

# ---- receipts are a shortcut only ----

run 0 "$PACK" plan images src -o ds3 "${ARGS[@]}" -q
run 0 "$PACK" build ds3 -q
receipt ds3 2 >kept
lose_receipt ds3 1
edit_receipt ds3 5 '$s/...$//' # torn, and others behind it
edit_receipt ds3 3 's/records/Records/'
edit_receipt ds3 4 's/sha256 ./sha256 /'
run 0 "$PACK" build ds3
said "shardpack: ds3: 6 of 6 shards are there already"
for shard in 1 3 4 5; do
	grep -q "^shard $shard " ds3/.shardpack/receipts-00001 || die "receipt $shard was not made again"
done
receipt ds3 2 | diff kept -
[ "$(cat ds3/.shardpack/receipts-* | grep -c "^shard 2 ")" = 1 ] || die "it was made again"
# A shard that rots between build and seal is met by its hash.
lose_receipt ds3 0
printf x | dd of=ds3/00000.shard bs=1 seek=9000 conv=notrunc status=none
run 1 "$PACK" seal ds3
grep -q "^shardpack: ds3/00000.shard: I44: .*; remove this file to have it built again" err || die "$(cat err)"
[ ! -e ds3/dataset.manifest ] || die "sealed over damage"
rm ds3/00000.shard
run 0 "$PACK" images src -o ds3 "${ARGS[@]}"
said "shardpack: ds3: 5 of 6 shards are there already; continuing"
same ref ds3

# Reasons survive a lost receipt.
mkdir -p holes/a && cp src/class_00/*.jpg holes/a && : >holes/a/empty.jpg
for lose in "" 1; do
	rm -rf h
	run 0 "$PACK" plan images holes -o h --resize 16 --shard-records 1000 --on-error skip -q
	run 0 "$PACK" build h
	[ -z "$lose" ] || lose_receipt h 0
	run 0 "$PACK" build h -q --report "h$lose.json"
	[ "$(json "h$lose.json" 'd["bad_inputs"][0]["message"]')" = "is empty (0 bytes)" ] || die "$(cat "h$lose.json")"
done

# ---- a plan that was tampered with ----

run 0 "$PACK" plan images src -o ds4 "${ARGS[@]}" -q
sed 's/^seed 0/seed 1/' ds4/.shardpack/plan >spoilt && cp -r ds4 ds5 && cp spoilt ds5/.shardpack/plan
run 1 "$PACK" build ds5
said_only "shardpack: ds5/.shardpack/plan: damaged: its SHA-256 is not the one on its last line"
n=0
for edit in 's,class_00/,../etc/,' 's,class_00/,/etc/,' 's,class_00/,class_00//,' 's/^input 7 /input 8 /' \
	's/^input 7 0/input 7 3/' \
	's/^crop 16/crop 0/' 's/^shard 1 10 10/shard 1 10 11/' 's/^inputs 60/inputs 61/' 's/^classes 3/classes 4/' \
	's/^class 1 /class 2 /' 's/^shards 6/shards 7/' 's/^order shuffle/order random/' \
	's/^input 3 \(.*\)$/input 3 \1 x/' \
	's/^shard 5 .*/&\nshard 6 60 1/' '/version/d' 's/^resize/exif ignore\n&/' 's/^crop/fit short\n&/' \
	's/^crop/fit cover\n&/' \
	's/^resize.*/resize 20\nfit pad/' 's/^resize.*/resize 0\nfit long/' 's/^layout.*/&\ndtype u8/' \
	's/^layout.*/&\ndtype f16/' \
	's/^layout.*/&\ndtype f16\nmean 0 0 0.50\nstd 1 1 1/' 's/^layout.*/&\ndtype f16\nmean 0 0 0 0\nstd 1 1 1/' \
	's/^layout.*/&\ndtype f16\nmean 0 0\nstd 1 1 1/' 's/^layout.*/&\ndtype f16\nmean 0 0 0\nstd 1 1 0/' \
	's/^layout.*/&\ndtype f16\nmean 0 0 0\nstd 1 1e-09 1/' 's/^resize/limit side=65500\n&/' \
	's/^resize/limit scans=5,side=6\n&/' \
	's/^resize/limit side=6K\n&/' 's/^resize/limit side=06\n&/' 's/^resize/limit side=0\n&/' \
	's/^resize/limit \n&/' \
	's/^resize/limit side=600,\n&/' 's/^crop/limit side=600\n&/' 's/^resize/limit side=600\nlimit scans=5\n&/'; do
	n=$((n + 1))
	replan "$edit" ds4 "t$n"
	run 1 "$PACK" build "t$n"
	grep -q "^shardpack: t$n/.shardpack/plan: line [0-9]*: .*; this is not a plan that shardpack wrote$" err ||
		die "$edit: $(cat err)"
	[ "$(wc -l <err)" = 1 ] || die "$edit: $(cat err)"
done
replan 's/^shardpack-plan 1/shardpack-plan 2/' ds4 v2
run 4 "$PACK" build v2
replan 's/^version libjpeg.*/version libjpeg-turbo 0.0.1/' ds4 old
run 5 "$PACK" build old
grep -q "made with 'version libjpeg-turbo 0.0.1', but this shardpack has 'version libjpeg" err || die "$(cat err)"
replan 's/^bytes-version .*/bytes-version 999/' ds4 other_bytes
run 5 "$PACK" build other_bytes
grep -q "made with 'bytes-version 999', but this shardpack has 'bytes-version [0-9]*'" err || die "$(cat err)"
replan 's/^bytes-version .*/version libshard 0.1.0/' ds4 before_bytes_version
run 5 "$PACK" build before_bytes_version
grep -q "made with 'version libshard 0.1.0', but this shardpack has 'bytes-version " err || die "$(cat err)"
replan s/x/x/ ds4 same
run 0 "$PACK" build same -q && run 0 "$PACK" seal same -q
replan 's/^resize/limit side=600,scans=5\n&/' ds4 limited
run 0 "$PACK" build limited -q
same ref same # the edit that changes nothing shows that the others failed for what they changed

# ---- a file that changed since the plan, or is gone ----

cp -rp src changing
run 0 "$PACK" plan images changing -o ch "${ARGS[@]}" -q
cat src/class_00/00003.jpg >>changing/class_00/00000.jpg
rm changing/class_01/00001.jpg
run 3 "$PACK" build ch
bytes=$(stat -c %s src/class_00/00000.jpg)
now=$(stat -c %s changing/class_00/00000.jpg)
said "shardpack: warning: $PWD/changing/class_00/00000.jpg: \
changed since the plan was made: $bytes bytes then, $now now"
said "shardpack: warning: $PWD/changing/class_01/00001.jpg: No such file or directory"
said "shardpack: 2 inputs could not be read; shards that need one of them were not published"
cp -p src/class_00/00000.jpg changing/class_00/ && cp -p src/class_01/00001.jpg changing/class_01/
run 0 "$PACK" build ch && run 0 "$PACK" seal ch
same ref ch

# ---- --classes ----

printf 'class_02\nclass_00\nnone of these\nclass_01\n' >list
run 0 "$PACK" images src -o listed "${ARGS[@]}" --classes list -q
[ "$(sed -n 's/^class //p' listed/dataset.manifest | tr '\n' ,)" = \
	"0 class_02,1 class_00,2 none%20of%20these,3 class_01," ] || die "classes"
"$CAT" list listed --json | grep -q '"key": "class_02/[^"]*", "label": 0' || die "labels follow the list"
"$CAT" list listed --json | grep -q '"key": "class_01/[^"]*", "label": 3' || die "labels follow the list"
[ "$(sed -n 's/^stat classes 1 2 //p' listed/dataset.manifest)" = 0 ] || die "a class without a folder has no records"
printf '\xef\xbb\xbfclass_02\r\nclass_00\r\nnone of these\r\nclass_01' >windows
run 0 "$PACK" images src -o windows.ds "${ARGS[@]}" --classes windows -q
same listed windows.ds
mkdir part && cp -r src/class_01 part
run 0 "$PACK" images part -o fromds "${ARGS[@]}" --classes listed -q
diff <(grep ^class listed/dataset.manifest) <(grep ^class fromds/dataset.manifest)
"$CAT" list fromds --json | grep -q '"label": 3' || die "labels of the dataset"
cp -r src/class_01 part/unheard_of
run 1 "$PACK" images part -o x "${ARGS[@]}" --classes listed
said_only "shardpack: part/unheard_of: no class has that name, of the 4 classes of --classes listed"
printf 'a\nb\na\n' >twice
run 1 "$PACK" images part -o x "${ARGS[@]}" --classes twice
said_only "shardpack: twice: class 'a' appears twice, as numbers 0 and 2, counted from 0"
printf 'a\n\nb\n' >gap
run 1 "$PACK" images part -o x "${ARGS[@]}" --classes gap
said_only "shardpack: --classes gap, line 2: class name '' must be UTF-8 of 1 to 1024 bytes; it has 0"
# A line is not read to its end, wherever that may be.
too_long="longer than the limit of 8192 bytes; must be one class name per line"
{ printf 'a\n' && head -c 8193 /dev/zero | tr '\0' x; } >endless
run 1 "$PACK" images part -o x "${ARGS[@]}" --classes endless
said_only "shardpack: --classes endless, line 2: $too_long"
run 1 "$PACK" images part -o x "${ARGS[@]}" --classes <(yes | tr -d '\n')
grep -qx "shardpack: --classes /dev/fd/[0-9]*, line 1: $too_long" err || die "$(cat err)"
{ printf 'a\n' && head -c 8192 /dev/zero | tr '\0' x; } >long
run 1 "$PACK" images part -o x "${ARGS[@]}" --classes long
grep -q "long, line 2: class name 'x*' must be UTF-8 of 1 to 1024 bytes; it has 8192$" err || die "$(cat err)"
run 3 "$PACK" images part -o x "${ARGS[@]}" --classes missing
said_only "shardpack: --classes missing: No such file or directory"
: >nothing
run 1 "$PACK" images part -o x "${ARGS[@]}" --classes nothing
[ ! -e x ] || die "made for nothing"

# ---- --replace ----

cp -r ref other
run 0 "$PACK" images src -o other "${ARGS[@]}" --seed 9 --replace -q
run 0 "$PACK" images src -o nine "${ARGS[@]}" --seed 9 -q
same nine other
[ "$(find . -maxdepth 1 -name '.other*')" = "" ] || die "left behind: $(find . -maxdepth 1 -name '.other*')"
run 0 "$PACK" images src -o other "${ARGS[@]}" --seed 9
said "shardpack: other: the same dataset is there already (same names, sizes, times and options); \
nothing to do"
before=$(stat -c %i other/dataset.manifest)
run 0 "$PACK" images src -o other "${ARGS[@]}" --seed 9 --replace
[ "$(stat -c %i other/dataset.manifest)" != "$before" ] || die "--replace did not build"
same nine other
# Bad input leaves the old one where it is, whole.
run 1 "$PACK" images holes -o other --resize 16 --replace
same nine other
# What a killed exchange left is cleared away.
cp -r ref .other.new
run 0 "$PACK" images src -o other "${ARGS[@]}" --seed 9 --replace
[ ! -e .other.new ] || die "the old dataset is still there"
# An unfinished dataset of another plan, and new where there was none.
run 0 "$PACK" plan images src -o unfinished "${ARGS[@]}" -q
run 0 "$PACK" images src -o unfinished "${ARGS[@]}" --seed 9 --replace -q
same nine unfinished
run 0 "$PACK" images src -o fresh "${ARGS[@]}" --seed 9 --replace -q
same nine fresh
echo "parts, receipts, $n spoilt plans, changed sources, classes, replacing"
