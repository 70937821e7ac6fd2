/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_read.c - records, keys and single fields, by their number in the dataset
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_inspect.h"

#define AT_ONCE	    256u		  /* records that are read before readers may be closed */
#define PIECE_BYTES (UINT64_C(256) << 10) /* records of the group that are read together */
#define AHEAD_BYTES (UINT64_C(8) << 20)	  /* that the disk is asked for meanwhile */

/* Shard and index within it. */
static int locate(const struct shard_dataset *ds, uint64_t idx, uint64_t *shard, uint64_t *inside,
		  struct shard_error *err)
{
	struct shown s;

	if (idx >= ds->m.record_count)
		return error_set(err, SHARD_E_ARGUMENT, "%s: there is no record %" PRIu64 "; the dataset has %" PRIu64,
				 show(&s, ds->dir), idx, ds->m.record_count);
	*shard = dataset_shard_of(ds, idx);
	*inside = idx - ds->first_record[*shard];
	return SHARD_OK;
}

/* ---- many records, whose places are found before the first is copied ---- */

struct gather {
	struct shard_reader *reader[AT_ONCE];
	uint64_t inside[AT_ONCE];
	const uint8_t *from[AT_ONCE]; /* of one group; NULL: was read by itself */
	uint8_t *to;
	size_t count, stride;
	const struct shard_reader *cut; /* whose map could not be read */
};

/*
 * Most records that somebody draws are in no cache of the processor, nor are the entries of the
 * page table.  So a record is fetched while the ones before it are copied.
 */
#define COPIES_AHEAD 8u
#define FETCH_BYTES  1024u /* of one record: the processor goes on by itself */

static void gather_work(void *context)
{
	struct gather *g = context;
	size_t fetch = g->stride < FETCH_BYTES ? g->stride : FETCH_BYTES;

	for (size_t i = 0; i < g->count; i++) {
		const uint8_t *next = i + COPIES_AHEAD < g->count ? g->from[i + COPIES_AHEAD] : NULL;

		for (size_t at = 0; next && at < fetch; at += 64)
			__builtin_prefetch(next + at);
		if (g->from[i])
			memcpy(g->to + i * g->stride, g->from[i], g->stride);
	}
}

/* Runs in the handler of SIGBUS. */
static bool is_gathered(void *context, uintptr_t at)
{
	struct gather *g = context;

	for (size_t i = 0; i < g->count && !g->cut; i++)
		if (at >= (uintptr_t)g->reader[i]->map && at < (uintptr_t)g->reader[i]->map + g->reader[i]->file_bytes)
			g->cut = g->reader[i];
	return g->cut;
}

/*
 * One group of the records that `g` has found.  A record that has to be hashed or decoded is read by
 * itself; all others are copied behind each other, under one guard.
 */
static int gather_group(struct shard_dataset *ds, struct gather *g, uint32_t group, bool again, uint8_t *to,
			struct shard_error *err)
{
	int rc = SHARD_OK;

	g->stride = ds->m.schema.group[group].stride;
	g->to = to;
	g->cut = NULL;
	for (size_t i = 0; !rc && i < g->count; i++) {
		if (again)
			reader_forget(g->reader[i], group, g->inside[i], 1);
		g->from[i] = reader_checked(g->reader[i], group, g->inside[i]);
		if (!g->from[i])
			rc = reader_read(g->reader[i], group, g->inside[i], 1, to + i * g->stride, err);
	}
	if (rc)
		return rc;
	if (ds->o.guard == SHARD_GUARD_OFF) {
		gather_work(g);
		return SHARD_OK;
	}
	if (g->count * g->stride >= READER_ASK_BYTES)
		guard_ask();
	return guard_run_where(is_gathered, gather_work, g) ? SHARD_OK : reader_cut(g->cut, err);
}

/* again: these were read, and are checked and copied once more. */
static int read_records(struct shard_dataset *ds, const uint64_t *idx, size_t count, void *const *dst, bool again,
			struct shard_error *err)
{
	struct gather g;
	int rc = SHARD_OK;

	for (size_t first = 0; !rc && first < count; first += g.count) {
		unsigned entered = readers_enter(&ds->readers);
		uint64_t shard = 0;

		for (g.count = 0; !rc && g.count < AT_ONCE && first + g.count < count; g.count++) {
			uint64_t record = idx[first + g.count];
			struct shard_reader **r = &g.reader[g.count];

			if (!g.count || record < ds->first_record[shard] || record >= ds->first_record[shard + 1]) {
				rc = locate(ds, record, &shard, &g.inside[g.count], err);
				rc = rc ? rc : dataset_use_shard(ds, shard, r, err);
			} else {
				g.inside[g.count] = record - ds->first_record[shard];
				*r = r[-1];
			}
		}
		for (uint32_t group = 0; !rc && group < ds->m.schema.group_count; group++)
			if (dst[group])
				rc = gather_group(ds, &g, group, again,
						  (uint8_t *)dst[group] + first * ds->m.schema.group[group].stride,
						  err);
		readers_leave(&ds->readers, entered);
	}
	return rc;
}

