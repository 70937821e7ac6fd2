/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_archive.c - the members of a tar archive or a ZIP, and the images among them
 */
#include "tools/shardpack/scan/scan.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "libshard/base/utf8.h"
#include "shard_pack.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/json_value.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"

enum archive_kind {
	MEMBER_FILE,
	MEMBER_LINK,  /* it may stand for an image, a field or a folder of images */
	MEMBER_OTHER, /* a device, called like an image */
};

/* A member that may be of use.  One that is not a file makes a bad input of what it belongs to. */
struct archive_member {
	uint64_t name_at; /* in names */
	/*
	 * of the name, up to the first dot of its last component; 0: there is none, or WebDataset
	 * passes over it
	 */
	uint32_t key_bytes;
	uint32_t number; /* in the order of the archive */
	enum archive_kind kind;
	uint64_t offset, bytes; /* of one that is not a file: of its header, and 0 */
};

struct image_archive {
	const struct request *request;
	struct image_list *images; /* where its samples go */
	const char *path;	   /* below the root */
	char *where;		   /* for messages */
	uint32_t file;		   /* of the plan: where the members lie */
	struct text names;	   /* its shelf has the members, too */
	struct archive_member *member;
	uint64_t count, capacity;
	/*
	 * Why nothing can be said of what follows the last member; no reason if that is the end.
	 * Then the rest is one bad input, and so is a sample that the cut may go through.
	 */
	struct bad_input cut;
};

static int out_of_memory(const struct image_archive *a)
{
	return shelf_refuse(a->names.shelf, "a list of %" PRIu64 " members of %s", a->count, a->where);
}

static const char *name_of(const struct image_archive *a, const struct archive_member *e)
{
	return a->names.data + e->name_at;
}

/* ---- what is in it ---- */

/* WebDataset passes over members of a folder called so. */
static bool is_meta(const char *name)
{
	size_t bytes = strcspn(name, "/");

	return name[bytes] && bytes >= 4 && !memcmp(name, "__", 2) && !memcmp(name + bytes - 2, "__", 2);
}

static int add_member(struct image_archive *a, const char *name, enum archive_kind kind, uint64_t offset,
		      uint64_t bytes)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strchr(base, '.');

	if (!strncmp(name, "__MACOSX/", 9)) { /* macOS adds such members; nothing in them is of the user */
		ignored_add(&a->request->scan->ignored, a->path, name);
		return EXIT_DONE;
	}
	if (!grow_on(a->names.shelf, &a->member, &a->capacity, a->count + 1, sizeof(*a->member)))
		return out_of_memory(a);
	a->member[a->count] =
		(struct archive_member){.name_at = a->names.bytes,
					.number = (uint32_t)a->count,
					.kind = kind,
					.offset = offset,
					.bytes = bytes,
					.key_bytes = dot && dot > base && !is_meta(name) ? (uint32_t)(dot - name) : 0};
	text_add(&a->names, name, strlen(name) + 1);
	if (text_failed(&a->names) || ++a->count == UINT32_MAX)
		return out_of_memory(a);
	return EXIT_DONE;
}

static int add_tar_member(struct image_archive *a, const struct tar_member *m)
{
	if (m->kind == TAR_FILE)
		return add_member(a, m->name, MEMBER_FILE, m->offset, m->bytes);
	if (m->kind == TAR_LINK)
		return add_member(a, m->name, MEMBER_LINK, m->header_offset, 0);
	if (m->kind == TAR_OTHER && file_name_is_image(m->name))
		return add_member(a, m->name, MEMBER_OTHER, m->header_offset, 0);
	if (m->kind != TAR_FOLDER)
		ignored_add(&a->request->scan->ignored, a->path, m->name);
	return EXIT_DONE;
}

static bool read_stored(void *context, uint64_t offset, void *out, size_t bytes)
{
	const struct image_archive *a = context;

	return source_file_get(a->request->source_files, a->file, offset, out, bytes) == EXIT_DONE;
}

