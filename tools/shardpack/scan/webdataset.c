/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webdataset.c - the samples of an archive as WebDataset has them: members of one key
 *
 * Members are sorted by key, so that those of a sample lie side by side; the samples then go to the
 * list of images in the order of the archive.
 */
#include "tools/shardpack/scan/webdataset.h"

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
#include "tools/shardpack/scan/file_name.h"
#include "tools/shardpack/scan/image_archive.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

#define LABEL_BYTES_MAX (UINT64_C(1) << 20) /* of a member that holds one */

/* What stands behind the dot that ends the key; empty if there is no key. */
static const char *suffix_of(const struct image_archive *a, const struct archive_member *m)
{
	return m->key_bytes ? image_archive_name(a, m) + m->key_bytes + 1 : "";
}

static bool is_suffix(const struct image_archive *a, const struct archive_member *m, const char *suffix)
{
	return !strcasecmp(suffix_of(a, m), suffix);
}

bool webdataset_has_labels(const struct image_archive *a)
{
	for (uint64_t i = 0; i < a->count; i++)
		if (is_suffix(a, &a->member[i], "cls"))
			return true;
	return false;
}

static int compare_keys(const void *x, const void *y, void *context)
{
	const struct image_archive *a = context;
	const struct archive_member *b = x, *c = y;
	uint32_t least = b->key_bytes < c->key_bytes ? b->key_bytes : c->key_bytes;
	int order = memcmp(image_archive_name(a, b), image_archive_name(a, c), least);

	if (!order && b->key_bytes != c->key_bytes)
		order = b->key_bytes < c->key_bytes ? -1 : 1;
	return order ? order : b->number < c->number ? -1 : b->number > c->number;
}

static bool same_key(const struct image_archive *a, const struct archive_member *x, const struct archive_member *y)
{
	return x->key_bytes == y->key_bytes &&
	       !memcmp(image_archive_name(a, x), image_archive_name(a, y), x->key_bytes);
}

/* All of a member as text; NULL, and *code, if it cannot be. */
static char *read_text(const struct image_archive *a, const struct archive_member *m, int *code)
{
	char *text = NULL;

	if (m->bytes > LABEL_BYTES_MAX)
		*code = fail(EXIT_BAD,
			     "%s: '%s' at offset %" PRIu64 " has %" PRIu64 " bytes; a label must have at "
			     "most %" PRIu64,
			     a->where, image_archive_name(a, m), m->offset, m->bytes, LABEL_BYTES_MAX);
	else if (!(text = malloc((size_t)m->bytes + 1)))
		*code = image_archive_out_of_memory(a);
	else
		*code = stored_get(a->request->stored, a->file, m->offset, text, (size_t)m->bytes);
	if (*code != EXIT_DONE) {
		free(text);
		return NULL;
	}
	text[m->bytes] = '\0';
	return text;
}

static int take_label(const struct image_archive *a, const struct archive_member *m, const char *label, size_t bytes,
		      char *out)
{
	if (!text_is_name(label, bytes, CLASS_NAME_BYTES_MAX))
		return fail(EXIT_BAD,
			    "%s: the label in '%s' at offset %" PRIu64 " must be UTF-8 of 1 to %d bytes; it "
			    "has %zu",
			    a->where, image_archive_name(a, m), m->offset, CLASS_NAME_BYTES_MAX, bytes);
	memcpy(out, label, bytes);
	out[bytes] = '\0';
	return EXIT_DONE;
}

static int label_of_cls(const struct image_archive *a, const struct archive_member *m, char *out)
{
	int code = EXIT_DONE;
	char *text = read_text(a, m, &code), *at = text;
	size_t bytes;

	if (!text)
		return code;
	at += strspn(at, " \t\r\n");
	bytes = (size_t)(text + m->bytes - at);
	while (bytes && strchr(" \t\r\n", at[bytes - 1]))
		bytes--;
	code = take_label(a, m, at, bytes, out);
	free(text);
	return code;
}

