/* SPDX-License-Identifier: Apache-2.0 */
/*
 * icc.h - do the numbers of an image with this colour profile mean what those of sRGB mean?
 */
#ifndef SHARD_FORMAT_ICC_H
#define SHARD_FORMAT_ICC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * True of a profile of RGB whose three primaries are those of sRGB, to 1 part in 50.  True as well
 * of one of gray or CMYK: these are not about RGB.  False if its primaries are others, such as
 * those of Adobe RGB or Display P3, or are not in these bytes, which may be the first ones of a
 * longer profile.
 */
bool icc_is_like_srgb(const uint8_t *profile, size_t bytes);

#endif
