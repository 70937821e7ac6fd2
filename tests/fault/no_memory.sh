#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/no_memory.sh - an allocation that fails says nothing of an input, and leaves no file
# that is not whole: the command ends with exit code 3
#
# Each story lets every allocation of one library fail in turn, or all behind it.  A library that
# crashes then is not looked at: that is not silent.  A damaged file stays bad input, whatever
# malloc() leaves in errno.
# TAKES: 100
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow

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
for kind in ("webp", "gif", "tif"):  # what is whole, and what is damaged in its middle
    os.makedirs(f"bad_{kind}/a")
    with open(f"{kind}/a/0.{kind}", "rb") as f:
        data = f.read()
    third = len(data) // 3
    for i, part in enumerate((data, data[:third] + bytes([255]) * third + data[2 * third:], data)):
        with open(f"bad_{kind}/a/{i}.{kind}", "wb") as f:
            f.write(part)
os.makedirs("giant/a")
with open("giant/a/0.webp", "wb") as f:  # 16,000 x 5,000 pixels, of which there are none
    f.write(b"RIFF\x1a\0\0\0WEBPVP8 \x0e\0\0\0\x10\0\0\x9d\x01\x2a\x80\x3e\x88\x13\0\0\0\0")
Image.new("RGB", (16, 16)).save("giant/a/1.ppm")
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
# without HOW LIBRARY AT COMMAND...: its exit code in $code, and in $made how many allocations the
# library made; see no_memory.c, where AT may be empty
without() {
	local count_in=$PWD/counted
	case " $* " in *" --sandbox "*) count_in= ;; esac
	code=0
	head -c 8 /dev/zero >counted
	env NO_MEMORY_HOW="$1" NO_MEMORY_OF="$2" ${3:+NO_MEMORY_AT="$3"} NO_MEMORY_COUNT="$count_in" \
		LD_PRELOAD="$PWD/no_memory.so" "${@:4}" >out 2>err </dev/null || code=$?
	made=$(od -An -tu8 counted | tr -d ' ')
	runs=$((runs + 1))
}
# each_by HOW LIBRARY RECORDS COMMAND...: whichever allocation fails, the dataset ds has RECORDS
# records, or there is none and the exit code is 3
each_by() {
	local how=$1 library=$2 records=$3 at last
	shift 3
	rm -rf ds
	without once "$library" 0 "${@//--sandbox/--read-back=yes}" -o ds --on-error skip -q -j1
	[ $code = 0 ] && [ "$made" -gt 0 ] || die "$library makes no allocations: $* $(cat err)"
	last=$made
	for ((at = 1; at <= last; at++)); do
		rm -rf ds
		without "$how" "$library" $at "$@" -o ds --on-error skip -q -j1
		[ $code != 0 ] || grep -qx "records $records" "ds/dataset.manifest" ||
			die "allocation $at of $library: exit 0, but not all records: $* $(cat err)"
		[ $code = 0 ] || [ $code = 3 ] || [ $code -ge 128 ] ||
			die "allocation $at of $library: exit code $code: $* $(cat err)"
		[ "$how$code" != on0 ] || die "there is no memory from allocation $at of $library on, and exit 0: $*"
	done
}
each() {
	each_by once "$@"
}
# left HOW LIBRARY RECORDS FOLDER WORDS: of FOLDER the file a/1.* alone is left out, and named with
# these words
left() {
	rm -rf ds
	without "$1" "$2" "" "$PACK" images "$4" -o ds "${SIZE[@]}" --on-error skip -j1
	[ "$made" -gt 0 ] || die "$2 made no allocation"
	[ $code = 0 ] && grep -qx "records $3" ds/dataset.manifest || die "$1, $4: exit code $code: $(cat err)"
	grep -q "^shardpack: warning: $4/a/1[.].*: .*$5" err || die "$1, $4: $(cat err)"
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
each_by on libwebp 2 "$PACK" images webp "${SIZE[@]}"
left says libwebp 2 bad_webp WebP
! grep -q "/decode_gif.o" "$BUILD/parts" || {
	each libgif 2 "$PACK" images gif "${SIZE[@]}"
	each_by on libgif 2 "$PACK" images gif "${SIZE[@]}"
	left says libgif 2 bad_gif GIF
}
! grep -q "/decode_tiff.o" "$BUILD/parts" || {
	each libtiff 2 "$PACK" images tif "${SIZE[@]}"
	each libtiff 2 "$PACK" images other_tif "${SIZE[@]}"
	each_by on libtiff 2 "$PACK" images tif "${SIZE[@]}"
	left says libtiff 2 bad_tif TIFF
	mkdir -p asks/a && cp giant/a/1.ppm asks/a/0.ppm && cp bad_tif/a/1.tif asks/a
	left always libtiff 1 asks TIFF # as if it asked for more than there is
}
# Within the limits it is no verdict on a file that there is no memory for its size, however few
# bytes it has; and it says what to type.
(ulimit -v 400000 && run 3 "$PACK" images giant -o giant.ds "${SIZE[@]}" --on-error skip -q -j1)
said "shardpack: giant/a/0.webp: out of memory while it was decoded; use fewer workers with -j, or refuse large images \
with --limit pixels=N"
rm -rf giant.ds
(ulimit -v 400000 && run 0 "$PACK" images giant -o giant.ds "${SIZE[@]}" --on-error skip --limit pixels=1000000 -j1)
grep -q "^shardpack: warning: giant/a/0.webp: is 16000 x 5000 = 80000000 pixels" err || die "$(cat err)"
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
		without once libc.so $at "$@"
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
