#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_space.sh - --dry-run writes nothing, and foretells the size of the shards to the
# byte
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

make_images src 300 3
mkdir work
cases=0

# foretold OPTIONS...: what the dry run says, what is there then, and that the first wrote nothing
foretold() {
	local said is
	rm -rf work/ds
	run 0 "$PACK" images src -o work/ds "$@" --dry-run
	[ -z "$(contents work)" ] || die "a dry run wrote: $(contents work)"
	said=$(sed -n 's/^shards .* \([0-9]*\) bytes in all$/\1/p' out)
	run 0 "$PACK" images src -o work/ds "$@" -q
	is=$(cat work/ds/*.shard | wc -c)
	[ "$said" = "$is" ] || die "foretold $said bytes, found $is: $*"
	cases=$((cases + 1))
}

foretold --resize 32 --crop 32
foretold --resize 32 --crop 32 --shard-records 7
foretold --resize 5 --crop 5 --shard-records 100 # many records to a unit
foretold --resize 32 --crop 32 --align 4096 --layout chw
foretold --resize 280 --crop 280 # above 64 MiB sections lie wider apart
foretold --crop 17 --order source --shard-bytes 20K
"$PYTHON" - <<'PY'
import glob, os
from PIL import Image
image = sorted(glob.glob("src/class_00/*"))[0] # the one that has a mask and a text
stem = "few/class_00/" + os.path.splitext(os.path.basename(image))[0]
os.makedirs("few/class_00")
Image.new("L", Image.open(image).size).save(stem + ".png")
open(stem + ".txt", "w").write("text")
PY
foretold --root . --crop 17 --field 'mask:kind=mask,optional,from=few/{}.png' \
	--field 'text:kind=text,max=999,optional,from=few/{}.txt'

run 0 "$PACK" images src -o work/ds2 --resize 32 --crop 32 --seed 5 --shard-records 100 --dry-run
printed "source images"
printed "resize 32"
printed "seed 5"
printed "class 0 class_00 100 images"
printed "record 3072 bytes image, 16 bytes label"
grep -q "^inputs 300, .* bytes); 0 other files are ignored$" out || die "$(cat out)"
grep -q "^shards 3 of up to 100 records, " out || die "$(cat out)"
grep -q "^disk .* needed, .* free at work/ds2$" out || die "$(cat out)"

# The first records of the order are those of the dataset.
grep '^record [0-9]* class' out | sed 's/.* //' >first
run 0 "$PACK" images src -o work/ds2 --resize 32 --crop 32 --seed 5 --shard-records 100 -q
"$CAT" list work/ds2 --json | sed -n 's/.*"key": "\([^"]*\)".*/\1/p' >keys
diff first <(head -n 10 keys)

# LZ4 is at most what is said.
run 0 "$PACK" images src -o work/lz4 --resize 32 --crop 32 --compress lz4 --dry-run
most=$(sed -n 's/^shards .* at most \([0-9]*\) bytes in all$/\1/p' out)
run 0 "$PACK" images src -o work/lz4 --resize 32 --crop 32 --compress lz4 -q
[ "$(cat work/lz4/*.shard | wc -c)" -le "$most" ] || die "more than the most"
# Without a size a shard is an eighth of the dataset, but 64 MiB to 1 GiB.
shards() { # shards EXPECTED CROP
	run 0 "$PACK" images src -o work/ds3 --resize "$2" --crop "$2" --dry-run
	grep -q "^shards $1 records, " out || die "crop $2: $(grep ^shards out), expected $1"
}
shards "1 of up to 21732" 32  # of 3,088 bytes: 64 MiB
shards "8 of up to 38" 1024   # of 3 MiB: an eighth
shards "34 of up to 9" 6000   # of 108 MB: 1 GiB

echo "$cases datasets foretold to the byte; dry runs write nothing"
