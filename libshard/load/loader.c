/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - the calls of a loader: batches one after the other, and going on somewhere else
 *
 * Opening prepares arithmetic only.  Memory and threads come with the first next, and nothing is allocated after it.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/load/pool.h"
#include "libshard/load/stage.h"

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

int shard_loader_open(struct shard_loader **out, struct shard_dataset *ds, const struct shard_loader_options *opt,
		      struct shard_error *err)
{
	struct shard_loader *l = mem_zalloc(sizeof(*l));
	int rc = l ? options_take(&l->o, sizeof(l->o), opt, err) : error_set(err, SHARD_E_MEMORY, "no memory for a loader");

	if (!rc) {
		l->ds = ds;
		l->asked = l->o;
		rc = settle_options(l, err);
	}
	if (!rc)
		rc = refuse_empty(l, err);
	if (!rc && !ring_plan(&ds->m.schema, l->o.batch_records, l->o.pool_in_place, &l->layout))
		rc = error_set(err, SHARD_E_MEMORY, "a batch of %u records does not fit memory; ask for smaller batches", l->o.batch_records);
	if (!rc) {
		l->guess_records = ds->first_record[1] ? ds->first_record[1] : 1;
		rc = l->o.pool_bytes ? pool_open(l, err) : SHARD_OK;
	}
	if (rc) {
		mem_free(l);
		return rc;
	}
	*out = l;
	return SHARD_OK;
}

bool loader_is_inherited(const struct shard_loader *l)
{
	return l->owner && l->owner != getpid();
}

int loader_check_owner(const struct shard_loader *l, struct shard_error *err)
{
	if (!loader_is_inherited(l))
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT, "this loader belongs to process %ld; open another one after fork", (long)l->owner);
}

void shard_loader_close(struct shard_loader *l)
{
	if (!l)
		return;
	device_close(l, loader_is_inherited(l)); /* first: copies read the ring, and give slots to the crew; and kernels the pool */
	pool_close(l);
	crew_close(l, loader_is_inherited(l));
	ring_close(l, loader_is_inherited(l));
	mem_free(l);
}

static int start(struct shard_loader *l, struct shard_error *err)
{
	int rc = l->pool ? SHARD_OK : ring_open(l, err);

	if (rc)
		return rc; /* the next call tries again */
	rc = l->pool ? SHARD_OK : crew_open(l, err);
	if (rc) {
		ring_close(l, false);
		return rc;
	}
	l->start_ns = clock_now_ns();
	l->owner = getpid();
	return SHARD_OK;
}

/* ---- batches ---- */

int loader_fail(struct shard_loader *l, int rc, const struct shard_error *why, struct shard_error *err)
{
	l->failed = rc;
	l->why = *why;
	if (err)
		*err = *why;
	return rc;
}

void loader_count(struct shard_loader *l, const struct shard_batch *batch)
{
	l->at.step++;
	l->stats.batch_count++;
	l->stats.record_count += batch->record_count;
	l->stats.bytes += batch->record_count * l->layout.record_bytes;
}

bool loader_ends_epoch(struct shard_loader *l)
{
	if (!place_ended(l, &l->at))
		return false;
	l->at = (struct place){.epoch = l->at.epoch + 1};
	return true;
}

int loader_take(struct shard_loader *l, uint32_t *slot, struct shard_error *err)
{
	int rc = l->device ? device_await(l, err) : SHARD_OK; /* slots may be with the driver, behind the trainer's work */

	if (rc)
		return rc;
	*slot = crew_take(l);
	if (l->slot[*slot].rc) {
		rc = loader_fail(l, l->slot[*slot].rc, &l->slot[*slot].why, err);
		crew_give(l, *slot);
	}
	return rc;
}

static int next(struct shard_loader *l, struct shard_batch *batch, struct shard_error *err)
{
	uint32_t slot;
	int rc;

	if (loader_ends_epoch(l))
		return SHARD_END;
	if (l->lent_count == l->o.slot_count)
		return error_set(err, SHARD_E_ARGUMENT, "all %u slots are lent; release a batch before the next one", l->o.slot_count);
	rc = loader_take(l, &slot, err);
	if (rc)
		return rc;
	ring_describe(l, &l->slot[slot], slot, batch);
	l->slot[slot].lent = true;
	l->lent_count++;
	loader_count(l, batch);
	return SHARD_OK;
}

int loader_begin(struct shard_loader *l, struct shard_error *err)
{
	int rc = l->owner ? loader_check_owner(l, err) : start(l, err);

	if (!rc && l->failed && err)
		*err = l->why;
	return rc ? rc : l->failed;
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
	int rc = l->owner ? loader_check_owner(l, err) : start(l, err);

	if (rc)
		return rc;
	/* What next says at once is not waited for. */
	if (l->pool)
		return pool_wait(l, timeout_ns, err);
	if (l->failed || place_ended(l, &l->at) || l->lent_count == l->o.slot_count || device_answers(l) || crew_await(l, timeout_ns))
		return SHARD_OK;
	return error_set(err, SHARD_E_TIMEOUT, "no batch was ready within %" PRIu64 " ns", timeout_ns);
}

bool loader_is_of(const struct shard_loader *l, const struct slot *s, const struct shard_batch *batch)
{
	struct shard_batch now;

	if (s->record != batch->record)
		return false;
	ring_describe(l, s, batch->slot, &now);
	return now.epoch == batch->epoch && now.position == batch->position;
}

