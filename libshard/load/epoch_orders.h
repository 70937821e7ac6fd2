/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_orders.h - the orders of the epochs that threads are in, each made once and shared
 *
 * All of it is under the lock of the crew that it belongs to, but for the contents of an order, which
 * its maker writes without the lock and which are constant after that.
 */
#ifndef SHARD_LOAD_EPOCH_ORDERS_H
#define SHARD_LOAD_EPOCH_ORDERS_H

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

/* For so many threads, of orders with these parameters; NULL `order` and MEMORY if there is none. */
int epoch_orders_open(struct epoch_orders *o, uint32_t thread_count, const struct order_params *params,
		      struct shard_error *err);
void epoch_orders_close(struct epoch_orders *o);

/* That of the epoch, or one that can be made for it. */
struct epoch_order *epoch_orders_find(const struct epoch_orders *o, uint64_t epoch);

#endif
