/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.c - a crew is the thread pool of a feed: it fills slots ahead of the consumer
 *
 * A thread claims the next step and a free slot under the lock.  It fills the slot without the
 * lock, and then reports.  Claims are queued in the order of steps, so slots come in order whatever
 * the timing.  A move makes the queue stale and changes the place of the next claim; it does not
 * wait for threads.  The first thread that needs the order of an epoch makes it.
 *
 * Somebody waits for the first slot after an open or a move.  If it is large, all threads fill
 * parts of it, before they go on to other slots.  They do not go on before the consumer is awake
 * again: on a machine that has no other processor left for it, it would wait for one for milliseconds.
 */
#include "libshard/feed/feed.h"

#include <errno.h>
#include <time.h>

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/thread.h"
#include "libshard/dataset/dataset.h"
#include "libshard/io/io.h"

/* ---- the orders of the epochs that threads are in ---- */

/*
 * One thread makes the order of an epoch, and all threads share it.  The fields belong to the lock
 * of the crew, except for the contents of an order.  Its maker writes those without the lock, and
 * they are constant after that.
 */

static void close_orders(struct epoch_orders *o)
{
	for (uint32_t i = 0; o->order && i < o->count; i++)
		mem_free(o->order[i].table);
	mem_free(o->order);
	*o = (struct epoch_orders){.order = NULL};
}

int epoch_orders_open(struct epoch_orders *o, uint32_t thread_count, const struct steps *steps, struct shard_error *err)
{
	/* A shorter order may need a longer table. */
	struct order_params early = steps_params(steps, 0), all = steps_params(steps, UINT64_MAX);
	uint64_t entries = max_u64(order_table_entries(&early), order_table_entries(&all));
	bool has = true;

	/* Each thread uses or makes one.  One is for the epoch before, and one is spare. */
	o->count = thread_count + 2;
	o->order = mem_array(o->count, sizeof(*o->order));
	for (uint32_t i = 0; o->order && has && i < o->count; i++) {
		o->order[i].table = mem_array((size_t)entries, sizeof(uint16_t));
		has = o->order[i].table;
	}
	if (o->order && has)
		return SHARD_OK;
	close_orders(o);
	return error_set(err, SHARD_E_MEMORY, "no memory for the order of %u epochs", thread_count + 2);
}

/* ---- how threads claim steps and fill the slots of these ---- */

/* A slot is worth sharing if one thread takes a millisecond for it; a part if it takes some 0.2. */
#define SHARED_BYTES (UINT64_C(8) << 20)
#define PART_ROWS    16u
#define PARTS_EACH   2u /* of a thread; each waits for its own reads, so not more than that */

/* With lock. */
static void stop_being_busy(struct crew *c)
{
	if (!--c->busy && c->resting)
		pthread_cond_broadcast(&c->ready);
}

/*
 * With lock, which is given up meanwhile.  Make the order of the epoch, unless it is there.  Returns
 * NULL if the caller has to look again.
 */
static struct epoch_order *get_order(struct crew *c, uint64_t epoch)
{
	struct epoch_order *unused = NULL; /* there is one: each of the other threads uses or makes at most one */
	struct order_params params = steps_params(c->steps, epoch);

	for (uint32_t i = 0; i < c->orders.count; i++) {
		struct epoch_order *e = &c->orders.order[i];

		if (e->state == ORDER_MADE && e->epoch == epoch)
			return e;
		if (e->state == ORDER_MAKING && e->epoch == epoch) {
			pthread_cond_wait(&c->work, &c->lock);
			return NULL;
		}
		if (e->state != ORDER_MAKING && !e->users && (!unused || e->state == ORDER_NONE))
			unused = e;
	}
	unused->state = ORDER_MAKING;
	unused->epoch = epoch;
	c->busy++;
	pthread_mutex_unlock(&c->lock);
	order_init(&unused->order, &params, unused->table); /* cannot fail: the parameters were checked */
	pthread_mutex_lock(&c->lock);
	unused->state = ORDER_MADE;
	stop_being_busy(c);
	pthread_cond_broadcast(&c->work);
	return NULL;
}

/* With lock.  The slot can be claimed again. */
static void push_free(struct crew *c, uint32_t slot)
{
	slot_let_go(&c->ring->slot[slot]);
	c->claim[slot].state = CLAIM_FREE;
	c->free[c->free_count++] = slot;
}

