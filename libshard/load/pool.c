/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - see pool.h: which slabs a batch needs, when they come, and when they go back
 *
 * Everything is in the order of one stream, the loader's copy stream: slabs are awaited there, batches gathered, slabs given
 * back behind that, and in place behind all that was queued on batches that were given back.  The host waits only for a
 * slab that the crew has not filled yet.
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
	struct order_params params = steps_params(&l->steps, epoch);

	if (!o->made || o->epoch != epoch)
		order_init(&o->order, &params, o->table); /* the parameters were checked with the options, or the token */
	o->made = true;
	o->epoch = epoch;
	return &o->order;
}

static int open_memory(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct pool *p = l->pool;
	int rc;

	if (p->slab)
		return SHARD_OK;
	rc = make_order(&p->order[0], &l->steps.params, err);
	if (!rc)
		rc = make_order(&p->order[1], &l->steps.params, err);
	if (!rc && p->is_held && !p->home) {
		p->home = mem_array((size_t)ceil_div(p->share.record_count, p->share.run_records), sizeof(*p->home));
		rc = p->home ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for the places of runs");
	}
	if (!rc && !p->gather.module)
		rc = cuda_gather_open(d->cuda, &p->gather, err);
	if (!rc) {
		mem_free(p->slot);
		mem_free(p->late);
		p->slot = mem_array(p->slab_count, sizeof(*p->slot));
		p->late = mem_array(p->slab_count, sizeof(*p->late));
		p->slab = p->slot && p->late ? mem_array(p->slab_count, sizeof(*p->slab)) : NULL; /* last: it says that all is there */
		rc = p->slab ? SHARD_OK : error_set(err, SHARD_E_MEMORY, "no memory for %u slabs of the pool", p->slab_count);
	}
	if (!rc)
		pool_list_pieces(l);
	return rc;
}

/* ---- what a batch needs ---- */

/* Rows of the bands that the batch of the claim is in: [first, end). */
static void span_of(struct shard_loader *l, const struct order *o, uint64_t *first, uint64_t *end)
{
	const struct pool *p = l->pool;
	struct order_rank rank = l->steps.rank;
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

/* The slabs that must be there for the batch of the claim: those below this number. */
static uint64_t slabs_needed(struct shard_loader *l)
{
	const struct pool *p = l->pool;
	uint64_t first, end;

	span_of(l, order_of(l, p->claim.epoch), &first, &end);
	if (!p->is_held)
		return pool_slabs_until(p, p->claim.epoch, ceil_div(end, p->slab_rows));
	/* In the epoch that they are fetched for, they come in its order. */
	if (p->claim.epoch == p->origin_epoch && first / p->slab_rows >= p->origin_slab)
		return ceil_div(end, p->slab_rows) - p->origin_slab;
	return p->epoch_slabs;
}

/* ---- fetching ---- */

/* What is queued on d->copy from here on is behind all that was queued on batches that were given back. */
static int await_readers(struct device_side *d, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < d->slot_count; i++) {
		struct device_slot *s = &d->slot[i];

		if (!s->has_done || s->awaited)
			continue;
		rc = cuda_stream_wait(d->cuda, d->copy, s->done, err);
		s->awaited = !rc;
	}
	return rc;
}

static int give_slab(struct shard_loader *l, struct device_side *d, uint32_t slot, struct shard_error *err)
{
	int rc = l->o.pool_in_place ? await_readers(d, err) : SHARD_OK;

	return rc ? rc : shard_loader_release_after(l->pool->feed, &l->pool->slab[slot], d->copy, err);
}

/* What is needed no more goes back to the feed, behind all that reads it; but for what batches lie in that may still be read. */
static int give_back(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct pool *p = l->pool;
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < p->late_count;) {
		if (pool_is_read(d, p->late[i].number)) {
			i++;
			continue;
		}
		rc = give_slab(l, d, p->late[i].slot, err);
		if (!rc)
			p->late[i] = p->late[--p->late_count];
	}
	for (; !rc && p->first < p->end && p->first < p->limit; p->first += !rc) {
		uint32_t slot = p->slot[p->first % p->slab_count];

		if (pool_is_read(d, p->first))
			p->late[p->late_count++] = (struct pool_slab){p->first, slot};
		else
			rc = give_slab(l, d, slot, err);
	}
	return rc;
}

/* Can slabs up to this number be there at once, beside those that cannot go back yet?  Always, where batches are gathered. */
static bool has_room(const struct pool *p, uint64_t needed)
{
	return needed - p->limit + p->late_count <= p->slab_count;
}

