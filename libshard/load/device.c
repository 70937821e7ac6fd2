/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - batches in device memory: one copy per group, ahead of the trainer, and nobody's host waits for it
 *
 * Copies are queued by the calls of next, as many as there are device slots to be had and host slots ready, so that the
 * batches behind the one that is lent are on their way while the trainer works.  The host waits where the crew has no
 * batch, and where all host slots are still being copied: that is a thread of the driver's signal, not a call of it.
 */
#include "libshard/load/device.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/load/pool.h"
#include "libshard/store/read/dataset.h"

#define WATCH_NS UINT64_C(1000000000) /* how often a host that waits asks whether the driver still works */

/* ---- life ---- */

/* By a thread of the driver. */
static void give_back(void *context)
{
	const struct give *g = context;

	feed_give(g->l->feed, g->slot);
}

static int open_host_side(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	int rc;

	d->give = mem_array(l->o.slot_count, sizeof(*d->give));
	d->host_done = mem_array(l->o.slot_count, sizeof(*d->host_done));
	if (!d->give || !d->host_done)
		return error_set(err, SHARD_E_MEMORY, "no memory for events of %u slots", l->o.slot_count);
	rc = cuda_stream_make(d->cuda, &d->back, err);
	for (uint32_t i = 0; !rc && i < l->o.slot_count; i++) {
		d->give[i] = (struct give){l, i};
		rc = cuda_event_make(d->cuda, &d->host_done[i], err);
	}
	return rc ? rc : pins_open(&d->pins, l, d->cuda, err);
}

static int open_device_slot(const struct shard_loader *l, struct device_side *d, uint32_t which, struct shard_error *err)
{
	struct device_slot *s = &d->slot[which];
	int rc;

	s->as.record = mem_array(l->o.batch_records, sizeof(*s->as.record));
	s->as.row_flags = mem_array(l->o.batch_records, sizeof(*s->as.row_flags));
	if (l->o.pool_in_place)
		s->row_at = mem_array((size_t)l->ds->m.schema.group_count * l->o.batch_records, sizeof(*s->row_at));
	if (!s->as.record || !s->as.row_flags || (l->o.pool_in_place && !s->row_at))
		return error_set(err, SHARD_E_MEMORY, "no memory for a batch of %u records", l->o.batch_records);
	s->as.memory = (uint8_t *)(uintptr_t)(d->memory + which * l->layout.slot_bytes);
	rc = cuda_event_make(d->cuda, &s->ready, err);
	return rc ? rc : cuda_event_make(d->cuda, &s->done, err);
}

static void close_device_slots(const struct shard_loader *l, struct device_side *d, bool inherited)
{
	for (uint32_t i = 0; d->slot && i < l->o.device_slot_count; i++) {
		struct device_slot *s = &d->slot[i];

		if (!inherited) {
			cuda_event_drop(d->cuda, s->ready);
			cuda_event_drop(d->cuda, s->done);
		}
		mem_free(s->as.record);
		mem_free(s->as.row_flags);
		mem_free(s->row_at);
	}
	if (!inherited) {
		cuda_free(d->cuda, d->memory);
		cuda_stream_drop(d->cuda, d->copy);
	}
	mem_free(d->slot);
	mem_free(d->queue);
	d->slot = NULL;
	d->queue = NULL;
	d->copy = NULL;
	d->memory = 0;
	d->slot_count = 0;
}

int device_open_slots(struct shard_loader *l, struct shard_error *err)
{
	struct device_side *d = l->device;
	int rc = d->slot_count ? SHARD_OK : cuda_stream_make(d->cuda, &d->copy, err);

	if (rc || d->slot_count)
		return rc;
	d->slot = mem_array(l->o.device_slot_count, sizeof(*d->slot));
	d->queue = mem_array(l->o.device_slot_count, sizeof(*d->queue));
	if (!d->slot || !d->queue)
		rc = error_set(err, SHARD_E_MEMORY, "no memory for %u slots of the device", l->o.device_slot_count);
	if (!rc && l->layout.slot_bytes)
		rc = cuda_alloc(d->cuda, l->layout.slot_bytes * l->o.device_slot_count, &d->memory, err);
	for (uint32_t i = 0; !rc && i < l->o.device_slot_count; i++)
		rc = open_device_slot(l, d, i, err);
	if (rc)
		close_device_slots(l, d, false); /* the next call tries again */
	else
		d->slot_count = l->o.device_slot_count;
	return rc;
}

