#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_limits.sh - --limit: what it refuses and lets through, what plans say of it, and
# memory where it is large
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow

mkdir -p src/a scans/a large/a
"$PYTHON" - <<'PY'
import io, shutil, tarfile
import numpy as np
from PIL import Image
noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (30, 40, 3), np.uint8))
noise.save("src/a/plain.jpg")
noise.save("src/a/scans.jpg", progressive=True)
noise.save("src/a/image.png")
noise.resize((600, 400)).save("scans/a/0.jpg", progressive=True)
noise.resize((60, 10)).save("src/a/wide.png")
with tarfile.open("many.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
    for name in ["0.jpg", "0.cls"] + [f"0.x{i}" for i in range(1001)]:
        data = open("src/a/plain.jpg", "rb").read() if name.endswith("jpg") else b"7"
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
Image.new("L", (10000, 9000), 77).save("large/a/0.jpg", progressive=True)
for i in range(1, 3):
    shutil.copy("large/a/0.jpg", f"large/a/{i}.jpg")
PY
ARGS=(--resize 8 --crop 8 -q)

# ---- each is the first that refuses, and one more lets it through ----

# limited WHAT MOST FILE MESSAGE: at MOST, FILE alone is bad, and at one more nothing is for that
# reason
limited() {
	rm -rf ds
	run 0 "$PACK" images src -o ds "${ARGS[@]}" --limit "$1=$2" --on-error skip --report r.json
	[ "$(json r.json '[(b["input"], b["reason"], b["message"]) for b in d["bad_inputs"]]')" = \
		"[('a/$3', 'over a limit', '$4')]" ] ||
		die "$1=$2: $(json r.json 'd["bad_inputs"]')"
	rm -rf ds
	run 0 "$PACK" images src -o ds "${ARGS[@]}" --limit "$1=$(($2 + 1))"
	n=$((n + 1))
}
limited side 59 wide.png "is 60 x 10 pixels: a side is longer than the limit of 59; --limit side=60 takes it"
limited scans 9 scans.jpg "progressive JPEG has more than 9 scans; --limit scans=N allows more"
rm -rf ds
run 0 "$PACK" images src -o ds "${ARGS[@]}" --limit pixels=1199,memory=1G --on-error skip --report r.json
[ "$(json r.json '{b["message"] for b in d["bad_inputs"]}')" = \
	"{'is 40 x 30 = 1200 pixels: more than the limit of 1199; --limit pixels=1200 takes it'}" ] ||
	die "$(json r.json d)"
[ "$(json r.json 'len(d["bad_inputs"])')" = 3 ] || die "$(json r.json 'd["bad_inputs"]')"
rm -rf ds
run 0 "$PACK" images src -o ds "${ARGS[@]}" --limit pixels=1200
rm -rf ds
run 1 "$PACK" images scans -o ds "${ARGS[@]}" --limit memory=200K
said "shardpack: warning: scans/a/0.jpg: 600 x 400 JPEG needs more than 204800 bytes of decoder memory; \
--limit memory=N allows more"
run 0 "$PACK" images scans -o ds "${ARGS[@]}" --limit memory=2M
VERB=(images)
refused 1 "./many.tar: sample '0' at offset 512 has 1003 members; the limit is 1002 \
(a key ends at the first dot of a name; --limit members=N allows more)" many.tar --limit members=1002
run 0 "$PACK" images many.tar -o many.ds "${ARGS[@]}" --limit members=1003

# ---- plans: one form, only what is not the default, and a build that obeys it ----

rm -rf ds
run 0 "$PACK" plan images src -o p "${ARGS[@]}"
run 0 "$PACK" plan images src -o defaults "${ARGS[@]}" \
	--limit pixels=89478485,side=65500,scans=100,memory=768M,members=1000
cmp p/.shardpack/plan defaults/.shardpack/plan
! grep -q '^limit' p/.shardpack/plan || die "a plan names defaults"
run 0 "$PACK" plan images src -o planned "${ARGS[@]}" --limit scans=9,side=60k,pixels=2K --on-error skip
[ "$(grep '^limit' planned/.shardpack/plan)" = "limit pixels=2048,side=61440,scans=9" ] ||
	die "$(grep '^limit' planned/.shardpack/plan)"
run 0 "$PACK" build planned --part 0/1 -q
run 0 "$PACK" seal planned -q
run 0 "$PACK" images src -o whole "${ARGS[@]}" -j 3 --limit pixels=2K,scans=9,side=61440 --on-error skip
same planned whole
[ "$("$CAT" info whole --json | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["record_count"])')" = 3 ] ||
	die "not three"
run 2 "$PACK" images src -o whole "${ARGS[@]}" --limit pixels=2K,scans=10,side=61440 --on-error skip
grep -q "another" err || die "another limit is another dataset: $(cat err)"

# ---- usage ----

misused() {
	run 2 "$PACK" images src -o no "${ARGS[@]}" --limit "$1"
	[ "$(head -n 1 err)" = "shardpack: --limit $1: $2" ] || die "$1: $(cat err)"
	n=$((n + 1))
}
powers="and may end in K, M, G or T (powers of 1024), such as 64M"
misused pixel=3 "'pixel' is not a limit: must be pixels, side, scans, frames, memory, members or unpack; did you mean \
'pixels'?"
misused colour=3 "'colour' is not a limit: must be pixels, side, scans, frames, memory, members or unpack"
misused side=9,=3 "'' is not a limit: must be pixels, side, scans, frames, memory, members or unpack"
misused pixels "'pixels': must be WHAT=N, such as pixels=200M"
misused pixels=1, "'': must be WHAT=N, such as pixels=200M"
misused scans=0 "scans=0: must be 1 to 2147483647, $powers"
misused scans=2G "scans=2G: must be 1 to 2147483647, $powers"
misused side=65501 "side=65501: must be 1 to 65500, $powers"
misused pixels=4G "pixels=4G: must be 1 to 4290250000, $powers"
misused members= "members=: must be 1 to 65536, $powers"
misused memory=9223372036854775808 "memory=9223372036854775808: must be 1 to 9223372036854775807, $powers"
misused memory=8388608T "memory=8388608T: must be 1 to 9223372036854775807, $powers"
misused memory=1MB "memory=1MB: must be 1 to 9223372036854775807, $powers"
misused scans=1,side=2,scans=3 "scans is given twice"
run 2 "$PACK" images src -o no "${ARGS[@]}" --limit side=2 --limit side=2
grep -q -- "--limit is given twice\|--limit.*twice" err || die "$(cat err)"

# ---- images beyond the default limit, 172 MiB of coefficients each: one at a time ----

case ${VARIANT:-} in
'')
	run 1 "$PACK" images large -o large.ds "${ARGS[@]}"
	grep -q "is 10000 x 9000 = 90000000 pixels: more than the limit of 89478485; --limit pixels=90000000 takes it" \
		err || die "$(cat err)"
	peak 300 "$PACK" images large -o large.ds "${ARGS[@]}" -j 3 --limit pixels=100M
	[ "$(cat peak)" -ge 171 ] || die "one alone must need more: these images prove nothing"
	;;
esac
echo "$n limits and misuses"
