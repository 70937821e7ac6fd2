/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew_fill.c - what a crew is, and how its threads claim steps and fill the slots of these
 */
#include "libshard/feed/feed.h"

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/dataset/dataset.h"

/* A slot is worth sharing if one thread takes a millisecond for it; a part if it takes some 0.2. */
#define SHARED_BYTES (UINT64_C(8) << 20)
#define PART_ROWS    16u

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

void crew_push_free(struct crew *c, uint32_t slot)
{
	c->claim[slot].state = CLAIM_FREE;
	c->free[c->free_count++] = slot;
}

/* Is the first slot worth sharing?  Chunks would be decoded once for each part. */
static bool shares(const struct crew *c)
{
	return c->thread_count > 1 && c->ring->slot_bytes >= SHARED_BYTES &&
	       !slot_packed_chunk_bytes(&c->supply->layouts);
}

/* With lock.  Give a free slot to the next place, and return it. */
static uint32_t claim(struct crew *c)
{
	uint32_t slot = c->free[--c->free_count];

	c->queue[(c->queue_head + c->queue_count++) % c->ring->slot_count] = slot;
	c->claim[slot] = (struct claim){.state = CLAIM_FILLING, .fillers = 1};
	if (c->is_awaited && shares(c))
		c->shared = slot;
	c->is_awaited = false;
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
static pthread_cond_t *finish(struct crew *c, uint32_t slot)
{
	struct claim *claim = &c->claim[slot];
	uint64_t rows = claim->next_row; /* all of them, if it is not stale */

	c->stats.fill_ns += claim->fill_ns;
	c->stats.checked_unit_count += claim->counts.checked_units;
	c->stats.decoded_chunk_count += claim->counts.decoded_chunks;
	if (!claim->rc)
		count(&c->stats, &claim->counts, rows, rows * c->supply->layout->record_bytes);
	if (claim->stale) {
		crew_push_free(c, slot);
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

/* Without the lock.  Name the records of a slot that this thread has claimed. */
static void name_records(struct crew *c, struct member *m, uint32_t slot, const struct order *order)
{
	struct slot *s = &c->ring->slot[slot];

	look_ahead(c, m, &s->place, order);
	s->rows = steps_fill(c->steps, order, &s->place, slot_rows(s));
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
	uint64_t begin;
	int rc;

	part.first = claim->next_row;
	part.rows = (uint32_t)min_u64(part.rows, (uint64_t)part.first + claim->part_rows);
	claim->next_row = part.rows;
	pthread_mutex_unlock(&c->lock);
	begin = clock_now_ns();
	rc = transformed_fill(c->transformed, c->supply, &m->scratch, &part, c->layout, &counts, &why);
	begin = clock_now_ns() - begin;
	pthread_mutex_lock(&c->lock);
	claim->fill_ns += begin;
	add_counts(&claim->counts, &counts);
	if (!rc || (claim->rc && claim->failed_row < part.first))
		return;
	claim->rc = rc;
	claim->why = why;
	claim->failed_row = part.first;
	claim->next_row = c->ring->slot[slot].rows;
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
	stop_being_busy(c);
	if (--claim->fillers)
		return;
	steps_name(c->steps, slot_rows(s), s->rows);
	change = finish(c, slot);
	if (!change)
		return;
	pthread_mutex_unlock(&c->lock);
	pthread_cond_broadcast(change);
	pthread_mutex_lock(&c->lock);
}

void crew_fill_one(struct crew *c, struct member *m)
{
	struct epoch_order *e;
	uint32_t slot, rows;

	c->next = steps_next(c->steps, c->next);
	e = get_order(c, c->next.epoch);
	if (!e || c->stop || c->resting || !c->free_count)
		return;
	slot = claim(c);
	e->users++;
	pthread_mutex_unlock(&c->lock);
	name_records(c, m, slot, &e->order);
	pthread_mutex_lock(&c->lock);
	e->users--;
	rows = c->ring->slot[slot].rows;
	c->claim[slot].part_rows =
		c->shared == slot ? (uint32_t)max_u64(rows / (2 * c->thread_count), PART_ROWS) : rows;
	if (c->shared == slot)
		pthread_cond_broadcast(&c->work);
	fill_parts(c, m, slot);
}

void crew_help(struct crew *c, struct member *m)
{
	struct claim *claim = &c->claim[c->shared];

	if (!claim->part_rows) {
		pthread_cond_wait(&c->work, &c->lock);
		return;
	}
	claim->fillers++;
	c->busy++;
	fill_parts(c, m, c->shared);
}
