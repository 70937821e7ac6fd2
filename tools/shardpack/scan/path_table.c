/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_table.c - a list of files with labels: CSV, TSV or JSON lines
 */
#include "tools/shardpack/scan/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "libshard/base/utf8.h"
#include "shard_inspect.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/parse/json_value.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"

struct reading {
	const char *name, *path_key, *label_key; /* path_key NULL: the usual names */
	const struct recipe *columns;		 /* never NULL */
	bool extents, is_list;			 /* is_list: of labels, beside the images */
	int (*each)(void *context, const struct path_row *row);
	void *context;
	uint64_t row_count;
	uint64_t path_count, label_count;	  /* of JSON lines that have one */
	char why_no_path[600], why_no_label[600]; /* what to say if none has */
	bool told[RECIPE_NAMED_MAX];		  /* why a JSON line has no value of this field */
	bool told_label, told_extent;		  /* that they are there, and not read */
};

/* Columns of a table, or keys of an object. */
struct names {
	const char *name[CSV_FIELDS_MAX];
	uint32_t count;
};

static const char *const path_keys[] = {"path", "file_name", "image", NULL};
/* What they are often called.  Only --path-key and --label-key take these. */
static const char *const likely_paths[] = {"path",	"file_name",  "image",	    "file",	"filename", "filepath",
					   "file_path", "image_path", "image_name", "img_path", "img",	    NULL};
static const char *const likely_labels[] = {"label",	  "labels",   "class",	"classes", "class_name",
					    "label_name", "category", "target", NULL};
#define NAMES_SHOWN_BYTES 200
static const char *const extent_keys[EXTENT_KEYS] = {"offset", "bytes", "key"};

/* Path and label of `row` may be empty, and the path NULL if something is wrong. */
static int row_done(struct reading *r, struct path_row *row, struct bad_input *bad)
{
	if (row->path && !row->path[0]) {
		bad_input(bad, SHARD_MISS_INCOMPLETE, "no path");
		row->path = NULL;
	} else if (!bad->reason && row->label && !row->label[0] && !recipe_is_multi_label(r->columns)) {
		bad_input(bad, SHARD_MISS_INCOMPLETE, "no label for '%s'", row->path);
		row->label = NULL;
	}
	row->bad = bad->reason ? bad : NULL;
	r->row_count++;
	return r->each(r->context, row);
}

/* All of them, so that a blank or a tab among them is seen. */
static const char *list_names(const struct names *n, char out[NAMES_SHOWN_BYTES])
{
	size_t at = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < n->count && at < NAMES_SHOWN_BYTES; i++)
		at += (size_t)snprintf(out + at, NAMES_SHOWN_BYTES - at, "%s'%s'", i ? " " : "", n->name[i]);
	if (at >= NAMES_SHOWN_BYTES)
		memcpy(out + NAMES_SHOWN_BYTES - 4, "...", 4);
	return out;
}

/*
 * The first one that is called as such things often are, but not `tried`, which was not there;
 * else what stands for a name.
 */
static const char *likely_name(const struct names *n, const char *const *often, const char *tried)
{
	for (; *often; often++)
		for (uint32_t i = 0; i < n->count; i++)
			if (!strcasecmp(n->name[i], *often) && strcmp(n->name[i], tried))
				return n->name[i];
	return "NAME";
}

/* Is one of them a path, so that the line is a row? */
static bool has_path(const struct names *n)
{
	for (uint32_t i = 0; i < n->count; i++)
		if (file_name_is_image(n->name[i]))
			return true;
	return false;
}

/*
 * There is no path, or no label.  A table of which no row has one was given without the option that
 * it needs, and that is what it is refused for.  A row among others is bad.  `what`: "column" or
 * "text"; `all`: what `n` are.
 */
static int no_path(struct reading *r, uint64_t line, const struct names *n, const char *what, const char *all,
		   struct bad_input *bad)
{
	char there[NAMES_SHOWN_BYTES];

