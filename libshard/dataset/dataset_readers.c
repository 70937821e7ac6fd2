/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_readers.c - the shards of a dataset that are open, which may be fewer than were used
 *
 * Linux limits the maps of a process, and each open shard takes one.  When too many are open, those
 * that were not used for longest are closed.  A thread that uses readers is inside, from
 * readers_enter() to readers_leave(): a reader that it gets there stays open until it leaves.  A
 * reader that a program gets from shard_dataset_reader() stays open as long as the dataset.
 *
 * There is no lock, which a forked child might inherit locked.  A child of a fork that happened
 * between enter and leave of another thread closes nothing, and may reach the limit.
 *
 * * Which reader was not used for longest is found as a clock finds it: a hand goes round the table,
 * clears the flags of use, and takes out what it finds without one.
 */
#include "libshard/dataset/dataset.h"

#include "libshard/base/mem.h"
#include "libshard/dataset/reader.h"
#include "libshard/io/io.h"

#define AT_ONCE	 64u	/* so many are closed when one is too many */
#define LOOKS_AT 16384u /* words that are looked at for them: kept readers may be in the way */

static _Atomic uint64_t open_count; /* readers of all datasets of this process */

bool readers_open(struct readers *t, uint64_t count)
{
	t->word = mem_array((size_t)count, sizeof(*t->word));
	t->count = count;
	/* The other half is for the maps of everything else: allocators, libraries, threads. */
	t->most = memory_maps_most() / 2;
	atomic_flag_clear(&t->busy);
	return t->word;
}

static void close_all(struct shard_reader *r)
{
	while (r) {
		struct shard_reader *next = r->next_retired;

		shard_reader_close(r);
		atomic_fetch_sub_explicit(&open_count, 1, memory_order_relaxed);
		r = next;
	}
}

void readers_close(struct readers *t)
{
	for (uint64_t i = 0; t->word && i < t->count; i++) {
		struct shard_reader *r = readers_peek(t, i);

		if (!r)
			continue;
		r->next_retired = NULL;
		close_all(r);
	}
	close_all(t->retired[0]);
	close_all(t->retired[1]);
	mem_free((void *)t->word);
	t->word = NULL;
}

unsigned readers_enter(struct readers *t)
{
	for (;;) {
		unsigned era = atomic_load(&t->era);

		atomic_fetch_add(&t->inside[era & 1], 1);
		if (atomic_load(&t->era) == era)
			return era & 1;
		atomic_fetch_sub(&t->inside[era & 1], 1); /* it began meanwhile, and did not see us */
	}
}

void readers_leave(struct readers *t, unsigned entered)
{
	atomic_fetch_sub(&t->inside[entered], 1);
}

struct shard_reader *readers_use(struct readers *t, uint64_t idx)
{
	uintptr_t word = atomic_load_explicit(&t->word[idx], memory_order_acquire);

	/*
	 * It may leave the table between the two.  Then the flag of the next reader that is opened
	 * says little.
	 */
	if (word && !(word & READERS_USED))
		atomic_compare_exchange_strong(&t->word[idx], &word, word | READERS_USED);
	return readers_peek(t, idx);
}

struct shard_reader *readers_kept(const struct readers *t, uint64_t idx)
{
	uintptr_t word = atomic_load_explicit(&t->word[idx], memory_order_acquire);

	return word & READERS_KEPT ? readers_peek(t, idx) : NULL;
}

struct shard_reader *readers_add(struct readers *t, uint64_t idx, struct shard_reader *r)
{
	uintptr_t there = 0;

	if (atomic_compare_exchange_strong(&t->word[idx], &there, (uintptr_t)r | READERS_USED)) {
		atomic_fetch_add_explicit(&open_count, 1, memory_order_relaxed);
		return r;
	}
	shard_reader_close(r);
	return (struct shard_reader *)(there & ~READERS_FLAGS); /* NOLINT(performance-no-int-to-ptr) */
}

bool readers_keep(struct readers *t, uint64_t idx, const struct shard_reader *r)
{
	uintptr_t word = atomic_load(&t->word[idx]);

	while ((word & ~READERS_FLAGS) == (uintptr_t)r)
		if (word & READERS_KEPT || atomic_compare_exchange_weak(&t->word[idx], &word, word | READERS_KEPT))
			return true;
	return false;
}

/*
 * If nobody is left of the era before, close what waited for that, and begin the next era.  Returns
 * whether a reader was closed.
 */
static bool pass_era(struct readers *t)
{
	unsigned before = (atomic_load(&t->era) + 1) & 1;
	struct shard_reader *retired = t->retired[before];

	if (atomic_load(&t->inside[before]))
		return false;
	t->retired[before] = NULL;
	atomic_fetch_add(&t->era, 1);
	close_all(retired);
	return retired;
}

/* Returns whether the reader of a word was taken out of the table. */
static bool take_out(struct readers *t, uint64_t idx)
{
	uintptr_t word = atomic_load_explicit(&t->word[idx], memory_order_acquire);
	struct shard_reader *r = (struct shard_reader *)(word & ~READERS_FLAGS); /* NOLINT(performance-no-int-to-ptr) */
	struct shard_reader **list = &t->retired[atomic_load(&t->era) & 1];

	if (!word || word & READERS_KEPT)
		return false;
	if (word & READERS_USED) { /* a thread that uses it now sets the flag again */
		atomic_compare_exchange_strong(&t->word[idx], &word, word & ~(uintptr_t)READERS_USED);
		return false;
	}
	if (!atomic_compare_exchange_strong(&t->word[idx], &word, 0))
		return false;
	r->next_retired = *list;
	*list = r;
	return true;
}

bool readers_make_room(struct readers *t, bool all)
{
	uint64_t taken = 0, want = all ? UINT64_MAX : AT_ONCE, looks = all ? 2 * t->count : LOOKS_AT;
	bool closed;

	if (!all && atomic_load_explicit(&open_count, memory_order_relaxed) < t->most)
		return false;
	if (atomic_flag_test_and_set(&t->busy))
		return false;
	closed = pass_era(t);
	for (uint64_t looked = 0; looked < looks && taken < want; looked++) {
		taken += take_out(t, t->hand);
		t->hand = t->hand + 1 < t->count ? t->hand + 1 : 0;
	}
	closed |= pass_era(t);
	atomic_flag_clear(&t->busy);
	return taken || closed;
}
