/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - the calls of a loader: batches one after the other, and going on somewhere else
 *
 * Opening prepares arithmetic only.  Memory and threads come with the first next, and nothing is allocated after it.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/load/pool.h"
#include "libshard/load/settle.h"
#include "libshard/load/token.h"
#include "libshard/store/read/dataset.h"

/* ---- open and close ---- */

static int refuse_empty(const struct shard_loader *l, struct shard_error *err)
{
	uint64_t records = l->ds->m.record_count;

	if (shard_loader_step_count(l))
		return SHARD_OK;
	/* An epoch without a step would train on nothing, and nobody would notice. */
	return records ? error_set(err, SHARD_E_ARGUMENT, "the dataset has %" PRIu64 " records, too few for one batch of %u on each of %u ranks; "
				   "use smaller batches, SHARD_PAD, or SHARD_KEEP", records, l->o.batch_records, l->o.world)
		       : error_set(err, SHARD_E_ARGUMENT, "the dataset has no records, so there is nothing to load");
}

static int check_device_options(struct shard_loader_options *o, struct shard_error *err)
{
	o->device_slot_count = o->device_slot_count ? o->device_slot_count : DEVICE_SLOTS_DEFAULT;
	if (o->device_slot_count < DEVICE_SLOTS_MIN || o->device_slot_count > DEVICE_SLOTS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "options: device_slot_count is %u; must be %u to %u", o->device_slot_count, DEVICE_SLOTS_MIN,
				 DEVICE_SLOTS_MAX);
	if (o->pool_in_place > 1 || (o->pool_in_place && !o->pool_bytes))
		return error_set(err, SHARD_E_ARGUMENT, "options: pool_in_place is %u, pool_bytes %" PRIu64 "; must be at most 1, and 0 without a pool",
				 o->pool_in_place, o->pool_bytes);
	return SHARD_OK;
}

int loader_open_feed(struct shard_loader *l, struct shard_error *err)
{
	const struct feed_options o = {.slot_count = l->o.slot_count, .thread_count = l->o.thread_count, .path = l->o.path,
				       .on_corrupt = l->o.on_corrupt, .stage_bytes = l->o.stage_bytes};

	return feed_open(&l->feed, l->ds, &o, &l->layout, &l->steps, err);
}

int shard_loader_open(struct shard_loader **out, struct shard_dataset *ds, const struct shard_loader_options *opt,
		      struct shard_error *err)
{
	struct shard_loader *l = mem_zalloc(sizeof(*l));
	int rc = l ? options_take(&l->o, sizeof(l->o), opt, err) : error_set(err, SHARD_E_MEMORY, "no memory for a loader");

	if (!rc) {
		l->ds = ds;
		l->asked = l->o;
		rc = check_device_options(&l->o, err);
	}
	if (!rc)
		rc = settle_options(&l->o, ds, &l->steps, err);
	if (!rc)
		rc = refuse_empty(l, err);
	if (!rc && !layout_plan(&l->layout, &ds->m.schema, l->o.batch_records, l->o.pool_in_place))
		rc = error_set(err, SHARD_E_MEMORY, "a batch of %u records does not fit memory; ask for smaller batches", l->o.batch_records);
	if (!rc)
		rc = l->o.pool_bytes ? pool_open(l, err) : loader_open_feed(l, err);
	if (rc) {
		mem_free(l);
		return rc;
	}
	*out = l;
	return SHARD_OK;
}

void shard_loader_close(struct shard_loader *l)
{
	if (!l)
		return;
	device_close(l, cursor_is_inherited(&l->cursor)); /* first: copies read the ring, and give slots to the crew; and kernels the pool */
	pool_close(l);
	feed_close(l->feed);
	mem_free(l);
}

static int start(struct shard_loader *l, struct shard_error *err)
{
	int rc = l->pool ? SHARD_OK : feed_start(l->feed, err);

	if (rc)
		return rc; /* the next call tries again */
	l->start_ns = clock_now_ns();
	l->cursor.owner = getpid();
	return SHARD_OK;
}

/* ---- batches ---- */

void loader_count(struct shard_loader *l, const struct shard_batch *batch)
{
	l->cursor.at.step++;
	l->stats.batch_count++;
	l->stats.record_count += batch->record_count;
	l->stats.bytes += batch->record_count * l->layout.record_bytes;
}

bool loader_ends_epoch(struct shard_loader *l)
{
	if (!steps_ended(&l->steps, &l->cursor.at))
		return false;
	l->cursor.at = (struct place){.epoch = l->cursor.at.epoch + 1};
	return true;
}

int loader_take(struct shard_loader *l, uint32_t *slot, struct shard_error *err)
{
	int rc = l->device ? device_await(l, err) : SHARD_OK; /* slots may be with the driver, behind the trainer's work */

	return rc ? rc : feed_next(l->feed, slot, err);
}

