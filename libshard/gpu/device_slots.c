/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_slots.c - slots in the memory of a GPU: they are filled ahead, lent, and taken back
 *
 * The slots of a loader, or of a pool, have one stream on which they are filled: by the copies
 * below, or by a kernel of the pool.  The host waits for neither, except for a batch that the GPU
 * checks.  The stream of the borrower waits for the event `ready`.  The filling stream waits for the
 * event `done`, which comes behind the work of the borrower.
 *
 * Batches that the GPU checks have a second stream, for the checks.  Work on one stream runs in order,
 * so on the filling stream the link would idle during each check, and during the wait of its kernels
 * for a free multiprocessor.  On two streams the copies of the next batch run beside it:
 *
 *     filling stream   copies 1 | copies 2 | copies 3 | ..        each `|` records `ready` of a slot,
 *     check stream                check 1  | check 2  | ..        for the first time and for the second
 *
 * The check stream waits for the first `ready`: the copies are there.  A check ends with the copy of its
 * results to the host, and records the second `ready`, for which everybody else waits.  Only the host
 * slots go back behind the first one.  A slot whose check nobody has looked at may be filled again, after
 * device_slots_forget() or an error.  Then the filling stream waits for the second `ready`, because the
 * kernels may still read the slot.  A batch with nothing to check has the first `ready` alone.
 *
 * Only the consumer calls these functions.  It has entered the context for the ones that can
 * fail, except where a function says that this is not needed.
 */
#include "libshard/gpu/gpu.h"

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"

/* ---- life ---- */

int device_slots_open(struct device_slots *o, const struct cuda_device *cuda, uint32_t slot_count,
		      const struct layout *layout, uint32_t batch_records, struct shard_error *err)
{
	uint64_t slot_bytes = layout->slot_bytes;
	int rc;

	*o = (struct device_slots){.cuda = cuda};
	rc = cuda_stream_make(cuda, &o->stream, err);
	if (rc)
		return rc;
	o->slot_count = slot_count;
	o->slot = mem_array(slot_count, sizeof(*o->slot));
	o->queue = mem_array(slot_count, sizeof(*o->queue));
	if (!o->slot || !o->queue)
		rc = error_set(err, SHARD_E_MEMORY, "no memory for %u slots of the device", slot_count);
	if (!rc && slot_bytes)
		rc = cuda_alloc(cuda, slot_bytes * slot_count, &o->memory, err);
	for (uint32_t i = 0; !rc && i < slot_count; i++) {
		uint8_t *memory = (uint8_t *)(uintptr_t)(o->memory + i * slot_bytes);

		if (!slot_open(&o->slot[i].as, memory, batch_records, layout->whole_count, 0))
			rc = error_set(err, SHARD_E_MEMORY, "no memory for a batch of %u records", batch_records);
		if (!rc)
			rc = cuda_event_make(cuda, &o->slot[i].ready, err);
		if (!rc)
			rc = cuda_event_make(cuda, &o->slot[i].done, err);
	}
	if (rc)
		device_slots_close(o, false);
	return rc;
}

void device_slots_close(struct device_slots *o, bool inherited)
{
	if (!o->cuda)
		return;
	for (uint32_t i = 0; o->slot && i < o->slot_count; i++) {
		if (!inherited) {
			cuda_event_drop(o->cuda, o->slot[i].ready);
			cuda_event_drop(o->cuda, o->slot[i].done);
		}
		slot_close(&o->slot[i].as);
	}
	if (!inherited) {
		cuda_free(o->cuda, o->memory);
		cuda_stream_drop(o->cuda, o->stream);
		cuda_stream_drop(o->cuda, o->check_stream);
	}
	mem_free(o->slot);
	mem_free(o->queue);
	*o = (struct device_slots){.slot_count = 0};
}

