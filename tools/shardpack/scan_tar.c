/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_tar.c - the images in a tar archive, or a ZIP
 */
#include "tools/shardpack/scan_tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardpack/columns.h"
#include "tools/shardpack/tar.h"
#include "tools/shardpack/zip.h"

#define SAMPLE_MEMBERS_MAX 1000 /* of one key; each is compared with all others */
#define LABEL_BYTES_MAX (UINT64_C(1) << 20) /* of a member that holds one */

/* A regular file of the archive. */
struct entry {
	uint64_t name_at; /* in names */
	uint32_t key_bytes; /* of the name, up to the dot; 0: no sample */
	uint32_t number;
	uint64_t offset, bytes;
};

struct archive {
	struct items *it;
	struct labels *labels;
	const char *path, *where; /* below the root; for messages */
	uint32_t file;
	struct text names;
	struct entry *entry;
	uint64_t count, capacity;
	bool has_cls;
};

static int out_of_memory(const struct archive *a)
{
	return fail(EXIT_IO, "%s: out of memory for a list of %" PRIu64 " members", a->where, a->count);
}

static const char *name_of(const struct archive *a, const struct entry *e)
{
	return a->names.data + e->name_at;
}

/* What stands behind the dot that ends the key; empty if there is no key. */
static const char *suffix_of(const struct archive *a, const struct entry *e)
{
	return e->key_bytes ? name_of(a, e) + e->key_bytes + 1 : "";
}

static bool is_suffix(const struct archive *a, const struct entry *e, const char *suffix)
{
	return strcasecmp(suffix_of(a, e), suffix) == 0;
}

static bool is_image_suffix(const struct archive *a, const struct entry *e)
{
	static const char *const suffixes[] = {"jpg", "jpeg", "png", "webp", "ppm", "pgm", "bmp", "tif", "tiff"};
	size_t i;

	for (i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (is_suffix(a, e, suffixes[i]))
			return true;
	return false;
}

bool scan_tar_is_name(const char *name)
{
	static const char *const extensions[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip"};
	size_t bytes = strlen(name), i;

	for (i = 0; i < sizeof(extensions) / sizeof(*extensions); i++)
		if (bytes > strlen(extensions[i]) && strcasecmp(name + bytes - strlen(extensions[i]), extensions[i]) == 0)
			return true;
	return false;
}

/* ---- what is in it ---- */

/* WebDataset passes over members of a folder called so. */
static bool is_meta(const char *name)
{
	size_t bytes = strcspn(name, "/");

	return name[bytes] && bytes >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + bytes - 2, "__", 2) == 0;
}

static int add_entry(struct archive *a, const char *name, uint64_t offset, uint64_t bytes)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strchr(base, '.');
	struct entry *e;

	if (strncmp(name, "__MACOSX/", 9) == 0) { /* macOS adds it to archives; nothing in it is of the user */
		a->it->request->scan->ignored_count++;
		return EXIT_DONE;
	}
	if (a->count == a->capacity) {
		uint64_t capacity = a->capacity ? 2 * a->capacity : 1024;
		struct entry *grown = realloc(a->entry, capacity * sizeof(*grown));

		if (!grown)
			return out_of_memory(a);
		a->entry = grown;
		a->capacity = capacity;
	}
	e = &a->entry[a->count];
	*e = (struct entry){.name_at = a->names.bytes, .number = (uint32_t)a->count, .offset = offset, .bytes = bytes,
			    .key_bytes = dot && dot > base && !is_meta(name) ? (uint32_t)(dot - name) : 0};
	text_add(&a->names, name, strlen(name) + 1);
	if (text_failed(&a->names) || ++a->count == UINT32_MAX)
		return out_of_memory(a);
	a->has_cls = a->has_cls || is_suffix(a, e, "cls");
	return EXIT_DONE;
}

static int take_member(struct archive *a, const struct tar_member *m)
{
	if (m->kind == TAR_FILE)
		return add_entry(a, m->name, m->offset, m->bytes);
	/* The bytes of a link are elsewhere; leaving it out would lose a sample. */
	if (m->kind == TAR_LINK && items_is_image(m->name))
		return fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 " is a link; pack the archive with --dereference --hard-dereference",
			    a->where, m->name, m->header_offset);
	if (m->kind == TAR_OTHER && items_is_image(m->name))
		return fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 " is neither file, folder nor link; pack the archive again without it", a->where,
			    m->name, m->header_offset);
	a->it->request->scan->ignored_count += m->kind != TAR_FOLDER;
	return EXIT_DONE;
}

