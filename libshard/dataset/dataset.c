/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c - a manifest and its shards as one index space
 *
 * Opening reads the manifest and nothing else, in one pass that checks its text and remembers where
 * things are.  A shard is opened when a record of it is first wanted, and compared with the
 * manifest then.
 */
#include "libshard/dataset/dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/base/words.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_inspect.h"

/* ---- open ---- */

/*
 * Fills the tables as the lines are read; they grow by doubling, since no number in the file is
 * trusted to size them.
 */
struct filler {
	struct shard_dataset *ds;
	uint64_t records;
	size_t shard_room, class_room, name_room, name_bytes;
	size_t stat_room[2][SHARD_FIELDS_MAX];
	bool no_memory; /* set once; then nothing is stored any more */
};

/* Room for item `idx`. */
static bool room_for(struct filler *f, void *array, size_t *room, uint64_t idx, size_t item_bytes)
{
	f->no_memory = f->no_memory || !mem_grow(array, room, idx + 1, item_bytes);
	return !f->no_memory;
}

static void fill_class(void *context, uint64_t idx, const char *name, size_t bytes)
{
	struct filler *f = context;
	long decoded;

	if (!room_for(f, &f->ds->class_at, &f->class_room, idx, sizeof(*f->ds->class_at)) ||
	    !room_for(f, &f->ds->class_names, &f->name_room, f->name_bytes + bytes, 1))
		return;
	f->ds->class_at[idx] = f->name_bytes;
	decoded = text_decode(name, bytes, false, f->ds->class_names + f->name_bytes); /* M10: never -1 */
	f->name_bytes += (decoded < 0 ? 0 : (size_t)decoded) + 1;
}

static void fill_moments(void *context, uint32_t field, uint32_t channel, const struct shard_moments *m)
{
	struct filler *f = context;

	if (!room_for(f, &f->ds->moments[field], &f->stat_room[0][field], channel, sizeof(*m)))
		return;
	f->ds->moments[field][channel] = *m;
	f->ds->stat_count[SHARD_STAT_MOMENTS - 1][field] = channel + 1;
}

static void fill_class_records(void *context, uint32_t field, uint64_t class_idx, uint64_t records)
{
	struct filler *f = context;

	if (!room_for(f, &f->ds->class_records[field], &f->stat_room[1][field], class_idx, sizeof(records)))
		return;
	f->ds->class_records[field][class_idx] = records;
	f->ds->stat_count[SHARD_STAT_CLASSES - 1][field] = class_idx + 1;
}

static void fill_shard(void *context, uint64_t idx, const struct manifest_shard *s)
{
	struct filler *f = context;
	size_t room = f->shard_room;

	/* first_record is one longer, so both grow when the longer one must */
	if (!room_for(f, &f->ds->first_record, &f->shard_room, idx + 1, sizeof(*f->ds->first_record)) ||
	    !room_for(f, &f->ds->line, &room, idx + 1, sizeof(*f->ds->line)))
		return;
	f->ds->line[idx] = s->file;
	f->ds->first_record[idx] = f->records;
	f->records += s->record_count;
	f->ds->first_record[idx + 1] = f->records;
	f->ds->data_bytes += s->file_bytes;
}

/* The options, looked at alone.  `id` becomes the id that is expected, in lower case. */
static int check_options(struct shard_dataset_options *o, const struct shard_dataset_options *opt, char id[65],
			 struct shard_error *err)
{
	struct shown s;
	uint8_t bytes[32];
	size_t digits = 0;
	int rc = options_take(o, sizeof(*o), opt, err);

	if (rc)
		return rc;
	if (o->check > SHARD_CHECK_FIRST || o->guard > SHARD_GUARD_OFF)
		return error_set(err, SHARD_E_ARGUMENT, "options: check is %u, guard %u; must be at most 3 and 2",
				 o->check, o->guard);
	if (!o->expect_id)
		return SHARD_OK;
	for (; digits < 64 && o->expect_id[digits]; digits++) {
		char c = o->expect_id[digits];

		id[digits] = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
	}
	id[digits] = 0;
	if (digits < 64 || o->expect_id[64] || !hex_to_bytes(bytes, id, sizeof(bytes)))
		return error_set(err, SHARD_E_ARGUMENT, "options: expect_id is '%s'; an id has 64 hex digits",
				 show(&s, o->expect_id));
	o->expect_id = id; /* the caller's may go */
	return SHARD_OK;
}