static int list_tar(struct image_archive *a)
{
	char why[TAR_WHY_BYTES] = "";
	struct tar t = {.bytes = source_file_bytes(a->request->source_files, a->file),
			.read = read_stored,
			.context = a,
			.why = why};
	struct tar_member *m = xmalloc(1, sizeof(*m));
	struct progress progress;
	enum tar_status status = TAR_MEMBER;
	int rc = EXIT_DONE;

	progress_start(&progress, "listing", "members", 0);
	while (rc == EXIT_DONE && (status = tar_next(&t, m)) == TAR_MEMBER) {
		rc = interrupted() ? EXIT_INTERRUPTED : add_tar_member(a, m);
		progress_add(&progress, 1, 0, 0);
		progress_tick(&progress);
	}
	progress_abandon(&progress);
	free(m);
	if (rc != EXIT_DONE || status != TAR_BAD)
		return rc;
	if (!why[0])
		return EXIT_IO;
	if (!a->count && !file_name_is_archive(a->path))
		return fail(EXIT_BAD,
			    "%s: by its name it is not an image, a table (.csv, .tsv, .jsonl), a .json of COCO or an "
			    "archive (.tar, .zip and others), and it is not a tar: %s",
			    a->where, why);
	bad_input(&a->cut, SHARD_MISS_MEMBER, "%s; what follows of this archive is left out", why);
	return EXIT_DONE;
}

/* Nothing of it can be used. */
static int give_up(struct image_archive *a, const char *why)
{
	a->count = 0;
	a->names.bytes = 0;
	bad_input(&a->cut, SHARD_MISS_MEMBER, "%s; nothing of this archive is packed", why);
	return EXIT_DONE;
}

/* Members of a ZIP, where they will lie once it is unpacked: one behind the other. */
static int list_zip(struct image_archive *a)
{
	char why[ZIP_WHY_BYTES] = "";
	struct zip z = {.bytes = source_file_bytes(a->request->source_files, a->file),
			.read = read_stored,
			.context = a,
			.why = why};
	struct zip_member *m = xmalloc(1, sizeof(*m));
	enum zip_status status = ZIP_END;
	char name[ZIP_NAME_BYTES_MAX + 1];
	uint64_t at = 0, unpacked = 0;
	int rc = EXIT_DONE;

	while (rc == EXIT_DONE && (status = zip_next(&z, m)) == ZIP_MEMBER) {
		if (!text_settle_path(m->name, m->name_bytes, name, sizeof(name)))
			rc = fail(EXIT_BAD,
				  "%s: the member at offset %" PRIu64 " has a name that is too long, or "
				  "leads out of the archive: '%s'; make the archive again from the folder "
				  "that holds all its files",
				  a->where, m->offset, m->name);
		else if (m->is_link)
			rc = add_member(a, name, MEMBER_LINK, at, 0);
		else if (m->bytes > UINT64_MAX / 4 - at)
			rc = fail(EXIT_BAD, "%s: '%s' has %" PRIu64 " bytes, more than any disk holds", a->where,
				  m->name, m->bytes);
		else if (m->name[m->name_bytes - 1] != '/')
			rc = add_member(a, name, MEMBER_FILE, at, m->bytes);
		at += m->bytes;
		unpacked += m->bytes > UNPACK_MEMBER_BYTES_MAX ? 0 : m->bytes;
	}
	free(m);
	if (rc == EXIT_DONE && status == ZIP_BAD)
		return why[0] ? give_up(a, why) : EXIT_IO;
	if (rc == EXIT_DONE)
		rc = source_files_unpack(a->request->source_files, a->request->plan, a->file, "zip", unpacked,
					 &a->file);
	return rc == EXIT_BAD ? give_up(a, "cannot be unpacked") : rc;
}

