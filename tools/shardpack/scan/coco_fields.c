/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_fields.c - which keys of COCO's annotations become fields
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/request.h"

/* The key that a field comes from, as a plan says it. */
static int settle_field(const struct request *r, uint32_t i)
{
	static const char *const defaults[] = {
		[FIELD_TEXT] = "caption", [FIELD_BOXES] = "bbox", [FIELD_MASK] = "segmentation"};
	static const char *const moving[] = {"bbox", "segmentation", "keypoints"};
	struct field_source *s = &r->recipe->from[i];
	const char *name = r->recipe->field[i].name;
	bool has_default = s->kind < sizeof(defaults) / sizeof(defaults[0]) && defaults[s->kind];
	char key[FIELD_FROM_BYTES_MAX + 1];

	if (s->kind == FIELD_IMAGE || s->kind == FIELD_BYTES)
		return fail(EXIT_USAGE, "--field %s: kind=%s is not in annotations of COCO", name,
			    field_kind_names[s->kind]);
	strcpy(key, has_default && !strcmp(s->from, name) ? defaults[s->kind] : s->from);
	if (s->kind == FIELD_TENSOR && strcmp(key, "image_id"))
		return fail(EXIT_USAGE,
			    "--field %s: an image has any number of annotations, so kind must be ragged; kind=tensor "
			    "is for from=image_id alone",
			    name);
	if ((s->kind == FIELD_MASK && strcmp(key, "segmentation")) || (s->kind == FIELD_BOXES && strcmp(key, "bbox")))
		return fail(EXIT_USAGE, "--field %s: from=%s: of COCO, kind=%s must come from %s", name, key,
			    field_kind_names[s->kind], defaults[s->kind]);
	for (size_t k = 0; k < sizeof(moving) / sizeof(moving[0]) && s->kind == FIELD_RAGGED; k++)
		if (!strcmp(key, moving[k]))
			return fail(EXIT_USAGE,
				    "--field %s: from=%s: numbers do not follow the image through resize and crop; "
				    "boxes and masks do",
				    name, key);
	if (s->unit || (s->boxes != BOXES_XYXY && s->boxes != BOXES_XYWH))
		return fail(EXIT_USAGE,
			    "--field %s: bbox of COCO is format=xywh, in pixels; leave format and scale out", name);
	if (s->map.count)
		return fail(EXIT_USAGE,
			    "--field %s: map= is for masks in files; one of COCO has class + 1, and 0 elsewhere", name);
	if (s->turn == TURN_OWN)
		return fail(EXIT_USAGE, "--field %s: turn=own: COCO has no orientation; must be image or none", name);
	if (s->kind == FIELD_BOXES)
		s->boxes = BOXES_XYWH;
	if (snprintf(s->from, sizeof(s->from), "coco:%s", key) >= (int)sizeof(s->from))
		return fail(EXIT_USAGE, "--field %s: from=%s is too long", name, key);
	return EXIT_DONE;
}

int coco_fields_settle(const struct request *r)
{
	int code = EXIT_DONE;

	for (uint32_t i = 0; code == EXIT_DONE && i < r->recipe->field_count; i++)
		if (field_has_part(&r->recipe->from[i]))
			code = settle_field(r, i);
	return code;
}

int coco_fields_check(const struct request *r, const struct coco_list *l)
{
	const struct recipe *recipe = r->recipe;

	for (uint32_t i = 0; i < recipe->field_count; i++) {
		const struct field_source *s = &recipe->from[i];

		if (!field_has_part(s) || s->kind == FIELD_TENSOR)
			continue;
		if (!(l->lists >> COCO_ANNOTATIONS & 1))
			return fail(EXIT_BAD, "%s: has no annotations, and field %s comes from them", l->where,
				    recipe->field[i].name);
		if (s->kind == FIELD_MASK && l->category_count > field_mask_most(recipe->field[i].dtype))
			return fail(EXIT_BAD,
				    "%s: has %" PRIu64 " categories; field %s holds %" PRIu64 ", say dtype=u16",
				    l->where, l->category_count, recipe->field[i].name,
				    field_mask_most(recipe->field[i].dtype));
	}
	return EXIT_DONE;
}
