/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_shards.h - the bare loop that makes shards of records: what the format demands, and nothing
 * else
 */
#ifndef SHARD_COMMON_BOUND_SHARDS_H
#define SHARD_COMMON_BOUND_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copy records out of a mapped file, in that order, into files of as many shards: XXH3 of each
 * unit, SHA-256 of each file, one fsync each; then read all of it back past the page cache, and
 * compare the XXH3 of each unit.  The threads compute.  io_uring reads and writes meanwhile, past
 * the page cache.  A thread makes two shards at once: so it can hash two files at once, which takes
 * little longer than one.
 */
struct bound_shards {
	const char *source, *dir; /* dir: an empty folder */
	const uint64_t *order;	  /* [record_count] which record comes next */
	uint64_t record_count, shard_count;
	size_t record_bytes, step_bytes, stride; /* a record is at its number times step_bytes, and becomes a stride */
	size_t unit_records;
	bool hashes_files; /* SHA-256 */
};

bool bound_shards_can(void); /* io_uring is permitted, and the processor has SHA instructions */

/* Seconds, with that many threads.  The files stay. */
double bound_shards(const struct bound_shards *b, unsigned thread_count);

#endif