/* With lock.  Give a free slot to the next place, and return it. */
static uint32_t claim(struct crew *c)
{
	uint32_t slot = c->free[--c->free_count];

	c->queue[(c->queue_head + c->queue_count++) % c->ring->slot_count] = slot;
	c->claim[slot] = (struct claim){.state = CLAIM_FILLING, .fillers = 1};
	/* Chunks would be decoded once for each part. */
	if (c->is_awaited && c->thread_count > 1 && c->ring->slot_bytes >= SHARED_BYTES &&
	    !slot_packed_chunk_bytes(&c->source->layouts))
		c->shared = c->first = slot;
	c->is_awaited = false;
	c->ring->slot[slot].place = c->next;
	c->next.step++;
	c->busy++;
	return slot;
}

/*
 * With lock.  The slot was filled.  Returns the condition to signal after unlocking, or NULL.
 * (Signal without the lock, because the thread that wakes up takes the lock first.)
 */
static pthread_cond_t *finish_slot(struct crew *c, uint32_t slot)
{
	struct claim *claim = &c->claim[slot];
	const struct fill_counts *counts = &claim->counts;
	uint64_t rows = claim->next_row; /* all of them, if it is not stale */
	uint64_t bytes = rows * c->source->layouts.batch->record_bytes;
	struct shard_loader_stats *s = &c->stats;

	s->fill_ns += claim->fill_ns;
	s->checked_unit_count += counts->checked_units;
	s->decoded_chunk_count += counts->decoded_chunks;
	if (!claim->rc) {
		s->filled_record_count += rows;
		s->filled_bytes += bytes;
		s->direct_bytes += counts->direct_bytes;
		s->pread_bytes += counts->pread_bytes;
		s->mapped_bytes += bytes - counts->direct_bytes - counts->pread_bytes;
		s->has_uring |= counts->uring;
		s->substituted_count += counts->substituted;
		s->masked_count += counts->masked;
	}
	if (claim->stale) {
		push_free(c, slot);
		return &c->work;
	}
	claim->state = CLAIM_READY;
	return c->queue[c->queue_head] == slot ? &c->ready : NULL;
}

static void add_counts(struct fill_counts *sum, const struct fill_counts *more)
{
	sum->checked_units += more->checked_units;
	sum->decoded_chunks += more->decoded_chunks;
	sum->direct_bytes += more->direct_bytes;
	sum->pread_bytes += more->pread_bytes;
	sum->substituted += more->substituted;
	sum->masked += more->masked;
	sum->uring |= more->uring;
}

/* With lock, which is given up meanwhile.  Fill the rows of a copy of a claimed slot. */
static int fill_copy(struct crew *c, struct member *m, struct claim *claim, struct slot *copy,
		     struct fill_counts *counts, struct shard_error *why)
{
	uint64_t begin;
	int rc;

	pthread_mutex_unlock(&c->lock);
	begin = clock_now_ns();
	rc = transformed_fill(c->transformed, c->source, &m->scratch, copy, c->layout, counts, why);
	begin = clock_now_ns() - begin;
	pthread_mutex_lock(&c->lock);
	claim->fill_ns += begin;
	return rc;
}

/*
 * With lock, which is given up meanwhile.  Fill the next rows of a slot.  Of parts that fail the
 * first one counts, and nobody takes those behind it.
 */
static void fill_part(struct crew *c, struct member *m, uint32_t slot)
{
	struct claim *claim = &c->claim[slot];
	struct slot part = c->ring->slot[slot];
	struct fill_counts counts = {0};
	struct shard_error why;
	int rc;

	part.first = claim->next_row;
	part.rows = (uint32_t)min_u64(part.rows, (uint64_t)part.first + claim->part_rows);
	claim->next_row = part.rows;
	rc = fill_copy(c, m, claim, &part, &counts, &why);
	add_counts(&claim->counts, &counts);
	if (!rc || (claim->rc && claim->failed_row < part.first))
		return;
	claim->rc = rc;
	claim->why = why;
	claim->failed_row = part.first;
	claim->next_row = c->ring->slot[slot].rows;
}

/* Was a row of the slot left to somebody else to check? */
static bool has_unchecked(const struct slot *s)
{
	size_t count = (size_t)__builtin_popcount(s->resident_groups) * s->size_rows;

	for (size_t i = 0; i < count; i++)
		if (s->resident[i].at && s->resident[i].unchecked)
			return true;
	return false;
}

/*
 * With lock, which is given up meanwhile.  Filling has failed, and damage is an error.  In front of
 * that row there may be damage that was left to somebody else to find.  It would have been the
 * error, so find it here.
 */
