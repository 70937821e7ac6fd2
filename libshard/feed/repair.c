/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.c - rows whose records are damaged: which they are, and what stands in for them
 *
 * The substitute of a record is the first good record behind it that is in the selection, if there
 * is one.  So it depends on the bytes of the dataset and on the selection alone.
 */
#include "libshard/feed/feed.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/dataset/dataset.h"

void row_set_aside(struct row_source *s, uint8_t *row_flags, const struct shard_error *problem)
{
	*row_flags |= ROW_DAMAGED;
	if (!problem)
		return;
	pthread_mutex_lock(&s->lock);
	s->damage = *problem;
	pthread_mutex_unlock(&s->lock);
}

/* ---- how large the images of a slot are, if they differ in size ---- */

/*
 * Hashes cannot find such damage: the program that wrote the sizes has hashed them.
 */

/* The size of an image is wrong.  Say of which record. */
static int refuse_size(const struct row_source *source, const struct shard_field *image, const uint8_t *size,
		       const uint8_t *length, uint64_t record, struct shard_error *err)
{
	uint64_t shard = dataset_shard_of(source->ds, record);
	struct shard_reader *r;
	int rc;

	record -= source->ds->first_record[shard];
	rc = record_check_size(image, size, length, record, err);
	if (!rc)
		rc = error_set(err, SHARD_E_CORRUPT,
			       "I57: record %" PRIu64 ": field '%.47s' has %u pixels; its shape allows %u", record,
			       image->name, load32(length), image->shape[0]);
	error_prefix(err, dataset_use_shard(source->ds, shard, &r, NULL) ? source->ds->dir : r->path);
	return rc;
}

int slot_sizes_take(struct row_source *source, struct slot *s, bool strict, struct shard_error *err)
{
	const struct layout *l = source->layouts.batch;
	struct shard_error problem;

	for (uint32_t k = 0; k < l->whole_count; k++) {
		const struct whole_field *w = &l->whole[k];
		const struct shard_field *image = &l->schema->field[w->image];
		uint64_t size_stride, length_stride;
		const uint8_t *sizes = s->memory + layout_rows(l, w->size, &size_stride);
		const uint8_t *lengths = s->memory + layout_rows(l, w->length, &length_stride);

		for (uint32_t row = s->first; row < s->rows; row++) {
			const uint8_t *size = sizes + row * size_stride, *length = lengths + row * length_stride;
			struct shard_size got = {load32(size), load32(size + 4)};
			uint32_t pixels = load32(length);

			if (s->row_flags[row] & ROW_DAMAGED)
				continue;
			if (pixels && (uint64_t)got.height * got.width == pixels && pixels <= image->shape[0]) {
				slot_sizes(s, k)[row] = got;
				continue;
			}
			if (strict)
				return refuse_size(source, image, size, length, s->record[row], err);
			refuse_size(source, image, size, length, s->record[row], &problem);
			row_set_aside(source, &s->row_flags[row], &problem);
		}
	}
	return SHARD_OK;
}

/* ---- substitutes and zeros ---- */

#define TRIES 1024u /* more damaged records in a row are not a few bad sectors */

static void mask(const struct layout *layout, struct slot *s, uint32_t row)
{
	const struct shard_schema *schema = layout->schema;

	for (uint32_t k = 0; k < layout->whole_count; k++)
		slot_sizes(s, k)[row] = (struct shard_size){0, 0};
	for (uint32_t k = 0; k < layout->group_count; k++) {
		uint32_t g = layout->group[k];
		uint64_t stride = schema->group[g].stride;

		if (layout_is_block(layout, g))
			memset(s->memory + layout->group_at[g] + row * stride, 0, (size_t)stride);
		for (uint32_t i = 0; !layout_is_block(layout, g) && i < layout->field_count[g]; i++) {
			const struct spread_field *f = &layout->field[g][i];

			memset(s->memory + f->at + (uint64_t)row * f->bytes, 0, f->bytes);
		}
	}
}

/* Put the next good record in the row's place. */
static int substitute(struct row_source *source, struct scratch *scratch, struct slot *s, uint32_t row,
		      struct fill_counts *counts, struct shard_error *err)
{
	struct steps_source from = steps_source(source->steps, slot_rows(s), row);
	const struct shard_dataset *ds = from.ds ? from.ds : source->ds;
	uint64_t damaged = s->record[row] - from.base, at = damaged;
	bool early = steps_is_early(source->steps, s->place.epoch);
	uint64_t records = early ? source->steps->early.records : ds->m.record_count;
	uint64_t count = early ? source->steps->early.order_records : from.selection ? from.selection->count : records;
	uint64_t tries = count - 1 < TRIES ? count - 1 : TRIES;
	struct shown shown;
	int rc = SHARD_E_CORRUPT;

	for (uint64_t i = 1; rc == SHARD_E_CORRUPT && i <= tries; i++) {
		at = from.selection ? selection_next(from.selection, at + 1) : at + 1;
		if (at >= records)
			at = from.selection ? selection_at(from.selection, 0) : 0;
		s->record[row] = from.base + at;
		rc = slot_fill_one(source, scratch, s, row, counts, err);
	}
	if (rc == SHARD_E_CORRUPT)
		return error_set(err, rc,
				 "%s: record %" PRIu64 " and the next %" PRIu64 " are damaged, so no substitute was "
				 "found; restore the shard, or open with SHARD_CORRUPT_MASK",
				 show(&shown, ds->dir), damaged, tries);
	return rc;
}

int repair_rows(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		struct shard_error *err)
{
	int rc = SHARD_OK;

	if (source->on_corrupt == SHARD_CORRUPT_FAIL)
		return SHARD_OK;
	for (uint32_t row = s->first; !rc && row < s->rows; row++) {
		if (!(s->row_flags[row] & ROW_DAMAGED))
			continue;
		s->row_flags[row] &= (uint8_t)~ROW_DAMAGED;
		if (source->on_corrupt == SHARD_CORRUPT_MASK) {
			slot_let_go_row(s, row);
			mask(source->layouts.batch, s, row);
			s->row_flags[row] |= SHARD_ROW_MASKED;
			counts->masked++;
			continue;
		}
		rc = substitute(source, scratch, s, row, counts, err);
		s->row_flags[row] |= SHARD_ROW_SUBSTITUTED;
		counts->substituted++;
	}
	return rc;
}
