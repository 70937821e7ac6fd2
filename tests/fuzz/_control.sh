#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/fuzz/_control.sh [RULE...] - does the fuzzer find anything?  By hand; needs clang
#
# For each rule of format/SHARD.md (I14, I29, I37 and I45 unless others are named) the library is
# linked with that check taken out, and fuzz_shard must break within SECONDS (60), from valid files
# alone.  Exit 0 if it did every time.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
SECONDS_MAX=${SECONDS_MAX:-60}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- I14 I29 I37 I45

cat >"$work/control.c" <<'C'
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "libshard/base/error.h"
int __wrap_invariant_broken(struct shard_error *err, int status, const char *number, const char *fmt, ...);
int __wrap_invariant_broken(struct shard_error *err, int status, const char *number, const char *fmt, ...)
{
	char text[900];
	va_list args;

	if (!strcmp(number, RULE))
		return SHARD_OK;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(err, status, "%s: %s", number, text);
}
C

flags="-g -O1 -fno-sanitize-recover=all -fsanitize=address,undefined,fuzzer"
missed=0
for rule in "$@"; do
	# shellcheck disable=SC2046,SC2086 # words of flags and names
	clang -std=c11 -pthread -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -I. $flags "-DRULE=\"$rule\"" \
		-Wl,--wrap=invariant_broken -o "$work/fuzz_shard" "$work/control.c" tests/fuzz/fuzz_shard.c \
		$(find libshard -name '*.c' ! -name engine_uring.c) \
		$(pkg-config --cflags --libs liblz4) -ldl
	rm -rf "$work/corpus"
	mkdir "$work/corpus"
	cp format/golden/*.shard "$work/corpus"
	begin=$(date +%s)
	if "$work/fuzz_shard" -max_total_time="$SECONDS_MAX" -artifact_prefix="$work/" "$work/corpus" \
		>"$work/log" 2>&1; then
		echo "$rule: taken out, and nothing was found in $SECONDS_MAX s"
		missed=$((missed + 1))
	else
		echo "$rule: taken out, found after $(($(date +%s) - begin)) s: $(grep -m 1 -E 'SUMMARY|broken promise|runtime error' "$work/log")"
	fi
done
[ $missed = 0 ]
