/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - where the arrays of a batch lie in its memory
 *
 * A batch holds one block for each large group.  Of small groups it holds one dense array for each
 * field, and so it does of the group of a field whose rows are remade.  Each array begins on a page
 * of its own.  Fields that nobody wants have no array, and a group of such fields alone has no
 * place at all: it is neither read nor hashed.
 */
#ifndef SHARD_FEED_LAYOUT_H
#define SHARD_FEED_LAYOUT_H

#include <stdbool.h>
#include <string.h>

#include "libshard/format/format.h"
#include "shard.h"

#define LAYOUT_ALIGN	 4096u
#define LAYOUT_LARGE	 4096u			/* a group is large if its records have so many bytes */
#define LAYOUT_SLOTS_MAX 1024u			/* the size of so many batches fits a size_t */
#define LAYOUT_WHOLE_MAX (SHARD_FIELDS_MAX / 2) /* each has a field with its sizes */
#define UNIT_ODD	 UINT32_MAX

struct layout {					       /* const once it is planned */
	const struct shard_schema *schema;	       /* of the records */
	const struct shard_schema *batch;	       /* of the batch; not `schema` if this is of a part */
	uint32_t fields;			       /* a bit for each field that is wanted */
	uint32_t group_count, group[SHARD_GROUPS_MAX]; /* the groups that have a wanted field, ascending */
	uint32_t groups, blocks;		       /* a bit for each of them, and for each that is one block */
	uint64_t group_at[SHARD_GROUPS_MAX], field_at[SHARD_FIELDS_MAX];
	uint64_t slot_bytes;
	uint64_t record_bytes; /* of one row in all arrays */
	uint32_t field_count[SHARD_GROUPS_MAX];
	struct spread_field {
		uint64_t at;			     /* where the array of the field begins */
		uint64_t bytes;			     /* of the field in one row */
		uint32_t offset;		     /* of the field in the record */
		uint32_t narrow;		     /* 1 + number of a field that has less room in the record; or 0 */
	} field[SHARD_GROUPS_MAX][SHARD_FIELDS_MAX]; /* the fields of each group */
	uint32_t unit_shift[SHARD_GROUPS_MAX];	     /* log2 of unit_records, or UNIT_ODD */
	uint32_t whole_count;
	struct whole_field { /* numbers of fields: images that differ in size, and what says how large they are */
		uint32_t image, size, length;
	} whole[LAYOUT_WHOLE_MAX]; /* those that are wanted */
};

/* A large group is delivered as it lies in the shard, a small one field by field. */
static inline bool layout_is_large(const struct shard_group *g)
{
	return g->stride >= LAYOUT_LARGE;
}

/*
 * `fields` has a bit for each field that is wanted, and `uneven` one for each group that is no
 * block, however large.  `remade` is NULL, or says for each field how many bytes a row of it has in
 * a batch; 0: those of the record.  Returns false if a batch would not fit memory.
 */
bool layout_plan(struct layout *out, const struct shard_schema *schema, uint32_t fields, uint32_t uneven,
		 uint32_t batch_records, const uint64_t *remade);

/*
 * How the records of one dataset of a mixture come to the same batch.  It stores some fields in
 * other places, or with less room for values that vary in length.
 */
void layout_plan_part(struct layout *out, const struct layout *batch, const struct shard_schema *schema);

/* The layout of a batch, and of each part of a mixture if the parts store fields differently. */
struct layouts {
	const struct layout *batch;
	struct layout *part;	    /* [part_count]; NULL: the records of all shards are as `batch` says */
	const uint64_t *part_shard; /* as in struct shard_dataset */
	uint32_t part_count;	    /* 0 without `part` */
};

/* The layout by which the records of a shard come to the batch. */
static inline const struct layout *layouts_of(const struct layouts *l, uint64_t shard)
{
	uint32_t p = 0;

	while (p < l->part_count && shard >= l->part_shard[p + 1])
		p++;
	return l->part_count ? &l->part[p] : l->batch;
}

/* All of them in turn: NULL behind the last one. */
static inline const struct layout *layouts_at(const struct layouts *l, uint32_t i)
{
	return l->part_count ? (i < l->part_count ? &l->part[i] : NULL) : i ? NULL : l->batch;
}

static inline bool layout_has_field(const struct layout *l, uint32_t field)
{
	return l->fields >> field & 1;
}

static inline bool layout_is_block(const struct layout *l, uint32_t group)
{
	return l->blocks >> group & 1;
}

/* Returns the array of a wanted field of a group that is no block. */
const struct spread_field *layout_array(const struct layout *l, uint32_t field);

/* Does a batch hold anything of the group? */
static inline bool layout_has_group(const struct layout *l, uint32_t group)
{
	return l->field_count[group];
}

/* Returns where row 0 of a wanted field is in a batch; rows are *stride apart. */
static inline uint64_t layout_rows(const struct layout *l, uint32_t field, uint64_t *stride)
{
	const struct shard_field *f = &l->schema->field[field];

	*stride = layout_is_block(l, f->group) ? f->stride : layout_array(l, field)->bytes;
	return l->field_at[field];
}

/* Returns the bytes of so many rows of a group in a batch; *at becomes where they begin. */
uint64_t layout_group(const struct layout *l, uint32_t group, uint32_t rows, uint64_t *at);

/* Returns the unit of a record, which is number `inside` of its shard. */
static inline uint64_t layout_unit_of(const struct layout *l, uint32_t group, uint64_t inside)
{
	uint32_t shift = l->unit_shift[group];

	return shift == UNIT_ODD ? inside / l->schema->group[group].unit_records : inside >> shift;
}

/* Copy a value to a row with more room.  What is behind it there becomes zeros. */
void layout_widen(const struct layout *l, const struct spread_field *f, const uint8_t *record, uint8_t *row);

/* Copy a record of a group that is not a block to its row in each field's array. */
static inline void layout_spread(const struct layout *l, uint32_t group, const uint8_t *record, uint64_t row,
				 uint8_t *slot)
{
	for (uint32_t i = 0; i < l->field_count[group]; i++) {
		const struct spread_field *f = &l->field[group][i];

		if (f->narrow)
			layout_widen(l, f, record, slot + f->at + row * f->bytes);
		else
			record_copy_field(slot + f->at + row * f->bytes, record + f->offset, (uint32_t)f->bytes);
	}
}

#endif
