/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fields.c - what a record has beside its image
 *
 * Values stand in the plan and were checked when it was made; what is in files and members is judged here, so that a
 * field that is no good makes its sample bad input, like an image that is none.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/shardpack/image/boxes.h"
#include "tools/shardpack/build/convert_private.h"
#include "tools/shardpack/plan/field_value.h"
#include "tools/shardpack/build/quarantine.h"

/* A field of the record being made. */
struct target {
	struct converter *c;
	struct result *r;
	uint32_t i; /* its number in the recipe */
	const struct field_source *source;
	const struct shard_field *f; /* as laid out */
	uint8_t *at;
};

/* The first token behind that of --columns. */
static const char *first_part(const struct converter *c, const struct result *r)
{
	size_t column_bytes = recipe_column_bytes(&c->plan->recipe);

	return r->input.parts + (column_bytes ? strlen("= ") + 2 * column_bytes : 0);
}

/* The token of each field in turn. */
static const char *next_part(const char *at, struct field_part *part)
{
	size_t bytes = strcspn(at, " \n");

	field_part_read(at, bytes, part); /* plan_read.c saw to it */
	return at + bytes + (at[bytes] == ' ');
}

/* Which bytes are meant; those of a file have their path in c->path.  False if the part is none. */
static bool part_bytes(struct converter *c, const struct field_part *part, struct input_bytes *out)
{
	*out = (struct input_bytes){.file = PLAN_NO_FILE, .offset = part->offset, .bytes = part->bytes};
	if (part->kind == FIELD_PART_FILE) {
		text_decode(part->text, part->text_bytes, true, c->path);
		out->path = c->path;
	} else if (part->kind == FIELD_PART_MEMBER) {
		out->file = (uint32_t)part->file;
	}
	return part->kind == FIELD_PART_FILE || part->kind == FIELD_PART_MEMBER;
}

/* Say whose fault it is: "field mask, masks/a.png: ...", "field mask, 24 bytes at offset 1536: ...". */
static bool blame(const struct target *t, const struct input_bytes *in)
{
	char why[sizeof(t->r->message)], where[140];

	if (in->path)
		snprintf(where, sizeof(where), "%.100s", in->path);
	else
		snprintf(where, sizeof(where), "%" PRIu64 " bytes at offset %" PRIu64 " of %.60s", in->bytes, in->offset,
			 t->c->plan->file[in->file].path);
	memcpy(why, t->r->message, sizeof(why));
	convert_set(t->r, t->r->outcome, t->r->reason, "field %s, %s: %s", t->f->name, where, why);
	return false;
}

/* The value is there, `bytes` of it: say how long it is, if it is ragged. */
static void put_length(const struct target *t, size_t bytes)
{
	const struct shard_field *length = &t->c->schema.field[t->f->length_field];
	uint32_t count = (uint32_t)(bytes / (t->f->bytes / t->f->shape[0]));

	memcpy((length->group ? t->r->meta : t->r->record) + length->offset, &count, sizeof(count));
}

/* Numbers, text and bytes, from a file or member. */
static bool convert_value(const struct target *t, const struct input_bytes *in, size_t *bytes)
{
	const uint8_t *data = t->c->part.data;
	struct field_verdict v;
	bool there = true, ok;

	ok = field_json_key(t->source) && in->file != PLAN_NO_FILE
		     ? field_value_of_key(t->f, t->source, data, in->bytes, t->at, bytes, &there, &v)
		     : field_value(t->f, t->source, data, in->bytes, t->at, bytes, &v);
	if (ok || (!there && t->source->optional))
		return true;
	convert_set(t->r, OUTCOME_BAD, (uint32_t)v.reason, "%s", v.message);
	return false;
}

static bool convert_mask(const struct target *t, const struct input_bytes *in)
{
	struct converter *c = t->c;
	struct mask *mask = c->mask[t->i];
	uint32_t orientation = convert_orientation(c, c->part.data, in->bytes), width, height, image_width, image_height;
	struct decode_verdict v;
	enum decode_status status = decoder_mask(c->decoder, c->part.data, in->bytes, mask_sink(mask, orientation, t->at), &v);

	if (!convert_status(t->r, status, &v))
		return false;
	mask_source_size(mask, &width, &height);
	transform_source_size(c->transform, &image_width, &image_height);
	if (width == image_width && height == image_height)
		return true;
	convert_set(t->r, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED, "a mask of %" PRIu32 " x %" PRIu32 ", and its image has %" PRIu32 " x %" PRIu32
		    "; they must be of one size", width, height, image_width, image_height);
	return false;
}

