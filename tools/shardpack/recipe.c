/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.c - everything that, with the source, decides the bytes of a dataset
 *
 * The text is canonical: one recipe has one form, and only that form is read back.
 */
#include "tools/shardpack/recipe.h"

#include <inttypes.h>
#include <string.h>

#include "tools/shardpack/decode.h"
#include "tools/shardpack/extra.h"
#include "tools/shardpack/source.h"

const char *const recipe_filter_names[] = {
	[RESIZE_BOX] = "box",
	[RESIZE_BILINEAR] = "bilinear",
	[RESIZE_BICUBIC] = "bicubic",
	[RESIZE_LANCZOS] = "lanczos",
	NULL,
};
const char *const recipe_fit_names[] = {
	[FIT_SHORT] = "short",
	[FIT_LONG] = "long",
	[FIT_STRETCH] = "stretch",
	[FIT_PAD] = "pad",
	NULL,
};
const char *const recipe_exif_names[] = {[EXIF_IGNORE] = "ignore", [EXIF_APPLY] = "apply", NULL};
const char *const recipe_layout_names[] = {[IMAGE_HWC] = "hwc", [IMAGE_CHW] = "chw", NULL};
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

static void write_field(const struct shard_field *f, struct text *out)
{
	uint32_t i;

	text_format(out, "field %s %s %s %s %s ", f->name, shard_dtype_name(f->dtype), shard_kind_name(f->kind),
		    shard_layout_name(f->layout), shard_semantic_name(f->semantic));
	text_add(out, "[", 1);
	for (i = 0; i < f->ndim; i++)
		text_format(out, "%s%" PRIu32, i ? "," : "", f->shape[i]);
	text_format(out, "] %" PRIu32 " %" PRIu32 "\n", f->ragged_axes, f->length_field);
}

static void write_transform(const struct recipe *r, struct text *out)
{
	if (r->exif != EXIF_IGNORE) /* defaults are not named: plans are older than these options */
		text_format(out, "exif %s\n", recipe_exif_names[r->exif]);
	text_format(out, "resize %" PRIu32 "\n", r->transform.resize);
	if (r->transform.fit != FIT_SHORT)
		text_format(out, "fit %s\n", recipe_fit_names[r->transform.fit]);
	text_format(out, "crop %" PRIu32 "\n", r->transform.crop);
	text_format(out, "filter %s\n", recipe_filter_names[r->transform.filter]);
	text_format(out, "layout %s\n", recipe_layout_names[r->transform.layout]);
}

bool recipe_is_images(const struct recipe *r)
{
	return source_table[r->source]->kind == SOURCE_IMAGES;
}

void recipe_write(const struct recipe *r, struct text *out)
{
	uint32_t i;

	text_format(out, "source %s\n", source_table[r->source]->name);
	if (recipe_is_images(r))
		write_transform(r, out);
	for (i = 0; i < r->field_count; i++)
		write_field(&r->field[i], out);
	text_format(out, "compress %s\n", recipe_codec_names[r->codec]);
	text_format(out, "align %" PRIu32 "\n", r->align);
	text_format(out, "order %s\n", recipe_order_names[r->order]);
	text_format(out, "seed %" PRIu64 "\n", r->seed);
	text_format(out, "on-error %s\n", recipe_on_error_names[r->on_error]);
	text_format(out, "shard-records %" PRIu64 "\n", r->shard_records);
}

/* " lz4 1.9.4" out of "libshard 0.1.0, xxhash 0.8.1, lz4 1.9.4": the words of one library. */
static void write_linked_version(struct text *out, const char *name)
{
	const char *details = shard_version_details(), *at = strstr(details, name);
	size_t bytes = at ? strcspn(at, ",;)\n") : 0;

	if (!at) { /* better too much than nothing: then any change makes another plan */
		at = details;
		bytes = strcspn(details, "\n");
	}
	text_add(out, "version ", 8);
	text_add(out, at, bytes);
	text_add(out, "\n", 1);
}

void recipe_write_versions(const struct recipe *r, struct text *out)
{
	text_format(out, "version libshard %s\n", shard_version());
	if (recipe_is_images(r)) {
		text_format(out, "version %s\n", decoder_jpeg_version());
		text_format(out, "version %s\n", decoder_png_version());
		text_format(out, "version %s\n", decoder_webp_version());
	}
	if (r->codec == SHARD_LZ4)
		write_linked_version(out, "lz4");
}

struct cursor {
	const char *at, *end;
};

