/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_option.c - a field as a user asks for it, and as a plan names it
 */
#include "tools/shardpack/plan/field_option.h"
#include "shard_pack.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/text.h"
#include "tools/shardpack/decode/image.h"
#include "tools/shardpack/image/transform_image.h"

#define OPTION_BYTES (3 * FIELD_FROM_BYTES_MAX + 32)

#define OF(kind) (1u << (kind))
#define OF_LISTS (OF(FIELD_RAGGED) | OF(FIELD_TEXT) | OF(FIELD_BYTES) | OF(FIELD_BOXES))
#define OF_ALL	 (OF_LISTS | OF(FIELD_TENSOR) | OF(FIELD_IMAGE) | OF(FIELD_MASK))

struct reading {
	struct field_option *o;
	bool encoded; /* a plan's */
	char *why;
	size_t why_bytes;
};

struct key {
	const char *name;
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
static bool read_dtype(const struct reading *r, enum field_key key, const char *value);
static bool read_shape(const struct reading *r, enum field_key key, const char *value);
static bool read_text(const struct reading *r, enum field_key key, const char *value);

static const struct key keys[FIELD_KEYS] = {
	[FIELD_KEY_KIND] = {"kind", OF_ALL, read_word, field_kind_names, 0, 0},
	[FIELD_KEY_FROM] = {"from", OF_ALL, read_text, NULL, 0, FIELD_FROM_BYTES_MAX},
	[FIELD_KEY_OPTIONAL] = {"optional", OF_LISTS | OF(FIELD_MASK), NULL, NULL, 0, 0},
	[FIELD_KEY_FILL] = {"fill", OF(FIELD_MASK), read_number, NULL, 0, 255},
	[FIELD_KEY_FORMAT] = {"format", OF(FIELD_BOXES), read_word, field_boxes_names, 0, 0},
	[FIELD_KEY_TURN] = {"turn", OF(FIELD_BOXES) | OF(FIELD_IMAGE) | OF(FIELD_MASK), read_word, field_turn_names, 0,
			    0},
	[FIELD_KEY_DTYPE] = {"dtype", OF(FIELD_TENSOR) | OF(FIELD_RAGGED) | OF(FIELD_IMAGE), read_dtype, NULL, 0, 0},
	[FIELD_KEY_SHAPE] = {"shape", OF(FIELD_TENSOR), read_shape, NULL, 0, 0},
	[FIELD_KEY_MAX] = {"max", OF_LISTS, read_shape, NULL, 0, 0},
	[FIELD_KEY_RESIZE] = {"resize", OF(FIELD_IMAGE), read_number, NULL, 1, TRANSFORM_SIDE_MAX},
	[FIELD_KEY_FIT] = {"fit", OF(FIELD_IMAGE), read_word, transform_fit_names, 0, 0},
	[FIELD_KEY_CROP] = {"crop", OF(FIELD_IMAGE), read_number, NULL, 1, TRANSFORM_SIDE_MAX},
	[FIELD_KEY_FILTER] = {"filter", OF(FIELD_IMAGE), read_word, transform_filter_names, 0, 0},
	[FIELD_KEY_LAYOUT] = {"layout", OF(FIELD_IMAGE), read_word, transform_layout_names, 0, 0},
	[FIELD_KEY_MEAN] = {"mean", OF(FIELD_IMAGE), read_text, NULL, 0, FIELD_CHANNELS_BYTES - 1},
	[FIELD_KEY_STD] = {"std", OF(FIELD_IMAGE), read_text, NULL, 0, FIELD_CHANNELS_BYTES - 1},
	[FIELD_KEY_SCALE] = {"decode-scale", OF(FIELD_IMAGE), read_word, transform_scale_names, 0, 0},
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
	return refuse(r, "%s=%s: must be a whole number, %" PRIu64 " to %" PRIu64, k->name, value, k->min, k->max);
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
	return refuse(r, "%s=%s: must be %s", keys[key].name, value, list);
}

static bool read_dtype(const struct reading *r, enum field_key key, const char *value)
{
	uint32_t dtype = text_named(shard_dtype_name, value, strlen(value), SHARD_U8);

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
				keys[key].name, value, SHARD_DIMS_MAX);
		r->o->ndim++;
		if (!at[bytes])
			return true;
	}
}

