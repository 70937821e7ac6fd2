/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - a pool holds a part of the dataset, or all of it, in the memory of a GPU
 *
 * A feed of runs fills the pool, slab after slab.  A kernel gathers each batch from slabs, in the
 * order that a loader without a pool has.  A slab stays as long as a window needs it.
 *
 * A pool that holds the whole dataset keeps all slabs: once it is full, nothing more is copied to
 * the GPU.
 *
 * Only the consumer calls these functions.
 */
#include "libshard/gpu/gpu.h"

#include <time.h>

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"

#define NAP_NS UINT64_C(100000) /* a fraction of the copy of a slab */

/* ---- where a row is ---- */

/* Set where runs will be in a pool that holds everything, if they are fetched in this order. */
static void find_homes(struct pool *p, const struct order *o)
{
	uint64_t n = p->plan.share.record_count, r = p->plan.share.run_records;

	for (uint64_t i = 0; i < n / r; i++)
		p->home[(order_at_place(o, i * r) + n - o->phase) % n / r] = (uint32_t)i;
	p->home_phase = o->phase;
}

/* Returns the row of a record in a pool that holds everything. */
static uint64_t held_row(const struct pool *p, uint64_t record)
{
	uint64_t n = p->plan.share.record_count, r = p->plan.share.run_records;
	uint64_t place = (record + n - p->home_phase) % n;

	return place / r < n / r ? p->home[place / r] * r + place % r : place;
}

/*
 * Find row `i` of a batch in the pool, by its row in the share.  Returns where, as the kernel
 * counts.
 */
static uint32_t place_row(const struct pool *p, struct device_slot *to, uint32_t i, uint64_t row)
{
	const struct device_slot *slab;
	uint32_t in_slab, which = slabs_find(&p->slabs, to->as.place.epoch, row, &in_slab);

	slab = &p->slabs.device_slots.slot[which];
	/* Else the slab says nothing new of this row, and asking it would miss the caches of the CPU. */
	if (slab->is_repaired || p->o.selection) {
		to->as.record[i] = slab->as.record[in_slab]; /* it may be a substitute */
		to->as.row_flags[i] |= slab->as.row_flags[in_slab];
	}
	for (uint32_t k = 0; k < p->layout->whole_count; k++)
		slot_sizes(&to->as, k)[i] = slot_sizes(&slab->as, k)[in_slab];
	return which * p->plan.slab_rows + in_slab;
}

/* ---- a batch ---- */

/*
 * Queue the kernel for a slot whose place and records are filled in.  If damaged records were
 * repaired in a slab, the slot takes over their records and flags.  The context is entered.
 */
static int gather(struct pool *p, const struct order *o, struct device_slot *to, struct shard_error *err)
{
	const struct order_share *share = &p->plan.share;
	struct order_rank rank = steps_rank(&p->steps, &to->as.place);
	struct gather_call *call = &p->call;
	uint64_t position, row, padded_rows = 0;
	int rc = SHARD_OK;
	bool padded;

	call->from = p->slabs.device_slots.memory;
	call->to = (uintptr_t)to->as.memory;
	for (uint32_t i = 0; !rc && i < to->as.rows; i += call->row_count) {
		call->first_row = i;
		call->row_count = to->as.rows - i < GATHER_ROWS ? to->as.rows - i : GATHER_ROWS;
		for (uint32_t k = 0; k < call->row_count; k++) {
			position = order_rank_position(&rank, to->as.place.step, i + k, &padded);
			if (p->home)
				row = held_row(p, to->as.record[i + k]);
			else
				row = padded ? order_share_padding(share, padded_rows++)
					     : order_share_row(share, order_place(o, position));
			call->row[k] = place_row(p, to, i + k, row);
		}
		rc = cuda_gather_launch(p->batches->cuda, &p->kernel, call, p->batches->stream, err);
	}
	return rc;
}

/* ---- life ---- */

static void add_piece(struct gather_call *call, uint64_t from, uint64_t step, uint64_t to, uint64_t bytes)
{
	call->piece[call->piece_count++] = (struct gather_piece){from, to, (uint32_t)bytes, (uint32_t)step};
}