static void fill_by_cpu(struct crew *c, struct member *m, uint32_t slot)
{
	struct claim *claim = &c->claim[slot];
	struct slot all = c->ring->slot[slot];
	struct fill_counts counts = {0};
	struct shard_error why;
	int rc;

	slot_let_go(&all);
	all.resident_groups = 0; /* rows that are resident would be looked at in front of others */
	rc = fill_copy(c, m, claim, &all, &counts, &why);
	claim->rc = rc;
	claim->why = why;
	counts.checked_units += claim->counts.checked_units;
	counts.decoded_chunks += claim->counts.decoded_chunks;
	claim->counts = counts;
}

/*
 * With lock, which is given up meanwhile.  Fill parts of a slot while there are any; the last one
 * of its fillers finishes it.
 */
static void fill_parts(struct crew *c, struct member *m, uint32_t slot)
{
	struct slot *s = &c->ring->slot[slot];
	struct claim *claim = &c->claim[slot];
	pthread_cond_t *change;

	while (!claim->stale && claim->next_row < s->rows)
		fill_part(c, m, slot);
	if (c->shared == slot) {
		c->shared = NO_SLOT;
		pthread_cond_broadcast(&c->work);
	}
	if (claim->fillers == 1 && claim->rc && !claim->stale && c->source->on_corrupt == SHARD_CORRUPT_FAIL &&
	    has_unchecked(s))
		fill_by_cpu(c, m, slot);
	stop_being_busy(c);
	if (--claim->fillers)
		return;
	steps_name(c->steps, slot_rows(s), s->rows);
	change = finish_slot(c, slot);
	if (!change)
		return;
	pthread_mutex_unlock(&c->lock);
	pthread_cond_broadcast(change);
	pthread_mutex_lock(&c->lock);
}

/* With lock, which is given up while it works.  Fill a free slot, if there still is one. */
static void fill_one(struct crew *c, struct member *m)
{
	struct epoch_order *e;
	struct slot *s;
	uint32_t slot;

	c->next = steps_next(c->steps, c->next);
	e = get_order(c, c->next.epoch);
	if (!e || c->stop || c->resting || !c->free_count)
		return;
	slot = claim(c);
	s = &c->ring->slot[slot];
	e->users++;
	pthread_mutex_unlock(&c->lock);
	if (m->scratch.has_cold) { /* it has met shards that are not in memory: fetch what a later step needs */
		m->scratch.has_cold = false;
		m->ahead.place = s->place;
		m->ahead.rows = steps_ahead(c->steps, &e->order, &s->place, c->thread_count,
					    c->source->paths.fetch->apart_records, slot_rows(&m->ahead));
		slot_fetch(c->source, &m->scratch, &m->ahead);
	}
	s->rows = steps_fill(c->steps, &e->order, &s->place, slot_rows(s));
	slot_find_units(c->source, s);
	pthread_mutex_lock(&c->lock);
	e->users--;
	c->claim[slot].part_rows =
		c->shared == slot ? (uint32_t)max_u64(s->rows / (PARTS_EACH * c->thread_count), PART_ROWS) : s->rows;
	if (c->shared == slot)
		pthread_cond_broadcast(&c->work);
	fill_parts(c, m, slot);
}

/* ---- threads ---- */

