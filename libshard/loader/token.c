/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token.c - a place in an order as one line of text, and the dataset that it belongs to
 *
 * shuffle-v1 two_levels N 1000000 r 128 w 40 L 64 u 1 seed 7 epoch 3 position 65536   dataset
 * 66e2... subset all pixels pillow-13 check 0123456789abcdef
 *
 * The token of a mixture begins with mix-v1, and has `mixture` and its digest in place of dataset
 * and subset.  N is the length of its epochs.
 *
 * The words are those of format/ORDER.md.  `pixels` is there only if images are resized: it says
 * whose pixels that gives.  `subset` is followed by `all`, or by the digest of a selection: then N
 * is the number of its records.  `check` is the XXH3-64 of the text before it, so a token that lost
 * a digit is refused.  There is only one way to write a place.
 */
#include "libshard/loader/loader.h"

#include <inttypes.h>
#include <stdio.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"

static const char *const kind_names[] = {
	[ORDER_SEQUENTIAL] = "sequential", [ORDER_ONE_LEVEL] = "one_level", [ORDER_TWO_LEVELS] = "two_levels"};

/* Of the order, and of what is loaded. */
static const char *const names[] = {"shuffle-v1", "mix-v1"};
static const char *const things[] = {"dataset", "mixture"};

void token_write(const struct token *t, char text[SHARD_TOKEN_BYTES])
{
	const struct order_params *p = &t->params;
	int used = snprintf(text, SHARD_TOKEN_BYTES,
			    "%s %s N %" PRIu64 " r %" PRIu64 " w %" PRIu32 " L %" PRIu32 " u %" PRIu64 " seed %" PRIu64
			    " epoch %" PRIu64 " position %" PRIu64 " %s %s",
			    names[t->is_mix], kind_names[p->kind], p->record_count, p->run_records, p->window_runs,
			    p->lane_count, p->phase_unit_records, p->seed, p->epoch, t->position, things[t->is_mix],
			    t->dataset_id);

	if (!t->is_mix)
		used += snprintf(text + used, SHARD_TOKEN_BYTES - (size_t)used, " subset %s",
				 *t->selection ? t->selection : "all");
	if (t->pixels)
		used += snprintf(text + used, SHARD_TOKEN_BYTES - (size_t)used, " pixels %s",
				 shard_name(SHARD_NAME_PIXELS, t->pixels));
	/* 14 words, 10 numbers of at most 20 digits, and two hashes: 490 bytes at most. */
	snprintf(text + used, SHARD_TOKEN_BYTES - (size_t)used, " check %016" PRIx64, checksum64(text, (size_t)used));
}

/* A word and the number behind it. */
static bool take(struct words *c, const char *word, uint64_t most, uint64_t *out)
{
	return words_is(c, ' ', word) && words_u64(c, ' ', most, out);
}

static bool take_kind(struct words *c, enum order_kind *kind)
{
	for (*kind = ORDER_SEQUENTIAL; *kind <= ORDER_TWO_LEVELS; (*kind)++)
		if (words_is(c, ' ', kind_names[*kind]))
			return true;
	return false;
}

static bool take_hash(struct words *c, char hash[65])
{
	struct word w;

	if (!words_take(c, ' ', &w) || w.bytes != 64)
		return false;
	memcpy(hash, w.text, 64);
	return true;
}

/* The last words may be missing.  token_read() notices whatever else stands in their place. */
static void take_rest(struct words *c, struct token *t)
{
	struct word w;

	if (words_is(c, ' ', "subset") && !words_is(c, ' ', "all"))
		take_hash(c, t->selection);
	if (words_is(c, ' ', "pixels") && words_take(c, ' ', &w))
		name_find(SHARD_NAME_PIXELS, w.text, w.bytes, &t->pixels);
}

bool token_read(const char *text, struct token *t)
{
	char again[SHARD_TOKEN_BYTES];
	struct order_params *p = &t->params;
	struct words c = words_of(text, strnlen(text, SHARD_TOKEN_BYTES));
	uint64_t windows, lanes;

	memset(t, 0, sizeof(*t));
	if (c.end == text + SHARD_TOKEN_BYTES)
		return false;
	t->is_mix = words_is(&c, ' ', names[1]);
	if ((!t->is_mix && !words_is(&c, ' ', names[0])) || !take_kind(&c, &p->kind) ||
	    !take(&c, "N", UINT64_MAX, &p->record_count) || !take(&c, "r", UINT64_MAX, &p->run_records) ||
	    !take(&c, "w", UINT32_MAX, &windows) || !take(&c, "L", UINT32_MAX, &lanes) ||
	    !take(&c, "u", UINT64_MAX, &p->phase_unit_records) || !take(&c, "seed", UINT64_MAX, &p->seed) ||
	    !take(&c, "epoch", UINT64_MAX, &p->epoch) || !take(&c, "position", UINT64_MAX, &t->position) ||
	    !words_is(&c, ' ', things[t->is_mix]) || !take_hash(&c, t->dataset_id))
		return false;
	p->window_runs = (uint32_t)windows;
	p->lane_count = (uint32_t)lanes;
	take_rest(&c, t);
	token_write(t, again); /* words behind, and a wrong checksum, are written differently */
	return !strcmp(text, again);
}

/* ---- does a token belong to this dataset as it was before others were appended? ---- */

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
				 "is the manifest of dataset %.16s..., not of the one in its name; begin a new epoch",
				 id);
	if (!begins_with(ds, &m, &old))
		return error_set(err, SHARD_E_MISMATCH,
				 "its %" PRIu64 " shards are not the first ones of %s, so that dataset was changed in "
				 "other ways than by appending; begin a new epoch",
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
		return error_set(
			err, SHARD_E_MISMATCH,
			"the token belongs to dataset %.16s..., and there is no file %s, so this dataset was not "
			"made by appending to that one; begin a new epoch",
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
		return error_set(err, SHARD_E_ARGUMENT, "the token names dataset '%s', which is not a dataset id",
				 t->dataset_id);
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
