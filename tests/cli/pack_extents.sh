#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_extents.sh - images that are parts of files, by a table of offsets: the records of
# a folder of the same images; damaged tables and files, changes, kills
# TAKES: 20
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli
SHUFFLED=(--resize 16 --crop 16) ARGS=(--resize 16 --crop 16 --order source)

make_images src 60 3
run 0 "$PACK" images src -o ref "${ARGS[@]}" -q

# Two files of images with other bytes before, between and behind them, and their tables: keys are
# the paths in src.
"$PYTHON" - <<'PY'
import csv
import glob
import json
import os
images = sorted(glob.glob("src/*/*"))
os.makedirs("deep/er")
rows, out = [], {}
for i, p in enumerate(images):
    path = "a.bin" if i % 2 else "deep/er/b c#%.bin"
    f = out[path] = out.get(path) or open(path, "wb")
    f.write(b"\xff\xd8" * (i % 7))
    data = open(p, "rb").read()
    rows.append({"path": path, "offset": f.tell(), "bytes": len(data), "label": int(p.split("/")[1][-2:]), "key": p[4:],
                 "n": i, "caption": "image %d" % i})
    f.write(data)
out["a.bin"].write(b"behind")
for f in out.values():
    f.close()
def table(name, rows, columns):
    with open(name, "w", newline="") as f:
        w = csv.DictWriter(f, columns, extrasaction="ignore", dialect="excel-tab" if "tsv" in name else "excel")
        w.writeheader()
        w.writerows(rows)
table("all.csv", rows, list(rows[0]))
table("all.tsv", rows, list(rows[0])[::-1])
open("all.jsonl", "w").write("".join(json.dumps(r) + "\n" for r in rows))
open("texts.jsonl", "w").write("".join(json.dumps({k: str(v) for k, v in r.items()}) + "\n" for r in rows))
table("nokey.csv", rows, ["path", "offset", "bytes", "label"])
table("odd.csv", rows[::2], list(rows[0]))
table("even.csv", rows[1::2], list(rows[0]))
table("twice.csv", rows + rows[:3] + [dict(rows[0], label=2)], list(rows[0]))
renamed = [{"where": r["path"], "offset": r["offset"], "bytes": r["bytes"], "class": r["label"], "key": r["key"]} for r in rows]
table("renamed.csv", renamed, list(renamed[0]))
json.dump(rows, open("rows.json", "w"))
PY

# as_ref DS: the records, labels and keys of ref, in its order
as_ref() {
	"$PYTHON" - "$1" <<'PY'
import sys
import records
ref, got = records.read("ref"), records.read(sys.argv[1])
for name in ref:
    records.same(got[name], ref[name], sys.argv[1] + " " + name)
PY
	diff <(keys ref) <(keys "$1") >&2 || die "$1 has other keys"
}
keys() {
	"$CAT" list "$1" --json | sed -n 's/.*"key": "\([^"]*\)".*/\1/p'
}

# ---- CSV, TSV, JSON lines; several tables; another place ----

for t in all.csv all.tsv all.jsonl texts.jsonl; do
	run 0 "$PACK" images $t -o "$t.ds" --extents "${ARGS[@]}"
	said "shardpack: 60 inputs = 60 written + 0 skipped + 0 quarantined + 0 failed"
	as_ref "$t.ds"
	same all.csv.ds "$t.ds"
done
grep -q '^input 1 [0-9]* [0-9]* class_00/00003.jpg 1 2$' <("$PACK" plan images all.csv -o p --extents "${ARGS[@]}" -q &&
	cat p/.shardpack/plan) || die "$(grep ^input p/.shardpack/plan | head -3)"
run 0 "$PACK" images renamed.csv -o renamed --extents --path-key where --label-key class "${ARGS[@]}" -q
as_ref renamed
run 0 "$PACK" images odd.csv even.csv -o two --extents "${ARGS[@]}" -q
[ "$(keys two | sort)" = "$(keys ref | sort)" ] || die "two tables have other keys"
[ "$(grep -c '^file ' <("$PACK" plan images odd.csv even.csv -o p2 --extents "${ARGS[@]}" -q && cat p2/.shardpack/plan))" \
	= 2 ] || die "a file is opened for each table"
