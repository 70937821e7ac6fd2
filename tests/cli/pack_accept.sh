#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_accept.sh - --accept: which damage becomes a record, with whose pixels, and that it
# is never silent
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin:$ROOT/tests/pack DUMP=$BUILD/tests/pack/dump_jpeg_warnings

"$PYTHON" - <<'PY'
import os, random
from pillow import photo_like
from pillow_mutants import jpeg_parts, saved
rng = random.Random(7)
os.makedirs("src/a")

def write(name, data):
    open(f"src/a/{name}.jpg", "wb").write(data)

def parts_of(**options):
    return jpeg_parts(saved(photo_like(rng, 64, 48), "JPEG", **options))

plain = parts_of(quality=85)
whole, scan = b"".join(plain), plain[-2]
assert plain[-1] == b"\xff\xd9" and len(scan) > 1500
write("00whole", whole)
write("01eoi", whole[:-2])
write("02half_eoi", whole[:-1])
write("03tail", whole[:-20])
write("04half", whole[:len(whole) // 2])
write("05gap", whole[:-1200] + whole[-700:])                      # 500 bytes of the scan
write("06noise", whole[:-900] + rng.randbytes(90).replace(b"\xff", b"\xfe") + whole[-810:])
write("07end", whole[:-2] + b"\xff\xc8\0\2")                      # all pixels, then what libjpeg gives up at
write("08comment", whole[:-2] + b"\xff\xfe\0\x40not all of it")
write("09gray_eoi", saved(photo_like(rng, 64, 48).convert("L"), "JPEG")[:-2])
write("10cmyk_eoi", saved(photo_like(rng, 64, 48).convert("CMYK"), "JPEG")[:-2])
progressive = parts_of(quality=85, progressive=True)
write("20progressive", b"".join(progressive))
write("21progressive_eoi", b"".join(progressive[:-1]))
last = max(i for i, p in enumerate(progressive) if p[:2] == b"\xff\xda")
write("22scan_gone", b"".join(progressive[:last]))                # between two scans, so no scan is cut
write("23scan_gone_eoi", b"".join(progressive[:last]) + b"\xff\xd9") # nothing to see for anybody: libjpeg is content
write("24progressive_half", b"".join(progressive)[:-400])
write("30head", whole[:100])
write("31head2", whole[:len(b"".join(plain[:-2])) - 4])           # within the head of the scan
write("32none", b"no image at all")
PY

# told FILE OUTCOME: what the report says of each input, in the order of names
told() {
	json "$1" '"; ".join(f"""{i["input"][2:-4]} {i["how"]} {i["reason"]}: {i["message"]}""" for i in sorted(d["bad_inputs"] + d["accepted_inputs"], key=lambda i: i["input"]))' | sed 's/; /\n/g'
}
ends="JPEG data ends early: Premature end of JPEG file"
cut="JPEG data ends early: Corrupt JPEG data: premature end of data segment"
damaged="JPEG data is damaged: Corrupt JPEG data"
lacks="JPEG lacks its end-of-image marker, and nothing else"
ARGS=(--crop 40 --shard-records 4 --on-error skip --order source -q)
run 0 "$PACK" images src -o none "${ARGS[@]}" --report none.json
run 0 "$PACK" images src -o eoi "${ARGS[@]}" --accept eoi --report eoi.json
cp err eoi.err
run 0 "$PACK" images src -o warnings "${ARGS[@]}" --accept warnings --report warnings.json
told none.json >none.told
told eoi.json >eoi.told
told warnings.json >warnings.told
told none.json >none.told
bytes="6e 6f 20 69 6d 61 67 65 20 61 74 20 61 6c 6c"
cat >refused.want <<END
30head skipped truncated: $ends
31head2 skipped truncated: $ends
32none skipped not an image: starts with $bytes: not an image (JPEG, PNG, WebP, GIF, TIFF, AVIF, BMP, PPM)
END
extra=$(sed -n 's/^06noise .* data: \([0-9]*\) extraneous.*/\1/p' none.told)
diff - none.told >&2 <<END
01eoi skipped truncated: $ends
02half_eoi skipped truncated: $ends
03tail skipped truncated: $ends
04half skipped truncated: $ends
05gap skipped damaged: $damaged: premature end of data segment
06noise skipped damaged: $damaged: $extra extraneous bytes before marker 0xd9
07end skipped unsupported: JPEG is of a kind that is not supported: Unsupported JPEG process: SOF type 0xc8
08comment skipped truncated: $ends
09gray_eoi skipped truncated: $ends
10cmyk_eoi skipped truncated: $ends
21progressive_eoi skipped truncated: $ends
22scan_gone skipped truncated: $ends
24progressive_half skipped truncated: $ends
$(cat refused.want)
END
cat >eoi.want <<END
01eoi accepted truncated: $lacks
02half_eoi accepted truncated: $lacks
03tail skipped truncated: $cut
04half skipped truncated: $cut
05gap skipped damaged: $damaged: premature end of data segment
06noise skipped damaged: $damaged: $extra extraneous bytes before marker 0xd9
07end skipped unsupported: JPEG is of a kind that is not supported: Unsupported JPEG process: SOF type 0xc8
08comment skipped truncated: JPEG data ends early: Corrupt JPEG data: 1 extraneous bytes before marker 0xd9
09gray_eoi accepted truncated: $lacks
10cmyk_eoi accepted truncated: $lacks
21progressive_eoi accepted truncated: $lacks
22scan_gone skipped truncated: JPEG data ends early: scans are missing
24progressive_half skipped truncated: $cut
$(cat refused.want)
END
cat >warnings.want <<END
01eoi accepted truncated: $lacks
02half_eoi accepted truncated: $lacks
03tail accepted damaged: $cut
04half accepted damaged: $cut
05gap accepted damaged: $damaged: premature end of data segment
06noise accepted damaged: $damaged: $extra extraneous bytes before marker 0xd9
07end accepted damaged: JPEG cannot be read to its end: Unsupported JPEG process: SOF type 0xc8
08comment accepted damaged: JPEG data ends early: Corrupt JPEG data: 1 extraneous bytes before marker 0xd9
09gray_eoi accepted truncated: $lacks
10cmyk_eoi accepted truncated: $lacks
21progressive_eoi accepted truncated: $lacks
22scan_gone accepted damaged: JPEG data ends early: scans are missing
24progressive_half accepted damaged: $cut
$(cat refused.want)
END

cat >check.py <<'PY'
"""check.py DS REPORT: the field damage, the counts, and whose pixels they are

They are libjpeg's, and Pillow's where it has some.
"""
import json, os, subprocess, sys
import numpy as np
from PIL import Image, ImageFile
import records, shardfmt
ds, report = sys.argv[1], json.load(open(sys.argv[2]))
got = records.read(ds)
listed = subprocess.run([os.environ["CAT"], "list", ds, "--json"], capture_output=True, check=True).stdout
names = {r["key"]: r["index"] for r in json.loads(listed)["records"]}
accepted = {i["input"]: {"truncated": 5, "damaged": 4}[i["reason"]] for i in report["accepted_inputs"]}
assert report["accepted_with_warnings"] == len(accepted) <= report["written"] == len(names)
assert not set(accepted) & {i["input"] for i in report["bad_inputs"]} and set(accepted) <= set(names)
for name, i in names.items():
    assert got["damage"][i] == accepted.get(name, 0), (name, got["damage"][i])
assert got["damage"].dtype == np.uint8 and got["damage"].ndim == 1

def libjpeg(name):
    path = f"src/{name}\n".encode()
    out = subprocess.run([os.environ["DUMP"], "1"], input=path, capture_output=True, check=True).stdout
    size, samples = out.split(b"\n", 2)[1:]
    width, height = map(int, size.split())
    return np.frombuffer(samples, np.uint8).reshape(height, width, 3)

def pillow(name, patient):
    ImageFile.LOAD_TRUNCATED_IMAGES = patient
    try:
        return np.asarray(Image.open("src/" + name).convert("RGB"))
    except OSError:
        return None

like = 0
for name, i in names.items():
    cmyk = "cmyk" in name
    images = [] if cmyk else [libjpeg(name)]        # which libjpeg leaves as it is
    theirs = pillow(name, False)
    if theirs is None and (accepted[name] == 5 or cmyk):
        theirs = pillow(name, True)                 # patience leaves out what no whole row was read of
    images += [] if theirs is None else [theirs]
    like += theirs is not None
    for image in images:
        assert image.shape == (48, 64, 3) and (got["image"][i] == image[4:44, 12:52]).all(), name
assert like >= 8, like
print(len(names), "records,", len(accepted), "of them accepted,", like, "with Pillow's pixels")
PY

judge() { # judge HOW: is all of the dataset HOW, and of what was said of it, right?
	diff "$1.want" <(told "$1.json") && "$PYTHON" check.py "$1" "$1.json"
}
[ ! -e none/x ] && ! "$PYTHON" -c 'import records; records.read("none")["damage"]' 2>/dev/null ||
	die "strict records have no such field"
judge eoi >&2 || die "--accept eoi"
judge warnings | tee judged >&2 || die "--accept warnings"
grep -q "^16 records, 13 of them accepted, [0-9]* with Pillow's pixels$" judged || die "$(cat judged)"
# What lacks the marker alone has the pixels of the whole file.
"$PYTHON" -c 'import records; a = records.read("eoi")["image"]; assert (a[0] == a[1]).all() and (a[0] == a[2]).all()'

# ---- what people read ----

cat >eoi.said <<END
shardpack: warning: src/a/01eoi.jpg: accepted: $lacks
shardpack: warning: 5 of 8 records come from damaged images, accepted with warnings; there the field damage is not 0
END
grep -e /01eoi -e records eoi.err | diff eoi.said - >&2
run 0 "$PACK" images src -o eoi --crop 40 --shard-records 4 --on-error skip --order source --accept eoi \
	--report again.json
said "shardpack: 19 inputs = 8 written (5 accepted with warnings) + 11 skipped + 0 quarantined + 0 failed"
[ "$(json again.json '[(i["input"], i["message"]) for i in d["accepted_inputs"]][0]')" = \
	"('a/01eoi.jpg', 'truncated')" ] || die "$(cat again.json)"
[ "$(json again.json 'd["accepted_with_warnings"], len(d["accepted_inputs"])')" = "(5, 5)" ] ||
	die "of a sealed dataset: $(cat again.json)"
[ "$(json again.json 'd["recipe"]["accept"]')" = eoi ] || die "$(cat again.json)"
[ "$(json none.json 'd["recipe"]["accept"], d["accepted_with_warnings"], d["accepted_inputs"]')" = \
	"('none', 0, [])" ] || die "$(cat none.json)"
rm -rf page
run 0 "$PACK" images src -o page "${ARGS[@]}" --accept eoi --report page.html
grep -q '<tr><td>of these accepted with warnings</td><td class="n">5</td></tr>' page.html || die "the page has no count"
sed -n '/id="accepted"/,/^<\/table>/p' page.html |
	grep -qF "<tr><td>a/01eoi.jpg</td><td>truncated</td><td>$lacks</td></tr>" || die "the page does not name them"
[ "$(sed -n '/id="accepted"/,/^<\/table>/p' page.html | grep -c '^<tr><td>')" = 5 ] || die "not five"
# They are no bad inputs, and nothing is kept of them in quarantine.
run 0 "$PACK" images src -o q --crop 40 --on-error quarantine --quarantine kept --accept warnings --max-bad 3 -q
[ "$(contents kept)" = "a a/30head.jpg a/31head2.jpg a/32none.jpg quarantine.jsonl" ] || die "$(contents kept)"
mkdir -p many/a && for i in $(seq -w 1 23); do cp src/a/01eoi.jpg "many/a/$i.jpg"; done
run 0 "$PACK" images many -o many.ds --crop 8 --accept eoi -q
[ "$(grep -c "accepted: $lacks" err)" = 20 ] || die "$(cat err)"
said "shardpack: warning: more than 20 such inputs that are accepted; \
the others are only counted; --report FILE lists them"

# ---- any number of threads, parts, a run that stops and goes on, receipts lost ----

ARGS=(--crop 40 --shard-records 4 --on-error skip --accept warnings -q)
run 0 "$PACK" images src -o j1 "${ARGS[@]}" -j 1 --report j1.json
run 0 "$PACK" images src -o j3 "${ARGS[@]}" -j 3
same j1 j3
run 0 "$PACK" plan images src -o parts "${ARGS[@]}"
[ "$(sed -n '/^source/,/^resize/p' parts/.shardpack/plan | tr '\n' ,)" = "source images,accept warnings,resize 0," ] ||
	die "$(cat parts/.shardpack/plan)"
run 0 "$PACK" build parts --part 1/2 -q --report part.json
run 0 "$PACK" build parts --part 0/2 -q --report part0.json
[ "$(json part.json 'd["accepted_with_warnings"]')" -gt 0 ] &&
	[ "$(json part0.json 'd["accepted_with_warnings"]')" -gt 0 ] || die "parts have none"
[ "$(($(json part.json 'd["accepted_with_warnings"]') + $(json part0.json 'd["accepted_with_warnings"]')))" = 13 ] ||
	die "parts do not add up"
receipt parts 0 >kept.receipt
grep -q "^accepted [0-9]* [45] JPEG%20" kept.receipt || die "$(cat kept.receipt)"
lose_receipt parts 0 2 && edit_receipt parts 1 s/accepted/excepted/
run 0 "$PACK" build parts -q
diff <(grep -v '^end\|^fit\|^not-finite' kept.receipt | sort) <(receipt parts 0 | grep -v ^end | sort) >&2
cp -r parts lost && lose_receipt lost 0
run 0 "$PACK" seal parts -q --report sealed.json
run 0 "$PACK" seal lost -q --report lost.json # which has no source to read again, so of words only the kind is left
same j1 parts
same j1 lost
[ "$(told lost.json | cut -d : -f 1)" = "$(told j1.json | cut -d : -f 1)" ] || die "$(told lost.json)"
[ "$(told sealed.json)" = "$(told j1.json)" ] || die "$(told sealed.json)"
[ "$(json sealed.json 'd["accepted_with_warnings"]')" = 13 ] || die "$(cat sealed.json)"
# All shards but the last, from an earlier run.
cp -r parts resumed && rm -rf resumed/dataset.manifest resumed/00002.shard
run 0 "$PACK" plan images src -o state "${ARGS[@]}" && mv state/.shardpack resumed
run 0 "$PACK" images src -o resumed "${ARGS[@]}" --report resumed.json
same j1 resumed
[ "$(told resumed.json)" = "$(told j1.json)" ] || die "$(told resumed.json)"
# What is wrong with a shard stops it, and the accepted ones of others are told of.
run 1 "$PACK" images src -o failed --crop 40 --shard-records 4 --accept warnings -q --order source --report failed.json
[ "$(json failed.json 'd["written"], d["accepted_with_warnings"], len(d["accepted_inputs"])')" = "(16, 13, 13)" ] ||
	die "$(cat failed.json)"

# ---- mutants: what libjpeg makes all pixels of is taken, with those pixels, and nothing else ----

"$PYTHON" - <<'PY'
import os, random
from pillow_mutants import bases, mutate
rng = random.Random(23)
os.makedirs("mutants/m")
jpeg = bases(rng)[0]
for i in range(60 if os.environ.get("VARIANT") else 400):
    open(f"mutants/m/{i:03}.jpg", "wb").write(mutate(rng, rng.choice(jpeg)))
PY
run 0 "$PACK" images mutants -o mutants.ds --crop 112 --order source --on-error skip --accept warnings \
	--report mutants.json -q
run 0 "$PACK" images mutants -o mutants.eoi --crop 112 --order source --on-error skip --accept eoi \
	--report mutants.eoi.json -q
run 0 "$PACK" images mutants -o mutants.none --crop 112 --order source --on-error skip --report mutants.none.json -q
"$PYTHON" - <<'PY' >mutated
import json, os, subprocess
import numpy as np
from PIL import Image
import records
from pillow import center_crop

def packed(ds, report):
    report = json.load(open(report))
    listed = subprocess.run([os.environ["CAT"], "list", ds, "--json"], capture_output=True, check=True).stdout
    names = {r["key"]: r["index"] for r in json.loads(listed)["records"]}
    images = records.read(ds)["image"]
    return ({k: images[i] for k, i in names.items()}, {i["input"]: i["reason"] for i in report["accepted_inputs"]},
            {i["input"]: i["reason"] for i in report["bad_inputs"]})

got, accepted, bad = packed("mutants.ds", "mutants.json")
eoi, eoi_accepted, _ = packed("mutants.eoi", "mutants.eoi.json")
strict, none, _ = packed("mutants.none", "mutants.none.json")
assert not none and set(strict) == set(got) - set(accepted) <= set(eoi) <= set(got)
assert all((eoi[k] == got[k]).all() for k in eoi) and all((strict[k] == got[k]).all() for k in strict)
assert set(eoi_accepted) == {k for k, reason in accepted.items() if reason == "truncated"}
same = cmyk = 0
for name in sorted({**got, **bad}):
    path = f"mutants/{name}\n".encode()
    out = subprocess.run([os.environ["DUMP"], "1"], input=path, capture_output=True, check=True).stdout
    said, size, samples = out.split(b"\n", 2)
    width, height = map(int, size.split())
    if b"color conversion" in said:      # this is no part of what the program asks of libjpeg
        cmyk += 1
    elif bad.get(name) in ("over a limit", "unsupported", "not an image"):
        pass
    elif not width:
        assert name in bad, (name, said)
    else:
        want = center_crop(Image.frombytes("RGB", (width, height), samples), 112)
        assert name in got and (got[name] == np.asarray(want)).all(), (name, said)
        same += name in accepted
counts = same, len(got), len(accepted), len(eoi_accepted)
assert same > len(got) // 8 and eoi_accepted and len(accepted) > 2 * len(eoi_accepted), counts
print(f"{len(got) + len(bad)} mutants, {same} accepted with libjpeg's pixels")
PY

# ---- further images; names ----

mkdir -p two/a right/a && cp src/a/00whole.jpg two/a/0.jpg && cp src/a/01eoi.jpg two/a/1.jpg &&
	cp src/a/00whole.jpg two/a/2.jpg
cp src/a/05gap.jpg right/a/0.jpg && cp src/a/00whole.jpg right/a/1.jpg && cp src/a/00whole.jpg right/a/2.jpg
printf 'path,label,right\n%s' "$(for i in 0 1 2; do echo "two/a/$i.jpg,0,right/a/$i.jpg"; done)" >two.csv
run 0 "$PACK" images two.csv -o two.ds --crop 8 --order source --field right:kind=image --accept warnings \
	--report two.json -q
[ "$("$PYTHON" -c 'import records; print(records.read("two.ds")["damage"])')" = "[4 5 0]" ] ||
	die "damage of a second image"
said "shardpack: warning: ./two/a/0.jpg: accepted: field right, right/a/0.jpg: $damaged: premature end of data segment"
misused() {
	run 2 "$PACK" images two.csv -o no --crop 8 "$@"
	[ "$(head -n 1 err)" = "shardpack: $misuse" ] || die "$(cat err)"
	n=$((n + 1))
}
misuse="--accept eoi adds a field damage, and there is one of that name already; rename yours"
misused --accept eoi --field damage:kind=tensor,dtype=u8
misused --accept eoi --columns damage:u8
misuse="--accept eoi adds a field damage, which makes more than the limit of 22 fields beside image and label; "
misuse+="fields of lengths count too"
misused --accept eoi --columns "$(seq -s ,  -f 'c%g:u8' 22)"
misuse="--accept all: must be none, eoi or warnings"
misused --accept all
run 0 "$PACK" plan images src -o plan --crop 8 -q
for edit in 's/^resize/accept none\n&/' 's/^resize/accept all\n&/' 's/^crop/accept eoi\n&/' \
	's/^resize/exif apply\naccept eoi\n&/'; do
	replan "$edit" plan "p$n"
	run 1 "$PACK" build "p$n"
	grep -q "this is not a plan that shardpack wrote$" err || die "$edit: $(cat err)"
	n=$((n + 1))
done

# ---- converters that are wrong ----

breaks=0
# finds HOW FILE SED: with FILE edited so, `judge HOW` must find fault; and with an edit that
# changes nothing it must not; which is shown by the plain build
finds() {
	[ -z "${VARIANT-}" ] || return 0
	local how=$1 edit=$3
	break_pack "$2" "$edit"
	rm -rf "$how"
	./broken images src -o "$how" --crop 40 --shard-records 4 --on-error skip --order source -q --accept "$how" \
		--report "$how.json" 2>err ||
		echo '{"bad_inputs": [], "accepted_inputs": []}' >"$how.json"
	if judge "$how" >found 2>&1; then
		[ "$edit" = s/x/x/ ] || die "not found: $edit"
	else
		[ "$edit" != s/x/x/ ] || die "found where nothing is broken: $(cat found err)"
	fi
	breaks=$((breaks + 1))
}
finds eoi build.c s/x/x/
finds eoi decode_jpeg.c 's/^\(.*\)return "scans are missing";/\1;/'           # a scan that is gone is not missed
finds eoi decode_jpeg.c 's/limit.accept != ACCEPT_WARNINGS/limit.accept == ACCEPT_NONE/' # eoi takes what warnings take
finds warnings converter.c 's/r->meta\[damage->offset\] = .*/;/'              # records do not say it
finds warnings build.c 's/^.receipt_add(&b->receipt.lines, p);$//'            # nor do receipts
finds warnings decode_jpeg.c 's/MARGIN_PIXELS 2/MARGIN_PIXELS 0/'             # other pixels, at a cut
echo "$n refusals; $(cat judged); $(cat mutated); $((breaks > 0 ? breaks - 1 : 0)) broken converters found out"
