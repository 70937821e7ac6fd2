/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - where the arrays of a batch lie in its memory
 *
 * A batch holds one block for each large group.  Of small groups it holds one dense array for each
 * field.  Each array begins on a page of its own.
 */
#ifndef SHARD_FEED_LAYOUT_H
#define SHARD_FEED_LAYOUT_H

#include <stdbool.h>
#include <string.h>

#include "shard.h"

#define LAYOUT_ALIGN	 4096u
#define LAYOUT_LARGE	 4096u /* a group is large if its records have so many bytes */
#define LAYOUT_SLOTS_MAX 1024u /* the size of so many batches fits a size_t */
#define UNIT_ODD	 UINT32_MAX

struct layout { /* const once it is planned */
	const struct shard_schema *schema;
	uint64_t group_at[SHARD_GROUPS_MAX], field_at[SHARD_FIELDS_MAX];
	uint64_t slot_bytes;
	uint64_t record_bytes; /* of one row in all arrays */
	uint32_t field_count[SHARD_GROUPS_MAX];
	struct spread_field {
		uint64_t at;			     /* where the array of the field begins */
		uint32_t bytes;			     /* of the field in one record */
		uint32_t offset;		     /* of the field in the record */
	} field[SHARD_GROUPS_MAX][SHARD_FIELDS_MAX]; /* the fields of each group */
	uint32_t unit_shift[SHARD_GROUPS_MAX];	     /* log2 of unit_records, or UNIT_ODD */
};

/* A large group is delivered as it lies in the shard, a small one field by field. */
static inline bool layout_is_large(const struct shard_group *g)
{
	return g->stride >= LAYOUT_LARGE;
}

/* With `in_place` large groups have no array.  Returns false if a batch would not fit memory. */
bool layout_plan(struct layout *out, const struct shard_schema *schema, uint32_t batch_records, bool in_place);

/* Returns the bytes of so many rows of a group in a batch; *at becomes where they begin. */
uint64_t layout_group(const struct layout *l, uint32_t group, uint32_t rows, uint64_t *at);

/* Returns the unit of a record, which is number `inside` of its shard. */
static inline uint64_t layout_unit_of(const struct layout *l, uint32_t group, uint64_t inside)
{
	uint32_t shift = l->unit_shift[group];

	return shift == UNIT_ODD ? inside / l->schema->group[group].unit_records : inside >> shift;
}

/* The compiler turns lengths that it knows into moves, and the others into calls. */
__attribute__((always_inline)) static inline void layout_copy_field(uint8_t *dst, const uint8_t *src, uint32_t bytes)
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

/* Copy a record of a small group to its row in each field's array. */
static inline void layout_spread(const struct layout *l, uint32_t group, const uint8_t *record, uint64_t row,
				 uint8_t *slot)
{
	for (uint32_t i = 0; i < l->field_count[group]; i++) {
		const struct spread_field *f = &l->field[group][i];

		layout_copy_field(slot + f->at + row * f->bytes, record + f->offset, f->bytes);
	}
}

#endif
