/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - what a scan found beside the inputs
 */
#include "tools/shardpack/scan/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"

/* ---- files of the source ---- */

int input_file_open(const struct request *r, const char *path, uint32_t *file)
{
	static const char *const ends[][2] = {{".gz", "gzip"},	 {".tgz", "gzip"},   {".zst", "zstd"},
					      {".bz2", "bzip2"}, {".tbz2", "bzip2"}, {".tbz", "bzip2"},
					      {".xz", "xz"},	 {".txz", "xz"}};
	const char *how = NULL;
	int rc = source_files_add(r->source_files, r->plan, path, file);

	/* by the name, not by the first bytes: tokens and raw records may begin with any */
	for (size_t i = 0; !how && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (file_name_has_extension(path, ends[i][0]))
			how = ends[i][1];
	return rc == EXIT_DONE && how ? source_files_unpack(r->source_files, r->plan, *file, how, 0, file) : rc;
}

uint64_t input_file_bytes(const struct stat *st)
{
	return S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
}

int scan_each_entry(const struct source_root *root, const char *path,
		    int (*each)(void *context, const struct dirent *entry), void *context)
{
	int fd = openat(root->fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = EXIT_DONE;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry = NULL;

	while (dir && rc == EXIT_DONE && (errno = 0, entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			rc = interrupted() ? EXIT_INTERRUPTED : each(context, entry);
	if (!dir || (!entry && errno))
		rc = fail(EXIT_IO, "%s%s%s: cannot read this folder: %s", root->name, path[0] ? "/" : "", path,
			  strerror(errno));
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return rc;
}

/* ---- files that are not inputs ---- */

#define LISTED_MOST 8u

/* The ending of a name, in lower case; "" if there is none. */
static void ending_of(const char *name, char out[IGNORED_ENDING_BYTES + 1])
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
	size_t bytes = dot && dot > base ? strlen(dot) : 0;

	if (bytes < 2 || bytes > IGNORED_ENDING_BYTES)
		bytes = 0;
	for (size_t i = 0; i < bytes; i++) {
		bool upper = dot[i] >= 'A' && dot[i] <= 'Z', other = dot[i] <= ' ' || dot[i] > '~';

		if (other)
			bytes = 0;
		else
			out[i] = upper ? (char)(dot[i] - 'A' + 'a') : dot[i];
	}
	out[bytes] = '\0';
}

void ignored_add(struct ignored *g, const char *folder, const char *name)
{
	char ending[IGNORED_ENDING_BYTES + 1];
	uint32_t i = 0;

	g->count++;
	ending_of(name, ending);
	while (i < g->ending_count && strcmp(g->ending[i].text, ending) != 0)
		i++;
	if (i == g->ending_count && i < IGNORED_ENDINGS)
		strcpy(g->ending[g->ending_count++].text, ending);
	if (i < IGNORED_ENDINGS)
		g->ending[i].count++;
	else
		g->other_count++;
	if (!g->keep_names)
		return;
	text_add(&g->names, folder, strlen(folder));
	text_add(&g->names, "/", *folder != '\0');
	text_add(&g->names, name, strlen(name) + 1);
}

/* The most frequent first, and by name where they are equally frequent. */
static int compare_endings(const void *x, const void *y)
{
	const struct ignored_ending *a = x, *b = y;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->text, b->text);
}

void ignored_list(const struct ignored *g, struct text *out)
{
	uint64_t rest = g->other_count;

	for (uint32_t i = 0; i < g->ending_count; i++) {
		if (i >= LISTED_MOST) {
			rest += g->ending[i].count;
			continue;
		}
		text_format(out, "%s%s %" PRIu64, i ? ", " : "", g->ending[i].text[0] ? g->ending[i].text : "no ending",
			    g->ending[i].count);
	}
	if (rest)
		text_format(out, ", others %" PRIu64, rest);
}

/* ---- warnings ---- */

static void add_line(struct text *lines, const char *line)
{
	text_add(lines, line, strlen(line));
	text_add(lines, "\n", 1);
}

void scan_warn(struct scan *scan, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	warn("%s", line);
	add_line(&scan->warnings, line);
}

void scan_note(struct scan *scan, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	note("%s", line);
	add_line(&scan->notes, line);
}

void scan_absent(struct scan *scan, uint32_t field, const char *fmt, ...)
{
	struct scan_field *f = &scan->field[field];
	va_list ap;

	if (f->absent[0])
		return;
	va_start(ap, fmt);
	vsnprintf(f->absent, sizeof(f->absent), fmt, ap);
	va_end(ap);
}

void scan_barren(struct scan *scan, const char *where)
{
	if (!scan->barren_count++)
		snprintf(scan->barren, sizeof(scan->barren), "%s", where);
}

void scan_warn_of_barren(struct scan *scan, const char *what)
{
	if (scan->barren_count)
		scan_warn(scan, "%" PRIu64 " file%s no %s (the first is '%s')", scan->barren_count,
			  scan->barren_count == 1 ? " has" : "s have", what, scan->barren);
}

int scan_refuse_barren(const struct scan *s, const char *root, const char *what, const char *remedy)
{
	if (s->barren_count > 1)
		return fail(EXIT_BAD, "%s: no %s in it, nor in %" PRIu64 " other file%s%s", s->barren, what,
			    s->barren_count - 1, s->barren_count > 2 ? "s" : "", remedy);
	return fail(EXIT_BAD, "%s: no %s in it%s", s->barren_count ? s->barren : root, what, remedy);
}

static bool is_part(const char *name)
{
	static const char *const parts[] = {"train", "training", "val", "valid", "validation",
					    "test",  "testing",	 "dev", NULL};

	for (const char *const *p = parts; *p; p++)
		if (!strcasecmp(name, *p))
			return true;
	return false;
}

/* What file managers, notebooks and storage systems make. */
static bool is_left_behind(const char *name)
{
	return name[0] == '.' || name[0] == '@' || !strcmp(name, "__MACOSX") || !strcmp(name, "lost+found");
}

/* The folders of a path, and hidden files; its class was looked at already. */
static bool is_path_left_behind(const char *path, const char *class_name)
{
	char name[256];

	for (const char *slash; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
		snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		if (is_left_behind(name) && strcmp(name, class_name))
			return true;
	}
	return path[0] == '.';
}

void scan_warn_of_hidden(struct scan *scan, const struct plan *plan)
{
	char class_name[SHARD_KEY_BYTES_MAX + 1] = "", path[PLAN_PATH_BYTES_MAX], first[256];
	struct plan_input input;
	uint64_t count = 0;

	for (uint64_t i = 0; i < plan->input_count; i++) {
		plan_input(plan, i, &input);
		if (plan_has_labels(plan) && input.class_idx < plan->class_count)
			plan_class_name(plan, input.class_idx, class_name);
		plan_input_path(plan, &input, path);
		if (is_path_left_behind(path, class_name) && !count++)
			snprintf(first, sizeof(first), "%.255s", path);
	}
	if (count)
		scan_warn(scan,
			  "%" PRIu64 " image%s hidden, or in a folder that programs leave behind, and %s packed as "
			  "others are; remove what is a copy (the first is '%s')",
			  count, count == 1 ? " is" : "s are", count == 1 ? "is" : "are", first);
}

static bool is_digits(const char *name)
{
	return strspn(name, "0123456789") == strlen(name);
}

void scan_warn_of_folders(struct scan *scan, const struct classes *folders)
{
	const char *part = NULL, *left = NULL;
	uint64_t part_count = 0, left_count = 0;

	for (uint64_t i = 0; i < folders->count; i++) {
		if (is_part(folders->name[i]) && !part_count++)
			part = folders->name[i];
		if (is_left_behind(folders->name[i]) && !left_count++)
			left = folders->name[i];
	}
	if (part && (part_count > 1 || folders->count == 1))
		scan_warn(
			scan,
			"class folder '%s' is called like a part of a dataset, and is packed as a class; to pack that "
			"part, name the folder itself as the source",
			part);
	if (left)
		scan_warn(scan,
			  "class folder '%s' is called like what programs leave behind, and is packed as a class%s; "
			  "remove it if it is not a class",
			  left, left_count > 1 ? ", as others are" : "");
	/*
	 * "10" stands before "2", and "1" is class 0 if there is no "0": right, as torchvision has it,
	 * and yet not what most expect.
	 */
	for (uint64_t i = 1; i < folders->count; i++) {
		const char *a = folders->name[i - 1], *b = folders->name[i];

		if (!is_digits(a) || !is_digits(b) || strlen(a) <= strlen(b))
			continue;
		scan_warn(scan,
			  "class folders are numbers and sort as text, as in torchvision: class %" PRIu64 " is '%s', "
			  "before '%s'; set the numbers with --classes FILE",
			  i - 1, a, b);
		return;
	}
	for (uint64_t i = 0; i < folders->count; i++) {
		if (!is_digits(folders->name[i]) || strtoull(folders->name[i], NULL, 10) == i)
			continue;
		scan_warn(scan,
			  "class folders are numbers but are counted from 0, as in torchvision: class %" PRIu64
			  " is '%s'; set the numbers with --classes FILE",
			  i, folders->name[i]);
		return;
	}
}

void scan_end(struct scan *scan)
{
	struct text kinds = {0};
	uint64_t count = 0;

	qsort(scan->ignored.ending, scan->ignored.ending_count, sizeof(scan->ignored.ending[0]), compare_endings);
	for (uint32_t i = 0; i < scan->ignored.ending_count; i++) {
		const struct ignored_ending *e = &scan->ignored.ending[i];
		const struct image_format *f = e->text[0] ? image_format_of_suffix(e->text + 1) : NULL;

		if (!f || image_format_is_input(f))
			continue;
		text_format(&kinds, "%s%s %" PRIu64, count ? ", " : "", e->text, e->count);
		count += e->count;
	}
	if (count)
		scan_warn(scan, "%" PRIu64 " ignored file%s of a kind that is not read: %s", count,
			  count == 1 ? " is an image" : "s are images", kinds.data);
	text_free(&kinds);
}

void scan_free(struct scan *scan)
{
	text_free(&scan->ignored.names);
	text_free(&scan->warnings);
	text_free(&scan->notes);
}
