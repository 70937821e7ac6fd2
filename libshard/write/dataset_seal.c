/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_seal.c - shards become a dataset: the manifest, written last
 *
 * Takes from each shard what its footer says, adds up the statistics, and publishes one canonical
 * text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/base/utf8.h"
#include "libshard/base/words.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "libshard/write/write.h"
#include "shard_pack.h"

struct text {
	char *bytes;
	size_t used, room;
};

struct sums {
	struct shard_moments *moments; /* per channel */
	uint64_t *records;	       /* per class */
	uint64_t channel_count, class_count;
	size_t class_room;
	/* a shard has none, or a sum does not fit: the manifest states none either */
	bool moments_lost, records_lost;
};

struct shard_seal {
	char *dir;
	struct shard_seal_options o; /* its pointers are the caller's, and may be gone after open */
	uint8_t plan_digest[32];
	bool has_plan_digest;
	bool unsynced; /* the folder has names that may not be durable */
	struct text classes, shards;
	struct shard_schema schema;
	uint64_t shard_count, record_count;
	struct sums sums[SHARD_FIELDS_MAX];
};

static int text_add(struct text *t, const char *bytes, size_t count, struct shard_error *err)
{
	if (!mem_grow(&t->bytes, &t->room, t->used + count, 1))
		return error_set(err, SHARD_E_MEMORY, "no memory for a manifest of %zu bytes", t->used + count);
	memcpy(t->bytes + t->used, bytes, count);
	t->used += count;
	return SHARD_OK;
}

/* M16, M17: the third words of `count` lines, all different? */
static int check_unique(const struct text *lines, uint64_t count, const char *what, struct shard_error *err)
{
	const char **name = mem_array((size_t)count, sizeof(*name)), *at = lines->bytes;
	struct shown s;
	int rc = name ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory to compare %" PRIu64 " names", count);

	for (uint64_t i = 0; name && i < count; i++, at = strchr(at, '\n') + 1)
		name[i] = strchr(strchr(at, ' ') + 1, ' ') + 1;
	if (name && count)
		qsort(name, (size_t)count, sizeof(*name), manifest_by_name);
	for (uint64_t i = 1; !rc && i < count; i++)
		if (!manifest_by_name(&name[i - 1], &name[i]))
			rc = error_set(err, SHARD_E_ARGUMENT, "two %s '%s'", what,
				       show_bytes(&s, name[i], strcspn(name[i], " \n")));
	mem_free(name);
	return rc;
}

static int add_classes(struct shard_seal *s, struct shard_error *err)
{
	char line[SHARD_MANIFEST_LINE_BYTES_MAX + 1];
	struct shown shown;
	int rc = SHARD_OK;

	if (s->o.class_count > SHARD_CLASSES_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "options: class_count is %" PRIu64 "; must be at most %" PRIu64,
				 s->o.class_count, SHARD_CLASSES_MAX);
	if (s->o.class_count && !s->o.class_names)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: class_count is %" PRIu64 ", but class_names is NULL; give a name for each",
				 s->o.class_count);
	for (uint64_t i = 0; !rc && i < s->o.class_count; i++) {
		const char *name = s->o.class_names[i];
		size_t bytes = strlen(name), used;

		if (bytes < 1 || bytes > SHARD_CLASS_NAME_BYTES_MAX || utf8_bad_or_nul(name, bytes) != bytes)
			return error_set(err, SHARD_E_ARGUMENT,
					 "class %" PRIu64 ": its name '%s' must be UTF-8 of 1 to %u bytes", i,
					 show(&shown, name), SHARD_CLASS_NAME_BYTES_MAX);
		used = (size_t)snprintf(line, sizeof(line), "class %" PRIu64 " ", i);
		used += percent_encode(line + used, name, bytes, false);
		line[used++] = '\n';
		rc = text_add(&s->classes, line, used, err);
	}
	return rc ? rc : check_unique(&s->classes, s->o.class_count, "classes are named", err);
}

int shard_seal_open(struct shard_seal **out, const char *dir, const struct shard_seal_options *opt,
		    struct shard_error *err)
{
	struct shard_seal *s = mem_zalloc(sizeof(*s));
	int rc;