/* Entered, unless inherited. */
static void close_host_side(struct shard_loader *l, struct device_side *d, bool inherited)
{
	pins_close(&d->pins, inherited);
	for (uint32_t i = 0; d->host_done && !inherited && i < l->o.slot_count; i++)
		cuda_event_drop(d->cuda, d->host_done[i]);
	if (!inherited)
		cuda_stream_drop(d->cuda, d->back);
	mem_free(d->host_done);
	mem_free(d->give);
}

/* Copies from the ring, calls to the crew, and what the trainer queued on batches that it gave back: all of it is over. */
static void finish_all(struct device_side *d)
{
	if (d->copy)
		cuda_stream_finish(d->cuda, d->copy, NULL);
	for (uint32_t i = 0; i < d->slot_count; i++)
		if (d->slot[i].has_done)
			cuda_event_finish(d->cuda, d->slot[i].done, NULL);
	if (d->back)
		cuda_stream_finish(d->cuda, d->back, NULL);
}

void device_close(struct shard_loader *l, bool inherited)
{
	struct device_side *d = l->device;
	int rc;

	if (!d)
		return;
	rc = inherited ? SHARD_OK : cuda_enter(d->cuda, NULL);
	if (!inherited)
		finish_all(d);
	pool_close_device(l, inherited);
	close_device_slots(l, d, inherited);
	close_host_side(l, d, inherited);
	if (!inherited && !rc)
		cuda_leave(d->cuda, SHARD_OK, NULL);
	if (inherited)
		cuda_forget(d->cuda);
	else
		cuda_close(d->cuda);
	mem_free(d);
	l->device = NULL;
}

/* With the first call that needs it; what it is opened for is the context of that stream. */
static int open_side(struct shard_loader *l, void *stream, struct shard_error *err)
{
	struct device_side *d = mem_zalloc(sizeof(*d));
	int rc;

	if (!d)
		return error_set(err, SHARD_E_MEMORY, "no memory for a device");
	rc = cuda_open(&d->cuda, stream, err);
	if (rc) {
		mem_free(d);
		return rc;
	}
	l->device = d;
	rc = cuda_enter(d->cuda, err);
	if (!rc)
		rc = cuda_leave(d->cuda, l->pool ? SHARD_OK : open_host_side(l, d, err), err);
	if (rc)
		device_close(l, false);
	return rc;
}

int device_get(struct shard_loader *l, void *stream, struct shard_error *err)
{
	int rc = l->device ? SHARD_OK : open_side(l, stream, err);

	return rc ? rc : cuda_check_stream(l->device->cuda, stream, err);
}

int device_finish(struct shard_loader *l, struct shard_error *err)
{
	struct device_side *d = l->device;
	int rc = cuda_enter(d->cuda, err);

	if (rc)
		return rc;
	rc = cuda_stream_finish(d->cuda, d->copy, err);
	for (uint32_t i = 0; !rc && l->o.pool_in_place && i < d->slot_count; i++)
		if (d->slot[i].has_done)
			rc = cuda_event_finish(d->cuda, d->slot[i].done, err);
	return cuda_leave(d->cuda, rc, err);
}

/* ---- copying ---- */

int device_await(struct shard_loader *l, struct shard_error *err)
{
	struct device_side *d = l->device;
	int rc = SHARD_OK;

	while (!rc && !feed_await(l->feed, WATCH_NS)) {
		rc = cuda_enter(d->cuda, err);
		if (!rc)
			rc = cuda_leave(d->cuda, cuda_stream_check(d->cuda, d->back, err), err);
	}
	return rc;
}

bool device_answers(const struct shard_loader *l)
{
	const struct device_side *d = l->device;

	return d && d->slot_count && (d->queue_count || d->failed || d->lent_count == d->slot_count);
}

static int copy_part(struct device_side *d, const struct slot *from, const struct device_slot *to, uint64_t at, uint64_t bytes,
		     struct shard_error *err)
{
	for (uint64_t end = at + bytes, part; at < end; at += part) { /* one copy, unless the slot was page-locked in several chunks */
		int rc;

		part = min_u64(end - at, d->pins.chunk_bytes - at % d->pins.chunk_bytes);
		rc = cuda_copy_in(d->cuda, (uintptr_t)to->as.memory + at, from->memory + at, part, d->copy, err);
		if (rc)
			return rc;
	}
	return SHARD_OK;
}