static bool read_stored(void *context, uint64_t offset, void *out, size_t bytes)
{
	const struct archive *a = context;

	return stored_get(a->it->request->stored, a->file, offset, out, bytes) == EXIT_DONE;
}

static int list_members(struct archive *a)
{
	char why[TAR_WHY_BYTES] = "";
	struct tar t = {.bytes = stored_bytes(a->it->request->stored, a->file), .read = read_stored, .context = a, .why = why};
	struct tar_member *m = malloc(sizeof(*m));
	struct progress progress;
	enum tar_status status = TAR_MEMBER;
	int code = m ? EXIT_DONE : out_of_memory(a);

	progress_start(&progress, "listing", "members", 0);
	while (code == EXIT_DONE && (status = tar_next(&t, m)) == TAR_MEMBER) {
		code = interrupted() ? EXIT_INTERRUPTED : take_member(a, m);
		progress_add(&progress, 1, 0, 0);
		progress_tick(&progress);
	}
	progress_abandon(&progress);
	free(m);
	if (code == EXIT_DONE && status == TAR_BAD)
		code = why[0] ? fail(EXIT_BAD, "%s: %s%s", a->where, why,
				     a->count || scan_tar_is_name(a->path) ? "" : "; archives are .tar, .tar.gz, .tgz, .tar.zst and .zip")
			      : EXIT_IO;
	return code;
}

/* Members of a ZIP, where they will lie once it is unpacked: one behind the other. */
static int list_zip(struct archive *a)
{
	char why[ZIP_WHY_BYTES] = "";
	struct zip z = {.bytes = stored_bytes(a->it->request->stored, a->file), .read = read_stored, .context = a, .why = why};
	struct zip_member *m = malloc(sizeof(*m));
	enum zip_status status = ZIP_END;
	char name[ZIP_NAME_BYTES_MAX + 1];
	uint64_t at = 0;
	int code = m ? EXIT_DONE : out_of_memory(a);

	while (code == EXIT_DONE && (status = zip_next(&z, m)) == ZIP_MEMBER) {
		if (!text_settle_path(m->name, m->name_bytes, name, sizeof(name)))
			code = fail(EXIT_BAD, "%s: the member at offset %" PRIu64 " has a name that is too long, or leads out of the archive: '%s'; make the "
				    "archive again, from the folder that holds all", a->where, m->offset, m->name);
		else if (m->bytes > UINT64_MAX / 4 - at)
			code = fail(EXIT_BAD, "%s: '%s' has %" PRIu64 " bytes, which no disk holds", a->where, m->name, m->bytes);
		else if (m->name[m->name_bytes - 1] != '/')
			code = add_entry(a, name, at, m->bytes);
		at += m->bytes;
	}
	free(m);
	if (code == EXIT_DONE && status == ZIP_BAD)
		code = why[0] ? fail(EXIT_BAD, "%s: %s", a->where, why) : EXIT_IO;
	return code == EXIT_DONE ? stored_unpack(a->it->request->stored, a->it->request->plan, a->file, "zip", at, &a->file) : code;
}

static bool is_zip(const char *path)
{
	size_t bytes = strlen(path);

	return bytes > 4 && strcasecmp(path + bytes - 4, ".zip") == 0;
}

/* ---- samples of several members ---- */

static int compare_keys(const void *x, const void *y, void *context)
{
	const struct archive *a = context;
	const struct entry *b = x, *c = y;
	uint32_t least = b->key_bytes < c->key_bytes ? b->key_bytes : c->key_bytes;
	int order = memcmp(name_of(a, b), name_of(a, c), least);

	if (!order && b->key_bytes != c->key_bytes)
		order = b->key_bytes < c->key_bytes ? -1 : 1;
	return order ? order : b->number < c->number ? -1 : b->number > c->number;
}

