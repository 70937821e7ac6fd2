/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c - fields of a record of images beside image and label, and their sources
 */
#include "tools/shardpack/plan/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/memory.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"

const char *const field_kind_names[] = {
	[FIELD_LENGTH] = "",	 [FIELD_TENSOR] = "tensor", [FIELD_RAGGED] = "ragged",
	[FIELD_TEXT] = "text",	 [FIELD_BYTES] = "bytes",   [FIELD_BOXES] = "boxes",
	[FIELD_IMAGE] = "image", [FIELD_MASK] = "mask",	    NULL,
};
const char *const field_turn_names[] = {
	[TURN_UNSAID] = "", [TURN_IMAGE] = "image", [TURN_OWN] = "own", [TURN_NONE] = "none", NULL,
};
static const char *const boxes_names[] = {
	[BOXES_XYXY] = "xyxy", [BOXES_XYWH] = "xywh", [BOXES_CXCYWH] = "cxcywh", [BOXES_YOLO] = "yolo", NULL,
};
static const char *const pick_names[] = {
	[PICK_UNSAID] = "", [PICK_FIRST] = "first", [PICK_EACH] = "each", [PICK_ALL] = "all", NULL,
};
static const char *const scale_names[] = {"pixels", "unit", NULL};

bool field_verdict_bad(struct field_verdict *v, int reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->message, sizeof(v->message), fmt, ap);
	va_end(ap);
	v->reason = reason;
	return false;
}

uint64_t field_mask_most(uint64_t dtype)
{
	return UINT64_MAX >> (64 - 8 * shard_dtype_bytes(dtype ? (uint32_t)dtype : SHARD_U8));
}

bool field_is_coded(const struct shard_field *f, const struct field_source *s)
{
	return f->dtype != SHARD_U8 || s->map.count;
}

bool field_is_name(const char *name, size_t bytes)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";

	return bytes && bytes < SHARD_NAME_BYTES && strchr(first, name[0]) &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-") >= bytes;
}

bool field_has_part(const struct field_source *s)
{
	return s->kind != FIELD_LENGTH && !s->column;
}

bool field_is_picture(uint32_t kind)
{
	return kind == FIELD_IMAGE || kind == FIELD_MASK;
}

void field_set_image(struct shard_field *f, const struct transform_options *t)
{
	static const uint32_t dtypes[] = {[IMAGE_U8] = SHARD_U8,
					  [IMAGE_F16] = SHARD_F16,
					  [IMAGE_BF16] = SHARD_BF16,
					  [IMAGE_F32] = SHARD_F32,
					  [IMAGE_U16] = SHARD_U16};
	bool hwc = t->layout == IMAGE_HWC;

	f->dtype = dtypes[t->samples];
	f->layout = hwc ? SHARD_HWC : SHARD_CHW;
	f->semantic = SHARD_IMAGE;
	if (t->fit == FIT_AREA) {
		f->kind = SHARD_RAGGED;
		f->ragged_axes = 1;
		f->ndim = 2;
		f->shape[0] = t->crop * t->crop;
		f->shape[1] = IMAGE_CHANNELS;
		return;
	}
	f->ndim = 3;
	f->shape[0] = hwc ? t->crop : IMAGE_CHANNELS;
	f->shape[1] = t->crop;
	f->shape[2] = hwc ? IMAGE_CHANNELS : t->crop;
}

/*
 * The same from the kind.  Of numbers, text and bytes the dtype and shape are there already;
 * `image` is the transform of the field `image`.
 */
static void set_by_kind(struct shard_field *f, const struct field_source *s, const struct transform_options *image)
{
	switch (s->kind) {
	case FIELD_RAGGED:
		f->kind = SHARD_RAGGED;
		f->ragged_axes = 1;
		break;
	case FIELD_TEXT:
	case FIELD_BYTES:
		f->dtype = SHARD_U8;
		f->kind = s->pick == PICK_ALL ? SHARD_RAGGED : SHARD_STRING;
		f->semantic = s->kind == FIELD_TEXT ? SHARD_TEXT : SHARD_SEMANTIC_NONE;
		f->ragged_axes = 1;
		break;
	case FIELD_BOXES:
		f->dtype = SHARD_F32;
		f->kind = SHARD_RAGGED;
		f->semantic = SHARD_BOXES;
		f->ragged_axes = 1;
		f->ndim = 2;
		f->shape[1] = 4;
		break;
	case FIELD_IMAGE:
		field_set_image(f, &s->transform);
		break;
	case FIELD_MASK:
		f->dtype = f->dtype ? f->dtype : SHARD_U8;
		f->semantic = SHARD_MASK;
		f->ndim = 2;
		f->shape[0] = f->shape[1] = image->crop;
		break;
	default:
		break;
	}
}

