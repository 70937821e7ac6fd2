/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_table.c - the images that a table names, with their fields
 *
 * A field is a column: a path for images and masks, else the value itself, which the plan then
 * holds.
 */
#include "tools/shardpack/scan/scan.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libshard/base/words.h"
#include "shard_inspect.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"

/* ---- a file that is not there: is it there under another name? ---- */

/* If a table has ids, not names: the ending with which the file is there.  "" if there is none. */
static void find_ending(const struct request *r, const char *path, char ending[IMAGE_ENDING_BYTES])
{
	char with[2 * PLAN_PATH_BYTES_MAX + IMAGE_ENDING_BYTES];
	struct stat st;

	ending[0] = '\0';
	if (r->o->path_suffix || file_name_is_image(path))
		return;
	for (const struct image_format *f = image_formats; f->name; f++)
		for (int i = 0; f->run && f->endings[i]; i++)
			for (int upper = 0; upper < 2; upper++) {
				snprintf(ending, IMAGE_ENDING_BYTES, "%s", f->endings[i]);
				for (char *c = ending; upper && *c; c++)
					*c = (char)toupper((unsigned char)*c);
				snprintf(with, sizeof(with), "%s%s", path, ending);
				if (fstatat(r->root->fd, with, &st, 0) == 0)
					return;
			}
	ending[0] = '\0';
}

/* Paths that begin with a folder in which their root lies already.  `above` gets the right root. */
static bool find_above(const struct request *r, const char *folder, const char *listed, char above[FILES_PATH_BYTES])
{
	char whole[FILES_PATH_BYTES + PLAN_PATH_BYTES_MAX];
	const char *suffix = r->o->path_suffix ? r->o->path_suffix : "";
	struct stat st;
	char *slash;

	if (listed[0] == '/' || !strncmp(listed, "../", 3) ||
	    snprintf(above, FILES_PATH_BYTES, "%s/%s", r->root->absolute, folder) >= FILES_PATH_BYTES)
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
		if (at && strcmp(out, listed) && fstatat(r->root->fd, whole, &st, 0) == 0)
			return way == 0	  ? "write / in the place of \\"
			       : way == 1 ? "write its name without percent-encoding"
					  : "take off the blanks at its ends";
	}
	return NULL;
}

/*
 * Row `line` of `table`, below the root, lists a path that is `path` below the root; such paths
 * begin at `folder` below the root, which is empty or ends in a slash.  Warns, and returns true, if
 * an option would find the file.
 */
static bool warn_of_other_name(const struct request *r, const char *table, const char *folder, uint64_t line,
			       const char *listed, const char *path)
{
	char ending[IMAGE_ENDING_BYTES];
	char above[FILES_PATH_BYTES], meant[PLAN_PATH_BYTES_MAX];
	const char *remedy = find_spelling(r, folder, listed, meant, sizeof(meant));
	struct text word = {0};

	if (remedy) {
		scan_warn(r->scan, "%s/%s: line %" PRIu64 ": '%s' is not there, but '%s' is; %s", r->root->name, table,
			  line, listed, meant, remedy);
		return true;
	}
	if (!strncmp(listed, "~/", 2) || listed[0] == '$') {
		scan_warn(r->scan,
			  "%s/%s: line %" PRIu64 ": '%s' is not there; ~ and $ mean nothing in a table, so write the "
			  "whole path",
			  r->root->name, table, line, listed);
		return true;
	}
	find_ending(r, path, ending);
	if (*ending) {
		scan_warn(r->scan, "%s/%s: line %" PRIu64 ": '%s' is not there, but '%s%s' is; say --path-suffix %s",
			  r->root->name, table, line, listed, listed, ending, ending);
		return true;
	}
	if (!find_above(r, folder, listed, above))
		return false;
	text_shell_word(&word, above);
	scan_warn(r->scan, "%s/%s: line %" PRIu64 ": '%s' is not there, but it is below %s; say --root %s",
		  r->root->name, table, line, listed, above, word.data);
	text_free(&word);
	return true;
}

