#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/sandbox.sh - --sandbox: decoders that crash, hang or reach out are one bad input, and
# what is packed is what is packed without it
# TAKES: 60
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
[ -z "${VARIANT-}" ] || skip "a sanitizer makes system calls of its own, which the filter forbids"

${CC:-cc} -std=gnu11 -O1 -Wall -Wextra -shared -fPIC -D_GNU_SOURCE -I"$ROOT" -o wild.so "$ROOT/tests/fault/wild.c" -ldl

# wild "WHAT..." COMMAND...
wild() {
	local what=$1
	shift
	WILD=$what LD_PRELOAD=$PWD/wild.so:${LD_PRELOAD-} "$@"
}

DEEDS=(segfault abort corrupt spin block open connect write forge leave grow kill code fork exec sleep overflow ask
	whisper)
export DEEDS_TEXT="${DEEDS[*]}"
"$PYTHON" - <<'PY'
import os
import numpy as np
from PIL import Image
rng = np.random.default_rng(7)
for name in ["good/a", "good/b", "wild/a", "all/a", "all/b"]:
    os.makedirs(name)
for i in range(40):
    noise = Image.fromarray(rng.integers(0, 256, (50 + i, 60 + i % 30, 3), np.uint8))
    noise.save(f"good/{'ab'[i % 2]}/{i}.{['jpg', 'png', 'webp', 'bmp', 'ppm', 'gif', 'tif'][i % 7]}")
Image.fromarray(rng.integers(0, 256, (2300, 2300, 3), np.uint8)).save("good/a/large.jpg", progressive=True)
exif = Image.Exif()
exif[0x0112] = 6
Image.fromarray(rng.integers(0, 256, (70, 50, 3), np.uint8)).save("good/b/turned.jpg", exif=exif)
for i, deed in enumerate(os.environ["DEEDS_TEXT"].split()):
    Image.new("RGB", (101 + i, 40), (i, 9, 9)).save(f"wild/a/{deed}.jpg")
