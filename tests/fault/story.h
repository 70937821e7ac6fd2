/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.h - what the tests of this folder disturb: a small dataset written, sealed and read back
 *
 * The same seed gives the same bytes, so what a disturbed run leaves can be compared with what an
 * undisturbed one does.  The dataset has one of everything: a raw and a compressed group, a ragged
 * field, keys, statistics, misses, provenance.
 */
#ifndef TESTS_FAULT_STORY_H
#define TESTS_FAULT_STORY_H

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "libshard/write/write.h"
#include "shard.h"
#include "shard_pack.h"
#include "tests/test.h"

#define STORY_CLASSES 3u
#define STORY_SEEDS   2u     /* at most */
#define STORY_RECORDS 96u    /* of a seed, at most */
#define STORY_WRONG   (-100) /* not a status: the call said OK, and what it gave is wrong */

static const char *const story_class[STORY_CLASSES] = {"cat", "dog", "white space"};

struct story_record {
	uint8_t image[64 * 64 * 3];
	struct shard_moments moments[3];
	int64_t label;
	uint32_t length;
	char text[20];
	char key[32];
};

static inline void story_schema(struct shard_schema *s)
{
	*s = (struct shard_schema){
		.group_count = 2,
		.field_count = 4,
		.group[1].codec = SHARD_LZ4,
		.field[0] = {.name = "image",
			     .dtype = SHARD_U8,
			     .layout = SHARD_HWC,
			     .semantic = SHARD_IMAGE,
			     .ndim = 3,
			     .shape = {64, 64, 3}},
		.field[1] = {.name = "label", .dtype = SHARD_I64, .semantic = SHARD_LABEL, .group = 1},
		.field[2] = {.name = "length",
			     .dtype = SHARD_U32,
			     .semantic = SHARD_LENGTH,
			     .group = 1,
			     .ndim = 1,
			     .shape = {1}},
		.field[3] = {.name = "text",
			     .dtype = SHARD_U8,
			     .kind = SHARD_STRING,
			     .semantic = SHARD_TEXT,
			     .group = 1,
			     .ndim = 1,
			     .shape = {20},
			     .ragged_axes = 1,
			     .length_field = 2},
	};
	if (shard_schema_lay_out(s, 0, NULL))
		test_fail(__FILE__, __LINE__, "the schema cannot be laid out");
}

static inline void story_make(struct story_record *r, uint64_t seed, uint64_t idx)
{
	uint64_t state = seed * 1000003 + idx * 7919 + 1;

	memset(r, 0, sizeof(*r));
	for (size_t i = 0; i < sizeof(r->image); i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		r->image[i] = (uint8_t)(state >> 56);
		r->moments[i % 3].count++;
		r->moments[i % 3].sum += r->image[i];
		r->moments[i % 3].sum_squares_low += (uint64_t)r->image[i] * r->image[i];
	}
	r->label = (int64_t)(idx % STORY_CLASSES);
	r->length = (uint32_t)(idx % 20);
	memset(r->text, 'a' + (int)(idx % 26), r->length);
	snprintf(r->key, sizeof(r->key), "%s/%" PRIu64, story_class[idx % STORY_CLASSES], seed * 1000 + idx);
}

/* Record `idx` of `seed`; made once, since it is told thousands of times. */
static inline const struct story_record *story_record(uint64_t seed, uint64_t idx)
{
	static struct story_record made[STORY_SEEDS][STORY_RECORDS];
	struct story_record *r = &made[seed][idx];

	if (!r->key[0])
		story_make(r, seed, idx);
	return r;
}

/* The meta group's part of a record, where the schema puts it. */
static inline void story_meta(const struct shard_schema *s, const struct story_record *r, uint8_t out[static 64])
{
	memset(out, 0, 64);
	memcpy(out + s->field[1].offset, &r->label, sizeof(r->label));
	memcpy(out + s->field[2].offset, &r->length, sizeof(r->length));
	memcpy(out + s->field[3].offset, r->text, sizeof(r->text));
}