int shard_dataset_open(struct shard_dataset **out, const char *dir, const struct shard_dataset_options *opt,
		       struct shard_error *err)
{
	struct shard_dataset *ds = mem_zalloc(sizeof(*ds));
	struct filler filler = {.ds = ds};
	const struct manifest_sink fill = {&filler, fill_class, fill_moments, fill_class_records, fill_shard};
	char id[65], got[65];
	uint8_t digest[32];
	int rc;

	if (!ds)
		return error_set(err, SHARD_E_MEMORY, "no memory for a dataset");
	rc = check_options(&ds->o, opt, id, err);
	if (rc)
		goto out;
	ds->dir = mem_text(dir);
	ds->manifest_path = mem_join(dir, DATASET_MANIFEST);
	if (!ds->dir || !ds->manifest_path) {
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a dataset");
		goto out;
	}
	rc = manifest_file_read(&ds->text, ds->manifest_path, err);
	if (rc)
		goto out;
	rc = manifest_parse(ds->text.text, ds->text.end.end_at, &ds->m, &fill, err);
	if (!rc && (!readers_open(&ds->readers, ds->m.shard_count) || filler.no_memory))
		rc = error_set(err, SHARD_E_MEMORY, "no memory for the tables of %" PRIu64 " shards",
			       ds->m.shard_count);
	if (!rc && ds->o.expect_id) {
		/*
		 * The id covers the text of the manifest, and so the SHA-256 of each shard.  It is
		 * computed from the text: an end line could say anything.
		 */
		rc = manifest_file_check_id(ds->text.text, &ds->text.end, digest, err);
		hex_from_bytes(got, digest, sizeof(digest));
		if (!rc && memcmp(got, id, sizeof(got)))
			rc = error_set(err, SHARD_E_MISMATCH,
				       "the dataset's id is %s; %s is expected: it is another dataset, or was changed",
				       got, id);
	}
	ds->o.expect_id = NULL; /* it was this function's */
	if (rc) {
		error_prefix(err, ds->manifest_path);
		goto out;
	}
	*out = ds;
	ds = NULL;
out:
	shard_dataset_close(ds);
	return rc;
}

void shard_dataset_close(struct shard_dataset *ds)
{
	if (!ds)
		return;
	readers_close(&ds->readers);
	for (uint32_t i = 0; i < SHARD_FIELDS_MAX; i++) {
		mem_free(ds->moments[i]);
		mem_free(ds->class_records[i]);
	}
	mem_free(ds->part_shard);
	mem_free(ds->part);
	mem_free(ds->class_at);
	mem_free(ds->class_names);
	mem_free(ds->line);
	mem_free(ds->first_record);
	mem_free(ds->text.text);
	mem_free(ds->manifest_path);
	mem_free(ds->dir);
	mem_free(ds);
}

/*
 * ---- the readers that are open, which may be fewer than were used ----
 *
 * Linux limits the maps of a process, and each open shard takes one.  When too many are open, the
 * ones that were not used for longest are closed.  A thread that uses readers is inside, from
 * readers_enter() to readers_leave(): a reader that it gets there stays open until it leaves.  A
 * reader that a program gets from shard_dataset_reader() stays open as long as the dataset.
 *
 * There is no lock, which a forked child might inherit locked.  A child of a fork that happened
 * between enter and leave of another thread closes nothing, and may reach the limit.
 *
 * Which reader was not used for longest is found as a clock finds it: a hand goes round the table,
 * clears the flags of use, and takes out what it finds without one.
 */

#define AT_ONCE	 64u	/* readers that are closed together, when one is too many */
#define LOOKS_AT 16384u /* words that are looked at to find them: kept readers may be in the way */

static _Atomic uint64_t open_count; /* readers of all datasets of this process */

