/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_archive.c - the members of a tar archive or a ZIP, and the images among them
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shard_inspect.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"
#include "tools/shardpack/images/file_name.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/parse/tar.h"
#include "tools/shardpack/parse/zip.h"
#include "tools/shardpack/plan/bad_input.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/request.h"

int image_archive_out_of_memory(const struct image_archive *a)
{
	return shelf_refuse(a->names.shelf, "a list of %" PRIu64 " members of %s", a->count, a->where);
}

const char *image_archive_name(const struct image_archive *a, const struct archive_member *e)
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

/* macOS adds such members to archives; nothing in them is of the user. */
static bool is_of_macos(const char *name)
{
	return !strncmp(name, "__MACOSX/", 9);
}

static int add_member(struct image_archive *a, const char *name, enum archive_kind kind, uint64_t offset,
		      uint64_t bytes)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strchr(base, '.');

	if (is_of_macos(name)) {
		ignored_add(&a->request->scan->ignored, a->path, name);
		return EXIT_DONE;
	}
	if (!grow_on(a->names.shelf, &a->member, &a->capacity, a->count + 1, sizeof(*a->member)))
		return image_archive_out_of_memory(a);
	a->member[a->count] =
		(struct archive_member){.name_at = a->names.bytes,
					.number = (uint32_t)a->count,
					.kind = kind,
					.offset = offset,
					.bytes = bytes,
					.key_bytes = dot && dot > base && !is_meta(name) ? (uint32_t)(dot - name) : 0};
	text_add(&a->names, name, strlen(name) + 1);
	if (text_failed(&a->names) || ++a->count == UINT32_MAX)
		return image_archive_out_of_memory(a);
	return EXIT_DONE;
}

static int take_member(struct image_archive *a, const struct tar_member *m)
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

	return stored_get(a->request->stored, a->file, offset, out, bytes) == EXIT_DONE;
}

