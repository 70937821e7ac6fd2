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
said "shardpack: train: the same dataset is there already (same names, sizes, options and fingerprints); \
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
said "shardpack: 3 other files in the source: ignored"
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
