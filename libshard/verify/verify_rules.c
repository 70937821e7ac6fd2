/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_rules.c - the rules that opening does not look at, but for those of units: of tables,
 * gaps, ragged fields, and the manifest
 *
 * Nothing here may fault on a map whose pages are not there: the kernel would read some MiB around
 * each, then find itself reading in order and go on with it, and every sample of the cache would
 * tell of its own work.
 */
#include "libshard/verify/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_inspect.h"

#define FETCH_BYTES  ((size_t)1 << 20)
#define HASH_BYTES   ((size_t)1 << 20)
#define RAGGED_BYTES ((size_t)16 << 20) /* records that are read at once, if they are smaller */

/* ---- tables and gaps: run under the guard, on the map ---- */

struct tables_job {
	struct shard_reader *r;
	struct shard_error *err;
	int rc;
};

static int check_gaps(const struct shard_reader *r, struct shard_error *err)
{
	const struct pages *p = r->pages;
	uint64_t begin = SHARD_PAGE_BYTES; /* of the gap before section i, or behind the last one */

	for (uint32_t i = 0; i <= p->section_count; i++) {
		bool is_last = i == p->section_count;
		uint64_t end = is_last ? p->file_bytes - SHARD_PAGE_BYTES : p->section[i].offset;
		size_t bad = first_nonzero(r->map + begin, (size_t)(end - begin));

		MUST("I48", bad == end - begin, "byte %" PRIu64 ", in the gap between sections, is 0x%02x; must be 0",
		     begin + bad, r->map[begin + bad]);
		begin = is_last ? end : p->section[i].offset + p->section[i].bytes;
	}
	return SHARD_OK;
}

static int check_chunks(const struct shard_reader *r, uint32_t group, struct shard_error *err)
{
	uint64_t count = reader_unit_count(r, group);
	struct chunk c;
	int rc = SHARD_OK;

	for (uint64_t i = 0; !rc && i < count; i++)
		rc = reader_chunk(r, group, i, &c, err);
	if (!count) {
		const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, group);

		MUST("I45", !data || !data->bytes, "group %u has no chunks, but DATA has %" PRIu64 " bytes", group,
		     data->bytes);
	}
	return rc;
}

static int check_shared(const struct shard_reader *r, struct shard_error *err)
{
	const struct pages *p = r->pages;
	const struct section *koff = pages_find(p, SHARD_SECTION_KOFF, 0), *kblb = pages_find(p, SHARD_SECTION_KBLB, 0);
	const struct section *stat = pages_find(p, SHARD_SECTION_STAT, 0), *miss = pages_find(p, SHARD_SECTION_MISS, 0);
	const struct section *prov = pages_find(p, SHARD_SECTION_PROV, 0);
	int rc = SHARD_OK;

	if (koff && kblb)
		rc = keys_check_offsets(r->map + koff->offset, p->record_count, kblb->bytes, err);
	if (!rc && koff && kblb)
		rc = keys_check_text(r->map + koff->offset, r->map + kblb->offset, kblb->bytes, p->record_count, err);
	if (!rc && stat)
		rc = stat_check(r->schema, r->map + stat->offset, stat->bytes, stat->items, p->record_count, err);
	if (!rc && miss)
		rc = miss_check(r->map + miss->offset, miss->bytes / sizeof(struct disk_miss), p->record_count,
				p->planned_records, err);
	if (!rc && prov)
		rc = provenance_check(r->map + prov->offset, prov->bytes, err);
	return rc;
}

static void tables_work(void *context)
{
	struct tables_job *job = context;
	struct shard_reader *r = job->r;
	int rc = SHARD_OK;

	for (uint32_t g = 0; !rc && g < r->schema->group_count; g++)
		if (r->group[g].compressed && r->group[g].index)
			rc = check_chunks(r, g, job->err);
	if (!rc)
		rc = check_gaps(r, job->err);
	if (!rc)
		rc = check_shared(r, job->err);
	job->rc = rc;
}

/*
 * Read [begin, end) into the page cache, through `buffer`.  A failure is noticed by the users of
 * the map.
 */
