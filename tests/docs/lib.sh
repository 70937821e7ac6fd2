# SPDX-License-Identifier: Apache-2.0
# tests/docs/lib.sh - what blocks of the documents find: the tree, its build, libshard installed
#
# Sourced, not run.
# shellcheck shell=sh
set -eu
: "${BUILD:?}" "${ROOT:?}" "${TMPDIR:?}"
cd "$ROOT"
. tests/tree/lib.sh

# A copy, so that no block can touch the tree.
mkdir "$TMPDIR/tree" "$TMPDIR/pages" "$TMPDIR/bin"
tree_files | tr '\n' '\0' | tar --null -T - -cf - | tar -xf - -C "$TMPDIR/tree"

# The reader did what the README says, `make install`, into a folder of their own.
usr=$TMPDIR/usr
make --no-print-directory DEPS=skip BUILD="$BUILD" PREFIX="$usr" install >"$TMPDIR/log" 2>&1 ||
	{ cat "$TMPDIR/log" && exit 1; }
PATH=$TMPDIR/bin:$usr/bin:$PATH
PKG_CONFIG_PATH=$usr/lib/pkgconfig
LD_LIBRARY_PATH=$usr/lib

# No block may need a network: one that asks for it is refused at once.
export PIP_NO_INDEX=1 http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9
export GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu
unset RANK WORLD_SIZE DISPLAY
export PATH PKG_CONFIG_PATH LD_LIBRARY_PATH BUILD

# The Python that blocks mean, by both of its names.
use_python() { # PYTHON
	python=$(command -v "$1") # a mere name would find what we write here
	for name in python python3; do
		printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >"$TMPDIR/bin/$name"
		chmod +x "$TMPDIR/bin/$name"
	done
}

documents() {
	(cd "$TMPDIR/tree" && find . -name '*.md' | sed 's,^\./,,' | sort)
}

# run_pages [--only NEED] HAVE [PAGE...]
run_pages() {
	only=
	[ "$1" != --only ] || { only="--only $2" && shift 2; }
	have=$1
	shift
	# shellcheck disable=SC2046 # our file names hold no blanks
	[ $# != 0 ] || set -- $(documents)
	# shellcheck disable=SC2086 # two words or none
	(cd "$TMPDIR/tree" && python "$TMPDIR/tree/tests/docs/pages.py" $only "$TMPDIR/pages" "$have" "$@")
}
