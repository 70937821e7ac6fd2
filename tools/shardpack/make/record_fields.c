/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fields.c - what a record of images has beside its image
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/utf8.h"
#include "shard_inspect.h"
#include "tools/shardpack/images/image.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/source_times.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/plan.h"

struct record_fields {
	const struct plan *plan; /* const after open, and so are the next four */
	const struct shard_schema *schema;
	int source_fd;
	const struct stored *stored;
	const struct source_times *times; /* or NULL */
	struct pictures *pictures;
	struct shape_mask *shapes;	    /* of masks that are drawn */
	struct scratch part;		    /* the bytes of a field */
	char path[3 * PLAN_PATH_BYTES_MAX]; /* of the file that they are */
};

/* A field of the record being made. */
struct target {
	struct record_fields *all;
	const struct record_image *image;
	struct result *r;
	uint32_t i; /* its number in the recipe */
	const struct field_source *source;
	const struct shard_field *f; /* as laid out */
	uint8_t *at;
};

struct record_fields *record_fields_open(const struct plan *plan, const struct shard_schema *schema, int source_fd,
					 const struct stored *stored, const struct source_times *times,
					 struct pictures *pictures)
{
	struct record_fields *f = calloc(1, sizeof(*f));
	bool ok = true;

	if (!f)
		return NULL;
	f->plan = plan;
	f->schema = schema;
	f->source_fd = source_fd;
	f->stored = stored;
	f->times = times;
	f->pictures = pictures;
	for (uint32_t i = 0; ok && i < plan->recipe.field_count; i++) {
		const struct field_source *from = &plan->recipe.from[i];

		if (from->kind == FIELD_MASK && field_coco_key(from) && !f->shapes)
			ok = (f->shapes = shape_mask_open(plan, stored)) != NULL;
	}
	if (ok)
		return f;
	record_fields_close(f);
	return NULL;
}

void record_fields_close(struct record_fields *f)
{
	if (!f)
		return;
	shape_mask_close(f->shapes);
	scratch_free(&f->part);
	free(f);
}

void record_fields_shrink(struct record_fields *f)
{
	if (f->part.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&f->part);
	shape_mask_shrink(f->shapes);
}

/*
 * Which bytes are meant by the part of field `i`; those of a file have their path in f->path.
 * False if the part is none.
 */
static bool part_bytes(struct record_fields *f, uint64_t input_idx, uint32_t i, const struct field_part *part,
		       struct input_bytes *out)
{
	uint32_t number = 1;

	for (uint32_t k = 0; k < i; k++)
		number += field_has_part(&f->plan->recipe.from[k]);
	*out = (struct input_bytes){.file = PLAN_NO_FILE,
				    .offset = part->offset,
				    .bytes = part->bytes,
				    .time_ns = f->times ? source_time_of_input(f->times, input_idx, number)
							: SOURCE_NO_TIME};
	if (part->kind == FIELD_PART_FILE) {
		text_decode(part->text, part->text_bytes, true, f->path);
		out->path = f->path;
	} else if (part->kind == FIELD_PART_MEMBER) {
		out->file = (uint32_t)part->file;
	}
	return part->kind == FIELD_PART_FILE || part->kind == FIELD_PART_MEMBER;
}

#define WHERE_BYTES 140

/* The bytes of a field: "masks/a.png". */
static const char *name_bytes(const struct target *t, const struct input_bytes *in, char where[WHERE_BYTES])
{
	if (in->path)
		return in->path;
	snprintf(where, WHERE_BYTES, "%" PRIu64 " bytes at offset %" PRIu64 " of %.60s", in->bytes, in->offset,
		 t->all->plan->file[in->file].path);
	return where;
}

/* Name the field and its bytes: "field mask, masks/a.png: ...". */
static bool blame(const struct target *t, const struct input_bytes *in)
{
	struct verdict *v = &t->r->verdict;
	char why[sizeof(v->message)], where[WHERE_BYTES];

	memcpy(why, v->message, sizeof(why));
	return verdict_set(v, v->outcome, v->reason, "field %s, %.100s: %s", t->f->name, name_bytes(t, in, where), why);
}

/* The same for a file of more frames than one. */
static void name_first(const struct target *t, const struct input_bytes *in)
{
	struct verdict *v = &t->r->verdict;
	char why[DECODE_FIRST_BYTES], where[WHERE_BYTES];

	snprintf(why, sizeof(why), "%.*s", DECODE_FIRST_BYTES - 1, v->first);
	if (why[0])
		snprintf(v->first, sizeof(v->first), "field %.30s, %.60s: %s", t->f->name, name_bytes(t, in, where),
			 why);
}

