/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_files.c - images that are files: all below a folder, or single ones
 */
#include "tools/shardpack/scan/image_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

/* A folder that is being listed, and those above it. */
struct above {
	dev_t dev;
	ino_t ino;
	size_t path_bytes;
	const struct above *up;
};

struct tree {
	struct image_list *images;
	struct labels *labels;
	size_t top_bytes;		/* of the folder that was named, with a slash unless it is the root */
	char path[PLAN_PATH_BYTES_MAX]; /* from the root to where the walk is */
	struct progress progress;
};

static const char *root_of(const struct image_list *images)
{
	return images->request->place->root;
}

static int out_of_room(const struct tree *t, const char *name, size_t bytes)
{
	return fail(EXIT_BAD, "%s/%s/%s: a path of %zu bytes; the limit is %zu", root_of(t->images), t->path, name,
		    bytes, sizeof(t->path) - 1);
}

/* An image at t->path. */
static int add_below(struct tree *t, const struct stat *st)
{
	char label[CLASS_NAME_BYTES_MAX + 1], first[PLAN_PATH_BYTES_MAX], where[2 * FILES_PATH_BYTES];
	const char *below = t->path + t->top_bytes, *slash = strchr(below, '/');
	int code;

	snprintf(first, sizeof(first), "%.*s", slash ? (int)(slash - below) : 0, below);
	snprintf(where, sizeof(where), "%s/%s", root_of(t->images), t->path);
	code = labels_find(t->labels, where, below, slash ? first : NULL, label);
	return code == EXIT_DONE ? add_file(t->images, t->path, below, label, st) : code;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_listed(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

static int walk(struct tree *t, const struct stat *st, const struct above *up);

/* A name in the folder at t->path, which is as long again afterwards. */
static int take_entry(struct tree *t, const char *name, const struct above *up)
{
	const struct request *r = t->images->request;
	size_t old = up->path_bytes, bytes = old + (old > 0) + strlen(name);
	struct stat st;
	int code;

	if (interrupted())
		return EXIT_INTERRUPTED;
	if (bytes >= sizeof(t->path))
		return out_of_room(t, name, bytes);
	stpcpy(stpcpy(t->path + old, old ? "/" : ""), name);
	code = place_look_at_entry(r->place, t->path, &st);
	if (code == EXIT_DONE && S_ISDIR(st.st_mode))
		code = walk(t, &st, up);
	else if (code == EXIT_DONE && file_name_is_image(name) && !field_files_has(r->recipe, name))
		code = add_below(t, &st);
	else if (code == EXIT_DONE)
		r->scan->ignored_count++;
	t->path[old] = '\0';
	progress_add(&t->progress, 1, 0, 0);
	progress_tick(&t->progress);
	return code;
}

/*
 * The folder at t->path, in byte order.  scandirat() says if the listing is not complete; fts does
 * not.
 */
static int walk(struct tree *t, const struct stat *st, const struct above *up)
{
	struct above here = {st->st_dev, st->st_ino, strlen(t->path), up};
	struct dirent **entry = NULL;
	int code = EXIT_DONE, count;

	for (const struct above *a = up; a; a = a->up)
		if (a->dev == st->st_dev && a->ino == st->st_ino)
			return fail(EXIT_BAD, "%s/%s: this link leads back to %s%s%.*s; following it would never end",
				    root_of(t->images), t->path, root_of(t->images), a->path_bytes ? "/" : "",
				    (int)a->path_bytes, t->path);
	count = scandirat(t->images->request->place->root_fd, t->path[0] ? t->path : ".", &entry, is_listed, by_name);
	if (count < 0)
		return fail(EXIT_IO, "%s/%s: cannot read this folder: %s", root_of(t->images), t->path,
			    strerror(errno));
	for (int i = 0; i < count; i++) {
		if (code == EXIT_DONE)
			code = take_entry(t, entry[i]->d_name, &here);
		free(entry[i]);
	}
	free(entry);
	return code;
}

int image_files_add_folder(struct image_list *images, struct labels *labels, const char *path)
{
	struct tree *t = calloc(1, sizeof(*t));
	uint64_t before = images->count;
	size_t bytes = strlen(path);
	struct stat st;
	int code = t ? EXIT_DONE : fail(EXIT_IO, "%s: out of memory for a list of its files", path);

	while (bytes && path[bytes - 1] == '/')
		bytes--;
	if (code == EXIT_DONE) {
		*t = (struct tree){.images = images, .labels = labels, .top_bytes = bytes + (bytes > 0)};
		memcpy(t->path, path, bytes); /* place.c saw that it fits */
		images->by_folder = !labels_given(labels);
		code = place_look_at_entry(images->request->place, bytes ? t->path : ".", &st);
	}
	if (code == EXIT_DONE) {
		progress_start(&t->progress, "listing", "files", 0);
		code = walk(t, &st, NULL);
		progress_abandon(&t->progress);
	}
	free(t);
	if (code == EXIT_DONE && images->count == before)
		code = fail(EXIT_BAD, "%s%s%s: no images in it, judged by the extensions of file names",
			    root_of(images), path[0] ? "/" : "", path);
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
