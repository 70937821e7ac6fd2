/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_root.c - where the inputs are: one folder, and paths below it
 */
#include "tools/shardpack/input/input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_inspect.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/plan/plan.h"

static int out_of_room(const struct source_root *p)
{
	return shelf_refuse(p->paths.shelf, "a list of %" PRIu64 " inputs", p->item_count);
}

/* Paths lie in p->paths in the order of the items.  While that grows, they move. */
static void find_paths(struct source_root *p)
{
	char *path = p->paths.data;

	for (uint64_t i = 0; i < p->item_count; i++) {
		p->item[i].path = path;
		path += strlen(path) + 1;
	}
}

/* The path is kept as it is; settle_paths() makes it relative.  `line` is of a list, else 0. */
static int add_item(struct source_root *p, const char *path, uint64_t line)
{
	struct stat st = {0};
	bool there = stat(path, &st) == 0, missing = !there && errno == ENOENT && line;

	if (!there && !missing)
		return line ? fail(EXIT_IO, "standard input, line %" PRIu64 ": %s: %s", line, path, strerror(errno))
			    : fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (!grow_on(p->paths.shelf, &p->item, &p->item_capacity, p->item_count + 1, sizeof(*p->item)))
		return out_of_room(p);
	p->item[p->item_count++] = (struct source_item){.is_dir = S_ISDIR(st.st_mode), .missing = missing};
	text_add(&p->paths, path, strlen(path) + 1);
	return text_failed(&p->paths) ? out_of_room(p) : EXIT_DONE;
}

/*
 * glob() calls these functions, so that no error hides a file.  By itself, glob() takes a listing
 * that breaks off for a complete one, and a name that cannot be examined for one that is absent.
 */
static _Thread_local int glob_errno; /* of the first error since it was set to 0 */

static int note_glob(int rc)
{
	if (rc != 0 && errno != ENOENT && errno != ENOTDIR && !glob_errno)
		glob_errno = errno;
	return rc;
}

static int glob_lstat(const char *path, struct stat *st)
{
	return note_glob(lstat(path, st));
}

/* A link that leads nowhere is a match, and add_item() says what is wrong with it. */
static int glob_stat(const char *path, struct stat *st)
{
	int rc = stat(path, st);

	return rc != 0 && errno == ENOENT ? lstat(path, st) : note_glob(rc);
}

static struct dirent *glob_readdir(void *dir)
{
	struct dirent *entry = (errno = 0, readdir(dir));

	note_glob(!entry && errno ? -1 : 0);
	return entry;
}

static void *glob_opendir(const char *path)
{
	DIR *dir = opendir(path);

	note_glob(dir ? 0 : -1);
	return dir;
}

static void glob_closedir(void *dir)
{
	closedir(dir);
}

static int add_pattern(struct source_root *p, const char *pattern)
{
	glob_t found = {.gl_opendir = glob_opendir,
			.gl_readdir = glob_readdir,
			.gl_closedir = glob_closedir,
			.gl_lstat = glob_lstat,
			.gl_stat = glob_stat};
	int rc = EXIT_DONE, status;

	glob_errno = 0;
	status = glob(pattern, GLOB_ERR | GLOB_ALTDIRFUNC, NULL, &found);
	if (glob_errno || (status != 0 && status != GLOB_NOMATCH))
		rc = fail(EXIT_IO, "%s: cannot search for this pattern: %s", pattern,
			  status == GLOB_NOSPACE ? "out of memory" : strerror(glob_errno ? glob_errno : errno));
	else if (status == GLOB_NOMATCH)
		rc = fail(EXIT_IO, "%s: nothing matches this pattern", pattern);
	/* glob() sorts as the locale does, and that is "C" in this program. */
	for (size_t i = 0; rc == EXIT_DONE && i < found.gl_pathc; i++)
		rc = add_item(p, found.gl_pathv[i], 0);
	if (status == 0)
		globfree(&found);
	return rc;
}

/* A file, a folder, or a pattern.  What is there by that very name is not a pattern. */
static int add_named(struct source_root *p, const char *named)
{
	struct stat st;

	if (!named[0])
		return fail(EXIT_USAGE, "'': the name of an input must not be empty");
	if (!strpbrk(named, "*?[") || lstat(named, &st) == 0)
		return add_item(p, named, 0);
	if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG)
		return fail(EXIT_IO, "%s: %s", named, strerror(errno));
	return add_pattern(p, named);
}

