/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_archive.c - the images in a tar archive, or a ZIP
 */
#include "tools/shardpack/scan/image_archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardpack/format/zip.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/plan/recipe.h"
#include "tools/shardpack/scan/fixed_fields.h"
#include "tools/shardpack/scan/image_archive_private.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

int archive_out_of_memory(const struct archive *a)
{
	return fail(EXIT_IO, "%s: out of memory for a list of %" PRIu64 " members", a->where, a->count);
}

const char *archive_name_of(const struct archive *a, const struct entry *e)
{
	return a->names.data + e->name_at;
}

/* What stands behind the dot that ends the key; empty if there is no key. */
static const char *suffix_of(const struct archive *a, const struct entry *e)
{
	return e->key_bytes ? archive_name_of(a, e) + e->key_bytes + 1 : "";
}

bool archive_is_suffix(const struct archive *a, const struct entry *e, const char *suffix)
{
	return strcasecmp(suffix_of(a, e), suffix) == 0;
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
			return archive_out_of_memory(a);
		a->entry = grown;
		a->capacity = capacity;
	}
	e = &a->entry[a->count];
	*e = (struct entry){.name_at = a->names.bytes, .number = (uint32_t)a->count, .offset = offset, .bytes = bytes,
			    .key_bytes = dot && dot > base && !is_meta(name) ? (uint32_t)(dot - name) : 0};
	text_add(&a->names, name, strlen(name) + 1);
	if (text_failed(&a->names) || ++a->count == UINT32_MAX)
		return archive_out_of_memory(a);
	a->has_cls = a->has_cls || archive_is_suffix(a, e, "cls");
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
	int code = m ? EXIT_DONE : archive_out_of_memory(a);

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
	int code = m ? EXIT_DONE : archive_out_of_memory(a);

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

int archive_find_label(const struct archive *a, const struct entry *image, char *out)
{
	char folder[TAR_NAME_BYTES_MAX + 1], where[3 * TAR_NAME_BYTES_MAX];
	const char *name = archive_name_of(a, image);

	snprintf(where, sizeof(where), "%s/%s", a->where, name);
	return labels_find(a->labels, where, name, folder_of(name, folder, sizeof(folder)) ? folder : NULL, out);
}

int archive_add(const struct archive *a, const struct entry *image, const char *label, const struct text *fields)
{
	char path[PLAN_PATH_BYTES_MAX];
	int bytes = snprintf(path, sizeof(path), "%s/%s", a->path, archive_name_of(a, image));

	if (bytes < 0 || bytes >= (int)sizeof(path))
		return fail(EXIT_BAD, "%s/%s: a path of %d bytes; the limit is %zu", a->where, archive_name_of(a, image), bytes, sizeof(path) - 1);
	return items_add(a->it, path, label, image->bytes, a->file, image->offset, fields);
}

/* "._x.jpg", which macOS adds beside x.jpg: no image, whatever it is called. */
static bool is_apple_double(const struct archive *a, const struct entry *e)
{
	const char *slash = strrchr(archive_name_of(a, e), '/'), *base = slash ? slash + 1 : archive_name_of(a, e);
	char magic[4], message[160];

	return strncmp(base, "._", 2) == 0 && e->bytes >= sizeof(magic) &&
	       stored_read(a->it->request->stored, a->file, e->offset, magic, sizeof(magic), message, sizeof(message)) &&
	       memcmp(magic, "\0\5\26\7", sizeof(magic)) == 0;
}

static int add_images(struct archive *a)
{
	static const struct text no_fields;
	char label[CLASS_NAME_BYTES_MAX + 1];
	uint64_t i;
	int code = EXIT_DONE;

	for (i = 0; code == EXIT_DONE && i < a->count; i++) {
		const struct entry *e = &a->entry[i];

		if (!items_is_image(archive_name_of(a, e)) || is_apple_double(a, e)) {
			a->it->request->scan->ignored_count++;
			continue;
		}
		code = archive_find_label(a, e, label);
		if (code == EXIT_DONE)
			code = archive_add(a, e, label, &no_fields);
	}
	return code;
}

static bool has_fields(const struct recipe *r)
{
	uint32_t i;

	for (i = 0; i < r->field_count && !field_has_part(&r->from[i]); i++)
		;
	return i < r->field_count;
}

static int add_all(struct archive *a)
{
	bool by_name = !(a->has_cls || a->it->request->o->label_key) || labels_given(a->labels);

	a->it->by_folder = by_name && !labels_given(a->labels);
	return by_name && !has_fields(a->it->request->recipe) ? add_images(a) : archive_add_samples(a, by_name);
}

int scan_tar(struct items *it, struct labels *labels, const char *path)
{
	struct archive a = {.it = it, .labels = labels, .path = path};
	char *where = NULL;
	uint64_t before = it->count;
	int code = columns_open(it->request, path, &a.file);

	if (code == EXIT_DONE && !(where = stored_name(it->request->stored, a.file)))
		code = archive_out_of_memory(&a);
	a.where = where;
	if (code == EXIT_DONE)
		code = is_zip(path) ? list_zip(&a) : list_members(&a);
	if (code == EXIT_DONE)
		code = add_all(&a);
	if (code == EXIT_DONE && it->count == before)
		scan_barren(it->request->scan, where);
	text_free(&a.names);
	free(a.entry);
	free(where);
	return code;
}
