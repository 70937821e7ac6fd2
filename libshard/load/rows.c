/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - the rows of a step: which records they are, and their bytes from maps to the slot
 *
 * Rows go in blocks: find them all, have what is needed soon fetched, then copy group by group.  A unit is hashed when
 * this dataset's handle first delivers of it; if a record is a unit, while it is copied.
 */
#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/codec/checksum.h"
#include "libshard/codec/copy.h"
#include "libshard/io/file.h"
#include "libshard/load/path.h"

#define BLOCK	       64u
#define AHEAD	       4u    /* rows whose first bytes are fetched before it is their turn */
#define AHEAD_BYTES    1024u /* the processor's own prefetch has found the row by then */

uint32_t rows_order(const struct shard_loader *l, const struct order *order, struct slot *s)
{
	struct order_rank rank = l->rank;
	uint32_t first_padded;
	bool padded = false;

	rank.first_position = s->place.first_position;
	s->rows = first_padded = order_rank_rows(&rank, s->place.step);
	/* Padding, if there is any, stands at the end, and its positions begin anew at 0. */
	while (first_padded && (order_rank_position(&rank, s->place.step, first_padded - 1, &padded), padded))
		first_padded--;
	memset(s->row_flags, 0, first_padded);
	if (first_padded)
		order_fill(order, order_rank_position(&rank, s->place.step, 0, &padded), l->o.world, s->record, first_padded);
	for (uint32_t i = first_padded; i < s->rows; i++) {
		s->record[i] = order_at(order, order_rank_position(&rank, s->place.step, i, &padded));
		s->row_flags[i] = SHARD_ROW_PADDED;
	}
	return s->rows;
}

/* ---- where records are ---- */

struct located {
	struct shard_reader *r;
	uint64_t shard, inside;
};

static uint64_t shard_of(const struct shard_loader *l, uint64_t idx)
{
	const uint64_t *first = l->ds->first_record;
	uint64_t guess = idx / l->guess_records;

	if (guess < l->ds->m.shard_count && first[guess] <= idx && idx < first[guess + 1])
		return guess;
	return dataset_shard_of(l->ds, idx);
}

static int locate(const struct shard_loader *l, const uint64_t *record, uint32_t count, struct located *out, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < count; i++) {
		uint64_t shard = shard_of(l, record[i]);

		out[i].shard = shard;
		out[i].inside = record[i] - l->ds->first_record[shard];
		out[i].r = atomic_load_explicit(&l->ds->reader[shard], memory_order_acquire);
		if (!out[i].r)
			rc = shard_dataset_reader(l->ds, shard, &out[i].r, err);
	}
	return rc;
}

/* ---- one row of a raw group ---- */

struct land_job {
	const struct row *row;
	const uint8_t *src; /* on the map, in a stage, or at its place already */
	bool hash;
	int rc;
	struct shard_error *err;
};

/* A record of a small group to its place in each field's array. */
static void spread(const struct row *row, const uint8_t *record)
{
	const struct layout *layout = &row->l->layout;

	for (uint32_t i = 0; i < layout->field_count[row->group]; i++) {
		uint32_t f = layout->field[row->group][i];
		const struct shard_field *field = &row->l->ds->m.schema.field[f];

		memcpy(row->slot + layout->field_at[f] + row->row * field->bytes, record + field->offset, (size_t)field->bytes);
	}
}

/* May run under the guard: neither locks nor allocates. */
static void land(void *context)
{
	struct land_job *j = context;
	const struct row *row = j->row;
	const struct reader_group *g = &row->r->group[row->group];
	uint64_t unit = row->inside / g->unit_records, got;

	if (j->hash && g->unit_records == 1 && row->dst) {
		got = j->src == row->dst ? checksum64(j->src, (size_t)g->stride) : copy_stream_hashed(row->dst, j->src, (size_t)g->stride);
		j->rc = reader_check_hash(row->r, row->group, unit, got, j->err);
		return;
	}
	if (j->hash) /* only records of a map have neighbours */
		j->rc = reader_check_unit(row->r, row->group, unit, g->data + unit * g->unit_records * g->stride, j->err);
	if (j->rc || j->src == row->dst)
		return;
	if (row->dst)
		copy_stream(row->dst, j->src, (size_t)g->stride);
	else
		spread(row, j->src);
}

