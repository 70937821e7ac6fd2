/* SPDX-License-Identifier: Apache-2.0 */
/*
 * before_append.c - does a token belong to this dataset as it was before others were appended?
 */
#include "libshard/loader/loader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"

/* The path of the manifest that is kept; NULL: no memory. */
static char *kept_path(const struct shard_dataset *ds, const struct token *t)
{
	char name[sizeof(DATASET_MANIFEST) + 65];

	snprintf(name, sizeof(name), DATASET_MANIFEST ".%s", t->dataset_id);
	return mem_join(ds->dir, name);
}

/* A token is a text from anywhere: its id must not lead elsewhere. */
static bool has_id(const struct token *t)
{
	uint8_t id[32];

	return hex_to_bytes(id, t->dataset_id, sizeof(id));
}

bool before_append_is_kept(const struct shard_dataset *ds, const struct token *t)
{
	char *path = has_id(t) ? kept_path(ds, t) : NULL;
	bool there = path && file_exists(path);

	mem_free(path);
	return there;
}

struct old_lines {
	const char *first, *last; /* lines of shards, where their files' names start */
};

static void note_shard(void *context, uint64_t idx, const struct manifest_shard *s)
{
	struct old_lines *l = context;

	l->first = idx ? l->first : s->file;
	l->last = s->file;
}

/* Lines of shards follow each other, so they are compared in one piece. */
static bool begins_with(const struct shard_dataset *ds, const struct manifest *m, const struct old_lines *old)
{
	size_t bytes;

	if (!m->shard_count || m->shard_count > ds->m.shard_count)
		return false;
	bytes = (size_t)(strchr(old->last, '\n') - old->first);
	return ds->text.end.end_at - (size_t)(ds->line[0] - ds->text.text) > bytes &&
	       !memcmp(ds->line[0], old->first, bytes) && ds->line[0][bytes] == '\n';
}

static int compare(const struct shard_dataset *ds, const struct manifest_file *text, const struct token *t,
		   uint64_t *records, struct shard_error *err)
{
	struct old_lines old = {NULL, NULL};
	const struct manifest_sink sink = {.context = &old, .on_shard = note_shard};
	struct manifest m;
	uint8_t digest[32];
	char id[65];
	int rc = manifest_parse(text->text, text->end.end_at, &m, &sink, err);

	if (!rc)
		rc = manifest_file_check_id(text->text, &text->end, digest, err);
	if (rc)
		return rc;
	hex_from_bytes(id, digest, sizeof(digest));
	if (strcmp(id, t->dataset_id))
		return error_set(err, SHARD_E_MISMATCH,
				 "is the manifest of dataset %.16s..., not of the one in its name; begin an epoch anew",
				 id);
	if (!begins_with(ds, &m, &old))
		return error_set(err, SHARD_E_MISMATCH,
				 "its %" PRIu64 " shards are not the first ones of %s, so that dataset was changed "
				 "otherwise than by appending; begin an epoch anew",
				 m.shard_count, ds->manifest_path);
	*records = m.record_count;
	return SHARD_OK;
}

static int read_kept(const struct shard_dataset *ds, const struct token *t, const char *path, uint64_t *records,
		     struct shard_error *err)
{
	struct manifest_file text;
	struct shown s;
	int rc;

	if (!file_exists(path))
		return error_set(err, SHARD_E_MISMATCH,
				 "the token belongs to dataset %.16s..., and %s is no file, so this dataset was not "
				 "made by appending to that one; begin an epoch anew",
				 t->dataset_id, show(&s, path));
	rc = manifest_file_read(&text, path, err);
	if (rc)
		return rc;
	rc = compare(ds, &text, t, records, err);
	if (rc)
		error_prefix(err, path);
	mem_free(text.text);
	return rc;
}

int before_append_find(struct before_append *out, const struct shard_dataset *ds,
		       const struct shard_selection *selection, const struct token *t, struct shard_error *err)
{
	uint64_t epoch = t->params.epoch, records = 0;
	char *path;
	int rc;

	memset(out, 0, sizeof(*out));
	if (!has_id(t))
		return error_set(err, SHARD_E_ARGUMENT, "the token names dataset '%s', which is no id", t->dataset_id);
	path = kept_path(ds, t);
	if (!path)
		return error_set(err, SHARD_E_MEMORY, "no memory for a path");
	rc = read_kept(ds, t, path, &records, err);
	mem_free(path);
	if (rc)
		return rc;
	memcpy(out->id, t->dataset_id, sizeof(out->id));
	out->records = selection ? selection_beginning(selection, out->id, records, out->selection) : records;
	/* An epoch that was not begun will have all records, as those behind it. */
	if (t->position || epoch)
		out->early = (struct steps_early){.last_epoch = t->position ? epoch : epoch - 1,
						  .order_records = out->records,
						  .records = records};
	return SHARD_OK;
}
