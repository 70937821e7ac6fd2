#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_convert.sh - by hand (make check-convert): files that the formats' own
# writers made, packed as a folder of the same images is, and cut files
#
# MXNet and FFCV need packages that the Makefile does not install: MXNET=python and FFCV=python name
# those that have them.  bench/convert.py takes times.
. "$ROOT/tests/python/lib.sh"
venv=${VENV:-$BUILD/venv}
photos=$ROOT/examples/photos/train
PATH=$BUILD/bin:$PATH
set -- tfrecord mds mds_zstd mds_pil mds_ndarray litdata litdata_plain litdata_zstd litdata_chunk litdata_tensor lmdb \
	webdataset parquet parquet_plain parquet_folder arrow huggingface hdf5 zarr
[ -z "${MXNET-}" ] || set -- "$@" recordio
[ -z "${FFCV-}" ] || set -- "$@" beton

# pack KIND SOURCE: into SOURCE.ds by the one command, or by the lines that it shows
pack() {
	case $1 in
	webdataset) shardpack images "$2"/*.tar -o "$2.ds" --resize 64 --crop 56 --order source -q ;;
	parquet* | arrow | huggingface | hdf5 | zarr)
		! "$python" -m libshard.convert "${1%%_*}" "$2" "$2.ds" >said 2>&1 || return 1
		sed -n 's/resize=256, crop=224/resize=64, crop=56/; s/^    //p' said >lines.py
		[ "$1" != zarr ] || sed -i 's/schema, /None, /' lines.py
		[ "$(wc -l <lines.py)" = 3 ]
		HF_HOME=$TMPDIR/hf "$python" lines.py
		;;
	*)
		# shellcheck disable=SC2086
		"$python" -m libshard.convert ${1%%_*} "$2" "$2.ds" $options --resize 64 --crop 56 --order source -q
		;;
	esac
}

# halve SOURCE: its largest file ends in the middle
halve() {
	find "$1" -type f -printf '%s %p\n' | sort -n | tail -n 1 >largest
	read -r bytes file <largest
	truncate -s $((bytes / 2)) "$file"
}

PYTHONPATH=$BUILD/python
export PYTHONPATH
shardpack images "$photos" -o ref --resize 64 --crop 56 --order source -q
for kind in "$@"; do
	options='' source=$kind python=$venv/convert/bin/python
	case $kind in
	lmdb) options=--no-label ;;
	recordio) writer=$MXNET ;;
	beton) writer=$FFCV options="--image image" ;;
	parquet | parquet_plain) source=$kind.parquet ;;
	arrow) source=$kind.arrow ;;
	hdf5) source=$kind.h5 ;;
	zarr) source=$kind.zarr ;;
	esac
	case $kind in
	webdataset | parquet* | arrow | huggingface | hdf5 | zarr) python=$venv/sources/bin/python ;;
	esac
	case $kind in recordio | beton) ;; *) writer=$python ;; esac
	HF_HOME=$TMPDIR/hf PYTHONPATH='' "$writer" "$ROOT/tests/python/clients/convert_writers.py" "$kind" "$photos" "$source" \
		>log 2>&1 || { cat log && exit 1; }
	begin=$(date +%s%N)
	pack "$kind" "$source" >log 2>&1 || { cat log && exit 1; }
	end=$(date +%s%N)
	python - "$source.ds" <<'PY'
import sys
import libshard
got, want = libshard.open(sys.argv[1]), libshard.open("ref")
assert len(got) == len(want) > 100, (len(got), len(want))
for i, (a, b) in enumerate(zip(got, want)):
    assert bytes(a["image"]) == bytes(b["image"]) and int(a.get("label", b["label"])) == int(b["label"]), i
PY
	rm -rf "$source.ds"
	halve "$source"
	! pack "$kind" "$source" >log 2>&1 || { echo "$kind: half of its largest file is enough" && exit 1; }
	[ ! -e "$source.ds/dataset.manifest" ]
	echo "$kind: $(((end - begin) / 1000000)) ms; cut: $(grep -v '^ \|^Trace\|^$' log | tail -n 1)"
	rm -rf "$source" "$source.ds" "$source.ds".*
done
for name in convert sources; do
	"$venv/$name/bin/pip" --disable-pip-version-check list 2>/dev/null |
		grep -E '^(mosaicml-streaming|litdata|tfrecord|lmdb|webdataset|pyarrow|datasets|h5py|zarr) '
done
