/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - from a name back to its number; the other direction is public, but for pixels
 */
#ifndef SHARD_DISK_NAMES_H
#define SHARD_DISK_NAMES_H

#include "shard.h"

/* 1 and the number for which name_of() gives exactly `text`, or 0. */
int name_find(const char *(*name_of)(uint32_t), const char *text, size_t bytes, uint32_t *out);

/* Of an enum shard_pixels, as recipes and tokens write it; NULL for SHARD_PIXELS_RECIPE. */
const char *pixels_name(uint32_t pixels);

#endif
