/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - the memory that batches are delivered in
 *
 * Slots lie one behind the other.  A slot holds one block per large group and, for small groups, one dense array per
 * field, each on a page of its own.
 */
#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/buffer.h"
#include "libshard/load/loader.h"

#define LARGE_STRIDE 4096u

bool group_is_large(const struct shard_group *g)
{
	return g->stride >= LARGE_STRIDE;
}

bool ring_plan(const struct shard_schema *s, uint32_t batch_records, bool in_place, struct layout *out)
{
	uint64_t at = 0, bytes;

	memset(out, 0, sizeof(*out));
	for (uint32_t g = 0; g < s->group_count; g++) {
		out->group_at[g] = at;
		out->unit_shift[g] = s->group[g].unit_records & (s->group[g].unit_records - 1)
					     ? UNIT_ODD
					     : (uint32_t)__builtin_ctz(s->group[g].unit_records);
		for (uint32_t f = 0; f < s->field_count; f++) {
			if (s->field[f].group != g)
				continue;
			out->record_bytes += group_is_large(&s->group[g]) ? 0 : s->field[f].bytes;
			out->field_at[f] = group_is_large(&s->group[g]) ? out->group_at[g] + s->field[f].offset : at;
			out->field[g][out->field_count[g]++] = (struct spread_field){out->field_at[f], (uint32_t)s->field[f].bytes,
											   (uint32_t)s->field[f].offset};
			if (!group_is_large(&s->group[g]))
				at += align_up(batch_records * s->field[f].bytes, LOADER_ARRAY_ALIGN); /* below 2^32 x 2^12 */
		}
		if (!group_is_large(&s->group[g]))
			continue;
		if (!mul_fits(in_place ? 0 : batch_records, s->group[g].stride, &bytes) || !add_fits(at, align_up(bytes, LOADER_ARRAY_ALIGN), &at))
			return false;
		out->record_bytes += s->group[g].stride;
	}
	out->slot_bytes = at;
	return at < SIZE_MAX / 2 / LOADER_SLOTS_MAX;
}

uint64_t ring_bytes(const struct shard_loader *l)
{
	return l->layout.slot_bytes * l->o.slot_count;
}

static bool open_slots(struct shard_loader *l)
{
	l->slot = mem_array(l->o.slot_count, sizeof(*l->slot));
	l->queue = mem_array(l->o.slot_count, sizeof(*l->queue));
	l->free = mem_array(l->o.slot_count, sizeof(*l->free));
	l->ring = l->lent_ring ? l->lent_ring : buffer_open((size_t)ring_bytes(l));
	if (!l->slot || !l->queue || !l->free || !l->ring)
		return false;
	if (!l->lent_ring)
		buffer_keep(l->ring, (size_t)ring_bytes(l));
	for (uint32_t i = 0; i < l->o.slot_count; i++) {
		struct slot *s = &l->slot[i];

		s->memory = l->ring + i * l->layout.slot_bytes;
		s->record = mem_array(l->o.batch_records, sizeof(*s->record));
		s->row_flags = mem_array(l->o.batch_records, sizeof(*s->row_flags));
		if (!s->record || !s->row_flags)
			return false;
		l->free[i] = l->o.slot_count - 1 - i; /* the first is taken first */
	}
	l->free_count = l->o.slot_count;
	return true;
}

int ring_open(struct shard_loader *l, struct shard_error *err)
{
	if (open_slots(l))
		return SHARD_OK;
	ring_close(l, false);
	return error_set(err, SHARD_E_MEMORY, "no memory for %u slots of %" PRIu64 " bytes (%u records each); ask for smaller batches or "
			 "fewer slots", l->o.slot_count, l->layout.slot_bytes, l->o.batch_records);
}

void ring_close(struct shard_loader *l, bool inherited)
{
	for (uint32_t i = 0; l->slot && i < l->o.slot_count; i++) {
		mem_free(l->slot[i].record);
		mem_free(l->slot[i].row_flags);
	}
	if (l->ring && !l->lent_ring && !inherited)
		buffer_close(l->ring, (size_t)ring_bytes(l));
	mem_free(l->slot);
	mem_free(l->queue);
	mem_free(l->free);
	l->slot = NULL;
	l->queue = l->free = NULL;
	l->ring = NULL;
}

uint64_t ring_group(const struct shard_loader *l, uint32_t group, uint32_t rows, uint64_t *at)
{
	const struct shard_group *g = &l->ds->m.schema.group[group];
	const struct spread_field *last;

	*at = l->layout.group_at[group];
	if (group_is_large(g))
		return rows * g->stride;
	if (!l->layout.field_count[group])
		return 0;
	last = &l->layout.field[group][l->layout.field_count[group] - 1];
	return last->at + (uint64_t)rows * last->bytes - *at;
}

void ring_describe(const struct shard_loader *l, const struct slot *s, uint32_t number, struct shard_batch *out)
{
	const struct shard_schema *schema = &l->ds->m.schema;
	uint64_t step_records = (uint64_t)l->o.world * l->o.batch_records;

	memset(out, 0, sizeof(*out));
	out->epoch = s->place.epoch;
	out->position = s->place.first_position + s->place.step * step_records;
	out->step = out->position / step_records;
	out->record_count = s->rows;
	out->slot = number;
	out->record = s->record;
	out->row_flags = s->row_flags;
	for (uint32_t f = schema->field_count; f-- > 0;) { /* backwards: a small group shows its first field */
		const struct shard_field *field = &schema->field[f];
		bool large = group_is_large(&schema->group[field->group]);

		out->field[f] = (struct shard_rows){s->memory + l->layout.field_at[f], large ? field->stride : field->bytes, NULL};
		out->group[field->group] = large ? (struct shard_rows){s->memory + l->layout.group_at[field->group], field->stride, NULL}
						 : out->field[f];
	}
}