	if (!s)
		return error_set(err, SHARD_E_MEMORY, "no memory for a seal");
	rc = options_take(&s->o, sizeof(s->o), opt, err);
	if (!rc && (s->o.order > SHARD_ORDER_SHUFFLE || s->o.replace > 1))
		rc = error_set(err, SHARD_E_ARGUMENT, "options: order is %u, replace %u; must be at most 2 and 1",
			       s->o.order, s->o.replace);
	if (!rc && text_is_url(dir)) {
		struct shown shown;

		rc = error_set(err, SHARD_E_ARGUMENT, "%s: " URL_REMEDY, show(&shown, dir));
	}
	if (!rc) {
		s->dir = mem_text(dir);
		rc = s->dir ? add_classes(s, err) : error_set(err, SHARD_E_MEMORY, "no memory for a path");
	}
	s->has_plan_digest = s->o.plan_digest;
	if (s->has_plan_digest)
		memcpy(s->plan_digest, s->o.plan_digest, sizeof(s->plan_digest));
	if (rc) {
		shard_seal_close(s);
		return rc;
	}
	*out = s;
	return SHARD_OK;
}

void shard_seal_close(struct shard_seal *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < SHARD_FIELDS_MAX; i++) {
		mem_free(s->sums[i].moments);
		mem_free(s->sums[i].records);
	}
	mem_free(s->shards.bytes);
	mem_free(s->classes.bytes);
	mem_free(s->dir);
	mem_free(s);
}

/* ---- add ---- */

static bool add_moments_fit(struct shard_moments *to, const struct shard_moments *add)
{
	unsigned __int128 a = (unsigned __int128)to->sum_squares_high << 64 | to->sum_squares_low;
	bool fits = add_fits(to->count, add->count, &to->count) && add_fits(to->sum, add->sum, &to->sum);

	a += add->sum_squares_low;
	to->sum_squares_low = (uint64_t)a;
	to->sum_squares_high = (uint64_t)(a >> 64);
	return fits;
}

static int sum_moments(struct shard_seal *s, const struct shard_reader *r, uint32_t field, struct shard_error *err)
{
	struct sums *sums = &s->sums[field];
	uint64_t channels = schema_channels(&s->schema.field[field]), found;
	const uint8_t *items = reader_stat(r, SHARD_STAT_MOMENTS, field, &found);

	if (found < channels && r->pages->record_count)
		sums->moments_lost = true;
	for (uint64_t c = 0; !sums->moments_lost && c < found && c < channels; c++) {
		const uint8_t *at = items + sizeof(struct disk_moments) * c;
		struct shard_moments m = {load64(at), load64(at + 8), load64(at + 16), 0};

		if (!sums->moments) {
			sums->moments = mem_array((size_t)channels, sizeof(*sums->moments));
			if (!sums->moments)
				return error_set(err, SHARD_E_MEMORY, "no memory for statistics");
			sums->channel_count = channels;
		}
		sums->moments_lost = !add_moments_fit(&sums->moments[c], &m);
	}
	return SHARD_OK;
}

static int sum_classes(struct shard_seal *s, const struct shard_reader *r, uint32_t field, struct shard_error *err)
{
	struct sums *sums = &s->sums[field];
	uint64_t found;
	const uint8_t *items = reader_stat(r, SHARD_STAT_CLASSES, field, &found);

	if (!found && r->pages->record_count)
		sums->records_lost = true;
	if (sums->records_lost || !found)
		return SHARD_OK;
	if (!mem_grow(&sums->records, &sums->class_room, found, sizeof(*sums->records)))
		return error_set(err, SHARD_E_MEMORY, "no memory for class counts");
	sums->class_count = max_u64(sums->class_count, found);
	for (uint64_t c = 0; !sums->records_lost && c < found; c++)
		sums->records_lost = !add_fits(sums->records[c], load64(items + 8 * c), &sums->records[c]);
	return SHARD_OK;
}

static int add_shard(struct shard_seal *s, struct shard_reader *r, const char *file, const uint8_t *sha256,
		     struct shard_error *err)
{
	struct manifest_shard m = {.file = file, .file_name_bytes = strlen(file), .file_bytes = r->file_bytes};
	char line[SHARD_MANIFEST_LINE_BYTES_MAX + 1];
	struct shown shown;
	int rc = SHARD_OK;

