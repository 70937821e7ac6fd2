/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_mask.c - a mask drawn from the objects that COCO describes
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/shardpack/images/image.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/source_times.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/plan.h"

struct shape_mask {
	const struct plan *plan; /* const after open, and so is the next one */
	const struct stored *stored;
	struct coco_shapes shapes;
	struct scratch text, picture;
};

struct shape_mask *shape_mask_open(const struct plan *plan, const struct stored *stored)
{
	struct shape_mask *m = calloc(1, sizeof(*m));

	if (m) {
		m->plan = plan;
		m->stored = stored;
	}
	return m;
}

void shape_mask_close(struct shape_mask *m)
{
	if (!m)
		return;
	coco_shapes_free(&m->shapes);
	scratch_free(&m->text);
	scratch_free(&m->picture);
	free(m);
}

void shape_mask_shrink(struct shape_mask *m)
{
	if (!m)
		return;
	if (m->picture.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&m->picture);
	if (m->text.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&m->text);
	if (m->shapes.rle.capacity * sizeof(uint32_t) > BUDGET_SMALL_BYTES)
		coco_shapes_free(&m->shapes);
}

static bool read_shapes(struct shape_mask *m, const struct field_part *part, uint32_t width, uint32_t height,
			struct verdict *v)
{
	struct words c = words_of(part->text, part->text_bytes);
	struct field_shape shape;
	bool wrong;

	coco_shapes_clear(&m->shapes);
	while (field_part_next_shape(&c, &shape, &wrong)) {
		struct input_bytes in = {.file = (uint32_t)part->file,
					 .offset = shape.offset,
					 .bytes = shape.bytes,
					 .time_ns = SOURCE_NO_TIME};

		if (!input_bytes_read(&in, -1, m->stored, &m->text, v))
			return false;
		errno = 0;
		if (coco_shapes_add(&m->shapes, (const char *)m->text.data, shape.bytes, width, height, shape.value))
			continue;
		if (errno == ENOMEM) /* of malloc(); a reader of JSON names it as it names faults */
			return verdict_set(v, OUTCOME_STOP, 0, "out of memory for the outlines of its mask");
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED,
				   "segmentation at byte %" PRIu64 " of %.100s: %s", shape.offset,
				   m->plan->file[part->file].path, m->shapes.why);
	}
	return true;
}

bool shape_mask_put(struct shape_mask *m, const struct field_part *part, uint32_t width, uint32_t height,
		    uint32_t sample_bytes, uint32_t orientation, struct mask *to, uint8_t *dst, struct verdict *v)
{
	struct image_size size = {.width = width, .height = height, .scale = 1};
	size_t bytes = (size_t)width * height * sample_bytes;

	if (!read_shapes(m, part, width, height, v))
		return false;
	if (!scratch_reserve(&m->picture, bytes))
		return verdict_set(v, OUTCOME_STOP, 0, "out of memory for a mask of %" PRIu32 " x %" PRIu32, width,
				   height);
	memset(m->picture.data, 0, bytes);
	coco_shapes_paint(&m->shapes, &(struct rle_picture){m->picture.data, width, height, sample_bytes});
	return image_give(mask_sink(to, orientation, dst), &size, m->picture.data, sample_bytes) ||
	       verdict_set(v, OUTCOME_STOP, 0, "out of memory for a mask");
}