/* ---- a group that the parts of a joined dataset store in different ways ---- */

#define DRAWN_AT_ONCE 1024u	 /* records whose parts are known before the first is read */
#define READ	      UINT32_MAX /* in place of the part of a record */

/*
 * `count` records of one part, at most AT_ONCE: the fields of the joined dataset's group come from
 * any groups of the part to these rows of `dst`.  `memory` has room for the records of one of these.
 */
static int relay_group(struct shard_dataset *ds, struct shard_dataset *part, uint32_t group, const uint64_t *inside,
		       const uint32_t *row, size_t count, uint8_t *memory, uint8_t *dst, struct shard_error *err)
{
	const struct shard_schema *to = &ds->m.schema, *from = &part->m.schema;
	uint64_t stride = to->group[group].stride;
	int rc = SHARD_OK;

	for (size_t i = 0; i < count; i++)
		memset(dst + row[i] * stride, 0, stride);
	for (uint32_t g = 0; !rc && g < from->group_count; g++) {
		void *at[SHARD_GROUPS_MAX] = {NULL};

		for (uint32_t f = 0; !rc && f < to->field_count; f++) {
			const struct shard_field *x = &from->field[f], *y = &to->field[f];

			if (y->group != group || x->group != g)
				continue;
			if (!at[g]) {
				at[g] = memory;
				rc = shard_dataset_read(part, inside, count, at, err);
			}
			for (size_t i = 0; !rc && i < count; i++) {
				uint8_t *field = dst + row[i] * stride + y->offset;
				const uint8_t *value = memory + i * from->group[g].stride + x->offset;

				if (x->bytes == y->bytes)
					record_copy_field(field, value, (uint32_t)y->bytes);
				else
					record_widen_field(field, y, value, x);
			}
		}
	}
	return rc;
}

/*
 * Records of one part are read together, also where those of other parts stand between them.  In a
 * shuffled list the part changes often.
 */
static int read_uneven(struct shard_dataset *ds, uint32_t group, const uint64_t *idx, size_t count, uint8_t *dst,
		       struct shard_error *err)
{
	uint64_t inside[AT_ONCE], stride = ds->m.schema.group[group].stride, room, longest = 1;
	uint32_t part[DRAWN_AT_ONCE], row[AT_ONCE], fields = 0;
	uint8_t *memory;
	int rc;

	for (uint32_t f = 0; f < ds->m.schema.field_count; f++)
		fields |= (uint32_t)(ds->m.schema.field[f].group == group) << f;
	rc = joined_check_fields(ds, fields, err);
	if (rc)
		return rc;
	for (uint32_t p = 0; p < ds->part_count; p++)
		for (uint32_t g = 0; g < ds->part[p]->m.schema.group_count; g++)
			longest = max_u64(longest, ds->part[p]->m.schema.group[g].stride);
	room = min_u64(AT_ONCE, PIECE_BYTES / longest + 1);
	memory = mem_alloc((size_t)(room * longest));
	if (!memory)
		return error_set(err, SHARD_E_MEMORY, "no memory for %" PRIu64 " records of a group", room);
	for (size_t done = 0, n = 0; !rc && done < count; done += n) {
		const uint64_t *drawn = idx + done;

		for (n = 0; !rc && n < DRAWN_AT_ONCE && done + n < count; n++) {
			uint64_t shard, at;

			rc = locate(ds, drawn[n], &shard, &at, err);
			part[n] = rc ? 0 : (uint32_t)run_holding(ds->part_shard, ds->part_count, shard);
		}
		for (size_t i = 0; !rc && i < n; i++) {
			uint32_t p = part[i];
			size_t found = 0;

			for (size_t k = i; p != READ && k < n && found < room; k++) {
				if (part[k] != p)
					continue;
				inside[found] = drawn[k] - ds->first_record[ds->part_shard[p]];
				row[found++] = (uint32_t)k;
				part[k] = READ;
			}
			if (found)
				rc = relay_group(ds, ds->part[p], group, inside, row, found, memory,
						 dst + done * stride, err);
		}
	}
	mem_free(memory);
	return rc;
}

int shard_dataset_read(struct shard_dataset *ds, const uint64_t *idx, size_t count, void *const *dst,
		       struct shard_error *err)
{
	void *even[SHARD_GROUPS_MAX] = {NULL};
	int rc = SHARD_OK;

	for (uint32_t g = 0; !rc && g < ds->m.schema.group_count; g++)
		if (dst[g] && ds->uneven_groups >> g & 1)
			rc = read_uneven(ds, g, idx, count, dst[g], err);
		else
			even[g] = dst[g];
	if (!rc)
		rc = read_records(ds, idx, count, even, false, err);
	if (!rc && ds->o.check == SHARD_CHECK_DEVICE && reader_had_faults())
		rc = read_records(ds, idx, count, even, true, err);
	return rc;
}

