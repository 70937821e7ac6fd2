/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_verify.c - the rules of a manifest that only verify checks: M15 to M17, D6, D7
 */
#include "libshard/verify/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"

/* File names end at a space, class names at a NUL; both sort before any byte of a name. */
static int by_file_name(const void *a, const void *b)
{
	const unsigned char *x = *(const unsigned char *const *)a, *y = *(const unsigned char *const *)b;

	while (*x == *y && *x > ' ')
		x++, y++;
	return (*x > ' ' ? *x : 0) - (*y > ' ' ? *y : 0);
}

static int by_class_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **sorted(const char *const *from, uint64_t count, int (*compare)(const void *, const void *))
{
	const char **copy = mem_array((size_t)count, sizeof(*copy));

	if (copy && count) {
		memcpy(copy, from, (size_t)count * sizeof(*copy));
		qsort(copy, (size_t)count, sizeof(*copy), compare);
	}
	return copy;
}

static int check_classes_unique(const struct shard_dataset *ds, struct shard_error *err)
{
	const char **name = mem_array((size_t)ds->m.class_count, sizeof(*name)), **order = NULL;
	struct shown s;
	int rc = SHARD_OK;

	for (uint64_t i = 0; name && i < ds->m.class_count; i++)
		name[i] = shard_dataset_class_name(ds, i);
	if (name)
		order = sorted(name, ds->m.class_count, by_class_name);
	if (!order)
		rc = error_set(err, SHARD_E_MEMORY, "no memory to compare %" PRIu64 " class names", ds->m.class_count);
	for (uint64_t i = 1; !rc && i < ds->m.class_count; i++)
		if (!strcmp(order[i - 1], order[i]))
			rc = invariant_broken(err, SHARD_E_CORRUPT, "M16", "two classes are named '%s'",
					      show(&s, order[i]));
	mem_free(order);
	mem_free(name);
	return rc;
}

struct extra {
	const char **order;
	uint64_t count;
	struct shard_error *err;
};

static int on_shard_file(void *context, const char *name)
{
	struct extra *x = context;
	struct shard_error *err = x->err;
	struct shown s;
	bool named = x->count && bsearch(&name, x->order, (size_t)x->count, sizeof(*x->order), by_file_name);

	MUST_OR(SHARD_E_MISMATCH, "D7", named, "%s lies in the folder, but the manifest does not name it",
		show(&s, name));
	return SHARD_OK;
}

static int check_files(const struct shard_dataset *ds, struct shard_error *err)
{
	struct extra x = {sorted(ds->line, ds->m.shard_count, by_file_name), ds->m.shard_count, err};
	int rc = x.order ? SHARD_OK
			 : error_set(err, SHARD_E_MEMORY, "no memory to compare %" PRIu64 " file names", x.count);

	for (uint64_t i = 1; !rc && i < x.count; i++)
		if (!by_file_name(&x.order[i - 1], &x.order[i])) {
			rc = invariant_broken(err, SHARD_E_CORRUPT, "M17", "two shards are the same file '%.*s'",
					      (int)strcspn(x.order[i], " "), x.order[i]);
		}
	if (rc)
		error_prefix(err, ds->manifest_path);
	if (!rc) {
		rc = file_list(ds->dir, ".shard", on_shard_file, &x, err);
		if (rc == SHARD_E_MISMATCH)
			error_prefix(err, ds->dir);
	}
	mem_free(x.order);
	return rc;
}

int dataset_verify_manifest(const struct shard_dataset *ds, struct shard_error *err)
{
	uint8_t id[32];
	int rc = manifest_file_check_id(ds->text.text, &ds->text.end, id, err);

	if (!rc)
		rc = check_classes_unique(ds, err);
	if (rc) {
		error_prefix(err, ds->manifest_path);
		return rc;
	}
	return check_files(ds, err);
}

int dataset_check_sha256(const char *path, const uint8_t got[32], const uint8_t want[32], struct shard_error *err)
{
	char got_text[65], want_text[65];
	int rc = SHARD_OK;

	hex_from_bytes(got_text, got, 32);
	hex_from_bytes(want_text, want, 32);
	if (memcmp(got, want, 32))
		rc = invariant_broken(err, SHARD_E_MISMATCH, "D6", "its SHA-256 is %s; the manifest says %s", got_text,
				      want_text);
	if (rc)
		error_prefix(err, path);
	return rc;
}
