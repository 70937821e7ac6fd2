#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_hints.sh - what to type when a table, a folder or an option is not as it is taken
# TAKES: 6
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli
ARGS=(--resize 16 --crop 16 -q) VERB=(images)
mkdir -p data/train
"$PYTHON" - <<'PY'
from PIL import Image
for name in "abc", "def", "other":
    Image.new("RGB", (20, 20), (9, 99, 199)).save("data/train/%s.png" % name)
PY

# ---- paths ----

# ids in the place of names
printf 'id,label\nabc,1\ndef,0\nnone,1\n' >data/train/ids.csv
IDS=(data/train/ids.csv --path-key id)
run 1 "$PACK" images "${IDS[@]}" -o no "${ARGS[@]}"
said "shardpack: warning: data/train/ids.csv: line 2: 'abc' is not there, but 'abc.png' is; say --path-suffix .png"
[ "$(grep -c "say --path-suffix" err)" = 1 ] || die "said once: $(cat err)"
said "shardpack: warning: data/train/none: ids.csv: line 4: 'none': No such file or directory"
run 1 "$PACK" images "${IDS[@]}" -o no "${ARGS[@]}" --path-suffix .png
said "shardpack: warning: data/train/none.png: ids.csv: line 4: 'none.png': No such file or directory"
# of the first 100 files that are missing
for few in 99 100; do
	{
		echo id,label
		seq -f "no%g,0" $few
		echo abc,1
	} >data/train/many.csv
	run 1 "$PACK" images data/train/many.csv --path-key id -o no "${ARGS[@]}"
	[ "$(grep -c "say --path-suffix" err)" = $((100 - few)) ] || die "$few before it: $(cat err)"
done
rm data/train/many.csv
run 0 "$PACK" images "${IDS[@]}" -o ids "${ARGS[@]}" --order source --path-suffix .png --on-error skip
run 0 "$CAT" list ids
[ "$(cut -f 3,4 out | tr '\t\n' '= ')" = "1=abc.png 0=def.png " ] || die "$(cat out)"
# also for a list of labels, and for no column but that of the paths
printf 'id,label\nabc,1\ndef,0\nother,1\n' >labels.csv
run 0 "$PACK" images data/train -o listed "${ARGS[@]}" --labels labels.csv --path-key id --path-suffix .png
printf 'path,label,mask\nabc,1,abc.png\n' >data/train/masks.csv
run 1 "$PACK" images data/train/masks.csv -o no "${ARGS[@]}" --path-suffix .png --field mask:kind=mask,optional
! grep -q "abc.png.png" err || die "a column of masks has no suffix: $(cat err)"
run 2 "$PACK" images data/train -o no "${ARGS[@]}" --path-suffix .png
said "shardpack: data/train: --path-suffix is for tables: .csv, .tsv or .jsonl"

# paths that begin with folders of the root
printf 'path,label\ntrain/abc.png,1\ntrain/def.png,0\n' >data/train/below.csv
for root in "" "--root data/train"; do
	# shellcheck disable=SC2086
	run 1 "$PACK" images data/train/below.csv $root -o no "${ARGS[@]}"
	said "shardpack: warning: data/train/below.csv: line 2: 'train/abc.png' is not there, but it is below \
$PWD/data; say --root $PWD/data"
done
run 0 "$PACK" images data/train/below.csv --root "$PWD/data" -o below "${ARGS[@]}"
# the table beside the folder of its images
printf 'path,label\nabc.png,1\ndef.png,0\n' >data/beside.csv
run 0 "$PACK" images data/beside.csv --root data/train -o beside "${ARGS[@]}" --order source
run 0 "$CAT" list beside
[ "$(cut -f 4 out | tr '\n' ' ')" = "train/abc.png train/def.png " ] || die "$(cat out)"
# the folder of the images counts for the limit of a path
{
	echo path,label
	printf '%04090d,1\n' 0
} >data/long.csv
bad_input "long.csv: line 2: a path of 4096 bytes with its folder; the limit is 4095" data/long.csv \
	--root data/train
# a plan says nothing of what lies outside of the source
printf 'path\nabc.png\ntrain/abc.png\n' >data/train/part.csv
run 0 "$PACK" plan images data/train/part.csv --no-label -o one "${ARGS[@]}" --on-error skip
cp -r data elsewhere && mkdir alone && mv elsewhere/train alone/other
run 0 "$PACK" plan images alone/other/part.csv --no-label -o two "${ARGS[@]}" --on-error skip
! grep -q "say --root" err || die "$(cat err)"
cmp one/.shardpack/plan two/.shardpack/plan || die "the plan depends on what is beside the source"