/* List the arrays of a batch, which the kernel fills, and where a slab has them. */
static void list_pieces(struct gather_call *call, const struct layout *from, const struct layout *to)
{
	const struct shard_schema *s = from->schema;

	for (uint32_t k = 0; k < from->group_count; k++) {
		uint32_t g = from->group[k];
		uint64_t stride = s->group[g].stride;

		if (layout_is_block(to, g))
			add_piece(call, from->group_at[g], stride, to->group_at[g], stride);
		for (uint32_t i = 0; !layout_is_block(to, g) && i < to->field_count[g]; i++) {
			const struct spread_field *f = &from->field[g][i];

			add_piece(call, f->at, layout_is_block(from, g) ? stride : f->bytes, to->field[g][i].at,
				  f->bytes);
		}
	}
}

static int open_parts(struct pool *p, struct shard_error *err)
{
	const struct order_share *share = &p->plan.share;
	struct steps runs = {.params = p->steps.params, .share = share, .selection = p->o.selection};
	struct feed *feed = NULL;
	int rc = pool_plan(&p->plan, &p->o, p->layout, &p->steps, err);

	if (rc)
		return rc;
	/* The feed of runs: its steps are slabs. */
	runs.is_held = p->plan.is_held;
	runs.rank = (struct order_rank){.record_count = order_share_rows(share),
					.batch_records = p->plan.slab_rows,
					.world = 1,
					.last = ORDER_KEEP};
	rc = feed_open(&feed, p->ds, &p->o, &p->plan.slab, NULL, &runs, err);
	if (!rc)
		rc = slabs_open(&p->slabs, &p->plan, feed, p->batches, err);
	if (rc)
		return rc;
	p->call.slab_bytes = p->plan.slab.slot_bytes;
	p->call.slab_rows = p->plan.slab_rows;
	list_pieces(&p->call, &p->plan.slab, p->layout);
	if (p->plan.is_held) {
		p->home = mem_array((size_t)ceil_div(share->record_count, share->run_records), sizeof(*p->home));
		if (!p->home)
			return error_set(err, SHARD_E_MEMORY, "no memory for the places of runs");
	}
	for (int i = 0; i < 2; i++) {
		p->order[i].table = mem_array(order_table_entries(&p->steps.params), sizeof(*p->order[i].table));
		if (!p->order[i].table)
			return error_set(err, SHARD_E_MEMORY, "no memory for the order of an epoch");
	}
	return SHARD_OK;
}

int pool_open(struct pool **out, struct shard_dataset *ds, const struct shard_loader_options *o,
	      const struct layout *layout, const struct steps *steps, struct device_slots *batches,
	      struct shard_error *err)
{
	struct pool *p = mem_zalloc(sizeof(*p));
	int rc;

	if (!p)
		return error_set(err, SHARD_E_MEMORY, "no memory for a pool");
	p->ds = ds;
	p->o = *o;
	p->layout = layout;
	p->steps = *steps;
	p->steps.selection = NULL; /* slabs have the records; a batch finds them by the numbers of the order */
	p->batches = batches;
	rc = open_parts(p, err);
	if (rc) {
		pool_close(p, false);
		return rc;
	}
	*out = p;
	return SHARD_OK;
}

void pool_close(struct pool *p, bool inherited)
{
	const struct cuda_device *cuda;
	bool entered;

	if (!p)
		return;
	cuda = p->batches->cuda; /* NULL: the pool has nothing on a GPU */
	entered = cuda && !inherited && !cuda_enter(cuda, NULL);
	if (p->kernel.module && !inherited)
		cuda_gather_close(cuda, &p->kernel);
	mem_free(p->home);
	slabs_close(&p->slabs, inherited);
	if (entered)
		cuda_leave(cuda, SHARD_OK, NULL);
	mem_free(p->order[0].table);
	mem_free(p->order[1].table);
	mem_free(p);
}

/* Wait for kernels that read slabs. */
static int finish_batches(struct pool *p, struct shard_error *err)
{
	int rc;

	if (!p->batches->slot_count)
		return SHARD_OK;
	rc = cuda_enter(p->batches->cuda, err);
	return rc ? rc : cuda_leave(p->batches->cuda, device_slots_finish(p->batches, false, err), err);
}

int pool_adopt(struct pool **p, const struct order_params *params, struct shard_error *err)
{
	struct pool *before = *p, *after = NULL;
	const struct ring *ring = &before->slabs.feed->ring;
	struct steps steps = before->steps;
	int rc;

	steps.params = *params;
	steps.params.epoch = 0;
	rc = pool_open(&after, before->ds, &before->o, before->layout, &steps, before->batches, err);
	if (!rc && ring->lent)
		rc = feed_use_memory(after->slabs.feed, ring->lent[0], ring_bytes(ring), err);
	if (!rc)
		rc = finish_batches(before, err);
	if (rc) {
		pool_close(after, false);
		return rc;
	}
	after->kernel = before->kernel;
	before->kernel.module = NULL; /* it belongs to the new pool now */
	pool_close(before, false);
	*p = after;
	return SHARD_OK;
}

