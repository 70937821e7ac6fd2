/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webdataset.c - samples of several members of an archive, as WebDataset has them
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/recipe.h"
#include "tools/shardpack/scan/image_archive_private.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

#define LABEL_BYTES_MAX (UINT64_C(1) << 20) /* of a member that holds one */

/* What stands behind the dot that ends the key; empty if there is no key. */
static const char *suffix_of(const struct archive *a, const struct entry *e)
{
	return e->key_bytes ? archive_name_of(a, e) + e->key_bytes + 1 : "";
}

static bool is_image_suffix(const struct archive *a, const struct entry *e)
{
	static const char *const suffixes[] = {"jpg", "jpeg", "png", "webp", "ppm", "pgm", "bmp", "tif", "tiff"};
	size_t i;

	for (i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (archive_is_suffix(a, e, suffixes[i]))
			return true;
	return false;
}

static int compare_keys(const void *x, const void *y, void *context)
{
	const struct archive *a = context;
	const struct entry *b = x, *c = y;
	uint32_t least = b->key_bytes < c->key_bytes ? b->key_bytes : c->key_bytes;
	int order = memcmp(archive_name_of(a, b), archive_name_of(a, c), least);

	if (!order && b->key_bytes != c->key_bytes)
		order = b->key_bytes < c->key_bytes ? -1 : 1;
	return order ? order : b->number < c->number ? -1 : b->number > c->number;
}

static bool same_key(const struct archive *a, const struct entry *x, const struct entry *y)
{
	return x->key_bytes == y->key_bytes && memcmp(archive_name_of(a, x), archive_name_of(a, y), x->key_bytes) == 0;
}

/* All of a member as text; NULL, and *code, if it cannot be. */
static char *read_text(const struct archive *a, const struct entry *e, int *code)
{
	char *text = NULL;

	if (e->bytes > LABEL_BYTES_MAX)
		*code = fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 " has %" PRIu64 " bytes; a label has at most %" PRIu64, a->where,
			     archive_name_of(a, e), e->offset, e->bytes, LABEL_BYTES_MAX);
	else if (!(text = malloc((size_t)e->bytes + 1)))
		*code = archive_out_of_memory(a);
	else
		*code = stored_get(a->it->request->stored, a->file, e->offset, text, (size_t)e->bytes);
	if (*code != EXIT_DONE) {
		free(text);
		return NULL;
	}
	text[e->bytes] = '\0';
	return text;
}

static int take_label(const struct archive *a, const struct entry *e, const char *label, size_t bytes, char *out)
{
	if (!text_is_name(label, bytes, CLASS_NAME_BYTES_MAX))
		return fail(EXIT_BAD, "%s: the label in '%s' at offset %" PRIu64 " must be UTF-8 of 1 to %d bytes, it has %zu", a->where,
			    archive_name_of(a, e), e->offset, CLASS_NAME_BYTES_MAX, bytes);
	memcpy(out, label, bytes);
	out[bytes] = '\0';
	return EXIT_DONE;
}

static int label_of_cls(const struct archive *a, const struct entry *e, char *out)
{
	int code = EXIT_DONE;
	char *text = read_text(a, e, &code), *at = text;
	size_t bytes;

	if (!text)
		return code;
	at += strspn(at, " \t\r\n");
	bytes = (size_t)(text + e->bytes - at);
	while (bytes && strchr(" \t\r\n", at[bytes - 1]))
		bytes--;
	code = take_label(a, e, at, bytes, out);
	free(text);
	return code;
}

static int label_of_json(const struct archive *a, const struct entry *e, char *out)
{
	const char *key = a->it->request->o->label_key;
	int code = EXIT_DONE;
	char *text = read_text(a, e, &code);
	json_error_t error;
	json_t *object, *value;

	if (!text)
		return code;
	object = json_loadb(text, (size_t)e->bytes, JSON_REJECT_DUPLICATES, &error);
	value = json_object_get(object, key);
	if (!json_is_object(object))
		code = fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 ": %s", a->where, archive_name_of(a, e), e->offset,
			    object ? "not an object" : error.text);
	else if (json_is_integer(value))
		snprintf(out, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_string(value))
		code = take_label(a, e, json_string_value(value), json_string_length(value), out);
	else
		code = fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 ": no text or whole number called %s", a->where, archive_name_of(a, e), e->offset,
			    key);
	json_decref(object);
	free(text);
	return code;
}

/* A sample found, to be added in the order of the archive. */
struct sample {
	uint32_t first; /* member, for the order */
	const struct entry *image, *label; /* label: NULL if it is none of them */
	const struct entry *member; /* all of them */
	uint64_t member_count;
};

static int compare_samples(const void *x, const void *y)
{
	const struct sample *a = x, *b = y;

	return a->first < b->first ? -1 : a->first > b->first;
}

/* The suffix of the member that holds a field. */
static const char *field_suffix(const struct field_source *s)
{
	return field_json_key(s) ? "json" : s->from;
}

/* Is a member that of a field? */
static bool is_of_field(const struct archive *a, const struct entry *e)
{
	const struct recipe *r = a->it->request->recipe;
	uint32_t i;

	for (i = 0; i < r->field_count; i++)
		if (field_has_part(&r->from[i]) && archive_is_suffix(a, e, field_suffix(&r->from[i])))
			return true;
	return false;
}

/* Without labels of its own a sample is an image, and then every image is one, whatever else its suffix says. */
static bool is_image(const struct archive *a, const struct entry *e, bool by_name)
{
	return !is_of_field(a, e) && (is_image_suffix(a, e) || (by_name && items_is_image(archive_name_of(a, e))));
}

