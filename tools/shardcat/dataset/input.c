/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - the target of a verb: a dataset, or one shard on its own
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"

#define READ_RECORDS 512 /* records of a dataset that are asked for at a time: 4 KiB of indices */

/* A folder that cannot be opened: does shardpack only have to go on? */
static void hint_if_unfinished(const char *dir)
{
	char manifest[4352], state[4352];
	struct stat st;

	if (snprintf(manifest, sizeof(manifest), "%s/dataset.manifest", dir) >= (int)sizeof(manifest) ||
	    snprintf(state, sizeof(state), "%s/.shardpack", dir) >= (int)sizeof(state))
		return;
	if (stat(manifest, &st) && errno == ENOENT && !stat(state, &st) && S_ISDIR(st.st_mode))
		hint("this dataset is unfinished: run the same shardpack command again, or shardpack build and then "
		     "seal %s",
		     dir);
}

static int open_either(struct target *t, bool is_dir, const char *id)
{
	const struct shard_dataset_options options = {.size = sizeof(options), .expect_id = id};
	struct shard_error err;
	int rc;

	if (is_dir)
		rc = shard_dataset_open(&t->dataset, t->path, &options, &err);
	else
		rc = shard_reader_open(&t->reader, t->path, NULL, &err);
	if (rc) {
		const char *name = strrchr(t->path, '/');

		rc = fail_of_library(&err);
		if (is_dir)
			hint_if_unfinished(t->path);
		else if (!strcmp(name ? name + 1 : t->path, "dataset.manifest"))
			hint("this is the manifest of a dataset; give its folder: %.*s",
			     name ? (int)(name - t->path) + !(name - t->path) : 1, name ? t->path : ".");
		return rc;
	}
	if (is_dir) {
		t->schema = shard_dataset_schema(t->dataset);
		t->record_count = shard_dataset_record_count(t->dataset);
	} else {
		struct shard_info info;

		shard_reader_info(t->reader, &info);
		t->schema = shard_reader_schema(t->reader);
		t->record_count = info.record_count;
	}
	return EXIT_DONE;
}

int target_open(struct target *t, const char *path)
{
	return target_open_id(t, path, NULL);
}

int target_open_id(struct target *t, const char *path, const char *id)
{
	struct stat st;

	*t = (struct target){.path = path};
	if (stat(path, &st))
		return fail(EXIT_IO, "%s: %s", path, strerror(errno));
	return open_either(t, S_ISDIR(st.st_mode), id);
}

int target_open_dataset(struct target *t, const char *path)
{
	struct stat st;

	*t = (struct target){.path = path};
	if (stat(path, &st))
		return fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return fail(EXIT_USAGE,
			    "%s: not a folder; this verb needs a dataset, which is a folder with a dataset.manifest",
			    path);
	return open_either(t, true, NULL);
}

void target_close(struct target *t)
{
	shard_dataset_close(t->dataset);
	shard_reader_close(t->reader);
	*t = (struct target){0};
}

