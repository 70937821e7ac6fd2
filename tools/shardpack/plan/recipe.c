/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.c - everything that, with the source, decides the bytes of a dataset
 *
 * The text is canonical: one recipe has one form, and only that form is read back.
 */
#include "tools/shardpack/plan/plan.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/words.h"
#include "shard_pack.h"
#include "tools/shardpack/images/images.h"

const char *const recipe_source_names[] = {
	[SOURCE_IMAGES] = "images",
	[SOURCE_ARRAY] = "array",
	[SOURCE_RAW] = "raw",
	[SOURCE_TOKENS] = "tokens",
	[SOURCE_CIFAR] = "cifar",
	[SOURCE_MNIST] = "mnist",
	NULL,
};
const char *const recipe_label_names[] = {
	[LABEL_CLASS] = "class", [LABEL_NONE] = "none", [LABEL_LIST] = "list", [LABEL_HOT] = "hot", NULL};
const char *const recipe_exif_names[] = {[EXIF_IGNORE] = "ignore", [EXIF_APPLY] = "apply", NULL};
const char *const recipe_accept_names[] = {
	[ACCEPT_NONE] = "none",
	[ACCEPT_EOI] = "eoi",
	[ACCEPT_WARNINGS] = "warnings",
	NULL,
};
const char *const recipe_codec_names[] = {[SHARD_RAW] = "none", [SHARD_LZ4] = "lz4", NULL};
const char *const recipe_order_names[] = {
	[SHARD_ORDER_UNKNOWN] = "-",
	[SHARD_ORDER_SOURCE] = "source",
	[SHARD_ORDER_SHUFFLE] = "shuffle",
	NULL,
};
const char *const recipe_on_error_names[] = {
	[ON_ERROR_FAIL] = "fail",
	[ON_ERROR_SKIP] = "skip",
	[ON_ERROR_QUARANTINE] = "quarantine",
	NULL,
};

static void write_field(const struct shard_field *f, const struct field_source *from, struct text *out)
{
	text_format(out, "field %s %s %s %s %s ", f->name, shard_name(SHARD_NAME_DTYPE, f->dtype),
		    shard_name(SHARD_NAME_KIND, f->kind), shard_name(SHARD_NAME_LAYOUT, f->layout),
		    shard_name(SHARD_NAME_SEMANTIC, f->semantic));
	text_add(out, "[", 1);
	for (uint32_t i = 0; i < f->ndim; i++)
		text_format(out, "%s%" PRIu32, i ? "," : "", f->shape[i]);
	text_format(out, "] %" PRIu32 " %" PRIu32, f->ragged_axes, f->length_field);
	if (field_has_part(from)) {
		text_add(out, " ", 1);
		field_option_write(f, from, out);
	}
	text_add(out, "\n", 1);
}

/* "mean 0.485 0.456 0.406" */
static void write_channels(const char *key, const double *value, struct text *out)
{
	char number[TEXT_DOUBLE_CHARS];
	text_format(out, "%s", key);
	for (uint32_t c = 0; c < IMAGE_CHANNELS; c++) {
		text_double(number, value[c]);
		text_format(out, " %s", number);
	}
	text_add(out, "\n", 1);
}

static void write_transform(const struct recipe *r, struct text *out)
{
	if (r->label != LABEL_CLASS) /* defaults are not named: plans are older than these options */
		text_format(out, "label %s\n", recipe_label_names[r->label]);
	if (recipe_is_multi_label(r))
		text_format(out, "label-room %" PRIu32 "\n", r->label_room);
	limits_write(&r->limits, out);
	if (r->formats) {
		text_format(out, "formats");
		for (const struct image_format *f = image_formats; f->name; f++)
			if (r->formats & image_format_bit(f))
				text_format(out, " %s", f->plan_name);
		text_add(out, "\n", 1);
	}
	if (r->accept != ACCEPT_NONE)
		text_format(out, "accept %s\n", recipe_accept_names[r->accept]);
	if (r->exif != EXIF_IGNORE)
		text_format(out, "exif %s\n", recipe_exif_names[r->exif]);
	if (r->transform.scale != SCALE_1)
		text_format(out, "decode-scale %s\n", transform_scale_names[r->transform.scale]);
	text_format(out, "resize %" PRIu32 "\n", r->transform.resize);
	if (r->transform.fit != FIT_SHORT)
		text_format(out, "fit %s\n", transform_fit_names[r->transform.fit]);
	if (r->transform.fit != FIT_AREA)
		text_format(out, "crop %" PRIu32 "\n", r->transform.crop);
	text_format(out, "filter %s\n", transform_filter_names[r->transform.filter]);
	if (r->transform.pixels != RESIZE_ROWS_FIRST)
		text_format(out, "pixels %s\n", transform_pixels_names[r->transform.pixels]);
	text_format(out, "layout %s\n", transform_layout_names[r->transform.layout]);
	if (r->transform.samples == IMAGE_U8)
		return;
	text_format(out, "dtype %s\n", transform_samples_names[r->transform.samples]);
	if (!image_is_normalised(r->transform.samples))
		return;
	if (r->transform.wide)
		text_format(out, "bits 16\n");
	write_channels("mean", r->transform.normal.mean, out);
	write_channels("std", r->transform.normal.std, out);
}

