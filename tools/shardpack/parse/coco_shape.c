/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_shape.c - the objects of one image, from the `segmentation` of COCO, as one mask
 */
#include "tools/shardpack/parse/parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/shelf.h"
#include "tools/common/text.h"

#define FAR_MAX	    1048576.0 /* rle_add_outline() */
#define NUMBER_MAX  64
#define NUMBERS_MIN 6 /* of an outline: three points */

/* Pixels of all objects of a picture: seconds of painting.  Large pictures may have more. */
#define PAINTED_MAX   (UINT64_C(1) << 30)
#define PAINTED_TIMES 16

__attribute__((format(printf, 2, 3))) static bool bad(struct coco_shapes *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	return false;
}

void coco_shapes_clear(struct coco_shapes *s)
{
	rle_clear(&s->rle);
	s->piece_count = s->count = s->painted = 0;
}

void coco_shapes_free(struct coco_shapes *s)
{
	rle_free(&s->rle);
	free(s->piece_end);
	free(s->shape);
	free(s->xy);
	*s = (struct coco_shapes){.count = 0};
}

static bool end_piece(struct coco_shapes *s)
{
	if (!grow(&s->piece_end, &s->piece_capacity, s->piece_count + 1, sizeof(*s->piece_end)))
		return bad(s, "out of memory for an outline");
	s->piece_end[s->piece_count++] = s->rle.count;
	return true;
}

static uint64_t piece_begin(const struct coco_shapes *s, uint64_t piece)
{
	return piece ? s->piece_end[piece - 1] : 0;
}

static bool read_double(const struct json_range *r, double *out)
{
	char text[NUMBER_MAX];

	if (!r->bytes || r->bytes >= sizeof(text))
		return false;
	memcpy(text, r->text, r->bytes);
	text[r->bytes] = '\0';
	return text_parse_double(text, r->bytes, out);
}

/* ---- outlines ---- */

static bool add_outline(struct coco_shapes *s, struct json_scan *j, uint64_t idx, uint32_t width, uint32_t height)
{
	uint64_t count = 0, runs = s->rle.count;
	struct json_range range;
	enum json_step step;
	bool first = true;

	while ((step = json_scan_element(j, &first)) == JSON_ITEM) {
		if (!grow(&s->xy, &s->xy_capacity, count + 1, sizeof(*s->xy)))
			return bad(s, "out of memory for an outline");
		if (!json_scan_take(j, &range))
			break;
		if (!read_double(&range, &s->xy[count]) || fabs(s->xy[count]) > FAR_MAX)
			return bad(s, "outline %" PRIu64 ": number %" PRIu64 ", %.*s, is no coordinate of a picture",
				   idx, count, (int)(range.bytes < 40 ? range.bytes : 40), range.text);
		count++;
	}
	if (step != JSON_END)
		return bad(s, "outline %" PRIu64 ": %s", idx, j->why);
	if (count < NUMBERS_MIN || count % 2)
		return bad(s, "outline %" PRIu64 " has %" PRIu64 " numbers; must be x and y of three points or more",
			   idx, count);
	return rle_add_outline(&s->rle, s->xy, count / 2, width, height, s->why) &&
	       rle_check(&s->rle, runs, width, height, s->why) && end_piece(s);
}

static bool add_outlines(struct coco_shapes *s, struct json_scan *j, uint32_t width, uint32_t height)
{
	enum json_step step;
	uint64_t idx = 0;
	bool first = true;

	while ((step = json_scan_element(j, &first)) == JSON_ITEM)
		if (!add_outline(s, j, idx++, width, height))
			return false;
	if (step == JSON_END && !idx)
		return bad(s, "has no outline");
	return step == JSON_END || bad(s, "%s", j->why);
}

/* ---- runs ---- */

static bool add_counts(struct coco_shapes *s, const struct json_range *counts)
{
	struct json_range range;
	enum json_step step;
	struct json_scan j;
	bool first = true;
	int64_t run;

	json_scan_text(&j, counts->text, counts->bytes);
	while ((step = json_scan_element(&j, &first)) == JSON_ITEM) {
		if (!json_scan_take(&j, &range))
			break;
		if (!json_range_whole(&range, &run) || run < 0 || run > UINT32_MAX)
			return bad(s, "counts: %.*s is no number of pixels", (int)(range.bytes < 40 ? range.bytes : 40),
				   range.text);
		if (!rle_add(&s->rle, (uint32_t)run))
			return bad(s, "out of memory for its runs");
	}
	return step == JSON_END || bad(s, "counts: %s", j.why);
}

