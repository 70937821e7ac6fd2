#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hostile.sh - every file of format/bad and of the fuzz corpus given to shardcat in a box: 256 MiB
# of memory, 10 s of CPU
#
# Whatever the file says: an exit code of the tool's own, no signal, one line of why, and nothing
# allocated by a number from the file.  The address sanitizer reserves more than the box has, so
# under it only the time is limited.
# TIMEOUT: 900
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

box=(prlimit --as=268435456 --cpu=10)
case ${VARIANT-} in asan | tsan) box=(prlimit --cpu=60) ;; esac

# in_box FILE LEAST ARGUMENTS...: the exit code is LEAST to 5, and what is refused is told in one
# line
in_box() {
	local file=$1 least=$2 code=0
	shift 2
	timeout 250 "${box[@]}" "$CAT" "$@" >out 2>err </dev/null || code=$?
	# 2 is for a record that is not there
	if [ "$code" -lt "$least" ] || [ "$code" -gt 5 ] || { [ "$code" = 2 ] && [ "$1" != get ]; }; then
		die "$file: shardcat $*: exit code $code: $(tail -n 3 err)"
	fi
	if [ "$code" = 0 ] || { [ "$1" = verify ] && [ "$(wc -l <err)" -gt 1 ]; }; then
		return # a flaw in several units is a line for each, which tests/cli/cat_hostile.sh looks at
	fi
	if [ "$(wc -l <err)" != 1 ] || ! grep -q "^shardcat: .*: " err; then
		die "$file: shardcat $*: not one line: $(cat err)"
	fi
	runs_failed=$((runs_failed + 1))
}

# try FILE TARGET: all verbs; verify must refuse unless $valid
try() {
	local least=1
	[ -z "$valid" ] || least=0
	in_box "$1" $least verify "$2"
	in_box "$1" 0 info "$2"
	in_box "$1" 0 list "$2"
	in_box "$1" 0 get "$2" 0
	[ ! -d "$2" ] || in_box "$1" 0 manifest "$2"
	files=$((files + 1))
}

files=0 runs_failed=0
for path in "$ROOT"/format/bad/* "$ROOT"/tests/fuzz/corpus/fuzz_shard/* "$ROOT"/tests/fuzz/corpus/fuzz_manifest/*; do
	name=$(basename "$path") valid=
	# D6 shows only with --sha256.  Inputs that fuzzing found may be valid, and so is a shard
	# without records, however long they would be.
	case $name in D6_* | found_* | stride_1_gib.shard) valid=yes ;; esac
	if [ -d "$path" ]; then
		try "$name" "$path"
	elif [ "${name%.manifest}" != "$name" ]; then
		mkdir -p ds && cp "$path" ds/dataset.manifest
		try "$name" ds
	else
		try "$name" "$path"
	fi
done
[ $files -ge 200 ] || die "only $files files were found"

# The box is no ornament: what allocates by the file's numbers does not get through it.
if [ "${box[1]}" = --as=268435456 ]; then
	code=0
	"${box[@]}" "$PYTHON" -c 'bytearray(1 << 30)' 2>/dev/null || code=$?
	[ $code != 0 ] || die "a process in the box can have 1 GiB"
fi

# The corpus is what its script makes.
"$PYTHON" "$ROOT/tests/fuzz/make_corpus.py" corpus
for path in corpus/*/*; do
	cmp "$path" "$ROOT/tests/fuzz/$path" || die "$path is not what tests/fuzz/make_corpus.py makes"
done
echo "$files hostile files, 4 verbs each, $runs_failed refusals of one line"