printf 'path,label\nhttps://example.org/a.jpg,1\n' >urls.csv
bad_input "urls.csv: line 2: 'https://example.org/a.jpg' is a URL, and only files are read: download the images, \
as with img2dataset, and pack the folder" urls.csv

printf 'path,label\nfile:///data/a.jpg,1\n' >urls.csv
bad_input "urls.csv: line 2: 'file:///data/a.jpg' is a URL; write the path alone, without file://" urls.csv
# paths of other systems and programs; once for a table
cp data/train/abc.png "data/train/a b.png"
while IFS='|' read -r listed why; do
	printf 'path,label\n%s,1\n%s,1\n' "$listed" "$listed" >spelled.csv
	run 1 "$PACK" images spelled.csv -o no "${ARGS[@]}"
	said "shardpack: warning: ./spelled.csv: line 2: '$listed' is not there$why"
	[ "$(grep -c "is not there" err)" = 1 ] || die "said once: $(cat err)"
	said "shardpack: warning: ./$listed: spelled.csv: line 2: '$listed': No such file or directory"
done <<'END'
data\train\abc.png|, but 'data/train/abc.png' is; write / in the place of \
data/train/a%20b.png|, but 'data/train/a b.png' is; write its name without percent-encoding
data/train/abc.png |, but 'data/train/abc.png' is; take off the blanks at its ends
~/abc.png|; ~ and $ mean nothing in a table, so write the whole path
$HOME/abc.png|; ~ and $ mean nothing in a table, so write the whole path
END
printf 'path,label\nC:\\a%%2.png,1\ndata/train/a b.png,1\n' >spelled.csv # no guess
run 1 "$PACK" images spelled.csv -o no "${ARGS[@]}"
! grep -q "is not there" err || die "$(cat err)"
rm "data/train/a b.png"
# a file of a field that exists from here, and not from the folder of the images
mkdir -p boxes/train && echo '[[1, 2, 3, 4]]' >boxes/train/abc.json
run 1 "$PACK" images data -o no "${ARGS[@]}" --field 'b:kind=boxes,max=2,from=boxes/{}.json'
said "shardpack: warning: field b: data/boxes/train/abc.json is not there; from= begins at data, and --root chooses \
another folder"
[ "$(grep -c "is not there" err)" = 1 ] || die "said once: $(cat err)"

# ---- options that say nothing of what is packed ----

for source in data data/train/abc.png; do
	refused 2 "$source: --label-key is for tables, for --labels and for archives; the labels of a folder are the names \
of the folders in it, so leave it out" "$source" --label-key class
done
mkdir -p more/train && cp data/train/abc.png more/train
printf 'path,class\nmore/train/abc.png,train\n' >keyed.csv
run 0 "$PACK" images keyed.csv data -o keyed "${ARGS[@]}" --root . --label-key class # one of them has keys

# ---- images that nobody sees ----

mkdir -p seen/a/.ipynb_checkpoints seen/a/b seen/.c
for file in a/x.png a/.ipynb_checkpoints/x-checkpoint.png a/b/x.png a/._x.png .c/x.png; do
	cp data/train/abc.png "seen/$file"
done
HIDDEN="and are packed as others are; remove what is a copy (the first is"
run 0 "$PACK" images seen -o seen.ds "${ARGS[@]}"
said "shardpack: warning: 2 images are hidden, or in a folder that programs leave behind, $HIDDEN 'a/._x.png')"
said "shardpack: warning: class folder '.c' is called like what programs leave behind, and is packed as a class; \
remove it if it is not a class"
run 0 "$PACK" images seen -o seen.bare "${ARGS[@]}" --no-label
said "shardpack: warning: 3 images are hidden, or in a folder that programs leave behind, $HIDDEN '.c/x.png')"
printf 'path,label\nseen/a/._x.png,1\nseen/.c/x.png,0\n' >named.csv # a table names each
run 0 "$PACK" images named.csv -o seen.named "${ARGS[@]}"
! grep -q hidden err || die "$(cat err)"

# ---- tables ----

