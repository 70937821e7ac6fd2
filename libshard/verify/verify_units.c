/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_units.c - the rules of units: their hashes, their chunks, their padding
 *
 * Units of a shard that lies in the page cache are hashed where they are mapped; units of others
 * are read past it, in pieces of 16 MiB, which is several times faster than faulting them in and
 * does not push a trainer's data out of memory.
 */
#include "libshard/verify/verify.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/turns.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_inspect.h"

#define FAULTS_MAX 16 /* pages of one piece that may come from the disk before the shard counts as not in memory */

int verify_room_init(struct verify_room *room, struct verify_whole *whole, struct shard_error *err)
{
	*room = (struct verify_room){.fd = -1, .direct_fd = -1, .whole = whole};
	room->buffer = buffer_open(VERIFY_BUFFER_BYTES);
	return room->buffer
		       ? SHARD_OK
		       : error_set(err, SHARD_E_MEMORY, "no memory for a buffer of %zu bytes", VERIFY_BUFFER_BYTES);
}

void verify_room_free(struct verify_room *room)
{
	read_ahead_close(room->ahead);
	file_close(room->fd);
	file_close(room->direct_fd);
	mem_free(room->buffer);
	mem_free(room->decoded);
}

int verify_room_enter(struct verify_room *room, const struct shard_reader *r, struct shard_error *err)
{
	const char *path = room->whole ? room->whole->path : r->path;
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
		return error_set(err, SHARD_E_IO, "%s: was replaced while it was being verified; verify again",
				 show(&s, r->path));
	room->direct_fd = file_open_direct(path);
	/* of a file that was just written, what the disk has is the question */
	room->cached = !room->whole && file_seems_cached(room->fd, bytes, NULL);
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

uint64_t verify_bytes_before(const struct shard_reader *r, uint32_t group, uint64_t unit)
{
	const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, group);
	uint64_t units = reader_unit_count(r, group);

	return data && units ? (uint64_t)((unsigned __int128)data->bytes * unit / units) : 0;
}

uint64_t verify_table_bytes(const struct shard_reader *r)
{
	uint64_t bytes = r->file_bytes;

	for (uint32_t g = 0; g < r->schema->group_count; g++)
		bytes -= verify_bytes_before(r, g, reader_unit_count(r, g));
	return bytes;
}

/* Bytes of a file that fit, wherever in a page they begin.  Of a whole shard two pieces are there at once. */
static size_t room_bytes(const struct verify_whole *whole)
{
	return VERIFY_BUFFER_BYTES / (whole ? 2 : 1) - 2 * SHARD_PAGE_BYTES;
}

uint64_t verify_piece(const struct shard_reader *r, const struct verify_whole *whole, uint32_t group, uint64_t unit)
{
	const struct reader_group *g = &r->group[group];
	uint64_t count = room_bytes(whole) / (g->stride * g->unit_records);

	return min_u64(count ? count : 1, reader_unit_count(r, group) - unit);
}

struct units_job {
	struct shard_reader *r;
	struct verify_room *room;
	struct record_holes holes;
	uint32_t group;
	uint64_t unit, count, end_unit;
	const uint8_t *bytes; /* where file offset `from` lies */
	uint64_t from, checked;
	bool filling;		    /* and is still being read: */
	size_t ready, bytes_wanted; /* bytes that are there, of those that are read */
	verify_on_problem *on_problem;
	void *context;
	struct shard_error *err;
	int rc;
	uint64_t *begin, *end; /* what range_work() finds */
};

static int check_chunk_padding(const struct chunk *c, const uint8_t *stored, uint64_t idx, struct shard_error *err)
{
	size_t bad = first_nonzero(stored + c->stored_bytes, c->padded_bytes - c->stored_bytes);

	MUST("I50", bad == c->padded_bytes - c->stored_bytes, "chunk %" PRIu64 ": byte %zu of its padding is not zero",
	     idx, bad);
	return SHARD_OK;
}

/* The bytes up to `end` were checked: they are hashed where they lie. */
static void hash_checked(const struct units_job *j, uint64_t end)
{
	struct verify_whole *whole = j->room->whole;

	if (!whole || !whole->sha)
		return;
	sha256_update(whole->sha, j->bytes + (whole->hashed - j->from), (size_t)(end - whole->hashed));
	whole->hashed = end;
}

