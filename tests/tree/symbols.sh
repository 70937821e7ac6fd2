#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/symbols.sh - four lists of our public symbols are one: SHARD_API in the headers, the
# symbol map, what the shared library exports, what the archive exports besides internal names with
# their prefix
#
# tests/tree/symbols.sh --write adds what the headers declare to the node of this minor release in
# the map; nodes of earlier releases stay as they are, for they are the history of the ABI.
# shellcheck disable=SC2086 # headers are words
set -eu
cd "$(dirname "$0")/../.."
headers="include/shard.h include/shard_gpu.h include/shard_inspect.h include/shard_pack.h include/shard_transform.h"
map=libshard/libshard.map

declared() { # comments and preprocessor lines out, then the name before each declaration's first bracket
	cat "$@" | sed 's,//.*,,; /^[ \t]*#/d' | tr '\n' ' ' | sed -E 's,/\*[^*]*\*+([^/*][^*]*\*+)*/, ,g' |
		grep -o 'SHARD_API[^;({]*(' | sed -E 's/.*[^A-Za-z0-9_]([A-Za-z0-9_]+) *\($/\1/' | sort
}
mapped() {
	sed 's/#.*//' "$1" | grep -oE '^[[:space:]]*[A-Za-z0-9_*]+;' | tr -d ' \t;' | grep -v '^\*$' | sort
}

if [ "${1-}" = --write ]; then
	version() { awk -v n="SHARD_VERSION_$1" '$2 == n {print $3}' $headers; }
	node=SHARD_$(version MAJOR).$(version MINOR)
	new=$(mktemp)
	old=$(mktemp)
	trap 'rm -f "$new" "$old"' EXIT
	# Everything up to this release's node, which is always the last one.
	awk -v node="$node" '$1 == node {exit} {print}' $map >"$old"
	parent=$(awk '/^SHARD_[0-9.]+ *\{/ {p = $1} END {print p}' "$old")
	mapped "$old" >"$new"
	{
		cat "$old"
		echo "$node {"
		echo "global:"
		declared $headers | grep -vxF -f "$new" | sed 's/.*/\t&;/'
		[ -n "$parent" ] || printf 'local:\n\t*;\n'
		echo "}${parent:+ $parent};"
	} >"$new.map"
	mv "$new.map" $map
	exit 0
fi

so=$(readlink -f "$BUILD/libshard.so")
declared $headers >"$TMPDIR/header"
mapped $map >"$TMPDIR/map"
nm -D --defined-only "$so" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort >"$TMPDIR/so"
nm --defined-only --extern-only "$BUILD/libshard.a" | awk 'NF == 3 && $3 !~ /^shard__/ {print $3}' | sort >"$TMPDIR/a"

status=0
for other in map so a; do
	diff -u --label include --label "$other" "$TMPDIR/header" "$TMPDIR/$other" || status=1
done
grep -v '^shard_' "$TMPDIR/header" && echo "public names start with shard_" && status=1
[ "$(objdump -p "$so" | awk '$1 == "SONAME" {print $2}')" = "$(basename "$(readlink "$BUILD/libshard.so")")" ] ||
	{ echo "the soname is not what libshard.so points to" && status=1; }

# The lists differ when they should: a declaration of every shape is found, a comment is not.
cat >"$TMPDIR/shapes.h" <<-'SHAPES'
	#define SHARD_API __attribute__((visibility("default")))
	SHARD_API const char *shard_one(void);
	/* SHARD_API int shard_in_a_comment(void); */
	SHARD_API int
	shard_two(int (*callback)(void *), // SHARD_API int shard_no(
	          void *arg);
	SHARD_API struct shard_view
	*shard_three (void);
SHAPES
[ "$(declared "$TMPDIR/shapes.h" | tr '\n' ' ')" = "shard_one shard_three shard_two " ] ||
	{ echo "declared() misreads: $(declared "$TMPDIR/shapes.h")" && status=1; }
[ $status = 0 ] && echo "$(wc -l <"$TMPDIR/header") symbols"
exit $status