bool readers_open(struct readers *t, uint64_t count)
{
	t->word = mem_array((size_t)count, sizeof(*t->word));
	t->count = count;
	/* The other half is for the maps of everything else: allocators, libraries, threads. */
	t->most = memory_maps_most() / 2;
	atomic_flag_clear(&t->busy);
	return t->word;
}

static void close_all(struct shard_reader *r)
{
	while (r) {
		struct shard_reader *next = r->next_retired;

		shard_reader_close(r);
		atomic_fetch_sub_explicit(&open_count, 1, memory_order_relaxed);
		r = next;
	}
}

void readers_close(struct readers *t)
{
	for (uint64_t i = 0; t->word && i < t->count; i++) {
		struct shard_reader *r = readers_peek(t, i);

		if (!r)
			continue;
		r->next_retired = NULL;
		close_all(r);
	}
	close_all(t->retired[0]);
	close_all(t->retired[1]);
	mem_free((void *)t->word);
	t->word = NULL;
}

unsigned readers_enter(struct readers *t)
{
	for (;;) {
		unsigned era = atomic_load(&t->era);

		atomic_fetch_add(&t->inside[era & 1], 1);
		if (atomic_load(&t->era) == era)
			return era & 1;
		atomic_fetch_sub(&t->inside[era & 1], 1); /* it began meanwhile, and did not see us */
	}
}

void readers_leave(struct readers *t, unsigned entered)
{
	atomic_fetch_sub(&t->inside[entered], 1);
}

/* The reader of a shard if it is kept, else NULL.  The caller need not be inside. */
static struct shard_reader *readers_kept(const struct readers *t, uint64_t idx)
{
	uintptr_t word = atomic_load_explicit(&t->word[idx], memory_order_acquire);

	return word & READERS_KEPT ? readers_peek(t, idx) : NULL;
}

/* Keep it open as long as the dataset.  Returns false if it is not there any more. */
static bool readers_keep(struct readers *t, uint64_t idx, const struct shard_reader *r)
{
	uintptr_t word = atomic_load(&t->word[idx]);

	while ((word & ~READERS_FLAGS) == (uintptr_t)r)
		if (word & READERS_KEPT || atomic_compare_exchange_weak(&t->word[idx], &word, word | READERS_KEPT))
			return true;
	return false;
}

/*
 * If nobody is left of the era before, close what waited for that, and begin the next era.  Returns
 * whether a reader was closed.
 */
static bool pass_era(struct readers *t)
{
	unsigned before = (atomic_load(&t->era) + 1) & 1;
	struct shard_reader *retired = t->retired[before];

	if (atomic_load(&t->inside[before]))
		return false;
	t->retired[before] = NULL;
	atomic_fetch_add(&t->era, 1);
	close_all(retired);
	return retired;
}

/* Returns whether the reader of a word was taken out of the table. */
static bool take_out(struct readers *t, uint64_t idx)
{
	uintptr_t word = atomic_load_explicit(&t->word[idx], memory_order_acquire);
	struct shard_reader *r = (struct shard_reader *)(word & ~READERS_FLAGS); /* NOLINT(performance-no-int-to-ptr) */
	struct shard_reader **list = &t->retired[atomic_load(&t->era) & 1];

	if (!word || word & READERS_KEPT)
		return false;
	if (word & READERS_USED) { /* a thread that uses it now sets the flag again */
		atomic_compare_exchange_strong(&t->word[idx], &word, word & ~(uintptr_t)READERS_USED);
		return false;
	}
	if (!atomic_compare_exchange_strong(&t->word[idx], &word, 0))
		return false;
	r->next_retired = *list;
	*list = r;
	return true;
}

bool readers_make_room(struct readers *t, bool all)
{
	uint64_t taken = 0, want = all ? UINT64_MAX : AT_ONCE, looks = all ? 2 * t->count : LOOKS_AT;
	bool closed;

	if (!all && atomic_load_explicit(&open_count, memory_order_relaxed) < t->most)
		return false;
	if (atomic_flag_test_and_set(&t->busy))
		return false;
	closed = pass_era(t);
	for (uint64_t looked = 0; looked < looks && taken < want; looked++) {
		taken += take_out(t, t->hand);
		t->hand = t->hand + 1 < t->count ? t->hand + 1 : 0;
	}
	closed |= pass_era(t);
	atomic_flag_clear(&t->busy);
	return taken || closed;
}

