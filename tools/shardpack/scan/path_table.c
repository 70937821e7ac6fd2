/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_table.c - a list of files with labels: CSV, TSV or JSON lines
 */
#include "tools/shardpack/scan/path_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardpack/format/csv.h"
#include "tools/shardpack/plan/recipe.h"
#include "tools/shardpack/scan/file_name.h"

struct reading {
	const char *name, *label_key;
	const struct recipe *columns; /* never NULL */
	int (*each)(void *context, const struct path_row *row);
	void *context;
	uint64_t row_count;
};

static const char *const path_keys[] = {"path", "file_name", "image"};
#define PATH_KEYS	    3
#define COLUMNS_SHOWN_BYTES 200

static bool is_json(const char *name)
{
	return file_name_has_extension(name, ".jsonl") || file_name_has_extension(name, ".ndjson");
}

bool path_table_is_one(const char *name)
{
	return is_json(name) || file_name_has_extension(name, ".csv") || file_name_has_extension(name, ".tsv");
}

/* Path and label of `row` may be empty. */
static int row_done(struct reading *r, const struct path_row *row)
{
	if (!row->path[0])
		return fail(EXIT_BAD, "%s: line %" PRIu64 ": no path", r->name, row->line);
	if (row->label && !row->label[0])
		return fail(EXIT_BAD, "%s: line %" PRIu64 ": no label for '%s'", r->name, row->line, row->path);
	r->row_count++;
	return r->each(r->context, row);
}

/* ---- CSV and TSV ---- */

static int find_column(const struct csv_row *head, const char *name)
{
	for (uint32_t i = 0; i < head->count; i++)
		if (!strcmp(head->field[i], name))
			return (int)i;
	return -1;
}

/* Which of two columns of one name is meant cannot be known. */
static int refuse_twin(const struct reading *r, const struct csv_row *head, int column)
{
	for (uint32_t i = (uint32_t)column + 1; i < head->count; i++)
		if (!strcmp(head->field[i], head->field[column]))
			return fail(EXIT_BAD,
				    "%s: line %" PRIu64 ": columns %d and %" PRIu32 " are both called %s; rename one",
				    r->name, head->line, column + 1, i + 1, head->field[column]);
	return EXIT_DONE;
}

/* The names of all columns, so that a blank or a semicolon among them is seen. */
static const char *list_columns(const struct csv_row *head, char out[COLUMNS_SHOWN_BYTES])
{
	size_t at = 0;
	for (uint32_t i = 0; i < head->count && at < COLUMNS_SHOWN_BYTES; i++)
		at += (size_t)snprintf(out + at, COLUMNS_SHOWN_BYTES - at, "%s'%s'", i ? " " : "", head->field[i]);
	if (at >= COLUMNS_SHOWN_BYTES)
		memcpy(out + COLUMNS_SHOWN_BYTES - 4, "...", 4);
	return out;
}

/* Where path, label and extra columns are; -1 for a label that is not asked for. */
static int settle_columns(const struct reading *r, const struct csv_row *head, int *path, int *label, int *extra)
{
	char there[COLUMNS_SHOWN_BYTES];
	*path = *label = -1;
	for (size_t i = 0; i < PATH_KEYS && *path < 0; i++)
		*path = find_column(head, path_keys[i]);
	if (*path < 0)
		return fail(EXIT_BAD,
			    "%s: line %" PRIu64 ": no column is called path, file_name or image; the first line must "
			    "name the columns, and has %s",
			    r->name, head->line, list_columns(head, there));
	if (r->label_key)
		*label = find_column(head, r->label_key);
	if (r->label_key && *label < 0)
		return fail(EXIT_BAD,
			    "%s: line %" PRIu64 ": no column is called %s; name the column of labels with "
			    "--label-key; the columns are %s",
			    r->name, head->line, r->label_key, list_columns(head, there));
	if (refuse_twin(r, head, *path) != EXIT_DONE || (*label >= 0 && refuse_twin(r, head, *label) != EXIT_DONE))
		return EXIT_BAD;
	for (size_t i = 0; i < r->columns->field_count; i++) {
		const struct field_source *s = &r->columns->from[i];

		extra[i] = s->kind == FIELD_LENGTH ? *path : find_column(head, s->from);
		if (extra[i] < 0)
			return fail(EXIT_BAD, "%s: line %" PRIu64 ": no column is called %s, which %s%s needs", r->name,
				    head->line, s->from, s->column ? "--columns" : "--field ",
				    s->column ? "" : r->columns->field[i].name);
		if (refuse_twin(r, head, extra[i]) != EXIT_DONE)
			return EXIT_BAD;
	}
	return EXIT_DONE;
}

static int read_csv(struct reading *r, char *text, size_t bytes, bool tabs)
{
	struct csv_row head, row;
	struct path_row out;
	enum csv_status status;
	struct csv c;
	char why[200];
	int path, label, extra[RECIPE_NAMED_MAX], code;
	csv_start(&c, text, bytes, tabs);
	status = csv_next(&c, &head, why, sizeof(why));
	if (status == CSV_ROW) {
		code = settle_columns(r, &head, &path, &label, extra);
		if (code != EXIT_DONE)
			return code;
		while ((status = csv_next(&c, &row, why, sizeof(why))) == CSV_ROW) {
			if (row.count != head.count)
				return fail(EXIT_BAD,
					    "%s: line %" PRIu64 ": %" PRIu32 " fields; the first line has %" PRIu32
					    "%s",
					    r->name, row.line, row.count, head.count,
					    tabs ? "" : " (a field that contains a comma must be quoted)");
			out = (struct path_row){.path = row.field[path],
						.label = label < 0 ? NULL : row.field[label],
						.line = row.line};
			for (uint32_t i = 0; i < r->columns->field_count; i++)
				out.value[i] = row.field[extra[i]];
			code = row_done(r, &out);
			if (code != EXIT_DONE)
				return code;
		}
	}
	return status == CSV_BAD ? fail(EXIT_BAD, "%s: %s", r->name, why) : EXIT_DONE;
}

