/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - where the arrays of a batch lie in its memory
 *
 * A batch holds one block for each large group, and a pool also one for some others.  Of small groups
 * it holds one dense array for each field, and so it does of the group of a field whose rows are
 * remade.  Each array begins on a page of its own.  Fields that nobody wants have no array, and a
 * group of such fields alone has no place at all: it is neither read nor hashed.
 */
#include "libshard/feed/feed.h"

#include "libshard/base/bytes.h"

static void enter_group(struct layout *out, uint32_t g)
{
	uint32_t unit = out->schema->group[g].unit_records;

	out->unit_shift[g] = unit & (unit - 1) ? UNIT_ODD : (uint32_t)__builtin_ctz(unit);
	if (!layout_has_group(out, g))
		return;
	out->group[out->group_count++] = g;
	out->groups |= UINT32_C(1) << g;
}

/* Its block or its arrays begin at *at, which moves behind them.  Returns false if they are too long. */
static bool plan_group(struct layout *out, uint32_t g, bool is_block, uint32_t batch_records, const uint64_t *remade,
		       uint64_t *at)
{
	const struct shard_schema *s = out->schema;
	const struct shard_group *group = &s->group[g];
	uint64_t bytes;

	for (uint32_t f = 0; remade && f < s->field_count; f++)
		is_block &= !remade[f] || s->field[f].group != g;
	out->blocks |= (uint32_t)is_block << g;
	out->group_at[g] = *at;
	for (uint32_t f = 0; f < s->field_count; f++) {
		const struct shard_field *field = &s->field[f];
		uint64_t row_bytes = remade && remade[f] ? remade[f] : field->bytes;

		if (field->group != g || !layout_has_field(out, f))
			continue;
		out->field_at[f] = is_block ? out->group_at[g] + field->offset : *at;
		out->field[g][out->field_count[g]++] =
			(struct spread_field){out->field_at[f], row_bytes, (uint32_t)field->offset, 0};
		if (is_block)
			continue;
		out->record_bytes += row_bytes;
		if (!mul_fits(batch_records, row_bytes, &bytes) || bytes >= SIZE_MAX / 2 ||
		    !add_fits(*at, align_up(bytes, LAYOUT_ALIGN), at))
			return false;
	}
	enter_group(out, g);
	if (!is_block || !layout_has_group(out, g))
		return true;
	out->record_bytes += group->stride;
	return mul_fits(batch_records, group->stride, &bytes) && add_fits(*at, align_up(bytes, LAYOUT_ALIGN), at);
}

bool layout_plan(struct layout *out, const struct shard_schema *schema, uint32_t fields, uint32_t uneven, uint32_t even,
		 uint32_t batch_records, const uint64_t *remade)
{
	uint64_t at = 0;

	memset(out, 0, sizeof(*out));
	out->schema = out->batch = schema;
	out->fields = fields;
	for (uint32_t f = 0; f < schema->field_count; f++) {
		uint32_t size = shard_image_size_field(schema, f);

		if (size < schema->field_count && layout_has_field(out, f))
			out->whole[out->whole_count++] = (struct whole_field){f, size, schema->field[f].length_field};
	}
	for (uint32_t g = 0; g < schema->group_count; g++) {
		bool is_block = even >> g & 1 || (layout_is_large(&schema->group[g]) && !(uneven >> g & 1));

		if (!plan_group(out, g, is_block, batch_records, remade, &at))
			return false;
	}
	out->slot_bytes = at;
	return at < SIZE_MAX / 2 / LAYOUT_SLOTS_MAX;
}

uint32_t layout_unread_groups(const struct layout *l)
{
	uint32_t groups = l->groups;

	for (uint32_t g = 0; g < l->schema->group_count; g++)
		if (l->schema->group[g].codec != SHARD_RAW)
			groups &= ~(UINT32_C(1) << g);
	for (uint32_t k = 0; k < l->whole_count; k++) { /* sizes of images are looked at */
		groups &= ~(UINT32_C(1) << l->schema->field[l->whole[k].size].group);
		groups &= ~(UINT32_C(1) << l->schema->field[l->whole[k].length].group);
	}
	return groups;
}

/* ---- parts of a mixture ---- */

void layout_plan_part(struct layout *out, const struct layout *batch, const struct shard_schema *schema)
{
	memset(out, 0, sizeof(*out));
	out->schema = schema;
	out->batch = batch->schema;
	out->fields = batch->fields;
	out->slot_bytes = batch->slot_bytes;
	out->record_bytes = batch->record_bytes;
	for (uint32_t f = 0; f < schema->field_count; f++) {
		const struct shard_field *from = &schema->field[f], *to = &batch->schema->field[f];
		uint32_t g = from->group;
		uint64_t stride;

		if (!layout_has_field(out, f))
			continue;
		out->field_at[f] = layout_rows(batch, f, &stride);
		if (layout_is_block(batch, to->group)) { /* then the group is even, so it has this number here too */
			out->blocks |= UINT32_C(1) << g;
			out->group_at[g] = batch->group_at[g];
		}
		out->field[g][out->field_count[g]++] = (struct spread_field){
			out->field_at[f], to->bytes, (uint32_t)from->offset, from->bytes < to->bytes ? f + 1 : 0};
	}
	for (uint32_t g = 0; g < schema->group_count; g++)
		enter_group(out, g);
}

uint64_t layout_rows(const struct layout *l, uint32_t field, uint64_t *stride)
{
	const struct shard_field *f = &l->schema->field[field];
	const struct spread_field *array = l->field[f->group];

	while (!layout_is_block(l, f->group) && array->at != l->field_at[field])
		array++;
	*stride = layout_is_block(l, f->group) ? f->stride : array->bytes;
	return l->field_at[field];
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
