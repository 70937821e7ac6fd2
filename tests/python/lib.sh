# SPDX-License-Identifier: Apache-2.0
# tests/python/lib.sh - run a test of the Python package; sourced, not run
# shellcheck shell=sh
set -eu
: "${BUILD:?}" "${ROOT:?}" "${PYTHON:=/usr/bin/python3}"
cd "$TMPDIR"

# python FILE ARGS...: with the package of this build, or that in PACKAGE.  One that is built with a
# sanitizer needs it from the start; what the interpreter itself never frees is not ours to find.
python() {
	preload=
	[ "${VARIANT-}" != asan ] || preload=$(gcc -print-file-name=libasan.so)
	LD_PRELOAD=$preload${PRELOAD:+ $PRELOAD}${LATE:+ $LATE} \
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=8 \
		PYTHONPATH=${PACKAGE:-$BUILD/python} \
		PYTHONMALLOC=malloc "$PYTHON" -X faulthandler -W error "$@"
}
