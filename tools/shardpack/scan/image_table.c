/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_table.c - the images that a table names, with their fields
 *
 * A field is a column: a path for images and masks, else the value itself, which the plan then
 * holds.
 */
#include "tools/shardpack/scan/image_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/field_value.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/input_file.h"
#include "tools/shardpack/scan/labels.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/path_table.h"
#include "tools/shardpack/scan/request.h"

struct image_table {
	const struct request *request;
	struct image_list *images;
	struct labels *labels;
	const char *path;    /* of the table, below the root */
	size_t folder_bytes; /* of that path, with the slash: what paths in it are relative to; 0: the root */
	struct text fields;  /* of the row */
};

static int out_of_memory(void)
{
	return fail(EXIT_IO, "out of memory for the fields of an input");
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
static bool below_root(const struct source_place *place, const char *path, char *out, size_t room)
{
	size_t root_bytes = strlen(place->root_absolute);
	char *resolved = files_is_below(path, place->root_absolute) ? strdup(path) : files_above_resolved(path);

	if (!resolved && errno != ENOENT)
		return false;
	snprintf(out, room, "%s",
		 resolved && files_is_below(resolved, place->root_absolute) ? resolved + root_bytes : "");
	free(resolved);
	return true;
}

/* From a path in a row to one below the root, into `out` of 2 x PLAN_PATH_BYTES_MAX. */
static int find_listed(const struct image_table *t, uint64_t line, const char *listed, char *out, struct stat *st)
{
	const struct source_place *place = t->request->place;
	char joined[2 * PLAN_PATH_BYTES_MAX];

	if (strlen(listed) >= PLAN_PATH_BYTES_MAX)
		return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": a path of %zu bytes; the limit is %d", place->root,
			    t->path, line, strlen(listed), PLAN_PATH_BYTES_MAX - 1);
	if (listed[0] != '/')
		snprintf(joined, sizeof(joined), "%.*s%s", (int)t->folder_bytes, t->path, listed);
	else if (!below_root(place, listed, joined, sizeof(joined)))
		return fail(EXIT_IO, "%s/%s: line %" PRIu64 ": '%s': %s", place->root, t->path, line, listed,
			    strerror(errno));
	if (!tidy(joined, out) || strlen(out) >= PLAN_PATH_BYTES_MAX)
		return fail(EXIT_BAD,
			    "%s/%s: line %" PRIu64 ": '%s' lies outside of %s; name a folder that holds all "
			    "images with --root",
			    place->root, t->path, line, listed, place->root);
	if (fstatat(place->root_fd, out, st, 0) != 0)
		return fail(EXIT_IO, "%s/%s: line %" PRIu64 ": '%s': %s", place->root, t->path, line, listed,
			    strerror(errno));
	return EXIT_DONE;
}

/* The numbers of --columns, one behind the other, in one token. */
static int add_columns(const struct image_table *t, const struct path_row *row, struct text *out)
{
	const struct recipe *r = t->request->recipe;
	uint8_t value[8];
	for (uint32_t i = 0; i < r->field_count; i++) {
		const struct shard_field *f = &r->field[i];

		if (!r->from[i].column)
			continue;
		if (!field_value_of_column(f, row->value[i], value))
			return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": '%s' in column %s is not a value of type %s",
				    t->request->place->root, t->path, row->line, row->value[i], f->name,
				    shard_dtype_name(f->dtype));
		if (!out->bytes)
			text_add(out, " =", 2);
		text_hex(out, value, shard_dtype_bytes(f->dtype));
	}
	return EXIT_DONE;
}

static int add_value(const struct image_table *t, const struct path_row *row, uint32_t i, struct text *out)
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
		code = fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": column %s, field %s: %s", t->request->place->root,
			    t->path, row->line, r->from[i].from, r->field[i].name, v.message);
	free(value);
	return code;
}

