/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pins.c - page-locks on a ring, so that a GPU reads it by itself
 *
 * A thread page-locks slot after slot, while the crew fills the first ones.  A batch waits only for
 * its own slot.  A very large slot is page-locked in chunks, and no copy may cross the end of a
 * chunk.  If the system refuses, the driver copies the batch once more, which is slower.  A slot
 * that is refused because a CUDA graph is being captured is tried once more.
 */
#include "libshard/gpu/gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/thread.h"
#include "libshard/io/io.h"

#define PATIENCE_S  2u /* for one slot; some drivers have never come back */
#define MIB(bytes_) ((double)(bytes_) / (1 << 20))

static void set_state(struct pins *p, uint32_t slot, uint32_t part, enum pin_state state)
{
	pthread_mutex_lock(&p->lock);
	p->state[slot * p->part_count + part] = state;
	p->bytes += state == PIN_LOCKED ? p->part[part].bytes : 0;
	pthread_cond_broadcast(&p->change);
	pthread_mutex_unlock(&p->lock);
}

/* ---- refusal ---- */

/* Tells why a slot is not page-locked.  The first refusal is told. */
static void explain(struct pins *p, uint32_t slot, const struct shard_error *why)
{
	char memlock[32] = "unlimited";
	struct rlimit limit;

	pthread_mutex_lock(&p->lock);
	if (!p->has_refusal && cuda_is_capture(why)) {
		error_set(&p->why, why->status,
			  "slot %u of %u of the ring was refused twice while a CUDA graph was captured (%s).  It "
			  "reaches the GPU through pageable memory, which is slower: take a batch before the first "
			  "capture",
			  slot, p->ring->slot_count, why->message);
		p->why.os_code = why->os_code;
	} else if (!p->has_refusal) {
		if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
			snprintf(memlock, sizeof(memlock), "%" PRIu64 " KiB", (uint64_t)limit.rlim_cur >> 10);
		error_set(&p->why, why->status,
			  "slot %u of %u of the ring cannot be page-locked (%s).  This slot and all after it reach the "
			  "GPU through pageable memory, which is slower.  Locked memory is limited to %s (ulimit -l), "
			  "and this control group has %.0f MiB left: raise these limits, or ask for fewer slots, or "
			  "for batches of less than %.1f MiB",
			  slot, p->ring->slot_count, why->message, memlock, MIB(available_memory_bytes()),
			  MIB(p->ring->slot_bytes));
		p->why.os_code = why->os_code;
	}
	p->has_refusal = true;
	pthread_mutex_unlock(&p->lock);
}

/* ---- page-locking ---- */

/* Unlock the first bytes of a part. */
static void unlock_part(struct pins *p, uint32_t slot, uint32_t part, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += p->chunk_bytes)
		cuda_unpin(p->cuda, p->ring->slot[slot].memory + p->part[part].at + at);
}

static int lock_part(struct pins *p, uint32_t slot, uint32_t part, struct shard_error *err)
{
	uint8_t *memory = p->ring->slot[slot].memory + p->part[part].at;

	for (uint64_t at = 0, bytes; at < p->part[part].bytes; at += bytes) {
		int rc;

		bytes = min_u64(p->part[part].bytes - at, p->chunk_bytes);
		rc = cuda_pin(p->cuda, memory + at, bytes, err);
		if (rc) {
			unlock_part(p, slot, part, at);
			return rc;
		}
	}
	return SHARD_OK;
}

/*
 * Page-lock the parts of slots that are not yet known: those which are always needed, or all.  A
 * capture ends soon: with `again`, a part that is refused because of one stays unknown.  After any
 * other refusal no other part is tried, because the system has no memory to spare.
 */
