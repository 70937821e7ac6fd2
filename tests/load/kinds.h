/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.h - the three kinds of order, as options of a loader of small batches
 */
#ifndef TESTS_LOAD_KINDS_H
#define TESTS_LOAD_KINDS_H

#include "libshard/order/order.h"
#include "shard.h"

enum { IN_SEQUENCE, GLOBALLY, IN_WINDOWS, KINDS };

static inline struct shard_loader_options of_kind(size_t kind)
{
	static const struct shard_loader_options kinds[KINDS] = {
		{.order.shuffle = SHARD_SEQUENTIAL},
		{.order.shuffle = SHARD_SHUFFLE_GLOBAL},
		{.order.shuffle = SHARD_SHUFFLE_WINDOWS,
		 .order.run_records = 5,
		 .order.window_runs = 2,
		 .order.lane_count = 4,
		 .order.phase_unit_records = 2},
	};
	struct shard_loader_options o = kinds[kind];

	o.size = sizeof(o);
	o.batch_records = 7;
	o.order.seed = 5;
	o.slot_count = 3;
	o.thread_count = 2;
	return o;
}

/* The parameters of the order that such options ask for. */
static inline struct order_params params_of_kind(const struct shard_loader_options *o, uint64_t record_count,
						 uint64_t epoch)
{
	return (struct order_params){.kind = o->order.shuffle == SHARD_SEQUENTIAL	? ORDER_SEQUENTIAL
					     : o->order.shuffle == SHARD_SHUFFLE_GLOBAL ? ORDER_ONE_LEVEL
											: ORDER_TWO_LEVELS,
				     .record_count = record_count,
				     .seed = o->order.seed,
				     .epoch = epoch,
				     .run_records = o->order.run_records,
				     .window_runs = o->order.window_runs,
				     .lane_count = o->order.lane_count,
				     .phase_unit_records = o->order.phase_unit_records};
}

#endif