	if (s->shard_count && !schema_equal(&s->schema, r->schema))
		return error_set(err, SHARD_E_MISMATCH,
				 "%s: its groups and fields are not those of the shards before it",
				 show(&shown, r->path));
	rc = reader_need_stat(r, -1, err);
	if (!rc && sha256)
		memcpy(m.sha256, sha256, sizeof(m.sha256));
	else if (!rc)
		rc = verify_hash_file(r->path, m.sha256, err);
	if (rc)
		return rc;
	s->schema = *r->schema;
	if (!add_fits(s->record_count, r->pages->record_count, &s->record_count) ||
	    s->record_count > SHARD_DATASET_RECORDS_MAX)
		return error_set(err, SHARD_E_ARGUMENT,
				 "%s: with this shard the dataset has more than the limit of "
				 "%" PRIu64 " records",
				 show(&shown, r->path), SHARD_DATASET_RECORDS_MAX);
	for (uint32_t i = 0; !rc && i < s->schema.field_count; i++) {
		rc = sum_moments(s, r, i, err);
		if (!rc)
			rc = sum_classes(s, r, i, err);
	}
	if (rc)
		return rc;
	m.record_count = r->pages->record_count;
	memcpy(m.root, r->pages->root, sizeof(m.root));
	rc = text_add(&s->shards, line, manifest_write_shard(line, s->shard_count, &m), err);
	if (!rc)
		s->shard_count++;
	return rc;
}

/* The path of a shard that is to be added, to be freed. */
static int path_of(const struct shard_seal *s, const char *file, char **out, struct shard_error *err)
{
	struct shown shown;

	if (!manifest_name_good(file, strlen(file)))
		return error_set(err, SHARD_E_ARGUMENT,
				 "shard file name '%s' must be one or two parts of A-Z a-z 0-9 . _ - of at most 200 "
				 "bytes, each beginning with none of . and -",
				 show(&shown, file));
	*out = mem_join(s->dir, file);
	return *out ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for a path");
}

/* `root` is what it must have; NULL: any. */
static int open_and_add(struct shard_seal *s, const char *path, const char *file, const uint8_t *sha256,
			const uint8_t *root, struct shard_error *err)
{
	const struct shard_reader_options pages = {.size = sizeof(pages), .pages_only = 1};
	struct shard_reader *r = NULL;
	struct shown shown;
	int rc = shard_reader_open(&r, path, &pages, err);

	if (!rc && root && memcmp(r->pages->root, root, sizeof(r->pages->root)))
		rc = error_set(err, SHARD_E_MISMATCH, "%s: is another shard than the manifest of its dataset says",
			       show(&shown, path));
	if (!rc)
		rc = add_shard(s, r, file, sha256, err);
	shard_reader_close(r);
	return rc;
}

int shard_seal_add(struct shard_seal *s, const char *file, struct shard_reader *r, const uint8_t *sha256,
		   struct shard_error *err)
{
	size_t path_bytes = r ? strlen(r->path) : 0, file_bytes = strlen(file);
	struct shown shown;
	char *path;
	int rc = path_of(s, file, &path, err);

	if (rc)
		return rc;
	if (!r)
		rc = open_and_add(s, path, file, sha256, NULL, err);
	else if (path_bytes < file_bytes || strcmp(r->path + path_bytes - file_bytes, file))
		rc = error_set(err, SHARD_E_ARGUMENT, "%s: is not the file that is added", show(&shown, r->path));
	else
		rc = add_shard(s, r, file, sha256, err);
	mem_free(path);
	return rc;
}

int shard_seal_reuse(struct shard_seal *s, struct shard_dataset *from, uint64_t idx, const char *file, uint32_t *how,
		     struct shard_error *err)
{
	struct shard_reader *r = NULL;
	struct shard_entry e;
	char *path;
	int rc = *how > SHARD_REUSE_COPY ? error_set(err, SHARD_E_ARGUMENT, "how is %u; must be at most 2", *how)
					 : shard_dataset_entry(from, idx, &e, err);

