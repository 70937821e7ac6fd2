/* SPDX-License-Identifier: Apache-2.0 */
/*
 * icc.c - do the numbers of an image with this colour profile mean what those of sRGB mean?
 *
 * Looks at the primaries alone (ICC.1:2010, 9.2.46).  Curves differ little between profiles of RGB,
 * and are written in too many ways.
 */
#include "tools/shardpack/images/images.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES   128
#define SPACE_AT     16
#define TAG_BYTES    12
#define XYZ_BYTES    20
#define NEAR	     1311 /* of 65536: 0.02 */
#define PRIMARIES    3
#define PRIMARY_AXES 3

static uint32_t read32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* A tag such as "rXYZ", whose value is three numbers; NULL if it is not there. */
static const uint8_t *find_xyz(const uint8_t *profile, size_t bytes, const char *name)
{
	uint32_t count = read32(profile + HEAD_BYTES);

	for (size_t at = HEAD_BYTES + 4; count && bytes - at >= TAG_BYTES; count--, at += TAG_BYTES) {
		uint32_t offset = read32(profile + at + 4);

		if (!memcmp(profile + at, name, 4))
			return offset < bytes && bytes - offset >= XYZ_BYTES ? profile + offset + 8 : NULL;
	}
	return NULL;
}

bool icc_is_like_srgb(const uint8_t *profile, size_t bytes)
{
	/* of sRGB seen under D50, in 1/65536 */
	static const struct {
		const char *name;
		int32_t xyz[PRIMARY_AXES];
	} srgb[PRIMARIES] = {
		{"rXYZ", {28580, 14581, 912}}, {"gXYZ", {25240, 46984, 6363}}, {"bXYZ", {9376, 3971, 46799}}};

	if (bytes < HEAD_BYTES + 4)
		return false;
	if (memcmp(profile + SPACE_AT, "RGB ", 4) != 0)
		return !memcmp(profile + SPACE_AT, "GRAY", 4) || !memcmp(profile + SPACE_AT, "CMYK", 4);
	for (int i = 0; i < PRIMARIES; i++) {
		const uint8_t *xyz = find_xyz(profile, bytes, srgb[i].name);

		for (int k = 0; k < PRIMARY_AXES; k++)
			if (!xyz || llabs((int64_t)(int32_t)read32(xyz + 4 * k) - srgb[i].xyz[k]) > NEAR)
				return false;
	}
	return true;
}