/* ---- shards ---- */

/* The part of a joined dataset that has a shard; *shard becomes its number there. */
static struct shard_dataset *part_of(const struct shard_dataset *ds, uint64_t *shard)
{
	uint64_t part = run_holding(ds->part_shard, ds->part_count, *shard);

	*shard -= ds->part_shard[part];
	return ds->part[part];
}

/* The line was checked at open; taken apart again it cannot fail. */
static void parse_entry(const struct shard_dataset *ds, uint64_t idx, struct manifest_shard *out)
{
	const char *lf = strchr(ds->line[idx], '\n');
	struct tokens t = {ds->line[idx], lf, TOKEN_OK, NULL};
	struct word file = tokens_take(&t, "file");

	memset(out, 0, sizeof(*out));
	out->file = file.text;
	out->file_name_bytes = file.bytes;
	tokens_take(&t, "bytes");
	out->file_bytes = tokens_number(&t, "bytes", UINT64_MAX);
	tokens_take(&t, "records");
	out->record_count = tokens_number(&t, "records", UINT64_MAX);
	tokens_take(&t, "root");
	tokens_hash(&t, "root", out->root);
	tokens_take(&t, "sha256");
	tokens_hex(&t, "sha256", out->sha256, 32);
}

/* D2 to D5: is this the shard that the manifest names? */
static int check_against_manifest(const struct shard_dataset *ds, const struct shard_reader *r,
				  const struct manifest_shard *want, struct shard_error *err)
{
	char got_root[33], want_root[33];

	MUST_OR(SHARD_E_MISMATCH, "D2", r->file_bytes == want->file_bytes,
		"has %" PRIu64 " bytes; the manifest says %" PRIu64, r->file_bytes, want->file_bytes);
	manifest_hash_text(got_root, r->pages->root);
	manifest_hash_text(want_root, want->root);
	MUST_OR(SHARD_E_MISMATCH, "D3", !memcmp(r->pages->root, want->root, sizeof(want->root)),
		"is another shard: its root is %s; the manifest says %s", got_root, want_root);
	MUST_OR(SHARD_E_MISMATCH, "D4", r->pages->record_count == want->record_count,
		"has %" PRIu64 " records; the manifest says %" PRIu64, r->pages->record_count, want->record_count);
	MUST_OR(SHARD_E_MISMATCH, "D5", schema_equal(&r->pages->schema, &ds->m.schema),
		"its groups and fields are not those of the manifest");
	return SHARD_OK;
}

/* A shard that cannot be used has another size than its manifest says: then it was cut or not copied whole. */
static void say_sizes(const char *path, const struct manifest_shard *want, struct shard_error *why)
{
	size_t used = strlen(why->message);
	uint64_t bytes;
	int fd;

	if (file_open(path, &fd, &bytes, NULL, NULL) != SHARD_OK)
		return;
	file_close(fd);
	if (bytes != want->file_bytes)
		snprintf(why->message + used, sizeof(why->message) - used,
			 "; the file has %" PRIu64 " bytes, and the manifest says %" PRIu64
			 ": copy it again from where it is whole",
			 bytes, want->file_bytes);
}