int shard_dataset_key(struct shard_dataset *ds, uint64_t idx, char *out, size_t *bytes, struct shard_error *err)
{
	struct shard_reader *r = NULL;
	struct shard_view key;
	uint64_t shard = 0, inside = 0;
	unsigned entered;
	int rc = locate(ds, idx, &shard, &inside, err);

	if (rc)
		return rc;
	entered = readers_enter(&ds->readers);
	rc = dataset_use_shard(ds, shard, &r, err);
	rc = rc ? rc : shard_reader_key(r, inside, &key, err);
	if (!rc && key.bytes)
		rc = reader_copy(r, out, key.data, key.bytes, err);
	readers_leave(&ds->readers, entered);
	if (!rc)
		*bytes = key.bytes;
	return rc;
}

/* ---- one field of many records, without the rest of them ---- */

/* Records of one shard.  `memory` has room for `room` records of the group. */
static int read_field(struct shard_reader *r, const struct shard_field *f, uint64_t first, uint64_t count,
		      uint8_t *memory, uint64_t room, uint8_t *out, struct shard_error *err)
{
	const struct reader_group *g = &r->group[f->group];
	uint64_t asked = 0, ahead = AHEAD_BYTES / f->stride + 1;

	for (uint64_t done = 0, n; done < count; done += n) {
		int rc;

		/*
		 * Have the disk read records that are stored as they are.  Nobody waits for their pages
		 * then, so nobody would notice that they came from a device: they are hashed once more.
		 */
		if (!g->compressed && done + ahead / 2 >= asked && asked < count) {
			n = min_u64(ahead, count - asked);
			reader_forget(r, f->group, first + asked, n);
			file_will_need(g->data + (first + asked) * g->stride, (size_t)(n * g->stride));
			asked += n;
		}
		n = min_u64(room, count - done);
		rc = shard_reader_read(r, f->group, first + done, n, memory, err);
		if (rc)
			return rc;
		for (uint64_t i = 0; i < n; i++, out += f->bytes)
			record_copy_field(out, memory + i * f->stride + f->offset, (uint32_t)f->bytes);
	}
	return SHARD_OK;
}

/* Each part may store the field elsewhere, but its values must be as long. */
static int read_column_of_parts(const struct shard_dataset *ds, const struct shard_field *field, uint64_t first,
				uint64_t count, uint8_t *out, struct shard_error *err)
{
	struct shown s;
	int rc = SHARD_OK;

	for (uint32_t p = 0; !rc && p < ds->part_count && count; p++) {
		const struct shard_field *f = shard_schema_find(&ds->part[p]->m.schema, field->name);
		uint64_t end = ds->first_record[ds->part_shard[p + 1]],
			 n = first < end ? min_u64(count, end - first) : 0;

		if (!n)
			continue;
		if (!f || f->bytes != field->bytes || f->dtype != field->dtype)
			return error_set(
				err, SHARD_E_UNSUPPORTED,
				"field '%s' is another one in %s than in the parts before, so it is not one column; "
				"read it from each part",
				field->name, show(&s, ds->part[p]->dir));
		rc = shard_dataset_column(ds->part[p], f, first - ds->first_record[ds->part_shard[p]], n, out, err);
		first += n;
		count -= n;
		out += n * field->bytes;
	}
	return rc;
}

int shard_dataset_column(struct shard_dataset *ds, const struct shard_field *field, uint64_t first, uint64_t count,
			 void *out, struct shard_error *err)
{
	uint64_t unit = ds->m.schema.group[field->group].unit_records; /* whole chunks are decoded once */
	uint64_t room = ceil_div(PIECE_BYTES / field->stride + 1, unit) * unit, shard;
	uint8_t *memory, *to = out;
	int rc = SHARD_OK;

	if (first > ds->m.record_count || count > ds->m.record_count - first)
		return error_set(err, SHARD_E_ARGUMENT,
				 "records %" PRIu64 " to %" PRIu64 " were asked for; the dataset has %" PRIu64, first,
				 first + count - 1, ds->m.record_count);
	if (!count)
		return SHARD_OK;
	if (ds->part_count)
		return read_column_of_parts(ds, field, first, count, out, err);
	memory = mem_alloc((size_t)(room * field->stride));
	if (!memory)
		return error_set(err, SHARD_E_MEMORY, "no memory for %" PRIu64 " records of the field's group", room);
	for (shard = dataset_shard_of(ds, first); !rc && count; shard++) {
		uint64_t n = min_u64(count, ds->first_record[shard + 1] - first);
		unsigned entered = readers_enter(&ds->readers);
		struct shard_reader *r;

		rc = dataset_use_shard(ds, shard, &r, err);
		if (!rc)
			rc = read_field(r, field, first - ds->first_record[shard], n, memory, room, to, err);
		readers_leave(&ds->readers, entered);
		first += n;
		count -= n;
		to += n * field->bytes;
	}
	mem_free(memory);
	return rc;
}
