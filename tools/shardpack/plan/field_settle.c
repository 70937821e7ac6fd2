/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_settle.c - the field that follows from what was asked for
 */
#include "shard_inspect.h"
#include "tools/shardpack/plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/shardpack/images/images.h"

static bool is_given(const struct field_option *o, enum field_key key)
{
	return o->given >> key & 1;
}

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
		field_channels_text(image->normal.mean, mean);
		field_channels_text(image->normal.std, std);
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
				 shard_dtype_name((uint32_t)o->value[FIELD_KEY_DTYPE]));
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
			 shard_dtype_name(f->dtype));
		return false;
	}
	field_set(f, s, image);
	return settle_map(o, s, why, why_bytes);
}
