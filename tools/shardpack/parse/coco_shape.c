/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_shape.c - the `segmentation` of COCO, painted as one mask for each image
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/shelf.h"
#include "tools/common/text.h"
#include "tools/shardpack/parse/parse.h"

/* ---- the shape of an object: runs of pixels, or an outline ---- */

/*
 * An outline is drawn five times as large, edge by edge.  Where it passes from one column to the
 * next, in the middle of a column of the picture, it crosses that column: there the runs change.
 */

#define SCALE	      5
#define STEPS_MAX     (UINT64_C(1) << 28) /* of all outlines of a picture, so that made-up ones end */
#define TEXT_BITS_MAX 35		  /* of a number in the text; runs and differences have 33 */

#define RLE_WHY_BYTES 160
#define RLE_SIDE_MAX  UINT32_C(65535) /* so that a picture has less than 2^32 pixels */

static bool bad(char *why, const char *what)
{
	snprintf(why, RLE_WHY_BYTES, "%s", what);
	return false;
}

/* A run more.  False if memory ran out. */
static bool rle_add(struct rle *r, uint32_t pixels)
{
	if (!grow_if_room(&r->run, &r->capacity, r->count + 1, sizeof(*r->run)))
		return false;
	r->run[r->count++] = pixels;
	return true;
}

/* ---- text ---- */

/* Five bits a character, the lowest first; the last one has the sign.  False if it is none. */
static bool read_number(const char **at, const char *end, int64_t *out)
{
	unsigned shift = 0;
	int c;

	*out = 0;
	do {
		if (*at == end || shift >= TEXT_BITS_MAX || **at < '0' || **at > 'o')
			return false;
		c = *(*at)++ - '0';
		*out |= (int64_t)(c & 0x1f) << shift;
		shift += 5;
	} while (c & 0x20);
	if (c & 0x10)
		*out -= INT64_C(1) << shift;
	return true;
}

/*
 * The compressed text of COCO, behind what is there.  False, and `why` of RLE_WHY_BYTES, if it is
 * none.
 */
static bool rle_add_text(struct rle *r, const char *text, size_t bytes, char *why)
{
	const char *at = text, *end = text + bytes;
	uint64_t first = r->count;
	int64_t number;

	while (at < end) {
		if (!read_number(&at, end, &number))
			return bad(why, "its counts are not a text of COCO's compressed runs");
		if (r->count - first > 2) /* from the fourth run on, the difference to the one before the last */
			number += r->run[r->count - 2];
		if (number < 0 || number > UINT32_MAX)
			return bad(why, "its counts have a run that is below 0, or longer than any picture");
		if (!rle_add(r, (uint32_t)number))
			return bad(why, "out of memory for its runs");
	}
	return true;
}

/* Do the runs from number `first` on cover a picture of that size?  The same of false. */
static bool rle_check(const struct rle *r, uint64_t first, uint32_t width, uint32_t height, char *why)
{
	uint64_t sum = 0, pixels = (uint64_t)width * height;

	for (uint64_t i = first; i < r->count && sum <= pixels; i++)
		sum += r->run[i];
	if (sum == pixels)
		return true;
	snprintf(why, RLE_WHY_BYTES, "its runs have %s%" PRIu64 " pixels, and %" PRIu32 " x %" PRIu32 " are %" PRIu64,
		 sum > pixels ? "more than " : "", sum > pixels ? pixels : sum, width, height, pixels);
	return false;
}

/* ---- outlines ---- */

struct tracing {
	struct rle *r;
	uint32_t width, height;
	bool began;
	int u, v; /* the point before, five times as large */
};

/*
 * The next point.  A step from one column to the next, or back, crosses a column of the picture if
 * it is in the middle of the five that stand for it.
 */
static bool trace(struct tracing *t, int u, int v)
{
	int was_u = t->u, was_v = t->v;
	double x, y;

	t->u = u;
	t->v = v;
	if (!t->began || u == was_u) {
		t->began = true;
		return true;
	}
	x = ((double)(u < was_u ? u : u - 1) + 0.5) / SCALE - 0.5;
	if (floor(x) != x || x < 0 || x > t->width - 1.0)
		return true;
	y = ((double)(v < was_v ? v : was_v) + 0.5) / SCALE - 0.5;
	y = ceil(y < 0 ? 0 : y > t->height ? t->height : y);
	return rle_add(t->r, (uint32_t)x * t->height + (uint32_t)y);
}

