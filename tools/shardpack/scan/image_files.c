/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_files.c - images that are files: all below a folder, or single ones
 */
#include "tools/shardpack/scan/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_inspect.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/file_name.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/bad_input.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/request.h"

/* ---- folders ---- */

/*
 * An image with its fields: `path` from the root, `below` from what was named.  `bad` says whether
 * something is wrong with it already; then `label` may be NULL.
 */
static int add_file(struct image_list *images, const char *path, const char *below, const char *label,
		    const struct stat *st, struct bad_input *bad)
{
	struct text fields = {0};
	int code = bad->reason ? EXIT_BAD : field_files_find(images->request, below, &fields, bad);

	if (bad_input_is(bad, code))
		code = image_list_add_bad(images, path, label, input_file_bytes(st), PLAN_NO_FILE, 0, bad);
	else if (code == EXIT_DONE)
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
static int add_below(struct tree *t, const struct stat *st, struct bad_input *bad)
{
	struct bad_input no_label = {0};
	char label[CLASS_NAME_BYTES_MAX + 1], first[PLAN_PATH_BYTES_MAX], where[2 * FILES_PATH_BYTES];
	const char *below = t->path + t->top_bytes, *slash = strchr(below, '/');
	int code;

	snprintf(first, sizeof(first), "%.*s", slash ? (int)(slash - below) : 0, below);
	snprintf(where, sizeof(where), "%s/%s", root_of(t->images), t->path);
	if (bad->reason && !slash && !labels_given(t->labels)) /* which class it would have is not known */
		return add_file(t->images, t->path, below, NULL, st, bad);
	code = labels_find(t->labels, where, below, slash ? first : NULL, label, &no_label);
	if (code != EXIT_DONE && !no_label.reason)
		return code;
	return add_file(t->images, t->path, below, no_label.reason ? NULL : label, st, bad->reason ? bad : &no_label);
}

/* The names in a folder, in byte order. */
struct names {
	struct text text; /* NUL-terminated, one behind the other; its shelf has `at`, too */
	uint64_t *at, count, capacity;
};

static int by_name(const void *a, const void *b, void *context)
{
	const struct names *n = context;

	return strcmp(n->text.data + *(const uint64_t *)a, n->text.data + *(const uint64_t *)b);
}

static void names_free(struct names *n)
{
	shelf_free(n->text.shelf, n->at);
	text_free(&n->text);
}

static int names_add(struct names *n, const char *name)
{
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return EXIT_DONE;
	if (grow_on(n->text.shelf, &n->at, &n->capacity, n->count + 1, sizeof(*n->at))) {
		n->at[n->count++] = n->text.bytes;
		text_add(&n->text, name, strlen(name) + 1);
		if (!text_failed(&n->text))
			return EXIT_DONE;
	}
	return shelf_refuse(n->text.shelf, "a list of %" PRIu64 " files", n->count);
}

static int names_read(struct names *n, const char *root, int root_fd, const char *path)
{
	int fd = openat(root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = EXIT_DONE;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry = NULL;

	while (dir && code == EXIT_DONE && (errno = 0, entry = readdir(dir)) != NULL)
		code = interrupted() ? EXIT_INTERRUPTED : names_add(n, entry->d_name);
	if (!dir || (!entry && errno))
		code = fail(EXIT_IO, "%s/%s: cannot read this folder: %s", root, path, strerror(errno));
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	if (code == EXIT_DONE && !shelf_sort(n->text.shelf, n->at, n->count, sizeof(*n->at), by_name, n))
		code = shelf_refuse(n->text.shelf, "a list of %" PRIu64 " files", n->count);
	return code;
}

static int walk(struct tree *t, const struct stat *st, const struct above *up);

/* A name in the folder at t->path, which is as long again afterwards. */
static int take_entry(struct tree *t, const char *name, const struct above *up)
{
	const struct request *r = t->images->request;
	size_t old = up->path_bytes, bytes = old + (old > 0) + strlen(name);
	bool field = field_files_has(r->recipe, name), image = file_name_is_image(name) && !field;
	struct bad_input bad = {0};
	struct stat st = {0};
	int code;

	if (interrupted())
		return EXIT_INTERRUPTED;
	if (bytes >= sizeof(t->path))
		return out_of_room(t, name, bytes);
	stpcpy(stpcpy(t->path + old, old ? "/" : ""), name);
	code = place_look_at_entry(r->place, t->path, &st, &bad);
	if (bad_input_is(&bad, code) && field) /* its image says so */
		code = EXIT_DONE;
	else if (bad_input_is(&bad, code))
		code = add_below(t, &st, &bad);
	else if (code == EXIT_DONE && S_ISDIR(st.st_mode))
		code = walk(t, &st, up);
	else if (code == EXIT_DONE && image)
		code = add_below(t, &st, &bad);
	else if (code == EXIT_DONE)
		ignored_add(&r->scan->ignored, "", t->path);
	t->path[old] = '\0';
	progress_add(&t->progress, 1, 0, 0);
	progress_tick(&t->progress);
	return code;
}

/* The folder at t->path, in byte order. */
static int walk(struct tree *t, const struct stat *st, const struct above *up)
{
	const struct source_place *place = t->images->request->place;
	struct above here = {st->st_dev, st->st_ino, strlen(t->path), up};
	struct names names = {.text.shelf = t->images->text.shelf};
	int code;

	for (const struct above *a = up; a; a = a->up)
		if (a->dev == st->st_dev && a->ino == st->st_ino)
			return fail(EXIT_BAD, "%s/%s: this link leads back to %s%s%.*s; following it would never end",
				    root_of(t->images), t->path, root_of(t->images), a->path_bytes ? "/" : "",
				    (int)a->path_bytes, t->path);
	code = names_read(&names, root_of(t->images), place->root_fd, t->path);
	for (uint64_t i = 0; code == EXIT_DONE && i < names.count; i++)
		code = take_entry(t, names.text.data + names.at[i], &here);
	names_free(&names);
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
		code = place_look_at_entry(images->request->place, bytes ? t->path : ".", &st, NULL);
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
	struct bad_input bad = {0}, no_label = {0};
	struct stat st = {0};
	int code;

	if (fstatat(images->request->place->root_fd, path, &st, 0) != 0 && errno == ENOENT)
		bad_input(&bad, SHARD_MISS_MISSING, "%s", strerror(ENOENT));
	else if (!st.st_mode)
		return fail(EXIT_IO, "%s/%s: %s", images->request->place->root, path, strerror(errno));
	if (!slash && !labels_given(labels))
		return fail(EXIT_BAD,
			    "%s/%s: its class would be the folder that holds it, but that lies outside of "
			    "%s; name a folder above it with --root, or give labels with --labels FILE or "
			    "--label-regex RE, or pack without labels with --no-label",
			    images->request->place->root, path, images->request->place->root);
	start = start ? start + 1 : path;
	images->by_folder = !labels_given(labels);
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - start), start);
	snprintf(where, sizeof(where), "%s/%s", images->request->place->root, path);
	code = labels_find(labels, where, path, slash ? folder : NULL, label, &no_label);
	if (code != EXIT_DONE && !no_label.reason)
		return code;
	return add_file(images, path, path, no_label.reason ? NULL : label, &st, bad.reason ? &bad : &no_label);
}
