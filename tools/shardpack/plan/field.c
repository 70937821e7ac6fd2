/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c - fields of a record of images beside image and label, and their sources
 */
#include "tools/shardpack/plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/shardpack/images/image.h"
#include "tools/shardpack/images/images.h"

const char *const field_kind_names[] = {
	[FIELD_LENGTH] = "",	 [FIELD_TENSOR] = "tensor", [FIELD_RAGGED] = "ragged",
	[FIELD_TEXT] = "text",	 [FIELD_BYTES] = "bytes",   [FIELD_BOXES] = "boxes",
	[FIELD_IMAGE] = "image", [FIELD_MASK] = "mask",	    NULL,
};
const char *const field_turn_names[] = {
	[TURN_UNSAID] = "", [TURN_IMAGE] = "image", [TURN_OWN] = "own", [TURN_NONE] = "none", NULL,
};
const char *const field_boxes_names[] = {
	[BOXES_XYXY] = "xyxy", [BOXES_XYWH] = "xywh", [BOXES_CXCYWH] = "cxcywh", [BOXES_YOLO] = "yolo", NULL,
};
const char *const field_pick_names[] = {
	[PICK_UNSAID] = "", [PICK_FIRST] = "first", [PICK_EACH] = "each", [PICK_ALL] = "all", NULL,
};
const char *const field_scale_names[] = {"pixels", "unit", NULL};

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

void field_set(struct shard_field *f, const struct field_source *s, const struct transform_options *image)
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
