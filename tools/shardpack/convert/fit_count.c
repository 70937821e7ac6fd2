/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_count.c - how images and boxes fit into their records
 */
#include "tools/shardpack/convert/fit_count.h"

#include "tools/shardpack/image/transform_image.h"

void fit_count_add(struct fit_count *to, const struct fit_count *more)
{
	to->images += more->images;
	to->enlarged += more->enlarged;
	to->padded += more->padded;
	to->boxes += more->boxes;
	to->empty_boxes += more->empty_boxes;
	to->narrow_boxes += more->narrow_boxes;
	to->unknown += more->unknown;
	for (uint32_t i = 0; i < DROPPED_COUNT; i++) {
		if (more->dropped[i] && (!to->dropped[i] || more->dropped_first[i] < to->dropped_first[i]))
			to->dropped_first[i] = more->dropped_first[i];
		to->dropped[i] += more->dropped[i];
	}
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
	struct fit_count one = {.images = 0};

	for (uint32_t i = 0; i < DROPPED_COUNT; i++) {
		one.dropped[i] = dropped >> i & 1;
		one.dropped_first[i] = ordinal;
	}
	fit_count_add(to, &one);
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
