/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformed.c - batches whose images are transformed on their way, by the threads that fill them
 *
 * A thread brings some records to memory of its own, as it would to a slot.  Then it transforms
 * their images to the rows of the slot, and copies their other fields.
 */
#include "libshard/feed/feed.h"

#include <stdarg.h>
#include <stdio.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/io.h"

/*
 * Records on their way, of each thread.  Enough that a disk has many reads at once, and a run of
 * small records is hashed together; more would only take room in caches.
 */
#define RECORDS_BYTES (UINT64_C(8) << 20)
#define ROWS_LEAST    8u

/* ---- what is transformed ---- */

/* Does a field follow the images? */
static bool follows(const struct shard_field *f)
{
	return f->semantic == SHARD_MASK || f->semantic == SHARD_BOXES;
}

/* Returns in *row_bytes what a row of it has then. */
static int follow_images(const struct transformed *t, const struct shard_field *f, uint64_t *row_bytes,
			 struct shard_error *err)
{
	const struct transform_plan *p = &t->plan;

	*row_bytes = t->views * f->bytes;
	if (f->semantic == SHARD_BOXES && f->dtype == SHARD_F32 && f->ndim == 2 && f->shape[1] == 4 &&
	    f->ragged_axes <= 1)
		return SHARD_OK;
	if (f->semantic == SHARD_BOXES)
		return error_set(
			err, SHARD_E_ARGUMENT,
			"options: field '%s' has boxes that are not f32 [n,4], so they cannot follow the images; "
			"leave the field out of `fields`",
			f->name);
	if (p->is_whole)
		return error_set(err, SHARD_E_UNSUPPORTED,
				 "options: field '%s' has masks, which cannot follow images that differ in size; leave "
				 "the field out of `fields`",
				 f->name);
	if (f->kind != SHARD_TENSOR || f->ndim != 2 || f->shape[0] != p->in_height || f->shape[1] != p->in_width)
		return error_set(
			err, SHARD_E_ARGUMENT,
			"options: field '%s' has masks that are not %u x %u, as the images are, so they cannot "
			"follow them; leave the field out of `fields`",
			f->name, p->in_height, p->in_width);
	*row_bytes = (uint64_t)t->views * p->height * p->width * shard_dtype_bytes(f->dtype);
	return SHARD_OK;
}

/* ---- what might belong to the pixels, and does not say so ---- */

/* Two neighbouring axes of the images' height and width; of whole images, as many pixels. */
static bool has_their_size(const struct transformed *t, const struct shard_field *image, const struct shard_field *f)
{
	bool found =
		t->plan.is_whole && f->kind == SHARD_RAGGED && f->ragged_axes & 1 && f->shape[0] == image->shape[0];

	for (uint32_t a = 0; a + 1 < f->ndim && !t->plan.is_whole; a++)
		found |= f->shape[a] == t->plan.in_height && f->shape[a + 1] == t->plan.in_width;
	return found;
}

static bool is_called(const struct shard_field *f, const char *const *words)
{
	while (*words && !strcasestr(f->name, *words))
		words++;
	return *words;
}

/* What a field may be that has no semantic and is not moved; in the order of `doubts`. */
enum doubt { DOUBT_NONE, DOUBT_BOXES, DOUBT_BOXES_NAME, DOUBT_MASK, DOUBT_MASK_NAME, DOUBT_POINTS, DOUBT_IMAGE };

static enum doubt doubt_of(const struct transformed *t, const struct shard_schema *schema, uint32_t idx)
{
	static const char *const boxes[] = {"box", NULL}, *const masks[] = {"mask", "segment", NULL};
	static const char *const points[] = {"keypoint", "landmark", "points", "polygon", "contour", NULL};
	const struct shard_field *f = &schema->field[idx];
	uint32_t last = f->ndim ? f->shape[f->ndim - 1] : 0;
	bool varies = f->ndim && f->ragged_axes >> (f->ndim - 1) & 1;

