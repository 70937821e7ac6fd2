#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_tars.sh - images in tar archives: WebDataset, img2dataset, GNU tar's own; every
# format, and damaged ones
# TAKES: 25
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli
ARGS=(--resize 16 --crop 16)

make_images src 40 3
run 0 "$PACK" images src -o ref "${ARGS[@]}" --order source -q
LONG=$(printf 'd%.0s' {1..90})/$(printf 'e%.0s' {1..90})/$(printf 'f%.0s' {1..120})

"$PYTHON" - "$LONG" <<'PY'
import glob
import io
import json
import os
import sys
import tarfile

images = sorted(glob.glob("src/*/*"))
label = {p: int(p.split("/")[1][-2:]) for p in images}

def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))

def wds(path, members, format=tarfile.USTAR_FORMAT):
    with tarfile.open(path, "w", format=format) as tar:
        for name, data in members:
            add(tar, name, data)

def sample(i, p, prefix=""):
    key = prefix + "%06d" % i
    return [(key + "." + p.rsplit(".", 1)[1], open(p, "rb").read()), (key + ".cls", b"%d\n" % label[p]),
            (key + ".json", json.dumps({"label": "class %d" % label[p], "n": label[p], "caption": "x" * 99}).encode()),
            (key + ".txt", b"a caption")]

samples = [sample(i, p) for i, p in enumerate(images)]
wds("a.tar", sum(samples[:25], []))
wds("b.tar", sum(samples[25:], []), tarfile.PAX_FORMAT)
wds("apart.tar", [m for k in range(4) for s in samples for m in s[k:k + 1]]) # all images, then all labels
wds("deep.tar", sum([sample(i, p, sys.argv[1] + "/\u00e4") for i, p in enumerate(images)], []), tarfile.PAX_FORMAT)
wds("deep.gnu.tar", sum([sample(i, p, sys.argv[1] + "/\u00e4") for i, p in enumerate(images)], []), tarfile.GNU_FORMAT)
wds("dots.tar", sum([[("./" + n, d) for n, d in s] for s in samples], []))

# img2dataset: 00000.tar, a parquet and a json beside it; no labels but what the json has
os.mkdir("i2d")
for k in range(2):
    wds("i2d/%05d.tar" % k, sum([[m for m in s if not m[0].endswith(".cls")] for s in samples[20 * k:20 * k + 20]], []))
    open("i2d/%05d.parquet" % k, "w").write("PAR1")
    open("i2d/%05d_stats.json" % k, "w").write("{}")

# what is wrong
one = samples[0]
wds("nolabel.tar", one + [("x.jpg", one[0][1])])
wds("noimage.tar", one + [("x.cls", b"1")])
wds("two.tar", one + [("000000.png", one[0][1])])
wds("twice.tar", one + one[:1])
wds("inner.tar", one + [("000000.x.gif", one[0][1]), ("000000.x.jpg", one[0][1])])
wds("many.tar", one + [("000000.%d" % k, b"") for k in range(1000)])
odd = bytearray(tarfile.TarInfo("c/x.jpg").tobuf(tarfile.USTAR_FORMAT))
odd[156:157] = b"M"
odd[148:156] = b" " * 8
odd[148:156] = b"%06o\0 " % sum(odd)
open("kind.tar", "wb").write(bytes(odd) + bytes(1024))
wds("badlabel.tar", [one[0], ("000000.cls", b"\xff\xfd")])
wds("badjson.tar", [one[0], ("000000.json", b"{")])
wds("nokey.tar", [one[0], ("000000.json", b'{"other": 1}')])
wds("array.tar", [one[0], ("000000.json", b"[1]")])
wds("up.tar", [("a/../../x.jpg", one[0][1])])
wds("root.tar", [("/x.jpg", one[0][1])])
wds("flat.tar", [("x.jpg", one[0][1])])
with tarfile.open("link.tar", "w") as tar:
    add(tar, "c/x.jpg", one[0][1])
    info = tarfile.TarInfo("c/y.jpg")
    info.type, info.linkname = tarfile.LNKTYPE, "c/x.jpg"
    tar.addfile(info)