static bool read_text(const struct reading *r, enum field_key key, const char *value)
{
	char *to = key == FIELD_KEY_FROM ? r->o->from : key == FIELD_KEY_MEAN ? r->o->mean : r->o->std;
	char decoded[OPTION_BYTES];

	if (r->encoded && key == FIELD_KEY_FROM) {
		if (text_decode(value, strlen(value), true, decoded) < 0)
			return refuse(r, "%s=%s: not percent-encoded", keys[key].name, value);
		value = decoded;
	}
	if (!text_is_name(value, strlen(value), keys[key].max))
		return refuse(r, "%s=%s: must be UTF-8 of 1 to %" PRIu64 " bytes; it has %zu", keys[key].name, value,
			      keys[key].max, strlen(value));
	strcpy(to, value);
	return true;
}

/* ---- the text ---- */

/* One option, "KEY=VALUE" or "optional". */
static bool read_option(const struct reading *r, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t bytes = equals ? (size_t)(equals - text) : strlen(text);
	uint32_t i;

	for (i = 0; i < FIELD_KEYS && (strlen(keys[i].name) != bytes || memcmp(keys[i].name, text, bytes)); i++)
		;
	if (i == FIELD_KEYS)
		return refuse(r,
			      "'%s' is not an option; must be kind, from, optional, fill, format, turn, dtype, "
			      "shape, max, resize, fit, crop, filter, layout, mean, std or decode-scale",
			      text);
	if (is_given(r->o, i))
		return refuse(r, "%s is given twice", keys[i].name);
	r->o->given |= 1u << i;
	if ((keys[i].read == NULL) == (equals != NULL))
		return refuse(r, equals ? "%s takes no value" : "%s needs a value", keys[i].name);
	return !equals || keys[i].read(r, i, equals + 1);
}

