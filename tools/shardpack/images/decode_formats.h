/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_formats.h - formats that not every build reads
 *
 * A plan names those that its inputs have by their names, and the versions of their libraries.  A
 * file of another name that holds one is read as well, since its content decides.  The plan does
 * not know it; so the text below lies beside the plan, and a build that has another library, or
 * none, stops at such a file.
 */
#ifndef SHARD_DECODE_DECODE_FORMATS_H
#define SHARD_DECODE_DECODE_FORMATS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/common/text.h"
#include "tools/shardpack/images/exif.h"

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

/* The bit of the format that a file begins as; 0 if it is another one. */
uint32_t decode_format_in(const uint8_t *bytes, size_t size);

/* Which library this build has for each of them: lines such as "gif giflib 5.2.1" and "avif none". */
void decode_formats_write(struct text *out);

/*
 * Does such a text, of another process, have the same line for a format?  If not, its words and ours
 * are in `there` and `here`.
 */
#define DECODE_FORMAT_CHARS 100
bool decode_format_is_same(uint32_t bit, const char *text, char there[DECODE_FORMAT_CHARS],
			   char here[DECODE_FORMAT_CHARS]);

/* exif_stated() for these as well. */
bool decode_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated);

#endif