PY
cp good/a/1?.* all/a && cp good/b/1?.* all/b && cp wild/a/*.jpg all/a
RECIPE=(--resize 32 --crop 32 --exif apply --shard-records 8)

# ---- the same bytes, and the same plan ----

run 0 "$PACK" images good -o plain "${RECIPE[@]}" -q -j1
for jobs in 1 3; do
	rm -rf ds
	run 0 "$PACK" images good -o ds "${RECIPE[@]}" --sandbox -q -j$jobs
	same plain ds
done
run 0 "$PACK" plan images good -o ds2 "${RECIPE[@]}" -q
run 0 "$PACK" build ds2 --sandbox -q
run 0 "$PACK" seal ds2 -q
same plain ds2
# Photographs, and files that are odd: the same verdicts, word for word.
for how in "" --sandbox; do
	# shellcheck disable=SC2086 # one word or none
	run 0 "$PACK" images "$PHOTOS" -o "photos$how" --resize 64 --crop 56 --on-error skip -j2 $how
	grep '^shardpack: warning' err | sort >"said$how"
done
same photos photos--sandbox
cmp said said--sandbox || die "other words"

# ---- each wild decoder is one bad input, which is named; the others are packed ----

declare -A WHY=(
	[segfault]="its decoder crashed: SIGSEGV (Segmentation fault)"
	[abort]="its decoder crashed: SIGABRT (Aborted)"
	[corrupt]="its decoder crashed: SIGABRT (Aborted)"
	[spin]="its decoder hangs: it used 238 s of CPU time"
	[block]="its decoder hangs: it did nothing for 238 s"
	[open]="its decoder called the system for openat (number $(printf '#include <sys/syscall.h>\nSYS_openat' |
		${CC:-cc} -E - | tail -n 1)), which --sandbox forbids (SIGSYS)"
	[forge]="its decoder wrote to the socket of its process"
	[ask]="its decoder wrote to the socket of its process"
	[whisper]="its decoder wrote to the socket of its process"
	[leave]="its decoder ended its process with exit code 3"
	[grow]="its decoder crashed: SIGABRT (Aborted)"
	[overflow]="its decoder crashed: SIGSEGV (Segmentation fault)"
)
forbidden=(connect write kill code fork exec sleep)

run 0 wild fast "$PACK" images all -o skipped "${RECIPE[@]}" --sandbox -j2 --on-error skip --report r.json
for deed in "${DEEDS[@]}"; do
	why=$(json r.json "[b['message'] for b in d['bad_inputs'] if b['input'] == 'a/$deed.jpg'][0]")
	case " ${forbidden[*]} " in
	*" $deed "*) [[ $why == "its decoder called the system for "*", which --sandbox forbids (SIGSYS)" ]] ||
		die "$deed: $why" ;;
	*) [ "$why" = "${WHY[$deed]}" ] || die "$deed: $why" ;;
	esac
done
[ "$(json r.json "len(d['bad_inputs'])")" = ${#DEEDS[@]} ] || die "$(cat r.json)"
tail -n 1 err | grep -q "written + ${#DEEDS[@]} skipped + 0 quarantined + 0 failed" || die "$(cat err)"
[ ! -e escaped ] || die "a file was made"
! grep -q escaped out || die "something was written"

# The policies are those of any bad input, and the bytes are the same for any -j.
run 0 wild fast "$PACK" images all -o skipped1 "${RECIPE[@]}" --sandbox -j1 --on-error skip -q
same skipped skipped1
cp -r all some && rm some/a/{spin,block}.jpg
run 0 wild "" "$PACK" images some -o kept "${RECIPE[@]}" --sandbox -j3 --on-error quarantine --quarantine q -q
[ "$(find q -name '*.jpg' | wc -l)" = $((${#DEEDS[@]} - 2)) ] || die "$(find q)"
cmp q/a/segfault.jpg all/a/segfault.jpg
run 1 wild "" "$PACK" images some -o failed "${RECIPE[@]}" --sandbox -j3

# ---- negative controls: without the sandbox the job dies, and the deed is done ----

one() {
	rm -rf one dead && mkdir -p one/a && cp good/a/0.jpg one/a && cp "wild/a/$1.jpg" one/a
}
one segfault
run 139 wild "" "$PACK" images one -o dead "${RECIPE[@]}" --on-error skip
one abort
run 134 wild "" "$PACK" images one -o dead "${RECIPE[@]}" --on-error skip
one open
run 0 wild "" "$PACK" images one -o dead "${RECIPE[@]}"
[ -e escaped ] || die "the wild decoder is tame"
rm escaped

# ---- a system that refuses the filter, or takes it without effect: nothing is decoded ----

run 3 wild refuse "$PACK" images one -o no "${RECIPE[@]}" --sandbox
said "shardpack: --sandbox: the system refuses to lock up a process (seccomp, rlimits): Invalid argument; nothing was \
decoded; without --sandbox it would be"
run 3 wild open "$PACK" images one -o no "${RECIPE[@]}" --sandbox
said "shardpack: --sandbox: the kernel took the filter of system calls (seccomp), but it has no effect; nothing was \
decoded; without --sandbox it would be"
# If even that were fooled, the checks above would see it.
# Files stay out of reach even then, by the limit of descriptors.
one code
run 1 wild "" "$PACK" images one -o dead "${RECIPE[@]}" --sandbox
run 0 wild "open fool" "$PACK" images one -o dead "${RECIPE[@]}" --sandbox
one open
run 0 wild "open fool" "$PACK" images one -o dead "${RECIPE[@]}" --sandbox
[ ! -e escaped ] || die "a file was made"

# ---- processes: none are left, whatever ends the command ----

mine() {
	printf '%s\n' "$PWD/left" | grep -lszxF -f - /proc/[0-9]*/cmdline | tr -dc '0-9\n' | sort -n || :
}
child_of() { # PID: the command's server, the server's worker
	local p
	for p in $(mine); do
		! grep -q "^PPid:[[:space:]]*$1\$" "/proc/$p/status" || echo "$p"
	done
}
# A command, its server and a worker; or none of them.  A busy machine may take long.
until_all() {
	for _ in $(seq 1200); do
		[ "$(mine | wc -l)" -lt 3 ] || return 0
		sleep 0.05
	done
	die "a command, its server and a worker: $(mine)"
}
until_none() {
	for _ in $(seq 1200); do
		[ -n "$(mine)" ] || return 0
		sleep 0.05
	done
	die "$1 leaves processes: $(mine | tr '\n' ' ')"
}
one spin
for signal in INT TERM KILL; do
	rm -rf left
	(
		export WILD=none LD_PRELOAD=$PWD/wild.so:${LD_PRELOAD-}
		exec env --default-signal=INT,TERM \
			"$PACK" images one -o "$PWD/left" "${RECIPE[@]}" --sandbox -q
	) >out 2>err </dev/null &
	pid=$!
	until_all
	# What the command maps is not shared with it: one map is, for its work.
	[ "$(grep -c '^[^ ]* ...s ' "/proc/$(child_of "$(child_of $pid)")/maps")" = 1 ] || die "it shares more than its work"
	kill -$signal $pid
	code=0
	wait $pid || code=$?
	[ $code = $([ $signal = KILL ] && echo 137 || echo 130) ] || die "$signal: exit code $code: $(cat err)"
	until_none "$signal"
done
# Schedulers signal all processes of a job: the command decides what that means, and decoders work
# on.
rm -rf left
(
	export WILD=none LD_PRELOAD=$PWD/wild.so:${LD_PRELOAD-}
	exec env --default-signal=INT,TERM,HUP "$PACK" images one -o "$PWD/left" "${RECIPE[@]}" --sandbox -q
) >out 2>err </dev/null &
pid=$!
until_all
others=$(mine | tail -n 2)
for signal in USR1 TERM INT HUP; do
	# shellcheck disable=SC2086 # two numbers
	kill -$signal $others 2>/dev/null || :
done
sleep 1
[ "$(mine | wc -l)" = 3 ] || die "signals ended the server, or a decoder: $(cat err)"
kill -INT $pid
code=0
wait $pid || code=$?
[ $code = 130 ] || die "exit code $code: $(cat err)"
until_none "a job with signals for all"
# A worker that is killed from outside says nothing of its input: the command stops, and goes on.
rm -rf left
WILD=none LD_PRELOAD=$PWD/wild.so:${LD_PRELOAD-} \
	"$PACK" images one -o "$PWD/left" "${RECIPE[@]}" --sandbox -q >out 2>err </dev/null &
pid=$!
until_all
kill -9 "$(mine | tail -n 1)"
code=0
wait $pid || code=$?
[ $code = 3 ] || die "exit code $code: $(cat err)"
grep -q "a/spin.jpg: its decoder was ended from outside by signal 9 (Killed)" err || die "$(cat err)"
until_none "the end of a worker"

# ---- usage ----

run 2 "$PACK" raw good/a/0.jpg -o no --schema 'x:u8[1]' --sandbox
[ "$(head -n 1 err)" = "shardpack: --sandbox is for images: nothing of this source is decoded" ] || die "$(cat err)"
echo "${#DEEDS[@]} wild decoders"