static int check_one(struct units_job *j, uint64_t unit)
{
	struct shard_reader *r = j->r;
	const struct reader_group *g = &r->group[j->group];
	uint64_t first = unit * g->unit_records, records = min_u64(g->unit_records, r->pages->record_count - first);
	const uint8_t *decoded;
	uint64_t end;
	struct chunk c;
	int rc = SHARD_OK;

	if (g->compressed) {
		rc = reader_chunk(r, j->group, unit, &c, j->err);
		if (rc)
			return rc;
		rc = reader_decode_chunk(j->group, unit, &c, j->bytes + (c.offset - j->from), true, j->room->decoded,
					 j->err);
		if (!rc)
			rc = check_chunk_padding(&c, j->bytes + (c.offset - j->from), unit, j->err);
		decoded = j->room->decoded;
		end = c.offset + c.padded_bytes;
		j->checked += c.padded_bytes;
	} else {
		const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, j->group);

		decoded = j->bytes + (data->offset + first * g->stride - j->from);
		end = data->offset + (first + records) * g->stride;
		j->checked += records * g->stride;
	}
	if (!rc)
		rc = reader_check_unit(r, j->group, unit, decoded, j->err);
	if (!rc)
		rc = record_check_holes(&j->holes, decoded, g->stride, first, records, j->err);
	if (!rc)
		hash_checked(j, end);
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
		*end = data->offset +
		       min_u64((j->unit + j->count) * g->unit_records, r->pages->record_count) * g->stride;
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

static void range_work(void *context) /* the chunks' index is read from the map */
{
	struct units_job *j = context;

	j->rc = file_range(j, j->begin, j->end);
}

/* A thread that waits for the disk needs no turn. */
static void begin_wait(const struct verify_room *room)
{
	if (room->whole)
		turns_give(room->whole->turns);
}

static void end_wait(const struct verify_room *room)
{
	if (room->whole)
		turns_take(room->whole->turns);
}

/* Is it to be read into the buffer? */
static bool is_read(const struct verify_room *room, uint64_t begin, uint64_t end)
{
	return end > begin && end - begin <= room_bytes(room->whole) && !room->cached;
}

/* Read [begin, end), rounded out to pages, into that half of the buffer. */
static struct read_ahead_job reading(const struct units_job *j, uint32_t half, uint64_t begin, uint64_t end)
{
	const struct verify_room *room = j->room;
	uint64_t from = begin & ~(uint64_t)(SHARD_PAGE_BYTES - 1), to = align_up(end, SHARD_PAGE_BYTES);

	return (struct read_ahead_job){.fd = room->fd,
				       .direct_fd = room->direct_fd,
				       .buffer = room->buffer + half * (VERIFY_BUFFER_BYTES / 2),
				       .offset = from,
				       .bytes = (size_t)(to - from),
				       .path = j->r->path};
}

/* Of a whole shard: when a piece is there, begin to read the next one of its group. */
static void read_next(const struct units_job *j)
{
	struct verify_room *room = j->room;
	uint64_t begin = 0, end = 0;
	struct units_job next = {.r = j->r, .group = j->group, .unit = j->end_unit, .begin = &begin, .end = &end};
	struct read_ahead_job job;

	if (!room->whole || next.unit == reader_unit_count(j->r, j->group))
		return;
	next.count = verify_piece(j->r, room->whole, j->group, next.unit);
	if (reader_guarded_brief(j->r, range_work, &next, NULL) || next.rc || !is_read(room, begin, end))
		return; /* verify_units() will see it, and say so */
	job = reading(j, !room->half, begin, end);
	read_ahead_start(room->ahead, &job);
	room->next_begin = begin;
	room->next_end = end;
}

/* Is the unit in the buffer?  Waits until it is. */
static int await_unit(struct units_job *j)
{
	uint64_t begin = 0, end = 0;
	struct units_job one = {
		.r = j->r, .group = j->group, .unit = j->unit, .count = 1, .begin = &begin, .end = &end, .err = j->err};
	int rc = reader_guarded_brief(j->r, range_work, &one, j->err);

	j->rc = one.rc;
	if (rc || one.rc || !j->filling || end - j->from <= j->ready)
		return rc;
	j->ready = (size_t)min_u64(align_up(end - j->from, READ_AHEAD_STEP_BYTES), j->bytes_wanted);
	begin_wait(j->room);
	rc = read_ahead_wait(j->room->ahead, j->ready, j->err);
	end_wait(j->room);
	if (!rc && j->ready == j->bytes_wanted)
		read_next(j);
	return rc;
}

