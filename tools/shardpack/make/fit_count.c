/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_count.c - how images and boxes fit into their records
 */
#include "tools/shardpack/make/make.h"

#include <string.h>

#include "shard.h"
#include "tools/shardpack/images/images.h"

static void add_range(struct fit_field *to, uint32_t least, uint32_t most)
{
	bool first = !fit_count_with(to);

	to->least = first || least < to->least ? least : to->least;
	to->most = first || most > to->most ? most : to->most;
}

static void add_field(struct fit_field *to, const struct fit_field *more)
{
	if (fit_count_with(more))
		add_range(to, more->least, more->most);
	if (more->without && (!to->without || more->first < to->first))
		to->first = more->first;
	to->without += more->without;
	to->records += more->records;
}

static void add_dropped(struct fit_count *to, uint32_t what, uint64_t count, uint64_t first)
{
	if (count && (!to->dropped[what] || first < to->dropped_first[what]))
		to->dropped_first[what] = first;
	to->dropped[what] += count;
}

void fit_count_add(struct fit_count *to, const struct fit_count *more)
{
	to->images += more->images;
	to->enlarged += more->enlarged;
	to->padded += more->padded;
	to->boxes += more->boxes;
	to->empty_boxes += more->empty_boxes;
	to->narrow_boxes += more->narrow_boxes;
	for (uint32_t i = 0; i < SHARD_FIELDS_MAX; i++)
		add_field(&to->field[i], &more->field[i]);
	to->unknown += more->unknown;
	for (uint32_t i = 0; i < DROPPED_COUNT; i++)
		add_dropped(to, i, more->dropped[i], more->dropped_first[i]);
}

void fit_count_image(struct fit_count *to, const struct transform_options *opt, uint32_t width, uint32_t height)
{
	struct transform_geometry g = transform_geometry(opt, width, height);

	to->images++;
	to->enlarged += g.width > width || g.height > height;
	to->padded += opt->fit != FIT_AREA && (g.width < opt->crop || g.height < opt->crop);
}

void fit_count_dropped(struct fit_count *to, uint32_t dropped, uint64_t ordinal)
{
	for (uint32_t i = 0; i < DROPPED_COUNT; i++)
		if (dropped >> i & 1)
			add_dropped(to, i, 1, ordinal);
}

void fit_count_boxes(struct fit_count *to, const float *boxes, uint64_t count)
{
	to->boxes += count;
	for (; count; count--, boxes += 4) {
		float width = boxes[2] - boxes[0], height = boxes[3] - boxes[1];

		if (!(width > 0 && height > 0))
			to->empty_boxes++;
		else
			to->narrow_boxes += width < 1 || height < 1;
	}
}

void fit_count_without(struct fit_field *to, uint64_t input_idx)
{
	add_field(to, &(struct fit_field){.records = 1, .without = 1, .first = input_idx});
}

void fit_count_length(struct fit_field *to, uint32_t length)
{
	add_field(to, &(struct fit_field){.records = 1, .least = length, .most = length});
}

void fit_count_mask(struct fit_field *to, const struct shard_field *f, const uint8_t *pixels)
{
	size_t width = shard_dtype_bytes(f->dtype);
	struct fit_field one = {.records = 1, .least = UINT32_MAX};

	for (uint64_t at = 0; at < f->bytes; at += width) {
		uint32_t value = 0;

		memcpy(&value, pixels + at, width); /* little-endian, as the format */
		one.least = value < one.least ? value : one.least;
		one.most = value > one.most ? value : one.most;
	}
	add_field(to, &one);
}

uint64_t fit_count_with(const struct fit_field *f)
{
	return f->records - f->without;
}
