#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# strace.sh - system calls of shardpack fail in turn, from outside: strace puts errors into the
# program as it is shipped
#
# An independent check of tests/fault/t_syscalls.c: nothing here depends on which function made the
# call, or on which of our files it stands in.  For call after call and n after n: a clear exit
# code, final names absent or right, no temporary file left, and the same command once more ends as
# if nothing had been.
# TIMEOUT: 900
. "${ROOT:-$(dirname "$0")/../..}/tests/fault/lib.sh"

need_strace
small_source 3
command=("$PACK" images src -j1 --resize 16 --crop 16 --shard-records 3)
run 0 "${command[@]}" -o reference
[ "$(contents reference)" = "00000.shard 00001.shard dataset.manifest dataset.sources" ] || die "undisturbed: $(contents reference)"

# disturb CALL FAULT N: 1 if there was no N-th such call.  $strange are more options of strace.
disturb() {
	local call=$1 fault=$2 n=$3 code=0
	what="$call number $n with $fault"
	rm -rf out
	{
		strace -f --seccomp-bpf -qq -o log "${strange[@]}" -e "trace=$call" -e "inject=$call:$fault:when=$n" \
			"${command[@]}" -o out \
			>stdout 2>err </dev/null || code=$?
	} 2>/dev/null # where the shell would tell of a kill
	if ! grep -q INJECTED log; then
		[ "$code" = 0 ] && return 1
		grep -q SIGKILL log || die "$what: exit code $code without a fault: $(cat err)"
	fi
	! grep -q 'loading shared libraries' err || return 0 # it hit what starts the program
	runs=$((runs + 1))
	case $fault in
	signal=KILL) ;;
	*)
		[ "$code" = 0 ] || [ "$code" = 1 ] || [ "$code" = 3 ] || die "$what: exit code $code: $(cat err)"
		[ "$code" = 0 ] || grep -q '^shardpack: .*: ' err || die "$what: no reason is given: $(cat err)"
		case $call in
		unlink | unlinkat | getdents64) ;; # what could not be removed is there, until the second run
		*)
			[ -z "$(find . -name '.tmp.*')" ] || die "$what: left $(find . -name '.tmp.*')"
			[ "$code" != 0 ] || same reference out
			;;
		esac
		[ "$code" != 0 ] || [ -e out/dataset.manifest ] || die "$what: nothing was made, and the exit code is 0"
		;;
	esac
	[ "$code" = 0 ] || failed=$((failed + 1))
	no_wrong_file out || die "$what"
	"${command[@]}" -o out >stdout 2>err </dev/null || die "$what: the second run fails: $(cat err)"
	same reference out
}

# sweep CALL FAULT [STEP]
sweep() {
	local n=1 before=$runs
	while disturb "$1" "$2" $n; do n=$((n + ${3:-1})); done
	[ $runs -gt "$before" ] || [ -n "${3-}" ] || die "shardpack never calls $1; name here what it calls now"
}

runs=0 failed=0 strange=()
step=1
[ -z "${VARIANT-}" ] || step=3
sweep fsync error=EIO $step
sweep pwrite64 error=ENOSPC $step
sweep renameat2 error=EIO $step
sweep ftruncate error=EIO $step
sweep flock error=EIO $step
sweep mkdir error=EROFS $step
sweep unlink error=EIO $step
sweep unlinkat error=EIO $step
sweep getdents64 error=EIO $step
sweep renameat2 signal=KILL $step
if [ $step = 1 ]; then
	sweep fsync error=ENOSPC
	sweep pwrite64 error=EIO
	sweep pwrite64 error=EINTR
	sweep renameat2 retval=0 # says that it did, and did not
	sweep renameat2 error=EINVAL
	sweep fallocate error=EOPNOTSUPP
	sweep fallocate error=ENOSPC
	sweep fsync signal=KILL
	sweep pwrite64 signal=KILL
	sweep pread64 error=EIO 3
fi

# The control: a shardpack that leaves its temporary files.
strange=(-E "LD_PRELOAD=$PWD/shim.so:${LD_PRELOAD-}" -E SHIM=litter
	-E "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0")
# (Two fsyncs make folders durable; the third is that of the first temporary file.)
if (disturb fsync error=EIO 3) 2>control; then
	die "a shardpack that leaves temporary files was not noticed"
fi
grep -q 'fsync number 3 with error=EIO: left ./out/.*[.]tmp[.]' control ||
	die "the control fails for another reason: $(cat control)"

[ $failed -gt 10 ] || die "only $failed of $runs runs failed"
fewer=${VARIANT:+; under a sanitizer one occurrence in three}
echo "$runs runs with a fault, $failed of them failed, cleanly; the control is noticed$fewer"
