/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_formats.h - formats that not every build reads
 *
 * A plan names those that its inputs have by their names, and the versions of their libraries.  A
 * file of another name that holds one is read as well, since its content decides; then the plan
 * does not know it, and a build without that library calls the file bad input.
 */
#ifndef SHARD_DECODE_DECODE_FORMATS_H
#define SHARD_DECODE_DECODE_FORMATS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/shardpack/format/exif.h"

enum decode_format { DECODE_GIF = 1, DECODE_TIFF = 2, DECODE_AVIF = 4 }; /* bits */

/* One of them. */
struct decode_format_name {
	uint32_t bit;
	const char *name;	      /* in a plan */
	const char *(*version)(void); /* of its library; NULL in a build without it */
	const char *const endings[3]; /* of names of files, with the dot, then NULL */
};

extern const struct decode_format_name decode_format_names[]; /* one with bit 0 ends them */

/* The bit of the format that a name ends as, upper or lower case; 0 if it is another one. */
uint32_t decode_format_of(const char *name, size_t bytes);

/* exif_stated() for these as well. */
bool decode_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated);

#endif