bool field_set_length(struct shard_field *length, const struct shard_field *f)
{
	if (f->kind == SHARD_TENSOR)
		return false;
	*length = (struct shard_field){.dtype = SHARD_U32, .semantic = SHARD_LENGTH, .ndim = 1, .shape = {1}};
	snprintf(length->name, sizeof(length->name), "%.*s" FIELD_LENGTH_SUFFIX,
		 (int)(sizeof(length->name) - sizeof(FIELD_LENGTH_SUFFIX)), f->name);
	return true;
}

void field_set_size(struct shard_field *size, const struct shard_field *image)
{
	*size = (struct shard_field){.dtype = SHARD_U32, .ndim = 1, .shape = {2}};
	snprintf(size->name, sizeof(size->name), "%.*s" FIELD_SIZE_SUFFIX,
		 (int)(sizeof(size->name) - sizeof(FIELD_SIZE_SUFFIX)), image->name);
}

const char *field_json_key(const struct field_source *s)
{
	return !strncmp(s->from, "json:", 5) ? s->from + 5 : NULL;
}

const char *field_coco_key(const struct field_source *s)
{
	return !strncmp(s->from, "coco:", 5) ? s->from + 5 : NULL;
}

/* ---- as a user asks for it, and as a plan names it ---- */

#define OPTION_BYTES (3 * FIELD_FROM_BYTES_MAX + 32)

#define OF(kind) (1u << (kind))
#define OF_LISTS (OF(FIELD_RAGGED) | OF(FIELD_TEXT) | OF(FIELD_BYTES) | OF(FIELD_BOXES))
#define OF_ALL	 (OF_LISTS | OF(FIELD_TENSOR) | OF(FIELD_IMAGE) | OF(FIELD_MASK))

const struct cli_key field_kind_help[] = {
	{"kind", "mask", "a class for each pixel, from a PNG, BMP or PGM; needs no other key"},
	{"kind", "boxes", "boxes of the image, which move with it; needs max="},
	{"kind", "image", "another image, resized and cropped as the keys say"},
	{"kind", "text", "UTF-8 of at most max= bytes"},
	{"kind", "bytes", "any bytes, at most max= of them"},
	{"kind", "tensor", "numbers of one shape; needs dtype="},
	{"kind", "ragged", "a list of numbers, whose length varies; needs dtype= and max="},
	{0},
};

const struct cli_key field_key_help[] = {
	[FIELD_KEY_KIND] = {"kind", "KIND", NULL},
	[FIELD_KEY_FROM] = {"from", "PLACE",
			    "column, member (seg.png), json:KEY, or file (masks/{}.png), where {} stands for the "
			    "image's path without its ending [the name of the field]"},
	[FIELD_KEY_OPTIONAL] = {"optional", NULL, "images may lack the field; with optional=all, all of them may"},
	[FIELD_KEY_FILL] = {"fill", "N", "for a mask: value of pixels outside of the image [0]"},
	[FIELD_KEY_FORMAT] = {"format", "FORMAT", "how boxes are written: xyxy, xywh, cxcywh or yolo [xyxy]"},
	[FIELD_KEY_TURN] =
		{"turn", "HOW",
		 "with --exif apply, how the field lies: image (as in the image's file), none (upright) or own (as "
		 "its own EXIF data says)"},
	[FIELD_KEY_PICK] = {"pick", "WHICH",
			    "which of several texts to take: first, all, or each (a record for each text)"},
	[FIELD_KEY_COUNT] = {"count", "N", "with pick=all: at most N texts in a record"},
	[FIELD_KEY_DTYPE] = {"dtype", "TYPE", "type of the numbers, such as u8, i64 or f32"},
	[FIELD_KEY_SHAPE] = {"shape", "NxN...", "shape of a tensor [a single number]"},
	[FIELD_KEY_MAX] = {"max", "N", "room in each record: number of boxes, bytes or numbers, such as 64 or 64x4"},
	[FIELD_KEY_RESIZE] = {"resize", "N", "for an image: as --resize"},
	[FIELD_KEY_FIT] = {"fit", "HOW", "for an image: as --fit"},
	[FIELD_KEY_CROP] = {"crop", "N", "for an image: as --crop"},
	[FIELD_KEY_FILTER] = {"filter", "NAME", "for an image: as --filter"},
	[FIELD_KEY_LAYOUT] = {"layout", "LAYOUT", "for an image: as --layout"},
	[FIELD_KEY_MEAN] = {"mean", "R/G/B", "for an image: as --mean, with slashes"},
	[FIELD_KEY_STD] = {"std", "R/G/B", "for an image: as --std, with slashes"},
	[FIELD_KEY_SCALE] = {"decode-scale", "S", "decode JPEGs at 1/S of their size: 1, 2, 4, 8 or auto [1]"},
	[FIELD_KEY_UNIT] = {"scale", "unit", "boxes are given as parts of width and height, 0 to 1"},
	[FIELD_KEY_MAP] = {"map", "FILE", "for a mask: file that gives each colour or value its class"},
	[FIELD_KEY_BITS] = {"bits", "8|16", "for an image: as --bits"},
	[FIELD_KEYS] = {0},
};

