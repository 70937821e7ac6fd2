/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - one input of the plan to one record, or to the reason why not
 *
 * Two kinds of failure are kept apart, because only one may be skipped.  A verdict on the
 * bytes (not an image, damaged) is the same each time and belongs to the dataset.  A file
 * that cannot be read, or is not the one that was planned, says nothing about the data.
 */
#ifndef SHARDPACK_CONVERT_H
#define SHARDPACK_CONVERT_H

#include "tools/shardpack/plan/plan.h"

enum outcome {
	OUTCOME_RECORD, /* `record` and `meta` hold it */
	OUTCOME_BAD,    /* `reason` and `message`: the bytes are no good */
	OUTCOME_FAILED, /* `message`: the input could not be read */
	OUTCOME_STOP,   /* `message`: no memory, or no quarantine; going on makes no sense */
};

/* An input that is more than this cannot be an image worth packing, and is not read. */
#define INPUT_BYTES_MAX (UINT64_C(1) << 30)

struct result {
	uint64_t ordinal, input_idx;
	struct plan_input input;
	char path[PLAN_PATH_BYTES_MAX]; /* of the input; the record's key */
	size_t path_bytes;
	enum outcome outcome;
	uint32_t reason; /* enum shard_miss_reason, of OUTCOME_BAD; of a record 0, or which damage was accepted */
	char message[320]; /* why; empty if there is nothing to say */
	uint8_t *record; /* group 0: the caller's memory, of converter_record_bytes() */
	uint8_t *meta;	 /* group 1, behind it */
	struct shard_tally *tally; /* pipeline.h: of this record alone, without its class */
};

/* All groups of a record of images. */
size_t converter_record_bytes(const struct shard_schema *s);

/* Where inputs that are left out are kept; quarantine.h. */
struct quarantine;
struct budget;
struct stored;

/* What one thread needs. */
struct converter;

/*
 * `stored` may be NULL if the plan has no files, `quarantine` in any case; they and the plan must outlive the converter,
 * and so must the budget, which all converters share; one that is alone needs none.  NULL when memory ran out.
 */
struct converter *converter_open(const struct plan *plan, int source_fd, const struct stored *stored,
				 const struct quarantine *quarantine, struct budget *budget);
void converter_close(struct converter *c);

/* Read, decode and transform the input at r->ordinal, and its fields, into r; r->record must be set. */
void converter_run(struct converter *c, struct result *r);

#endif /* SHARDPACK_CONVERT_H */
