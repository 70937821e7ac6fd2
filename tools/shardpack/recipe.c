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

const char *const recipe_filter_names[] = {
	[RESIZE_BOX] = "box",
	[RESIZE_BILINEAR] = "bilinear",
	[RESIZE_BICUBIC] = "bicubic",
	[RESIZE_LANCZOS] = "lanczos",
	NULL,
};
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

void recipe_write(const struct recipe *r, struct text *out)
{
	text_format(out, "source images\n");
	text_format(out, "resize %" PRIu32 "\n", r->transform.resize_short);
	text_format(out, "crop %" PRIu32 "\n", r->transform.crop);
	text_format(out, "filter %s\n", recipe_filter_names[r->transform.filter]);
	text_format(out, "layout %s\n", recipe_layout_names[r->transform.layout]);
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
	text_format(out, "version %s\n", decoder_jpeg_version());
	text_format(out, "version %s\n", decoder_png_version());
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

size_t recipe_read(struct recipe *r, const char *in, size_t in_bytes, size_t *wrong)
{
	static const char *const sources[] = {"images", NULL};
	struct cursor c = {in, in + in_bytes};
	uint64_t resize = 0, crop = 0, align = 0;
	uint32_t filter = 0, layout = 0, source;
	bool ok;

	memset(r, 0, sizeof(*r));
	ok = take_word(&c, "source", sources, 0, &source) && take_number(&c, "resize", 0, TRANSFORM_SIDE_MAX, &resize) &&
	     take_number(&c, "crop", 1, TRANSFORM_SIDE_MAX, &crop) &&
	     take_word(&c, "filter", recipe_filter_names, 0, &filter) &&
	     take_word(&c, "layout", recipe_layout_names, 0, &layout) &&
	     take_word(&c, "compress", recipe_codec_names, 0, &r->codec) && take_number(&c, "align", 0, 4096, &align) &&
	     take_word(&c, "order", recipe_order_names, 1, &r->order) &&
	     take_number(&c, "seed", 0, UINT64_MAX, &r->seed) &&
	     take_word(&c, "on-error", recipe_on_error_names, 0, &r->on_error) &&
	     take_number(&c, "shard-records", 1, UINT64_C(1) << 40, &r->shard_records);
	*wrong = (size_t)(c.at - in);
	if (!ok || (resize && crop > resize))
		return 0;
	r->transform.resize_short = (uint32_t)resize;
	r->transform.crop = (uint32_t)crop;
	r->transform.filter = (enum resize_filter)filter;
	r->transform.layout = (enum image_layout)layout;
	r->align = (uint32_t)align;
	return (size_t)(c.at - in);
}

int recipe_schema(const struct recipe *r, struct shard_schema *out, struct shard_error *err)
{
	bool hwc = r->transform.layout == IMAGE_HWC;
	struct shard_field *image, *label;
	uint32_t crop = r->transform.crop;

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