bool recipe_is_images(const struct recipe *r)
{
	return r->source == SOURCE_IMAGES;
}

void recipe_write(const struct recipe *r, struct text *out)
{
	text_format(out, "source %s\n", recipe_source_names[r->source]);
	if (recipe_is_images(r))
		write_transform(r, out);
	for (uint32_t i = 0; i < r->field_count; i++)
		write_field(&r->field[i], &r->from[i], out);
	text_format(out, "compress %s\n", recipe_codec_names[r->codec]);
	text_format(out, "align %" PRIu32 "\n", r->align);
	text_format(out, "order %s\n", recipe_order_names[r->order]);
	text_format(out, "seed %" PRIu64 "\n", r->seed);
	text_format(out, "on-error %s\n", recipe_on_error_names[r->on_error]);
	text_format(out, "shard-records %" PRIu64 "\n", r->shard_records);
}

void recipe_write_versions(const struct recipe *r, struct text *out)
{
	text_format(out, "bytes-version %d\n", SHARD_BYTES_VERSION);
	for (const struct image_format *f = image_formats; f->name && recipe_is_images(r); f++)
		if (f->library && (!f->plan_name || r->formats & image_format_bit(f)))
			text_format(out, "version %s\n", f->version ? f->version() : f->plan_name);
	if (r->codec == SHARD_LZ4) {
		/* " lz4 1.9.4" out of "libshard 0.1.0, xxhash 0.8.1, lz4 1.9.4" */
		const char *details = shard_version_details(), *at = strstr(details, "lz4");
		size_t bytes = at ? strcspn(at, ",;)\n") : 0;

		if (!at) { /* better too much than nothing: then any change makes another plan */
			at = details;
			bytes = strcspn(details, "\n");
		}
		text_add(out, "version ", 8);
		text_add(out, at, bytes);
		text_add(out, "\n", 1);
	}
}

void recipe_free(struct recipe *r)
{
	for (uint32_t i = 0; i < SHARD_FIELDS_MAX; i++)
		mask_map_free(&r->from[i].map);
}

uint64_t recipe_field_items(const struct shard_field *f)
{
	uint64_t items = 1;
	for (uint32_t i = 0; i < f->ndim; i++) {
		if (f->shape[i] && items > UINT64_MAX / 16 / f->shape[i])
			return UINT64_MAX / 16;
		items *= f->shape[i];
	}
	return items;
}

bool recipe_has_label(const struct recipe *r)
{
	return recipe_is_images(r) && r->label != LABEL_NONE;
}

bool recipe_has_parts(const struct recipe *r)
{
	for (uint32_t i = 0; i < r->field_count; i++)
		if (field_has_part(&r->from[i]))
			return true;
	return false;
}

bool recipe_names_classes(const struct recipe *r)
{
	bool names = recipe_has_label(r);
	for (uint32_t i = 0; i < r->field_count && !names; i++)
		names = field_coco_key(&r->from[i]) != NULL;
	return names;
}

bool recipe_is_multi_label(const struct recipe *r)
{
	return recipe_is_images(r) && (r->label == LABEL_LIST || r->label == LABEL_HOT);
}

uint32_t recipe_label_field(const struct recipe *r)
{
	return (r->transform.fit == FIT_AREA ? RECIPE_SIZE : RECIPE_IMAGE) + 1;
}

uint32_t recipe_first(const struct recipe *r)
{
	return recipe_label_field(r) + recipe_has_label(r) + (recipe_is_images(r) && r->label == LABEL_LIST);
}

uint32_t recipe_named_max(const struct recipe *r)
{
	return SHARD_FIELDS_MAX - recipe_first(r) - (r->accept != ACCEPT_NONE);
}

const struct shard_field *recipe_damage(const struct recipe *r, const struct shard_schema *s)
{
	return recipe_is_images(r) && r->accept != ACCEPT_NONE ? &s->field[s->field_count - 1] : NULL;
}

