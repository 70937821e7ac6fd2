/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c - a feed hands out filled slots in the order of steps, and takes them back
 *
 * A feed knows nothing about GPUs, pools or the ends of epochs: its steps go on for ever.
 * feed_open() prepares arithmetic only.  feed_start() allocates memory and starts threads, which
 * belong to this process.  After that only the dataset allocates, when it opens a shard.
 *
 * Only the consumer calls these functions, except where they say otherwise.  The consumer is the
 * thread that asks for batches.
 */
#include "libshard/feed/feed.h"

#include <inttypes.h>
#include <unistd.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"

/* ---- how far a consumer is: its place, its process, and the error that stopped it ---- */

/*
 * A feed has a cursor, and so has the loader on top of it, which may be some steps behind.  Only
 * the consumer uses them, so they need no lock.
 */

bool cursor_is_inherited(const struct cursor *c)
{
	return c->owner && c->owner != getpid();
}

int cursor_check_owner(const struct cursor *c, struct shard_error *err)
{
	if (!cursor_is_inherited(c))
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT, "this loader belongs to process %ld; open another one after fork",
			 (long)c->owner);
}

int cursor_fail(struct cursor *c, int rc, const struct shard_error *why, struct shard_error *err)
{
	c->failed = rc;
	c->why = *why;
	return cursor_error(c, err);
}

int cursor_error(const struct cursor *c, struct shard_error *err)
{
	if (c->failed && err)
		*err = c->why;
	return c->failed;
}

void cursor_move(struct cursor *c, struct step_place to)
{
	c->at = to;
	c->failed = SHARD_OK;
}

/* ---- where the rows of slots come from, which all threads share: a dataset, its paths, its decoded chunks ---- */

static void source_close(struct row_source *s, bool inherited)
{
	stages_close(&s->stages, inherited);
	paths_close(&s->paths, inherited);
	mem_free(s->layouts.part);
	s->layouts.part = NULL;
	if (!inherited)
		pthread_mutex_destroy(&s->lock);
}

static int source_open(struct row_source *s, struct shard_dataset *ds, const struct shard_loader_options *o,
		       const struct layout *layout, const struct steps *steps, uint64_t rows_ahead,
		       struct shard_error *err)
{
	bool has = true;
	int rc;

	s->ds = ds;
	s->steps = steps;
	s->on_corrupt = o->repair.on_corrupt;
	s->guess_records = ds->first_record[1] ? ds->first_record[1] : 1;
	s->damage.status = SHARD_OK;
	atomic_init(&s->residents, NULL);
	pthread_mutex_init(&s->lock, NULL);
	s->layouts = (struct layouts){.batch = layout};
	if (ds->parts_differ) {
		s->layouts.part = mem_array(ds->part_count, sizeof(*s->layouts.part));
		s->layouts.part_shard = ds->part_shard;
		s->layouts.part_count = ds->part_count;
		has = s->layouts.part;
	}
	for (uint32_t p = 0; has && p < s->layouts.part_count; p++)
		layout_plan_part(&s->layouts.part[p], layout, &ds->part[p]->m.schema);
	if (has && paths_open(&s->paths, ds, &s->layouts, o->path))
		rc = stages_open(&s->stages, ds, &s->layouts, steps, rows_ahead, o->stage_bytes, err);
	else
		rc = error_set(err, SHARD_E_MEMORY, "no memory for the paths of %" PRIu64 " shards", ds->m.shard_count);
	if (rc)
		source_close(s, false);
	return rc;
}

/* ---- life ---- */

#define STEPS_AHEAD 4u /* per thread; a thread that is further behind decodes some chunks again */

int feed_open(struct feed **out, struct shard_dataset *ds, const struct shard_loader_options *o,
	      const struct layout *layout, const struct transformed *transformed, const struct steps *steps,
	      struct shard_error *err)
{
	struct feed *f = mem_zalloc(sizeof(*f));

	if (!f)
		return error_set(err, SHARD_E_MEMORY, "no memory for a loader");
	f->ds = ds;
	f->o = *o;
	f->layout = *layout;
	f->transformed = transformed;
	f->steps = *steps;
	f->ring.slot_bytes = layout->slot_bytes;
	f->ring.slot_count = o->slot_count;
	*out = f;
	return SHARD_OK;
}