static int run_land(struct land_job *j, bool mapped)
{
	const struct shard_reader *r = j->row->r;
	int rc = SHARD_OK;

	j->rc = SHARD_OK;
	if (mapped && r->guard)
		rc = reader_guarded(r, land, j, j->err);
	else
		land(j);
	if (!rc && j->rc) {
		error_prefix(j->err, r->path);
		rc = j->rc;
	}
	return rc;
}

/*
 * A unit may come to several threads at once: rows of it in neighbouring steps, or a record at the end of one epoch and
 * the start of the next.  One of them hashes it, for some microseconds, and the others wait.
 */
static atomic_bool *enter_stripe(struct shard_loader *l, const struct shard_reader *r, uint64_t unit)
{
	atomic_bool *stripe = &l->stripe[(((uintptr_t)r >> 6) + unit) % LOADER_STRIPES];

	while (atomic_exchange_explicit(stripe, true, memory_order_acquire))
		sched_yield();
	return stripe;
}

static int land_row(const struct row *row, const uint8_t *src, bool mapped, uint64_t *checked, struct shard_error *err)
{
	const struct reader_group *g = &row->r->group[row->group];
	uint64_t unit = row->inside / g->unit_records, bit = UINT64_C(1) << (unit & 63);
	struct land_job j = {.row = row, .src = src, .err = err, .hash = row->r->check == SHARD_CHECK_ALWAYS};
	_Atomic uint64_t *seen = NULL;
	atomic_bool *stripe = NULL;
	int rc;

	if (row->r->check == SHARD_CHECK_FIRST) {
		seen = atomic_load_explicit(&g->seen, memory_order_acquire) + unit / 64; /* prepare_row() made it */
		j.hash = !(atomic_load_explicit(seen, memory_order_acquire) & bit);
	}
	if (j.hash && seen) {
		stripe = enter_stripe(row->l, row->r, unit);
		j.hash = !(atomic_load_explicit(seen, memory_order_acquire) & bit);
	}
	rc = run_land(&j, mapped);
	if (!rc && j.hash) {
		(*checked)++;
		if (seen)
			atomic_fetch_or_explicit(seen, bit, memory_order_release);
	}
	if (stripe)
		atomic_store_explicit(stripe, false, memory_order_release);
	return rc;
}

int rows_land(const struct row *row, const uint8_t *src, uint64_t *checked, struct shard_error *err)
{
	return land_row(row, src, false, checked, err);
}

/* ---- many of them ---- */

/* What one thread works on: a step, and a block of its rows. */
struct block {
	struct shard_loader *l;
	struct member *m;
	struct slot *s;
	struct fill_counts *counts;
	struct shard_error *err;
	uint32_t first, count; /* rows */
	struct located at[BLOCK];
};

/* The tables and bits that checking needs; for what may not be in memory, a word to the kernel.  Which way the row comes. */
static int prepare_row(const struct block *b, uint32_t group, uint32_t i, enum path_kind *kind)
{
	const struct located *at = &b->at[i];
	bool large = group_is_large(&b->l->ds->m.schema.group[group]);
	int rc = SHARD_OK;

	if (at->r->check != SHARD_CHECK_NEVER)
		rc = reader_check_tables(at->r, group, b->err);
	if (!rc && at->r->check == SHARD_CHECK_FIRST && !reader_seen(at->r, group))
		rc = error_set(b->err, SHARD_E_MEMORY, "no memory to remember which units were checked");
	*kind = path_of(b->l, at->shard, at->r, b->s->place.epoch);
	if ((*kind == PATH_DIRECT || *kind == PATH_PREAD) && (!large || at->r->group[group].unit_records > 1))
		*kind = PATH_WARM;
	if (!rc && *kind == PATH_WARM)
		path_fetch_run(b->l, at->shard, at->r, group, at->inside, b->s->place.epoch);
	return rc;
}