	if (f->semantic == SHARD_IMAGE)
		return DOUBT_IMAGE;
	if ((f->semantic != SHARD_SEMANTIC_NONE && f->semantic != SHARD_LABEL) || f->kind == SHARD_STRING)
		return DOUBT_NONE;
	if (has_their_size(t, &schema->field[t->field], f))
		return DOUBT_MASK;
	if (f->semantic == SHARD_LABEL || !f->ndim) /* it has a meaning already: 0 or 1 for each of 4 classes */
		return DOUBT_NONE;
	if (f->dtype != SHARD_BOOL && last == 4 && !varies)
		return DOUBT_BOXES;
	if (f->dtype != SHARD_BOOL && f->ndim > 1 && is_called(f, boxes))
		return DOUBT_BOXES_NAME;
	if ((f->ndim > 1 || (t->plan.is_whole && varies)) && is_called(f, masks))
		return DOUBT_MASK_NAME;
	return (f->ndim > 1 || (f->dtype >= SHARD_F16 && f->dtype <= SHARD_F64)) && is_called(f, points) ? DOUBT_POINTS
													 : DOUBT_NONE;
}

static const char *const doubts[] = {
	[DOUBT_BOXES] = "rows of 4 numbers, as boxes have",
	[DOUBT_BOXES_NAME] = "called like boxes",
	[DOUBT_MASK] = "of the images' size",
	[DOUBT_MASK_NAME] = "called like a mask",
	[DOUBT_POINTS] = "called like points",
	[DOUBT_IMAGE] = "images as well",
};

/* A text that is put together from pieces. */
struct said {
	char text[900];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void say(struct said *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(s->text + s->used, sizeof(s->text) - s->used, fmt, ap);
	va_end(ap);
	s->used = n < 0 ? s->used : (size_t)min_u64(s->used + (size_t)n, sizeof(s->text) - 1);
}

/*
 * What to type when it is packed, so that it follows: a type in Python's schema, and an option of
 * shardpack.  Nothing for points, or for several masks, as there is no semantic for them.
 */
static void say_remedy(struct said *python, struct said *pack, const struct transformed *t, const struct shard_field *f,
		       enum doubt doubt)
{
	uint32_t most = f->ndim > 1 ? f->shape[0] : 1, semantic = SHARD_SEMANTIC_NONE;
	uint64_t values = 1;

	for (uint32_t a = 0; a < f->ndim; a++)
		values *= f->shape[a];
	if ((doubt == DOUBT_BOXES || doubt == DOUBT_BOXES_NAME) && f->ndim <= 2)
		semantic = SHARD_BOXES;
	if (((doubt == DOUBT_MASK && values == (uint64_t)t->plan.in_height * t->plan.in_width) ||
	     doubt == DOUBT_MASK_NAME) &&
	    !t->plan.is_whole)
		semantic = SHARD_MASK;
	if (!semantic)
		return;
	say(python, "%s\"%s\": \"%s", python->used ? ", " : "", f->name, shard_name(SHARD_NAME_SEMANTIC, semantic));
	if (semantic == SHARD_MASK && f->dtype != SHARD_U8)
		say(python, ":%s", shard_name(SHARD_NAME_DTYPE, f->dtype));
	if (semantic == SHARD_MASK)
		say(python, "[%u,%u]\"", t->plan.in_height, t->plan.in_width);
	else
		say(python, "[%s%u]\"", f->kind == SHARD_RAGGED ? "<=" : "", most);
	say(pack, "%s--field %s:kind=%s", pack->used ? " " : "", f->name, shard_name(SHARD_NAME_SEMANTIC, semantic));
	if (semantic == SHARD_BOXES)
		say(pack, ",max=%u", most);
}

static int refuse_doubts(const struct transformed *t, const struct shard_schema *schema, const enum doubt *doubt,
			 struct shard_error *err)
{
	struct said fields = {.used = 0}, python = {.used = 0}, pack = {.used = 0}, names = {.used = 0};
	struct said cure = {.used = 0};