static int copy_groups(struct shard_loader *l, struct device_side *d, uint32_t host, const struct device_slot *to, struct shard_error *err)
{
	const struct slot *from = &l->feed->ring.slot[host];
	bool pinned = pins_has(&d->pins, host);
	uint64_t at, bytes;
	int rc = SHARD_OK;

	for (uint32_t g = 0; !rc && g < l->ds->m.schema.group_count; g++) {
		bytes = layout_group(&l->layout, g, from->rows, &at);
		if (bytes)
			rc = copy_part(d, from, to, at, bytes, err);
		if (!rc)
			l->stats.device_bytes += bytes;
		if (!rc && !pinned)
			l->stats.pageable_bytes += bytes;
	}
	return rc;
}

/* The host slot is the crew's again when `event` has come. */
static int give_behind(struct device_side *d, void *event, uint32_t host, struct shard_error *err)
{
	int rc = cuda_stream_wait(d->cuda, d->back, event, err);

	return rc ? rc : cuda_stream_call(d->cuda, d->back, give_back, &d->give[host], err);
}

/* Queue the copy of a slot that was taken from the crew; it goes back there in any case. */
static int send(struct shard_loader *l, struct device_side *d, uint32_t host, struct device_slot *to, struct shard_error *err)
{
	const struct slot *from = &l->feed->ring.slot[host];
	int rc = to->has_done ? cuda_stream_wait(d->cuda, d->copy, to->done, err) : SHARD_OK;

	memcpy(to->as.record, from->record, from->rows * sizeof(*from->record)); /* now: soon the slot is another's */
	memcpy(to->as.row_flags, from->row_flags, from->rows);
	to->as.place = from->place;
	to->as.rows = from->rows;
	if (!rc)
		rc = copy_groups(l, d, host, to, err);
	if (!rc)
		rc = cuda_event_record(d->cuda, to->ready, d->copy, err);
	if (!rc)
		rc = give_behind(d, to->ready, host, err);
	if (rc) {
		cuda_stream_finish(d->cuda, d->copy, NULL); /* else the crew would write where a copy still reads */
		feed_give(l->feed, host);
		return rc;
	}
	to->queued = true;
	d->queue[d->queue_count++] = (uint32_t)(to - d->slot);
	return SHARD_OK;
}

/* A slot that neither is lent nor holds what will be; in turn, so that it is the one longest given back.  NULL: none. */
static struct device_slot *find_free(struct device_side *d)
{
	for (uint32_t i = 0; i < d->slot_count; i++) {
		uint32_t which = (d->next_slot + i) % d->slot_count;

		if (d->slot[which].lent || d->slot[which].queued)
			continue;
		d->next_slot = (which + 1) % d->slot_count;
		return &d->slot[which];
	}
	return NULL;
}

/* What is ready is sent ahead.  What fails is told when its turn comes. */
static void send_ahead(struct shard_loader *l, struct device_side *d)
{
	struct device_slot *to;
	uint32_t host;

	while (l->pool && !d->failed && pool_has(l, d) && (to = find_free(d)))
		d->failed = pool_send(l, d, to, &d->why);
	while (!l->pool && !d->failed && feed_has_sound(l->feed, &host) && pins_knows(&d->pins, host) && (to = find_free(d))) {
		d->failed = feed_next(l->feed, &host, &d->why);
		if (!d->failed)
			d->failed = send(l, d, host, to, &d->why);
	}
}

void device_send_ahead(struct shard_loader *l)
{
	if (!l->cursor.failed && l->device && l->device->slot_count)
		send_ahead(l, l->device);
}

/* The batch that is next is on its way. */
static int send_next(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	struct shard_error why;
	bool is_full = false;
	uint32_t host;
	int rc;

	if (d->queue_count)
		return SHARD_OK;
	if (d->failed)
		return cursor_fail(&l->cursor, d->failed, &d->why, err);
	if (l->pool) {
		rc = pool_await(l, d, &is_full, &why);
		if (is_full) { /* until a batch comes back; nothing has failed */
			if (err)
				*err = why;
			return rc;
		}
		rc = rc ? rc : pool_send(l, d, find_free(d), &why);
	} else {
		rc = loader_take(l, &host, err);
		if (rc)
			return rc;
		rc = send(l, d, host, find_free(d), &why);
	}
	return rc ? cursor_fail(&l->cursor, rc, &why, err) : SHARD_OK;
}