static int label_of_json(const struct image_archive *a, const struct archive_member *m, char *out)
{
	const char *key = a->request->o->label_key;
	int code = EXIT_DONE;
	char *text = read_text(a, m, &code);
	json_error_t error;
	json_t *object, *value;

	if (!text)
		return code;
	object = json_loadb(text, (size_t)m->bytes, JSON_REJECT_DUPLICATES, &error);
	value = json_object_get(object, key);
	if (!json_is_object(object))
		code = fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 ": %s", a->where, image_archive_name(a, m),
			    m->offset, object ? "not an object" : error.text);
	else if (json_is_integer(value))
		snprintf(out, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_string(value))
		code = take_label(a, m, json_string_value(value), json_string_length(value), out);
	else
		code = fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 ": no text or whole number called %s", a->where,
			    image_archive_name(a, m), m->offset, key);
	json_decref(object);
	free(text);
	return code;
}

/* A sample found, to be added in the order of the archive. */
struct sample {
	uint32_t first;				    /* member, for the order */
	const struct archive_member *image, *label; /* label: NULL if it is none of them */
	const struct archive_member *member;	    /* all of them */
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
static bool is_of_field(const struct image_archive *a, const struct archive_member *m)
{
	const struct recipe *r = a->request->recipe;
	for (uint32_t i = 0; i < r->field_count; i++)
		if (field_has_part(&r->from[i]) && is_suffix(a, m, field_suffix(&r->from[i])))
			return true;
	return false;
}

/* By its suffix; or by its whole name if the label is no member: then every image is a sample. */
static bool is_image(const struct image_archive *a, const struct archive_member *m, bool by_name)
{
	return !is_of_field(a, m) && (file_name_is_image_suffix(suffix_of(a, m)) ||
				      (by_name && file_name_is_image(image_archive_name(a, m))));
}

static int refuse_twin(const struct image_archive *a, const struct archive_member *m, uint64_t i)
{
	for (uint64_t k = 0; k < i; k++)
		if (!strcasecmp(suffix_of(a, &m[k]), suffix_of(a, &m[i])))
			return fail(EXIT_BAD, "%s: '%s' appears twice, at offsets %" PRIu64 " and %" PRIu64, a->where,
				    image_archive_name(a, &m[i]), m[k].offset, m[i].offset);
	return EXIT_DONE;
}

/* The members [0, n) at `e` have one key.  `label_suffix` NULL: the label is none of them. */
static int settle_sample(struct image_archive *a, const struct archive_member *m, uint64_t n, const char *label_suffix,
			 struct sample *out)
{
	uint64_t most = limits_most(&a->request->recipe->limits, LIMIT_MEMBERS);

