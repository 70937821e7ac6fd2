/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - where the arrays of a batch lie in its memory
 *
 * A batch holds one block for each large group.  Of small groups it holds one dense array for each
 * field.  Each array begins on a page of its own.  Fields that nobody wants have no array, and a
 * group of such fields alone has no place at all: it is neither read nor hashed.
 */
#ifndef SHARD_FEED_LAYOUT_H
#define SHARD_FEED_LAYOUT_H

#include <stdbool.h>
#include <string.h>

#include "libshard/disk/record.h"
#include "shard.h"

#define LAYOUT_ALIGN	 4096u
#define LAYOUT_LARGE	 4096u /* a group is large if its records have so many bytes */
#define LAYOUT_SLOTS_MAX 1024u /* the size of so many batches fits a size_t */
#define UNIT_ODD	 UINT32_MAX

struct layout { /* const once it is planned */
	const struct shard_schema *schema;
	uint32_t fields;			       /* a bit for each field that is wanted */
	uint32_t group_count, group[SHARD_GROUPS_MAX]; /* the groups that have a wanted field, ascending */
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

/*
 * `fields` has a bit for each field that is wanted.  With `in_place` large groups have no array.
 * Returns false if a batch would not fit memory.
 */
bool layout_plan(struct layout *out, const struct shard_schema *schema, uint32_t fields, uint32_t batch_records,
		 bool in_place);

static inline bool layout_has_field(const struct layout *l, uint32_t field)
{
	return l->fields >> field & 1;
}

/* Does a batch hold anything of the group? */
static inline bool layout_has_group(const struct layout *l, uint32_t group)
{
	return l->field_count[group];
}

/* Returns the bytes of so many rows of a group in a batch; *at becomes where they begin. */
uint64_t layout_group(const struct layout *l, uint32_t group, uint32_t rows, uint64_t *at);

/* Returns the unit of a record, which is number `inside` of its shard. */
static inline uint64_t layout_unit_of(const struct layout *l, uint32_t group, uint64_t inside)
{
	uint32_t shift = l->unit_shift[group];

	return shift == UNIT_ODD ? inside / l->schema->group[group].unit_records : inside >> shift;
}

/* Copy a record of a small group to its row in each field's array. */
static inline void layout_spread(const struct layout *l, uint32_t group, const uint8_t *record, uint64_t row,
				 uint8_t *slot)
{
	for (uint32_t i = 0; i < l->field_count[group]; i++) {
		const struct spread_field *f = &l->field[group][i];

		record_copy_field(slot + f->at + row * f->bytes, record + f->offset, f->bytes);
	}
}

#endif