/* ---- rows ---- */

#define MISSING_LOOKED 100 /* files: a dozen of names are tried for each */

/* Where the image of a row is, and the key of its record. */
struct found {
	char path[2 * PLAN_PATH_BYTES_MAX]; /* the key; empty if the row is bad and has none */
	uint64_t bytes, offset;
	uint32_t file; /* PLAN_NO_FILE: its own, at `path` */
};

struct image_table {
	const struct request *request;
	struct image_list *images;
	const char *path;	       /* of the table, below the root */
	char folder[FILES_PATH_BYTES]; /* what paths in it are relative to, below the root; with a slash, or empty */
	struct text fields;	       /* of the row */
	struct bad_input bad;	       /* likewise: what is wrong with it, if anything is */
	struct text_each each;	       /* likewise: the inputs that it becomes */
	size_t text;		       /* which of them this is */
	bool warned;		       /* that a text looks like a list */
	unsigned looked;	       /* missing files that were looked for elsewhere */
	struct text listed;	       /* with --extents: the path of the last good row, and the file that it is */
	uint32_t file;
	uint64_t filled[RECIPE_NAMED_MAX]; /* empty cells of each column that have its default */
};

static int out_of_memory(void)
{
	return fail(EXIT_IO, "out of memory for the fields of an input");
}

/* This row is bad; the next one may be good.  Returns EXIT_BAD. */
__attribute__((format(printf, 4, 5))) static int bad_row(struct image_table *t, uint64_t line, uint32_t reason,
							 const char *fmt, ...)
{
	char why[BAD_INPUT_MESSAGE_BYTES], text[48] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (t->each.recipe && t->each.count > 1)
		snprintf(text, sizeof(text), ", text %zu of %zu", t->text + 1, t->each.count);
	return t->bad.reason ? EXIT_BAD
			     : bad_input(&t->bad, reason, "%.120s: line %" PRIu64 "%s: %s", t->path, line, text, why);
}

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

/*
 * An absolute path from the root on, also if it gets there by a link; "" if it lies elsewhere.
 * False with errno if that cannot be told.
 */
static bool below_root(const struct source_root *root, const char *path, char *out, size_t room)
{
	size_t root_bytes = strlen(root->absolute);
	char *resolved = files_is_below(path, root->absolute) ? xstrdup(path) : files_above_resolved(path);

	if (!resolved && errno != ENOENT)
		return false;
	snprintf(out, room, "%s", resolved && files_is_below(resolved, root->absolute) ? resolved + root_bytes : "");
	free(resolved);
	return true;
}

/*
 * From a path in a row to one below the root, into `out` of 2 x PLAN_PATH_BYTES_MAX, which is empty
 * if the row is bad and there is no such path.
 */
static int find_listed(struct image_table *t, uint64_t line, const char *listed, char *out, struct stat *st)
{
	const struct source_root *root = t->request->root;
	char joined[2 * PLAN_PATH_BYTES_MAX];

	out[0] = '\0';
	if (!strncmp(listed, "file://", 7))
		return bad_row(t, line, SHARD_MISS_MISSING, "'%.100s' is a URL; write the path alone, without file://",
			       listed);
	if (text_is_url(listed))
		return bad_row(t, line, SHARD_MISS_MISSING,
			       "'%.100s' is a URL, and only files are read: download the images, as with img2dataset, "
			       "and pack the folder",
			       listed);
	if (strlen(listed) + strlen(t->folder) >= PLAN_PATH_BYTES_MAX)
		return bad_row(t, line, SHARD_MISS_VALUE, "a path of %zu bytes with its folder; the limit is %d",
			       strlen(listed) + strlen(t->folder), PLAN_PATH_BYTES_MAX - 1);
	if (listed[0] != '/')
		snprintf(joined, sizeof(joined), "%s%s", t->folder, listed);
	else if (!below_root(root, listed, joined, sizeof(joined)))
		return fail(EXIT_IO, "%s/%s: line %" PRIu64 ": '%s': %s", root->name, t->path, line, listed,
			    strerror(errno));
	if (!tidy(joined, out) || strlen(out) >= PLAN_PATH_BYTES_MAX)
		return fail(EXIT_BAD,
			    "%s/%s: line %" PRIu64 ": '%s' lies outside of %s; name a folder that holds all "
			    "images with --root",
			    root->name, t->path, line, listed, root->name);
	if (fstatat(root->fd, out, st, 0) == 0)
		return EXIT_DONE;
	if (errno == ENOENT || errno == ENOTDIR)
		return bad_row(t, line, SHARD_MISS_MISSING, "'%.150s': %s", listed, strerror(errno));
	return fail(EXIT_IO, "%s/%s: line %" PRIu64 ": '%s': %s", root->name, t->path, line, listed, strerror(errno));
}