static void *work(void *context)
{
	struct member *m = context;
	struct crew *c = m->crew;
	uint64_t begin;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		if (c->shared != NO_SLOT && !c->claim[c->shared].part_rows) {
			pthread_cond_wait(&c->work, &c->lock); /* its records are not known yet */
			continue;
		}
		if (c->shared != NO_SLOT) {
			c->claim[c->shared].fillers++;
			c->busy++;
			fill_parts(c, m, c->shared);
			continue;
		}
		if (c->first != NO_SLOT && c->is_asleep) {
			pthread_cond_wait(&c->work, &c->lock);
			continue;
		}
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

/* Returns false if there is no memory. */
static bool alloc_all(struct crew *c)
{
	size_t chunk_bytes = (size_t)slot_packed_chunk_bytes(&c->source->layouts) + 1;
	uint32_t slots = c->ring->slot_count;

	c->member = mem_array(c->thread_count, sizeof(*c->member));
	c->claim = mem_array(slots, sizeof(*c->claim));
	c->queue = mem_array(slots, sizeof(*c->queue));
	c->free = mem_array(slots, sizeof(*c->free));
	if (!c->member || !c->claim || !c->queue || !c->free)
		return false;
	for (uint32_t i = 0; i < slots; i++)
		push_free(c, slots - 1 - i); /* so slot 0 is claimed first */
	for (uint32_t i = 0; i < c->thread_count; i++) {
		struct member *m = &c->member[i];

		m->crew = c;
		m->scratch.chunk = mem_alloc(chunk_bytes);
		if (!m->scratch.chunk || (c->transformed && !transformed_open_scratch(c->transformed, &m->scratch)) ||
		    !slot_open(&m->ahead, NULL, steps_rows(c->steps) + STEPS_AHEAD_ROWS, 0, 0))
			return false;
	}
	return true;
}

static void free_all(struct crew *c, bool inherited)
{
	for (uint32_t i = 0; c->member && i < c->thread_count; i++) {
		slot_cold_close(&c->member[i].scratch, inherited);
		if (c->transformed)
			transformed_close_scratch(c->transformed, &c->member[i].scratch, inherited);
		mem_free(c->member[i].scratch.chunk);
		slot_close(&c->member[i].ahead);
	}
	mem_free(c->member);
	mem_free(c->claim);
	mem_free(c->queue);
	mem_free(c->free);
	close_orders(&c->orders);
	c->member = NULL;
}

/*
 * While a thread fills the first slot from its begin, clear its pages from its end.  Clearing takes
 * as long as filling.  Not of lent memory.
 */
static void clear_first_slot(struct crew *c)
{
	bool is_ready;

	for (uint64_t begin, end = c->ring->lent ? 0 : c->ring->slot_bytes; end; end = begin) {
		pthread_mutex_lock(&c->lock);
		is_ready = c->claim[0].state == CLAIM_READY;
		pthread_mutex_unlock(&c->lock);
		if (is_ready)
			return;
		begin = end - min_u64(end, HUGE_PAGE_BYTES);
		buffer_clear_pages(c->ring->slot[0].memory + begin, (size_t)(end - begin));
	}
}

int crew_open(struct crew *c, struct step_place from, struct shard_error *err)
{
	int rc = epoch_orders_open(&c->orders, c->thread_count, c->steps, err);

	c->next = from;
	c->shared = c->first = NO_SLOT;
	c->is_awaited = true;
	if (!rc && !alloc_all(c))
		rc = error_set(err, SHARD_E_MEMORY, "no memory for %u threads", c->thread_count);
	if (rc) {
		free_all(c, false);
		return rc;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	thread_cond_init(&c->ready);
	/* If some threads cannot start, the others do the work.  If no thread can, crew_take() does. */
	while (c->member_count < c->thread_count &&
	       !thread_start(&c->member[c->member_count].thread, work, &c->member[c->member_count]))
		c->member_count++;
	if (c->member_count)
		clear_first_slot(c);
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

/*
 * With lock.  Wait until the first slot of the queue is ready, or this thread may fill it, or the
 * time is over.  `until` may be NULL.  The time is counted.
 */
static void await(struct crew *c, const struct timespec *until)
{
	int rc = 0;

	while (!head_is_ready(c) && (c->member_count || !c->free_count) && rc != ETIMEDOUT) {
		uint64_t begin = clock_now_ns();

		/* Do the GPU and the caller have all slots, so that no thread can fill one? */
		c->awaits_slot = !c->queue_count && !c->free_count && !c->busy;
		c->waited |= !c->awaits_slot;
		c->is_asleep = true;
		rc = until ? pthread_cond_timedwait(&c->ready, &c->lock, until)
			   : pthread_cond_wait(&c->ready, &c->lock);
		c->is_asleep = false;
		*(c->awaits_slot ? &c->stats.device_wait_ns : &c->stats.next_wait_ns) += clock_now_ns() - begin;
		c->awaits_slot = false;
	}
	if (c->first == NO_SLOT)
		return;
	if (head_is_ready(c))
		c->first = NO_SLOT;
	pthread_cond_broadcast(&c->work); /* threads go on, if they waited for this one */
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
	c->shared = c->first = NO_SLOT;
}

void crew_move(struct crew *c, struct step_place to)
{
	pthread_mutex_lock(&c->lock);
	forget(c);
	c->next = to;
	c->is_awaited = true;
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
	close_orders(&c->orders);
	c->orders = *orders;
}

/* ---- statistics ---- */

void crew_count(struct crew *c, const struct fill_counts *counts)
{
	pthread_mutex_lock(&c->lock);
	c->stats.checked_unit_count += counts->checked_units;
	c->stats.decoded_chunk_count += counts->decoded_chunks;
	c->stats.substituted_count += counts->substituted;
	c->stats.masked_count += counts->masked;
	pthread_mutex_unlock(&c->lock);
}

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
