#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_get.sh - raw bytes, .npy and PNG are what the Python reader, NumPy and Pillow see; and what
# get refuses
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

"$PYTHON" -c 'import numpy, PIL' 2>/dev/null || skip "python3 has no NumPy or Pillow"
small_source
run 0 "$PACK" images src -o hwc --resize 40 --crop 32
run 0 "$PACK" images src -o chw --resize 40 --crop 32 --layout chw --compress lz4
values=$("$PYTHON" "$ROOT/tests/cli/cat_reference.py" get "$CAT" "$ROOT"/format/golden/*.shard \
	"$ROOT"/format/golden/dataset*/ hwc chw 2>py.err) || {
	cat py.err >&2
	die "get differs"
}

# --out: the same bytes as on stdout, over an older file, and nothing else is left in the folder.
mkdir put
echo old >put/cat.png
run 0 "$CAT" get hwc 3 --png --out put/cat.png
run 0 "$CAT" get hwc 3 --png
cmp out put/cat.png
[ "$(contents put)" = cat.png ] || die "left behind: $(contents put)"
run 0 "$CAT" get hwc 3 --png --out /dev/null
[ -c /dev/null ] || die "/dev/null was replaced"

run 2 "$CAT" get hwc 10
said_only "shardcat: hwc: record 10: must be 0 to 9"
run 2 "$CAT" get hwc -1
said "shardcat: '-1' is not an option, and a number here must be 0 or more"
run 2 "$CAT" get hwc -x
said "shardcat: unknown option '-x'"
run 1 "$CAT" get hwc/dataset.manifest 3
said "this is the manifest of a dataset; give its folder: hwc"
run 2 "$CAT" get hwc 3 --npy
said "shardcat: hwc has 2 fields; choose one with --field"
run 2 "$CAT" get hwc 3 --field labl
said "shardcat: --field labl: hwc has no such field; 'shardcat info' lists them"
run 2 "$CAT" get hwc 3 --field label --png
said_only "shardcat: field label is i64, not an image of u8, u16 or floats in layout hwc or chw; \
\`shardcat get --npy\` takes any field"
run 2 "$CAT" get hwc 3 --png --raw
said "shardcat: --raw, --npy and --png exclude each other"
run 2 "$CAT" get hwc 3 --out file
said "shardcat: --out needs --raw, --npy or --png"
run 3 "$CAT" get hwc 3 --png --out put
said_only "shardcat: put: is a folder; --out must name a file"
run 3 "$CAT" get hwc 3 --png --out nowhere/cat.png
run 3 "$CAT" get nowhere 3
said_only "shardcat: nowhere: No such file or directory"
run 2 "$CAT" get "$ROOT/format/golden/empty.shard" 0

# A plane of floats may have layout chw, which says nothing of two axes.
"$PYTHON" - "$ROOT/format" <<'END'
import struct, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import shardfmt as sf
plane = struct.pack("<16f", *range(16))
field = sf.Field("image", sf.DTYPES.index("f32"), (4, 4), 0, 0, layout=2, semantic=1)
open("plane.shard", "wb").write(sf.write_shard([sf.Group(64, 64, 4, 0, 256)], [field], [[plane]]))
END
run 0 "$CAT" get plane.shard 0 --png --out plane.png
"$PYTHON" -c 'from PIL import Image; assert Image.open("plane.png").tobytes() == bytes(range(0, 256, 17))' ||
	die "a plane is shown as another picture"

# A terminal is no place for binary data.
code=0
"$PYTHON" - "$CAT" <<'END' || code=$?
import os, pty, subprocess, sys
try:
    master, slave = pty.openpty()
except OSError:
    sys.exit(77)
done = subprocess.run([sys.argv[1], "get", "hwc", "3", "--png"], stdin=subprocess.DEVNULL, stdout=slave,
                      stderr=subprocess.PIPE)
os.close(slave)
try:
    shown = os.read(master, 100)
except OSError: # nobody wrote, and the other end is closed
    shown = b""
sys.exit(done.returncode != 2 or shown != b"" or b"--out FILE" not in done.stderr)
END
[ $code != 77 ] || skip "$values values; no terminals here (mount devpts on /dev/pts) to refuse binary data"
[ $code = 0 ] || die "binary data went to a terminal"
echo "$values values"
