/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix_order.c - which component, and which record of it, stands at a position of a mixture
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/order/order.h"

#define KEPT  2u   /* tables of each lane and component; the next one is under way before the last has ended */
#define CHUNK 512u /* positions that are worked on together */
#define NONE  UINT16_MAX

/* A table of slots of a lane. */
struct lane_block {
	uint64_t block;
	bool made;
};

/* The order of a component in one of its passes. */
struct pass {
	uint64_t number;
	struct order *order; /* memory for one, until it is made */
	bool made;
};

/* The chain of a component's rows in a chunk. */
struct rows_of {
	uint16_t first, last; /* or NONE */
};

/* All that depends on the parameters. */
struct tables {
	struct order_params params;
	struct mix mix;
	struct lane_block *block; /* [KEPT * lanes] */
	struct mix_slot *slot;	  /* [KEPT * lanes][W] */
	uint16_t *scratch;
	struct pass *pass;    /* [KEPT * components] */
	struct rows_of *rows; /* [components] those of the chunk that is worked on */
};

struct mix_order {
	const struct shard_mix *m;
	pthread_mutex_t lock;
	struct tables t; /* lock */
};

static struct order_params params_of(const struct shard_mix *m, const struct tables *t, uint32_t component)
{
	struct order_params p = t->params;

	p.record_count = m->component[component].count;
	p.seed = mix_component_seed(&t->mix, component);
	p.epoch = 0;
	return p;
}

/* ---- life ---- */

static void close_tables(struct tables *t, uint32_t components)
{
	for (uint32_t i = 0; t->pass && i < KEPT * components; i++)
		mem_free(t->pass[i].order);
	mem_free(t->pass);
	mem_free(t->rows);
	mem_free(t->block);
	mem_free(t->slot);
	mem_free(t->scratch);
}

static int open_tables(struct tables *t, const struct shard_mix *m, const struct order_params *params,
		       struct shard_error *err)
{
	uint32_t components = m->component_count, lanes = params->lane_count;
	bool has;

	*t = (struct tables){.params = *params};
	if ((uint64_t)lanes * m->weight_sum > MIX_BLOCK_SLOTS_MAX)
		return error_set(err, SHARD_E_ARGUMENT,
				 "%" PRIu32 " lanes of blocks of %" PRIu32 " positions, the sum of all weights, are "
				 "too many; their product must be at most %" PRIu64,
				 lanes, m->weight_sum, MIX_BLOCK_SLOTS_MAX);
	mix_init(&t->mix, m->weight, components, lanes, params->seed);
	t->block = mem_array((size_t)KEPT * lanes, sizeof(*t->block));
	t->slot = mem_array((size_t)KEPT * lanes * m->weight_sum, sizeof(*t->slot));
	t->scratch = mem_array(mix_scratch_entries(&t->mix), sizeof(*t->scratch));
	t->pass = mem_array((size_t)KEPT * components, sizeof(*t->pass));
	t->rows = mem_array(components, sizeof(*t->rows));
	has = t->block && t->slot && t->scratch && t->pass && t->rows;
	if (has)
		memset(t->rows, 0xff, components * sizeof(*t->rows));
	for (uint32_t i = 0; has && i < KEPT * components; i++) {
		struct order_params p = params_of(m, t, i / KEPT);

		t->pass[i].order = mem_alloc(order_bytes(&p));
		has = t->pass[i].order;
	}
	if (has)
		return SHARD_OK;
	close_tables(t, components);
	return error_set(err, SHARD_E_MEMORY, "no memory for the tables of a mixture of %" PRIu32 " components",
			 components);
}

int mix_order_open(struct mix_order **out, const struct shard_mix *m, const struct order_params *params,
		   struct shard_error *err)
{
	struct mix_order *o = mem_zalloc(sizeof(*o));
	int rc;

	if (!o)
		return error_set(err, SHARD_E_MEMORY, "no memory for a mixture");
	o->m = m;
	rc = open_tables(&o->t, m, params, err);
	if (rc) {
		mem_free(o);
		return rc;
	}
	pthread_mutex_init(&o->lock, NULL);
	*out = o;
	return SHARD_OK;
}