struct reading {
	struct field_option *o;
	bool encoded; /* a plan's */
	char *why;
	size_t why_bytes;
};

struct key {
	uint32_t kinds; /* to which it belongs */
	bool (*read)(const struct reading *r, enum field_key key, const char *value);
	const char *const *names; /* of read_word */
	uint64_t min, max;	  /* of read_number */
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct reading *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, r->why_bytes, fmt, ap);
	va_end(ap);
	return false;
}

static bool read_number(const struct reading *r, enum field_key key, const char *value);
static bool read_word(const struct reading *r, enum field_key key, const char *value);
static bool read_optional(const struct reading *r, enum field_key key, const char *value);
static bool read_dtype(const struct reading *r, enum field_key key, const char *value);
static bool read_shape(const struct reading *r, enum field_key key, const char *value);
static bool read_text(const struct reading *r, enum field_key key, const char *value);
static bool read_map(const struct reading *r, enum field_key key, const char *value);

static const struct key keys[FIELD_KEYS] = {
	[FIELD_KEY_KIND] = {OF_ALL, read_word, field_kind_names, 0, 0},
	[FIELD_KEY_FROM] = {OF_ALL, read_text, NULL, 0, FIELD_FROM_BYTES_MAX},
	[FIELD_KEY_OPTIONAL] = {OF_LISTS | OF(FIELD_MASK), read_optional, NULL, 0, 0},
	[FIELD_KEY_FILL] = {OF(FIELD_MASK), read_number, NULL, 0, UINT32_MAX},
	[FIELD_KEY_FORMAT] = {OF(FIELD_BOXES) | OF(FIELD_RAGGED), read_word, boxes_names, 0, 0},
	[FIELD_KEY_TURN] = {OF(FIELD_BOXES) | OF(FIELD_IMAGE) | OF(FIELD_MASK), read_word, field_turn_names, 0, 0},
	[FIELD_KEY_PICK] = {OF(FIELD_TEXT), read_word, pick_names, 0, 0},
	[FIELD_KEY_COUNT] = {OF(FIELD_TEXT), read_number, NULL, 1, UINT32_MAX},
	[FIELD_KEY_DTYPE] = {OF(FIELD_TENSOR) | OF(FIELD_RAGGED) | OF(FIELD_IMAGE) | OF(FIELD_MASK), read_dtype, NULL,
			     0, 0},
	[FIELD_KEY_SHAPE] = {OF(FIELD_TENSOR), read_shape, NULL, 0, 0},
	[FIELD_KEY_MAX] = {OF_LISTS, read_shape, NULL, 0, 0},
	[FIELD_KEY_RESIZE] = {OF(FIELD_IMAGE), read_number, NULL, 1, TRANSFORM_SIDE_MAX},
	[FIELD_KEY_FIT] = {OF(FIELD_IMAGE), read_word, transform_fit_names, 0, 0},
	[FIELD_KEY_CROP] = {OF(FIELD_IMAGE), read_number, NULL, 1, TRANSFORM_SIDE_MAX},
	[FIELD_KEY_FILTER] = {OF(FIELD_IMAGE), read_word, transform_filter_names, 0, 0},
	[FIELD_KEY_LAYOUT] = {OF(FIELD_IMAGE), read_word, transform_layout_names, 0, 0},
	[FIELD_KEY_MEAN] = {OF(FIELD_IMAGE), read_text, NULL, 0, FIELD_CHANNELS_BYTES - 1},
	[FIELD_KEY_STD] = {OF(FIELD_IMAGE), read_text, NULL, 0, FIELD_CHANNELS_BYTES - 1},
	[FIELD_KEY_SCALE] = {OF(FIELD_IMAGE), read_word, transform_scale_names, 0, 0},
	[FIELD_KEY_UNIT] = {OF(FIELD_BOXES), read_word, scale_names, 0, 0},
	[FIELD_KEY_BITS] = {OF(FIELD_IMAGE), read_number, NULL, 8, 16},
	[FIELD_KEY_MAP] = {OF(FIELD_MASK), read_map, NULL, 0, FIELD_FROM_BYTES_MAX},
};

