/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - every rule of format/SHARD.md that needs more than the two pages
 *
 * Units that lie in the page cache are hashed where they are mapped; others are read past it, in pieces of 4 MiB, which
 * is several times faster than faulting them in and does not push a trainer's data out of memory.
 */
#include "libshard/store/verify.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/codec/checksum.h"
#include "libshard/disk/invariant.h"
#include "libshard/disk/schema.h"
#include "libshard/io/file.h"

/* ---- tables and gaps: run under the guard, on the map ---- */

struct tables_job {
	struct shard_reader *r;
	struct shard_error *err;
	int rc;
};

static int check_gap(const struct shard_reader *r, uint64_t begin, uint64_t end, struct shard_error *err)
{
	size_t bad = first_nonzero(r->map + begin, (size_t)(end - begin));

	MUST("I48", bad == end - begin, "byte %" PRIu64 ", in the gap between sections, is 0x%02x; must be 0", begin + bad,
	     r->map[begin + bad]);
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

		MUST("I45", !data || !data->bytes, "group %u has no chunks, but DATA has %" PRIu64 " bytes", group, data->bytes);
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
		rc = stat_check(&p->schema, r->map + stat->offset, stat->bytes, stat->items, p->record_count, err);
	if (!rc && miss)
		rc = miss_check(r->map + miss->offset, miss->bytes / sizeof(struct disk_miss), p->record_count, p->planned_records, err);
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

/* ---- units ---- */

int verify_room_init(struct verify_room *room, struct shard_error *err)
{
	*room = (struct verify_room){.fd = -1, .direct_fd = -1};
	room->buffer = mem_aligned(SHARD_PAGE_BYTES, VERIFY_BUFFER_BYTES);
	return room->buffer ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for a buffer of %zu bytes", VERIFY_BUFFER_BYTES);
}

void verify_room_free(struct verify_room *room)
{
	file_close(room->fd);
	file_close(room->direct_fd);
	mem_free(room->buffer);
	mem_free(room->decoded);
	*room = (struct verify_room){.fd = -1, .direct_fd = -1};
}

int verify_room_enter(struct verify_room *room, const struct shard_reader *r, const char *path, struct shard_error *err)
{
	uint64_t bytes, inode, decoded = 0;
	struct shown s;
	int rc;

	file_close(room->fd);
	file_close(room->direct_fd);
	room->fd = room->direct_fd = -1;
	rc = file_open(path, &room->fd, &bytes, &inode, err);
	if (rc)
		return rc;
	if (bytes != r->file_bytes || inode != r->inode)
		return error_set(err, SHARD_E_IO, "%s: was replaced while it was being verified", show(&s, r->path));
	room->direct_fd = file_open_direct(path);
	for (uint32_t g = 0; g < r->schema->group_count; g++)
		if (r->group[g].compressed && r->group[g].unit_records * r->group[g].stride > decoded)
			decoded = r->group[g].unit_records * r->group[g].stride;
	if (decoded > room->decoded_bytes) {
		mem_free(room->decoded);
		room->decoded_bytes = 0;
		room->decoded = mem_zalloc((size_t)decoded);
		if (!room->decoded)
			return error_set(err, SHARD_E_MEMORY, "no memory for a chunk of %" PRIu64 " bytes", decoded);
		room->decoded_bytes = (size_t)decoded;
	}
	return SHARD_OK;
}

uint64_t verify_piece(const struct shard_reader *r, uint32_t group, uint64_t unit)
{
	const struct reader_group *g = &r->group[group];
	uint64_t count = (VERIFY_BUFFER_BYTES - 2 * SHARD_PAGE_BYTES) / (g->stride * g->unit_records);

	return min_u64(count ? count : 1, reader_unit_count(r, group) - unit);
}

struct units_job {
	struct shard_reader *r;
	struct verify_room *room;
	struct schema_holes holes;
	uint32_t group;
	uint64_t unit, count;
	const uint8_t *bytes; /* where file offset `from` lies */
	uint64_t from, checked;
	void (*on_problem)(void *context, const struct shard_error *problem);
	void *context;
	struct shard_error *err;
	int rc;
};

static int check_chunk_padding(const struct chunk *c, const uint8_t *stored, uint64_t idx, struct shard_error *err)
{
	size_t bad = first_nonzero(stored + c->stored_bytes, c->padded_bytes - c->stored_bytes);

	MUST("I50", bad == c->padded_bytes - c->stored_bytes, "chunk %" PRIu64 ": byte %zu of its padding is not zero", idx, bad);
	return SHARD_OK;
}

static int check_one(struct units_job *j, uint64_t unit)
{
	struct shard_reader *r = j->r;
	const struct reader_group *g = &r->group[j->group];
	uint64_t first = unit * g->unit_records, records = min_u64(g->unit_records, r->pages->record_count - first);
	const uint8_t *decoded;
	struct chunk c;
	int rc = SHARD_OK;

	if (g->compressed) {
		rc = reader_chunk(r, j->group, unit, &c, j->err);
		if (rc)
			return rc;
		rc = reader_decode_chunk(r, j->group, unit, &c, j->bytes + (c.offset - j->from), j->room->decoded, j->err);
		if (!rc)
			rc = check_chunk_padding(&c, j->bytes + (c.offset - j->from), unit, j->err);
		decoded = j->room->decoded;
		j->checked += c.padded_bytes;
	} else {
		const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, j->group);

		decoded = j->bytes + (data->offset + first * g->stride - j->from);
		j->checked += records * g->stride;
	}
	if (!rc)
		rc = reader_check_unit(r, j->group, unit, decoded, j->err);
	if (!rc)
		rc = schema_check_holes(&j->holes, decoded, g->stride, first, records, j->err);
	return rc;
}

