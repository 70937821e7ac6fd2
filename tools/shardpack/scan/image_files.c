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
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"

/* ---- fields that are files beside the image ---- */

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
	if (r->root->item_count == 1 && r->root->item[0].is_dir)
		folder = r->root->item[0].path;
	for (at = folder + strlen(folder); at > folder;) { /* train, then images/train */
		do
			at--;
		while (at > folder && at[-1] != '/');
		snprintf(from, sizeof(from), "%.*s%s/%s", (int)(hole - s->from), s->from, at, hole);
		if (fill_in(from, below, deeper) && fstatat(r->root->fd, deeper, &st, 0) == 0) {
			scan_absent(r->scan, i, "%s/%s is not there, but %s is; say from=%s", r->root->name, path,
				    deeper, from);
			return;
		}
	}
	scan_absent(r->scan, i, "%s/%s is not there", r->root->name, path);
}

static int add_field_file(const struct request *r, const char *below, uint32_t i, struct text *out,
			  struct bad_input *bad)
{
	const struct field_source *s = &r->recipe->from[i];
	const char *name = r->recipe->field[i].name;
	char path[PLAN_PATH_BYTES_MAX];
	struct bad_input gone = {0};
	struct stat st = {0};
	bool there;
	int rc;

	if (!strstr(s->from, "{}"))
		return fail(EXIT_USAGE,
			    "--field %s: from= must be a path below %s that contains {}, which stands for "
			    "the image's path without extension, such as from=%s/{}.png",
			    name, r->root->name, name);
	if (!fill_in(s->from, below, path) || !text_stays_below(path))
		return fail(EXIT_BAD, "%s/%s: --field %s: from=%s does not lead to a path below %s", r->root->name,
			    below, name, s->from, r->root->name);
	rc = source_root_stat(r->root, path, &st, &there, &gone);
	if (rc != EXIT_DONE)
		return bad_input_is(&gone, rc)
			       ? bad_input(bad, gone.reason, "field %s, %.120s: %s", name, path, gone.message)
			       : rc;
	if (!there && !s->optional && !r->scan->field[i].absent[0]) {
		tell_absent(r, i, below, path);
		if (strstr(r->scan->field[i].absent, "say from=") || stat(path, &st) == 0)
			scan_warn(r->scan, "field %s: %s; from= begins at %s, and --root chooses another folder", name,
				  r->scan->field[i].absent, r->root->name);
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
	int rc = EXIT_DONE;

	out->bytes = 0;
	for (uint32_t i = 0; rc == EXIT_DONE && i < r->recipe->field_count; i++)
		if (field_has_part(&r->recipe->from[i]))
			rc = add_field_file(r, below, i, out, bad);
	return rc;
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

/* ---- folders of images ---- */

/*
 * An image with its label and fields: `path` from the root, `below` from what was named.  `folder` is
 * its class unless an option says which; NULL: it lies in none.  `bad` says whether something is
 * wrong with it already.
 */
static int add_image(struct image_list *images, const char *path, const char *below, const char *folder,
		     const struct stat *st, struct bad_input *bad)
{
	const struct request *r = images->request;
	char label[CLASS_NAME_BYTES_MAX + 1], where[2 * FILES_PATH_BYTES];
	bool known = !bad->reason || folder || labels_given(r->o); /* which class it has */
	struct bad_input no_label = {0};
	struct text fields = {0};
	int rc = EXIT_DONE;

	snprintf(where, sizeof(where), "%s/%s", r->root->name, path);
	if (known)
		rc = labels_find(images->labels, where, below, folder, label, &no_label);
	if (rc != EXIT_DONE && !no_label.reason)
		return rc;
	known = known && !no_label.reason;
	if (!bad->reason)
		bad = &no_label;
	rc = bad->reason ? EXIT_BAD : field_files_find(r, below, &fields, bad);
	if (bad_input_is(bad, rc))
		rc = image_list_add_bad(images, path, known ? label : NULL, input_file_bytes(st), PLAN_NO_FILE, 0, bad);
	else if (rc == EXIT_DONE)
		rc = image_list_add(images, path, label, input_file_bytes(st), PLAN_NO_FILE, 0, &fields);
	text_free(&fields);
	return rc;
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
	size_t top_bytes;		/* of the folder that was named, with a slash unless it is the root */
	char path[PLAN_PATH_BYTES_MAX]; /* from the root to where the walk is */
	struct progress progress;
};

/* An image at t->path, whose class is the first folder below what was named. */
static int add_below(struct tree *t, const struct stat *st, struct bad_input *bad)
{
	const char *below = t->path + t->top_bytes, *slash = strchr(below, '/');
	char first[PLAN_PATH_BYTES_MAX];

	snprintf(first, sizeof(first), "%.*s", slash ? (int)(slash - below) : 0, below);
	return add_image(t->images, t->path, below, slash ? first : NULL, st, bad);
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

static int add_name(void *context, const struct dirent *entry)
{
	struct names *n = context;

	if (grow_on(n->text.shelf, &n->at, &n->capacity, n->count + 1, sizeof(*n->at))) {
		n->at[n->count++] = n->text.bytes;
		text_add(&n->text, entry->d_name, strlen(entry->d_name) + 1);
		if (!text_failed(&n->text))
			return EXIT_DONE;
	}
	return shelf_refuse(n->text.shelf, "a list of %" PRIu64 " files", n->count);
}

static int walk(struct tree *t, const struct stat *st, const struct above *up);

/* A name in the folder at t->path, which is as long again afterwards. */
static int add_entry(struct tree *t, const char *name, const struct above *up)
{
	const struct request *r = t->images->request;
	size_t old = up->path_bytes, bytes = old + (old > 0) + strlen(name);
	bool field = field_files_has(r->recipe, name), image = file_name_is_image(name) && !field;
	struct bad_input bad = {0};
	struct stat st = {0};
	int rc;

	if (interrupted())
		return EXIT_INTERRUPTED;
	if (bytes >= sizeof(t->path))
		return fail(EXIT_BAD, "%s/%s/%s: a path of %zu bytes; the limit is %zu", r->root->name, t->path, name,
			    bytes, sizeof(t->path) - 1);
	stpcpy(stpcpy(t->path + old, old ? "/" : ""), name);
	rc = source_root_stat_entry(r->root, t->path, &st, &bad);
	if (bad_input_is(&bad, rc) && field) /* its image says so */
		rc = EXIT_DONE;
	else if (bad_input_is(&bad, rc))
		rc = add_below(t, &st, &bad);
	else if (rc == EXIT_DONE && S_ISDIR(st.st_mode))
		rc = walk(t, &st, up);
	else if (rc == EXIT_DONE && image)
		rc = add_below(t, &st, &bad);
	else if (rc == EXIT_DONE)
		ignored_add(&r->scan->ignored, "", t->path);
	t->path[old] = '\0';
	progress_add(&t->progress, 1, 0, 0);
	progress_tick(&t->progress);
	return rc;
}

/* The folder at t->path, in byte order. */
static int walk(struct tree *t, const struct stat *st, const struct above *up)
{
	const struct source_root *root = t->images->request->root;
	struct above here = {st->st_dev, st->st_ino, strlen(t->path), up};
	struct names names = {.text.shelf = t->images->text.shelf};
	int rc;

	for (const struct above *a = up; a; a = a->up)
		if (a->dev == st->st_dev && a->ino == st->st_ino)
			return fail(EXIT_BAD, "%s/%s: this link leads back to %s%s%.*s; following it would never end",
				    root->name, t->path, root->name, a->path_bytes ? "/" : "", (int)a->path_bytes,
				    t->path);
	rc = scan_each_entry(root, t->path, add_name, &names);
	if (rc == EXIT_DONE && !shelf_sort(names.text.shelf, names.at, names.count, sizeof(*names.at), by_name, &names))
		rc = shelf_refuse(names.text.shelf, "a list of %" PRIu64 " files", names.count);
	for (uint64_t i = 0; rc == EXIT_DONE && i < names.count; i++)
		rc = add_entry(t, names.text.data + names.at[i], &here);
	shelf_free(names.text.shelf, names.at);
	text_free(&names.text);
	return rc;
}

int image_files_add_folder(struct image_list *images, const char *path)
{
	struct tree *t = xcalloc(1, sizeof(*t));
	uint64_t before = images->count;
	size_t bytes = strlen(path);
	struct stat st;
	int rc;

	while (bytes && path[bytes - 1] == '/')
		bytes--;
	*t = (struct tree){.images = images, .top_bytes = bytes + (bytes > 0)};
	memcpy(t->path, path, bytes); /* source_root.c saw that it fits */
	images->by_folder = !labels_given(images->request->o);
	rc = source_root_stat_entry(images->request->root, bytes ? t->path : ".", &st, NULL);
	if (rc == EXIT_DONE) {
		progress_start(&t->progress, "listing", "files", 0);
		rc = walk(t, &st, NULL);
		progress_abandon(&t->progress);
	}
	free(t);
	if (rc == EXIT_DONE && images->count == before)
		rc = fail(EXIT_BAD, "%s%s%s: no images in it, judged by the extensions of file names",
			  images->request->root->name, path[0] ? "/" : "", path);
	return rc;
}

/* ---- single images ---- */

bool image_folder(const char *path, char out[PLAN_PATH_BYTES_MAX])
{
	const char *slash = strrchr(path, '/'), *start = slash ? memrchr(path, '/', (size_t)(slash - path)) : NULL;

	start = start ? start + 1 : path;
	return slash && snprintf(out, PLAN_PATH_BYTES_MAX, "%.*s", (int)(slash - start), start) < PLAN_PATH_BYTES_MAX;
}

int image_files_add(struct image_list *images, const char *path)
{
	const struct request *r = images->request;
	char folder[PLAN_PATH_BYTES_MAX];
	bool has_folder = image_folder(path, folder);
	struct bad_input bad = {0};
	struct stat st = {0};

	if (fstatat(r->root->fd, path, &st, 0) != 0 && errno == ENOENT)
		bad_input(&bad, SHARD_MISS_MISSING, "%s", strerror(ENOENT));
	else if (!st.st_mode)
		return fail(EXIT_IO, "%s/%s: %s", r->root->name, path, strerror(errno));
	if (!has_folder && !labels_given(r->o))
		return fail(EXIT_BAD,
			    "%s/%s: its class would be the folder that holds it, but that lies outside of "
			    "%s; name a folder above it with --root, or give labels with --labels FILE or "
			    "--label-regex RE, or pack without labels with --no-label",
			    r->root->name, path, r->root->name);
	images->by_folder = !labels_given(r->o);
	return add_image(images, path, path, has_folder ? folder : NULL, &st, &bad);
}