int target_first_reader(struct target *t, struct shard_reader **out)
{
	struct shard_dataset_info info;
	struct shard_error err;
	int rc;

	*out = t->reader;
	if (t->reader)
		return EXIT_DONE;
	shard_dataset_info(t->dataset, &info);
	if (!info.shard_count)
		return EXIT_DONE;
	rc = shard_dataset_reader(t->dataset, 0, out, &err);
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

int target_check_index(const struct target *t, uint64_t idx)
{
	if (idx < t->record_count)
		return EXIT_DONE;
	if (!t->record_count)
		return fail(EXIT_USAGE, "%s: record %" PRIu64 ": there are no records", t->path, idx);
	return fail(EXIT_USAGE, "%s: record %" PRIu64 ": must be 0 to %" PRIu64, t->path, idx, t->record_count - 1);
}

int target_read(struct target *t, uint32_t group, uint64_t first, uint64_t count, void *dst)
{
	struct shard_error err;
	int rc = SHARD_OK;

	void *dsts[SHARD_GROUPS_MAX] = {NULL};
	uint64_t idx[READ_RECORDS];

	if (t->reader) {
		rc = shard_reader_read(t->reader, group, first, count, dst, &err);
		return rc ? fail_of_library(&err) : EXIT_DONE;
	}
	for (uint64_t done = 0; done < count && !rc;) {
		uint64_t now = count - done < READ_RECORDS ? count - done : READ_RECORDS;

		for (uint64_t i = 0; i < now; i++)
			idx[i] = first + done + i;
		dsts[group] = (char *)dst + done * t->schema->group[group].stride;
		rc = shard_dataset_read(t->dataset, idx, now, dsts, &err);
		done += now;
	}
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

static bool group_is_needed(const struct shard_schema *schema, uint32_t group, const struct shard_field *field)
{
	uint32_t size;

	/* Lengths of a ragged field may lie in another group, and the size of a whole image. */
	if (!field || field->group == group ||
	    (field->kind != SHARD_TENSOR && schema->field[field->length_field].group == group))
		return true;
	size = shard_image_size_field(schema, (uint32_t)(field - schema->field));
	return size < schema->field_count && schema->field[size].group == group;
}

int record_read(struct target *t, uint64_t idx, const struct shard_field *field, struct record *out)
{
	int rc = target_check_index(t, idx);

	*out = (struct record){.idx = idx};
	for (uint32_t g = 0; g < t->schema->group_count && !rc; g++) {
		if (!group_is_needed(t->schema, g, field))
			continue;
		/* The record exists, so the file is large enough to deserve this much memory. */
		out->group[g] = malloc(t->schema->group[g].stride);
		if (out->group[g])
			rc = target_read(t, g, idx, 1, out->group[g]);
		else
			rc = fail(EXIT_IO, "%s: out of memory for a record of %" PRIu64 " bytes", t->path,
				  t->schema->group[g].stride);
	}
	if (rc)
		record_free(out);
	return rc;
}

void record_free(struct record *record)
{
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		free(record->group[g]);
	*record = (struct record){.idx = 0};
}

int target_key(struct target *t, uint64_t idx, struct shard_view *out)
{
	struct shard_error err;
	int rc;

	if (t->dataset) {
		rc = shard_dataset_read_key(t->dataset, idx, t->key, &out->bytes, &err);
		out->data = t->key;
	} else {
		rc = shard_reader_key(t->reader, idx, out, &err);
	}
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

int target_moments(struct target *t, uint32_t field, uint32_t channel, struct shard_moments *out,
		   struct shard_error *err)
{
	if (t->dataset)
		return shard_dataset_moments(t->dataset, field, channel, out, err);
	return shard_reader_moments(t->reader, field, channel, out, err);
}

int target_class_records(struct target *t, uint32_t field, uint64_t class_idx, uint64_t *out, struct shard_error *err)
{
	if (t->dataset)
		return shard_dataset_class_records(t->dataset, field, class_idx, out, err);
	return shard_reader_class_records(t->reader, field, class_idx, out, err);
}

const char *target_class_name(const struct target *t, uint64_t class_idx)
{
	return t->dataset ? shard_dataset_class_name(t->dataset, class_idx) : NULL;
}

bool target_find_class(const struct target *t, const char *name, size_t bytes, int64_t *out)
{
	const char *known;

	for (uint64_t i = 0; (known = target_class_name(t, i)) != NULL; i++)
		if (strlen(known) == bytes && !memcmp(known, name, bytes)) {
			*out = (int64_t)i;
			return true;
		}
	return false;
}

int target_selection(const struct target *t, const char *path, struct shard_selection **out)
{
	struct shard_error err;
	int rc;

	*out = NULL;
	rc = path ? shard_selection_read(out, t->dataset, path, &err) : SHARD_OK;
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

static bool is_integer(uint32_t dtype)
{
	return dtype >= SHARD_U8 && dtype <= SHARD_I64;
}

const struct shard_field *target_label_field(const struct target *t)
{
	for (uint32_t i = 0; i < t->schema->field_count; i++) {
		const struct shard_field *f = &t->schema->field[i];

		if (f->semantic == SHARD_LABEL && f->kind == SHARD_TENSOR && !f->ndim && is_integer(f->dtype))
			return f;
	}
	return NULL;
}
