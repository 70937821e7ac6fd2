/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - an epoch's order, cut into batches, copied into slots
 *
 * Fills a slot in the caller's thread, when it is asked for.  Opening prepares arithmetic only; slots come with the first
 * next, and nothing is allocated after it.  A slot holds one block per large group and, for small groups, one dense
 * array per field.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/order/order.h"
#include "libshard/store/dataset.h"

#define SLOTS_DEFAULT 4u
#define SLOTS_MAX 1024u
#define LARGE_STRIDE 4096u /* groups from here on are delivered as they lie; smaller ones field by field */
#define ARRAY_ALIGN 4096u

struct slot {
	uint8_t *memory;
	uint64_t *record;
	uint8_t *row_flags;
	bool lent;
};

struct shard_loader {
	struct shard_dataset *ds;
	struct shard_loader_options o;
	struct order_rank rank; /* first_position: where the epoch was entered */
	struct order order;     /* of `epoch` */
	uint16_t *table;
	uint64_t epoch, step;   /* the next one, counted from rank.first_position */
	bool order_ready;
	/* where arrays start in a slot: const after the first next */
	uint64_t group_at[SHARD_GROUPS_MAX], field_at[SHARD_FIELDS_MAX], slot_bytes;
	struct slot *slot; /* NULL before the first next */
	uint8_t *small;    /* records of a small group on their way to dense arrays */
	pid_t owner;
	int failed; /* status that next repeats until seek */
	struct shard_error why;
};

static int check_options(const struct shard_loader_options *o, struct shard_error *err)
{
	if (o->shuffle > SHARD_SEQUENTIAL || o->tail > SHARD_KEEP)
		return error_set(err, SHARD_E_ARGUMENT, "options: shuffle is %u, tail %u; must be at most 1 and 2", o->shuffle, o->tail);
	if (!o->batch_records)
		return error_set(err, SHARD_E_ARGUMENT, "options: batch_records is 0; must be 1 or more");
	if (o->rank >= o->world)
		return error_set(err, SHARD_E_ARGUMENT, "options: rank %u of world %u; must be below it", o->rank, o->world);
	if (o->tail == SHARD_KEEP && o->world != 1)
		return error_set(err, SHARD_E_ARGUMENT, "options: SHARD_KEEP is for world 1, not %u: ranks would make different steps; use "
				 "SHARD_DROP or SHARD_PAD", o->world);
	if (o->slot_count < 2 || o->slot_count > SLOTS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "options: slot_count is %u; must be 2 to %u", o->slot_count, SLOTS_MAX);
	return SHARD_OK;
}

static struct order_params order_params(const struct shard_loader *l, uint64_t epoch)
{
	return (struct order_params){
		.kind = l->o.shuffle == SHARD_SEQUENTIAL ? ORDER_SEQUENTIAL : ORDER_ONE_LEVEL,
		.record_count = l->ds->m.record_count,
		.seed = l->o.seed,
		.epoch = epoch,
	};
}

int shard_loader_open(struct shard_loader **out, struct shard_dataset *ds, const struct shard_loader_options *opt,
		      struct shard_error *err)
{
	struct shard_loader *l = mem_zalloc(sizeof(*l));
	struct order_params params;
	int rc = l ? options_take(&l->o, sizeof(l->o), opt, err) : error_set(err, SHARD_E_MEMORY, "no memory for a loader");

	if (rc)
		goto out;
	l->ds = ds;
	l->o.world = l->o.world ? l->o.world : 1;
	l->o.slot_count = l->o.slot_count ? l->o.slot_count : SLOTS_DEFAULT;
	rc = check_options(&l->o, err);
	if (rc)
		goto out;
	l->rank = (struct order_rank){
		.record_count = ds->m.record_count,
		.batch_records = l->o.batch_records,
		.rank = l->o.rank,
		.world = l->o.world,
		.last = l->o.tail == SHARD_PAD ? ORDER_PAD : l->o.tail == SHARD_KEEP ? ORDER_KEEP : ORDER_DROP,
	};
	if (order_rank_check(&l->rank)) {
		rc = error_set(err, SHARD_E_ARGUMENT, "options: %u records for each of %u ranks are more than %" PRIu64 " in a step",
			       l->o.batch_records, l->o.world, ORDER_STEP_RECORDS_MAX);
		goto out;
	}
	if (!shard_loader_step_count(l)) { /* an epoch without a step would train on nothing, and nobody would notice */
		rc = ds->m.record_count ? error_set(err, SHARD_E_ARGUMENT, "the dataset has %" PRIu64 " records, too few for one batch of %u on "
						    "each of %u ranks; use smaller batches, SHARD_PAD, or SHARD_KEEP",
						    ds->m.record_count, l->o.batch_records, l->o.world)
					: error_set(err, SHARD_E_ARGUMENT, "the dataset has no records, so there is nothing to load");
		goto out;
	}
	params = order_params(l, 0);
	l->table = mem_array(order_table_entries(&params), sizeof(*l->table));
	if (!l->table) {
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a loader");
		goto out;
	}
	*out = l;
	l = NULL;
out:
	shard_loader_close(l);
	return rc;
}

