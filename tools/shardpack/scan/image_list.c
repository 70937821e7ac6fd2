/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_list.c - images with labels, as found, before it is known which classes there are
 */
#include "tools/shardpack/scan/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"
#include "tools/shardpack/parse/json_value.h"
#include "tools/shardpack/plan/plan.h"

#define LABELS_MAX 10000 /* of an image: each is compared with all others */

int image_list_refuse(const struct image_list *images)
{
	return shelf_refuse(images->text.shelf, "a list of %" PRIu64 " images", images->count);
}

bool image_label_is_number(const char *label)
{
	size_t digits;

	label += strspn(label, " \t");
	label += *label == '-' || *label == '+';
	digits = strspn(label, "0123456789");
	label += digits;
	label += *label == '.' ? 1 + strspn(label + 1, "0123456789") : 0;
	return digits && !label[strspn(label, " \t")];
}

static void keep_label(struct image_list *images, struct image_item *i, const char *label)
{
	bool number = image_label_is_number(label);
	struct image_label *first = number ? &images->number : &images->name;

	if (images->has_label && !strcmp(images->text.data + images->last_label_at, label)) {
		i->label_at = images->last_label_at;
	} else {
		i->label_at = images->last_label_at = images->text.bytes;
		text_add(&images->text, label, strlen(label) + 1);
	}
	images->has_label = true;
	i->by_folder = images->by_folder;
	images->by_folder_count += images->by_folder;
	if (images->by_folder)
		return;
	images->number_count += number;
	if (!first->there)
		*first = (struct image_label){true, images->count, images->table, images->line};
}

/* All labels of the image, if they are known. */
static int keep_every_label(struct image_list *images, struct image_item *i, const char *path, bool known)
{
	const char *name = images->next.names.data;
	int rc = EXIT_DONE;

	if (!images->every) {
		images->every = xcalloc(1, sizeof(*images->every));
		*images->every = (struct image_list){
			.text.shelf = images->text.shelf, .request = images->request, .is_every = true};
	}
	i->label_at = images->every->count;
	images->every->table = images->table;
	images->every->line = images->line;
	for (uint64_t k = 0; known && rc == EXIT_DONE && k < images->next.count; k++, name += strlen(name) + 1)
		rc = image_list_add(images->every, path, name, 0, PLAN_NO_FILE, 0, NULL);
	return rc;
}

int image_list_add(struct image_list *images, const char *path, const char *label, uint64_t bytes, uint32_t file,
		   uint64_t offset, const struct text *fields)
{
	struct image_item *i;
	int rc = EXIT_DONE;

	if (!grow_on(images->text.shelf, &images->item, &images->capacity, images->count + 1, sizeof(*images->item)))
		return image_list_refuse(images);
	i = &images->item[images->count];
	*i = (struct image_item){.path_at = images->text.bytes,
				 .bytes = bytes,
				 .file = file,
				 .offset = offset,
				 .unlabelled = !label,
				 .in_table = images->in_table,
				 .further = images->further};
	text_add(&images->text, path, strlen(path) + 1);
	if (text_failed(&images->text))
		return image_list_refuse(images);
	if (recipe_is_multi_label(images->request->recipe) && !images->is_every)
		rc = keep_every_label(images, i, path, label);
	else if (label)
		keep_label(images, i, label);
	else
		images->unlabelled_count++;
	i->fields_at = i->path_at + strlen(path); /* an empty text */
	if (fields && fields->bytes) {
		i->fields_at = images->text.bytes;
		text_add(&images->text, fields->data, fields->bytes + 1);
	}
	images->count++;
	return text_failed(&images->text) ? image_list_refuse(images) : rc;
}

int image_list_add_bad(struct image_list *images, const char *path, const char *label, uint64_t bytes, uint32_t file,
		       uint64_t offset, const struct bad_input *why)
{
	struct text fields = {0};
	int rc;

	bad_input_write(why, &fields);
	rc = image_list_add(images, path, label, bytes, file, offset, &fields);
	text_free(&fields);
	return rc;
}

bool image_list_row(const char *table, uint64_t line, char out[PLAN_PATH_BYTES_MAX])
{
	return snprintf(out, PLAN_PATH_BYTES_MAX, "%s#%" PRIu64, table, line) < PLAN_PATH_BYTES_MAX;
}

const char *image_list_path(const struct image_list *images, uint64_t i)
{
	return images->text.data + images->item[i].path_at;
}

bool image_list_is_bad(const struct image_list *images, uint64_t i)
{
	return bad_input_begins(images->text.data + images->item[i].fields_at);
}

/* ---- several labels of an image ---- */

static bool has_name(const struct label_list *l, const char *name, size_t bytes)
{
	const char *at = l->names.data;

	for (uint64_t i = 0; i < l->count; i++, at += strlen(at) + 1)
		if (strlen(at) == bytes && !memcmp(at, name, bytes))
			return true;
	return false;
}

