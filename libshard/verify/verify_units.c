/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_units.c - the rules of units: their hashes, their chunks, their padding
 *
 * Units of a shard that lies in the page cache are hashed where they are mapped; units of others
 * are read past it, in pieces of some MiB, which is several times faster than faulting them in and
 * does not push a trainer's data out of memory.  While the units of a piece are hashed, the next piece
 * is being read.
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

#define AHEAD_LEAST_BYTES ((size_t)128 << 10) /* a shorter piece is read when its turn comes */
#define FAULTS_MAX	  16 /* pages of one piece that may come from the disk before the shard counts as not in memory */

static const struct verify_file no_file = {.shard = UINT64_MAX, .fd = -1, .direct_fd = -1};

int verify_room_init(struct verify_room *room, struct verify_whole *whole, struct shard_error *err)
{
	*room = (struct verify_room){.file = {no_file, no_file}, .whole = whole, .turns = whole ? whole->turns : NULL};
	room->buffer = buffer_open(VERIFY_BUFFER_BYTES);
	return room->buffer
		       ? SHARD_OK
		       : error_set(err, SHARD_E_MEMORY, "no memory for a buffer of %zu bytes", VERIFY_BUFFER_BYTES);
}

static void close_file(struct verify_file *f)
{
	file_close(f->fd);
	file_close(f->direct_fd);
	*f = no_file;
}

void verify_room_free(struct verify_room *room)
{
	read_ahead_close(room->ahead);
	close_file(&room->file[0]);
	close_file(&room->file[1]);
	mem_free(room->buffer);
	mem_free(room->decoded);
}

/* Have the shard open. */
static int open_file(const struct verify_room *room, struct verify_file *f, const struct shard_reader *r,
		     struct shard_error *err)
{
	const char *path = room->whole ? room->whole->path : r->path;
	const char *change;
	uint64_t bytes, inode;
	struct shown s;
	int rc;

	if (f->fd >= 0)
		return SHARD_OK;
	rc = file_open(path, &f->fd, &bytes, &inode, err);
	if (rc)
		return rc;
	change = file_change(r->inode, r->file_bytes, inode, bytes);
	if (change) {
		file_close(f->fd);
		f->fd = -1;
		return error_set(err, SHARD_E_IO, "%s: was %s while it was being verified; verify again",
				 show(&s, r->path), change);
	}
	f->direct_fd = file_open_direct(path);
	/* of a file that was just written, what the disk has is the question */
	f->cached = !room->whole && file_seems_cached(f->fd, bytes, NULL);
	return SHARD_OK;
}

int verify_enter(struct verify_room *room, const struct verify_place *place, const struct shard_reader *r,
		 struct shard_error *err)
{
	uint64_t decoded = 0;
	int rc = open_file(room, &room->file[place->file], r, err);

	if (rc)
		return rc;
	room->place = *place;
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

/* Bytes of a file that fit the buffer, or half of it, wherever in a page they begin. */
#define WHOLE_ROOM_BYTES (VERIFY_BUFFER_BYTES - 2 * SHARD_PAGE_BYTES)
#define HALF_ROOM_BYTES	 (VERIFY_HALF_BYTES - 2 * SHARD_PAGE_BYTES)

uint64_t verify_piece(const struct shard_reader *r, const struct verify_whole *whole, uint32_t group, uint64_t unit)
{
	const struct reader_group *g = &r->group[group];
	uint64_t bytes = whole ? VERIFY_HALF_BYTES / 2 : HALF_ROOM_BYTES;
	uint64_t count = bytes / (g->stride * g->unit_records);

	return min_u64(count ? count : 1, reader_unit_count(r, group) - unit);
}

struct units_job {
	struct shard_reader *r;
	struct verify_room *room;
	struct record_holes holes;
	uint32_t group;
	uint64_t unit, count;
	const uint8_t *bytes; /* where file offset `from` lies */
	uint64_t from, checked;
	bool filling;		    /* and is still being read: */
	size_t ready, bytes_wanted; /* bytes that are there, of those that are read */
	verify_on_problem *on_problem;
	void *context;
	struct shard_error *err;
	int rc;
	uint64_t begin, end; /* of the units in the file: what range_work() finds */
};

/* The unit at j->unit, whose bytes are there. */
static int check_unit(struct units_job *j)
{
	struct shard_reader *r = j->r;
	const struct reader_group *g = &r->group[j->group];
	struct verify_whole *whole = j->room->whole;
	uint64_t unit = j->unit;
	uint64_t first = unit * g->unit_records, records = min_u64(g->unit_records, r->pages->record_count - first);
	const uint8_t *decoded, *stored;
	struct shard_error *err = j->err;
	size_t padding_bytes, bad;
	uint64_t end;
	struct chunk c;
	int rc;

	if (g->compressed) {
		rc = reader_chunk(r, j->group, unit, &c, err);
		if (rc)
			return rc;
		stored = j->bytes + (c.offset - j->from);
		padding_bytes = c.padded_bytes - c.stored_bytes;
		j->checked += c.padded_bytes;
		rc = reader_decode_chunk(j->group, unit, &c, stored, true, j->room->decoded, err);
		if (rc)
			return rc;
		bad = first_nonzero(stored + c.stored_bytes, padding_bytes);
		MUST("I50", bad == padding_bytes, "chunk %" PRIu64 ": byte %zu of its padding is not zero", unit, bad);
		decoded = j->room->decoded;
		end = c.offset + c.padded_bytes;
	} else {
		const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, j->group);

		decoded = j->bytes + (data->offset + first * g->stride - j->from);
		end = data->offset + (first + records) * g->stride;
		j->checked += records * g->stride;
	}
	rc = reader_check_unit(r, j->group, unit, decoded, err);
	if (!rc)
		rc = record_check_holes(&j->holes, decoded, g->stride, first, records, err);
	if (!rc && whole && whole->sha) { /* all bytes up to `end` were checked: they are hashed where they lie */
		sha256_update(whole->sha, j->bytes + (whole->hashed - j->from), (size_t)(end - whole->hashed));
		whole->hashed = end;
	}
	return rc;
}