static bool is_given(const struct field_option *o, enum field_key key)
{
	return o->given >> key & 1;
}

/* ---- values ---- */

static bool read_number(const struct reading *r, enum field_key key, const char *value)
{
	const struct key *k = &keys[key];

	if (text_u64(value, strlen(value), &r->o->value[key]) && r->o->value[key] >= k->min &&
	    r->o->value[key] <= k->max)
		return true;
	return refuse(r, "%s=%s: must be a whole number, %" PRIu64 " to %" PRIu64, field_key_help[key].name, value,
		      k->min, k->max);
}

static bool read_word(const struct reading *r, enum field_key key, const char *value)
{
	const char *const *names = keys[key].names;
	char list[160] = "";
	size_t used = 0;
	for (uint64_t i = 0; names[i]; i++) {
		if (names[i][0] && !strcmp(names[i], value)) {
			r->o->value[key] = i;
			return true;
		}
		if (names[i][0] && used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 !used		? ""
						 : names[i + 1] ? ", "
								: " or ",
						 names[i]);
	}
	return refuse(r, "%s=%s: must be %s", field_key_help[key].name, value, list);
}

static bool read_optional(const struct reading *r, enum field_key key, const char *value)
{
	r->o->value[key] = 1;
	return !strcmp(value, "all") ||
	       refuse(r, "optional=%s: must be optional, or optional=all if no input has a value", value);
}

static bool read_dtype(const struct reading *r, enum field_key key, const char *value)
{
	uint32_t dtype = text_named(SHARD_NAME_DTYPE, value, strlen(value), SHARD_U8);

	r->o->value[key] = dtype;
	return dtype != TEXT_NO_NAME ||
	       refuse(r, "dtype=%s: must be u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 or bool", value);
}

/* "4x4" */
static bool read_shape(const struct reading *r, enum field_key key, const char *value)
{
	const char *at = value;
	size_t bytes;

	for (;; at += bytes + 1) {
		uint64_t *axis = &r->o->shape[r->o->ndim];

		bytes = strcspn(at, "x");
		if (r->o->ndim == SHARD_DIMS_MAX || !text_u64(at, bytes, axis) || !*axis || *axis > UINT32_MAX)
			return refuse(
				r,
				"%s=%s: must be 1 to %d whole numbers above 0 with x between them, such as 16 or 4x4",
				field_key_help[key].name, value, SHARD_DIMS_MAX);
		r->o->ndim++;
		if (!at[bytes])
			return true;
	}
}

static bool read_text(const struct reading *r, enum field_key key, const char *value)
{
	char *to = key == FIELD_KEY_FROM   ? r->o->from
		   : key == FIELD_KEY_MEAN ? r->o->mean
		   : key == FIELD_KEY_MAP  ? r->o->map_path
					   : r->o->std;
	char decoded[OPTION_BYTES];

	if (r->encoded && key == FIELD_KEY_FROM) {
		if (text_decode(value, strlen(value), true, decoded) < 0)
			return refuse(r, "%s=%s: not percent-encoded", field_key_help[key].name, value);
		value = decoded;
	}
	if (!text_is_name(value, strlen(value), keys[key].max))
		return refuse(r, "%s=%s: must be UTF-8 of 1 to %" PRIu64 " bytes; it has %zu", field_key_help[key].name,
			      value, keys[key].max, strlen(value));
	strcpy(to, value);
	return true;
}

/* The map itself, or the file that it is in. */
static bool read_map(const struct reading *r, enum field_key key, const char *value)
{
	if (!r->encoded)
		return read_text(r, key, value);
	return mask_map_read(&r->o->map, value, strlen(value)) ||
	       refuse(r, "%s=%.60s: is not a map", field_key_help[key].name, value);
}

