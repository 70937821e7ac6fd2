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

static inline uint64_t block_unit_of(const struct shard_loader *l, uint32_t group, uint64_t inside)
{
	uint32_t shift = l->layout.unit_shift[group];

	return shift == UNIT_ODD ? inside / l->ds->m.schema.group[group].unit_records : inside >> shift;
}

#define FETCH_BYTES 256u /* of a record that is to be copied soon: the processor's own prefetch does the rest */

/* Always inline: gcc takes a function that only prefetches for one without effect, and drops the calls. */
__attribute__((always_inline)) static inline void block_fetch_ahead(const uint8_t *src, uint64_t bytes)
{
	for (uint64_t i = 0; i < (bytes < FETCH_BYTES ? bytes : FETCH_BYTES); i += 64)
		__builtin_prefetch(src + i);
}

/* ---- a unit that is about to be delivered: is it to be hashed? ---- */

struct unit_check {
	bool hash;
	_Atomic uint64_t *seen; /* SHARD_CHECK_FIRST: the word that has its bit */
	uint64_t bit;
	atomic_bool *stripe; /* held by this thread, or NULL */
};

/* rows.c: waits while another thread hashes a unit of this stripe. */
atomic_bool *block_enter_stripe(struct shard_loader *l, const struct shard_reader *r, uint64_t unit);

static inline struct unit_check block_begin_check(struct shard_loader *l, const struct shard_reader *r, uint32_t group, uint64_t unit)
{
	struct unit_check c = {.hash = r->check == SHARD_CHECK_ALWAYS, .bit = UINT64_C(1) << (unit & 63)};

	if (r->check == SHARD_CHECK_FIRST) {
		c.seen = atomic_load_explicit(&r->group[group].seen, memory_order_acquire) + unit / 64; /* settle() made it */
		c.hash = !(atomic_load_explicit(c.seen, memory_order_acquire) & c.bit);
	}
	if (c.hash && c.seen) {
		c.stripe = block_enter_stripe(l, r, unit);
		c.hash = !(atomic_load_explicit(c.seen, memory_order_acquire) & c.bit);
	}
	return c;
}

/* If it was hashed it is, or is not, sound.  Another loader of the dataset may have done so at the same moment; it is counted once. */
static inline void block_end_check(const struct unit_check *c, bool sound, uint64_t *checked)
{
	if (sound && c->hash)
		*checked += !c->seen || !(atomic_fetch_or_explicit(c->seen, c->bit, memory_order_release) & c->bit);
	if (c->stripe)
		atomic_store_explicit(c->stripe, false, memory_order_release);
}

/* packed.c: the rows of a compressed group. */
int block_fill_packed(struct block *b, uint32_t group);

#endif