void shard_loader_close(struct shard_loader *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; l->slot && i < l->o.slot_count; i++) {
		mem_free(l->slot[i].memory);
		mem_free(l->slot[i].record);
		mem_free(l->slot[i].row_flags);
	}
	mem_free(l->slot);
	mem_free(l->small);
	mem_free(l->table);
	mem_free(l);
}

/* ---- slots ---- */

static bool is_large(const struct shard_group *g)
{
	return g->stride >= LARGE_STRIDE;
}

/* Places of the arrays in a slot; false if a slot would not fit memory. */
static bool plan_slot(struct shard_loader *l)
{
	const struct shard_schema *s = &l->ds->m.schema;
	uint64_t at = 0, bytes;

	for (uint32_t g = 0; g < s->group_count; g++) {
		l->group_at[g] = at;
		for (uint32_t f = 0; f < s->field_count; f++) {
			if (s->field[f].group != g)
				continue;
			l->field_at[f] = is_large(&s->group[g]) ? l->group_at[g] + s->field[f].offset : at;
			if (!is_large(&s->group[g]))
				at += align_up(l->o.batch_records * s->field[f].bytes, ARRAY_ALIGN); /* below 2^32 x 2^12 */
		}
		if (!is_large(&s->group[g]))
			continue;
		if (!mul_fits(l->o.batch_records, s->group[g].stride, &bytes) || !add_fits(at, align_up(bytes, ARRAY_ALIGN), &at))
			return false;
	}
	l->slot_bytes = at;
	return at < SIZE_MAX / 2;
}

static int make_slots(struct shard_loader *l, struct shard_error *err)
{
	uint64_t small = 0;

	for (uint32_t g = 0; g < l->ds->m.schema.group_count; g++)
		if (!is_large(&l->ds->m.schema.group[g]) && l->ds->m.schema.group[g].stride > small)
			small = l->ds->m.schema.group[g].stride;
	l->slot = plan_slot(l) ? mem_array(l->o.slot_count, sizeof(*l->slot)) : NULL;
	l->small = mem_array(l->o.batch_records, (size_t)small);
	for (uint32_t i = 0; l->slot && i < l->o.slot_count; i++) {
		struct slot *s = &l->slot[i];

		s->memory = mem_aligned(ARRAY_ALIGN, (size_t)l->slot_bytes);
		s->record = mem_array(l->o.batch_records, sizeof(*s->record));
		s->row_flags = mem_array(l->o.batch_records, sizeof(*s->row_flags));
		if (!s->memory || !s->record || !s->row_flags)
			goto fail;
	}
	if (!l->slot || !l->small)
		goto fail;
	l->owner = getpid();
	return SHARD_OK;
fail:
	if (!l->slot) { /* the next call tries again from the start */
		mem_free(l->small);
		l->small = NULL;
	}
	return error_set(err, SHARD_E_MEMORY, "no memory for %u slots of %" PRIu64 " bytes (%u records each); ask for smaller batches or "
			 "fewer slots", l->o.slot_count, l->slot_bytes, l->o.batch_records);
}

/* ---- next ---- */

static void prepare_order(struct shard_loader *l)
{
	struct order_params params = order_params(l, l->epoch);

	if (!l->order_ready)
		order_init(&l->order, &params, l->table); /* its parameters were checked with the options */
	l->order_ready = true;
}

