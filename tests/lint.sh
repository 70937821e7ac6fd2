#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/lint.sh FLAGS... - advice on style and smells; FLAGS are the compiler's
#
# Exit 1 when a checker finds a defect.  tests/tree/format.sh is about formatting.
set -u
cd "$(dirname "$0")/.." || exit
status=0
c_files=$(find libshard tools examples bench tests format python/core -name '*.c' | sort)
# shellcheck disable=SC2046 # our file names hold no blanks
scripts=$(grep -lE '^#!/(bin/|usr/bin/env )(ba)?sh' \
	$(find tools tests examples bench debian .ci -type f -size -200k 2>/dev/null))

have() {
	command -v "$1" >/dev/null || { echo "lint: $1 is not installed, so it is left out" && return 1; }
}

if have shellcheck; then
	# shellcheck disable=SC2086
	shellcheck -x --severity=warning $scripts || status=1
fi
if have cppcheck; then
	# Suppressed: a pointer to something that the callee fills is taken for reading it, and
	# arithmetic that is meant.
	# shellcheck disable=SC2086
	cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,portability \
		--suppress=missingIncludeSystem --suppress=uninitvar --suppress=ctuuninitvar --suppress=autoVariables \
		--suppress=compareBoolExpressionWithInt --suppress=shiftTooManyBitsSigned \
		-Iinclude -I. libshard tools || status=1
fi
if have clang-tidy; then
	# Left out: what contradicts the house style, advice to use functions that this C library
	# lacks, and one check that takes every va_start for a mistake.
	checks='-*,bugprone-*,clang-analyzer-*,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier'
	checks=$checks,-bugprone-assignment-in-if-condition,-bugprone-narrowing-conversions
	checks=$checks,-clang-analyzer-valist.Uninitialized,-clang-analyzer-security.insecureAPI.strcpy
	checks=$checks,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling
	# gcc's own warning options mean nothing to clang-tidy.
	# shellcheck disable=SC2046
	clang-tidy --quiet --warnings-as-errors='*' \
		--checks="$checks" \
		$(echo "$c_files" | grep '^libshard/\|^tools/') -- "$@" 2>/dev/null || status=1
fi
exit $status
