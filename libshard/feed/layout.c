/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - see layout.h
 */
#include "libshard/feed/layout.h"

#include "libshard/base/bytes.h"

/* Plan the fields of a group.  The arrays of a small group begin at *at, which moves on. */
static void plan_fields(struct layout *out, uint32_t group, uint32_t batch_records, uint64_t *at)
{
	const struct shard_schema *s = out->schema;
	bool large = layout_is_large(&s->group[group]);

	for (uint32_t f = 0; f < s->field_count; f++) {
		const struct shard_field *field = &s->field[f];

		if (field->group != group || !layout_has_field(out, f))
			continue;
		out->field_at[f] = large ? out->group_at[group] + field->offset : *at;
		out->field[group][out->field_count[group]++] =
			(struct spread_field){out->field_at[f], (uint32_t)field->bytes, (uint32_t)field->offset};
		if (large)
			continue;
		out->record_bytes += field->bytes;
		*at += align_up(batch_records * field->bytes, LAYOUT_ALIGN); /* below 2^32 x 2^12 */
	}
}

bool layout_plan(struct layout *out, const struct shard_schema *schema, uint32_t fields, uint32_t batch_records,
		 bool in_place)
{
	uint64_t at = 0, bytes;

	memset(out, 0, sizeof(*out));
	out->schema = schema;
	out->fields = fields;
	for (uint32_t g = 0; g < schema->group_count; g++) {
		const struct shard_group *group = &schema->group[g];

		out->group_at[g] = at;
		out->unit_shift[g] = group->unit_records & (group->unit_records - 1)
					     ? UNIT_ODD
					     : (uint32_t)__builtin_ctz(group->unit_records);
		plan_fields(out, g, batch_records, &at);
		if (layout_has_group(out, g))
			out->group[out->group_count++] = g;
		if (!layout_is_large(group) || !layout_has_group(out, g))
			continue;
		if (!mul_fits(in_place ? 0 : batch_records, group->stride, &bytes) ||
		    !add_fits(at, align_up(bytes, LAYOUT_ALIGN), &at))
			return false;
		out->record_bytes += group->stride;
	}
	out->slot_bytes = at;
	return at < SIZE_MAX / 2 / LAYOUT_SLOTS_MAX;
}

uint64_t layout_group(const struct layout *l, uint32_t group, uint32_t rows, uint64_t *at)
{
	const struct shard_group *g = &l->schema->group[group];
	const struct spread_field *last;

	*at = l->group_at[group];
	if (!layout_has_group(l, group))
		return 0;
	if (layout_is_large(g))
		return rows * g->stride;
	last = &l->field[group][l->field_count[group] - 1];
	return last->at + (uint64_t)rows * last->bytes - *at;
}
