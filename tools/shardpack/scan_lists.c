/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_lists.c - images that are files of their own but in no folder of classes
 */
#include "tools/shardpack/scan_lists.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardpack/files.h"
#include "tools/shardpack/table.h"

/* What is no regular file has no size that means anything; reading it will say what it is. */
static uint64_t size_of(const struct stat *st)
{
	return S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
}

/* ---- folders ---- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* An image at `below`, which is relative to the folder that was named. */
static int add_below(struct items *it, struct labels *labels, const char *folder, const char *below, const struct stat *st)
{
	char path[PLAN_PATH_BYTES_MAX], label[CLASS_NAME_BYTES_MAX + 1], first[PLAN_PATH_BYTES_MAX], where[2 * FILES_PATH_BYTES];
	const char *slash = strchr(below, '/'), *root = it->request->place->root;
	int bytes = snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] ? "/" : "", below), code;

	if (bytes < 0 || bytes >= (int)sizeof(path))
		return fail(EXIT_BAD, "%s/%s%s%s: a path of %d bytes; the limit is %zu", root, folder, folder[0] ? "/" : "", below, bytes,
			    sizeof(path) - 1);
	snprintf(first, sizeof(first), "%.*s", slash ? (int)(slash - below) : 0, below);
	snprintf(where, sizeof(where), "%s/%s", root, path);
	code = labels_find(labels, where, below, slash ? first : NULL, label);
	return code == EXIT_DONE ? items_add(it, path, label, size_of(st), PLAN_NO_FILE, 0, NULL) : code;
}

static int take_entry(struct items *it, struct labels *labels, const char *folder, const FTSENT *e, size_t top_bytes)
{
	const char *below = e->fts_path + top_bytes;

	while (*below == '/')
		below++;
	switch (e->fts_info) {
	case FTS_D: case FTS_DP:
		return EXIT_DONE;
	case FTS_DC:
		return fail(EXIT_BAD, "%s: this link leads back to %.*s; it would never end", e->fts_path,
			    (int)e->fts_cycle->fts_pathlen, e->fts_path); /* one path is kept for all */
	case FTS_DNR: case FTS_ERR: case FTS_NS: case FTS_SLNONE:
		if (e->fts_info == FTS_SLNONE && !items_is_image(e->fts_name))
			break;
		return fail(EXIT_IO, "%s: %s", e->fts_path, e->fts_info == FTS_SLNONE ? "a link that leads nowhere" : strerror(e->fts_errno));
	default:
		if (items_is_image(e->fts_name))
			return add_below(it, labels, folder, below, e->fts_statp);
	}
	it->request->scan->ignored_count++;
	return EXIT_DONE;
}

int scan_folder(struct items *it, struct labels *labels, const char *path)
{
	char top[FILES_PATH_BYTES], *const tops[] = {top, NULL};
	uint64_t before = it->count;
	struct progress progress;
	FTSENT *e;
	FTS *tree;
	int code = files_path(top, it->request->place->root_absolute, path);

	if (code != EXIT_DONE)
		return code;
	while (strlen(top) > 1 && top[strlen(top) - 1] == '/')
		top[strlen(top) - 1] = '\0';
	it->by_folder = !labels_given(labels);
	tree = fts_open(tops, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	if (!tree)
		return fail(EXIT_IO, "%s: %s", top, strerror(errno));
	progress_start(&progress, "listing", "files", 0);
	while (code == EXIT_DONE && (errno = 0, e = fts_read(tree)) != NULL) {
		code = interrupted() ? EXIT_INTERRUPTED : take_entry(it, labels, path, e, strlen(top));
		progress_add(&progress, 1, 0, 0);
		progress_tick(&progress);
	}
	if (code == EXIT_DONE && errno)
		code = fail(EXIT_IO, "%s: %s", top, strerror(errno));
	progress_abandon(&progress);
	fts_close(tree);
	if (code == EXIT_DONE && it->count == before)
		code = fail(EXIT_BAD, "%s%s%s: no images in it, by the extensions of names", it->request->place->root, path[0] ? "/" : "", path);
	return code;
}

/* ---- tables ---- */

struct table_scan {
	struct items *it;
	struct labels *labels;
	const char *table; /* path of the table */
	size_t folder_bytes; /* of it, with the slash */
};

/* "a/./b//../c" to "a/c".  False if it leads above the root. */
static bool tidy(const char *path, char *out)
{
	size_t used = 0, n;

	for (; *path; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (!n || (n == 1 && path[0] == '.'))
			continue;
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			if (!used)
				return false;
			while (used && out[used - 1] != '/')
				used--;
			used -= used > 0;
			continue;
		}
		if (used)
			out[used++] = '/';
		memcpy(out + used, path, n);
		used += n;
	}
	out[used] = '\0';
	return used > 0;
}

/* The values of extra columns as bytes, one behind the other. */
static int pack_extra(const struct table_scan *s, const struct table_row *row, uint8_t out[EXTRA_BYTES_MAX])
{
	const struct recipe *r = s->it->request->recipe;
	uint8_t value[8];
	uint32_t i;

	for (i = 0; i < r->field_count; i++) {
		if (!extra_value(&r->field[i], row->value[i], value))
			return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": '%s' in column %s is no %s", s->it->request->place->root, s->table,
				    row->line, row->value[i], r->field[i].name, shard_dtype_name(r->field[i].dtype));
		memcpy(out, value, shard_dtype_bytes(r->field[i].dtype));
		out += shard_dtype_bytes(r->field[i].dtype);
	}
	return EXIT_DONE;
}