	for (uint32_t i = 0; i < schema->field_count; i++) {
		const struct shard_field *f = &schema->field[i];

		if (!doubt[i])
			continue;
		say(&fields, "%s'%s' %s", fields.used ? ", " : "", f->name, shard_name(SHARD_NAME_DTYPE, f->dtype));
		for (uint32_t a = 0; a < f->ndim; a++)
			say(&fields, "%s%s%u", a ? "," : "[", f->ragged_axes >> a & 1 ? "<=" : "", f->shape[a]);
		say(&fields, "%s (%s)", f->ndim ? "]" : "", doubts[doubt[i]]);
		say_remedy(&python, &pack, t, f, doubt[i]);
		say(&names, "%s\"%s\"", names.used ? ", " : "", f->name);
	}
	if (python.used)
		say(&cure,
		    ". To let them follow, pack again with a semantic: in Python libshard.pack(ds, "
		    "{**dict(zip(ds.schema.names, ds.schema)), %s}, NEW); or shardpack %s%s",
		    python.text, pack.text,
		    strstr(python.text, "\"boxes[") ? " (boxes are x0, y0, x1, y1 in pixels)" : "");
	return error_set(err, SHARD_E_ARGUMENT,
			 "options: the transform moves the pixels of '%s', but not these fields: %s. If they do "
			 "not belong to the pixels, name them: transform.as_stored=[%s]%s",
			 schema->field[t->field].name, fields.text, names.text, cure.text);
}

/* Which fields shall stay as they are stored?  A bit for each. */
static int find_as_stored(const struct transformed *t, const struct shard_schema *schema,
			  const struct shard_loader_transform *o, uint32_t *bits, struct shard_error *err)
{
	struct shown shown;

	*bits = 0;
	for (uint32_t i = 0; i < o->as_stored_count; i++) {
		const char *name = o->as_stored[i] ? o->as_stored[i] : "";
		const struct shard_field *f = shard_schema_find(schema, name);

		if (!f)
			return error_set(err, SHARD_E_ARGUMENT,
					 "options: transform.as_stored names '%s', and the dataset has no such field",
					 show(&shown, name));
		if (f == &schema->field[t->field])
			return error_set(err, SHARD_E_ARGUMENT,
					 "options: transform.as_stored names '%s', which is what the transform is for; "
					 "leave one of both out",
					 f->name);
		if (follows(f))
			return error_set(err, SHARD_E_ARGUMENT,
					 "options: transform.as_stored names '%s', whose semantic is %s, so that it "
					 "follows the images; leave the name out",
					 f->name, shard_name(SHARD_NAME_SEMANTIC, f->semantic));
		*bits |= UINT32_C(1) << (f - schema->field);
	}
	return SHARD_OK;
}

int transformed_find_fields(struct transformed *t, const struct shard_schema *schema, uint32_t fields,
			    const struct shard_loader_transform *o, struct shard_error *err)
{
	enum doubt doubt[SHARD_FIELDS_MAX] = {DOUBT_NONE};
	const struct transform_plan *p = &t->plan;
	/* If a transform only converts numbers, all beside the pixels stays right. */
	bool moves = p->is_whole || p->crop == SHARD_CROP_RESIZED || p->flip > 0 || p->height != p->in_height ||
		     p->width != p->in_width || t->views > 1;
	bool doubted = false;
	uint32_t as_stored;
	int rc = find_as_stored(t, schema, o, &as_stored, err);

	t->row_bytes = t->views * t->plan.row_bytes;
	t->remade[t->field] = t->has_kernel ? 0 : t->row_bytes;
	for (uint32_t f = 0; !rc && f < schema->field_count; f++) {
		if (f == t->field || !(fields >> f & 1))
			continue;
		if (follows(&schema->field[f]))
			rc = follow_images(t, &schema->field[f], &t->remade[f], err);
		else if (moves && !(as_stored >> f & 1))
			doubted |= (doubt[f] = doubt_of(t, schema, f)) != DOUBT_NONE;
	}
	return !rc && doubted ? refuse_doubts(t, schema, doubt, err) : rc;
}

bool transformed_has_work(const struct transformed *t)
{
	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++)
		if (t->remade[f])
			return true;
	return false;
}