/* ---- the text ---- */

/* One option, "KEY=VALUE" or "optional".  A plan does not say optional=all. */
static bool read_option(const struct reading *r, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t bytes = equals ? (size_t)(equals - text) : strlen(text);
	uint32_t i;

	for (i = 0;
	     i < FIELD_KEYS && (strlen(field_key_help[i].name) != bytes || memcmp(field_key_help[i].name, text, bytes));
	     i++)
		;
	if (i == FIELD_KEYS)
		return refuse(r,
			      "'%s' is not an option; must be kind, from, optional, fill, format, scale, turn, pick, "
			      "count, dtype, shape, max, resize, fit, crop, filter, layout, mean, std, bits, "
			      "decode-scale or map",
			      text);
	if (is_given(r->o, i))
		return refuse(r, "%s is given twice", field_key_help[i].name);
	r->o->given |= 1u << i;
	if (i == FIELD_KEY_OPTIONAL ? equals && r->encoded : !equals)
		return refuse(r, equals ? "%s takes no value in a plan" : "%s needs a value", field_key_help[i].name);
	return !equals || keys[i].read(r, i, equals + 1);
}

/* Options that belong to another kind, and the ones that this kind must have. */
static bool check_kind(const struct reading *r)
{
	uint64_t kind = r->o->value[FIELD_KEY_KIND], dtype = r->o->value[FIELD_KEY_DTYPE];
	bool lists = OF_LISTS >> kind & 1;

	for (uint32_t i = 0; i < FIELD_KEYS; i++)
		if (is_given(r->o, i) && !(keys[i].kinds >> kind & 1))
			return refuse(r, "%s does not belong to kind=%s", field_key_help[i].name,
				      field_kind_names[kind]);
	if (lists && !is_given(r->o, FIELD_KEY_MAX))
		return refuse(r, "kind=%s needs max=N, the room in each record", field_kind_names[kind]);
	if (lists && kind != FIELD_RAGGED && r->o->ndim != 1)
		return refuse(r, "max of kind=%s must be one number", field_kind_names[kind]);
	if (is_given(r->o, FIELD_KEY_COUNT) != (r->o->value[FIELD_KEY_PICK] == PICK_ALL))
		return refuse(r, is_given(r->o, FIELD_KEY_COUNT)
					 ? "count=N belongs to pick=all"
					 : "pick=all needs count=N, the room for that many texts in each record");
	if (kind == FIELD_BOXES && r->o->value[FIELD_KEY_TURN] == TURN_OWN)
		return refuse(r, "turn=own does not belong to kind=boxes, which have no EXIF data; must be image or "
				 "none");
	if (kind == FIELD_RAGGED && is_given(r->o, FIELD_KEY_FORMAT) &&
	    (r->o->value[FIELD_KEY_FORMAT] != BOXES_YOLO || r->o->ndim != 1))
		return refuse(r, "of kind=ragged, format= must be yolo, which gives one number for each box, so max=N");
	if (r->o->value[FIELD_KEY_FORMAT] == BOXES_YOLO && is_given(r->o, FIELD_KEY_UNIT))
		return refuse(r, "format=yolo has a scale of its own, unit; leave scale out");
	if (kind == FIELD_MASK && is_given(r->o, FIELD_KEY_DTYPE) && dtype != SHARD_U8 && dtype != SHARD_U16 &&
	    dtype != SHARD_U32)
		return refuse(r, "dtype=%s: must be u8, u16 or u32 for a mask",
			      shard_name(SHARD_NAME_DTYPE, (uint32_t)dtype));
	if (kind == FIELD_MASK && r->o->value[FIELD_KEY_FILL] > field_mask_most(dtype))
		return refuse(r, "fill=%" PRIu64 ": must be a whole number, 0 to %" PRIu64, r->o->value[FIELD_KEY_FILL],
			      field_mask_most(dtype));
	if ((kind == FIELD_TENSOR || kind == FIELD_RAGGED) && !is_given(r->o, FIELD_KEY_DTYPE))
		return refuse(r, "kind=%s needs dtype=TYPE", field_kind_names[kind]);
	return true;
}

