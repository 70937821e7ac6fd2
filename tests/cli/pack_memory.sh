#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_memory.sh - memory does not grow with the size of images times the number of
# workers
#
# The images are the largest that are taken, of one colour: what they need does not depend on what
# is on them.
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

# A sanitizer has memory of its own.
case ${VARIANT:-} in
'') ;;
*) skip "sanitizers need memory of their own" ;;
esac

need_pillow
mkdir -p small/a large/a long/a turned/a webp/a
"$PYTHON" - <<'EOF'
import shutil
from PIL import Image
for i in range(12):
    Image.new("RGB", (300 + i, 280), (i, 2 * i, 99)).save(f"small/a/{i}.jpg")
Image.new("RGB", (9459, 9459), (10, 200, 30)).save("long/a/baseline.jpg")
Image.new("L", (8000, 7500), 77).save("large/a/large0.jpg", progressive=True)
Image.new("L", (7000, 6000), 77).save("turned/a/0.jpg", exif=b"Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0")
Image.new("RGB", (5000, 4000), (9, 8, 7)).save("webp/a/0.webp", lossless=True, quality=0, method=0)
for i in range(1, 4):
    shutil.copy("webp/a/0.webp", f"webp/a/{i}.webp")
    shutil.copy("turned/a/0.jpg", f"turned/a/{i}.jpg")
for i in range(1, 6):
    shutil.copy("large/a/large0.jpg", f"large/a/large{i}.jpg")
EOF
cp small/a/* large/a
cp small/a/* long/a

# An image that can be decoded row by row is never there as a whole: its pixels alone are 256 MiB.
peak 64 "$PACK" images long -o ds_long -j 4 -q
# Six that cannot, at 115 MiB each: two fit the budget of 256 MiB.
peak 320 "$PACK" images large -o ds_large -j 8 -q
[ "$(cat peak)" -ge 115 ] || die "one alone must need more: these images prove nothing"
# Four that are held whole to be turned, at 120 MiB each.
peak 320 "$PACK" images turned -o ds_turned -j 8 --exif apply -q
[ "$(cat peak)" -ge 120 ] || die "one alone must need more: these images prove nothing"
# Four of 20 megapixels, at 57 MiB each and up to 76 more inside the decoder: one at a time.
peak 160 "$PACK" images webp -o ds_webp -j 4 -q
[ "$(cat peak)" -ge 57 ] || die "one alone must need more: these images prove nothing"
# In little address space too; threads reserve much of it without using it.
(ulimit -v $((1 << 20)) && run 0 "$PACK" images long -o ds_limit -j 2 -q)
cmp ds_long/dataset.manifest ds_limit/dataset.manifest