static bool same_key(const struct archive *a, const struct entry *x, const struct entry *y)
{
	return x->key_bytes == y->key_bytes && memcmp(name_of(a, x), name_of(a, y), x->key_bytes) == 0;
}

/* All of a member as text; NULL, and *code, if it cannot be. */
static char *read_text(const struct archive *a, const struct entry *e, int *code)
{
	char *text = NULL;

	if (e->bytes > LABEL_BYTES_MAX)
		*code = fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 " has %" PRIu64 " bytes; a label has at most %" PRIu64, a->where,
			     name_of(a, e), e->offset, e->bytes, LABEL_BYTES_MAX);
	else if (!(text = malloc((size_t)e->bytes + 1)))
		*code = out_of_memory(a);
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
			    name_of(a, e), e->offset, CLASS_NAME_BYTES_MAX, bytes);
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
		code = fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 ": %s", a->where, name_of(a, e), e->offset,
			    object ? "not an object" : error.text);
	else if (json_is_integer(value))
		snprintf(out, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_string(value))
		code = take_label(a, e, json_string_value(value), json_string_length(value), out);
	else
		code = fail(EXIT_BAD, "%s: '%s' at offset %" PRIu64 ": no text or whole number called %s", a->where, name_of(a, e), e->offset,
			    key);
	json_decref(object);
	free(text);
	return code;
}

static int add_item(const struct archive *a, const struct entry *image, const char *label)
{
	char path[PLAN_PATH_BYTES_MAX];
	int bytes = snprintf(path, sizeof(path), "%s/%s", a->path, name_of(a, image));

	if (bytes < 0 || bytes >= (int)sizeof(path))
		return fail(EXIT_BAD, "%s/%s: a path of %d bytes; the limit is %zu", a->where, name_of(a, image), bytes, sizeof(path) - 1);
	return items_add(a->it, path, label, image->bytes, a->file, image->offset, NULL);
}

/* A sample found, to be added in the order of the archive. */
struct sample {
	uint32_t first; /* member, for the order */
	const struct entry *image, *label;
};

static int compare_samples(const void *x, const void *y)
{
	const struct sample *a = x, *b = y;

	return a->first < b->first ? -1 : a->first > b->first;
}

/* The members [0, n) at `e` have one key. */
static int settle_sample(struct archive *a, const struct entry *e, uint64_t n, struct sample *out)
{
	const char *label_suffix = a->it->request->o->label_key ? "json" : "cls";
	uint64_t i, k;

	*out = (struct sample){.first = e[0].number};
	if (n > SAMPLE_MEMBERS_MAX)
		return fail(EXIT_BAD, "%s: sample '%.*s' at offset %" PRIu64 " has %" PRIu64 " members; the limit is %d (a key ends at the first dot of a name)",
			    a->where, (int)e->key_bytes, name_of(a, e), e->offset, n, SAMPLE_MEMBERS_MAX);
	for (i = 0; i < n; i++) {
		const struct entry **place = is_image_suffix(a, &e[i]) ? &out->image : is_suffix(a, &e[i], label_suffix) ? &out->label : NULL;

		for (k = 0; k < i; k++)
			if (strcasecmp(suffix_of(a, &e[k]), suffix_of(a, &e[i])) == 0)
				return fail(EXIT_BAD, "%s: '%s' is there twice, at offsets %" PRIu64 " and %" PRIu64, a->where, name_of(a, &e[i]),
					    e[k].offset, e[i].offset);
		if (place && *place)
			return fail(EXIT_BAD, "%s: sample '%.*s' has two images, '%s' at offset %" PRIu64 " and '%s' at %" PRIu64, a->where,
				    (int)e->key_bytes, name_of(a, e), suffix_of(a, *place), (*place)->offset, suffix_of(a, &e[i]), e[i].offset);
		if (place)
			*place = &e[i];
		else
			a->it->request->scan->ignored_count++;
	}
	if (!out->image || !out->label)
		return fail(EXIT_BAD, "%s: sample '%.*s' at offset %" PRIu64 " has no %s%s", a->where, (int)e->key_bytes, name_of(a, e),
			    e->offset, out->image ? "." : "image", out->image ? label_suffix : "");
	return EXIT_DONE;
}