int device_slots_finish(struct device_slots *o, bool borrowers, struct shard_error *err)
{
	int rc = o->stream ? cuda_stream_finish(o->cuda, o->stream, err) : SHARD_OK, got;

	if (o->check_stream) {
		got = cuda_stream_finish(o->cuda, o->check_stream, rc ? NULL : err);
		rc = rc ? rc : got;
	}
	for (uint32_t i = 0; borrowers && i < o->slot_count; i++) {
		got = o->slot[i].has_done ? cuda_event_finish(o->cuda, o->slot[i].done, rc ? NULL : err) : SHARD_OK;
		rc = rc ? rc : got;
	}
	return rc;
}

/* ---- filling ---- */

struct device_slot *device_slots_find_free(struct device_slots *o)
{
	for (uint32_t i = 0; i < o->slot_count; i++) {
		uint32_t which = (o->next_slot + i) % o->slot_count;

		if (o->slot[which].as.lent || o->slot[which].queued)
			continue;
		return &o->slot[which];
	}
	return NULL;
}

int device_slots_begin(struct device_slots *o, struct device_slot *s, struct shard_error *err)
{
	int rc = SHARD_OK;

	if (s->has_done && !s->awaited) {
		rc = cuda_stream_wait(o->cuda, o->stream, s->done, err);
		s->awaited = !rc;
	}
	if (!rc && o->check_stream && !s->looked) /* kernels may still read it */
		rc = cuda_stream_wait(o->cuda, o->stream, s->ready, err);
	return rc;
}

int device_slots_end(struct device_slots *o, struct device_slot *s, struct shard_error *err)
{
	return cuda_event_record(o->cuda, s->ready, o->stream, err);
}

void device_slots_push(struct device_slots *o, struct device_slot *s)
{
	uint32_t which = (uint32_t)(s - o->slot);

	s->queued = true;
	o->queue[o->queue_count++] = which;
	o->next_slot = (which + 1) % o->slot_count;
}

void device_slots_forget(struct device_slots *o)
{
	/* A slot may still be being filled or checked.  device_slots_begin() has it filled again behind that. */
	for (uint32_t i = 0; i < o->queue_count; i++)
		o->slot[o->queue[i]].queued = false;
	o->queue_count = 0;
}

/* ---- lending ---- */

bool device_slots_answers(const struct device_slots *o)
{
	return o->slot_count && (o->queue_count || o->lent_count == o->slot_count);
}

int device_slots_await(const struct device_slots *o, void *stream, struct shard_error *err)
{
	return cuda_stream_wait(o->cuda, stream, o->slot[o->queue[0]].ready, err);
}

uint32_t device_slots_lend(struct device_slots *o)
{
	uint32_t which = o->queue[0];

	o->queue_count--;
	memmove(o->queue, o->queue + 1, o->queue_count * sizeof(o->queue[0]));
	o->slot[which].queued = false;
	o->slot[which].as.lent = true;
	o->lent_count++;
	return which;
}

int device_slots_take_back(struct device_slots *o, uint32_t which, void *stream, struct shard_error *err)
{
	struct device_slot *s = &o->slot[which];
	int rc = cuda_event_record(o->cuda, s->done, stream, err);

	if (rc)
		return rc;
	s->has_done = true;
	s->awaited = false;
	s->as.lent = false;
	o->lent_count--;
	return SHARD_OK;
}

/* ---- copies of the slots of a feed to device slots, ahead of the consumer ---- */

#define PIECES_MOST 4096u /* of one call of the driver */

/*
 * A device copy queues one copy for each group of a batch, on the stream of the device slots.  It
 * does so for as many batches as the feed has ready and as there are free slots.  So the next
 * batches are on their way while the trainer works on the one that it has.
 *
 * Before a batch that the GPU checks is lent, or a slab is used, the host waits for its check.  It waits
 * for no other copy.  A stream of its own waits for each copy, and then a thread of the driver gives the
 * host slot back to the feed.  Else the host only waits while the feed has no batch ready, or while all
 * slots of the feed are being copied.
 */

/* ---- life ---- */

/* A thread of the driver calls this. */
static void give_back(void *context)
{
	const struct give *g = context;

	feed_give(g->feed, g->slot);
}

