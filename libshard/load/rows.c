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
#include "libshard/codec/checksum.h"
#include "libshard/codec/copy.h"
#include "libshard/io/file.h"
#include "libshard/load/block.h"
#include "libshard/order/share.h"

#define TOGETHER       16u   /* large rows whose first bytes are fetched at once, before their turn: one wait for all their pages */
#define SHORT_BYTES    256u  /* rows up to here are fetched a block at a time, as each is a wait for memory and no more */

void rows_order(const struct shard_loader *l, const struct order *order, struct slot *s)
{
	struct order_rank rank = l->rank;
	uint32_t first_padded;
	bool padded = false;

	rank.first_position = s->place.first_position;
	s->rows = first_padded = order_rank_rows(&rank, s->place.step);
	if (l->share) {
		memset(s->row_flags, 0, s->rows);
		order_share_fill(l->share, order, s->place.first_position + s->place.step * l->o.batch_records, s->record, s->rows);
		return;
	}
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
}

/* ---- where records are ---- */

static uint64_t shard_of(const struct shard_loader *l, uint64_t idx)
{
	const uint64_t *first = l->ds->first_record;
	uint64_t guess = idx / l->guess_records;

	if (guess < l->ds->m.shard_count && first[guess] <= idx && idx < first[guess + 1])
		return guess;
	return dataset_shard_of(l->ds, idx);
}

static void take_stamps(struct block *b)
{
	path_stamps(b->l, b->s->place.epoch, b->stamp[0]);
	path_stamps(b->l, b->s->place.epoch + 1, b->stamp[1]);
}

/* A shard's first record in an epoch, or at all: open it, check the tables that units are checked with, choose its path. */
static int settle(struct block *b, struct located *at)
{
	int rc = shard_dataset_reader(b->l->ds, at->shard, &at->r, b->err);

	for (uint32_t g = 0; !rc && g < b->l->ds->m.schema.group_count; g++) {
		if (at->r->check != SHARD_CHECK_NEVER)
			rc = reader_check_tables(at->r, g, b->err);
		if (!rc && at->r->check == SHARD_CHECK_FIRST && !reader_seen(at->r, g))
			rc = error_set(b->err, SHARD_E_MEMORY, "no memory to remember which units were checked");
	}
	if (!rc)
		at->kind = path_decide(b->l, at->shard, at->r, b->s->place.epoch);
	take_stamps(b); /* or, after a demotion, each row of the step would decide anew */
	return rc;
}