/* The value is there, `bytes` of it: say how long it is, if it is ragged. */
static void put_length(const struct target *t, size_t bytes)
{
	const struct shard_field *length = &t->all->schema->field[t->f->length_field];
	uint32_t count = (uint32_t)(bytes / (t->f->bytes / t->f->shape[0]));

	memcpy((length->group ? t->r->meta : t->r->record) + length->offset, &count, sizeof(count));
}

/* Numbers, text and bytes, from a file or member.  A byte-order mark is not a part of a text.  *there is false if it has
 * no such key. */
static bool put_value(const struct target *t, const struct input_bytes *in, size_t *bytes, bool *there)
{
	const char *data = (const char *)t->all->part.data;
	size_t mark = 0, data_bytes = (size_t)in->bytes;
	struct field_verdict v;
	bool ok;

	if (t->source->kind != FIELD_BYTES) {
		if (utf8_is_utf16(data, data_bytes))
			return verdict_set(&t->r->verdict, OUTCOME_BAD, SHARD_MISS_DECODE, UTF8_UTF16);
		mark = utf8_mark(data, data_bytes);
	}
	ok = field_json_key(t->source) && in->file != PLAN_NO_FILE
		     ? field_value_of_key(t->f, t->source, data + mark, data_bytes - mark, t->at, bytes, there, &v)
		     : field_value(t->f, t->source, data + mark, data_bytes - mark, t->at, bytes, &v);
	if (ok || (!*there && t->source->optional))
		return true;
	return verdict_set(&t->r->verdict, v.reason == FIELD_NO_MEMORY ? OUTCOME_STOP : OUTCOME_BAD, (uint32_t)v.reason,
			   "%s", v.message);
}

/* A mask or a further image.  To guess how it is turned would put it beside its object. */
static bool put_picture(const struct target *t, const struct input_bytes *in, struct picture *made)
{
	return input_bytes_same_build(t->all->plan, t->all->part.data, in->bytes, &t->r->verdict) &&
	       pictures_make(t->all->pictures, t->i, t->image->orientation, t->all->part.data, in->bytes, t->at, made,
			     &t->r->verdict);
}

static bool put_mask(const struct target *t, const struct input_bytes *in)
{
	struct picture made;

	if (!put_picture(t, in, &made))
		return false;
	if (made.width == t->image->width && made.height == t->image->height)
		return true;
	return verdict_set(&t->r->verdict, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED,
			   "a mask of %" PRIu32 " x %" PRIu32 ", and its image has %" PRIu32 " x %" PRIu32
			   "; they must be of one size",
			   made.width, made.height, t->image->width, t->image->height);
}

/* How large the picture is that a mask or boxes belong to: the file's, or the upright one. */
static void frame_size(const struct target *t, uint32_t *width, uint32_t *height)
{
	bool lies = t->source->turn != TURN_NONE && turn_axes(t->image->orientation).lies;

	*width = lies ? t->image->height : t->image->width;
	*height = lies ? t->image->width : t->image->height;
}

/* The size that was written beside boxes and outlines; those of another picture lie elsewhere. */
static bool check_size(const struct target *t, const struct field_part *part)
{
	uint32_t width, height;

	frame_size(t, &width, &height);
	if (!part->width || (part->width == width && part->height == height) ||
	    (t->source->turn == TURN_UNSAID && t->image->orientation != 1))
		return true;
	return verdict_set(&t->r->verdict, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED,
			   "field %s: belongs to an image of %" PRIu32 " x %" PRIu32 ", and its image has %" PRIu32
			   " x %" PRIu32,
			   t->f->name, part->width, part->height, width, height);
}

/* A mask of objects. */
static bool put_shapes(const struct target *t, const struct field_part *part)
{
	struct verdict *v = &t->r->verdict;
	char why[sizeof(v->message)];
	uint32_t width, height, orientation, sample_bytes = (uint32_t)shard_dtype_bytes(t->f->dtype);

	frame_size(t, &width, &height);
	if (!t->image->is_held)
		pictures_give_back(t->all->pictures);
	pictures_claim_file(t->all->pictures, (uint64_t)width * height * sample_bytes);
	if (pictures_orientation_of(t->all->pictures, t->source->turn, t->image->orientation, &orientation, v) &&
	    shape_mask_put(t->all->shapes, part, width, height, sample_bytes, orientation, t->all->pictures->mask[t->i],
			   t->at, v))
		return true;
	memcpy(why, v->message, sizeof(why));
	return verdict_set(v, v->outcome, v->reason, "field %s, %s", t->f->name, why);
}

