/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe_read.c - the text of a recipe, read back
 *
 * Takes what recipe_write() writes and nothing else: another form of the same recipe would be
 * another plan.
 */
#include "tools/shardpack/plan/plan.h"

#include <string.h>

#include "libshard/base/words.h"
#include "shard_inspect.h"
#include "tools/shardpack/images/image.h"
#include "tools/shardpack/images/images.h"

/* The value of the line "KEY VALUE".  False, with nothing taken, if it is another line. */
static bool take_line(struct words *c, const char *key, struct words *value)
{
	struct words next = *c;

	if (!words_line(&next, value) || !words_is(value, ' ', key) || words_done(value))
		return false;
	*c = next;
	return true;
}

static bool take_number(struct words *c, const char *key, uint64_t min, uint64_t max, uint64_t *out)
{
	struct words start = *c, value;

	if (take_line(c, key, &value) && words_u64(&value, '\n', max, out) && *out >= min)
		return true;
	*c = start;
	return false;
}

static bool take_word(struct words *c, const char *key, const char *const *names, uint32_t first, uint32_t *out)
{
	struct words start = *c, value;

	if (take_line(c, key, &value))
		for (*out = first; names[*out]; (*out)++)
			if (words_is(&value, '\n', names[*out]))
				return true;
	*c = start;
	return false;
}

/* "[3,32,32]" of at most SHARD_DIMS_MAX numbers, none above 2^32 - 1. */
static bool read_shape(struct word w, struct shard_field *f)
{
	struct words c;
	uint64_t size;

	if (w.bytes < 2 || w.text[0] != '[' || w.text[w.bytes - 1] != ']')
		return false;
	c = words_of(w.text + 1, w.bytes - 2);
	for (; w.bytes > 2 && !words_done(&c); f->shape[f->ndim++] = (uint32_t)size)
		if (f->ndim == SHARD_DIMS_MAX || !words_u64(&c, ',', UINT32_MAX, &size))
			return false;
	return true;
}

static bool take_named(struct words *c, const char *(*name_of)(uint32_t), uint32_t first, uint32_t *out)
{
	struct word w;

	if (!words_take(c, ' ', &w))
		return false;
	*out = text_named(name_of, w.text, w.bytes, first);
	return *out != TEXT_NO_NAME;
}

/*
 * What write_field() wrote behind "field "; a ninth word, which says its source, is left.  Whether
 * such a field can be is for shard_schema_lay_out().
 */
static bool read_field(struct words *c, struct shard_field *f)
{
	struct word name, shape;
	uint64_t axes, length;

	memset(f, 0, sizeof(*f));
	if (!words_take(c, ' ', &name) || !text_is_name(name.text, name.bytes, sizeof(f->name) - 1) ||
	    !take_named(c, shard_dtype_name, SHARD_U8, &f->dtype) ||
	    !take_named(c, shard_kind_name, SHARD_TENSOR, &f->kind) ||
	    !take_named(c, shard_layout_name, SHARD_LAYOUT_NONE, &f->layout) ||
	    !take_named(c, shard_semantic_name, SHARD_SEMANTIC_NONE, &f->semantic) || !words_take(c, ' ', &shape) ||
	    !read_shape(shape, f) || !words_u64(c, ' ', 255, &axes) ||
	    !words_u64(c, ' ', SHARD_FIELDS_MAX - 1, &length))
		return false;
	memcpy(f->name, name.text, name.bytes);
	f->ragged_axes = (uint32_t)axes;
	f->length_field = (uint32_t)length;
	return true;
}

/* Is this how it is written? */
static bool is_written(struct word w, const struct text *again)
{
	return !text_failed(again) && again->bytes == w.bytes && !memcmp(again->data, w.text, w.bytes);
}

/* The ninth word of a field, and the field that follows from it. */
static bool read_source(const struct recipe *r, struct word said, struct shard_field *f, struct field_source *s)
{
	struct text typed = {0}, again = {0};
	struct field_option o = {.given = 0};
	char why[320];
	bool ok;

	text_format(&typed, "%s:", f->name);
	text_add(&typed, said.text, said.bytes);
	ok = !text_failed(&typed) && strlen(typed.data) == typed.bytes &&
	     field_option_parse(typed.data, true, &o, why, sizeof(why)) && strcmp(o.name, "image") &&
	     field_option_settle(&o, &r->transform, f, s, why, sizeof(why));
	if (ok) {
		field_option_write(f, s, &again);
		ok = is_written(said, &again);
	}
	field_option_free(&o);
	text_free(&typed);
	text_free(&again);
	return ok;
}

