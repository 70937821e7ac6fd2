/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.c - rows whose records are damaged become another record, or zeros
 *
 * * The substitute of a record is the first good record behind it that is in the selection, if there
 * is one.  So it depends on the bytes of the dataset and on the selection alone.
 */
#include "libshard/feed/feed.h"

#include <inttypes.h>

#include "libshard/base/error.h"
#include "libshard/dataset/dataset.h"

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
static int substitute(struct supply *supply, struct scratch *scratch, struct slot *s, uint32_t row,
		      struct fill_counts *counts, struct shard_error *err)
{
	struct steps_source from = steps_source(supply->steps, slot_rows(s), row);
	const struct shard_dataset *ds = from.ds ? from.ds : supply->ds;
	uint64_t damaged = s->record[row] - from.base, at = damaged;
	bool early = steps_is_early(supply->steps, s->place.epoch);
	uint64_t records = early ? supply->steps->early.records : ds->m.record_count;
	uint64_t count = early ? supply->steps->early.order_records : from.selection ? from.selection->count : records;
	uint64_t tries = count - 1 < TRIES ? count - 1 : TRIES;
	struct shown shown;
	int rc = SHARD_E_CORRUPT;

	for (uint64_t i = 1; rc == SHARD_E_CORRUPT && i <= tries; i++) {
		at = from.selection ? selection_next(from.selection, at + 1) : at + 1;
		if (at >= records)
			at = from.selection ? selection_at(from.selection, 0) : 0;
		s->record[row] = from.base + at;
		rc = slot_fill_one(supply, scratch, s, row, counts, err);
	}
	if (rc == SHARD_E_CORRUPT)
		return error_set(err, rc,
				 "%s: record %" PRIu64 " and the next %" PRIu64 " are damaged, so no substitute was "
				 "found; restore the shard, or open with SHARD_CORRUPT_MASK",
				 show(&shown, ds->dir), damaged, tries);
	return rc;
}

int repair_rows(struct supply *supply, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		struct shard_error *err)
{
	int rc = SHARD_OK;

	if (supply->on_corrupt == SHARD_CORRUPT_FAIL)
		return SHARD_OK;
	for (uint32_t row = s->first; !rc && row < s->rows; row++) {
		if (!(s->row_flags[row] & ROW_DAMAGED))
			continue;
		s->row_flags[row] &= (uint8_t)~ROW_DAMAGED;
		if (supply->on_corrupt == SHARD_CORRUPT_MASK) {
			mask(supply->layout, s, row);
			s->row_flags[row] |= SHARD_ROW_MASKED;
			counts->masked++;
			continue;
		}
		rc = substitute(supply, scratch, s, row, counts, err);
		s->row_flags[row] |= SHARD_ROW_SUBSTITUTED;
		counts->substituted++;
	}
	return rc;
}
