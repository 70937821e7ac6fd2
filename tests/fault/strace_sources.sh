#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# strace_sources.sh - reading fails at every other call in turn, while tokens, arrays, tars and
# tables are packed
#
# As strace.sh, for what other sources do that folders of images do not: read by offset, unpack to
# unnamed files.  A failure is exit code 3 and a sentence, nothing wrong under a final name, no file
# left behind; the same command once more ends as if nothing had been.
# TIMEOUT: 900
# TAKES: 35
. "${ROOT:-$(dirname "$0")/../..}/tests/fault/lib.sh"

need_strace
small_source 3
tar --sort=name -C src -cf images.tar .
gzip -k images.tar
{ echo path,label && (find src -name '*.jpg' | sort | sed 's/$/,1/'); } >images.csv
{ echo path,label,second,text && (find src -name '*.jpg' | sort | sed 's/.*/&,1,&,"[1, 2]"/'); } >fields.csv
head -c 4000 "$PHOTOS/train/cat/cat_000.jpg" >tokens.bin
gzip -k tokens.bin
"$PYTHON" -c 'import numpy as np
np.save("x.npy", np.asfortranarray(np.arange(600).reshape(60, 10)))
np.savez_compressed("x.npz", x=np.arange(600).reshape(60, 10))'

step=2 # of the calls, from a drawn one on
[ -z "${VARIANT-}" ] || step=16
RANDOM=${SEED:-1}
runs=0 failed=0
# disturb CALL ERROR N COMMAND...: 1 if there was no N-th such call
disturb() {
	local call=$1 error=$2 n=$3 code=0
	shift 3
	what="$call number $n with $error: $*"
	rm -rf out
	strace -f --seccomp-bpf -qq -o log -e "trace=$call" -e "inject=$call:error=$error:when=$n" \
		"$PACK" "$@" -o out -j1 >stdout 2>err </dev/null || code=$?
	if ! grep -q INJECTED log; then
		[ "$code" = 0 ] || die "$what: exit code $code without a fault: $(cat err)"
		return 1
	fi
	runs=$((runs + 1))
	case $code in
	0) same reference out ;;
	1 | 3)
		grep -q '^shardpack: .*: ' err || die "$what: no reason is given: $(cat err)"
		no_wrong_file out || die "$what" # the fault may have come later
		failed=$((failed + 1))
		;;
	*) die "$what: exit code $code: $(cat err)" ;;
	esac
	[ -z "$(find . -name '.tmp.*')" ] || die "$what: left $(find . -name '.tmp.*')"
	"$PACK" "$@" -o out -j1 -q >stdout 2>err </dev/null || die "$what: the second run fails: $(cat err)"
	same reference out
}

# How many such calls start the program, before a line of it runs: to find its libraries, and to map
# them.
calls_of_start() { # CALL
	strace -f -qq -o log -e "trace=$1" -E LD_TRACE_LOADED_OBJECTS=1 "$PACK" >/dev/null 2>err || die "$(cat err)"
	grep -c "$1(" log || :
}

faults="pread64/EIO openat/EMFILE newfstatat/EIO read/EIO write/ENOSPC"
declare -A first
for fault in $faults; do first[$fault]=$(($(calls_of_start "${fault%/*}") + 1)); done
for line in "images images.tar --resize 16" "images images.tar.gz --resize 16" "images images.csv --resize 16" \
	"images fields.csv --resize 16 --field second:kind=image,crop=8 --field text:kind=ragged,dtype=i32,max=8" \
	"tokens tokens.bin.gz --seq-len 100" \
	"array x.npy --shard-records 30" "array x.npz --shard-records 30"; do
	read -ra command <<<"$line"
	rm -rf reference
	rm -rf out
	"$PACK" "${command[@]}" -o reference -j1 -q >stdout 2>err </dev/null || die "undisturbed: $(cat err)"
	for fault in $faults; do
		n=$((first[$fault] + RANDOM % step))
		while disturb "${fault%/*}" "${fault#*/}" $n "${command[@]}"; do n=$((n + step)); done
	done
done
[ $failed -gt $((runs / 4)) ] || die "only $failed of $runs faults were felt"
echo "$runs faults in 7 commands, one call in $step, $failed ended them; each was good at the second try"
