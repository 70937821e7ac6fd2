#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_dropped.sh - what images say or have and records have not is counted and named:
# orientation, alpha, colour profiles, CMYK, more than 8 bits
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow

# One folder for each story: what the one image in it has, by the report; "-" if it has nothing.
"$PYTHON" - <<'PY'
import io, os, random, struct, zlib
from PIL import Image, ImageCms, PngImagePlugin

rgb = Image.frombytes("RGB", (16, 12), random.Random(3).randbytes(16 * 12 * 3))
stories = []

def story(name, says, image, form, **options):
    os.makedirs("all/%s/c" % name)
    path = "all/%s/c/x.%s" % (name, form.lower())
    if isinstance(image, bytes):
        open(path, "wb").write(image)
    else:
        image.save(path, form, **options)
    stories.append("%s %s" % (name, says))

def chunks(*more):
    """A PNG with further chunks in front of the pixels."""
    out = io.BytesIO()
    rgb.save(out, "PNG")
    data = out.getvalue()
    body = b"".join(struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in more)
    return data[:33] + body + data[33:]

def profile(*primaries, space=b"RGB "):
    """A profile with these columns of its matrix; enough of one to be read."""
    names, tags, data = (b"rXYZ", b"gXYZ", b"bXYZ"), b"", b""
    for name, xyz in zip(names, primaries):
        tags += name + struct.pack(">II", 132 + 36 + len(data), 20)
        data += b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(v * 65536) for v in xyz))
    body = struct.pack(">I", len(primaries)) + tags + data
    head = bytes(8) + b"mntr" + space + b"XYZ " + bytes(12) + b"acsp" + bytes(88)
    return struct.pack(">I", 128 + len(body)) + head + body

srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
p3 = profile((.5151, .2412, -.0011), (.2919, .6922, .0419), (.1571, .0666, .7841))
adobe = profile((.6097, .3111, .0195), (.2053, .6257, .0609), (.1492, .0632, .7446))
exif = Image.Exif()
exif[0x112] = 6
upright = Image.Exif()
upright[0x112] = 1
xmp = PngImagePlugin.PngInfo()
xmp.add_itxt("XML:com.adobe.xmp", '<rdf:Description tiff:Orientation="3"/>')
clear = rgb.convert("RGBA")
clear.putalpha(9)
palette = rgb.quantize(9)

def png16(colour, row):
    head = struct.pack(">IIBBBBB", 16, 12, 16, colour, 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for _ in range(12)))), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)

story("plain", "-", rgb, "JPEG")
story("jpeg6", "orientation", rgb, "JPEG", exif=exif)
story("jpeg1", "-", rgb, "JPEG", exif=upright)
story("png6", "orientation", rgb, "PNG", exif=exif)
story("pngxmp", "orientation", rgb, "PNG", pnginfo=xmp)
story("webp6", "orientation", rgb, "WEBP", exif=exif)
story("rgba", "alpha", clear, "PNG")
story("la", "alpha", clear.convert("LA"), "PNG")
story("transparent", "alpha", rgb, "PNG", transparency=(1, 2, 3))
story("palette", "-", palette, "PNG")
story("clearpalette", "alpha", palette, "PNG", transparency=2)
story("webpalpha", "alpha", clear, "WEBP")
story("webplossless", "alpha", clear, "WEBP", lossless=True)
for name, mask in ("bmpalpha", 0xff000000), ("bmp32", 0):
    head = struct.pack("<IiiHHIIiiIIIIII", 56, 16, 12, 1, 32, 3, 0, 0, 0, 0, 0, 0xff0000, 0xff00, 0xff, mask)
    story(name, "alpha" if mask else "-", b"BM" + struct.pack("<IHHI", 70 + 768, 0, 0, 70) + head + bytes(768), "BMP")