bool transformed_lay_out(struct transformed *t, const struct shard_schema *schema, uint32_t fields, uint32_t uneven)
{
	uint64_t record_bytes;

	if (!layout_plan(&t->records, schema, fields, uneven, 0, 1, NULL))
		return false;
	record_bytes = t->records.record_bytes;
	t->rows = (uint32_t)min_u64(max_u64(RECORDS_BYTES / (record_bytes + 1), ROWS_LEAST), BLOCK_ROWS);
	return layout_plan(&t->records, schema, fields, uneven, 0, t->rows, NULL);
}

bool transformed_open_scratch(const struct transformed *t, struct scratch *scratch)
{
	scratch->records = buffer_open((size_t)t->records.slot_bytes);
	scratch->transform = mem_aligned(TRANSFORM_CPU_ALIGN, (size_t)transform_cpu_bytes(&t->plan));
	if (scratch->records) /* disks may be writing to it while the process forks */
		buffer_keep(scratch->records, (size_t)t->records.slot_bytes);
	return scratch->records && scratch->transform;
}

void transformed_close_scratch(const struct transformed *t, struct scratch *scratch, bool inherited)
{
	if (scratch->records && !inherited)
		buffer_close(scratch->records, (size_t)t->records.slot_bytes);
	mem_free(scratch->transform);
	scratch->records = NULL;
	scratch->transform = NULL;
}

void transformed_draw_batch(const struct transformed *t, const struct shard_batch *batch,
			    struct shard_transform_row *row)
{
	for (uint32_t i = 0; i < batch->record_count; i++) {
		struct transform_image image = transform_image_of(&t->plan, NULL, batch->field[t->field].size, i);

		for (uint32_t view = 0; view < t->views; view++)
			transform_draw_row(&t->plan, &image, batch, i, view, row++);
	}
}

/* ---- filling ---- */

/* Some rows on their way. */
struct piece {
	const struct transformed *t;
	const struct slot *from, *slot; /* the records, and where they belong */
	const struct layout *to;
	const struct shard_size *size; /* of the images that are transformed; NULL: they are alike */
	uint32_t first;		       /* the row of the slot */
	void *scratch;
};

/* Returns field f of record i of a piece. */
static const uint8_t *value_at(const struct piece *p, uint32_t f, uint32_t i)
{
	const struct layout *records = &p->t->records;
	const struct shard_field *field = &records->schema->field[f];
	uint64_t stride = layout_is_block(records, field->group) ? field->stride : field->bytes;

	return p->from->memory + records->field_at[f] + i * stride;
}

/* Returns where view `view` of a transformed field goes, of record i of a piece. */
static uint8_t *result_at(const struct piece *p, uint32_t f, uint32_t i, uint32_t view)
{
	uint64_t bytes = p->t->remade[f];

	return p->slot->memory + p->to->field_at[f] + (p->first + i) * bytes + view * (bytes / p->t->views);
}

/*
 * How many boxes has record i?  Zeros are behind them, and in masked rows.  A damaged shard may
 * name too many.
 */
static uint64_t count_boxes(const struct piece *p, const struct shard_field *field, uint32_t i)
{
	uint32_t count = field->shape[0];

	if (p->from->row_flags[i] & SHARD_ROW_MASKED)
		return 0;
	if (field->kind != SHARD_TENSOR)
		memcpy(&count, value_at(p, field->length_field, i), sizeof(count));
	return min_u64(count, field->shape[0]);
}

/* Do to a mask, or to boxes, what is done to their image. */
static void follow(const struct piece *p, uint32_t f, uint32_t i, uint32_t view, const struct shard_transform_row *row)
{
	const struct shard_field *field = &p->t->records.schema->field[f];
	const uint8_t *value = value_at(p, f, i);
	uint8_t *result = result_at(p, f, i, view);

	if (field->semantic == SHARD_MASK) {
		transform_mask(&p->t->plan, row, (uint32_t)shard_dtype_bytes(field->dtype), value, result);
		return;
	}
	memset(result, 0, (size_t)field->bytes);
	transform_boxes(&p->t->plan, row, count_boxes(p, field, i), value, result);
}