/* A field behind the label of an image: is it what its source makes of it? */
static bool settle_source(struct recipe *r, uint32_t i, const struct words *source)
{
	const struct shard_field said = r->field[i];
	struct shard_field *f = &r->field[i], length;

	if (i && field_set_length(&length, &r->field[i - 1])) {
		r->from[i].kind = FIELD_LENGTH;
		return words_done(source) && !memcmp(&length, &said, sizeof(said));
	}
	if (words_done(source)) {
		r->from[i] = (struct field_source){.kind = FIELD_TENSOR, .column = true};
		strcpy(r->from[i].from, said.name);
		return !said.ndim && !said.kind && !said.semantic && !said.layout && !said.ragged_axes &&
		       !said.length_field;
	}
	if (!read_source(r, words_rest(source), f, &r->from[i]))
		return false;
	if (r->from[i].turn != TURN_UNSAID && r->exif != EXIF_APPLY)
		return false;
	f->length_field = f->kind == SHARD_TENSOR ? 0 : i + 1;
	return !memcmp(f, &said, sizeof(said));
}

static bool take_fields(struct words *c, struct recipe *r)
{
	struct words start = *c, line;
	struct shard_field length;
	uint32_t max = recipe_is_images(r) ? recipe_named_max(r) : SHARD_FIELDS_MAX;

	while (take_line(c, "field", &line)) {
		uint32_t i = r->field_count++;

		if (i == max || !read_field(&line, &r->field[i]) ||
		    !(recipe_is_images(r) ? settle_source(r, i, &line) : words_done(&line))) {
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
static bool take_optional_word(struct words *c, const char *key, const char *const *names, uint32_t *out)
{
	struct words peek = *c, value;

	*out = 0;
	return !take_line(&peek, key, &value) || take_word(c, key, names, 1, out);
}

/* Numbers in the form that write_channels() gives them, no other. */
static bool take_channels(struct words *c, const char *key, double *value)
{
	char again[TEXT_DOUBLE_CHARS];
	struct words start = *c, line;
	struct word w;
	uint32_t i = 0;

	if (!take_line(c, key, &line))
		return false;
	for (; i < IMAGE_CHANNELS && words_take(&line, ' ', &w) && text_parse_double(w.text, w.bytes, &value[i]); i++) {
		text_double(again, value[i]);
		if (!word_is(w, again))
			break;
	}
	if (i == IMAGE_CHANNELS && words_done(&line))
		return true;
	*c = start;
	return false;
}

static bool take_samples(struct words *c, struct transform_options *t)
{
	struct words start = *c;
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
static bool take_limits(struct words *c, struct limits *l)
{
	struct words start = *c, value;
	struct text typed = {0}, again = {0};
	char why[320];
	bool ok;

	if (!take_line(c, "limit", &value))
		return true;
	text_add(&typed, value.at, words_rest(&value).bytes);
	ok = !text_failed(&typed) && typed.bytes && strlen(typed.data) == typed.bytes &&
	     limits_parse(typed.data, l, why, sizeof(why));
	if (ok) {
		limits_write(l, &again);
		ok = is_written((struct word){start.at, (size_t)(c->at - start.at)}, &again);
	}
	if (!ok)
		*c = start;
	text_free(&typed);
	text_free(&again);
	return ok;
}

/* Names of formats, in their one order. */
static bool take_formats(struct words *c, uint32_t *formats)
{
	struct words start = *c, line;

	if (!take_line(c, "formats", &line))
		return true;
	for (const struct image_format *f = image_formats; f->name; f++)
		if (f->plan_name && words_is(&line, ' ', f->plan_name))
			*formats |= image_format_bit(f);
	if (*formats && words_done(&line))
		return true;
	*c = start;
	return false;
}

/* A line that is there if an image may have several labels. */
static bool take_label_room(struct words *c, struct recipe *r)
{
	uint64_t room = 0;

	if (recipe_is_multi_label(r) && !take_number(c, "label-room", 1, UINT32_MAX, &room))
		return false;
	r->label_room = (uint32_t)room;
	return true;
}

static bool take_transform(struct words *c, struct recipe *r)
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
	struct words c = words_of(in, in_bytes);
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