/* Under the guard: may neither lock nor allocate, so problems only come out one at a time. */
static void units_work(void *context)
{
	struct units_job *j = context;

	j->rc = SHARD_OK;
	while (!j->rc && j->count) {
		j->rc = check_unit(j);
		j->unit++;
		j->count--;
	}
}

/* The part of the file that holds the units.  Under the guard: the chunks' index is read from the map. */
static void range_work(void *context)
{
	struct units_job *j = context;
	const struct shard_reader *r = j->r;
	const struct reader_group *g = &r->group[j->group];
	struct chunk first, last;

	j->rc = SHARD_OK;
	if (!g->compressed) {
		const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, j->group);
		uint64_t end = min_u64((j->unit + j->count) * g->unit_records, r->pages->record_count);

		j->begin = data->offset + j->unit * g->unit_records * g->stride;
		j->end = data->offset + end * g->stride;
		return;
	}
	j->rc = reader_chunk(r, j->group, j->unit, &first, j->err);
	if (!j->rc)
		j->rc = reader_chunk(r, j->group, j->unit + j->count - 1, &last, j->err);
	if (j->rc)
		return;
	j->begin = first.offset;
	j->end = last.offset + last.padded_bytes;
}

/* Read [begin, end), rounded out to pages, into the buffer from that half on. */
static struct read_ahead_job reading(const struct verify_room *room, const struct verify_file *f, const char *path,
				     unsigned half, uint64_t begin, uint64_t end)
{
	uint64_t from = begin & ~(uint64_t)(SHARD_PAGE_BYTES - 1), to = align_up(end, SHARD_PAGE_BYTES);

	return (struct read_ahead_job){.fd = f->fd,
				       .direct_fd = f->direct_fd,
				       .buffer = room->buffer + half * VERIFY_HALF_BYTES,
				       .offset = from,
				       .bytes = (size_t)(to - from),
				       .path = path};
}

void verify_begin(struct verify_room *room, struct shard_reader *r, uint64_t shard, uint32_t group, uint64_t unit,
		  uint64_t count, struct verify_place *out)
{
	struct units_job j = {.r = r, .group = group, .unit = unit, .count = count};
	unsigned half = room->is_taken[0];
	struct verify_file *f = &room->file[room->last];
	struct read_ahead_job job;

	if (f->shard != shard) {
		room->last = !room->last; /* no piece is left of the shard that was there */
		f = &room->file[room->last];
		close_file(f);
		f->shard = shard;
	}
	*out = (struct verify_place){.file = room->last, .half = VERIFY_NO_HALF};
	/* whatever fails here, verify_enter() and verify_units() will see it, and say so */
	if (!count || room->is_taken[half] || open_file(room, f, r, NULL) || f->cached ||
	    reader_guarded(r, range_work, &j, NULL) || j.rc)
		return;
	out->needs_both = j.end - j.begin > HALF_ROOM_BYTES;
	if (j.end - j.begin <= AHEAD_LEAST_BYTES || out->needs_both)
		return;
	if (!room->ahead)
		room->ahead = read_ahead_open(f->direct_fd >= 0);
	if (!room->ahead)
		return;
	room->is_taken[half] = true;
	out->half = half;
	out->begin = j.begin;
	out->end = j.end;
	job = reading(room, f, r->path, half, j.begin, j.end);
	read_ahead_start(room->ahead, half, &job);
}