static int refuse_twin(const struct archive *a, const struct entry *e, uint64_t i)
{
	uint64_t k;

	for (k = 0; k < i; k++)
		if (strcasecmp(suffix_of(a, &e[k]), suffix_of(a, &e[i])) == 0)
			return fail(EXIT_BAD, "%s: '%s' is there twice, at offsets %" PRIu64 " and %" PRIu64, a->where, archive_name_of(a, &e[i]),
				    e[k].offset, e[i].offset);
	return EXIT_DONE;
}

/* The members [0, n) at `e` have one key.  `label_suffix` NULL: the label is none of them. */
static int settle_sample(struct archive *a, const struct entry *e, uint64_t n, const char *label_suffix, struct sample *out)
{
	uint64_t i, most = limits_most(&a->it->request->recipe->limits, LIMIT_MEMBERS);

	*out = (struct sample){.first = e[0].number, .member = e, .member_count = n};
	if (n > most)
		return fail(EXIT_BAD, "%s: sample '%.*s' at offset %" PRIu64 " has %" PRIu64 " members; the limit is %" PRIu64 " (a key ends at the first dot of a name; --limit members=N allows more)",
			    a->where, (int)e->key_bytes, archive_name_of(a, e), e->offset, n, most);
	for (i = 0; i < n; i++) {
		bool of_field = is_of_field(a, &e[i]), of_label = label_suffix && archive_is_suffix(a, &e[i], label_suffix);
		const struct entry **place = of_label ? &out->label : is_image(a, &e[i], !label_suffix) ? &out->image : NULL;

		if (refuse_twin(a, e, i) != EXIT_DONE)
			return EXIT_BAD;
		if (place && *place)
			return fail(EXIT_BAD, "%s: sample '%.*s' has two images, '%s' at offset %" PRIu64 " and '%s' at %" PRIu64, a->where,
				    (int)e->key_bytes, archive_name_of(a, e), suffix_of(a, *place), (*place)->offset, suffix_of(a, &e[i]), e[i].offset);
		if (place)
			*place = &e[i];
		else
			a->it->request->scan->ignored_count += !of_field;
	}
	if (!out->image || (label_suffix && !out->label))
		return fail(EXIT_BAD, "%s: sample '%.*s' at offset %" PRIu64 " has no %s%s", a->where, (int)e->key_bytes, archive_name_of(a, e),
			    e->offset, out->image ? "." : "image", out->image ? label_suffix : "");
	return EXIT_DONE;
}

/* The tokens of a sample's fields. */
static int find_fields(const struct archive *a, const struct sample *s, struct text *out)
{
	const struct recipe *r = a->it->request->recipe;
	uint64_t k;
	uint32_t i;

	out->bytes = 0;
	for (i = 0; i < r->field_count; i++) {
		const char *suffix = field_suffix(&r->from[i]);

		if (!field_has_part(&r->from[i]))
			continue;
		for (k = 0; k < s->member_count && !archive_is_suffix(a, &s->member[k], suffix); k++)
			;
		if (k < s->member_count)
			field_part_add_member(out, s->member[k].offset, s->member[k].bytes, a->file);
		else if (r->from[i].optional)
			field_part_add_none(out);
		else
			return fail(EXIT_BAD, "%s: sample '%.*s' at offset %" PRIu64 " has no .%s, which --field %s names", a->where,
				    (int)s->image->key_bytes, archive_name_of(a, s->image), s->image->offset, suffix, r->field[i].name);
	}
	return text_failed(out) ? archive_out_of_memory(a) : EXIT_DONE;
}

static int find_label(const struct archive *a, const struct sample *s, char *out)
{
	if (!s->label)
		return archive_find_label(a, s->image, out);
	return a->it->request->o->label_key ? label_of_json(a, s->label, out) : label_of_cls(a, s->label, out);
}

static bool has_image(const struct archive *a, const struct entry *e, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n && !is_image(a, &e[i], true); i++)
		;
	return i < n;
}

/* The members of one key, which begin at a->entry[first]. */
static uint64_t members_from(const struct archive *a, uint64_t first)
{
	uint64_t n;

	for (n = 1; first + n < a->count && same_key(a, &a->entry[first], &a->entry[first + n]); n++)
		;
	return n;
}

int archive_add_samples(struct archive *a, bool by_name)
{
	const char *label_suffix = by_name ? NULL : a->it->request->o->label_key ? "json" : "cls";
	struct sample *sample = calloc(a->count + 1, sizeof(*sample));
	char label[CLASS_NAME_BYTES_MAX + 1];
	struct text fields = {0};
	uint64_t i, n, sample_count = 0;
	int code = sample ? EXIT_DONE : archive_out_of_memory(a);

	if (code == EXIT_DONE)
		qsort_r(a->entry, a->count, sizeof(*a->entry), compare_keys, a);
	for (i = 0; code == EXIT_DONE && i < a->count; i += n) {
		n = members_from(a, i);
		if (a->entry[i].key_bytes && (!by_name || has_image(a, &a->entry[i], n)))
			code = settle_sample(a, &a->entry[i], n, label_suffix, &sample[sample_count++]);
		else
			a->it->request->scan->ignored_count += n;
	}
	if (code == EXIT_DONE)
		qsort(sample, sample_count, sizeof(*sample), compare_samples);
	for (i = 0; code == EXIT_DONE && i < sample_count; i++) {
		code = find_label(a, &sample[i], label);
		if (code == EXIT_DONE)
			code = find_fields(a, &sample[i], &fields);
		if (code == EXIT_DONE)
			code = archive_add(a, sample[i].image, label, &fields);
	}
	text_free(&fields);
	free(sample);
	return code;
}