static void fetch(int fd, uint8_t *buffer, uint64_t begin, uint64_t end, const char *path)
{
	for (int rc = SHARD_OK; !rc && begin < end; begin += FETCH_BYTES)
		rc = file_read_at(fd, buffer, (size_t)min_u64(FETCH_BYTES, end - begin), begin, path, NULL);
}

void verify_fetch_tables(const struct shard_reader *r, const char *path)
{
	uint8_t *buffer = mem_alloc(FETCH_BYTES);
	uint64_t bytes, end = SHARD_PAGE_BYTES;
	int fd = -1;

	if (buffer && !file_open(path, &fd, &bytes, NULL, NULL) && bytes == r->file_bytes) {
		for (uint32_t i = 0; i < r->pages->section_count; i++) {
			const struct section *s = &r->pages->section[i];

			if (s->type != SHARD_SECTION_DATA)
				continue;
			fetch(fd, buffer, end, s->offset, path);
			end = s->offset + s->bytes;
		}
		fetch(fd, buffer, end, r->file_bytes, path);
	}
	file_close(fd);
	mem_free(buffer);
}

int verify_tables(struct shard_reader *r, struct shard_error *err)
{
	struct tables_job job = {r, err, SHARD_OK};
	int rc = pages_check_compat(r->pages, err);

	if (rc) {
		error_prefix(err, r->path);
		return rc;
	}
	for (uint32_t i = 0; !rc && i < r->pages->section_count; i++)
		if (r->pages->section[i].type != SHARD_SECTION_DATA)
			rc = reader_check_section(r, &r->pages->section[i], err);
	if (!rc)
		rc = reader_guarded(r, tables_work, &job, err);
	if (!rc && job.rc) {
		error_prefix(err, r->path);
		rc = job.rc;
	}
	return rc;
}

/* ---- ragged fields ---- */

bool verify_has_ragged(const struct shard_schema *s)
{
	for (uint32_t i = 0; i < s->field_count; i++)
		if (s->field[i].kind != SHARD_TENSOR)
			return true;
	return false;
}

struct ragged_job {
	struct shard_reader *r;
	uint8_t *record[SHARD_GROUPS_MAX]; /* records of each group, as they lie */
	uint32_t size[SHARD_FIELDS_MAX];   /* shard_image_size_field() of each field */
	verify_on_problem *on_problem;
	void *context;
	struct shard_error *err, first;
	int worst; /* status of `first`, the first problem told */
};

static const uint8_t *ragged_bytes(const struct ragged_job *j, const struct shard_field *f, uint64_t at)
{
	return j->record[f->group] + at * f->stride + f->offset;
}

/* Record `idx` of the shard, number `at` of those read. */
static int check_ragged_record(struct ragged_job *j, uint64_t idx, uint64_t at)
{
	const struct shard_schema *s = j->r->schema;
	int rc = SHARD_OK;

	for (uint32_t f = 0; !rc && f < s->field_count; f++) {
		const struct shard_field *field = &s->field[f], *length = &s->field[field->length_field];

		if (field->kind == SHARD_TENSOR)
			continue;
		rc = record_check_ragged(field, ragged_bytes(j, field, at), ragged_bytes(j, length, at), idx, j->err);
		if (!rc && j->size[f] < s->field_count)
			rc = record_check_size(field, ragged_bytes(j, &s->field[j->size[f]], at),
					       ragged_bytes(j, length, at), idx, j->err);
	}
	if (!rc)
		return SHARD_OK;
	error_prefix(j->err, j->r->path);
	if (!j->on_problem)
		return rc;
	j->on_problem(j->context, j->err);
	if (!j->worst && j->err)
		j->first = *j->err;
	j->worst = j->worst ? j->worst : rc;
	return SHARD_OK; /* the run goes on */
}

/*
 * Records [first, first + count), which fit.  Those of damaged units are passed over:
 * verify_units() tells of them.
 */
