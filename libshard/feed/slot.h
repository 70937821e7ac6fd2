/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.h - the memory of one batch, and the rows that are in it
 *
 * A slot has one owner at a time: the thread that fills it, or the consumer.  So its contents need
 * no lock.
 */
#ifndef SHARD_FEED_SLOT_H
#define SHARD_FEED_SLOT_H

#include "libshard/feed/cursor.h"
#include "libshard/feed/layout.h"
#include "shard_pack.h"

struct steps;

struct slot {
	uint8_t *memory; /* const: a part of a ring, or an address of a GPU's memory */
	uint64_t *record;
	uint8_t *row_flags;
	uint16_t *component; /* used by mixtures only */
	/* [whole_count of the layout][size_rows]; NULL: no images differ in size */
	struct shard_size *size;
	uint32_t size_rows;
	struct place place;
	uint32_t rows;
	uint32_t first; /* 0; or of a copy, which stands for the rows from here on */
	bool lent;	/* the caller has the batch */
};

/*
 * Allocate what describes the rows.  Returns false if there is no memory.  Call slot_close() in
 * either case.
 */
bool slot_open(struct slot *s, uint8_t *memory, uint32_t batch_records, uint32_t whole_count);
void slot_close(struct slot *s);

/* The sizes of images number `k` of the layout, [rows]. */
static inline struct shard_size *slot_sizes(const struct slot *s, uint32_t k)
{
	return s->size + (size_t)k * s->size_rows;
}

static inline struct step_rows slot_rows(const struct slot *s)
{
	return (struct step_rows){s->record, s->row_flags, s->component};
}

/* Describe the batch in the slot.  The caller gives it back as slot `number`. */
void slot_describe(const struct slot *s, const struct layout *layout, const struct steps *steps, uint32_t number,
		   struct shard_batch *out);
/* Is the slot lent as this batch? */
bool slot_is_lent_as(const struct slot *s, const struct steps *steps, const struct shard_batch *batch);

#endif