void mix_order_close(struct mix_order *o, bool inherited)
{
	if (!o)
		return;
	close_tables(&o->t, o->m->component_count);
	if (!inherited)
		pthread_mutex_destroy(&o->lock);
	mem_free(o);
}

int mix_order_adopt(struct mix_order *o, const struct order_params *params, struct shard_error *err)
{
	struct tables t;
	int rc = open_tables(&t, o->m, params, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&o->lock);
	close_tables(&o->t, o->m->component_count);
	o->t = t;
	pthread_mutex_unlock(&o->lock);
	return SHARD_OK;
}

const struct shard_mix *mix_order_mixture(const struct mix_order *o)
{
	return o->m;
}

struct order_params mix_order_params(const struct mix_order *o, uint32_t component)
{
	return params_of(o->m, &o->t, component);
}

/* ---- tables; with lock ---- */

static const struct mix_slot *slots_of(struct tables *t, const struct mix_place *at)
{
	size_t i = (size_t)(at->lane * KEPT + at->block % KEPT);
	struct mix_slot *slot = t->slot + i * t->mix.weight_sum;

	if (!t->block[i].made || t->block[i].block != at->block)
		mix_block(&t->mix, at->lane, at->block, slot, t->scratch);
	t->block[i] = (struct lane_block){at->block, true};
	return slot;
}

static const struct order *order_of(struct mix_order *o, uint32_t component, uint64_t number)
{
	struct pass *pass = &o->t.pass[component * KEPT + number % KEPT];
	struct order_params p;

	if (pass->made && pass->number == number)
		return pass->order;
	p = params_of(o->m, &o->t, component);
	p.epoch = number;
	pass->number = number;
	pass->made = true;
	return order_in(pass->order, &p);
}

/* ---- asking ---- */

/* A position of a component that has yet to become a record. */
struct own {
	uint64_t position, pass;
	uint16_t next; /* the row that is of the same component and comes next; or NONE */
};

/* Find what stands at the positions, and chain the rows of each component. */
static void chain_rows(struct mix_order *o, uint64_t first, uint64_t stride, struct own *own, uint16_t *component,
		       uint32_t count)
{
	struct tables *t = &o->t;

	for (uint32_t i = 0; i < count; i++) {
		struct mix_place at = mix_place_of(&t->mix, first + i * stride);
		const struct mix_slot *s = &slots_of(t, &at)[at.slot];
		uint64_t q = mix_own_position(&t->mix, &at, s), n = o->m->component[s->component].count;
		struct rows_of *rows = &t->rows[s->component];

		own[i] = (struct own){.position = q % n, .pass = q / n, .next = NONE};
		component[i] = s->component;
		if (rows->first == NONE)
			rows->first = (uint16_t)i;
		else
			own[rows->last].next = (uint16_t)i;
		rows->last = (uint16_t)i;
	}
}

/* The records of the rows of a component; its chain is then empty. */
static void fill_component(struct mix_order *o, uint32_t component, const struct own *own, uint64_t *record)
{
	const struct component *c = &o->m->component[component];
	uint64_t of[CHUNK];
	uint16_t row[CHUNK], i = o->t.rows[component].first;

	o->t.rows[component].first = NONE;
	while (i != NONE) { /* the rows of one pass together */
		uint64_t pass = own[i].pass;
		uint32_t n = 0;

		for (; i != NONE && own[i].pass == pass; i = own[i].next) {
			of[n] = own[i].position;
			row[n++] = i;
		}
		order_many(order_of(o, component, pass), of, n);
		if (c->selection)
			selection_many(c->selection, of, n);
		for (uint32_t k = 0; k < n; k++)
			record[row[k]] = c->base + of[k];
	}
}

void mix_order_fill(struct mix_order *o, uint64_t first, uint64_t stride, uint16_t *component, uint64_t *record,
		    uint32_t count)
{
	struct own own[CHUNK];

	pthread_mutex_lock(&o->lock);
	for (uint32_t done = 0, n; done < count; done += n) {
		n = count - done < CHUNK ? count - done : CHUNK;
		chain_rows(o, first + done * stride, stride, own, component + done, n);
		for (uint32_t i = 0; i < n; i++)
			if (o->t.rows[component[done + i]].first == i)
				fill_component(o, component[done + i], own, record + done);
	}
	pthread_mutex_unlock(&o->lock);
}