/* The name: all before the colon. */
static bool read_name(const struct reading *r, const char *text, size_t bytes)
{
	if (!field_is_name(text, bytes))
		return refuse(r,
			      "'%.*s' cannot be the name of a field: must be 1 to %zu letters, digits, _ . or -, "
			      "and begin with a letter or _",
			      (int)(bytes < 100 ? bytes : 100), text, sizeof(r->o->name) - 1);
	memcpy(r->o->name, text, bytes);
	if (!strcmp(r->o->name, "label"))
		return refuse(r, "the field label comes from --label-key, --labels, --label-regex or the source's "
				 "folders, not from --field");
	return true;
}

/* All options behind the name, from the colon on. */
static bool read_options(const struct reading *r, const char *at)
{
	bool ok = true;

	while (ok && *at) {
		size_t bytes = strcspn(++at, ",");
		bool has_map = r->encoded && !strncmp(at, "map=", 4); /* a plan has the map itself */
		char *option;

		if (bytes >= OPTION_BYTES && !has_map)
			return refuse(r, "an option of %zu bytes; the limit is %d", bytes, OPTION_BYTES - 1);
		option = xstrndup(at, bytes);
		ok = read_option(r, option);
		free(option);
		at += bytes;
	}
	return ok;
}

bool field_option_parse(const char *text, bool encoded, struct field_option *out, char *why, size_t why_bytes)
{
	struct reading r = {out, encoded, why, why_bytes};
	const char *at = text + strcspn(text, ":");

	memset(out, 0, sizeof(*out));
	if (!read_name(&r, text, (size_t)(at - text)) || !read_options(&r, at))
		return false;
	if (!is_given(out, FIELD_KEY_KIND) && strcmp(out->name, "image"))
		return refuse(&r, "needs kind=tensor, ragged, text, bytes, boxes, image or mask");
	if (!is_given(out, FIELD_KEY_KIND))
		out->value[FIELD_KEY_KIND] = FIELD_IMAGE;
	if (!strcmp(out->name, "image") && out->value[FIELD_KEY_KIND] != FIELD_IMAGE)
		return refuse(&r, "the field image is the input itself; must be kind=image");
	if (!strcmp(out->name, "image") && is_given(out, FIELD_KEY_FROM))
		return refuse(&r, "the field image is the input itself; leave from out");
	if (!strcmp(out->name, "image") && is_given(out, FIELD_KEY_TURN))
		return refuse(&r, "the field image is turned by --exif; leave turn out");
	return check_kind(&r);
}

void field_option_free(struct field_option *o)
{
	mask_map_free(&o->map);
}

/* ---- a plan's ---- */

/* "0.485/0.456/0.406" */
static void channels_text(const double *value, char out[FIELD_CHANNELS_BYTES])
{
	char number[IMAGE_CHANNELS][TEXT_DOUBLE_CHARS];
	for (uint32_t c = 0; c < IMAGE_CHANNELS; c++)
		text_double(number[c], value[c]);
	snprintf(out, FIELD_CHANNELS_BYTES, "%s/%s/%s", number[0], number[1], number[2]);
}

static void write_image(const struct transform_options *t, struct text *out)
{
	char channels[FIELD_CHANNELS_BYTES];

	if (t->resize)
		text_format(out, ",resize=%" PRIu32, t->resize);
	text_format(out, ",fit=%s,crop=%" PRIu32 ",filter=%s,layout=%s,dtype=%s", transform_fit_names[t->fit], t->crop,
		    transform_filter_names[t->filter], transform_layout_names[t->layout],
		    transform_samples_names[t->samples]);
	if (t->scale != SCALE_1) /* plans are older */
		text_format(out, ",decode-scale=%s", transform_scale_names[t->scale]);
	if (!image_is_normalised(t->samples))
		return;
	if (t->wide)
		text_format(out, ",bits=16");
	channels_text(t->normal.mean, channels);
	text_format(out, ",mean=%s", channels);
	channels_text(t->normal.std, channels);
	text_format(out, ",std=%s", channels);
}