/* The value of the line "KEY VALUE"; false, with the cursor still on that line, if it is another one. */
static bool take_line(struct cursor *c, const char *key, const char **value, size_t *bytes)
{
	const char *lf = memchr(c->at, '\n', (size_t)(c->end - c->at));
	size_t key_bytes = strlen(key);

	if (!lf || (size_t)(lf - c->at) <= key_bytes || memcmp(c->at, key, key_bytes) != 0 || c->at[key_bytes] != ' ')
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
	uint32_t i;

	if (take_line(c, key, &value, &bytes))
		for (i = first; names[i]; i++)
			if (strlen(names[i]) == bytes && memcmp(names[i], value, bytes) == 0) {
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

		if (f->ndim == SHARD_DIMS_MAX || !text_u64(at, n, &value) || value > UINT32_MAX || (comma && n + 1 == bytes))
			return false;
		f->shape[f->ndim++] = (uint32_t)value;
		at += n + (comma != NULL);
		bytes -= n + (comma != NULL);
	}
	return true;
}

/* A name as libshard writes it to its number; 0xffffffff if there is none. */
static uint32_t named(const char *(*name_of)(uint32_t), const char *word, size_t bytes, uint32_t first)
{
	const char *name;
	uint32_t i;

	for (i = first; (name = name_of(i)) != NULL; i++)
		if (strlen(name) == bytes && memcmp(name, word, bytes) == 0)
			return i;
	return UINT32_MAX;
}

/* What write_field() wrote behind "field ".  Whether such a field can be is for shard_schema_lay_out(). */
static bool read_field(const char *value, size_t bytes, struct shard_field *f)
{
	const char *word[8], *end = value + bytes;
	size_t n[8];
	uint64_t axes = 0, length = 0;
	unsigned i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < 8; i++) {
		const char *blank = value < end ? memchr(value, ' ', (size_t)(end - value)) : NULL;

		word[i] = value;
		n[i] = (size_t)((blank ? blank : end) - value);
		if ((i < 7) != (blank != NULL))
			return false;
		value += n[i] + 1;
	}
	if (!n[0] || n[0] >= sizeof(f->name) || memchr(word[0], '\0', n[0]))
		return false;
	memcpy(f->name, word[0], n[0]);
	f->dtype = named(shard_dtype_name, word[1], n[1], SHARD_U8);
	f->kind = named(shard_kind_name, word[2], n[2], SHARD_TENSOR);
	f->layout = named(shard_layout_name, word[3], n[3], SHARD_LAYOUT_NONE);
	f->semantic = named(shard_semantic_name, word[4], n[4], SHARD_SEMANTIC_NONE);
	if (f->dtype == UINT32_MAX || f->kind == UINT32_MAX || f->layout == UINT32_MAX || f->semantic == UINT32_MAX ||
	    !read_shape(word[5], n[5], f) || !text_u64(word[6], n[6], &axes) || axes > 255 ||
	    !text_u64(word[7], n[7], &length) || length >= SHARD_FIELDS_MAX)
		return false;
	f->ragged_axes = (uint32_t)axes;
	f->length_field = (uint32_t)length;
	return true;
}

static bool take_fields(struct cursor *c, struct recipe *r)
{
	struct cursor start = *c;
	const char *value;
	size_t bytes;
	uint32_t i;

	while (take_line(c, "field", &value, &bytes)) {
		if (r->field_count == SHARD_FIELDS_MAX || !read_field(value, bytes, &r->field[r->field_count])) {
			*c = start;
			return false;
		}
		r->field_count++;
		start = *c;
	}
	if (!recipe_is_images(r))
		return r->field_count > 0;
	for (i = 0; i < r->field_count; i++)
		if (r->field_count > EXTRA_COLUMNS_MAX || r->field[i].ndim || r->field[i].kind || r->field[i].semantic)
			return false;
	return true;
}

/* A line that is there only if the value is not the first name of the list; false if it is there and wrong. */
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

static bool take_transform(struct cursor *c, struct recipe *r)
{
	uint64_t resize = 0, crop = 0;
	uint32_t fit = 0, filter = 0, layout = 0;

	if (!take_optional_word(c, "exif", recipe_exif_names, &r->exif) ||
	    !take_number(c, "resize", 0, TRANSFORM_SIDE_MAX, &resize) ||
	    !take_optional_word(c, "fit", recipe_fit_names, &fit) ||
	    !take_number(c, "crop", 1, TRANSFORM_SIDE_MAX, &crop) ||
	    !take_word(c, "filter", recipe_filter_names, 0, &filter) ||
	    !take_word(c, "layout", recipe_layout_names, 0, &layout) || (resize && crop > resize) ||
	    (fit != FIT_SHORT && !resize) || (fit == FIT_PAD && crop != resize))
		return false;
	r->transform.resize = (uint32_t)resize;
	r->transform.crop = (uint32_t)crop;
	r->transform.fit = (enum transform_fit)fit;
	r->transform.filter = (enum resize_filter)filter;
	r->transform.layout = (enum image_layout)layout;
	return true;
}

