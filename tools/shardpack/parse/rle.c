/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle.c - the shape of an object as COCO has it: runs of pixels, or an outline
 *
 * An outline is drawn five times as large, edge by edge.  Where it passes from one column to the
 * next, in the middle of a column of the picture, it crosses that column: there the runs change.
 */
#include "tools/shardpack/parse/parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/common/shelf.h"
#include "tools/shardpack/parse/integer.h"

#define SCALE	      5
#define STEPS_MAX     (UINT64_C(1) << 28) /* of all outlines of a picture, so that made-up ones end */
#define TEXT_BITS_MAX 35		  /* of a number in the text; runs and differences have 33 */

static bool bad(char *why, const char *what)
{
	snprintf(why, RLE_WHY_BYTES, "%s", what);
	return false;
}

void rle_clear(struct rle *r)
{
	r->count = r->steps = 0;
}

void rle_free(struct rle *r)
{
	free(r->run);
	*r = (struct rle){0};
}

bool rle_add(struct rle *r, uint32_t pixels)
{
	if (!grow(&r->run, &r->capacity, r->count + 1, sizeof(*r->run)))
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

bool rle_add_text(struct rle *r, const char *text, size_t bytes, char *why)
{
	const char *at = text, *end = text + bytes;
	uint64_t first = r->count;
	int64_t number;

	while (at < end) {
		if (!read_number(&at, end, &number))
			return bad(why, "its counts are no text of COCO's compressed runs");
		if (r->count - first > 2) /* from the fourth run on, the difference to the one before the last */
			number += r->run[r->count - 2];
		if (number < 0 || number > UINT32_MAX)
			return bad(why, "its counts have a run that is below 0, or longer than any picture");
		if (!rle_add(r, (uint32_t)number))
			return bad(why, "out of memory for its runs");
	}
	return true;
}

bool rle_check(const struct rle *r, uint64_t first, uint32_t width, uint32_t height, char *why)
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

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* From the places where runs change, and the end, to runs; two changes at one place are none. */
static void settle(struct rle *r, uint64_t first)
{
	uint32_t *run = r->run + first, was = 0;
	uint64_t count = r->count - first, to = 0;

	qsort(run, count, sizeof(*run), compare);
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

bool rle_add_outline(struct rle *r, const double *xy, size_t points, uint32_t width, uint32_t height, char *why)
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
	settle(r, first);
	return true;
}

/* ---- pixels ---- */

uint64_t rle_area(const struct rle *r, uint64_t first, uint64_t end)
{
	uint64_t area = 0;

	for (uint64_t i = first + 1; i < end; i += 2)
		area += r->run[i];
	return area;
}

void rle_paint(const struct rle *r, uint64_t first, uint64_t end, uint32_t value, const struct rle_picture *out)
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
