/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_orders.c - the orders of the epochs that threads are in
 *
 * One thread makes the order of an epoch, and all threads share it.  The fields belong to the lock
 * of the crew, except for the contents of an order.  Its maker writes those without the lock, and
 * they are constant after that.
 */
#include "libshard/feed/feed.h"

#include "libshard/base/error.h"
#include "libshard/base/mem.h"

/* A shorter order may need a longer table. */
static size_t most_entries(const struct steps *s)
{
	struct order_params early = steps_params(s, 0), all = steps_params(s, UINT64_MAX);
	size_t a = order_table_entries(&early), b = order_table_entries(&all);

	return a > b ? a : b;
}

int epoch_orders_open(struct epoch_orders *o, uint32_t thread_count, const struct steps *steps, struct shard_error *err)
{
	size_t entries = most_entries(steps);
	bool has = true;

	/* Each thread uses or makes one.  One is for the epoch before, and one is spare. */
	o->count = thread_count + 2;
	o->order = mem_array(o->count, sizeof(*o->order));
	for (uint32_t i = 0; o->order && has && i < o->count; i++) {
		o->order[i].table = mem_array(entries, sizeof(uint16_t));
		has = o->order[i].table;
	}
	if (o->order && has)
		return SHARD_OK;
	epoch_orders_close(o);
	return error_set(err, SHARD_E_MEMORY, "no memory for the order of %u epochs", thread_count + 2);
}

void epoch_orders_close(struct epoch_orders *o)
{
	for (uint32_t i = 0; o->order && i < o->count; i++)
		mem_free(o->order[i].table);
	mem_free(o->order);
	*o = (struct epoch_orders){.order = NULL};
}

struct epoch_order *epoch_orders_find(const struct epoch_orders *o, uint64_t epoch)
{
	struct epoch_order *unused = NULL;

	for (uint32_t i = 0; i < o->count; i++) {
		struct epoch_order *e = &o->order[i];

		if (e->state != ORDER_NONE && e->epoch == epoch)
			return e;
		if (e->state != ORDER_MAKING && !e->users && (!unused || e->state == ORDER_NONE))
			unused = e;
	}
	return unused; /* not NULL: each of the other threads uses or makes at most one */
}