/* All points of an edge.  Both directions of a line have the same points. */
static bool trace_edge(struct tracing *t, int xs, int ys, int xe, int ye)
{
	int dx = abs(xe - xs), dy = abs(ye - ys), steps = dx >= dy ? dx : dy;
	bool flip = dx >= dy ? xs > xe : ys > ye;
	int x0 = flip ? xe : xs, y0 = flip ? ye : ys, x1 = flip ? xs : xe, y1 = flip ? ys : ye;
	double slope = !steps ? 0 : dx >= dy ? (double)(y1 - y0) / dx : (double)(x1 - x0) / dy;

	for (int d = 0; d <= steps; d++) {
		int step = flip ? steps - d : d;
		int u = dx >= dy ? step + x0 : (int)(x0 + slope * step + 0.5);
		int v = dx >= dy ? (int)(y0 + slope * step + 0.5) : step + y0;

		if (!trace(t, u, v))
			return false;
	}
	return true;
}

static int compare_runs(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* From the places where runs change, and the end, to runs; two changes at one place are none. */
static void runs_of_changes(struct rle *r, uint64_t first)
{
	uint32_t *run = r->run + first, was = 0;
	uint64_t count = r->count - first, to = 0;

	qsort(run, count, sizeof(*run), compare_runs);
	for (uint64_t i = 0; i < count; i++) {
		uint32_t at = run[i];

		run[i] -= was;
		was = at;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (run[i] || !i)
			run[to++] = run[i];
		else if (++i < count)
			run[to - 1] += run[i];
	}
	r->count = first + to;
}

static int large(double at)
{
	return (int)(SCALE * at + 0.5);
}

/*
 * The outline of `points` points, x and y each, in a picture of that size, as runs behind those
 * that are there.  At least three points, none farther away than 2^20.  False, and `why`, if memory
 * ran out, or all outlines of the picture are too long.
 */
static bool rle_add_outline(struct rle *r, const double *xy, size_t points, uint32_t width, uint32_t height, char *why)
{
	struct tracing t = {.r = r, .width = width, .height = height};
	uint64_t first = r->count;
	bool ok = true;

	for (size_t i = 0; ok && i < points; i++) {
		const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % points);
		int xs = large(a[0]), ys = large(a[1]), xe = large(b[0]), ye = large(b[1]);

		r->steps += (uint64_t)abs(xe - xs) + (uint64_t)abs(ye - ys) + 1;
		if (r->steps > STEPS_MAX)
			return bad(why, "the outlines of its image are too long");
		ok = trace_edge(&t, xs, ys, xe, ye);
	}
	if (!ok || !rle_add(r, width * height))
		return bad(why, "out of memory for its outline");
	runs_of_changes(r, first);
	return true;
}

/* ---- pixels ---- */

/* Set these pixels to a value. */
static void rle_paint(const struct rle *r, uint64_t first, uint64_t end, uint32_t value, const struct rle_picture *out)
{
	uint64_t at = 0;
	uint32_t x, y;

	for (uint64_t i = first; i < end; at += r->run[i++]) {
		if ((i - first) % 2 == 0 || !r->run[i])
			continue;
		x = (uint32_t)(at / out->height);
		y = (uint32_t)(at % out->height);
		for (uint32_t n = r->run[i]; n; n--) {
			uint64_t idx = (uint64_t)y * out->width + x;

			integer_store((uint8_t *)out->data + idx * out->sample_bytes, out->sample_bytes, value);
			if (++y == out->height) {
				y = 0;
				x++;
			}
		}
	}
}

/* ---- the objects of one image ---- */

#define FAR_MAX	    1048576.0 /* rle_add_outline() */
#define NUMBER_MAX  64
#define NUMBERS_MIN 6 /* of an outline: three points */

/* Pixels of all objects of a picture: seconds of painting.  Large pictures may have more. */
#define PAINTED_MAX   (UINT64_C(1) << 30)
#define PAINTED_TIMES 16

__attribute__((format(printf, 2, 3))) static bool bad_shape(struct coco_shapes *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	return false;
}

void coco_shapes_clear(struct coco_shapes *s)
{
	s->rle.count = s->rle.steps = 0;
	s->piece_count = s->count = s->painted = 0;
}

void coco_shapes_free(struct coco_shapes *s)
{
	free(s->rle.run);
	free(s->piece_end);
	free(s->shape);
	free(s->xy);
	*s = (struct coco_shapes){.count = 0};
}