static bool take_source(struct cursor *c, struct recipe *r)
{
	const char *names[SOURCES_MAX + 1];
	uint32_t i;

	for (i = 0; source_table[i]; i++)
		names[i] = source_table[i]->name;
	names[i] = NULL;
	return take_word(c, "source", names, 0, &r->source);
}

size_t recipe_read(struct recipe *r, const char *in, size_t in_bytes, size_t *wrong)
{
	struct cursor c = {in, in + in_bytes};
	uint64_t align = 0;
	bool ok;

	memset(r, 0, sizeof(*r));
	ok = take_source(&c, r) && (!recipe_is_images(r) || take_transform(&c, r)) && take_fields(&c, r) &&
	     take_word(&c, "compress", recipe_codec_names, 0, &r->codec) && take_number(&c, "align", 0, 4096, &align) &&
	     take_word(&c, "order", recipe_order_names, 1, &r->order) &&
	     take_number(&c, "seed", 0, UINT64_MAX, &r->seed) &&
	     take_word(&c, "on-error", recipe_on_error_names, 0, &r->on_error) &&
	     take_number(&c, "shard-records", 1, UINT64_C(1) << 40, &r->shard_records);
	*wrong = (size_t)(c.at - in);
	r->align = (uint32_t)align;
	return ok ? (size_t)(c.at - in) : 0;
}

uint64_t recipe_field_items(const struct shard_field *f)
{
	uint64_t items = 1;
	uint32_t i;

	for (i = 0; i < f->ndim; i++) {
		if (f->shape[i] && items > UINT64_MAX / 16 / f->shape[i])
			return UINT64_MAX / 16;
		items *= f->shape[i];
	}
	return items;
}

static int fixed_schema(const struct recipe *r, struct shard_schema *out, struct shard_error *err)
{
	bool some_small = false, some_large = false;
	uint32_t i;

	memset(out, 0, sizeof(*out));
	out->field_count = r->field_count;
	for (i = 0; i < r->field_count; i++) {
		out->field[i] = r->field[i];
		out->field[i].group = recipe_field_items(&r->field[i]) * shard_dtype_bytes(r->field[i].dtype) <= RECIPE_SMALL_BYTES;
		*(out->field[i].group ? &some_small : &some_large) = true;
	}
	for (i = 0; i < r->field_count && !some_large; i++)
		out->field[i].group = 0;
	out->group_count = some_small && some_large ? 2 : 1;
	out->group[0].codec = r->codec;
	return shard_schema_lay_out(out, r->align, err);
}

static int images_schema(const struct recipe *r, struct shard_schema *out, struct shard_error *err)
{
	bool hwc = r->transform.layout == IMAGE_HWC;
	struct shard_field *image, *label;
	uint32_t crop = r->transform.crop, i;

	memset(out, 0, sizeof(*out));
	out->group_count = 2;
	out->field_count = 2;
	out->group[0].codec = r->codec;
	out->group[1].codec = SHARD_RAW;

	image = &out->field[RECIPE_IMAGE];
	strcpy(image->name, "image");
	image->dtype = SHARD_U8;
	image->layout = hwc ? SHARD_HWC : SHARD_CHW;
	image->semantic = SHARD_IMAGE;
	image->group = 0;
	image->ndim = 3;
	image->shape[0] = hwc ? crop : IMAGE_CHANNELS;
	image->shape[1] = crop;
	image->shape[2] = hwc ? IMAGE_CHANNELS : crop;

	label = &out->field[RECIPE_LABEL];
	strcpy(label->name, "label");
	label->dtype = SHARD_I64;
	label->semantic = SHARD_LABEL;
	label->group = 1;
	for (i = 0; i < r->field_count; i++) {
		out->field[out->field_count] = r->field[i];
		out->field[out->field_count++].group = 1;
	}
	return shard_schema_lay_out(out, r->align, err);
}

int recipe_schema(const struct recipe *r, struct shard_schema *out, struct shard_error *err)
{
	return recipe_is_images(r) ? images_schema(r, out, err) : fixed_schema(r, out, err);
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