int dataset_open_shard(const struct shard_dataset *ds, uint64_t idx, struct shard_reader **out, struct shard_error *err)
{
	struct shard_reader_options o = {.size = sizeof(o), .check = ds->o.check, .guard = ds->o.guard};
	struct shard_error local, *why = err ? err : &local;
	struct manifest_shard want;
	struct shard_reader *r = NULL;
	char name[512], *path;
	int rc;

	if (ds->part_count)
		ds = part_of(ds, &idx);
	parse_entry(ds, idx, &want);
	memcpy(name, want.file, want.file_name_bytes); /* at most 401 bytes, M12 */
	name[want.file_name_bytes] = 0;
	path = mem_join(ds->dir, name);
	if (!path)
		return error_set(err, SHARD_E_MEMORY, "no memory for a path");
	rc = shard_reader_open(&r, path, &o, why);
	if (rc == SHARD_E_IO && why->os_code == ENOENT) {
		rc = invariant_broken(err, SHARD_E_MISMATCH, "D1",
				      "the manifest names it, but the file does not exist");
		error_prefix(err, path);
	} else if (rc == SHARD_E_CORRUPT) {
		say_sizes(path, &want, why);
	} else if (!rc) {
		rc = check_against_manifest(ds, r, &want, err);
		if (rc)
			error_prefix(err, path);
	}
	mem_free(path);
	if (rc) {
		shard_reader_close(r);
		return rc;
	}
	reader_share_schema(&r, &ds->m.schema);
	*out = r;
	return SHARD_OK;
}

static int check_shard_idx(const struct shard_dataset *ds, uint64_t idx, struct shard_error *err)
{
	struct shown s;

	return idx < ds->m.shard_count
		       ? SHARD_OK
		       : error_set(err, SHARD_E_ARGUMENT, "%s: there is no shard %" PRIu64 "; the dataset has %" PRIu64,
				   show(&s, ds->dir), idx, ds->m.shard_count);
}

int shard_dataset_open_reader(const struct shard_dataset *ds, uint64_t idx, struct shard_reader **out,
			      struct shard_error *err)
{
	int rc = check_shard_idx(ds, idx, err);

	return rc ? rc : dataset_open_shard(ds, idx, out, err);
}

int dataset_use_shard(struct shard_dataset *ds, uint64_t idx, struct shard_reader **out, struct shard_error *err)
{
	struct shard_error local, *why = err ? err : &local;
	_Atomic uintptr_t *word = &ds->readers.word[idx];
	uintptr_t there = atomic_load_explicit(word, memory_order_acquire);
	struct shard_reader *r;
	int rc;

	/*
	 * It may leave the table before the flag is set.  Then the flag of the next reader that is
	 * opened says little.
	 */
	if (there && !(there & READERS_USED))
		atomic_compare_exchange_strong(word, &there, there | READERS_USED);
	*out = readers_peek(&ds->readers, idx);
	if (*out)
		return SHARD_OK;
	readers_make_room(&ds->readers, false);
	rc = dataset_open_shard(ds, idx, &r, why);
	if (rc == SHARD_E_IO && why->os_code == ENOMEM && readers_make_room(&ds->readers, true))
		rc = dataset_open_shard(ds, idx, &r, why);
	if (rc)
		return rc;
	there = 0;
	if (atomic_compare_exchange_strong(word, &there, (uintptr_t)r | READERS_USED)) {
		atomic_fetch_add_explicit(&open_count, 1, memory_order_relaxed);
		*out = r;
	} else { /* there is no lock, and another thread was first; its reader may have left the table since */
		shard_reader_close(r);
		*out = (struct shard_reader *)(there & ~READERS_FLAGS); /* NOLINT(performance-no-int-to-ptr) */
	}
	return SHARD_OK;
}

int shard_dataset_reader(struct shard_dataset *ds, uint64_t idx, struct shard_reader **out, struct shard_error *err)
{
	unsigned entered;
	int rc = check_shard_idx(ds, idx, err);

	if (rc)
		return rc;
	*out = readers_kept(&ds->readers, idx);
	if (*out)
		return SHARD_OK;
	entered = readers_enter(&ds->readers);
	do
		rc = dataset_use_shard(ds, idx, out, err);
	while (!rc && !readers_keep(&ds->readers, idx, *out)); /* it was closed again meanwhile */
	readers_leave(&ds->readers, entered);
	return rc;
}