/* Under the guard: may neither lock nor allocate, so problems only come out one at a time. */
static void units_work(void *context)
{
	struct units_job *j = context;

	j->rc = SHARD_OK;
	while (!j->rc && j->count) {
		j->rc = check_one(j, j->unit);
		j->unit++;
		j->count--;
	}
}

/* The part of the file that holds the units. */
static int file_range(struct units_job *j, uint64_t *begin, uint64_t *end)
{
	const struct shard_reader *r = j->r;
	const struct reader_group *g = &r->group[j->group];
	struct chunk first, last;
	int rc;

	if (!g->compressed) {
		const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, j->group);

		*begin = data->offset + j->unit * g->unit_records * g->stride;
		*end = data->offset + min_u64((j->unit + j->count) * g->unit_records, r->pages->record_count) * g->stride;
		return SHARD_OK;
	}
	rc = reader_chunk(r, j->group, j->unit, &first, j->err);
	if (!rc)
		rc = reader_chunk(r, j->group, j->unit + j->count - 1, &last, j->err);
	if (rc)
		return rc;
	*begin = first.offset;
	*end = last.offset + last.padded_bytes;
	return SHARD_OK;
}

/* Read [begin, end), rounded out to pages, into the buffer. */
static int read_range(struct units_job *j, uint64_t begin, uint64_t end)
{
	uint64_t from = begin & ~(uint64_t)(SHARD_PAGE_BYTES - 1), to = align_up(end, SHARD_PAGE_BYTES);
	int rc = SHARD_E_IO;

	if (j->room->direct_fd >= 0)
		rc = file_read_at(j->room->direct_fd, j->room->buffer, (size_t)(to - from), from, j->r->path, NULL);
	if (rc) /* no such way, or it failed: the ordinary one, whose error counts */
		rc = file_read_at(j->room->fd, j->room->buffer, (size_t)(to - from), from, j->r->path, j->err);
	j->bytes = j->room->buffer;
	j->from = from;
	return rc;
}

int verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count, uint64_t *bytes,
		 void (*on_problem)(void *context, const struct shard_error *problem), void *context, struct shard_error *err)
{
	struct units_job j = {.r = r, .room = room, .group = group, .unit = unit, .count = count, .err = err};
	int rc = reader_check_tables(r, group, err), worst = SHARD_OK;
	uint64_t begin = 0, end = 0;
	struct shard_error first;

	if (rc)
		return rc;
	schema_holes(r->schema, group, &j.holes);
	rc = file_range(&j, &begin, &end);
	if (rc) {
		error_prefix(err, r->path);
		return rc;
	}
	j.bytes = r->map;
	if (end > begin && end - begin <= VERIFY_BUFFER_BYTES - 2 * SHARD_PAGE_BYTES && !file_is_cached(room->fd, begin, end - begin))
		rc = read_range(&j, begin, end);
	while (!rc && j.count) {
		if (j.bytes == r->map) {
			rc = reader_guarded(r, units_work, &j, err);
		} else {
			units_work(&j);
		}
		if (rc || !j.rc)
			continue;
		error_prefix(err, r->path);
		if (!on_problem)
			return j.rc;
		on_problem(context, err);
		if (!worst && err)
			first = *err;
		worst = worst ? worst : j.rc;
	}
	if (worst && !rc && err)
		*err = first;
	*bytes += j.checked;
	return rc ? rc : worst;
}

bool verify_has_ragged(const struct shard_schema *s)
{
	for (uint32_t i = 0; i < s->field_count; i++)
		if (s->field[i].kind != SHARD_TENSOR)
			return true;
	return false;
}

int verify_ragged(struct shard_reader *r, uint64_t first, uint64_t count, struct shard_error *err)
{
	const struct shard_schema *s = r->schema;
	uint8_t *record[SHARD_GROUPS_MAX] = {NULL};
	int rc = SHARD_OK;

	for (uint32_t g = 0; g < s->group_count; g++) {
		record[g] = mem_alloc((size_t)s->group[g].stride);
		if (!record[g])
			rc = error_set(err, SHARD_E_MEMORY, "no memory for a record");
	}
	for (uint64_t i = first; !rc && i < first + count; i++) {
		for (uint32_t g = 0; !rc && g < s->group_count; g++)
			rc = shard_reader_read(r, g, i, 1, record[g], err);
		for (uint32_t f = 0; !rc && f < s->field_count; f++) {
			const struct shard_field *field = &s->field[f], *length = &s->field[field->length_field];

			if (field->kind == SHARD_TENSOR)
				continue;
			rc = schema_check_ragged(field, record[field->group] + field->offset, record[length->group] + length->offset, i, err);
			if (rc)
				error_prefix(err, r->path);
		}
	}
	for (uint32_t g = 0; g < s->group_count; g++)
		mem_free(record[g]);
	return rc;
}

int verify_all(struct shard_reader *r, const char *path, struct shard_error *err)
{
	struct verify_room room;
	uint64_t bytes = 0;
	int rc = verify_tables(r, err);

	if (rc)
		return rc;
	rc = verify_room_init(&room, err);
	if (!rc)
		rc = verify_room_enter(&room, r, path, err);
	for (uint32_t g = 0; !rc && g < r->schema->group_count; g++)
		for (uint64_t u = 0, n; !rc && u < reader_unit_count(r, g); u += n) {
			n = verify_piece(r, g, u);
			rc = verify_units(r, &room, g, u, n, &bytes, NULL, NULL, err);
		}
	if (!rc && verify_has_ragged(r->schema))
		rc = verify_ragged(r, 0, r->pages->record_count, err);
	verify_room_free(&room);
	return rc;
}
