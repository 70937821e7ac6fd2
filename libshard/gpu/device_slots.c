/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_slots.c - slots in the memory of a GPU: they are filled ahead, lent, and taken back
 *
 * The slots of a loader, or of a pool, have one stream on which they are filled: by the copies of
 * device_copy.c, or by a kernel of the pool.  This file knows neither.  The host waits for neither.
 * The stream of the borrower waits for the event `ready`.  The filling stream waits for the event
 * `done`, which comes behind the work of the borrower.
 *
 * Only the consumer calls these functions.  It has entered the context for those that can fail.
 */
#include "libshard/gpu/gpu.h"

#include "libshard/base/error.h"
#include "libshard/base/mem.h"

/* ---- life ---- */

static int open_slot(struct device_slots *o, struct device_slot *s, uint64_t memory, uint32_t batch_records,
		     uint32_t whole_count, struct shard_error *err)
{
	int rc;

	if (!slot_open(&s->as, (uint8_t *)(uintptr_t)memory, batch_records, whole_count))
		return error_set(err, SHARD_E_MEMORY, "no memory for a batch of %u records", batch_records);
	rc = cuda_event_make(o->cuda, &s->ready, err);
	return rc ? rc : cuda_event_make(o->cuda, &s->done, err);
}

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
	for (uint32_t i = 0; !rc && i < slot_count; i++)
		rc = open_slot(o, &o->slot[i], o->memory + i * slot_bytes, batch_records, layout->whole_count, err);
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
	}
	mem_free(o->slot);
	mem_free(o->queue);
	*o = (struct device_slots){.slot_count = 0};
}

int device_slots_finish(struct device_slots *o, bool borrowers, struct shard_error *err)
{
	int rc = o->stream ? cuda_stream_finish(o->cuda, o->stream, err) : SHARD_OK;

	for (uint32_t i = 0; borrowers && i < o->slot_count; i++) {
		int got = o->slot[i].has_done ? cuda_event_finish(o->cuda, o->slot[i].done, rc ? NULL : err) : SHARD_OK;

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
		o->next_slot = (which + 1) % o->slot_count;
		return &o->slot[which];
	}
	return NULL;
}

int device_slots_begin(struct device_slots *o, struct device_slot *s, struct shard_error *err)
{
	int rc;

	if (!s->has_done || s->awaited)
		return SHARD_OK;
	rc = cuda_stream_wait(o->cuda, o->stream, s->done, err);
	s->awaited = !rc;
	return rc;
}

int device_slots_end(struct device_slots *o, struct device_slot *s, struct shard_error *err)
{
	return cuda_event_record(o->cuda, s->ready, o->stream, err);
}

void device_slots_push(struct device_slots *o, struct device_slot *s)
{
	s->queued = true;
	o->queue[o->queue_count++] = (uint32_t)(s - o->slot);
}

void device_slots_forget(struct device_slots *o)
{
	/* A slot may still be being filled.  It is filled again behind that, on the same stream. */
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