static int list_members(struct image_archive *a)
{
	const struct request *r = a->request;
	const char *path = a->path;
	struct stat st;
	bool there;
	int rc = source_root_stat(r->root, path, &st, &there, &a->cut);

	if (rc != EXIT_DONE)
		return bad_input_is(&a->cut, rc) ? EXIT_DONE : rc;
	rc = input_file_open(r, path, &a->file);
	if (rc == EXIT_BAD && file_name_is_archive(path))
		return give_up(a, "cannot be unpacked");
	if (rc == EXIT_DONE)
		rc = file_name_has_extension(path, ".zip") ? list_zip(a) : list_tar(a);
	return rc;
}

/* ---- each image a sample ---- */

static bool has_json(const struct image_archive *a)
{
	for (uint64_t i = 0; i < a->count; i++)
		if (file_name_has_extension(name_of(a, &a->member[i]), ".json"))
			return true;
	return false;
}

/* The label of an image by its name or folder, as labels_find() has it. */
static int label_by_name(const struct image_archive *a, const struct archive_member *image, char *out,
			 struct bad_input *bad)
{
	char folder[PLAN_PATH_BYTES_MAX], where[3 * TAR_NAME_BYTES_MAX];
	const char *name = name_of(a, image);

	snprintf(where, sizeof(where), "%s/%s", a->where, name);
	if (image_folder(name, folder))
		return labels_find(a->images->labels, where, name, folder, out, bad);
	if (a->cut.reason && !labels_given(a->request->o))
		return bad_input(bad, SHARD_MISS_INCOMPLETE, "is in no class folder, and the archive is cut");
	if (!labels_given(a->request->o) && has_json(a))
		return labels_missing(where, ", --label-key NAME (a key of the .json members)");
	return labels_find(a->images->labels, where, name, NULL, out, bad);
}

/*
 * Add an image.  `fields`: as of image_list_add().  With `bad` it is a bad one, and `label` may be
 * NULL; a member without bytes has offset 0.
 */
static int add_input(const struct image_archive *a, const struct archive_member *image, const char *label,
		     const struct text *fields, const struct bad_input *bad)
{
	char path[PLAN_PATH_BYTES_MAX];
	int bytes = snprintf(path, sizeof(path), "%s/%s", a->path, name_of(a, image));

	if (bytes < 0 || bytes >= (int)sizeof(path))
		return fail(EXIT_BAD, "%s/%s: a path of %d bytes; the limit is %zu", a->where, name_of(a, image), bytes,
			    sizeof(path) - 1);
	if (bad)
		return image_list_add_bad(a->images, path, label, image->bytes, image->bytes ? a->file : PLAN_NO_FILE,
					  image->bytes ? image->offset : 0, bad);
	return image_list_add(a->images, path, label, image->bytes, a->file, image->offset, fields);
}

/* "._x.jpg", which macOS adds beside x.jpg: it is not an image, whatever its name says. */
static int is_apple_double(const struct image_archive *a, const struct archive_member *e, bool *is)
{
	const char *slash = strrchr(name_of(a, e), '/'), *base = slash ? slash + 1 : name_of(a, e);
	char magic[4] = "";
	int rc = EXIT_DONE;

	*is = false;
	if (strncmp(base, "._", 2) || e->bytes < sizeof(magic))
		return EXIT_DONE;
	rc = source_file_get(a->request->source_files, a->file, e->offset, magic, sizeof(magic));
	*is = rc == EXIT_DONE && !memcmp(magic, "\0\5\26\7", sizeof(magic));
	return rc;
}

/* What is wrong with a member that is not a file. */
static int blame(const struct image_archive *a, const struct archive_member *m, struct bad_input *bad)
{
	bool zip = file_name_has_extension(a->path, ".zip");

	if (m->kind == MEMBER_LINK)
		return zip ? bad_input(bad, SHARD_MISS_MEMBER, "'%.150s' is a link; make the archive again without -y",
				       name_of(a, m))
			   : bad_input(bad, SHARD_MISS_MEMBER,
				       "'%.150s' at offset %" PRIu64 " is a link; make the archive again with "
				       "--dereference --hard-dereference",
				       name_of(a, m), m->offset);
	return bad_input(bad, SHARD_MISS_MEMBER,
			 "'%.150s' at offset %" PRIu64 " is neither file, folder nor link; make the archive again "
			 "without it",
			 name_of(a, m), m->offset);
}

