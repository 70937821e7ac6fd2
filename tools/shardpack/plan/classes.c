/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.c - the names of the classes, and which number each has
 */
#include "tools/shardpack/plan/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libshard/base/utf8.h"
#include "libshard/base/words.h"
#include "shard.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/parse/json_value.h"

int classes_add(struct classes *c, const char *name, size_t name_bytes, const char *where)
{
	if (!text_is_name(name, name_bytes, CLASS_NAME_BYTES_MAX))
		return fail(EXIT_BAD, "%s: class name '%.*s' must be UTF-8 of 1 to %d bytes; it has %zu", where,
			    (int)(name_bytes < 200 ? name_bytes : 200), name, CLASS_NAME_BYTES_MAX, name_bytes);
	if (c->count == CLASSES_MAX)
		return fail(EXIT_BAD, "%s: more than the limit of %" PRIu32 " classes", where, CLASSES_MAX);
	grow(&c->name, &c->capacity, c->count + 1, sizeof(*c->name));
	c->name[c->count++] = xstrndup(name, name_bytes);
	return EXIT_DONE;
}

int classes_add_numbers(struct classes *c, uint64_t count)
{
	char name[24];
	int rc = EXIT_DONE;

	for (uint64_t i = 0; rc == EXIT_DONE && i < count; i++) {
		snprintf(name, sizeof(name), "%" PRIu64, i);
		rc = classes_add(c, name, strlen(name), "classes");
	}
	return rc;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void classes_sort(struct classes *c)
{
	if (c->count)
		qsort(c->name, c->count, sizeof(*c->name), compare_names);
}

static int compare_indirect(const void *a, const void *b, void *context)
{
	const struct classes *c = context;

	return strcmp(c->name[*(const uint32_t *)a], c->name[*(const uint32_t *)b]);
}

int classes_index(struct classes *c, const char *where)
{
	c->by_name = xmalloc(c->count + 1, sizeof(*c->by_name));
	for (uint32_t i = 0; i < c->count; i++)
		c->by_name[i] = i;
	qsort_r(c->by_name, c->count, sizeof(*c->by_name), compare_indirect, c);
	for (uint32_t i = 1; i < c->count; i++)
		if (!strcmp(c->name[c->by_name[i - 1]], c->name[c->by_name[i]]))
			return fail(EXIT_BAD,
				    "%s: class '%s' appears twice, as numbers %" PRIu32 " and %" PRIu32 ", "
				    "counted from 0",
				    where, c->name[c->by_name[i]],
				    c->by_name[i - 1] < c->by_name[i] ? c->by_name[i - 1] : c->by_name[i],
				    c->by_name[i - 1] < c->by_name[i] ? c->by_name[i] : c->by_name[i - 1]);
	return EXIT_DONE;
}

int64_t classes_find(const struct classes *c, const char *name)
{
	uint64_t low = 0, high = c->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int order = strcmp(name, c->name[c->by_name[middle]]);

		if (order == 0)
			return c->by_name[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

void classes_free(struct classes *c)
{
	for (uint64_t i = 0; i < c->count; i++)
		free(c->name[i]);
	free(c->name);
	free(c->by_name);
	memset(c, 0, sizeof(*c));
}

/* ---- lists of classes ---- */

bool class_list_is(const char *token, size_t bytes, uint64_t class_count, uint64_t most)
{
	struct words c = words_of(token, bytes);
	uint64_t value, count = 0;

	if (bytes == 1 && token[0] == '-')
		return true;
	while (!words_done(&c))
		if (++count > most || !words_u64(&c, ',', UINT64_MAX, &value) || value >= class_count)
			return false;
	return true;
}

bool class_list_next(const char **at, uint32_t *class_idx)
{
	const char *digit = *at + (**at == ',');

	if (*digit < '0' || *digit > '9')
		return false;
	for (*class_idx = 0; *digit >= '0' && *digit <= '9'; digit++)
		*class_idx = 10 * *class_idx + (uint32_t)(*digit - '0');
	*at = digit;
	return true;
}

/* ---- the classes that a user lists ---- */

/*
 * Keras and others write {"cat": 0, "dog": 1}.  Each name is put to the place that its number says.
 */

static int add_from_dataset(struct classes *c, const char *path)
{
	struct shard_dataset *ds;
	struct shard_error err;
	const char *name;
	int rc = EXIT_DONE;

	if (shard_dataset_open(&ds, path, NULL, &err) != SHARD_OK)
		return fail(exit_code_of_status(err.status), "--classes: %s", err.message);
	for (uint64_t i = 0; rc == EXIT_DONE && (name = shard_dataset_class_name(ds, i)) != NULL; i++)
		rc = classes_add(c, name, strlen(name), path);
	shard_dataset_close(ds);
	return rc;
}

int classes_add_lines(struct classes *c, FILE *in, const char *file, bool skip_empty)
{
	struct line line = {.number = 0};
	char where[4400];
	int rc = EXIT_DONE;

	while (rc == EXIT_DONE) {
		rc = line_next(&line, in, file, "one class name per line");
		if (rc != EXIT_DONE || line.is_end)
			break;
		/* What editors elsewhere add to a line is not part of a name. */
		if (line.bytes && line.text[line.bytes - 1] == '\r')
			line.bytes--;
		snprintf(where, sizeof(where), "%s, line %" PRIu64, file, line.number);
		if (line.bytes || !skip_empty)
			rc = classes_add(c, line.text, line.bytes, where);
	}
	return rc;
}

static int add_from_file(struct classes *c, const char *path)
{
	FILE *in = fopen(path, "re");
	char file[4200];
	int rc;

	if (!in)
		return fail(EXIT_IO, "--classes %s: %s", path, strerror(errno));
	snprintf(file, sizeof(file), "--classes %s", path);
	rc = classes_add_lines(c, in, file, false);
	fclose(in);
	return rc;
}

static int add_array(struct classes *c, const json_t *array, const char *where)
{
	int rc = EXIT_DONE;

	for (size_t i = 0; rc == EXIT_DONE && i < json_array_size(array); i++) {
		const json_t *name = json_array_get(array, i);

		if (json_is_string(name))
			rc = classes_add(c, json_string_value(name), json_string_length(name), where);
		else
			rc = fail(EXIT_BAD, "%s: element %zu of the array is not a text; must be the name of a class",
				  where, i);
	}
	return rc;
}

/* The key of each number, into key[count]. */
static int order_keys(json_t *object, const char **key, size_t count, const char *where)
{
	for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
		const char *name = json_object_iter_key(at);
		const json_t *number = json_object_iter_value(at);
		json_int_t n = json_is_integer(number) ? json_integer_value(number) : -1;

		if (n < 0 || (uint64_t)n >= count)
			return fail(EXIT_BAD,
				    "%s: class '%s' has no number from 0 to %zu; an object must say {\"name\": number} "
				    "for all of its %zu classes",
				    where, name, count - 1, count);
		if (key[n])
			return fail(EXIT_BAD, "%s: classes '%s' and '%s' both have the number %" JSON_INTEGER_FORMAT,
				    where, key[n], name, n);
		key[n] = name;
	}
	return EXIT_DONE;
}

static int add_object(struct classes *c, json_t *object, const char *where)
{
	size_t count = json_object_size(object);
	const char **key = xcalloc(count + 1, sizeof(*key));
	int rc = order_keys(object, key, count, where);

	for (size_t i = 0; rc == EXIT_DONE && i < count; i++)
		rc = classes_add(c, key[i], strlen(key[i]), where);
	free(key);
	return rc;
}

static int add_from_json(struct classes *c, const char *path)
{
	struct text text = {0}, where = {0};
	json_t *json = NULL;
	json_error_t error;
	bool found = false;
	int rc = files_read(path, &text, &found);
	size_t mark = 0;

	text_format(&where, "--classes %s", path);
	if (rc == EXIT_DONE && !found)
		rc = fail(EXIT_IO, "%s: there is no such file", where.data);
	if (rc == EXIT_DONE && utf8_is_utf16(text.data, text.bytes))
		rc = fail(EXIT_BAD, "%s: " UTF8_UTF16, where.data);
	if (rc == EXIT_DONE) {
		errno = 0;
		mark = utf8_mark(text.data, text.bytes);
		json = json_loadb(text.data ? text.data + mark : "", text.bytes - mark, JSON_REJECT_DUPLICATES, &error);
		if (!json && errno == ENOMEM)
			rc = fail(EXIT_IO, "%s: out of memory", where.data);
		else if (!json)
			rc = fail(EXIT_BAD, "%s: not JSON, at byte %d: %s", where.data, error.position,
				  json_why(&error));
		else
			rc = json_is_array(json) ? add_array(c, json, where.data) : add_object(c, json, where.data);
	}
	json_decref(json);
	text_free(&text);
	text_free(&where);
	return rc;
}

int classes_from_list(struct classes *c, const char *path)
{
	struct stat st;
	int rc;

	if (stat(path, &st) != 0)
		return fail(EXIT_IO, "--classes %s: %s", path, strerror(errno));
	rc = S_ISDIR(st.st_mode)		      ? add_from_dataset(c, path)
	     : file_name_has_extension(path, ".json") ? add_from_json(c, path)
						      : add_from_file(c, path);
	if (rc == EXIT_DONE && !c->count)
		rc = fail(EXIT_BAD, "--classes %s: no class names in it", path);
	return rc == EXIT_DONE ? classes_index(c, path) : rc;
}
