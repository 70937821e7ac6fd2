/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.h - the memory of one batch, and which rows are in it
 *
 * A slot belongs to one owner at a time: to nobody while it is free, to a thread that fills it, or to
 * the consumer and its caller.  Its contents therefore need no lock.
 */
#ifndef SHARD_LOAD_SLOT_H
#define SHARD_LOAD_SLOT_H

#include "libshard/load/cursor.h"
#include "libshard/load/layout.h"

struct steps;

struct slot {
	uint8_t *memory; /* const: part of a ring; or, for a GPU, an address of the device */
	uint64_t *record;
	uint8_t *row_flags;
	struct place place;
	uint32_t rows;
	bool lent; /* the consumer's: its caller has the batch */
};

/* Memory for what describes the rows.  False if there is none; slot_close() is due either way. */
bool slot_open(struct slot *s, uint8_t *memory, uint32_t batch_records);
void slot_close(struct slot *s);

/* The batch in the slot.  `number` is how its caller gives it back. */
void slot_describe(const struct slot *s, const struct layout *layout, const struct steps *steps, uint32_t number,
		   struct shard_batch *out);
/* Is the slot lent as this batch? */
bool slot_is_lent_as(const struct slot *s, const struct steps *steps, const struct shard_batch *batch);

#endif
