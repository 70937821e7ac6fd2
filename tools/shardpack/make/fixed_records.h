/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_records.h - records of fixed size from where the plan's slices say they lie
 *
 * A block of neighbouring ordinals is filled at a time: read, put in our byte order, integers
 * widened where the field is wider, ends of ragged fields zeroed and their lengths written.  A
 * label that is not a class makes its record bad, which is a verdict on its bytes.  All other
 * failures are not verdicts.
 */
#ifndef SHARD_CONVERT_FIXED_RECORDS_H
#define SHARD_CONVERT_FIXED_RECORDS_H

#include "shard.h"
#include "shard_pack.h"
#include "tools/shardpack/make/range.h"
#include "tools/shardpack/make/verdict.h"

struct plan;
struct quarantine;
struct stored;

#define FIXED_BLOCK_BYTES   (UINT64_C(1) << 20)
#define FIXED_BLOCK_RECORDS 4096

struct fixed_block {
	struct range place;
	uint64_t *input_idx;		  /* [place.count] */
	uint8_t *group[SHARD_GROUPS_MAX]; /* [place.count] records of the group's record_bytes */
	bool *bad;			  /* [place.count] */
	uint64_t bad_count;
	struct shard_tally *tally; /* of those that are good, without their classes */
	struct verdict verdict;	   /* RECORD: all were read, and are good or bad; else FAILED or STOP */
};

/* What one thread needs. */
struct fixed;

/* The schema is that of the plan.  NULL when memory ran out. */
struct fixed *fixed_open(const struct plan *plan, const struct shard_schema *schema, const struct stored *stored);
void fixed_close(struct fixed *f);

/* Records that a block should have, and memory for one; false when memory ran out. */
uint64_t fixed_block_records(const struct shard_schema *schema);
bool fixed_block_open(struct fixed_block *b, const struct shard_schema *schema);
void fixed_block_close(struct fixed_block *b);

/* Fill it with the records of b->place. */
void fixed_fill(struct fixed *f, struct fixed_block *b);

/* Find the bytes of the record at place `i` of a block, for each group. */
void fixed_record(const struct fixed_block *b, const struct shard_schema *schema, uint64_t i,
		  const void *group[SHARD_GROUPS_MAX]);

/* What is wrong with the bad record at place `i` of a block. */
void fixed_explain(const struct fixed *f, const struct fixed_block *b, uint64_t i, struct verdict *out);

/*
 * Copy the fields of that record, one behind the other, to quarantine.  False if `v` says why not.
 */
bool fixed_keep(const struct fixed *f, const struct fixed_block *b, uint64_t i, const struct quarantine *q,
		const char *path, struct verdict *v);

#endif
