/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_table.c - the fields of an input beside image and label, found
 */
#include "tools/shardpack/scan/image_table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/field_value.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/plan/recipe.h"
#include "tools/shardpack/scan/request.h"

static int out_of_memory(void)
{
	return fail(EXIT_IO, "out of memory for the fields of an input");
}

uint64_t scan_size(const struct stat *st)
{
	return S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
}

/* ---- tables ---- */

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

/* What follows the root in an absolute path, also where it reaches the root by a link; "" if it lies elsewhere. */
static void below_root(const struct source_place *place, const char *path, char *out, size_t room)
{
	size_t root_bytes = strlen(place->root_absolute);
	char *resolved = files_is_below(path, place->root_absolute) ? strdup(path) : files_above_resolved(path);

	snprintf(out, room, "%s", resolved && files_is_below(resolved, place->root_absolute) ? resolved + root_bytes : "");
	free(resolved);
}

int scan_listed_path(const struct scan_table *t, uint64_t line, const char *listed, char *out, struct stat *st)
{
	const struct source_place *place = t->request->place;
	char joined[2 * PLAN_PATH_BYTES_MAX];

	if (strlen(listed) >= PLAN_PATH_BYTES_MAX)
		return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": a path of %zu bytes; the limit is %d", place->root, t->path, line,
			    strlen(listed), PLAN_PATH_BYTES_MAX - 1);
	if (listed[0] != '/')
		snprintf(joined, sizeof(joined), "%.*s%s", (int)t->folder_bytes, t->path, listed);
	else
		below_root(place, listed, joined, sizeof(joined));
	if (!tidy(joined, out) || strlen(out) >= PLAN_PATH_BYTES_MAX)
		return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": '%s' lies outside of %s; --root names a folder that holds all images",
			    place->root, t->path, line, listed, place->root);
	if (fstatat(place->root_fd, out, st, 0) != 0)
		return fail(EXIT_IO, "%s/%s: line %" PRIu64 ": '%s': %s", place->root, t->path, line, listed, strerror(errno));
	return EXIT_DONE;
}

/* The numbers of --columns, one behind the other, in one token. */
static int add_columns(const struct scan_table *t, const struct table_row *row, struct text *out)
{
	const struct recipe *r = t->request->recipe;
	uint8_t value[8];
	uint32_t i;

	for (i = 0; i < r->field_count; i++) {
		const struct shard_field *f = &r->field[i];

		if (!r->from[i].column)
			continue;
		if (!field_value_of_column(f, row->value[i], value))
			return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": '%s' in column %s is no %s", t->request->place->root, t->path, row->line,
				    row->value[i], f->name, shard_dtype_name(f->dtype));
		if (!out->bytes)
			text_add(out, " =", 2);
		text_hex(out, value, shard_dtype_bytes(f->dtype));
	}
	return EXIT_DONE;
}

static int add_value(const struct scan_table *t, const struct table_row *row, uint32_t i, struct text *out)
{
	const struct recipe *r = t->request->recipe;
	uint8_t *value = malloc(field_value_room(&r->field[i]));
	struct field_verdict v;
	size_t bytes = 0;
	int code = EXIT_DONE;

	if (!value)
		return out_of_memory();
	if (field_value(&r->field[i], &r->from[i], row->value[i], strlen(row->value[i]), value, &bytes, &v))
		field_part_add_value(out, value, bytes);
	else
		code = fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": column %s, field %s: %s", t->request->place->root, t->path, row->line,
			    r->from[i].from, r->field[i].name, v.message);
	free(value);
	return code;
}

