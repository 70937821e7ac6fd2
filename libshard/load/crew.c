/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.c - threads that fill slots ahead of the consumer
 *
 * A thread claims the next step and a free slot under the lock, fills the slot without it, and says so.  Claims are queued
 * in the order of steps, so batches come in order whatever the timing.  A seek makes what is queued stale and moves the
 * place of the next claim; nobody waits for it.  The order of an epoch is made by the first thread that needs it.
 */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/thread.h"
#include "libshard/load/path.h"
#include "libshard/load/stage.h"

bool place_ended(const struct shard_loader *l, const struct place *p)
{
	struct order_rank rank = l->rank;

	rank.first_position = p->first_position;
	return p->step >= order_rank_steps(&rank);
}

/* ---- orders ---- */

/* Enough for one that each thread uses or makes, one for the epoch before, and one more. */
static uint32_t order_count(const struct shard_loader *l)
{
	return l->o.thread_count + 2;
}

/* With lock: that of the epoch, or one that nobody uses. */
static struct epoch_order *find_order(struct shard_loader *l, uint64_t epoch)
{
	struct epoch_order *unused = NULL;

	for (uint32_t i = 0; i < order_count(l); i++) {
		struct epoch_order *e = &l->epoch_order[i];

		if (e->state != ORDER_NONE && e->epoch == epoch)
			return e;
		if (e->state != ORDER_MAKING && !e->users && (!unused || e->state == ORDER_NONE))
			unused = e;
	}
	return unused; /* there is one: each other thread uses or makes at most one */
}

/* With lock. */
static void stop_being_busy(struct shard_loader *l)
{
	if (!--l->busy && l->resting)
		pthread_cond_broadcast(&l->ready);
}

/* With lock, which it may give up meanwhile.  NULL: look again, the world has changed. */
static struct epoch_order *get_order(struct shard_loader *l, uint64_t epoch)
{
	struct epoch_order *e = find_order(l, epoch);
	struct order_params params;

	if (e->state == ORDER_MADE && e->epoch == epoch)
		return e;
	if (e->state == ORDER_MAKING) {
		pthread_cond_wait(&l->work, &l->lock);
		return NULL;
	}
	e->state = ORDER_MAKING;
	e->epoch = epoch;
	params = settle_params(l, epoch);
	l->busy++;
	pthread_mutex_unlock(&l->lock);
	order_init(&e->order, &params, e->table); /* the parameters were checked with the options, or the token */
	pthread_mutex_lock(&l->lock);
	e->state = ORDER_MADE;
	stop_being_busy(l);
	pthread_cond_broadcast(&l->work);
	return NULL;
}

static void free_orders(const struct shard_loader *l, struct epoch_order *orders)
{
	for (uint32_t i = 0; orders && i < order_count(l); i++)
		mem_free(orders[i].table);
	mem_free(orders);
}

struct epoch_order *crew_make_orders(const struct shard_loader *l, const struct order_params *params, struct shard_error *err)
{
	struct epoch_order *orders = mem_array(order_count(l), sizeof(*orders));
	size_t entries = order_table_entries(params);

	for (uint32_t i = 0; orders && i < order_count(l); i++) {
		orders[i].table = mem_array(entries, sizeof(uint16_t));
		if (!orders[i].table) {
			free_orders(l, orders);
			orders = NULL;
		}
	}
	if (!orders)
		error_set(err, SHARD_E_MEMORY, "no memory for the order of %u epochs", order_count(l));
	return orders;
}

void crew_use_orders(struct shard_loader *l, struct epoch_order *orders, const struct order_params *params)
{
	free_orders(l, l->epoch_order);
	l->epoch_order = orders;
	l->params = *params;
	l->params.epoch = 0;
}

/* ---- filling ---- */

static void push_free(struct shard_loader *l, uint32_t slot)
{
	l->slot[slot].state = SLOT_FREE;
	l->free[l->free_count++] = slot;
}

/* With lock.  The next step gets the slot; the place of the claim moves on, over the end of the epoch. */
static struct slot *claim(struct shard_loader *l)
{
	uint32_t idx = l->free[--l->free_count];
	struct slot *s = &l->slot[idx];

	l->queue[(l->queue_head + l->queue_count++) % l->o.slot_count] = idx;
	s->state = SLOT_FILLING;
	s->stale = false;
	s->place = l->claim;
	l->claim.step++;
	l->busy++;
	return s;
}

