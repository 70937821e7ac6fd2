#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_marks.sh - text that editors elsewhere saved: a byte-order mark, CR LF, UTF-16
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli
ARGS=(--resize 16 --crop 16 --order source -q)

# Each kind of text is written three times: as it is, with what editors add, and in UTF-16.
"$PYTHON" - <<'PY'
import io, os, tarfile
from PIL import Image

def png(i):
    out = io.BytesIO()
    Image.new("RGB", (20, 20), (40 * i, 9, 9)).save(out, "PNG")
    return out.getvalue()

plain = lambda text: text.encode()
marked = lambda text: b"\xef\xbb\xbf" + text.encode()
wide = lambda text: text.encode("utf-16")
bare = lambda text: text.encode("utf-16-be")
for way in plain, marked, wide, bare:
    name = [k for k, v in globals().items() if v is way][0]
    os.makedirs(name + "/src/cat")
    with tarfile.open(name + "/wds.tar", "w") as tar:
        for i in range(3):
            data = {"png": png(i), "cls": way(["cat\n", "dog", "cat"][i]), "txt": way("two cats %d\n" % i),
                    "json": way('{"label": "c%d", "caption": "é", "ids": [%d]}' % (i % 2, i)),
                    "ids": way("[1, %d]" % i), "yolo": way("1 0.5 0.5 0.25 0.25\n"),
                    "raw": b"\xef\xbb\xbf%d" % i}
            for suffix in data:
                info = tarfile.TarInfo("%d.%s" % (i, suffix))
                info.size = len(data[suffix])
                tar.addfile(info, io.BytesIO(data[suffix]))
            open("%s/src/cat/%d.png" % (name, i), "wb").write(png(i))
            open("%s/src/cat/%d.txt" % (name, i), "wb").write(way("two cats %d\n" % i))
    end = "\r\n" if way is marked else "\n"
    write = lambda path, text: open(name + "/" + path, "wb").write(way(text))
    write("classes.txt", "dog" + end + "cat" + end)
    write("classes.json", '["dog", "cat"]')
    write("numbered.json", '{"dog": 0, "cat": 1}')
    write("map.txt", "0 0" + end + "9 1" + end)
    write("list.txt", "".join("src/cat/%d.png%s" % (i, end) for i in range(3)))
    write("mix.txt", "3 ../plain/d.cls" + end + "1 ../plain/d.cls" + end)
    write("coco.json", '{"images": [{"id": 1, "file_name": "cat/0.png", "width": 20, "height": 20}], '
                       '"categories": [{"id": 7, "name": "cat"}], "annotations": [{"id": 1, "image_id": 1, '
                       '"category_id": 7, "bbox": [1, 2, 3, 4]}]}')
    write("names.csv", "path,label%scat/0.png,a%scat/1.png,b%scat/2.png,a%s" % (end, end, end, end))
    write("t.jsonl", "".join('{"path": "src/cat/%d.png", "label": "x"}%s' % (i, end) for i in range(3)))
PY

BOX=boxes:kind=boxes,max=2
# story, name of the dataset, words of the command, which finds each file of text in its folder
rows=(
	"a class in .cls|cls|images wds.tar"
	"a caption in .txt|txt|images wds.tar --field text:kind=text,max=40,from=txt"
	"a label in .json|json|images wds.tar --label-key label"
	"a text in .json|key|images wds.tar --field text:kind=text,max=40,from=json:caption"
	"numbers in JSON|ids|images wds.tar --field ids:kind=tensor,dtype=u8,shape=2,from=ids"
	"boxes of YOLO|yolo|images wds.tar --field $BOX,from=yolo,format=yolo"
	"bytes are kept|raw|images wds.tar --field raw:kind=bytes,max=9,from=raw"
	"a text beside an image|beside|images src --field text:kind=text,max=40,from={}.txt"
	"--classes|lines|images src --classes classes.txt"
	"--classes in JSON|array|images src --classes classes.json"
	"--classes, numbered|object|images src --classes numbered.json"
	"COCO|coco|images coco.json --root src --field $BOX,from=bbox,format=xywh"
	"--labels|labels|images src --labels names.csv"
	"a table|jsonl|images t.jsonl"
	"a list on stdin|stdin|images - --no-label"
)
for row in "${rows[@]}"; do
	IFS='|' read -r story name words <<<"$row"
	read -ra command <<<"$words"
	for way in plain marked; do
		(cd $way && "$PACK" "${command[@]}" -o "d.$name" "${ARGS[@]}" <list.txt >../out 2>../err) ||
			die "$story, $way: $(cat err)"
	done
	diff <(grep '^class' "plain/d.$name/dataset.manifest") <(grep '^class' "marked/d.$name/dataset.manifest") ||
		die "$story: other classes"
	"$PYTHON" -c 'import sys, records
plain, marked = (records.read(way + "/d." + sys.argv[1]) for way in ("plain", "marked"))
assert plain.keys() == marked.keys() and len(plain) > 0
for name in plain:
    records.same(plain[name], marked[name], name)' "$name" || die "$story: other records"
	[ "$name" != raw ] || continue
	for way in wide bare; do
		code=0
		(cd $way && "$PACK" "${command[@]}" -o "d.$name" "${ARGS[@]}" <list.txt >../out 2>../err) || code=$?
		[ $code = 1 ] || die "$story, $way: exit code $code: $(cat err)"
		grep -q ': is UTF-16; save it as UTF-8$' err || die "$story, $way: $(cat err)"
	done
	n=$((n + 1))
done
grep -q '^class 0 cat$' marked/d.cls/dataset.manifest || die "a class has a mark"
[ "$(grep -c '^class ' marked/d.cls/dataset.manifest)" = 2 ] || die "a mark makes a class"

# A mixture of shardcat.
for way in plain marked; do
	(cd $way && "$CAT" prove-order --mix mix.txt --batch 2 >out 2>../err) || die "$way: $(cat err)"
done
cmp plain/out marked/out
(cd wide && run 2 "$CAT" prove-order --mix mix.txt && said "shardcat: mix.txt: is UTF-16; save it as UTF-8")

# A file whose name ends in CR is found by that name.
printf 'ab' >$'cr.bin\r' && printf 'abc' >cr.bin
printf 'cr.bin\r\n' | "$PACK" raw - -o two --schema x:u8 -q
grep -qx 'records 2' two/dataset.manifest || die "a name that ends in CR"
rm $'cr.bin\r'
printf 'cr.bin\r\n' | "$PACK" raw - -o three --schema x:u8 -q
grep -qx 'records 3' three/dataset.manifest || die "a line that ends in CR LF"
echo "$n kinds of text, with a mark and in UTF-16"