/* Boxes of the source image, XYXY, become those of the record. */
static bool move_boxes(const struct target *t, size_t bytes)
{
	float *boxes = (float *)(void *)t->at; /* aligned: the format sees to it */
	uint64_t count = bytes / (4 * sizeof(*boxes));
	const struct record_image *image = t->image;
	uint32_t width, height;
	struct decode_verdict v = {0};

	if (count && image->orientation != 1 && t->source->turn == TURN_UNSAID)
		return verdict_set(&t->r->verdict, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED,
				   "field %s: its image has orientation %" PRIu32 "; with --exif apply, say turn=image "
				   "if the boxes lie as that file does, or turn=none if they are upright",
				   t->f->name, image->orientation);
	/* A plan's have not been looked at. */
	if (!verdict_of_decoder(&t->r->verdict, boxes_read(BOXES_XYXY, false, boxes, count, boxes, &v), &v))
		return false;
	frame_size(t, &width, &height);
	if (t->source->unit)
		boxes_scale(width, height, boxes, count);
	if (t->source->turn != TURN_NONE)
		boxes_turn(image->orientation, width, height, boxes, count);
	boxes_move(&t->all->plan->recipe.transform, image->width, image->height, boxes, count);
	fit_count_boxes(&t->r->fit, boxes, count);
	return true;
}

/* From a file or member, whose bytes are in `part`.  `bytes` is what a value that is there has. */
static bool put_part(const struct target *t, const struct input_bytes *in, size_t *bytes, bool *there)
{
	struct picture made;

	switch (t->source->kind) {
	case FIELD_IMAGE:
		return put_picture(t, in, &made);
	case FIELD_MASK:
		return put_mask(t, in);
	default:
		return put_value(t, in, bytes, there);
	}
}

static bool read_part(struct record_fields *f, const struct input_bytes *in, struct verdict *v)
{
	pictures_claim_file(f->pictures, in->bytes);
	return input_bytes_read(in, f->source_fd, f->stored, &f->part, v);
}

/* What is counted of lists and masks. */
static void count(const struct target *t, bool there, size_t bytes)
{
	struct fit_field *to = &t->r->fit.field[t->i];

	if (!there)
		fit_count_without(to, t->r->input.input_idx);
	else if (t->source->kind == FIELD_MASK)
		fit_count_mask(to, t->f, t->at);
	else if (t->f->kind != SHARD_TENSOR)
		fit_count_length(to, (uint32_t)(bytes / (t->f->bytes / t->f->shape[0])));
}

/* Does the value have its place in the picture?  A list of no boxes has none. */
static bool lies_in_picture(const struct target *t, const struct field_part *part, size_t bytes)
{
	if (t->source->kind != FIELD_MASK)
		return t->source->kind == FIELD_BOXES && bytes;
	return part->kind == FIELD_PART_SHAPES ? part->text_bytes > 0 : part->kind != FIELD_PART_NONE;
}

static bool put_field(const struct target *t, const struct field_part *part)
{
	struct input_bytes in;
	uint32_t reason = t->r->verdict.reason;
	bool had_first = t->r->verdict.first[0], there = !field_part_is_none(part, t->source);
	size_t bytes = 0;

	if (!check_size(t, part))
		return false;
	if (part_bytes(t->all, t->r->input.input_idx, t->i, part, &in)) {
		if (!t->image->is_held)
			pictures_give_back(t->all->pictures);
		if (!read_part(t->all, &in, &t->r->verdict) || !put_part(t, &in, &bytes, &there))
			return blame(t, &in);
		if (t->r->verdict.reason != reason) /* its damage was accepted */
			blame(t, &in);
		if (!had_first)
			name_first(t, &in);
	} else if (part->kind == FIELD_PART_VALUE && t->source->pick == PICK_ALL) {
		bytes = field_texts_put(t->f, part, t->at);
	} else if (part->kind == FIELD_PART_VALUE) {
		bytes = part->bytes;
		text_unhex(part->text, part->text_bytes, t->at, bytes);
	} else if (part->kind == FIELD_PART_SHAPES) {
		if (!put_shapes(t, part))
			return false;
	} else if (t->source->kind == FIELD_MASK) {
		mask_fill(&t->all->plan->recipe.transform, (uint32_t)shard_dtype_bytes(t->f->dtype), t->source->fill,
			  t->at);
	}
	if (t->f->kind != SHARD_TENSOR)
		put_length(t, bytes);
	count(t, there, bytes);
	if (t->image->stated && !t->r->undecided && lies_in_picture(t, part, bytes))
		t->r->undecided = 1 + t->i;
	return t->source->kind != FIELD_BOXES || move_boxes(t, bytes);
}

