#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_convert.sh - by hand (make check-convert): files that the formats' own
# writers made, packed as a folder of the same images is
#
# MXNet and FFCV need an older Python: MXNET=python and FFCV=python name those that have them.
# TIMES=93 writes each photograph 93 times, for figures.
. "$ROOT/tests/python/lib.sh"
venv=${VENV:-$BUILD/venv}/convert
photos=$ROOT/examples/photos/train
times=${TIMES:-1}
set -- tfrecord mds mds_zstd mds_pil mds_ndarray litdata litdata_plain litdata_zstd litdata_chunk litdata_tensor lmdb
[ -z "${MXNET-}" ] || set -- "$@" recordio
[ -z "${FFCV-}" ] || set -- "$@" beton

"$BUILD/bin/shardpack" images "$photos" -o ref --resize 64 --crop 56 --order source -q
for kind in "$@"; do
	writer=$venv/bin/python options=
	case $kind in
	lmdb) options=--no-label ;;
	recordio) writer=$MXNET ;;
	beton) writer=$FFCV options="--image image" ;;
	esac
	"$writer" "$ROOT/tests/python/clients/convert_writers.py" "$kind" "$photos" "$kind" "$times" >log 2>&1 ||
		{ cat log && exit 1; }
	begin=$(date +%s%N)
	# The venv has what the formats compress with.
	# shellcheck disable=SC2086
	PYTHONPATH=$BUILD/python "$venv/bin/python" -m libshard.convert ${kind%%_*} $kind $kind.ds $options \
		--shardpack "$BUILD/bin/shardpack" --resize 64 --crop 56 --order source -q 2>said || { cat said && exit 1; }
	end=$(date +%s%N)
	python - $kind.ds "$times" <<'PY'
import sys
import libshard
got, want, times = libshard.open(sys.argv[1]), libshard.open("ref"), int(sys.argv[2])
assert len(got) == times * len(want) > 100, (len(got), len(want))
for i, b in enumerate(want):
    for k in range(times):
        a = got[i + k * len(want)]
        assert bytes(a["image"]) == bytes(b["image"]) and int(a.get("label", b["label"])) == int(b["label"]), (i, k)
PY
	echo "$kind: $(sed -n 's/libshard.convert: \([0-9]*\) records.*/\1/p' said) images in $(((end - begin) / 1000000)) ms"
	rm -rf "$kind" "$kind.ds"
done
"$venv/bin/pip" --disable-pip-version-check list 2>/dev/null | grep -E '^(mosaicml-streaming|litdata|tfrecord|lmdb) ' || true