static int transform_rows(const struct piece *p, const struct shard_batch *step, struct shard_error *err)
{
	const struct transformed *t = p->t;
	const struct transform_plan *plan = &t->plan;

	for (uint32_t i = 0; i < p->from->rows; i++) {
		struct transform_image image = transform_image_of(plan, value_at(p, t->field, i), p->size, i);
		int rc = plan->is_whole ? transform_image_check(plan, &image, p->from->record[i], err) : SHARD_OK;

		if (rc)
			return rc;
		for (uint32_t view = 0; view < t->views; view++) {
			struct shard_transform_row row;

			transform_draw_row(plan, &image, step, p->first + i, view, &row);
			if (!t->has_kernel)
				transform_cpu(plan, &row, &image, result_at(p, t->field, i, view), p->scratch);
			for (uint32_t f = 0; f < t->records.schema->field_count; f++)
				if (f != t->field && t->remade[f])
					follow(p, f, i, view, &row);
		}
	}
	return SHARD_OK;
}

/* Copy what is not transformed. */
static void copy_others(const struct piece *p)
{
	const struct layout *records = &p->t->records, *to = p->to;
	const struct shard_schema *schema = records->schema;

	for (uint32_t k = 0; k < to->group_count; k++) {
		uint32_t g = to->group[k];
		uint64_t stride = schema->group[g].stride;

		if (layout_is_block(to, g))
			memcpy(p->slot->memory + to->group_at[g] + p->first * stride,
			       p->from->memory + records->group_at[g], (size_t)(p->from->rows * stride));
	}
	for (uint32_t f = 0; f < schema->field_count; f++) {
		uint64_t bytes = schema->field[f].bytes;
		uint8_t *row = p->slot->memory + to->field_at[f] + p->first * bytes;

		if (p->t->remade[f] || !layout_has_field(to, f) || layout_is_block(to, schema->field[f].group))
			continue;
		for (uint32_t i = 0; i < p->from->rows; i++, row += bytes)
			memcpy(row, value_at(p, f, i), (size_t)bytes);
	}
}

static int fill_and_repair(struct row_source *source, struct scratch *scratch, struct slot *s,
			   struct fill_counts *counts, struct shard_error *err)
{
	int rc = slot_fill(source, scratch, s, counts, err);

	return rc ? rc : repair_rows(source, scratch, s, counts, err);
}

int transformed_fill(const struct transformed *t, struct row_source *source, struct scratch *scratch, struct slot *s,
		     const struct layout *to, struct fill_counts *counts, struct shard_error *err)
{
	const struct shard_batch step = {.epoch = s->place.epoch, .position = steps_position(source->steps, &s->place)};
	struct slot from = *s;
	struct piece p = {.t = t, .from = &from, .slot = s, .to = to, .first = s->first, .scratch = scratch->transform};
	uint32_t whole = 0; /* which images that differ in size are transformed; whole_count: none */
	int rc = SHARD_OK;

	if (!t)
		return fill_and_repair(source, scratch, s, counts, err);
	while (whole < t->records.whole_count && t->records.whole[whole].image != t->field)
		whole++;
	from.memory = scratch->records;
	from.first = 0;
	for (; !rc && p.first < s->rows; p.first += t->rows) {
		from.record = s->record + p.first;
		from.row_flags = s->row_flags + p.first;
		from.component = s->component + p.first;
		from.size = s->size ? s->size + p.first : NULL;
		from.rows = (uint32_t)min_u64(t->rows, s->rows - p.first);
		p.size = whole < t->records.whole_count ? slot_sizes(&from, whole) : NULL;
		rc = fill_and_repair(source, scratch, &from, counts, err);
		if (!rc)
			rc = transform_rows(&p, &step, err);
		if (!rc)
			copy_others(&p);
	}
	return rc;
}
