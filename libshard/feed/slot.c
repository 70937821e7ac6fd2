/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.c - the memory that batches are delivered in: a ring of slots, and the rows that are in each
 *
 * A slot has one owner at a time: the thread that fills it, or the consumer.  So its contents need
 * no lock.
 */
#include "libshard/feed/feed.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/io.h"

bool slot_open(struct slot *s, uint8_t *memory, uint32_t batch_records, uint32_t whole_count, uint32_t resident_groups)
{
	uint32_t residents = (uint32_t)__builtin_popcount(resident_groups);

	s->memory = memory;
	s->record = mem_array(batch_records, sizeof(*s->record));
	s->row_flags = mem_array(batch_records, sizeof(*s->row_flags));
	s->component = mem_array(batch_records, sizeof(*s->component));
	s->size = whole_count ? mem_array((size_t)batch_records * whole_count, sizeof(*s->size)) : NULL;
	s->size_rows = batch_records;
	s->resident_groups = resident_groups;
	s->resident = residents ? mem_array((size_t)batch_records * residents, sizeof(*s->resident)) : NULL;
	return s->record && s->row_flags && s->component && (s->size || !whole_count) && (s->resident || !residents);
}

void slot_close(struct slot *s)
{
	mem_free(s->record);
	mem_free(s->row_flags);
	mem_free(s->component);
	mem_free(s->size);
	mem_free(s->resident);
}

void slot_let_go_row(struct slot *s, uint32_t row)
{
	for (uint32_t groups = s->resident_groups; groups; groups &= groups - 1) {
		struct resident *r = slot_residents(s, (uint32_t)__builtin_ctz(groups)) + row;

		if (r->at)
			atomic_fetch_sub(r->users, 1);
		r->at = NULL;
	}
}

void slot_let_go(struct slot *s)
{
	for (uint32_t groups = s->resident_groups; groups; groups &= groups - 1) {
		struct resident *r = slot_residents(s, (uint32_t)__builtin_ctz(groups));
		atomic_uint *users = NULL;
		uint32_t count = 0;

		for (uint32_t row = 0; row < s->rows; row++) {
			if (!r[row].at)
				continue;
			if (count && r[row].users != users) {
				atomic_fetch_sub(users, count);
				count = 0;
			}
			users = r[row].users;
			count++; /* neighbours mostly have the same: taking one off it costs as much as taking all */
			r[row].at = NULL;
		}
		if (count)
			atomic_fetch_sub(users, count);
	}
}

void slot_describe(const struct slot *s, const struct layout *layout, const struct steps *steps, uint32_t number,
		   struct shard_batch *out)
{
	const struct shard_schema *schema = layout->schema;

	memset(out, 0, sizeof(*out));
	out->epoch = s->place.epoch;
	out->position = steps_position(steps, &s->place);
	out->step = out->position / steps_records(steps);
	out->record_count = s->rows;
	out->slot = number;
	out->record = s->record;
	out->row_flags = s->row_flags;
	out->component = steps->mix ? s->component : NULL;
	/* Backwards, so that a small group ends up with its first field. */
	for (uint32_t f = schema->field_count; f-- > 0;) {
		const struct shard_field *field = &schema->field[f];
		struct shard_rows *rows = &out->field[f];

		if (!layout_has_field(layout, f))
			continue;
		rows->data = s->memory + layout_rows(layout, f, &rows->stride);
		out->group[field->group] = *rows;
		if (layout_is_block(layout, field->group))
			out->group[field->group].data = s->memory + layout->group_at[field->group];
	}
	for (uint32_t k = 0; k < layout->whole_count; k++)
		out->field[layout->whole[k].image].size = slot_sizes(s, k);
}

bool slot_is_lent_as(const struct slot *s, const struct steps *steps, const struct shard_batch *batch)
{
	return s->lent && s->record == batch->record && s->place.epoch == batch->epoch &&
	       steps_position(steps, &s->place) == batch->position;
}

/* ---- the ring: slots of one size, one behind the other ---- */

uint64_t ring_bytes(const struct ring *r)
{
	return r->slot_bytes * r->slot_count;
}

int ring_open(struct ring *r, uint32_t batch_records, uint32_t whole_count, uint32_t resident_groups,
	      struct shard_error *err)
{
	bool has;

	r->slot = mem_array(r->slot_count, sizeof(*r->slot));
	r->memory = r->lent ? NULL : buffer_open((size_t)ring_bytes(r));
	has = r->slot && (r->memory || r->lent);
	if (has && !r->lent)
		buffer_keep(r->memory, (size_t)ring_bytes(r));
	for (uint32_t i = 0; has && i < r->slot_count; i++) {
		uint8_t *memory = r->lent ? r->lent[i] : r->memory + i * r->slot_bytes;

		has = slot_open(&r->slot[i], memory, batch_records, whole_count, resident_groups);
	}
	if (has)
		return SHARD_OK;
	ring_close(r, false);
	return error_set(err, SHARD_E_MEMORY,
			 "no memory for %u slots of %" PRIu64 " bytes (%u records each); ask for smaller batches or "
			 "fewer slots",
			 r->slot_count, r->slot_bytes, batch_records);
}

void ring_close(struct ring *r, bool inherited)
{
	for (uint32_t i = 0; r->slot && i < r->slot_count; i++)
		slot_close(&r->slot[i]);
	if (r->memory && !inherited)
		buffer_close(r->memory, (size_t)ring_bytes(r));
	mem_free(r->slot);
	r->slot = NULL;
	r->memory = NULL;
}
