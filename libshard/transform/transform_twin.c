/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_twin.c - transforming one row on the CPU: the definition of what the kernels do
 *
 * A line of the output is made as interleaved samples, cropped or resized, then mirrored, looked up
 * and laid out.  Resizing goes as Pillow does it: across first or down first, each pass with
 * weights of 22 bits in integers, rounded to 8 bits.
 */
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/transform/transform.h"

#define HALF (1 << (TRANSFORM_FRACTION_BITS - 1))

/* Parts of the scratch. */
struct scratch {
	struct transform_taps *across; /* [width] */
	int32_t *weights;	       /* [width][across_most] */
	int32_t *down;		       /* [down_most] */
	uint8_t *lines;		       /* [in_height][width x channels] resized across; of a crop, one line */
	uint8_t *line;		       /* [width x channels] */
	uint8_t *tall;		       /* [in_width x channels] resized down */
	uint32_t across_most, down_most;
};

/* Lays the parts out from `base` on, which may be NULL to ask how long they are. */
static uint64_t lay_out(const struct transform_plan *p, uint8_t *base, struct scratch *s)
{
	uint64_t line_bytes = (uint64_t)p->width * p->channels, at = 0;

	s->across_most = transform_taps_most(p->in_width, p->width);
	s->down_most = transform_taps_most(p->in_height, p->height);
	s->across = (struct transform_taps *)(base + at);
	at += align_up(p->width * sizeof(*s->across), 16);
	s->weights = (int32_t *)(base + at);
	at += align_up((uint64_t)p->width * s->across_most * sizeof(*s->weights), 16);
	s->down = (int32_t *)(base + at);
	at += align_up(s->down_most * sizeof(*s->down), 16);
	s->line = base + at;
	at += align_up(line_bytes, 16);
	s->tall = base + at;
	at += align_up((uint64_t)p->in_width * p->channels, 16);
	s->lines = base + at;
	return at + (p->crop == SHARD_CROP_RESIZED ? p->in_height * line_bytes : 0);
}

uint64_t transform_twin_bytes(const struct transform_plan *p)
{
	static uint8_t nowhere[1]; /* no arithmetic on NULL */
	struct scratch s;

	return lay_out(p, nowhere, &s);
}

static uint8_t clip(int32_t sum)
{
	sum >>= TRANSFORM_FRACTION_BITS;
	return sum < 0 ? 0 : sum > 255 ? 255 : (uint8_t)sum;
}

/* Where sample (y, x, c) of the image is. */
static const uint8_t *sample(const struct transform_plan *p, const struct transform_image *image, uint32_t y,
			     uint32_t x, uint32_t c)
{
	if (p->in_is_planar)
		return image->at + ((size_t)c * image->height + y) * image->width + x;
	return image->at + ((size_t)y * image->width + x) * p->channels + c;
}

static uint32_t pixel_step(const struct transform_plan *p)
{
	return p->in_is_planar ? 1 : p->channels;
}

/* A line of samples, `step` apart from pixel to pixel; `channel_step` from plane to plane. */
static void line_across(const struct transform_plan *p, const struct scratch *s, const uint8_t *line, size_t step,
			size_t channel_step, uint8_t *to)
{
	for (uint32_t x = 0; x < p->width; x++)
		for (uint32_t c = 0; c < p->channels; c++) {
			const uint8_t *from = line + s->across[x].first * step + c * channel_step;
			const int32_t *weight = s->weights + (size_t)x * s->across_most;
			int32_t sum = HALF;

			for (uint32_t t = 0; t < s->across[x].count; t++)
				sum += from[t * step] * weight[t];
			*to++ = clip(sum);
		}
}