static inline int story_append(struct shard_writer *w, const struct shard_schema *s, const struct story_record *r,
			       struct shard_error *err)
{
	uint8_t meta[64];
	const void *group[2] = {r->image, meta};
	int rc;

	story_meta(s, r, meta);
	rc = shard_writer_append(w, group, r->key, strlen(r->key), err);
	for (uint32_t c = 0; !rc && c < 3; c++)
		rc = writer_add_moments(w, 0, c, &r->moments[c], err);
	return rc;
}

/* Write the shard `path`: records 0 to count of `seed`. */
static inline int story_write(const char *path, uint64_t seed, uint64_t count, bool skip_read_back,
			      struct shard_written *out, struct shard_error *err)
{
	static const uint8_t digest[32] = "thirty-two bytes of plan digest";
	struct shard_writer_options o = {.size = sizeof(o),
					 .planned_records = count + 2,
					 .plan_shard = seed,
					 .plan_digest = digest,
					 .provenance = "a story",
					 .keys = 1,
					 .skip_read_back = skip_read_back,
					 .class_count = STORY_CLASSES};
	static const struct shard_miss miss = {7, SHARD_MISS_EMPTY, SHARD_SKIPPED};
	struct shard_writer *w = NULL;
	struct shard_schema schema;
	int rc;

	story_schema(&schema);
	rc = shard_writer_open(&w, path, &schema, &o, err);
	for (uint64_t i = 0; !rc && i < count; i++)
		rc = story_append(w, &schema, story_record(seed, i), err);
	if (!rc)
		rc = shard_writer_miss(w, &miss, err);
	if (!rc)
		rc = shard_writer_finish(w, out, err);
	shard_writer_close(w);
	return rc;
}

/*
 * Seal `count` shards 00000.shard and on.  Without `written` their files are read for their
 * SHA-256.
 */
static inline int story_seal(const char *dir, const struct shard_written *written, uint64_t count,
			     struct shard_error *err)
{
	struct shard_seal_options o = {.size = sizeof(o),
				       .class_names = story_class,
				       .class_count = STORY_CLASSES,
				       .seed = 9,
				       .order = SHARD_ORDER_SHUFFLE};
	struct shard_seal *s = NULL;
	int rc = shard_seal_open(&s, dir, &o, err);

	for (uint64_t i = 0; !rc && i < count; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%05u.shard", (unsigned)i);
		rc = shard_seal_add(s, name, NULL, written ? written[i].sha256 : NULL, err);
	}
	if (!rc)
		rc = shard_seal_finish(s, err);
	shard_seal_close(s);
	return rc;
}

/* The same manifest, of the one shard of a sealed dataset, which is reused as `file`. */
static inline int story_reuse(const char *dir, const char *from, const char *file, uint32_t how,
			      struct shard_error *err)
{
	struct shard_seal_options o = {.size = sizeof(o),
				       .class_names = story_class,
				       .class_count = STORY_CLASSES,
				       .seed = 9,
				       .order = SHARD_ORDER_SHUFFLE};
	struct shard_dataset *ds = NULL;
	struct shard_seal *s = NULL;
	int rc = shard_dataset_open(&ds, from, NULL, err);

	if (!rc)
		rc = shard_seal_open(&s, dir, &o, err);
	if (!rc)
		rc = shard_seal_reuse(s, ds, 0, file, &how, err);
	if (!rc)
		rc = shard_seal_finish(s, err);
	shard_seal_close(s);
	shard_dataset_close(ds);
	return rc;
}

/* Read record `idx` of the dataset, which is record `inside` of the shard of `seed`. */
static inline int story_read_one(struct shard_dataset *ds, uint64_t idx, uint64_t seed, uint64_t inside,
				 struct shard_error *err)
{
	const struct story_record *want = story_record(seed, inside);
	static uint8_t image[1 << 14], meta[1 << 10];
	uint8_t want_meta[64];
	void *dst[2] = {image, meta};
	char key[SHARD_KEY_BYTES_MAX];
	size_t key_bytes = 0;
	int rc = shard_dataset_read(ds, &idx, 1, dst, err);