static int locate(struct block *b)
{
	const uint64_t *record = b->s->record + b->first;
	struct shard_loader *l = b->l;
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < b->count; i++) {
		struct located *at = &b->at[i];
		uint32_t path;

		at->shard = shard_of(l, record[i]);
		at->inside = record[i] - l->ds->first_record[at->shard];
		path = atomic_load_explicit(&l->path[at->shard], memory_order_acquire);
		at->kind = path % PATH_KINDS;
		if (path == b->stamp[0][at->kind] || path == b->stamp[1][at->kind])
			at->r = atomic_load_explicit(&l->ds->reader[at->shard], memory_order_acquire);
		else
			rc = settle(b, at);
		b->hot_rows += at->kind == PATH_HOT;
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

/* May run under the guard: neither locks nor allocates. */
static void land(void *context)
{
	struct land_job *j = context;
	const struct row *row = j->row;
	const struct reader_group *g = &row->r->group[row->group];
	uint64_t unit = block_unit_of(row->l, row->group, row->inside), got;

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
		block_spread(&row->l->layout, row->group, j->src, row->row, row->slot);
}

/* Under the guard in any case: the bytes may lie elsewhere, but their hash is on the map. */
static int run_land(struct land_job *j)
{
	const struct shard_reader *r = j->row->r;
	int rc = SHARD_OK;

	j->rc = SHARD_OK;
	if (r->guard)
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
atomic_bool *block_enter_stripe(struct shard_loader *l, const struct shard_reader *r, uint64_t unit)
{
	atomic_bool *stripe = &l->stripe[(((uintptr_t)r >> 6) + unit) % LOADER_STRIPES];

	while (atomic_exchange_explicit(stripe, true, memory_order_acquire))
		sched_yield();
	return stripe;
}

int rows_land(const struct row *row, const uint8_t *src, uint64_t *checked, struct shard_error *err)
{
	struct unit_check check = block_begin_check(row->l, row->r, row->group, block_unit_of(row->l, row->group, row->inside));
	struct land_job j = {.row = row, .src = src, .err = err, .hash = check.hash};
	int rc = run_land(&j);

	block_end_check(&check, !rc, checked);
	return rc == SHARD_E_CORRUPT && row->flags ? block_set_aside(row->l, row->flags, err) : rc;
}

/* ---- many of them ---- */

/* By which way a row of this group comes, of those that its shard has. */
static enum path_kind kind_of(const struct block *b, uint32_t group, const struct located *at)
{
	if (at->kind == PATH_HOT || at->kind == PATH_WARM)
		return at->kind;
	return group_is_large(&b->l->ds->m.schema.group[group]) && at->r->group[group].unit_records == 1 ? at->kind : PATH_WARM;
}

static int fill_row(struct block *b, uint32_t group, uint32_t i)
{
	const struct located *at = &b->at[i];
	const struct shard_group *g = &b->l->ds->m.schema.group[group];
	enum path_kind kind = kind_of(b, group, at);
	struct row row = {.l = b->l, .r = at->r, .shard = at->shard, .inside = at->inside, .row = b->first + i, .group = group,
			  .slot = b->s->memory, .flags = b->strict ? NULL : &b->s->row_flags[b->first + i]};

	if (group_is_large(g))
		row.dst = row.slot + b->l->layout.group_at[group] + row.row * g->stride;
	if (kind == PATH_HOT || kind == PATH_WARM)
		return rows_land(&row, at->r->group[group].data + at->inside * g->stride, &b->counts->checked_units, b->err);
	*(kind == PATH_DIRECT ? &b->counts->direct_bytes : &b->counts->pread_bytes) += g->stride;
	return cold_put(b->m, &row, kind == PATH_DIRECT, b->s->place.epoch, &b->counts->checked_units, b->err);
}

/*
 * The short way for records of a few bytes, where each step counts: of a shard in memory, a unit that was checked.  What
 * it does is what fill_row() would; false: it does not apply.
 */
__attribute__((always_inline)) static inline bool fill_short(const struct block *b, uint32_t group, uint32_t i)
{
	const struct located *at = &b->at[i];
	const struct reader_group *g = &at->r->group[group];
	_Atomic uint64_t *seen;
	uint64_t unit;

	if (at->kind != PATH_HOT || at->r->guard || at->r->check == SHARD_CHECK_ALWAYS)
		return false;
	if (at->r->check == SHARD_CHECK_FIRST) {
		seen = atomic_load_explicit(&g->seen, memory_order_acquire); /* by itself: gcc's g->seen[i] is a plain load */
		unit = block_unit_of(b->l, group, at->inside);
		if (!(atomic_load_explicit(&seen[unit / 64], memory_order_acquire) >> (unit & 63) & 1))
			return false;
	}
	block_spread(&b->l->layout, group, g->data + at->inside * g->stride, b->first + i, b->s->memory);
	return true;
}

/*
 * Have the first bytes of the next rows fetched.  Records lie on pages of their own, whose addresses are not in the
 * processor's tables: asked for together, they are looked up at the same time.
 */
__attribute__((always_inline)) static inline void fetch_some(const struct block *b, uint32_t group, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count && i < b->count; i++)
		if (b->at[i].kind == PATH_HOT) {
			const struct reader_group *g = &b->at[i].r->group[group];

			block_fetch_ahead(g->data + b->at[i].inside * g->stride, g->stride);
		}
}

static int fill_raw(struct block *b, uint32_t group)
{
	const struct shard_group *g = &b->l->ds->m.schema.group[group];
	bool is_short = g->stride <= SHORT_BYTES;
	int rc = SHARD_OK;

	fetch_some(b, group, 0, is_short ? b->count : TOGETHER);
	for (uint32_t i = 0; i < b->count; i++)
		if (kind_of(b, group, &b->at[i]) == PATH_WARM)
			path_fetch_run(b->l, b->at[i].shard, b->at[i].r, group, b->at[i].inside, b->s->place.epoch);
	for (uint32_t i = 0; !rc && i < b->count; i++) {
		if (!is_short && i % TOGETHER == 0)
			fetch_some(b, group, i + TOGETHER, TOGETHER);
		if (!is_short || !fill_short(b, group, i))
			rc = fill_row(b, group, i);
	}
	return rc;
}

/* ---- a step ---- */

/* The rows of a block, of which some may still be on their way. */
static int fill_block(struct block *b)
{
	const struct shard_schema *schema = &b->l->ds->m.schema;
	int rc = locate(b);

	for (uint32_t g = 0; !rc && g < schema->group_count; g++)
		rc = schema->group[g].codec == SHARD_RAW ? fill_raw(b, g) : block_fill_packed(b, g);
	return rc;
}

int rows_fill_one(struct shard_loader *l, struct member *m, struct slot *s, uint32_t row, struct fill_counts *counts,
		  struct shard_error *err)
{
	struct fill_counts once_more = {0}; /* the row's bytes are counted already */
	struct block b = {.l = l, .m = m, .s = s, .counts = &once_more, .err = err, .first = row, .count = 1, .strict = true};
	int rc, finished;

	take_stamps(&b);
	rc = fill_block(&b);
	finished = cold_finish(m, s->place.epoch, &once_more.checked_units, rc ? NULL : err);
	counts->checked_units += once_more.checked_units;
	return rc ? rc : finished;
}

int rows_fill(struct shard_loader *l, struct member *m, struct slot *s, struct fill_counts *counts, struct shard_error *err)
{
	struct block b = {.l = l, .m = m, .s = s, .counts = counts, .err = err, .strict = l->o.on_corrupt == SHARD_CORRUPT_FAIL};
	uint64_t faults = file_major_faults();
	int rc = SHARD_OK, finished;

	take_stamps(&b);
	for (; !rc && b.first < s->rows; b.first += BLOCK) {
		b.count = s->rows - b.first < BLOCK ? s->rows - b.first : BLOCK;
		rc = fill_block(&b);
	}
	counts->uring = cold_has_uring(m);
	finished = cold_finish(m, s->place.epoch, &counts->checked_units, rc ? NULL : err);
	path_demote(l, file_major_faults() - faults, b.hot_rows);
	rc = rc ? rc : finished;
	if (!rc && !b.strict)
		rc = repair_rows(l, m, s, counts, err);
	copy_fence();
	return rc;
}
