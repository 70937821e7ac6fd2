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
 * Blocks are used in turn, and a hash table finds them.  To find a block and hold it takes no
 * lock.  One atomic addition to its state both holds it and tells whether that was possible.  The
 * table changes under the lock, once for each decoded chunk.  A thread that searches it meanwhile
 * may miss an entry, and then searches again under the lock.
 */
#include "libshard/feed/feed.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/io/io.h"

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

/* With lock. */
static void table_insert(struct stage *s, uint64_t key, uint32_t block)
{
	uint32_t place = home_of(s, key);

	while (atomic_load_explicit(&s->table[place], memory_order_relaxed))
		place = (place + 1) & s->table_mask;
	atomic_store_explicit(&s->block[block].key, key, memory_order_relaxed);
	atomic_store_explicit(&s->table[place], block + 1, memory_order_relaxed);
}

/* With lock.  Entries behind the hole move up, so that searches find them. */
static void table_remove(struct stage *s, uint32_t block)
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
		table_remove(s, i);
		return i;
	}
	return BLOCK_NONE;
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
	if (find(s, key, &place, block)) {
		answer = hold(&s->block[*block], key) ? STAGE_READY : STAGE_BUSY;
	} else {
		*block = make_room(s);
		answer = *block == BLOCK_NONE ? STAGE_FULL : STAGE_FILL;
	}
	if (answer == STAGE_FILL)
		table_insert(s, key, *block);
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
		table_remove(s, block);
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

static struct stage *stage_open(uint8_t *memory, uint64_t block_bytes, uint32_t block_count, bool counts_unfinished)
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

/* ---- the stages of a feed: one for each group whose chunks are worth keeping ---- */

/*
 * A feed keeps as many decoded chunks as its order needs to decode each of them once.  Those are
 * the chunks of a window of this rank, and chunks of the next window that other threads need while
 * one thread is still in this one.  This decides about speed only, never about the order.
 */

#define BLOCK_ALIGN  64u
#define BLOCKS_MAX   (UINT64_C(1) << 30)
#define MEMORY_SHARE 4u /* of the available memory; the trainer and the page cache need the rest */

/* The size of the stage of a group. */
struct stage_size {
	uint64_t block_bytes, block_count; /* 0 blocks: the group needs no stage */
	bool whole_chunks;		   /* this rank takes all records of a chunk */
};

/* ---- how large ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Chunks that hold records of a run: of a selection more of them, with fewer records of each. */
static uint64_t chunks_of_run(const struct steps *steps, uint64_t unit, bool whole)
{
	const struct order_params *p = &steps->params;
	uint64_t touched;

	whole &= p->run_records % unit == 0 && p->phase_unit_records % unit == 0;
	if (!steps->selection)
		return ceil_div(p->run_records, unit) + !whole; /* a run may begin within a chunk */
	touched = selection_units(steps->selection, unit);
	return (uint64_t)((double)p->run_records * (double)touched / (double)p->record_count) + 2;
}

/* Chunks that a rank needs at the same time, in an order in windows. */
static uint64_t window_chunks(const struct steps *steps, uint64_t unit, bool whole, uint64_t rows)
{
	const struct order_params *p = &steps->params;
	uint64_t world = steps->rank.world;
	uint64_t lanes = p->lane_count, runs = p->record_count / p->run_records, lane_runs = runs / lanes;
	uint64_t windows = lane_runs / p->window_runs ? lane_runs / p->window_runs : 1;
	uint64_t window_runs = ceil_div(lane_runs, windows), own_lanes = lanes / common_divisor(lanes, world);
	uint64_t run_chunks, window, rest, window_rows, margin;

	run_chunks = chunks_of_run(steps, unit, whole);
	window = mul_capped(mul_capped(own_lanes, window_runs), run_chunks);
	rest = add_capped(mul_capped(runs % lanes, run_chunks), p->record_count % p->run_records / unit + 2);
	window_rows = mul_capped(mul_capped(lanes, window_runs), p->run_records) / world;
	margin = window_rows ? min_u64(rows, mul_capped(window, ceil_div(rows, window_rows))) : rows;
	return add_capped(window > rest ? window : rest, margin);
}