/* In the text each backslash is two, and that is all that needs its escape. */
static bool add_text(struct coco_shapes *s, const struct json_range *counts)
{
	char *text = malloc(counts->bytes);
	size_t bytes = 0;
	bool ok = text && json_range_string(counts, text, &bytes) && rle_add_text(&s->rle, text, bytes, s->why);

	if (!text)
		bad(s, "out of memory for its runs");
	free(text);
	return ok;
}

static bool read_size(struct coco_shapes *s, const struct json_range *size, uint32_t width, uint32_t height)
{
	int64_t value[2] = {-1, -1};
	struct json_range range;
	enum json_step step;
	struct json_scan j;
	bool first = true;
	size_t count = 0;

	json_scan_text(&j, size->text, size->bytes);
	while ((step = json_scan_element(&j, &first)) == JSON_ITEM && json_scan_take(&j, &range))
		if (count++ >= 2 || !json_range_whole(&range, &value[count - 1]))
			return bad(s, "size must be two whole numbers, height and width");
	if (step != JSON_END || count != 2)
		return bad(s, "size must be two whole numbers, height and width");
	return (value[0] == height && value[1] == width) ||
	       bad(s,
		   "its runs are of a picture of %" PRId64 " x %" PRId64 ", and its image has %" PRIu32 " x %" PRIu32,
		   value[1], value[0], width, height);
}

static bool add_runs(struct coco_shapes *s, struct json_scan *j, uint32_t width, uint32_t height)
{
	struct json_range key, range, counts = {.text = NULL}, size = {.text = NULL};
	uint64_t runs = s->rle.count;
	enum json_step step;
	bool first = true;

	while ((step = json_scan_member(j, &first, &key)) == JSON_ITEM) {
		struct json_range *to = json_range_is(&key, "counts") ? &counts
					: json_range_is(&key, "size") ? &size
								      : &range;
		if (to != &range && to->text)
			return bad(s, "its runs have counts or size twice");
		if (!json_scan_take(j, to))
			return bad(s, "%s", j->why);
	}
	if (step != JSON_END)
		return bad(s, "%s", j->why);
	if (!counts.text || !size.text)
		return bad(s, "its runs have no %s", counts.text ? "size" : "counts");
	if (counts.text[0] != '"' && counts.text[0] != '[')
		return bad(s, "counts must be a text or an array");
	return read_size(s, &size, width, height) &&
	       (counts.text[0] == '"' ? add_text(s, &counts) : add_counts(s, &counts)) &&
	       rle_check(&s->rle, runs, width, height, s->why) && end_piece(s);
}

/* ---- all of them ---- */

bool coco_shapes_add(struct coco_shapes *s, const char *text, size_t bytes, uint32_t width, uint32_t height,
		     uint32_t value)
{
	struct coco_shape shape = {.first = s->piece_count, .number = s->count, .value = value};
	struct json_scan j;
	char begins;

	if (!width || !height || (uint64_t)width * height > UINT32_MAX)
		return bad(s, "a picture of %" PRIu32 " x %" PRIu32 " is too large for runs", width, height);
	if (!grow(&s->shape, &s->capacity, s->count + 1, sizeof(*s->shape)))
		return bad(s, "out of memory for an object");
	json_scan_text(&j, text, bytes);
	begins = json_scan_peek(&j);
	if (begins != '[' && begins != '{')
		return bad(s, "must be an array of outlines, or an object with runs");
	if (!(begins == '[' ? add_outlines(s, &j, width, height) : add_runs(s, &j, width, height)))
		return false;
	shape.end = s->piece_count;
	for (uint64_t i = shape.first; i < shape.end; i++)
		shape.area += rle_area(&s->rle, piece_begin(s, i), s->piece_end[i]);
	s->painted += shape.area;
	if (s->painted > PAINTED_MAX && s->painted / PAINTED_TIMES > (uint64_t)width * height)
		return bad(s, "the objects of its image have %" PRIu64 " pixels or more, and all of it has %" PRIu64,
			   s->painted, (uint64_t)width * height);
	s->shape[s->count++] = shape;
	return true;
}

/* The largest first. */
static int compare(const void *a, const void *b)
{
	const struct coco_shape *x = a, *y = b;

	if (x->area != y->area)
		return x->area > y->area ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

void coco_shapes_paint(struct coco_shapes *s, const struct rle_picture *out)
{
	if (s->count)
		qsort(s->shape, s->count, sizeof(*s->shape), compare);
	for (uint64_t k = 0; k < s->count; k++)
		for (uint64_t i = s->shape[k].first; i < s->shape[k].end; i++)
			rle_paint(&s->rle, piece_begin(s, i), s->piece_end[i], s->shape[k].value, out);
}