printf '[{"path": "data/train/abc.png", "label": 0},\n{"path": "data/train/def.png", "label": 0}]\n' >lines.jsonl
printf '\n [ {"path": "data/train/abc.png", "label": 0} ]' >line.jsonl
printf '[\n' >open.jsonl
ARRAY="is an array in JSON, and a .jsonl has an object on each line; make one with jq -c '.[]'"
refused 1 "./lines.jsonl: $ARRAY" lines.jsonl
refused 1 "./line.jsonl: $ARRAY" line.jsonl
refused 1 "./open.jsonl: $ARRAY" open.jsonl
printf '{"path": "data/train/abc.png", "label": 0}\n[{}]\n' >second.jsonl
bad_input "second.jsonl: line 2: not an object; must be an object" second.jsonl
printf 'path\tlabel\ndata/train/abc.png\t1\n' >tabs.csv
refused 1 "./tabs.csv: line 1: is separated by tabs, and a .csv is by commas; rename it to .tsv" tabs.csv
mv tabs.csv tabs.tsv
run 0 "$PACK" images tabs.tsv -o tabs "${ARGS[@]}"
: >data/train/metadata.parquet
run 0 "$PACK" images data/train -o parquet "${ARGS[@]}" --no-label
said_only "shardpack: warning: data/train/metadata.parquet: is not read; to pack its columns, write it as \
metadata.jsonl beside it, and give that in the place of the folder: python3 -c 'import pandas; \
pandas.read_parquet(\"metadata.parquet\").to_json(\"metadata.jsonl\", orient=\"records\", lines=True)'"
rm data/train/metadata.parquet

# ---- values ----

printf 'path,label,n,x\ndata/train/abc.png,1,"3,5",\n' >values.csv
bad_input "values.csv: line 2: '3,5' in column n is not a value of type f32; write a decimal point in the place of \
the comma" 	values.csv --columns n:f32
run 1 "$PACK" images values.csv -o no "${ARGS[@]}" --columns n:u8 # 3.5 is none either
! grep -q "decimal" err || die "$(cat err)"
# What strtod() and strtoull() take beyond decimal numbers.
for cell in 0x10 0X1p3 +5 ' 5' 1_000 '5 ' '0x ' -0x1 +inf; do
	for type in f32 f64 u8 i64; do
		printf 'path,label,v\ndata/train/abc.png,1,%s\n' "$cell" >numbers.csv
		why="numbers.csv: line 2: '$cell' in column v is not a value of type $type"
		case $cell in *[0-9]*) why="$why; write it in decimal digits, without '+', '_', 0x or blanks" ;; esac
		bad_input "$why" numbers.csv --columns v:$type
	done
done
for cell in 1e999 -1e999 1e 1e+ . - -. e5 'nan(1)' infinit 1e5.5 -- -+5 '1,5'; do
	for type in f32 f64; do
		printf 'path,label,v\ndata/train/abc.png,1,"%s"\n' "$cell" >numbers.csv
		bad_input "numbers.csv: line 2: '$cell' in column v is not a value of type $type" numbers.csv \
			--columns v:$type
	done
done
for cell in 0010 -0 1. .5 -.5e-3 5E+2 1e-45 nan -NaN inf -Infinity; do
	printf 'path,label,v\ndata/train/abc.png,1,%s\n' "$cell" >numbers.csv
	rm -rf taken
	run 0 "$PACK" images numbers.csv -o taken "${ARGS[@]}" --columns v:f32
	"$PYTHON" -c 'import sys, numpy, records
got, want = records.read("taken")["v"], numpy.array([float(sys.argv[1])], "f4")
assert numpy.array_equal(got.ravel(), want, equal_nan=True), (sys.argv[1], got)' "$cell"
done
! grep -q "decimal" err || die "$(cat err)"
bad_input "values.csv: line 2: '' in column x is not a value of type f32; for empty cells, --columns \
NAME:TYPE:default=V" values.csv --columns x:f32
EMPTY="values.csv: line 2: column x is empty, and field x comes from it"
bad_input "$EMPTY; with optional, the field is empty" values.csv --field x:kind=boxes,max=2
bad_input "$EMPTY; for single numbers, --columns NAME:TYPE:default=V" values.csv --field x:kind=tensor,dtype=u8
printf '{"path": "data/train/abc.png", "label": 0, "n": "a"}\n' >values.jsonl
bad_input "no key is called x; the keys are 'path' 'label' 'n'; --columns needs a number there, or --columns \
NAME:TYPE:default=V packs V" values.jsonl --columns x:u8
run 1 "$PACK" images values.jsonl -o no "${ARGS[@]}" --columns n:u8
said_of_one "values.jsonl: line 1: n is \"a\", and --columns needs a number"
! grep -q "default=V" err || die "$(cat err)"

