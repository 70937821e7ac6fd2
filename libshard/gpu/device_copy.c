/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_copy.c - copies the slots of a feed to device slots, ahead of the consumer
 *
 * It queues one copy for each group of a batch, on the stream of the device slots.  It does so for
 * as many batches as the feed has ready and as there are free slots.  So the next batches are on
 * their way while the trainer works on the one that it has.
 *
 * The host does not wait for copies.  A second stream waits for each copy, and then a thread of the
 * driver gives the host slot back to the feed.  The host only waits while the feed has no batch
 * ready, or while all slots of the feed are being copied.
 *
 * Only the consumer calls these functions.  It has entered the context, except where a function
 * says that this is not needed.
 */
#include "libshard/gpu/gpu.h"

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/feed/feed.h"

/* ---- life ---- */

/* A thread of the driver calls this. */
static void give_back(void *context)
{
	const struct give *g = context;

	feed_give(g->feed, g->slot);
}

static int open_parts(struct device_copy *d, struct shard_error *err)
{
	uint32_t slots = d->feed->ring.slot_count;
	int rc;

	d->give = mem_array(slots, sizeof(*d->give));
	d->host_done = mem_array(slots, sizeof(*d->host_done));
	if (!d->give || !d->host_done)
		return error_set(err, SHARD_E_MEMORY, "no memory for events of %u slots", slots);
	rc = cuda_stream_make(d->cuda, &d->back, err);
	for (uint32_t i = 0; !rc && i < slots; i++) {
		d->give[i] = (struct give){d->feed, i};
		rc = cuda_event_make(d->cuda, &d->host_done[i], err);
	}
	return rc ? rc : pins_open(&d->pins, &d->feed->ring, d->cuda, err);
}

int device_copy_open(struct device_copy **out, struct feed *feed, struct device_slots *device_slots,
		     const struct cuda_device *cuda, struct shard_error *err)
{
	struct device_copy *d = mem_zalloc(sizeof(*d));
	int rc;

	if (!d)
		return error_set(err, SHARD_E_MEMORY, "no memory for a device");
	d->feed = feed;
	d->device_slots = device_slots;
	d->cuda = cuda;
	rc = open_parts(d, err);
	if (rc) {
		device_copy_close(d, false);
		return rc;
	}
	*out = d;
	return SHARD_OK;
}

void device_copy_close(struct device_copy *d, bool inherited)
{
	if (!d)
		return;
	if (d->back && !inherited)
		cuda_stream_finish(d->cuda, d->back, NULL);
	pins_close(&d->pins, inherited);
	for (uint32_t i = 0; d->host_done && !inherited && i < d->feed->ring.slot_count; i++)
		cuda_event_drop(d->cuda, d->host_done[i]);
	if (!inherited)
		cuda_stream_drop(d->cuda, d->back);
	mem_free(d->host_done);
	mem_free(d->give);
	mem_free(d);
}

/* ---- copies ---- */

/* Queue one copy, or several if the slot was page-locked in several chunks. */
static int copy_part(struct device_copy *d, const struct slot *from, const struct slot *to, uint64_t at, uint64_t bytes,
		     struct shard_error *err)
{
	uint64_t chunk = d->pins.chunk_bytes;
	int rc = SHARD_OK;

	for (uint64_t end = at + bytes, part; !rc && at < end; at += part) {
		part = min_u64(end - at, chunk - at % chunk);
		rc = cuda_copy_in(d->cuda, (uintptr_t)to->memory + at, from->memory + at, part, d->device_slots->stream,
				  err);
	}
	return rc;
}

static int copy_groups(struct device_copy *d, uint32_t host, const struct slot *to, struct shard_error *err)
{
	const struct layout *layout = &d->feed->layout;
	const struct slot *from = &d->feed->ring.slot[host];
	bool locked = pins_has(&d->pins, host);
	uint64_t at, bytes;
	int rc = SHARD_OK;

	for (uint32_t g = 0; !rc && g < layout->schema->group_count; g++) {
		bytes = layout_group(layout, g, from->rows, &at);
		if (bytes)
			rc = copy_part(d, from, to, at, bytes, err);
		if (rc)
			return rc;
		d->copied_bytes += bytes;
		d->pageable_bytes += locked ? 0 : bytes;
	}
	return rc;
}