	*out = (struct sample){.first = m[0].number, .member = m, .member_count = n};
	if (n > most)
		return fail(EXIT_BAD,
			    "%s: sample '%.*s' at offset %" PRIu64 " has %" PRIu64 " members; the limit is %" PRIu64
			    " (a key ends at the first dot of a name; --limit members=N allows more)",
			    a->where, (int)m->key_bytes, image_archive_name(a, m), m->offset, n, most);
	for (uint64_t i = 0; i < n; i++) {
		bool of_field = is_of_field(a, &m[i]), of_label = label_suffix && is_suffix(a, &m[i], label_suffix);
		const struct archive_member **place = of_label				  ? &out->label
						      : is_image(a, &m[i], !label_suffix) ? &out->image
											  : NULL;

		if (refuse_twin(a, m, i) != EXIT_DONE)
			return EXIT_BAD;
		if (place && *place)
			return fail(EXIT_BAD,
				    "%s: sample '%.*s' has two images, '%s' at offset %" PRIu64 " and '%s' at %" PRIu64,
				    a->where, (int)m->key_bytes, image_archive_name(a, m), suffix_of(a, *place),
				    (*place)->offset, suffix_of(a, &m[i]), m[i].offset);
		if (place)
			*place = &m[i];
		else
			a->request->scan->ignored_count += !of_field;
	}
	if (!out->image || (label_suffix && !out->label))
		return fail(EXIT_BAD, "%s: sample '%.*s' at offset %" PRIu64 " has no %s%s", a->where,
			    (int)m->key_bytes, image_archive_name(a, m), m->offset, out->image ? "." : "image",
			    out->image ? label_suffix : "");
	return EXIT_DONE;
}

/* The tokens of a sample's fields. */
static int find_fields(const struct image_archive *a, const struct sample *s, struct text *out)
{
	const struct recipe *r = a->request->recipe;
	uint64_t k;
	out->bytes = 0;
	for (uint32_t i = 0; i < r->field_count; i++) {
		const char *suffix = field_suffix(&r->from[i]);

		if (!field_has_part(&r->from[i]))
			continue;
		for (k = 0; k < s->member_count && !is_suffix(a, &s->member[k], suffix); k++)
			;
		if (k < s->member_count)
			field_part_add_member(out, s->member[k].offset, s->member[k].bytes, a->file);
		else if (r->from[i].optional)
			field_part_add_none(out);
		else
			return fail(EXIT_BAD,
				    "%s: sample '%.*s' at offset %" PRIu64 " has no .%s, which --field %s "
				    "needs",
				    a->where, (int)s->image->key_bytes, image_archive_name(a, s->image),
				    s->image->offset, suffix, r->field[i].name);
	}
	return text_failed(out) ? image_archive_out_of_memory(a) : EXIT_DONE;
}

static int find_label(const struct image_archive *a, const struct sample *s, struct labels *labels, char *out)
{
	if (!s->label)
		return image_archive_label(a, s->image, labels, out);
	return a->request->o->label_key ? label_of_json(a, s->label, out) : label_of_cls(a, s->label, out);
}

static bool has_image(const struct image_archive *a, const struct archive_member *m, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n && !is_image(a, &m[i], true); i++)
		;
	return i < n;
}

/* The members of one key, which begin at a->member[first]. */
static uint64_t members_from(const struct image_archive *a, uint64_t first)
{
	uint64_t n;

	for (n = 1; first + n < a->count && same_key(a, &a->member[first], &a->member[first + n]); n++)
		;
	return n;
}

int webdataset_add(struct image_archive *a, bool by_name, struct labels *labels, struct image_list *images)
{
	const char *label_suffix = by_name ? NULL : a->request->o->label_key ? "json" : "cls";
	struct sample *sample = calloc(a->count + 1, sizeof(*sample));
	char label[CLASS_NAME_BYTES_MAX + 1];
	struct text fields = {0};
	uint64_t n, sample_count = 0;
	int code = sample ? EXIT_DONE : image_archive_out_of_memory(a);

	if (code == EXIT_DONE)
		qsort_r(a->member, a->count, sizeof(*a->member), compare_keys, a);
	for (uint64_t i = 0; code == EXIT_DONE && i < a->count; i += n) {
		n = members_from(a, i);
		if (a->member[i].key_bytes && (!by_name || has_image(a, &a->member[i], n)))
			code = settle_sample(a, &a->member[i], n, label_suffix, &sample[sample_count++]);
		else
			a->request->scan->ignored_count += n;
	}
	if (code == EXIT_DONE)
		qsort(sample, sample_count, sizeof(*sample), compare_samples);
	for (uint64_t i = 0; code == EXIT_DONE && i < sample_count; i++) {
		code = find_label(a, &sample[i], labels, label);
		if (code == EXIT_DONE)
			code = find_fields(a, &sample[i], &fields);
		if (code == EXIT_DONE)
			code = image_archive_add(a, sample[i].image, label, &fields, images);
	}
	text_free(&fields);
	free(sample);
	return code;
}