# why no image has a label
printf 'path,label\ndata/train/abc.png,"a,b"\ndata/train/def.png,"[1.5]"\n' >hot.csv
run 1 "$PACK" images hot.csv -o no "${ARGS[@]}" --multi-label hot
said "shardpack: warning: ./data/train/abc.png: hot.csv: line 2: labels 'a,b' are not a list in JSON; say what separates \
them with --label-separator, such as ' ' or '|'"
said "shardpack: warning: ./data/train/def.png: hot.csv: line 3: element 0 of the labels is 1.5; a label must be \
a whole number or a text"
grep -q "^shardpack: .: no image has a label; " err || die "$(cat err)"

# ---- what is not read, by its name ----

mkdir other
USE="read its records in Python, and give them to libshard.pack(); docs/PYTHON.md shows how"
GIVE="give it to libshard.pack() in Python, which reads it; docs/MIGRATING.md shows how"
convert() { # KIND: the command that packs such a file
	echo "pack the images in it with \`python -m libshard.convert $1 SRC OUT\`; docs/MIGRATING.md says more"
}
while IFS='|' read -r name what; do
	printf 'x' >"other/$name"
	refused 1 "other/$name: $what" "other/$name"
	refused 1 "other/$name: $what" other # and a folder that has nothing else
	rm "other/$name"
