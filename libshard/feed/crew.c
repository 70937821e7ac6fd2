/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.c - see crew.h
 */
#include "libshard/feed/crew.h"

#include <errno.h>
#include <time.h>

#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/thread.h"
#include "libshard/feed/repair.h"
#include "libshard/feed/slot_cold.h"
#include "libshard/feed/slot_fill.h"
#include "libshard/feed/slot_packed.h"
#include "libshard/feed/steps.h"
#include "libshard/io/guard.h"
#include "libshard/store/read/fetch.h"

/* ---- filling ---- */

/* With lock. */
static void stop_being_busy(struct crew *c)
{
	if (!--c->busy && c->resting)
		pthread_cond_broadcast(&c->ready);
}

/* With lock, which is given up meanwhile.  Returns NULL if the caller has to look again. */
static struct epoch_order *get_order(struct crew *c, uint64_t epoch)
{
	struct epoch_order *e = epoch_orders_find(&c->orders, epoch);
	struct order_params params;

	if (e->state == ORDER_MADE && e->epoch == epoch)
		return e;
	if (e->state == ORDER_MAKING) {
		pthread_cond_wait(&c->work, &c->lock);
		return NULL;
	}
	e->state = ORDER_MAKING;
	e->epoch = epoch;
	params = steps_params(c->steps, epoch);
	c->busy++;
	pthread_mutex_unlock(&c->lock);
	order_init(&e->order, &params, e->table); /* cannot fail: the parameters were checked */
	pthread_mutex_lock(&c->lock);
	e->state = ORDER_MADE;
	stop_being_busy(c);
	pthread_cond_broadcast(&c->work);
	return NULL;
}

/* With lock. */
static void push_free(struct crew *c, uint32_t slot)
{
	c->claim[slot].state = CLAIM_FREE;
	c->free[c->free_count++] = slot;
}

/* With lock.  Give a free slot to the next place, and return it. */
static uint32_t claim(struct crew *c)
{
	uint32_t slot = c->free[--c->free_count];

	c->queue[(c->queue_head + c->queue_count++) % c->ring->slot_count] = slot;
	c->claim[slot].state = CLAIM_FILLING;
	c->claim[slot].stale = false;
	c->ring->slot[slot].place = c->next;
	c->next.step++;
	c->busy++;
	return slot;
}

/* With lock. */
static void count(struct shard_loader_stats *s, const struct fill_counts *counts, uint64_t rows, uint64_t bytes)
{
	s->filled_record_count += rows;
	s->filled_bytes += bytes;
	s->direct_bytes += counts->direct_bytes;
	s->pread_bytes += counts->pread_bytes;
	s->has_uring |= counts->uring;
	s->substituted_count += counts->substituted;
	s->masked_count += counts->masked;
	s->mapped_bytes += bytes - counts->direct_bytes - counts->pread_bytes;
}

/*
 * With lock.  The slot was filled.  Returns the condition to signal after unlocking, or NULL.
 * (Signal without the lock, because the thread that wakes up takes the lock first.)
 */
static pthread_cond_t *finish(struct crew *c, uint32_t slot, uint64_t fill_ns, const struct fill_counts *counts)
{
	struct claim *claim = &c->claim[slot];
	uint64_t rows = c->ring->slot[slot].rows;

	stop_being_busy(c);
	c->stats.fill_ns += fill_ns;
	c->stats.checked_unit_count += counts->checked_units;
	c->stats.decoded_chunk_count += counts->decoded_chunks;
	if (!claim->rc)
		count(&c->stats, counts, rows, rows * c->supply->layout->record_bytes);
	if (claim->stale) {
		push_free(c, slot);
		return &c->work;
	}
	claim->state = CLAIM_READY;
	return c->queue[c->queue_head] == slot ? &c->ready : NULL;
}

/* If the thread has met shards that are not in memory, fetch what a later step needs. */
static void look_ahead(struct crew *c, struct member *m, const struct place *p, const struct order *order)
{
	if (!m->scratch.has_cold)
		return;
	m->scratch.has_cold = false;
	m->ahead.place = *p;
	m->ahead.rows = steps_ahead(c->steps, order, p, c->thread_count, c->supply->paths.fetch->apart_records,
				    slot_rows(&m->ahead));
	slot_fetch(c->supply, &m->scratch, &m->ahead);
}

/* Without the lock.  The slot belongs to this thread. */
static void fill(struct crew *c, struct member *m, uint32_t slot, const struct order *order, struct fill_counts *counts)
{
	struct slot *s = &c->ring->slot[slot];
	struct claim *claim = &c->claim[slot];

	look_ahead(c, m, &s->place, order);
	s->rows = steps_fill(c->steps, order, &s->place, slot_rows(s));
	claim->rc = slot_fill(c->supply, &m->scratch, s, counts, &claim->why);
	if (!claim->rc)
		claim->rc = repair_rows(c->supply, &m->scratch, s, counts, &claim->why);
	steps_name(c->steps, slot_rows(s), s->rows);
	claim->repaired = counts->substituted + counts->masked;
}

