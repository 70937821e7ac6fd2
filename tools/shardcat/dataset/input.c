/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c - the input of a verb: opened, and asked for records, keys, classes and statistics
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_inspect.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"

#define READ_RECORDS 512 /* records of a dataset that are asked for at a time: 4 KiB of indices */

struct inner_dataset {
	const char *dir;
	char name[256]; /* the first in byte order; empty if there is none */
};

static bool has_manifest(const char *dir, const char *name)
{
	char path[FILES_PATH_BYTES];

	return snprintf(path, sizeof(path), "%s/%s/dataset.manifest", dir, name) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

static void add_inner_dataset(void *context, const char *name)
{
	struct inner_dataset *inner = context;

	if (name[0] != '.' && (!inner->name[0] || strcmp(name, inner->name) < 0) && has_manifest(inner->dir, name))
		snprintf(inner->name, sizeof(inner->name), "%s", name);
}

/* A folder that cannot be opened: does shardpack only have to go on, or was another one meant? */
static void hint_without_manifest(const char *dir)
{
	struct inner_dataset inner = {.dir = dir};
	char state[FILES_PATH_BYTES];
	struct stat st;

	if (has_manifest(dir, ".") || errno != ENOENT || access(dir, R_OK | X_OK) ||
	    snprintf(state, sizeof(state), "%s/.shardpack", dir) >= (int)sizeof(state) ||
	    files_list(dir, add_inner_dataset, &inner, NULL) != EXIT_DONE)
		return;
	if (inner.name[0])
		hint("the folder holds datasets, such as %s/%s: give one of them", dir, inner.name);
	else if (stat(state, &st) || !S_ISDIR(st.st_mode))
		hint("this folder is not a dataset: shardpack or libshard.pack() makes one of images, tables or "
		     "arrays");
	else
		hint("this dataset is unfinished: run the same shardpack command again, or shardpack build and then "
		     "seal %s",
		     dir);
}

static int open_folder(struct input *in, const char *id)
{
	const struct shard_dataset_options options = {.size = sizeof(options), .expect_id = id};
	struct shard_dataset_info info;
	struct shard_error err;
	int rc = shard_dataset_open(&in->dataset, in->path, &options, &err);

	if (rc) {
		rc = fail_of_library(&err);
		hint_without_manifest(in->path);
		return rc;
	}
	in->schema = shard_dataset_schema(in->dataset);
	shard_dataset_info(in->dataset, &info);
	in->record_count = info.record_count;
	return EXIT_DONE;
}

int input_open(struct input *in, const char *path)
{
	return input_open_id(in, path, NULL);
}

int input_open_id(struct input *in, const char *path, const char *id)
{
	const char *name = strrchr(path, '/');
	struct shard_error err;
	struct shard_info info;
	struct stat st;
	int rc;

	*in = (struct input){.path = path};
	if (stat(path, &st))
		return fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return open_folder(in, id);
	rc = shard_reader_open(&in->reader, path, NULL, &err);
	if (rc) {
		rc = fail_of_library(&err);
		if (!strcmp(name ? name + 1 : path, "dataset.manifest"))
			hint("this is the manifest of a dataset; give its folder: %.*s",
			     name ? (int)(name - path) + !(name - path) : 1, name ? path : ".");
		return rc;
	}
	in->schema = shard_reader_schema(in->reader);
	shard_reader_info(in->reader, &info);
	in->record_count = info.record_count;
	return EXIT_DONE;
}

int input_open_dataset(struct input *in, const char *path)
{
	struct stat st;

	*in = (struct input){.path = path};
	if (stat(path, &st))
		return fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return fail(EXIT_USAGE,
			    "%s: not a folder; this verb needs a dataset, which is a folder with a dataset.manifest",
			    path);
	return open_folder(in, NULL);
}

void input_close(struct input *in)
{
	shard_dataset_close(in->dataset);
	shard_reader_close(in->reader);
	*in = (struct input){0};
}

int input_first_reader(struct input *in, struct shard_reader **out)
{
	struct shard_dataset_info info;
	struct shard_error err;
	int rc;

	*out = in->reader;
	if (in->reader)
		return EXIT_DONE;
	shard_dataset_info(in->dataset, &info);
	if (!info.shard_count)
		return EXIT_DONE;
	rc = shard_dataset_reader(in->dataset, 0, out, &err);
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

struct copying {
	struct shard_view from;
	char *to;
};

static void copy(void *context)
{
	const struct copying *c = context;

	memcpy(c->to, c->from.data, c->from.bytes);
}

int input_provenance(struct shard_reader *reader, char **out, struct shard_error *err)
{
	struct copying c = {0};
	int rc = shard_reader_provenance(reader, &c.from, err);

	*out = NULL;
	if (rc)
		return rc;
	c.to = xmalloc(c.from.bytes + 1, 1);
	c.to[c.from.bytes] = '\0';
	rc = c.from.bytes ? shard_reader_guarded(reader, copy, &c, err) : SHARD_OK;
	if (!rc)
		*out = c.to;
	else
		free(c.to);
	return rc;
}

int input_check_index(const struct input *in, uint64_t idx)
{
	if (idx < in->record_count)
		return EXIT_DONE;
	if (!in->record_count)
		return fail(EXIT_USAGE, "%s: record %" PRIu64 ": there are no records", in->path, idx);
	return fail(EXIT_USAGE, "%s: record %" PRIu64 ": must be 0 to %" PRIu64, in->path, idx, in->record_count - 1);
}

int input_read(struct input *in, uint32_t group, uint64_t first, uint64_t count, void *dst)
{
	void *dsts[SHARD_GROUPS_MAX] = {NULL};
	uint64_t idx[READ_RECORDS];
	struct shard_error err;
	int rc = SHARD_OK;

	if (in->reader) {
		rc = shard_reader_read(in->reader, group, first, count, dst, &err);
		return rc ? fail_of_library(&err) : EXIT_DONE;
	}
	for (uint64_t done = 0; done < count && !rc;) {
		uint64_t now = count - done < READ_RECORDS ? count - done : READ_RECORDS;

		for (uint64_t i = 0; i < now; i++)
			idx[i] = first + done + i;
		dsts[group] = (char *)dst + done * in->schema->group[group].stride;
		rc = shard_dataset_read(in->dataset, idx, now, dsts, &err);
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

int record_read(struct input *in, uint64_t idx, const struct shard_field *field, struct record *out)
{
	int rc = input_check_index(in, idx);

	*out = (struct record){.idx = idx};
	for (uint32_t g = 0; g < in->schema->group_count && !rc; g++) {
		if (!group_is_needed(in->schema, g, field))
			continue;
		/* The record exists, so the file is large enough to deserve this much memory. */
		out->group[g] = xmalloc(in->schema->group[g].stride, 1);
		rc = input_read(in, g, idx, 1, out->group[g]);
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

int input_key(struct input *in, uint64_t idx, struct shard_view *out)
{
	struct shard_error err;
	int rc;

	if (in->dataset) {
		rc = shard_dataset_key(in->dataset, idx, in->key, &out->bytes, &err);
		out->data = in->key;
	} else {
		rc = shard_reader_key(in->reader, idx, out, &err);
	}
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

int input_moments(struct input *in, uint32_t field, uint32_t channel, struct shard_moments *out,
		  struct shard_error *err)
{
	if (in->dataset)
		return shard_dataset_moments(in->dataset, field, channel, out, err);
	return shard_reader_moments(in->reader, field, channel, out, err);
}

int input_class_records(struct input *in, uint32_t field, uint64_t class_idx, uint64_t *out, struct shard_error *err)
{
	if (in->dataset)
		return shard_dataset_class_records(in->dataset, field, class_idx, out, err);
	return shard_reader_class_records(in->reader, field, class_idx, out, err);
}

const char *input_class_name(const struct input *in, uint64_t class_idx)
{
	return in->dataset ? shard_dataset_class_name(in->dataset, class_idx) : NULL;
}

bool input_find_class(const struct input *in, const char *name, size_t bytes, int64_t *out)
{
	const char *known;

	for (uint64_t i = 0; (known = input_class_name(in, i)) != NULL; i++)
		if (strlen(known) == bytes && !memcmp(known, name, bytes)) {
			*out = (int64_t)i;
			return true;
		}
	return false;
}

int input_selection(const struct input *in, const char *path, struct shard_selection **out)
{
	struct shard_error err;
	int rc;

	*out = NULL;
	rc = path ? shard_selection_read(out, in->dataset, path, &err) : SHARD_OK;
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

const struct shard_field *input_label_field(const struct input *in)
{
	for (uint32_t i = 0; i < in->schema->field_count; i++) {
		const struct shard_field *f = &in->schema->field[i];

		if (f->semantic == SHARD_LABEL && f->kind == SHARD_TENSOR && !f->ndim && dtype_is_integer(f->dtype))
			return f;
	}
	return NULL;
}