int loader_check_lent(const struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err)
{
	if (l->slot && batch->slot < l->o.slot_count && l->slot[batch->slot].lent && loader_is_of(l, &l->slot[batch->slot], batch))
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT, "slot %u is not lent: was this batch released before, or is it another loader's?",
			 batch->slot);
}

int shard_loader_release(struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err)
{
	int rc = loader_check_owner(l, err);

	if (!rc && batch->slot & DEVICE_BATCH)
		rc = error_set(err, SHARD_E_ARGUMENT, "a batch on a GPU is given back with shard_loader_release_after(), for the GPU may not be done with it");
	if (!rc)
		rc = loader_check_lent(l, batch, err);
	if (rc)
		return rc;
	l->slot[batch->slot].lent = false;
	l->lent_count--;
	crew_give(l, batch->slot);
	return SHARD_OK;
}

/* ---- places ---- */

void shard_loader_tell(const struct shard_loader *l, uint64_t *epoch, uint64_t *position)
{
	bool ended = place_ended(l, &l->at);

	*epoch = l->at.epoch + ended;
	*position = ended ? 0 : l->at.first_position + l->at.step * l->o.world * l->o.batch_records;
}

static int move(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err)
{
	if (position > l->rank.record_count)
		return error_set(err, SHARD_E_ARGUMENT, "position %" PRIu64 "; an epoch has %" PRIu64, position, l->rank.record_count);
	l->at = (struct place){.epoch = epoch, .first_position = position};
	l->failed = SHARD_OK;
	device_forget(l);
	if (l->pool)
		pool_move(l, l->at);
	else if (l->owner)
		crew_move(l, l->at);
	return SHARD_OK;
}

int shard_loader_seek(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err)
{
	int rc = loader_check_owner(l, err);

	return rc ? rc : move(l, epoch, position, err);
}

void shard_loader_token(const struct shard_loader *l, char token[SHARD_TOKEN_BYTES])
{
	struct token t = {.params = l->params};

	dataset_id(l->ds, t.dataset_id);
	shard_loader_tell(l, &t.params.epoch, &t.position);
	token_write(&t, token);
}

/* Is the order of the token the one that the options ask for, as far as they do? */
static int check_token(const struct shard_loader *l, const struct token *t, struct shard_error *err)
{
	const struct order_params *have = &l->params, *want = &t->params;
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
	struct epoch_order *orders = NULL;

	if (same_order(&l->params, &t->params))
		return SHARD_OK;
	if (l->pool)
		return pool_adopt(l, &t->params, err);
	if (l->owner) {
		orders = crew_make_orders(l, &t->params, err);
		if (!orders)
			return SHARD_E_MEMORY;
		crew_rest(l);
	}
	crew_use_orders(l, orders, &t->params);
	return SHARD_OK;
}

int shard_loader_resume(struct shard_loader *l, const char *token, struct shard_error *err)
{
	struct token t;
	int rc = loader_check_owner(l, err);

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
	const struct order_params *p = &l->params;

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
	return ring_bytes(l->pool ? l->pool->feed : l);
}

int shard_loader_lend(struct shard_loader *l, void *memory, uint64_t bytes, struct shard_error *err)
{
	if (l->pool)
		return shard_loader_lend(l->pool->feed, memory, bytes, err);
	if (l->owner)
		return error_set(err, SHARD_E_ARGUMENT, "the ring exists already; lend memory before the first next");
	if (!memory || (uintptr_t)memory % LOADER_ARRAY_ALIGN || bytes < ring_bytes(l))
		return error_set(err, SHARD_E_ARGUMENT, "%" PRIu64 " bytes at %p; the ring needs %" PRIu64 ", at a multiple of %u", bytes, memory,
				 ring_bytes(l), LOADER_ARRAY_ALIGN);
	l->lent_ring = memory;
	return SHARD_OK;
}

int shard_loader_last_damage(struct shard_loader *l, struct shard_error *out)
{
	int rc = SHARD_END;

	if (l->pool)
		return shard_loader_last_damage(l->pool->feed, out);
	if (!l->owner || loader_is_inherited(l))
		return rc;
	pthread_mutex_lock(&l->lock);
	if (l->damage.status) {
		*out = l->damage;
		rc = SHARD_OK;
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

void shard_loader_stats(struct shard_loader *l, struct shard_loader_stats *out)
{
	struct timespec t;
	clockid_t clock;

	memset(out, 0, sizeof(*out));
	if (!l->owner || loader_is_inherited(l))
		return;
	if (l->pool) {
		shard_loader_stats(l->pool->feed, out); /* who prepares batches; but what was lent by next is ours: */
		out->batch_count = l->stats.batch_count;
		out->record_count = l->stats.record_count;
		out->bytes = l->stats.bytes;
		return;
	}
	pthread_mutex_lock(&l->lock);
	*out = l->stats;
	pthread_mutex_unlock(&l->lock);
	out->pinned_bytes = pins_bytes(l);
	out->thread_count = l->member_count;
	out->stage_bytes = l->stage_bytes;
	out->unfinished_chunk_count = stage_unfinished(l);
	out->elapsed_ns = clock_now_ns() - l->start_ns;
	for (uint32_t i = 0; i < l->member_count; i++)
		if (!pthread_getcpuclockid(l->member[i].thread, &clock) && !clock_gettime(clock, &t))
			out->fill_cpu_ns += (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
