/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c - decoded chunks of one group, shared by all threads that take records from them
 *
 * A stage is made of blocks.  A new chunk takes the block that was filled longest ago.  An order in
 * windows needs a chunk only until its window ends.  So a stage with room for a window, and for the
 * steps under way at its end, decodes each chunk once an epoch.  A smaller stage decodes some
 * chunks again, and delivers the same.
 *
 * A block that a thread holds keeps its contents.  A thread that is told to fill a block must do so
 * before it waits for a block that another thread fills.
 *
 * Blocks, which are used in turn, and a hash table that finds them
 *
 * To find a block and hold it takes no lock.  One atomic addition to its state both holds it and
 * tells whether that was possible.  The table changes under the lock, once for each decoded chunk.
 * A thread that searches it meanwhile may miss an entry, and then searches again under the lock.
 */
#include "libshard/feed/feed.h"

#include <pthread.h>
#include <stdatomic.h>

#include "libshard/base/mem.h"

#define KEY_NONE   UINT64_MAX
#define BLOCK_NONE UINT32_MAX

/*
 * The state of a block: the number of threads that hold it, READY if it can be held, and above that
 * the number of records that were taken.
 */
#define HELD	   UINT64_C(1)
#define HELD_MASK  (READY - 1)
#define READY	   (UINT64_C(1) << 31)
#define TAKEN	   (UINT64_C(1) << 32)
#define TRIES_MOST 1024u /* blocks to look at before the stage counts as full */

struct stage_block {
	_Atomic uint64_t key; /* KEY_NONE: empty; with a key, but not READY, it is being filled */
	_Atomic uint64_t state;
	uint32_t records; /* lock */
};

struct stage {
	uint8_t *memory; /* [block_count] of block_bytes */
	uint64_t block_bytes;
	uint32_t block_count, table_mask, table_shift;
	bool counts_unfinished;
	struct stage_block *block;
	/* [table_mask + 1] a block + 1, or 0.  Linear probing; changed with the lock. */
	_Atomic uint32_t *table;
	pthread_mutex_t lock;
	pthread_cond_t filled; /* with lock: a block was filled, or filling it has failed */
	uint32_t next;	       /* lock: the block that was filled longest ago */
	uint32_t waiting;      /* lock: threads in stage_wait() */
	uint64_t unfinished;   /* lock */
};

uint8_t *stage_at(const struct stage *s, uint32_t block)
{
	return s->memory + block * s->block_bytes;
}

/* ---- the table ---- */

static inline uint32_t home_of(const struct stage *s, uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> s->table_shift);
}

/* Find the block of a key and its place in the table.  Without the lock this may miss it. */
static inline bool find(const struct stage *s, uint64_t key, uint32_t *place, uint32_t *block)
{
	*place = home_of(s, key);
	for (uint32_t n = 0; n <= s->table_mask; n++, *place = (*place + 1) & s->table_mask) {
		*block = atomic_load_explicit(&s->table[*place], memory_order_relaxed);
		if (!*block)
			return false;
		if (atomic_load_explicit(&s->block[--*block].key, memory_order_relaxed) == key)
			return true;
	}
	return false;
}

/* With lock.  Add a block to the table. */
static void put_in(struct stage *s, uint64_t key, uint32_t block)
{
	uint32_t place = home_of(s, key);

	while (atomic_load_explicit(&s->table[place], memory_order_relaxed))
		place = (place + 1) & s->table_mask;
	atomic_store_explicit(&s->block[block].key, key, memory_order_relaxed);
	atomic_store_explicit(&s->table[place], block + 1, memory_order_relaxed);
}

/* With lock.  Remove a block.  Entries behind the hole move up, so that searches find them. */
static void take_out(struct stage *s, uint32_t block)
{
	uint64_t key = atomic_load_explicit(&s->block[block].key, memory_order_relaxed);
	uint32_t hole, found, other;

	if (key == KEY_NONE || !find(s, key, &hole, &found))
		return;
	for (uint32_t at = (hole + 1) & s->table_mask;; at = (at + 1) & s->table_mask) {
		other = atomic_load_explicit(&s->table[at], memory_order_relaxed);
		if (!other)
			break;
		key = atomic_load_explicit(&s->block[other - 1].key, memory_order_relaxed);
		if (((at - home_of(s, key)) & s->table_mask) < ((at - hole) & s->table_mask))
			continue; /* a search for it does not pass the hole */
		atomic_store_explicit(&s->table[hole], other, memory_order_relaxed);
		hole = at;
	}
	atomic_store_explicit(&s->table[hole], 0, memory_order_relaxed);
	atomic_store_explicit(&s->block[block].key, KEY_NONE, memory_order_relaxed);
}

/* ---- blocks ---- */