mkdir tables && cp all.csv tables
run 1 "$PACK" images tables/all.csv -o no --extents "${ARGS[@]}"
run 0 "$PACK" images tables/all.csv -o rooted --extents --root . "${ARGS[@]}" -q
as_ref rooted
sed "s,^\(a.bin\|deep\),$PWD/&," all.csv >absolute.csv
run 0 "$PACK" images absolute.csv -o absolute --extents "${ARGS[@]}" -q
as_ref absolute
run 0 "$PACK" images all.csv -o fields --extents "${ARGS[@]}" --columns n:u32 --field caption:kind=text,max=20 -q
"$PYTHON" - <<'PY'
import records
got = records.read("fields")
for i in range(60):
    assert got["n"][i] == i and bytes(got["caption"][i]).rstrip(b"\0") == b"image %d" % i, i
PY
run 0 "$PACK" images all.csv -o regex --extents "${ARGS[@]}" --label-regex '^class_0(.)/' -q
as_ref regex
for t in csv:column jsonl:key; do
	run 0 "$PACK" images all.${t%:*} -o unlabelled --extents "${ARGS[@]}" --no-label --replace
	said "shardpack: ./all.${t%:*}: the ${t#*:} label is not read, because --no-label or another option of labels was given"
	[ "$(grep -c "label is not read" err)" = 1 ] || die "the note about the label of all.${t%:*} is not said once"
	same_images ref unlabelled
done
for t in csv jsonl; do
	run 0 "$PACK" images all.$t -o asfield.$t --extents "${ARGS[@]}" --no-label --field class:kind=tensor,dtype=i64,from=label
	! grep -q "label is not read" err || die "a note about a label that is a field of all.$t"
done
run 0 "$PACK" images all.csv -o sandboxed --extents "${ARGS[@]}" --sandbox -q
same all.csv.ds sandboxed

