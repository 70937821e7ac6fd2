#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/archive.sh - the static library: a program links only what it uses, and none of our
# names is in its way
#
# TIMEOUT: 300
set -eu
limit_bytes=150000
work=$TMPDIR
read -r CC _ <"$BUILD/flags" # the compiler that made the objects
libs="$(pkg-config --libs liblz4) $(pkg-config --silence-errors --libs liburing) -pthread -ldl"

# A program whose names are those of our internals, which it then must not get, nor the library the
# program's.
cat >"$work/own.c" <<-'END'
	#include <stdio.h>
	#include "shard.h"
	int error_set(void);
	void *mem_alloc(void);
	int error_set(void) { return puts("the library called error_set() of the program"), 1; }
	void *mem_alloc(void) { return puts("the library called mem_alloc() of the program"), (void *)0; }
	int main(void)
	{
		struct shard_dataset *ds;
		struct shard_error err;

		return shard_dataset_open(&ds, "/nonexistent", NULL, &err) == SHARD_E_IO ? 0 : (puts(err.message), 1);
	}
END
# shellcheck disable=SC2086 # words
$CC -Iinclude -o "$work/own" "$work/own.c" "$BUILD/libshard.a" $libs
"$work/own"

size_of() { # PROGRAM SOURCE OBJECT...: bytes of a stripped program
	program=$1
	shift
	# shellcheck disable=SC2086 # words
	$CC -O2 -Iinclude -o "$program" -Wl,--gc-sections "$@" $libs
	strip "$program"
	stat -c %s "$program"
}
bytes=$(size_of "$work/read_random" examples/read_random.c "$BUILD/libshard.a")
[ "$bytes" -le $limit_bytes ] || { echo "examples/read_random is $bytes bytes; the limit is $limit_bytes" && exit 1; }
# The control: one object that holds all of the library, as an archive that is not cut up would.
ld -r -o "$work/whole.o" --whole-archive "$BUILD/libshard.a"
whole=$(size_of "$work/read_random_whole" examples/read_random.c -Wl,--no-gc-sections "$work/whole.o")
[ "$whole" -gt $limit_bytes ] ||
	{ echo "the whole library is only $whole bytes, so the limit proves nothing" && exit 1; }
echo "examples/read_random is $bytes bytes, at most $limit_bytes; with the whole library $whole"
