# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# tests/fault/lib.sh - what the scripts that disturb a pack share; sourced, not run
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

${CC:-cc} -std=gnu11 -O1 -Wall -Wextra -shared -fPIC -D_GNU_SOURCE -o shim.so "$ROOT/tests/fault/shim.c" -ldl

# Under a sanitizer everything takes longer, and what these tests show is shown as well by less.
# FEW=y asks for the same, and FEW=very for the least.
IMAGES=2000 FEW=${FEW-}${VARIANT-}
[ -z "$FEW" ] || IMAGES=400

RECIPE=(--resize 32 --crop 32 --shard-records $((IMAGES / 16)))
SHARDS=16

# with_shim "WHAT..." COMMAND...
with_shim() {
	(exec_shim "$@")
}

# The same in the place of the shell, so that after `exec_shim ... &` the process $! is the command
# itself.  A child of a script that runs in the background would ignore SIGINT, were it not told to.
exec_shim() {
	local shim=$1
	shift
	# The address sanitizer wants to be first, which it need not be for what the shim does.
	SHIM=$shim LD_PRELOAD=$PWD/shim.so:${LD_PRELOAD-} ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" \
		exec env --default-signal=INT,HUP "$@"
}

# The images at src, and what an undisturbed run makes of them, at reference.
make_reference() {
	make_images src $IMAGES
	run 0 "$PACK" images src -o reference -j1 "${RECIPE[@]}"
	[ "$(find reference -name '*.shard' | wc -l)" = $SHARDS ] || die "there should be $SHARDS shards"
	[ "$(contents reference)" = "$(printf '%05d.shard ' $(seq 0 $((SHARDS - 1))))dataset.manifest dataset.sources" ] ||
		die "an undisturbed run leaves: $(contents reference)"
}

# no_wrong_file DIR: every file that has a final name is the whole and right one.  Prints the first
# that is not.
no_wrong_file() {
	local f
	for f in "$1"/*.shard "$1"/dataset.*; do
		[ -e "$f" ] || continue
		cmp -s "$f" "reference/${f##*/}" || {
			echo "$f is not the one of an undisturbed run"
			return 1
		}
	done
}

# strace puts errors into calls, or this is skipped.  Leak checking cannot work in a process that is
# traced already.
need_strace() {
	command -v strace >/dev/null || skip "strace is not installed"
	strace -o probe -e inject=getcwd:error=EIO:when=1 true 2>/dev/null ||
		skip "strace may not trace a process here (ptrace)"
	export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
}

# no_temps DIR: no temporary file, here or below
no_temps() {
	local found
	found=$(find "$1" -name '.tmp.*')
	[ -z "$found" ] || {
		echo "temporary files are left: $found"
		return 1
	}
}

# in_work DIR: the temporary files of shards, begun ones and those that a killed process left
in_work() {
	find "$1" -maxdepth 1 -name '.tmp.*.shard.*' | sort
}

# has_work DIR: a held process may be about to begin its shard.
has_work() {
	[ -n "$(in_work "$1")" ]
}

# How many shards have their final name; 0 if there is no such folder.
shards_in() {
	find "$1" -name '*.shard' 2>/dev/null | wc -l || :
}

# ---- workers that claim shards ----

# timed OUT STALE_MS [SED]: shardpack with other intervals: 0.1 s between the beats of a claim, and
# stale after STALE_MS.  The words of sed may break something.
timed() {
	break_pack claim.c "s/\.beat = .*/.beat = 100000000,/; s/\.look = .*/.look = 100000000,/
		s/\.stale = .*/.stale = $(($2 * 1000000)),/; ${3-}"
	local file=$ROOT/tools/shardpack/make/claim.c
	[ -z "${3-}" ] || ! sed "$3" "$file" | cmp -s - "$file" || die "this edits nothing: $3"
	mv broken "$1"
}
PATIENT_MS=1000000000 # silent owners are replaced never, only those that are known to be dead

# until_true COMMAND...: asked every EVERY seconds
until_true() {
	local end=$((SECONDS + 120))
	while [ $SECONDS -lt $end ]; do
		"$@" && return
		sleep "${EVERY-0.02}"
	done
	die "not true within two minutes: $*"
}

# With STEAL=n, n workers beside each other that claim shards make what these scripts make by one
# command.  `make check-steal` runs all of them so.
STEAL=${STEAL-}
if [ -n "$STEAL" ]; then
	[ -n "${STEALER-}" ] || timed stealer $PATIENT_MS
	export STEAL STEALER=${STEALER-$PWD/stealer}
	PACK=$ROOT/tests/fault/_steal.sh
fi

# kill_hard PID: kill -9 a command.  With STEAL every other time one of its processes alone, and
# then those that are left go on.
kill_hard() {
	local those=("$1")
	if [ -n "$STEAL" ] && [ $((RANDOM % 2)) = 0 ]; then
		read -ra those <"/proc/$1/task/$1/children" || :
		[ ${#those[@]} != 0 ] || those=("$1")
	fi
	kill -9 "${those[RANDOM % ${#those[@]}]}" 2>/dev/null || :
}
