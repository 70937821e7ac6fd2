/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - see pool.h: which slabs a batch needs, and its rows out of them
 *
 * Everything is in the order of one stream, the loader's copy stream: slabs are awaited there, batches gathered, slabs given
 * back behind that.  The host waits only for a slab that the crew has not filled yet.
 */
#include "libshard/load/pool.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"

/* ---- memory that comes with the first batch ---- */

static int make_order(struct pool_order *o, const struct order_params *params, struct shard_error *err)
{
	if (!o->table)
		o->table = mem_array(order_table_entries(params), sizeof(*o->table));
	return o->table ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for the order of an epoch");
}

static const struct order *order_of(struct shard_loader *l, uint64_t epoch)
{
	struct pool_order *o = &l->pool->order[epoch % 2];
	struct order_params params = settle_params(l, epoch);

	if (!o->made || o->epoch != epoch)
		order_init(&o->order, &params, o->table); /* the parameters were checked with the options, or the token */
	o->made = true;
	o->epoch = epoch;
	return &o->order;
}

/* Rows of the layouts of slabs and batches: the same arrays at other places. */
static void list_pieces(const struct shard_loader *l, struct gather_call *call)
{
	const struct shard_schema *s = &l->ds->m.schema;
	const struct layout *from = &l->pool->feed->layout, *to = &l->layout;

	call->slab_bytes = from->slot_bytes;
	call->slab_rows = l->pool->slab_rows;
	for (uint32_t g = 0; g < s->group_count; g++) {
		if (group_is_large(&s->group[g])) {
			call->piece[call->piece_count++] = (struct gather_piece){from->group_at[g], to->group_at[g], (uint32_t)s->group[g].stride, 0};
			continue;
		}
		for (uint32_t i = 0; i < to->field_count[g]; i++)
			call->piece[call->piece_count++] = (struct gather_piece){from->field[g][i].at, to->field[g][i].at, to->field[g][i].bytes, 0};
	}
}

static int open_memory(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct pool *p = l->pool;
	int rc;

	if (p->slab)
		return SHARD_OK;
	rc = make_order(&p->order[0], &l->params, err);
	if (!rc)
		rc = make_order(&p->order[1], &l->params, err);
	if (!rc && p->is_held && !p->home) {
		p->home = mem_array((size_t)ceil_div(p->share.record_count, p->share.run_records), sizeof(*p->home));
		rc = p->home ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for the places of runs");
	}
	if (!rc && !p->gather.module)
		rc = cuda_gather_open(d->cuda, &p->gather, err);
	if (!rc) {
		p->slab = mem_array(p->slab_count, sizeof(*p->slab));
		rc = p->slab ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for %u slabs of the pool", p->slab_count);
	}
	if (!rc)
		list_pieces(l, &p->call);
	return rc;
}

/* ---- what a batch needs ---- */

/* Rows of the bands that the batch of the claim is in: [first, end). */
static void span_of(struct shard_loader *l, const struct order *o, uint64_t *first, uint64_t *end)
{
	const struct pool *p = l->pool;
	struct order_rank rank = l->rank;
	uint64_t position, unused;
	uint32_t rows;
	bool padded;

	rank.first_position = p->claim.first_position;
	rows = order_rank_rows(&rank, p->claim.step);
	position = order_rank_position(&rank, p->claim.step, 0, &padded);
	if (padded)
		*first = p->share.whole_rows;
	else
		order_share_band(&p->share, o, position, first, &unused);
	position = order_rank_position(&rank, p->claim.step, rows - 1, &padded);
	if (padded)
		*end = order_share_rows(&p->share);
	else
		order_share_band(&p->share, o, position, &unused, end);
	if (padded && p->is_held)
		*first = 0; /* what pads are the epoch's first */
}

/* Slabs from the origin to the epoch and slab. */
static uint64_t slabs_until(const struct pool *p, uint64_t epoch, uint64_t slab)
{
	return (epoch - p->origin_epoch) * p->epoch_slabs + slab - p->origin_slab;
}

/* How many slabs since the origin must be there for the batch of the claim. */
static uint64_t slabs_needed(struct shard_loader *l)
{
	const struct pool *p = l->pool;
	uint64_t first, end;

	span_of(l, order_of(l, p->claim.epoch), &first, &end);
	if (!p->is_held)
		return slabs_until(p, p->claim.epoch, ceil_div(end, p->slab_rows));
	/* In the epoch that they are fetched for, they come in its order. */
	if (p->claim.epoch == p->origin_epoch && first / p->slab_rows >= p->origin_slab)
		return ceil_div(end, p->slab_rows) - p->origin_slab;
	return p->epoch_slabs;
}

/* ---- fetching ---- */