int shard_dataset_entry(const struct shard_dataset *ds, uint64_t idx, struct shard_entry *out, struct shard_error *err)
{
	struct manifest_shard m;
	int rc = check_shard_idx(ds, idx, err);

	if (rc)
		return rc;
	if (ds->part_count) {
		uint64_t within = idx;
		const struct shard_dataset *part = part_of(ds, &within);

		rc = shard_dataset_entry(part, within, out, err);
		out->first_record = ds->first_record[idx];
		return rc;
	}
	parse_entry(ds, idx, &m);
	*out = (struct shard_entry){.file = m.file,
				    .file_name_bytes = (uint32_t)m.file_name_bytes,
				    .file_bytes = m.file_bytes,
				    .record_count = m.record_count,
				    .first_record = ds->first_record[idx]};
	memcpy(out->root, m.root, sizeof(out->root));
	memcpy(out->sha256, m.sha256, sizeof(out->sha256));
	return SHARD_OK;
}

uint64_t dataset_shard_of(const struct shard_dataset *ds, uint64_t idx)
{
	return run_holding(ds->first_record, ds->m.shard_count, idx);
}

/* ---- what it is ---- */

void dataset_id(const struct shard_dataset *ds, char id[65])
{
	hex_from_bytes(id, ds->text.end.sha256, sizeof(ds->text.end.sha256));
}

int dataset_check_id(const struct shard_dataset *ds, const char want[65], const char *what, struct shard_error *err)
{
	char id[65];

	dataset_id(ds, id);
	if (!strcmp(want, id))
		return SHARD_OK;
	return error_set(err, SHARD_E_MISMATCH, "%s of dataset %.16s..., and this is dataset %.16s...", what, want, id);
}

bool dataset_is_remote(const struct shard_dataset *ds)
{
	bool remote = !ds->part_count && file_is_remote(ds->dir);

	for (uint32_t p = 0; !remote && p < ds->part_count; p++)
		remote = file_is_remote(ds->part[p]->dir);
	return remote;
}

const struct shard_schema *shard_dataset_schema(const struct shard_dataset *ds)
{
	return &ds->m.schema;
}

void shard_dataset_manifest(const struct shard_dataset *ds, struct shard_view *out)
{
	*out = (struct shard_view){ds->text.text, ds->text.bytes};
}

void shard_dataset_info(const struct shard_dataset *ds, struct shard_dataset_info *out)
{
	memset(out, 0, sizeof(*out));
	out->record_count = ds->m.record_count;
	out->shard_count = ds->m.shard_count;
	out->data_bytes = ds->data_bytes;
	out->class_count = ds->m.class_count;
	out->seed = ds->m.seed;
	out->order = ds->m.order;
	out->has_plan_digest = ds->m.has_plan_digest;
	memcpy(out->plan_digest, ds->m.plan_digest, sizeof(out->plan_digest));
	dataset_id(ds, out->id);
}

const char *shard_dataset_class_name(const struct shard_dataset *ds, uint64_t class_idx)
{
	ds = ds->part_count ? ds->part[0] : ds; /* all parts have the same */
	return class_idx < ds->m.class_count ? ds->class_names + ds->class_at[class_idx] : NULL;
}

int shard_dataset_moments(const struct shard_dataset *ds, uint32_t field, uint32_t channel, struct shard_moments *out,
			  struct shard_error *err)
{
	(void)err;
	if (field >= SHARD_FIELDS_MAX || channel >= ds->stat_count[SHARD_STAT_MOMENTS - 1][field])
		return SHARD_END;
	*out = ds->moments[field][channel];
	return SHARD_OK;
}

int shard_dataset_class_records(const struct shard_dataset *ds, uint32_t field, uint64_t class_idx, uint64_t *out,
				struct shard_error *err)
{
	(void)err;
	if (field >= SHARD_FIELDS_MAX || class_idx >= ds->stat_count[SHARD_STAT_CLASSES - 1][field])
		return SHARD_END;
	*out = ds->class_records[field][class_idx];
	return SHARD_OK;
}

/* ---- as it was before others were appended ---- */

/* Returns NULL if there is no memory. */
static char *old_manifest_path(const struct shard_dataset *ds, const char *id)
{
	char name[sizeof(DATASET_MANIFEST) + 65];

	snprintf(name, sizeof(name), DATASET_MANIFEST ".%s", id);
	return mem_join(ds->dir, name);
}

