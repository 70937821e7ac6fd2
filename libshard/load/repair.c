/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.c - rows whose records are damaged: another record, or zeros
 *
 * Which substitute a record has depends on the dataset's bytes alone: the first good one of those that follow it.
 */
#include <inttypes.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/load/loader.h"

#define TRIES 1024u /* longer stretches of damage are not an accident of a few sectors */

void repair_note(struct shard_loader *l, const struct shard_error *problem)
{
	if (!problem) /* who has no room for it has told of another one */
		return;
	pthread_mutex_lock(&l->lock);
	l->damage = *problem;
	pthread_mutex_unlock(&l->lock);
}

static void mask(const struct shard_loader *l, struct slot *s, uint32_t row)
{
	const struct shard_schema *schema = &l->ds->m.schema;

	for (uint32_t g = 0; g < schema->group_count; g++) {
		uint64_t stride = schema->group[g].stride;

		if (group_is_large(&schema->group[g]))
			memset(s->memory + l->layout.group_at[g] + row * stride, 0, (size_t)stride);
		for (uint32_t i = 0; !group_is_large(&schema->group[g]) && i < l->layout.field_count[g]; i++) {
			const struct spread_field *f = &l->layout.field[g][i];

			memset(s->memory + f->at + (uint64_t)row * f->bytes, 0, f->bytes);
		}
	}
}

/* The next good record in the row's place. */
static int substitute(struct shard_loader *l, struct member *m, struct slot *s, uint32_t row, struct fill_counts *counts,
		      struct shard_error *err)
{
	uint64_t damaged = s->record[row], count = l->ds->m.record_count, tries = count - 1 < TRIES ? count - 1 : TRIES;
	struct shown shown;
	int rc = SHARD_E_CORRUPT;

	for (uint64_t i = 1; rc == SHARD_E_CORRUPT && i <= tries; i++) {
		s->record[row] = (damaged + i) % count;
		rc = rows_fill_one(l, m, s, row, counts, err);
	}
	if (rc == SHARD_E_CORRUPT)
		return error_set(err, rc, "%s: record %" PRIu64 " and the %" PRIu64 " behind it are damaged; no substitute was found",
				 show(&shown, l->ds->dir), damaged, tries);
	return rc;
}

int repair_rows(struct shard_loader *l, struct member *m, struct slot *s, struct fill_counts *counts, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t row = 0; !rc && row < s->rows; row++) {
		if (!(s->row_flags[row] & ROW_DAMAGED))
			continue;
		s->row_flags[row] &= (uint8_t)~ROW_DAMAGED;
		if (l->o.on_corrupt == SHARD_CORRUPT_MASK) {
			mask(l, s, row);
			s->row_flags[row] |= SHARD_ROW_MASKED;
			counts->masked++;
			continue;
		}
		rc = substitute(l, m, s, row, counts, err);
		s->row_flags[row] |= SHARD_ROW_SUBSTITUTED;
		counts->substituted++;
	}
	return rc;
}
