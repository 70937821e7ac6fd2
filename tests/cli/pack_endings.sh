#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_endings.sh - which endings of names are images: JPEGs have four
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

mkdir -p src/a other/a
i=0
for ending in jpg JPEG jfif JPE; do
	cp "$PHOTOS"/train/cat/*_00"$i".jpg "src/a/$i.$ending"
	cp "src/a/$i.$ending" "other/a/$i.jpg"
	i=$((i + 1))
done
tar --sort=name -C src -cf src.tar a
for f in src src.tar other; do
	run 0 "$PACK" images $f -o ds.$f --resize 32 --order source -q
	[ ! -s err ] || die "$f: $(cat err)"
	for k in 0 1 2 3; do
		run 0 "$CAT" get ds.$f $k --field image --png --out $f.$k.png
	done
done
for k in 0 1 2 3; do
	cmp src.$k.png other.$k.png && cmp src.tar.$k.png other.$k.png || die "record $k has other pixels"
done