static int next(struct shard_loader *l, struct shard_batch *batch, struct shard_error *err)
{
	uint32_t slot;
	int rc;

	if (loader_ends_epoch(l))
		return SHARD_END;
	if (l->feed->lent_count == l->o.slot_count)
		return error_set(err, SHARD_E_ARGUMENT, "all %u slots are lent; release a batch before the next one", l->o.slot_count);
	rc = loader_take(l, &slot, err);
	if (rc)
		return rc;
	feed_lend(l->feed, slot, batch);
	loader_count(l, batch);
	return SHARD_OK;
}

int loader_begin(struct shard_loader *l, struct shard_error *err)
{
	int rc = l->cursor.owner ? cursor_check_owner(&l->cursor, err) : start(l, err);

	if (!rc)
		rc = cursor_error(&l->cursor, err);
	return rc || !l->feed ? rc : cursor_error(&l->feed->cursor, err);
}

int shard_loader_next(struct shard_loader *l, struct shard_batch *batch, struct shard_error *err)
{
	int rc = loader_begin(l, err);

	if (!rc && l->pool)
		rc = error_set(err, SHARD_E_ARGUMENT, "this loader has a pool on a GPU and delivers there, by shard_loader_next_device(); open another one "
			       "for batches in host memory");
	else if (!rc && l->device && l->device->slot_count)
		rc = error_set(err, SHARD_E_ARGUMENT, "this loader delivers to a GPU since shard_loader_next_device() was called; open another one for "
			       "batches in host memory");
	return rc ? rc : next(l, batch, err);
}

int shard_loader_wait(struct shard_loader *l, uint64_t timeout_ns, struct shard_error *err)
{
	int rc = l->cursor.owner ? cursor_check_owner(&l->cursor, err) : start(l, err);

	if (rc)
		return rc;
	/* What next says at once is not waited for. */
	if (l->pool)
		return pool_wait(l, timeout_ns, err);
	if (l->cursor.failed || steps_ended(&l->steps, &l->cursor.at) || l->feed->lent_count == l->o.slot_count || device_answers(l) ||
	    feed_await(l->feed, timeout_ns))
		return SHARD_OK;
	return error_set(err, SHARD_E_TIMEOUT, "no batch was ready within %" PRIu64 " ns", timeout_ns);
}

int shard_loader_release(struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err)
{
	int rc = cursor_check_owner(&l->cursor, err);

	if (!rc && batch->slot & DEVICE_BATCH)
		rc = error_set(err, SHARD_E_ARGUMENT, "a batch on a GPU is given back with shard_loader_release_after(), for the GPU may not be done with it");
	if (!rc)
		rc = l->feed ? feed_check_lent(l->feed, batch, err) : error_set(err, SHARD_E_ARGUMENT, "slot %u is not lent: was this batch released before, or is it another loader's?",
			 batch->slot);
	if (rc)
		return rc;
	feed_end_loan(l->feed, batch->slot);
	feed_give(l->feed, batch->slot);
	return SHARD_OK;
}

/* ---- places ---- */

void shard_loader_tell(const struct shard_loader *l, uint64_t *epoch, uint64_t *position)
{
	struct place at = steps_next(&l->steps, l->cursor.at);

	*epoch = at.epoch;
	*position = steps_position(&l->steps, &at);
}

static int move(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err)
{
	if (position > l->steps.rank.record_count)
		return error_set(err, SHARD_E_ARGUMENT, "position %" PRIu64 "; an epoch has %" PRIu64, position, l->steps.rank.record_count);
	cursor_move(&l->cursor, (struct place){.epoch = epoch, .first_position = position});
	device_forget(l);
	if (l->pool)
		pool_move(l, l->cursor.at);
	else
		feed_move(l->feed, l->cursor.at);
	return SHARD_OK;
}

int shard_loader_seek(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err)
{
	int rc = cursor_check_owner(&l->cursor, err);

	return rc ? rc : move(l, epoch, position, err);
}

void shard_loader_token(const struct shard_loader *l, char token[SHARD_TOKEN_BYTES])
{
	struct token t = {.params = l->steps.params};

	dataset_id(l->ds, t.dataset_id);
	shard_loader_tell(l, &t.params.epoch, &t.position);
	token_write(&t, token);
}

