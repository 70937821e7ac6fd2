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
 * parts of it, before they go on to other slots.
 */
#include "libshard/feed/feed.h"

#include <errno.h>
#include <time.h>

#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/thread.h"
#include "libshard/io/io.h"

static void *work(void *context)
{
	struct member *m = context;
	struct crew *c = m->crew;
	uint64_t begin;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		if (c->shared != NO_SLOT) {
			crew_help(c, m);
			continue;
		}
		if (c->free_count && !c->resting) {
			crew_fill_one(c, m);
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
	size_t chunk_bytes = (size_t)slot_packed_chunk_bytes(&c->supply->layouts) + 1;

	c->member = mem_array(c->thread_count, sizeof(*c->member));
	for (uint32_t i = 0; c->member && i < c->thread_count; i++) {
		c->member[i].crew = c;
		c->member[i].scratch.chunk = mem_alloc(chunk_bytes);
		if (!c->member[i].scratch.chunk ||
		    (c->transformed && !transformed_open_scratch(c->transformed, &c->member[i].scratch)) ||
		    !slot_open(&c->member[i].ahead, NULL, c->steps->rank.batch_records + STEPS_AHEAD_ROWS, 0))
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
		if (c->transformed)
			transformed_close_scratch(c->transformed, &c->member[i].scratch, inherited);
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

int crew_open(struct crew *c, struct place from, struct shard_error *err)
{
	int rc = epoch_orders_open(&c->orders, c->thread_count, c->steps, err);

	c->next = from;
	c->shared = NO_SLOT;
	c->is_awaited = true;
	if (!rc && (!open_members(c) || !open_queue(c)))
		rc = error_set(err, SHARD_E_MEMORY, "no memory for %u threads", c->thread_count);
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
		crew_fill_one(c, &c->member[0]);
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
	crew_push_free(c, slot);
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
			crew_push_free(c, slot);
		else
			c->claim[slot].stale = true;
	}
	c->shared = NO_SLOT;
}

void crew_move(struct crew *c, struct place to)
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
