/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume.c - tells the place of a loader, and moves it: seek and tokens
 */
#include <inttypes.h>

#include "libshard/base/error.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/loader/loader.h"
#include "libshard/order/order.h"

void shard_loader_tell(const struct shard_loader *l, uint64_t *epoch, uint64_t *position)
{
	struct step_place at = steps_next(&l->steps, l->cursor.at);

	*epoch = at.epoch;
	*position = steps_position(&l->steps, &at);
}

static int check_position(const struct shard_loader *l, const struct step_place *at, struct shard_error *err)
{
	uint64_t most = steps_epoch_records(&l->steps, at->epoch);

	if (at->first_position <= most)
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT,
			 "position is %" PRIu64 "; must be at most %" PRIu64 ", the records of an epoch",
			 at->first_position, most);
}

static void move(struct shard_loader *l, struct step_place to)
{
	cursor_move(&l->cursor, to);
	device_slots_forget(&l->device_slots);
	if (l->pool)
		pool_move(l->pool, to);
	else
		feed_move(l->feed, to);
}

int shard_loader_seek(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err)
{
	const struct step_place to = {.epoch = epoch, .first_position = position};
	int rc = cursor_check_owner(&l->cursor, err);

	if (!rc)
		rc = loader_check_epoch(l, epoch, err);
	if (!rc)
		rc = check_position(l, &to, err);
	if (!rc)
		move(l, to);
	return rc;
}

/* ---- tokens ---- */

static struct owner owner_now(const struct shard_loader *l)
{
	struct owner o = {.record_count = l->steps.params.record_count};

	if (l->steps.mix)
		memcpy(o.id, mix_order_mixture(l->steps.mix)->digest, sizeof(o.id));
	else
		dataset_id(l->ds, o.id);
	if (l->steps.selection)
		memcpy(o.selection, l->steps.selection->digest, sizeof(o.selection));
	return o;
}

void shard_loader_token(const struct shard_loader *l, char token[SHARD_TOKEN_BYTES])
{
	uint32_t pixels = l->transform_pixels;
	struct token t = {
		.params = l->steps.params, .is_mix = l->steps.mix, .pixels = pixels ? pixels : l->token_pixels};
	struct owner o;

	shard_loader_tell(l, &t.params.epoch, &t.position);
	o = steps_is_early(&l->steps, t.params.epoch) ? l->before : owner_now(l);
	t.params.record_count = o.record_count;
	memcpy(t.dataset_id, o.id, sizeof(t.dataset_id));
	memcpy(t.selection, o.selection, sizeof(t.selection));
	token_write(&t, token);
}

/* Check that the token is of this dataset, and of an order that the options allow. */
static int check_token(const struct shard_loader *l, const struct token *t, const struct owner *o,
		       struct shard_error *err)
{
	const struct order_params *have = &l->steps.params, *want = &t->params;
	const struct shard_loader_options *asked = &l->asked;

	if (t->is_mix != (l->steps.mix != NULL) || strcmp(t->dataset_id, o->id))
		return error_set(
			err, SHARD_E_MISMATCH, "the token belongs to %s %.16s..., and this is %s %.16s...%s",
			t->is_mix ? "mixture" : "dataset", t->dataset_id, l->steps.mix ? "mixture" : "dataset", o->id,
			!t->is_mix && !l->steps.mix && dataset_has_old_manifest(l->ds, t->dataset_id)
				? ", to which records were appended since; open the loader with resume_appended to "
				  "finish the epoch over the old records, or begin a new epoch"
				: "");
	if (strcmp(t->selection, o->selection))
		return error_set(err, SHARD_E_MISMATCH,
				 "the token belongs to %s%.16s%s of the dataset, and the loader has %s%.16s%s",
				 *t->selection ? "selection " : "all", t->selection, *t->selection ? "..." : "",
				 *o->selection ? "selection " : "all", o->selection, *o->selection ? "..." : "");
	if ((!t->is_mix && want->record_count != o->record_count) || want->seed != have->seed)
		return error_set(err, SHARD_E_MISMATCH,
				 "the token belongs to %" PRIu64 " records and seed %" PRIu64 "; the loader has "
				 "%" PRIu64 " records and seed %" PRIu64,
				 want->record_count, want->seed, o->record_count, have->seed);
	if (asked->order.shuffle == SHARD_SHUFFLE_BY_SIZE && want->kind == ORDER_SEQUENTIAL)
		return error_set(
			err, SHARD_E_MISMATCH,
			"the token belongs to an order without shuffle, and this loader shuffles; open it with "
			"SHARD_SEQUENTIAL to go on in that order, or begin a new epoch");
	if ((asked->order.shuffle != SHARD_SHUFFLE_BY_SIZE && want->kind != have->kind) ||
	    (asked->order.run_records && asked->order.run_records != want->run_records) ||
	    (asked->order.phase_unit_records && asked->order.phase_unit_records != want->phase_unit_records) ||
	    (asked->order.window_runs && asked->order.window_runs != want->window_runs) ||
	    (asked->order.lane_count && asked->order.lane_count != want->lane_count))
		return error_set(err, SHARD_E_MISMATCH,
				 "the token belongs to another order than the options ask for; leave shuffle, runs, "
				 "windows and lanes at 0 to take the token's");
	return SHARD_OK;
}