/* What follows the root in an absolute path, also where it reaches the root by a link; "" if it lies elsewhere. */
static void below_root(const struct source_place *place, const char *path, char *out, size_t room)
{
	size_t root_bytes = strlen(place->root_absolute);
	char *resolved = files_is_below(path, place->root_absolute) ? strdup(path) : files_above_resolved(path);

	snprintf(out, room, "%s", resolved && files_is_below(resolved, place->root_absolute) ? resolved + root_bytes : "");
	free(resolved);
}

static int take_row(void *context, const struct table_row *row)
{
	struct table_scan *s = context;
	const struct source_place *place = s->it->request->place;
	uint8_t extra[EXTRA_BYTES_MAX];
	char joined[2 * PLAN_PATH_BYTES_MAX], path[2 * PLAN_PATH_BYTES_MAX], label[CLASS_NAME_BYTES_MAX + 1];
	char where[3 * FILES_PATH_BYTES];
	struct stat st;
	int code;

	if (strlen(row->path) >= PLAN_PATH_BYTES_MAX)
		return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": a path of %zu bytes; the limit is %d", place->root, s->table, row->line,
			    strlen(row->path), PLAN_PATH_BYTES_MAX - 1);
	if (row->path[0] != '/')
		snprintf(joined, sizeof(joined), "%.*s%s", (int)s->folder_bytes, s->table, row->path);
	else
		below_root(place, row->path, joined, sizeof(joined));
	if (!tidy(joined, path) || strlen(path) >= PLAN_PATH_BYTES_MAX)
		return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": '%s' lies outside of %s; --root names a folder that holds all images",
			    place->root, s->table, row->line, row->path, place->root);
	if (fstatat(place->root_fd, path, &st, 0) != 0)
		return fail(EXIT_IO, "%s/%s: line %" PRIu64 ": '%s': %s", place->root, s->table, row->line, row->path, strerror(errno));
	if (row->label && !text_is_name(row->label, strlen(row->label), CLASS_NAME_BYTES_MAX))
		return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": label '%.200s' must be UTF-8 of 1 to %d bytes, it has %zu", place->root, s->table,
			    row->line, row->label, CLASS_NAME_BYTES_MAX, strlen(row->label));
	if (!row->label)
		snprintf(where, sizeof(where), "%s/%s: line %" PRIu64 ": '%s'", place->root, s->table, row->line, row->path);
	code = row->label ? EXIT_DONE : labels_find(s->labels, where, row->path, NULL, label);
	if (code == EXIT_DONE)
		code = pack_extra(s, row, extra);
	return code == EXIT_DONE ? items_add(s->it, path, row->label ? row->label : label, size_of(&st), PLAN_NO_FILE, 0,
					     s->it->request->recipe->field_count ? extra : NULL)
				 : code;
}

int scan_table(struct items *it, struct labels *labels, const char *path)
{
	const struct request *r = it->request;
	const char *slash = strrchr(path, '/'), *key = r->o->label_key ? r->o->label_key : "label";
	struct table_scan s = {.it = it, .labels = labels, .table = path,
			       .folder_bytes = r->o->root || !slash ? 0 : (size_t)(slash + 1 - path)};
	char file[FILES_PATH_BYTES], *name = NULL;
	int code = files_path(file, r->place->root_absolute, path);

	if (code == EXIT_DONE && asprintf(&name, "%s/%s", r->place->root, path) < 0) {
		name = NULL;
		code = fail(EXIT_IO, "out of memory");
	}
	it->by_folder = false;
	if (code == EXIT_DONE)
		code = table_read(file, name, labels_given(labels) ? NULL : key, r->recipe, take_row, &s);
	free(name);
	return code;
}

/* ---- single files ---- */

int scan_image(struct items *it, struct labels *labels, const char *path)
{
	char label[CLASS_NAME_BYTES_MAX + 1], folder[PLAN_PATH_BYTES_MAX] = "", where[2 * FILES_PATH_BYTES];
	const char *slash = strrchr(path, '/'), *start = slash ? memrchr(path, '/', (size_t)(slash - path)) : NULL;
	struct stat st;
	int code;

	if (fstatat(it->request->place->root_fd, path, &st, 0) != 0)
		return fail(EXIT_IO, "%s/%s: %s", it->request->place->root, path, strerror(errno));
	if (!slash && !labels_given(labels))
		return fail(EXIT_BAD, "%s/%s: its class would be the folder that holds it, which lies outside of %s; --root names one above, or "
			    "--label-regex or --labels say which label it has", it->request->place->root, path, it->request->place->root);
	start = start ? start + 1 : path;
	it->by_folder = !labels_given(labels);
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - start), start);
	snprintf(where, sizeof(where), "%s/%s", it->request->place->root, path);
	code = labels_find(labels, where, path, slash ? folder : NULL, label);
	return code == EXIT_DONE ? items_add(it, path, label, size_of(&st), PLAN_NO_FILE, 0, NULL) : code;
}