/* A token is a text from anywhere: its id must not lead elsewhere. */
static bool is_id(const char *id)
{
	uint8_t bytes[32];

	return hex_to_bytes(bytes, id, sizeof(bytes));
}

bool dataset_has_old_manifest(const struct shard_dataset *ds, const char *id)
{
	char *path = is_id(id) && !ds->part_count ? old_manifest_path(ds, id) : NULL;
	bool has = path && file_exists(path);

	mem_free(path);
	return has;
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

int dataset_records_before(const struct shard_dataset *ds, const char *id, uint64_t *records, struct shard_error *err)
{
	struct old_lines old = {NULL, NULL};
	const struct manifest_sink sink = {.context = &old, .on_shard = note_shard};
	struct manifest_file text = {.text = NULL};
	struct manifest m;
	struct shown s;
	uint8_t digest[32];
	char got[65], *path;
	int rc;

	if (!is_id(id))
		return error_set(err, SHARD_E_ARGUMENT, "the token names dataset '%s', which is not a dataset id", id);
	if (ds->part_count)
		return error_set(err, SHARD_E_MISMATCH,
				 "the token belongs to dataset %.16s..., and the loader has %s, whose epochs cannot be "
				 "finished over fewer records; begin a new epoch",
				 id, show(&s, ds->dir));
	path = old_manifest_path(ds, id);
	if (!path)
		return error_set(err, SHARD_E_MEMORY, "no memory for a path");
	if (file_exists(path))
		rc = manifest_file_read(&text, path, err);
	else
		rc = error_set(
			err, SHARD_E_MISMATCH,
			"the token belongs to dataset %.16s..., and there is no file %s, so this dataset was not "
			"made by appending to that one; begin a new epoch",
			id, show(&s, path));
	if (rc)
		goto out; /* both name the file */
	rc = manifest_parse(text.text, text.end.end_at, &m, &sink, err);
	if (!rc)
		rc = manifest_file_check_id(text.text, &text.end, digest, err);
	if (!rc)
		hex_from_bytes(got, digest, sizeof(digest));
	if (!rc && strcmp(got, id))
		rc = error_set(err, SHARD_E_MISMATCH,
			       "is the manifest of dataset %.16s..., not of the one in its name; begin a new epoch",
			       got);
	if (!rc && !begins_with(ds, &m, &old))
		rc = error_set(err, SHARD_E_MISMATCH,
			       "its %" PRIu64 " shards are not the first ones of %s, so that dataset was changed in "
			       "other ways than by appending; begin a new epoch",
			       m.shard_count, ds->manifest_path);
	if (rc)
		error_prefix(err, path);
	else
		*records = m.record_count;
out:
	mem_free(text.text);
	mem_free(path);
	return rc;
}

/* ---- a program's own reads of the maps, under the guard ---- */

struct guarded {
	void (*work)(void *context);
	void *context;
	const struct shard_dataset *ds;
	const struct shard_reader *of; /* whose map could not be read */
};

static void run_work(void *context)
{
	struct guarded *g = context;

	g->work(g->context);
}

/* Runs in the handler of SIGBUS.  A program has views only of readers that are kept. */
static bool is_of_dataset(void *context, uintptr_t at)
{
	struct guarded *g = context;

	for (uint64_t i = 0; i < g->ds->m.shard_count; i++) {
		const struct shard_reader *r = readers_kept(&g->ds->readers, i);

		if (r && at >= (uintptr_t)r->map && at < (uintptr_t)r->map + r->file_bytes) {
			g->of = r;
			return true;
		}
	}
	return false;
}

int shard_dataset_guarded(const struct shard_dataset *ds, void (*work)(void *context), void *context,
			  struct shard_error *err)
{
	struct guarded g = {work, context, ds, NULL};

	if (ds->o.guard == SHARD_GUARD_OFF) {
		work(context);
		return SHARD_OK;
	}
	guard_ask_at_times();
	return guard_run_where(is_of_dataset, run_work, &g) ? SHARD_OK : reader_cut(g.of, err);
}
