#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_convert.sh - by hand (make check-convert): files that the formats' own
# writers made, packed as a folder of the same images is
. "$ROOT/tests/python/lib.sh"
venv=${VENV:-$BUILD/venv}/convert
for kind in tfrecord mds litdata lmdb; do
	"$venv/bin/python" "$ROOT/tests/python/clients/convert_writers.py" "$kind" "$ROOT/examples/photos/train" "$kind" >log 2>&1 ||
		{ cat log && exit 1; }
done
"$BUILD/bin/shardpack" images "$ROOT/examples/photos/train" -o ref --resize 64 --crop 56 --order source -q
for kind in tfrecord mds litdata lmdb; do
	label=
	[ $kind != lmdb ] || label=--no-label
	python -m libshard.convert $kind $kind $kind.ds $label --shardpack "$BUILD/bin/shardpack" \
		--resize 64 --crop 56 --order source -q
	python - $kind.ds <<'PY'
import sys
import libshard
got, want = libshard.open(sys.argv[1]), libshard.open("ref")
assert len(got) == len(want) > 100
for a, b in zip(got, want, strict=True):
    assert bytes(a["image"]) == bytes(b["image"]) and int(a.get("label", b["label"])) == int(b["label"])
PY
done
"$venv/bin/pip" --disable-pip-version-check list 2>/dev/null | grep -E '^(mosaicml-streaming|litdata|tfrecord|lmdb) ' || true