void field_option_write(const struct shard_field *f, const struct field_source *s, struct text *out)
{
	const char *key = s->kind == FIELD_TENSOR ? "shape" : "max";
	uint32_t ndim = s->kind == FIELD_BOXES ? 1 : field_is_picture(s->kind) ? 0 : f->ndim, first = 0;

	text_format(out, "kind=%s,from=", field_kind_names[s->kind]);
	text_encode(out, s->from, strlen(s->from), true);
	if (s->optional)
		text_add(out, ",optional", 9);
	if (s->kind == FIELD_MASK && s->fill)
		text_format(out, ",fill=%u", s->fill);
	if (s->kind == FIELD_BOXES || s->boxes)
		text_format(out, ",format=%s", boxes_names[s->boxes]);
	if (s->unit && s->boxes != BOXES_YOLO)
		text_format(out, ",scale=%s", scale_names[s->unit]);
	if (s->turn != TURN_UNSAID)
		text_format(out, ",turn=%s", field_turn_names[s->turn]);
	if (s->pick != PICK_UNSAID)
		text_format(out, ",pick=%s", pick_names[s->pick]);
	if (s->pick == PICK_ALL)
		text_format(out, ",count=%" PRIu32, f->shape[first++]);
	if (s->kind == FIELD_TENSOR || s->kind == FIELD_RAGGED || (s->kind == FIELD_MASK && f->dtype != SHARD_U8))
		text_format(out, ",dtype=%s", shard_name(SHARD_NAME_DTYPE, f->dtype));
	if (ndim)
		text_format(out, ",%s", key);
	for (uint32_t i = first; i < ndim; i++)
		text_format(out, "%c%" PRIu32, i > first ? 'x' : '=', f->shape[i]);
	if (s->kind == FIELD_IMAGE)
		write_image(&s->transform, out);
	if (s->map.count) {
		text_format(out, ",map=");
		mask_map_write(&s->map, out);
	}
}

/* ---- the field that follows from what was asked for ---- */

static uint32_t samples_of(uint64_t dtype)
{
	static const uint8_t samples[] = {[SHARD_U8] = IMAGE_U8,
					  [SHARD_F16] = IMAGE_F16,
					  [SHARD_BF16] = IMAGE_BF16,
					  [SHARD_F32] = IMAGE_F32,
					  [SHARD_U16] = IMAGE_U16};
	uint32_t i = dtype < sizeof(samples) ? samples[dtype] : 0;

	return i || dtype == SHARD_U8 ? i : UINT32_MAX;
}

void field_option_image(const struct field_option *o, struct image_wish *out)
{
	if (is_given(o, FIELD_KEY_RESIZE))
		out->resize = o->value[FIELD_KEY_RESIZE];
	if (is_given(o, FIELD_KEY_CROP))
		out->crop = o->value[FIELD_KEY_CROP];
	if (is_given(o, FIELD_KEY_FIT))
		out->fit = (enum transform_fit)o->value[FIELD_KEY_FIT];
	if (is_given(o, FIELD_KEY_FILTER))
		out->filter = (enum resize_filter)o->value[FIELD_KEY_FILTER];
	if (is_given(o, FIELD_KEY_SCALE))
		out->scale = (enum transform_scale)o->value[FIELD_KEY_SCALE];
	if (is_given(o, FIELD_KEY_LAYOUT))
		out->layout = (enum image_layout)o->value[FIELD_KEY_LAYOUT];
	if (is_given(o, FIELD_KEY_DTYPE))
		out->samples = (enum image_samples)samples_of(o->value[FIELD_KEY_DTYPE]);
	if (is_given(o, FIELD_KEY_BITS))
		out->bits = o->value[FIELD_KEY_BITS];
	if (is_given(o, FIELD_KEY_MEAN))
		out->mean = o->mean;
	if (is_given(o, FIELD_KEY_STD))
		out->std = o->std;
}

static bool settle_image(const struct field_option *o, const struct transform_options *image,
			 struct transform_options *out, char *why, size_t why_bytes)
{
	char mean[FIELD_CHANNELS_BYTES], std[FIELD_CHANNELS_BYTES], assumed[200];
	struct image_wish w = {.fit = image->fit,
			       .filter = image->filter,
			       .pixels = image->pixels,
			       .layout = image->layout,
			       .samples = image->samples,
			       .scale = image->scale,
			       .separator = '/',
			       .dashes = ""};

	/* one size follows from the other, so both or none */
	if (!is_given(o, FIELD_KEY_RESIZE) && !is_given(o, FIELD_KEY_CROP)) {
		w.resize = image->resize;
		w.crop = image->crop;
	}
	/* bits go with the type */
	if (!is_given(o, FIELD_KEY_DTYPE) && image->wide)
		w.bits = 16;
	if (!is_given(o, FIELD_KEY_DTYPE) && image_is_normalised(image->samples)) {
		channels_text(image->normal.mean, mean);
		channels_text(image->normal.std, std);
		w.mean = mean;
		w.std = std;
	}
	field_option_image(o, &w);
	if (w.fit == FIT_AREA) {
		snprintf(why, why_bytes, "fit=area is for the field image alone; give another fit=, and resize=");
		return false;
	}
	return image_options_settle(&w, out, assumed, sizeof(assumed), why, why_bytes);
}

