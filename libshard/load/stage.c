/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c - blocks for decoded chunks, used one after the other, and a table that finds them
 *
 * Finding a block and holding it takes no lock: one atomic addition to the block's state says whether it was there to be
 * held.  Changes of the table are made under the lock, once for each chunk that is decoded.  Who looks meanwhile may miss
 * an entry, and then looks again under the lock.
 */
#include "libshard/load/stage.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/buffer.h"

#define KEY_NONE   UINT64_MAX
#define BLOCK_NONE UINT32_MAX

/* A block's state: how many hold it, whether it can be held, and above that how many records were taken from it. */
#define HELD	   UINT64_C(1)
#define HELD_MASK  (READY - 1)
#define READY	   (UINT64_C(1) << 31)
#define TAKEN	   (UINT64_C(1) << 32)
#define TRIES_MOST 1024u /* blocks that are held, at the place that is to be used next */

struct stage_block {
	_Atomic uint64_t key, state; /* KEY_NONE: nothing is in it; a key, but not READY: it is being filled */
	uint32_t records;	     /* lock */
};

struct stage {
	uint8_t *memory; /* [block_count] of block_bytes */
	uint64_t block_bytes;
	uint32_t block_count, table_mask, table_shift;
	bool counts_unfinished; /* all records of a chunk are this rank's */
	struct stage_block *block;
	_Atomic uint32_t *table; /* block + 1, at the first free place behind that of its key; 0: free; changes: lock */
	pthread_mutex_t lock;
	pthread_cond_t filled; /* with lock: a block was filled, or could not be */
	uint32_t next;	       /* lock: block that has been used longest */
	uint32_t waiting;      /* lock */
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

/* The place of the key's block in the table; without the lock it may be overlooked.  False: it has none. */
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

/* With lock: the block is not in the table. */
static void put_in(struct stage *s, uint64_t key, uint32_t block)
{
	uint32_t place = home_of(s, key);

	while (atomic_load_explicit(&s->table[place], memory_order_relaxed))
		place = (place + 1) & s->table_mask;
	atomic_store_explicit(&s->block[block].key, key, memory_order_relaxed);
	atomic_store_explicit(&s->table[place], block + 1, memory_order_relaxed);
}

/* With lock: entries behind the hole move up, or they would not be found. */
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
			continue; /* it is where it belongs, or behind that without passing the hole */
		atomic_store_explicit(&s->table[hole], other, memory_order_relaxed);
		hole = at;
	}
	atomic_store_explicit(&s->table[hole], 0, memory_order_relaxed);
	atomic_store_explicit(&s->block[block].key, KEY_NONE, memory_order_relaxed);
}

/* ---- blocks ---- */

/* Once it is held its key cannot change; what it holds was written before it became READY. */
static inline bool hold(struct stage_block *b, uint64_t key)
{
	uint64_t was = atomic_fetch_add_explicit(&b->state, HELD, memory_order_acquire);

	if (was & READY && atomic_load_explicit(&b->key, memory_order_relaxed) == key)
		return true;
	atomic_fetch_sub_explicit(&b->state, HELD, memory_order_release);
	return false;
}

/* With lock: a block with nothing in it; the one that has been there longest of those that nobody holds or fills. */
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
		    !atomic_compare_exchange_strong_explicit(&b->state, &state, 0, memory_order_acquire, memory_order_relaxed))
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
	while (find(s, key, &place, &block) && !(atomic_load_explicit(&s->block[block].state, memory_order_relaxed) & READY))
		pthread_cond_wait(&s->filled, &s->lock);
	s->waiting--;
	pthread_mutex_unlock(&s->lock);
}

/* ---- life ---- */

static void stage_close(struct stage *s, bool inherited)
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

static struct stage *stage_open(const struct stage_size *size, uint8_t *memory)
{
	struct stage *s = mem_zalloc(sizeof(*s));
	uint32_t log2 = 2;

	if (!s)
		return NULL;
	while (UINT64_C(1) << log2 < 3 * size->block_count)
		log2++;
	s->block_bytes = size->block_bytes;
	s->block_count = (uint32_t)size->block_count;
	s->counts_unfinished = size->whole_chunks;
	s->memory = memory;
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

int stage_open_all(struct shard_loader *l, struct shard_error *err)
{
	struct stage_size size[SHARD_GROUPS_MAX];
	uint64_t at = 0;

	l->stage_bytes = stage_sizes(l, size);
	if (!l->stage_bytes)
		return SHARD_OK;
	l->stage_memory = buffer_open((size_t)l->stage_bytes); /* the system gives the pages as they are used */
	if (l->stage_memory)
		buffer_keep(l->stage_memory, (size_t)l->stage_bytes);
	for (uint32_t g = 0; l->stage_memory && g < l->ds->m.schema.group_count; g++) {
		if (!size[g].block_count)
			continue;
		l->stage[g] = stage_open(&size[g], (uint8_t *)l->stage_memory + at);
		at += size[g].block_count * size[g].block_bytes;
		if (!l->stage[g])
			break;
		if (at == l->stage_bytes)
			return SHARD_OK;
	}
	at = l->stage_bytes;
	stage_close_all(l, false);
	return error_set(err, SHARD_E_MEMORY, "no memory for a stage of %" PRIu64 " bytes for decoded chunks; set stage_bytes to less, which is "
			 "slower", at);
}

void stage_close_all(struct shard_loader *l, bool inherited)
{
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		stage_close(l->stage[g], inherited);
		l->stage[g] = NULL;
	}
	if (l->stage_memory && !inherited)
		buffer_close(l->stage_memory, (size_t)l->stage_bytes);
	l->stage_memory = NULL;
	l->stage_bytes = 0;
}

uint64_t stage_unfinished(struct shard_loader *l)
{
	uint64_t n = 0;

	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		if (!l->stage[g])
			continue;
		pthread_mutex_lock(&l->stage[g]->lock);
		n += l->stage[g]->unfinished;
		pthread_mutex_unlock(&l->stage[g]->lock);
	}
	return n;
}