static int lock_pending(struct pins *p, bool all, bool again, int rc, struct shard_error *why)
{
	for (uint32_t i = 0; i < p->ring->slot_count * p->part_count; i++) {
		uint32_t slot = i / p->part_count, part = i % p->part_count;
		int got = rc;

		if (p->state[i] != PIN_PENDING || (p->part[part].when_needed && !all))
			continue;
		if (!got)
			got = lock_part(p, slot, part, why);
		if (got && again && cuda_is_capture(why))
			continue;
		if (got)
			explain(p, slot, why);
		set_state(p, slot, part, got ? PIN_UNLOCKED : PIN_LOCKED);
		if (!rc && got && !cuda_is_capture(why))
			rc = got;
	}
	return rc;
}

/* Wait until the other parts are needed.  Returns false if they never will be. */
static bool await_need(struct pins *p)
{
	bool needed;

	pthread_mutex_lock(&p->lock);
	while (!p->needed && !p->stop)
		pthread_cond_wait(&p->change, &p->lock);
	needed = p->needed;
	pthread_mutex_unlock(&p->lock);
	return needed;
}

static void *lock_all(void *context)
{
	struct pins *p = context;
	struct shard_error why = {.status = SHARD_OK};
	int rc = cuda_enter(p->cuda, &why), left = rc;

	rc = lock_pending(p, false, true, rc, &why);
	rc = lock_pending(p, false, false, rc, &why);
	if (await_need(p)) {
		rc = lock_pending(p, true, true, rc, &why);
		lock_pending(p, true, false, rc, &why);
	}
	if (!left)
		cuda_leave(p->cuda, SHARD_OK, NULL); /* an error does not matter: the thread ends */
	return NULL;
}

/*
 * See which slots the owner of the memory has page-locked.  The driver refuses to copy a slot of
 * which only a part is page-locked.
 */
static int examine_lent(struct pins *p, struct shard_error *err)
{
	uint64_t bytes = p->ring->slot_bytes;

	for (uint32_t i = 0; i < p->ring->slot_count; i++) {
		const uint8_t *at = p->ring->slot[i].memory;
		bool locked = cuda_is_pinned(p->cuda, at);

		if (locked != cuda_is_pinned(p->cuda, at + bytes - 1))
			return error_set(err, SHARD_E_ARGUMENT,
					 "only a part of slot %u of %u of the ring is page-locked; call "
					 "cudaHostRegister() once, for all %" PRIu64 " bytes of the memory given to "
					 "shard_loader_lend()",
					 i, p->ring->slot_count, ring_bytes(p->ring));
		if (!locked && !p->why.status) /* no other thread uses this yet */
			error_set(
				&p->why, SHARD_E_ARGUMENT,
				"slot %u of %u of the ring is not page-locked, so it reaches the GPU through pageable "
				"memory, which is slower; call cudaHostRegister() for all memory given to "
				"shard_loader_lend() before the first batch",
				i, p->ring->slot_count);
		set_state(p, i, 0, locked ? PIN_LOCKED : PIN_UNLOCKED);
	}
	return SHARD_OK;
}

/* The arrays of neighbouring groups are one part, unless only some of them are page-locked when needed. */
static void plan_parts(struct pins *p, const struct layout *layout, uint32_t when_needed)
{
	uint64_t end = p->ring->slot_bytes, at;

	p->part_count = 0;
	for (uint32_t k = 0; k < layout->group_count; k++) {
		bool later = !p->ring->lent && when_needed >> layout->group[k] & 1;

		layout_group(layout, layout->group[k], 0, &at);
		if (p->part_count && p->part[p->part_count - 1].when_needed == later)
			continue;
		if (p->part_count)
			p->part[p->part_count - 1].bytes = at - p->part[p->part_count - 1].at;
		p->part[p->part_count++] = (struct pins_part){at, end - at, later};
	}
}

