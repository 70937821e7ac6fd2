/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xmp.c - the orientation in XMP, by the rule of Pillow
 *
 * The rule is the regular expression tiff:Orientation(="|>)([0-9]) of PIL.Image.Image.getexif().
 */
#include "tools/shardpack/images/images.h"

#include <string.h>

#define NAME	   "tiff:Orientation"
#define NAME_BYTES 16

/* The digit behind the name at `at`, or -1. */
static int digit_at(const uint8_t *at, size_t bytes)
{
	size_t between = bytes > 1 && !memcmp(at, "=\"", 2) ? 2 : bytes && at[0] == '>' ? 1 : bytes;

	return between < bytes && at[between] >= '0' && at[between] <= '9' ? at[between] - '0' : -1;
}

struct xmp xmp_read(const uint8_t *bytes, size_t size)
{
	struct xmp out = {.is_empty = !size};
	const uint8_t *at = bytes;

	while (size && (at = memmem(at, size - (size_t)(at - bytes), NAME, NAME_BYTES))) {
		int digit;

		at += NAME_BYTES;
		digit = digit_at(at, size - (size_t)(at - bytes));
		if (digit < 0)
			continue;
		out.orientation = digit <= 8 ? (uint32_t)digit : 0;
		break;
	}
	return out;
}
