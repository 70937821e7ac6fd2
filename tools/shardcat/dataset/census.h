/* SPDX-License-Identifier: Apache-2.0 */
/*
 * census.h - sums of every field, records of every class, and copies, of a whole dataset or shard
 */
#ifndef SHARD_COUNT_CENSUS_H
#define SHARD_COUNT_CENSUS_H

#include "tools/shardcat/dataset/repeats.h"
#include "tools/shardcat/dataset/sums.h"
#include "tools/shardcat/dataset/target.h"

struct census_field {
	uint32_t channels; /* 0: this field has no statistics */
	bool recorded;	   /* the dataset has its sums */
	struct sums sums[SUMS_CHANNELS_MAX];
};

struct census { /* start it zeroed; large, so on the heap */
	struct target *target;
	bool has_read; /* the records were read, not only the recorded sums */
	struct census_field field[SHARD_FIELDS_MAX];

	const struct shard_field *label; /* NULL: records have none */
	bool classes_recorded;
	uint64_t class_count, *class_records; /* of labels from 0; class_count is 0 if nothing is known */
	uint64_t other_labels;		      /* records whose label is negative or beyond */

	bool has_content; /* there are fields beside the label, so that records can be copies */
	struct repeats repeats;
};

/*
 * The recorded sums, without reading any record.  Returns an exit code, having said why; close in
 * any case.
 */
int census_open(struct census *c, struct target *t);

/* Read all records.  Returns EXIT_BAD if the recorded sums differ from the sums of the records. */
int census_read(struct census *c, uint64_t memory_bytes);

void census_close(struct census *c);

#endif