/* Is the order of the token the one that the options ask for, as far as they do? */
static int check_token(const struct shard_loader *l, const struct token *t, struct shard_error *err)
{
	const struct order_params *have = &l->steps.params, *want = &t->params;
	const struct shard_loader_options *o = &l->asked;
	char id[65];

	dataset_id(l->ds, id);
	if (strcmp(t->dataset_id, id))
		return error_set(err, SHARD_E_MISMATCH, "the token is of dataset %.16s..., this is %.16s...", t->dataset_id, id);
	if (want->record_count != have->record_count || want->seed != have->seed)
		return error_set(err, SHARD_E_MISMATCH, "the token is of %" PRIu64 " records and seed %" PRIu64 "; the loader has %" PRIu64
				 " and %" PRIu64, want->record_count, want->seed, have->record_count, have->seed);
	if ((o->shuffle != SHARD_SHUFFLE_BY_SIZE && want->kind != have->kind) || (o->run_records && o->run_records != want->run_records) ||
	    (o->phase_unit_records && o->phase_unit_records != want->phase_unit_records) ||
	    (o->window_runs && o->window_runs != want->window_runs) || (o->lane_count && o->lane_count != want->lane_count))
		return error_set(err, SHARD_E_MISMATCH, "the token is of another order than the options ask for: leave shuffle, runs, windows and "
				 "lanes at 0, and the token decides");
	return SHARD_OK;
}

static bool same_order(const struct order_params *a, const struct order_params *b)
{
	return a->kind == b->kind && a->run_records == b->run_records && a->phase_unit_records == b->phase_unit_records &&
	       a->window_runs == b->window_runs && a->lane_count == b->lane_count;
}

/* The token's order in place of ours. */
static int adopt(struct shard_loader *l, const struct token *t, struct shard_error *err)
{
	int rc;

	if (same_order(&l->steps.params, &t->params))
		return SHARD_OK;
	if (l->pool)
		return pool_adopt(l, &t->params, err);
	rc = feed_adopt(l->feed, &t->params, err);
	if (!rc)
		l->steps.params = l->feed->steps.params;
	return rc;
}

int shard_loader_resume(struct shard_loader *l, const char *token, struct shard_error *err)
{
	struct token t;
	int rc = cursor_check_owner(&l->cursor, err);

	if (rc)
		return rc;
	if (!token_read(token, &t))
		return error_set(err, SHARD_E_ARGUMENT, "not a token of shuffle-v1, or not a whole one");
	rc = check_token(l, &t, err);
	if (!rc && (!order_params_allowed(&t.params) || t.position > t.params.record_count))
		rc = error_set(err, SHARD_E_ARGUMENT, "the token names an order that cannot be");
	if (!rc)
		rc = adopt(l, &t, err);
	return rc ? rc : move(l, t.params.epoch, t.position, err);
}

void shard_loader_order_info(const struct shard_loader *l, struct shard_order_info *out)
{
	const struct order_params *p = &l->steps.params;

	*out = (struct shard_order_info){
		.record_count = p->record_count,
		.seed = p->seed,
		.run_records = p->run_records,
		.phase_unit_records = p->phase_unit_records,
		.kind = p->kind == ORDER_SEQUENTIAL  ? SHARD_SEQUENTIAL
			: p->kind == ORDER_ONE_LEVEL ? SHARD_SHUFFLE_GLOBAL
						     : SHARD_SHUFFLE_WINDOWS,
		.window_runs = p->window_runs,
		.lane_count = p->lane_count,
	};
}

/* ---- memory and statistics ---- */

uint64_t shard_loader_ring_bytes(const struct shard_loader *l)
{
	return ring_bytes(&(l->pool ? l->pool->feed : l)->feed->ring);
}

int shard_loader_lend(struct shard_loader *l, void *memory, uint64_t bytes, struct shard_error *err)
{
	if (l->pool)
		return shard_loader_lend(l->pool->feed, memory, bytes, err);
	return feed_use_memory(l->feed, memory, bytes, err);
}

int shard_loader_last_damage(struct shard_loader *l, struct shard_error *out)
{
	int rc = SHARD_END;

	if (l->pool)
		return shard_loader_last_damage(l->pool->feed, out);
	return feed_last_damage(l->feed, out) ? SHARD_OK : rc;
}

void shard_loader_stats(struct shard_loader *l, struct shard_loader_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (!l->cursor.owner || cursor_is_inherited(&l->cursor))
		return;
	if (l->pool) {
		shard_loader_stats(l->pool->feed, out); /* who prepares batches; but what was lent by next is ours: */
		out->batch_count = l->stats.batch_count;
		out->record_count = l->stats.record_count;
		out->bytes = l->stats.bytes;
		return;
	}
	feed_stats(l->feed, out);
	out->batch_count = l->stats.batch_count;
	out->record_count = l->stats.record_count;
	out->bytes = l->stats.bytes;
	out->device_bytes = l->stats.device_bytes;
	out->pageable_bytes = l->stats.pageable_bytes;
	out->pinned_bytes = pins_bytes(l);
	out->elapsed_ns = clock_now_ns() - l->start_ns;
}