/* Chunks that a rank needs at the same time, of all that the shards have. */
static uint64_t wanted_chunks(const struct shard_dataset *ds, const struct steps *steps, uint64_t rows_ahead,
			      uint64_t unit)
{
	bool whole = true; /* no shard ends with a shorter chunk */
	uint64_t chunks = 0, wanted;
	struct steps component;

	for (uint64_t i = 0; i < ds->m.shard_count; i++) {
		uint64_t records = ds->first_record[i + 1] - ds->first_record[i];

		chunks += ceil_div(records, unit);
		whole &= records % unit == 0;
	}
	wanted = chunks;
	if (steps->params.kind == ORDER_TWO_LEVELS && !steps->mix)
		wanted = window_chunks(steps, unit, whole, rows_ahead);
	if (steps->params.kind == ORDER_TWO_LEVELS && steps->mix) {
		wanted = 0;
		for (uint32_t d = 0; steps_of_component(steps, d, &component); d++)
			wanted = add_capped(wanted, window_chunks(&component, unit, whole, rows_ahead));
	}
	if (steps->params.kind == ORDER_SEQUENTIAL && !steps->mix)
		wanted = mul_capped(rows_ahead, steps->rank.world) / unit + 2;
	return min_u64(wanted, chunks);
}

/* The parts of a mixture share it, so a block has room for the longest chunk of any of them. */
static struct stage_size plan_one(const struct layouts *layouts, uint32_t g, const struct shard_dataset *ds,
				  const struct steps *steps, uint64_t rows_ahead)
{
	struct stage_size size = {0};
	const struct layout *layout;
	uint64_t unit = 0;

	for (uint32_t i = 0; (layout = layouts_at(layouts, i)) != NULL; i++) {
		const struct shard_group *group = &layout->schema->group[g];

		if (!layout_has_group(layout, g) || group->codec == SHARD_RAW ||
		    group->unit_records == 1) /* needed only once */
			continue;
		size.block_bytes =
			max_u64(size.block_bytes, align_up(group->stride * group->unit_records, BLOCK_ALIGN));
		unit = unit ? min_u64(unit, group->unit_records) : group->unit_records;
	}
	if (!unit)
		return size;
	size.block_count = min_u64(wanted_chunks(ds, steps, rows_ahead, unit), BLOCKS_MAX);
	size.whole_chunks = !steps->selection && !steps->mix &&
			    (steps->rank.world == 1 || (steps->params.kind == ORDER_TWO_LEVELS &&
							steps->params.lane_count % steps->rank.world == 0));
	return size;
}

/* ---- life ---- */

int stages_open(struct stages *s, const struct shard_dataset *ds, const struct layouts *layouts,
		const struct steps *steps, uint64_t rows_ahead, uint64_t most_bytes, struct shard_error *err)
{
	struct stage_size size[SHARD_GROUPS_MAX];
	uint64_t wanted = 0, at = 0;

	*s = (struct stages){.bytes = 0};
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		size[g] = plan_one(layouts, g, ds, steps, rows_ahead);
		wanted = add_capped(wanted, mul_capped(size[g].block_count, size[g].block_bytes));
	}
	if (wanted && !most_bytes)
		most_bytes = available_memory_bytes() / MEMORY_SHARE;
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		if (wanted > most_bytes) /* each group gets its share */
			size[g].block_count =
				(uint64_t)((double)size[g].block_count * ((double)most_bytes / (double)wanted));
		s->bytes += size[g].block_count * size[g].block_bytes;
	}
	if (!s->bytes)
		return SHARD_OK;
	s->memory = buffer_open((size_t)s->bytes); /* takes no pages before they are used */
	if (s->memory)
		buffer_keep(s->memory, (size_t)s->bytes);
	for (uint32_t g = 0; s->memory && g < SHARD_GROUPS_MAX; g++) {
		if (!size[g].block_count)
			continue;
		s->of[g] = stage_open((uint8_t *)s->memory + at, size[g].block_bytes, (uint32_t)size[g].block_count,
				      size[g].whole_chunks);
		at += size[g].block_count * size[g].block_bytes;
		if (!s->of[g])
			break;
		if (at == s->bytes)
			return SHARD_OK;
	}
	at = s->bytes;
	stages_close(s, false);
	return error_set(err, SHARD_E_MEMORY,
			 "no memory for %" PRIu64 " bytes of decoded chunks; set a smaller stage_bytes, which is "
			 "slower",
			 at);
}

void stages_close(struct stages *s, bool inherited)
{
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		stage_close(s->of[g], inherited);
	if (s->memory && !inherited)
		buffer_close(s->memory, (size_t)s->bytes);
	*s = (struct stages){.bytes = 0};
}

uint64_t stages_unfinished(struct stages *s)
{
	uint64_t n = 0;

	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		if (!s->of[g])
			continue;
		pthread_mutex_lock(&s->of[g]->lock);
		n += s->of[g]->unfinished;
		pthread_mutex_unlock(&s->of[g]->lock);
	}
	return n;
}