/* An empty cell is an empty text, and nothing of any other kind. */
static int add_cell(const struct scan_table *t, const struct table_row *row, uint32_t i, struct text *out)
{
	const struct field_source *s = &t->request->recipe->from[i];
	char path[2 * PLAN_PATH_BYTES_MAX];
	struct stat st = {0};
	int code;

	if (!row->value[i] || (!row->value[i][0] && s->kind != FIELD_TEXT && s->kind != FIELD_BYTES)) {
		if (!s->optional)
			return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": nothing in column %s, which field %s comes from", t->request->place->root,
				    t->path, row->line, s->from, t->request->recipe->field[i].name);
		field_part_add_none(out);
		return EXIT_DONE;
	}
	if (!field_is_picture(s->kind))
		return add_value(t, row, i, out);
	code = scan_listed_path(t, row->line, row->value[i], path, &st);
	if (code == EXIT_DONE)
		field_part_add_file(out, scan_size(&st), path);
	return code;
}

int scan_fields_of_row(const struct scan_table *t, const struct table_row *row, struct text *out)
{
	const struct recipe *r = t->request->recipe;
	uint32_t i;
	int code;

	out->bytes = 0;
	code = add_columns(t, row, out);
	for (i = 0; code == EXIT_DONE && i < r->field_count; i++)
		if (field_has_part(&r->from[i]))
			code = add_cell(t, row, i, out);
	return code == EXIT_DONE && text_failed(out) ? out_of_memory() : code;
}

/* ---- files ---- */

/* `from`, in which {} becomes `below` without its extension; false if that is too long. */
static bool fill_in(const char *from, const char *below, char out[PLAN_PATH_BYTES_MAX])
{
	const char *hole = strstr(from, "{}"), *slash = strrchr(below, '/'), *dot = strrchr(slash ? slash : below, '.');
	int stem = dot && dot > (slash ? slash + 1 : below) ? (int)(dot - below) : (int)strlen(below);
	int bytes = snprintf(out, PLAN_PATH_BYTES_MAX, "%.*s%.*s%s", (int)(hole - from), from, stem, below, hole + 2);

	return bytes < PLAN_PATH_BYTES_MAX;
}

static int add_file(const struct request *r, const char *below, uint32_t i, struct text *out)
{
	const struct field_source *s = &r->recipe->from[i];
	const char *name = r->recipe->field[i].name;
	char path[PLAN_PATH_BYTES_MAX];
	struct stat st = {0};

	if (!strstr(s->from, "{}"))
		return fail(EXIT_USAGE, "--field %s: of images that are files, from= is a path below %s with {} in it, the image's path "
			    "without extension, such as from=%s/{}.png", name, r->place->root, name);
	if (!fill_in(s->from, below, path) || !text_stays_below(path))
		return fail(EXIT_BAD, "%s/%s: --field %s: from=%s leads to no path below %s", r->place->root, below, name, s->from,
			    r->place->root);
	if (fstatat(r->place->root_fd, path, &st, 0) == 0)
		field_part_add_file(out, scan_size(&st), path);
	else if (errno == ENOENT && s->optional)
		field_part_add_none(out);
	else
		return fail(EXIT_IO, "%s/%s: field %s of '%s': %s", r->place->root, path, name, below, strerror(errno));
	return EXIT_DONE;
}

int scan_fields_beside(const struct request *r, const char *below, struct text *out)
{
	uint32_t i;
	int code = EXIT_DONE;

	out->bytes = 0;
	for (i = 0; code == EXIT_DONE && i < r->recipe->field_count; i++)
		if (field_has_part(&r->recipe->from[i]))
			code = add_file(r, below, i, out);
	return code == EXIT_DONE && text_failed(out) ? out_of_memory() : code;
}

bool scan_is_of_field(const struct recipe *r, const char *name)
{
	size_t bytes = strlen(name), end;
	uint32_t i;

	for (i = 0; i < r->field_count; i++) {
		const char *from = r->from[i].from;

		end = field_has_part(&r->from[i]) && strncmp(from, "{}", 2) == 0 ? strlen(from + 2) : 0;
		if (end && bytes > end && strcmp(name + bytes - end, from + 2) == 0)
			return true;
	}
	return false;
}