/* An empty cell is an empty text, and nothing of any other kind. */
static int add_cell(const struct image_table *t, const struct path_row *row, uint32_t i, struct text *out)
{
	const struct field_source *s = &t->request->recipe->from[i];
	char path[2 * PLAN_PATH_BYTES_MAX];
	struct stat st = {0};
	int code;

	if (!row->value[i] || (!row->value[i][0] && s->kind != FIELD_TEXT && s->kind != FIELD_BYTES)) {
		if (!s->optional)
			return fail(EXIT_BAD, "%s/%s: line %" PRIu64 ": column %s is empty, and field %s comes from it",
				    t->request->place->root, t->path, row->line, s->from,
				    t->request->recipe->field[i].name);
		field_part_add_none(out);
		return EXIT_DONE;
	}
	if (!field_is_picture(s->kind))
		return add_value(t, row, i, out);
	code = find_listed(t, row->line, row->value[i], path, &st);
	if (code == EXIT_DONE)
		field_part_add_file(out, input_file_bytes(&st), path);
	return code;
}

/* The tokens of a row, each with a blank before it. */
static int find_fields(struct image_table *t, const struct path_row *row)
{
	const struct recipe *r = t->request->recipe;
	struct text *out = &t->fields;
	int code;

	out->bytes = 0;
	code = add_columns(t, row, out);
	for (uint32_t i = 0; code == EXIT_DONE && i < r->field_count; i++)
		if (field_has_part(&r->from[i]))
			code = add_cell(t, row, i, out);
	return code == EXIT_DONE && text_failed(out) ? out_of_memory() : code;
}

static int take_row(void *context, const struct path_row *row)
{
	struct image_table *t = context;
	char path[2 * PLAN_PATH_BYTES_MAX], label[CLASS_NAME_BYTES_MAX + 1], where[3 * FILES_PATH_BYTES];
	struct stat st;
	int code = find_listed(t, row->line, row->path, path, &st);

	if (code == EXIT_DONE && row->label && !text_is_name(row->label, strlen(row->label), CLASS_NAME_BYTES_MAX))
		code = fail(EXIT_BAD,
			    "%s/%s: line %" PRIu64 ": label '%.200s' must be UTF-8 of 1 to %d bytes; it has "
			    "%zu",
			    t->request->place->root, t->path, row->line, row->label, CLASS_NAME_BYTES_MAX,
			    strlen(row->label));
	if (code == EXIT_DONE && !row->label) {
		snprintf(where, sizeof(where), "%s/%s: line %" PRIu64 ": '%s'", t->request->place->root, t->path,
			 row->line, row->path);
		code = labels_find(t->labels, where, row->path, NULL, label);
	}
	if (code == EXIT_DONE)
		code = find_fields(t, row);
	t->images->table = row->label ? t->path : NULL;
	t->images->line = row->line;
	return code == EXIT_DONE ? image_list_add(t->images, path, row->label ? row->label : label,
						  input_file_bytes(&st), PLAN_NO_FILE, 0, &t->fields)
				 : code;
}

int image_table_add(struct image_list *images, struct labels *labels, const char *path)
{
	const struct request *r = images->request;
	const char *slash = strrchr(path, '/'), *key = r->o->label_key ? r->o->label_key : "label";
	struct image_table t = {.request = r,
				.images = images,
				.labels = labels,
				.path = path,
				.folder_bytes = r->o->root || !slash ? 0 : (size_t)(slash + 1 - path)};
	char file[FILES_PATH_BYTES], *name = NULL;
	int code = files_path(file, r->place->root_absolute, path);

	if (code == EXIT_DONE && asprintf(&name, "%s/%s", r->place->root, path) < 0) {
		name = NULL;
		code = fail(EXIT_IO, "out of memory");
	}
	images->by_folder = false;
	if (code == EXIT_DONE)
		code = path_table_read(file, name, labels_given(labels) ? NULL : key, r->recipe, take_row, &t);
	images->table = NULL;
	text_free(&t.fields);
	free(name);
	return code;
}
