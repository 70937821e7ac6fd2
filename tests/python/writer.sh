#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/writer.sh - datasets that Python writes: what shardpack writes, byte for byte, of any
# source; and writers with a mistake
# TIMEOUT: 600
. "${0%/*}/lib.sh"
"$PYTHON" "$ROOT/tests/cli/make_images.py" photos 60 4
python "$ROOT/tests/python/writer.py"

# ---- writers with one mistake each, which the comparison with shardpack must see ----

read -r CC _ <"$BUILD/flags" # the compiler that made the objects
# broken NAME FILE SCRIPT TEST WORDS: of a package whose python/core/FILE was changed by sed, the
# test says these words
broken() {
	mkdir -p "$1/libshard"
	cp "$BUILD"/python/libshard/*.py "$1/libshard"
	sed "$3" "$ROOT/python/core/$2.c" >"$1/changed.c"
	rest=
	for c in "$ROOT"/python/core/*.c "$ROOT"/python/core/*/*.c; do
		c=${c#"$ROOT/"}
		[ "$c" = "python/core/$2.c" ] || rest="$rest $BUILD/${c%.c}.o"
	done
	san=
	[ "${VARIANT-}" != asan ] || san=-fsanitize=address,undefined
	# shellcheck disable=SC2046,SC2086 # words
	$CC -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared $san -I"$ROOT" -I"$ROOT/include" $(pkg-config --cflags python3) \
		"$1/changed.c" $rest "$BUILD/base.a" "$BUILD/libshard.a" $(pkg-config --libs liblz4) \
		$(pkg-config --silence-errors --libs liburing) -pthread -ldl -lm \
		-o "$1/libshard/_core.abi3.so"
	if PACKAGE=$PWD/$1 python "$ROOT/tests/python/writer.py" "$4" >"$1.out" 2>&1; then
		echo "$1: nothing was noticed" && exit 1
	fi
	grep -q "$5" "$1.out" || { echo "$1: something else was noticed" && cat "$1.out" && exit 1; }
}
broken other_rows write/py_layout \
	's/view_row(&c->source\[f\].as, (Py_ssize_t)row)/view_row(\&c->source[f].as, (Py_ssize_t)(row \/ 2 * 2))/' \
	SameAsShardpack.test_raw_of_every_dtype \
	"AssertionError: .*('00000.shard', (1, 0))"
broken short_keys write/py_writer 's/text, (size_t)key_bytes, &err/text, (size_t)key_bytes - 1, \&err/' \
	SameAsShardpack.test_images_with_keys \
	"AssertionError: .*('00000.shard', (4, "
broken other_sums write/py_writer \
	's/\(shard_tally_add(s->tally, (const void \*const \*)\)group)/\1s->group)/' \
	SameAsShardpack.test_statistics_of_images_of_any_size \
	"AssertionError: .*('00000.shard', (6, "
echo "what Python writes, and three writers with a mistake"