/* The next slab is on its way, and what is behind d->copy finds it there. */
static int fetch(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct pool *p = l->pool;
	struct shard_batch slab;
	uint32_t slot;
	int rc;

	assert(p->end - p->first + p->late_count < p->slab_count); /* pool_open() saw to that, or has_room() */
	rc = shard_loader_next_device(p->feed, d->copy, &slab, err);
	if (rc == SHARD_END)
		rc = shard_loader_next_device(p->feed, d->copy, &slab, err);
	if (rc)
		return rc;
	slot = slab.slot & ~DEVICE_BATCH;
	p->slab[slot] = slab;
	p->slot[p->end++ % p->slab_count] = slot;
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

	while (steps_ended(&l->steps, &p->claim))
		p->claim = (struct place){.epoch = p->claim.epoch + 1};
	if (p->is_held && p->feed->cursor.owner) { /* it is there, or on its way, unless an error has stopped it */
		shard_loader_tell(p->feed, &first, &end);
		return p->feed->cursor.failed || p->feed->feed->cursor.failed || (p->feed->device && p->feed->device->failed) ? shard_loader_seek(p->feed, first, end, err) : SHARD_OK;
	}
	rc = open_memory(l, d, err);
	p->limit = p->end; /* all that is there; batches that are lent keep theirs */
	if (!rc)
		rc = give_back(l, d, err);
	if (rc)
		return rc;
	o = order_of(l, p->claim.epoch);
	span_of(l, o, &first, &end);
	p->origin_epoch = p->claim.epoch;
	p->origin_slab = first / p->slab_rows;
	p->origin = p->end;
	if (p->is_held)
		find_homes(l, o);
	p->feed->steps.held_epoch = p->feed->feed->steps.held_epoch = p->origin_epoch;
	return shard_loader_seek(p->feed, p->origin_epoch, p->origin_slab * p->slab_rows, err);
}

static int get_started(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct pool *p = l->pool;
	int rc = p->is_started ? SHARD_OK : start(l, d, err);

	p->is_started = !rc;
	while (steps_ended(&l->steps, &p->claim))
		p->claim = (struct place){.epoch = p->claim.epoch + 1};
	return rc;
}

static int fail_full(const struct shard_loader *l, const struct device_side *d, struct shard_error *err)
{
	const struct pool *p = l->pool;

	return error_set(err, SHARD_E_ARGUMENT, "the pool has no room for the next batch: those that are lent, %u, lie in %u of its %u slabs; give one "
			 "back, or with pool_bytes of %" PRIu64 " there is always room", d->lent_count, p->late_count, p->slab_count, p->ample_bytes);
}

int pool_await(struct shard_loader *l, struct device_side *d, bool *is_full, struct shard_error *err)
{
	struct pool *p = l->pool;
	int rc = get_started(l, d, err);
	uint64_t needed = rc ? 0 : slabs_needed(l);

	if (!rc)
		rc = give_back(l, d, err);
	*is_full = !rc && !has_room(p, needed);
	if (*is_full)
		return fail_full(l, d, err);
	while (!rc && p->end < needed)
		rc = fetch(l, d, err);
	return rc;
}

/* As far as the feed need not be waited for.  *needed: what must be there. */
static int fetch_ahead(struct shard_loader *l, struct device_side *d, uint64_t *needed, struct shard_error *err)
{
	struct pool *p = l->pool;
	int rc = get_started(l, d, err);

	if (!rc)
		rc = give_back(l, d, err);
	*needed = rc ? 0 : slabs_needed(l);
	while (!rc && p->end < *needed && has_room(p, *needed) && p->feed->device && p->feed->device->queue_count)
		rc = fetch(l, d, err);
	return rc;
}

bool pool_has(struct shard_loader *l, struct device_side *d)
{
	uint64_t needed;

	d->failed = fetch_ahead(l, d, &needed, &d->why);
	return !d->failed && l->pool->end >= needed;
}

/* ---- sending ---- */

/* The claim moves on, and with it what is needed no more. */
static void move_on(struct shard_loader *l)
{
	struct pool *p = l->pool;
	uint64_t first, end;

	p->claim.step++;
	if (p->is_held)
		return;
	if (steps_ended(&l->steps, &p->claim)) {
		p->limit = pool_slabs_until(p, p->claim.epoch + 1, 0);
		return;
	}
	span_of(l, order_of(l, p->claim.epoch), &first, &end);
	p->limit = pool_slabs_until(p, p->claim.epoch, first / p->slab_rows);
}

/* In place: the slabs that the batch of the claim lies in are its own until it is given back. */
static void keep_slabs(struct shard_loader *l, const struct order *o, struct device_slot *to)
{
	const struct pool *p = l->pool;
	uint64_t first, end;

	span_of(l, o, &first, &end);
	to->slab = pool_slabs_until(p, p->claim.epoch, first / p->slab_rows);
	to->slab_end = pool_slabs_until(p, p->claim.epoch, ceil_div(end, p->slab_rows));
}

int pool_send(struct shard_loader *l, struct device_side *d, struct device_slot *to, struct shard_error *err)
{
	struct pool *p = l->pool;
	const struct order *o = order_of(l, p->claim.epoch);
	int rc = to->has_done && !to->awaited ? cuda_stream_wait(d->cuda, d->copy, to->done, err) : SHARD_OK;

	to->awaited = !rc;
	to->as.place = p->claim;
	to->as.rows = steps_fill(&l->steps, o, &to->as.place, to->as.record, to->as.row_flags);
	if (!rc)
		rc = pool_gather(l, d, o, to, err);
	if (!rc)
		rc = cuda_event_record(d->cuda, to->ready, d->copy, err);
	if (rc)
		return rc;
	if (!p->is_held)
		keep_slabs(l, o, to);
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
	if (!l->pool->feed->device || l->cursor.failed || steps_ended(&l->steps, &l->cursor.at) || !d || !d->slot_count || d->queue_count || d->failed || d->lent_count == d->slot_count)
		return SHARD_OK;
	rc = cuda_enter(d->cuda, err);
	if (rc)
		return rc;
	*has = pool_has(l, d) || d->failed || !has_room(l->pool, slabs_needed(l));
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
		if (feed_has_sound(l->pool->feed->feed, &host))
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