/* With lock, which is given up while it works.  Fill a free slot, if there still is one. */
static void fill_one(struct crew *c, struct member *m)
{
	struct fill_counts counts = {0};
	struct epoch_order *e;
	pthread_cond_t *change;
	uint64_t begin;
	uint32_t slot;

	c->next = steps_next(c->steps, c->next);
	e = get_order(c, c->next.epoch);
	if (!e || c->stop || c->resting || !c->free_count)
		return;
	slot = claim(c);
	e->users++;
	pthread_mutex_unlock(&c->lock);
	begin = clock_now_ns();
	fill(c, m, slot, &e->order, &counts);
	begin = clock_now_ns() - begin;
	pthread_mutex_lock(&c->lock);
	e->users--;
	change = finish(c, slot, begin, &counts);
	if (!change)
		return;
	pthread_mutex_unlock(&c->lock);
	pthread_cond_broadcast(change);
	pthread_mutex_lock(&c->lock);
}

static void *work(void *context)
{
	struct member *m = context;
	struct crew *c = m->crew;
	uint64_t begin;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		if (c->free_count && !c->resting) {
			fill_one(c, m);
			continue;
		}
		begin = clock_now_ns();
		pthread_cond_wait(&c->work, &c->lock);
		c->stats.slot_wait_ns += clock_now_ns() - begin;
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* ---- life ---- */

/* If some threads cannot start, the others do the work.  If no thread can, crew_take() does. */
static void start_threads(struct crew *c)
{
	while (c->member_count < c->thread_count &&
	       !thread_start(&c->member[c->member_count].thread, work, &c->member[c->member_count]))
		c->member_count++;
}

/* Returns false if there is no memory. */
static bool open_members(struct crew *c)
{
	size_t chunk_bytes = (size_t)slot_packed_chunk_bytes(c->supply->layout->schema) + 1;

	c->member = mem_array(c->thread_count, sizeof(*c->member));
	for (uint32_t i = 0; c->member && i < c->thread_count; i++) {
		c->member[i].crew = c;
		c->member[i].scratch.chunk = mem_alloc(chunk_bytes);
		if (!c->member[i].scratch.chunk ||
		    !slot_open(&c->member[i].ahead, NULL, c->steps->rank.batch_records + STEPS_AHEAD_ROWS))
			return false;
	}
	return c->member;
}

/* Returns false if there is no memory. */
static bool open_queue(struct crew *c)
{
	uint32_t slots = c->ring->slot_count;

	c->claim = mem_array(slots, sizeof(*c->claim));
	c->queue = mem_array(slots, sizeof(*c->queue));
	c->free = mem_array(slots, sizeof(*c->free));
	if (!c->claim || !c->queue || !c->free)
		return false;
	for (uint32_t i = 0; i < slots; i++)
		c->free[i] = slots - 1 - i; /* so slot 0 is claimed first */
	c->free_count = slots;
	return true;
}

static void free_all(struct crew *c, bool inherited)
{
	for (uint32_t i = 0; c->member && i < c->thread_count; i++) {
		slot_cold_close(&c->member[i].scratch, inherited);
		mem_free(c->member[i].scratch.chunk);
		slot_close(&c->member[i].ahead);
	}
	mem_free(c->member);
	mem_free(c->claim);
	mem_free(c->queue);
	mem_free(c->free);
	epoch_orders_close(&c->orders);
	c->member = NULL;
}

static bool lacks_first_slot(void *context)
{
	struct crew *c = context;
	bool lacks;

	pthread_mutex_lock(&c->lock);
	lacks = c->claim[0].state != CLAIM_READY;
	pthread_mutex_unlock(&c->lock);
	return lacks;
}

int crew_open(struct crew *c, struct supply *supply, struct ring *ring, const struct steps *steps,
	      uint32_t thread_count, struct place from, struct shard_error *err)
{
	struct order_params params = steps_params(steps, 0);
	int rc;

	*c = (struct crew){.supply = supply, .ring = ring, .steps = steps, .thread_count = thread_count, .next = from};
	rc = epoch_orders_open(&c->orders, thread_count, &params, err);
	if (!rc && (!open_members(c) || !open_queue(c)))
		rc = error_set(err, SHARD_E_MEMORY, "no memory for %u threads", thread_count);
	if (rc) {
		free_all(c, false);
		return rc;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_cond_init(&c->ready, NULL);
	start_threads(c);
	if (c->member_count)
		ring_clear_first(c->ring, lacks_first_slot, c);
	return SHARD_OK;
}

void crew_close(struct crew *c, bool inherited)
{
	if (!inherited) {
		pthread_mutex_lock(&c->lock);
		c->stop = true;
		pthread_cond_broadcast(&c->work);
		pthread_mutex_unlock(&c->lock);
		for (uint32_t i = 0; i < c->member_count; i++)
			pthread_join(c->member[i].thread, NULL);
		pthread_cond_destroy(&c->ready);
		pthread_cond_destroy(&c->work);
		pthread_mutex_destroy(&c->lock);
	}
	free_all(c, inherited);
}

/* ---- the consumer's side ---- */

/* With lock. */
static bool head_is_ready(const struct crew *c)
{
	return c->queue_count && c->claim[c->queue[c->queue_head]].state == CLAIM_READY;
}

/* With lock.  Do the GPU and the caller have all slots, so that no thread can fill one? */
static bool lacks_slot(const struct crew *c)
{
	return !c->queue_count && !c->free_count && !c->busy;
}

/* With lock.  Wait for `ready`, and count the time. */
static int await_once(struct crew *c, const struct timespec *until)
{
	uint64_t begin = clock_now_ns();
	int rc;

	c->awaits_slot = lacks_slot(c);
	rc = until ? pthread_cond_clockwait(&c->ready, &c->lock, CLOCK_MONOTONIC, until)
		   : pthread_cond_wait(&c->ready, &c->lock);
	*(c->awaits_slot ? &c->stats.device_wait_ns : &c->stats.next_wait_ns) += clock_now_ns() - begin;
	c->awaits_slot = false;
	return rc;
}

/*
 * With lock.  Wait until the first slot of the queue is ready, or this thread may fill it, or the
 * time is over.  `until` may be NULL.
 */
static void await(struct crew *c, const struct timespec *until)
{
	int rc = 0;

	while (!head_is_ready(c) && (c->member_count || !c->free_count) && rc != ETIMEDOUT) {
		c->waited |= !lacks_slot(c);
		rc = await_once(c, until);
	}
}

bool crew_has_sound(struct crew *c, uint32_t *slot)
{
	bool has;

	pthread_mutex_lock(&c->lock);
	*slot = c->queue[c->queue_head];
	has = head_is_ready(c) && !c->claim[*slot].rc;
	pthread_mutex_unlock(&c->lock);
	return has;
}

bool crew_await(struct crew *c, uint64_t most_ns)
{
	struct timespec until = clock_after_ns(most_ns);
	bool has;

	pthread_mutex_lock(&c->lock);
	if (most_ns) /* a timer costs 15 us, even if its time is over */
		await(c, &until);
	has = head_is_ready(c) || (!c->member_count && c->free_count);
	pthread_mutex_unlock(&c->lock);
	return has;
}

uint32_t crew_take(struct crew *c)
{
	uint32_t slot;

	if (!c->member_count)
		guard_ask(); /* this thread fills slots, and is the caller's */
	pthread_mutex_lock(&c->lock);
	for (await(c, NULL); !head_is_ready(c); await(c, NULL))
		fill_one(c, &c->member[0]);
	slot = c->queue[c->queue_head];
	c->queue_head = (c->queue_head + 1) % c->ring->slot_count;
	c->queue_count--;
	c->claim[slot].state = CLAIM_TAKEN;
	c->stats.next_wait_count += c->waited;
	c->waited = false;
	pthread_mutex_unlock(&c->lock);
	return slot;
}

void crew_give(struct crew *c, uint32_t slot)
{
	bool awaited;

	pthread_mutex_lock(&c->lock);
	push_free(c, slot);
	awaited = c->awaits_slot;
	pthread_mutex_unlock(&c->lock);
	pthread_cond_signal(&c->work);
	if (awaited) /* now the consumer waits for a thread, or fills the slot itself */
		pthread_cond_broadcast(&c->ready);
}

/* With lock.  Drop what was prepared. */
static void forget(struct crew *c)
{
	for (; c->queue_count; c->queue_count--, c->queue_head = (c->queue_head + 1) % c->ring->slot_count) {
		uint32_t slot = c->queue[c->queue_head];

		if (c->claim[slot].state == CLAIM_READY)
			push_free(c, slot);
		else
			c->claim[slot].stale = true;
	}
}

void crew_move(struct crew *c, struct place to)
{
	pthread_mutex_lock(&c->lock);
	forget(c);
	c->next = to;
	c->resting = false;
	pthread_cond_broadcast(&c->work);
	pthread_mutex_unlock(&c->lock);
}

void crew_rest(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	forget(c);
	c->resting = true;
	while (c->busy)
		pthread_cond_wait(&c->ready, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

void crew_use_orders(struct crew *c, struct epoch_orders *orders)
{
	epoch_orders_close(&c->orders);
	c->orders = *orders;
}

/* ---- statistics ---- */

void crew_stats(struct crew *c, struct shard_loader_stats *out)
{
	struct timespec t;
	clockid_t clock;

	pthread_mutex_lock(&c->lock);
	*out = c->stats;
	pthread_mutex_unlock(&c->lock);
	out->thread_count = c->member_count;
	for (uint32_t i = 0; i < c->member_count; i++)
		if (!pthread_getcpuclockid(c->member[i].thread, &clock) && !clock_gettime(clock, &t))
			out->fill_cpu_ns += (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
