#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_odd.sh - all of examples/photos/odd, by each policy, and the account of it
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

odd_source
BAD="empty.jpg gray16.png not_an_image.jpg truncated.jpg"
GOOD=8
SIZE=(--resize 64 --crop 64)

reason_of() {
	case $1 in
	empty.jpg) echo "empty" ;;
	gray16.png) echo "unsupported" ;;
	not_an_image.jpg) echo "not an image" ;;
	truncated.jpg) echo "truncated" ;;
	esac
}

# account FILE: the sum that must always be right, and the list
account() {
	json "$1" '"%d = %d + %d + %d + %d" % tuple(
	    d[k] for k in ("inputs", "written", "skipped", "quarantined", "failed"))'
	json "$1" 'd["inputs"] == d["written"] + d["skipped"] + d["quarantined"] + d["failed"] or 1/0' >/dev/null
	[ "$(json "$1" '" ".join(sorted(b["input"].split("/")[1] for b in d["bad_inputs"]))')" = "$BAD" ] ||
		die "bad inputs in $1"
	for f in $BAD; do
		[ "$(json "$1" "[b['reason'] for b in d['bad_inputs'] if b['input'] == 'odd/$f'][0]")" = \
			"$(reason_of "$f")" ] ||
			die "$1: the reason for $f"
	done
}

# ---- fail, the default: all are named, nothing is made ----

run 1 "$PACK" images odd -o ds "${SIZE[@]}" --report fail.json
said "shardpack: 4 bad inputs; shards that need one of them were not published"
for f in $BAD; do
	grep -q "^shardpack: warning: odd/odd/$f: " err || die "$f is not named"
done
said "shardpack: 12 inputs = 0 written + 0 skipped + 0 quarantined + 4 failed + 8 not done"
[ "$(account fail.json)" = "12 = 0 + 0 + 0 + 12" ] || die "$(account fail.json)"
[ "$(json fail.json 'd["failed_because"]')" = "{'bad': 4, 'unreadable': 0, 'not_published': 8}" ] ||
	die "why they failed"
[ ! -e ds ] || die "left behind: $(contents ds)"

# Only shards with a bad input are held back; then another policy is another dataset.
run 0 "$PACK" plan images odd -o ds "${SIZE[@]}" --shard-records 2 -q
run 1 "$PACK" build ds
grep -q "or --on-error quarantine --quarantine DIR; that makes another dataset, so remove ds and begin again with .shardpack plan.$" err ||
	die "$(cat err)"
run 1 "$PACK" images odd -o ds "${SIZE[@]}" --shard-records 2
grep -q "or --on-error quarantine --quarantine DIR; that makes another dataset, so pack everything again with --replace$" err || die "$(cat err)"
[ "$(find ds -name '*.shard' | wc -l)" -ge 1 ] || die "no shard without a bad input was published"
[ ! -e ds/dataset.manifest ] || die "sealed in spite of bad inputs"
run 2 "$PACK" images odd -o ds "${SIZE[@]}" --shard-records 2 --on-error skip
said_only "shardpack: ds: holds an unfinished dataset of another plan, which has 'on-error fail' where this plan has \
'on-error skip'; nothing was touched (--replace puts the new dataset in its place)"

# ---- skip ----

run 0 "$PACK" images odd -o skip "${SIZE[@]}" --on-error skip --report skip.json
said "shardpack: 12 inputs = 8 written + 4 skipped + 0 quarantined + 0 failed"
[ "$(tail -n 1 err)" = "shardpack: 12 inputs = 8 written + 4 skipped + 0 quarantined + 0 failed" ] ||
	die "the counts come last"
[ "$(account skip.json)" = "12 = 8 + 4 + 0 + 0" ] || die "$(account skip.json)"
run 0 "$CAT" verify skip
grep -qx "records $GOOD" skip/dataset.manifest

# The account of a dataset that is there comes from its shards, and is the same.
run 0 "$PACK" images odd -o skip "${SIZE[@]}" --on-error skip --report again.json
[ "$(account again.json)" = "12 = 8 + 4 + 0 + 0" ] || die "$(account again.json)"

