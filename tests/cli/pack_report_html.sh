#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_report_html.sh - the report as a page: well-formed, whole, small; names cannot
# become markup; every bad input is listed or counted, and the pictures are those of the records
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin

cat >page.py <<'PY'
import base64
import html.parser
import io
import json
import sys
import numpy as np
from PIL import Image
import records

EMPTY = {"meta", "hr", "img", "br"}

class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tables, self.table, self.images, self.tags = [], {}, None, [], set()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        for name, value in attrs.items():
            assert not name.startswith("on") and "://" not in (value or ""), (name, value)
        if tag == "table":
            self.table = self.tables.setdefault(attrs["id"], [])
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th"):
            self.table[-1].append("")
        elif tag == "img":
            kind, _, data = attrs["src"].partition(",")
            assert kind == "data:image/png;base64"
            self.images.append((int(attrs["alt"].split()[1]), base64.b64decode(data, validate=True)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.open, self.getpos())

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.table[-1][-1] += data

raw = open(sys.argv[1], "rb").read()
text = raw.decode("utf-8")
assert len(raw) < 700_000, len(raw)
assert not [c for c in text if ord(c) < 32 and c != "\n" or c in "\x7f\u202e"], "control characters"
page = Page()
page.feed(text)
page.close()
assert not page.open, page.open
harmless = "html head meta title style body h1 h2 p b table tr td th hr img"
assert page.tags <= set(harmless.split()), page.tags
told = json.load(open(sys.argv[2]))
number = lambda s: int(s.replace(",", ""))
counts = {k: number(v) for k, v in page.tables["outcome"]}
ends = "written", "skipped", "quarantined", "failed", "not done"
assert counts["inputs"] == told["inputs"] == sum(counts[end] for end in ends)
assert (counts["written"], counts["skipped"]) == (told["written"], told["skipped"])
bad = told["bad_inputs"]
reasons = {k: number(v) for k, v in page.tables.get("reasons", [])}
assert sum(reasons.values()) == len(bad), reasons
assert all(n == sum(b["reason"] == k for b in bad) for k, n in reasons.items()), reasons
rows = page.tables.get("bad", [[]])[1:]
assert len(rows) == min(len(bad), 500)
for row, b in zip(rows, bad):
    assert row[1:] == [b["reason"], b["message"]], (row, b)
    if all(" " <= c < "\x7f" for c in b["input"]):
        assert row[0] == b["input"], (row, b)
if len(bad) > 500:
    assert "and %s more" % format(len(bad) - 500, ",") in text
names = page.tables.get("names", [[]])[1:]
classes = page.tables.get("classes", [[]])[1:]
if names:
    assert [r[1] for r in names] == [c["name"] for c in told["classes"]] and not classes
    assert [number(r[0]) for r in names] == list(range(len(names)))
else:
    assert [number(r[1]) if r[1] else None for r in classes] == [c["inputs"] for c in told["classes"]][:200]
assert names or [number(r[2]) if r[2] else None for r in classes] == [c["records"] for c in told["classes"]][:200]
if len(sys.argv) > 3:
    got = records.read(sys.argv[3])
    pixels = got["image"] if got["image"].shape[3] == 3 else got["image"].transpose(0, 2, 3, 1)
    step = -(-max(pixels.shape[1:3]) // 64)
    first = {}
    for i, label in enumerate(got.get("label", [])):
        first.setdefault(int(label), []).append(i)
    a_class = max(1, min(4, 60 // max(1, len(told["classes"]))))
    want = [i for label in sorted(first) for i in first[label][:a_class]][:60]
    if "label" not in got:
        shown = min(60, len(pixels))
        want = [i * len(pixels) // shown for i in range(shown)]
        assert f"<p>{shown} of {len(pixels)}, from the first to the last</p>" in text
    there = [i for i, _ in page.images]
    if there != want:     # they take 256 KiB at most
        assert there == want[:len(there)] and sum(len(p) for _, p in page.images) * 4 / 3 > 240_000, (there, want)
    for i, png in page.images:
        small = np.asarray(Image.open(io.BytesIO(png)))
        big = pixels[i].astype(np.int64)
        h, w = big.shape[0] // step * step, big.shape[1] // step * step
        mean = big[:h, :w].reshape(h // step, step, w // step, step, 3).sum((1, 3))
        assert (small[:h // step, :w // step] == (mean + step * step // 2) // (step * step)).all(), i
else:
    assert not page.images
PY

# both NAME CODE ARGUMENT...: pack twice, as a page and as JSON
both() {
	local name=$1 code=$2
	shift 2
	run "$code" "$PACK" images "$@" -o "$name.ds" --report "$name.html" -q
	rm -rf "$name.ds"
	run "$code" "$PACK" images "$@" -o "$name.ds" --report "$name.json" -q
}

hostile='<script>alert(1)</script>&amp;"'"'"
make_images src 60 3
mkdir "src/<b>&lt;$'\e[31m'" src/$'\u202e\xc3\xa9'
cp src/class_00/00000.jpg src/$'\u202e\xc3\xa9/a.jpg'
cp src/class_01/00001.jpg "src/<b>&lt;$'\e[31m'/b.jpg"
for i in 1 2 3; do echo "no image <i>$i" >"src/class_01/${hostile//\//_}$i.jpg"; done
head -c 300 src/class_02/00002.jpg >$'src/class_02/\e[2Jcut\n.jpg'
: >src/class_02/empty.png
both plain 0 src --resize 40 --crop 32 --on-error skip
"$PYTHON" page.py plain.html plain.json plain.ds
grep -q '&lt;script&gt;alert(1)&lt;_script&gt;&amp;amp;&quot;&#39;1.jpg' plain.html ||
	die "a name is not there as it is"
! grep -qi '<script\|<i>\|<b>&' plain.html || die "a name became markup"
both planes 0 src --resize 140 --crop 100 --layout chw --on-error skip
"$PYTHON" page.py planes.html planes.json planes.ds
both failed 1 src --resize 40 --crop 32
"$PYTHON" page.py failed.html failed.json

# More of everything than a page holds.
mkdir many
for c in $(seq -w 1 230); do
	mkdir "many/$c"
	cp src/class_00/00000.jpg "many/$c"
	for i in 1 2 3; do echo x >"many/$c/$i.png"; done
done
both many 0 many --crop 64 --on-error skip
"$PYTHON" page.py many.html many.json many.ds
[ "$(stat -c %s many.html)" -lt 700000 ] || die "the page is large"
# Records that have no names: classes and pictures all the same.
"$PYTHON" -c 'import numpy as np
a = np.random.RandomState(1).randint(0, 256, (90, 3073)).astype("u1")
a[:, 0] %= 10
for i in range(6):
    a[15 * i:15 * i + 15].tofile("data_batch_%d.bin" % (i + 1) if i < 5 else "test_batch.bin")
open("batches.meta.txt", "w").write("airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n")'
mkdir cifar && mv ./*.bin batches.meta.txt cifar
for kind in html json; do
	rm -rf cifar.ds
	run 0 "$PACK" cifar cifar -o cifar.ds --report cifar.$kind -q
done
"$PYTHON" page.py cifar.html cifar.json cifar.ds
grep -q airplane cifar.html && grep -q 'width:200px' cifar.html || die "the classes are not there"
# Without labels: records from all over the dataset, and names of classes that no label counts.
both bare 0 src --no-label --resize 40 --crop 32 --on-error skip --order source
"$PYTHON" page.py bare.html bare.json bare.ds
both few 0 src/class_00 --no-label --resize 140 --crop 100
"$PYTHON" page.py few.html few.json few.ds
echo '{"images":[{"id":1,"file_name":"src/class_00/00000.jpg"}],"annotations":[{"id":1,"image_id":1,"category_id":1,
"bbox":[0,0,9,9]}],"categories":[{"id":1,"name":"<cat>"},{"id":2,"name":"dog"}]}' >boxes.json
both coco 0 boxes.json --resize 40 --crop 32 --field boxes:kind=boxes,max=3
"$PYTHON" page.py coco.html coco.json coco.ds
run 0 "$CAT" info coco.ds
sed -n '/^classes/,$p' out >classes.out
[ "$(cat classes.out)" = "classes
  0     <cat>
  1     dog" ] || die "classes that nobody counts: $(cat classes.out)"
# The first failure gives the exit code, whether the page is written to a file or into something
# that is none.
cp -r plain.ds damaged.ds
printf '\377\377\377\377' | dd of=damaged.ds/00000.shard bs=1 seek=5000 conv=notrunc status=none
mkfifo fifo.html
cat fifo.html >through.html &
for page in page.html fifo.html; do
	run 1 "$PACK" images src -o damaged.ds --resize 40 --crop 32 --on-error skip --report $page
	grep -q "^shardpack: damaged.ds/00000.shard: .*hash" err || die "$(cat err)"
done
wait
[ -s through.html ] || die "no page came through the FIFO"
run 1 "$PACK" images src -o no.ds --resize 40 --crop 32 --report /dev/full
said "shardpack: 5 bad inputs; shards that need one of them were not published"
said "shardpack: /dev/full: No space left on device"
run 3 "$PACK" images src -o yes.ds --resize 40 --crop 32 --on-error skip --report /dev/full
said "shardpack: /dev/full: No space left on device"
echo "8 pages"
