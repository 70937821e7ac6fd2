/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the bytes of a record: where fields are not, where ragged fields end, sizes of images
 */
#ifndef SHARD_DISK_RECORD_H
#define SHARD_DISK_RECORD_H

#include <string.h>

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

/* I57 of one axis of one record. */
int record_check_length(const struct shard_field *f, uint32_t axis, uint32_t length, uint64_t record,
			struct shard_error *err);

/*
 * I59 of one record.  `f` is an image that has a size of its own: shard_image_size_field().  `size`
 * are the 8 bytes of its size, `length` the 4 bytes of its length field.  If this is OK, height x
 * width pixels lie at the start of the field, as long as I57 holds too.
 */
int record_check_size(const struct shard_field *f, const uint8_t *size, const uint8_t *length, uint64_t record,
		      struct shard_error *err);

/* The compiler turns lengths that it knows into moves, and the others into calls. */
__attribute__((always_inline)) static inline void record_copy_field(uint8_t *dst, const uint8_t *src, uint32_t bytes)
{
	switch (bytes) {
	case 1:
		*dst = *src;
		break;
	case 2:
		memcpy(dst, src, 2);
		break;
	case 4:
		memcpy(dst, src, 4);
		break;
	case 8:
		memcpy(dst, src, 8);
		break;
	case 16:
		memcpy(dst, src, 16);
		break;
	case 32:
		memcpy(dst, src, 32);
		break;
	case 64:
		memcpy(dst, src, 64);
		break;
	default:
		memcpy(dst, src, bytes);
	}
}

#endif
