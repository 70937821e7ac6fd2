/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.h - makes filling as slow, as wrong and as late as a test wants, and watches the slots
 *
 * Stands between transformed.c and slot_fill.c: a program that includes it links with -Wl,--wrap=slot_fill.
 */
#ifndef TESTS_LOAD_INJECT_H
#define TESTS_LOAD_INJECT_H

#include <stdatomic.h>

#include "libshard/base/error.h"
#include "libshard/feed/feed.h"
#include "tests/load/batches.h"

enum broken { SOUND, STALE_SLOT, SKIPS_A_ROW, WRITES_BESIDE };

/* Set while no loader runs, but for what says otherwise. */
static struct {
	atomic_uint delay_us; /* each filling takes up to this much longer; may be set at any time */
	atomic_bool steady;   /* exactly as much; may be set at any time */
	/*
	 * may be unset at any time: that of fail_epoch, fail_step, and fail_step + 1, which fails
	 * at once while this one is slow
	 */
	atomic_bool fails;
	uint64_t fail_epoch, fail_step;
	enum broken broken; /* in step 3 of any epoch */
	bool shares;	    /* threads may be in one slot together, so a sanitizer is not to see them there */
	struct shard_loader *watched;
	int (*meanwhile)(struct feed *f); /* called in the middle of filling */
} inject;

static atomic_uint fills, fills_of[EPOCHS], together, while_lent;
static atomic_uint behind;	  /* threads that stand behind the gate */
static _Atomic uint64_t earliest; /* place that was filled: epoch x 2^32 + position */
static atomic_int inside[LENT_CAP], lent_out[LENT_CAP];
static unsigned plain[LENT_CAP]; /* without a lock or atomics, so that a sanitizer sees two threads in one slot */

static inline void count_lent(uint32_t slot, int by)
{
	if (by > 0)
		plain[slot]++;
	atomic_fetch_add(&lent_out[slot], by);
}

static inline void inject_nothing(void)
{
	memset(&inject, 0, sizeof(inject));
	atomic_store(&fills, 0);
	atomic_store(&together, 0);
	atomic_store(&earliest, UINT64_MAX);
	atomic_store(&while_lent, 0);
	for (unsigned i = 0; i < EPOCHS; i++)
		atomic_store(&fills_of[i], 0);
	for (unsigned i = 0; i < LENT_CAP; i++) {
		atomic_store(&inside[i], 0);
		atomic_store(&lent_out[i], 0);
	}
	on_lent = NULL;
}

/*
 * For inject.meanwhile: filling stands still until the test opens the gate, so that no answer
 * depends on how fast anything is.
 */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool gate_is_open;

static inline int behind_gate(struct feed *f)
{
	(void)f;
	atomic_fetch_add(&behind, 1);
	pthread_mutex_lock(&gate_lock);
	while (!gate_is_open)
		pthread_cond_wait(&gate_moved, &gate_lock);
	pthread_mutex_unlock(&gate_lock);
	atomic_fetch_sub(&behind, 1);
	return SHARD_OK;
}

static inline void set_gate(bool open)
{
	pthread_mutex_lock(&gate_lock);
	gate_is_open = open;
	pthread_cond_broadcast(&gate_moved);
	pthread_mutex_unlock(&gate_lock);
}

static inline void inject_watch(struct shard_loader *l)
{
	inject.watched = l;
	on_lent = count_lent;
}

int __real_slot_fill(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		     struct shard_error *err);
int __wrap_slot_fill(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		     struct shard_error *err);

/* The feed that a source is part of. */
static inline struct feed *feed_of(struct row_source *source)
{
	return (struct feed *)((uint8_t *)source - offsetof(struct feed, source));
}

/* The number of the slot that is filled; threads may have copies of it, for parts. */
static inline uint32_t number_of(const struct feed *f, const struct slot *s)
{
	return (uint32_t)((uint64_t)(s->memory - f->ring.memory) / f->ring.slot_bytes);
}

static inline void note_place(const struct feed *f, const struct slot *s)
{
	uint64_t position = steps_position(&f->steps, &s->place);
	uint64_t place = s->place.epoch << 32 | position, before = atomic_load(&earliest);

	while (place < before && !atomic_compare_exchange_weak(&earliest, &before, place))
		;
	atomic_fetch_add(&fills, 1);
	if (s->place.epoch < EPOCHS)
		atomic_fetch_add(&fills_of[s->place.epoch], 1);
}

static inline bool is_watched(const struct feed *f)
{
	return inject.watched && inject.watched->feed == f;
}

static inline void enter(const struct feed *f, uint32_t slot)
{
	if (!is_watched(f))
		return;
	if (atomic_fetch_add(&inside[slot], 1))
		atomic_fetch_add(&together, 1);
	if (atomic_load(&lent_out[slot]))
		atomic_fetch_add(&while_lent, 1);
	if (!inject.shares)
		plain[slot]++;
}

static inline int fill(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		       struct shard_error *err)
{
	const struct feed *f = feed_of(source);
	uint64_t step = s->place.first_position / steps_records(&f->steps) + s->place.step;
	bool now = step == 3;
	uint8_t *memory = s->memory;
	int rc;

	if (inject.fails && s->place.epoch == inject.fail_epoch && step - inject.fail_step < 2) {
		usleep(step == inject.fail_step ? 3000 : 0);
		return error_set(err, SHARD_E_IO, "step %" PRIu64 " is made to fail", step);
	}
	if (now && inject.broken == STALE_SLOT)
		return SHARD_OK;
	if (now && inject.broken == WRITES_BESIDE) /* into a neighbour, as if two threads had one slot */
		s->memory = f->ring.slot[(number_of(f, s) + 1) % f->ring.slot_count].memory;
	rc = __real_slot_fill(source, scratch, s, counts, err);
	if (s->memory != memory)
		s->memory = memory;
	if (now && inject.broken == SKIPS_A_ROW)
		memmove(s->record, s->record + 1, (s->rows - 1) * sizeof(*s->record));
	return rc;
}

int __wrap_slot_fill(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		     struct shard_error *err)
{
	struct feed *f = feed_of(source);
	struct prng p = {atomic_load(&fills)};
	unsigned delay_us = atomic_load(&inject.delay_us);
	uint32_t slot = number_of(f, s);
	int rc;

	enter(f, slot);
	note_place(f, s);
	if (delay_us)
		usleep(inject.steady ? delay_us : (unsigned)prng_below(&p, delay_us));
	if (inject.meanwhile)
		inject.meanwhile(f);
	rc = fill(source, scratch, s, counts, err);
	if (is_watched(f))
		atomic_fetch_sub(&inside[slot], 1);
	return rc;
}

#endif
