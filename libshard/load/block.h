/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - what a thread works on: a step, and some of its rows at a time
 */
#ifndef LIBSHARD_LOAD_BLOCK_H
#define LIBSHARD_LOAD_BLOCK_H

#include <string.h>

#include "libshard/load/path.h"

#define BLOCK 64u

struct located {
	struct shard_reader *r;
	uint64_t shard, inside;
	enum path_kind kind;
};

/* What one thread works on: a step, and a block of its rows. */
struct block {
	struct shard_loader *l;
	struct member *m;
	struct slot *s;
	struct fill_counts *counts;
	struct shard_error *err;
	uint32_t first, count;	    /* rows */
	uint32_t hot_rows;	    /* so far: of shards in memory */
	bool strict;		    /* damage is an error */
	uint32_t stamp[2][PATH_KINDS]; /* path.h: of the epoch, and of the next, which another thread may be in already */
	struct located at[BLOCK];
};

/* Lengths that are known when this is compiled are moves; the others are calls. */
__attribute__((always_inline)) static inline void copy_field(uint8_t *dst, const uint8_t *src, uint32_t bytes)
{
	switch (bytes) {
	case 1: *dst = *src; break;
	case 2: memcpy(dst, src, 2); break;
	case 4: memcpy(dst, src, 4); break;
	case 8: memcpy(dst, src, 8); break;
	case 16: memcpy(dst, src, 16); break;
	case 32: memcpy(dst, src, 32); break;
	case 64: memcpy(dst, src, 64); break;
	default: memcpy(dst, src, bytes);
	}
}

/* A record of a small group to its place in each field's array. */
static inline void block_spread(const struct layout *layout, uint32_t group, const uint8_t *record, uint64_t row, uint8_t *slot)
{
	for (uint32_t i = 0; i < layout->field_count[group]; i++) {
		const struct spread_field *f = &layout->field[group][i];

		copy_field(slot + f->at + row * f->bytes, record + f->offset, f->bytes);
	}
}

/* A damaged row is dealt with when the others are there. */
static inline int block_set_aside(struct shard_loader *l, uint8_t *flags, const struct shard_error *why)
{
	repair_note(l, why);
	*flags |= ROW_DAMAGED;
	return SHARD_OK;
}

/* rows.c: one thread at a time hashes a unit that nobody has; it sets the answer to false again. */
atomic_bool *block_enter_stripe(struct shard_loader *l, const struct shard_reader *r, uint64_t unit);

/* packed.c: the rows of a compressed group. */
int block_fill_packed(struct block *b, uint32_t group);

#endif