static int add_samples(struct archive *a)
{
	struct sample *sample = calloc(a->count + 1, sizeof(*sample));
	char label[CLASS_NAME_BYTES_MAX + 1];
	uint64_t i, n, sample_count = 0;
	int code = sample ? EXIT_DONE : out_of_memory(a);

	if (code == EXIT_DONE)
		qsort_r(a->entry, a->count, sizeof(*a->entry), compare_keys, a);
	for (i = 0; code == EXIT_DONE && i < a->count; i += n) {
		for (n = 1; i + n < a->count && same_key(a, &a->entry[i], &a->entry[i + n]); n++)
			;
		if (a->entry[i].key_bytes)
			code = settle_sample(a, &a->entry[i], n, &sample[sample_count++]);
		else
			a->it->request->scan->ignored_count += n;
	}
	if (code == EXIT_DONE)
		qsort(sample, sample_count, sizeof(*sample), compare_samples);
	for (i = 0; code == EXIT_DONE && i < sample_count; i++) {
		code = a->it->request->o->label_key ? label_of_json(a, sample[i].label, label) : label_of_cls(a, sample[i].label, label);
		if (code == EXIT_DONE)
			code = add_item(a, sample[i].image, label);
	}
	free(sample);
	return code;
}

/* ---- each image a sample ---- */

/* The name of the folder that holds it; false if there is none. */
static bool folder_of(const char *name, char *out, size_t out_bytes)
{
	const char *slash = strrchr(name, '/'), *start;

	if (!slash)
		return false;
	start = memrchr(name, '/', (size_t)(slash - name));
	start = start ? start + 1 : name;
	return snprintf(out, out_bytes, "%.*s", (int)(slash - start), start) < (int)out_bytes;
}

/* "._x.jpg", which macOS adds beside x.jpg: no image, whatever it is called. */
static bool is_apple_double(const struct archive *a, const struct entry *e)
{
	const char *slash = strrchr(name_of(a, e), '/'), *base = slash ? slash + 1 : name_of(a, e);
	char magic[4], message[160];

	return strncmp(base, "._", 2) == 0 && e->bytes >= sizeof(magic) &&
	       stored_read(a->it->request->stored, a->file, e->offset, magic, sizeof(magic), message, sizeof(message)) &&
	       memcmp(magic, "\0\5\26\7", sizeof(magic)) == 0;
}

static int add_images(struct archive *a)
{
	char label[CLASS_NAME_BYTES_MAX + 1], folder[TAR_NAME_BYTES_MAX + 1], where[3 * TAR_NAME_BYTES_MAX];
	uint64_t i;
	int code = EXIT_DONE;

	for (i = 0; code == EXIT_DONE && i < a->count; i++) {
		const struct entry *e = &a->entry[i];

		if (!items_is_image(name_of(a, e)) || is_apple_double(a, e)) {
			a->it->request->scan->ignored_count++;
			continue;
		}
		snprintf(where, sizeof(where), "%s/%s", a->where, name_of(a, e));
		code = labels_find(a->labels, where, name_of(a, e), folder_of(name_of(a, e), folder, sizeof(folder)) ? folder : NULL, label);
		if (code == EXIT_DONE)
			code = add_item(a, e, label);
	}
	return code;
}

int scan_tar(struct items *it, struct labels *labels, const char *path)
{
	struct archive a = {.it = it, .labels = labels, .path = path};
	char *where = NULL;
	uint64_t before = it->count;
	bool has_samples;
	int code = columns_open(it->request, path, &a.file);

	if (code == EXIT_DONE && !(where = stored_name(it->request->stored, a.file)))
		code = out_of_memory(&a);
	a.where = where;
	if (code == EXIT_DONE)
		code = is_zip(path) ? list_zip(&a) : list_members(&a);
	has_samples = (a.has_cls || it->request->o->label_key) && !labels_given(labels);
	it->by_folder = !has_samples && !labels_given(labels);
	if (code == EXIT_DONE)
		code = has_samples ? add_samples(&a) : add_images(&a);
	if (code == EXIT_DONE && it->count == before)
		scan_barren(it->request->scan, where);
	text_free(&a.names);
	free(a.entry);
	free(where);
	return code;
}
