/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_formats.c - formats that not every build reads
 */
#include "tools/shardpack/decode/decode_formats.h"

#include <string.h>
#include <strings.h>

#include "tools/shardpack/decode/decode_gif.h"
#include "tools/shardpack/decode/decode_tiff.h"

const struct decode_format_name decode_format_names[] = {
	{DECODE_GIF, "gif", decoder_gif_version, {".gif"}},
	{DECODE_TIFF, "tiff", decoder_tiff_version, {".tif", ".tiff"}},
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