/* What is needed no more goes back to the feed, behind what was gathered from it. */
static int give_back(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct pool *p = l->pool;
	int rc = SHARD_OK;

	while (!rc && p->first < p->end && p->first < p->limit) {
		rc = shard_loader_release_after(p->feed, &p->slab[p->first % p->slab_count], d->copy, err);
		p->first += !rc;
	}
	return rc;
}

/* The next slab is on its way, and what is behind d->copy finds it there. */
static int fetch(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct pool *p = l->pool;
	struct shard_batch *slab = &p->slab[p->end % p->slab_count];
	int rc;

	assert(p->end - p->first < p->slab_count); /* pool_open() saw to that */
	rc = shard_loader_next_device(p->feed, d->copy, slab, err);
	if (rc == SHARD_END)
		rc = shard_loader_next_device(p->feed, d->copy, slab, err);
	if (rc)
		return rc;
	p->end++;
	return give_back(l, d, err);
}

/* A pool that holds everything: where the runs are, in the order of the epoch that they are fetched for. */
static void find_homes(struct shard_loader *l, const struct order *o)
{
	struct pool *p = l->pool;
	uint64_t r = p->share.run_records, runs = p->share.record_count / r;

	for (uint64_t i = 0; i < runs; i++) {
		uint64_t record = order_at_place(o, i * r), n = p->share.record_count;

		p->home[(record + n - o->phase) % n / r] = (uint32_t)i;
	}
	p->held_phase = o->phase;
}

/* Begin to fetch with the slab where the claim's first band begins. */
static int start(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct pool *p = l->pool;
	const struct order *o;
	uint64_t first, end;
	int rc;

	while (place_ended(l, &p->claim))
		p->claim = (struct place){.epoch = p->claim.epoch + 1};
	if (p->is_held && p->feed->owner) { /* it is there, or on its way, unless an error has stopped it */
		shard_loader_tell(p->feed, &first, &end);
		return p->feed->failed || (p->feed->device && p->feed->device->failed) ? shard_loader_seek(p->feed, first, end, err) : SHARD_OK;
	}
	rc = open_memory(l, d, err);
	p->limit = p->end;
	if (!rc)
		rc = give_back(l, d, err);
	if (rc)
		return rc;
	o = order_of(l, p->claim.epoch);
	span_of(l, o, &first, &end);
	p->origin_epoch = p->claim.epoch;
	p->origin_slab = first / p->slab_rows;
	p->first = p->end = p->limit = 0;
	if (p->is_held)
		find_homes(l, o);
	p->feed->held_epoch = p->origin_epoch;
	return shard_loader_seek(p->feed, p->origin_epoch, p->origin_slab * p->slab_rows, err);
}

static int get_started(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct pool *p = l->pool;
	int rc = p->is_started ? SHARD_OK : start(l, d, err);

	p->is_started = !rc;
	while (place_ended(l, &p->claim))
		p->claim = (struct place){.epoch = p->claim.epoch + 1};
	return rc;
}

int pool_await(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	int rc = get_started(l, d, err);
	uint64_t needed = rc ? 0 : slabs_needed(l);

	while (!rc && l->pool->end < needed)
		rc = fetch(l, d, err);
	return rc;
}

bool pool_has(struct shard_loader *l, struct device_side *d)
{
	struct pool *p = l->pool;
	uint64_t needed;

	d->failed = get_started(l, d, &d->why);
	needed = d->failed ? 0 : slabs_needed(l);
	while (!d->failed && p->end < needed && p->feed->device && p->feed->device->queue_count)
		d->failed = fetch(l, d, &d->why);
	return !d->failed && p->end >= needed;
}

/* ---- gathering ---- */

/* In the pool of everything: the row of a record. */
static uint64_t held_row(const struct pool *p, uint64_t record)
{
	uint64_t n = p->share.record_count, r = p->share.run_records, place = (record + n - p->held_phase) % n;

	return place / r < n / r ? p->home[place / r] * r + place % r : place;
}

/* Where a row of the share is now: slab and row of the pool's memory. */
static uint32_t find_row(struct pool *p, uint64_t epoch, uint64_t row, const struct shard_batch **slab, uint32_t *inside)
{
	uint64_t number = row / p->slab_rows, n;

	n = p->is_held ? (number + p->epoch_slabs - p->origin_slab) % p->epoch_slabs : slabs_until(p, epoch, number);
	assert(n >= p->first && n < p->end);
	*slab = &p->slab[n % p->slab_count];
	*inside = (uint32_t)(row % p->slab_rows);
	return ((*slab)->slot & ~DEVICE_BATCH) * p->slab_rows + *inside;
}