# Without keys a record has the file and the offset.  A row that repeats an image is a record.
run 0 "$PACK" images nokey.csv -o nokey --extents "${ARGS[@]}" -q
same_images ref nokey
[ "$(keys nokey | sed -n '2p;1p')" = "deep/er/b c#%.bin/0
a.bin/2" ] || die "$(keys nokey | head -2)"
run 0 "$PACK" images twice.csv -o twice --extents "${ARGS[@]}"
said "shardpack: 3 images stand in several rows, 7 rows in all; each row is an input, and the second one of an image \
has a key such as 'class_00/00000.jpg#2'"
said "shardpack: warning: 1 image stands in several rows with different labels; each row is a record with its own \
(the first is 'class_00/00000.jpg', with '0' and '2')"
"$PYTHON" - <<'PY'
import records
ref, got = records.read("ref"), records.read("twice")
order = list(range(60)) + [0, 1, 2, 0]
records.same(got["image"], ref["image"][order], "rows that repeat an image")
assert got["label"][63] == 2
PY
[ "$(keys twice | tail -4 | tr '\n' ' ')" = "class_00/00000.jpg#2 class_00/00003.jpg#2 class_00/00006.jpg#2 \
class_00/00000.jpg#3 " ] || die "$(keys twice | tail -4)"
run 0 "$PACK" plan images twice.csv -o twice.parts --extents "${ARGS[@]}" -q
for part in 1/2 0/2; do run 0 "$PACK" build twice.parts --part $part -q; done
run 0 "$PACK" seal twice.parts -q
same twice twice.parts

# Parts may overlap, and a file may be named by a table as well as any number of times.
"$PYTHON" - <<'PY'
import json
rows = json.load(open("rows.json"))
last = [r for r in rows if r["path"] == "a.bin"][-1]
with open("overlap.csv", "w") as f:
    f.write("path,offset,bytes,label,key\n")
    f.write("a.bin,%d,%d,0,whole\n" % (last["offset"], last["bytes"]))
    f.write("a.bin,%d,%d,0,more\n" % (last["offset"], last["bytes"] + 6))  # to the end: behind an image is no matter
PY
run 0 "$PACK" images overlap.csv -o overlap --extents "${ARGS[@]}" -q
"$PYTHON" - <<'PY'
import records
a, b = records.read("overlap")["image"]
records.same(a, b, "parts that overlap")
PY

# ---- any -j, parts, --dry-run, a copy of the source elsewhere, kills ----

for j in 1 2 5; do
	run 0 "$PACK" images all.csv -o "j$j" --extents "${SHUFFLED[@]}" --shard-records 7 -j $j -q
	same j1 "j$j"
done
run 0 "$PACK" plan images all.csv -o parts --extents "${SHUFFLED[@]}" --shard-records 7 -q
for part in 2/3 0/3 1/3; do run 0 "$PACK" build parts --part $part -q; done
run 0 "$PACK" seal parts -q
same j1 parts
run 0 "$PACK" images all.csv -o dry --extents "${ARGS[@]}" --dry-run
grep -q "^record 1 class 0 class_00/00003.jpg$" out || die "$(cat out)"
[ ! -e dry ] || die "--dry-run made something"
for ms in 005 010 015 020 030 040 060 080 120 160; do
	timeout -s KILL 0.$ms "$PACK" images all.csv -o kills --extents "${SHUFFLED[@]}" --shard-records 1 -j 2 -q &
	wait $! 2>/dev/null || echo $ms
done >killed
run 0 "$PACK" images all.csv -o kills --extents "${SHUFFLED[@]}" --shard-records 1 -j 2 -q
run 0 "$PACK" images all.csv -o unkilled --extents "${SHUFFLED[@]}" --shard-records 1 -j 1 -q
same kills unkilled

# ---- an image that is damaged: by policy ----

"$PYTHON" - <<'PY'
import json
rows = json.load(open("rows.json"))
r = rows[5]
data = bytearray(open("a.bin", "rb").read())
data[r["offset"]:r["offset"] + 4] = b"none"
open("spoilt.bin", "wb").write(data)
open("spoilt.csv", "w").write("path,offset,bytes,label,key\n" + "".join(
    "spoilt.bin,%d,%d,%d,%s\n" % (r["offset"], r["bytes"], r["label"], r["key"]) for r in rows[1::2]))
open("key", "w").write(rows[5]["key"])
open("part", "wb").write(data[r["offset"]:r["offset"] + r["bytes"]])
PY
run 1 "$PACK" images spoilt.csv -o no --extents "${ARGS[@]}"
grep -q "^shardpack: warning: ./$(cat key): " err || die "$(cat err)"
run 0 "$PACK" images spoilt.csv -o kept --extents "${ARGS[@]}" --on-error quarantine --quarantine bad
said "shardpack: 30 inputs = 29 written + 0 skipped + 1 quarantined + 0 failed"
cmp "bad/$(cat key)" part

# Keys of which one is the folder of another, or has the name that a copy gets for that, or is too
# long for a file: each has its copy, whichever comes first.
mv part 1.part
for i in 2 3 4; do printf 'no image %s' $i >$i.part; done
cat 1.part 2.part 3.part 4.part >four.bin
LONG=$(printf 'x%.0s' {1..240})
for keys in "a a/b a/b/c d" "a/b/c a/b a d" "a/x/y a/x a/x/z a" "quarantine.jsonl quarantine.jsonl/x a a/quarantine.jsonl" \
	"a/b a a.file d" "a/b a.file a a.file.file" "a.file/x a/b a d" "a.folder a a/b a.file" "a a.folder/b a/b d" \
	"quarantine.plan quarantine.plan/x quarantine.plan.file quarantine.jsonl/x" "a.folder/b a a/b d" "quarantine.jsonl quarantine.jsonl/x quarantine.jsonl.file d" \
	"$LONG $LONG/a $LONG/$LONG .tmp.b.0123456789abcdef"; do
	# shellcheck disable=SC2086
	set -- $keys
	{
		sed -n 1,3p spoilt.csv
		at=0
		for i in 1 2 3 4; do
			echo "four.bin,$at,$(stat -c %s $i.part),0,${!i}"
			at=$((at + $(stat -c %s $i.part)))
		done
	} >four.csv
	for turn in 1 2; do # the second one finds its own copies
		for j in 1 4; do
			rm -rf kept4
			rm -rf old4 && mv bad4 old4 2>/dev/null || true
			if [ $turn = 2 ]; then
				run 0 "$PACK" plan images four.csv -o kept4 --extents "${ARGS[@]}" --on-error quarantine --quarantine bad4
				cp -r old4/. bad4
			fi
			run 0 "$PACK" images four.csv -o kept4 --extents "${ARGS[@]}" -j $j --on-error quarantine --quarantine bad4
			said "shardpack: 6 inputs = 2 written + 0 skipped + 4 quarantined + 0 failed"
			for i in 1 2 3 4; do
				found=0
				path=$(echo "${!i}" | sed "s,^\.tmp,tmp,; s,x\{180\}x*,${LONG:0:180}*,g; s,/,*/,g")
				for path in $(find bad4 -path "bad4/$path*"); do
					cmp -s "$path" $i.part && found=1
				done
				[ $found = 1 ] || die "no copy of ${!i}: $(find bad4)"
			done
			[ "$(grep -c '"reason"' bad4/quarantine.jsonl)" = 4 ] || die "no list in bad4/quarantine.jsonl: $(find bad4)"
			[ "$(find bad4 -type f ! -path bad4/quarantine.jsonl | wc -l)" = 4 ] || die "$(find bad4)"
		done
	done
done

# ---- rows that are bad: table, line, file, value and limit are named ----

VERB=(images)
ARGS+=(--extents)
size=$(stat -c %s a.bin)
row() { # ROW...: bad.csv has a good row and these
	printf 'path,offset,bytes,label,key\n' >bad.csv
	sed -n 3p all.csv | cut -d, -f 1-5 >>bad.csv
	printf '%s\n' "$@" >>bad.csv
}
bad_row() { # ROW WHY
	row "$1"
	bad_input "bad.csv: line 3: $2" bad.csv
	run 0 "$PACK" images bad.csv -o "skip$n" "${ARGS[@]}" --on-error skip
	said "shardpack: 2 inputs = 1 written + 1 skipped + 0 quarantined + 0 failed"
}
whole="is not a whole number from"
digits="to 2^64 - 1 in decimal digits"
bad_row "a.bin,$size,1,0,k" "1 bytes at offset $size are not within 'a.bin', which has $size"
bad_row "a.bin,1,$size,0,k" "$size bytes at offset 1 are not within 'a.bin', which has $size"
bad_row "a.bin,9223372036854775808,9223372036854775808,0,k" \
	"9223372036854775808 bytes at offset 9223372036854775808 are not within 'a.bin', which has $size"
bad_row "a.bin,18446744073709551615,1,0,k" "1 bytes at offset 18446744073709551615 are not within 'a.bin', which has $size"
bad_row "a.bin,1,18446744073709551615,0,k" "18446744073709551615 bytes at offset 1 are not within 'a.bin', which has $size"
bad_row "a.bin,18446744073709551616,1,0,k" "offset '18446744073709551616' of 'a.bin' $whole 0 $digits"
bad_row "a.bin,0,0,0,k" "bytes 0 of 'a.bin': an image has at least one"
bad_row "a.bin,-1,5,0,k" "offset '-1' of 'a.bin' $whole 0 $digits"
bad_row "a.bin,0,-5,0,k" "bytes '-5' of 'a.bin' $whole 1 $digits"
bad_row "a.bin,x,5,0,k" "offset 'x' of 'a.bin' $whole 0 $digits"
bad_row "a.bin,0x10,5,0,k" "offset '0x10' of 'a.bin' $whole 0 $digits"
bad_row "a.bin,1.0,5,0,k" "offset '1.0' of 'a.bin' $whole 0 $digits"
bad_row "a.bin, 1,5,0,k" "offset ' 1' of 'a.bin' $whole 0 $digits"
bad_row "a.bin,,5,0,k" "no offset for 'a.bin', which --extents needs"
bad_row "a.bin,5,,0,k" "no bytes for 'a.bin', which --extents needs"
bad_row "none.bin,0,5,0,k" "'none.bin': No such file or directory"
bad_row "deep,0,5,0,k" "'deep' is not a regular file, which --extents needs"
bad_row "a.bin,0,5,0," \
	"key '' must be 1 to 4095 bytes, without an empty part, '.' or '..' between slashes"
bad_row "a.bin,0,5,0,../k" \
	"key '../k' must be 1 to 4095 bytes, without an empty part, '.' or '..' between slashes"
bad_row "a.bin,0,5,0,/k" \
	"key '/k' must be 1 to 4095 bytes, without an empty part, '.' or '..' between slashes"
json_row() { # ROW WHY
	{ sed -n 2p all.jsonl && echo "$1"; } >bad.jsonl
	bad_input "bad.jsonl: line 2: $2" bad.jsonl
}
json_row '{"path": "a.bin", "offset": 1.5, "bytes": 5, "label": 0}' "offset is 1.5; must be a whole number"
json_row '{"path": "a.bin", "offset": 1, "bytes": [5], "label": 0}' "bytes is a list of 1; must be a whole number"
json_row '{"path": "a.bin", "offset": -1, "bytes": 5, "label": 0}' "offset '-1' of 'a.bin' $whole 0 $digits"
json_row '{"path": "a.bin", "bytes": 5, "label": 0}' "no offset for 'a.bin', which --extents needs"
json_row '{"path": "a.bin", "offset": 1, "bytes": null, "label": 0}' "no bytes for 'a.bin', which --extents needs"
json_row '{"path": "a.bin", "offset": 1, "bytes": 5, "label": 0, "key": true}' "key is true; must be a text"

# ---- tables and sources that are refused ----

printf 'path,bytes,label\na.bin,1,0\n' >no_offset.csv
refused 1 "./no_offset.csv: line 1: no column is called offset, which --extents needs; the columns are 'path' 'bytes' \
'label'" no_offset.csv
printf 'path,offset,label\na.bin,1,0\n' >no_bytes.csv
refused 1 "./no_bytes.csv: line 1: no column is called bytes, which --extents needs; the columns are 'path' 'offset' \
'label'" no_bytes.csv
printf 'path,offset,offset,bytes,label\na.bin,1,1,1,0\n' >two_offsets.csv
refused 1 "./two_offsets.csv: line 1: columns 2 and 3 are both called offset; rename one" two_offsets.csv
refused 2 "src: --extents is for tables: .csv, .tsv or .jsonl" src
row "a.bin,0,9,0,$(sed -n 3p all.csv | cut -d, -f 5)"
good=$(sed -n 3p all.csv)
IFS=, read -r _ offset bytes _ key _ <<<"$good"
refused 1 ".: '$key' is the key of two images, $bytes bytes at offset $offset of a.bin and 9 bytes at offset 0 of a.bin; \
give each a key of its own in a column 'key'" bad.csv
unset 'ARGS[-1]'
run 1 "$PACK" images nokey.csv -o no "${ARGS[@]}"
said "shardpack: ./nokey.csv: each image is a whole file; if the columns offset and bytes say which part of a file it \
is, say --extents"
run 1 "$PACK" images all.jsonl -o no "${ARGS[@]}"
said "shardpack: ./all.jsonl: each image is a whole file; if the keys offset and bytes say which part of a file it \
is, say --extents"
mkfifo pipe.bin
printf 'path,offset,bytes,label\npipe.bin,0,1,0\n' >fifo.csv
run 1 "$PACK" images fifo.csv -o no --extents "${ARGS[@]}"
said_of_one "fifo.csv: line 2: 'pipe.bin' is not a regular file, which --extents needs"

# ---- a file that changes between plan and build, or is cut; and one that did not ----

planned() { # MORE...: copy holds its own source, planned
	rm -rf copy && mkdir copy && cp -p a.bin all.csv even.csv copy && mkdir copy/deep && cp -rp deep/er copy/deep
	run 0 "$PACK" plan images copy/all.csv -o copy/ds --extents "${ARGS[@]}" --shard-records 20 -q
}
planned
run 0 "$PACK" build copy/ds -q
planned
echo more >>copy/a.bin
run 5 "$PACK" build copy/ds
grep -q "copy/a.bin" err || die "$(cat err)"
planned
truncate -s -1000 copy/a.bin
run 5 "$PACK" build copy/ds
grep -q "copy/a.bin" err || die "$(cat err)"
planned
touch -d '2001-01-01' copy/a.bin
run 5 "$PACK" build copy/ds
grep -q "copy/a.bin" err || die "$(cat err)"
planned
rm copy/a.bin
run 3 "$PACK" build copy/ds
grep -q "copy/a.bin: No such file or directory" err || die "$(cat err)"
# Bytes that change under the same size and time: a shard that is made a second time must be the same.
planned
run 0 "$PACK" build copy/ds -q
"$PYTHON" - <<'PY'
import json, os
rows = [r for r in json.load(open("rows.json")) if r["path"] == "a.bin"]
data, old = bytearray(open("copy/a.bin", "rb").read()), os.stat("copy/a.bin")
large, small = next((a, b) for a in rows[:8] for b in rows if b["bytes"] < a["bytes"]) # what is behind is no matter
data[large["offset"]:large["offset"] + small["bytes"]] = data[small["offset"]:small["offset"] + small["bytes"]]
open("copy/a.bin", "wb").write(data)
os.utime("copy/a.bin", ns=(old.st_atime_ns, old.st_mtime_ns))
PY
rm copy/ds/00000.shard
run 5 "$PACK" build copy/ds
grep -q "^shardpack: copy/ds/00000.shard: has other bytes than when it was built before, so a source changed" err ||
	die "$(cat err)"
# A plan that says more than the file has is no plan.
planned
replan "s/^\(input 1 .* \)[0-9]*$/\1$size/" copy/ds moved
run 1 "$PACK" build moved --source copy
grep -q "not a part of a file; this is not a plan that shardpack wrote$" err || die "$(cat err)"

echo "extents in CSV, TSV and JSON lines; $n refusals; $(wc -l <killed) of 10 runs killed"
