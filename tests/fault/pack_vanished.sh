#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/pack_vanished.sh - a file that is gone since the plan: it stops a build, or with
# --on-error skip it is left out, counted and named; errors of the disk stop a build all the same
# TIMEOUT: 600
# TAKES: 40
#
# Each command counts its own inputs here, so with STEAL it is one worker.
# shellcheck disable=SC1091
STEAL=${STEAL:+1}
. "$ROOT/tests/fault/lib.sh"

SMALL=(--resize 16 --crop 16 --order source --shard-records 10)
make_images src 40 4
gone=$(find src/class_00 -type f | sort | sed -n 3p)
beside=$(find src/class_00 -type f | sort | sed -n 5p)
run 0 "$PACK" plan images src -o planned "${SMALL[@]}"
digest=$(sha256sum <planned/.shardpack/plan)
fresh() { # a folder with this plan
	rm -rf "$1" && cp -r planned "$1"
}
account() {
	said "shardpack: 40 inputs = $1"
}

# ---- it stops a build, and the words say what to type ----

mv "$gone" kept.jpg
fresh ds
run 3 "$PACK" build ds
said "shardpack: warning: $PWD/$gone: No such file or directory"
said "complete shards are kept; bring the files back and run the same command again, or leave them out: \
\`shardpack build ds --on-error skip\`"
# A worker that claims shards may not have come to all of them.
[ -n "$STEAL" ] || [ "$(shards_in ds)" = 3 ] || die "shards of other files were not built"

# ---- it is left out ----

for jobs in 1 3; do
	fresh ds$jobs
	run 0 "$PACK" build ds$jobs --on-error skip -j $jobs --report build.json
	account "39 written + 1 skipped + 0 quarantined + 0 failed"
	[ "$(sha256sum <ds$jobs/.shardpack/plan)" = "$digest" ] || die "the plan is another one"
	receipt ds$jobs 0 | grep -qx "miss 2 13 1 No%20such%20file%20or%20directory" || die "no receipt says so"
	[ "$(json build.json 'd["bad_inputs"]')" = "[{'input': '${gone#src/}', 'class': 'class_00', 'ordinal': 2, \
'reason': 'vanished', 'message': 'No such file or directory', 'how': 'skipped'}]" ] || die "$(cat build.json)"
	lose_receipt ds$jobs 0 # the shard alone says it, too
	run 0 "$PACK" seal ds$jobs --report seal.json
	said "shardpack: warning: 1 of the skipped inputs vanished: their files were there when the plan was made"
	account "39 written + 1 skipped + 0 quarantined + 0 failed"
	[ "$(json seal.json 'd["bad_inputs"][0]["reason"]')" = vanished ] || die "$(cat seal.json)"
	run 0 "$CAT" verify ds$jobs -q
	run 0 "$CAT" list ds$jobs
	[ "$(wc -l <out)" = 39 ] && ! grep -q "${gone#src/}" out || die "$(cat out)"
done
same ds1 ds3

# It goes on from what an earlier build left, and counts for --max-bad.
run 0 "$PACK" build ds --on-error skip
run 0 "$PACK" seal ds -q
same ds ds1
fresh max
run 1 "$PACK" build max --on-error skip --max-bad 0

# ---- what is no file that was removed ----