/* Options that belong to another kind, and those that this one must have. */
static bool check_kind(const struct reading *r)
{
	uint64_t kind = r->o->value[FIELD_KEY_KIND];
	bool lists = OF_LISTS >> kind & 1;
	for (uint32_t i = 0; i < FIELD_KEYS; i++)
		if (is_given(r->o, i) && !(keys[i].kinds >> kind & 1))
			return refuse(r, "%s does not belong to kind=%s", keys[i].name, field_kind_names[kind]);
	if (lists && !is_given(r->o, FIELD_KEY_MAX))
		return refuse(r, "kind=%s needs max=N, the room in each record", field_kind_names[kind]);
	if (lists && kind != FIELD_RAGGED && r->o->ndim != 1)
		return refuse(r, "max of kind=%s must be one number", field_kind_names[kind]);
	if (kind == FIELD_BOXES && r->o->value[FIELD_KEY_TURN] == TURN_OWN)
		return refuse(r, "turn=own does not belong to kind=boxes, which have no EXIF data; must be image or "
				 "none");
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

bool field_option_parse(const char *text, bool encoded, struct field_option *out, char *why, size_t why_bytes)
{
	struct reading r = {out, encoded, why, why_bytes};
	const char *at = text + strcspn(text, ":");
	char option[OPTION_BYTES];

	memset(out, 0, sizeof(*out));
	if (!read_name(&r, text, (size_t)(at - text)))
		return false;
	while (*at) {
		size_t bytes = strcspn(++at, ",");

		if (bytes >= sizeof(option))
			return refuse(&r, "an option of %zu bytes; the limit is %zu", bytes, sizeof(option) - 1);
		memcpy(option, at, bytes);
		option[bytes] = '\0';
		if (!read_option(&r, option))
			return false;
		at += bytes;
	}
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

/* ---- what follows ---- */

static uint32_t samples_of(uint64_t dtype)
{
	static const uint8_t samples[] = {
		[SHARD_U8] = IMAGE_U8, [SHARD_F16] = IMAGE_F16, [SHARD_BF16] = IMAGE_BF16, [SHARD_F32] = IMAGE_F32};
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
	if (is_given(o, FIELD_KEY_MEAN))
		out->mean = o->mean;
	if (is_given(o, FIELD_KEY_STD))
		out->std = o->std;
}

/* "0.485/0.456/0.406" */
static void channels_text(const double *value, char out[FIELD_CHANNELS_BYTES])
{
	char number[IMAGE_CHANNELS][TEXT_DOUBLE_CHARS];
	for (uint32_t c = 0; c < IMAGE_CHANNELS; c++)
		text_double(number[c], value[c]);
	snprintf(out, FIELD_CHANNELS_BYTES, "%s/%s/%s", number[0], number[1], number[2]);
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
	if (!is_given(o, FIELD_KEY_DTYPE) && image->samples != IMAGE_U8) {
		channels_text(image->normal.mean, mean);
		channels_text(image->normal.std, std);
		w.mean = mean;
		w.std = std;
	}
	field_option_image(o, &w);
	return image_options_settle(&w, out, assumed, sizeof(assumed), why, why_bytes);
}

bool field_option_settle(const struct field_option *o, const struct transform_options *image, struct shard_field *f,
			 struct field_source *s, char *why, size_t why_bytes)
{
	*f = (struct shard_field){.dtype = (uint32_t)o->value[FIELD_KEY_DTYPE], .ndim = o->ndim};
	*s = (struct field_source){.kind = (uint32_t)o->value[FIELD_KEY_KIND],
				   .optional = is_given(o, FIELD_KEY_OPTIONAL),
				   .fill = (uint8_t)o->value[FIELD_KEY_FILL],
				   .boxes = (uint32_t)o->value[FIELD_KEY_FORMAT],
				   .turn = (uint32_t)o->value[FIELD_KEY_TURN]};
	strcpy(f->name, o->name);
	strcpy(s->from, o->from[0] ? o->from : o->name);
	for (uint32_t i = 0; i < o->ndim; i++)
		f->shape[i] = (uint32_t)o->shape[i];
	if (s->kind == FIELD_IMAGE) {
		f->dtype = 0;
		if (is_given(o, FIELD_KEY_DTYPE) && samples_of(o->value[FIELD_KEY_DTYPE]) == UINT32_MAX) {
			snprintf(why, why_bytes, "dtype=%s: must be u8, f16, bf16 or f32 for an image",
				 shard_dtype_name((uint32_t)o->value[FIELD_KEY_DTYPE]));
			return false;
		}
		if (!settle_image(o, image, &s->transform, why, why_bytes))
			return false;
	}
	if (field_is_picture(s->kind) && field_json_key(s)) {
		snprintf(why, why_bytes, "from=%s: an image or a mask cannot come from JSON", s->from);
		return false;
	}
	if (f->dtype == SHARD_F16 || f->dtype == SHARD_BF16) {
		snprintf(why, why_bytes, "dtype=%s: must be u8 to i64, f32, f64 or bool for numbers",
			 shard_dtype_name(f->dtype));
		return false;
	}
	field_set(f, s, image);
	return true;
}

/* ---- a plan's ---- */

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
	if (t->samples == IMAGE_U8)
		return;
	channels_text(t->normal.mean, channels);
	text_format(out, ",mean=%s", channels);
	channels_text(t->normal.std, channels);
	text_format(out, ",std=%s", channels);
}

void field_option_write(const struct shard_field *f, const struct field_source *s, struct text *out)
{
	const char *key = s->kind == FIELD_TENSOR ? "shape" : "max";
	uint32_t ndim = s->kind == FIELD_BOXES ? 1 : field_is_picture(s->kind) ? 0 : f->ndim;

	text_format(out, "kind=%s,from=", field_kind_names[s->kind]);
	text_encode(out, s->from, strlen(s->from), true);
	if (s->optional)
		text_add(out, ",optional", 9);
	if (s->kind == FIELD_MASK && s->fill)
		text_format(out, ",fill=%u", s->fill);
	if (s->kind == FIELD_BOXES)
		text_format(out, ",format=%s", field_boxes_names[s->boxes]);
	if (s->turn != TURN_UNSAID)
		text_format(out, ",turn=%s", field_turn_names[s->turn]);
	if (s->kind == FIELD_TENSOR || s->kind == FIELD_RAGGED)
		text_format(out, ",dtype=%s", shard_dtype_name(f->dtype));
	if (ndim)
		text_format(out, ",%s", key);
	for (uint32_t i = 0; i < ndim; i++)
		text_format(out, "%c%" PRIu32, i ? 'x' : '=', f->shape[i]);
	if (s->kind == FIELD_IMAGE)
		write_image(&s->transform, out);
}