int device_copy_open(struct device_copy **out, struct feed *feed, struct device_slots *device_slots,
		     const struct cuda_device *cuda, bool to_gpu, struct shard_error *err)
{
	struct device_copy *d = mem_zalloc(sizeof(*d));
	uint32_t slots = feed->ring.slot_count;
	int rc = SHARD_OK;

	if (!d)
		return error_set(err, SHARD_E_MEMORY, "no memory for a device");
	d->feed = feed;
	d->device_slots = device_slots;
	d->map_groups = maps_groups(feed);
	d->cuda = cuda;
	d->give = mem_array(slots, sizeof(*d->give));
	d->host_done = mem_array(slots, sizeof(*d->host_done));
	if (!d->give || !d->host_done)
		rc = error_set(err, SHARD_E_MEMORY, "no memory for events of %u slots", slots);
	if (!rc)
		rc = cuda_stream_make(cuda, &d->back, err);
	for (uint32_t i = 0; !rc && i < slots; i++) {
		d->give[i] = (struct give){feed, i};
		rc = cuda_event_make(cuda, &d->host_done[i], err);
	}
	if (!rc)
		rc = pins_open(&d->pins, &feed->ring, &feed->layout, to_gpu ? d->map_groups : 0, cuda, err);
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
	maps_close(d->maps, inherited);
	batch_check_close(d->check, inherited);
	pins_close(&d->pins, inherited);
	for (uint32_t i = 0; d->host_done && !inherited && i < d->feed->ring.slot_count; i++)
		cuda_event_drop(d->cuda, d->host_done[i]);
	if (!inherited)
		cuda_stream_drop(d->cuda, d->back);
	cuda_pieces_close(d->cuda, &d->pieces, inherited);
	mem_free(d->host_done);
	mem_free(d->give);
	mem_free(d);
}

int device_copy_use_maps(struct device_copy *d, struct shard_error *err)
{
	uint32_t checked;
	int rc;

	if (d->maps || !d->map_groups)
		return SHARD_OK;
	rc = cuda_pieces_open(d->cuda, &d->pieces, PIECES_MOST, err);
	if (rc)
		return rc;
	/* What the GPU cannot check, the CPU does. */
	checked = d->check_why.status ? 0 : batch_check_groups(d->feed, d->map_groups);
	if (checked && !d->check && batch_check_open(&d->check, d->feed, d->device_slots, checked, &d->check_why))
		checked = 0;
	return maps_open(&d->maps, d->feed, d->map_groups, checked, d->cuda, err);
}

/* ---- copies ---- */

/* Queue the copy of a part of a host slot: several copies if it was page-locked in several chunks. */
static int copy_from_ring(struct device_copy *d, uint32_t host, uint64_t at, uint64_t bytes, const struct slot *to,
			  struct shard_error *err)
{
	const struct slot *from = &d->feed->ring.slot[host];
	uint32_t part = pins_part(&d->pins, at);
	uint64_t chunk = d->pins.chunk_bytes, begin = d->pins.part[part].at;
	int rc = SHARD_OK;

	if (!pins_has(&d->pins, host, part))
		d->pageable_bytes += bytes;
	for (uint64_t end = at + bytes, piece; !rc && at < end; at += piece) {
		piece = min_u64(end - at, chunk - (at - begin) % chunk);
		rc = cuda_copy_in(d->cuda, (uintptr_t)to->memory + at, from->memory + at, piece,
				  d->device_slots->stream, err);
	}
	return rc;
}

/* Queue the copies out of the maps that are listed. */
static int copy_pieces(struct device_copy *d, struct shard_error *err)
{
	int rc = d->pieces.count ? cuda_copy_pieces(d->cuda, &d->pieces, d->device_slots->stream, err) : SHARD_OK;

	d->pieces.count = 0;
	return rc;
}

