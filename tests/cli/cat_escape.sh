#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_escape.sh - keys, class names and provenance from a hostile dataset cannot drive the terminal
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

"$PYTHON" - "$ROOT/format" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import shardfmt as sf
groups = [sf.Group(16, 8, 4, 0, 256), sf.Group(48, 48, 4, 0, 128)]
fields = [sf.Field("label", 8, (), 0, 0, semantic=2), sf.Field("image", 1, (4, 4, 3), 1, 0, layout=1, semantic=1)]
keys = [b"\x1b]0;owned\x07", b"two\nlines\t\\", "\u202egnp.exe \u009b31m".encode()]
columns = [[bytes([i]) + bytes(7) for i in range(3)], [bytes(range(48))] * 3]
stats = [sf.StatBlock(2, 0, [1, 1, 1])]
shard = sf.write_shard(groups, fields, columns, keys=keys, stats=stats, provenance=b"line\n\x1b[2Jline\r")
import os
os.mkdir("ds")
open("ds/00000.shard", "wb").write(shard)
names = ["\x1b[31mred", "new\nline", "ok\u200bname", "\u061c\u200e\u200f\u2028\u202a\u2066\u2069\ufeff\U000e0041"]
open("ds/dataset.manifest", "wb").write(
    sf.write_manifest(groups, fields, [sf.shard_line("00000.shard", shard)], names, stats))
END

count=0
for verb in "list ds" "list ds --json" "info -v ds" "info --json ds" "get ds 0" "get ds 1" "get ds 2" "manifest ds" \
	"manifest ds --json" "show ds --out s.png" "info -v ds/00000.shard"; do
	# shellcheck disable=SC2086
	run 0 "$CAT" $verb
	"$PYTHON" - "$verb" <<'END' || die "not safe: $verb"
import sys
text = open("out", "rb").read().decode() # is UTF-8
bad = [c for c in text if c != "\n" and (c != "\t" or not sys.argv[1].startswith("list"))
       and (c < " " or "\x7f" <= c <= "\x9f")]
hidden = "\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
bad += [c for c in text if c in hidden or "\U000e0000" <= c <= "\U000e007f"]
sys.exit(bool(bad))
END
	count=$((count + 1))
done
run 0 "$CAT" manifest --json ds
"$PYTHON" - <<'END' || die "not what was written"
import json
names = json.load(open("out"))["class_names"]
assert names[3] == "\u061c\u200e\u200f\u2028\u202a\u2066\u2069\ufeff\U000e0041", names
END
run 0 "$CAT" list ds
printf '%s\n' '0	0	\033[31mred	\033]0;owned\a' '1	1	new\nline	two\nlines\t\\' \
	'2	2	ok\u200bname	\u202egnp.exe \u009b31m' >want
diff -u want out >&2 || die "not escaped as it should be"
run 2 "$CAT" show ds --class $'\033[31mblue'
! grep -q $'\033' err || die "an argument is echoed unescaped"
echo "$count commands"
