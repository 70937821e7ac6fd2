/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.h - a sink that keeps what it gets
 */
#ifndef TESTS_PACK_KEPT_H
#define TESTS_PACK_KEPT_H

#include <stdlib.h>
#include <string.h>

#include "tools/shardpack/images/images.h"

/* Wants `want` of whatever comes, or as much of it as there is. */
struct kept {
	struct image_window want;
	uint32_t channels; /* IMAGE_CHANNELS, or 1 for a mask */
	uint32_t width, height, row_count;
	uint8_t *pixels; /* NULL until there are some; free() it */
};

#define KEPT_WHOLE ((struct image_window){0, 0, UINT32_MAX, UINT32_MAX})

static inline uint32_t kept_within(uint32_t value, uint32_t limit)
{
	return value < limit ? value : limit;
}

static inline bool kept_begin(void *context, const struct image_size *size, struct image_window *wanted)
{
	struct kept *k = context;
	uint32_t width = image_columns(size), height = image_rows(size);

	k->width = width;
	k->height = height;
	k->want.x = kept_within(k->want.x, width - 1);
	k->want.y = kept_within(k->want.y, height - 1);
	k->want.width = kept_within(k->want.width, width - k->want.x);
	k->want.height = kept_within(k->want.height, height - k->want.y);
	*wanted = k->want;
	k->pixels = malloc(k->channels * (size_t)k->want.width * k->want.height);
	return k->pixels != NULL;
}

static inline void kept_rows(void *context, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	struct kept *k = context;
	size_t row_bytes = k->channels * (size_t)k->want.width;

	for (uint32_t y = 0; y < row_count && k->row_count < k->want.height; y++)
		memcpy(k->pixels + k->row_count++ * row_bytes, pixels + y * stride_bytes, row_bytes);
}

static inline struct image_sink kept_sink(struct kept *k)
{
	return (struct image_sink){.begin = kept_begin, .rows = kept_rows, .context = k};
}

#endif