/* The dataset indices of one step's rows, and which of them are padding. */
static uint32_t fill_order(const struct shard_loader *l, const struct order_rank *rank, const struct order *order, uint64_t step,
			   uint64_t *record, uint8_t *row_flags)
{
	uint32_t rows = order_rank_rows(rank, step), first_padded = rows;
	bool padded;

	for (uint32_t i = 0; i < rows; i++) {
		uint64_t position = order_rank_position(rank, step, i, &padded);

		if (padded && first_padded == rows)
			first_padded = i;
		if (i >= first_padded)
			record[i] = order_at(order, position);
		if (row_flags)
			row_flags[i] = padded ? SHARD_ROW_PADDED : 0;
	}
	if (first_padded)
		order_fill(order, order_rank_position(rank, step, 0, &padded), l->o.world, record, first_padded);
	return rows;
}

/* Rows of a small group to a dense array per field. */
static void spread(const struct shard_loader *l, uint32_t group, uint32_t rows, uint8_t *slot)
{
	const struct shard_schema *s = &l->ds->m.schema;

	for (uint32_t f = 0; f < s->field_count; f++) {
		const struct shard_field *field = &s->field[f];

		for (uint32_t i = 0; field->group == group && i < rows; i++)
			memcpy(slot + l->field_at[f] + i * field->bytes, l->small + i * field->stride + field->offset,
			       (size_t)field->bytes);
	}
}

static int fill_slot(struct shard_loader *l, struct slot *s, uint32_t rows, struct shard_error *err)
{
	const struct shard_schema *schema = &l->ds->m.schema;
	int rc = SHARD_OK;

	for (uint32_t g = 0; !rc && g < schema->group_count; g++) {
		void *dst[SHARD_GROUPS_MAX] = {NULL};

		dst[g] = is_large(&schema->group[g]) ? s->memory + l->group_at[g] : l->small;
		rc = shard_dataset_read(l->ds, s->record, rows, dst, err);
		if (!rc && dst[g] == l->small)
			spread(l, g, rows, s->memory);
	}
	return rc;
}

static void describe(const struct shard_loader *l, uint32_t slot, uint32_t rows, struct shard_batch *out)
{
	const struct shard_schema *schema = &l->ds->m.schema;
	const struct slot *s = &l->slot[slot];
	uint64_t step_records = (uint64_t)l->o.world * l->o.batch_records;

	memset(out, 0, sizeof(*out));
	out->epoch = l->epoch;
	out->position = l->rank.first_position + l->step * step_records;
	out->step = out->position / step_records;
	out->record_count = rows;
	out->slot = slot;
	out->record = s->record;
	out->row_flags = s->row_flags;
	for (uint32_t f = schema->field_count; f-- > 0;) { /* backwards: a small group shows its first field */
		const struct shard_field *field = &schema->field[f];
		bool large = is_large(&schema->group[field->group]);

		out->field[f] = (struct shard_rows){s->memory + l->field_at[f], large ? field->stride : field->bytes};
		out->group[field->group] = large ? (struct shard_rows){s->memory + l->group_at[field->group], field->stride}
						 : out->field[f];
	}
}

static int next(struct shard_loader *l, struct shard_batch *batch, struct shard_error *err)
{
	uint32_t slot = 0, rows;
	int rc;

	if (l->step >= order_rank_steps(&l->rank)) {
		l->epoch++;
		l->step = l->rank.first_position = 0;
		l->order_ready = false;
		return SHARD_END;
	}
	while (slot < l->o.slot_count && l->slot[slot].lent)
		slot++;
	if (slot == l->o.slot_count)
		return error_set(err, SHARD_E_ARGUMENT, "all %u slots are lent; release a batch before the next one", l->o.slot_count);
	prepare_order(l);
	rows = fill_order(l, &l->rank, &l->order, l->step, l->slot[slot].record, l->slot[slot].row_flags);
	rc = fill_slot(l, &l->slot[slot], rows, &l->why);
	if (rc) {
		l->failed = rc;
		if (err)
			*err = l->why;
		return rc;
	}
	describe(l, slot, rows, batch);
	l->slot[slot].lent = true;
	l->step++;
	return SHARD_OK;
}

