/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the bytes of a record: where fields are not, and where ragged fields end
 */
#ifndef SHARD_DISK_RECORD_H
#define SHARD_DISK_RECORD_H

#include "shard.h"

/* The bytes of a stride that no field covers, which must be zero, ascending. */
struct record_holes {
	uint32_t count;
	struct {
		uint32_t offset, bytes;
	} hole[SHARD_FIELDS_MAX + 1];
};
void record_holes(const struct shard_schema *s, uint32_t group, struct record_holes *out);

/* I49, I57, I58 for `count` decoded records of a group at `data`.  `first` is for the message. */
int record_check_holes(const struct record_holes *holes, const void *data, uint64_t stride, uint64_t first,
		       uint64_t count, struct shard_error *err);

/* One record: `field_data` of a ragged field and `lengths`, the bytes of its length field. */
int record_check_ragged(const struct shard_field *f, const uint8_t *field_data, const uint8_t *lengths, uint64_t record,
			struct shard_error *err);

#endif
