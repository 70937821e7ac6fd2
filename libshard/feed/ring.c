/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - the memory that batches are delivered in: slots of one size, one behind the other
 */
#include "libshard/feed/feed.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/io.h"

uint64_t ring_bytes(const struct ring *r)
{
	return r->slot_bytes * r->slot_count;
}

static bool open_slots(struct ring *r, uint32_t batch_records, uint32_t whole_count)
{
	r->slot = mem_array(r->slot_count, sizeof(*r->slot));
	r->memory = r->lent ? r->lent : buffer_open((size_t)ring_bytes(r));
	if (!r->slot || !r->memory)
		return false;
	if (!r->lent)
		buffer_keep(r->memory, (size_t)ring_bytes(r));
	for (uint32_t i = 0; i < r->slot_count; i++)
		if (!slot_open(&r->slot[i], r->memory + i * r->slot_bytes, batch_records, whole_count))
			return false;
	return true;
}

int ring_open(struct ring *r, uint32_t batch_records, uint32_t whole_count, struct shard_error *err)
{
	if (open_slots(r, batch_records, whole_count))
		return SHARD_OK;
	ring_close(r, false);
	return error_set(err, SHARD_E_MEMORY,
			 "no memory for %u slots of %" PRIu64 " bytes (%u records each); ask for smaller batches or "
			 "fewer slots",
			 r->slot_count, r->slot_bytes, batch_records);
}

void ring_clear_first(const struct ring *r, bool (*is_needed)(void *context), void *context)
{
	for (uint64_t begin, end = r->lent ? 0 : r->slot_bytes; end && is_needed(context); end = begin) {
		begin = end - min_u64(end, HUGE_PAGE_BYTES);
		buffer_clear_pages(r->slot[0].memory + begin, (size_t)(end - begin));
	}
}

void ring_close(struct ring *r, bool inherited)
{
	for (uint32_t i = 0; r->slot && i < r->slot_count; i++)
		slot_close(&r->slot[i]);
	if (r->memory && !r->lent && !inherited)
		buffer_close(r->memory, (size_t)ring_bytes(r));
	mem_free(r->slot);
	r->slot = NULL;
	r->memory = NULL;
}