void device_forget(struct shard_loader *l)
{
	struct device_side *d = l->device;

	if (!d)
		return;
	for (uint32_t i = 0; i < d->queue_count; i++)
		d->slot[d->queue[i]].queued = false; /* its copy may still run: the next one into it is behind it on the same stream */
	d->queue_count = 0;
	d->failed = SHARD_OK;
}

/* ---- calls ---- */

static void lend(struct shard_loader *l, struct device_side *d, struct shard_batch *batch)
{
	struct device_slot *s = &d->slot[d->queue[0]];

	slot_describe(&s->as, &l->layout, &l->steps, d->queue[0] | DEVICE_BATCH, batch);
	s->as.lent = true;
	if (l->o.pool_in_place)
		pool_describe(l, s, batch);
	d->queue_count--;
	memmove(d->queue, d->queue + 1, d->queue_count * sizeof(d->queue[0]));
	s->queued = false;
	s->lent = true;
	d->lent_count++;
	loader_count(l, batch);
}

static int next_device(struct shard_loader *l, struct device_side *d, void *stream, struct shard_error *err)
{
	int rc = device_open_slots(l, err);

	if (!rc && d->lent_count == d->slot_count)
		rc = error_set(err, SHARD_E_ARGUMENT, "all %u slots of the device are lent; release a batch before the next one", d->slot_count);
	if (!rc)
		rc = send_next(l, d, err);
	if (!rc)
		rc = cuda_stream_wait(d->cuda, stream, d->slot[d->queue[0]].ready, err);
	if (!rc)
		send_ahead(l, d);
	return rc;
}

int shard_loader_next_device(struct shard_loader *l, void *stream, struct shard_batch *batch, struct shard_error *err)
{
	int rc = loader_begin(l, err);

	if (!rc)
		rc = device_get(l, stream, err);
	if (rc)
		return rc;
	if (loader_ends_epoch(l))
		return SHARD_END;
	rc = cuda_enter(l->device->cuda, err);
	if (!rc)
		rc = cuda_leave(l->device->cuda, next_device(l, l->device, stream, err), err);
	if (!rc)
		lend(l, l->device, batch);
	return rc;
}

static int release_device(struct shard_loader *l, const struct shard_batch *batch, void *stream, struct shard_error *err)
{
	struct device_side *d = l->device;
	uint32_t which = batch->slot & ~DEVICE_BATCH;
	struct device_slot *s = d && which < d->slot_count ? &d->slot[which] : NULL;
	int rc;

	if (!s || !s->lent || !slot_is_lent_as(&s->as, &l->steps, batch))
		return error_set(err, SHARD_E_ARGUMENT, "slot %u of the device is not lent: was this batch released before, or is it another loader's?",
				 which);
	rc = cuda_check_stream(d->cuda, stream, err);
	if (!rc)
		rc = cuda_enter(d->cuda, err);
	if (rc)
		return rc;
	rc = cuda_event_record(d->cuda, s->done, stream, err);
	if (!rc) {
		s->has_done = true;
		s->awaited = false;
		s->lent = false;
		d->lent_count--;
	}
	return cuda_leave(d->cuda, rc, err);
}

static int release_host(struct shard_loader *l, uint32_t slot, void *stream, struct shard_error *err)
{
	struct device_side *d;
	int rc = device_get(l, stream, err);

	if (rc)
		return rc;
	d = l->device;
	rc = cuda_enter(d->cuda, err);
	if (rc)
		return rc;
	rc = cuda_event_record(d->cuda, d->host_done[slot], stream, err);
	if (!rc)
		rc = give_behind(d, d->host_done[slot], slot, err);
	if (!rc)
		feed_end_loan(l->feed, slot);
	return cuda_leave(d->cuda, rc, err);
}

int shard_loader_release_after(struct shard_loader *l, const struct shard_batch *batch, void *stream, struct shard_error *err)
{
	int rc = cursor_check_owner(&l->cursor, err);

	if (rc)
		return rc;
	if (batch->slot & DEVICE_BATCH)
		return release_device(l, batch, stream, err);
	rc = l->feed ? feed_check_lent(l->feed, batch, err) : error_set(err, SHARD_E_ARGUMENT, "slot %u is not lent: was this batch released before, or is it another loader's?",
			 batch->slot);
	return rc ? rc : release_host(l, batch->slot, stream, err);
}
