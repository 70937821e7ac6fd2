/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe_read.c - the text of a recipe, read back
 *
 * Takes what recipe_write() writes and nothing else: another form of the same recipe would be
 * another plan.
 */
#include "tools/shardpack/plan/recipe_read.h"
#include "shard_pack.h"

#include <string.h>

#include "tools/shardpack/decode/decode_formats.h"
#include "tools/shardpack/decode/image.h"
#include "tools/shardpack/image/transform_image.h"
#include "tools/shardpack/plan/field_option.h"
#include "tools/shardpack/plan/recipe.h"

struct cursor {
	const char *at, *end;
};

/* The value of the line "KEY VALUE".  False, and the cursor stays, if it is another line. */
static bool take_line(struct cursor *c, const char *key, const char **value, size_t *bytes)
{
	const char *lf = memchr(c->at, '\n', (size_t)(c->end - c->at));
	size_t key_bytes = strlen(key);

	if (!lf || (size_t)(lf - c->at) <= key_bytes || memcmp(c->at, key, key_bytes) || c->at[key_bytes] != ' ')
		return false;
	*value = c->at + key_bytes + 1;
	*bytes = (size_t)(lf - *value);
	c->at = lf + 1;
	return true;
}

static bool take_number(struct cursor *c, const char *key, uint64_t min, uint64_t max, uint64_t *out)
{
	struct cursor start = *c;
	const char *value;
	size_t bytes;

	if (take_line(c, key, &value, &bytes) && text_u64(value, bytes, out) && *out >= min && *out <= max)
		return true;
	*c = start;
	return false;
}

static bool take_word(struct cursor *c, const char *key, const char *const *names, uint32_t first, uint32_t *out)
{
	struct cursor start = *c;
	const char *value;
	size_t bytes;
	if (take_line(c, key, &value, &bytes))
		for (uint32_t i = first; names[i]; i++)
			if (strlen(names[i]) == bytes && !memcmp(names[i], value, bytes)) {
				*out = i;
				return true;
			}
	*c = start;
	return false;
}

/* "[3,32,32]" of at most SHARD_DIMS_MAX numbers, none above 2^32 - 1. */
static bool read_shape(const char *at, size_t bytes, struct shard_field *f)
{
	if (bytes < 2 || at[0] != '[' || at[bytes - 1] != ']')
		return false;
	at++;
	bytes -= 2;
	while (bytes) {
		const char *comma = memchr(at, ',', bytes);
		size_t n = comma ? (size_t)(comma - at) : bytes;
		uint64_t value;

		if (f->ndim == SHARD_DIMS_MAX || !text_u64(at, n, &value) || value > UINT32_MAX ||
		    (comma && n + 1 == bytes))
			return false;
		f->shape[f->ndim++] = (uint32_t)value;
		at += n + (comma != NULL);
		bytes -= n + (comma != NULL);
	}
	return true;
}

/*
 * What write_field() wrote behind "field "; *source is its ninth word, NULL if there is none.
 * Whether such a field can be is for shard_schema_lay_out().
 */
static bool read_field(const char *value, size_t bytes, struct shard_field *f, const char **source,
		       size_t *source_bytes)
{
	const char *word[8], *end = value + bytes;
	size_t n[8];
	uint64_t axes = 0, length = 0;
	memset(f, 0, sizeof(*f));
	for (unsigned i = 0; i < 8; i++) {
		const char *blank = value < end ? memchr(value, ' ', (size_t)(end - value)) : NULL;

		word[i] = value;
		n[i] = (size_t)((blank ? blank : end) - value);
		if (i < 7 && !blank)
			return false;
		value += n[i] + 1;
	}
	*source = value < end ? value : NULL;
	*source_bytes = value < end ? (size_t)(end - value) : 0;
	if (!n[0] || n[0] >= sizeof(f->name) || memchr(word[0], '\0', n[0]))
		return false;
	memcpy(f->name, word[0], n[0]);
	f->dtype = text_named(shard_dtype_name, word[1], n[1], SHARD_U8);
	f->kind = text_named(shard_kind_name, word[2], n[2], SHARD_TENSOR);
	f->layout = text_named(shard_layout_name, word[3], n[3], SHARD_LAYOUT_NONE);
	f->semantic = text_named(shard_semantic_name, word[4], n[4], SHARD_SEMANTIC_NONE);
	if (f->dtype == TEXT_NO_NAME || f->kind == TEXT_NO_NAME || f->layout == TEXT_NO_NAME ||
	    f->semantic == TEXT_NO_NAME || !read_shape(word[5], n[5], f) || !text_u64(word[6], n[6], &axes) ||
	    axes > 255 || !text_u64(word[7], n[7], &length) || length >= SHARD_FIELDS_MAX)
		return false;
	f->ragged_axes = (uint32_t)axes;
	f->length_field = (uint32_t)length;
	return true;
}