/* Boxes of the source image, XYXY, become those of the record. */
static bool move_boxes(const struct target *t, size_t bytes)
{
	float *boxes = (float *)(void *)t->at; /* aligned: the format sees to it */
	uint64_t count = bytes / (4 * sizeof(*boxes));
	uint32_t width, height;
	struct turn_axes axes = turn_axes(t->c->orientation);
	struct decode_verdict v = {0};

	if (!convert_status(t->r, boxes_read(BOXES_XYXY, boxes, count, boxes, &v), &v)) /* a plan's have not been looked at */
		return false;
	transform_source_size(t->c->transform, &width, &height);
	boxes_turn(t->c->orientation, axes.lies ? height : width, axes.lies ? width : height, boxes, count);
	boxes_move(&t->c->plan->recipe.transform, width, height, boxes, count);
	return true;
}

/* From a file or member, whose bytes are in c->part.  `bytes` is what a value has. */
static bool convert_part(const struct target *t, const struct input_bytes *in, size_t *bytes)
{
	switch (t->source->kind) {
	case FIELD_IMAGE:
		return convert_image(t->c, t->r, t->c->of_field[t->i], &t->c->part, in->bytes,
				     convert_orientation(t->c, t->c->part.data, in->bytes), t->at);
	case FIELD_MASK:
		return convert_mask(t, in);
	default:
		return convert_value(t, in, bytes);
	}
}

static bool convert_field(const struct target *t, const struct field_part *part)
{
	struct input_bytes in;
	uint32_t reason = t->r->reason;
	size_t bytes = 0;

	if (part_bytes(t->c, part, &in)) {
		convert_next_picture(t->c);
		if (!convert_read(t->c, t->r, &in, &t->c->part) || !convert_part(t, &in, &bytes))
			return blame(t, &in);
		if (t->r->reason != reason) /* its damage was accepted */
			blame(t, &in);
	} else if (part->kind == FIELD_PART_VALUE) {
		bytes = part->bytes;
		text_unhex(part->text, part->text_bytes, t->at, bytes);
	} else if (t->source->kind == FIELD_MASK) {
		memset(t->at, t->source->fill, (size_t)t->f->bytes);
	}
	if (t->f->kind != SHARD_TENSOR)
		put_length(t, bytes);
	return t->source->kind != FIELD_BOXES || move_boxes(t, bytes);
}

bool convert_fields(struct converter *c, struct result *r)
{
	const struct recipe *recipe = &c->plan->recipe;
	const struct shard_schema *s = &c->schema;
	const char *column = r->input.parts + 1, *parts = first_part(c, r);
	int64_t label = r->input.class_idx;
	struct field_part part;
	uint32_t i;

	/* Where fields are not, and behind the end of what is ragged, there are zeros. */
	memset(r->record + s->field[RECIPE_IMAGE].bytes, 0, (size_t)(s->group[0].record_bytes - s->field[RECIPE_IMAGE].bytes));
	memset(r->meta, 0, (size_t)s->group[1].record_bytes);
	memcpy(r->meta + s->field[RECIPE_LABEL].offset, &label, sizeof(label));
	for (i = 0; i < recipe->field_count; i++) {
		const struct shard_field *f = &s->field[RECIPE_FIRST + i];
		struct target t = {c, r, i, &recipe->from[i], f, (f->group ? r->meta : r->record) + f->offset};

		if (t.source->column) {
			text_unhex(column, 2 * (size_t)f->bytes, t.at, (size_t)f->bytes);
			column += 2 * f->bytes;
		}
		if (!field_has_part(t.source))
			continue;
		parts = next_part(parts, &part);
		if (!convert_field(&t, &part))
			return false;
	}
	return true;
}

/* The name of a member beside that of the sample's image: all up to the first dot of its last component, and the suffix. */
static const char *member_path(struct converter *c, const struct result *r, const struct field_source *s)
{
	const char *slash = strrchr(r->path, '/'), *base = slash ? slash + 1 : r->path;

	snprintf(c->path, sizeof(c->path), "%.*s.%s", (int)(base - r->path + (ptrdiff_t)strcspn(base, ".")), r->path,
		 field_json_key(s) ? "json" : s->from);
	return c->path;
}

bool convert_keep_fields(struct converter *c, struct result *r)
{
	const struct recipe *recipe = &c->plan->recipe;
	const char *parts = first_part(c, r);
	struct result reading = {.message = ""};
	struct field_part part;
	struct input_bytes in;
	bool ok = true;
	uint32_t i;

	for (i = 0; ok && i < recipe->field_count; i++) {
		if (!field_has_part(&recipe->from[i]))
			continue;
		parts = next_part(parts, &part);
		if (!part_bytes(c, &part, &in))
			continue;
		if (!convert_read(c, &reading, &in, &c->part)) {
			if (reading.outcome == OUTCOME_BAD) /* a FIFO, or too large: there are no bytes to keep */
				continue;
			convert_set(r, reading.outcome, 0, "field %s: %s", recipe->field[i].name, reading.message);
			ok = false;
		} else if (!quarantine_keep(c->quarantine, in.path ? in.path : member_path(c, r, &recipe->from[i]), c->part.data, in.bytes,
					    r->message, sizeof(r->message))) {
			r->outcome = OUTCOME_STOP;
			ok = false;
		}
	}
	return ok;
}