void pool_move(struct pool *p, struct step_place to)
{
	p->claim = to;
	p->is_started = false;
}

/* ---- what a batch needs ---- */

static const struct order *order_of(struct pool *p, uint64_t epoch)
{
	struct pool_order *o = &p->order[epoch % 2];
	struct order_params params = steps_params(&p->steps, epoch);

	if (!o->made || o->epoch != epoch)
		order_init(&o->order, &params, o->table); /* cannot fail: they were checked */
	o->made = true;
	o->epoch = epoch;
	return &o->order;
}

/* The rows [first, end) of the share: all bands that the batch of the claim has a record of. */
static void span_of(struct pool *p, uint64_t *first, uint64_t *end)
{
	const struct order *o = order_of(p, p->claim.epoch);
	const struct order_share *share = &p->plan.share;
	struct order_rank rank = steps_rank(&p->steps, &p->claim);
	uint32_t rows = order_rank_rows(&rank, p->claim.step);
	uint64_t position, unused;
	bool padded;

	position = order_rank_position(&rank, p->claim.step, 0, &padded);
	if (padded)
		*first = share->whole_rows;
	else
		order_share_band(share, o, position, first, &unused);
	position = order_rank_position(&rank, p->claim.step, rows - 1, &padded);
	if (padded)
		*end = order_share_rows(share);
	else
		order_share_band(share, o, position, &unused, end);
	if (padded && p->plan.is_held)
		*first = 0; /* the records that pad are the first of the epoch */
}

/* The slabs of these rows, by number.  A pool that holds everything numbers them otherwise. */
static void slabs_of_claim(struct pool *p, uint64_t *first, uint64_t *end)
{
	uint64_t first_row, end_row;

	span_of(p, &first_row, &end_row);
	*first = slabs_number(&p->slabs, p->claim.epoch, pool_plan_slab(&p->plan, first_row));
	*end = slabs_number(&p->slabs, p->claim.epoch, pool_plan_slab_end(&p->plan, end_row));
}

/* The batch of the claim needs slabs below this number. */
static uint64_t slabs_needed(struct pool *p)
{
	const struct slabs *s = &p->slabs;
	uint64_t first, end;

	if (!p->plan.is_held) {
		slabs_of_claim(p, &first, &end);
		return end;
	}
	/* The first epoch gets its slabs in its own order. */
	span_of(p, &first, &end);
	if (p->claim.epoch == s->origin_epoch && pool_plan_slab(&p->plan, first) >= s->origin_slab)
		return pool_plan_slab_end(&p->plan, end) - s->origin_slab;
	return p->plan.epoch_slabs;
}

/* ---- fetching ---- */

/* Begin to fetch slabs, from the first one that the claim needs. */
static int start(struct pool *p, struct shard_error *err)
{
	uint64_t first, end;
	int rc;

	p->claim = steps_next(&p->steps, p->claim);
	if (p->plan.is_held && p->slabs.feed->cursor.owner) {
		slabs_retry(&p->slabs); /* the rest is there, or on its way */
		return SHARD_OK;
	}
	if (!p->kernel.module) {
		rc = cuda_gather_open(p->batches->cuda, &p->kernel, err);
		if (rc)
			return rc;
	}
	span_of(p, &first, &end);
	rc = slabs_start(&p->slabs, p->claim.epoch, pool_plan_slab(&p->plan, first), err);
	if (!rc && p->plan.is_held)
		find_homes(p, order_of(p, p->claim.epoch));
	return rc;
}

/* Prepare for the claim: begin to fetch, give slabs back, and tell how many it needs. */
static int prepare(struct pool *p, uint64_t *needed, struct shard_error *err)
{
	int rc = p->is_started ? SHARD_OK : start(p, err);

	p->is_started = !rc;
	if (rc)
		return rc;
	p->claim = steps_next(&p->steps, p->claim);
	rc = slabs_give_back(&p->slabs, err);
	*needed = rc ? 0 : slabs_needed(p);
	return rc;
}

int pool_begin(struct pool *p, struct shard_error *err)
{
	uint64_t needed;
	int rc = prepare(p, &needed, err); /* this settles where the feed starts */

	return rc ? rc : slabs_begin(&p->slabs, err);
}