	list_names(n, there);
	if (r->path_count || r->why_no_path[0])
		return bad_input(bad, SHARD_MISS_INCOMPLETE, "no path");
	if (r->path_key)
		snprintf(r->why_no_path, sizeof(r->why_no_path),
			 "line %" PRIu64 ": no %s is called %s, which --path-key names; the %s are %s", line, what,
			 r->path_key, all, there);
	else
		snprintf(r->why_no_path, sizeof(r->why_no_path),
			 "line %" PRIu64 ": no %s is called path, file_name or image; say which one holds the paths "
			 "with --path-key %s; the %s are %s%s",
			 line, what, likely_name(n, likely_paths, path_keys[0]), all, there,
			 has_path(n) ? "; the first line must name the columns, such as path,label" : "");
	return bad_input(bad, SHARD_MISS_INCOMPLETE, "no path");
}

static int no_label(struct reading *r, uint64_t line, const struct names *n, const char *what, const char *all,
		    bool is_null, struct bad_input *bad)
{
	char there[NAMES_SHOWN_BYTES], why[BAD_INPUT_MESSAGE_BYTES];

	if (is_null)
		snprintf(why, sizeof(why), "%.200s is null", r->label_key);
	else
		snprintf(why, sizeof(why), "no %s is called %.200s", what, r->label_key);
	if (!r->label_count && !r->why_no_label[0])
		snprintf(r->why_no_label, sizeof(r->why_no_label),
			 "line %" PRIu64 ": %s; say which one holds the labels with --label-key %s, or "
			 "pack without labels with --no-label; the %s are %s",
			 line, why, likely_name(n, likely_labels, r->label_key), all, list_names(n, there));
	return bad_input(bad, SHARD_MISS_INCOMPLETE, "%s", why);
}

/*
 * A value in JSON that stands where a path or a label should: what it is, and what it must be.  The
 * reason stays that of one that is absent: it is in shards.
 */
static int wrong_type(struct reading *r, uint64_t line, bool is_path, const char *key, const json_t *value,
		      struct bad_input *bad)
{
	char what[JSON_VALUE_BYTES], why[JSON_VALUE_BYTES + 80], *first = is_path ? r->why_no_path : r->why_no_label;

	json_value_say(value, what);
	if (is_path)
		snprintf(why, sizeof(why), "%.60s is %.120s; a path must be a text", key, what);
	else if (json_is_boolean(value))
		snprintf(why, sizeof(why),
			 "%.60s is %.5s; a label must be a whole number or a text: write %d, or \"%.5s\"", key, what,
			 json_is_true(value), what);
	else if (json_is_real(value) && json_real_value(value) == trunc(json_real_value(value)))
		snprintf(why, sizeof(why),
			 "%.60s is %.30s; a label must be a whole number or a text: write %.0f, or \"%.30s\"", key,
			 what, json_real_value(value), what);
	else if (json_is_real(value))
		snprintf(why, sizeof(why),
			 "%.60s is %.30s; a label must be a whole number or a text; a measure is a field: --no-label "
			 "--field %.40s:kind=tensor,dtype=f32",
			 key, what, key);
	else
		snprintf(why, sizeof(why), "%.60s is %.120s; a label must be a whole number or a text", key, what);
	if (!(is_path ? r->path_count : r->label_count) && !first[0])
		snprintf(first, sizeof(r->why_no_path), "line %" PRIu64 ": %s", line, why);
	return bad_input(bad, SHARD_MISS_INCOMPLETE, "%s", why);
}

static int refuse(const struct reading *r, const char *why)
{
	return fail(EXIT_BAD, "%s: %s", r->name, why);
}