static int add_list(struct source_root *p)
{
	struct line line = {.number = 0};
	int rc = EXIT_DONE;

	while (rc == EXIT_DONE) {
		rc = line_next(&line, stdin, "standard input", "one path per line");
		if (rc != EXIT_DONE || line.is_end)
			break;
		/* CR LF, unless a name ends so. */
		if (line.bytes && line.text[line.bytes - 1] == '\r' && access(line.text, F_OK) != 0)
			line.text[--line.bytes] = '\0';
		if (!line.bytes || strlen(line.text) != line.bytes)
			rc = fail(EXIT_BAD, "standard input, line %" PRIu64 ": %s; must be one path per line",
				  line.number, line.bytes ? "has a NUL byte" : "is empty");
		else
			rc = add_item(p, line.text, line.number);
	}
	if (rc == EXIT_DONE && !line.number)
		rc = fail(EXIT_BAD, "standard input: empty; '-' stands for a list of inputs, one path per line");
	return rc;
}

/* All lie in one folder as they are typed?  Then its name, and the items keep what follows it. */
static bool share_folder(struct source_root *p)
{
	size_t bytes = files_folder_bytes(p->item[0].path);

	for (uint64_t i = 0; i < p->item_count; i++) {
		const char *path = p->item[i].path;

		if (files_folder_bytes(path) != bytes || strncmp(path, p->item[0].path, bytes) ||
		    path[strlen(path) - 1] == '/' || !strcmp(path, ".") || !strcmp(path, ".."))
			return false;
	}
	p->name = bytes ? xstrndup(p->item[0].path, bytes) : xstrdup(".");
	for (uint64_t i = 0; i < p->item_count; i++) {
		char *path = p->item[i].path;
		size_t at = bytes;

		while (path[at] == '/')
			at++;
		memmove(path, path + at, strlen(path + at) + 1);
	}
	return true;
}

/* Keep the bytes of `root` that are folders above `path` as well. */
static void shorten_to_common(char *root, const char *path)
{
	size_t at = 0, common = 0;

	for (;; at++) {
		if ((root[at] == '/' || !root[at]) && (path[at] == '/' || !path[at]))
			common = at;
		if (!root[at] || root[at] != path[at])
			break;
	}
	root[common ? common : 1] = '\0';
}

/*
 * Every item from "/", then relative to the root: that of --root, or the lowest folder above all.
 * A list of images may lie beside --root, which is then below the root.
 */
static int settle_far_paths(struct source_root *p, const char *root)
{
	char *above_images = root ? realpath(root, NULL) : NULL;
	struct text settled = {.shelf = p->paths.shelf};
	int rc = EXIT_DONE;
	size_t bytes;

	if (root && !above_images)
		return fail(EXIT_IO, "--root %s: %s", root, strerror(errno));
	p->absolute = root ? xstrdup(above_images) : NULL;
	for (uint64_t i = 0; rc == EXIT_DONE && i < p->item_count; i++) {
		const struct source_item *item = &p->item[i];
		char *path = files_above_resolved(item->path);

		if (!path)
			rc = fail(EXIT_IO, "%s: %s", item->path, strerror(errno));
		else if (!p->absolute)
			p->absolute = xstrndup(path, item->is_dir ? strlen(path) : files_folder_bytes(path));
		else if (!root ||
			 (!files_is_below(path, p->absolute) && (file_name_is_coco(path) || file_name_is_table(path))))
			shorten_to_common(p->absolute, path);
		else if (!files_is_below(path, p->absolute))
			rc = fail(EXIT_USAGE, "%s: lies outside of --root %s", item->path, root);
		if (rc == EXIT_DONE)
			text_add(&settled, path, strlen(path) + 1);
		free(path);
		if (rc == EXIT_DONE && text_failed(&settled))
			rc = out_of_room(p);
	}
	if (rc != EXIT_DONE) {
		text_free(&settled);
		free(above_images);
		return rc;
	}
	text_free(&p->paths);
	p->paths = settled;
	find_paths(p);
	bytes = strlen(p->absolute);
	for (uint64_t i = 0; i < p->item_count; i++) {
		char *path = p->item[i].path, *rest = path + (bytes > 1 ? bytes : 0);

		rest += strspn(rest, "/");
		memmove(path, rest, strlen(rest) + 1);
	}
	if (root && bytes < strlen(above_images)) {
		const char *rest = above_images + (bytes > 1 ? bytes : 0);

		p->below = xstrdup(rest + strspn(rest, "/"));
		p->name = xstrdup(p->absolute);
	} else {
		p->below = xstrdup("");
		p->name = xstrdup(root ? root : p->absolute);
	}
	free(above_images);
	return EXIT_DONE;
}

static int compare_items(const void *a, const void *b, void *unused)
{
	(void)unused;
	return strcmp((*(const struct source_item *const *)a)->path, (*(const struct source_item *const *)b)->path);
}

