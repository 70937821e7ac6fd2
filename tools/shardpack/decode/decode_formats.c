/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_formats.c - formats that not every build reads
 */
#include "tools/shardpack/decode/decode_formats.h"

#include <string.h>
#include <strings.h>

#include "tools/shardpack/decode/decode_optional.h"
#include "tools/shardpack/format/heif.h"

const struct decode_format_name decode_format_names[] = {
	{DECODE_GIF, "gif", decoder_gif_version, {".gif"}},
	{DECODE_TIFF, "tiff", decoder_tiff_version, {".tif", ".tiff"}},
	{DECODE_AVIF, "avif", decoder_avif_version, {".avif"}},
	{0, NULL, NULL, {NULL}},
};

uint32_t decode_format_of(const char *name, size_t bytes)
{
	for (const struct decode_format_name *f = decode_format_names; f->bit; f++)
		for (const char *const *e = f->endings; *e; e++) {
			size_t n = strlen(*e);

			if (bytes >= n && !strncasecmp(name + bytes - n, *e, n))
				return f->bit;
		}
	return 0;
}

bool decode_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	return heif_is_avif(bytes, size) ? avif_stated(bytes, size, rules, stated)
					 : exif_stated(bytes, size, rules, stated);
}