# Links that may be folders of images, or fields; in a ZIP the mode says so.
for name, kind, to in ("c/b", tarfile.SYMTYPE, "../real"), ("c/y.txt", tarfile.LNKTYPE, "c/x.txt"):
    with tarfile.open("link.%s.tar" % name[2:], "w") as tar:
        add(tar, "c/x.jpg", one[0][1])
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, to
        tar.addfile(info)
import zipfile
for system, name in (3, "link.zip"), (19, "apple.zip"), (0, "dos.zip"):
    with zipfile.ZipFile(name, "w") as z:
        z.writestr("c/x.jpg", one[0][1])
        info = zipfile.ZipInfo("c/b")
        info.create_system, info.external_attr = system, 0o120777 << 16
        z.writestr(info, "../real")
good = open("a.tar", "rb").read()
end = len(good.rstrip(b"\0"))
end += -end % 512
open("cut.tar", "wb").write(good[:5000])
open("member.tar", "wb").write(good[:512 + 1024]) # within the data of the first member
open("noend.tar", "wb").write(good[:end])
open("oneend.tar", "wb").write(good[:end] + bytes(512))
open("joined.tar", "wb").write(good + open("b.tar", "rb").read())
open("sum.tar", "wb").write(good[:10] + b"X" + good[11:])
second = 512 + (len(samples[0][0][1]) + 511) // 512 * 512
open("sum2.tar", "wb").write(good[:second + 10] + b"X" + good[second + 11:])
header = bytearray(good[:512])
header[124:136] = b"7" * 11 + b"\0"
header[148:156] = b" " * 8
header[148:156] = b"%06o\0 " % sum(header)
open("huge.tar", "wb").write(bytes(header) + good[512:])
header[124:136] = b"12x4567\0\0\0\0\0"
header[148:156] = b" " * 8
header[148:156] = b"%06o\0 " % sum(header)
open("number.tar", "wb").write(bytes(header) + good[512:])
open("nothing.tar", "wb")
open("not.tar", "wb").write(b"<html>" * 200)
def described(records, kind):
    head = bytearray(tarfile.TarInfo("p").tobuf(tarfile.USTAR_FORMAT))
    head[156:157] = kind
    head[124:136] = b"%011o\0" % len(records)
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + records + bytes(-len(records) % 512)
open("badpax.tar", "wb").write(described(b"19 path=nonsense\n\0\0", b"x") + good)
open("paxsize.tar", "wb").write(described(b"12 size=abc\n", b"x") + good)
open("sparse.tar", "wb").write(described(b"22 GNU.sparse.major=1\n", b"x") + good)
open("longname.tar", "wb").write(described(b"n" * 5000, b"L") + good)
PY

# same_as_ref DS LABELS: the images of ref in its order, and their labels by that expression of the
# class
same_as_ref() {
	"$PYTHON" - "$@" <<'PY'
import sys
import records
ref, got = records.read("ref"), records.read(sys.argv[1])
records.same(got["image"], ref["image"], sys.argv[1])
records.same(got["label"], eval(sys.argv[2], {"c": ref["label"]}).astype("<i8"), sys.argv[1])
PY
}

# ---- WebDataset: two shards, members apart, long names, pax and GNU, gzip, a pattern, a list ----