static int check_paths(const struct source_root *p)
{
	const struct source_item **sorted = NULL;
	uint64_t capacity = 0;
	int rc = EXIT_DONE;

	if (!grow_on(p->paths.shelf, &sorted, &capacity, p->item_count, sizeof(*sorted)))
		return out_of_room(p);
	for (uint64_t i = 0; i < p->item_count; i++)
		sorted[i] = &p->item[i];
	if (!shelf_sort(p->paths.shelf, sorted, p->item_count, sizeof(*sorted), compare_items, NULL))
		rc = out_of_room(p);
	for (uint64_t i = 1; rc == EXIT_DONE && i < p->item_count; i++)
		if (!strcmp(sorted[i - 1]->path, sorted[i]->path))
			rc = fail(EXIT_USAGE, "%s/%s: given twice", p->name, sorted[i]->path);
	for (uint64_t i = 0; rc == EXIT_DONE && i < p->item_count; i++)
		if (strlen(p->item[i].path) >= PLAN_PATH_BYTES_MAX)
			rc = fail(EXIT_USAGE, "%s/%s: a path of %zu bytes; the limit is %d", p->name, p->item[i].path,
				  strlen(p->item[i].path), PLAN_PATH_BYTES_MAX - 1);
	shelf_free(p->paths.shelf, sorted);
	return rc;
}

/*
 * How many bytes of a path that is absent lead to a link that leads nowhere: all of them, or those
 * of a folder above.  0 if there is no such link.
 */
static size_t dangling_bytes(const struct source_root *p, const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	for (size_t n = strcspn(path, "/"); n < sizeof(part); n += 1 + strcspn(path + n + 1, "/")) {
		memcpy(part, path, n);
		part[n] = '\0';
		if (n && fstatat(p->fd, part, &st, 0) != 0)
			return fstatat(p->fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0 ? n : 0;
		if (!path[n])
			break;
	}
	return 0;
}

int source_root_stat(const struct source_root *p, const char *path, struct stat *st, bool *there, struct bad_input *bad)
{
	size_t dangling;

	*there = fstatat(p->fd, path, st, 0) == 0;
	if (*there)
		return EXIT_DONE;
	if (errno != ENOENT)
		return fail(EXIT_IO, "%s/%s: %s", p->name, path, strerror(errno));
	dangling = dangling_bytes(p, path);
	if (dangling && bad)
		return bad_input(bad, SHARD_MISS_MISSING, "a link to a file that does not exist%s%.*s",
				 path[dangling] ? ": " : "", path[dangling] ? (int)dangling : 0, path);
	if (dangling)
		return fail(EXIT_IO, "%s/%.*s: %s (a link to a file that does not exist?)", p->name, (int)dangling,
			    path, strerror(ENOENT));
	return errno == ENOENT ? EXIT_DONE : fail(EXIT_IO, "%s/%s: %s", p->name, path, strerror(errno));
}

int source_root_stat_entry(const struct source_root *p, const char *path, struct stat *st, struct bad_input *bad)
{
	bool there;
	int rc = source_root_stat(p, path, st, &there, bad);

	if (rc != EXIT_DONE || there)
		return rc;
	if (bad)
		return bad_input(bad, SHARD_MISS_MISSING, "was removed while the folder was listed");
	return fail(EXIT_IO, "%s/%s: was removed while the folder was listed", p->name, path);
}

int source_root_open_folder(struct source_root *p, const char *root)
{
	p->fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->fd < 0)
		return fail(EXIT_IO, "%s: %s: the source must be a folder", root, strerror(errno));
	if (!p->name)
		p->name = xstrdup(root);
	if (!p->absolute)
		p->absolute = files_absolute(root);
	return p->absolute ? EXIT_DONE : EXIT_IO;
}

int source_root_open(struct source_root *p, const char *const *named, size_t named_count, const char *root)
{
	int rc = EXIT_DONE;
	struct stat st;

	if (root && stat(root, &st) == 0 && !S_ISDIR(st.st_mode))
		return fail(EXIT_USAGE, "--root %s: is not a folder; it must be the folder of the images%s", root,
			    file_name_is_archive(root) ? ", so unpack the archive first" : "");
	for (size_t i = 0; rc == EXIT_DONE && i < named_count; i++)
		rc = !strcmp(named[i], "-") ? add_list(p) : add_named(p, named[i]);
	if (rc != EXIT_DONE)
		return rc;
	find_paths(p);
	if (!root && p->item_count == 1 && p->item[0].is_dir) {
		p->name = xstrdup(p->item[0].path);
		p->item[0].path[0] = '\0';
	} else if (root || !share_folder(p)) {
		rc = settle_far_paths(p, root);
	}
	if (rc == EXIT_DONE)
		rc = check_paths(p);
	return rc == EXIT_DONE ? source_root_open_folder(p, p->name) : rc;
}

void source_root_close(struct source_root *p)
{
	if (p->fd >= 0)
		close(p->fd);
	shelf_free(p->paths.shelf, p->item);
	text_free(&p->paths);
	free(p->name);
	free(p->absolute);
	free(p->below);
	*p = (struct source_root){.fd = -1};
}