/* The ninth word of a field, and the field that follows from it. */
static bool read_source(const struct recipe *r, const char *word, size_t bytes, struct shard_field *f,
			struct field_source *s)
{
	struct text typed = {0}, again = {0};
	struct field_option o = {.given = 0};
	char why[320];
	bool ok;

	text_format(&typed, "%s:", f->name);
	text_add(&typed, word, bytes);
	ok = !text_failed(&typed) && strlen(typed.data) == typed.bytes &&
	     field_option_parse(typed.data, true, &o, why, sizeof(why)) && strcmp(o.name, "image") &&
	     field_option_settle(&o, &r->transform, f, s, why, sizeof(why));
	if (ok) {
		field_option_write(f, s, &again);
		ok = !text_failed(&again) && again.bytes == bytes && !memcmp(again.data, word, bytes);
	}
	field_option_free(&o);
	text_free(&typed);
	text_free(&again);
	return ok;
}

/* A field behind the label of an image: is it what its source makes of it? */
static bool settle_source(struct recipe *r, uint32_t i, const char *word, size_t bytes)
{
	const struct shard_field said = r->field[i];
	struct shard_field *f = &r->field[i], length;

	if (i && field_set_length(&length, &r->field[i - 1])) {
		r->from[i].kind = FIELD_LENGTH;
		return !word && !memcmp(&length, &said, sizeof(said));
	}
	if (!word) {
		r->from[i] = (struct field_source){.kind = FIELD_TENSOR, .column = true};
		strcpy(r->from[i].from, said.name);
		return !said.ndim && !said.kind && !said.semantic && !said.layout && !said.ragged_axes &&
		       !said.length_field;
	}
	if (!read_source(r, word, bytes, f, &r->from[i]))
		return false;
	if (r->from[i].turn != TURN_UNSAID && r->exif != EXIF_APPLY)
		return false;
	f->length_field = f->kind == SHARD_TENSOR ? 0 : i + 1;
	return !memcmp(f, &said, sizeof(said));
}

static bool take_fields(struct cursor *c, struct recipe *r)
{
	struct cursor start = *c;
	const char *value, *source = NULL;
	struct shard_field length;
	size_t bytes, source_bytes;
	uint32_t max = recipe_is_images(r) ? recipe_named_max(r) : SHARD_FIELDS_MAX;

	while (take_line(c, "field", &value, &bytes)) {
		uint32_t i = r->field_count++;

		if (i == max || !read_field(value, bytes, &r->field[i], &source, &source_bytes) ||
		    !(recipe_is_images(r) ? settle_source(r, i, source, source_bytes) : !source)) {
			*c = start;
			return false;
		}
		start = *c;
	}
	if (!recipe_is_images(r))
		return r->field_count > 0;
	return !r->field_count || r->from[r->field_count - 1].kind == FIELD_LENGTH ||
	       !field_set_length(&length, &r->field[r->field_count - 1]);
}

/* A line that names any value but the first of the list.  False if it is there and wrong. */
static bool take_optional_word(struct cursor *c, const char *key, const char *const *names, uint32_t *out)
{
	struct cursor start = *c;
	const char *value;
	size_t bytes;

	*out = 0;
	if (!take_line(c, key, &value, &bytes))
		return true;
	*c = start;
	return take_word(c, key, names, 1, out);
}

/* Numbers in the form that write_channels() gives them, no other. */
static bool take_channels(struct cursor *c, const char *key, double *value)
{
	char number[TEXT_DOUBLE_CHARS];
	struct cursor start = *c;
	const char *at;
	size_t left, n;
	uint32_t i;

	if (!take_line(c, key, &at, &left))
		return false;
	for (i = 0; i < IMAGE_CHANNELS; i++, at += n + 1, left -= n + 1) {
		n = i + 1 < IMAGE_CHANNELS ? strcspn(at, " \n") : left;
		if (n > left || (i + 1 < IMAGE_CHANNELS && n == left) || !text_parse_double(at, n, &value[i]))
			break;
		text_double(number, value[i]);
		if (strlen(number) != n || memcmp(number, at, n))
			break;
	}
	if (i == IMAGE_CHANNELS)
		return true;
	*c = start;
	return false;
}

static bool take_samples(struct cursor *c, struct transform_options *t)
{
	struct cursor start = *c;
	struct normal_table table;
	uint32_t samples, channel;
	uint64_t bits;

	if (!take_optional_word(c, "dtype", transform_samples_names, &samples))
		return false;
	t->samples = (enum image_samples)samples;
	if (t->samples == IMAGE_U8)
		return true;
	t->wide = t->samples == IMAGE_U16 || take_number(c, "bits", 16, 16, &bits);
	if (t->wide && t->scale != SCALE_1)
		return false;
	if (t->samples == IMAGE_U16)
		return t->fit != FIT_AREA;
	if (t->fit == FIT_AREA || !take_channels(c, "mean", t->normal.mean) || !take_channels(c, "std", t->normal.std))
		return false;
	if (normal_fill(&table, t->samples, &t->normal, &channel))
		return true;
	*c = start;
	return false;
}