run 0 "$PACK" images a.tar b.tar -o wds "${ARGS[@]}" --order source --report wds.json
said "shardpack: 80 other files in the source: ignored (.json 40, .txt 40)"
said "shardpack: 40 inputs = 40 written + 0 skipped + 0 quarantined + 0 failed"
same_as_ref wds c
[ "$("$CAT" list wds --json | sed -n 's/.*"key": "\([^"]*\)".*/\1/p' | sed -n '1p;26p')" = \
	"$(printf 'a.tar/000000.jpg\nb.tar/000025.jpg')" ] || die "keys"
for f in apart.tar deep.tar deep.gnu.tar dots.tar; do
	run 0 "$PACK" images $f -o "$f.ds" "${ARGS[@]}" --order source -q
	same_as_ref $f.ds c
done
gzip -k a.tar b.tar
mkdir -p there/1 there/2 && cp a.tar.gz there/1/train-0.tar.gz && cp b.tar.gz there/2/train-1.tar.gz
run 0 "$PACK" images 'there/*/train-*.tar.gz' -o globbed "${ARGS[@]}" --order source
grep -q "^shardpack: $PWD/there/1/train-0.tar.gz: unpacked once; uses .* on disk until this command ends$" err ||
	die "$(cat err)"
same_as_ref globbed c
printf '%s\n' a.tar b.tar | "$PACK" images - -o listed "${ARGS[@]}" --order source -q
same wds listed
run 0 "$PACK" images a.tar b.tar -o json "${ARGS[@]}" --order source --label-key n -q
same_as_ref json c
run 0 "$PACK" images a.tar b.tar -o names "${ARGS[@]}" --order source --label-key label -q
same_as_ref names c
[ "$(sed -n 's/^class //p' names/dataset.manifest | tr '\n' ,)" = "0 class%200,1 class%201,2 class%202," ] ||
	die "class names"
printf 'class 2\nclass 1\nclass 0\n' >list
run 0 "$PACK" images a.tar b.tar -o renamed "${ARGS[@]}" --order source --label-key label --classes list -q
same_as_ref renamed "2 - c"
run 0 "$PACK" images a.tar b.tar -o numbered "${ARGS[@]}" --order source --classes list -q
same_as_ref numbered c
run 0 "$PACK" images i2d -o i2d.ds "${ARGS[@]}" --order source --label-key n -q
same_as_ref i2d.ds c

# Only a suffix that is an ending of images makes an image, however short another one is.
run 0 "$PACK" images inner.tar -o inner "${ARGS[@]}"
said "shardpack: 4 other files in the source: ignored (.gif 1, .jpg 1, .json 1, .txt 1)"

# ---- tars of class folders, as GNU tar makes them, in its formats ----

for format in ustar gnu oldgnu pax v7; do
	tar --format=$format --sort=name -C src -cf "$format.tar" .
	run 0 "$PACK" images "$format.tar" -o "$format.ds" "${ARGS[@]}" --order source -q
	same_as_ref "$format.ds" c
done
mkdir -p "very/$LONG" && cp -r src/* "very/$LONG"
for format in gnu pax; do
	tar --format=$format --sort=name -C very -cf "long.$format.tar" .
	run 0 "$PACK" images "long.$format.tar" -o "long.$format.ds" "${ARGS[@]}" --order source -q
	same_as_ref "long.$format.ds" c
done
"$PYTHON" - <<'PY'
import glob
import zipfile
images = sorted(glob.glob("src/*/*"))
for name, method in ("stored.zip", zipfile.ZIP_STORED), ("deflated.zip", zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(name, "w", method) as z:
        z.writestr("class_00/", "")
        for p in images:
            z.write(p, p[4:])
with zipfile.ZipFile("wds.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for i, p in enumerate(images):
        z.write(p, "%06d.jpg" % i)
        z.writestr("%06d.cls" % i, "%d" % int(p.split("/")[1][-2:]))
with zipfile.ZipFile("up.zip", "w") as z:
    z.writestr("../x.jpg", "x")
with zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("c/x.jpg", bytes(1 << 24))
data = bytearray(open("bomb.zip", "rb").read())
at = data.index(b"PK\1\2") + 24
data[at:at + 4] = (1000).to_bytes(4, "little")
open("bomb.zip", "wb").write(data)
data = bytearray(open("stored.zip", "rb").read())
data[200] ^= 1
open("spoilt.zip", "wb").write(data)
PY
for f in stored.zip deflated.zip wds.zip; do
	run 0 "$PACK" images $f -o $f.ds "${ARGS[@]}" --order source -q
	same_as_ref $f.ds c
done
# "./" before names makes no other keys, in tars and ZIPs; what macOS puts into archives is ignored,
# but nothing else is.
"$PYTHON" - <<'PY'
import glob
import io
import tarfile
import zipfile
images = sorted(glob.glob("src/*/*"))
double = b"\0\5\26\7" + bytes(100)
junk = [("__MACOSX/class_00/._00000.jpg", double), ("__MACOSX/._class_00", double),
        (".DS_Store", b"\0\0\0\1Bud1"), ("class_00/._00000.jpg", double), ("class_00/.DS_Store", b"x")]
for name, prefix, more in (("plain", "", []), ("dotted", "./", []), ("mac", "", junk)):
    members = more + [(prefix + p[4:], open(p, "rb").read()) for p in images]
    with zipfile.ZipFile(name + ".zip", "w", zipfile.ZIP_DEFLATED) as z:
        for n, data in members:
            z.writestr(n, data)
    with tarfile.open(name + ".tar", "w") as t:
        for n, data in members:
            info = tarfile.TarInfo(n)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
with zipfile.ZipFile("same.zip", "w") as z:
    z.writestr("c/x.jpg", "x")
    z.writestr("./c//x.jpg", "x")
with zipfile.ZipFile("under.zip", "w") as z: # an image may be called so
    z.write(images[0], "c/._x.jpg")
with tarfile.open("meta.tar", "w") as t:
    for n, data in (("__meta__/info.json", b"{}"), ("__MACOSX/._0.jpg", double), ("._0.jpg", double),
                    ("0.jpg", open(images[0], "rb").read()), ("0.cls", b"1")):
        info = tarfile.TarInfo(n)
        info.size = len(data)
        t.addfile(info, io.BytesIO(data))
PY
keys() {
	"$CAT" list "$1" --json | sed -n 's/.*"key": "[^/]*\/\([^"]*\)".*/\1/p'
}
for f in plain.zip dotted.zip mac.zip plain.tar dotted.tar mac.tar; do
	run 0 "$PACK" images $f -o $f.ds "${ARGS[@]}" --order source
	[ ${f%.*} != mac ] || said "shardpack: 5 other files in the source: ignored (no ending 3, .jpg 2)"
	same_as_ref $f.ds c
	diff <(keys plain.zip.ds) <(keys $f.ds)
done
run 0 "$PACK" images under.zip -o under.ds "${ARGS[@]}" -q
[ "$(keys under.ds)" = "c/._x.jpg" ] || die "an image called ._x.jpg is lost"
run 0 "$PACK" images meta.tar -o meta.ds "${ARGS[@]}"
said "shardpack: 3 other files in the source: ignored (.jpg 2, .json 1)"
# In a folder every image counts, as in torchvision, so there they are bad inputs, and the message
# says what to do.
mkdir -p apple/a && cp src/class_00/00000.jpg apple/a && printf '\0\5\26\7\0\2\0\0' >apple/a/._00000.jpg
run 1 "$PACK" images apple -o apple.ds "${ARGS[@]}"
said "shardpack: warning: apple/a/._00000.jpg: is AppleDouble: what macOS keeps beside a file, not an image; \
remove all such files: find SRC -name '._*' -delete"
tar --sort=name -C src -cf byname.tar class_00 class_01 class_02
run 0 "$PACK" images byname.tar -o regex.ds "${ARGS[@]}" --order source --label-regex 'class_0(.)/' -q
same_as_ref regex.ds c

# ---- damaged images in an archive: by policy; any -j, any parts ----

"$PYTHON" - <<'PY'
import io
import tarfile
with tarfile.open("a.tar") as a, tarfile.open("spoilt.tar", "w") as b:
    for m in a.getmembers():
        data = a.extractfile(m).read()
        if m.name == "000004.jpg":
            data = data[:-100]
            m.size = len(data)
        b.addfile(m, io.BytesIO(data))
PY
run 1 "$PACK" images spoilt.tar -o no "${ARGS[@]}"
grep -q "^shardpack: warning: ./spoilt.tar/000004.jpg: " err || die "$(cat err)"
run 0 "$PACK" images spoilt.tar -o quarantined "${ARGS[@]}" --on-error quarantine --quarantine bad --shard-records 10
said "shardpack: 25 inputs = 24 written + 0 skipped + 1 quarantined + 0 failed"
[ "$(contents bad)" = "quarantine.jsonl spoilt.tar spoilt.tar/000004.jpg" ] || die "quarantine holds $(contents bad)"
cmp bad/spoilt.tar/000004.jpg <(tar -xOf spoilt.tar 000004.jpg)
gzip -k spoilt.tar
run 0 "$PACK" plan images spoilt.tar.gz -o planned "${ARGS[@]}" --on-error skip --shard-records 10 -q
for part in 1/2 0/2; do run 0 "$PACK" build planned --part $part -q; done
run 0 "$PACK" seal planned -q
run 0 "$PACK" images spoilt.tar.gz -o skipped "${ARGS[@]}" --on-error skip --shard-records 10 -j 1 -q
same skipped planned
run 0 "$PACK" images a.tar -o work.ds "${ARGS[@]}" --dry-run
printed "inputs 25, $(sed -n 's/^inputs 25, \(.*\); .*/\1/p' out); 50 other files are ignored"
grep -q "^record [0-9]* class [0-9] a.tar/0000[0-9]*.jpg$" out || die "$(cat out)"

# ---- refused ----

VERB=(images)
at() { # where in the archive a member's data begin
	"$PYTHON" -c 'import sys, tarfile
print([m.offset_data for m in tarfile.open(sys.argv[1]).getmembers() if m.name == sys.argv[2]][-1])' "$@"
}
size() {
	stat -c %s "$1"
}
short="it is cut short"
leads_out="has a name that is empty, too long, or leads out of the archive"
bad_input "sample 'x' at offset $(at nolabel.tar x.jpg) has no .cls" nolabel.tar
bad_input "sample 'x' at offset $(at noimage.tar x.cls) has no image" noimage.tar
bad_input "sample '000000' has two images, 'jpg' at offset 512 and 'png' at $(at two.tar 000000.png)" two.tar
refused 1 "./many.tar: sample '000000' at offset 512 has 1004 members; the limit is 1000 \
(a key ends at the first dot of a name; --limit members=N allows more)" many.tar
bad_input "'c/x.jpg' at offset 0 is neither file, folder nor link; make the archive again without it" \
	kind.tar
bad_input "'000000.jpg' appears twice, at offsets 512 and $(at twice.tar 000000.jpg)" twice.tar
bad_input "the label in '000000.cls' at offset $(at badlabel.tar 000000.cls) \
must be UTF-8 of 1 to 1024 bytes; it has 2" badlabel.tar
bad_input "'000000.json' at offset $(at badjson.tar 000000.json): \
string or '}' expected near end of file" badjson.tar --label-key n
bad_input "'000000.json' at offset $(at nokey.tar 000000.json): no key is called n; the keys are 'other'; --label-key \
names the key of labels" \
	nokey.tar --label-key n
bad_input "'000000.json' at offset $(at array.tar 000000.json): not an object" array.tar --label-key n
bad_input "the member at offset 0 $leads_out: 'a/../../x.jpg'" up.tar
bad_input "the member at offset 0 $leads_out: '/x.jpg'" root.tar
refused 1 "./flat.tar/x.jpg: is in no class folder; give labels with --labels FILE or --label-regex RE, \
or pack without labels with --no-label" flat.tar
bad_input "'c/y.jpg' at offset $(($(at link.tar c/y.jpg) - 512)) is a link; \
make the archive again with --dereference --hard-dereference" link.tar
for name in b y.txt; do
	bad_input "'c/$name' at offset $(($(at link.$name.tar c/$name) - 512)) is a link; \
make the archive again with --dereference --hard-dereference" link.$name.tar
done
for name in link apple; do
	bad_input "'c/b' is a link; make the archive again without -y" $name.zip
done
run 0 "$PACK" images dos.zip -o dos "${ARGS[@]}" # there these bits mean nothing
bad_input "the member at offset 0 has $(size src/class_00/00000.jpg) bytes, \
but the archive ends after 1024; $short" member.tar
run 1 "$PACK" images cut.tar -o no "${ARGS[@]}"
grep -q "it is cut short; what follows of this archive is left out$" err || die "$(cat err)"
end=$(size noend.tar)
bad_input "ends at offset $end without the blocks of zeros that end an archive; $short" noend.tar
bad_input "one block of zeros at offset $end, but an archive ends with two; $short" oneend.tar
bad_input "the archive ends at offset $end, but something follows; \
give archives that were joined as separate files" joined.tar
bad_input "the header at offset 0 has a wrong checksum; this is not a tar archive" sum.tar
bad_input "the header at offset $(($(at a.tar 000000.cls) - 512)) has a wrong checksum; \
the archive is damaged there" sum2.tar
bad_input "the member at offset 0 has 8589934591 bytes, but the archive ends after \
$(($(size a.tar) - 512)); $short" huge.tar
bad_input "the size in the header at offset 0 is not a number" number.tar
bad_input "an empty file, not a tar archive" nothing.tar
# what a name says, and what is there
"$PYTHON" - <<'PY'
import bz2, gzip, lzma
for name, pack in ("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress):
    open("named.%s.tar" % name, "wb").write(pack(open("a.tar", "rb").read()))
    open("short.%s.tar" % name, "wb").write(pack(b"x"))
PY
for pair in gz=gzip bz2=bzip2 xz=xz; do
	for length in named short; do # more than a block, and less
		bad_input "begins like ${pair#*=}, not like a tar; rename it so that it ends in .tar.${pair%=*}" \
			$length.${pair%=*}.tar
	done
done
cp up.zip named.tar
bad_input "begins like ZIP, not like a tar; rename it so that it ends in .zip" named.tar
for ending in tgz tar.gz tar.zst; do
	cp a.tar named.$ending
	bad_input "cannot be unpacked; nothing of this archive is packed" named.$ending
	said "shardpack: ./named.$ending: is a tar that is not compressed, although its name says so; rename it so that \
it ends in .tar"
done
bad_input "the header at offset 0 has a wrong checksum; this is not a tar archive" not.tar
bad_input "a damaged pax header at offset 0" badpax.tar
bad_input "a pax header at offset 0 whose size is not a number" paxsize.tar
bad_input "a sparse file at offset 0; pack the archive without --sparse" sparse.tar
bad_input "a name of 5000 bytes at offset 0; the limit is 4095" longname.tar
printf 'x\ny\n' >two.names
refused 1 "./b.tar/000027.jpg: label 2, but --classes two.names has 2 classes, numbered from 0" b.tar \
	--classes two.names
bad_input "cannot be unpacked; nothing of this archive is packed" up.zip
said "shardpack: ./up.zip: the member at offset 38 has a name that is too long, or leads out of the archive: \
'../x.jpg'; make the archive again from the folder that holds all its files"
run 1 "$PACK" images same.zip -o no "${ARGS[@]}"
said "shardpack: ./same.zip/c/x.jpg: appears twice; each image must appear once, unless in rows of a table"
bad_input "cannot be unpacked; nothing of this archive is packed" bomb.zip
said "shardpack: ./bomb.zip: the member at offset 37 unpacks to more than the 1000 bytes that the directory says; \
the file is damaged, fetch it again"
run 1 "$PACK" images spoilt.zip -o no "${ARGS[@]}"
grep -q "^shardpack: ./spoilt.zip: 'class_00/00000.jpg' at offset [0-9]* is damaged: it has [0-9]* bytes with CRC-32 " \
	err || die "$(cat err)"
mkdir -p dots && cp "$PHOTOS"/train/cat/cat_000.jpg dots/img.v1.0.jpg && echo 3 >dots/img.v1.0.cls
tar -C dots -cf dots.tar img.v1.0.cls img.v1.0.jpg
refused 1 "./dots.tar: a key ends at the first dot of a name, so 'img.v1.0.cls' is not a .cls, but the 'v1.0.cls' of the \
sample 'img'; rename the members so that the only dot is that before cls, or give labels with --labels FILE or \
--label-regex RE" dots.tar
tar -cf in_folder.tar dots/img.v1.0.cls dots/img.v1.0.jpg
refused 1 "./in_folder.tar: a key ends at the first dot of a name, so 'dots/img.v1.0.cls' is not a .cls, but the \
'v1.0.cls' of the sample 'dots/img'; rename the members so that the only dot is that before cls, or give labels with \
--labels FILE or --label-regex RE" in_folder.tar
printf 'PAR1%1000sPAR1' '' >table # a name that says nothing
refused 1 "./table: by its name it is not an image, a table (.csv, .tsv, .jsonl), a .json of COCO or an archive \
(.tar, .zip and others), and it is not a tar: this is a Parquet file, which is not read; write its images and texts \
with the Python package, libshard.Writer" table
for f in 0 1; do
	tar -cf none$f.tar -T /dev/null
done
refused 1 "./none0.tar: no images in it" none0.tar
refused 1 "./none0.tar: no images in it, nor in 1 other file" none0.tar none1.tar
run 0 "$PACK" images none0.tar a.tar none1.tar -o barren "${ARGS[@]}"
said "shardpack: warning: 2 files have no image (the first is './none0.tar')"
head -c 20000 a.tar.gz >cut.tar.gz
end=$(size cut.tar.gz)
bad_input "cannot be unpacked; nothing of this archive is packed" cut.tar.gz
grep -q "^shardpack: ./cut.tar.gz: .* $end " err || die "$(cat err)"
echo "WebDataset, img2dataset, 5 formats of GNU tar; $n refusals"