void verify_end(struct verify_room *room, struct verify_place *place)
{
	if (place->half == VERIFY_NO_HALF)
		return;
	read_ahead_end(room->ahead, place->half);
	room->is_taken[place->half] = false;
	place->half = VERIFY_NO_HALF;
}

/* Is the unit in the buffer?  Waits until it is. */
static int await_unit(struct units_job *j)
{
	struct units_job one = {.r = j->r, .group = j->group, .unit = j->unit, .count = 1, .err = j->err};
	int rc = reader_guarded_brief(j->r, range_work, &one, j->err);

	j->rc = one.rc;
	if (rc || one.rc || !j->filling || one.end - j->from <= j->ready)
		return rc;
	j->ready = (size_t)min_u64(align_up(one.end - j->from, READ_AHEAD_STEP_BYTES), j->bytes_wanted);
	turns_give(j->room->turns);
	rc = read_ahead_wait(j->room->ahead, j->room->place.half, j->ready, j->err);
	turns_take(j->room->turns);
	return rc;
}

static void unit_work(void *context)
{
	struct units_job *j = context;

	j->rc = check_unit(j);
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

/* Are the units to be read into the buffer?  If they do not fit one half, both have to be free. */
static bool is_read(const struct units_job *j)
{
	const struct verify_room *room = j->room;
	uint64_t bytes = j->end - j->begin;
	bool fits = bytes <= HALF_ROOM_BYTES ||
		    (bytes <= WHOLE_ROOM_BYTES && !room->whole && !room->is_taken[0] && !room->is_taken[1]);

	return bytes && fits && !room->file[room->place.file].cached;
}

/* Have the units read, or read them now if that was not begun. */
static int read_range(struct units_job *j)
{
	struct verify_room *room = j->room;
	const struct verify_place *place = &room->place;
	unsigned half = place->half;
	struct read_ahead_job job;
	int rc;

	j->filling = half != VERIFY_NO_HALF && place->begin == j->begin && place->end == j->end;
	if (half == VERIFY_NO_HALF)
		half = room->is_taken[0]; /* one of them is free: nothing is begun behind a piece that is not */
	else if (!j->filling)
		read_ahead_end(room->ahead, half); /* the index of chunks was changed meanwhile */
	job = reading(room, &room->file[place->file], j->r->path, half, j->begin, j->end);
	j->bytes = job.buffer;
	j->from = job.offset;
	j->bytes_wanted = job.bytes;
	if (j->filling)
		return SHARD_OK;
	turns_give(room->turns);
	rc = read_ahead_now(&job, j->err);
	turns_take(room->turns);
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
	struct units_job j = {.r = r, .room = room, .group = group, .unit = unit, .count = count, .err = err};
	struct verify_file *f = &room->file[room->place.file];
	int rc = reader_check_tables(r, group, err), worst = SHARD_OK;
	uint64_t faults;
	struct shard_error first;

	if (rc)
		return rc;
	record_holes(r->schema, group, &j.holes);
	rc = reader_guarded(r, range_work, &j, err);
	if (rc || j.rc) {
		if (!rc)
			error_prefix(err, r->path);
		if (!rc && on_problem)
			on_problem(context, err);
		return rc ? rc : j.rc;
	}
	rc = verify_hash_map(r, room->whole, j.begin, err); /* what lies before it was checked with the tables */
	if (rc)
		return rc;
	j.bytes = r->map;
	faults = file_major_faults();
	if (is_read(&j))
		rc = read_range(&j);
	else if (f->cached)
		file_await(r->map + j.begin, (size_t)(j.end - j.begin)); /* maps all pages at once */
	else
		file_will_need(r->map + j.begin, (size_t)(j.end - j.begin));
	while (!rc && j.count) {
		rc = j.bytes == r->map ? reader_guarded(r, units_work, &j, err) : check_buffered(&j);
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
	if (f->cached && file_major_faults() - faults > FAULTS_MAX)
		f->cached = false;
	if (worst && !rc && err)
		*err = first;
	*bytes += j.checked;
	return rc ? rc : worst;
}