/* Fetch what the claim needs, without waiting for the feed.  *has: all of it is there. */
static int fetch_ahead(struct pool *p, bool *has, struct shard_error *err)
{
	uint64_t needed;
	int rc = prepare(p, &needed, err);

	while (!rc && p->slabs.end < needed && slabs_has_next(&p->slabs))
		rc = slabs_fetch(&p->slabs, err);
	*has = !rc && p->slabs.end >= needed;
	return rc;
}

/* ---- putting together ---- */

/* Put the batch of the claim together.  Its slabs are there. */
static int send(struct pool *p, struct shard_error *err)
{
	struct device_slots *o = p->batches;
	struct device_slot *to = device_slots_find_free(o);
	const struct order *order = order_of(p, p->claim.epoch);
	uint64_t first, end;
	int rc = device_slots_begin(o, to, err);

	to->as.place = p->claim;
	to->as.rows = steps_fill(&p->steps, order, &p->claim, slot_rows(&to->as));
	if (!rc)
		rc = gather(p, order, to, err);
	if (!rc)
		rc = device_slots_end(o, to, err);
	if (rc)
		return rc;
	device_slots_push(o, to);
	p->claim.step++;
	if (!p->plan.is_held) { /* drop the slabs that no later step needs */
		if (steps_ended(&p->steps, &p->claim))
			first = slabs_number(&p->slabs, p->claim.epoch + 1, 0);
		else
			slabs_of_claim(p, &first, &end);
		p->slabs.limit = first;
	}
	slabs_give_back(&p->slabs, NULL); /* if this fails, it is tried again for the next batch */
	device_copy_send_ahead(p->slabs.copy);
	return SHARD_OK;
}

int pool_next(struct pool *p, struct shard_error *err)
{
	uint64_t needed;
	int rc;

	if (p->batches->queue_count)
		return SHARD_OK;
	rc = prepare(p, &needed, err);
	while (!rc && p->slabs.end < needed)
		rc = slabs_fetch(&p->slabs, err);
	return rc ? rc : send(p, err);
}

void pool_send_ahead(struct pool *p)
{
	const struct device_slots *o = p->batches;
	bool has;

	/* Fetch slabs even if no batch can be put together now. */
	while (!fetch_ahead(p, &has, NULL) && has && o->queue_count + o->lent_count < o->slot_count)
		if (send(p, NULL))
			return;
}

/* ---- waiting ---- */

/* Would pool_next() return at once? */
static int would_answer(struct pool *p, bool *answers, struct shard_error *err)
{
	const struct cuda_device *cuda = p->batches->cuda;
	bool has;
	int rc = cuda_enter(cuda, err);

	if (rc)
		return rc;
	*answers = fetch_ahead(p, &has, NULL) || has;
	return cuda_leave(cuda, SHARD_OK, err);
}

/* Send the slabs that the feed has ready to the pool. */
static int send_slabs(struct pool *p, struct shard_error *err)
{
	const struct cuda_device *cuda = p->batches->cuda;
	struct device_copy *copy = p->slabs.copy;
	uint32_t host;
	int rc;

	if (feed_has_sound(p->slabs.feed, &host))
		device_copy_await_pins(copy, host); /* before this is known, nothing is sent */
	rc = cuda_enter(cuda, err);
	if (rc)
		return rc;
	device_copy_send_ahead(copy);
	return cuda_leave(cuda, SHARD_OK, err);
}

/* The driver has no call that waits for an event for a limited time. */
static void nap(uint64_t most_ns)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)min_u64(most_ns, NAP_NS)}, NULL);
}

int pool_wait(struct pool *p, uint64_t timeout_ns, struct shard_error *err)
{
	uint64_t begin = clock_now_ns(), gone = 0;
	uint32_t host;
	bool answers = !p->slabs.copy; /* the feed has not started, so pool_next() has to do that */
	int rc = answers ? SHARD_OK : would_answer(p, &answers, err);

	while (!rc && !answers) {
		if (p->slabs.device_slots.queue_count) { /* the GPU has not checked it yet */
			if (gone >= timeout_ns)
				return SHARD_E_TIMEOUT; /* the caller says so */
			nap(timeout_ns - gone);
		} else if (!feed_await(p->slabs.feed, timeout_ns - gone)) {
			return SHARD_E_TIMEOUT;
		} else if (!feed_has_sound(p->slabs.feed, &host)) {
			return SHARD_OK; /* it fails, or it fills the slab itself */
		}
		rc = send_slabs(p, err);
		if (!rc)
			rc = would_answer(p, &answers, err);
		gone = min_u64(clock_now_ns() - begin, timeout_ns);
	}
	return rc;
}