static int check_ragged_records(struct ragged_job *j, uint64_t first, uint64_t count)
{
	int rc = SHARD_OK;

	for (uint32_t g = 0; !rc && g < j->r->schema->group_count; g++)
		rc = shard_reader_read(j->r, g, first, count, j->record[g], j->err);
	if (rc == SHARD_E_CORRUPT) {
		rc = SHARD_OK;
		for (uint64_t i = 0; !rc && count > 1 && i < count; i++)
			rc = check_ragged_records(j, first + i, 1);
		return rc;
	}
	for (uint64_t i = 0; !rc && i < count; i++)
		rc = check_ragged_record(j, first + i, i);
	return rc;
}

uint64_t verify_ragged_piece(const struct shard_reader *r, uint64_t first)
{
	uint64_t bytes = schema_strides(r->schema), longest = 1, count;

	for (uint32_t g = 0; g < r->schema->group_count; g++)
		if (r->group[g].unit_records > longest)
			longest = r->group[g].unit_records;
	/* cppcheck-suppress zerodiv */
	count = RAGGED_BYTES / bytes; /* I14, I18: there is a group, and its stride is not 0 */
	if (count >= longest)
		count -= count % longest; /* so that no chunk is decoded twice */
	return min_u64(count ? count : 1, r->pages->record_count - first);
}

int verify_ragged(struct shard_reader *r, uint64_t first, uint64_t count, verify_on_problem *on_problem, void *context,
		  struct shard_error *err)
{
	struct ragged_job j = {.r = r, .on_problem = on_problem, .context = context, .err = err};
	uint64_t room = verify_ragged_piece(r, 0);
	int rc = SHARD_OK;

	for (uint32_t g = 0; g < r->schema->group_count; g++) {
		j.record[g] = mem_array((size_t)room, (size_t)r->schema->group[g].stride);
		if (!j.record[g])
			rc = error_set(err, SHARD_E_MEMORY, "no memory for %" PRIu64 " records", room);
	}
	for (uint32_t f = 0; f < r->schema->field_count; f++)
		j.size[f] = shard_image_size_field(r->schema, f);
	for (uint64_t n; !rc && count; first += n, count -= n) {
		n = min_u64(room, count);
		rc = check_ragged_records(&j, first, n);
	}
	for (uint32_t g = 0; g < r->schema->group_count; g++)
		mem_free(j.record[g]);
	if (j.worst && !rc && err)
		*err = j.first;
	return rc ? rc : j.worst;
}

/* ---- the manifest: what opening a dataset does not look at ---- */

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
	bool named = x->count && bsearch(&name, x->order, (size_t)x->count, sizeof(*x->order), manifest_by_name);

	MUST_OR(SHARD_E_MISMATCH, "D7", named, "%s lies in the folder, but the manifest does not name it",
		show(&s, name));
	return SHARD_OK;
}

static int check_files(const struct shard_dataset *ds, struct shard_error *err)
{
	struct extra x = {sorted(ds->line, ds->m.shard_count, manifest_by_name), ds->m.shard_count, err};
	int rc = x.order ? SHARD_OK
			 : error_set(err, SHARD_E_MEMORY, "no memory to compare %" PRIu64 " file names", x.count);

	for (uint64_t i = 1; !rc && i < x.count; i++)
		if (!manifest_by_name(&x.order[i - 1], &x.order[i])) {
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

int verify_hash_file(const char *path, uint8_t out[32], struct shard_error *err)
{
	uint8_t *buffer = mem_alloc(HASH_BYTES);
	struct sha256 sha;
	uint64_t bytes = 0;
	int fd = -1, rc = buffer ? file_open(path, &fd, &bytes, NULL, err)
				 : error_set(err, SHARD_E_MEMORY, "no memory for a buffer");

	sha256_init(&sha);
	for (uint64_t at = 0, n; !rc && at < bytes; at += n) {
		n = min_u64(HASH_BYTES, bytes - at);
		rc = file_read_at(fd, buffer, (size_t)n, at, path, err);
		if (!rc)
			sha256_update(&sha, buffer, (size_t)n);
	}
	if (!rc)
		sha256_final(&sha, out);
	file_close(fd);
	mem_free(buffer);
	return rc;
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
