/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - where the arrays of a batch lie in its memory
 *
 * A batch holds one block for each large group.  Of small groups it holds one dense array for each
 * field, and so it does of the group of a field whose rows are remade.  Each array begins on a page
 * of its own.  Fields that nobody wants have no array, and a group of such fields alone has no
 * place at all: it is neither read nor hashed.
 */
#include "libshard/feed/feed.h"

#include "libshard/base/bytes.h"

/* Add an array of a field at *at, which moves behind it.  Returns false if it is too long. */
static bool plan_array(struct layout *out, uint32_t f, uint64_t row_bytes, uint32_t batch_records, uint64_t *at)
{
	uint64_t bytes;

	out->field_at[f] = *at;
	out->record_bytes += row_bytes;
	return mul_fits(batch_records, row_bytes, &bytes) && bytes < SIZE_MAX / 2 &&
	       add_fits(*at, align_up(bytes, LAYOUT_ALIGN), at);
}

/* Plan the fields of a group.  The arrays of a group that is not a block begin at *at, which moves on. */
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
			(struct spread_field){out->field_at[f], bytes, (uint32_t)field->offset, 0};
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

static uint32_t unit_shift(const struct shard_group *group)
{
	return group->unit_records & (group->unit_records - 1) ? UNIT_ODD
							       : (uint32_t)__builtin_ctz(group->unit_records);
}

static void enter_group(struct layout *out, uint32_t g)
{
	if (!layout_has_group(out, g))
		return;
	out->group[out->group_count++] = g;
	out->groups |= UINT32_C(1) << g;
}

static bool plan_group(struct layout *out, uint32_t g, uint32_t uneven, uint32_t batch_records, const uint64_t *remade,
		       uint64_t *at)
{
	const struct shard_group *group = &out->schema->group[g];
	uint64_t bytes;

	out->group_at[g] = *at;
	out->unit_shift[g] = unit_shift(group);
	if (layout_is_large(group) && !(uneven >> g & 1) && !has_remade(out->schema, g, remade))
		out->blocks |= UINT32_C(1) << g;
	if (!plan_fields(out, g, batch_records, remade, at))
		return false;
	enter_group(out, g);
	if (!layout_is_block(out, g) || !layout_has_group(out, g))
		return true;
	out->record_bytes += group->stride;
	return mul_fits(batch_records, group->stride, &bytes) && add_fits(*at, align_up(bytes, LAYOUT_ALIGN), at);
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

bool layout_plan(struct layout *out, const struct shard_schema *schema, uint32_t fields, uint32_t uneven,
		 uint32_t batch_records, const uint64_t *remade)
{
	uint64_t at = 0;

	memset(out, 0, sizeof(*out));
	out->schema = out->batch = schema;
	out->fields = fields;
	find_whole(out);
	for (uint32_t g = 0; g < schema->group_count; g++)
		if (!plan_group(out, g, uneven, batch_records, remade, &at))
			return false;
	out->slot_bytes = at;
	return at < SIZE_MAX / 2 / LAYOUT_SLOTS_MAX;
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
	for (uint32_t g = 0; g < schema->group_count; g++) {
		out->unit_shift[g] = unit_shift(&schema->group[g]);
		enter_group(out, g);
	}
}

/* An array of `from` into one of `to`, which has no shorter axis and is all zeros. */
static void copy_axes(const struct shard_field *from, const struct shard_field *to, const uint8_t *in, uint8_t *out)
{
	uint64_t step[2][SHARD_DIMS_MAX], run = shard_dtype_bytes(from->dtype);
	uint32_t at[SHARD_DIMS_MAX] = {0}, outer = from->ndim, axis;

	step[0][outer - 1] = step[1][outer - 1] = run;
	for (axis = outer - 1; axis > 0; axis--) {
		step[0][axis - 1] = step[0][axis] * from->shape[axis];
		step[1][axis - 1] = step[1][axis] * to->shape[axis];
	}
	/* What lies together in both is one run: the last axis that differs, and all behind it. */
	do {
		outer--;
		run = step[0][outer] * from->shape[outer];
	} while (outer && from->shape[outer] == to->shape[outer]);
	do {
		uint64_t source = 0, target = 0;

		for (axis = 0; axis < outer; axis++) {
			source += at[axis] * step[0][axis];
			target += at[axis] * step[1][axis];
		}
		memcpy(out + target, in + source, (size_t)run);
		for (axis = outer; axis > 0 && ++at[axis - 1] == from->shape[axis - 1]; axis--)
			at[axis - 1] = 0;
	} while (axis);
}

void layout_widen(const struct layout *l, const struct spread_field *f, const uint8_t *record, uint8_t *row)
{
	memset(row, 0, (size_t)f->bytes);
	copy_axes(&l->schema->field[f->narrow - 1], &l->batch->field[f->narrow - 1], record + f->offset, row);
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