/* Says once what is there and not read.  `what`: "column" or "key". */
static void note_unread(struct reading *r, const char *what, bool has_label, bool has_extent)
{
	bool label_is_read = r->label_key != NULL;

	if (!r->extents && !r->is_list && has_extent && !r->told_extent) {
		note("%s: each image is a whole file; if the %ss offset and bytes say which part of a file it is, "
		     "say --extents",
		     r->name, what);
		r->told_extent = true;
	}
	for (size_t i = 0; i < r->columns->field_count; i++)
		label_is_read |= r->columns->from[i].kind != FIELD_LENGTH && !strcmp(r->columns->from[i].from, "label");
	if (r->extents && has_label && !label_is_read && !r->told_label) {
		note("%s: the %s label is not read, because --no-label or another option of labels was given", r->name,
		     what);
		r->told_label = true;
	}
}

/* ---- CSV and TSV ---- */

static int find_column(const struct names *head, const char *name)
{
	for (uint32_t i = 0; i < head->count; i++)
		if (!strcmp(head->name[i], name))
			return (int)i;
	return -1;
}

/* Which of two columns of one name is meant cannot be known. */
static int refuse_twin(const struct reading *r, const struct names *head, uint64_t line, int column)
{
	for (uint32_t i = (uint32_t)column + 1; i < head->count; i++)
		if (!strcmp(head->name[i], head->name[column]))
			return fail(EXIT_BAD,
				    "%s: line %" PRIu64 ": columns %d and %" PRIu32 " are both called %s; rename one",
				    r->name, line, column + 1, i + 1, head->name[column]);
	return EXIT_DONE;
}

/* Where path, label and extra columns are; -1 for a label that is not asked for, and for what all rows may lack. */
static int settle_columns(struct reading *r, const struct names *head, uint64_t line, int *path, int *label, int *extra,
			  int extent[EXTENT_KEYS])
{
	struct bad_input bad = {0};
	char there[NAMES_SHOWN_BYTES];

	*path = r->path_key ? find_column(head, r->path_key) : -1;
	*label = r->label_key ? find_column(head, r->label_key) : -1;
	for (size_t i = 0; !r->path_key && path_keys[i] && *path < 0; i++)
		*path = find_column(head, path_keys[i]);
	if (*path < 0)
		no_path(r, line, head, "column", "columns", &bad);
	else if (r->label_key && *label < 0)
		no_label(r, line, head, "column", "columns", false, &bad);
	if (bad.reason && head->count == 1 && strchr(head->name[0], '\t'))
		return fail(EXIT_BAD,
			    "%s: line %" PRIu64 ": is separated by tabs, and a .csv is by commas; rename it to .tsv",
			    r->name, line);
	if (bad.reason)
		return refuse(r, r->why_no_path[0] ? r->why_no_path : r->why_no_label);
	if (refuse_twin(r, head, line, *path) != EXIT_DONE ||
	    (*label >= 0 && refuse_twin(r, head, line, *label) != EXIT_DONE))
		return EXIT_BAD;
	for (size_t i = 0; i < EXTENT_KEYS; i++) {
		extent[i] = find_column(head, extent_keys[i]);
		if (r->extents && extent[i] < 0 && i != EXTENT_KEY)
			return fail(EXIT_BAD,
				    "%s: line %" PRIu64
				    ": no column is called %s, which --extents needs; the columns are %s",
				    r->name, line, extent_keys[i], list_names(head, there));
		if (r->extents && extent[i] >= 0 && refuse_twin(r, head, line, extent[i]) != EXIT_DONE)
			return EXIT_BAD;
	}
	note_unread(r, "column", find_column(head, "label") >= 0,
		    extent[EXTENT_OFFSET] >= 0 && extent[EXTENT_BYTES] >= 0);
	for (size_t i = 0; i < r->columns->field_count; i++) {
		const struct field_source *s = &r->columns->from[i];

		extra[i] = s->kind == FIELD_LENGTH ? *path : find_column(head, s->from);
		if (extra[i] < 0 && !s->all_may_lack)
			return fail(EXIT_BAD,
				    "%s: line %" PRIu64
				    ": no column is called %s, which %s%s needs; the columns are %s%s",
				    r->name, line, s->from, s->column ? "--columns" : "--field ",
				    s->column ? "" : r->columns->field[i].name, list_names(head, there),
				    s->optional	  ? "; if no row should have it, say optional=all"
				    : s->empty[0] ? "; if no row should have it, say :all behind its default"
						  : "");
		if (extra[i] >= 0 && refuse_twin(r, head, line, extra[i]) != EXIT_DONE)
			return EXIT_BAD;
	}
	return EXIT_DONE;
}

