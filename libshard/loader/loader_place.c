/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_place.c - tells the place of a loader, and moves it: seek and tokens
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/disk/names.h"
#include "libshard/io/second_name.h"
#include "libshard/loader/loader.h"
#include "libshard/loader/token.h"
#include "libshard/mix/mix_order.h"
#include "libshard/mix/mixture.h"
#include "libshard/order/mix.h"
#include "libshard/pool/pool.h"
#include "libshard/select/selection.h"
#include "libshard/store/read/dataset.h"
#include "shard_pack.h"

void shard_loader_tell(const struct shard_loader *l, uint64_t *epoch, uint64_t *position)
{
	struct place at = steps_next(&l->steps, l->cursor.at);

	*epoch = at.epoch;
	*position = steps_position(&l->steps, &at);
}

static int move(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err)
{
	const struct place to = {.epoch = epoch, .first_position = position};

	if (position > l->steps.rank.record_count)
		return error_set(err, SHARD_E_ARGUMENT,
				 "position is %" PRIu64 "; must be at most %" PRIu64 ", the records of an epoch",
				 position, l->steps.rank.record_count);
	cursor_move(&l->cursor, to);
	device_slots_forget(&l->device_slots);
	if (l->pool)
		pool_move(l->pool, to);
	else
		feed_move(l->feed, to);
	return SHARD_OK;
}

int shard_loader_seek(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err)
{
	int rc = cursor_check_owner(&l->cursor, err);

	if (!rc)
		rc = loader_check_epoch(l, epoch, err);
	return rc ? rc : move(l, epoch, position, err);
}

/* ---- tokens ---- */

/* The id of the dataset, or the digest of the mixture. */
static void identify(const struct shard_loader *l, char id[65])
{
	if (l->steps.mix)
		memcpy(id, mix_order_mixture(l->steps.mix)->digest, 65);
	else
		dataset_id(l->ds, id);
}

void shard_loader_token(const struct shard_loader *l, char token[SHARD_TOKEN_BYTES])
{
	uint32_t pixels = l->transform_pixels;
	struct token t = {.params = l->steps.params, .pixels = pixels ? pixels : l->token_pixels};

	identify(l, t.dataset_id);
	t.is_mix = l->steps.mix;
	if (l->steps.selection)
		memcpy(t.selection, l->steps.selection->digest, sizeof(t.selection));
	shard_loader_tell(l, &t.params.epoch, &t.position);
	token_write(&t, token);
}

/* Is the token of this dataset, before records were appended?  Then that manifest is kept. */
static bool is_before_append(const struct shard_loader *l, const struct token *t)
{
	char name[sizeof(DATASET_MANIFEST) + 65], *path;
	uint8_t id[32];
	bool there;

	if (t->is_mix || l->steps.mix || !hex_to_bytes(id, t->dataset_id, sizeof(id)))
		return false;
	snprintf(name, sizeof(name), DATASET_MANIFEST ".%s", t->dataset_id);
	path = mem_join(l->ds->dir, name);
	there = path && file_exists(path);
	mem_free(path);
	return there;
}

/* Check that the token is of this dataset, and of an order that the options allow. */
static int check_token(const struct shard_loader *l, const struct token *t, struct shard_error *err)
{
	const struct order_params *have = &l->steps.params, *want = &t->params;
	const struct shard_loader_options *o = &l->asked;
	char id[65];

	identify(l, id);
	if (t->is_mix != (l->steps.mix != NULL) || strcmp(t->dataset_id, id))
		return error_set(err, SHARD_E_MISMATCH, "the token belongs to %s %.16s..., and this is %s %.16s...%s",
				 t->is_mix ? "mixture" : "dataset", t->dataset_id, l->steps.mix ? "mixture" : "dataset",
				 id,
				 is_before_append(l, t) ? ", to which records were appended since; begin an epoch "
							  "anew, or open the old dataset by its kept manifest"
							: "");
	if (strcmp(t->selection, l->steps.selection ? l->steps.selection->digest : ""))
		return error_set(err, SHARD_E_MISMATCH,
				 "the token belongs to %s%.16s%s of the dataset, and the loader has %s%.16s%s",
				 *t->selection ? "selection " : "all", t->selection, *t->selection ? "..." : "",
				 l->steps.selection ? "selection " : "all",
				 l->steps.selection ? l->steps.selection->digest : "", l->steps.selection ? "..." : "");
	if ((!t->is_mix && want->record_count != have->record_count) || want->seed != have->seed)
		return error_set(err, SHARD_E_MISMATCH,
				 "the token belongs to %" PRIu64 " records and seed %" PRIu64 "; the loader has "
				 "%" PRIu64 " records and seed %" PRIu64,
				 want->record_count, want->seed, have->record_count, have->seed);
	if ((o->shuffle != SHARD_SHUFFLE_BY_SIZE && want->kind != have->kind) ||
	    (o->run_records && o->run_records != want->run_records) ||
	    (o->phase_unit_records && o->phase_unit_records != want->phase_unit_records) ||
	    (o->window_runs && o->window_runs != want->window_runs) ||
	    (o->lane_count && o->lane_count != want->lane_count))
		return error_set(err, SHARD_E_MISMATCH,
				 "the token belongs to another order than the options ask for; leave shuffle, runs, "
				 "windows and lanes at 0 to take the token's");
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
			 shard_pixels_name(t->pixels), shard_pixels_name(have), shard_pixels_name(t->pixels),
			 l->transformed ? "" : ", or resume before it is opened");
}

static bool same_order(const struct order_params *a, const struct order_params *b)
{
	return a->kind == b->kind && a->run_records == b->run_records && a->window_runs == b->window_runs &&
	       a->phase_unit_records == b->phase_unit_records && a->lane_count == b->lane_count;
}

/* Use the order of the token instead of ours. */
static int adopt(struct shard_loader *l, const struct token *t, struct shard_error *err)
{
	struct order_params want = t->params;
	int rc;

	if (same_order(&l->steps.params, &t->params))
		return SHARD_OK;
	want.record_count = l->steps.params.record_count;
	rc = l->pool ? pool_adopt(&l->pool, &want, err) : feed_adopt(l->feed, &want, err);
	if (!rc)
		l->steps.params = loader_feed(l)->steps.params;
	return rc;
}

/*
 * A position of a mixture is in no epoch by itself: say where it is in those of this loader.  It
 * may be where a mixture ends: the last step begins below 2^62, and ends behind it.
 */
static int count_anew(const struct shard_loader *l, struct token *t, struct shard_error *err)
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
	struct token t;
	int rc = cursor_check_owner(&l->cursor, err);

	if (rc)
		return rc;
	if (!token_read(token, &t))
		return error_set(err, SHARD_E_ARGUMENT, "not a complete token of shuffle-v1 or mix-v1");
	rc = check_token(l, &t, err);
	if (!rc)
		rc = check_pixels(l, &t, err);
	if (!rc && (!order_params_allowed(&t.params) || t.position > t.params.record_count))
		rc = error_set(err, SHARD_E_ARGUMENT, "the token names an impossible order");
	if (!rc && t.is_mix)
		rc = count_anew(l, &t, err);
	if (!rc)
		rc = adopt(l, &t, err);
	if (!rc)
		rc = move(l, t.params.epoch, t.position, err);
	if (!rc)
		l->token_pixels = t.pixels;
	return rc;
}