/* Queue the copies of a group of which some records may be resident. */
static int copy_rows(struct device_copy *d, uint32_t host, uint32_t group, const struct resident *resident,
		     const struct slot *to, struct shard_error *err)
{
	uint64_t stride = d->feed->layout.schema->group[group].stride, first = d->feed->layout.group_at[group];
	uint32_t rows = d->feed->ring.slot[host].rows, end;
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < rows; i = end) {
		end = i + 1;
		/* Neighbours are one copy.  They have the same users if they were page-locked at once. */
		while (end < rows && (resident[i].at ? resident[end].at == resident[i].at + (end - i) * stride &&
							       resident[end].users == resident[i].users
						     : !resident[end].at))
			end++;
		if (!resident[i].at) {
			rc = copy_from_ring(d, host, first + i * stride, (end - i) * stride, to, err);
			continue;
		}
		if (d->pieces.count == PIECES_MOST)
			rc = copy_pieces(d, err);
		d->pieces.to[d->pieces.count] = (uintptr_t)to->memory + first + i * stride;
		d->pieces.from[d->pieces.count] = resident[i].at;
		d->pieces.bytes[d->pieces.count++] = (end - i) * stride;
		d->cached_bytes += (end - i) * stride;
	}
	return rc;
}

/* Queue the copies of all groups. */
static int copy_groups(struct device_copy *d, uint32_t host, const struct slot *to, struct shard_error *err)
{
	const struct layout *layout = &d->feed->layout;
	const struct slot *from = &d->feed->ring.slot[host];
	uint64_t at = 0, bytes;
	int rc = SHARD_OK;

	d->pieces.count = 0; /* of a batch that failed */
	for (uint32_t g = 0; !rc && g < layout->schema->group_count; g++) {
		const struct resident *resident = d->maps ? slot_residents(from, g) : NULL;

		bytes = layout_group(layout, g, from->rows, &at);
		if (resident)
			rc = copy_rows(d, host, g, resident, to, err);
		else if (bytes)
			rc = copy_from_ring(d, host, at, bytes, to, err);
		d->copied_bytes += rc ? 0 : bytes;
	}
	return rc ? rc : copy_pieces(d, err);
}

/* The parts of the ring that the batch in a host slot needs, a bit for each. */
static uint32_t parts_needed(const struct device_copy *d, uint32_t host)
{
	const struct layout *layout = &d->feed->layout;
	const struct slot *from = &d->feed->ring.slot[host];
	uint32_t parts = 0;
	uint64_t at;

	for (uint32_t k = 0; k < layout->group_count; k++) {
		const struct resident *resident = d->maps ? slot_residents(from, layout->group[k]) : NULL;
		uint32_t row = 0;

		while (resident && row < from->rows && resident[row].at)
			row++;
		layout_group(layout, layout->group[k], from->rows, &at);
		if (!resident || row < from->rows)
			parts |= UINT32_C(1) << pins_part(&d->pins, at);
	}
	return parts;
}

void device_copy_await_pins(struct device_copy *d, uint32_t host)
{
	for (uint32_t parts = parts_needed(d, host); parts; parts &= parts - 1)
		pins_has(&d->pins, host, (uint32_t)__builtin_ctz(parts));
}

/*
 * Take the next slot of the feed.  If the GPU checks batches, it may find more rows to repair, and
 * then device_copy_settle() counts them.
 */
static int take(struct device_copy *d, uint32_t *host, uint64_t *repaired, struct shard_error *err)
{
	*repaired = 0;
	return feed_next(d->feed, host, d->check ? repaired : NULL, err);
}

/* Queue the copy of a host slot.  The slot goes back to the feed in any case. */
static int send(struct device_copy *d, uint32_t host, uint64_t repaired, struct device_slot *to,
		struct shard_error *err)
{
	struct device_slots *o = d->device_slots;
	const struct slot *from = &d->feed->ring.slot[host];
	struct slot *as = &to->as;
	struct shard_error why;
	int rc;

