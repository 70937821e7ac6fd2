/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slabs.c - the slabs of a pool: they are fetched from a feed of runs, and given back
 *
 * A slab is a device slot that the pool owns, and that device_copy.c fills.  It stays lent until no
 * window needs it any more.  Slabs are numbered as they come, from the first one ever.
 *
 * One stream keeps everything in order, that of the batches.  It waits for slabs, puts batches
 * together, and then gives slabs back.  The host waits only for a slab that the feed has not filled
 * yet.
 */
#include "libshard/gpu/gpu.h"

#include <assert.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/feed/feed.h"

/* ---- life ---- */

int slabs_open(struct slabs *s, const struct pool_plan *plan, struct feed *feed, struct device_slots *batches,
	       struct shard_error *err)
{
	s->plan = plan;
	s->feed = feed;
	s->batches = batches;
	s->slot = mem_array(plan->slab_count, sizeof(*s->slot));
	if (!s->slot)
		return error_set(err, SHARD_E_MEMORY, "no memory for %u slabs of the pool", plan->slab_count);
	return SHARD_OK;
}

void slabs_close(struct slabs *s, bool inherited)
{
	if (!inherited)
		device_slots_finish(&s->device_slots, true, NULL);
	device_copy_close(s->copy, inherited);
	device_slots_close(&s->device_slots, inherited);
	feed_close(s->feed);
	mem_free(s->slot);
}

int slabs_begin(struct slabs *s, struct shard_error *err)
{
	const struct cuda_device *cuda = s->batches->cuda;
	int rc = s->feed->cursor.owner ? SHARD_OK : feed_start(s->feed, err);

	if (!rc && !s->copy)
		rc = device_copy_open(&s->copy, s->feed, &s->device_slots, cuda, err);
	if (!rc && !s->device_slots.slot_count)
		rc = device_slots_open(&s->device_slots, cuda, s->plan->slab_count, &s->plan->slab, s->plan->slab_rows,
				       err);
	return rc;
}

/* ---- where a row is ---- */

uint64_t slabs_number(const struct slabs *s, uint64_t epoch, uint64_t slab)
{
	return s->origin + (epoch - s->origin_epoch) * s->plan->epoch_slabs + slab - s->origin_slab;
}

uint32_t slabs_find(const struct slabs *s, uint64_t epoch, uint64_t row, uint32_t *inside)
{
	const struct pool_plan *p = s->plan;
	uint64_t slab = pool_plan_slab(p, row), number;

	if (p->is_held) /* slabs come once, from origin_slab on, round the end of the epoch */
		number = (slab + p->epoch_slabs - s->origin_slab) % p->epoch_slabs;
	else
		number = slabs_number(s, epoch, slab);
	assert(number >= s->first && number < s->end);
	*inside = (uint32_t)(row % p->slab_rows);
	return s->slot[number % p->slab_count];
}

/* ---- back and forth ---- */

int slabs_give_back(struct slabs *s, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (; !rc && s->first < s->end && s->first < s->limit; s->first += !rc)
		rc = device_slots_take_back(&s->device_slots, s->slot[s->first % s->plan->slab_count],
					    s->batches->stream, err);
	return rc;
}

int slabs_start(struct slabs *s, uint64_t epoch, uint64_t slab, struct shard_error *err)
{
	int rc;

	s->limit = s->end; /* all slabs go back */
	rc = slabs_give_back(s, err);
	if (rc)
		return rc;
	s->origin_epoch = epoch;
	s->origin_slab = slab;
	s->origin = s->end;
	device_slots_forget(&s->device_slots);
	if (s->plan->is_held)
		s->feed->steps.held_epoch = epoch; /* the feed has not started yet */
	feed_move(s->feed, (struct place){.epoch = epoch, .first_position = slab * s->plan->slab_rows});
	return SHARD_OK;
}

void slabs_retry(struct slabs *s)
{
	uint64_t slab = s->end - s->origin + s->origin_slab, all = s->plan->epoch_slabs;

	if (!s->feed->cursor.failed)
		return;
	device_slots_forget(&s->device_slots);
	feed_move(s->feed, (struct place){.epoch = s->origin_epoch + slab / all,
					  .first_position = slab % all * s->plan->slab_rows});
}

bool slabs_has_next(const struct slabs *s)
{
	return s->device_slots.queue_count;
}

int slabs_fetch(struct slabs *s, struct shard_error *err)
{
	int rc = slabs_begin(s, err);

	assert(s->end - s->first < s->plan->slab_count); /* pool_plan() made room for each step */
	if (!rc)
		rc = device_copy_next(s->copy, err);
	if (!rc)
		rc = device_slots_await(&s->device_slots, s->batches->stream, err);
	if (rc)
		return rc;
	device_copy_send_ahead(s->copy);
	s->slot[s->end++ % s->plan->slab_count] = device_slots_lend(&s->device_slots);
	return slabs_give_back(s, err);
}