int shard_loader_next(struct shard_loader *l, struct shard_batch *batch, struct shard_error *err)
{
	if (!l->slot || !l->owner) {
		int rc = l->slot ? error_set(err, SHARD_E_MEMORY, "there was no memory for slots before; open another loader")
				 : make_slots(l, err);

		if (rc)
			return rc;
	}
	if (l->owner != getpid())
		return error_set(err, SHARD_E_ARGUMENT, "this loader belongs to process %ld; open another one after fork", (long)l->owner);
	if (l->failed) {
		if (err)
			*err = l->why;
		return l->failed;
	}
	return next(l, batch, err);
}

int shard_loader_release(struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err)
{
	if (!l->slot || batch->slot >= l->o.slot_count || !l->slot[batch->slot].lent ||
	    l->slot[batch->slot].record != batch->record)
		return error_set(err, SHARD_E_ARGUMENT, "slot %u is not lent: was this batch released before, or is it another loader's?",
				 batch->slot);
	l->slot[batch->slot].lent = false;
	return SHARD_OK;
}

/* ---- places ---- */

void shard_loader_tell(const struct shard_loader *l, uint64_t *epoch, uint64_t *position)
{
	bool ended = l->step >= order_rank_steps(&l->rank);

	*epoch = l->epoch + ended;
	*position = ended ? 0 : l->rank.first_position + l->step * l->o.world * l->o.batch_records;
}

int shard_loader_seek(struct shard_loader *l, uint64_t epoch, uint64_t position, struct shard_error *err)
{
	if (position > l->ds->m.record_count)
		return error_set(err, SHARD_E_ARGUMENT, "position %" PRIu64 "; an epoch has %" PRIu64, position, l->ds->m.record_count);
	l->order_ready = l->order_ready && epoch == l->epoch;
	l->epoch = epoch;
	l->rank.first_position = position;
	l->step = 0;
	l->failed = SHARD_OK;
	return SHARD_OK;
}

uint64_t shard_loader_step_count(const struct shard_loader *l)
{
	struct order_rank whole = l->rank;

	whole.first_position = 0;
	return order_rank_steps(&whole);
}

int shard_loader_order(const struct shard_loader *l, uint64_t epoch, uint64_t first, uint64_t count, uint64_t *idx,
		       struct shard_error *err)
{
	struct order_params params = order_params(l, epoch);
	struct order_rank whole = l->rank;
	uint16_t *table = mem_array(order_table_entries(&params), sizeof(*table));
	uint64_t steps = shard_loader_step_count(l), rows = 0;
	struct order *order = mem_alloc(sizeof(*order));
	bool padded;
	int rc = SHARD_OK;

	whole.first_position = 0;
	if (steps)
		rows = (steps - 1) * l->o.batch_records + order_rank_rows(&whole, steps - 1);
	if (!table || !order)
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a table of the order");
	else if (first > rows || count > rows - first)
		rc = error_set(err, SHARD_E_ARGUMENT, "rows %" PRIu64 " to %" PRIu64 "; this rank has %" PRIu64 " in an epoch", first,
			       first + count - 1, rows);
	if (!rc) {
		order_init(order, &params, table);
		for (uint64_t i = 0; i < count; i++)
			idx[i] = order_at(order, order_rank_position(&whole, (first + i) / l->o.batch_records,
								     (uint32_t)((first + i) % l->o.batch_records), &padded));
	}
	mem_free(order);
	mem_free(table);
	return rc;
}

int shard_shuffle(uint64_t seed, uint64_t n, uint64_t first, uint64_t count, uint64_t *idx, struct shard_error *err)
{
	struct order_params params = {.kind = ORDER_ONE_LEVEL, .record_count = n, .seed = seed, .epoch = UINT64_MAX};
	struct order *order;
	uint16_t *table;
	int rc = SHARD_OK;

	if (n > ORDER_RECORDS_MAX || first > n || count > n - first)
		return error_set(err, SHARD_E_ARGUMENT, "places %" PRIu64 " to %" PRIu64 " of %" PRIu64, first, first + count - 1, n);
	order = mem_alloc(sizeof(*order));
	table = mem_array(order_table_entries(&params), sizeof(*table));
	if (!order || !table || order_init(order, &params, table))
		rc = error_set(err, SHARD_E_MEMORY, "no memory to shuffle %" PRIu64 " indices", n);
	else
		order_fill(order, first, 1, idx, (size_t)count);
	mem_free(table);
	mem_free(order);
	return rc;
}