	if (!rc)
		rc = path_of(s, file, &path, err);
	if (rc)
		return rc;
	s->unsynced = true;
	rc = dataset_open_shard(from, idx, &r, err);
	rc = rc ? rc : reuse_shard(r, e.sha256, path, how, err);
	shard_reader_close(r);
	rc = rc || !strchr(file, '/') ? rc : reuse_sync(path, err); /* finish syncs s->dir */
	if (!rc)						    /* is it what it was? */
		rc = open_and_add(s, path, file, e.sha256, e.root, err);
	mem_free(path);
	return rc;
}

/* ---- finish ---- */

/* The whole text, in the order of its lines. */
static int write_manifest(const struct shard_seal *s, struct text *t, struct shard_error *err)
{
	char line[SHARD_MANIFEST_LINE_BYTES_MAX + 1], plan[65] = "-", order[48] = "-", id[65], hash_text[33];
	uint8_t digest[SHA256_BYTES];
	struct sha256 sha;
	struct hash128 hash;
	int rc;

	if (s->has_plan_digest)
		hex_from_bytes(plan, s->plan_digest, 32);
	if (s->o.order == SHARD_ORDER_SHUFFLE)
		snprintf(order, sizeof(order), "shuffle %" PRIu64, s->o.seed);
	else if (s->o.order == SHARD_ORDER_SOURCE)
		snprintf(order, sizeof(order), "source");
	rc = text_add(t, line,
		      (size_t)snprintf(line, sizeof(line),
				       "shardset 1\nrecords %" PRIu64 "\nshards %" PRIu64 "\nplan %s\norder %s\n",
				       s->record_count, s->shard_count, plan, order),
		      err);
	for (uint32_t g = 0; !rc && g < s->schema.group_count; g++)
		rc = text_add(t, line, manifest_write_group(line, &s->schema, g), err);
	for (uint32_t f = 0; !rc && f < s->schema.field_count; f++)
		rc = text_add(t, line, manifest_write_field(line, &s->schema, f), err);
	if (!rc && s->classes.used)
		rc = text_add(t, s->classes.bytes, s->classes.used, err);
	for (uint32_t f = 0; !rc && f < s->schema.field_count; f++)
		for (uint64_t c = 0; !rc && !s->sums[f].moments_lost && c < s->sums[f].channel_count; c++)
			rc = text_add(t, line, manifest_write_moments(line, f, (uint32_t)c, &s->sums[f].moments[c]),
				      err);
	for (uint32_t f = 0; !rc && f < s->schema.field_count; f++)
		for (uint64_t c = 0; !rc && !s->sums[f].records_lost && c < s->sums[f].class_count; c++)
			rc = text_add(t, line,
				      (size_t)snprintf(line, sizeof(line), "stat classes %u %" PRIu64 " %" PRIu64 "\n",
						       f, c, s->sums[f].records[c]),
				      err);
	if (!rc)
		rc = text_add(t, s->shards.bytes, s->shards.used, err);
	if (rc)
		return rc;
	/* The last line: the SHA-256 of all lines before it, and the checksum of all text before that. */
	sha256_init(&sha);
	sha256_update(&sha, t->bytes, t->used);
	sha256_final(&sha, digest);
	hex_from_bytes(id, digest, sizeof(digest));
	rc = text_add(t, line, (size_t)snprintf(line, sizeof(line), "end %s ", id), err);
	if (rc)
		return rc;
	hash = checksum128(t->bytes, t->used);
	manifest_hash_text(hash_text, hash.b);
	return text_add(t, line, (size_t)snprintf(line, sizeof(line), "%s\n", hash_text), err);
}

int shard_seal_finish(struct shard_seal *s, struct shard_error *err)
{
	struct text t = {NULL, 0, 0};
	char *path = mem_join(s->dir, DATASET_MANIFEST);
	struct shown shown;
	int rc = path ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for a path");

	if (!rc && !s->shard_count)
		rc = error_set(err, SHARD_E_ARGUMENT,
			       "%s: no shard was added, so the fields of a record are unknown; add one, even with 0 "
			       "records",
			       show(&shown, s->dir));
	if (!rc)
		rc = check_unique(&s->shards, s->shard_count, "shards have the file name", err);
	if (!rc)
		rc = write_manifest(s, &t, err);
	if (!rc && s->unsynced)
		rc = file_make_durable(s->dir, err);
	if (!rc)
		rc = shard_publish(path, t.bytes, t.used, (int)s->o.replace, err);
	mem_free(t.bytes);
	mem_free(path);
	return rc;
}