	/* What describes the rows is copied now, because the host slot will soon belong to the crew. */
	memcpy(as->record, from->record, from->rows * sizeof(*from->record));
	memcpy(as->row_flags, from->row_flags, from->rows);
	memcpy(as->component, from->component, from->rows * sizeof(*from->component));
	for (uint32_t k = 0; k < d->feed->layout.whole_count; k++)
		memcpy(slot_sizes(as, k), slot_sizes(from, k), from->rows * sizeof(*from->size));
	as->place = from->place;
	as->rows = from->rows;
	to->repaired = repaired;
	to->settled = false;
	to->is_repaired = false;
	for (uint32_t i = 0; i < from->rows; i++)
		to->is_repaired |= from->row_flags[i] != 0;
	rc = device_slots_begin(o, to, &why);
	if (!rc)
		rc = copy_groups(d, host, as, &why);
	if (!rc)
		rc = device_slots_end(o, to, &why);
	if (!rc) /* for the copies alone: a check reads only what is on the GPU */
		rc = cuda_stream_wait(d->cuda, d->back, to->ready, &why);
	if (!rc && d->check)
		rc = batch_check_queue(d->check, from, to, &why);
	if (!rc)
		rc = cuda_stream_call(d->cuda, d->back, give_back, &d->give[host], &why);
	if (rc) {
		device_slots_finish(o, false, NULL); /* a copy may still read the one slot, and a check the other */
		feed_give(d->feed, host);
		return cursor_fail(&d->feed->cursor, rc, &why, err);
	}
	device_slots_push(o, to);
	if (d->maps)
		maps_relieve(d->maps);
	return SHARD_OK;
}

void device_copy_send_ahead(struct device_copy *d)
{
	struct device_slot *to;
	uint64_t repaired;
	uint32_t host;

	while ((to = device_slots_find_free(d->device_slots)) && (!d->check || batch_check_has_room(d->check)) &&
	       feed_has_sound(d->feed, &host) && pins_knows(&d->pins, host, parts_needed(d, host)))
		if (take(d, &host, &repaired, NULL) || send(d, host, repaired, to, NULL))
			return;
}

int device_copy_next(struct device_copy *d, struct shard_error *err)
{
	uint64_t repaired;
	uint32_t host;
	int rc;

	if (d->device_slots->queue_count)
		return SHARD_OK;
	rc = device_copy_await(d, err);
	if (!rc)
		rc = take(d, &host, &repaired, err);
	return rc ? rc : send(d, host, repaired, device_slots_find_free(d->device_slots), err);
}

int device_copy_settle(struct device_copy *d, struct shard_error *err)
{
	struct device_slot *s = &d->device_slots->slot[d->device_slots->queue[0]];
	struct shard_error why;
	int rc;

	if (!d->check || s->settled)
		return SHARD_OK;
	rc = batch_check_finish(d->check, s, &why);
	if (!rc)
		rc = feed_count_repaired(d->feed, s->as.place.epoch, s->repaired, &why);
	s->settled = !rc;
	if (!rc)
		return SHARD_OK;
	device_slots_forget(d->device_slots); /* neither this batch nor a later one is ever lent */
	return cursor_fail(&d->feed->cursor, rc, &why, err);
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

	if (!rc)
		rc = cuda_stream_wait(d->cuda, d->back, d->host_done[host], err);
	return rc ? rc : cuda_stream_call(d->cuda, d->back, give_back, &d->give[host], err);
}

void device_copy_stats(struct device_copy *d, struct shard_loader_stats *out)
{
	out->device_bytes = d->copied_bytes;
	out->pageable_bytes = d->pageable_bytes;
	out->pinned_bytes = pins_bytes(&d->pins);
	out->cached_bytes = d->cached_bytes;
	out->registered_bytes = maps_bytes(d->maps);
	if (d->check)
		batch_check_stats(d->check, out);
}

bool device_copy_problem(struct device_copy *d, struct shard_error *out)
{
	if (pins_problem(&d->pins, out) || (d->maps && maps_problem(d->maps, out)))
		return true;
	if (!d->check_why.status && !d->pieces.why.status)
		return false;
	*out = d->check_why.status ? d->check_why : d->pieces.why;
	return true;
}
