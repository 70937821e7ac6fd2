#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_plain.sh - `shardpack images` as most will use it, and what it leaves
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

# ---- train and val, as in the README ----

run 0 "$PACK" images "$PHOTOS/train" -o train --resize 256 --crop 224
[ "$(contents train)" = "00000.shard dataset.manifest dataset.sources" ] || die "train holds $(contents train)"
said "shardpack: 108 inputs = 108 written + 0 skipped + 0 quarantined + 0 failed"
said "shardpack: next: shardcat show train"
[ ! -s out ] || die "talk belongs on stderr"
run 0 "$CAT" verify train --sha256

run 0 "$PACK" images "$PHOTOS/val" -o val --resize 256 --crop 224 --classes train -q
[ ! -s err ] || die "-q: $(cat err)"
diff <(grep '^class' train/dataset.manifest) <(grep '^class' val/dataset.manifest)

# ---- folders above OUT are made ----

for out in ds/of/val .hidden/val ./below/here/val "$PWD/absolute/val/"; do
	run 0 "$PACK" images "$PHOTOS/val" -o "$out" --resize 256 --crop 224 --classes train -q
	diff val/dataset.manifest "$out/dataset.manifest"
done

# ---- once more: nothing to do, and nothing is done ----

stat -c '%i %Y %n' train/* >before
run 0 "$PACK" images "$PHOTOS/train" -o train --resize 256 --crop 224
said "shardpack: train: the same dataset is there already (same names, sizes, times and options); \
nothing to do"
diff before <(stat -c '%i %Y %n' train/*)

# ---- order, keys, labels and pixels: against os.walk as ImageFolder uses it, and Pillow ----

mkdir -p tree/b/x tree/b/x-y tree/A "tree/b/x/sub" tree/.hidden tree/10
cp "$PHOTOS"/train/cat/cat_000.jpg tree/b/z.JPG
cp "$PHOTOS"/train/cat/cat_001.jpg tree/b/x/1.jpeg
cp "$PHOTOS"/train/cat/cat_002.jpg tree/b/x/sub/1.jpg
cp "$PHOTOS"/train/cat/cat_003.jpg tree/b/x-y/1.jpg
cp "$PHOTOS"/train/cat/cat_004.jpg tree/A/.dot.png # content decides, and a dot does not hide
cp "$PHOTOS"/train/cat/cat_005.jpg "tree/A/sp ace%.webp"
cp "$PHOTOS"/train/cat/cat_006.jpg tree/.hidden/a.tiff
ln -s ../../tree/b tree/10/link
echo text >tree/b/notes.txt
echo text >tree/README
run 0 "$PACK" images tree -o tree.ds --order source --resize 40 --crop 32 --filter bicubic --report tree.json
said "shardpack: 3 other files in the source: ignored (.txt 2, no ending 1)"
run 0 "$CAT" list tree.ds --json
mv out list.json
"$PYTHON" - tree tree.ds "$CAT" <<'PY'
import json, os, subprocess, sys
from PIL import Image
root, ds, cat = sys.argv[1:]
extensions = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
want = []
classes = sorted(e.name for e in os.scandir(root) if e.is_dir())
for label, name in enumerate(classes):
    for folder, _, files in sorted(os.walk(os.path.join(root, name), followlinks=True)):
        for f in sorted(files):
            if f.lower().endswith(extensions):
                want.append((os.path.relpath(os.path.join(folder, f), root), label))
got = [(r["key"], r["label"]) for r in json.load(open("list.json"))["records"]]
assert got == want, (got, want)
for i, (key, _) in enumerate(want):
    image = Image.open(os.path.join(root, key)).convert("RGB")
    w, h = image.size
    size = (40, 40 * h // w) if w <= h else (40 * w // h, 40)
    image = image.resize(size, Image.BICUBIC)
    left, top = round((size[0] - 32) / 2), round((size[1] - 32) / 2)
    pixels = image.crop((left, top, left + 32, top + 32)).tobytes()
    raw = subprocess.run([cat, "get", ds, str(i), "--field", "image", "--raw"], capture_output=True, check=True).stdout
    assert raw == pixels, key
print(len(want), "records as torchvision and Pillow have them")
PY
[ "$(json tree.json 'd["ignored_files"]')" = 3 ] ||
	die "3 files are ignored: two notes (one seen through a link), one README"
[ "$(json tree.json 'sorted(d["ignored"]), d["ignored_endings"]')" = \
	"(['10/link/notes.txt', 'README', 'b/notes.txt'], {'.txt': 2, '': 1})" ] || die "$(json tree.json 'd["ignored"]')"

# ---- images of kinds that are not read are warned of ----

mkdir -p kinds/a && cp "$PHOTOS"/train/cat/cat_000.jpg kinds/a
for name in x.HEIC y.heic z.psd .gitignore no.ending. long.thisisnoending; do echo text >"kinds/a/$name"; done
run 0 "$PACK" images kinds -o kinds.ds --resize 40 -q
said_only "shardpack: warning: 3 ignored files are images of a kind that is not read: .heic 2, .psd 1"
run 0 "$PACK" images kinds -o kinds.ds2 --resize 40 --report kinds.html
said "shardpack: 6 other files in the source: ignored (no ending 3, .heic 2, .psd 1)"
grep -q "Ignored files: 6 (no ending 3, .heic 2, .psd 1)" kinds.html || die "$(grep Ignored kinds.html)"

# ---- class folders that are called as none is ----

mkdir -p split/Train split/val split/.ipynb_checkpoints split/@eaDir
for d in split/*/ split/.ipynb_checkpoints/; do cp "$PHOTOS"/train/cat/cat_000.jpg "$d"; done
run 0 "$PACK" images split -o split.ds --resize 40 -q
said_only "shardpack: warning: class folder 'Train' is called like a part of a dataset, and is packed as a class; to \
pack that part, name the folder itself as the source
shardpack: warning: class folder '.ipynb_checkpoints' is called like what programs leave behind, and is packed as a \
class, as others are; remove it if it is not a class"