static bool end_piece(struct coco_shapes *s)
{
	if (!grow_if_room(&s->piece_end, &s->piece_capacity, s->piece_count + 1, sizeof(*s->piece_end)))
		return bad_shape(s, "out of memory for an outline");
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
		if (!grow_if_room(&s->xy, &s->xy_capacity, count + 1, sizeof(*s->xy)))
			return bad_shape(s, "out of memory for an outline");
		if (!json_scan_take(j, &range))
			break;
		if (!read_double(&range, &s->xy[count]) || fabs(s->xy[count]) > FAR_MAX)
			return bad_shape(
				s, "outline %" PRIu64 ": number %" PRIu64 ", %.*s, is not a coordinate of a picture",
				idx, count, (int)(range.bytes < 40 ? range.bytes : 40), range.text);
		count++;
	}
	if (step != JSON_END)
		return bad_shape(s, "outline %" PRIu64 ": %s", idx, j->why);
	if (count < NUMBERS_MIN || count % 2)
		return bad_shape(s,
				 "outline %" PRIu64 " has %" PRIu64 " numbers; must be x and y of three points or more",
				 idx, count);
	return rle_add_outline(&s->rle, s->xy, count / 2, width, height, s->why) &&
	       rle_check(&s->rle, runs, width, height, s->why) && end_piece(s);
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
			return bad_shape(s, "counts: %.*s is not a number of pixels",
					 (int)(range.bytes < 40 ? range.bytes : 40), range.text);
		if (!rle_add(&s->rle, (uint32_t)run))
			return bad_shape(s, "out of memory for its runs");
	}
	return step == JSON_END || bad_shape(s, "counts: %s", j.why);
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
			return bad_shape(s, "size must be two whole numbers, height and width");
	if (step != JSON_END || count != 2)
		return bad_shape(s, "size must be two whole numbers, height and width");
	return (value[0] == height && value[1] == width) ||
	       bad_shape(s,
			 "its runs are of a picture of %" PRId64 " x %" PRId64 ", and its image has %" PRIu32
			 " x %" PRIu32,
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
			return bad_shape(s, "its runs have counts or size twice");
		if (!json_scan_take(j, to))
			return bad_shape(s, "%s", j->why);
	}
	if (step != JSON_END)
		return bad_shape(s, "%s", j->why);
	if (!counts.text || !size.text)
		return bad_shape(s, "its runs have no %s", counts.text ? "size" : "counts");
	if (counts.text[0] != '"' && counts.text[0] != '[')
		return bad_shape(s, "counts must be a text or an array");
	if (!read_size(s, &size, width, height))
		return false;
	if (counts.text[0] == '"') { /* each backslash is two there, and that is all that needs its escape */
		char *text = malloc(counts.bytes);
		size_t bytes = 0;
		bool ok =
			text && json_range_string(&counts, text, &bytes) && rle_add_text(&s->rle, text, bytes, s->why);

		if (!text)
			bad_shape(s, "out of memory for its runs");
		free(text);
		if (!ok)
			return false;
	} else if (!add_counts(s, &counts)) {
		return false;
	}
	return rle_check(&s->rle, runs, width, height, s->why) && end_piece(s);
}

/* ---- all of them ---- */

bool coco_shapes_add(struct coco_shapes *s, const char *text, size_t bytes, uint32_t width, uint32_t height,
		     uint32_t value)
{
	struct coco_shape shape = {.first = s->piece_count, .number = s->count, .value = value};
	enum json_step step = JSON_END;
	uint64_t outlines = 0;
	bool first = true;
	struct json_scan j;
	char begins;

	if (!width || !height || (uint64_t)width * height > UINT32_MAX)
		return bad_shape(s, "a picture of %" PRIu32 " x %" PRIu32 " is too large for runs", width, height);
	if (!grow_if_room(&s->shape, &s->capacity, s->count + 1, sizeof(*s->shape)))
		return bad_shape(s, "out of memory for an object");
	json_scan_text(&j, text, bytes);
	begins = json_scan_peek(&j);
	if (begins != '[' && begins != '{')
		return bad_shape(s, "must be an array of outlines, or an object with runs");
	while (begins == '[' && (step = json_scan_element(&j, &first)) == JSON_ITEM)
		if (!add_outline(s, &j, outlines++, width, height))
			return false;
	if (begins == '[' && step != JSON_END)
		return bad_shape(s, "%s", j.why);
	if (begins == '[' && !outlines)
		return bad_shape(s, "has no outline");
	if (begins == '{' && !add_runs(s, &j, width, height))
		return false;
	shape.end = s->piece_count;
	for (uint64_t piece = shape.first; piece < shape.end; piece++)
		for (uint64_t i = piece_begin(s, piece) + 1; i < s->piece_end[piece]; i += 2)
			shape.area += s->rle.run[i]; /* the runs inside of the object */
	s->painted += shape.area;
	if (s->painted > PAINTED_MAX && s->painted / PAINTED_TIMES > (uint64_t)width * height)
		return bad_shape(s,
				 "the objects of its image have %" PRIu64 " pixels or more, and all of it has %" PRIu64,
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