/* ---- JSON lines ---- */

/* A label may be a text or a whole number; `out` has room for the latter. */
static const char *label_text(const json_t *value, char out[24])
{
	if (json_is_string(value))
		return strlen(json_string_value(value)) == json_string_length(value) ? json_string_value(value) : NULL;
	if (!json_is_integer(value))
		return NULL;
	snprintf(out, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return out;
}

/*
 * The value of a field, as text that reads back as the same; *own is what must be freed.  Numbers
 * of columns are numbers or truths, text and paths are text, and of other fields whatever stands
 * there is dumped.  *out is NULL if nothing does.
 */
static bool value_text(const json_t *value, const struct field_source *s, const char **out, char **own)
{
	bool is_text = s->kind == FIELD_TEXT || s->kind == FIELD_BYTES || field_is_picture(s->kind);

	*out = NULL;
	*own = NULL;
	if (s->kind == FIELD_LENGTH || (!s->column && (!value || json_is_null(value))))
		return true;
	if (s->column && !json_is_number(value) && !json_is_boolean(value))
		return false;
	if (is_text && !json_is_string(value))
		return false;
	if (!is_text)
		*own = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
	*out = is_text ? json_string_value(value) : *own;
	return *out != NULL;
}

static int json_row(struct reading *r, const json_t *object, uint64_t line)
{
	const json_t *path = NULL, *label = r->label_key ? json_object_get(object, r->label_key) : NULL;
	const char *text = NULL;
	char number[24], *own[RECIPE_NAMED_MAX] = {NULL};
	struct path_row row;
	int code = EXIT_DONE;

	for (size_t i = 0; i < PATH_KEYS && !path; i++)
		path = json_object_get(object, path_keys[i]);
	if (!json_is_string(path))
		return fail(EXIT_BAD, "%s: line %" PRIu64 ": no text called path, file_name or image", r->name, line);
	if (r->label_key && !(text = label_text(label, number)))
		return fail(EXIT_BAD,
			    "%s: line %" PRIu64 ": no text or whole number called %s; name the key of "
			    "labels with --label-key",
			    r->name, line, r->label_key);
	row = (struct path_row){.path = json_string_value(path), .label = text, .line = line};
	for (size_t i = 0; code == EXIT_DONE && i < r->columns->field_count; i++) {
		const struct field_source *s = &r->columns->from[i];

		if (value_text(json_object_get(object, s->from), s, &row.value[i], &own[i]))
			continue;
		code = s->column ? fail(EXIT_BAD, "%s: line %" PRIu64 ": no number called %s, which --columns needs",
					r->name, line, s->from)
				 : fail(EXIT_BAD, "%s: line %" PRIu64 ": no text called %s, which --field %s needs",
					r->name, line, s->from, r->columns->field[i].name);
	}
	if (code == EXIT_DONE)
		code = row_done(r, &row);
	for (size_t i = 0; i < r->columns->field_count; i++)
		free(own[i]);
	return code;
}

static int read_json(struct reading *r, char *text, size_t bytes)
{
	char *at = text + (bytes >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0), *end = text + bytes;
	uint64_t line = 0;
	int code = EXIT_DONE;

	while (code == EXIT_DONE && at < end) {
		char *lf = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((lf ? lf : end) - at);
		json_error_t error;
		json_t *value;

		line++;
		if (strspn(at, " \t\r") >= n) {
			at += n + 1;
			continue;
		}
		value = json_loadb(at, n, JSON_REJECT_DUPLICATES, &error);
		if (!json_is_object(value))
			code = fail(EXIT_BAD, "%s: line %" PRIu64 ": %s", r->name, line,
				    value ? "not an object; must be an object, such as {\"path\": ..., \"label\": ...}"
					  : error.text);
		else
			code = json_row(r, value, line);
		json_decref(value);
		at += n + 1;
	}
	return code;
}

/* By its mark, or the first letter. */
static bool is_utf16(const uint8_t *text)
{
	return (text[0] == 0xff && text[1] == 0xfe) || (text[0] == 0xfe && text[1] == 0xff) || !text[0] != !text[1];
}

int path_table_read(const char *file, const char *name, const char *label_key, const struct recipe *columns,
		    int (*each)(void *context, const struct path_row *row), void *context)
{
	static const struct recipe none = {0};
	struct reading r = {.name = name,
			    .label_key = label_key,
			    .columns = columns ? columns : &none,
			    .each = each,
			    .context = context};
	struct text text = {0};
	bool found = false;
	int code = files_read(file, &text, &found);

	if (code == EXIT_DONE && !found)
		code = fail(EXIT_IO, "%s: No such file or directory", name);
	if (code == EXIT_DONE && text.bytes >= 2 && is_utf16((const uint8_t *)text.data))
		code = fail(EXIT_BAD, "%s: is UTF-16; save it as UTF-8", name);
	else if (code == EXIT_DONE && text.bytes)
		code = is_json(name) ? read_json(&r, text.data, text.bytes)
				     : read_csv(&r, text.data, text.bytes, file_name_has_extension(name, ".tsv"));
	text_free(&text);
	if (code == EXIT_DONE && !r.row_count)
		code = fail(EXIT_BAD, "%s: no rows in it", name);
	return code;
}
