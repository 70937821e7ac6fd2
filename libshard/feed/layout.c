/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - see layout.h
 */
#include "libshard/feed/layout.h"

#include "libshard/base/bytes.h"
#include "shard_pack.h"

/* Add an array of a field at *at, which moves behind it.  Returns false if it is too long. */
static bool plan_array(struct layout *out, uint32_t f, uint64_t row_bytes, uint32_t batch_records, uint64_t *at)
{
	uint64_t bytes;

	out->field_at[f] = *at;
	out->record_bytes += row_bytes;
	return mul_fits(batch_records, row_bytes, &bytes) && bytes < SIZE_MAX / 2 &&
	       add_fits(*at, align_up(bytes, LAYOUT_ALIGN), at);
}

/* Plan the fields of a group.  The arrays of one that is no block begin at *at, which moves on. */
static bool plan_fields(struct layout *out, uint32_t group, uint32_t batch_records, const uint64_t *remade,
			uint64_t *at)
{
	const struct shard_schema *s = out->schema;

	for (uint32_t f = 0; f < s->field_count; f++) {
		const struct shard_field *field = &s->field[f];
		uint64_t bytes = remade && remade[f] ? remade[f] : field->bytes;

		if (field->group != group || !layout_has_field(out, f))
			continue;
		out->field_at[f] = out->group_at[group] + field->offset;
		if (!layout_is_block(out, group) && !plan_array(out, f, bytes, batch_records, at))
			return false;
		out->field[group][out->field_count[group]++] =
			(struct spread_field){out->field_at[f], bytes, (uint32_t)field->offset};
	}
	return true;
}

static bool has_remade(const struct shard_schema *s, uint32_t group, const uint64_t *remade)
{
	for (uint32_t f = 0; remade && f < s->field_count; f++)
		if (remade[f] && s->field[f].group == group)
			return true;
	return false;
}

static bool plan_group(struct layout *out, uint32_t g, uint32_t batch_records, bool in_place, const uint64_t *remade,
		       uint64_t *at)
{
	const struct shard_group *group = &out->schema->group[g];
	uint64_t bytes;

	out->group_at[g] = *at;
	out->unit_shift[g] = group->unit_records & (group->unit_records - 1)
				     ? UNIT_ODD
				     : (uint32_t)__builtin_ctz(group->unit_records);
	if (layout_is_large(group) && !has_remade(out->schema, g, remade))
		out->blocks |= UINT32_C(1) << g;
	if (!plan_fields(out, g, batch_records, remade, at))
		return false;
	if (layout_has_group(out, g)) {
		out->group[out->group_count++] = g;
		out->groups |= UINT32_C(1) << g;
	}
	if (!layout_is_block(out, g) || !layout_has_group(out, g))
		return true;
	out->record_bytes += group->stride;
	return mul_fits(in_place ? 0 : batch_records, group->stride, &bytes) &&
	       add_fits(*at, align_up(bytes, LAYOUT_ALIGN), at);
}

static void find_whole(struct layout *out)
{
	const struct shard_schema *s = out->schema;

	for (uint32_t f = 0; f < s->field_count; f++) {
		uint32_t size = shard_image_size_field(s, f);

		if (size < s->field_count && layout_has_field(out, f))
			out->whole[out->whole_count++] = (struct whole_field){f, size, s->field[f].length_field};
	}
}

bool layout_plan(struct layout *out, const struct shard_schema *schema, uint32_t fields, uint32_t batch_records,
		 bool in_place, const uint64_t *remade)
{
	uint64_t at = 0;

	memset(out, 0, sizeof(*out));
	out->schema = schema;
	out->fields = fields;
	find_whole(out);
	for (uint32_t g = 0; g < schema->group_count; g++)
		if (!plan_group(out, g, batch_records, in_place, remade, &at))
			return false;
	out->slot_bytes = at;
	return at < SIZE_MAX / 2 / LAYOUT_SLOTS_MAX;
}

const struct spread_field *layout_array(const struct layout *l, uint32_t field)
{
	const struct spread_field *array = l->field[l->schema->field[field].group];

	while (array->at != l->field_at[field])
		array++;
	return array;
}

uint64_t layout_group(const struct layout *l, uint32_t group, uint32_t rows, uint64_t *at)
{
	const struct spread_field *last;

	*at = l->group_at[group];
	if (!layout_has_group(l, group))
		return 0;
	if (layout_is_block(l, group))
		return rows * l->schema->group[group].stride;
	last = &l->field[group][l->field_count[group] - 1];
	return last->at + rows * last->bytes - *at;
}