int pins_open(struct pins *p, const struct ring *ring, const struct layout *layout, uint32_t when_needed,
	      const struct cuda_device *cuda, struct shard_error *err)
{
	p->ring = ring;
	p->cuda = cuda;
	p->chunk_bytes = ring->lent ? UINT64_MAX : cuda_pin_most_bytes(); /* lent: one chunk */
	plan_parts(p, layout, when_needed);
	p->state = mem_array((size_t)ring->slot_count * p->part_count, sizeof(*p->state));
	if (!p->state)
		return error_set(err, SHARD_E_MEMORY, "no memory for the page-locks of %u slots", ring->slot_count);
	pthread_mutex_init(&p->lock, NULL);
	thread_cond_init(&p->change);
	if (ring->lent)
		return examine_lent(p, err);
	if (!thread_start(&p->thread, lock_all, p)) {
		p->has_thread = true;
	} else {
		p->needed = true;
		lock_all(p); /* without a thread only the first batch comes later */
	}
	return SHARD_OK;
}

uint32_t pins_part(const struct pins *p, uint64_t at)
{
	uint32_t part = p->part_count - 1;

	while (part && at < p->part[part].at)
		part--;
	return part;
}

/* With lock. */
static void need(struct pins *p, uint32_t part)
{
	if (p->needed || !p->part[part].when_needed)
		return;
	p->needed = true;
	pthread_cond_broadcast(&p->change);
}

bool pins_knows(struct pins *p, uint32_t slot, uint32_t parts)
{
	bool knows = true;

	pthread_mutex_lock(&p->lock);
	for (; parts; parts &= parts - 1) {
		uint32_t part = (uint32_t)__builtin_ctz(parts);

		need(p, part);
		knows &= p->state[slot * p->part_count + part] != PIN_PENDING || p->late;
	}
	pthread_mutex_unlock(&p->lock);
	return knows;
}

bool pins_has(struct pins *p, uint32_t slot, uint32_t part)
{
	struct timespec until = clock_after_ns(PATIENCE_S * UINT64_C(1000000000));
	const enum pin_state *state = &p->state[slot * p->part_count + part];
	bool locked;

	pthread_mutex_lock(&p->lock);
	need(p, part);
	while (*state == PIN_PENDING && !p->late)
		if (pthread_cond_timedwait(&p->change, &p->lock, &until) == ETIMEDOUT && *state == PIN_PENDING) {
			p->late = true;
			if (!p->why.status)
				error_set(
					&p->why, SHARD_E_DEVICE,
					"slot %u of %u of the ring is still being page-locked after %u s.  Slots that "
					"are not page-locked reach the GPU through pageable memory, which is slower; "
					"see the kernel's log",
					slot, p->ring->slot_count, PATIENCE_S);
		}
	locked = *state == PIN_LOCKED;
	pthread_mutex_unlock(&p->lock);
	return locked;
}

uint64_t pins_bytes(struct pins *p)
{
	uint64_t bytes;

	pthread_mutex_lock(&p->lock);
	bytes = p->bytes;
	pthread_mutex_unlock(&p->lock);
	return bytes;
}

bool pins_problem(struct pins *p, struct shard_error *out)
{
	bool has;

	pthread_mutex_lock(&p->lock);
	has = p->why.status != SHARD_OK;
	if (has)
		*out = p->why;
	pthread_mutex_unlock(&p->lock);
	return has;
}

void pins_close(struct pins *p, bool inherited)
{
	if (p->has_thread && !inherited) {
		pthread_mutex_lock(&p->lock);
		p->stop = true;
		pthread_cond_broadcast(&p->change);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->thread, NULL);
	}
	for (uint32_t i = 0; p->state && !inherited && !p->ring->lent && i < p->ring->slot_count * p->part_count; i++)
		if (p->state[i] == PIN_LOCKED)
			unlock_part(p, i / p->part_count, i % p->part_count, p->part[i % p->part_count].bytes);
	if (p->state && !inherited) {
		pthread_cond_destroy(&p->change);
		pthread_mutex_destroy(&p->lock);
	}
	mem_free(p->state);
	p->state = NULL;
	p->has_thread = false;
}
