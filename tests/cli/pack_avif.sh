#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_avif.sh - AVIFs: Pillow's pixels, which way up, frames; what is refused, cut and
# spoilt files, and that a plan names the format
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin
needs_part decode_avif "libavif (Debian: libavif-dev)"

# The Pillow of this machine may read no AVIF, so what it should make of them is written down.  The
# pixels become PNGs, to be packed beside them.
"$PYTHON" - "$BUILD/tests/pack/dump_transform" <<'PY'
import base64, hashlib, os, random, sys
from PIL import Image
from avif_files import FILES
from pillow import SHORT, run

rng = random.Random(3)
for folder in "good/a", "png/a", "lies/a", "bad/a", "cuts/a", "wild/a", "named/a":
    os.makedirs(folder)
files = {name: base64.b85decode(data) for name, (_, data) in FILES.items()}
digests = {name: digest for name, (digest, _) in FILES.items() if digest}
for name in digests:
    open(f"good/a/{name}.avif", "wb").write(files[name])
jobs = [(f"good/a/{name}.avif", (0, 0, 0, 0, SHORT, 2, 0, 1), name) for name in digests]
for name, answer in zip(digests, run(sys.argv[1], jobs)):
    assert not isinstance(answer, str), (name, answer)
    samples, width, height = answer
    assert hashlib.sha256(samples.tobytes()).hexdigest()[:32] == digests[name], f"{name} is not Pillow's"
    Image.frombytes("RGB", (width, height), samples.tobytes()).save(f"png/a/{name}.png")
assert len(digests) > 45

grid, plain = files["grid"], files["8_420"]
at = grid.index(b"dimg") + 8
bad = {"premultiplied": files["premultiplied"], "premultiplied_10": files["premultiplied_10"],
       "swapped": grid[:at] + grid[at + 2:at + 4] + grid[at:at + 2] + grid[at + 4:]}
size = plain.index(b"ispe") + 8
def of_size(width, height):
    return plain[:size] + width.to_bytes(4, "big") + height.to_bytes(4, "big") + plain[size + 8:]
bad |= {"large": of_size(70000, 9), "pixels": of_size(60000, 2000), "zero": of_size(0, 9),
        "heif": plain.replace(b"avif", b"heic"), "magic": plain[:16]}
matrix = plain.index(b"colrnclx") + 12
bad["matrix"] = plain[:matrix] + b"\0\x0e" + plain[matrix + 2:]
for name, data in bad.items():
    open(f"bad/a/{name}.avif", "wb").write(data)
open("named/a/x.png", "wb").write(plain)
open("named/a/mif1.png", "wb").write(plain[:8] + b"mif1" + plain[12:])
Image.new("RGB", (8, 8)).save("named/a/y.png")
for name in "8_420", "frames3", "10_420_alpha":
    for n in range(12, len(files[name]), 7):
        open(f"cuts/a/{name}_{n:04}.avif", "wb").write(files[name][:n])
for i in range(400):
    data = bytearray(files[rng.choice(sorted(digests))])
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(8, len(data))] = rng.choice([0, 1, 255, rng.randrange(256)])
    open(f"wild/a/{i:03}.avif", "wb").write(data)
PY

# ---- the pixels, which way up, and how many frames ----

ARGS=(--crop 131 --order source)
run 0 "$PACK" images png -o png.ds "${ARGS[@]}"
run 0 "$PACK" images good -o ds "${ARGS[@]}" --exif apply --report r.json
same_pixels() { # DIR DIR
	"$PYTHON" -c 'import records, sys
a, b = (records.read(folder)["image"] for folder in sys.argv[1:])
assert len(a) == len(b) > 45
for i, (x, y) in enumerate(zip(a, b)):
    records.same(x, y, str(i))' "$@"
}
same_pixels ds png.ds
said "shardpack: warning: 2 inputs have more frames, pages or pictures than one: the first is packed; \
--report FILE lists them"
json r.json 'd["first_of_several"][0]["message"]' | grep -qx 'AVIF has [23] frames: the first one is packed' ||
	die "$(cat r.json)"
