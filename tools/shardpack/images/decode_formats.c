/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_formats.c - formats that not every build reads
 */
#include "tools/shardpack/images/images.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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

uint32_t decode_format_in(const uint8_t *bytes, size_t size)
{
	if (size < 4)
		return 0;
	if (!memcmp(bytes, "GIF8", 4))
		return DECODE_GIF;
	if (!memcmp(bytes, "II*\0", 4) || !memcmp(bytes, "MM\0*", 4))
		return DECODE_TIFF;
	return heif_is_avif(bytes, size) ? DECODE_AVIF : 0;
}

static const char *library_of(const struct decode_format_name *f)
{
	const char *version = f->version();

	return version ? version : "none";
}

void decode_formats_write(struct text *out)
{
	for (const struct decode_format_name *f = decode_format_names; f->bit; f++)
		text_format(out, "%s %s\n", f->name, library_of(f));
}

bool decode_format_is_same(uint32_t bit, const char *text, char there[DECODE_FORMAT_CHARS],
			   char here[DECODE_FORMAT_CHARS])
{
	const struct decode_format_name *f = decode_format_names;
	size_t n;

	while (f->bit != bit)
		f++;
	n = strlen(f->name);
	while (*text && (strncmp(text, f->name, n) != 0 || text[n] != ' '))
		text += strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
	text += *text ? n + 1 : 0;
	snprintf(there, DECODE_FORMAT_CHARS, "%.*s", (int)strcspn(text, "\n"), text);
	snprintf(here, DECODE_FORMAT_CHARS, "%s", library_of(f));
	return !strcmp(there, here);
}

bool decode_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	return heif_is_avif(bytes, size) ? avif_stated(bytes, size, rules, stated)
					 : exif_stated(bytes, size, rules, stated);
}
