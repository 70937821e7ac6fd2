/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.c - see slot.h
 */
#include "libshard/feed/slot.h"

#include "libshard/base/mem.h"
#include "libshard/feed/steps.h"

bool slot_open(struct slot *s, uint8_t *memory, uint32_t batch_records)
{
	s->memory = memory;
	s->record = mem_array(batch_records, sizeof(*s->record));
	s->row_flags = mem_array(batch_records, sizeof(*s->row_flags));
	s->component = mem_array(batch_records, sizeof(*s->component));
	return s->record && s->row_flags && s->component;
}

void slot_close(struct slot *s)
{
	mem_free(s->record);
	mem_free(s->row_flags);
	mem_free(s->component);
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
		bool large = layout_is_large(&schema->group[field->group]);

		if (!layout_has_field(layout, f))
			continue;
		out->field[f] = (struct shard_rows){s->memory + layout->field_at[f],
						    large ? field->stride : field->bytes, NULL};
		out->group[field->group] =
			large ? (struct shard_rows){s->memory + layout->group_at[field->group], field->stride, NULL}
			      : out->field[f];
	}
}

bool slot_is_lent_as(const struct slot *s, const struct steps *steps, const struct shard_batch *batch)
{
	return s->lent && s->record == batch->record && s->place.epoch == batch->epoch &&
	       steps_position(steps, &s->place) == batch->position;
}