static void close_again(struct feed *f, bool inherited)
{
	slot_cold_close(&f->again_scratch, inherited);
	mem_free(f->again_scratch.chunk);
	slot_close(&f->again);
	if (f->again.memory && !inherited)
		buffer_close(f->again.memory, (size_t)f->ring.slot_bytes);
	f->again = (struct slot){.memory = NULL};
	f->again_scratch = (struct scratch){.chunk = NULL};
}

void feed_close(struct feed *f)
{
	bool inherited;

	if (!f)
		return;
	inherited = cursor_is_inherited(&f->cursor);
	if (f->cursor.owner) {
		crew_close(&f->crew, inherited);
		close_again(f, inherited);
		source_close(&f->source, inherited);
		ring_close(&f->ring, inherited);
	}
	mem_free(f->ring.lent);
	mem_free(f);
}

static int check_no_ring(const struct feed *f, const char *call, struct shard_error *err)
{
	if (!f->cursor.owner)
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT, "the ring exists already; call %s() before the first batch is taken",
			 call);
}

/* `memory` has an address for each slot.  If it is NULL, the slots lie one behind the other from `first` on. */
static int lend_ring(struct feed *f, void *const *memory, void *first, struct shard_error *err)
{
	void **lent = mem_array(f->ring.slot_count, sizeof(*lent));

	if (!lent)
		return error_set(err, SHARD_E_MEMORY, "no memory for the addresses of %u slots", f->ring.slot_count);
	for (uint32_t i = 0; i < f->ring.slot_count; i++)
		lent[i] = memory ? memory[i] : (uint8_t *)first + i * f->ring.slot_bytes;
	mem_free(f->ring.lent);
	f->ring.lent = lent;
	return SHARD_OK;
}

int feed_use_memory(struct feed *f, void *memory, uint64_t bytes, struct shard_error *err)
{
	int rc = check_no_ring(f, "shard_loader_lend", err);

	if (rc)
		return rc;
	if (!memory || (uintptr_t)memory % LAYOUT_ALIGN || bytes < ring_bytes(&f->ring))
		return error_set(err, SHARD_E_ARGUMENT,
				 "the memory has %" PRIu64 " bytes at %p; the ring needs %" PRIu64 " bytes, at "
				 "a multiple of %u",
				 bytes, memory, ring_bytes(&f->ring), LAYOUT_ALIGN);
	return lend_ring(f, NULL, memory, err);
}

static int check_slot(const struct feed *f, const void *memory, struct shard_error *err)
{
	if (memory && (uintptr_t)memory % LAYOUT_ALIGN == 0)
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT,
			 "the memory for a slot is at %p; it needs %" PRIu64 " bytes, at a multiple of %u", memory,
			 f->ring.slot_bytes, LAYOUT_ALIGN);
}

int feed_use_slots(struct feed *f, void *const *memory, uint32_t count, struct shard_error *err)
{
	int rc = check_no_ring(f, "shard_loader_lend_slots", err);

	if (!rc && count != f->ring.slot_count)
		rc = error_set(err, SHARD_E_ARGUMENT, "memory for %u slots is lent; the ring has %u", count,
			       f->ring.slot_count);
	for (uint32_t i = 0; !rc && i < count; i++)
		rc = check_slot(f, memory[i], err);
	return rc ? rc : lend_ring(f, memory, NULL, err);
}

int feed_check_swap(const struct feed *f, const void *memory, struct shard_error *err)
{
	if (!f->ring.lent)
		return error_set(err, SHARD_E_ARGUMENT,
				 "this ring is the loader's own memory, which nobody can keep; lend memory with "
				 "shard_loader_lend_slots() before the first batch is taken");
	return check_slot(f, memory, err);
}