story("srgbjpeg", "-", rgb, "JPEG", icc_profile=srgb)
story("p3jpeg", "profile", rgb, "JPEG", icc_profile=p3)
story("adobejpeg", "profile", rgb, "JPEG", icc_profile=adobe)
story("cutprofile", "profile", rgb, "JPEG", icc_profile=adobe[:90])
story("grayprofile", "-", rgb.convert("L"), "JPEG", icc_profile=profile(space=b"GRAY"))
story("srgbpng", "-", rgb, "PNG", icc_profile=srgb)
story("p3png", "profile", rgb, "PNG", icc_profile=p3)
story("srgbwebp", "-", rgb, "WEBP", icc_profile=srgb)
story("p3webp", "profile", rgb, "WEBP", icc_profile=p3)
story("gamma22", "-", chunks((b"gAMA", struct.pack(">I", 45455))), "PNG")
story("linear", "profile", chunks((b"gAMA", struct.pack(">I", 100000))), "PNG")
story("overruled", "-", chunks((b"sRGB", b"\0"), (b"gAMA", struct.pack(">I", 100000))), "PNG")
primaries = struct.pack(">8I", 31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000)
story("primaries", "profile", chunks((b"cHRM", primaries)), "PNG")
story("hdr", "profile", chunks((b"cICP", bytes((9, 16, 0, 1)))), "PNG")
story("cmyk", "cmyk", rgb.convert("CMYK"), "JPEG")
story("png16", "bits", png16(2, range(96)), "PNG")
story("rgba16", "alpha,bits", png16(6, range(128)), "PNG")
story("both", "orientation,alpha", clear, "PNG", exif=exif)
story("gif", "-", palette, "GIF")
story("cleargif", "alpha", palette, "GIF", transparency=2)
story("tiff6", "-", rgb, "TIFF", tiffinfo={274: 6})
story("tiffalpha", "alpha", clear, "TIFF")
story("tiffp3", "profile", rgb, "TIFF", icc_profile=p3)
story("tiffsrgb", "-", rgb, "TIFF", icc_profile=srgb)
story("tiffcmyk", "cmyk", rgb.convert("CMYK"), "TIFF")
open("stories", "w").write("\n".join(stories) + "\n")
PY

n=0
while read -r name says; do
	case $name in
	*gif) grep -q /decode_gif.o "$BUILD/parts" || continue ;;
	tiff*) grep -q /decode_tiff.o "$BUILD/parts" || continue ;;
	esac
	run 0 "$PACK" images "all/$name" -o "ds.$name" --resize 8 --crop 8 --report r.json
	got=$(json r.json '",".join(k for k, v in d["dropped"].items() if v["images"]) or "-"')
	[ "$got" = "$says" ] || die "$name: the report has $got dropped, not $says"
	[ "$(grep -c 'the first is c/x' err)" = "$(tr ',' '\n' <<<"${says#-}" | grep -c .)" ] ||
		die "$name: $(cat err)"
	n=$((n + 1))
done <stories

# ---- the sentences, the counts and the names; and each also with a sandbox, and in parts ----

mkdir -p three/a && cp all/plain/c/x.jpeg three/a/1.jpg && cp all/jpeg6/c/x.jpeg three/a/2.jpg
cp all/both/c/x.png three/a/3.png
LIES="2 of 3 images have an orientation in EXIF or XMP, which is not applied (the first is a/2.jpg)"
ARGS=(--crop 8 --order source)
for more in "" --sandbox; do
	# shellcheck disable=SC2086
	run 0 "$PACK" images three -o "ds3$more" "${ARGS[@]}" $more --report r.json
	said "shardpack: warning: $LIES; --exif apply turns them upright"
	said "shardpack: 1 of 3 images has an alpha channel or a transparent colour, which is left out (the first is \
a/3.png)"
	[ "$(json r.json 'd["dropped"]["orientation"]')" = "{'images': 2, 'first': 'a/2.jpg'}" ] || die "$(cat r.json)"
	[ "$(json r.json 'd["dropped"]["cmyk"]')" = "{'images': 0, 'first': None}" ] || die "$(cat r.json)"
done
# Typed, it is no warning any more; and it is the same dataset.
run 0 "$PACK" images three -o typed "${ARGS[@]}" --exif ignore --report r.html
said "shardpack: $LIES; --exif apply turns them upright"
grep -q 'an orientation in EXIF or XMP that is not applied</td><td class="n">2<' r.html || die "$(cat r.html)"
same typed ds3
run 0 "$PACK" images three -o turned "${ARGS[@]}" --exif apply
! grep -q orientation err || die "$(cat err)"
# Whoever seals says it, from receipts and from receipts that were made again.
run 0 "$PACK" plan images three -o parts "${ARGS[@]}" --shard-records 1 -q
run 0 "$PACK" build parts -q
lose_receipt parts 1
run 0 "$PACK" build parts -q
run 0 "$PACK" seal parts --report r.json
[ "$(json r.json '[v["images"] for v in d["dropped"].values()], d["fit"]["records_not_counted"]')" = \
	"([1, 1, 0, 0, 0], 1)" ] || die "$(cat r.json)"
echo "$n stories"