/* The file of a row. */
static int find_file(struct image_table *t, const struct path_row *row, char *out, struct stat *st)
{
	const char *suffix = t->request->o->path_suffix;
	char *with = suffix ? xasprintf("%s%s", row->path, suffix) : NULL;
	int rc;

	rc = find_listed(t, row->line, suffix ? with : row->path, out, st);
	free(with);
	if (t->bad.reason == SHARD_MISS_MISSING && out[0] && !row->bad && t->looked < MISSING_LOOKED)
		t->looked = warn_of_other_name(t->request, t->path, t->folder, row->line, row->path, out)
				    ? MISSING_LOOKED
				    : t->looked + 1;
	return rc;
}

/* ---- images that are parts of files: --extents ---- */

/* The file at `path` below the root, which is opened when the first row names it. */
static int open_container(struct image_table *t, const char *path)
{
	struct image_list *l = t->images;
	const struct request *r = t->request;
	uint64_t low = 0, high = l->container_count, middle;
	int rc, order;

	while (low < high) {
		middle = low + (high - low) / 2;
		order = strcmp(path, r->plan->file[l->container[middle]].path);
		if (!order) {
			t->file = l->container[middle];
			return EXIT_DONE;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	/* Never unpacked: an offset is one of the file as it lies there. */
	rc = source_files_add(r->source_files, r->plan, path, &t->file);
	if (rc != EXIT_DONE)
		return rc;
	grow(&l->container, &l->container_capacity, l->container_count + 1, sizeof(*l->container));
	memmove(l->container + low + 1, l->container + low, (l->container_count - low) * sizeof(*l->container));
	l->container[low] = t->file;
	l->container_count++;
	return EXIT_DONE;
}

/* The file of a row, into t->file.  Rows of one file mostly follow each other. */
static int find_container(struct image_table *t, const struct path_row *row)
{
	char path[2 * PLAN_PATH_BYTES_MAX];
	struct stat st;
	int rc;

	if (t->listed.bytes && !strcmp(t->listed.data, row->path))
		return EXIT_DONE;
	rc = find_file(t, row, path, &st);
	if (rc == EXIT_DONE && !S_ISREG(st.st_mode))
		rc = bad_row(t, row->line, SHARD_MISS_VALUE, "'%.150s' is not a regular file, which --extents needs",
			     row->path);
	if (rc == EXIT_DONE)
		rc = open_container(t, path);
	t->listed.bytes = 0;
	if (rc == EXIT_DONE)
		text_add(&t->listed, row->path, strlen(row->path) + 1);
	return rc;
}

/* A number of a row.  PLAN_BYTES_MAX is far beyond any file. */
static int take_extent(struct image_table *t, const struct path_row *row, enum extent_key key, const char *name,
		       uint64_t *out)
{
	const char *text = row->extent[key];

	if (!text || !text[0])
		return bad_row(t, row->line, SHARD_MISS_INCOMPLETE, "no %s for '%.150s', which --extents needs", name,
			       row->path);
	if (!text_u64(text, strlen(text), out))
		return bad_row(t, row->line, SHARD_MISS_VALUE,
			       "%s '%.60s' of '%.100s' is not a whole number from %d to 2^64 - 1 in decimal digits",
			       name, text, row->path, key == EXTENT_BYTES);
	return EXIT_DONE;
}

/* The key of its record: as the row says, or the path of the file and the offset in it. */
static int take_key(struct image_table *t, const struct path_row *row, uint64_t offset, struct found *out)
{
	const char *key = row->extent[EXTENT_KEY], *file = t->request->plan->file[t->file].path;

	if (!key)
		snprintf(out->path, sizeof(out->path), "%s/%" PRIu64, file, offset);
	else if (strlen(key) < PLAN_PATH_BYTES_MAX && text_stays_below(key))
		strcpy(out->path, key);
	else
		return bad_row(t, row->line, SHARD_MISS_KEY,
			       "key '%.100s' must be 1 to %d bytes, without an empty part, '.' or '..' between slashes",
			       key, PLAN_PATH_BYTES_MAX - 1);
	if (strlen(out->path) < PLAN_PATH_BYTES_MAX)
		return EXIT_DONE;
	out->path[0] = '\0';
	return bad_row(t, row->line, SHARD_MISS_KEY,
		       "the path of its file is too long for a key; give it a column 'key'");
}

static int find_extent(struct image_table *t, const struct path_row *row, struct found *out)
{
	uint64_t offset = 0, bytes = 0, all;
	int rc = find_container(t, row);

	if (rc == EXIT_DONE)
		rc = take_extent(t, row, EXTENT_OFFSET, "offset", &offset);
	if (rc == EXIT_DONE)
		rc = take_key(t, row, offset, out);
	if (rc == EXIT_DONE)
		rc = take_extent(t, row, EXTENT_BYTES, "bytes", &bytes);
	if (rc != EXIT_DONE)
		return rc;
	all = source_file_bytes(t->request->source_files, t->file);
	if (!bytes)
		return bad_row(t, row->line, SHARD_MISS_VALUE, "bytes 0 of '%.150s': an image has at least one",
			       row->path);
	if (offset > all || bytes > all - offset)
		return bad_row(t, row->line, SHARD_MISS_VALUE,
			       "%" PRIu64 " bytes at offset %" PRIu64 " are not within '%.100s', which has %" PRIu64,
			       bytes, offset, row->path, all);
	out->file = t->file;
	out->offset = offset;
	out->bytes = bytes;
	return EXIT_DONE;
}

/* The image of a row. */
static int find_image(struct image_table *t, const struct path_row *row, struct found *out)
{
	struct stat st = {0};
	int rc;

	if (t->request->o->extents)
		return find_extent(t, row, out);
	rc = find_file(t, row, out->path, &st);
	out->bytes = out->path[0] ? input_file_bytes(&st) : 0;
	return rc;
}

/* Of a cell that is not a number of that type. */
static const char *remedy_of_cell(const struct shard_field *f, const char *cell)
{
	const char *comma = strchr(cell, ',');
	char point[FIELD_EMPTY_BYTES];
	uint8_t value[8];

	if (!cell[0])
		return "; for empty cells, --columns NAME:TYPE:default=V";
	if (strpbrk(cell, "+_xX \t") && cell[strcspn(cell, "0123456789")]) /* what some programs take for numbers */
		return "; write it in decimal digits, without '+', '_', 0x or blanks";
	if ((f->dtype == SHARD_F32 || f->dtype == SHARD_F64) && !cell[strspn(cell, "-0123456789")] &&
	    snprintf(point, sizeof(point), "%s.0", cell) < (int)sizeof(point) && field_value_of_column(f, point, value))
		return f->dtype == SHARD_F32 ? ", which would round this whole number; choose f64 or i64"
					     : ", which would round this whole number; choose i64 or u64";
	if (!comma || strlen(cell) >= sizeof(point))
		return "";
	strcpy(point, cell);
	point[comma - cell] = '.';
	return field_value_of_column(f, point, value) ? "; write a decimal point in the place of the comma" : "";
}

/* Why a row has no value, for when no row has one. */
static void tell_absent(struct image_table *t, const struct path_row *row, uint32_t i)
{
	const char *from = t->request->recipe->from[i].from;

	if (row->absent[i])
		scan_absent(t->request->scan, i, "%s/%s: line %" PRIu64 ": %s", t->request->root->name, t->path,
			    row->line, row->absent[i]);
	else
		scan_absent(t->request->scan, i, "%s/%s: line %" PRIu64 ": column %s is empty", t->request->root->name,
			    t->path, row->line, from);
}

/* A number of --columns; all of them are one token. */
static int add_number(struct image_table *t, const struct path_row *row, uint32_t i, struct text *out)
{
	const struct recipe *r = t->request->recipe;
	const struct shard_field *f = &r->field[i];
	const char *cell = row->value[i][0] ? row->value[i] : r->from[i].empty;
	uint8_t value[8];

	t->filled[i] += cell == r->from[i].empty && cell[0] && !t->text;
	if (!row->value[i][0])
		tell_absent(t, row, i);
	else
		t->request->scan->field[i].found = true;
	if (!field_value_of_column(f, cell, value))
		return bad_row(t, row->line, SHARD_MISS_VALUE, "'%.100s' in column %s is not a value of type %s%s",
			       cell, f->name, shard_name(SHARD_NAME_DTYPE, f->dtype), remedy_of_cell(f, cell));
	if (!out->bytes)
		text_add(out, " =", 2);
	text_hex(out, value, shard_dtype_bytes(f->dtype));
	return EXIT_DONE;
}

/* A list that nobody asked to read is one text, brackets and all. */
static void warn_of_list(struct image_table *t, const struct path_row *row, uint32_t i)
{
	const struct recipe *r = t->request->recipe;
	const char *value = row->value[i];
	size_t bytes = strlen(value);

	if (t->warned || r->from[i].kind != FIELD_TEXT || r->from[i].pick != PICK_UNSAID || bytes < 4 ||
	    strncmp(value, "[\"", 2) || strcmp(value + bytes - 2, "\"]"))
		return;
	t->warned = true;
	scan_warn(t->request->scan,
		  "%s/%s: line %" PRIu64 ": column %s looks like a list, and is packed as one text with its brackets; "
		  "to read lists, " FIELD_LIST_REMEDY,
		  t->request->root->name, t->path, row->line, r->from[i].from);
}

static int add_value(struct image_table *t, const struct path_row *row, uint32_t i, struct text *out)
{
	const struct recipe *r = t->request->recipe;
	uint8_t *value = xmalloc(field_value_room(&r->field[i]), 1);
	struct field_verdict v;
	size_t bytes = 0;
	int rc = EXIT_DONE;

	warn_of_list(t, row, i);
	if (!field_value(&r->field[i], &r->from[i], row->value[i], strlen(row->value[i]), value, &bytes, &v))
		rc = v.reason == FIELD_NO_MEMORY ? out_of_memory()
						 : bad_row(t, row->line, (uint32_t)v.reason, "column %s, field %s: %s",
							   r->from[i].from, r->field[i].name, v.message);
	else if (r->from[i].pick == PICK_ALL)
		field_texts_add(&r->field[i], value, bytes, out);
	else
		field_part_add_value(out, value, bytes);
	free(value);
	return rc;
}

static const char *remedy_of_empty(const struct recipe *r, uint32_t i)
{
	if (r->from[i].kind == FIELD_TENSOR)
		return r->field[i].ndim ? "" : "; for single numbers, --columns NAME:TYPE:default=V";
	return r->from[i].kind == FIELD_IMAGE ? "" : "; with optional, the field is empty";
}

/* An empty cell is an empty text, and nothing of any other kind; it is not a list of texts either. */
static int add_cell(struct image_table *t, const struct path_row *row, uint32_t i, struct text *out)
{
	const struct field_source *s = &t->request->recipe->from[i];
	bool takes_empty = (s->kind == FIELD_TEXT && s->pick == PICK_UNSAID) || s->kind == FIELD_BYTES;
	char path[2 * PLAN_PATH_BYTES_MAX];
	struct stat st = {0};
	int rc;

	if (s->optional && (!row->value[i] || !row->value[i][0]))
		tell_absent(t, row, i);
	if (!row->value[i] || (!row->value[i][0] && !takes_empty)) {
		if (!s->optional && row->absent[i])
			return bad_row(t, row->line, SHARD_MISS_INCOMPLETE, "%s; field %s comes from it%s",
				       row->absent[i], t->request->recipe->field[i].name,
				       remedy_of_empty(t->request->recipe, i));
		if (!s->optional)
			return bad_row(t, row->line, SHARD_MISS_INCOMPLETE,
				       "column %s is empty, and field %s comes from it%s", s->from,
				       t->request->recipe->field[i].name, remedy_of_empty(t->request->recipe, i));
		field_part_add_none(out);
		return EXIT_DONE;
	}
	if (!field_is_picture(s->kind))
		return add_value(t, row, i, out);
	rc = find_listed(t, row->line, row->value[i], path, &st);
	if (rc == EXIT_DONE)
		field_part_add_file(out, input_file_bytes(&st), path);
	return rc;
}

/* The tokens of a row, each with a blank before it. */
static int find_fields(struct image_table *t, const struct path_row *row)
{
	const struct recipe *r = t->request->recipe;
	struct text *out = &t->fields;
	int rc = EXIT_DONE;

	out->bytes = 0;
	for (uint32_t i = 0; rc == EXIT_DONE && i < r->field_count; i++)
		if (r->from[i].kind != FIELD_LENGTH)
			rc = r->from[i].column ? add_number(t, row, i, out) : add_cell(t, row, i, out);
	return rc;
}

/* The label of a row, into `out` of CLASS_NAME_BYTES_MAX + 1. */
static int find_label(struct image_table *t, const struct path_row *row, const struct found *found, char *out)
{
	char where[3 * FILES_PATH_BYTES];
	struct bad_input bad = {0};
	int rc;

	if (!row->label) {
		snprintf(where, sizeof(where), "%s/%s: line %" PRIu64 ": '%s'", t->request->root->name, t->path,
			 row->line, row->path);
		rc = labels_find(t->images->labels, where, t->request->o->extents ? found->path : row->path, NULL, out,
				 &bad);
		return bad_input_is(&bad, rc) ? bad_row(t, row->line, bad.reason, "%s", bad.message) : rc;
	}
	if (recipe_is_multi_label(t->request->recipe)) {
		out[0] = '\0';
		rc = label_list_of_text(t->request, row->label, strlen(row->label), false, &t->images->next, &bad);
		return bad_input_is(&bad, rc) ? bad_row(t, row->line, bad.reason, "%s", bad.message) : rc;
	}
	if (!text_is_name(row->label, strlen(row->label), CLASS_NAME_BYTES_MAX))
		return bad_row(t, row->line, SHARD_MISS_VALUE,
			       "label '%.150s' must be UTF-8 of 1 to %d bytes; it has %zu", row->label,
			       CLASS_NAME_BYTES_MAX, strlen(row->label));
	strcpy(out, row->label);
	return EXIT_DONE;
}

/* A bad row. */
static int add_bad(struct image_table *t, const struct path_row *row, const struct found *f, const char *label)
{
	char name[PLAN_PATH_BYTES_MAX];

	if (!f->path[0] && !image_list_row(t->path, row->line, name))
		return fail(EXIT_BAD, "%s/%s: the name is too long", t->request->root->name, t->path);
	return image_list_add_bad(t->images, f->path[0] ? f->path : name, label, f->bytes, f->file, f->offset, &t->bad);
}

/* The inputs of a row whose image and label are good: one, or with pick=each one for each text. */
static int add_inputs(struct image_table *t, const struct path_row *row, const struct found *f, const char *label)
{
	struct path_row input = *row;
	struct bad_input differ = {0};
	int rc = text_each_open(&t->each, t->request->recipe, row->value, &differ);

	if (differ.reason) {
		bad_row(t, row->line, differ.reason, "%s", differ.message);
		rc = add_bad(t, row, f, label);
	}
	for (t->text = 0; rc == EXIT_DONE && !differ.reason && t->text < t->each.count; t->text++) {
		t->bad.reason = 0;
		t->images->further = t->text > 0;
		rc = text_each_at(&t->each, t->text, input.value) ? find_fields(t, &input) : out_of_memory();
		if (bad_input_is(&t->bad, rc))
			rc = add_bad(t, row, f, label);
		else if (rc == EXIT_DONE)
			rc = image_list_add(t->images, f->path, label, f->bytes, f->file, f->offset, &t->fields);
	}
	t->text = 0;
	t->images->further = false;
	text_each_close(&t->each);
	return rc;
}

static int add_row(void *context, const struct path_row *row)
{
	struct image_table *t = context;
	char label[CLASS_NAME_BYTES_MAX + 1];
	struct found found;
	bool labelled;
	int rc = EXIT_DONE;

	found.path[0] = '\0';
	found.bytes = found.offset = 0;
	found.file = PLAN_NO_FILE;
	t->bad.reason = 0;
	t->images->table = row->label ? t->path : NULL;
	t->images->line = row->line;
	if (row->bad)
		bad_row(t, row->line, row->bad->reason, "%s", row->bad->message);
	if (row->path)
		rc = find_image(t, row, &found);
	if (rc != EXIT_DONE && !bad_input_is(&t->bad, rc))
		return rc;
	/* Of a bad row, too: it tells which classes there are. */
	rc = row->path && (row->label || !row->bad) ? find_label(t, row, &found, label) : EXIT_BAD;
	labelled = rc == EXIT_DONE;
	if (!labelled && !bad_input_is(&t->bad, rc))
		return rc;
	return t->bad.reason ? add_bad(t, row, &found, labelled ? label : NULL) : add_inputs(t, row, &found, label);
}

int image_table_add(struct image_list *images, const char *path)
{
	const struct request *r = images->request;
	const char *slash = strrchr(path, '/'), *key = r->o->label_key ? r->o->label_key : "label";
	struct image_table t = {.request = r, .images = images, .path = path};
	char file[FILES_PATH_BYTES], *name = xasprintf("%s/%s", r->root->name, path);
	int rc = files_path(file, r->root->absolute, path);

	if (rc == EXIT_DONE && r->o->root && r->root->below[0])
		snprintf(t.folder, sizeof(t.folder), "%s/", r->root->below);
	else if (rc == EXIT_DONE && !r->o->root)
		snprintf(t.folder, sizeof(t.folder), "%.*s", slash ? (int)(slash + 1 - path) : 0, path);
	images->by_folder = false;
	images->in_table = true;
	if (rc == EXIT_DONE)
		rc = path_table_read(file, name, r->o->path_key, labels_given(r->o) ? NULL : key, r->recipe,
				     r->o->extents, images->text.shelf, add_row, &t);
	for (uint32_t i = 0; rc == EXIT_DONE && i < r->recipe->field_count; i++)
		if (t.filled[i])
			note("%s: %" PRIu64 " empty cell%s in column %s: packed as %s", name, t.filled[i],
			     t.filled[i] == 1 ? "" : "s", r->recipe->field[i].name, r->recipe->from[i].empty);
	images->table = NULL;
	images->in_table = false;
	text_free(&t.fields);
	text_free(&t.listed);
	free(name);
	return rc;
}