static int read_csv(struct reading *r, char *text, size_t bytes)
{
	char separator = file_name_has_extension(r->name, ".tsv") ? '\t' : csv_separator(text, bytes), why[200];
	int path, label, extra[RECIPE_NAMED_MAX], extent[EXTENT_KEYS], rc;
	struct csv_row head, row;
	enum csv_status status;
	struct names names;
	struct path_row out;
	struct csv c;

	if (separator == ';')
		note("%s: columns are separated by semicolons, because the first line has no comma", r->name);
	csv_start(&c, text, bytes, separator);
	status = csv_next(&c, &head, why, sizeof(why));
	if (status == CSV_ROW) {
		names.count = head.count;
		memcpy(names.name, head.field, head.count * sizeof(*head.field));
		rc = settle_columns(r, &names, head.line, &path, &label, extra, extent);
		if (rc != EXIT_DONE)
			return rc;
		while ((status = csv_next(&c, &row, why, sizeof(why))) == CSV_ROW) {
			if (row.count != head.count)
				return fail(EXIT_BAD,
					    "%s: line %" PRIu64 ": %" PRIu32 " fields; the first line has %" PRIu32
					    "%s",
					    r->name, row.line, row.count, head.count,
					    separator == ','   ? " (a field that contains a comma must be quoted)"
					    : separator == ';' ? " (a field that contains a semicolon must be quoted)"
							       : "");
			out = (struct path_row){.path = row.field[path],
						.label = label < 0 ? NULL : row.field[label],
						.line = row.line};
			for (uint32_t i = 0; i < r->columns->field_count; i++)
				out.value[i] = extra[i] >= 0		    ? row.field[extra[i]]
					       : r->columns->from[i].column ? ""
									    : NULL;
			for (size_t i = 0; r->extents && i < EXTENT_KEYS; i++)
				out.extent[i] = extent[i] >= 0 ? row.field[extent[i]] : NULL;
			rc = row_done(r, &out, &(struct bad_input){.reason = 0});
			if (rc != EXIT_DONE)
				return rc;
		}
	}
	return status == CSV_BAD ? fail(EXIT_BAD, "%s: %s", r->name, why) : EXIT_DONE;
}

/* ---- JSON lines ---- */

static int out_of_memory(const struct reading *r, uint64_t line)
{
	return fail(EXIT_IO, "%s: line %" PRIu64 ": out of memory", r->name, line);
}

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
 * of columns are numbers or truths, text and paths are text, and of other fields the value that stands
 * there is dumped.  *out is NULL if nothing does, or empty for a column that has a default.  False
 * if it is of another kind, or, with *failed, without memory.
 */
static bool value_text(const json_t *value, const struct field_source *s, const char **out, char **own, bool *failed)
{
	bool is_text = (s->kind == FIELD_TEXT && s->pick == PICK_UNSAID) || s->kind == FIELD_BYTES ||
		       field_is_picture(s->kind),
	     none = !value || json_is_null(value);

	*out = NULL;
	*own = NULL;
	*failed = false;
	if (s->kind == FIELD_LENGTH || (none && !s->column))
		return true;
	if (none && s->empty[0]) {
		*out = "";
		return true;
	}
	if (s->column && !json_is_number(value) && !json_is_boolean(value))
		return false;
	if (is_text && !json_is_string(value))
		return false;
	if (!is_text)
		*own = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
	*out = is_text ? json_string_value(value) : *own;
	*failed = !*out;
	return *out != NULL;
}

