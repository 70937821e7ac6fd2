/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webdataset.c - the samples of an archive as WebDataset has them: members of one key
 *
 * Members are sorted by key, so that those of a sample lie side by side; the samples then go to the
 * list of images in the order of the archive.
 */
#include "tools/shardpack/scan/scan.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "libshard/base/utf8.h"
#include "shard_inspect.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/images/file_name.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/parse/json_value.h"
#include "tools/shardpack/parse/json_why.h"
#include "tools/shardpack/plan/bad_input.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"

#define LABEL_BYTES_MAX (UINT64_C(1) << 20) /* of a member that holds one */
#define MEMBERS_BYTES	200		    /* of a list of suffixes in a message */

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

int webdataset_check_keys(const struct image_archive *a)
{
	for (uint64_t i = 0; i < a->count; i++) {
		const struct archive_member *m = &a->member[i];
		const char *name = image_archive_name(a, m);

		if (m->key_bytes && file_name_has_extension(name, ".cls"))
			return fail(
				EXIT_BAD,
				"%s: a key ends at the first dot of a name, so '%s' is no .cls, but the '%s' of the "
				"sample '%.*s'; rename the members so that the only dot is that before cls, or give "
				"labels with --labels FILE or --label-regex RE",
				a->where, name, suffix_of(a, m), (int)m->key_bytes, name);
	}
	return EXIT_DONE;
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

/* All of a member as text, without a byte-order mark; NULL, and *code, if it cannot be. */
static char *read_text(const struct image_archive *a, const struct archive_member *m, size_t *bytes, int *code,
		       struct bad_input *bad)
{
	size_t mark;
	char *text = NULL;

	if (m->bytes > LABEL_BYTES_MAX)
		*code = bad_input(bad, SHARD_MISS_VALUE,
				  "'%.150s' at offset %" PRIu64 " has %" PRIu64
				  " bytes; a label must have at most %" PRIu64,
				  image_archive_name(a, m), m->offset, m->bytes, LABEL_BYTES_MAX);
	else if (!(text = malloc((size_t)m->bytes + 1)))
		*code = image_archive_out_of_memory(a);
	else
		*code = stored_get(a->request->stored, a->file, m->offset, text, (size_t)m->bytes);
	if (*code == EXIT_DONE && utf8_is_utf16(text, (size_t)m->bytes))
		*code = bad_input(bad, SHARD_MISS_VALUE, "'%.150s' at offset %" PRIu64 ": " UTF8_UTF16,
				  image_archive_name(a, m), m->offset);
	if (*code != EXIT_DONE) {
		free(text);
		return NULL;
	}
	mark = utf8_mark(text, (size_t)m->bytes);
	*bytes = (size_t)m->bytes - mark;
	memmove(text, text + mark, *bytes);
	text[*bytes] = '\0';
	return text;
}

static int take_label(const struct image_archive *a, const struct archive_member *m, const char *label, size_t bytes,
		      char *out, struct bad_input *bad)
{
	if (!text_is_name(label, bytes, CLASS_NAME_BYTES_MAX))
		return bad_input(bad, SHARD_MISS_VALUE,
				 "the label in '%.150s' at offset %" PRIu64
				 " must be UTF-8 of 1 to %d bytes; it has %zu",
				 image_archive_name(a, m), m->offset, CLASS_NAME_BYTES_MAX, bytes);
	memcpy(out, label, bytes);
	out[bytes] = '\0';
	return EXIT_DONE;
}

/* `many` is NULL, or gets the labels of an image that may have several. */
static int label_of_cls(const struct image_archive *a, const struct archive_member *m, char *out,
			struct label_list *many, struct bad_input *bad)
{
	int code = EXIT_DONE;
	size_t bytes;
	char *text = read_text(a, m, &bytes, &code, bad), *at = text;

	if (!text)
		return code;
	at += strspn(at, " \t\r\n");
	bytes -= (size_t)(at - text);
	while (bytes && strchr(" \t\r\n", at[bytes - 1]))
		bytes--;
	code = many ? label_list_of_text(a->request, at, bytes, true, many, bad)
		    : take_label(a, m, at, bytes, out, bad);
	free(text);
	return code;
}

static int label_of_json(const struct image_archive *a, const struct archive_member *m, char *out,
			 struct label_list *many, struct bad_input *bad)
{
	const char *key = a->request->o->label_key;
	int code = EXIT_DONE;
	char what[JSON_VALUE_BYTES];
	size_t bytes;
	char *text = read_text(a, m, &bytes, &code, bad);
	json_error_t error;
	json_t *object, *value;

	if (!text)
		return code;
	errno = 0;
	object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	value = json_value_find(object, key);
	if (!object && errno == ENOMEM)
		code = image_archive_out_of_memory(a);
	else if (!json_is_object(object))
		code = bad_input(bad, SHARD_MISS_VALUE, "'%.150s' at offset %" PRIu64 ": %s", image_archive_name(a, m),
				 m->offset, object ? "not an object" : json_why(&error));
	else if (many && value && !json_is_null(value))
		code = label_list_of_json(a->request, value, many, bad);
	else if (json_is_array(value))
		code = bad_input(bad, SHARD_MISS_VALUE,
				 "'%.150s' at offset %" PRIu64 ": %.80s is a list; --multi-label takes several labels",
				 image_archive_name(a, m), m->offset, key);
	else if (json_is_integer(value))
		snprintf(out, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_string(value))
		code = take_label(a, m, json_string_value(value), json_string_length(value), out, bad);
	else if (!value || json_is_null(value))
		code = bad_input(bad, SHARD_MISS_INCOMPLETE,
				 "'%.150s' at offset %" PRIu64 ": %s; --label-key names the key of labels",
				 image_archive_name(a, m), m->offset, json_value_absent(object, key, what));
	else
		code = bad_input(bad, SHARD_MISS_INCOMPLETE,
				 "'%.150s' at offset %" PRIu64
				 ": %.60s is %s; a label must be a whole number or a text",
				 image_archive_name(a, m), m->offset, key, json_value_say(value, what));
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

static int compare_samples(const void *x, const void *y, void *unused)
{
	const struct sample *a = x, *b = y;

	(void)unused;
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

static int refuse_twin(const struct image_archive *a, const struct archive_member *m, uint64_t i, struct bad_input *bad)
{
	for (uint64_t k = 0; k < i; k++)
		if (!strcasecmp(suffix_of(a, &m[k]), suffix_of(a, &m[i])))
			return bad_input(bad, SHARD_MISS_UNSUPPORTED,
					 "'%.150s' appears twice, at offsets %" PRIu64 " and %" PRIu64,
					 image_archive_name(a, &m[i]), m[k].offset, m[i].offset);
	return EXIT_DONE;
}

/* ".heic", in lower case; empty if there is none, or it is long. */
static const char *suffix_with_dot(const struct image_archive *a, const struct archive_member *m,
				   char out[IGNORED_ENDING_BYTES + 1])
{
	const char *suffix = suffix_of(a, m);
	size_t bytes = strlen(suffix);

	out[0] = '\0';
	if (!bytes || bytes >= IGNORED_ENDING_BYTES)
		return out;
	out[0] = '.';
	for (size_t i = 0; i <= bytes; i++)
		out[1 + i] = (char)tolower((unsigned char)suffix[i]);
	return out;
}

/* Does "y.txt" end as this suffix does, with more before it?  NULL: as an image does. */
static bool ends_in_suffix(const char *name, const char *suffix)
{
	char ending[MEMBERS_BYTES];

	if (!suffix)
		return strchr(name, '.') && file_name_is_image(name);
	snprintf(ending, sizeof(ending), ".%s", suffix);
	return file_name_has_extension(name, ending);
}

/* "; its members are .png .y.txt", and a word on one whose name has a dot too many. */
static const char *say_members(const struct image_archive *a, const struct sample *s, const char *suffix,
			       char out[MEMBERS_BYTES])
{
	size_t at = (size_t)snprintf(out, MEMBERS_BYTES, "; its members are");
	const char *other = NULL;

	for (uint64_t i = 0; i < s->member_count; i++) {
		const char *name = suffix_of(a, &s->member[i]);

		if (at < MEMBERS_BYTES / 4)
			at += (size_t)snprintf(out + at, MEMBERS_BYTES - at, " .%.20s", name);
		if (ends_in_suffix(name, suffix))
			other = name;
	}
	if (other)
		snprintf(out + at, MEMBERS_BYTES - at,
			 "; a key ends at the first dot, so '.%.30s' is one suffix: rename the members%s%.30s", other,
			 suffix && strcasecmp(suffix, "cls") ? ", or say from=" : "",
			 suffix && strcasecmp(suffix, "cls") ? other : "");
	return out;
}

/* What a sample must have, and whether the archive is cut within it. */
static int check_sample(const struct image_archive *a, const struct sample *s, const char *label_suffix,
			struct bad_input *bad)
{
	char ending[IGNORED_ENDING_BYTES + 1], members[MEMBERS_BYTES];
	const struct archive_member *m = s->member;

	for (uint64_t i = 0; i < s->member_count; i++)
		if (m[i].kind != MEMBER_FILE)
			return image_archive_blame(a, &m[i], bad);
	for (uint64_t i = 0; !s->image && i < s->member_count; i++)
		if (ignored_is_foreign_image(suffix_with_dot(a, &m[i], ending)))
			return bad_input(bad, SHARD_MISS_INCOMPLETE,
					 "sample '%.*s' at offset %" PRIu64
					 " has no image of a kind that is read: %.60s is none",
					 m->key_bytes < 150 ? (int)m->key_bytes : 150, image_archive_name(a, m),
					 m->offset, ending);
	if (!s->image || (label_suffix && !s->label))
		return bad_input(bad, SHARD_MISS_INCOMPLETE, "sample '%.*s' at offset %" PRIu64 " has no %s%s%s",
				 m->key_bytes < 80 ? (int)m->key_bytes : 80, image_archive_name(a, m), m->offset,
				 s->image ? "." : "image", s->image ? label_suffix : "",
				 say_members(a, s, s->image ? label_suffix : NULL, members));
	for (uint64_t i = 0; a->cut.reason && i < s->member_count; i++)
		if (m[i].number == a->count - 1)
			return bad_input(bad, SHARD_MISS_INCOMPLETE,
					 "is the last sample before the archive is cut, so more of it may be missing");
	return EXIT_DONE;
}

/* Which members of a sample are what.  `label_suffix` NULL: the label is none of them. */
static int settle_sample(const struct image_archive *a, struct sample *s, const char *label_suffix,
			 struct bad_input *bad)
{
	const struct archive_member *m = s->member;
	uint64_t n = s->member_count, most = limits_most(&a->request->recipe->limits, LIMIT_MEMBERS);

	if (n > most)
		return fail(EXIT_BAD,
			    "%s: sample '%.*s' at offset %" PRIu64 " has %" PRIu64 " members; the limit is %" PRIu64
			    " (a key ends at the first dot of a name; --limit members=N allows more)",
			    a->where, (int)m->key_bytes, image_archive_name(a, m), m->offset, n, most);
	for (uint64_t i = 0; i < n; i++) {
		bool of_field = is_of_field(a, &m[i]), of_label = label_suffix && is_suffix(a, &m[i], label_suffix);
		const struct archive_member **place = of_label				  ? &s->label
						      : is_image(a, &m[i], !label_suffix) ? &s->image
											  : NULL;

		if (place && *place && place == &s->image)
			bad_input(bad, SHARD_MISS_UNSUPPORTED,
				  "sample '%.*s' has two images, '%.60s' at offset %" PRIu64 " and '%.60s' at %" PRIu64,
				  m->key_bytes < 100 ? (int)m->key_bytes : 100, image_archive_name(a, m),
				  suffix_of(a, *place), (*place)->offset, suffix_of(a, &m[i]), m[i].offset);
		if (refuse_twin(a, m, i, bad) != EXIT_DONE)
			continue;
		if (place && !*place)
			*place = &m[i];
		else if (!place && !of_field)
			ignored_add(&a->request->scan->ignored, a->path, image_archive_name(a, &m[i]));
	}
	return bad->reason ? EXIT_BAD : check_sample(a, s, label_suffix, bad);
}

/*
 * Does any sample have this key, of a field that may have none?  The plan does not say it, so
 * members are read until one has it.
 */
static int look_for_key(const struct image_archive *a, const struct archive_member *m, uint32_t i)
{
	const char *key = field_json_key(&a->request->recipe->from[i]);
	struct scan *scan = a->request->scan;
	struct bad_input bad = {0};
	char *text, what[JSON_VALUE_BYTES];
	size_t bytes;
	int code = EXIT_DONE;
	json_t *object, *value;

	if (scan->field[i].found || m->bytes > LABEL_BYTES_MAX) {
		scan->field[i].found = true; /* a large one is not judged */
		return EXIT_DONE;
	}
	text = read_text(a, m, &bytes, &code, &bad);
	if (!text)
		return code;
	errno = 0;
	object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	if (!object && errno == ENOMEM)
		code = image_archive_out_of_memory(a);
	value = json_value_find(object, key);
	scan->field[i].found = value && !json_is_null(value);
	if (object && !scan->field[i].found)
		scan_absent(scan, i, "%s: '%s' at offset %" PRIu64 ": %s", a->where, image_archive_name(a, m),
			    m->offset, json_value_absent(object, key, what));
	json_decref(object);
	free(text);
	return code;
}

/* The tokens of a sample's fields. */
static int find_fields(const struct image_archive *a, const struct sample *s, struct text *out, struct bad_input *bad)
{
	const struct recipe *r = a->request->recipe;
	char members[MEMBERS_BYTES];
	uint64_t k;
	int code = EXIT_DONE;

	out->bytes = 0;
	for (uint32_t i = 0; code == EXIT_DONE && i < r->field_count; i++) {
		const char *suffix = field_suffix(&r->from[i]);

		if (!field_has_part(&r->from[i]))
			continue;
		for (k = 0; k < s->member_count && !is_suffix(a, &s->member[k], suffix); k++)
			;
		if (k < s->member_count)
			field_part_add_member(out, s->member[k].offset, s->member[k].bytes, a->file);
		if (k < s->member_count && r->from[i].optional && field_json_key(&r->from[i])) {
			code = look_for_key(a, &s->member[k], i);
		} else if (k == s->member_count && r->from[i].optional) {
			field_part_add_none(out);
			if (!a->request->scan->field[i].absent[0])
				scan_absent(a->request->scan, i, "%s: sample '%.*s' has no .%s%s", a->where,
					    s->image->key_bytes < 100 ? (int)s->image->key_bytes : 100,
					    image_archive_name(a, s->image), suffix,
					    say_members(a, s, suffix, members));
		} else if (k == s->member_count) {
			return bad_input(bad, SHARD_MISS_INCOMPLETE,
					 "sample '%.*s' at offset %" PRIu64 " has no .%s, which --field %s needs%s",
					 s->image->key_bytes < 80 ? (int)s->image->key_bytes : 80,
					 image_archive_name(a, s->image), s->image->offset, suffix, r->field[i].name,
					 say_members(a, s, suffix, members));
		}
	}
	if (code != EXIT_DONE)
		return code;
	return text_failed(out) ? image_archive_out_of_memory(a) : EXIT_DONE;
}

static int find_label(const struct image_archive *a, const struct sample *s, struct labels *labels, char *out,
		      struct label_list *next, struct bad_input *bad)
{
	struct label_list *many = recipe_is_multi_label(a->request->recipe) ? next : NULL;

	if (!s->label)
		return image_archive_label(a, s->image, labels, out, bad);
	out[0] = '\0';
	return a->request->o->label_key ? label_of_json(a, s->label, out, many, bad)
					: label_of_cls(a, s->label, out, many, bad);
}

static bool has_image(const struct image_archive *a, const struct archive_member *m, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n && !is_image(a, &m[i], true); i++)
		;
	return i < n;
}

/* Members of one key, with an image if nothing else makes a sample of them. */
static bool is_sample(const struct image_archive *a, const struct archive_member *m, uint64_t n, bool by_name)
{
	return m->key_bytes && (!by_name || has_image(a, m, n));
}

/* The members of one key, which begin at a->member[first]. */
static uint64_t members_from(const struct image_archive *a, uint64_t first)
{
	uint64_t n;

	for (n = 1; first + n < a->count && same_key(a, &a->member[first], &a->member[first + n]); n++)
		;
	return n;
}

/* The sample, good or bad.  Of a bad one, too, the label tells which classes there are. */
static int add_sample(const struct image_archive *a, struct sample *s, const char *label_suffix, struct labels *labels,
		      struct text *fields, struct image_list *images)
{
	char label[CLASS_NAME_BYTES_MAX + 1];
	struct bad_input bad = {0}, no_label = {0};
	int code = settle_sample(a, s, label_suffix, &bad);
	bool has_label = s->label ? s->label->kind == MEMBER_FILE : s->image && !label_suffix;

	if (code != EXIT_DONE && !bad.reason)
		return code;
	code = has_label ? find_label(a, s, labels, label, &images->next, &no_label) : EXIT_DONE;
	if (code != EXIT_DONE && !no_label.reason)
		return code;
	if (no_label.reason && !bad.reason)
		bad = no_label;
	if (!bad.reason)
		code = find_fields(a, s, fields, &bad);
	if (bad.reason)
		return image_archive_add(a, s->image ? s->image : s->member,
					 has_label && !no_label.reason ? label : NULL, fields, &bad, images);
	return code == EXIT_DONE ? image_archive_add(a, s->image, label, fields, NULL, images) : code;
}

/* A link to what may be a folder, or of a name without a key: no sample, but not to be ignored. */
static int add_single(const struct image_archive *a, const struct archive_member *m, struct image_list *images)
{
	static const struct text no_fields;
	struct bad_input bad = {0};

	image_archive_blame(a, m, &bad);
	return image_archive_add(a, m, NULL, &no_fields, &bad, images);
}

int webdataset_add(struct image_archive *a, bool by_name, struct labels *labels, struct image_list *images)
{
	const char *label_suffix = by_name ? NULL : a->request->o->label_key ? "json" : "cls";
	struct shelf *shelf = a->names.shelf;
	struct sample *sample = NULL;
	struct text fields = {0};
	uint64_t n, sample_count = 0, capacity = 0;
	int code = EXIT_DONE;

	if (!shelf_sort(shelf, a->member, a->count, sizeof(*a->member), compare_keys, a))
		code = image_archive_out_of_memory(a);
	for (uint64_t i = 0; code == EXIT_DONE && i < a->count; i += n) {
		const struct archive_member *m = &a->member[i];

		n = m->key_bytes ? members_from(a, i) : 0;
		if (!n || (by_name && !has_image(a, m, n)))
			n = 1; /* of no sample */
		if (m->kind == MEMBER_FILE && !is_sample(a, m, n, by_name))
			ignored_add(&a->request->scan->ignored, a->path, image_archive_name(a, m));
		else if (grow_on(shelf, &sample, &capacity, sample_count + 1, sizeof(*sample)))
			sample[sample_count++] = (struct sample){.first = m->number, .member = m, .member_count = n};
		else
			code = image_archive_out_of_memory(a);
	}
	if (code == EXIT_DONE && !shelf_sort(shelf, sample, sample_count, sizeof(*sample), compare_samples, NULL))
		code = image_archive_out_of_memory(a);
	for (uint64_t i = 0; code == EXIT_DONE && i < sample_count; i++) {
		const struct archive_member *m = sample[i].member;

		fields.bytes = 0;
		code = is_sample(a, m, sample[i].member_count, by_name)
			       ? add_sample(a, &sample[i], label_suffix, labels, &fields, images)
			       : add_single(a, m, images);
	}
	text_free(&fields);
	shelf_free(shelf, sample);
	return code;
}