/* With lock: what a thread did with a slot.  Returns whom to tell when the lock is free again, or NULL: who wakes up wants it. */
static pthread_cond_t *finish(struct shard_loader *l, struct slot *s, uint64_t fill_ns, const struct fill_counts *counts)
{
	uint32_t idx = (uint32_t)(s - l->slot);
	uint64_t bytes = s->rc ? 0 : l->layout.record_bytes * s->rows;

	stop_being_busy(l);
	l->stats.fill_ns += fill_ns;
	l->stats.checked_unit_count += counts->checked_units;
	l->stats.decoded_chunk_count += counts->decoded_chunks;
	if (!s->rc) {
		l->stats.filled_record_count += s->rows;
		l->stats.filled_bytes += bytes;
		l->stats.direct_bytes += counts->direct_bytes;
		l->stats.pread_bytes += counts->pread_bytes;
		l->stats.has_uring |= counts->uring;
		l->stats.substituted_count += counts->substituted;
		l->stats.masked_count += counts->masked;
		l->stats.mapped_bytes += bytes - counts->direct_bytes - counts->pread_bytes;
	}
	if (s->stale) {
		push_free(l, idx);
		return &l->work;
	}
	s->state = SLOT_READY;
	return l->queue[l->queue_head] == idx ? &l->ready : NULL;
}

/* With lock, which it gives up to work.  There is a free slot, or was. */
static void fill_one(struct shard_loader *l, struct member *m)
{
	struct epoch_order *e;
	struct slot *s;
	struct fill_counts counts = {0};
	pthread_cond_t *change;
	uint64_t begin;

	while (place_ended(l, &l->claim))
		l->claim = (struct place){.epoch = l->claim.epoch + 1};
	e = get_order(l, l->claim.epoch);
	if (!e || l->stop || l->resting || !l->free_count)
		return;
	s = claim(l);
	e->users++;
	pthread_mutex_unlock(&l->lock);
	begin = clock_now_ns();
	rows_order(l, &e->order, s);
	s->rc = rows_fill(l, m, s, &counts, &s->why);
	begin = clock_now_ns() - begin;
	pthread_mutex_lock(&l->lock);
	e->users--;
	change = finish(l, s, begin, &counts);
	if (!change)
		return;
	pthread_mutex_unlock(&l->lock);
	pthread_cond_broadcast(change);
	pthread_mutex_lock(&l->lock);
}

