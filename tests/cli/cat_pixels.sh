#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_pixels.sh - info names the pixels that a transform takes from a recipe, whoever wrote that
#
# tests/load/t_pixels.c asks a transform for the same.
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"
. "$ROOT/tests/python/lib.sh"

write() { # NAME SCHEMA RECIPE: a dataset by another packer than shardpack
	python - "$@" <<'PY'
import sys
import libshard

name, schema, recipe = sys.argv[1:]
with libshard.Writer(name, schema, provenance=recipe) as writer:
    writer.write({"image": memoryview(bytes(48)).cast("B", (4, 4, 3))} if "image" in schema else {"x": 1})
PY
}

n=0
row() { # NAME|none SCHEMA RECIPE: what info says
	n=$((n + 1))
	write ds$n "$2" "$3"
	for path in ds$n ds$n/00000.shard; do
		run 0 "$CAT" info $path
		said=$(sed -n 's/^pixels    //p' out)
		[ "${said:-none}" = "$1" ] || die "recipe '$3': info $path says '$said', not $1"
		run 0 "$CAT" info $path --json
		said=$("$PYTHON" -c 'import json; print(json.load(open("out")).get("pixels", "none"))')
		[ "$said" = "$1" ] || die "recipe '$3': info --json $path says '$said', not $1"
	done
}
image="image:u8[4,4,3]"
row pillow-12 "$image" "pixels pillow-12"
row pillow-13 "$image" "mine 1.0
pixels pillow-13"
row rows-first "$image" "pixels rows-first"
# Python's writer says it, where the recipe does not.
row pillow-13 "$image" "no such line: pixels pillow-12"
row pillow-13 "$image" ""
row "of a later release" "$image" "pixels pillow-99"
row none "x:i64" "pixels pillow-12"
echo "$n recipes"
