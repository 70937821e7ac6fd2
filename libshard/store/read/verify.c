/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - every rule of format/SHARD.md that needs more than the two pages and is not a unit's
 * own
 *
 * Nothing here may fault on a map whose pages are not there: the kernel would read some MiB around
 * each, then find itself reading in order and go on with it, and every sample of the cache would
 * tell of its own work.
 */
#include "libshard/store/read/verify.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/turns.h"
#include "libshard/disk/invariant.h"
#include "libshard/disk/pages_decode.h"
#include "libshard/disk/record.h"
#include "libshard/disk/schema.h"
#include "libshard/disk/tables.h"
#include "libshard/io/file.h"
#include "shard_pack.h"

#define FETCH_BYTES ((size_t)1 << 20)
#define READ_BACK_BYTES \
	((size_t)4 << 20) /* new memory has to be cleared for every shard, so not more than speed asks for */
#define RAGGED_BYTES ((size_t)16 << 20) /* records that are read at once, if they are smaller */

/* ---- tables and gaps: run under the guard, on the map ---- */

struct tables_job {
	struct shard_reader *r;
	struct shard_error *err;
	int rc;
};

static int check_gap(const struct shard_reader *r, uint64_t begin, uint64_t end, struct shard_error *err)
{
	size_t bad = first_nonzero(r->map + begin, (size_t)(end - begin));

	MUST("I48", bad == end - begin, "byte %" PRIu64 ", in the gap between sections, is 0x%02x; must be 0",
	     begin + bad, r->map[begin + bad]);
	return SHARD_OK;
}

static int check_gaps(const struct shard_reader *r, struct shard_error *err)
{
	const struct pages *p = r->pages;
	uint64_t end = SHARD_PAGE_BYTES;
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < p->section_count; i++) {
		rc = check_gap(r, end, p->section[i].offset, err);
		end = p->section[i].offset + p->section[i].bytes;
	}
	return rc ? rc : check_gap(r, end, p->file_bytes - SHARD_PAGE_BYTES, err);
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
	verify_on_problem *on_problem;
	void *context;
	struct shard_error *err, first;
	int worst; /* status of `first`, the first problem told */
};

/* OK if the run is to go on. */
static int tell_ragged(struct ragged_job *j, int rc)
{
	error_prefix(j->err, j->r->path);
	if (!j->on_problem)
		return rc;
	j->on_problem(j->context, j->err);
	if (!j->worst && j->err)
		j->first = *j->err;
	j->worst = j->worst ? j->worst : rc;
	return SHARD_OK;
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
		rc = record_check_ragged(field, j->record[field->group] + at * field->stride + field->offset,
					 j->record[length->group] + at * length->stride + length->offset, idx, j->err);
	}
	return rc ? tell_ragged(j, rc) : SHARD_OK;
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

/* ---- all of it ---- */

/*
 * Two rooms, for the units that are checked and those that are read meanwhile, and how far the file
 * is hashed.
 */
struct all_job {
	struct shard_reader *r;
	struct verify_room room[2];
	struct sha256 *sha; /* NULL: not asked for */
	struct shard_turns *turns;
	uint64_t hashed, end;
	struct shard_error *err;
};

static void hash_work(void *context)
{
	struct all_job *j = context;

	sha256_update(j->sha, j->r->map + j->hashed, (size_t)(j->end - j->hashed));
}

/*
 * Tables, gaps, and units that were checked in the map: no second reading of the file, which might
 * say something else.
 */
static int hash_map(struct all_job *j, uint64_t end)
{
	int rc = SHARD_OK;

	j->end = end;
	if (j->sha && j->hashed < end)
		rc = reader_guarded(j->r, hash_work, j, j->err);
	j->hashed = end;
	return rc;
}

/* Units that were checked in a room. */
static int hash_held(struct all_job *j, const struct verify_room *room)
{
	int rc = j->hashed < room->held_begin ? hash_map(j, room->held_begin) : SHARD_OK;

	if (!rc && j->sha)
		sha256_update(j->sha, room->buffer + (j->hashed - room->held_begin),
			      (size_t)(room->held_end - j->hashed));
	j->hashed = room->held_end;
	return rc;
}

static int check_group(struct all_job *j, uint32_t group)
{
	struct shard_reader *r = j->r;
	const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, group);
	uint64_t units = reader_unit_count(r, group), n = units ? verify_piece(r, group, 0, READ_BACK_BYTES) : 0,
		 next_n, bytes = 0;
	int rc = units ? hash_map(j, data->offset) : SHARD_OK;

	if (!rc && units)
		verify_ahead(r, &j->room[0], group, 0, n);
	for (uint64_t u = 0, turn = 0; !rc && u < units; u += n, n = next_n, turn++) {
		struct verify_room *room = &j->room[turn % 2], *other = &j->room[(turn + 1) % 2];

		next_n = u + n < units ? verify_piece(r, group, u + n, READ_BACK_BYTES) : 0;
		if (next_n)
			verify_ahead(r, other, group, u + n, next_n);
		turns_give(j->turns);
		verify_await(r, room);
		turns_take(j->turns);
		rc = verify_units(r, room, group, u, n, &bytes, NULL, NULL, j->err);
		if (!rc && room->held_end)
			rc = hash_held(j, room);
	}
	return rc;
}

int verify_all(struct shard_reader *r, const char *path, struct sha256 *sha, struct shard_turns *turns,
	       struct shard_error *err)
{
	struct all_job j = {.r = r, .sha = sha, .turns = turns, .err = err};
	int rc;

	turns_give(turns);
	verify_fetch_tables(r, path);
	turns_take(turns);
	rc = verify_tables(r, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < 2; i++) {
		int room_rc = verify_room_init(&j.room[i], READ_BACK_BYTES, rc ? NULL : err);

		rc = rc ? rc : room_rc;
	}
	for (uint32_t i = 0; !rc && i < 2; i++) {
		rc = verify_room_enter(&j.room[i], r, path, err);
		j.room[i].cached = false; /* what the disk has is the question */
	}
	for (uint32_t g = 0; !rc && g < r->schema->group_count; g++)
		rc = check_group(&j, g);
	if (!rc)
		rc = hash_map(&j, r->file_bytes);
	if (!rc && verify_has_ragged(r->schema))
		rc = verify_ragged(r, 0, r->pages->record_count, NULL, NULL, err);
	for (uint32_t i = 0; i < 2; i++)
		verify_room_free(&j.room[i]);
	return rc;
}