int feed_start(struct feed *f, struct shard_error *err)
{
	/* While one thread is still at the end of a window, the others may be this many rows ahead. */
	uint64_t threads = f->o.thread_count, steps = min_u64(f->o.slot_count, STEPS_AHEAD * threads);
	uint64_t rows_ahead = threads * BLOCK_ROWS + (threads > 1 ? steps * steps_rows(&f->steps) : 0);
	int rc = ring_open(&f->ring, steps_rows(&f->steps), f->layout.whole_count, feed_resident_groups(f), err);

	if (rc)
		return rc;
	f->crew = (struct crew){.source = &f->source,
				.ring = &f->ring,
				.steps = &f->steps,
				.transformed = f->transformed,
				.layout = &f->layout,
				.thread_count = f->o.thread_count};
	rc = source_open(&f->source, f->ds, &f->o, f->transformed ? &f->transformed->records : &f->layout, &f->steps,
			 rows_ahead, err);
	if (!rc) {
		rc = crew_open(&f->crew, f->cursor.at, err);
		if (rc)
			source_close(&f->source, false);
	}
	if (rc)
		ring_close(&f->ring, false);
	else
		f->cursor.owner = getpid();
	return rc;
}

uint32_t feed_resident_groups(const struct feed *f)
{
	return f->transformed ? 0 : f->layout.blocks & layout_unread_groups(&f->layout);
}

void feed_use_residents(struct feed *f, const struct residents *r)
{
	atomic_store_explicit(&f->source.residents, r, memory_order_release);
	if (!r)
		crew_rest(&f->crew);
}

/* ---- rows that are brought again ---- */

/* Only the pages of such rows are ever touched. */
static int open_again(struct feed *f, struct shard_error *err)
{
	uint8_t *memory;
	bool has;

	if (f->again.memory)
		return SHARD_OK;
	memory = buffer_open((size_t)f->ring.slot_bytes);
	if (memory)
		buffer_keep(memory, (size_t)f->ring.slot_bytes);
	has = slot_open(&f->again, memory, steps_rows(&f->steps), f->layout.whole_count, 0) && memory;
	f->again_scratch.chunk = mem_alloc((size_t)slot_packed_chunk_bytes(&f->source.layouts) + 1);
	if (has && f->again_scratch.chunk)
		return SHARD_OK;
	close_again(f, false);
	return error_set(err, SHARD_E_MEMORY, "no memory to bring rows of a batch of %u records again",
			 steps_rows(&f->steps));
}

int feed_bring_again(struct feed *f, const struct slot *like, uint32_t first, uint32_t end, const struct slot **out,
		     uint64_t *repaired, struct shard_error *err)
{
	struct fill_counts counts = {0};
	struct slot *s = &f->again;
	struct step_rows rows;
	int rc = open_again(f, err);

	if (rc)
		return rc;
	guard_ask(); /* this thread is the caller's */
	s->place = like->place;
	s->first = first;
	s->rows = end;
	s->doubted = true;
	memcpy(s->component, like->component, end * sizeof(*s->component));
	memcpy(s->row_flags, like->row_flags, end);
	for (uint32_t i = first; i < end; i++) /* back to numbers of the feed's dataset: see steps_name() */
		s->record[i] = like->record[i] + steps_source(&f->steps, slot_rows(s), i).base;
	rc = transformed_fill(NULL, &f->source, &f->again_scratch, s, &f->layout, &counts, err);
	rows = (struct step_rows){s->record + first, s->row_flags + first, s->component + first};
	steps_name(&f->steps, rows, end - first);
	if (rc) /* as of a slot that could not be filled */
		counts.substituted = counts.masked = 0;
	crew_count(&f->crew, &counts);
	*repaired = counts.substituted + counts.masked;
	*out = s;
	return rc;
}

/* ---- slots ---- */

/*
 * Count rows that were substituted or masked.  Too many in one epoch are CORRUPT, and are not
 * counted.  A record that stays damaged comes in each epoch, so epochs are not added up.
 */
int feed_count_repaired(struct feed *f, uint64_t epoch, uint64_t rows, struct shard_error *err)
{
	struct shown s;

	if (epoch != f->repaired_epoch)
		f->repaired = 0;
	f->repaired_epoch = epoch;
	if (rows > f->o.repair.corrupt_most - f->repaired)
		return error_set(err, SHARD_E_CORRUPT,
				 "%s: epoch %" PRIu64 ": %" PRIu64 " rows were substituted or masked, and %" PRIu64
				 " more would be; repair.corrupt_most is %" PRIu64
				 ": restore the damaged shards, or set a higher repair.corrupt_most",
				 show(&s, f->ds->dir), epoch, f->repaired, rows, f->o.repair.corrupt_most);
	f->repaired += rows;
	return SHARD_OK;
}