/* The keys of an object, for a message. */
static struct names *keys_of(const json_t *object, struct names *out)
{
	const char *key;
	json_t *value;

	out->count = 0;
	json_object_foreach((json_t *)(uintptr_t)object, key, value) if (out->count < CSV_FIELDS_MAX)
		out->name[out->count++] = key;
	return out;
}

static int json_row(struct reading *r, const json_t *object, uint64_t line)
{
	const json_t *path = r->path_key ? json_value_find(object, r->path_key) : NULL,
		     *label = r->label_key ? json_value_find(object, r->label_key) : NULL;
	const char *text = NULL, *path_key = r->path_key;
	char number[24], extent[EXTENT_KEYS][24], *labels = NULL, *own[RECIPE_NAMED_MAX] = {NULL},
						  *why[RECIPE_NAMED_MAX] = {NULL};
	struct bad_input bad = {0};
	struct path_row row;
	struct names names;
	bool failed = false;
	int rc;

	note_unread(r, "key", json_object_get(object, "label") != NULL,
		    json_object_get(object, "offset") && json_object_get(object, "bytes"));
	for (size_t i = 0; !r->path_key && path_keys[i] && !path; i++)
		path = json_object_get(object, path_key = path_keys[i]);
	if (path && !json_is_string(path) && !json_is_null(path))
		wrong_type(r, line, true, path_key, path, &bad);
	else if (!json_is_string(path))
		no_path(r, line, keys_of(object, &names), "text", "keys", &bad);
	else if (json_is_array(label) && recipe_is_multi_label(r->columns))
		failed = !(text = labels = json_dumps(label, JSON_COMPACT));
	else if (json_is_array(label))
		bad_input(&bad, SHARD_MISS_VALUE, "%s is a list; --multi-label takes several labels", r->label_key);
	else if (r->label_key && !(text = label_text(label, number)) && label && !json_is_null(label))
		wrong_type(r, line, false, r->label_key, label, &bad);
	else if (r->label_key && !text)
		no_label(r, line, keys_of(object, &names), "text or whole number", "keys", label != NULL, &bad);
	r->path_count += json_is_string(path);
	r->label_count += text != NULL;
	row = (struct path_row){.path = json_string_value(path), .label = text, .line = line};
	for (size_t i = 0; r->extents && !bad.reason && i < EXTENT_KEYS; i++) {
		const json_t *value = json_object_get(object, extent_keys[i]);
		char what[JSON_VALUE_BYTES];

		row.extent[i] = label_text(value, extent[i]);
		if (!row.extent[i] && value && !json_is_null(value))
			bad_input(&bad, SHARD_MISS_VALUE, "%s is %.120s; must be a %s", extent_keys[i],
				  json_value_say(value, what), i == EXTENT_KEY ? "text" : "whole number");
	}
	for (size_t i = 0; !failed && !bad.reason && i < r->columns->field_count; i++) {
		const struct field_source *s = &r->columns->from[i];
		const json_t *value = json_value_find(object, s->from);
		bool none = !value || json_is_null(value);
		char what[JSON_VALUE_BYTES];

		if (none && (!r->told[i] || !s->optional) && s->kind != FIELD_LENGTH) {
			json_value_absent(object, s->from, what);
			row.absent[i] = why[i] = xstrdup(what);
			r->told[i] = true;
		}
		if (failed || value_text(value, s, &row.value[i], &own[i], &failed))
			continue;
		if (s->column && none)
			bad_input(&bad, SHARD_MISS_VALUE,
				  "%s; --columns needs a number there, or --columns NAME:TYPE:default=V packs V",
				  row.absent[i]);
		else if (s->column)
			bad_input(&bad, SHARD_MISS_VALUE, "%s is %s, and --columns needs a number", s->from,
				  json_value_say(value, what));
		else if (json_is_array(value) && s->kind == FIELD_TEXT)
			bad_input(&bad, SHARD_MISS_VALUE,
				  "%s is a list, and --field %s is one text; " FIELD_LIST_REMEDY, s->from,
				  r->columns->field[i].name);
		else
			bad_input(&bad, SHARD_MISS_VALUE, "%s is %s, and --field %s needs a text%s", s->from,
				  json_value_say(value, what), r->columns->field[i].name,
				  json_is_number(value) && !field_is_picture(s->kind)
					  ? ": write it in quotes, or pack it with kind=tensor,dtype=TYPE"
					  : "");
	}
	rc = failed ? out_of_memory(r, line) : row_done(r, &row, &bad);
	for (size_t i = 0; i < r->columns->field_count; i++) {
		free(own[i]);
		free(why[i]);
	}
	free(labels);
	return rc;
}

