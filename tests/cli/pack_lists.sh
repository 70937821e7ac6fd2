#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_lists.sh - images by CSV, TSV and JSON lines, flat folders, single files; labels by
# regex and list
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli
ARGS=(--resize 16 --crop 16 --order source)

make_images src 30 3
run 0 "$PACK" images src -o ref "${ARGS[@]}" -q
"$PYTHON" - <<'PY'
import csv
import glob
import json
import os
import shutil

images = sorted(glob.glob("src/*/*"))
os.makedirs("tables/deep")
os.mkdir("flat")
os.mkdir('flat/sub "dir", odd')
rows = [(p, "class\n%s" % p.split("/")[1][-2:], int(p.split("/")[1][-2:])) for p in images]
with open("train.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["split", "label", "path", "n"])
    w.writerows(["train", label, p, n] for p, label, n in rows)
with open("bom.csv", "w", newline="", encoding="utf-8-sig") as f:
    w = csv.writer(f, quoting=csv.QUOTE_ALL, lineterminator="\n")
    w.writerow(["file_name", "label"])
    w.writerows([p, n] for p, label, n in rows)
open("tables/deep/train.tsv", "w").write("path\tlabel\n" + "".join("../../%s\t%d\n" % (p, n) for p, label, n in rows))
lines = [json.dumps({"image": p, "label": n, "extra": [1]}) for p, label, n in rows]
open("train.jsonl", "w").write("\n" + "\n\n".join(lines))
with open("flat.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["path", "label"])
    for i, (p, label, n) in enumerate(rows):
        name = ('sub "dir", odd/' if i % 2 else "") + "%02d_%s.%03d.%s" % (i, "abc"[n], i, p.rsplit(".", 1)[1])
        shutil.copy(p, "flat/" + name)
        w.writerow([name, n])
open("flat/readme.txt", "w").write("not an image")
PY

# in_order DS: the images of ref in its order, labels too; as_set DS: in any order
in_order() {
	"$PYTHON" -c 'import sys, records
ref, got = records.read("ref"), records.read(sys.argv[1])
records.same(got["image"], ref["image"], sys.argv[1])
records.same(got["label"], ref["label"], sys.argv[1])' "$1"
}
as_set() {
	"$PYTHON" -c 'import sys, records
ref, got = records.read("ref"), records.read(sys.argv[1])
pairs = lambda d: sorted((i.tobytes(), int(l)) for i, l in zip(d["image"], d["label"]))
assert pairs(ref) == pairs(got), sys.argv[1]' "$1"
}

# ---- tables ----

run 0 "$PACK" images train.csv -o csv "${ARGS[@]}" --report csv.json
in_order csv
[ "$(sed -n 's/^class //p' csv/dataset.manifest | tr '\n' ,)" = "0 class%0A00,1 class%0A01,2 class%0A02," ] ||
	die "class names"
[ "$("$CAT" list csv --json | sed -n 's/.*"key": "\([^"]*\)".*/\1/p' | head -n 1)" = src/class_00/00000.jpg ] ||
	die "keys"
run 0 "$PACK" images train.csv -o csv.n "${ARGS[@]}" --label-key n -q
in_order csv.n
run 0 "$PACK" images bom.csv -o bom "${ARGS[@]}" -q
in_order bom
same csv.n bom
run 0 "$PACK" images train.jsonl -o jsonl "${ARGS[@]}" -q
same csv.n jsonl
{ printf '\357\273\277' && cat train.jsonl; } >bom.jsonl
run 0 "$PACK" images bom.jsonl -o bom.jsonl.ds "${ARGS[@]}" -q
same csv.n bom.jsonl.ds
sed 's,\.\./\.\./,,' tables/deep/train.tsv >tables/deep/rooted.tsv
run 0 "$PACK" images tables/deep/rooted.tsv --root . -o tsv "${ARGS[@]}" -q
same csv.n tsv
sed "s,src/,$PWD/src/," train.jsonl >absolute.jsonl
run 0 "$PACK" images absolute.jsonl -o absolute "${ARGS[@]}" -q
same csv.n absolute
# Also where the table, or its paths, reach the root by a link.
mkdir real && cp -r src real && ln -s real link
for to in link real; do sed "s,src/,$PWD/$to/src/," train.jsonl >real/$to.jsonl; done
for f in link/link.jsonl link/real.jsonl real/link.jsonl; do
	rm -rf linked
	run 0 "$PACK" images $f -o linked "${ARGS[@]}" -q
	alike csv.n linked
done
cp train.csv twin.csv && sed -i 's,src/,copy/,' twin.csv && cp -r src copy
run 0 "$PACK" images train.csv twin.csv -o both "${ARGS[@]}" -q
[ "$(sed -n 's/^records //p' both/dataset.manifest)" = 60 ] || die "two tables"
run 0 "$PACK" plan images train.csv -o planned "${ARGS[@]}" --shard-records 10 -q
run 0 "$PACK" build planned --part 1/2 -q
run 0 "$PACK" build planned -q
run 0 "$PACK" seal planned -q
run 0 "$PACK" images train.csv -o whole "${ARGS[@]}" --shard-records 10 -q
same whole planned

# ---- extra columns of numbers ----

"$PYTHON" - <<'PY'
import csv
import json
rows = list(csv.DictReader(open("train.csv", newline="")))
values = [dict(age=i / 7, site=i * 2000, ok=i % 3 == 0, far=-(1 << 62) - i, small=-i) for i in range(len(rows))]
with open("extra.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["site", "path", "age", "n", "ok", "far", "small", "site2"])
    for r, v in zip(rows, values):
        w.writerow([v["site"], r["path"], repr(v["age"]), r["n"], str(v["ok"]).lower(), v["far"], v["small"], "x"])
with open("extra.jsonl", "w") as f:
    for r, v in zip(rows, values):
        f.write(json.dumps(dict(v, path=r["path"], n=int(r["n"]))) + "\n")
PY
COLUMNS_ASKED=age:f32,site:u16,ok:bool,far:i64,small:i8
for f in csv jsonl; do
	run 0 "$PACK" images extra.$f -o extra.$f.ds "${ARGS[@]}" --label-key n --columns $COLUMNS_ASKED -q
	in_order extra.$f.ds
done
same extra.csv.ds extra.jsonl.ds
"$PYTHON" - <<'PY'
import json
import numpy as np, records
got, rows = records.read("extra.csv.ds"), [json.loads(l) for l in open("extra.jsonl")]
assert list(got) == ["image", "label", "age", "site", "ok", "far", "small"], list(got)
for name, dtype in dict(age="<f4", site="<u2", ok="?", far="<i8", small="i1").items():
    records.same(got[name], np.array([r[name] for r in rows]).astype(dtype), name)
PY
run 0 "$PACK" images extra.csv -o mixed.ds --resize 16 --crop 16 --label-key n --columns $COLUMNS_ASKED \
	--shard-records 8 -q
run 0 "$PACK" plan images extra.csv -o mixed --resize 16 --crop 16 --label-key n --columns $COLUMNS_ASKED \
	--shard-records 8 -q
sed -n 's/^input 3 .* =\([0-9a-f]*\)$/\1/p' mixed/.shardpack/plan >extra.hex
[ "$(wc -c <extra.hex)" = 33 ] || die "an input's extra bytes are $(cat extra.hex)"
for part in 2/3 0/3 1/3; do run 0 "$PACK" build mixed --part $part -q; done
run 0 "$PACK" seal mixed -q
same mixed.ds mixed
run 0 "$PACK" images extra.csv -o foretell --resize 16 --crop 16 --label-key n --columns $COLUMNS_ASKED --dry-run
printed "field far i64 tensor none none [] 0 0"
run 0 "$PACK" plan images extra.csv -o unspoilt "${ARGS[@]}" --label-key n --columns $COLUMNS_ASKED -q
replan 's/^\(input 3 .*\)..$/\1/' unspoilt spoilt
run 1 "$PACK" build spoilt
grep -q "^shardpack: spoilt/.shardpack/plan: line [0-9]*: not the numbers of --columns; this is not a plan that shardpack wrote$" err || die "$(cat err)"

# ---- flat folders, single files, lists of them ----

run 0 "$PACK" images flat -o regex "${ARGS[@]}" --label-regex '[0-9]_([a-c])\.'
said "shardpack: 1 other file in the source: ignored (.txt 1)"
as_set regex
[ "$(sed -n 's/^class //p' regex/dataset.manifest | tr '\n' ,)" = "0 a,1 b,2 c," ] || die "class names"
run 0 "$PACK" images flat -o listed "${ARGS[@]}" --labels flat.csv -q
as_set listed
find src -type f | sort >list
"$PACK" images - -o single "${ARGS[@]}" -q <list
in_order single
run 0 "$PACK" images 'src/*/*' -o pattern "${ARGS[@]}" -q
same single pattern
run 0 "$PACK" images src copy -o folders "${ARGS[@]}" -q
[ "$(sed -n 's/^records //p' folders/dataset.manifest) $(grep -c '^class ' folders/dataset.manifest)" = "60 3" ] ||
	die "two folders"

# ---- refused ----

VERB=(images)
table() { # table NAME LINES: with printf's escapes
	# shellcheck disable=SC2059
	printf -- "$2" >"$1"
}
I=src/class_00/00000.jpg J=src/class_01/00001.jpg
# no_path LIKELY, no_label LIKELY: the messages, up to the names of columns
no_path() {
	echo "no column is called path, file_name or image; say which one holds the paths with --path-key $1; \
the columns are"
}
no_label() {
	echo "no column is called label; say which one holds the labels with --label-key $1, or pack without labels \
with --no-label; the columns are"
}
root="name a folder that holds all images with --root"
table t.csv "path,label\n$I,1\n$J\n" &&
	refused 1 "./t.csv: line 3: 1 fields; the first line has 2 (a field that contains a comma must be quoted)" t.csv
table t.csv "path,label\n$I,\n" && bad_input "t.csv: line 2: no label for '$I'" t.csv
table t.csv "path,label\n,1\n" && bad_input "t.csv: line 2: no path" t.csv
table t.csv "file,label\n$I,1\n" && refused 1 "./t.csv: line 1: $(no_path file) 'file' 'label'" t.csv
table t.csv "path,labels\n$I,1\n" && refused 1 "./t.csv: line 1: $(no_label labels) 'path' 'labels'" t.csv
table t.csv "path,label\n\"$I,1\n" && refused 1 "./t.csv: line 2: field 1: a quote is not closed" t.csv
table t.csv "path,label\n\"$I\"x,1\n" && refused 1 "./t.csv: line 2: field 1: text follows a closing quote" t.csv
table t.csv "path,label\na\"b,1\n" &&
	refused 1 "./t.csv: line 2: field 1: a quote within a field; quote the whole field, and write the quote twice" \
		t.csv
table t.csv "path,label\na\rb,1\n" && refused 1 "./t.csv: line 2: field 1: a carriage return without a line feed" t.csv
table t.csv "path,label\na\0b,1\n" && refused 1 "./t.csv: line 2: field 1: a NUL byte" t.csv
table t.csv "path,label\n\nsrc/gone.jpg,1\n" &&
	bad_input "t.csv: line 3: 'src/gone.jpg': No such file or directory" t.csv
table t.csv "path,label\n../x.jpg,1\n" &&
	refused 1 "./t.csv: line 2: '../x.jpg' lies outside of .; $root" t.csv
table t.csv "path,label\n/etc/x.jpg,1\n" &&
	refused 1 "./t.csv: line 2: '/etc/x.jpg' lies outside of .; $root" t.csv
table real/t.csv "path,label\n$PWD/link/../src/x.jpg,1\n" &&
	refused 1 "real/t.csv: line 2: '$PWD/link/../src/x.jpg' lies outside of real; $root" real/t.csv
table t.csv "path, label\n$I,1\n" && refused 1 "./t.csv: line 1: $(no_label NAME) 'path' ' label'" t.csv
table t.csv "Path,Label\n$I,1\n" && refused 1 "./t.csv: line 1: $(no_path Path) 'Path' 'Label'" t.csv
refused 1 "./t.csv: line 1: $(no_label Label) 'Path' 'Label'" t.csv --path-key Path
table t.csv "x,filename,class\n1,$I,1\n" &&
	refused 1 "./t.csv: line 1: $(no_path filename) 'x' 'filename' 'class'" t.csv
refused 1 "./t.csv: line 1: $(no_label class) 'x' 'filename' 'class'" t.csv --path-key filename
refused 1 "./t.csv: line 1: no column is called path, which --path-key names; the columns are 'x' 'filename' 'class'" \
	t.csv --path-key path
refused 1 "./t.csv: line 1: no column is called age, which --columns needs; the columns are 'x' 'filename' 'class'" \
	t.csv --path-key filename --label-key class --columns age:u8
refused 2 "src: --path-key is for tables: .csv, .tsv or .jsonl" src --path-key x
refused 2 "./src: --path-key is for tables: .csv, .tsv or .jsonl" src t.csv --path-key x
table t.csv "path\tlabel\n$I\t1\n" && refused 1 "./t.csv: line 1: is separated by tabs, \
and a .csv is by commas; rename it to .tsv" t.csv
table t.csv "path;label\n$I;1;2\n" && run 1 "$PACK" images t.csv -o no "${ARGS[@]}"
said "shardpack: ./t.csv: line 2: 3 fields; the first line has 2 (a field that contains a semicolon must be quoted)"
table t.csv "path,label\n$I,caf\351\n" &&
	bad_input "t.csv: line 2: label 'caf\351' must be UTF-8 of 1 to 1024 bytes; it has 4" t.csv
for f in csv jsonl; do
	for code in UTF-16 UTF-16LE UTF-16BE; do
		iconv -f UTF-8 -t $code train.$f >wide.$f
		refused 1 "./wide.$f: is UTF-16; save it as UTF-8" wide.$f
	done
done
mkdir circle && cp $I circle && ln -s ../circle circle/x
refused 1 "circle/x: this link leads back to circle; following it would never end" circle --label-regex '(.)'
table t.csv "path,label\n" && refused 1 "./t.csv: no rows in it" t.csv
: >t.csv && refused 1 "./t.csv: no rows in it" t.csv
table t.csv "path,label,x,label\n$I,1,2,3\n" &&
	refused 1 "./t.csv: line 1: columns 2 and 4 are both called label; rename one" t.csv
table t.csv "path,x,path,label\n$I,1,2,3\n" &&
	refused 1 "./t.csv: line 1: columns 1 and 3 are both called path; rename one" t.csv
# Numbers that cannot be classes are not silently names, of which "10" would come before "2".
for label in -1 007 ' 3' 3.0 16777216 18446744073709551616; do
	table t.csv "path,label\n$J,10\n$I,$label\n"
	refused 1 "./$I: label '$label' is a number but not of a class: must be 0 to 16777215 without sign, blanks or \
leading zeros; correct it, or name the classes with --classes" t.csv
done
table t.csv "path,label\n$J,10\n$I,07\n" && run 0 "$PACK" images t.csv -o widths "${ARGS[@]}"
said "shardpack: warning: labels are numbers, but are taken as names, since one has a leading zero: label '07' is class 0; \
leave the zeros out, or set the numbers with --classes FILE"
table t.csv "path,label\n$J,01\n$I,00\n" && run 0 "$PACK" images t.csv -o zeros "${ARGS[@]}" # as they count
! grep -q "taken as names" err || die "a warning of numbers that are kept"
table t.csv "path,label\n$J,90000001\n$I,90000000\n" && run 0 "$PACK" images t.csv -o ids "${ARGS[@]}"
said "shardpack: warning: labels are numbers, but are taken as names, since one is above the limit of classes: \
label '90000000' is class 0; set the numbers with --classes FILE"
[ "$(sed -n 's/^class //p' widths/dataset.manifest | tr '\n' ,)" = "0 07,1 10," ] || die "class names"
table t.csv "path,label\n$J,7\n$I,3\n" && run 0 "$PACK" images t.csv -o holes "${ARGS[@]}"
said "shardpack: warning: 6 of 8 classes have no image: labels are numbers, the largest is 7 ($J), and no image has 0"
table t.csv "path,label\n$J,10\n$I,-1\n" && table some2 "-1\n10\n" &&
	run 0 "$PACK" images t.csv -o minus "${ARGS[@]}" --classes some2 -q
# Folders are names even if they are numbers, from wherever they come; beside a list of numbers
# either could be meant.
mkdir numbers numbers/1 numbers/2 numbers/10
for k in 1 2 10; do cp "src/class_00/0000$((k % 3 * 3)).jpg" numbers/$k/x.jpg; done
tar -C numbers -cf numbers.tar 1 2 10
mkdir more && cp -r numbers/10 more
run 0 "$PACK" images numbers -o numbers.ds "${ARGS[@]}" -q
NUMBERS="class folders are numbers and sort as text, as in torchvision: class 1 is '10', before '2'; \
set the numbers with --classes FILE"
for source in numbers.tar "more numbers" "numbers/10/x.jpg numbers/2/x.jpg numbers/1/x.jpg"; do
	rm -rf numbers.got
	# shellcheck disable=SC2086
	run 0 "$PACK" images $source -o numbers.got "${ARGS[@]}"
	[ "$(sed -n 's/^class //p' numbers.got/dataset.manifest)" = \
		"$(sed -n 's/^class //p' numbers.ds/dataset.manifest)" ] || die "$source: other classes"
	said "shardpack: warning: $NUMBERS"
done
run 0 "$PACK" images numbers.tar -o stated "${ARGS[@]}" --label-regex '^([0-9]*)/' -q
[ "$(sed -n 's/^class //p' stated/dataset.manifest | tail -n 1)" = "10 10" ] ||
	die "labels of --label-regex are numbers"
table t.csv "path,label\n$I,10\n$J,2\n"
refused 1 ".: folder '1' gives its images a class by name, but '$I' has its class by the number 10; \
name the classes with --classes FILE" t.csv numbers.tar
printf '2\n1\n10\n' >order
run 0 "$PACK" images t.csv numbers.tar -o mixture "${ARGS[@]}" --classes order -q
[ "$(sed -n 's/^class //p' mixture/dataset.manifest | tr '\n' ,)" = "0 2,1 1,2 10," ] || die "class names"
# Folders that are names, beside a list of numbers.
mkdir named && cp -r numbers/10 named/cat
refused 1 ".: folder 'cat' gives its images a class by name, but '$I' has its class by the number 10; \
name the classes with --classes FILE" t.csv named

# ---- a name among numbers ----

# One of them would make names of all, and class 0 of "10".  Wherever labels come from.
fix="; correct it, or list all classes by name with --classes FILE"
K=src/class_02/00002.jpg
table t.csv "path,label\n$I,2\n$J,10\n$K,n/a\n"
refused 1 "./t.csv: line 4: label 'n/a' is not a number, but 2 of 3 labels are$fix" t.csv
printf 'path\tlabel\n%s\t?\n%s\t10\n%s\t-1\n' $I $J $K >t.tsv
refused 1 "./t.tsv: line 2: label '?' is not a number, but 2 of 3 labels are$fix" t.tsv
for none in '"n/a"' '"ten"'; do
	table t.jsonl "{\"path\": \"$I\", \"label\": 10}\n\n{\"path\": \"$J\", \"label\": $none}\n"
	refused 1 "./t.jsonl: line 3: label '${none//\"/}' is not a number, but 1 of 2 labels are$fix" t.jsonl
done
mkdir among
for name in 0_x 1_y 10_z na_w; do cp $I among/$name.jpg; done
refused 1 "among/na_w.jpg: label 'na' is not a number, but 3 of 4 labels are$fix" among --label-regex '^([a-z0-9]*)_'
table among.csv "path,label\n0_x.jpg,0\n1_y.jpg,1\n10_z.jpg,\"\"\" \"\nna_w.jpg,2\n"
refused 1 "among/10_z.jpg: label '\" ' is not a number, but 3 of 4 labels are$fix" among --labels among.csv
for k in 0 1 2; do
	cp $I among/$k.jpg
	echo $k >among/$k.cls
	echo "{\"n\": $k}" >among/$k.json
done
echo none >among/2.cls && echo '{"n": "none"}' >among/2.json
tar -C among -cf cls.tar {0,1,2}.jpg {0,1,2}.cls
tar -C among -cf json.tar {0,1,2}.jpg {0,1,2}.json
refused 1 "./cls.tar/2.jpg: label 'none' is not a number, but 2 of 3 labels are$fix" cls.tar
refused 1 "./json.tar/2.jpg: label 'none' is not a number, but 2 of 3 labels are$fix" json.tar --label-key n
# Few images with a number, but most classes are: the others have no label.
{
	echo path,label
	for k in {0..29}; do echo "$(ls src/*/*"$(printf %05d "$k")".*),$([ $k -lt 5 ] && echo $k || echo n/a)"; done
} >few.csv
refused 1 "./few.csv: line 7: label 'n/a' is not a number, but 5 of 30 labels are$fix" few.csv
# Two tables, of which only one has numbers.
table two1.csv "path,label\n$I,2\n$J,10\n"
table two2.csv "path,label\n$K,cat\n"
refused 1 "./two2.csv: line 2: label 'cat' is not a number, but 2 of 3 labels are$fix" two1.csv two2.csv
# Most are names: a number is one of them, and a warning says so.
sed 's,n/a$,cat,; 2,4s/,[0-9]*$/,dog/; 5s/,[0-9]*$/,emu/' few.csv | sed '10s/cat$/gnu/' >names.csv
run 0 "$PACK" images names.csv -o named.ds "${ARGS[@]}"
said "shardpack: warning: ./names.csv: line 6: label '4' is taken as a name, and is class 0: 1 of 30 labels are \
numbers, the others are names; set the numbers with --classes FILE"
# --classes says that they are names.
table some3 "n/a\n2\n10\n"
run 0 "$PACK" images t.csv -o some3.ds "${ARGS[@]}" --classes some3
run 0 "$CAT" list some3.ds
[ "$(cut -f 2 out | tr '\n' ' ')" = "1 2 0 " ] || die "labels by --classes: $(cat out)"
# A list may have more classes than the images do: a word says so.
table list4 "cat\ndog\nemu\n10\n"
table q.csv "path,label\n$I,dog\n$J,10\n" && run 0 "$PACK" images q.csv -o richer "${ARGS[@]}" --classes list4 -q
said_only "shardpack: warning: --classes list4: 2 of 4 classes have no image; the first of these is 'cat'"
table some2 "cat\ndog\n"
refused 1 "./$I: label '2' is not one of the 2 classes of --classes some2; it is taken as a name, because \
./t.csv: line 4 has label 'n/a'" t.csv --classes some2
# Numbers are names of the list if any of them is one, in whichever line it stands.
table some2 "cat\ndog\nemu\n10\n"
for rows in "$I,2\n$J,10\n" "$J,10\n$I,2\n"; do
	table t.csv "path,label\n$rows"
	refused 1 "./$I: label '2' is not one of the 4 classes of --classes some2" t.csv --classes some2
done
# What stands there is said, of a table without any good row and of a row among good ones.
MUST="a label must be a whole number or a text"
while IFS='|' read -r value what; do
	table t.jsonl "{\"path\": \"$I\", \"label\": $value}\n"
	refused 1 "./t.jsonl: line 1: label is $what" t.jsonl
	table t.jsonl "{\"path\": \"$J\", \"label\": 1}\n{\"path\": \"$I\", \"label\": $value}\n"
	bad_input "t.jsonl: line 2: label is $what" t.jsonl
	table t.jsonl "{\"path\": \"$J\", \"a\": {\"label\": 1}}\n{\"path\": \"$I\", \"a\": {\"label\": $value}}\n"
	bad_input "t.jsonl: line 2: a.label is $what" t.jsonl --label-key a.label
done <<END
1.0|1.0; $MUST: write 1, or "1.0"
-2.0|-2.0; $MUST: write -2, or "-2.0"
true|true; $MUST: write 1, or "true"
false|false; $MUST: write 0, or "false"
{"id": 1, "name": "x"}|an object with the keys 'id' 'name'; $MUST
END
table t.jsonl "{\"path\": \"$I\", \"label\": 0.25}\n" &&
	refused 1 "./t.jsonl: line 1: label is 0.25; $MUST; a measure is a field: --no-label --field \
label:kind=tensor,dtype=f32" t.jsonl
while IFS='|' read -r value why; do # it is not there, or has no value
	table t.jsonl "{\"path\": \"$I\", $value}\n" &&
		refused 1 "./t.jsonl: line 1: $why; say which one holds the labels with --label-key NAME, or pack \
without labels with --no-label; the keys are 'path' '$(cut -d '"' -f 2 <<<"$value")'" t.jsonl
	table t.jsonl "{\"path\": \"$I\", $value}\n{\"path\": \"$J\", \"label\": 1}\n" &&
		bad_input "t.jsonl: line 1: $why" t.jsonl
done <<END
"label": null|label is null
"other": 1|no text or whole number is called label
END
# A table without its first line: --path-key would take a row for the names.
printf '%s,0\n%s,1\n' "$I" "$J" >t.csv
refused 1 "./t.csv: line 1: no column is called path, file_name or image; say which one holds the paths with --path-key \
NAME; the columns are '$I' '0'; the first line must name the columns, such as path,label" t.csv
table t.jsonl "{\"path\": 1, \"label\": 1}\n" &&
	refused 1 "./t.jsonl: line 1: path is 1; a path must be a text" t.jsonl
table t.jsonl "{\"path\": \"$J\", \"label\": 1}\n{\"path\": [\"$I\"], \"label\": 1}\n" &&
	bad_input "t.jsonl: line 2: path is a list of 1; a path must be a text" t.jsonl
# Keys within keys; one whose own name has the dot comes first.
table t.jsonl "{\"a\": {\"b\": {\"path\": \"$I\"}, \"label\": 1}, \"a.label\": 0}\n{\"a\": {\"b\": {\"path\": \"$J\"}, \
\"label\": 1}}\n"
run 0 "$PACK" images t.jsonl -o nested "${ARGS[@]}" --path-key a.b.path --label-key a.label
run 0 "$CAT" list nested
[ "$(cut -f 2,4 out | tr '\t\n' '= ')" = "0=$I 1=$J " ] || die "nested keys: $(cat out)"
table t.jsonl "{\"Path\": \"$I\", \"label\": 1}\n" &&
	refused 1 "./t.jsonl: line 1: no text is called path, file_name or image; say which one holds the paths with \
--path-key Path; the keys are 'Path' 'label'" t.jsonl
table t.jsonl "[1]\n" &&
	bad_input "t.jsonl: line 1: not an object; must be an object, such as {\"path\": ..., \"label\": ...}" t.jsonl
table t.jsonl "\n{\"path\": \"a\", \"path\": \"b\"}\n" &&
	bad_input "t.jsonl: line 2: duplicate object key near '\"path\"'" t.jsonl
for row in age:f32,1.5x 'age:f32,' age:f32,1e39 age:f64,-1e309 site:u16,65536 site:u16,-1 small:i8,-129 ok:bool,2 \
	ok:bool,True far:i64,9223372036854775808 far:i64,1.0 'far:u64,+1' 'far:u64, 1'; do
	name=${row%%:*} type=${row%%,*} value=${row#*,}
	table t.csv "path,label,$name\n$I,1,$value\n"
	end=
	[ -n "$value" ] || end="; for empty cells, --columns NAME:TYPE:default=V"
	bad_input "t.csv: line 2: '$value' in column $name is not a value of type ${type#*:}$end" t.csv \
		--columns "$type"
done
# A whole number may be the number of something: stored exactly, or refused.  A fraction is rounded.
for row in n:f32,16777217,'f64 or i64' n:f32,-16777217,'f64 or i64' n:f32,00016777217,'f64 or i64' \
	n:f64,9007199254740993,'i64 or u64'; do
	rest=${row#*,} type=${row%%,*}
	table t.csv "path,label,n\n$I,1,${rest%%,*}\n"
	bad_input "t.csv: line 2: '${rest%%,*}' in column n is not a value of type ${type#*:}, which would round this \
whole number; choose ${rest#*,}" t.csv --columns "$type"
	table t.jsonl "{\"path\": \"$I\", \"label\": 1, \"n\": $(echo "${rest%%,*}" | sed 's/^0*//')}\n"
	bad_input "t.jsonl: line 1: column n, field n: number 0, $(echo "${rest%%,*}" | sed 's/^0*//'), does not fit \
${type#*:}; choose a dtype that holds it" t.jsonl --field "n:kind=tensor,dtype=${type#*:},from=n"
done
printf 'path,label,n,m\n%s,1,%s\n%s,1,%s\n%s,1,%s\n' "$I" 16777216,-9007199254740992 \
	"$J" 16777217.0,9007199254740993.0 "$K" -0,18446744073709551616 >t.csv
run 0 "$PACK" images t.csv -o wholes "${ARGS[@]}" --columns n:f32,m:f64 -q
! grep -q NaN err || die "nothing in it is NaN: $(cat err)"
rm -r wholes
# An empty cell, a key that is missing and null have the default of their column, and are counted.
printf 'path,label,age,site\n%s,1,,7\n%s,1,2.5,\n%s,1,,\n' "$I" "$J" "$K" >t.csv
printf '{"path":"%s","label":1,"site":7}\n{"path":"%s","label":1,"age":2.5,"site":null}\n{"path":"%s","label":1}\n' \
	"$I" "$J" "$K" >t.jsonl
printf 'path,label,age,site\n%s,1,-1,7\n%s,1,2.5,9\n%s,1,-1,9\n' "$I" "$J" "$K" >full.csv
for t in t.csv t.jsonl; do
	run 0 "$PACK" images $t -o $t.default "${ARGS[@]}" --columns age:f32:default=-1,site:u16:default=9
	said "shardpack: ./$t: 2 empty cells in column age: packed as -1"
	said "shardpack: ./$t: 2 empty cells in column site: packed as 9"
	run 0 "$PACK" images full.csv -o $t.full "${ARGS[@]}" --columns age:f32,site:u16 -q
	for i in 0 1 2; do
		diff <("$CAT" get $t.default $i | tail -n +2) <("$CAT" get $t.full $i | tail -n +2)
	done
	rm -r $t.default $t.full
done
run 0 "$PACK" images t.csv -o nan "${ARGS[@]}" --columns age:f32:default=nan,site:u16:default=0
said "shardpack: warning: field age has 2 NaN and 0 infinite values; they are stored as they are"
rm -r nan
run 2 "$PACK" images t.csv -o no "${ARGS[@]}" --columns age:u8:default=-1
said "shardpack: --columns age:u8:default=-1: '-1' is not a value of type u8"
run 2 "$PACK" images t.csv -o no "${ARGS[@]}" --columns age:u8:defalt=1
said "shardpack: --columns age:u8:defalt=1: ':defalt=1' must be :default=V, a number of at most 40 characters, which \
is packed for empty cells; or :default=V:all, if all cells may be empty"
table t.csv "path,label\n$I,1\n" &&
	refused 1 "./t.csv: line 1: no column is called age, which --columns needs; the columns are 'path' 'label'" \
		t.csv --columns age:f32
table t.jsonl "{\"path\": \"$I\", \"label\": 1, \"age\": \"7\"}\n" &&
	bad_input "t.jsonl: line 1: age is \"7\", and --columns needs a number" t.jsonl --columns age:f32
refused 2 "src: --columns is for tables: .csv, .tsv or .jsonl" src --columns age:f32
label_comes="the field label comes from --label-key, --labels, --label-regex or the source's folders, not from --field"
while read -r bad line; do
	run 2 "$PACK" images extra.csv -o no "${ARGS[@]}" --columns "$bad"
	said "shardpack: --columns $line"
	n=$((n + 1))
done <<END
age age: must be NAME:TYPE,..., such as age:f32,site:u16
age:f32, age:f32,: must be NAME:TYPE,..., such as age:f32,site:u16
image:u8 image:u8: the field image is the input itself; must be kind=image
label:u8 label:u8: $label_comes
age:f16 age: dtype=f16: must be u8 to i64, f32, f64 or bool for numbers
age:f32[2] age:f32[2]: dtype=f32[2]: must be u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 or bool
age:f32,age:u8 age: there is a field age already
END
# --columns is short for --field, but for what a plan says of it.
run 0 "$PACK" images extra.csv -o short "${ARGS[@]}" --label-key n --columns site:u16,small:i8 -q
run 0 "$PACK" images extra.csv -o long "${ARGS[@]}" --label-key n --field site:kind=tensor,dtype=u16 \
	--field small:kind=tensor,dtype=i8 -q
"$PYTHON" -c 'import records
a, b = records.read("short"), records.read("long")
assert list(a) == list(b) == ["image", "label", "site", "small"]
for name in a:
    records.same(a[name], b[name], name)'
: >other.tar
refused 2 "other.tar: lies outside of --root src" other.tar --root src
table some "class_00\nclass_01\n"
table t.csv "path,label\n$I,class_00\n$J,class_07\n" &&
	refused 1 "./$J: label 'class_07' is not one of the 2 classes of --classes some" t.csv --classes some
head -n 5 flat.csv >part.csv
run 1 "$PACK" images flat -o no "${ARGS[@]}" --labels part.csv
grep -q "^shardpack: warning: flat/.*: --labels part.csv has no line for '.*'$" err || die "$(cat err)"
{ cat flat.csv && echo "gone.jpg,1"; } >more.csv
bad_input "more.csv: line 32: 'gone.jpg' is not an image of the source" flat --labels more.csv
{ cat flat.csv && tail -n 1 flat.csv; } >twice.csv
refused 1 "twice.csv: lines 31 and 32: '$(tail -n 1 flat.csv | sed 's/^"\(.*\)",.*/\1/; s/""/"/g')' appears twice" \
	flat --labels twice.csv
bad_input "--label-regex ^x(.) does not match '00_a.000.jpg'" flat --label-regex '^x(.)'
run 2 "$PACK" images flat -o no --label-regex 'x'
grep -q "^shardpack: --label-regex x: needs a part in brackets, which is the label: '^(\[^_\]\*)_'$" err ||
	die "$(cat err)"
for regex in '(\d+)' '(.+?)_' '(?:a)(b)' '([a-z]*?)_' 'x(a{2}?)'; do
	run 2 "$PACK" images flat -o no --label-regex "$regex"
	grep -qF "is of Perl's expressions, and these are POSIX extended ones: write [0-9] for a digit" err ||
		die "$(cat err)"
done
for regex in '[0-9]_([a-c])[*?.]' '[]*?]*_([a-c])' '\*?_([a-c])\.'; do # ? in brackets, and of a star
	run 0 "$PACK" images flat -o posix --dry-run --label-regex "$regex"
done
run 2 "$PACK" images flat -o no --label-regex '(x'
run 2 "$PACK" images flat -o no --label-regex '(x)' --labels flat.csv
run 2 "$PACK" images flat -o no --labels flat.txt
refused 1 "flat/00_a.000.jpg: its class would be the folder that holds it, but that lies outside of flat; \
name a folder above it with --root, or give labels with --labels FILE or --label-regex RE, \
or pack without labels with --no-label" flat/00_a.000.jpg
mkdir bare && cp $I bare/x.jpg
refused 1 "./bare/x.jpg: is in no class folder; give labels with --labels FILE or --label-regex RE, \
or pack without labels with --no-label" bare src
refused 2 "'': the name of an input must not be empty" ''
printf '%s\n%s\r\n' $J $I | "$PACK" images - -o crlf "${ARGS[@]}" -q # as Windows ends lines
code=0
printf '%s\n%s\r\n' $J "$(dirname "$I")/no.jpg" | "$PACK" images - -o no "${ARGS[@]}" 2>err || code=$?
[ "$code" = 1 ] || die "exit code $code"
grep -qF "shardpack: warning: $PWD/$(dirname "$I")/no.jpg: No such file or directory" err || die "$(cat err)"
# A list without a newline is not read to its end, which may never come.
code=0
{ printf '%s\n' $J && yes | tr -d '\n'; } | "$PACK" images - -o no "${ARGS[@]}" 2>err || code=$?
[ "$code" = 1 ] || [ "$code" = 141 ] || die "exit code $code"
said_only "shardpack: standard input, line 2: longer than the limit of 8192 bytes; must be one path per line"
run 0 "$PACK" images flat/00_a.000.jpg -o above "${ARGS[@]}" --root . -q
[ "$(sed -n 's/^class //p' above/dataset.manifest)" = "0 flat" ] || die "class of a single image"
echo "tables, flat folders, lists; $n refusals"