static int list_tar(struct image_archive *a)
{
	char why[TAR_WHY_BYTES] = "";
	struct tar t = {
		.bytes = stored_bytes(a->request->stored, a->file), .read = read_stored, .context = a, .why = why};
	struct tar_member *m = malloc(sizeof(*m));
	struct progress progress;
	enum tar_status status = TAR_MEMBER;
	int code = m ? EXIT_DONE : image_archive_out_of_memory(a);

	progress_start(&progress, "listing", "members", 0);
	while (code == EXIT_DONE && (status = tar_next(&t, m)) == TAR_MEMBER) {
		code = interrupted() ? EXIT_INTERRUPTED : take_member(a, m);
		progress_add(&progress, 1, 0, 0);
		progress_tick(&progress);
	}
	progress_abandon(&progress);
	free(m);
	if (code != EXIT_DONE || status != TAR_BAD)
		return code;
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
	struct zip z = {
		.bytes = stored_bytes(a->request->stored, a->file), .read = read_stored, .context = a, .why = why};
	struct zip_member *m = malloc(sizeof(*m));
	enum zip_status status = ZIP_END;
	char name[ZIP_NAME_BYTES_MAX + 1];
	uint64_t at = 0, unpacked = 0;
	int code = m ? EXIT_DONE : image_archive_out_of_memory(a);

	while (code == EXIT_DONE && (status = zip_next(&z, m)) == ZIP_MEMBER) {
		if (!text_settle_path(m->name, m->name_bytes, name, sizeof(name)))
			code = fail(EXIT_BAD,
				    "%s: the member at offset %" PRIu64 " has a name that is too long, or "
				    "leads out of the archive: '%s'; make the archive again from the folder "
				    "that holds all its files",
				    a->where, m->offset, m->name);
		else if (m->is_link)
			code = add_member(a, name, MEMBER_LINK, at, 0);
		else if (m->bytes > UINT64_MAX / 4 - at)
			code = fail(EXIT_BAD, "%s: '%s' has %" PRIu64 " bytes, more than any disk holds", a->where,
				    m->name, m->bytes);
		else if (m->name[m->name_bytes - 1] != '/')
			code = add_member(a, name, MEMBER_FILE, at, m->bytes);
		at += m->bytes;
		unpacked += m->bytes > UNPACK_MEMBER_BYTES_MAX ? 0 : m->bytes;
	}
	free(m);
	if (code == EXIT_DONE && status == ZIP_BAD)
		return why[0] ? give_up(a, why) : EXIT_IO;
	if (code == EXIT_DONE)
		code = stored_unpack(a->request->stored, a->request->plan, a->file, "zip", unpacked, &a->file);
	return code == EXIT_BAD ? give_up(a, "cannot be unpacked") : code;
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

static bool has_json(const struct image_archive *a)
{
	for (uint64_t i = 0; i < a->count; i++)
		if (file_name_has_extension(image_archive_name(a, &a->member[i]), ".json"))
			return true;
	return false;
}

int image_archive_label(const struct image_archive *a, const struct archive_member *image, struct labels *labels,
			char *out, struct bad_input *bad)
{
	char folder[TAR_NAME_BYTES_MAX + 1], where[3 * TAR_NAME_BYTES_MAX];
	const char *name = image_archive_name(a, image);

	snprintf(where, sizeof(where), "%s/%s", a->where, name);
	if (folder_of(name, folder, sizeof(folder)))
		return labels_find(labels, where, name, folder, out, bad);
	if (a->cut.reason && !labels_given(labels))
		return bad_input(bad, SHARD_MISS_INCOMPLETE, "is in no class folder, and the archive is cut");
	if (!labels_given(labels) && has_json(a))
		return labels_missing(where, ", --label-key NAME (a key of the .json members)");
	return labels_find(labels, where, name, NULL, out, bad);
}

int image_archive_add(const struct image_archive *a, const struct archive_member *image, const char *label,
		      const struct text *fields, const struct bad_input *bad, struct image_list *images)
{
	char path[PLAN_PATH_BYTES_MAX];
	int bytes = snprintf(path, sizeof(path), "%s/%s", a->path, image_archive_name(a, image));

	if (bytes < 0 || bytes >= (int)sizeof(path))
		return fail(EXIT_BAD, "%s/%s: a path of %d bytes; the limit is %zu", a->where,
			    image_archive_name(a, image), bytes, sizeof(path) - 1);
	if (bad)
		return image_list_add_bad(images, path, label, image->bytes, image->bytes ? a->file : PLAN_NO_FILE,
					  image->bytes ? image->offset : 0, bad);
	return image_list_add(images, path, label, image->bytes, a->file, image->offset, fields);
}

/* "._x.jpg", which macOS adds beside x.jpg: no image, whatever it is called. */
static int is_apple_double(const struct image_archive *a, const struct archive_member *e, bool *is)
{
	const char *slash = strrchr(image_archive_name(a, e), '/'),
		   *base = slash ? slash + 1 : image_archive_name(a, e);
	char magic[4] = "";
	int code = EXIT_DONE;

	*is = false;
	if (strncmp(base, "._", 2) || e->bytes < sizeof(magic))
		return EXIT_DONE;
	code = stored_get(a->request->stored, a->file, e->offset, magic, sizeof(magic));
	*is = code == EXIT_DONE && !memcmp(magic, "\0\5\26\7", sizeof(magic));
	return code;
}

int image_archive_blame(const struct image_archive *a, const struct archive_member *m, struct bad_input *bad)
{
	bool zip = file_name_has_extension(a->path, ".zip");

	if (m->kind == MEMBER_LINK)
		return zip ? bad_input(bad, SHARD_MISS_MEMBER, "'%.150s' is a link; make the archive again without -y",
				       image_archive_name(a, m))
			   : bad_input(bad, SHARD_MISS_MEMBER,
				       "'%.150s' at offset %" PRIu64 " is a link; make the archive again with "
				       "--dereference --hard-dereference",
				       image_archive_name(a, m), m->offset);
	return bad_input(bad, SHARD_MISS_MEMBER,
			 "'%.150s' at offset %" PRIu64 " is neither file, folder nor link; make the archive again "
			 "without it",
			 image_archive_name(a, m), m->offset);
}

/* A member that is bad input by itself.  If it is called like an image, its label may be known. */
static int add_no_file(const struct image_archive *a, const struct archive_member *m, struct labels *labels,
		       struct image_list *images)
{
	static const struct text no_fields;
	char label[CLASS_NAME_BYTES_MAX + 1];
	const char *name = image_archive_name(a, m);
	bool known = file_name_is_image(name) && (strchr(name, '/') || labels_given(labels));
	struct bad_input bad = {0}, no_label = {0};
	int code = known ? image_archive_label(a, m, labels, label, &no_label) : EXIT_DONE;

	if (code != EXIT_DONE && !no_label.reason)
		return code;
	image_archive_blame(a, m, &bad);
	return image_archive_add(a, m, known && !no_label.reason ? label : NULL, &no_fields, &bad, images);
}

int image_archive_add_cut(const struct image_archive *a, struct image_list *images)
{
	return image_list_add_bad(images, a->path, NULL, 0, PLAN_NO_FILE, 0, &a->cut);
}

int image_archive_add_all(const struct image_archive *a, struct labels *labels, struct image_list *images)
{
	static const struct text no_fields;
	char label[CLASS_NAME_BYTES_MAX + 1];
	struct bad_input bad = {0};
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < a->count; i++) {
		const struct archive_member *m = &a->member[i];
		bool other = !file_name_is_image(image_archive_name(a, m)) && m->kind != MEMBER_LINK;

		if (m->kind != MEMBER_FILE) {
			code = add_no_file(a, m, labels, images);
			continue;
		}
		if (!other)
			code = is_apple_double(a, m, &other);
		if (code == EXIT_DONE && other)
			ignored_add(&a->request->scan->ignored, a->path, image_archive_name(a, m));
		if (code != EXIT_DONE || other)
			continue;
		bad.reason = 0;
		code = image_archive_label(a, m, labels, label, &bad);
		if (code == EXIT_DONE || bad_input_is(&bad, code))
			code = image_archive_add(a, m, bad.reason ? NULL : label, &no_fields, bad.reason ? &bad : NULL,
						 images);
	}
	return code;
}

int image_archive_open(struct image_archive *a, const struct request *r, const char *path)
{
	struct stat st;
	bool there;
	int code;

	*a = (struct image_archive){.request = r, .path = path, .names.shelf = r->plan->text.shelf};
	if (asprintf(&a->where, "%s/%s", r->place->root, path) < 0) {
		a->where = NULL;
		return fail(EXIT_IO, "%s: out of memory for its name", path);
	}
	code = place_look(r->place, path, &st, &there, &a->cut);
	if (code != EXIT_DONE)
		return bad_input_is(&a->cut, code) ? EXIT_DONE : code;
	code = input_file_open(r, path, &a->file);
	if (code == EXIT_BAD && file_name_is_archive(path))
		return give_up(a, "cannot be unpacked");
	if (code == EXIT_DONE)
		code = file_name_has_extension(path, ".zip") ? list_zip(a) : list_tar(a);
	return code;
}

void image_archive_close(struct image_archive *a)
{
	shelf_free(a->names.shelf, a->member);
	text_free(&a->names);
	free(a->where);
}
