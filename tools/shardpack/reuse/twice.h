/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twice.h - is something in two of these datasets?
 */
#ifndef SHARD_REUSE_TWICE_H
#define SHARD_REUSE_TWICE_H

#include "tools/shardpack/reuse/part.h"

struct shelf;

/*
 * A shard that is in two parts, by its SHA-256; within one of them it may be there twice.  Says so
 * and returns the exit code.
 */
int twice_shards(const struct part *part, uint32_t count);

/*
 * Keys of the records of all parts, of which none may be in two.  The shelf is for what is large:
 * 32 bytes a record.
 */
struct twice {
	struct shelf *shelf;
	struct twice_key *key;
	uint64_t count, capacity;
};

int twice_add_part(struct twice *t, const struct part *p, uint32_t source);

/*
 * Is a key in two sources?  Within one of them it may be there twice.  *found is their number; the
 * first one is in sources[0] and sources[1], as the numbers that were given.
 */
struct twice_place {
	uint32_t source;
	uint64_t number;
};
int twice_look(struct twice *t, uint64_t *found, struct twice_place first[2]);
void twice_free(struct twice *t); /* closes the shelf, too */

#endif
