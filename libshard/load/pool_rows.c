/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_rows.c - the rows of a batch: where they lie in the slabs of a pool, gathered from there by a kernel, or left there
 */
#include <assert.h>

#include "libshard/load/pool.h"
#include "libshard/store/read/dataset.h"

/* Rows of the layouts of slabs and batches: the same arrays at other places.  In place a batch has none of large groups. */
void pool_list_pieces(struct shard_loader *l)
{
	const struct shard_schema *s = &l->ds->m.schema;
	const struct layout *from = &l->pool->feed->layout, *to = &l->layout;
	struct gather_call *call = &l->pool->call;

	call->slab_bytes = from->slot_bytes;
	call->slab_rows = l->pool->slab_rows;
	call->piece_count = 0;
	for (uint32_t g = 0; g < s->group_count; g++) {
		if (layout_is_large(&s->group[g])) {
			if (!l->o.pool_in_place)
				call->piece[call->piece_count++] =
					(struct gather_piece){from->group_at[g], to->group_at[g], (uint32_t)s->group[g].stride, 0};
			continue;
		}
		for (uint32_t i = 0; i < to->field_count[g]; i++)
			call->piece[call->piece_count++] = (struct gather_piece){from->field[g][i].at, to->field[g][i].at, to->field[g][i].bytes, 0};
	}
}

uint64_t pool_slabs_until(const struct pool *p, uint64_t epoch, uint64_t slab)
{
	return p->origin + (epoch - p->origin_epoch) * p->epoch_slabs + slab - p->origin_slab;
}

/* ---- where a row is ---- */

/* In the pool of everything: the row of a record. */
static uint64_t held_row(const struct pool *p, uint64_t record)
{
	uint64_t n = p->share.record_count, r = p->share.run_records, place = (record + n - p->held_phase) % n;

	return place / r < n / r ? p->home[place / r] * r + place % r : place;
}

/* Where a row of the share is now: slab, and row within it. */
static const struct shard_batch *find_row(const struct pool *p, uint64_t epoch, uint64_t row, uint32_t *inside)
{
	uint64_t number = row / p->slab_rows, n;

	n = p->is_held ? (number + p->epoch_slabs - p->origin_slab) % p->epoch_slabs : pool_slabs_until(p, epoch, number);
	assert(n >= p->first && n < p->end);
	*inside = (uint32_t)(row % p->slab_rows);
	return &p->slab[p->slot[n % p->slab_count]];
}

static void place_large(const struct shard_loader *l, const struct device_slot *to, uint32_t i, uint64_t slab_at, uint32_t inside)
{
	const struct shard_schema *s = &l->ds->m.schema;

	for (uint32_t g = 0; g < s->group_count; g++)
		to->row_at[g * l->o.batch_records + i] = slab_at + inside * s->group[g].stride;
}

/* Where row `i` of the batch is in the pool's memory, as the kernel counts; what became of it when it was read, too. */
static uint32_t place_row(struct shard_loader *l, const struct order *o, const struct order_rank *rank, const struct device_slot *to, uint32_t i,
			  uint64_t *padded_rows)
{
	struct pool *p = l->pool;
	const struct slot *s = &to->as;
	const struct shard_batch *slab;
	uint32_t inside, which;
	bool padded;
	uint64_t position = order_rank_position(rank, s->place.step, i, &padded), row;

	if (p->is_held)
		row = held_row(p, s->record[i]);
	else
		row = padded ? order_share_padding(&p->share, (*padded_rows)++) : order_share_row(&p->share, order_place(o, position));
	slab = find_row(p, s->place.epoch, row, &inside);
	which = slab->slot & ~DEVICE_BATCH;
	s->record[i] = slab->record[inside]; /* another one if it was substituted */
	s->row_flags[i] |= slab->row_flags[inside];
	if (to->row_at)
		place_large(l, to, i, which * p->feed->layout.slot_bytes, inside);
	return which * p->slab_rows + inside;
}

/* ---- a batch ---- */

int pool_gather(struct shard_loader *l, struct device_side *d, const struct order *o, struct device_slot *to, struct shard_error *err)
{
	struct pool *p = l->pool;
	struct gather_call *call = &p->call;
	struct order_rank rank = l->steps.rank;
	uint64_t padded_rows = 0;
	int rc = SHARD_OK;

	rank.first_position = to->as.place.first_position;
	call->from = p->feed->device->memory;
	call->to = (uintptr_t)to->as.memory;
	for (uint32_t i = 0; !rc && i < to->as.rows; i += call->row_count) {
		call->first_row = i;
		call->row_count = to->as.rows - i < GATHER_ROWS ? to->as.rows - i : GATHER_ROWS;
		for (uint32_t k = 0; k < call->row_count; k++)
			call->row[k] = place_row(l, o, &rank, to, i + k, &padded_rows);
		if (call->piece_count)
			rc = cuda_gather_launch(d->cuda, &p->gather, call, d->copy, err);
	}
	return rc;
}

void pool_describe(const struct shard_loader *l, const struct device_slot *s, struct shard_batch *out)
{
	const struct shard_schema *schema = &l->ds->m.schema;
	const struct shard_loader *feed = l->pool->feed;
	const uint8_t *memory = (const uint8_t *)(uintptr_t)feed->device->memory;

	for (uint32_t f = 0; f < schema->field_count; f++) {
		uint32_t g = schema->field[f].group;
		const uint64_t *row_at = s->row_at + g * l->o.batch_records;

		if (!layout_is_large(&schema->group[g]))
			continue;
		out->group[g] = (struct shard_rows){memory + feed->layout.group_at[g], schema->group[g].stride, row_at};
		out->field[f] = (struct shard_rows){memory + feed->layout.field_at[f], schema->group[g].stride, row_at};
	}
}

bool pool_is_read(const struct device_side *d, uint64_t slab)
{
	for (uint32_t i = 0; i < d->slot_count; i++) {
		const struct device_slot *s = &d->slot[i];

		if ((s->queued || s->lent) && s->row_at && slab >= s->slab && slab < s->slab_end)
			return true;
	}
	return false;
}