int feed_next(struct feed *f, uint32_t *slot, uint64_t *repaired, struct shard_error *err)
{
	struct claim *claim;
	uint64_t rows;
	int rc = cursor_error(&f->cursor, err);

	if (rc)
		return rc;
	*slot = crew_take(&f->crew);
	claim = &f->crew.claim[*slot];
	rows = claim->counts.substituted + claim->counts.masked;
	if (repaired)
		*repaired = rows;
	else if (!claim->rc)
		claim->rc = feed_count_repaired(f, f->ring.slot[*slot].place.epoch, rows, &claim->why);
	if (claim->rc) {
		rc = cursor_fail(&f->cursor, claim->rc, &claim->why, err);
		crew_give(&f->crew, *slot);
		return rc;
	}
	f->cursor.at = f->ring.slot[*slot].place;
	f->cursor.at.step++;
	return SHARD_OK;
}

bool feed_has_sound(struct feed *f, uint32_t *slot)
{
	return !f->cursor.failed && crew_has_sound(&f->crew, slot);
}

bool feed_await(struct feed *f, uint64_t most_ns)
{
	return f->cursor.failed || crew_await(&f->crew, most_ns);
}

void feed_give(struct feed *f, uint32_t slot)
{
	crew_give(&f->crew, slot);
}

/* ---- places ---- */

void feed_move(struct feed *f, struct step_place to)
{
	cursor_move(&f->cursor, to);
	if (f->cursor.owner)
		crew_move(&f->crew, to);
}

int feed_adopt(struct feed *f, const struct order_params *params, const struct steps_early *early,
	       struct shard_error *err)
{
	struct epoch_orders orders;
	struct steps steps = f->steps;
	int rc;

	steps.params = *params;
	steps.params.epoch = 0;
	steps.early = *early;
	if (f->steps.mix) {
		rc = mix_order_adopt(f->steps.mix, params, err); /* feed_move() drops what is being filled */
		if (rc)
			return rc;
		if (f->cursor.owner)
			crew_rest(&f->crew);
	} else if (f->cursor.owner) {
		rc = epoch_orders_open(&orders, f->o.thread_count, &steps, err);
		if (rc)
			return rc;
		crew_rest(&f->crew);
		crew_use_orders(&f->crew, &orders);
	}
	f->steps = steps;
	return SHARD_OK;
}

/* ---- batches in host memory ---- */

void feed_lend(struct feed *f, uint32_t slot, struct shard_batch *batch)
{
	slot_describe(&f->ring.slot[slot], &f->layout, &f->steps, slot, batch);
	feed_lend_again(f, slot);
}

void feed_lend_again(struct feed *f, uint32_t slot)
{
	f->ring.slot[slot].lent = true;
	f->lent_count++;
}

int feed_check_lent(const struct feed *f, const struct shard_batch *batch, struct shard_error *err)
{
	if (f->ring.slot && batch->slot < f->ring.slot_count &&
	    slot_is_lent_as(&f->ring.slot[batch->slot], &f->steps, batch))
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT,
			 "the caller does not hold slot %u: was this batch released before, or does it belong to "
			 "another loader?",
			 batch->slot);
}

void feed_end_loan(struct feed *f, uint32_t slot)
{
	f->ring.slot[slot].lent = false;
	f->lent_count--;
}

/* ---- what it did ---- */

void feed_stats(struct feed *f, struct shard_loader_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (!f->cursor.owner || cursor_is_inherited(&f->cursor))
		return;
	crew_stats(&f->crew, out);
	out->stage_bytes = f->source.stages.bytes;
	out->unfinished_chunk_count = stages_unfinished(&f->source.stages);
}

bool feed_last_damage(struct feed *f, struct shard_error *out)
{
	struct row_source *s = &f->source;
	bool has;

	if (!f->cursor.owner || cursor_is_inherited(&f->cursor))
		return false;
	pthread_mutex_lock(&s->lock);
	has = s->damage.status != SHARD_OK;
	if (has)
		*out = s->damage;
	pthread_mutex_unlock(&s->lock);
	return has;
}