/*
 * The token is of this dataset before others were appended.  Find what its owner was, and the epochs
 * that have the records of that time.
 */
static int find_before_append(const struct shard_loader *l, const struct token *t, struct owner *o,
			      struct steps_early *early, struct shard_error *err)
{
	uint64_t epoch = t->params.epoch, records = 0;
	int rc = dataset_records_before(l->ds, t->dataset_id, &records, err);

	if (rc)
		return rc;
	*o = (struct owner){.record_count = records};
	memcpy(o->id, t->dataset_id, sizeof(o->id));
	if (l->steps.selection)
		o->record_count = selection_beginning(l->steps.selection, o->id, records, o->selection);
	/* An epoch that was not begun will have all records, as those behind it. */
	if (t->position || epoch)
		*early = (struct steps_early){.last_epoch = t->position ? epoch : epoch - 1,
					      .order_records = o->record_count,
					      .records = records};
	if (l->pool && early->order_records)
		return error_set(err, SHARD_E_UNSUPPORTED,
				 "the token belongs to this dataset before records were appended, and a pool cannot "
				 "finish its epoch; finish it with gpu.pool_bytes of 0, or begin a new epoch");
	return SHARD_OK;
}

/* Transforms that are open keep their pixels: batches may be waiting for them. */
static int check_pixels(const struct shard_loader *l, const struct token *t, struct shard_error *err)
{
	uint32_t have = l->transform_pixels;

	if (!have || !t->pixels || have == t->pixels)
		return SHARD_OK;
	return error_set(err, SHARD_E_MISMATCH,
			 "the token belongs to pixels of %s, and a transform of this loader gives those of %s; name %s "
			 "in its options%s",
			 shard_name(SHARD_NAME_PIXELS, t->pixels), shard_name(SHARD_NAME_PIXELS, have),
			 shard_name(SHARD_NAME_PIXELS, t->pixels),
			 l->transformed ? "" : ", or resume before it is opened");
}

/* Use the order of the token instead of ours, and its early epochs. */
static int adopt(struct shard_loader *l, const struct token *t, const struct steps_early *early,
		 struct shard_error *err)
{
	const struct order_params *have = &l->steps.params;
	struct order_params want = t->params;
	int rc;

	if (have->kind == want.kind && have->run_records == want.run_records && have->window_runs == want.window_runs &&
	    have->phase_unit_records == want.phase_unit_records && have->lane_count == want.lane_count &&
	    !early->order_records && !l->steps.early.order_records)
		return SHARD_OK;
	want.record_count = have->record_count;
	rc = l->pool ? pool_adopt(&l->pool, &want, err) : feed_adopt(l->feed, &want, early, err);
	if (rc)
		return rc;
	l->steps.params = loader_feed(l)->steps.params;
	l->steps.early = *early;
	return SHARD_OK;
}

/*
 * A position of a mixture is in no epoch by itself: say where it is in those of this loader.  It
 * may be where a mixture ends: the last step begins below 2^62, and ends behind it.
 */
static int find_epoch_of_mixture(const struct shard_loader *l, struct token *t, struct shard_error *err)
{
	uint64_t of = t->params.record_count, epoch_records = l->steps.rank.record_count;
	unsigned __int128 at = (unsigned __int128)t->params.epoch * of + t->position;

	if (!of || !t->params.lane_count || at >= MIX_POSITIONS_MAX + ORDER_STEP_RECORDS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "the token names an impossible order");
	t->params.epoch = (uint64_t)at / epoch_records;
	t->position = (uint64_t)at % epoch_records;
	return SHARD_OK;
}

int shard_loader_resume(struct shard_loader *l, const char *token, struct shard_error *err)
{
	struct steps_early early = {.order_records = 0};
	struct owner o = owner_now(l);
	struct step_place to;
	struct token t;
	int rc = cursor_check_owner(&l->cursor, err);

	if (rc)
		return rc;
	if (!token_read(token, &t))
		return error_set(err, SHARD_E_ARGUMENT,
				 "not a complete token of shuffle-v1 or mix-v1: it was cut or changed, or is of a "
				 "newer release; give the text of shard_loader_token() as it was, or begin without it");
	if (l->o.resume_appended && !t.is_mix && !l->steps.mix && strcmp(t.dataset_id, o.id))
		rc = find_before_append(l, &t, &o, &early, err);
	if (!rc)
		rc = check_token(l, &t, &o, err);
	if (!rc)
		rc = check_pixels(l, &t, err);
	if (!rc && (!order_params_allowed(&t.params) || t.position > t.params.record_count))
		rc = error_set(err, SHARD_E_ARGUMENT, "the token names an impossible order");
	if (!rc && t.is_mix)
		rc = find_epoch_of_mixture(l, &t, err);
	if (!rc)
		rc = adopt(l, &t, &early, err);
	to = (struct step_place){.epoch = t.params.epoch, .first_position = t.position};
	if (!rc)
		rc = check_position(l, &to, err);
	if (rc)
		return rc;
	/* What is left of the epoch may be no step of this world and batch size, and tell says the next one then. */
	move(l, steps_next(&l->steps, to));
	l->before = o;
	l->token_pixels = t.pixels;
	return SHARD_OK;
}
