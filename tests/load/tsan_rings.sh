#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tsan_rings.sh - two threads with loaders on rings of io_uring: ThreadSanitizer says nothing with
# docs/libshard.tsan, which hides no race of the program itself
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

[ "${VARIANT-}" = tsan ] || skip "this is a test of ThreadSanitizer; make tsan runs it"
cat >two.c <<'END'
#include <pthread.h>
#include "shard.h"
static struct shard_dataset *ds;
static unsigned long raced; /* the control: a race that must be told */
static void *work(void *race)
{
	for (int i = 0; i < 20; i++) {
		struct shard_loader_options o = {.size = sizeof(o), .batch_records = 8, .path = SHARD_PATH_DIRECT};
		struct shard_loader *l;
		struct shard_batch b;
		if (shard_loader_open(&l, ds, &o, 0))
			return race;
		while (!shard_loader_next(l, &b, 0))
			shard_loader_release(l, &b, 0);
		shard_loader_close(l);
		if (race)
			raced += 1;
	}
	return 0;
}
int main(int argc, char **argv)
{
	pthread_t t[2];
	if (shard_dataset_open(&ds, argv[1], 0, 0))
		return 1;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], 0, work, argc > 2 ? &raced : 0);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], 0);
	}
	shard_dataset_close(ds);
	return 0;
}
END
gcc -g -O1 -fsanitize=thread -I"$ROOT/include" two.c -o two "$BUILD/libshard.a" -llz4 -luring -lpthread -lm -ldl
head -c $((600 * 150528)) /dev/urandom >records
run 0 "$PACK" raw records --schema 'x:u8[150528]' -o ds

# two SUPPRESSIONS [race]: how many warnings there are
two() {
	TSAN_OPTIONS="exitcode=0 suppressions=$1" setarch -R ./two ds ${2+"$2"} >out 2>&1 || die "$(cat out)"
	grep -c "^WARNING: ThreadSanitizer" out || true
}
: >none
before=$(two none)
[ "$before" != 0 ] || skip "no ring of io_uring could be used here"
[ "$(two "$ROOT/docs/libshard.tsan")" = 0 ] || die "still told: $(grep SUMMARY out | sort | uniq -c)"
[ "$(two "$ROOT/docs/libshard.tsan" race)" != 0 ] || die "a race of the program is not told"
echo "$before warnings without the file, 0 with it"