/* Give a host slot back to the feed behind an event. */
static int give_behind(struct device_copy *d, void *event, uint32_t host, struct shard_error *err)
{
	int rc = cuda_stream_wait(d->cuda, d->back, event, err);

	return rc ? rc : cuda_stream_call(d->cuda, d->back, give_back, &d->give[host], err);
}

/* Copy what describes the rows now, because the host slot will soon belong to the crew. */
static void take_rows(struct slot *to, const struct slot *from, uint32_t whole_count)
{
	memcpy(to->record, from->record, from->rows * sizeof(*from->record));
	memcpy(to->row_flags, from->row_flags, from->rows);
	memcpy(to->component, from->component, from->rows * sizeof(*from->component));
	for (uint32_t k = 0; k < whole_count; k++)
		memcpy(slot_sizes(to, k), slot_sizes(from, k), from->rows * sizeof(*from->size));
	to->place = from->place;
	to->rows = from->rows;
}

/* Queue the copy of a host slot.  The slot goes back to the feed in any case. */
static int send(struct device_copy *d, uint32_t host, struct device_slot *to, struct shard_error *err)
{
	struct device_slots *o = d->device_slots;
	struct shard_error why;
	int rc;

	take_rows(&to->as, &d->feed->ring.slot[host], d->feed->layout.whole_count);
	rc = device_slots_begin(o, to, &why);
	if (!rc)
		rc = copy_groups(d, host, &to->as, &why);
	if (!rc)
		rc = device_slots_end(o, to, &why);
	if (!rc)
		rc = give_behind(d, to->ready, host, &why);
	if (rc) {
		cuda_stream_finish(d->cuda, o->stream, NULL); /* a copy may still read the slot */
		feed_give(d->feed, host);
		return cursor_fail(&d->feed->cursor, rc, &why, err);
	}
	device_slots_push(o, to);
	return SHARD_OK;
}

void device_copy_send_ahead(struct device_copy *d)
{
	struct device_slot *to;
	uint32_t host;

	while (feed_has_sound(d->feed, &host) && pins_knows(&d->pins, host) &&
	       (to = device_slots_find_free(d->device_slots)))
		if (feed_next(d->feed, &host, NULL) || send(d, host, to, NULL))
			return;
}

int device_copy_next(struct device_copy *d, struct shard_error *err)
{
	uint32_t host;
	int rc;

	if (d->device_slots->queue_count)
		return SHARD_OK;
	rc = device_copy_await(d, err);
	if (!rc)
		rc = feed_next(d->feed, &host, err);
	return rc ? rc : send(d, host, device_slots_find_free(d->device_slots), err);
}

/* ---- waiting, giving back ---- */

int device_copy_check(const struct device_copy *d, struct shard_error *err)
{
	int rc = cuda_enter(d->cuda, err);

	return rc ? rc : cuda_leave(d->cuda, cuda_stream_check(d->cuda, d->back, err), err);
}

int device_copy_await(struct device_copy *d, struct shard_error *err)
{
	int rc = SHARD_OK;

	while (!rc && !feed_await(d->feed, DEVICE_COPY_WATCH_NS))
		rc = device_copy_check(d, err);
	return rc;
}

int device_copy_give_after(struct device_copy *d, uint32_t host, void *stream, struct shard_error *err)
{
	int rc = cuda_event_record(d->cuda, d->host_done[host], stream, err);

	return rc ? rc : give_behind(d, d->host_done[host], host, err);
}

void device_copy_stats(struct device_copy *d, struct shard_loader_stats *out)
{
	out->device_bytes = d->copied_bytes;
	out->pageable_bytes = d->pageable_bytes;
	out->pinned_bytes = pins_bytes(&d->pins);
}