	if (!rc)
		rc = shard_dataset_key(ds, idx, key, &key_bytes, err);
	if (rc)
		return rc;
	story_meta(shard_dataset_schema(ds), want, want_meta);
	return memcmp(image, want->image, sizeof(want->image)) ||
			       memcmp(meta, want_meta, (size_t)shard_dataset_schema(ds)->group[1].record_bytes) ||
			       key_bytes != strlen(want->key) || memcmp(key, want->key, key_bytes)
		       ? STORY_WRONG
		       : SHARD_OK;
}

/* Open, read the first and last record of each shard, verify.  Shard s holds records of seed s. */
static inline int story_read(const char *dir, uint64_t shards, uint64_t count, uint32_t threads,
			     struct shard_error *err)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = threads, .sha256 = 1};
	struct shard_verify_report report;
	struct shard_dataset_info info = {.record_count = 0};
	struct shard_dataset *ds = NULL;
	int rc = shard_dataset_open(&ds, dir, NULL, err);

	if (!rc)
		shard_dataset_info(ds, &info);
	if (!rc && info.record_count != shards * count)
		rc = STORY_WRONG;
	for (uint64_t s = 0; !rc && s < shards; s++) {
		rc = story_read_one(ds, s * count, s, 0, err);
		if (!rc)
			rc = story_read_one(ds, s * count + count - 1, s, count - 1, err);
	}
	if (!rc && threads) {
		rc = shard_dataset_verify(ds, &o, &report, err);
		if (!rc && (report.problem_count || report.record_count != shards * count))
			rc = STORY_WRONG;
	}
	shard_dataset_close(ds);
	return rc;
}

/* ---- folders, for the tests themselves ---- */

static inline const char *story_tmp(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp ? tmp : "/tmp";
}

static inline bool story_is_temp(const char *name)
{
	return !strncmp(name, ".tmp.", 5);
}

/* How many names `dir` holds, temporary ones apart. */
static inline void story_count(const char *dir, unsigned *finals, unsigned *temps)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	*finals = *temps = 0;
	if (!d)
		test_fail(__FILE__, __LINE__, "%s: cannot be listed", dir);
	while ((e = readdir(d))) {
		if (story_is_temp(e->d_name))
			++*temps;
		else if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			++*finals;
	}
	closedir(d);
}

/* An empty folder `name` below $TMPDIR, whatever was there before. */
static inline void story_folder(char out[static 4096], const char *name)
{
	char path[8192];
	struct dirent *e;
	DIR *d;

	snprintf(out, 4096, "%s/%s.%d", story_tmp(), name, (int)getpid());
	if (mkdir(out, 0755) && errno != EEXIST)
		test_fail(__FILE__, __LINE__, "%s: cannot be made", out);
	d = opendir(out);
	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", out, e->d_name);
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlink(path);
	}
	closedir(d);
}

static inline unsigned story_open_fds(void)
{
	unsigned finals, temps;

	story_count("/proc/self/fd", &finals, &temps);
	return finals;
}

struct story_file {
	uint8_t *data;
	size_t bytes;
	bool there;
};

static inline struct story_file story_load(const char *dir, const char *name)
{
	struct story_file f = {NULL, 0, false};
	char path[8192];
	struct stat st;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	in = fopen(path, "rb");
	if (!in)
		return f;
	f.there = true;
	if (!fstat(fileno(in), &st) && st.st_size) {
		f.data = malloc((size_t)st.st_size);
		f.bytes = f.data ? fread(f.data, 1, (size_t)st.st_size, in) : 0;
	}
	fclose(in);
	return f;
}

static inline bool story_same(const struct story_file *a, const struct story_file *b)
{
	return a->there == b->there && a->bytes == b->bytes && (!a->bytes || !memcmp(a->data, b->data, a->bytes));
}

/* Is `dir`/`name` absent (0), exactly `want` (1) or something else (-1)? */
static inline int story_compare(const char *dir, const char *name, const struct story_file *want)
{
	struct story_file got = story_load(dir, name);
	int verdict = !got.there ? 0 : story_same(&got, want) ? 1 : -1;

	free(got.data);
	return verdict;
}

#endif