done <<END
a.tfrecord|is a file of TFRecord, which \`shardpack images\` does not read; $(convert tfrecord)
a.tfrecord-00000-of-00002|is a file of TFRecord, which \`shardpack images\` does not read; $(convert tfrecord)
data.arrow|is a table of Arrow, which \`shardpack images\` does not read; $GIVE
data.feather|is a table of Arrow, which \`shardpack images\` does not read; $USE
shard.00000.mds|is a shard of MosaicML Streaming, which \`shardpack images\` does not read; $(convert mds)
train.beton|is a dataset of FFCV, which \`shardpack images\` does not read; $(convert beton)
train.rec|is a file of RecordIO, which \`shardpack images\` does not read; $(convert recordio)
data.mdb|is a database of LMDB, which \`shardpack images\` does not read; $(convert lmdb)
a.MP4|is a video, which \`shardpack images\` does not read; write its frames as images, for example with ffmpeg, \
and pack their folder
a.h5|is a file of HDF5, which \`shardpack images\` does not read; $GIVE
END
: >other/a.parquet
run 1 "$PACK" images other/a.parquet -o no "${ARGS[@]}"
grep -qF "other/a.parquet: is a table of Parquet, which \`shardpack images\` does not read; write it as JSON Lines" err
for ending in gz zst; do
	: >t.csv.$ending
	refused 1 "./t.csv.$ending: is a compressed table, which is not read; unpack it, and give t.csv" t.csv.$ending
done
printf 'x' >other/a.foo
refused 1 "other/a.foo: by its name it is not an image, a table (.csv, .tsv, .jsonl), a .json of COCO or an archive \
(.tar, .zip and others), and it is not a tar: ends at offset 1 without the blocks of zeros that end an archive; it is \
cut short" other/a.foo
cp other/a.foo images.zip
refused 2 "--root images.zip: is not a folder; it must be the folder of the images, so unpack the archive first" \
	labels.csv --root images.zip

# no guess is better than one that is far away
run 2 "$PACK" list ds
said_only "shardpack: unknown verb 'list'
try 'shardpack --help'"
run 2 "$PACK" images data/train -o no --workers 4
said_only "shardpack: unknown option '--workers'
try 'shardpack images --help'"

# a data.yaml of Ultralytics: the command that is said packs its training part
mkdir -p "yo lo/images/train" "yo lo/labels/train" && cp data/train/abc.png "yo lo/images/train"
echo "2 0.5 0.5 0.25 0.5" >"yo lo/labels/train/abc.txt"
yaml() { # yaml TEXT IMAGES LABELS
	printf '%b' "$1" >"yo lo/data.yaml"
	local from="from=$3/{}.txt,format=yolo,optional'"
	refused 1 "yo lo/data.yaml: YAML is not read; of a data.yaml of Ultralytics, give the folder of each part: \
shardpack images 'yo lo'/$2 --root 'yo lo' --no-label -o OUT --field 'boxes:kind=boxes,max=100,$from --field \
'classes:kind=ragged,dtype=i64,max=100,$from" "yo lo/data.yaml"
}
yaml 'train: ../train/images\nnc: 1\n' train/images train/labels
yaml 'train: [a, b]\n' images/train labels/train
yaml '' images/train labels/train
yaml '# coco8\npath: ../coco8 # root\ntrain: "images/train"\nval: images/val\nnames:\n  0: a\n' \
	images/train labels/train
said=$(sed 's/.*of each part: shardpack //; s/-o OUT/-o yolo/' err)
eval run 0 '"$PACK"' "$said" '"${ARGS[@]}"'
run 0 "$CAT" get yolo 0 --field classes
printed "  classes  i64[1]: [2]"
run 1 "$PACK" images "yo lo" -o no "${ARGS[@]}"
grep -qF "warning: yo lo/data.yaml: is not read, because the folder is packed, and each folder in it is a class" err ||
	die "$(cat err)"

# ---- a report in the place of an input ----

for file in data/train/other.png labels.csv values.jsonl; do
	cp $file kept
	refused 2 "--report $PWD/$file: is there already, and is not a report; give another path" tabs.tsv --report $file
	cmp $file kept
done
: >r.json
for report in r.json r.html r.json r.html; do
	run 0 "$PACK" images tabs.tsv -o again "${ARGS[@]}" --report $report
	[ -s $report ] || die "$report is empty"
done

# ---- samples of archives ----

mkdir wds
for i in 1 2 3; do
	cp data/train/abc.png wds/$i.png
	echo 0 >wds/$i.cls && echo text >wds/$i.txt
done
mv wds/2.png wds/2.HEIC && rm wds/3.png
tar cf wds.tar -C wds 1.cls 1.png 1.txt 2.HEIC 2.cls 2.txt 3.cls 3.txt
# without labels, samples without an image are no inputs: ignored, and named
HEIC="shardpack: warning: 1 ignored file is an image of a kind that is not read: .heic 1"
for field in "" "--field text:kind=text,max=9,from=txt"; do
	# shellcheck disable=SC2086
	run 0 "$PACK" images wds.tar -o unlabelled"${field:0:3}" "${ARGS[@]}" --no-label $field --report wds.json
	said_only "$HEIC"
	[ "$(json wds.json '" ".join(sorted(i for i in d["ignored"] if i[8] > "1"))')" = \
		"wds.tar/2.HEIC wds.tar/2.cls wds.tar/2.txt wds.tar/3.cls wds.tar/3.txt" ] || die "$(cat wds.json)"
done
# with them, a label says that there should be one
run 1 "$PACK" images wds.tar -o no "${ARGS[@]}"
said "$HEIC"
said_of_one "sample '2' at offset 3584 has no image of a kind that is read: .heic is not one"
said_of_one "sample '3' at offset 6656 has no image"

# ---- arrays ----

"$PYTHON" -c 'import numpy
for i in range(70):
    numpy.save("s%02d.npy" % i, numpy.zeros((3 + (i == 5), 4), "f4"))
numpy.save("7.npy", numpy.zeros(3))'
STACK="each file is a field: if it is a record, join them with numpy.stack"
run 1 "$PACK" array s0[0-5].npy -o no
said_only "shardpack: s00.npy and s01.npy differ in a number: say --numbered parts if their rows follow each other in \
one field s, or --numbered fields if each is a field; if each is a record, join them with numpy.stack"
run 1 "$PACK" array s0[0-5].npy -o no --numbered fields
said_only "shardpack: .: field 's00' has 3 records and field 's05' has 4; the numbers must be equal; $STACK"
run 4 "$PACK" array s*.npy -o no
said_only "shardpack: ./s24.npy: more than the limit of 24 fields; $STACK, and if it is a part of a field, say \
--numbered parts"
run 1 "$PACK" array 7.npy -o no
grep -q "; rename it; $STACK$" err || die "$(cat err)"
echo "$n that are refused or bad, and what their hints make"
