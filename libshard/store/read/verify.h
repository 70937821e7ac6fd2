/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - the checks of one shard that read more than its pages
 */
#ifndef SHARD_READ_VERIFY_H
#define SHARD_READ_VERIFY_H

#include "libshard/codec/sha256.h"
#include "libshard/store/read/reader.h"
#include "libshard/store/read/verify_units.h"
#include "shard_pack.h"

/* I11, I43, I48, I51 to I56, and I45 of every chunk: all tables and gaps, no record. */
int verify_tables(struct shard_reader *r, struct shard_error *err);

/*
 * Have the tables and gaps in the page cache before verify_tables() looks at them: a matter of
 * speed alone.
 */
void verify_fetch_tables(const struct shard_reader *r, const char *path);

/*
 * I57 to I59 of records [first, first + count): ragged fields, whose lengths may lie in another
 * group.  on_problem as above.  A piece is the work of one thread at once.
 */
bool verify_has_ragged(const struct shard_schema *s);
uint64_t verify_ragged_piece(const struct shard_reader *r, uint64_t first);
int verify_ragged(struct shard_reader *r, uint64_t first, uint64_t count, verify_on_problem *on_problem, void *context,
		  struct shard_error *err);

/*
 * Whole shards, one or two, with one thread, as the writer does before it publishes.  `sha` gets
 * every byte of the file in order, of those that were checked the same copy.  The caller has one of
 * `turns`, if they are not NULL, and is without it while it waits for the disk.
 */
#define VERIFY_WHOLE_MAX 2
struct verify_whole {
	struct shard_reader *r;
	const char *path;
	struct sha256 *sha; /* NULL: not asked for */
	struct shard_turns *turns;
	uint8_t *memory[2];  /* page-aligned, to read into */
	size_t memory_bytes; /* of each */
	struct shard_error *err;
	int rc; /* how it went */
};
void verify_all(struct verify_whole *whole, uint32_t count);

#endif
