/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_name.c - what a file or a member holds, as far as the end of its name says it
 */
#include "tools/shardpack/images/file_name.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "tools/shardpack/images/images.h"

static const char *const archive_extensions[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tbz2",
						 ".tbz", ".tar.xz", ".txz", ".zip",	NULL};
static const char *const coco_extensions[] = {".json", ".json.gz", ".json.zst", ".json.bz2", ".json.xz", NULL};

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
	const struct image_format *f = image_format_of_name(name, strlen(name));

	return f && image_format_is_input(f);
}

bool file_name_is_image_suffix(const char *suffix)
{
	const struct image_format *f = image_format_of_suffix(suffix);

	return f && image_format_is_input(f);
}

bool file_name_is_coco(const char *name)
{
	for (const char *const *e = coco_extensions; *e; e++)
		if (file_name_has_extension(name, *e))
			return true;
	return false;
}

bool file_name_is_table(const char *name)
{
	return file_name_has_extension(name, ".csv") || file_name_has_extension(name, ".tsv") ||
	       file_name_has_extension(name, ".jsonl") || file_name_has_extension(name, ".ndjson");
}

bool file_name_is_archive(const char *name)
{
	for (const char *const *e = archive_extensions; *e; e++)
		if (file_name_has_extension(name, *e))
			return true;
	return false;
}