/* Where row `i` of the batch is in the pool; what became of it when it was read, too. */
static uint32_t place_row(struct shard_loader *l, const struct order *o, const struct order_rank *rank, struct slot *s, uint32_t i,
			  uint64_t *padded_rows)
{
	struct pool *p = l->pool;
	const struct shard_batch *slab;
	uint32_t inside, at;
	bool padded;
	uint64_t position = order_rank_position(rank, s->place.step, i, &padded), row;

	if (p->is_held)
		row = held_row(p, s->record[i]);
	else
		row = padded ? order_share_padding(&p->share, (*padded_rows)++) : order_share_row(&p->share, order_place(o, position));
	at = find_row(p, s->place.epoch, row, &slab, &inside);
	s->record[i] = slab->record[inside]; /* another one if it was substituted */
	s->row_flags[i] |= slab->row_flags[inside];
	return at;
}

static int gather(struct shard_loader *l, struct device_side *d, const struct order *o, struct device_slot *to, struct shard_error *err)
{
	struct pool *p = l->pool;
	struct gather_call *call = &p->call;
	struct order_rank rank = l->rank;
	uint64_t padded_rows = 0;
	int rc = SHARD_OK;

	rank.first_position = to->as.place.first_position;
	call->from = p->feed->device->memory;
	call->to = (uintptr_t)to->as.memory;
	for (uint32_t i = 0; !rc && i < to->as.rows; i += call->row_count) {
		call->first_row = i;
		call->row_count = to->as.rows - i < GATHER_ROWS ? to->as.rows - i : GATHER_ROWS;
		for (uint32_t k = 0; k < call->row_count; k++)
			call->row[k] = place_row(l, o, &rank, &to->as, i + k, &padded_rows);
		rc = cuda_gather_launch(d->cuda, &p->gather, call, d->copy, err);
	}
	return rc;
}

/* The claim moves on, and with it what is needed no more. */
static void move_on(struct shard_loader *l)
{
	struct pool *p = l->pool;
	uint64_t first, end;

	p->claim.step++;
	if (p->is_held)
		return;
	if (place_ended(l, &p->claim)) {
		p->limit = slabs_until(p, p->claim.epoch + 1, 0);
		return;
	}
	span_of(l, order_of(l, p->claim.epoch), &first, &end);
	p->limit = slabs_until(p, p->claim.epoch, first / p->slab_rows);
}

int pool_send(struct shard_loader *l, struct device_side *d, struct device_slot *to, struct shard_error *err)
{
	struct pool *p = l->pool;
	const struct order *o = order_of(l, p->claim.epoch);
	int rc = to->has_done ? cuda_stream_wait(d->cuda, d->copy, to->done, err) : SHARD_OK;

	to->as.place = p->claim;
	rows_order(l, o, &to->as);
	if (!rc)
		rc = gather(l, d, o, to, err);
	if (!rc)
		rc = cuda_event_record(d->cuda, to->ready, d->copy, err);
	if (rc)
		return rc;
	to->queued = true;
	d->queue[d->queue_count++] = (uint32_t)(to - d->slot);
	move_on(l);
	d->failed = give_back(l, d, &d->why); /* not this batch's error, but of those behind it */
	device_send_ahead(p->feed);
	return SHARD_OK;
}

/* ---- waiting, moving, closing ---- */

/* Is a batch there, or what it is made of, or something that next says at once? */
static int look(struct shard_loader *l, struct device_side *d, bool *has, struct shard_error *err)
{
	int rc;

	*has = true;
	if (!l->pool->feed->device || l->failed || place_ended(l, &l->at) || !d || !d->slot_count || d->queue_count || d->failed || d->lent_count == d->slot_count)
		return SHARD_OK;
	rc = cuda_enter(d->cuda, err);
	if (rc)
		return rc;
	*has = pool_has(l, d) || d->failed;
	return cuda_leave(d->cuda, SHARD_OK, err);
}

int pool_wait(struct shard_loader *l, uint64_t timeout_ns, struct shard_error *err)
{
	uint64_t begin = clock_now_ns(), gone = 0;
	uint32_t host;
	bool has;
	int rc = look(l, l->device, &has, err);

	while (!rc && !has) {
		rc = shard_loader_wait(l->pool->feed, timeout_ns - gone, err);
		if (rc)
			return rc;
		if (crew_has_sound(l->pool->feed, &host))
			pins_has(&l->pool->feed->device->pins, host); /* else nothing is sent yet */
		rc = cuda_enter(l->device->cuda, err);
		if (rc)
			return rc;
		device_send_ahead(l->pool->feed);
		rc = cuda_leave(l->device->cuda, SHARD_OK, err);
		if (!rc)
			rc = look(l, l->device, &has, err);
		gone = min_u64(clock_now_ns() - begin, timeout_ns);
	}
	return rc;
}

void pool_move(struct shard_loader *l, struct place to)
{
	l->pool->claim = to;
	l->pool->is_started = false;
}

void pool_close_device(struct shard_loader *l, bool inherited)
{
	if (l->pool && !inherited)
		cuda_gather_close(l->device->cuda, &l->pool->gather);
}
