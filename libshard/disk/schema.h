/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - what a record looks like: checked, laid out, and its places without a field
 */
#ifndef LIBSHARD_DISK_SCHEMA_H
#define LIBSHARD_DISK_SCHEMA_H

#include <stdbool.h>

#include "shard.h"

/* I18 to I33 of format/SHARD.md.  Counts are within limits and names NUL-padded already. */
int schema_check(const struct shard_schema *s, struct shard_error *err);

/* Do records of both look the same, byte for byte? */
bool schema_equal(const struct shard_schema *a, const struct shard_schema *b);

/* Bytes of a record in all groups, with what is between records. */
uint64_t schema_strides(const struct shard_schema *s);

/* Channels of a u8 tensor for statistics (format/SHARD.md 2.6), and its elements. */
uint64_t schema_channels(const struct shard_field *f);
uint64_t schema_elements(const struct shard_field *f);
bool schema_is_integer_scalar(const struct shard_field *f);

/* The bytes of a stride that no field covers, which must be zero, ascending. */
struct schema_holes {
	uint32_t count;
	struct {
		uint32_t offset, bytes;
	} hole[SHARD_FIELDS_MAX + 1];
};
void schema_holes(const struct shard_schema *s, uint32_t group, struct schema_holes *out);

/* I49, I57, I58 for `count` decoded records of a group at `data`.  `first` is for the message. */
int schema_check_holes(const struct schema_holes *holes, const void *data, uint64_t stride, uint64_t first, uint64_t count,
		       struct shard_error *err);

/* One record: `field_data` of a ragged field and `lengths`, the bytes of its length field. */
int schema_check_ragged(const struct shard_field *f, const uint8_t *field_data, const uint8_t *lengths, uint64_t record,
			struct shard_error *err);

#endif