/* A line that is not an object: a bad row, unless it shows what the whole file is. */
static int not_an_object(struct reading *r, const json_t *value, const char *at, uint64_t line,
			 const json_error_t *error)
{
	struct path_row row = {.line = line};
	struct bad_input bad = {0};

	if (!value && errno == ENOMEM) /* of malloc(); jansson speaks of bad JSON */
		return out_of_memory(r, line);
	if (at[strspn(at, " \t\r")] == '[' && !r->row_count && (!value || json_is_object(json_array_get(value, 0))))
		return refuse(r, "is an array in JSON, and a .jsonl has an object on each line; make one with jq -c "
				 "'.[]'");
	bad_input(&bad, SHARD_MISS_VALUE, "%s",
		  value ? "not an object; must be an object, such as {\"path\": ..., \"label\": ...}"
			: json_why(error));
	return row_done(r, &row, &bad);
}

static int read_json(struct reading *r, char *text, size_t bytes)
{
	char *at = text + utf8_mark(text, bytes), *end = text + bytes;
	uint64_t line = 0;
	int rc = EXIT_DONE;

	while (rc == EXIT_DONE && at < end) {
		char *lf = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((lf ? lf : end) - at);
		json_error_t error;
		json_t *value;

		line++;
		if (strspn(at, " \t\r") >= n) {
			at += n + 1;
			continue;
		}
		errno = 0;
		value = json_loadb(at, n, JSON_REJECT_DUPLICATES, &error);
		rc = json_is_object(value) ? json_row(r, value, line) : not_an_object(r, value, at, line, &error);
		json_decref(value);
		at += n + 1;
	}
	return rc;
}

int path_table_read(const char *file, const char *name, const char *path_key, const char *label_key,
		    const struct recipe *columns, bool extents, struct shelf *shelf,
		    int (*each)(void *context, const struct path_row *row), void *context)
{
	static const struct recipe none = {0};
	struct reading r = {.name = name,
			    .path_key = path_key,
			    .label_key = label_key,
			    .columns = columns ? columns : &none,
			    .extents = extents,
			    .is_list = !columns,
			    .each = each,
			    .context = context};
	struct text text = {.shelf = shelf};
	bool is_json = file_name_has_extension(name, ".jsonl") || file_name_has_extension(name, ".ndjson"),
	     found = false;
	int rc = files_read(file, &text, &found);

	if (rc == EXIT_DONE && !found)
		rc = fail(EXIT_IO, "%s: No such file or directory", name);
	if (rc == EXIT_DONE && utf8_is_utf16(text.data, text.bytes))
		rc = fail(EXIT_BAD, "%s: " UTF8_UTF16, name);
	else if (rc == EXIT_DONE && text.bytes)
		rc = is_json ? read_json(&r, text.data, text.bytes) : read_csv(&r, text.data, text.bytes);
	text_free(&text);
	if (rc == EXIT_DONE && r.why_no_path[0] && !r.path_count)
		rc = refuse(&r, r.why_no_path);
	else if (rc == EXIT_DONE && r.why_no_label[0] && !r.label_count)
		rc = refuse(&r, r.why_no_label);
	if (rc == EXIT_DONE && !r.row_count)
		rc = fail(EXIT_BAD, "%s: no rows in it", name);
	return rc;
}
