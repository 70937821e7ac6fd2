/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection.h - some records of a dataset, in ascending order: which one is the i-th?
 *
 * In memory it is a list of records or a bit for each record of the dataset, whichever is smaller.
 * Constant once it is made, so any thread may ask.
 */
#ifndef SHARD_SELECT_SELECTION_H
#define SHARD_SELECT_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"

struct shard_selection {
	char dataset_id[65], digest[65];
	uint64_t of_count; /* records of the dataset */
	uint64_t count;	   /* of them that are selected: 1 or more */

	/* One of three. */
	uint32_t *list32; /* [count] */
	uint64_t *list64; /* [count], if of_count needs more than 32 bits */
	uint64_t *bits;	  /* a bit for each record of the dataset */

	/* With bits: how many are selected before each block, and the block of every so manyth. */
	uint64_t *before; /* [blocks + 1] */
	uint64_t *hint;	  /* [count / SELECTION_HINT + 2] */
};

#define SELECTION_BLOCK_WORDS 8u    /* of 64 bits: a cache line */
#define SELECTION_HINT	      4096u /* selected records */

/* ---- making one ---- */

/* A bit for each record of the dataset, all 0.  Fails if there is no memory. */
int selection_open_bits(const struct shard_dataset *ds, uint64_t **bits, struct shard_error *err);
static inline void selection_set_bit(uint64_t *bits, uint64_t record)
{
	bits[record / 64] |= UINT64_C(1) << (record & 63);
}

/*
 * Make a selection of these bits, which it takes over and may free.  It lacks its digest:
 * selection_make() is what others call.
 */
int selection_form(struct shard_selection **out, const struct shard_dataset *ds, uint64_t *bits, const char *what,
		   struct shard_error *err);

/* ---- asking ---- */

/* MISMATCH if `s` is of another dataset.  `what` it is, for the message. */
int selection_check(const struct shard_selection *s, const struct shard_dataset *ds, const char *what,
		    struct shard_error *err);

uint64_t selection_at(const struct shard_selection *s, uint64_t i);
/* The same, if the record before it is `next` - 1: for whoever asks for all of them, in order. */
uint64_t selection_following(const struct shard_selection *s, uint64_t i, uint64_t next);
/* idx[i] becomes selection_at(s, idx[i]). */
void selection_many(const struct shard_selection *s, uint64_t *idx, size_t count);
/* How many selected records are below this one? */
uint64_t selection_below(const struct shard_selection *s, uint64_t record);
/* The first selected record from `record` on; behind the last one, the first of all. */
uint64_t selection_next(const struct shard_selection *s, uint64_t record);

/* Bytes that it takes in memory. */
uint64_t selection_bytes(const struct shard_selection *s);
/*
 * How many units of so many records hold selected ones?  A sample of neighbours tells, so it is an
 * estimate.  At least 1, and at most `count`.
 */
uint64_t selection_units(const struct shard_selection *s, uint64_t unit_records);

#endif