static void resize_down(const struct transform_plan *p, const struct shard_transform_row *row, uint32_t y,
			const struct scratch *s)
{
	struct transform_taps taps = transform_taps_fill(row->height, p->height, y, s->down, s->down_most);
	size_t line_bytes = (size_t)p->width * p->channels;

	for (size_t i = 0; i < line_bytes; i++) {
		const uint8_t *from = s->lines + taps.first * line_bytes + i;
		int32_t sum = HALF;

		for (uint32_t t = 0; t < taps.count; t++)
			sum += from[t * line_bytes] * s->down[t];
		s->line[i] = clip(sum);
	}
}

/* Line y of the output from the image itself: down, and then across. */
static void resize_down_first(const struct transform_plan *p, const struct shard_transform_row *row,
			      const struct transform_image *image, uint32_t y, const struct scratch *s)
{
	struct transform_taps taps = transform_taps_fill(row->height, p->height, y, s->down, s->down_most);
	size_t line_step = (size_t)image->width * pixel_step(p);

	for (uint32_t x = 0; x < row->width; x++)
		for (uint32_t c = 0; c < p->channels; c++) {
			const uint8_t *from = sample(p, image, row->y + taps.first, row->x + x, c);
			int32_t sum = HALF;

			for (uint32_t t = 0; t < taps.count; t++)
				sum += from[t * line_step] * s->down[t];
			s->tall[(size_t)x * p->channels + c] = clip(sum);
		}
	line_across(p, s, s->tall, p->channels, 1, s->line);
}

static void crop(const struct transform_plan *p, const struct shard_transform_row *row,
		 const struct transform_image *image, uint32_t y, uint8_t *line)
{
	if (!p->in_is_planar) {
		memcpy(line, sample(p, image, row->y + y, row->x, 0), (size_t)p->width * p->channels);
		return;
	}
	for (uint32_t x = 0; x < p->width; x++)
		for (uint32_t c = 0; c < p->channels; c++)
			line[(size_t)x * p->channels + c] = *sample(p, image, row->y + y, row->x + x, c);
}

/* A line of samples, mirrored if need be, to its places in the output. */
static void put_line(const struct transform_plan *p, const uint8_t *line, bool flip, uint32_t y, uint8_t *out)
{
	size_t plane = (size_t)p->height * p->width, at = (size_t)y * p->width;

	for (uint32_t x = 0; x < p->width; x++) {
		const uint8_t *pixel = line + (size_t)(flip ? p->width - 1 - x : x) * p->channels;

		for (uint32_t c = 0; c < p->channels; c++) {
			size_t to = p->is_planar ? c * plane + at + x : (at + x) * p->channels + c;
			uint32_t bits = p->bits[c][pixel[c]];

			if (p->element_bytes == 4)
				store32(out + to * 4, bits);
			else if (p->element_bytes == 2)
				store16(out + to * 2, (uint16_t)bits);
			else
				out[to] = (uint8_t)bits;
		}
	}
}

void transform_twin(const struct transform_plan *p, const struct shard_transform_row *row,
		    const struct transform_image *image, void *out, void *scratch)
{
	bool resizes = p->crop == SHARD_CROP_RESIZED, down_first = resizes && transform_is_down_first(p, row);
	struct scratch s;

	lay_out(p, scratch, &s);
	for (uint32_t x = 0; resizes && x < p->width; x++)
		s.across[x] = transform_taps_fill(row->width, p->width, x, s.weights + (size_t)x * s.across_most,
						  s.across_most);
	for (uint32_t y = 0; resizes && !down_first && y < row->height; y++)
		line_across(p, &s, sample(p, image, row->y + y, row->x, 0), pixel_step(p),
			    p->in_is_planar ? (size_t)image->height * image->width : 1,
			    s.lines + (size_t)y * p->width * p->channels);
	for (uint32_t y = 0; y < p->height; y++) {
		if (down_first)
			resize_down_first(p, row, image, y, &s);
		else if (resizes)
			resize_down(p, row, y, &s);
		else
			crop(p, row, image, y, s.line);
		put_line(p, s.line, row->flip, y, out);
	}
}
