/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_files.c - the fields of an image that is a file: files beside it, found
 */
#include "tools/shardpack/scan/scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shard_inspect.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/bad_input.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/request.h"

/* `from`, in which {} becomes `below` without its extension; false if that is too long. */
static bool fill_in(const char *from, const char *below, char out[PLAN_PATH_BYTES_MAX])
{
	const char *hole = strstr(from, "{}"), *slash = strrchr(below, '/'), *dot = strrchr(slash ? slash : below, '.');
	int stem = dot && dot > (slash ? slash + 1 : below) ? (int)(dot - below) : (int)strlen(below);
	int bytes = snprintf(out, PLAN_PATH_BYTES_MAX, "%.*s%.*s%s", (int)(hole - from), from, stem, below, hole + 2);

	return bytes < PLAN_PATH_BYTES_MAX;
}

/*
 * Why there is no such file, for when no image has one.  The image may lie in folders that its path
 * below the folder that was named does not have: images/train beside labels/train.
 */
static void tell_absent(const struct request *r, uint32_t i, const char *below, const char *path)
{
	const struct field_source *s = &r->recipe->from[i];
	const char *hole = strstr(s->from, "{}"), *folder = "", *at;
	char from[2 * PLAN_PATH_BYTES_MAX], deeper[PLAN_PATH_BYTES_MAX];
	struct stat st;

	if (r->scan->field[i].absent[0])
		return;
	if (r->place->item_count == 1 && r->place->item[0].is_dir)
		folder = r->place->item[0].path;
	for (at = folder + strlen(folder); at > folder;) { /* train, then images/train */
		do
			at--;
		while (at > folder && at[-1] != '/');
		snprintf(from, sizeof(from), "%.*s%s/%s", (int)(hole - s->from), s->from, at, hole);
		if (fill_in(from, below, deeper) && fstatat(r->place->root_fd, deeper, &st, 0) == 0) {
			scan_absent(r->scan, i, "%s/%s is not there, but %s is; say from=%s", r->place->root, path,
				    deeper, from);
			return;
		}
	}
	scan_absent(r->scan, i, "%s/%s is not there", r->place->root, path);
}

static int add_file(const struct request *r, const char *below, uint32_t i, struct text *out, struct bad_input *bad)
{
	const struct field_source *s = &r->recipe->from[i];
	const char *name = r->recipe->field[i].name;
	char path[PLAN_PATH_BYTES_MAX];
	struct bad_input gone = {0};
	struct stat st = {0};
	bool there;
	int code;

	if (!strstr(s->from, "{}"))
		return fail(EXIT_USAGE,
			    "--field %s: from= must be a path below %s that contains {}, which stands for "
			    "the image's path without extension, such as from=%s/{}.png",
			    name, r->place->root, name);
	if (!fill_in(s->from, below, path) || !text_stays_below(path))
		return fail(EXIT_BAD, "%s/%s: --field %s: from=%s does not lead to a path below %s", r->place->root,
			    below, name, s->from, r->place->root);
	code = place_look(r->place, path, &st, &there, &gone);
	if (code != EXIT_DONE)
		return bad_input_is(&gone, code)
			       ? bad_input(bad, gone.reason, "field %s, %.120s: %s", name, path, gone.message)
			       : code;
	if (!there && !s->optional && !r->scan->field[i].absent[0]) {
		tell_absent(r, i, below, path);
		if (strstr(r->scan->field[i].absent, "say from=") || stat(path, &st) == 0)
			scan_warn(r->scan, "field %s: %s; from= begins at %s, and --root chooses another folder", name,
				  r->scan->field[i].absent, r->place->root);
	}
	if (!there && !s->optional)
		return bad_input(bad, SHARD_MISS_MISSING, "field %s, %.200s: %s", name, path, strerror(ENOENT));
	if (there) {
		field_part_add_file(out, input_file_bytes(&st), path);
	} else {
		tell_absent(r, i, below, path);
		field_part_add_none(out);
	}
	return EXIT_DONE;
}

int field_files_find(const struct request *r, const char *below, struct text *out, struct bad_input *bad)
{
	int code = EXIT_DONE;

	out->bytes = 0;
	for (uint32_t i = 0; code == EXIT_DONE && i < r->recipe->field_count; i++)
		if (field_has_part(&r->recipe->from[i]))
			code = add_file(r, below, i, out, bad);
	return code == EXIT_DONE && text_failed(out) ? fail(EXIT_IO, "out of memory for the fields of an input") : code;
}

bool field_files_has(const struct recipe *r, const char *name)
{
	size_t bytes = strlen(name), end;
	for (uint32_t i = 0; i < r->field_count; i++) {
		const char *from = r->from[i].from;

		end = field_has_part(&r->from[i]) && !strncmp(from, "{}", 2) ? strlen(from + 2) : 0;
		if (end && bytes > end && !strcmp(name + bytes - end, from + 2))
			return true;
	}
	return false;
}