static void fetch_ahead(const struct located *at, uint32_t group)
{
	const struct reader_group *g = &at->r->group[group];
	const uint8_t *src = g->data + at->inside * g->stride;

	for (uint64_t i = 0; i < min_u64(g->stride, AHEAD_BYTES); i += 64)
		__builtin_prefetch(src + i);
}

static int fill_row(struct block *b, uint32_t group, uint32_t i, enum path_kind kind)
{
	const struct located *at = &b->at[i];
	const struct shard_group *g = &b->l->ds->m.schema.group[group];
	struct row row = {.l = b->l, .r = at->r, .shard = at->shard, .inside = at->inside, .row = b->first + i, .group = group,
			  .slot = b->s->memory};

	if (group_is_large(g))
		row.dst = row.slot + b->l->layout.group_at[group] + row.row * g->stride;
	if (kind == PATH_HOT || kind == PATH_WARM)
		return land_row(&row, at->r->group[group].data + at->inside * g->stride, true, &b->counts->checked_units, b->err);
	*(kind == PATH_DIRECT ? &b->counts->direct_bytes : &b->counts->pread_bytes) += g->stride;
	return cold_put(b->m, &row, kind == PATH_DIRECT, b->s->place.epoch, &b->counts->checked_units, b->err);
}

static int fill_raw(struct block *b, uint32_t group)
{
	enum path_kind kind[BLOCK];
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < b->count; i++)
		rc = prepare_row(b, group, i, &kind[i]);
	for (uint32_t i = 0; !rc && i < b->count; i++) {
		if (i + AHEAD < b->count && kind[i + AHEAD] == PATH_HOT)
			fetch_ahead(&b->at[i + AHEAD], group);
		rc = fill_row(b, group, i, kind[i]);
	}
	return rc;
}

/* ---- compressed groups ---- */

uint64_t rows_scratch_bytes(const struct shard_loader *l)
{
	uint64_t bytes = 0;

	for (uint32_t g = 0; g < l->ds->m.schema.group_count; g++) {
		const struct shard_group *group = &l->ds->m.schema.group[g];

		if (group->codec != SHARD_RAW && !group_is_large(group) && group->stride > bytes)
			bytes = group->stride;
	}
	return bytes;
}

static int fill_packed(struct block *b, uint32_t group)
{
	const struct shard_group *g = &b->l->ds->m.schema.group[group];
	bool large = group_is_large(g);
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < b->count; i++) {
		struct row row = {.l = b->l, .group = group, .row = b->first + i, .slot = b->s->memory};
		uint8_t *dst = large ? row.slot + b->l->layout.group_at[group] + row.row * g->stride : b->m->scratch;

		rc = shard_reader_read(b->at[i].r, group, b->at[i].inside, 1, dst, b->err);
		if (!rc && !large)
			spread(&row, dst);
	}
	return rc;
}

int rows_fill(struct shard_loader *l, struct member *m, struct slot *s, struct fill_counts *counts, struct shard_error *err)
{
	const struct shard_schema *schema = &l->ds->m.schema;
	struct block b = {.l = l, .m = m, .s = s, .counts = counts, .err = err};
	uint64_t faults = file_major_faults();
	int rc = SHARD_OK, finished;

	for (; !rc && b.first < s->rows; b.first += BLOCK) {
		b.count = s->rows - b.first < BLOCK ? s->rows - b.first : BLOCK;
		rc = locate(l, s->record + b.first, b.count, b.at, err);
		for (uint32_t g = 0; !rc && g < schema->group_count; g++)
			rc = schema->group[g].codec == SHARD_RAW ? fill_raw(&b, g) : fill_packed(&b, g);
	}
	counts->uring = cold_has_uring(m);
	finished = cold_finish(m, s->place.epoch, &counts->checked_units, rc ? NULL : err);
	path_demote(l, file_major_faults() - faults, s->rows);
	copy_fence();
	return rc ? rc : finished;
}