run 0 "$PACK" images good -o one "${ARGS[@]}" --exif apply -j 1 --sandbox -q
same ds one
run 0 "$PACK" images good -o lies.ds "${ARGS[@]}" -q
! same_pixels lies.ds png.ds 2>/dev/null || die "without --exif apply AVIFs are turned"
run 1 "$PACK" images good -o none "${ARGS[@]}" --limit frames=2
said "shardpack: warning: good/a/frames3.avif: AVIF has 3 frames: more than the limit of 2; --limit frames=3 packs \
the first one"

# ---- a plan says that it reads AVIFs ----

run 0 "$PACK" plan images good -o planned "${ARGS[@]}" -q
grep -q '^formats avif$' planned/.shardpack/plan &&
	grep -q '^version libavif [0-9.]* with dav1d [0-9.]*[^ ]* and libyuv [0-9]*$' planned/.shardpack/plan ||
	die "the plan does not name AVIF: $(grep -a -e ^formats -e ^version planned/.shardpack/plan)"
replan 's/^version libavif [^ ]*/version libavif 0.0.1/' planned spoilt
run 5 "$PACK" build spoilt
mkdir -p called/a && cp named/a/y.png called/a && cp named/a/x.png called/a/x.avif
cp named/a/mif1.png called/a/mif1.avif
run 0 "$PACK" images named -o misnamed --crop 8 -q
run 0 "$PACK" images called -o called.ds --crop 8 -q
same_images misnamed called.ds

# ---- what is refused ----

run 1 "$PACK" images bad -o none "${ARGS[@]}" --on-error skip
INSTEAD="convert it to PNG: python3 -c \"from PIL import Image; Image.open('a.avif').save('a.png')\""
while IFS='|' read -r name sentence; do
	said "shardpack: warning: bad/a/$name.avif: $sentence"
done <<END
premultiplied|AVIF has premultiplied alpha: its pixels depend on the library and the processor; $INSTEAD
premultiplied_10|AVIF has premultiplied alpha: its pixels depend on the library and the processor; $INSTEAD
swapped|AVIF is a grid whose parts are not in the order of their numbers; $INSTEAD
large|is 70000 x 9 pixels: a side is longer than the limit of 65500
pixels|is 60000 x 2000 = 120000000 pixels: more than the limit of 89478485; --limit pixels=120000000 takes it
matrix|AVIF has colours that libavif does not convert: matrix 14 with YUV420
heif|starts with 00 00 00 20 66 74 79 70 68 65 69: HEIF is not supported, convert it to JPEG or PNG
END
for name in zero magic; do
	grep -q "^shardpack: warning: bad/a/$name.avif: AVIF " err || die "$name: $(cat err)"
done
run 1 "$PACK" images cuts -o none "${ARGS[@]}" --on-error skip
grep -q "all [0-9]* inputs are bad, so no dataset was made" err || die "a cut AVIF was packed: $(cat err)"
for how in "" --sandbox; do
	# shellcheck disable=SC2086 # one word or none
	run 0 "$PACK" images wild -o "read$how" "${ARGS[@]}" --exif apply --on-error skip --report "read$how.json" $how
	# dav1d prints lines of its own, and libavif has no way to stop it
	! grep -q "its decoder" err || die "$(cat err)"
done
same read read--sandbox

# ---- builds without libavif, or with one that converts colours in another way ----

without_pack AVIF tools/shardpack/images/formats.c
! ./without --version | grep -q libavif || die "a build without libavif names it"
printf 'path\n%s\n' good/a/8_420.avif >one.csv
run 1 ./without images one.csv --no-label -o none --crop 8
said "shardpack: warning: ./good/a/8_420.avif: is an AVIF, and this shardpack was built without libavif; install that \
and build again, use the shardpack of libshard's wheel, or $INSTEAD"
run 5 ./without build planned
break_pack decode_avif.c 's/\(PATTERN_DIGEST UINT64_C(0x\)./\1f/'
run 1 ./broken images one.csv --no-label -o none --crop 8
grep -q "8_420.avif: is an AVIF, and libavif [0-9.]* with .* gives other colours than Pillow; $INSTEAD\$" err ||
	die "$(cat err)"
echo "$(json r.json 'd["written"]') AVIFs as Pillow reads them, and no cut one; of 400 that were spoilt \
$(json read.json 'd["written"]') are read"
