/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_name.c - what a file or a member holds, as far as the end of its name says it
 */
#include "tools/shardpack/scan/file_name.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const char *const image_extensions[] = {".jpg", ".jpeg", ".png",	 ".ppm",  ".bmp",
					       ".pgm", ".tif",	".tiff", ".webp", NULL};
static const char *const archive_extensions[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip", NULL};

static bool ends_with(const char *name, const char *end)
{
	size_t name_bytes = strlen(name), bytes = strlen(end);

	return name_bytes >= bytes && !strcasecmp(name + name_bytes - bytes, end);
}

bool file_name_has_extension(const char *name, const char *extension)
{
	return ends_with(name, extension) && strlen(name) > strlen(extension);
}

bool file_name_is_image(const char *name)
{
	for (const char *const *e = image_extensions; *e; e++)
		if (ends_with(name, *e))
			return true;
	return false;
}

bool file_name_is_image_suffix(const char *suffix)
{
	for (const char *const *e = image_extensions; *e; e++)
		if (!strcasecmp(suffix, *e + 1))
			return true;
	return false;
}

bool file_name_is_archive(const char *name)
{
	for (const char *const *e = archive_extensions; *e; e++)
		if (file_name_has_extension(name, *e))
			return true;
	return false;
}