static int add_label(const struct request *r, struct label_list *l, const char *name, size_t bytes,
		     struct bad_input *bad)
{
	if (!text_is_name(name, bytes, CLASS_NAME_BYTES_MAX))
		return bad_input(bad, SHARD_MISS_VALUE,
				 "label '%.*s' must be UTF-8 of 1 to %d bytes; it has %zu; no label is an empty list",
				 (int)(bytes < 100 ? bytes : 100), name, CLASS_NAME_BYTES_MAX, bytes);
	if (l->count == LABELS_MAX)
		return bad_input(bad, SHARD_MISS_LIMIT, "more labels than the limit of %d for an image", LABELS_MAX);
	if (has_name(l, name, bytes))
		return bad_input(bad, SHARD_MISS_VALUE, "label '%.*s' is there twice", (int)(bytes < 100 ? bytes : 100),
				 name);
	l->count++;
	text_add(&l->names, name, bytes);
	text_add(&l->names, "", 1);
	if (r->recipe->label == LABEL_LIST && l->count > r->recipe->label_room)
		return bad_input(bad, SHARD_MISS_LIMIT,
				 "more labels than --multi-label %" PRIu32 " has room for; raise it",
				 r->recipe->label_room);
	return EXIT_DONE;
}

/* Blanks beside a separator are not part of a label; one that is a blank may be repeated. */
static int split_labels(const struct request *r, const char *text, size_t bytes, struct label_list *out,
			struct bad_input *bad)
{
	const char *separator = r->o->label_separator, *end = text + bytes, *next;
	size_t width = separator ? strlen(separator) : 0;
	bool is_blank = separator && strspn(separator, " ") == width;
	int rc = EXIT_DONE;

	while (text < end && *text == ' ')
		text++;
	while (text < end && end[-1] == ' ')
		end--;
	for (bool more = text < end; rc == EXIT_DONE && more; text = next + width) {
		const char *stop;

		next = width ? memmem(text, (size_t)(end - text), separator, width) : NULL;
		more = next != NULL;
		stop = next ? next : end;
		while (text < stop && *text == ' ')
			text++;
		while (stop > text && stop[-1] == ' ')
			stop--;
		if (stop > text || !is_blank)
			rc = add_label(r, out, text, (size_t)(stop - text), bad);
		if (!more)
			break;
	}
	return rc;
}

static void empty(struct label_list *l)
{
	l->count = 0;
	l->names.bytes = 0;
}

int label_list_of_json(const struct request *r, const json_t *value, struct label_list *out, struct bad_input *bad)
{
	char number[24], what[JSON_VALUE_BYTES];
	int rc = EXIT_DONE;

	empty(out);
	if (json_is_string(value))
		return label_list_of_text(r, json_string_value(value), json_string_length(value), false, out, bad);
	if (json_is_integer(value)) {
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return label_list_of_text(r, number, strlen(number), false, out, bad);
	}
	if (!json_is_array(value))
		return bad_input(bad, SHARD_MISS_VALUE,
				 "the labels are %.100s and must be a list of whole numbers or texts",
				 json_value_say(value, what));
	for (size_t i = 0; rc == EXIT_DONE && i < json_array_size(value); i++) {
		const json_t *label = json_array_get(value, i);

		if (json_is_string(label)) {
			rc = add_label(r, out, json_string_value(label), json_string_length(label), bad);
		} else if (json_is_integer(label)) {
			snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(label));
			rc = add_label(r, out, number, strlen(number), bad);
		} else {
			rc = bad_input(bad, SHARD_MISS_VALUE,
				       "element %" PRIu64
				       " of the labels is %.100s; a label must be a whole number or a text",
				       out->count, json_value_say(label, what));
		}
	}
	return rc;
}

int label_list_of_text(const struct request *r, const char *text, size_t bytes, bool lines, struct label_list *out,
		       struct bad_input *bad)
{
	const char *end = text + bytes;
	json_error_t error;
	json_t *value;
	int rc = EXIT_DONE;

	empty(out);
	if (bytes && text[0] == '[') {
		errno = 0;
		value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
		if (!value && errno == ENOMEM)
			return fail(EXIT_IO, "out of memory for labels");
		rc = value ? label_list_of_json(r, value, out, bad)
			   : bad_input(bad, SHARD_MISS_VALUE, "labels '%.*s' are not a list in JSON, at byte %d: %s",
				       (int)(bytes < 60 ? bytes : 60), text, error.position, json_why(&error));
		json_decref(value);
		return rc;
	}
	if (bytes && !lines && !r->o->label_separator)
		return bad_input(
			bad, SHARD_MISS_VALUE,
			"labels '%.*s' are not a list in JSON; say what separates them with --label-separator, "
			"such as ' ' or '|'",
			(int)(bytes < 60 ? bytes : 60), text);
	while (rc == EXIT_DONE && text < end) {
		const char *lf = lines ? memchr(text, '\n', (size_t)(end - text)) : NULL;
		size_t line = (size_t)((lf ? lf : end) - text), kept = line;

		while (lines && kept && text[kept - 1] == '\r')
			kept--;
		rc = split_labels(r, text, kept, out, bad);
		text += line + (lf != NULL);
	}
	return rc;
}

void image_list_free(struct image_list *images)
{
	if (images->every)
		image_list_free(images->every);
	free(images->every);
	images->every = NULL;
	free(images->container);
	images->container = NULL;
	text_free(&images->next.names);
	images->next.count = 0;
	shelf_free(images->text.shelf, images->item);
	text_free(&images->text);
	images->item = NULL;
	images->count = images->capacity = 0;
}