/* A member that is bad input by itself.  If it is called like an image, its label may be known. */
static int add_no_file(const struct image_archive *a, const struct archive_member *m)
{
	char label[CLASS_NAME_BYTES_MAX + 1];
	const char *name = name_of(a, m);
	bool known = file_name_is_image(name) && (strchr(name, '/') || labels_given(a->request->o));
	struct bad_input bad = {0}, no_label = {0};
	int rc = known ? label_by_name(a, m, label, &no_label) : EXIT_DONE;

	if (rc != EXIT_DONE && !no_label.reason)
		return rc;
	blame(a, m, &bad);
	return add_input(a, m, known && !no_label.reason ? label : NULL, NULL, &bad);
}

static int add_images(const struct image_archive *a)
{
	char label[CLASS_NAME_BYTES_MAX + 1];
	struct bad_input bad = {0};
	int rc = EXIT_DONE;

	for (uint64_t i = 0; rc == EXIT_DONE && i < a->count; i++) {
		const struct archive_member *m = &a->member[i];
		bool other = !file_name_is_image(name_of(a, m)) && m->kind != MEMBER_LINK;

		if (m->kind != MEMBER_FILE) {
			rc = add_no_file(a, m);
			continue;
		}
		if (!other)
			rc = is_apple_double(a, m, &other);
		if (rc == EXIT_DONE && other)
			ignored_add(&a->request->scan->ignored, a->path, name_of(a, m));
		if (rc != EXIT_DONE || other)
			continue;
		bad.reason = 0;
		rc = label_by_name(a, m, label, &bad);
		if (rc == EXIT_DONE || bad_input_is(&bad, rc))
			rc = add_input(a, m, bad.reason ? NULL : label, NULL, bad.reason ? &bad : NULL);
	}
	return rc;
}

/* ---- samples as WebDataset has them: members of one key ---- */

/* Members are sorted by key, so that those of a sample lie side by side. */

#define LABEL_BYTES_MAX (UINT64_C(1) << 20) /* of a member that holds one */
#define MEMBERS_BYTES	200		    /* of a list of suffixes in a message */

/* What stands behind the dot that ends the key; empty if there is no key. */
static const char *suffix_of(const struct image_archive *a, const struct archive_member *m)
{
	return m->key_bytes ? name_of(a, m) + m->key_bytes + 1 : "";
}

static bool is_suffix(const struct image_archive *a, const struct archive_member *m, const char *suffix)
{
	return !strcasecmp(suffix_of(a, m), suffix);
}

/* Are there members that end in .cls? */
static bool has_label_members(const struct image_archive *a)
{
	for (uint64_t i = 0; i < a->count; i++)
		if (is_suffix(a, &a->member[i], "cls"))
			return true;
	return false;
}

/*
 * Without labels in members: refuse an archive with a member such as img.v1.cls.  Its sample is
 * "img", so it would not be a label, and the folder would be the class.
 */
