/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix_order.h - the order of a mixture: its blocks, and the orders of the passes of its components
 *
 * Tables are made when they are first needed, and kept for the blocks and passes that are under
 * way: two of each lane, and two of each component.  Any thread may ask; they take turns.
 */
#ifndef SHARD_MIX_MIX_ORDER_H
#define SHARD_MIX_MIX_ORDER_H

#include "libshard/order/order.h"
#include "shard.h"

struct mix_order;

/*
 * The parameters are those of a loader's steps: record_count is ignored.  The mixture must outlive
 * the order.  ARGUMENT if there are too many lanes for its weights.
 */
int mix_order_open(struct mix_order **out, const struct shard_mix *m, const struct order_params *params,
		   struct shard_error *err);
void mix_order_close(struct mix_order *o, bool inherited); /* inherited: the caller is a forked child */

/* Use other parameters from now on.  After a failure nothing has changed. */
int mix_order_adopt(struct mix_order *o, const struct order_params *params, struct shard_error *err);

const struct shard_mix *mix_order_mixture(const struct mix_order *o);

/* The parameters of a component's order in its first pass.  Not while another thread adopts. */
struct order_params mix_order_params(const struct mix_order *o, uint32_t component);

/*
 * The components of the positions first + i * stride, and their records, as numbers in the joined
 * dataset.
 */
void mix_order_fill(struct mix_order *o, uint64_t first, uint64_t stride, uint16_t *component, uint64_t *record,
		    uint32_t count);

#endif