/* Hold a block.  Then its key cannot change, and its contents were written before. */
static inline bool hold(struct stage_block *b, uint64_t key)
{
	uint64_t was = atomic_fetch_add_explicit(&b->state, HELD, memory_order_acquire);

	if (was & READY && atomic_load_explicit(&b->key, memory_order_relaxed) == key)
		return true;
	atomic_fetch_sub_explicit(&b->state, HELD, memory_order_release);
	return false;
}

/* With lock.  Returns an empty block, or empties the oldest one that no thread holds or fills. */
static uint32_t make_room(struct stage *s)
{
	for (uint32_t tries = 0; tries < s->block_count && tries < TRIES_MOST; tries++) {
		uint32_t i = s->next;
		struct stage_block *b = &s->block[i];
		uint64_t state = atomic_load_explicit(&b->state, memory_order_relaxed);

		s->next = i + 1 < s->block_count ? i + 1 : 0;
		if (atomic_load_explicit(&b->key, memory_order_relaxed) == KEY_NONE)
			return i;
		if (!(state & READY) || state & HELD_MASK ||
		    !atomic_compare_exchange_strong_explicit(&b->state, &state, 0, memory_order_acquire,
							     memory_order_relaxed))
			continue;
		s->unfinished += s->counts_unfinished && state / TAKEN % b->records;
		take_out(s, i);
		return i;
	}
	return BLOCK_NONE;
}

static enum stage_answer get_locked(struct stage *s, uint64_t key, uint32_t *block)
{
	uint32_t place;

	if (find(s, key, &place, block))
		return hold(&s->block[*block], key) ? STAGE_READY : STAGE_BUSY;
	*block = make_room(s);
	if (*block == BLOCK_NONE)
		return STAGE_FULL;
	put_in(s, key, *block);
	return STAGE_FILL;
}

enum stage_answer stage_get(struct stage *s, uint64_t key, uint32_t *block)
{
	enum stage_answer answer;
	uint32_t place;

	if (!s)
		return STAGE_FULL;
	if (find(s, key, &place, block) && hold(&s->block[*block], key))
		return STAGE_READY;
	pthread_mutex_lock(&s->lock);
	answer = get_locked(s, key, block);
	pthread_mutex_unlock(&s->lock);
	return answer;
}

void stage_filled(struct stage *s, uint32_t block, uint32_t records)
{
	pthread_mutex_lock(&s->lock);
	s->block[block].records = records;
	if (records)
		atomic_fetch_add_explicit(&s->block[block].state, READY + HELD, memory_order_release);
	else
		take_out(s, block);
	if (s->waiting)
		pthread_cond_broadcast(&s->filled);
	pthread_mutex_unlock(&s->lock);
}

void stage_leave(struct stage *s, uint32_t block, uint32_t records)
{
	atomic_fetch_add_explicit(&s->block[block].state, records * TAKEN - HELD, memory_order_release);
}

void stage_wait(struct stage *s, uint64_t key)
{
	uint32_t place, block;

	pthread_mutex_lock(&s->lock);
	s->waiting++;
	while (find(s, key, &place, &block) &&
	       !(atomic_load_explicit(&s->block[block].state, memory_order_relaxed) & READY))
		pthread_cond_wait(&s->filled, &s->lock);
	s->waiting--;
	pthread_mutex_unlock(&s->lock);
}

uint64_t stage_unfinished(struct stage *s)
{
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	n = s->unfinished;
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* ---- life ---- */

void stage_close(struct stage *s, bool inherited)
{
	if (!s)
		return;
	if (!inherited) {
		pthread_cond_destroy(&s->filled);
		pthread_mutex_destroy(&s->lock);
	}
	mem_free((void *)s->table);
	mem_free(s->block);
	mem_free(s);
}

struct stage *stage_open(uint8_t *memory, uint64_t block_bytes, uint32_t block_count, bool counts_unfinished)
{
	struct stage *s = mem_zalloc(sizeof(*s));
	uint32_t log2 = 2;

	if (!s)
		return NULL;
	while (UINT64_C(1) << log2 < UINT64_C(3) * block_count)
		log2++;
	s->memory = memory;
	s->block_bytes = block_bytes;
	s->block_count = block_count;
	s->counts_unfinished = counts_unfinished;
	s->table_mask = (UINT32_C(1) << log2) - 1;
	s->table_shift = 64 - log2;
	s->block = mem_array(s->block_count, sizeof(*s->block));
	s->table = mem_array((size_t)s->table_mask + 1, sizeof(*s->table));
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->filled, NULL);
	if (!s->block || !s->table) {
		stage_close(s, false);
		return NULL;
	}
	for (uint32_t i = 0; i < s->block_count; i++)
		atomic_init(&s->block[i].key, KEY_NONE);
	return s;
}