/* The fields before the ones that the recipe names. */
static void set_image_and_label(const struct recipe *r, struct shard_schema *out)
{
	struct shard_field *image = &out->field[RECIPE_IMAGE];

	strcpy(image->name, "image");
	field_set_image(image, &r->transform);

	if (field_set_length(&out->field[RECIPE_LENGTH], image)) {
		image->length_field = RECIPE_LENGTH;
		field_set_size(&out->field[RECIPE_SIZE], image);
		out->field[RECIPE_LENGTH].group = out->field[RECIPE_SIZE].group = 1;
	}
	if (recipe_has_label(r)) {
		uint32_t i = recipe_label_field(r);
		struct shard_field *label = &out->field[i];

		strcpy(label->name, "label");
		label->dtype = r->label == LABEL_HOT ? SHARD_U8 : SHARD_I64;
		label->semantic = SHARD_LABEL;
		label->group = 1;
		label->ndim = recipe_is_multi_label(r);
		label->shape[0] = r->label_room;
		if (r->label == LABEL_LIST) {
			label->kind = SHARD_RAGGED;
			label->ragged_axes = 1;
			label->length_field = i + 1;
			field_set_length(&out->field[i + 1], label);
			out->field[i + 1].group = 1;
		}
	}
}

int recipe_schema(const struct recipe *r, struct shard_schema *out, struct shard_error *err)
{
	uint32_t first = recipe_is_images(r) ? recipe_first(r) : 0;

	memset(out, 0, sizeof(*out));
	out->field_count = first;
	out->group[0].codec = r->codec;
	out->group[1].codec = SHARD_RAW;
	if (recipe_is_images(r))
		set_image_and_label(r, out);
	for (uint32_t i = 0; i < r->field_count; i++) {
		struct shard_field *f = &out->field[out->field_count++];

		*f = r->field[i];
		f->group = SHARD_GROUP_BY_SIZE;
		if (f->kind != SHARD_TENSOR)
			f->length_field += first;
	}
	if (r->accept != ACCEPT_NONE) {
		struct shard_field *damage = &out->field[out->field_count++];

		strcpy(damage->name, RECIPE_DAMAGE);
		damage->dtype = SHARD_U8;
		damage->group = 1;
	}
	shard_schema_group(out);
	return shard_schema_lay_out(out, r->align, err);
}

void recipe_provenance(const struct recipe *r, const uint8_t plan_digest[32], struct text *out)
{
	text_format(out, "made by shardpack\n");
	recipe_write(r, out);
	recipe_write_versions(r, out);
	text_add(out, "plan ", 5);
	text_hex(out, plan_digest, 32);
	text_add(out, "\n", 1);
}

/* ---- read back ---- */

/*
 * Takes what recipe_write() writes and nothing else: another form of the same recipe would be
 * another plan.
 */

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

static bool take_named(struct words *c, enum shard_name_of what, uint32_t first, uint32_t *out)
{
	struct word w;

	if (!words_take(c, ' ', &w))
		return false;
	*out = text_named(what, w.text, w.bytes, first);
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
	    !take_named(c, SHARD_NAME_DTYPE, SHARD_U8, &f->dtype) ||
	    !take_named(c, SHARD_NAME_KIND, SHARD_TENSOR, &f->kind) ||
	    !take_named(c, SHARD_NAME_LAYOUT, SHARD_LAYOUT_NONE, &f->layout) ||
	    !take_named(c, SHARD_NAME_SEMANTIC, SHARD_SEMANTIC_NONE, &f->semantic) || !words_take(c, ' ', &shape) ||
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
	return again->bytes == w.bytes && !memcmp(again->data, w.text, w.bytes);
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
	ok = strlen(typed.data) == typed.bytes && field_option_parse(typed.data, true, &o, why, sizeof(why)) &&
	     strcmp(o.name, "image") && field_option_settle(&o, &r->transform, f, s, why, sizeof(why));
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
	ok = typed.bytes && strlen(typed.data) == typed.bytes && limits_parse(typed.data, l, why, sizeof(why));
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

static bool take_transform(struct words *c, struct recipe *r)
{
	uint64_t label_room = 0, resize = 0, crop = 0;
	uint32_t fit = 0, filter = 0, pixels = 0, layout = 0, scale = 0;

	if (!take_optional_word(c, "label", recipe_label_names, &r->label) ||
	    (recipe_is_multi_label(r) && !take_number(c, "label-room", 1, UINT32_MAX, &label_room)) ||
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
	r->label_room = (uint32_t)label_room;
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
