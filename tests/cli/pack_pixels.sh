#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_pixels.sh - what --fit makes of images is what Pillow and torchvision make of them; refusals
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
"$PYTHON" -c 'import numpy, PIL' 2>/dev/null || skip "no Python with Pillow and NumPy"

# Shapes whose sides, halves and offsets round in every way; the last ones would have a side below 1 pixel.
"$PYTHON" - <<'PY'
import os
import numpy as np
from PIL import Image
rng = np.random.default_rng(3)
sizes = [(64, 64), (64, 63), (63, 64), (100, 37), (37, 100), (41, 40), (40, 41), (7, 5), (5, 7), (90, 60), (60, 91), (33, 20),
         (20, 33), (128, 3), (3, 128), (1, 1), (2, 1), (40, 1), (1, 40)]
os.makedirs("src/a")
for i, (w, h) in enumerate(sizes):
    Image.fromarray(rng.integers(0, 256, (h, w, 3), dtype=np.uint8)).save(f"src/a/{i:02}.png")
PY

n=0
while read -r fit resize crop filter; do
	run 0 "$PACK" images src -o "ds$n" --order source --fit "$fit" --resize "$resize" --crop "$crop" --filter "$filter" --report r.json -q
	[ "$(json r.json 'd["recipe"]["fit"]')" = "$fit" ] || die "the report says nothing of --fit $fit"
	run 0 "$CAT" verify "ds$n"
	"$PYTHON" - "$CAT" "ds$n" "$fit" "$resize" "$crop" "$filter" <<'PY'
import glob, subprocess, sys
from PIL import Image, ImageOps
cat, ds, fit, n, crop, name = sys.argv[1:]
n, crop, how = int(n), int(crop), getattr(Image, name.upper())

def center_crop(image):  # torchvision's CenterCrop
    w, h = image.size
    padded = Image.new("RGB", (max(w, crop), max(h, crop)))
    padded.paste(image, (max(crop - w, 0) // 2, max(crop - h, 0) // 2))
    left, top = int(round((padded.width - crop) / 2.0)), int(round((padded.height - crop) / 2.0))
    return padded.crop((left, top, left + crop, top + crop))

for i, path in enumerate(sorted(glob.glob("src/a/*.png"))):
    image = Image.open(path).convert("RGB")
    w, h = image.size
    short, long = min(w, h), max(w, h)
    if fit == "pad":
        if round(short / long * n) == 0:
            continue  # Pillow refuses
        want = ImageOps.pad(image, (n, n), how)
    else:
        a, b = {"short": (n, int(n * long / short)), "long": (max(int(n * short / long), 1), n), "stretch": (n, n)}[fit]
        want = center_crop(image.resize((a, b) if w <= h else (b, a), how))
    raw = subprocess.run([cat, "get", ds, str(i), "--field", "image", "--raw"], capture_output=True, check=True).stdout
    assert raw == want.tobytes(), (fit, n, crop, name, path, image.size)
PY
	n=$((n + 1))
done <<"END"
short 40 40 bilinear
short 40 31 bicubic
long 40 40 bilinear
long 41 41 lanczos
long 40 17 bicubic
stretch 40 40 bilinear
stretch 33 20 box
pad 40 40 bilinear
pad 41 41 bicubic
pad 64 64 lanczos
END

# The default has the plan that it had before the option: same lines, same digest, same dataset.
run 0 "$PACK" images src -o plain --order source --resize 40 --crop 40 -q
same plain ds0
run 0 "$PACK" images src -o x --order source --resize 40 --shard-records 100 --dry-run
[ "$(sed '/^version/,$d' out | tr '\n' ' ')" = "source images resize 40 crop 40 filter bilinear layout hwc compress none align 0 order source seed 0 on-error fail shard-records 100 " ] || die "the recipe has other lines than before the option: $(sed '/^version/,$d' out)"
run 0 "$PACK" images src -o x --order source --resize 40 --fit pad --dry-run
printed "fit pad"
run 0 "$PACK" images src -o x --fit long -q --dry-run
printed "resize 224"
printed "crop 224"

# A plan is made with the option and built without it.
run 0 "$PACK" plan images src -o parts --order source --resize 41 --fit pad --filter bicubic -q
run 0 "$PACK" build parts --part 0/1 -q
run 0 "$PACK" seal parts -q
same parts ds8

run 2 "$PACK" images src -o x --fit long --crop 20
said "shardpack: --fit long needs --resize N"
run 2 "$PACK" images src -o x --fit pad --crop 20 --resize 30
said "shardpack: --crop 20: --fit pad makes all of the square of --resize 30, and nothing is cropped; leave --crop out"
run 2 "$PACK" images src -o x --fit cover --resize 30
said "shardpack: --fit cover: must be short, long, stretch or pad"
[ ! -e x ] || die "a refusal left something"
echo "$n transforms as Pillow's"
