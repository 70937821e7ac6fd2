#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_show.sh - the contact sheet: its size, the pictures in their places, captions, and which
# records are chosen
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

"$PYTHON" -c 'import numpy, PIL' 2>/dev/null || skip "python3 has no NumPy or Pillow"
small_source
run 0 "$PACK" images src -o ds --resize 40 --crop 32 --order source # 0 to 4 are of class a, 5 to 9 of class b

run 0 "$CAT" show ds
said_only "shardcat: sheet.png: 10 records, 1484 x 575 pixels"
mv sheet.png first.png
run 0 "$CAT" show ds --out again.png
cmp first.png again.png # the same picture from the same options
run 0 "$CAT" show ds --seed 1 --out other.png
! cmp -s first.png other.png || die "the seed does nothing"
run 0 "$CAT" show ds --out - && cmp first.png out

run 0 "$CAT" show ds --first 0 --columns 4 --out all.png
run 0 "$CAT" show ds --class b --first 0 --columns 3 --count 4 --out b.png
run 0 "$CAT" show ds/00000.shard --first 9 --out one.png
run 0 "$CAT" show "$ROOT/format/golden/dataset" --first 0 --out golden.png
for i in 0 1 2 3 4 5 6 7 8 9; do
	run 0 "$CAT" get ds $i --png --out $i.png
done
"$PYTHON" - <<'END' || die "the sheets are not as they should be"
import sys
import numpy as np
from PIL import Image

MARGIN, SIDE, STEP_X, TOP, STEP_Y, CELL = 32, 160, 180, 101, 232, 210
PAPER = (250, 249, 245)

def load(name):
    return np.asarray(Image.open(name))

def cells(name, columns, count):
    sheet = load(name)
    rows = -(-count // columns)
    columns = min(columns, count)
    assert sheet.shape == (2 * MARGIN + TOP - MARGIN + (rows - 1) * STEP_Y + CELL,
                           2 * MARGIN + (columns - 1) * STEP_X + SIDE, 3), sheet.shape
    for i in range(count):
        x, y = MARGIN + i % columns * STEP_X, TOP + i // columns * STEP_Y
        yield sheet[y:y + SIDE, x:x + SIDE], sheet[y + SIDE + 2:y + CELL, x:x + SIDE]

def check(name, columns, indices):
    captions = []
    for (picture, caption), index in zip(cells(name, columns, len(indices)), indices):
        # 32 pixels are drawn five times as large
        assert (picture == load("%d.png" % index).repeat(5, 0).repeat(5, 1)).all(), (name, index)
        captions.append(caption)
    return captions

captions = check("all.png", 4, range(10))
upper = [c[:20] for c in captions]                   # the class
lower = [c[26:] for c in captions]                   # the index
assert all((u == upper[0]).all() == (i < 5) for i, u in enumerate(upper))
assert len({c.tobytes() for c in lower}) == 10
assert all((c != PAPER).any(axis=2).sum() > 20 for c in upper + lower)
check("b.png", 3, [5, 6, 7, 8])
check("one.png", 8, [9])
seen = set()                                         # the sample is all ten, each once, not in order
pictures = {load("%d.png" % i).repeat(5, 0).repeat(5, 1).tobytes(): i for i in range(10)}
order = [pictures[p.tobytes()] for p, c in cells("first.png", 8, 10)]
assert sorted(order) == list(range(10)) and order != sorted(order), order
assert len(list(cells("golden.png", 8, 5))) == 5
END

"$PYTHON" -c 'import numpy
numpy.save("image.npy", numpy.zeros((4, 8, 8, 3), "u1")); numpy.save("label.npy", numpy.arange(4))'
run 0 "$PACK" array image.npy label.npy -o plain -q
run 0 "$CAT" show plain --class 3 --out three.png && rm three.png
for class in +1 ' 1' 0x1 1_0 99999999999999999999 -; do
	run 2 "$CAT" show plain --class "$class"
	said "shardcat: --class $class: plain has no such class; 'shardcat info -v' lists them"
done
run 2 "$CAT" show ds --class c
said "shardcat: --class c: ds has no such class; 'shardcat info -v' lists them"
run 2 "$CAT" show ds --first 10
said_only "shardcat: ds: record 10: must be 0 to 9"
run 2 "$CAT" show ds --first 5 --class a
said_only "shardcat: ds: no record of class a"
run 2 "$CAT" show ds --field label
said "shardcat: field label is i64, not an image of u8, u16 or floats in layout hwc or chw; \
\`shardcat get --npy\` takes any field"
run 2 "$CAT" show "$ROOT/format/golden/keys.shard"
run 2 "$CAT" show ds --count 0
said "shardcat: --count 0: must be 1 to 2000"
run 2 "$CAT" show "$ROOT/format/golden/dataset_empty"

# A class whose name the font cannot draw is drawn as its number; it can draw all of ASCII.
mkdir -p "foreign/$(printf 'caf\303\251')" "plain/class 0" "ends/ ~"
cp src/a/* foreign/caf*
cp src/a/* "plain/class 0"
cp src/a/* "ends/ ~"
for source in foreign plain ends; do
	run 0 "$PACK" images $source -o $source.ds/ds --resize 40 --crop 32 --order source -q
	run 0 "$CAT" show $source.ds/ds --first 0 --out - # no other name of the sheet is in it
	mv out $source.sheet
done
cmp foreign.sheet plain.sheet || die "'class 0' was to be drawn"
! cmp -s ends.sheet plain.sheet || die "' ~' was to be drawn, and not its number"

# Each character of the font is drawn, and unlike the others.
"$PYTHON" - <<'END'
import numpy
numpy.savez("font.npz", image=numpy.zeros((94, 32, 32, 3), "u1"), label=numpy.arange(94))
open("characters", "w").write("".join(chr(i) + "\n" for i in range(33, 127)))
END
run 0 "$PACK" array font.npz -o font --classes characters --order source -q
run 0 "$CAT" show font --first 0 --columns 1 --count 94 --out -
"$PYTHON" - out <<'END' || die "characters are missing or alike"
import sys
import numpy as np
from PIL import Image
sheet = np.asarray(Image.open(sys.argv[1]))
names = [sheet[101 + i * 232 + 162:][:26, 32:192] for i in range(94)]
assert all((name != (250, 249, 245)).any() for name in names)
assert len({name.tobytes() for name in names}) == 94
END

[ "$(contents . | tr ' ' '\n' | grep -c png)" = 17 ] || die "a refused sheet left a file: $(contents .)"
echo "6 sheets"
