/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_orders.h - the orders of the epochs that threads are in
 *
 * One thread makes the order of an epoch, and all threads share it.  The fields belong to the lock
 * of the crew, except for the contents of an order.  Its maker writes those without the lock, and
 * they are constant after that.
 */
#ifndef SHARD_STEPS_EPOCH_ORDERS_H
#define SHARD_STEPS_EPOCH_ORDERS_H

#include "libshard/feed/steps.h"
#include "libshard/order/order.h"
#include "shard.h"

struct epoch_order {
	enum { ORDER_NONE, ORDER_MAKING, ORDER_MADE } state;
	uint64_t epoch;
	uint32_t users; /* threads that fill a slot with it */
	struct order order;
	uint16_t *table;
};

struct epoch_orders {
	struct epoch_order *order; /* [count] */
	uint32_t count;
};

/* Allocate orders of any epoch of these steps, for so many threads. */
int epoch_orders_open(struct epoch_orders *o, uint32_t thread_count, const struct steps *steps,
		      struct shard_error *err);
void epoch_orders_close(struct epoch_orders *o);

/* Returns the order of the epoch, or one that no thread uses. */
struct epoch_order *epoch_orders_find(const struct epoch_orders *o, uint64_t epoch);

#endif