# What is written equals Pillow.
"$CAT" list skip --json >list.json
"$PYTHON" - "$CAT" <<'PY'
import json, subprocess, sys
from PIL import Image
for r in json.load(open("list.json"))["records"]:
    image = Image.open("odd/" + r["key"]).convert("RGB")
    w, h = image.size
    size = (64, 64 * h // w) if w <= h else (64 * w // h, 64)
    image = image if image.size == size else image.resize(size, Image.BILINEAR)
    left, top = round((size[0] - 64) / 2), round((size[1] - 64) / 2)
    want = image.crop((left, top, left + 64, top + 64)).tobytes()
    got = subprocess.run([sys.argv[1], "get", "skip", str(r["index"]), "--field", "image", "--raw"],
                         capture_output=True, check=True).stdout
    assert got == want, r["key"]
PY

# ---- all of it bad: no dataset, whatever the policy ----

mkdir -p none/a none/b
for k in 0 1 2 3; do : >none/a/$k.jpg && echo text >none/b/$k.png; done
ALL_BAD="all 8 inputs are bad, so no dataset was made; the first is none/a/0.jpg: is empty (0 bytes)"
for way in "skip" "skip --shard-records 3" "quarantine --quarantine nothing"; do
	# shellcheck disable=SC2086
	run 1 "$PACK" images none -o n.ds --on-error $way --order source "${SIZE[@]}" --report none.json
	said "shardpack: n.ds: $ALL_BAD"
	[ ! -e n.ds ] || die "left behind: $(contents n.ds)"
	[ "$(json none.json 'd["outcome"], d["exit_code"], d["written"], len(d["bad_inputs"])')" = \
		"('failed', 1, 0, 8)" ] || die "report"
done
[ "$(wc -l <nothing/quarantine.jsonl)" = 8 ] || die "what was quarantined is listed"
run 1 "$PACK" images none -o n.ds --on-error quarantine --quarantine nothing --order source "${SIZE[@]}"
said "shardpack: n.ds: $ALL_BAD"
# One that was there stays as it was, and so does the folder of a user.
run 1 "$PACK" images none -o skip --on-error skip "${SIZE[@]}" --replace
run 0 "$CAT" verify skip
[ ! -e .skip.new ] || die "left behind: .skip.new"
mkdir mine
run 1 "$PACK" images none -o mine --on-error skip "${SIZE[@]}"
[ -z "$(contents mine)" ] || die "left behind: $(contents mine)"
# In parts only sealing knows; what it refuses, a good input turns into a dataset, of which some
# shards have no record.
run 0 "$PACK" plan images none -o parts --on-error skip --order source "${SIZE[@]}" --shard-records 3 -q
run 0 "$PACK" build parts --part 0/2 -q
run 0 "$PACK" build parts --part 1/2 -q
run 1 "$PACK" seal parts
said "shardpack: parts: ${ALL_BAD/none/$PWD/none}"
[ ! -e parts/dataset.manifest ] || die "sealed"
# The same command as the one that was stopped before it could judge.
run 1 "$PACK" images none -o parts --on-error skip --order source "${SIZE[@]}" --shard-records 3
said "shardpack: parts: $ALL_BAD"
[ -z "$(contents parts)" ] || die "left behind: $(contents parts)"
cp "$PHOTOS/odd/exif_orientation_6.jpg" none/a/2.jpg
run 0 "$PACK" images none -o one --on-error skip --order source "${SIZE[@]}" --shard-records 3
[ "$(sed -n 's/^shard .* records \([0-9]*\) .*/\1/p' one/dataset.manifest | tr '\n' ' ')" = "1 0 0 " ] ||
	die "shards: $(grep ^shard one/dataset.manifest)"
run 0 "$CAT" verify one
"$PYTHON" "$ROOT/format/shardfmt.py" verify one >/dev/null
run 0 "$CAT" get one 0 --field image --raw
run 0 "$CAT" prove-order one --seed 1
run 0 "$CAT" stats one

# ---- skipping shortens a shard and changes no other one ----

make_images many 40 2
run 0 "$PACK" images many -o whole --resize 16 --shard-records 10 --on-error skip -q
printf x | dd of="$(find many -name '00020.jpg')" bs=1 seek=2 conv=notrunc status=none
run 0 "$PACK" images many -o holes --resize 16 --shard-records 10 --on-error skip -q
[ "$(sed -n 's/^shard .* records \([0-9]*\) .*/\1/p' holes/dataset.manifest | sort | tr '\n' ' ')" = "10 10 10 9 " ] ||
	die "one shard with a record less: $(grep ^shard holes/dataset.manifest)"
equal=0
for k in 0 1 2 3; do # plans differ, so compare records
	cmp -s <("$CAT" list "whole/0000$k.shard" --json) <("$CAT" list "holes/0000$k.shard" --json) &&
		equal=$((equal + 1))
done
[ $equal = 3 ] || die "$equal of 3 other shards have the same records"

# ---- quarantine ----

run 2 "$PACK" images odd -o q "${SIZE[@]}" --on-error quarantine
run 2 "$PACK" images odd -o q "${SIZE[@]}" --quarantine bad
run 0 "$PACK" images odd -o q "${SIZE[@]}" --on-error quarantine --quarantine bad --report q.json
[ "$(account q.json)" = "12 = 8 + 0 + 4 + 0" ] || die "$(account q.json)"
[ "$(tail -n 1 err)" = "shardpack: 12 inputs = 8 written + 0 skipped + 4 quarantined + 0 failed" ] ||
	die "the counts come last"
for f in $BAD; do
	cmp "odd/odd/$f" "bad/odd/$f"
done
[ "$(contents bad)" = "odd $(for f in $BAD; do printf 'odd/%s ' "$f"; done)quarantine.jsonl" ] ||
	die "bad holds $(contents bad)"
[ "$(wc -l <bad/quarantine.jsonl)" = 4 ] || die "4 lines"
"$PYTHON" -c 'import json
lines = [json.loads(l) for l in open("bad/quarantine.jsonl")]
assert all(l["input"].startswith("odd/") and l["class"] == "odd" and l["reason"] and l["message"] for l in lines)'
# The next dataset has a folder of its own, or the reasons above were lost.
QUARANTINE=(--on-error quarantine --quarantine bad)
REST="nothing was touched (move it away or remove it, or give another folder: each dataset has its own)"
LEFT="shardpack: --quarantine bad: holds what an earlier run left out; $REST"
IN_USE="shardpack: --quarantine bad3: is in use by an unfinished run of another plan; $REST"
cp -r bad bad.before
for more in "--seed 9" "--seed 9 --dry-run" ""; do
	# shellcheck disable=SC2086
	run 2 "$PACK" images odd -o q2 "${SIZE[@]}" "${QUARANTINE[@]}" $more
	said_only "$LEFT"
	same bad bad.before
	[ ! -e q2 ] || die "made for nothing"
done
run 2 "$PACK" plan images odd -o q2 "${SIZE[@]}" "${QUARANTINE[@]}"
said_only "$LEFT"
run 2 "$PACK" images odd -o q "${SIZE[@]}" "${QUARANTINE[@]}" --seed 9 --replace
said_only "$LEFT"
run 0 "$PACK" images odd -o q "${SIZE[@]}" "${QUARANTINE[@]}" # that is there already
same bad bad.before
mkdir theirs && echo text >theirs/notes.txt
run 2 "$PACK" images odd -o q2 "${SIZE[@]}" --on-error quarantine --quarantine theirs
said_only "shardpack: --quarantine theirs: holds 'notes.txt', which no run of this plan left out; nothing was touched \
(give a folder that is empty or not there)"
[ "$(contents theirs)" = notes.txt ] || die "theirs holds $(contents theirs)"

# Runs of one plan share the folder: after a failure, in parts, and after a seal that was killed
# before the manifest.
run 1 "$PACK" images odd -o q3 "${SIZE[@]}" --on-error quarantine --quarantine bad3 --shard-records 2 --max-bad 2 -j1
run 2 "$PACK" images odd -o other "${SIZE[@]}" --on-error quarantine --quarantine bad3
said_only "$IN_USE"
run 0 "$PACK" plan images odd -o q3 "${SIZE[@]}" --on-error quarantine --quarantine bad3 --shard-records 2 -q
for part in 1/2 0/2; do run 0 "$PACK" build q3 --part $part -q; done
run 2 "$PACK" images odd -o other "${SIZE[@]}" --on-error quarantine --quarantine bad3
said_only "$IN_USE"
cp -r q3 q3.before && cp -r bad3 bad3.before
run 0 "$PACK" seal q3 -q
same bad bad3
rm -r q3 bad3 && mv q3.before q3 && mv bad3.before bad3 && cp bad/quarantine.jsonl bad3
run 0 "$PACK" images odd -o q3 "${SIZE[@]}" --on-error quarantine --quarantine bad3 --shard-records 2
same bad bad3
# Another file of that name there is not overwritten.
rm -rf q && run 0 "$PACK" plan images odd -o q "${SIZE[@]}" --on-error quarantine --quarantine bad5 -q
mkdir -p bad5/odd && echo other >bad5/odd/truncated.jpg
run 3 "$PACK" build q
said "shardpack: $PWD/odd/odd/truncated.jpg: the quarantine $PWD/bad5 has another file of that name; if an earlier run left it, move it away, or give another folder"
[ "$(cat bad5/odd/truncated.jpg)" = other ] || die "overwritten"

# ---- --max-bad ----

for max in 3 30%; do
	rm -rf m
	run 1 "$PACK" images odd -o m "${SIZE[@]}" --on-error skip --max-bad $max -j2
	of=
	[ $max = 3 ] || of=" (30% of 12 inputs)"
	grep -q "^shardpack: --max-bad allows 3 bad inputs$of, and there are 4; stopped at input [0-9]* of 12$" err ||
		die "$(cat err)"
	[ ! -e m/dataset.manifest ] || die "sealed"
done
for max in 5 42%; do
	rm -rf m
	run 0 "$PACK" images odd -o m "${SIZE[@]}" --on-error skip --max-bad $max
	same m skip
done
echo "12 odd files: fail, skip, quarantine, its folder, --max-bad; every account adds up"
