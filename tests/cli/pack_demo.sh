#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_demo.sh - the photographs of `shardpack demo`: all are there, differ, are the same in
# each run, and pack; a folder with something in it is left alone
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

classes="astronaut brick camera cat coffee grass gravel hubble rocket"
run 0 "$PACK" demo "new/my photos"
said "shardpack: new/my photos: 144 photographs for training and 36 for validation, in 9 classes"
said "shardpack: next: shardpack images 'new/my photos'/train -o ds/train --resize 256 --crop 224"
[ ! -s out ] || die "$(cat out)"
for class in $classes; do
	[ "$(find "new/my photos/train/$class" -name '*.jpg' | wc -l)" = 16 ] || die "$class has not 16 images"
	[ "$(find "new/my photos/val/$class" -name '*.jpg' | wc -l)" = 4 ] || die "$class has not 4 images"
	grep -q "^  $class  *[A-Za-z]" "new/my photos/SOURCES.txt" || die "$class has no source"
done
[ "$(find new -type f | wc -l)" = 181 ] || die "$(find new -type f | wc -l) files"
[ "$(find new -name '*.jpg' -exec sha256sum {} + | cut -d ' ' -f 1 | sort -u | wc -l)" = 180 ] ||
	die "two images are the same"

mkdir empty
run 0 "$PACK" demo empty -q
[ ! -s err ] || die "$(cat err)"
diff -r empty "new/my photos" || die "another run made other images"

run 0 "$PACK" images empty/train -o ds/train --resize 64 --crop 56
said "shardpack: 144 inputs = 144 written + 0 skipped + 0 quarantined + 0 failed"
run 0 "$PACK" images empty/val -o ds/val --resize 64 --crop 56 --classes ds/train
"$CAT" info ds/train >out
for class in $classes; do
	grep -q "$class" out || die "$class is not a class: $(cat out)"
done

mkdir mine
echo mine >mine/train
run 2 "$PACK" demo mine
said_only "shardpack: mine: is not empty; give the name of a new folder"
[ "$(ls mine)" = train ] && [ "$(cat mine/train)" = mine ] || die "a folder with something in it was changed"
run 3 "$PACK" demo mine/train
run 3 "$PACK" demo mine/train/photos
said_only "shardpack: mine/train/photos: cannot read this folder: Not a directory"
[ "$(cat mine/train)" = mine ] || die "a file was changed"
echo "180 images of 9 photographs"
