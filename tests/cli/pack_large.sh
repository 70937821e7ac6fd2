#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_large.sh - memory does not grow with the size of an archive
#
# A .tar.gz of LARGE_MIB MiB of photographs, 200 unless the caller says, is packed in 1 GiB of
# address space and less memory than the archive would need.  The size that is promised, 4 GB (9 GB
# in TMPDIR, some three minutes):
#
#     make check T=cli/pack_large LARGE_MIB=4096
#
# TIMEOUT: 1200
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
: "${LARGE_MIB:=200}"
MOST=64 # MiB in memory, whatever the size

# A sanitizer has memory of its own.
case ${VARIANT:-} in
'') ;;
*) skip "sanitizers need memory of their own" ;;
esac
need_pillow

# The same 100 photographs again and again, each time with another name: they are compressed once,
# and what lies between them as often as it is there.  To who unpacks it, it is one stream of
# deflate.
"$PYTHON" - "$LARGE_MIB" <<'EOF' >count
import io
import struct
import sys
import tarfile
import zlib

from PIL import Image

def deflated(data):
    c = zlib.compressobj(1, zlib.DEFLATED, -15)
    return c.compress(data) + c.flush(zlib.Z_FULL_FLUSH)

photos = []
for i in range(100):
    data = io.BytesIO()
    Image.effect_noise((600 + i, 500), 40 + i / 4).save(data, "jpeg", quality=90)
    data = data.getvalue()
    padded = data + bytes(-len(data) % 512)
    photos.append((len(data), padded, deflated(padded)))

crc = size = count = 0
with open("large.tar.gz", "wb") as out:
    def put(data, packed):
        global crc, size
        out.write(packed)
        crc = zlib.crc32(data, crc)
        size += len(data)

    out.write(b"\x1f\x8b\x08\0\0\0\0\0\0\xff")
    while size < int(sys.argv[1]) << 20:
        head = tarfile.TarInfo("class_%02d/%07d.jpg" % (count % 7, count))
        head.size, data, packed = photos[count % len(photos)]
        head = head.tobuf()
        put(head, deflated(head))
        put(data, packed)
        count += 1
    put(bytes(1024), deflated(bytes(1024)))
    out.write(b"\x03\0" + struct.pack("<II", crc, size & 0xFFFFFFFF)) # an empty block that is the last
print(count)
EOF
gzip -t large.tar.gz

(
	ulimit -v $((1 << 20)) # KiB
	peak "$MOST" "$PACK" images large.tar.gz -o ds --resize 8 --crop 8 -j 2 -q
)
grep -qx "records $(cat count)" ds/dataset.manifest || die "not every photograph became a record"
# That limit is one: what holds the archive in memory is over it.
(peak "$MOST" "$PYTHON" -c 'open("large.tar.gz", "rb").read()') >held 2>&1 &&
	die "the archive is too small to prove anything"
grep -qx "too much" held
echo "$LARGE_MIB MiB of archive"
