#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/no_memory.sh - an allocation that fails says nothing of an input, and leaves no file
# that is not whole: the command ends with exit code 3
#
# Each story lets every allocation of one library fail in turn.  A library that crashes then is not
# looked at: that is not silent.
# TAKES: 60
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
[ -z "${VARIANT-}" ] || skip "a sanitizer has an allocator of its own"

${CC:-cc} -std=gnu11 -O1 -Wall -Wextra -fno-builtin -shared -fPIC -D_GNU_SOURCE -o no_memory.so \
	"$ROOT/tests/fault/no_memory.c" -ldl
"$PYTHON" - <<'PY'
import json
import os
import numpy as np
from PIL import Image

rng = np.random.default_rng(11)
kinds = {"jpg": {}, "png": {}, "webp": {}, "gif": {}, "tif": {"compression": "tiff_lzw"}}
lossless = {"webp": {"lossless": True}, "tif": {"compression": "jpeg"}}
for name, options in [(k, v) for k, v in kinds.items()] + [(f"other_{k}", v) for k, v in lossless.items()]:
    os.makedirs(f"{name}/a")
    kind = name.rpartition("_")[2]
    for i in range(2):
        exif = Image.Exif()
        exif[0x0112] = 6
        more = {} if kind == "gif" else {"exif": exif}
        Image.fromarray(rng.integers(0, 256, (40, 48, 3), np.uint8)).save(f"{name}/a/{i}.{kind}", **options, **more)
os.makedirs("json/a")
for i in range(2):
    Image.fromarray(rng.integers(0, 256, (40, 48, 3), np.uint8)).save(f"json/a/{i}.ppm")
    with open(f"json/a/{i}.json", "w") as f:
        json.dump([[0.5, 0.5, 0.25, 0.125]] * 3, f)
with open("texts.jsonl", "w") as f:
    for i in range(2):
        print(json.dumps({"path": f"a/{i}.ppm", "label": 0, "captions": ["one", "two"]}), file=f)
shape = {0: [[1, 1, 30, 1, 30, 30]], 1: {"size": [40, 48], "counts": [3, 10, 1907]}}
with open("coco.json", "w") as f:
    json.dump({
        "images": [{"id": i, "file_name": f"a/{i}.ppm", "width": 48, "height": 40} for i in range(2)],
        "annotations": [{"id": i, "image_id": i, "category_id": 1, "bbox": [1, 1, 9, 9], "area": 81, "iscrowd": i,
                         "segmentation": shape[i]} for i in range(2)],
        "categories": [{"id": 1, "name": "cat"}]}, f)
PY

runs=0
# without LIBRARY AT COMMAND...: its exit code in $code
without() {
	code=0
	NO_MEMORY_OF=$1 NO_MEMORY_AT=$2 LD_PRELOAD=$PWD/no_memory.so "${@:3}" >out 2>err </dev/null || code=$?
	runs=$((runs + 1))
}
# each LIBRARY COUNT COMMAND...: whichever allocation fails, the dataset ds has COUNT records, or
# there is none and the exit code is 3; five in a row that change nothing are behind the last
each() {
	local library=$1 count=$2 at=0 fine=0 failed=0
	shift 2
	while [ $fine -lt 5 ]; do
		at=$((at + 1))
		rm -rf ds
		without "$library" $at "$@" -o ds --on-error skip -q -j1
		if [ $code = 0 ]; then
			grep -qx "records $count" "ds/dataset.manifest" ||
				die "allocation $at of $library: exit 0, but not all records: $* $(cat err)"
			fine=$((fine + 1))
			continue
		fi
		fine=0 failed=$((failed + 1))
		[ $code = 3 ] || [ $code -ge 128 ] || die "allocation $at of $library: exit code $code: $* $(cat err)"
	done
	[ $failed -gt 0 ] || die "no allocation of $library failed: $*"
}
SIZE=(--resize 16 --crop 16 --exif apply)
for how in "" --sandbox; do
	# shellcheck disable=SC2086 # a word or none
	{
		each bin/shardpack 2 "$PACK" images png "${SIZE[@]}" $how
		each libjpeg 2 "$PACK" images jpg "${SIZE[@]}" $how
		each libwebp 2 "$PACK" images webp "${SIZE[@]}" $how
	}
done
each libwebp 2 "$PACK" images other_webp "${SIZE[@]}"
grep -q "/decode_gif_stub.o" "$BUILD/parts" || each libgif 2 "$PACK" images gif "${SIZE[@]}"
grep -q "/decode_tiff_stub.o" "$BUILD/parts" || {
	each libtiff 2 "$PACK" images tif "${SIZE[@]}"
	each libtiff 2 "$PACK" images other_tif "${SIZE[@]}"
}
BOXES='boxes:kind=boxes,from={}.json,format=cxcywh,max=5'
each libjansson 2 "$PACK" images json "${SIZE[@]:0:4}" --field "$BOXES"
each libjansson 4 "$PACK" images texts.jsonl --root json "${SIZE[@]:0:4}" \
	--field 'text:kind=text,from=captions,pick=each,max=9'
# Of the program itself: outlines and runs of COCO.
each bin/shardpack 2 "$PACK" images coco.json --root json "${SIZE[@]:0:4}" \
	--field mask:kind=mask,from=segmentation

# ---- files that are put together in memory are whole, or are not there ----

run 0 "$PACK" images png -o made "${SIZE[@]}" -q
mkdir -p half/a && cp png/a/* half/a && echo text >half/a/bad.png
# A report tells times, which differ; its end is always the same.
is_whole() {
	case $1 in
	*.html) [ "$(tail -c 8 "$1")" = "</html>" ] ;;
	*) cmp "$1" whole ;;
	esac
}
# whole FILE COMMAND...: with exit code 0 FILE is as it is with all memory
whole() {
	local file=$1 at=0 fine=0
	shift
	rm -rf ds kept "$file"
	run 0 "$@"
	cp "$file" whole
	while [ $fine -lt 5 ]; do
		at=$((at + 1))
		rm -rf ds kept "$file"
		without libc.so $at "$@"
		[ $code -lt 128 ] || die "allocation $at of the C library: exit code $code: $*"
		if [ $code = 0 ]; then
			is_whole "$file" || die "allocation $at of the C library: exit 0, but $file is not whole: $*"
		fi
		fine=$((code == 0 ? fine + 1 : 0))
	done
}
whole got.npy "$CAT" get made 0 --field image --npy --out got.npy
whole sheet.png "$CAT" show made --out sheet.png
whole some.sel "$CAT" select made --part 0.5 -o some.sel
whole kept/quarantine.jsonl "$PACK" images half -o ds "${SIZE[@]}" -q -j1 --on-error quarantine --quarantine kept
whole r.html "$PACK" images png -o ds "${SIZE[@]}" -q -j1 --report r.html
echo "$runs runs"