static void *work(void *context)
{
	struct member *m = context;
	struct shard_loader *l = m->loader;
	uint64_t begin;

	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		if (l->free_count && !l->resting) {
			fill_one(l, m);
			continue;
		}
		begin = clock_now_ns();
		pthread_cond_wait(&l->work, &l->lock);
		l->stats.slot_wait_ns += clock_now_ns() - begin;
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* ---- life ---- */

static void start_threads(struct shard_loader *l)
{
	while (l->member_count < l->o.thread_count &&
	       !thread_start(&l->member[l->member_count].thread, work, &l->member[l->member_count]))
		l->member_count++; /* where some cannot start, the others do; where none can, crew_take() works itself */
}

int crew_open(struct shard_loader *l, struct shard_error *err)
{
	uint64_t chunk = rows_chunk_bytes(l);
	int rc = SHARD_OK;

	l->epoch_order = crew_make_orders(l, &l->params, err);
	if (!l->epoch_order)
		rc = SHARD_E_MEMORY;
	else if (!path_open(l))
		rc = error_set(err, SHARD_E_MEMORY, "no memory for the paths of %" PRIu64 " shards", l->ds->m.shard_count);
	else
		rc = stage_open_all(l, err);
	if (rc) {
		crew_close(l, true);
		return rc;
	}
	l->member = mem_array(l->o.thread_count, sizeof(*l->member));
	for (uint32_t i = 0; l->member && i < l->o.thread_count; i++) {
		l->member[i].loader = l;
		l->member[i].chunk = mem_alloc((size_t)chunk + 1);
		if (!l->member[i].chunk)
			break;
		if (i + 1 < l->o.thread_count)
			continue;
		pthread_mutex_init(&l->lock, NULL);
		pthread_cond_init(&l->work, NULL);
		pthread_cond_init(&l->ready, NULL);
		l->claim = l->at;
		start_threads(l);
		return SHARD_OK;
	}
	stage_close_all(l, false);
	crew_close(l, true); /* nothing was started */
	return error_set(err, SHARD_E_MEMORY, "no memory for %u threads", l->o.thread_count);
}

void crew_close(struct shard_loader *l, bool inherited)
{
	if (l->member && !inherited) {
		pthread_mutex_lock(&l->lock);
		l->stop = true;
		pthread_cond_broadcast(&l->work);
		pthread_mutex_unlock(&l->lock);
		for (uint32_t i = 0; i < l->member_count; i++)
			pthread_join(l->member[i].thread, NULL);
		pthread_cond_destroy(&l->ready);
		pthread_cond_destroy(&l->work);
		pthread_mutex_destroy(&l->lock);
	}
	for (uint32_t i = 0; l->member && i < l->o.thread_count; i++) {
		cold_close(&l->member[i], inherited);
		mem_free(l->member[i].chunk);
	}
	mem_free(l->member);
	l->member = NULL;
	free_orders(l, l->epoch_order);
	l->epoch_order = NULL;
	path_close(l);
	stage_close_all(l, inherited);
}

/* ---- the consumer's side ---- */

/* With lock. */
static bool head_is_ready(const struct shard_loader *l)
{
	return l->queue_count && l->slot[l->queue[l->queue_head]].state == SLOT_READY;
}

/* With lock: does nothing stand between the consumer and its batch but a slot that the GPU's driver still has? */
static bool lacks_slot(const struct shard_loader *l)
{
	return !l->queue_count && !l->free_count && !l->busy;
}

/* With lock: wait for `ready`, and account for it. */
static int await_once(struct shard_loader *l, const struct timespec *until)
{
	uint64_t begin = clock_now_ns();
	int rc;

	l->awaits_slot = lacks_slot(l);
	rc = until ? pthread_cond_clockwait(&l->ready, &l->lock, CLOCK_MONOTONIC, until) : pthread_cond_wait(&l->ready, &l->lock);
	*(l->awaits_slot ? &l->stats.device_wait_ns : &l->stats.next_wait_ns) += clock_now_ns() - begin;
	l->awaits_slot = false;
	return rc;
}

/* With lock: until it is ready, or may be filled by this thread, or the time has come; NULL: never. */
static void await(struct shard_loader *l, const struct timespec *until)
{
	int rc = 0;

	while (!head_is_ready(l) && (l->member_count || !l->free_count) && rc != ETIMEDOUT) {
		l->waited |= !lacks_slot(l);
		rc = await_once(l, until);
	}
}

bool crew_has_sound(struct shard_loader *l, uint32_t *slot)
{
	bool has;

	pthread_mutex_lock(&l->lock);
	*slot = l->queue[l->queue_head];
	has = head_is_ready(l) && !l->slot[*slot].rc;
	pthread_mutex_unlock(&l->lock);
	return has;
}

bool crew_await(struct shard_loader *l, uint64_t most_ns)
{
	struct timespec until = clock_after_ns(most_ns);
	bool has;

	pthread_mutex_lock(&l->lock);
	if (most_ns) /* a timer that is over already costs 15 us */
		await(l, &until);
	has = head_is_ready(l) || (!l->member_count && l->free_count);
	pthread_mutex_unlock(&l->lock);
	return has;
}

uint32_t crew_take(struct shard_loader *l)
{
	uint32_t idx;

	pthread_mutex_lock(&l->lock);
	for (await(l, NULL); !head_is_ready(l); await(l, NULL))
		fill_one(l, &l->member[0]);
	idx = l->queue[l->queue_head];
	l->queue_head = (l->queue_head + 1) % l->o.slot_count;
	l->queue_count--;
	l->slot[idx].state = SLOT_LENT;
	l->stats.next_wait_count += l->waited;
	l->waited = false;
	pthread_mutex_unlock(&l->lock);
	return idx;
}

void crew_give(struct shard_loader *l, uint32_t slot)
{
	bool awaited;

	pthread_mutex_lock(&l->lock);
	push_free(l, slot);
	awaited = l->awaits_slot;
	pthread_mutex_unlock(&l->lock);
	pthread_cond_signal(&l->work); /* without the lock, which is what a thread that wakes up wants first */
	if (awaited)
		pthread_cond_broadcast(&l->ready); /* from now on it is a thread that is waited for; without any, the consumer fills it */
}

/* With lock: what was prepared is not wanted any more. */
static void forget(struct shard_loader *l)
{
	for (; l->queue_count; l->queue_count--, l->queue_head = (l->queue_head + 1) % l->o.slot_count) {
		struct slot *s = &l->slot[l->queue[l->queue_head]];

		if (s->state == SLOT_READY)
			push_free(l, l->queue[l->queue_head]);
		else
			s->stale = true;
	}
}

void crew_move(struct shard_loader *l, struct place to)
{
	pthread_mutex_lock(&l->lock);
	forget(l);
	l->claim = to;
	l->resting = false;
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
}

void crew_rest(struct shard_loader *l)
{
	pthread_mutex_lock(&l->lock);
	forget(l);
	l->resting = true;
	while (l->busy)
		pthread_cond_wait(&l->ready, &l->lock);
	pthread_mutex_unlock(&l->lock);
}
