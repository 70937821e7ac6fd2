/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.c - everything that, with the source, decides the bytes of a dataset
 *
 * The text is canonical: one recipe has one form, and only that form is read back, by
 * recipe_read.c.
 */
#include "tools/shardpack/plan/plan.h"

#include <inttypes.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/shardpack/images/image.h"
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
	text_format(out, "field %s %s %s %s %s ", f->name, shard_dtype_name(f->dtype), shard_kind_name(f->kind),
		    shard_layout_name(f->layout), shard_semantic_name(f->semantic));
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
	text_format(out, "bytes-version %d\n", SHARD_BYTES_VERSION);
	for (const struct image_format *f = image_formats; f->name && recipe_is_images(r); f++)
		if (f->library && (!f->plan_name || r->formats & image_format_bit(f)))
			text_format(out, "version %s\n", f->version ? f->version() : f->plan_name);
	if (r->codec == SHARD_LZ4)
		write_linked_version(out, "lz4");
}

bool recipe_copy(const struct recipe *r, struct recipe *out)
{
	bool ok = true;

	*out = *r;
	for (uint32_t i = 0; i < r->field_count; i++)
		ok = mask_map_copy(&r->from[i].map, &out->from[i].map) && ok;
	return ok;
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

size_t recipe_column_bytes(const struct recipe *r)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < r->field_count; i++)
		bytes += r->from[i].column ? shard_dtype_bytes(r->field[i].dtype) : 0;
	return bytes;
}

static int fixed_schema(const struct recipe *r, struct shard_schema *out, struct shard_error *err)
{
	memset(out, 0, sizeof(*out));
	out->field_count = r->field_count;
	for (uint32_t i = 0; i < r->field_count; i++) {
		out->field[i] = r->field[i];
		out->field[i].group = SHARD_GROUP_BY_SIZE;
	}
	shard_schema_group(out);
	out->group[0].codec = r->codec;
	return shard_schema_lay_out(out, r->align, err);
}

bool recipe_has_label(const struct recipe *r)
{
	return recipe_is_images(r) && r->label != LABEL_NONE;
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

static int images_schema(const struct recipe *r, struct shard_schema *out, struct shard_error *err)
{
	struct shard_field *image;
	memset(out, 0, sizeof(*out));
	out->field_count = recipe_first(r);
	out->group[0].codec = r->codec;
	out->group[1].codec = SHARD_RAW;

	image = &out->field[RECIPE_IMAGE];
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
	for (uint32_t i = 0; i < r->field_count; i++) {
		struct shard_field *f = &out->field[out->field_count++];

		*f = r->field[i];
		f->group = SHARD_GROUP_BY_SIZE;
		if (f->kind != SHARD_TENSOR)
			f->length_field += recipe_first(r);
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