mv kept.jpg "$gone"
blind() { # blind CODE PROGRAM: each look is EIO
	fresh blind
	SHIM_PATH=${gone#src/} run "$1" with_shim blind "$2" build blind --on-error skip
}
blind 3 "$PACK"
said "shardpack: warning: $PWD/$gone: Input/output error"
! sed "s,$PWD,,g" err | grep -q vanished || die "EIO was taken for a file that is gone: $(cat err)"
mv src/class_00 moved
fresh unmounted
run 3 "$PACK" build unmounted --on-error skip
! cat unmounted/.shardpack/receipts-* 2>/dev/null | grep -q ^miss || die "a folder that is gone was taken for files that are"
mv moved src/class_00
chmod 000 "$gone"
fresh closed
run 3 powerless "$PACK" build closed --on-error skip
said "shardpack: warning: $PWD/$gone: Permission denied"
chmod 644 "$gone"

# ---- with bad bytes beside it ----

cp -r src both && rm "both/${gone#src/}" && head -c 300 "$beside" >"both/${beside#src/}"
cp "$gone" "both/${gone#src/}" && cp "$gone" "both/${gone#src/}.saved"
run 0 "$PACK" plan images both -o bad.fail "${SMALL[@]}" -q
run 0 "$PACK" plan images both -o bad.kept "${SMALL[@]}" -q --on-error quarantine --quarantine kept
rm "both/${gone#src/}"
run 1 "$PACK" build bad.fail --on-error skip # that is for files that are gone
said "shardpack: 1 bad input; shards that need one of them were not published"
run 0 "$PACK" build bad.kept --on-error skip
account "38 written + 1 skipped + 1 quarantined + 0 failed"
run 0 "$PACK" seal bad.kept
account "38 written + 1 skipped + 1 quarantined + 0 failed"
[ "$(wc -l <kept/quarantine.jsonl)" = 1 ] || die "$(cat kept/quarantine.jsonl)"

# ---- two builders, of which one sees the file ----

# second_of SHIM: what the second one is, which began first.  The first one is what SHIM is not.
# Both make shard 0; the second waits with a file of it until the first has published.
second_of() {
	local shim=$1 other=blind
	[ "$shim" != hold ] || other=gone
	fresh two && rm -f until until.held
	SHIM_PATH=${gone#src/} SHIM_HOLD=${beside#src/} SHIM_UNTIL=$PWD/until \
		exec_shim "$shim" "${SECOND:-$PACK}" build two --on-error skip -j1 --part 0/4 \
		${MEANWHILE+--trust-names} >second 2>&1 </dev/null &
	second=$!
	for _ in $(seq 3000); do # until it has looked at what is there, and waits
		[ ! -L until.held ] || break
		sleep 0.01
	done
	case $other in
	gone) SHIM_PATH=${gone#src/} run 0 with_shim gone "$PACK" build two --on-error skip -j1 --part 0/4 ;;
	*) run 0 "$PACK" build two --on-error skip -j1 --part 0/4 ;;
	esac
	cp two/00000.shard first.shard
	[ -z "${MEANWHILE-}" ] || cp --preserve=mode "$MEANWHILE" "$beside"
	[ -z "${MEANWHILE-}" ] || touch -r before "$beside"
	touch until
	code=0
	wait $second || code=$?
	cmp -s first.shard two/00000.shard || die "the first shard did not stay"
}
first_stays() { # first_stays SHIM WHOSE WRITTEN SKIPPED: of ten inputs of the shard, and of all forty
	second_of "$1"
	[ $code = 0 ] || die "$code: $(cat second)"
	grep -qxF "shardpack: warning: two/00000.shard: another process published it first, and its shard stays: \
$PWD/$gone vanished for $2 only" second || die "$(cat second)"
	grep -qxF "shardpack: 10 inputs = $3 written + $4 skipped + 0 quarantined + 0 failed" second || die "$(cat second)"
	run 0 "$PACK" build two
	run 0 "$PACK" seal two
	account "$((30 + $3)) written + $4 skipped + 0 quarantined + 0 failed"
}
first_stays hold "that process" 9 1
same two ds1
first_stays "gone hold" "this one" 10 0

# What else is different is no file that vanished: here the second one finds one damaged.
cp -p "$beside" before
head -c -9 before >damaged && printf 123456789 >>damaged
mv planned planned.fail && run 0 "$PACK" plan images src -o planned "${SMALL[@]}" -q --on-error skip
MEANWHILE=damaged second_of hold
grep -qxF "shardpack: two/00000.shard: already exists and is another shard; it was left as it is" second &&
	[ $code != 0 ] || die "the shard of other bytes stays: $(cat second)"
cp -p before "$beside"
# A build that compares only what vanished takes it for a good one.
break_pack finisher.c 's/ || !receipt_agrees(r, &theirs)//'
SECOND=./broken MEANWHILE=damaged second_of hold
[ $code = 0 ] || die "the control notices that a file is damaged"
cp -p before "$beside"
rm -r planned && mv planned.fail planned

# ---- kills ----

rm "$gone"
command=("$PACK" build ds -j2 --on-error skip)
fresh ds && rm -f calls
SHIM_COUNT=$PWD/calls run 0 with_shim die "${command[@]}"
calls=$(stat -c %s calls) kills=0
for at in $(seq 1 5 "$calls"); do
	fresh ds
	code=0
	SHIM_DIE_AT=$at with_shim die "${command[@]}" >out 2>err </dev/null || code=$?
	[ $code = 137 ] || continue
	kills=$((kills + 1))
	run 0 "${command[@]}"
	run 0 "$PACK" seal ds
	account "39 written + 1 skipped + 0 quarantined + 0 failed"
	same ds ds1
done
[ $kills -ge 4 ] || die "only $kills kills of $calls calls"

# ---- negative controls ----

# A build that leaves a file out and does not count it cannot be sealed.
break_pack build.c \
	's/^\taccount_add(job->account, &p);$/\tif (reason == SHARD_MISS_VANISHED)\n\t\treturn EXIT_DONE;\n&/'
fresh control
code=0
./broken build control --on-error skip >out 2>err </dev/null || code=$?
[ $code != 0 ] || { ! "$PACK" seal control 2>err || die "an input that is in no count is not noticed"; }
# One that takes every error for a file that is gone leaves out what is there.
cp "both/${gone#src/}.saved" "$gone"
run 0 "$PACK" plan images src -o planned.control "${SMALL[@]}" -q
break_pack converter.c 's/error == ENOENT/error/'
rm -rf planned && cp -r planned.control planned
blind 3 ./broken # the last look before the shard is published is EIO, too
grep -q vanished err || die "the control takes nothing for a file that is gone"
# One that does not know the rule of two builders stops.
break_pack finisher.c 's/^\tif (rc || !there || (!we \&\& !they) || .*) {$/\tif (true) {/'
SECOND=./broken second_of hold
[ $code != 0 ] || die "the control does not need the rule"

echo "a file that is gone stops or is left out; $kills kills; two builders; EIO, EACCES and a folder that is gone" \
	"stop; four controls are caught"