/* The classes of a map, which has been read. */
static bool settle_map(struct field_option *o, struct field_source *s, char *why, size_t why_bytes)
{
	uint64_t most = field_mask_most(o->value[FIELD_KEY_DTYPE]);

	if (!is_given(o, FIELD_KEY_MAP))
		return true;
	if (!o->map.count) {
		snprintf(why, why_bytes, "map=%s: no line has a colour or a value", o->map_path);
		return false;
	}
	if (mask_map_most(&o->map) > most) {
		snprintf(why, why_bytes, "map=%s: class %" PRIu32 " is above %" PRIu64 "; give dtype=%s", o->map_path,
			 mask_map_most(&o->map), most, mask_map_most(&o->map) > UINT16_MAX ? "u32" : "u16");
		return false;
	}
	s->map = o->map;
	o->map = (struct mask_map){0}; /* the source's now */
	return true;
}

bool field_option_settle(struct field_option *o, const struct transform_options *image, struct shard_field *f,
			 struct field_source *s, char *why, size_t why_bytes)
{
	*f = (struct shard_field){.dtype = (uint32_t)o->value[FIELD_KEY_DTYPE], .ndim = o->ndim};
	*s = (struct field_source){.kind = (uint32_t)o->value[FIELD_KEY_KIND],
				   .optional = is_given(o, FIELD_KEY_OPTIONAL),
				   .all_may_lack = o->value[FIELD_KEY_OPTIONAL],
				   .fill = (uint32_t)o->value[FIELD_KEY_FILL],
				   .boxes = (uint32_t)o->value[FIELD_KEY_FORMAT],
				   .unit = o->value[FIELD_KEY_KIND] == FIELD_BOXES &&
					   (o->value[FIELD_KEY_UNIT] || o->value[FIELD_KEY_FORMAT] == BOXES_YOLO),
				   .turn = (uint32_t)o->value[FIELD_KEY_TURN],
				   .pick = (uint32_t)o->value[FIELD_KEY_PICK],
				   .column = o->column};
	strcpy(f->name, o->name);
	strcpy(s->empty, o->empty);
	strcpy(s->from, o->from[0] ? o->from : o->name);
	for (uint32_t i = 0; i < o->ndim; i++)
		f->shape[i] = (uint32_t)o->shape[i];
	if (s->pick == PICK_ALL) {
		f->shape[f->ndim++] = f->shape[0];
		f->shape[0] = (uint32_t)o->value[FIELD_KEY_COUNT];
	}
	if (s->kind == FIELD_IMAGE) {
		f->dtype = 0;
		if (is_given(o, FIELD_KEY_DTYPE) && samples_of(o->value[FIELD_KEY_DTYPE]) == UINT32_MAX) {
			snprintf(why, why_bytes, "dtype=%s: must be u8, u16, f16, bf16 or f32 for an image",
				 shard_name(SHARD_NAME_DTYPE, (uint32_t)o->value[FIELD_KEY_DTYPE]));
			return false;
		}
		if (!settle_image(o, image, &s->transform, why, why_bytes))
			return false;
	}
	if (s->kind == FIELD_MASK && image->fit == FIT_AREA) {
		snprintf(why, why_bytes, "a mask has the one size of cropped images; with fit area leave it out");
		return false;
	}
	if (field_is_picture(s->kind) && field_json_key(s)) {
		snprintf(why, why_bytes, "from=%s: an image or a mask cannot come from JSON", s->from);
		return false;
	}
	if (s->boxes == BOXES_YOLO && field_json_key(s)) {
		snprintf(why, why_bytes, "from=%s: format=yolo is for files of text; must be cxcywh, with scale=unit",
			 s->from);
		return false;
	}
	if (f->dtype == SHARD_F16 || f->dtype == SHARD_BF16) {
		snprintf(why, why_bytes, "dtype=%s: must be u8 to i64, f32, f64 or bool for numbers",
			 shard_name(SHARD_NAME_DTYPE, f->dtype));
		return false;
	}
	set_by_kind(f, s, image);
	return settle_map(o, s, why, why_bytes);
}
