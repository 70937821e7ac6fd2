/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missing_path.c - a table names a file that is not there: is it there under another name?
 */
#include "tools/shardpack/scan/scan.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/files.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/file_name.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"

/* Ids in the place of names: with which ending is the file there?  NULL if with none. */
static const char *find_ending(const struct request *r, const char *path)
{
	static const char *const endings[] = {".jpg", ".jpeg", ".png",	".webp", ".bmp", ".gif",
					      ".JPG", ".JPEG", ".jfif", ".ppm",	 ".pgm", NULL};
	char with[2 * PLAN_PATH_BYTES_MAX + 8];
	struct stat st;

	if (r->o->path_suffix || file_name_is_image(path))
		return NULL;
	for (const char *const *e = endings; *e; e++) {
		snprintf(with, sizeof(with), "%s%s", path, *e);
		if (fstatat(r->place->root_fd, with, &st, 0) == 0)
			return *e;
	}
	return NULL;
}

/* Paths that begin with a folder in which their root lies already.  `above` gets the right root. */
static bool find_above(const struct request *r, const char *folder, const char *listed, char above[FILES_PATH_BYTES])
{
	char whole[FILES_PATH_BYTES + PLAN_PATH_BYTES_MAX];
	const char *suffix = r->o->path_suffix ? r->o->path_suffix : "";
	struct stat st;
	char *slash;

	if (listed[0] == '/' || !strncmp(listed, "../", 3) ||
	    snprintf(above, FILES_PATH_BYTES, "%s/%s", r->place->root_absolute, folder) >= FILES_PATH_BYTES)
		return false;
	while (above[0] && above[strlen(above) - 1] == '/')
		above[strlen(above) - 1] = '\0';
	while ((slash = strrchr(above, '/')) != NULL) {
		*slash = '\0';
		if (snprintf(whole, sizeof(whole), "%s/%s%s", above, listed, suffix) < (int)sizeof(whole) &&
		    stat(whole, &st) == 0 && S_ISREG(st.st_mode)) {
			if (!above[0])
				strcpy(above, "/");
			return true;
		}
	}
	return false;
}

/* The path as it may have been meant, from `listed`: other slashes, no %20, no blanks at its ends. */
static const char *find_spelling(const struct request *r, const char *folder, const char *listed, char *out,
				 size_t room)
{
	size_t n = strlen(listed), blanks = strspn(listed, " \t");
	char whole[4 * PLAN_PATH_BYTES_MAX];
	struct stat st;

	for (unsigned way = 0; way < 3; way++) {
		const char *from = way == 2 ? listed + blanks : listed, *end = listed + n;
		size_t at = 0;

		while (way == 2 && end > from && strchr(" \t", end[-1]))
			end--;
		for (unsigned byte; from < end && at + 1 < room; from++)
			if (way == 1 && end - from > 2 && *from == '%' && isxdigit((unsigned char)from[1]) &&
			    isxdigit((unsigned char)from[2]) && sscanf(from + 1, "%2x", &byte) == 1) {
				out[at++] = (char)byte;
				from += 2;
			} else {
				out[at++] = way == 0 && *from == '\\' ? '/' : *from;
			}
		out[at] = '\0';
		snprintf(whole, sizeof(whole), "%s%s%s", out[0] == '/' ? "" : folder, out,
			 r->o->path_suffix ? r->o->path_suffix : "");
		if (at && strcmp(out, listed) && fstatat(r->place->root_fd, whole, &st, 0) == 0)
			return way == 0	  ? "write / in the place of \\"
			       : way == 1 ? "write its name without percent-encoding"
					  : "take off the blanks at its ends";
	}
	return NULL;
}

bool missing_path_warn(const struct request *r, const char *table, const char *folder, uint64_t line,
		       const char *listed, const char *path)
{
	const char *ending = find_ending(r, path);
	char above[FILES_PATH_BYTES], meant[PLAN_PATH_BYTES_MAX];
	const char *remedy = find_spelling(r, folder, listed, meant, sizeof(meant));
	struct text word = {0};

	if (remedy) {
		scan_warn(r->scan, "%s/%s: line %" PRIu64 ": '%s' is not there, but '%s' is; %s", r->place->root, table,
			  line, listed, meant, remedy);
		return true;
	}
	if (!strncmp(listed, "~/", 2) || listed[0] == '$') {
		scan_warn(r->scan,
			  "%s/%s: line %" PRIu64 ": '%s' is not there; ~ and $ mean nothing in a table, so write the "
			  "whole path",
			  r->place->root, table, line, listed);
		return true;
	}

	if (ending) {
		scan_warn(r->scan, "%s/%s: line %" PRIu64 ": '%s' is not there, but '%s%s' is; say --path-suffix %s",
			  r->place->root, table, line, listed, listed, ending, ending);
		return true;
	}
	if (!find_above(r, folder, listed, above))
		return false;
	text_shell_word(&word, above);
	if (!text_failed(&word))
		scan_warn(r->scan, "%s/%s: line %" PRIu64 ": '%s' is not there, but it is below %s; say --root %s",
			  r->place->root, table, line, listed, above, word.data);
	text_free(&word);
	return true;
}
