/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - the checks of one shard that read more than its pages
 */
#ifndef SHARD_VERIFY_VERIFY_H
#define SHARD_VERIFY_VERIFY_H

#include "libshard/store/read/reader.h"
#include "libshard/verify/verify_units.h"
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
 * All of one shard, read from the disk in the calling thread: as the writer does before it publishes
 * a file.  Nothing is read twice, so the bytes that are hashed are those that were checked.
 */
int verify_whole(struct shard_reader *r, struct verify_whole *whole, struct shard_error *err);

#endif
