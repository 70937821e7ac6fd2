/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - the layout of a record: its rules, and sums over its fields
 */
#ifndef SHARD_DISK_SCHEMA_H
#define SHARD_DISK_SCHEMA_H

#include <stdbool.h>

#include "shard.h"

/* I18 to I33 of format/SHARD.md.  Counts are within limits and names NUL-padded already. */
int schema_check(const struct shard_schema *s, struct shard_error *err);

/* Do records of both look the same, byte for byte? */
bool schema_equal(const struct shard_schema *a, const struct shard_schema *b);

/* Bytes of a record in all groups, padding between records included. */
uint64_t schema_strides(const struct shard_schema *s);

/* Channels of a u8 tensor for statistics (format/SHARD.md 2.6), and its elements. */
uint64_t schema_channels(const struct shard_field *f);
uint64_t schema_elements(const struct shard_field *f);
bool schema_is_integer_scalar(const struct shard_field *f);

#endif
