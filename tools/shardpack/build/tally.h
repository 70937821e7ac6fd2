/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h - statistics of the records of a shard, whatever their fields
 *
 * Images of u8 get count, sum and sum of squares of each channel, labels the number of records of each class.  Integers,
 * so any order and any split gives the same.
 */
#ifndef SHARDPACK_TALLY_H
#define SHARDPACK_TALLY_H

#include "shard.h"
#include "tools/shardpack/image/moments.h"

#define TALLY_CHANNELS_MAX 4

struct tally_sum {
	uint64_t count, sum, sum_squares;
};

struct tally { /* start it zeroed */
	struct tally_sum channel[SHARD_FIELDS_MAX][TALLY_CHANNELS_MAX];
};

/* Channels that have moments; 0 if the field has none. */
uint32_t tally_channels(const struct shard_field *f);

/* The field that holds the class, or SHARD_FIELDS_MAX. */
uint32_t tally_label(const struct shard_schema *s);

/* Add one record: group[g] points to its bytes in each group. */
void tally_add(struct tally *t, const struct shard_schema *s, const uint8_t *const *group);

/* Add what moments.h has summed of the images of a field. */
void tally_add_moments(struct tally *t, uint32_t field, const struct moments *m);

void tally_merge(struct tally *t, const struct tally *other);

/* Hand them to the writer.  `class_records` has class_count entries; none if that is 0.  SHARD_OK or a status. */
int tally_write(const struct tally *t, const struct shard_schema *s, const uint64_t *class_records, uint64_t class_count,
		struct shard_writer *w, struct shard_error *err);

/* Bytes that they take in a shard: format/SHARD.md 2.7. */
uint64_t tally_bytes(const struct shard_schema *s, uint64_t class_count);

#endif /* SHARDPACK_TALLY_H */