static void unit_work(void *context)
{
	struct units_job *j = context;

	j->rc = check_one(j, j->unit);
}

/*
 * Units in the buffer, until one is bad.  The guard is needed: their hashes, and the index of
 * chunks, lie on the map.
 */
static int check_buffered(struct units_job *j)
{
	int rc = SHARD_OK;

	j->rc = SHARD_OK;
	while (!rc && !j->rc && j->count) {
		rc = await_unit(j);
		if (!rc && !j->rc)
			rc = reader_guarded_brief(j->r, unit_work, j, j->err);
		j->unit++;
		j->count--;
	}
	return rc;
}

/* Have [begin, end) read, or read it now if it is short. */
static int read_range(struct units_job *j, uint64_t begin, uint64_t end)
{
	struct verify_room *room = j->room;
	bool begun = room->next_begin == begin && room->next_end == end;
	struct read_ahead_job job;
	int rc;

	room->half = begun ? !room->half : 0;
	room->next_begin = room->next_end = 0;
	job = reading(j, room->half, begin, end);
	j->bytes = job.buffer;
	j->from = job.offset;
	j->bytes_wanted = job.bytes;
	if (job.bytes > READ_AHEAD_STEP_BYTES && !room->ahead)
		room->ahead = read_ahead_open();
	j->filling = begun || (job.bytes > READ_AHEAD_STEP_BYTES && room->ahead);
	if (j->filling) {
		if (!begun)
			read_ahead_start(room->ahead, &job);
		return SHARD_OK;
	}
	read_ahead_end(room->ahead); /* it may be busy with something else that was begun */
	begin_wait(room);
	rc = read_ahead_now(&job, j->err);
	end_wait(room);
	return rc;
}

/* ---- hashing what was checked ---- */

struct hash_job {
	const struct shard_reader *r;
	const struct verify_whole *whole;
	uint64_t end;
};

static void hash_work(void *context)
{
	const struct hash_job *job = context;
	const struct verify_whole *whole = job->whole;

	sha256_update(whole->sha, job->r->map + whole->hashed, (size_t)(job->end - whole->hashed));
}

int verify_hash_map(struct shard_reader *r, struct verify_whole *whole, uint64_t end, struct shard_error *err)
{
	struct hash_job job = {r, whole, end};
	int rc = SHARD_OK;

	if (whole && whole->sha && whole->hashed < end) {
		rc = reader_guarded(r, hash_work, &job, err);
		whole->hashed = end;
	}
	return rc;
}

/* ---- units ---- */

int verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
		 uint64_t *bytes, verify_on_problem *on_problem, void *context, struct shard_error *err)
{
	struct units_job j = {.r = r,
			      .room = room,
			      .group = group,
			      .unit = unit,
			      .count = count,
			      .end_unit = unit + count,
			      .err = err};
	int rc = reader_check_tables(r, group, err), worst = SHARD_OK;
	uint64_t begin = 0, end = 0, faults;
	struct shard_error first;

	if (rc)
		return rc;
	record_holes(r->schema, group, &j.holes);
	j.begin = &begin;
	j.end = &end;
	rc = reader_guarded(r, range_work, &j, err);
	if (rc || j.rc) {
		if (!rc)
			error_prefix(err, r->path);
		if (!rc && on_problem)
			on_problem(context, err);
		return rc ? rc : j.rc;
	}
	rc = verify_hash_map(r, room->whole, begin, err); /* what lies before it was checked with the tables */
	if (rc)
		return rc;
	j.bytes = r->map;
	if (is_read(room, begin, end))
		rc = read_range(&j, begin, end);
	else if (!room->cached)
		file_will_need(r->map + begin, (size_t)(end - begin));
	faults = file_major_faults();
	while (!rc && j.count) {
		rc = j.bytes == r->map ? reader_guarded(r, units_work, &j, err) : check_buffered(&j);
		if (rc || !j.rc)
			continue;
		error_prefix(err, r->path);
		if (!on_problem) {
			read_ahead_end(room->ahead);
			return j.rc;
		}
		on_problem(context, err);
		if (!worst && err)
			first = *err;
		worst = worst ? worst : j.rc;
	}
	if (!room->whole)
		read_ahead_end(room->ahead);
	if (room->cached && file_major_faults() - faults > FAULTS_MAX)
		room->cached = false;
	if (worst && !rc && err)
		*err = first;
	*bytes += j.checked;
	return rc ? rc : worst;
}