static int check_keys(const struct image_archive *a)
{
	for (uint64_t i = 0; i < a->count; i++) {
		const struct archive_member *m = &a->member[i];
		const char *name = name_of(a, m);

		if (m->key_bytes && file_name_has_extension(name, ".cls"))
			return fail(
				EXIT_BAD,
				"%s: a key ends at the first dot of a name, so '%s' is not a .cls, but the '%s' of the "
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
	int order = memcmp(name_of(a, b), name_of(a, c), least);

	if (!order && b->key_bytes != c->key_bytes)
		order = b->key_bytes < c->key_bytes ? -1 : 1;
	return order ? order : b->number < c->number ? -1 : b->number > c->number;
}

/* All of a member as text, without a byte-order mark; NULL, and *rc, if it cannot be. */
static char *read_text(const struct image_archive *a, const struct archive_member *m, size_t *bytes, int *rc,
		       struct bad_input *bad)
{
	size_t mark;
	char *text = NULL;

	if (m->bytes > LABEL_BYTES_MAX)
		*rc = bad_input(bad, SHARD_MISS_VALUE,
				"'%.150s' at offset %" PRIu64 " has %" PRIu64
				" bytes; a label must have at most %" PRIu64,
				name_of(a, m), m->offset, m->bytes, LABEL_BYTES_MAX);
	if (*rc == EXIT_DONE) {
		text = xmalloc((size_t)m->bytes + 1, 1);
		*rc = source_file_get(a->request->source_files, a->file, m->offset, text, (size_t)m->bytes);
	}
	if (*rc == EXIT_DONE && utf8_is_utf16(text, (size_t)m->bytes))
		*rc = bad_input(bad, SHARD_MISS_VALUE, "'%.150s' at offset %" PRIu64 ": " UTF8_UTF16, name_of(a, m),
				m->offset);
	if (*rc != EXIT_DONE) {
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
				 name_of(a, m), m->offset, CLASS_NAME_BYTES_MAX, bytes);
	memcpy(out, label, bytes);
	out[bytes] = '\0';
	return EXIT_DONE;
}

/* `many` is NULL, or gets the labels of an image that may have several. */
static int label_of_cls(const struct image_archive *a, const struct archive_member *m, char *out,
			struct label_list *many, struct bad_input *bad)
{
	int rc = EXIT_DONE;
	size_t bytes;
	char *text = read_text(a, m, &bytes, &rc, bad), *at = text;

	if (!text)
		return rc;
	at += strspn(at, " \t\r\n");
	bytes -= (size_t)(at - text);
	while (bytes && strchr(" \t\r\n", at[bytes - 1]))
		bytes--;
	rc = many ? label_list_of_text(a->request, at, bytes, true, many, bad) : take_label(a, m, at, bytes, out, bad);
	free(text);
	return rc;
}

static int label_of_json(const struct image_archive *a, const struct archive_member *m, char *out,
			 struct label_list *many, struct bad_input *bad)
{
	const char *key = a->request->o->label_key;
	int rc = EXIT_DONE;
	char what[JSON_VALUE_BYTES];
	size_t bytes;
	char *text = read_text(a, m, &bytes, &rc, bad);
	json_error_t error;
	json_t *object, *value;

	if (!text)
		return rc;
	errno = 0;
	object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	value = json_value_find(object, key);
	if (!object && errno == ENOMEM)
		rc = out_of_memory(a);
	else if (!json_is_object(object))
		rc = bad_input(bad, SHARD_MISS_VALUE, "'%.150s' at offset %" PRIu64 ": %s", name_of(a, m), m->offset,
			       object ? "not an object" : json_why(&error));
	else if (many && value && !json_is_null(value))
		rc = label_list_of_json(a->request, value, many, bad);
	else if (json_is_array(value))
		rc = bad_input(bad, SHARD_MISS_VALUE,
			       "'%.150s' at offset %" PRIu64 ": %.80s is a list; --multi-label takes several labels",
			       name_of(a, m), m->offset, key);
	else if (json_is_integer(value))
		snprintf(out, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_string(value))
		rc = take_label(a, m, json_string_value(value), json_string_length(value), out, bad);
	else if (!value || json_is_null(value))
		rc = bad_input(bad, SHARD_MISS_INCOMPLETE,
			       "'%.150s' at offset %" PRIu64 ": %s; --label-key names the key of labels", name_of(a, m),
			       m->offset, json_value_absent(object, key, what));
	else
		rc = bad_input(bad, SHARD_MISS_INCOMPLETE,
			       "'%.150s' at offset %" PRIu64 ": %.60s is %s; a label must be a whole number or a text",
			       name_of(a, m), m->offset, key, json_value_say(value, what));
	json_decref(object);
	free(text);
	return rc;
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

/* By its suffix; or by its whole name if the label is not a member: then every image is a sample. */
static bool is_image(const struct image_archive *a, const struct archive_member *m, bool by_name)
{
	return !is_of_field(a, m) &&
	       (file_name_is_image_suffix(suffix_of(a, m)) || (by_name && file_name_is_image(name_of(a, m))));
}

static int refuse_twin(const struct image_archive *a, const struct archive_member *m, uint64_t i, struct bad_input *bad)
{
	for (uint64_t k = 0; k < i; k++)
		if (!strcasecmp(suffix_of(a, &m[k]), suffix_of(a, &m[i])))
			return bad_input(bad, SHARD_MISS_UNSUPPORTED,
					 "'%.150s' appears twice, at offsets %" PRIu64 " and %" PRIu64,
					 name_of(a, &m[i]), m[k].offset, m[i].offset);
	return EXIT_DONE;
}

/*
 * "; its members are .png .y.txt", and a word on one whose name has a dot too many.  `suffix` is the
 * one that was looked for; NULL: that of an image.
 */
static const char *say_members(const struct image_archive *a, const struct sample *s, const char *suffix,
			       char out[MEMBERS_BYTES])
{
	size_t at = (size_t)snprintf(out, MEMBERS_BYTES, "; its members are");
	const char *other = NULL;
	char ending[MEMBERS_BYTES];

	snprintf(ending, sizeof(ending), ".%s", suffix ? suffix : "");
	for (uint64_t i = 0; i < s->member_count; i++) {
		const char *name = suffix_of(a, &s->member[i]);

		if (at < MEMBERS_BYTES / 4)
			at += (size_t)snprintf(out + at, MEMBERS_BYTES - at, " .%.20s", name);
		/* does "y.txt" end as it should, with more before that? */
		if (suffix ? file_name_has_extension(name, ending) : strchr(name, '.') && file_name_is_image(name))
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
	char ending[IMAGE_ENDING_BYTES], members[MEMBERS_BYTES];
	const struct archive_member *m = s->member;

	for (uint64_t i = 0; i < s->member_count; i++)
		if (m[i].kind != MEMBER_FILE)
			return blame(a, &m[i], bad);
	for (uint64_t i = 0; !s->image && i < s->member_count; i++) {
		const struct image_format *f = image_format_of_suffix(suffix_of(a, &m[i]));

		if (!f || image_format_is_input(f))
			continue;
		snprintf(ending, sizeof(ending), "%s", suffix_of(a, &m[i]));
		for (char *c = ending; *c; c++) /* plans have had it so from the first one on */
			*c = (char)tolower((unsigned char)*c);
		return bad_input(bad, SHARD_MISS_INCOMPLETE,
				 "sample '%.*s' at offset %" PRIu64 " has no image of a kind that is read: .%s is not "
				 "one",
				 m->key_bytes < 150 ? (int)m->key_bytes : 150, name_of(a, m), m->offset, ending);
	}
	if (!s->image || (label_suffix && !s->label))
		return bad_input(bad, SHARD_MISS_INCOMPLETE, "sample '%.*s' at offset %" PRIu64 " has no %s%s%s",
				 m->key_bytes < 80 ? (int)m->key_bytes : 80, name_of(a, m), m->offset,
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
			    a->where, (int)m->key_bytes, name_of(a, m), m->offset, n, most);
	for (uint64_t i = 0; i < n; i++) {
		bool of_field = is_of_field(a, &m[i]), of_label = label_suffix && is_suffix(a, &m[i], label_suffix);
		const struct archive_member **place = of_label				  ? &s->label
						      : is_image(a, &m[i], !label_suffix) ? &s->image
											  : NULL;

		if (place && *place && place == &s->image)
			bad_input(bad, SHARD_MISS_UNSUPPORTED,
				  "sample '%.*s' has two images, '%.60s' at offset %" PRIu64 " and '%.60s' at %" PRIu64,
				  m->key_bytes < 100 ? (int)m->key_bytes : 100, name_of(a, m), suffix_of(a, *place),
				  (*place)->offset, suffix_of(a, &m[i]), m[i].offset);
		if (refuse_twin(a, m, i, bad) != EXIT_DONE)
			continue;
		if (place && !*place)
			*place = &m[i];
		else if (!place && !of_field)
			ignored_add(&a->request->scan->ignored, a->path, name_of(a, &m[i]));
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
	int rc = EXIT_DONE;
	json_t *object, *value;

	if (scan->field[i].found || m->bytes > LABEL_BYTES_MAX) {
		scan->field[i].found = true; /* a large one is not judged */
		return EXIT_DONE;
	}
	text = read_text(a, m, &bytes, &rc, &bad);
	if (!text)
		return rc;
	errno = 0;
	object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	if (!object && errno == ENOMEM)
		rc = out_of_memory(a);
	value = json_value_find(object, key);
	scan->field[i].found = value && !json_is_null(value);
	if (object && !scan->field[i].found)
		scan_absent(scan, i, "%s: '%s' at offset %" PRIu64 ": %s", a->where, name_of(a, m), m->offset,
			    json_value_absent(object, key, what));
	json_decref(object);
	free(text);
	return rc;
}

/* The tokens of a sample's fields. */
static int find_fields(const struct image_archive *a, const struct sample *s, struct text *out, struct bad_input *bad)
{
	const struct recipe *r = a->request->recipe;
	char members[MEMBERS_BYTES];
	uint64_t k;
	int rc = EXIT_DONE;

	out->bytes = 0;
	for (uint32_t i = 0; rc == EXIT_DONE && i < r->field_count; i++) {
		const char *suffix = field_suffix(&r->from[i]);

		if (!field_has_part(&r->from[i]))
			continue;
		for (k = 0; k < s->member_count && !is_suffix(a, &s->member[k], suffix); k++)
			;
		if (k < s->member_count)
			field_part_add_member(out, s->member[k].offset, s->member[k].bytes, a->file);
		if (k < s->member_count && r->from[i].optional && field_json_key(&r->from[i])) {
			rc = look_for_key(a, &s->member[k], i);
		} else if (k == s->member_count && r->from[i].optional) {
			field_part_add_none(out);
			if (!a->request->scan->field[i].absent[0])
				scan_absent(a->request->scan, i, "%s: sample '%.*s' has no .%s%s", a->where,
					    s->image->key_bytes < 100 ? (int)s->image->key_bytes : 100,
					    name_of(a, s->image), suffix, say_members(a, s, suffix, members));
		} else if (k == s->member_count) {
			return bad_input(bad, SHARD_MISS_INCOMPLETE,
					 "sample '%.*s' at offset %" PRIu64 " has no .%s, which --field %s needs%s",
					 s->image->key_bytes < 80 ? (int)s->image->key_bytes : 80, name_of(a, s->image),
					 s->image->offset, suffix, r->field[i].name,
					 say_members(a, s, suffix, members));
		}
	}
	return rc;
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

/* The sample, good or bad.  Of a bad one, too, the label tells which classes there are. */
static int add_sample(const struct image_archive *a, struct sample *s, const char *label_suffix, struct text *fields)
{
	char label[CLASS_NAME_BYTES_MAX + 1];
	struct bad_input bad = {0}, no_label = {0};
	int rc = settle_sample(a, s, label_suffix, &bad);
	bool has_label = s->label ? s->label->kind == MEMBER_FILE : s->image && !label_suffix;
	struct label_list *many = recipe_is_multi_label(a->request->recipe) ? &a->images->next : NULL;

	if (rc != EXIT_DONE && !bad.reason)
		return rc;
	rc = EXIT_DONE;
	label[0] = '\0';
	if (has_label && !s->label)
		rc = label_by_name(a, s->image, label, &no_label);
	else if (has_label && a->request->o->label_key)
		rc = label_of_json(a, s->label, label, many, &no_label);
	else if (has_label)
		rc = label_of_cls(a, s->label, label, many, &no_label);
	if (rc != EXIT_DONE && !no_label.reason)
		return rc;
	if (no_label.reason && !bad.reason)
		bad = no_label;
	if (!bad.reason)
		rc = find_fields(a, s, fields, &bad);
	if (bad.reason)
		return add_input(a, s->image ? s->image : s->member, has_label && !no_label.reason ? label : NULL,
				 fields, &bad);
	return rc == EXIT_DONE ? add_input(a, s->image, label, fields, NULL) : rc;
}

/*
 * Add the samples in the order of the archive.  Without `by_name`, the label of a sample comes from
 * one of its members.  With `by_name`, it is what label_by_name() says of the image, and members
 * whose key has no image are ignored.
 */
static int add_samples(struct image_archive *a, bool by_name)
{
	const char *label_suffix = by_name ? NULL : a->request->o->label_key ? "json" : "cls";
	struct shelf *shelf = a->names.shelf;
	struct sample *sample = NULL;
	struct text fields = {0};
	uint64_t n, sample_count = 0, capacity = 0;
	int rc = EXIT_DONE;

	if (!shelf_sort(shelf, a->member, a->count, sizeof(*a->member), compare_keys, a))
		rc = out_of_memory(a);
	for (uint64_t i = 0; rc == EXIT_DONE && i < a->count; i += n) {
		const struct archive_member *m = &a->member[i];

		for (n = 1; m->key_bytes && i + n < a->count && m[n].key_bytes == m->key_bytes; n++)
			if (memcmp(name_of(a, m), name_of(a, &m[n]), m->key_bytes))
				break;
		if (by_name && !has_image(a, m, n))
			n = 1; /* of no sample */
		if (m->kind == MEMBER_FILE && !is_sample(a, m, n, by_name))
			ignored_add(&a->request->scan->ignored, a->path, name_of(a, m));
		else if (grow_on(shelf, &sample, &capacity, sample_count + 1, sizeof(*sample)))
			sample[sample_count++] = (struct sample){.first = m->number, .member = m, .member_count = n};
		else
			rc = out_of_memory(a);
	}
	if (rc == EXIT_DONE && !shelf_sort(shelf, sample, sample_count, sizeof(*sample), compare_samples, NULL))
		rc = out_of_memory(a);
	for (uint64_t i = 0; rc == EXIT_DONE && i < sample_count; i++) {
		const struct archive_member *m = sample[i].member;
		struct bad_input bad = {0};

		fields.bytes = 0;
		if (is_sample(a, m, sample[i].member_count, by_name)) {
			rc = add_sample(a, &sample[i], label_suffix, &fields);
		} else { /* a link to what may be a folder, or of a name without a key: not to be ignored */
			blame(a, m, &bad);
			rc = add_input(a, m, NULL, NULL, &bad);
		}
	}
	text_free(&fields);
	shelf_free(shelf, sample);
	return rc;
}

/* ---- the archive ---- */

/*
 * WebDataset's way, if there are members that end in .cls, or --label-key asks for .json: samples
 * of several members.  So are those with fields of their own.  Else each image is a sample.
 */
int image_archive_add(struct image_list *images, const char *path)
{
	const struct request *r = images->request;
	struct image_archive a = {.request = r,
				  .images = images,
				  .path = path,
				  .where = xasprintf("%s/%s", r->root->name, path),
				  .names.shelf = r->plan->text.shelf};
	uint64_t before = images->count;
	bool by_name = true;
	int rc = list_members(&a);

	if (rc == EXIT_DONE) {
		by_name = labels_given(r->o) || !(r->o->label_key || has_label_members(&a));
		images->by_folder = by_name && !labels_given(r->o);
		if (by_name && recipe_is_multi_label(r->recipe))
			rc = labels_refuse_many(r, path);
		else if (images->by_folder)
			rc = check_keys(&a);
	}
	if (rc == EXIT_DONE)
		rc = by_name && !recipe_has_parts(r->recipe) ? add_images(&a) : add_samples(&a, by_name);
	if (rc == EXIT_DONE && a.cut.reason)
		rc = image_list_add_bad(images, path, NULL, 0, PLAN_NO_FILE, 0, &a.cut);
	if (rc == EXIT_DONE && images->count == before)
		scan_barren(r->scan, a.where);
	shelf_free(a.names.shelf, a.member);
	text_free(&a.names);
	free(a.where);
	return rc;
}