/* Of a whole image: how many pixels it has, and its height and width. */
static void put_size(const struct record_fields *all, const struct record_image *image, struct result *r)
{
	const struct transform_options *t = &all->plan->recipe.transform;
	const struct shard_schema *s = all->schema;
	struct transform_geometry g;
	uint32_t size[2], pixels;

	if (t->fit != FIT_AREA)
		return;
	g = transform_geometry(t, image->width, image->height);
	size[0] = g.height;
	size[1] = g.width;
	pixels = g.width * g.height;
	memcpy(r->meta + s->field[RECIPE_LENGTH].offset, &pixels, sizeof(pixels));
	memcpy(r->meta + s->field[RECIPE_SIZE].offset, size, sizeof(size));
}

static void put_label(const struct record_fields *all, struct result *r)
{
	const struct recipe *recipe = &all->plan->recipe;
	const struct shard_field *f = &all->schema->field[recipe_label_field(recipe)];
	uint8_t *to = r->meta + f->offset;
	const char *at = r->input.classes;
	int64_t label = r->input.class_idx;
	uint32_t class_idx, count = 0;

	if (!at)
		memcpy(to, &label, sizeof(label));
	for (; at && class_list_next(&at, &class_idx); count++) {
		label = class_idx;
		if (recipe->label == LABEL_HOT)
			to[class_idx] = 1;
		else
			memcpy(to + count * sizeof(label), &label, sizeof(label));
	}
	if (recipe->label == LABEL_LIST)
		memcpy(r->meta + all->schema->field[f->length_field].offset, &count, sizeof(count));
}

bool record_fields_put(struct record_fields *all, const struct record_image *image, struct result *r)
{
	const struct recipe *recipe = &all->plan->recipe;
	const struct shard_schema *s = all->schema;
	const char *parts = r->input.parts;
	struct field_part part;
	/* Where fields are not, and behind the end of what is ragged, there are zeros. */
	memset(r->record + s->field[RECIPE_IMAGE].bytes, 0,
	       (size_t)(s->group[0].record_bytes - s->field[RECIPE_IMAGE].bytes));
	memset(r->meta, 0, (size_t)s->group[1].record_bytes);
	if (recipe_has_label(recipe))
		put_label(all, r);
	put_size(all, image, r);
	for (uint32_t i = 0; i < recipe->field_count; i++) {
		const struct shard_field *f = &s->field[recipe_first(recipe) + i];
		struct target t = {all, image, r, i, &recipe->from[i], f, (f->group ? r->meta : r->record) + f->offset};

		if (field_part_next(&recipe->field[i], t.source, &parts, &part) && !put_field(&t, &part))
			return false;
	}
	return true;
}

/* The name of a member beside the image of its sample: the key of both, and the suffix. */
static const char *member_path(struct record_fields *f, const struct result *r, const struct field_source *s)
{
	const char *slash = strrchr(r->path, '/'), *base = slash ? slash + 1 : r->path;

	snprintf(f->path, sizeof(f->path), "%.*s.%s", (int)(base - r->path + (ptrdiff_t)strcspn(base, ".")), r->path,
		 field_json_key(s) ? "json" : s->from);
	return f->path;
}

bool record_fields_keep(struct record_fields *f, const struct quarantine *q, struct result *r)
{
	const struct recipe *recipe = &f->plan->recipe;
	const char *parts = r->input.parts;
	struct verdict *v = &r->verdict, reading = {.message = ""};
	struct field_part part;
	struct input_bytes in;

	for (uint32_t i = 0; i < recipe->field_count; i++) {
		if (!field_part_next(&recipe->field[i], &recipe->from[i], &parts, &part) ||
		    !part_bytes(f, r->input.input_idx, i, &part, &in))
			continue;
		if (!read_part(f, &in, &reading)) {
			if (reading.outcome == OUTCOME_BAD) /* a FIFO, or too large: there are no bytes to keep */
				continue;
			return verdict_set(v, reading.outcome, 0, "field %s: %s", recipe->field[i].name,
					   reading.message);
		}
		if (!quarantine_keep(q, in.path ? in.path : member_path(f, r, &recipe->from[i]), f->part.data, in.bytes,
				     v->message, sizeof(v->message))) {
			v->outcome = OUTCOME_STOP;
			return false;
		}
	}
	return true;
}