/* A line that is there if a limit is not the default; only as limits_write() writes it. */
static bool take_limits(struct cursor *c, struct limits *l)
{
	struct cursor start = *c;
	struct text typed = {0}, again = {0};
	const char *value;
	size_t bytes;
	char why[320];
	bool ok;

	if (!take_line(c, "limit", &value, &bytes))
		return true;
	text_add(&typed, value, bytes);
	ok = !text_failed(&typed) && bytes && strlen(typed.data) == bytes &&
	     limits_parse(typed.data, l, why, sizeof(why));
	if (ok) {
		limits_write(l, &again);
		bytes = (size_t)(c->at - start.at);
		ok = !text_failed(&again) && again.bytes == bytes && !memcmp(again.data, start.at, bytes);
	}
	if (!ok)
		*c = start;
	text_free(&typed);
	text_free(&again);
	return ok;
}

/* Names of formats, in their one order. */
static bool take_formats(struct cursor *c, uint32_t *formats)
{
	struct cursor start = *c;
	const struct decode_format_name *f = decode_format_names;
	const char *at, *end;
	size_t bytes;

	if (!take_line(c, "formats", &at, &bytes))
		return true;
	for (end = at + bytes; f->bit && at < end; f++) {
		size_t n = strlen(f->name);

		if ((size_t)(end - at) < n || memcmp(at, f->name, n) || (at + n < end && at[n] != ' '))
			continue;
		*formats |= f->bit;
		at += n + (at + n < end);
	}
	if (*formats && at == end && end[-1] != ' ')
		return true;
	*c = start;
	return false;
}

/* A line that is there if an image may have several labels. */
static bool take_label_room(struct cursor *c, struct recipe *r)
{
	uint64_t room = 0;

	if (recipe_is_multi_label(r) && !take_number(c, "label-room", 1, UINT32_MAX, &room))
		return false;
	r->label_room = (uint32_t)room;
	return true;
}

static bool take_transform(struct cursor *c, struct recipe *r)
{
	uint64_t resize = 0, crop = 0;
	uint32_t fit = 0, filter = 0, pixels = 0, layout = 0, scale = 0;

	if (!take_optional_word(c, "label", recipe_label_names, &r->label) || !take_label_room(c, r) ||
	    !take_limits(c, &r->limits) || !take_formats(c, &r->formats) ||
	    !take_optional_word(c, "accept", recipe_accept_names, &r->accept) ||
	    !take_optional_word(c, "exif", recipe_exif_names, &r->exif) ||
	    !take_optional_word(c, "decode-scale", transform_scale_names, &scale) ||
	    !take_number(c, "resize", 0, TRANSFORM_SIDE_MAX, &resize) ||
	    !take_optional_word(c, "fit", transform_fit_names, &fit) ||
	    !(fit == FIT_AREA || take_number(c, "crop", 1, TRANSFORM_SIDE_MAX, &crop)) ||
	    !take_word(c, "filter", transform_filter_names, 0, &filter) ||
	    !take_optional_word(c, "pixels", transform_pixels_names, &pixels) ||
	    !take_word(c, "layout", transform_layout_names, 0, &layout) || (resize && crop > resize) ||
	    ((fit != FIT_SHORT || scale != SCALE_1) && !resize) || (fit == FIT_PAD && crop != resize) ||
	    (fit == FIT_AREA && layout != IMAGE_HWC))
		return false;
	r->transform.resize = (uint32_t)resize;
	r->transform.crop = (uint32_t)(fit == FIT_AREA ? resize : crop);
	r->transform.fit = (enum transform_fit)fit;
	r->transform.scale = (enum transform_scale)scale;
	r->transform.filter = (enum resize_filter)filter;
	r->transform.pixels = (enum resize_pixels)pixels;
	r->transform.layout = (enum image_layout)layout;
	return take_samples(c, &r->transform);
}

size_t recipe_read(struct recipe *r, const char *in, size_t in_bytes, size_t *wrong)
{
	struct cursor c = {in, in + in_bytes};
	uint64_t align = 0;
	bool ok;

	memset(r, 0, sizeof(*r));
	ok = take_word(&c, "source", recipe_source_names, 0, &r->source) &&
	     (!recipe_is_images(r) || take_transform(&c, r)) && take_fields(&c, r) &&
	     take_word(&c, "compress", recipe_codec_names, 0, &r->codec) && take_number(&c, "align", 0, 4096, &align) &&
	     take_word(&c, "order", recipe_order_names, 1, &r->order) &&
	     take_number(&c, "seed", 0, UINT64_MAX, &r->seed) &&
	     take_word(&c, "on-error", recipe_on_error_names, 0, &r->on_error) &&
	     take_number(&c, "shard-records", 1, UINT64_C(1) << 40, &r->shard_records);
	*wrong = (size_t)(c.at - in);
	r->align = (uint32_t)align;
	return ok ? (size_t)(c.at - in) : 0;
}