# ---- --classes: one name on each line, or JSON ----

mkdir -p two/cat two/dog && cp "$PHOTOS"/train/cat/cat_000.jpg two/cat && cp "$PHOTOS"/train/cat/cat_001.jpg two/dog
printf '\xEF\xBB\xBFdog\r\nfox\r\ncat\r\n' >names.txt
echo '["dog", "fox", "cat"]' >names.json
echo '{"cat": 2, "dog": 0, "fox": 1}' >NUMBERS.JSON
for list in names.txt names.json NUMBERS.JSON; do
	run 0 "$PACK" images two -o "two.$list" --resize 40 --classes $list -q --order source
	same "two.names.txt" "two.$list"
done
[ "$("$CAT" list two.names.txt | cut -f2 | tr '\n' ' ')" = "2 0 " ] || die "$("$CAT" list two.names.txt)"
# what the file holds, and what is said of it
while IFS='|' read -r text line; do
	printf '%s' "$text" >bad.json
	run 1 "$PACK" images two -o no --resize 40 --classes bad.json -q
	said_only "shardpack: --classes bad.json: $line"
done <<'EOF'
{"cat": 0, "dog": 2}|class 'dog' has no number from 0 to 1; an object must say {"name": number} for all of its 2 classes
{"cat": 1, "dog": 1}|classes 'cat' and 'dog' both have the number 1
{"0": ["n01", "cat"], "1": ["n02", "dog"]}|class '0' has no number from 0 to 1; an object must say {"name": number} for all of its 2 classes
["cat", 3]|element 1 of the array is not a text; must be the name of a class
["cat", "d\u0000"]|not JSON, at byte 17: a text has a NUL character (\u0000); texts and names must have none
3|not JSON, at byte 1: '[' or '{' expected near '3'
[]|no class names in it
EOF
run 3 "$PACK" images two -o no --resize 40 --classes none.json -q
said_only "shardpack: --classes none.json: No such file or directory"

# ---- layouts hold the same pixels ----

run 0 "$PACK" images tree -o chw.ds --order source --resize 40 --crop 32 --filter bicubic --layout chw -q
for i in 0 3; do
	"$CAT" get tree.ds $i --field image --raw >hwc.raw
	"$CAT" get chw.ds $i --field image --raw >chw.raw
	"$PYTHON" -c 'import numpy
a = numpy.fromfile("hwc.raw", "u1").reshape(32, 32, 3)
b = numpy.fromfile("chw.raw", "u1").reshape(3, 32, 32)
assert (a.transpose(2, 0, 1) == b).all() and a.std() > 5'
done

# ---- the shuffle: a permutation, decided by the seed ----

for seed in 0 1; do
	run 0 "$PACK" images "$PHOTOS/val" -o "seed$seed" --resize 16 --seed $seed -q
	"$CAT" list "seed$seed" --json | sed -n 's/.*"key": "\([^"]*\)".*/\1/p' >"keys$seed"
done
cmp -s keys0 keys1 && die "two seeds, one order"
diff <(sort keys0) <(cd "$PHOTOS/val" && find . -name '*.jpg' | sed 's,^\./,,' | sort)
diff keys0 <(sort keys0) >/dev/null && die "not shuffled"

# ---- LZ4 holds the same records ----

run 0 "$PACK" images "$PHOTOS/val" -o lz4 --resize 16 --compress lz4 -q
run 0 "$CAT" verify lz4
for i in 0 35; do
	cmp <("$CAT" get lz4 $i --field image --raw) <("$CAT" get seed0 $i --field image --raw)
done
echo "plain runs, ImageFolder order, Pillow's pixels, layouts, seeds, LZ4"
