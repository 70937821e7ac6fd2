/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_files.c - images that are files: all below a folder, or single ones
 */
#include "tools/shardpack/scan/image_files.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/field_files.h"
#include "tools/shardpack/scan/file_name.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/input_file.h"
#include "tools/shardpack/scan/labels.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

/* ---- folders ---- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* An image with its fields: `path` from the root, `below` from what was named. */
static int add_file(struct image_list *images, const char *path, const char *below, const char *label,
		    const struct stat *st)
{
	struct text fields = {0};
	int code = field_files_find(images->request, below, &fields);

	if (code == EXIT_DONE)
		code = image_list_add(images, path, label, input_file_bytes(st), PLAN_NO_FILE, 0, &fields);
	text_free(&fields);
	return code;
}

/* An image at `below`, which is relative to the folder that was named. */
static int add_below(struct image_list *images, struct labels *labels, const char *folder, const char *below,
		     const struct stat *st)
{
	char path[PLAN_PATH_BYTES_MAX], label[CLASS_NAME_BYTES_MAX + 1], first[PLAN_PATH_BYTES_MAX],
		where[2 * FILES_PATH_BYTES];
	const char *slash = strchr(below, '/'), *root = images->request->place->root;
	int bytes = snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] ? "/" : "", below), code;

	if (bytes < 0 || bytes >= (int)sizeof(path))
		return fail(EXIT_BAD, "%s/%s%s%s: a path of %d bytes; the limit is %zu", root, folder,
			    folder[0] ? "/" : "", below, bytes, sizeof(path) - 1);
	snprintf(first, sizeof(first), "%.*s", slash ? (int)(slash - below) : 0, below);
	snprintf(where, sizeof(where), "%s/%s", root, path);
	code = labels_find(labels, where, below, slash ? first : NULL, label);
	return code == EXIT_DONE ? add_file(images, path, below, label, st) : code;
}

static int take_entry(struct image_list *images, struct labels *labels, const char *folder, const FTSENT *e,
		      size_t top_bytes)
{
	const char *below = e->fts_path + top_bytes;

	while (*below == '/')
		below++;
	switch (e->fts_info) {
	case FTS_D:
	case FTS_DP:
		return EXIT_DONE;
	case FTS_DC:
		return fail(EXIT_BAD, "%s: this link leads back to %.*s; following it would never end", e->fts_path,
			    (int)e->fts_cycle->fts_pathlen, e->fts_path); /* one path is kept for all */
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
	case FTS_SLNONE:
		if (e->fts_info == FTS_SLNONE && !file_name_is_image(e->fts_name))
			break;
		return fail(EXIT_IO, "%s: %s", e->fts_path,
			    e->fts_info == FTS_SLNONE ? "a link to a file that does not exist"
						      : strerror(e->fts_errno));
	default:
		if (file_name_is_image(e->fts_name) && !field_files_has(images->request->recipe, e->fts_name))
			return add_below(images, labels, folder, below, e->fts_statp);
	}
	images->request->scan->ignored_count++;
	return EXIT_DONE;
}

int image_files_add_folder(struct image_list *images, struct labels *labels, const char *path)
{
	char top[FILES_PATH_BYTES], *const tops[] = {top, NULL};
	uint64_t before = images->count;
	struct progress progress;
	FTSENT *e;
	FTS *tree;
	int code = files_path(top, images->request->place->root_absolute, path);

	if (code != EXIT_DONE)
		return code;
	while (strlen(top) > 1 && top[strlen(top) - 1] == '/')
		top[strlen(top) - 1] = '\0';
	images->by_folder = !labels_given(labels);
	tree = fts_open(tops, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	if (!tree)
		return fail(EXIT_IO, "%s: %s", top, strerror(errno));
	progress_start(&progress, "listing", "files", 0);
	while (code == EXIT_DONE && (errno = 0, e = fts_read(tree)) != NULL) {
		code = interrupted() ? EXIT_INTERRUPTED : take_entry(images, labels, path, e, strlen(top));
		progress_add(&progress, 1, 0, 0);
		progress_tick(&progress);
	}
	if (code == EXIT_DONE && errno)
		code = fail(EXIT_IO, "%s: %s", top, strerror(errno));
	progress_abandon(&progress);
	fts_close(tree);
	if (code == EXIT_DONE && images->count == before)
		code = fail(EXIT_BAD, "%s%s%s: no images in it, judged by the extensions of file names",
			    images->request->place->root, path[0] ? "/" : "", path);
	return code;
}

/* ---- single files ---- */

int image_files_add(struct image_list *images, struct labels *labels, const char *path)
{
	char label[CLASS_NAME_BYTES_MAX + 1], folder[PLAN_PATH_BYTES_MAX] = "", where[2 * FILES_PATH_BYTES];
	const char *slash = strrchr(path, '/'), *start = slash ? memrchr(path, '/', (size_t)(slash - path)) : NULL;
	struct stat st;
	int code;

	if (fstatat(images->request->place->root_fd, path, &st, 0) != 0)
		return fail(EXIT_IO, "%s/%s: %s", images->request->place->root, path, strerror(errno));
	if (!slash && !labels_given(labels))
		return fail(EXIT_BAD,
			    "%s/%s: its class would be the folder that holds it, but that lies outside of "
			    "%s; name a folder above it with --root, or give labels with --labels FILE or "
			    "--label-regex RE",
			    images->request->place->root, path, images->request->place->root);
	start = start ? start + 1 : path;
	images->by_folder = !labels_given(labels);
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - start), start);
	snprintf(where, sizeof(where), "%s/%s", images->request->place->root, path);
	code = labels_find(labels, where, path, slash ? folder : NULL, label);
	return code == EXIT_DONE ? add_file(images, path, path, label, &st) : code;
}
